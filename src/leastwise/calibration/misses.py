r"""Limits on missed rows of a class: how often rows of the class may be accepted as another class.

A row of class k is *missed* if it is accepted with another prediction. A rare class can be missed altogether while
the error rate of all accepted rows is low, so its limit is one on the rows of that class. A row is accepted as
another class only if its probability of class k is below a *level* s. The share of missed rows,

    m(s) = P(predicted != k, p_k < s | class k),

grows with s. Given the number n of held-out rows of class k, the number of missed ones is binomial. ``miss_level``
tests the levels of a grid, which does not depend on the data, from 0 upwards, and stops at the first that fails. A
false result needs the lowest level of the grid with m(s) above the limit to pass, and that is one exact test: so m is
above the limit with a probability of at most ``delta``, for any number of rows and without further assumptions on the
probabilities. At level 0 rows are accepted as class k only, and nothing is missed.

Groups, weights and hidden errors are as in :mod:`leastwise.calibration.risk`. All hidden errors are counted, since
all of them may be errors on this class.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from leastwise.calibration.conformal import CalibrationSet
from leastwise.calibration.risk import LIMITS, STEPS, Decisions

Array = np.ndarray

#: Levels from 1e-8 to 1, in 48 steps per decade; the last one accepts everything.
LEVELS = np.append(10.0 ** (-np.arange(8 * STEPS, 0, -1) / STEPS), np.inf)


def blocked(P: Array, codes: Array, levels: Array) -> Array:
    """True for rows (n x c) predicted as another class than one whose probability reaches its level."""
    over = np.asarray(levels <= P)
    over[np.arange(len(over)), codes] = False
    return np.asarray(over.any(axis=1))


def miss_level(heldout: CalibrationSet, predicted: Array, k: int, limit: float, delta: float) -> float:
    """The largest level with a share of missed rows of class k below the limit, with probability 1 - delta."""
    own, missed = _rows_of(heldout, predicted, k)

    def fails(level: float) -> bool:
        return replace(own, wrong=missed(level)).p_value(0.0, limit) > delta

    kept = bisect_left(LEVELS.tolist(), True, key=fails)
    return float(LEVELS[kept - 1]) if kept else 0.0


def miss_bound(heldout: CalibrationSet, predicted: Array, k: int, level: float, delta: float) -> float:
    """Upper bound of the share of missed rows of class k at a given level; NaN if there are no rows of the class."""
    own, missed = _rows_of(heldout, predicted, k)
    return replace(own, wrong=missed(level)).bound(0.0, delta) if level > 0 else 0.0


def smallest_miss_limit(heldout: CalibrationSet, predicted: Array, k: int, delta: float) -> float | None:
    """The smallest of ``LIMITS`` at which some held-out row is accepted as another class; None if there is none."""
    least = least_probability(heldout, predicted, k)
    kept = (limit for limit in LIMITS if miss_level(heldout, predicted, k, limit, delta) > least)
    return next(kept, None)


def least_probability(heldout: CalibrationSet, predicted: Array, k: int) -> float:
    """The smallest probability of class k among rows with other predictions: no lower level accepts any of them."""
    return float(np.min(heldout.P[predicted != k, k], initial=np.inf))


def _rows_of(heldout: CalibrationSet, predicted: Array, k: int) -> tuple[Decisions, Callable[[float], Array]]:
    """The rows of class k, and which of them are missed at a level."""
    rows = np.flatnonzero(heldout.codes == k)
    group, count = (None if a is None else a[rows] for a in (heldout.group, heldout.count))
    p, other, none = heldout.P[rows, k], predicted[rows] != k, np.zeros(len(rows))
    own = Decisions(none, none.astype(bool), heldout.w[rows], group, count, heldout.hidden)
    return own, lambda level: other & (p < level)
