"""Measures of tables that are checked: truth and decisions of bool, scores, and weights, 0 where nothing is known.

How good decisions for many labels are.

How good probabilities of many labels are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.metrics.label_tables import check_average, classes, decided, indicators, probabilities, right, scores
from leastwise.metrics.losses import label_log_losses

Array = np.ndarray


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


def auc_of(S: Array, true: Array, W: Array, average: str | None) -> float | Array:
    """Area under the ROC curve of scores; of all entries ("micro"), of each label, or their mean."""
    lists = (A.reshape(1, -1) if average == "micro" else A.T for A in (S, true, W))
    areas = Ranking.of(*lists).auc()
    return areas if average is None else mean_of(areas, np.ones(len(areas)))


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


def label_f1(
    Y_true: Any, Y_pred: Any, *, average: str | None = "micro", sample_weight: Any = None, missing: Any = np.nan
) -> float | Array:
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
    missing : number or str, default=nan
        A value of ``Y_true`` that stands for unknown too, such as -1.

    Returns
    -------
    float or ndarray of shape (T,)
        A label, or row, that has no 1 and is given none has F1 0, as with scikit-learn's ``zero_division=0``. One of
        which nothing is known is NaN, and left out of means.
    """
    check_average(average, ("micro", "macro", "samples", None))
    truth, true, W = indicators(Y_true, sample_weight, missing)
    return f1_of(true, decided(Y_pred, truth), W, average)


def hamming(
    Y_true: Any, Y_pred: Any, *, average: str | None = "mean", sample_weight: Any = None, missing: Any = np.nan
) -> float | Array:
    """Share of the known entries that are decided wrongly, overall or (``average=None``) for each label; 0 is best.

    Parameters and what they may be are as in :func:`label_f1`. The classes may be any whole numbers or strings here.
    """
    check_average(average, ("mean", None))
    truth, W = classes(Y_true, sample_weight, missing)
    return mean_of(~right(Y_pred, truth, missing), W, average)


def subset_accuracy(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, missing: Any = np.nan) -> float:
    """Share of rows whose known labels are all decided rightly. Rows of which nothing is known do not count.

    Parameters are as in :func:`label_f1`. The classes may be any whole numbers or strings here.
    """
    truth, W = classes(Y_true, sample_weight, missing)
    return subset_of(right(Y_pred, truth, missing), W)


def label_log_loss(
    Y_true: Any, P: Any, *, average: str | None = "mean", sample_weight: Any = None, missing: Any = np.nan
) -> float | Array:
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
        Weights of the rows, or of every entry.
    missing : number or str, default=nan
        A value of ``Y_true`` that stands for unknown too, such as -1.
    """
    check_average(average, ("mean", None))
    truth, true, W = indicators(Y_true, sample_weight, missing)
    return mean_of(label_log_losses(probabilities(P, truth), true), W, average)


def label_brier(
    Y_true: Any, P: Any, *, average: str | None = "mean", sample_weight: Any = None, missing: Any = np.nan
) -> float | Array:
    """Mean over the known entries of the squared distance between probabilities and truth, over both classes.

    That is ``2 (p - y)^2``, from 0 to 2, as in :func:`leastwise.metrics.brier_score` and with ``scoring="brier"``,
    and twice scikit-learn's ``brier_score_loss``. Parameters are as in :func:`label_log_loss`.
    """
    check_average(average, ("mean", None))
    truth, true, W = indicators(Y_true, sample_weight, missing)
    return mean_of(2 * (probabilities(P, truth) - true) ** 2, W, average)


def label_average_precision(
    Y_true: Any, P: Any, *, average: str | None = "macro", sample_weight: Any = None, missing: Any = np.nan
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
        Weights of the rows, or of every entry.
    missing : number or str, default=nan
        A value of ``Y_true`` that stands for unknown too, such as -1.

    Returns
    -------
    float or ndarray of shape (T,)
        A label, or row, without any 1 that is known has no value: NaN in the list, left out of means (scikit-learn
        counts it as 0). NaN where all are so.
    """
    check_average(average, ("macro", "micro", "samples", None))
    truth, true, W = indicators(Y_true, sample_weight, missing)
    return average_precision_of(scores(P, truth), true, W, average)


def label_auc(
    Y_true: Any, P: Any, *, average: str | None = "macro", sample_weight: Any = None, missing: Any = np.nan
) -> float | Array:
    """Area under the ROC curve: how often an entry that is 1 has a higher score than one that is 0, ties by half.

    Parameters are as in :func:`label_average_precision`, but for ``average="samples"``.

    Returns
    -------
    float or ndarray of shape (T,)
        A label of which not both 0 and 1 are known has no value: NaN in the list, left out of the mean. NaN where all
        are so.
    """
    check_average(average, ("macro", "micro", None))
    truth, true, W = indicators(Y_true, sample_weight, missing)
    return auc_of(scores(P, truth), true, W, average)
