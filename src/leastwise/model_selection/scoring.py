"""What a search maximises: a name or a function, turned into one number for held-out predictions.

``CLASS_SCORINGS`` and ``VALUE_SCORINGS`` are the only lists of our names that ``scoring=`` takes. A new one is a
function under a name, greater is better::

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

from leastwise.calibration.calibrators import Calibrator, Sample
from leastwise.metrics.losses import class_log_losses
from leastwise.metrics.probabilities import task_auc

Array = np.ndarray
ClassFunction = Callable[[Sample, Calibrator, Array], float]
ValueFunction = Callable[[Array, Array, Array, Array | None], float]

#: Our short names for scikit-learn's long ones.
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
        """The score as people know it: losses with their own sign."""
        return -score if self.loss else score


#: Scorings of classes by name.
CLASS_SCORINGS: dict[str, Scorer] = {}


def register_class_scoring(name: str, loss: bool = False) -> Callable[[ClassFunction], ClassFunction]:
    """Decorator that makes a function a scoring of classes; ``loss`` if it is minus a loss."""

    def add(function: ClassFunction) -> ClassFunction:
        CLASS_SCORINGS[name] = Scorer(name, function, loss)
        return function

    return add


@register_class_scoring("log_loss", loss=True)
@register_class_scoring("neg_log_loss")
def log_likelihood(sample: Sample, calibrator: Calibrator, classes: Array) -> float:
    """Mean log-probability of the true class."""
    return -float(np.average(class_log_losses(calibrator.proba(sample.F), sample.y), weights=sample.w))


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
    """F1 of the second class where there are two, the mean over classes where there are more."""
    binary = len(classes) == 2
    predicted = calibrator.proba(sample.F).argmax(axis=1)
    average = "binary" if binary else "macro"
    return float(f1_score(sample.y, predicted, average=average, sample_weight=sample.w, zero_division=0))


@register_class_scoring("task_auc")
def task_mean_auc(sample: Sample, calibrator: Calibrator, classes: Array) -> float:
    """Mean over the tasks of the area under the ROC curve; tasks that have one class only do not count."""
    if sample.task is None:
        raise ValueError("scoring='task_auc' is the mean over tasks, and there are none here: use 'auc'.")
    decision = calibrator.decision(sample.F)
    score = decision[:, 1] - decision[:, 0] if len(classes) == 2 else calibrator.proba(sample.F)
    areas = task_auc(sample.y, score, sample.task, labels=np.arange(len(classes)), sample_weight=sample.w)
    value = float(np.asarray(areas))
    if np.isnan(value):
        raise ValueError("scoring='task_auc': no task has two classes among its rows. Use 'auc' or 'log_loss'.")
    return value


@dataclass(frozen=True)
class ValueScorer:
    """``scorer(values, predictions, weights, tasks)`` of quantities (n x outputs), greater is better.

    ``unit_free`` says that the unit of the quantities makes no difference, ``cautious`` that degrees of freedom are
    charged for (see ``leastwise.model_selection.objective``), ``loss`` that it is minus a loss.
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
        """The score as people know it: losses with their own sign."""
        return -score if self.loss else score


#: Scorings of values by name.
VALUE_SCORINGS: dict[str, ValueScorer] = {}


def register_value_scoring(name: str, **options: bool) -> Callable[[ValueFunction], ValueFunction]:
    """Decorator that makes a function a scoring of values; options are fields of :class:`ValueScorer`."""

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
    varies = np.ptp(Z, axis=0) > 1e-12 * np.abs(Z).max(axis=0)  # a mean of equal values may be rounded
    return float(np.mean(1 - error[varies] / variance[varies])) if varies.any() else -float(error.sum())


@register_value_scoring("task_r2", unit_free=True)
def task_explained_variance(Z: Array, F: Array, w: Array, task: Array | None) -> float:
    """The mean over tasks of the explained variance of each; tasks of one value only do not count."""
    if task is None:
        raise ValueError("scoring='task_r2' is the mean over tasks, and there are none here: use 'r2'.")
    each = [task == t for t in np.unique(task)]
    shares = [explained_variance(Z[i], F[i], w[i], None) for i in each if np.ptp(Z[i], axis=0).any()]
    return float(np.mean(shares)) if shares else -float(np.average(np.sum((Z - F) ** 2, axis=1), weights=w))


class HeldoutValues(RegressorMixin, BaseEstimator):
    """A fitted regressor that has already predicted: what scikit-learn's scorers are shown."""

    def __init__(self, values: Array) -> None:
        self.values = values

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Array:
        return self.values


def resolve_value_scoring(scoring: Any) -> ValueScorer:
    """The scorer of quantities behind a name of ours, a name of scikit-learn's, or a callable."""
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
    """A scorer that wants an estimator, served with held-out predictions."""
    weighted = takes_weights(scorer)

    def score(Z: Array, F: Array, w: Array, task: Array | None) -> float:
        Z, F = (A[:, 0] if A.shape[1] == 1 else A for A in (Z, F))
        weights = {"sample_weight": w} if weighted and np.any(w != 1) else {}
        try:
            return float(scorer(HeldoutValues(F), np.zeros((len(Z), 1)), Z, **weights))
        except (AttributeError, ValueError) as error:
            raise ValueError(
                f"scoring={scorer!r} cannot be had from predicted quantities ({error}): use one of "
                f"{sorted(VALUE_SCORINGS)}, or a scorer of scikit-learn's for regression."
            ) from error

    return score


def takes_weights(scorer: Callable) -> bool:
    """Whether a scorer can be told the weights of rows."""
    try:
        return "sample_weight" in inspect.signature(scorer).parameters
    except (TypeError, ValueError):  # a function written in C
        return False


class HeldoutPredictions(ClassifierMixin, BaseEstimator):
    """A fitted classifier that has already predicted: what scikit-learn's scorers are shown."""

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
    """The scorer behind a name of ours, a name of scikit-learn's, or a callable ``f(estimator, X, y)``."""
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
    """A scorer that wants an estimator, served with held-out predictions."""
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
