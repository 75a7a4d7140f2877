"""Brier score, log-loss and AUC of class probabilities, overall and by task.

The log-loss has one definition and one floor, for searches, metrics, reports and calibration. The loss of a row is
the negative log-probability of its true class. Probabilities below ``FLOOR``, the resolution of double precision, are
raised to it, so that a confident mistake costs 36.04 and not infinity. The floor does not depend on the precision of
the probabilities. Rows are not normalised. For probabilities in double precision that sum to 1 this is
``sklearn.metrics.log_loss``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length, column_or_1d

from leastwise.problem.tasks import encode_tasks
from leastwise.utils.arrays import text_objects

__all__ = ["brier_score", "log_loss", "task_auc", "task_log_loss"]

Array = np.ndarray

#: Smallest probability. A Python float, which does not promote arrays of single precision.
FLOOR = float(np.finfo(np.float64).eps)


def log_losses(p: Array) -> Array:
    """The loss of every entry, from the probability of its true class."""
    return -np.log(np.maximum(p, FLOOR))


def class_log_losses(P: Array, codes: Array) -> Array:
    """The loss of every row, from probabilities of all classes (n x c) and codes of the true ones (n,)."""
    return log_losses(P[np.arange(len(codes)), codes])


def label_log_losses(P: Array, true: Array) -> Array:
    """The loss of every entry, from the probability of 1 and whether it is 1; of the same shape."""
    return log_losses(np.where(true, P, 1 - P))


def brier_score(y_true: Any, proba: Any, *, classes: Any = None) -> float:
    """Mean squared distance between the probabilities and the one-hot labels, summed over classes (0 to 2).

    ``classes`` are the labels of the columns; by default the sorted labels of ``y_true``.
    """
    y_true, proba, classes = checked_probabilities(y_true, proba, classes)
    return float(np.mean(np.sum((proba - (y_true[:, None] == classes)) ** 2, axis=1)))


def log_loss(y_true: Any, proba: Any, *, classes: Any = None, sample_weight: Any = None) -> float:
    """Mean negative log-probability of the true class.

    The same as ``scoring="log_loss"``, and the log-loss of reports and the command line.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    proba : array-like of shape (n, c)
        Probabilities, one column per class. Values below ``2.2e-16``, the resolution of double precision, are raised
        to that.
    classes : array-like of shape (c,), optional
        Labels of the columns; by default the sorted labels of ``y_true``.
    sample_weight : array-like of shape (n,), optional

    Examples
    --------
    >>> from leastwise.metrics import log_loss
    >>> round(log_loss(["a", "b"], [[0.8, 0.2], [0.4, 0.6]]), 4)
    0.367
    """
    y_true, proba, classes = checked_probabilities(y_true, proba, classes)
    y_true, classes = _checked_labels(y_true, classes)
    return _mean(_row_losses(y_true, proba, classes), _checked_weights(sample_weight, len(y_true)))


# --------------------------------------------------------------------- tasks


def task_auc(
    y_true: Any,
    score: Any,
    tasks: Any,
    *,
    average: str | None = "mean",
    labels: Any = None,
    sample_weight: Any = None,
) -> float | tuple[Array, Array]:
    """Area under the ROC curve by task.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    score : array-like of shape (n,) or (n, c)
        With two classes the score of the second, in one column or as the second of two; with more, one column per
        class. Any scores that increase with the probability.
    tasks : array-like of shape (n,)
        The task of every row, any hashable ids.
    average : {"mean", "pooled"} or None
        The mean over tasks; one area for all rows as if of one task; or the area of each task.
    labels : array-like of shape (c,), optional
        The classes in the order of the columns; by default the sorted labels of ``y_true``.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
        NaN if no task has an area.
    ids, areas : ndarray of shape (T,)
        Only with ``average=None``: the tasks, sorted if possible, and their areas.

    Notes
    -----
    A task whose rows (of positive weight) are all of one class has no area. It is NaN in the list and left out of the
    mean, without a warning, since that is common for small tasks with a rare class.

    With more than two classes the area is the mean over classes of one against the rest, weighted by the rows of each
    class in the task.
    """
    y_true, classes = _checked_labels(y_true, labels)
    S = _checked_scores(score, len(y_true), len(classes))
    w = _checked_weights(sample_weight, len(y_true))
    hot = y_true[:, None] == classes[-S.shape[1] :]
    return _over_tasks(lambda rows: _one_vs_rest_auc(hot[rows], S[rows], w[rows]), tasks, w, average)


def task_log_loss(
    y_true: Any,
    proba: Any,
    tasks: Any,
    *,
    average: str | None = "mean",
    labels: Any = None,
    sample_weight: Any = None,
) -> float | tuple[Array, Array]:
    """Mean negative log-probability of the true class by task.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    proba : array-like of shape (n, c)
        Probabilities, one column per class. Floor as in :func:`log_loss`.
    tasks : array-like of shape (n,)
        The task of every row, any hashable ids.
    average : {"mean", "pooled"} or None
        The mean over tasks, in which small tasks count as much as large ones; the mean over all rows; or the loss of
        each task.
    labels : array-like of shape (c,), optional
        The classes in the order of the columns; by default the sorted labels of ``y_true``.
    sample_weight : array-like of shape (n,), optional

    Returns
    -------
    float
    ids, losses : ndarray of shape (T,)
        Only with ``average=None``: the tasks, sorted if possible, and their losses. A task whose rows all have weight
        zero is NaN, and left out of the mean.
    """
    y_true, proba, classes = checked_probabilities(y_true, proba, labels)
    y_true, classes = _checked_labels(y_true, classes)
    w = _checked_weights(sample_weight, len(y_true))
    loss = _row_losses(y_true, proba, classes)
    return _over_tasks(lambda rows: _mean(loss[rows], w[rows]), tasks, w, average)


def _row_losses(y_true: Array, proba: Array, classes: Array) -> Array:
    if not ((proba >= 0) & (proba <= 1)).all():
        raise ValueError(
            "proba has values that are not from 0 to 1: give probabilities, such as those of predict_proba."
        )
    return log_losses(proba[y_true[:, None] == classes])


def _over_tasks(
    value: Callable[[Array], float], tasks: Any, w: Array, average: str | None
) -> float | tuple[Array, Array]:
    """The value of each task, the mean of these, or the value of all rows."""
    if average not in ("mean", "pooled", None):
        raise ValueError(f"average={average!r} is not known: use 'mean', 'pooled' or None.")
    # encode_tasks reads a tuple as one id for all rows, which makes no sense here.
    codes, known = encode_tasks(list(tasks) if isinstance(tasks, tuple) else tasks, len(w))
    if average == "pooled":
        return value(np.arange(len(w)))
    ends = np.cumsum(np.bincount(codes, minlength=len(known)))[:-1]
    values = np.array([value(rows) for rows in np.split(np.argsort(codes, kind="stable"), ends)])
    if average is None:
        return known.as_array(), values
    there = ~np.isnan(values)  # np.nanmean would warn if all are NaN
    return float(values[there].mean()) if there.any() else float("nan")


def _mean(values: Array, w: Array) -> float:
    return float(values @ w / w.sum()) if w.any() else float("nan")


def _one_vs_rest_auc(hot: Array, S: Array, w: Array) -> float:
    """Mean area over columns, weighted by positive rows; columns with one class have none."""
    shares = w @ hot
    split = np.flatnonzero((shares > 0) & (w @ ~hot > 0))
    return _mean(np.array([_auc(hot[:, k], S[:, k], w) for k in split]), shares[split])


def _auc(positive: Array, score: Array, w: Array) -> float:
    """Probability that a positive row scores above a negative one, ties counting half."""
    return placed_auc(positive, np.unique(score, return_inverse=True)[1], w)


def placed_auc(positive: Array, place: Array, w: Array) -> float:
    """The same from the ranks of the scores, equal ones with equal rank; NaN if all rows are of one class."""
    up, down = np.bincount(place, w * positive), np.bincount(place, w * ~positive)
    below = np.cumsum(down) - down
    pairs = up.sum() * down.sum()
    return float(up @ (below + down / 2) / pairs) if pairs > 0 else float("nan")


# ------------------------------------------------------------------ checking


def _checked_labels(y_true: Any, labels: Any) -> tuple[Array, Array]:
    """True labels, and the classes."""
    y_true = column_or_1d(text_objects(y_true))
    classes = np.unique(y_true) if labels is None else np.asarray(text_objects(labels))
    if len(set(classes.tolist())) < len(classes):
        raise ValueError(f"labels={classes.tolist()} contains a class twice.")
    unknown = ~np.isin(y_true, classes)
    if unknown.any():
        raise ValueError(f"y_true holds {y_true[unknown][0]!r}, which is none of labels={classes.tolist()}.")
    return y_true, classes


def _checked_scores(score: Any, n: int, c: int) -> Array:
    """One column, that of the second class, with at most two classes; otherwise one per class."""
    S = np.asarray(score, dtype=float)
    if S.shape[:1] != (n,):
        raise ValueError(f"score has shape {S.shape} but y_true has {n} rows: give scores for each of them.")
    width = S.shape[1] if S.ndim == 2 else 1
    if S.ndim > 2 or (width != c and max(width, c) > 2):
        raise ValueError(
            f"score has shape {S.shape} but there are {c} classes: give one column per class, one score per row "
            "for two classes, and labels= if a class is missing from y_true."
        )
    if np.isnan(S).any():
        raise ValueError("score has missing values (NaN): rows without a score cannot be ranked.")
    S = S.reshape(n, width)
    return S[:, -1:] if c <= 2 else S


def _checked_weights(sample_weight: Any, n: int) -> Array:
    if sample_weight is None:
        return np.ones(n)
    w = np.asarray(sample_weight, dtype=float)
    if w.shape != (n,) or not np.isfinite(w).all() or (w < 0).any():
        raise ValueError(f"sample_weight of shape {w.shape} must be {n} finite numbers, none of them negative.")
    return w


def checked_probabilities(y_true: Any, proba: Any, classes: Any) -> tuple[Array, Array, Array]:
    """Labels, probabilities with one column per class, and the classes."""
    y_true, proba = np.asarray(text_objects(y_true)), np.asarray(proba, dtype=float)
    check_consistent_length(y_true, proba)
    classes = np.unique(y_true) if classes is None else np.asarray(text_objects(classes))
    if proba.ndim != 2 or proba.shape[1] != len(classes):
        raise ValueError(
            f"proba has shape {proba.shape} but there are {len(classes)} classes: give one column per class, and "
            "classes= if a class is missing from y_true."
        )
    return y_true, proba, classes
