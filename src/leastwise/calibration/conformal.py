"""Conformal prediction from held-out rows: intervals by jackknife+ and CV+, and sets of classes.

**Intervals.** A model that is linear in its targets, ``F(x) = sum_i s_i(x) z_i``, predicts without fold k, at the
same ridge::

    F_-k(x) = F(x) - sum_(i in k) s_i(x) r_i,      r_i = z_i - F_-k(x_i),

since leaving rows out is the same as giving them the targets that are predicted for them. So the models of all folds
cost no more than the weights s(x). With k(i) the fold of row i, and K = ceil((n + 1) coverage), the interval of
*jackknife+* (Barber, Candes, Ramdas and Tibshirani 2021; CV+ for larger folds) is::

    from the K-th largest  F_-k(i)(x) - |r_i|   to the K-th smallest  F_-k(i)(x) + |r_i|.

It covers a new value with a probability of at least 2 coverage - 1 for any distribution, if rows are exchangeable,
and of about ``coverage`` in practice. The plain *jackknife*, ``F(x) -+ (the K-th smallest |r_i|)``, needs the
residuals only. Both assume that hyperparameters are given: residuals that have chosen hyperparameters are enlarged
first, see ``leastwise.model_selection.objective``.

With groups, a new row belongs to a new group. Groups are exchangeable, their rows are not independent. Folds hold
whole groups, each row has the weight one over the size of its group, and n is the number of groups (Lee, Barber and
Willett 2023).

**Sets of classes.** A *nonconformity* score is large for classes that do not fit a row:

``"lac"``
    ``1 - p(y|x)``. The smallest sets on average (Sadinle, Lei and Wasserman 2019).
``"aps"``
    the total probability of the classes that are more probable than y (Romano, Sesia and Candes 2020, without
    randomisation). Sets are larger for harder rows, and never empty.
``"random-aps"``
    the same plus a random part of ``p(y|x)``, as in the paper: coverage is more even between easy and hard rows.

With n held-out rows, the level is the K-th smallest nonconformity of their true classes, ``K = ceil((n + 1)
coverage)``, and the set contains all classes at or below it; all classes if K > n. If the held-out rows and the new
row are exchangeable, and the model was fitted without either, the true class is in the set with a probability of at
least ``coverage``. Leave-one-out predictions come from models that differ from the final one by one row, and a few
hyperparameters were chosen on these rows. Some rows that conform would not have done so without that choice: K is
raised by their number, ``hidden_errors`` of ``leastwise.model_selection.objective``. So here the guarantee is
approximate; measured coverage is in ``benchmarks.conformal`` and ``benchmarks.few_rows``. For an exact one, keep
separate rows and use their probabilities. The rows of
a group are one observation: each has the weight one over the size of its group, and n is the number of groups (Lee,
Barber and Willett 2023).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leastwise.calibration.extrapolation import independent_weights

Array = np.ndarray


@dataclass(frozen=True)
class HeldRows:
    """True classes of all training rows, with weights, groups and tasks.

    Attributes
    ----------
    codes : ndarray of int of shape (n,) or (n, T)
        Codes of the true classes in ``classes_``; -1 where a label is unknown.
    weight : ndarray of the same shape
        0 where a row or label does not count: of weight zero, unknown, or never held out.
    in_domain : ndarray of shape (n,)
        Domain weights of the held-out scores.
    group : ndarray of int of shape (n,), optional
        Groups given by the user.
    task : ndarray of int of shape (n,), optional
        Codes of the tasks in ``tasks_``; -1 where a task does not count.
    count : ndarray of shape (n,), optional
        Number of observations of each row, without groups.
    """

    codes: Array
    weight: Array
    in_domain: Array
    group: Array | None = None
    task: Array | None = None
    count: Array | None = None


@dataclass(frozen=True)
class CalibrationSet:
    """Held-out rows of positive weight.

    Attributes
    ----------
    P : ndarray of shape (n, c)
        Probabilities, in double precision.
    codes : ndarray of int of shape (n,)
        True classes.
    w : ndarray of shape (n,)
        Weights above 0.
    group : ndarray of int of shape (n,), optional
        Rows of a group are one observation.
    task : ndarray of int of shape (n,), optional
    count : ndarray of shape (n,), optional
        Number of observations of each row; one each by default.
    hidden : float, default=0.0
        Errors that the choice of hyperparameters on these rows may have removed, in observations.
    """

    P: Array
    codes: Array
    w: Array
    group: Array | None = None
    task: Array | None = None
    count: Array | None = None
    hidden: float = 0.0

    def __len__(self) -> int:
        return len(self.codes)

    def part(self, rows: Array) -> CalibrationSet:
        """Some of the rows, with their share of the hidden errors."""
        group, task, count = (None if a is None else a[rows] for a in (self.group, self.task, self.count))
        hidden = self.hidden and self.hidden * float(self.w[rows].sum() / self.w.sum())
        return CalibrationSet(self.P[rows], self.codes[rows], self.w[rows], group, task, count, hidden)

    def of_unseen_tasks(self) -> CalibrationSet:
        """The same with each task as one observation, to predict what happens in unseen tasks."""
        return replace(self, group=self.task, task=None, count=None, hidden=0.0)


def gather(P: Array, held: HeldRows, label: int | None = None, hidden: float = 0.0) -> CalibrationSet:
    """The rows of positive weight, with their held-out probabilities P (n x c); of one label for many labels."""
    column = (slice(None),) if label is None else (slice(None), label)
    codes, w = held.codes[column], held.weight[column]
    rows = np.flatnonzero((w > 0) & ~np.isnan(P[:, 0]))
    group, task, count = (None if a is None else a[rows] for a in (held.group, held.task, held.count))
    return CalibrationSet(P[rows].astype(float), codes[rows], w[rows].astype(float), group, task, count, hidden)


def jackknife(F: Array, residual: Array, w: Array, coverage: float) -> tuple[Array, Array]:
    """Intervals of equal width around F (m x c), from held-out residuals (n x c) of rows with these weights."""
    half = np.array([upper_quantile(np.abs(r)[None], w, coverage)[0] for r in residual.T])
    return F - half, F + half


def jackknife_plus(
    F: Array,
    S: Array,
    residual: Array,
    fold: Array,
    w: Array,
    coverage: float,
    size: Array | None = None,
    scale: Array | None = None,
) -> tuple[Array, Array]:
    """Intervals from the models of all folds.

    Parameters
    ----------
    F : ndarray of shape (m, c)
        Predictions of the model.
    S : ndarray of shape (m, n)
        Weights of the training targets in these.
    residual : ndarray of shape (n, c)
        Held-out residuals.
    fold : ndarray of int of shape (n,)
        Codes 0, 1, ... of the folds.
    w : ndarray of shape (n,)
        Weights of mean 1, or weights that sum to 1 in every group.
    coverage : float
    size : ndarray of shape (n, c), optional
        Sizes of the errors of the rows; by default the absolute residuals.
    scale : ndarray of shape (m, c), optional
        Scales of the new rows, by which sizes are multiplied; 1 by default.
    """
    scale = np.ones(F.shape) if scale is None else scale
    size = np.abs(residual) if size is None else size
    low, high = np.empty_like(F), np.empty_like(F)
    for j, (r, s) in enumerate(zip(residual.T, size.T, strict=True)):
        without = F[:, j, None] - _by_fold(S * r, fold)[:, fold]
        half = scale[:, j, None] * s
        low[:, j] = -upper_quantile(half - without, w, coverage)
        high[:, j] = upper_quantile(half + without, w, coverage)
    return low, high


def _by_fold(A: Array, fold: Array) -> Array:
    """Sums over the columns of each fold."""
    if len(fold) == int(fold.max()) + 1:  # every row alone
        sums = np.empty_like(A)
        sums[:, fold] = A
        return sums
    order = np.argsort(fold, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(fold[order]) != 0])
    return np.add.reduceat(A[:, order], starts, axis=1)


def upper_quantile(values: Array, w: Array, coverage: float, hidden: float = 0.0) -> Array:
    """For every row of values (m x n), the smallest with a share ``coverage`` of n + 1 at or below; inf if none.

    The new row has weight 1, like the average row, or like every group. ``hidden`` more must be at or below.
    """
    need = coverage * (w.sum() + 1) + hidden
    if need > w.sum() * (1 + 1e-12):
        return np.full(len(values), np.inf)
    if np.all(w == 1):
        k = int(np.ceil(need - 1e-9)) - 1
        return np.partition(values, k, axis=1)[:, k]
    order = np.argsort(values, axis=1)
    k = (np.cumsum(w[order], axis=1) >= need - 1e-9).argmax(axis=1)
    return np.take_along_axis(values, np.take_along_axis(order, k[:, None], axis=1), axis=1)[:, 0]


METHODS = ("lac", "aps", "random-aps")
#: A task has its own level if at least this many of its rows, or groups, are expected outside their sets.
OUTSIDE = 5
#: Sums of the same probabilities in another order differ by less than this.
ROUNDING = 1e-12


def nonconformity(P: Array, method: str, rng: np.random.Generator) -> Array:
    """The nonconformity of each class in each row, of the shape of the probabilities P (n x c)."""
    P = np.asarray(P, dtype=float)
    if method == "lac":
        return 1 - P
    P = P / P.sum(axis=1, keepdims=True)
    order = np.argsort(-P, axis=1, kind="stable")
    falling, above = np.take_along_axis(P, order, axis=1), np.empty_like(P)
    mass = np.cumsum(falling, axis=1) - falling
    mass[:, 1:][falling[:, 1:] == falling[:, :-1]] = 0  # ties have the value of the first of them
    np.put_along_axis(above, order, np.maximum.accumulate(mass, axis=1), axis=1)
    return above if method == "aps" else above + rng.random((len(P), 1)) * P


def class_levels(scores: Array, heldout: CalibrationSet, coverage: float, by_class: bool) -> Array:
    """Largest nonconformity of each class that is in a set, of shape (c,), from those of the true classes (n,)."""
    c = heldout.P.shape[1]
    if not by_class:
        return np.full(c, _level(scores, heldout, coverage))
    own = [np.flatnonzero(heldout.codes == k) for k in range(c)]
    return np.array([_level(scores[rows], heldout.part(rows), coverage) for rows in own])


def _level(scores: Array, heldout: CalibrationSet, coverage: float) -> float:
    weights = independent_weights(heldout.w, heldout.group, heldout.count)
    return float(upper_quantile(scores[None], weights, coverage, heldout.hidden)[0])


def levels(
    heldout: CalibrationSet, coverage: float, method: str, by_class: bool, by_task: bool, rng: np.random.Generator
) -> tuple[Array, dict[int, Array]]:
    """Levels of the classes for all tasks together, and for each task with enough rows."""
    scores = nonconformity(heldout.P, method, rng)[np.arange(len(heldout)), heldout.codes]
    common = class_levels(scores, heldout, coverage, by_class)
    own: dict[int, Array] = {}
    if by_task and heldout.task is not None:
        for t in np.unique(heldout.task).tolist():
            rows = np.flatnonzero(heldout.task == t)
            part = heldout.part(rows)
            if independent_weights(part.w, part.group, part.count).sum() * (1 - coverage) >= OUTSIDE - ROUNDING:
                own[t] = class_levels(scores[rows], part, coverage, by_class)
    return common, own


def sets(scores: Array, level: Array, allow_empty: bool) -> Array:
    """Classes at or below their level, and the one of least nonconformity if no set may be empty.

    Parameters
    ----------
    scores : ndarray of shape (n, c)
    level : ndarray of shape (c,) or (n, c)
    allow_empty : bool
    """
    contained = scores <= level + ROUNDING
    if not allow_empty:
        best = scores.argmin(axis=1)
        contained[np.arange(len(scores)), best] |= ~contained.any(axis=1)
    return contained
