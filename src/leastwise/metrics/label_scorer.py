"""Scorers of many labels for scikit-learn's tools, which leave out labels that are not known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from leastwise.metrics.labels import (
    hamming,
    label_auc,
    label_average_precision,
    label_brier,
    label_f1,
    label_log_loss,
    subset_accuracy,
)

Array = np.ndarray

#: Of each name the sign, what an estimator is asked for, and the metric.
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
            answer = answer.set_axis(Y.index)  # rows of X and Y belong together as they stand
        return float(sign * metric(Y, answer, sample_weight=sample_weight, missing=self.missing))


def label_scorer(name: str, *, missing: Any = np.nan) -> LabelMetricScorer:
    """A scorer for scikit-learn's ``cross_validate``, ``GridSearchCV`` and the like that skips unknown labels.

    Parameters
    ----------
    name : str
        "log_loss", "brier", "average_precision", "average_precision_micro", "auc", which ask for ``predict_proba``;
        "f1_micro", "f1_macro", "f1_samples", "hamming", "accuracy" (all known labels of a row right), which ask for
        ``predict``. Labels are 0 or 1, with "hamming" and "accuracy" any classes.
    missing : number or str, default=nan
        A value of Y that stands for unknown too, such as -1.

    Returns
    -------
    callable
        ``f(estimator, X, Y, sample_weight=None)``, greater is better: losses are negative. It can be pickled.

    Notes
    -----
    Give scikit-learn's tools ``cv=KFold(...)`` or :class:`leastwise.model_selection.StratifiedLabelKFold`: with a
    number for ``cv`` they look at Y themselves, and refuse NaN.

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
    """Probabilities of 1 from one table of classes a label, as scikit-learn's trees and neighbours give them."""
    wide = next((t for t, p in enumerate(answer) if np.shape(p)[1] > 2), None)
    if wide is not None:
        raise ValueError(
            f"label_scorer({name!r}) needs labels that are 0 or 1, and label {wide} has {np.shape(answer[wide])[1]} "
            "classes: use 'hamming' or 'accuracy'."
        )
    columns = [np.asarray(p) @ (np.asarray(c) == 1) for p, c in zip(answer, classes, strict=True)]
    return np.column_stack(columns)
