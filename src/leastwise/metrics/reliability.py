"""Reliability diagrams, binomial intervals and bootstrap intervals of calibration errors.

Displays, reports and notebook representations share these functions. A diagram is made in two steps: a rule puts
every probability into a bin (:func:`leastwise.metrics.calibration.equal_mass_bins` or
:func:`merged_width_bins`), and :func:`reliability_bins` summarises the bins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from scipy import sparse
from scipy.stats import beta

from leastwise.metrics.calibration import Binned, ece_debias, equal_mass_bins

Array = np.ndarray

#: A bin has at least this many rows.
BIN_ROWS = 10
#: Bootstrap draws: at most ``MAX_DRAWS``, fewer where they would touch more than ``ROW_BUDGET`` rows, at least
#: ``MIN_DRAWS``.
ROW_BUDGET, MIN_DRAWS, MAX_DRAWS = 10_000_000, 50, 200
#: Draws are made together up to this many counts of groups.
DRAW_CELLS = 2_000_000


# ------------------------------------------------------------------------------- bins


@dataclass(frozen=True)
class ReliabilityBins:
    """Bins of a reliability diagram, in rising order of the probability.

    Attributes
    ----------
    p, share : ndarray of shape (bins,)
        Mean probability, and frequency of the event, both weighted.
    counts : ndarray of int of shape (bins,)
        Number of rows.
    mass : ndarray of shape (bins,)
        Sum of the weights.
    effective : ndarray of shape (bins,)
        Effective number of rows, ``(sum w)^2 / sum w^2``; the number of rows where all weights are equal.
    member : ndarray of int of shape (n,)
        The bin of every row.
    """

    p: Array
    share: Array
    counts: Array
    mass: Array
    effective: Array
    member: Array

    @property
    def error(self) -> float:
        """The plain expected calibration error, not debiased."""
        return float(np.abs(self.p - self.share) @ self.mass / self.mass.sum())

    def exact_interval(self, level: float) -> tuple[Array, Array]:
        """Clopper-Pearson interval of the frequency of every bin, for independent rows."""
        return exact_interval(self.share * self.effective, self.effective, level)

    def bootstrap_interval(
        self, true: Array, level: float, groups: Any = None, draws: int = 1000, seed: int = 0
    ) -> tuple[Array, Array]:
        """Quantiles over draws with replacement of rows, or of whole groups of rows; the bins are kept."""
        group = np.arange(len(true)) if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
        m, b = int(group.max()) + 1, len(self.counts)
        rows, hits = np.zeros((m, b)), np.zeros((m, b))
        np.add.at(rows, (group, self.member), 1)
        np.add.at(hits, (group, self.member), true)
        shares = np.empty((draws, b))
        for i, times in enumerate(resampled_groups(m, draws, np.random.default_rng(seed))):
            n = times @ rows
            shares[i] = np.where(n > 0, times @ hits / np.maximum(n, 1), np.nan)  # a draw may miss a bin
        low, high = np.nanquantile(shares, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return low, high


def reliability_bins(p: Array, true: Array, member: Array, w: Array | None = None) -> ReliabilityBins:
    """Summarise probabilities p of events that are ``true`` or not by the bin of every row, without empty bins."""
    member = np.unique(member, return_inverse=True)[1]
    w = np.ones(len(p)) if w is None else w
    mass, squares, p_sum, hits = (np.bincount(member, weights=v) for v in (w, w**2, w * p, w * true))
    return ReliabilityBins(p_sum / mass, hits / mass, np.bincount(member), mass, mass**2 / squares, member)


def merged_width_bins(p: Array, n_bins: int = 10, min_rows: int = BIN_ROWS) -> Array:
    """Bins of width ``1 / n_bins``; neighbours are merged until each has ``min_rows`` rows."""
    place = np.minimum((p * n_bins).astype(int), n_bins - 1)
    merged, bins, rows = np.zeros(n_bins, dtype=int), 0, 0
    counts = np.bincount(place, minlength=n_bins)
    for k in range(n_bins):
        merged[k] = bins
        rows += int(counts[k])
        if rows >= min_rows and counts[k + 1 :].sum() >= min_rows:
            bins, rows = bins + 1, 0
    return merged[place]


def bin_count(n: int, n_bins: int = 15) -> int:
    """``n_bins``, or fewer such that a bin has at least 10 of n rows."""
    return max(1, min(n_bins, n // BIN_ROWS))


def binary_bins(p: Array, true: Array, w: Array, n_bins: int = 15) -> Binned:
    """Probabilities of one event in bins of equal mass, for the debiased calibration error."""
    n_bins = bin_count(len(p), n_bins)
    return Binned(p[:, None], true[:, None], equal_mass_bins(p, n_bins, w)[:, None], n_bins)


# -------------------------------------------------------------------------- intervals


def exact_interval(successes: Any, trials: Any, level: float = 0.95) -> tuple[Array, Array]:
    """Clopper-Pearson interval of a binomial proportion: its coverage is at least ``level``."""
    k, n, tail = np.asarray(successes, dtype=float).round(), np.asarray(trials), (1 - level) / 2
    # beta.ppf is not defined at the borders, where the ends are 0 and 1.
    low = np.where(k > 0, beta.ppf(tail, np.maximum(k, 1), n - k + 1), 0.0)
    high = np.where(k < n, beta.ppf(1 - tail, k + 1, np.maximum(n - k, 1)), 1.0)
    return low, high


def exact_upper(successes: Array, trials: Array, level: float) -> Array:
    """One-sided Clopper-Pearson bound: the proportion is above it with probability at most ``1 - level``."""
    failures = np.where(successes < trials, trials - successes, 1)
    return np.where(successes < trials, beta.ppf(level, successes + 1, failures), 1.0)


def resampled_groups(m: int, draws: int, rng: np.random.Generator) -> Iterator[Array]:
    """How often each of m groups is drawn, for every draw of m groups with replacement."""
    for _ in range(draws):
        yield np.bincount(rng.integers(m, size=m), minlength=m)


def centred_quantiles(draws: Array, value: Any, level: float) -> tuple[Any, Any]:
    """Bootstrap interval after the draws are shifted such that their mean is the value.

    Draws of a calibration error lie to one side of it otherwise.
    """
    shifted = draws - np.nanmean(draws, axis=0) + value
    low, high = np.nanquantile(shifted, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


@dataclass(frozen=True)
class Interval:
    """An estimate with the ends of its interval."""

    value: float
    low: float
    high: float


def calibration_errors(
    codes: Array, P: Array, w: Array | None = None, group: Array | None = None, level: float = 0.95, seed: int = 0
) -> tuple[Interval, Interval]:
    """The calibration error of the most probable class, and the mean of those of all classes, with intervals.

    This is the definition that the command line, the report and evaluations share: debiased, over 15 bins of equal
    mass (fewer where a bin would have fewer than 10 rows), with bootstrap intervals in which rows of a group are
    drawn together. All values are at least 0.
    """
    w = np.ones(len(codes)) if w is None else w
    binned = Binned.of(codes, P, w, bin_count(len(codes)))
    values = np.array([binned.error(k, w, debiased=True) for k in range(binned.p.shape[1])])
    draws = _error_draws(binned, w, group, seed)
    return (
        _centred_interval(values[0], draws[0], level),
        _centred_interval(values[1:].mean(), draws[1:].mean(axis=0), level),
    )


def event_calibration_error(
    p: Array, true: Array, w: Array, group: Array | None = None, level: float = 0.95, seed: int = 0
) -> Interval:
    """The same for the probabilities p of one event that is ``true`` or not."""
    bins = binary_bins(p, true, w)
    return _centred_interval(bins.error(0, w, debiased=True), _error_draws(bins, w, group, seed)[0], level)


def _centred_interval(value: float, draws: Array, level: float) -> Interval:
    """A debiased value below 0 is chance, and becomes 0; the draws are centred on the result."""
    value = max(float(value), 0.0)
    low, high = centred_quantiles(draws, value, level)
    return Interval(value, max(float(low), 0.0), max(float(high), 0.0))


def _error_draws(binned: Binned, w: Array, group: Array | None, seed: int) -> Array:
    """Debiased calibration errors of every column in bootstrap draws of rows or groups, of shape (columns, draws)."""
    member = np.arange(len(w)) if group is None else np.unique(group, return_inverse=True)[1]
    m, columns = int(member.max()) + 1, range(binned.p.shape[1])
    count = int(np.clip(ROW_BUDGET // max(len(columns) * len(w), 1), MIN_DRAWS, MAX_DRAWS))
    resamples = resampled_groups(m, count, np.random.default_rng(seed))
    sums = [_bin_sums(binned, column, w, member, m) for column in columns]
    draws = []
    while times := list(islice(resamples, max(DRAW_CELLS // m, 1))):
        T = np.column_stack(times).astype(float)
        draws.append([_drawn_errors(mass @ T, p @ T, gap @ T, squares @ T**2) for mass, p, gap, squares in sums])
    return np.concatenate([np.array(some) for some in draws], axis=1)


def _bin_sums(binned: Binned, column: int, w: Array, member: Array, m: int) -> list[Any]:
    """Sums over bins (rows) of the rows of each group (columns): weight, weighted p, gap, and squared weight."""
    p, place = binned.p[:, column], (binned.bins[:, column], member)
    values = (w, w * p, w * (p - binned.hit[:, column]), w**2)
    return [sparse.csr_array((v, place), shape=(binned.n_bins, m)) for v in values]


def _drawn_errors(mass: Array, p_sum: Array, gap: Array, squares: Array) -> Array:
    """The debiased error of every draw, from the sums of its bins, of shape (bins, draws)."""
    full = np.where(mass > 0, mass, 1.0)
    bias = ece_debias(full**2 / np.where(mass > 0, squares, 1.0), p_sum / full, gap / full)
    return np.sum(np.abs(gap) - mass * bias, axis=0) / mass.sum(axis=0)
