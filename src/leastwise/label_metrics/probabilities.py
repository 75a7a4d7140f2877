"""How good probabilities of many labels are."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.label_metrics.checking import check_average, indicators, probabilities, scores
from leastwise.label_metrics.measures import auc_of, average_precision_of, mean_of
from leastwise.losses import label_log_losses

Array = np.ndarray


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
