"""How good decisions for many labels are."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.label_metrics.checking import check_average, classes, decided, indicators, right
from leastwise.label_metrics.measures import f1_of, mean_of, subset_of

Array = np.ndarray


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
