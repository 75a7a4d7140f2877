"""How far probabilities can be trusted."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length

Array = np.ndarray


def expected_calibration_error(
    y_true: Any, proba: Any, *, classes: Any = None, n_bins: int = 15, strategy: str = "mass"
) -> float:
    """Mean distance between confidence and accuracy over bins of the confidence.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    proba : array-like of shape (n, c)
        Probabilities, one column per class.
    classes : array-like of shape (c,), optional
        Labels of the columns; by default the sorted labels of ``y_true``.
    n_bins : int
        Number of bins.
    strategy : {"mass", "width"}
        Bins with the same number of rows, or of the same width in confidence.

    Returns
    -------
    float
        ``sum over bins of (rows in bin / n) * |mean confidence - accuracy|``; 0 is perfect.
    """
    y_true, proba, classes = checked_probabilities(y_true, proba, classes)
    if strategy not in ("mass", "width"):
        raise ValueError(f"strategy={strategy!r} is not known: use 'mass' or 'width'.")
    confidence = proba.max(axis=1)
    correct = classes[proba.argmax(axis=1)] == y_true
    if strategy == "width":
        bins = np.minimum((confidence * n_bins).astype(int), n_bins - 1)
    else:
        bins = np.argsort(np.argsort(confidence, kind="stable"), kind="stable") * n_bins // len(confidence)
    gaps = np.bincount(bins, weights=confidence - correct, minlength=n_bins)
    return float(np.abs(gaps).sum() / len(confidence))


def brier_score(y_true: Any, proba: Any, *, classes: Any = None) -> float:
    """Mean squared distance between the probabilities and the one-hot labels, summed over classes (0 to 2).

    ``classes`` are the labels of the columns; by default the sorted labels of ``y_true``.
    """
    y_true, proba, classes = checked_probabilities(y_true, proba, classes)
    return float(np.mean(np.sum((proba - (y_true[:, None] == classes)) ** 2, axis=1)))


def checked_probabilities(y_true: Any, proba: Any, classes: Any) -> tuple[Array, Array, Array]:
    """Labels, probabilities with one column per class, and the classes."""
    y_true, proba = np.asarray(y_true), np.asarray(proba, dtype=float)
    check_consistent_length(y_true, proba)
    classes = np.unique(y_true) if classes is None else np.asarray(classes)
    if proba.ndim != 2 or proba.shape[1] != len(classes):
        raise ValueError(
            f"proba has shape {proba.shape} but there are {len(classes)} classes: give one column per class, and "
            "classes= where a class is missing from y_true."
        )
    return y_true, proba, classes
