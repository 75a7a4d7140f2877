"""What least-squares classifiers have in common: calibration on held-out scores, and how far they are believed."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from leastwise.basis import Basis, row_chunks
from leastwise.estimators._model import Training
from leastwise.estimators._tuned import TunedClassifier
from leastwise.fitting import Solution
from leastwise.kernels import Kernel
from leastwise.probability import Calibrator, Sample, anchored, fit_calibrator
from leastwise.reach import RANK, SOME, Reach, fit_reach, heldout_distances, ranked_distances, spaced_distances
from leastwise.selection.trial import Outcome, Rows, Settings, Trial
from leastwise.task_fitting import TaskSolution

Array = np.ndarray


class CalibratedClassifier(TunedClassifier):
    """Base of the least-squares classifiers. A subclass has the parameters calibration and extrapolate too."""

    #: Whether the targets are -1 and 1.
    SIGNED: ClassVar[bool] = False

    def _reach(self, trial: Trial) -> tuple[Reach | None, Array | None]:
        """How far from the data the model is believed, and how far held-out rows are; None for everywhere."""
        rows, kernel = trial.rows, trial.settings.kernel
        if not self._reaches(kernel):
            return None, None
        nearest = heldout_distances(kernel, trial.basis, trial.pairs, rows.fold)
        further = spaced_distances(kernel, trial.basis, trial.pairs, rows.fold, rows.copy)
        reach = fit_reach(nearest, further, rows.copy)
        return reach, None if reach is None else reach.trust(nearest)

    def _chunked_reach(
        self, rows: Rows, basis: Basis, settings: Settings, held: Array
    ) -> tuple[Reach | None, Array | None]:
        """The same without the distances between all rows and centres at once, from the rows that are held out."""
        kernel = settings.kernel
        if not self._reaches(kernel) or not len(held):
            return None, None
        home = None if basis.rows is None else rows.fold[basis.rows]
        nearest = np.full(len(rows), np.inf, dtype=rows.X.dtype)
        for part in row_chunks(len(held), basis.n_functions, rows.X.dtype.itemsize):
            pairs = kernel.pairs(rows.X[held[part]], basis.centers)
            nearest[held[part]] = ranked_distances(kernel, pairs, rows.fold[held[part]], home)
        some = held[np.unique(np.linspace(0, len(held) - 1, SOME).astype(int))]
        pairs = kernel.pairs(rows.X[some], basis.centers)
        reach = fit_reach(nearest, ranked_distances(kernel, pairs, rows.fold[some], home, RANK), rows.copy)
        return reach, None if reach is None else reach.trust(nearest)

    def _reaches(self, kernel: Kernel) -> bool:
        """Whether trust falls with the distance from the data."""
        return kernel.distance and self.calibration is not None and not self.extrapolate

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
        if solution.far is not None:
            outcome.calibrator = anchored(outcome.calibrator, solution.far)
        if self.calibration == "isotonic":
            outcome.calibrator = self._calibrator(data.rows.sample(outcome.F), solution.intercept)
        self._store(data, basis, settings, outcome, solution)
        self.reach_ = reach
        self._warn_lifted(settings.kernel, solution)
        if self.cv is not None:
            self._store_heldout(data, outcome.F, seen, trust)
        return self

    def _calibrator(self, sample: Sample, far: Array) -> Calibrator:
        """The calibrator that was asked for, fitted to held-out scores."""
        return fit_calibrator(self.calibration, sample, far, signed=self.SIGNED)

    calibration: str | None
    extrapolate: bool
    reach_: Reach | None
