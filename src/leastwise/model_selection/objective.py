"""The objective of a search: a scoring, given by name or as a function, of held-out predictions.

Scores of classes are calibrated first; the objective is a metric of the calibrated probabilities, or of the decisions
based on them.

``CLASS_SCORINGS`` and ``VALUE_SCORINGS`` list all names that ``scoring=`` accepts in addition to scikit-learn's. A
new one is a function registered under a name; greater is better::

    @register_class_scoring("spherical")
    def spherical(sample, calibrator, classes):
        P = calibrator.proba(sample.F)
        p = P[np.arange(len(P)), sample.y]
        return float(np.average(p / np.linalg.norm(P, axis=1), weights=sample.w))

Those of labels are in :mod:`leastwise.model_selection.label_objective`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import f1_score, get_scorer, get_scorer_names

from leastwise.calibration.blend import Calibrator, Sample
from leastwise.calibration.calibrators import fit_calibrator, search_calibration
from leastwise.metrics.probabilities import class_log_losses, task_auc
from leastwise.solvers.evaluator import Rows
from leastwise.solvers.heldout import HeldOut

Array = np.ndarray
ClassFunction = Callable[[Sample, Calibrator, Array], float]
ValueFunction = Callable[[Array, Array, Array, Array | None], float]

#: Short names of scikit-learn's scorers.
ALIASES = {"auc": "roc_auc_ovr_weighted"}
#: Lower bound of probabilities in losses of rows.
TINY = 1e-12


# --------------------------------------------------------------------- classes


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


def takes_weights(scorer: Callable) -> bool:
    """True if a scorer accepts sample weights."""
    try:
        return "sample_weight" in inspect.signature(scorer).parameters
    except (TypeError, ValueError):  # a function written in C
        return False


@dataclass(frozen=True)
class ClassObjective:
    """Metric of calibrated held-out probabilities of classes.

    ``signed`` is True if the targets are -1 and 1, not 0 and 1.
    """

    classes: Array
    calibration: str | None
    scorer: Scorer
    signed: bool = False
    scale: float = 1.0
    of_classes: ClassVar[bool] = True

    @property
    def n_outputs(self) -> int:
        """One per class."""
        return len(self.classes)

    def __call__(self, rows: Rows, held: HeldOut, last: Calibrator | None) -> tuple[float, Calibrator]:
        """Objective value and calibrator."""
        sample = rows.sample(held.F)
        calibrator = fit_calibrator(search_calibration(self.calibration), sample, last, self.signed)
        return self.scorer(sample, calibrator, self.classes), calibrator

    def row_losses(self, rows: Rows, held: HeldOut, calibrator: Any = None) -> Array:
        """Log-losses of the held-out probabilities, calibrated by their ``calibrator`` if it is known."""
        P = (calibrator or self(rows, held, None)[1]).proba(held.F)
        return -np.log(np.maximum(P[np.arange(len(P)), rows.y], TINY))


# ---------------------------------------------------------------------- values


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


#: Penalty of "cautious" per degree of freedom: 6 / sqrt(n) for up to 100 rows, 60 / n for more.
CHARGE, MANY = 6.0, 100
#: Relative difference of losses that may be due to rounding.
ROUNDING = 1e-6
#: Standard errors by which a model must beat a simple one under "cautious", with up to 100 rows.
ERRORS = 2.0


def caution(n: float) -> float:
    """Strength of "cautious" with n independent rows: 1 up to 100 rows, then sqrt(100 / n)."""
    return min(1.0, float(np.sqrt(MANY / n)))


def charge(n: int, dof: float) -> float:
    """Factor of "cautious" on the unexplained variance of a model of n rows."""
    return float(np.exp(CHARGE / np.sqrt(n) * caution(n) * min(dof / n, 1.0)))


def clearly_less(losses: Array, others: Array, w: Array, n: int, errors: float = 1.0) -> bool:
    """True if the mean loss of n rows is below another by more than these standard errors, and than rounding."""
    less = others - losses
    mean = float(np.average(less, weights=w))
    error = float(np.sqrt(np.average((less - mean) ** 2, weights=w) / n))
    return mean > max(errors * error, ROUNDING * float(np.abs(losses).mean()))


def targets_and_variance(rows: Rows) -> tuple[Array, Array]:
    """Targets in double precision, and the weighted variance of each output; 1 for a constant output."""
    assert rows.values is not None
    Z = rows.values.astype(float)
    variance = np.average((Z - np.average(Z, axis=0, weights=rows.w)) ** 2, axis=0, weights=rows.w)
    return Z, np.where(variance > 0, variance, 1)


@dataclass(frozen=True)
class ValueObjective:
    """Metric of held-out predictions of regression targets, in the unit of the targets.

    The best held-out error among many models is optimistic, more so for flexible models and few rows. The scorer
    "cautious" multiplies the unexplained variance by ``exp(charge * dof / n)``, with a charge of ``6 / sqrt(n)`` for
    up to 100 rows and ``60 / n`` for more: enough to avoid fitting noise with few rows, and negligible with many.
    """

    n_outputs: int
    scorer: ValueScorer
    unit: Any = 1.0
    scale: float = 1.0
    of_classes: ClassVar[bool] = False

    @classmethod
    def of(cls, values: Array, w: Array, task: Array | None, scorer: ValueScorer, unit: Any) -> ValueObjective:
        """Objective for these targets, in this unit."""
        objective = cls(values.shape[1], scorer, unit)
        if scorer.unit_free or not np.ptp(values, axis=0).any():
            return objective
        # The score of the mean prediction gives the magnitude of scores (errors, or their squares).
        with np.errstate(over="ignore", under="ignore"):
            base = objective._scored(
                values, np.broadcast_to(np.average(values, axis=0, weights=w), values.shape), w, task
            )
        if not np.isfinite(base):
            raise ValueError(
                f"scoring={scorer.name!r} overflows on y, whose values are about {np.max(unit):.1e}: divide y by "
                "that, or use scoring='r2', which has no unit."
            )
        if base == 0 and scorer.name in ("mse", "mae"):
            raise ValueError(
                f"scoring={scorer.name!r} is 0 on y, whose values are about {np.max(unit):.1e}: divide y by that, or "
                "use scoring='r2', which has no unit."
            )
        return cls(values.shape[1], scorer, unit, abs(base) or 1.0)

    def _scored(self, Z: Array, F: Array, w: Array, task: Array | None) -> float:
        unit = 1.0 if self.scorer.unit_free else self.unit  # one for all outputs, or one per output
        return self.scorer(unit * Z.astype(float), unit * F.astype(float), w.astype(float), task)

    def __call__(self, rows: Rows, held: HeldOut, last: Any) -> tuple[float, None]:
        """Objective value; there is no calibrator."""
        assert rows.values is not None
        known = ~np.isnan(held.F[:, 0])
        task = None if rows.task is None else rows.task[known]
        score = self._scored(rows.values[known], held.F[known], rows.w[known], task)
        if self.scorer.cautious:
            score = 1 - (1 - score) * charge(rows.size, held.dof)
        return score, None

    def row_losses(self, rows: Rows, held: HeldOut, calibrator: Any = None) -> Array:
        """Mean squared errors of the outputs, each in units of its variance."""
        Z, variance = targets_and_variance(rows)
        return ((Z - held.F) ** 2 / variance).mean(axis=1)

    def clearly_better(self, rows: Rows, F: Array, other: Array) -> bool:
        """True if squared errors of F are below those of ``other`` by two standard errors; fewer for many rows."""
        losses, others = (self.row_losses(rows, HeldOut(scores)) for scores in (F, other))
        return clearly_less(losses, others, rows.w, rows.size, ERRORS * caution(rows.size))
