"""What held-out scores are worth: those of classes, calibrated, and those of quantities.

What held-out scores of many labels are worth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from leastwise.calibration.calibrators import Calibrator, fit_calibrator, fit_label_calibrator
from leastwise.calibration.label_thresholds import choose_thresholds, decide
from leastwise.model_selection.label_scoring import LabelScorer
from leastwise.model_selection.scoring import Scorer, ValueScorer
from leastwise.solvers.evaluator import Rows
from leastwise.solvers.heldout import HeldOut
from leastwise.solvers.label_evaluators import LabelRows

Array = np.ndarray


@dataclass(frozen=True)
class ClassObjective:
    """Calibrates held-out scores of classes, and scores the probabilities.

    ``signed`` says that the targets were -1 and 1, not 0 and 1.
    """

    classes: Array
    calibration: str | None
    scorer: Scorer
    signed: bool = False
    scale: float = 1.0
    of_classes: ClassVar[bool] = True

    @property
    def n_outputs(self) -> int:
        """One for each class."""
        return len(self.classes)

    def __call__(self, rows: Rows, held: HeldOut, last: Calibrator | None) -> tuple[float, Calibrator]:
        """The score, and the calibrator."""
        sample = rows.sample(held.F)
        # An isotonic fit is judged on the rows that made it; the blend stands in for it during the search.
        kind = "blend" if self.calibration == "isotonic" else self.calibration
        calibrator = fit_calibrator(kind, sample, last, self.signed)
        return self.scorer(sample, calibrator, self.classes), calibrator


#: What "cautious" charges for degrees of freedom: 6 / sqrt(n) for up to 100 rows, 60 / n for more.
CHARGE, MANY = 6.0, 100
#: How many standard errors better than a simple model "cautious" wants a model to be, with up to 100 rows.
ERRORS = 2.0


def caution(n: int) -> float:
    """What is left of caution with n independent rows: all of it up to 100, then less and less."""
    return min(1.0, float(np.sqrt(MANY / n)))


def charge(n: int, dof: float) -> float:
    """What "cautious" multiplies the unexplained variance of a model of n rows by."""
    return float(np.exp(CHARGE / np.sqrt(n) * caution(n) * min(dof / n, 1.0)))


def clear_margin(less: Array, w: Array, n: int) -> bool:
    """Whether errors that are less by so much, row by row, are so by two standard errors; less for many rows."""
    mean = float(np.average(less, weights=w))
    error = float(np.sqrt(np.average((less - mean) ** 2, weights=w) / n))
    return mean > ERRORS * caution(n) * error


@dataclass(frozen=True)
class ValueObjective:
    """Scores held-out predictions of quantities, in the unit of the targets.

    Among many models the best held-out error flatters, the more so where models bend with every row, and with few
    rows. The scorer "cautious" raises the unexplained variance by ``exp(charge * freedom / n)``, with a charge of
    ``6 / sqrt(n)`` for up to 100 rows and ``60 / n`` for more: enough to keep noise from being fitted where rows are
    few, and nothing to speak of where they are many.
    """

    n_outputs: int
    scorer: ValueScorer
    unit: Any = 1.0
    scale: float = 1.0
    of_classes: ClassVar[bool] = False

    @classmethod
    def of(cls, values: Array, w: Array, task: Array | None, scorer: ValueScorer, unit: Any) -> ValueObjective:
        """For these targets, in this unit."""
        objective = cls(values.shape[1], scorer, unit)
        if scorer.unit_free or not np.ptp(values, axis=0).any():
            return objective
        # The score of the mean tells what scores are measured in, errors or their squares.
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
        unit = 1.0 if self.scorer.unit_free else self.unit  # one for all outputs, or one for each
        return self.scorer(unit * Z.astype(float), unit * F.astype(float), w.astype(float), task)

    def __call__(self, rows: Rows, held: HeldOut, last: Any) -> tuple[float, None]:
        """The score."""
        assert rows.values is not None
        known = ~np.isnan(held.F[:, 0])
        task = None if rows.task is None else rows.task[known]
        score = self._scored(rows.values[known], held.F[known], rows.w[known], task)
        if self.scorer.cautious:
            score = 1 - (1 - score) * charge(rows.size, held.dof)
        return score, None

    def clearly_better(self, rows: Rows, F: Array, other: Array) -> bool:
        """Whether squared errors of F are below those of other scores by two standard errors; less for many rows."""
        assert rows.values is not None
        Z = rows.values.astype(float)
        spread = np.average((Z - np.average(Z, axis=0, weights=rows.w)) ** 2, axis=0, weights=rows.w)
        scale = np.where(spread > 0, spread, 1)
        less = (((Z - other) ** 2 - (Z - F) ** 2) / scale).mean(axis=1)
        return clear_margin(less, rows.w, rows.size)


@dataclass(frozen=True)
class LabelObjective:
    """Calibrates held-out scores of many labels, all in one, and scores the probabilities or what is decided by them.

    Attributes
    ----------
    starts : ndarray of int of shape (T + 1,)
    calibration : str or None
    scorer : LabelScorer
    threshold : float, ndarray of shape (T,) or str
        Above which probability a label is given; "auto" takes what suits the scorer best.
    """

    starts: Array
    calibration: str | None
    scorer: LabelScorer
    threshold: Any = 0.5
    scale: float = 1.0
    of_classes: ClassVar[bool] = True

    @property
    def n_outputs(self) -> int:
        """One for each class of each label."""
        return int(self.starts[-1])

    def take(self, labels: Array) -> LabelObjective:
        """The judge of some of the labels."""
        starts = np.cumsum([0, *np.diff(self.starts)[labels]])
        each = isinstance(self.threshold, np.ndarray)
        return replace(self, starts=starts, threshold=self.threshold[labels] if each else self.threshold)

    def __call__(self, rows: Any, held: HeldOut, last: Any) -> tuple[float, Any]:
        """The score, and the calibrator."""
        assert isinstance(rows, LabelRows)
        sample = rows.label_sample(held.F)
        # An isotonic fit is judged on the rows that made it; the blend stands in for it during the search.
        kind = "blend" if self.calibration == "isotonic" else self.calibration
        calibrator = fit_label_calibrator(kind, sample, last, pooled=True)
        P = calibrator.proba(sample.F)
        if not self.scorer.decides:
            return self.scorer(sample, P, sample.codes), calibrator
        threshold = self.threshold
        if isinstance(threshold, str):
            threshold = choose_thresholds(self.scorer.name, P[:, 1::2], sample.codes, sample.W)
        return self.scorer(sample, P, decide(P, self.starts, threshold)), calibrator
