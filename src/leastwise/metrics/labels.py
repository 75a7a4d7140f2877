"""Metrics of many labels, of which some may be unknown, and scorers from them for scikit-learn.

Functions that end in ``_of`` take checked arrays: truth and decisions as bool, scores, and weights that are 0 where a
label is unknown. The public functions check their input first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from leastwise.metrics.label_tables import check_average, classes, decided, indicators, probabilities, right, scores
from leastwise.metrics.probabilities import label_log_losses

Array = np.ndarray


def f1_of(true: Array, given: Array, W: Array, average: str | None) -> float | Array:
    """F1 of tables of bool with weights."""
    axis = {"micro": None, "samples": 1}.get(average or "", 0)
    count = 2 * np.sum(W * (true & given), axis=axis)
    total = np.sum(W * true, axis=axis) + np.sum(W * given, axis=axis)
    values = np.where(np.sum(W, axis=axis) > 0, count / np.where(total > 0, total, 1), np.nan)
    if average in ("micro", None):
        return values if average is None else float(values)
    return mean_of(values, row_weights(W) if average == "samples" else np.ones(len(values)))


def subset_of(right: Array, W: Array) -> float:
    """Weighted share of rows whose entries of positive weight are all correct."""
    return float(mean_of((right | (W == 0)).all(axis=1), row_weights(W)))


def average_precision_of(S: Array, true: Array, W: Array, average: str | None) -> float | Array:
    """Average precision of scores: by label, by row (samples), of all entries (micro), or a mean."""
    lists = (A if average == "samples" else A.reshape(1, -1) if average == "micro" else A.T for A in (S, true, W))
    values = Ranking.of(*lists).average_precision()
    if average is None:
        return values
    return mean_of(values, row_weights(W) if average == "samples" else np.ones(len(values)))


def auc_of(S: Array, true: Array, W: Array, average: str | None) -> float | Array:
    """Area under the ROC curve of scores: of all entries (micro), of each label, or their mean."""
    lists = (A.reshape(1, -1) if average == "micro" else A.T for A in (S, true, W))
    areas = Ranking.of(*lists).auc()
    return areas if average is None else mean_of(areas, np.ones(len(areas)))


def row_weights(W: Array) -> Array:
    """Mean weight of the known entries of each row; 0 if there are none."""
    return W.sum(axis=1) / np.maximum(np.count_nonzero(W, axis=1), 1)


def mean_of(values: Array, w: Array, average: str | None = "mean") -> float | Array:
    """Weighted mean without NaN, of all entries or (None) of each column; NaN if there is nothing."""
    w = np.where(np.isnan(values), 0, w)
    axis = 0 if average is None else None
    total = w.sum(axis=axis)
    part = np.sum(w * np.where(w > 0, values, 0), axis=axis)
    mean = np.where(total > 0, part / np.where(total > 0, total, 1), np.nan)
    return mean if average is None else float(mean)


@dataclass(frozen=True)
class Ranking:
    """Positive entries of ranked lists; arrays have one value for each such entry.

    Attributes
    ----------
    owner : ndarray of int
        The list of the entry.
    weight : ndarray
    above, false_above : ndarray
        Weight of the positive, and of the negative, entries of the list with at least the same score.
    tied : ndarray
        Weight of the negative entries with the same score.
    false : ndarray of shape (lists,)
        Weight of all negative entries.
    """

    owner: Array
    weight: Array
    above: Array
    false_above: Array
    tied: Array
    false: Array

    @classmethod
    def of(cls, S: Array, true: Array, W: Array) -> Ranking:
        """From scores, positives as bool, and weights, 0 if unknown; all of shape (lists, entries)."""
        order = np.argsort(-S, axis=1)
        S, W, true = (np.take_along_axis(A, order, axis=1) for A in (S, W, true))
        up, down = np.cumsum(W * true, axis=1), np.cumsum(W * ~true, axis=1)
        i, j = np.nonzero(true & (W > 0))
        first, last = (place[i, j] for place in _ties(S))
        tied = down[i, last] - np.where(first > 0, down[i, first - 1], 0)
        return cls(i, W[i, j], up[i, last], down[i, last], tied, down[:, -1])

    def average_precision(self) -> Array:
        """Average precision of each list; NaN without positive entries."""
        return self._mean(self.above / (self.above + self.false_above))

    def auc(self) -> Array:
        """Area under the ROC curve of each list; NaN without positive or without negative entries."""
        below = self.false[self.owner] - self.false_above + self.tied / 2
        return np.where(self.false > 0, self._mean(below) / np.where(self.false > 0, self.false, 1), np.nan)

    def _mean(self, values: Array) -> Array:
        """Mean over the positive entries of each list."""
        part, total = (np.bincount(self.owner, w, len(self.false)) for w in (self.weight * values, self.weight))
        return np.where(total > 0, part / np.where(total > 0, total, 1), np.nan)


def _ties(S: Array) -> tuple[Array, Array]:
    """Places of the first and the last entry with the same score; S is sorted along its rows."""
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
        True labels, 0 or 1; NaN if unknown.
    Y_pred : array, sparse matrix or data frame of shape (n, T)
        Decisions, 0 or 1.
    average : {"micro", "macro", "samples"} or None
        One F1 of all entries; the mean over labels; the mean over rows; or the F1 of each label.
    sample_weight : array-like of shape (n,) or (n, T), optional
        Weights of the rows, or of every entry. In a mean over rows, a row has the mean weight of its known entries.
    missing : number or str, default=nan
        Another value of ``Y_true`` for unknown labels, such as -1.

    Returns
    -------
    float or ndarray of shape (T,)
        A label or row without any 1 in truth and decisions has F1 0, as with scikit-learn's ``zero_division=0``. One
        without known entries is NaN, and left out of means.
    """
    check_average(average, ("micro", "macro", "samples", None))
    truth, true, W = indicators(Y_true, sample_weight, missing)
    return f1_of(true, decided(Y_pred, truth), W, average)


def hamming(
    Y_true: Any, Y_pred: Any, *, average: str | None = "mean", sample_weight: Any = None, missing: Any = np.nan
) -> float | Array:
    """Share of wrong decisions among known entries, overall or (``average=None``) for each label; 0 is best.

    Parameters are as in :func:`label_f1`. The classes may be any whole numbers or strings.
    """
    check_average(average, ("mean", None))
    truth, W = classes(Y_true, sample_weight, missing)
    return mean_of(~right(Y_pred, truth, missing), W, average)


def subset_accuracy(Y_true: Any, Y_pred: Any, *, sample_weight: Any = None, missing: Any = np.nan) -> float:
    """Share of rows whose known labels are all correct. Rows without known labels do not count.

    Parameters are as in :func:`label_f1`. The classes may be any whole numbers or strings.
    """
    truth, W = classes(Y_true, sample_weight, missing)
    return subset_of(right(Y_pred, truth, missing), W)


def label_log_loss(
    Y_true: Any, P: Any, *, average: str | None = "mean", sample_weight: Any = None, missing: Any = np.nan
) -> float | Array:
    """Mean negative log-probability of the true class over known entries.

    Parameters
    ----------
    Y_true : array, sparse matrix or data frame of shape (n, T)
        True labels, 0 or 1; NaN if unknown.
    P : array or data frame of shape (n, T)
        Probabilities of 1. Floor as in :func:`leastwise.metrics.log_loss`.
    average : {"mean"} or None
        One mean over all entries, or the loss of each label; NaN for a label without known entries.
    sample_weight : array-like of shape (n,) or (n, T), optional
        Weights of the rows, or of every entry.
    missing : number or str, default=nan
        Another value of ``Y_true`` for unknown labels, such as -1.
    """
    check_average(average, ("mean", None))
    truth, true, W = indicators(Y_true, sample_weight, missing)
    return mean_of(label_log_losses(probabilities(P, truth), true), W, average)


def label_brier(
    Y_true: Any, P: Any, *, average: str | None = "mean", sample_weight: Any = None, missing: Any = np.nan
) -> float | Array:
    """Mean squared distance between probabilities and truth over known entries, summed over both classes.

    That is ``2 (p - y)^2``, from 0 to 2, as in :func:`leastwise.metrics.brier_score` and with ``scoring="brier"``,
    and twice scikit-learn's ``brier_score_loss``. Parameters are as in :func:`label_log_loss`.
    """
    check_average(average, ("mean", None))
    truth, true, W = indicators(Y_true, sample_weight, missing)
    return mean_of(2 * (probabilities(P, truth) - true) ** 2, W, average)


def label_average_precision(
    Y_true: Any, P: Any, *, average: str | None = "macro", sample_weight: Any = None, missing: Any = np.nan
) -> float | Array:
    """Average precision: the mean, over entries that are 1, of the precision among scores at least as high.

    Parameters
    ----------
    Y_true : array, sparse matrix or data frame of shape (n, T)
        True labels, 0 or 1; NaN if unknown.
    P : array or data frame of shape (n, T)
        Probabilities of 1, or any scores that increase with them.
    average : {"macro", "micro", "samples"} or None
        The mean over labels; the value of all entries in one ranking; the mean over rows, each a ranking of the
        labels; or the value of each label.
    sample_weight : array-like of shape (n,) or (n, T), optional
        Weights of the rows, or of every entry.
    missing : number or str, default=nan
        Another value of ``Y_true`` for unknown labels, such as -1.

    Returns
    -------
    float or ndarray of shape (T,)
        A label or row without a known 1 has no value: NaN in the list, left out of means (scikit-learn counts it as
        0). NaN if none has a value.
    """
    check_average(average, ("macro", "micro", "samples", None))
    truth, true, W = indicators(Y_true, sample_weight, missing)
    return average_precision_of(scores(P, truth), true, W, average)


def label_auc(
    Y_true: Any, P: Any, *, average: str | None = "macro", sample_weight: Any = None, missing: Any = np.nan
) -> float | Array:
    """Area under the ROC curve: the probability that a 1 scores above a 0, ties counting half.

    Parameters are as in :func:`label_average_precision`, without ``average="samples"``.

    Returns
    -------
    float or ndarray of shape (T,)
        A label without a known 0 and a known 1 has no value: NaN in the list, left out of the mean. NaN if none has a
        value.
    """
    check_average(average, ("macro", "micro", None))
    truth, true, W = indicators(Y_true, sample_weight, missing)
    return auc_of(scores(P, truth), true, W, average)


# --------------------------------------------------------------------- scorers

#: For each name the sign, the method of the estimator, and the metric.
SCORES: dict[str, tuple[int, str, Callable]] = {
    "log_loss": (-1, "predict_proba", label_log_loss),
    "neg_log_loss": (-1, "predict_proba", label_log_loss),
    "brier": (-1, "predict_proba", label_brier),
    "average_precision": (1, "predict_proba", label_average_precision),
    "average_precision_micro": (1, "predict_proba", partial(label_average_precision, average="micro")),
    "auc": (1, "predict_proba", label_auc),
    "f1_micro": (1, "predict", label_f1),
    "f1_macro": (1, "predict", partial(label_f1, average="macro")),
    "f1_samples": (1, "predict", partial(label_f1, average="samples")),
    "hamming": (-1, "predict", hamming),
    "accuracy": (1, "predict", subset_accuracy),
}


@dataclass(frozen=True)
class LabelMetricScorer:
    """``scorer(estimator, X, Y)``, greater is better. Made by :func:`label_scorer`."""

    name: str
    missing: Any = np.nan

    def __call__(self, estimator: Any, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """The score of a fitted estimator; losses are negative."""
        sign, method, metric = SCORES[self.name]
        answer = getattr(estimator, method)(X)
        if isinstance(answer, list):
            answer = _of_ones(answer, estimator.classes_, self.name)
        if hasattr(answer, "iloc") and hasattr(Y, "iloc") and len(answer) == len(Y):
            answer = answer.set_axis(Y.index)  # rows of X and Y match by position
        return float(sign * metric(Y, answer, sample_weight=sample_weight, missing=self.missing))


def label_scorer(name: str, *, missing: Any = np.nan) -> LabelMetricScorer:
    """A scorer for scikit-learn's ``cross_validate``, ``GridSearchCV`` and the like that ignores unknown labels.

    Parameters
    ----------
    name : str
        "log_loss", "brier", "average_precision", "average_precision_micro", "auc" use ``predict_proba``; "f1_micro",
        "f1_macro", "f1_samples", "hamming", "accuracy" (all known labels of a row correct) use ``predict``. Labels
        are 0 or 1, with "hamming" and "accuracy" any classes.
    missing : number or str, default=nan
        Another value of Y for unknown labels, such as -1.

    Returns
    -------
    callable
        ``f(estimator, X, Y, sample_weight=None)``, greater is better: losses are negative. It can be pickled.

    Notes
    -----
    Give scikit-learn's tools ``cv=KFold(...)`` or :class:`leastwise.model_selection.StratifiedLabelKFold`: with a
    number for ``cv`` they check Y themselves and reject NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import KFold, cross_val_score
    >>> from leastwise import MultiLabelLSPC
    >>> from leastwise.metrics import label_scorer
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> Y = np.where(rng.random((60, 2)) < [0.4, 0], np.nan, X > 0)
    >>> scores = cross_val_score(MultiLabelLSPC(), X, Y, cv=KFold(3), scoring=label_scorer("f1_micro"))
    >>> scores.shape
    (3,)
    """
    if not isinstance(name, str) or name not in SCORES:
        raise ValueError(f"name={name!r} is not known: use one of {sorted(SCORES)}.")
    return LabelMetricScorer(name, missing)


def _of_ones(answer: list, classes: Any, name: str) -> Array:
    """Probabilities of 1 from one table of classes per label, the form of scikit-learn's trees and neighbours."""
    wide = next((t for t, p in enumerate(answer) if np.shape(p)[1] > 2), None)
    if wide is not None:
        raise ValueError(
            f"label_scorer({name!r}) needs labels that are 0 or 1, but label {wide} has {np.shape(answer[wide])[1]} "
            "classes: use 'hamming' or 'accuracy'."
        )
    columns = [np.asarray(p) @ (np.asarray(c) == 1) for p, c in zip(answer, classes, strict=True)]
    return np.column_stack(columns)
