"""Parts of dates that repeat: the time of the year, the day of the week, and the time of the day.

A date is a number, the days since 1970-01-01, which a model can follow as a trend. What repeats needs features of its
own: sine and cosine of the phase of the cycle, so that December is next to January, and for the week also whether the
day is on a weekend.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import chi2_contingency, f_oneway

from leastwise.sources.formats.dates import has_day, is_clock

Array = np.ndarray

#: Periods in days, and names of the features of each part.
PERIODS = {"time of year": 365.2425, "weekday": 7.0, "time of day": 1.0}
#: Numbers of bins on which a part is compared with the target.
BINS = {"time of year": 12, "weekday": 7, "time of day": 8}
#: Days that the dates must span, so that a cycle is more than a trend.
SPANS = {"time of year": 365, "weekday": 14, "time of day": 1}
#: Level of the test that a part is related to the target.
LEVEL = 0.01
#: Rows that each bin must have on average.
ROWS_PER_BIN = 3


def part_names(parts: Sequence[str]) -> list[str]:
    """Names of the features of some parts."""
    return [f"{part}, {what}" for part in parts for what in ("sine", "cosine", *(["weekend"] * (part == "weekday")))]


def phases(days: Array, part: str) -> Array:
    """Where in the cycle a moment is, from 0 to 1; the week begins on Monday."""
    turns = (np.floor(days) + 3 if part == "weekday" else days) / PERIODS[part]
    return turns - np.floor(turns)


def part_features(days: Array, parts: Sequence[str]) -> Array:
    """Features of some parts (n x k), NaN where the date is missing."""
    columns = []
    for part in parts:
        phase = phases(days, part)
        columns += [np.sin(2 * np.pi * phase), np.cos(2 * np.pi * phase)]
        if part == "weekday":
            columns.append(np.where(np.isnan(phase), np.nan, phase > 4.5 / 7))
    return np.column_stack(columns) if columns else np.empty((len(days), 0))


def useful_parts(days: Array, y: Array | None = None, format: str = "") -> tuple[str, ...]:
    """The parts in which the dates differ, over more than one cycle; with targets y, those that are related to them.

    ``y`` has classes, numbers (floats) or, with two axes, labels of 0, 1 and NaN. ``format`` is that of the cells:
    clock times have no date, and months have no weekday.
    """
    known = ~np.isnan(days)
    if not known.any():
        return ()
    span, found = float(np.ptp(days[known])), []
    clock = is_clock(format)
    possible = ["time of day"] if clock else list(PERIODS) if has_day(format) else ["time of year"]
    for part in possible:
        bins = np.floor(phases(days[known], part) * BINS[part] + 1e-9)
        if (span < SPANS[part] and not clock) or len(np.unique(bins)) < 2:
            continue
        if y is None or _related(bins, y[known]):
            found.append(part)
    return tuple(found)


def _related(bins: Array, y: Array) -> bool:
    """True if the target differs between bins by more than chance."""
    if y.ndim == 2:
        p = [_p_value(bins[known], column[known]) for column in y.T if (known := ~np.isnan(column)).any()]
        return bool(p) and min(p) * len(p) < LEVEL
    if y.dtype.kind == "f":
        places, counts = np.unique(bins, return_counts=True)
        groups = [y[bins == place] for place in places[counts > 1]]
        return len(groups) > 1 and float(f_oneway(*groups).pvalue) < LEVEL
    return _p_value(bins, y) < LEVEL


def _p_value(bins: Array, y: Array) -> float:
    """The p-value of the chi-squared test of independence; 1 for too few rows."""
    (places, i), (classes, j) = (np.unique(values, return_inverse=True) for values in (bins, y))
    if len(classes) < 2 or len(y) < ROWS_PER_BIN * len(places) * len(classes):
        return 1.0
    counts = np.zeros((len(places), len(classes)))
    np.add.at(counts, (i, j), 1)
    return float(chi2_contingency(counts).pvalue)
