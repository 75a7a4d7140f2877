"""Bins of a reliability diagram, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import beta

from leastwise.displays._drawing import choose
from leastwise.displays._reading import Said

Array = np.ndarray

INTERVALS = ("exact", "bootstrap", None)


@dataclass(frozen=True)
class Bins:
    """Rows in bins of the same size, in rising order of p: means of both, counts, and which bin each row is in."""

    p: Array
    share: Array
    counts: Array
    member: Array

    @property
    def error(self) -> float:
        """Expected calibration error."""
        return float(np.abs(self.p - self.share) @ self.counts / self.counts.sum())


def binned(what: Said, n_bins: int) -> Bins:
    """At most ``n_bins`` bins, none of them empty."""
    n = len(what.p)
    if int(n_bins) < 1:
        raise ValueError(f"n_bins={n_bins!r} must be 1 or more.")
    member = np.empty(n, dtype=int)
    member[np.argsort(what.p, kind="stable")] = np.arange(n) * min(int(n_bins), n) // n
    counts = np.bincount(member)
    p, share = (np.bincount(member, weights=v) / counts for v in (what.p, what.true))
    return Bins(p, share, counts, member)


def interval_of(
    bins: Bins, true: Array, kind: str | None, level: float, groups: Any = None, draws: int = 1000, seed: int = 0
) -> tuple[Array, Array] | tuple[None, None]:
    """Lower and upper ends of an interval for the share of every bin."""
    choose("interval", kind, INTERVALS)
    if not 0 < level < 1:
        raise ValueError(f"level={level!r} must be between 0 and 1, 0.95 for instance.")
    if groups is not None and kind != "bootstrap":
        raise ValueError("groups= are drawn anew as wholes, which needs interval='bootstrap'.")
    if kind is None:
        return None, None
    if kind == "exact":
        return exact_interval(bins.share * bins.counts, bins.counts, level)
    return _drawn_anew(bins, true, level, groups, draws, seed)


def exact_interval(successes: Any, trials: Any, level: float = 0.95) -> tuple[Array, Array]:
    """Clopper and Pearson's interval for a binomial share: covers it with a probability of at least ``level``."""
    k, n, tail = np.asarray(successes, dtype=float).round(), np.asarray(trials), (1 - level) / 2
    # At the borders there is nothing beyond; beta.ppf has no value there.
    low = np.where(k > 0, beta.ppf(tail, np.maximum(k, 1), n - k + 1), 0.0)
    high = np.where(k < n, beta.ppf(1 - tail, k + 1, np.maximum(n - k, 1)), 1.0)
    return low, high


def exact_upper(errors: Array, trials: Array, level: float) -> Array:
    """The one-sided bound: the share is above it with a probability of at most ``1 - level``."""
    return np.where(errors < trials, beta.ppf(level, errors + 1, np.maximum(trials - errors, 1)), 1.0)


def _drawn_anew(bins: Bins, true: Array, level: float, groups: Any, draws: int, seed: int) -> tuple[Array, Array]:
    """Quantiles over draws of rows, or of whole groups of rows, with replacement; the bins stay as they are."""
    member, rng = bins.member, np.random.default_rng(seed)
    place = np.arange(len(member)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    m, b = int(place.max()) + 1, len(bins.counts)
    rows, hits = np.zeros((m, b)), np.zeros((m, b))
    np.add.at(rows, (place, member), 1)
    np.add.at(hits, (place, member), true)
    shares = np.empty((draws, b))
    for i in range(draws):
        times = np.bincount(rng.integers(m, size=m), minlength=m)
        n = times @ rows
        shares[i] = np.where(n > 0, times @ hits / np.maximum(n, 1), np.nan)  # a bin may be missing from a draw
    tail = (1 - level) / 2
    low, high = np.nanquantile(shares, [tail, 1 - tail], axis=0)
    return low, high
