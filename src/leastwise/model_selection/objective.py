r"""Objectives of the search, computed from held-out scores: for classes, regression targets and many labels.

Scores of classes and labels are calibrated first; the objective is a metric of the calibrated probabilities, or of
the decisions based on them.

**Optimism.** Hyperparameters are selected for small held-out errors, so those of the selected model are smaller than
errors on new rows. Two corrections compensate for this. Both vanish as the number of rows grows.

*Selection without the row.* The error of row i is taken from the model that the other rows would have selected: among
all points of the search, the one with the best score without the fold of row i. Its own error then has no influence
on the selection. This costs nothing, because the held-out predictions of all points are available. (A nested
cross-validation would also keep row i out of the models that predict the other rows, at the cost of one search per
fold.)

*Degrees of freedom.* The remaining optimism is of the order of the number of hyperparameters over the number of rows.
As in the residual variance of least squares, errors are multiplied by :math:`\sqrt{m / (m - p)}`, with m independent
rows (or groups) and p hyperparameters for which more than one value was tried.

The coverage of intervals with and without the corrections is in ``benchmarks.intervals``.

*Hidden errors.* For classes, the choice of p hyperparameters may have turned some errors into correct decisions, and
rows outside their sets into rows inside. Thresholds and sets count half an observation for each hyperparameter with
more than one value as an error that was not seen; less above 100 rows, where the choice adapts less to single rows
(``caution``). ``benchmarks.few_rows`` measures how often promises are broken, with and without it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from leastwise.calibration.blend import Calibrator
from leastwise.calibration.calibrators import fit_calibrator, fit_label_calibrator, search_calibration
from leastwise.calibration.label_thresholds import choose_thresholds, decide
from leastwise.model_selection.label_scoring import LabelScorer, threshold_metric
from leastwise.model_selection.scoring import Scorer, ValueScorer
from leastwise.model_selection.search import PARAMETERS
from leastwise.problem.kernels import Linear
from leastwise.solvers.evaluator import Rows, Settings
from leastwise.solvers.heldout import HeldOut
from leastwise.solvers.label_evaluators import LabelRows

Array = np.ndarray

#: Lower bound of probabilities in losses of rows.
TINY = 1e-12


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

    def row_losses(self, rows: Rows, held: HeldOut) -> Array:
        """Log-losses of the calibrated held-out probabilities."""
        P = self(rows, held, None)[1].proba(held.F)
        return -np.log(np.maximum(P[np.arange(len(P)), rows.y], TINY))


#: Penalty of "cautious" per degree of freedom: 6 / sqrt(n) for up to 100 rows, 60 / n for more.
CHARGE, MANY = 6.0, 100
#: Standard errors by which a model must beat a simple one under "cautious", with up to 100 rows.
ERRORS = 2.0


def caution(n: float) -> float:
    """Strength of "cautious" with n independent rows: 1 up to 100 rows, then sqrt(100 / n)."""
    return min(1.0, float(np.sqrt(MANY / n)))


def charge(n: int, dof: float) -> float:
    """Factor of "cautious" on the unexplained variance of a model of n rows."""
    return float(np.exp(CHARGE / np.sqrt(n) * caution(n) * min(dof / n, 1.0)))


def clear_margin(less: Array, w: Array, n: int) -> bool:
    """True if the mean reduction ``less`` of the errors exceeds two standard errors; fewer for many rows."""
    mean = float(np.average(less, weights=w))
    error = float(np.sqrt(np.average((less - mean) ** 2, weights=w) / n))
    return mean > ERRORS * caution(n) * error


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

    def row_losses(self, rows: Rows, held: HeldOut) -> Array:
        """Mean squared errors of the outputs, each in units of its variance."""
        Z, variance = targets_and_variance(rows)
        return ((Z - held.F) ** 2 / variance).mean(axis=1)

    def clearly_better(self, rows: Rows, F: Array, other: Array) -> bool:
        """True if squared errors of F are below those of ``other`` by two standard errors; fewer for many rows."""
        Z, variance = targets_and_variance(rows)
        less = (((Z - other) ** 2 - (Z - F) ** 2) / variance).mean(axis=1)
        return clear_margin(less, rows.w, rows.size)


@dataclass(frozen=True)
class LabelObjective:
    """Metric of held-out probabilities of many labels, from one pooled calibrator, or of decisions based on them.

    Attributes
    ----------
    starts : ndarray of int of shape (T + 1,)
    calibration : str or None
    scorer : LabelScorer
    threshold : float, ndarray of shape (T,) or str
        Probability above which a label is predicted; "auto" selects the best thresholds for the scorer, a name those
        for another scoring.
    """

    starts: Array
    calibration: str | None
    scorer: LabelScorer
    threshold: Any = 0.5
    scale: float = 1.0
    of_classes: ClassVar[bool] = True

    @property
    def n_outputs(self) -> int:
        """One per class of each label."""
        return int(self.starts[-1])

    def take(self, labels: Array) -> LabelObjective:
        """The objective of a subset of the labels."""
        starts = np.cumsum([0, *np.diff(self.starts)[labels]])
        each = isinstance(self.threshold, np.ndarray)
        return replace(self, starts=starts, threshold=self.threshold[labels] if each else self.threshold)

    def __call__(self, rows: Any, held: HeldOut, last: Any) -> tuple[float, Any]:
        """Objective value and calibrator."""
        assert isinstance(rows, LabelRows)
        sample = rows.label_sample(held.F)
        calibrator = fit_label_calibrator(search_calibration(self.calibration), sample, last, pooled=True)
        P = calibrator.proba(sample.F)
        if not self.scorer.decides:
            return self.scorer(sample, P, sample.codes), calibrator
        threshold = self.threshold
        if isinstance(threshold, str):
            threshold = choose_thresholds(
                threshold_metric(threshold, self.scorer), P[:, 1::2], sample.codes, sample.W
            )
        return self.scorer(sample, P, decide(P, self.starts, threshold)), calibrator

    def row_losses(self, rows: Any, held: HeldOut) -> Array:
        """Log-losses of the held-out probabilities, averaged over the known labels of each row."""
        P = self(rows, held, None)[1].proba(held.F)
        column = self.starts[:-1] + np.maximum(rows.y, 0)
        losses = -np.log(np.maximum(np.take_along_axis(P, column, axis=1), TINY))
        known = rows.W * (rows.y >= 0)
        return np.sum(known * losses, axis=1) / np.maximum(known.sum(axis=1), TINY)


# --------------------------------------------------------------------- optimism


def hidden_errors(results: dict[str, Array] | None, size: float, others: int = 0) -> float:
    """Errors among ``size`` held-out observations that the choice of hyperparameters in ``cv_results_`` may hide.

    ``others`` is the number of other choices that were made on the same rows.
    """
    names = [f"param_{name}" for name in PARAMETERS.values()]
    searched = sum(len(np.unique(results[name])) > 1 for name in names if name in results) if results else 0
    return (searched + others) / 2 * caution(max(size, 1))


def inflation(seen: list[dict], size: int) -> float:
    """Factor for the degrees of freedom; infinite if there are no more rows than hyperparameters."""
    searched = sum(len({point.get(name) for point in seen}) > 1 for name in PARAMETERS)
    return float(np.sqrt(size / (size - searched))) if size > searched else np.inf


def excess(seen: list[dict], rows: Rows, settings: Settings) -> Array | None:
    """Increase of the absolute errors if the other folds select the model, of shape (n, outputs).

    None if there was only one point, or the predictions of the points were not stored.
    """
    objective = settings.objective
    points = [point for point in seen if len(point.get("F", ())) == len(rows)]
    if len(points) < 2 or not isinstance(objective, ValueObjective):
        return None
    assert rows.values is not None
    errors = np.abs(rows.values.astype(float) - np.array([point["F"] for point in points], dtype=float))
    if not np.isfinite(errors).all():
        return None
    by_fold = _Choice.of(points, errors, rows, settings)
    fold = np.unique(rows.fold, return_inverse=True)[1]
    leaving = rows.w if rows.split_count is None else rows.w / rows.split_count
    chosen = np.array([by_fold.without(leaving * (fold == f)) for f in range(int(fold.max()) + 1)])[fold]
    return errors[chosen, np.arange(len(rows))] - errors[by_fold.without(np.zeros(len(rows)))]


class _Choice:
    """Selection of a point by a subset of the rows, by the same rule as in the search."""

    def __init__(self, loss: Array, square: Array, factor: Array, simple: Array, rows: Rows) -> None:
        self.loss, self.square, self.factor, self.simple, self.rows = loss, square, factor, simple, rows
        self.total = loss @ rows.w

    @classmethod
    def of(cls, points: list[dict], errors: Array, rows: Rows, settings: Settings) -> _Choice:
        """``errors`` are absolute errors (points x n x outputs)."""
        objective = settings.objective
        assert isinstance(objective, ValueObjective)
        square = (errors**2 / targets_and_variance(rows)[1]).mean(axis=2)
        loss = errors.mean(axis=2) if objective.scorer.name == "mae" else square
        factor, simple = np.ones(len(points)), np.zeros(len(points), dtype=bool)
        if objective.scorer.cautious:
            factor = np.array([charge(rows.size, point["dof"]) for point in points])
            simple = np.array([_is_simple(point, settings) for point in points])
        return cls(loss, square, factor, simple, rows)

    def without(self, leaving: Array) -> int:
        """Index of the point that is selected if each row loses ``leaving`` of its weight."""
        gone = leaving > 0
        w = self.rows.w - leaving
        score = (self.total - self.loss[:, gone] @ leaving[gone]) * self.factor
        best = int(score.argmin())
        if not self.simple.any() or self.simple[best]:
            return best
        rival = int(np.where(self.simple, score, np.inf).argmin())
        stay = w > 0
        less = self.square[rival, stay] - self.square[best, stay]
        return best if clear_margin(less, w[stay], self.rows.size) else rival


def _is_simple(point: dict[str, Any], settings: Settings) -> bool:
    """True for a linear model shared by all tasks, which "cautious" prefers unless another is clearly better."""
    linear = point["weight"] == np.inf or isinstance(settings.kernel, Linear)
    return linear and point["sharing"] in (None, 1.0)
