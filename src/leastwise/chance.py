"""What chance makes of the distance between a probability and a frequency."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

Array = np.ndarray

#: Where the rarer outcome is expected less often than this, the normal distribution is not good enough; it then comes
#: hardly ever more often than ``SEVERAL`` times.
FEW, SEVERAL = 20, 60


def chance(count: Array, p: Array, gap: Array) -> Array:
    """What is taken off a gap: a exp(-gap^2 / 2v), for bins of so many rows with mean probability p."""
    q, n = np.clip(np.minimum(p, 1 - p), 0, 0.5), np.maximum(np.round(count), 1)
    v = q * (1 - q) / n
    v = np.where(v > 1e-300, v, 0)  # smaller ones have no reciprocal
    v_safe = np.where(v > 0, v, 1)
    a = 2 * np.sqrt(v / np.pi)
    few = (n * q < FEW) & (v > 0)
    if few.any():
        k = np.arange(SEVERAL)
        P = _binomial(k, n[few, None], q[few, None])
        away = np.abs(k / n[few, None] - q[few, None])
        a[few] = np.sum(P * away, axis=1) / np.sum(P * np.exp(-(away**2) / (2 * v[few, None])), axis=1)
    return np.where(v > 0, a * np.exp(-(gap**2) / (2 * v_safe)), 0)


def _binomial(k: Array, n: Array, q: Array) -> Array:
    """Probabilities of k of n; many times faster than scipy.stats on small tables."""
    left = np.maximum(n - k, 0)
    log = gammaln(n + 1) - gammaln(k + 1) - gammaln(left + 1) + k * np.log(q) + left * np.log1p(-q)
    return np.where(k <= n, np.exp(log), 0)
