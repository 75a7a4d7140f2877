"""What least-squares classifiers have in common: calibration on held-out scores, and how far they are believed."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from leastwise.calibration.calibrators import Calibrator, Sample, fit_calibrator
from leastwise.calibration.extrapolation import Reach
from leastwise.estimators._model import Training
from leastwise.estimators._pruning import Fitted
from leastwise.estimators._reaching import Reaching
from leastwise.estimators._tuned import TunedClassifier
from leastwise.problem.basis import Basis
from leastwise.problem.kernels import Kernel
from leastwise.solvers.evaluator import Outcome, Settings
from leastwise.solvers.solve import Solution
from leastwise.solvers.solve_tasks import TaskSolution

Array = np.ndarray


class CalibratedClassifier(Reaching, TunedClassifier):
    """Base of the least-squares classifiers. A subclass has the parameters calibration and extrapolate too."""

    #: Whether the targets are -1 and 1.
    SIGNED: ClassVar[bool] = False

    def _reaches(self, kernel: Kernel) -> bool:
        """Whether trust falls with the distance from the data."""
        return super()._reaches(kernel) and self.calibration is not None

    def _finish(
        self,
        data: Training,
        basis: Basis,
        settings: Settings,
        outcome: Outcome,
        solution: Solution | TaskSolution,
        seen: list[dict],
        reach: Reach | None,
        trust: Array | None,
    ) -> Any:
        """Store the model, and what is known of held-out rows; ``trust`` is theirs."""
        if self.calibration == "isotonic":
            outcome.calibrator = self._calibrator(data.rows.sample(outcome.F))
        self._store(data, basis, settings, outcome, solution)
        self.reach_ = reach
        self._warn_lifted(settings.kernel, solution)
        if self.cv is not None:
            self._store_heldout(data, outcome.F, seen, trust)
        return self

    def _calibrator(self, sample: Sample, believed: float | None = None) -> Calibrator:
        """The calibrator that was asked for, fitted to held-out scores."""
        return fit_calibrator(self.calibration, sample, signed=self.SIGNED, believed=believed)

    def _believed(self, data: Training, fitted: Fitted) -> tuple[Reach | None, Array | None]:
        """How far from the data the model is believed, and the trust of held-out rows."""
        F = fitted.choice.outcome.F
        held = np.flatnonzero(~np.isnan(F[:, 0])) if len(F) else np.empty(0, dtype=int)
        return self._chunked_reach(data.rows, fitted.basis, fitted.settings, held)

    calibration: str | None
    extrapolate: bool
