"""How good decisions and probabilities of many labels are, where some labels of some rows are not known.

Tables have one column for each label. NaN, None or a mask in the true one means that a label is not known, and such
entries do not count. Without any the values are scikit-learn's, but for labels and rows in which there is nothing to
measure: they are left out of means, and NaN in lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

Array = np.ndarray


def label_f1(Y_true: Any, Y_pred: Any, *, average: str | None = "micro", sample_weight: Any = None) -> float | Array:
    """F1, the harmonic mean of precision and recall, of labels that are 0 or 1.

    Parameters
    ----------
    Y_true : array, sparse matrix or data frame of shape (n, T)
        True labels, 0 or 1; NaN where one is not known.
    Y_pred : array, sparse matrix or data frame of shape (n, T)
        Decisions, 0 or 1.
    average : {"micro", "macro", "samples"} or None
        One F1 of all entries; the mean over labels; the mean over rows; or the F1 of each label.
    sample_weight : array-like of shape (n,) or (n, T), optional
        Weights of the rows, or of every entry. In a mean over rows, a row has the mean weight of its known entries.

    Returns
    -------
    float or ndarray of shape (T,)
        A label, or row, that has no 1 and is given none has F1 0, as with scikit-learn's ``zero_division=0``. One of
        which nothing is known is NaN, and left out of means.
    """
    _check_average(average, ("micro", "macro", "samples", None))
    Y, W = _checked_truth(Y_true, sample_weight)
    return f1_of(Y == 1, _checked_decisions(Y_pred, Y) == 1, W, average)


def hamming(Y_true: Any, Y_pred: Any, *, average: str | None = "mean", sample_weight: Any = None) -> float | Array:
    """Share of the known entries that are decided wrongly, overall or (``average=None``) for each label; 0 is best.

    Parameters and what they may be are as in :func:`label_f1`. The classes may be any numbers here.
    """
    _check_average(average, ("mean", None))
    Y, W = _checked_truth(Y_true, sample_weight, binary=False)
    return mean_of(_as_table(Y_pred, "Y_pred", Y.shape) != Y, W, average)


def subset_accuracy(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None) -> float:
    """Share of rows whose known labels are all decided rightly. Rows of which nothing is known do not count.

    Parameters are as in :func:`label_f1`. The classes may be any numbers here.
    """
    Y, W = _checked_truth(Y_true, sample_weight, binary=False)
    return subset_of(_as_table(Y_pred, "Y_pred", Y.shape) == Y, W)


def label_log_loss(Y_true: Any, P: Any, *, average: str | None = "mean", sample_weight: Any = None) -> float | Array:
    """Mean over the known entries of minus the logarithm of the probability of what is true.

    Parameters
    ----------
    Y_true : array, sparse matrix or data frame of shape (n, T)
        True labels, 0 or 1; NaN where one is not known.
    P : array or data frame of shape (n, T)
        Probabilities of 1. Those of what is true below the resolution of floats count as that.
    average : {"mean"} or None
        One mean over all entries, or the loss of each label; NaN where nothing is known of it.
    sample_weight : array-like of shape (n,) or (n, T), optional
    """
    _check_average(average, ("mean", None))
    Y, W = _checked_truth(Y_true, sample_weight)
    P = _checked_proba(P, Y)
    return mean_of(-np.log(np.maximum(np.where(Y == 1, P, 1 - P), np.finfo(float).eps)), W, average)


def label_average_precision(
    Y_true: Any, P: Any, *, average: str | None = "macro", sample_weight: Any = None
) -> float | Array:
    """Average precision: the mean, over entries that are 1, of the precision among the scores that are no lower.

    Parameters
    ----------
    Y_true : array, sparse matrix or data frame of shape (n, T)
        True labels, 0 or 1; NaN where one is not known.
    P : array or data frame of shape (n, T)
        Probabilities of 1, or any scores that grow with them.
    average : {"macro", "micro", "samples"} or None
        The mean over labels; the value of all entries in one order; the mean over rows, in each of which the labels
        are put in order; or the value of each label.
    sample_weight : array-like of shape (n,) or (n, T), optional

    Returns
    -------
    float or ndarray of shape (T,)
        A label, or row, without any 1 that is known has no value: NaN in the list, left out of means (scikit-learn
        counts it as 0). NaN where all are so.
    """
    _check_average(average, ("macro", "micro", "samples", None))
    Y, W = _checked_truth(Y_true, sample_weight)
    return average_precision_of(_as_table(P, "P", Y.shape), Y == 1, W, average)


# ------------------------------------------------------- tables that are checked


def f1_of(true: Array, given: Array, W: Array, average: str | None) -> float | Array:
    """F1 of tables of bool with weights, 0 where an entry is not known."""
    axis = {"micro": None, "samples": 1}.get(average or "", 0)
    count = 2 * np.sum(W * (true & given), axis=axis)
    total = np.sum(W * true, axis=axis) + np.sum(W * given, axis=axis)
    values = np.where(np.sum(W, axis=axis) > 0, count / np.where(total > 0, total, 1), np.nan)
    if average in ("micro", None):
        return values if average is None else float(values)
    return mean_of(values, row_weights(W) if average == "samples" else np.ones(len(values)))


def subset_of(right: Array, W: Array) -> float:
    """Weighted share of rows that are right wherever they count."""
    return float(mean_of((right | (W == 0)).all(axis=1), row_weights(W)))


def average_precision_of(S: Array, true: Array, W: Array, average: str | None) -> float | Array:
    """Average precision of scores, where true is of bool."""
    lists = (A if average == "samples" else A.reshape(1, -1) if average == "micro" else A.T for A in (S, true, W))
    values = Ranking.of(*lists).average_precision()
    if average is None:
        return values
    return mean_of(values, row_weights(W) if average == "samples" else np.ones(len(values)))


def row_weights(W: Array) -> Array:
    """Mean weight of the entries of each row that have one; 0 where there is none."""
    return W.sum(axis=1) / np.maximum(np.count_nonzero(W, axis=1), 1)


def mean_of(values: Array, w: Array, average: str | None = "mean") -> float | Array:
    """Weighted mean of what is not NaN, of all or (None) of each column; NaN where there is nothing."""
    w = np.where(np.isnan(values), 0, w)
    axis = 0 if average is None else None
    total = w.sum(axis=axis)
    part = np.sum(w * np.where(w > 0, values, 0), axis=axis)
    mean = np.where(total > 0, part / np.where(total > 0, total, 1), np.nan)
    return mean if average is None else float(mean)


@dataclass(frozen=True)
class Ranking:
    """The true entries of lists that are in the order of their scores; arrays have one value for each such entry.

    Attributes
    ----------
    owner : ndarray of int
        Which list the entry is of.
    weight : ndarray
    above, false_above : ndarray
        Weight of the true, and of the false, entries of the list whose scores are no lower.
    tied : ndarray
        Weight of the false ones whose scores are the same.
    false : ndarray of shape (lists,)
        Weight of all false entries.
    """

    owner: Array
    weight: Array
    above: Array
    false_above: Array
    tied: Array
    false: Array

    @classmethod
    def of(cls, S: Array, true: Array, W: Array) -> Ranking:
        """From scores, what is true, of bool, and weights, 0 where not known; all of shape (lists, entries)."""
        order = np.argsort(-S, axis=1)
        S, W, true = (np.take_along_axis(A, order, axis=1) for A in (S, W, true))
        up, down = np.cumsum(W * true, axis=1), np.cumsum(W * ~true, axis=1)
        i, j = np.nonzero(true & (W > 0))
        first, last = (place[i, j] for place in _ties(S))
        tied = down[i, last] - np.where(first > 0, down[i, first - 1], 0)
        return cls(i, W[i, j], up[i, last], down[i, last], tied, down[:, -1])

    def average_precision(self) -> Array:
        """Of each list; NaN where nothing in it is true."""
        return self._mean(self.above / (self.above + self.false_above))

    def auc(self) -> Array:
        """Area under the ROC curve of each list; NaN where all in it is true, or nothing."""
        below = self.false[self.owner] - self.false_above + self.tied / 2
        return np.where(self.false > 0, self._mean(below) / np.where(self.false > 0, self.false, 1), np.nan)

    def _mean(self, values: Array) -> Array:
        """Over the true entries of each list."""
        part, total = (np.bincount(self.owner, w, len(self.false)) for w in (self.weight * values, self.weight))
        return np.where(total > 0, part / np.where(total > 0, total, 1), np.nan)


def _ties(S: Array) -> tuple[Array, Array]:
    """Where the first, and the last, entry stands that has the same score; S is sorted along its rows."""
    k, n = S.shape
    place = np.broadcast_to(np.arange(n), (k, n))
    change = S[:, 1:] != S[:, :-1]
    edge = np.ones((k, 1), dtype=bool)
    first = np.maximum.accumulate(np.where(np.hstack([edge, change]), place, 0), axis=1)
    last = np.where(np.hstack([change, edge]), place, n - 1)
    return first, np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]


# ------------------------------------------------------------------ checking


def _check_average(average: Any, known: tuple) -> None:
    if average not in known:
        raise ValueError(f"average={average!r} is not known: use one of {known}.")


def _checked_truth(Y_true: Any, sample_weight: Any, binary: bool = True) -> tuple[Array, Array]:
    """The true labels as floats, and the weights of the entries, 0 where one is not known."""
    Y = _as_table(Y_true, "Y_true", None)
    known = ~np.isnan(Y)
    strange = Y[known & (Y != 0) & (Y != 1)]
    if binary and len(strange):
        raise ValueError(f"Y_true holds {strange[0]}: its values must be 0 or 1, or NaN where a label is not known.")
    if not known.any():
        raise ValueError(f"Y_true of shape {Y.shape} has no value that is known.")
    W = _checked_entry_weights(sample_weight, Y.shape) * known
    if not W.any():
        raise ValueError("sample_weight is 0 wherever a label is known, which leaves nothing to measure.")
    return Y, W


def _checked_decisions(Y_pred: Any, Y: Array) -> Array:
    D = _as_table(Y_pred, "Y_pred", Y.shape)
    strange = D[(D != 0) & (D != 1)]
    if len(strange):
        raise ValueError(f"Y_pred holds {strange[0]}: decisions must be 0 or 1; for probabilities give P >= 0.5.")
    return D


def _checked_entry_weights(sample_weight: Any, shape: tuple[int, ...]) -> Array:
    if sample_weight is None:
        return np.ones(shape)
    w = np.asarray(sample_weight, dtype=float)
    if w.shape not in (shape, shape[:1]) or not np.isfinite(w).all() or (w < 0).any():
        raise ValueError(
            f"sample_weight of shape {w.shape} must hold finite numbers, none of them negative: one for each of the "
            f"{shape[0]} rows, or a table of shape {shape}."
        )
    return np.broadcast_to(w.reshape(len(w), -1), shape)


def _as_table(Y: Any, name: str, shape: tuple[int, ...] | None) -> Array:
    """A table of floats; where a shape is given it must have that, and no NaN."""
    try:
        table = _as_floats(Y)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is no table of numbers with one column a label: {error}") from None
    if table.ndim != 2 or 0 in table.shape:
        raise ValueError(f"{name} has shape {table.shape}: give a table of rows, with one column for each label.")
    if shape is not None and table.shape != shape:
        raise ValueError(f"{name} has shape {table.shape} but Y_true {shape}: give a value for each of its entries.")
    if shape is not None and np.isnan(table).any():
        raise ValueError(f"{name} has missing values (NaN): only Y_true may have labels that are not known.")
    return table


def _as_floats(Y: Any) -> Array:
    """Floats, NaN for None, for pandas' NA and for what a mask hides."""
    if sparse.issparse(Y):
        return Y.toarray().astype(float)
    if isinstance(Y, np.ma.MaskedArray):
        return np.ma.filled(Y.astype(float), np.nan)
    if hasattr(Y, "iloc"):
        return Y.to_numpy(dtype=float, na_value=np.nan)
    return np.asarray(Y, dtype=float)


def as_truth(Y_true: Any, P: Any) -> tuple[Array, Array]:
    """True labels, NaN where one is not known, and the probabilities that they are 1, both checked."""
    Y, _ = _checked_truth(Y_true, None)
    return Y, _checked_proba(P, Y)


def _checked_proba(P: Any, Y: Array) -> Array:
    P = _as_table(P, "P", Y.shape)
    if not ((P >= 0) & (P <= 1)).all():
        raise ValueError("P has values that are not from 0 to 1: give the probabilities that the labels are 1.")
    return P
