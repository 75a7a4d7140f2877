"""Upper bounds of error rates at many thresholds at once, those of :class:`leastwise.calibration.risk.Decisions`.

Means, shares and calibration errors with intervals.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtri

from leastwise.calibration.risk import BETS, Decisions
from leastwise.estimators._html_repr import bins_of
from leastwise.inspection.outcomes import exact_interval

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


LEVEL = 0.95
#: Draws of the bootstrap: as many as keep to about so many rows in all, but not fewer, nor more, than these.
DRAWN, FEWEST, MOST = 10_000_000, 50, 200
#: A point of a reliability diagram has so many rows at least.
FULL = 10


def plain(value: Any) -> Any:
    """A number for JSON: None for what is not finite, five digits that count else."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    return float(f"{float(value):.5g}") if np.isfinite(value) else None


def plain_list(values: Any) -> list:
    """Numbers for JSON."""
    return [plain(v) for v in np.asarray(values).tolist()]


def mean_of(values: Array, w: Array, unit: Array | None) -> dict[str, Any]:
    """A weighted mean with an interval; rows of one unit (a group, or a row with all its labels) vary together."""
    mean = float(np.average(values, weights=w))
    off = w * (values - mean)
    sums = off if unit is None else np.bincount(np.unique(unit, return_inverse=True)[1], weights=off)
    n = len(sums)
    error = float(np.sqrt(n / (n - 1) * np.sum(sums**2)) / w.sum()) if n > 1 else np.nan
    half = ndtri((1 + LEVEL) / 2) * error
    return {"value": plain(mean), "low": plain(max(mean - half, 0.0)), "high": plain(mean + half)}


def share_of(true: Array, w: Array, unit: Array | None) -> dict[str, Any]:
    """A share with an interval: the exact one where every row is a witness like any other."""
    even = np.ptp(w) <= 1e-9 * w.max()
    if unit is None and even:
        low, high = exact_interval(true.sum(), len(true), LEVEL)
        return {"value": plain(true.mean()), "low": plain(low), "high": plain(high)}
    found = mean_of(true.astype(float), w, unit)
    return {**found, "high": None if found["high"] is None else min(found["high"], 1.0)}


def calibration_of(p: Array, true: Array, w: Array, unit: Array | None, seed: int = 0) -> dict[str, Any]:
    """The expected calibration error without what chance makes of it; none of it is below zero."""
    bins, rng = bins_of(p, true, w), np.random.default_rng(seed)
    value = bins.error(0, w, debiased=True)
    member = np.arange(len(p)) if unit is None else np.unique(unit, return_inverse=True)[1]
    m, count = int(member.max()) + 1, int(np.clip(DRAWN // max(len(p), 1), FEWEST, MOST))
    drawn = np.empty(count)
    for k in range(count):
        times = np.bincount(rng.integers(m, size=m), minlength=m)[member]
        drawn[k] = bins.error(0, w * times, debiased=True)
    low, high = np.quantile(drawn - drawn.mean() + value, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return {"value": plain(max(value, 0.0)), "low": plain(max(low, 0.0)), "high": plain(max(high, 0.0))}


def steps(p: Array) -> Array:
    """A bin for every probability: ten steps of 0.1, and neighbours together until each has ten rows."""
    place = np.minimum((p * 10).astype(int), 9)
    number, count, rows = np.zeros(10, dtype=int), 0, 0
    counts = np.bincount(place, minlength=10)
    for k in range(10):
        number[k] = count
        rows += int(counts[k])
        if rows >= FULL and counts[k + 1 :].sum() >= FULL:
            count, rows = count + 1, 0
    return number[place]


def curve_of(p: Array, true: Array, w: Array) -> dict[str, Any]:
    """A reliability diagram: bins with exact intervals, and how the rows spread over the probabilities."""
    place = steps(p)
    mass, squares, said, hits = (np.bincount(place, weights=v) for v in (w, w**2, w * p, w * true))
    mean, share, worth = said / mass, hits / mass, mass**2 / squares
    low, high = exact_interval(share * worth, worth, LEVEL)
    heights = np.histogram(p, bins=20, range=(0, 1), weights=w)[0] / w.sum()
    error = max(bins_of(p, true, w).error(0, w, debiased=True), 0.0)
    return {
        "p": plain_list(mean),
        "share": plain_list(share),
        "low": plain_list(low),
        "high": plain_list(high),
        "rows": np.bincount(place).tolist(),
        "histogram": plain_list(heights),
        "ece": plain(error),
    }
