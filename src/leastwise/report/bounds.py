"""Upper bounds of error rates at many thresholds at once, those of :class:`leastwise.risk.Decisions`."""

from __future__ import annotations

import numpy as np
from scipy.special import betaincinv

from leastwise.risk import BETS, Decisions

Array = np.ndarray

#: Steps of the bisection: a bound is exact to 1e-5.
STEPS = 17


def bounds(decisions: Decisions, thresholds: Array, doubt: float) -> Array:
    """The bound at every threshold; NaN where nothing is decided."""
    if decisions.plain:
        return _exact(decisions, thresholds, doubt)
    found = np.full(len(thresholds), np.nan)
    for k, threshold in enumerate(thresholds):
        inside = decisions.accepted(float(threshold))
        if inside.any():
            found[k] = _betted(decisions, inside, doubt)
    return found


def _exact(decisions: Decisions, thresholds: Array, doubt: float) -> Array:
    """Clopper and Pearson's bound."""
    order = np.sort(decisions.confidence)
    errors = np.sort(decisions.confidence[decisions.wrong])
    n = len(order) - np.searchsorted(order, thresholds, side="left")
    k = len(errors) - np.searchsorted(errors, thresholds, side="left")
    with np.errstate(invalid="ignore"):
        found = np.where(k == n, 1.0, betaincinv(k + 1, np.maximum(n - k, 1), 1 - doubt))
    return np.where(n > 0, found, np.nan)


def _betted(decisions: Decisions, inside: Array, doubt: float) -> float:
    """The limit at which a bet against more errors wins 1 / doubt; groups that fared alike are counted."""
    mass = np.bincount(decisions.member, weights=decisions.w * inside) / decisions.most
    lost = np.bincount(decisions.member, weights=decisions.w * inside * decisions.wrong) / decisions.most
    # A pair as one complex number: these sort far faster than rows of a table.
    pairs, times = np.unique(np.round(lost, 9) + 1j * np.round(mass, 9), return_counts=True)
    low, high = 0.0, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        fared = (pairs.real - middle * pairs.imag) / (1 - middle)
        won = np.log1p(-BETS[:, None] * fared) @ times
        most = won.max() + np.log(np.mean(np.exp(won - won.max())))
        low, high = (low, middle) if most >= -np.log(doubt) else (middle, high)
    return high
