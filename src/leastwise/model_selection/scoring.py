"""The objective of a search: a name or a function, evaluated on held-out predictions.

``CLASS_SCORINGS`` and ``VALUE_SCORINGS`` list all names that ``scoring=`` accepts in addition to scikit-learn's. A
new one is a function registered under a name; greater is better::

    @register_class_scoring("spherical")
    def spherical(sample, calibrator, classes):
        P = calibrator.proba(sample.F)
        p = P[np.arange(len(P)), sample.y]
        return float(np.average(p / np.linalg.norm(P, axis=1), weights=sample.w))

Those of labels are in :mod:`leastwise.model_selection.label_scoring`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import f1_score, get_scorer, get_scorer_names

from leastwise.calibration.blend import Calibrator, Sample
from leastwise.metrics.probabilities import class_log_losses, task_auc

Array = np.ndarray
ClassFunction = Callable[[Sample, Calibrator, Array], float]
ValueFunction = Callable[[Array, Array, Array, Array | None], float]

#: Short names of scikit-learn's scorers.
ALIASES = {"auc": "roc_auc_ovr_weighted"}


@dataclass(frozen=True)
class Scorer:
    """``scorer(sample, calibrator, classes)``, greater is better; ``loss`` if it is minus a loss."""

    name: str
    function: ClassFunction
    loss: bool = False

    def __call__(self, sample: Sample, calibrator: Calibrator, classes: Array) -> float:
        return self.function(sample, calibrator, classes)

    def shown(self, score: float) -> float:
        """The score with the usual sign: losses are positive."""
        return -score if self.loss else score


#: Scorings of classes by name.
CLASS_SCORINGS: dict[str, Scorer] = {}


def register_class_scoring(name: str, loss: bool = False) -> Callable[[ClassFunction], ClassFunction]:
    """Decorator that registers a scoring for classification; ``loss`` if it is minus a loss."""

    def add(function: ClassFunction) -> ClassFunction:
        CLASS_SCORINGS[name] = Scorer(name, function, loss)
        return function

    return add


@register_class_scoring("log_loss", loss=True)
@register_class_scoring("neg_log_loss")
def log_likelihood(sample: Sample, calibrator: Calibrator, classes: Array) -> float:
    """Mean log-probability of the true class."""
    losses = class_log_losses(calibrator.proba(sample.F), sample.y)
    return -float(np.sum(sample.w * losses) / np.sum(sample.w))


@register_class_scoring("brier", loss=True)
def negative_brier(sample: Sample, calibrator: Calibrator, classes: Array) -> float:
    """Minus the mean squared distance between probabilities and one-hot labels."""
    E = calibrator.proba(sample.F)
    E[np.arange(len(E)), sample.y] -= 1
    return -float(np.average(np.einsum("ij,ij->i", E, E), weights=sample.w))


@register_class_scoring("accuracy")
def accuracy(sample: Sample, calibrator: Calibrator, classes: Array) -> float:
    """Share of rows whose most probable class is the true one."""
    return float(np.average(calibrator.proba(sample.F).argmax(axis=1) == sample.y, weights=sample.w))


@register_class_scoring("f1")
def f1(sample: Sample, calibrator: Calibrator, classes: Array) -> float:
    """F1 of the second class with two classes, otherwise the mean over classes."""
    binary = len(classes) == 2
    predicted = calibrator.proba(sample.F).argmax(axis=1)
    average = "binary" if binary else "macro"
    return float(f1_score(sample.y, predicted, average=average, sample_weight=sample.w, zero_division=0))


@register_class_scoring("task_auc")
def task_mean_auc(sample: Sample, calibrator: Calibrator, classes: Array) -> float:
    """Mean over the tasks of the area under the ROC curve; tasks with a single class do not count."""
    if sample.task is None:
        raise ValueError("scoring='task_auc' needs tasks, and there are none: use 'auc'.")
    decision = calibrator.decision(sample.F)
    score = decision[:, 1] - decision[:, 0] if len(classes) == 2 else calibrator.proba(sample.F)
    areas = task_auc(sample.y, score, sample.task, labels=np.arange(len(classes)), sample_weight=sample.w)
    value = float(np.asarray(areas))
    if np.isnan(value):
        raise ValueError("scoring='task_auc': no task has two classes among its rows. Use 'auc' or 'log_loss'.")
    return value


@dataclass(frozen=True)
class ValueScorer:
    """``scorer(values, predictions, weights, tasks)`` of regression targets (n x outputs), greater is better.

    ``unit_free`` is true if the unit of the targets makes no difference, ``cautious`` if degrees of freedom are
    penalised (see ``leastwise.model_selection.objective``), ``loss`` if it is minus a loss.
    """

    name: str
    function: ValueFunction
    unit_free: bool = False
    cautious: bool = False
    loss: bool = False

    def __call__(self, Z: Array, F: Array, w: Array, task: Array | None) -> float:
        value = self.function(Z, F, w, task)
        if np.isnan(value):
            raise ValueError(f"scoring={self.name!r} is NaN on held-out predictions; use another scoring=.")
        return value

    def shown(self, score: float) -> float:
        """The score with the usual sign: losses are positive."""
        return -score if self.loss else score


#: Scorings of values by name.
VALUE_SCORINGS: dict[str, ValueScorer] = {}


def register_value_scoring(name: str, **options: bool) -> Callable[[ValueFunction], ValueFunction]:
    """Decorator that registers a scoring for regression; options are fields of :class:`ValueScorer`."""

    def add(function: ValueFunction) -> ValueFunction:
        VALUE_SCORINGS[name] = ValueScorer(name, function, **options)
        return function

    return add


@register_value_scoring("mse", loss=True)
def negative_mse(Z: Array, F: Array, w: Array, task: Array | None) -> float:
    """Minus the mean squared error."""
    return -float(np.average(np.mean((Z - F) ** 2, axis=1), weights=w))


@register_value_scoring("mae", loss=True)
def negative_mae(Z: Array, F: Array, w: Array, task: Array | None) -> float:
    """Minus the mean absolute error."""
    return -float(np.average(np.mean(np.abs(Z - F), axis=1), weights=w))


@register_value_scoring("r2", unit_free=True)
@register_value_scoring("cautious", unit_free=True, cautious=True)
def explained_variance(Z: Array, F: Array, w: Array, task: Array | None) -> float:
    """1 - mean squared error / variance of the targets, the mean over the outputs that vary."""
    variance = np.average((Z - np.average(Z, axis=0, weights=w)) ** 2, axis=0, weights=w)
    error = np.average((Z - F) ** 2, axis=0, weights=w)
    varies = np.ptp(Z, axis=0) > 1e-12 * np.abs(Z).max(axis=0)  # the mean of equal values may have a rounding error
    return float(np.mean(1 - error[varies] / variance[varies])) if varies.any() else -float(error.sum())


@register_value_scoring("task_r2", unit_free=True)
def task_explained_variance(Z: Array, F: Array, w: Array, task: Array | None) -> float:
    """The mean over tasks of their explained variance; tasks with a single value do not count."""
    if task is None:
        raise ValueError("scoring='task_r2' needs tasks, and there are none: use 'r2'.")
    each = [task == t for t in np.unique(task)]
    shares = [explained_variance(Z[i], F[i], w[i], None) for i in each if np.ptp(Z[i], axis=0).any()]
    return float(np.mean(shares)) if shares else -float(np.average(np.sum((Z - F) ** 2, axis=1), weights=w))


class HeldoutValues(RegressorMixin, BaseEstimator):
    """A fitted regressor with fixed predictions, to be passed to scikit-learn's scorers."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Array:
        return self.values


def resolve_value_scoring(scoring: Any) -> ValueScorer:
    """The regression scorer for one of our names, a scikit-learn name, or a callable."""
    if isinstance(scoring, str) and scoring in VALUE_SCORINGS:
        return VALUE_SCORINGS[scoring]
    if callable(scoring):
        return ValueScorer(getattr(scoring, "__name__", type(scoring).__name__), _borrowed_values(scoring))
    if isinstance(scoring, str) and scoring in get_scorer_names():
        return ValueScorer(scoring, _borrowed_values(get_scorer(scoring)))
    raise ValueError(
        f"scoring={scoring!r} is not known: use one of {sorted(VALUE_SCORINGS)}, a name that "
        "sklearn.metrics.get_scorer_names() lists, or a callable f(estimator, X, y)."
    )


def _borrowed_values(scorer: Callable) -> ValueFunction:
    """A scorer that takes an estimator, applied to held-out predictions."""
    weighted = takes_weights(scorer)

    def score(Z: Array, F: Array, w: Array, task: Array | None) -> float:
        Z, F = (A[:, 0] if A.shape[1] == 1 else A for A in (Z, F))
        weights = {"sample_weight": w} if weighted and np.any(w != 1) else {}
        try:
            return float(scorer(HeldoutValues(F), np.zeros((len(Z), 1)), Z, **weights))
        except (AttributeError, ValueError) as error:
            raise ValueError(
                f"scoring={scorer!r} cannot be computed from predicted values ({error}): use one of "
                f"{sorted(VALUE_SCORINGS)}, or a regression scorer of scikit-learn."
            ) from error

    return score


def takes_weights(scorer: Callable) -> bool:
    """Whether a scorer accepts sample weights."""
    try:
        return "sample_weight" in inspect.signature(scorer).parameters
    except (TypeError, ValueError):  # a function written in C
        return False


class HeldoutPredictions(ClassifierMixin, BaseEstimator):
    """A fitted classifier with fixed predictions, to be passed to scikit-learn's scorers."""

    def __init__(self, proba: Array, decision: Array, classes: Array) -> None:
        self.proba = proba
        self.decision = decision
        self.classes = classes

    @property
    def classes_(self) -> Array:
        return self.classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> Array:
        return self.proba

    def decision_function(self, X: Any) -> Array:
        return self.decision

    def predict(self, X: Any) -> Array:
        return self.classes[self.proba.argmax(axis=1)]


def resolve_scoring(scoring: Any) -> Scorer:
    """The scorer for one of our names, a scikit-learn name, or a callable ``f(estimator, X, y)``."""
    if isinstance(scoring, str) and scoring in CLASS_SCORINGS:
        return CLASS_SCORINGS[scoring]
    if callable(scoring):
        return Scorer(getattr(scoring, "__name__", type(scoring).__name__), _borrowed(scoring))
    if isinstance(scoring, str) and (scoring in ALIASES or scoring in get_scorer_names()):
        return Scorer(scoring, _borrowed(get_scorer(ALIASES.get(scoring, scoring))))
    raise ValueError(
        f"scoring={scoring!r} is not known: use one of {sorted({*CLASS_SCORINGS, *ALIASES})}, a name that "
        "sklearn.metrics.get_scorer_names() lists, or a callable f(estimator, X, y)."
    )


def _borrowed(scorer: Callable) -> ClassFunction:
    """A scorer that takes an estimator, applied to held-out predictions."""
    weighted = takes_weights(scorer)

    def score(sample: Sample, calibrator: Calibrator, classes: Array) -> float:
        decision = calibrator.decision(sample.F)
        if len(classes) == 2:
            decision = decision[:, 1] - decision[:, 0]
        seen = HeldoutPredictions(calibrator.proba(sample.F), decision, classes)
        nothing = np.zeros((len(sample.y), 1))
        weights = {"sample_weight": sample.w} if weighted and np.any(sample.w != 1) else {}
        value = float(scorer(seen, nothing, classes[sample.y], **weights))
        if np.isnan(value):
            raise ValueError("The scorer returned NaN on held-out predictions; use another scoring=.")
        return value

    return score
