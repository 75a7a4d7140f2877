"""Objectives of the search, computed from held-out scores: for classes, regression targets and many labels.

Scores of classes and labels are calibrated first; the objective is a metric of the calibrated probabilities, or of
the decisions based on them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from leastwise.calibration.calibrators import (
    Calibrator,
    fit_calibrator,
    fit_label_calibrator,
    search_calibration,
)
from leastwise.calibration.label_thresholds import choose_thresholds, decide
from leastwise.model_selection.label_scoring import LabelScorer
from leastwise.model_selection.scoring import Scorer, ValueScorer
from leastwise.solvers.evaluator import Rows
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


def caution(n: int) -> float:
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
        assert rows.values is not None
        Z = rows.values.astype(float)
        variance = np.average((Z - np.average(Z, axis=0, weights=rows.w)) ** 2, axis=0, weights=rows.w)
        return ((Z - held.F) ** 2 / np.where(variance > 0, variance, 1)).mean(axis=1)

    def clearly_better(self, rows: Rows, F: Array, other: Array) -> bool:
        """True if squared errors of F are below those of ``other`` by two standard errors; fewer for many rows."""
        assert rows.values is not None
        Z = rows.values.astype(float)
        variance = np.average((Z - np.average(Z, axis=0, weights=rows.w)) ** 2, axis=0, weights=rows.w)
        scale = np.where(variance > 0, variance, 1)
        less = (((Z - other) ** 2 - (Z - F) ** 2) / scale).mean(axis=1)
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
        Probability above which a label is predicted; "auto" selects the best thresholds for the scorer.
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
            threshold = choose_thresholds(self.scorer.name, P[:, 1::2], sample.codes, sample.W)
        return self.scorer(sample, P, decide(P, self.starts, threshold)), calibrator

    def row_losses(self, rows: Any, held: HeldOut) -> Array:
        """Log-losses of the held-out probabilities, averaged over the known labels of each row."""
        P = self(rows, held, None)[1].proba(held.F)
        column = self.starts[:-1] + np.maximum(rows.y, 0)
        losses = -np.log(np.maximum(np.take_along_axis(P, column, axis=1), TINY))
        known = rows.W * (rows.y >= 0)
        return np.sum(known * losses, axis=1) / np.maximum(known.sum(axis=1), TINY)
