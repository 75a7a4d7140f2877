"""What least-squares classifiers of many tasks have in common: what is stored, and tasks that are not known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from leastwise.calibration.calibrators import Calibrator, sample_credibility
from leastwise.estimators._calibrated import CalibratedClassifier
from leastwise.estimators._model import Training
from leastwise.estimators._sampled import Done, SampledTasks
from leastwise.estimators._task_search import TaskSearch
from leastwise.estimators._tasks import TaskClassifier
from leastwise.estimators._tuned import Found, TunedModel
from leastwise.solvers.arrow_evaluator import ArrowTrial
from leastwise.solvers.evaluator import Outcome, Settings
from leastwise.solvers.solve_tasks import TaskSolution, TaskTrial, solve_tasks, stranger_scores, stream_tasks

#: With fewer tasks than this there is nothing to learn about tasks that are not known.
FEW_TASKS = 3


class TaskCalibrated(TaskSearch, TaskClassifier, CalibratedClassifier):
    """Base of the least-squares classifiers of many tasks."""

    CENTERS: ClassVar[tuple[str, ...]] = (*TunedModel.CENTERS, "class", "task")

    def _complete(self, data: Training, settings: Settings, found: Found) -> Any:
        """Solve at the point that was chosen, and store all that is known."""
        best = found.outcome
        assert best.sharing is not None
        trial = found.trial.tied(best.sharing)
        if self.cv is None or len(best.F) == len(data.rows):
            solution = solve_tasks(trial, best.sigma, best.alpha)
        else:  # judged on some tasks only
            assert isinstance(trial, ArrowTrial)
            solution, held = stream_tasks(trial, best.sigma, best.alpha, hold=True)
            best.F = trial.settled(held).F  # type: ignore[arg-type]
            best.calibrator = self._calibrator(data.rows.sample(best.F))
        if isinstance(trial, ArrowTrial):
            reach, trust = self._chunked_reach(data.rows, trial.basis, settings, np.arange(len(data.rows)))
        else:
            reach, trust = self._reach(trial)
        stranger = self._strangers(data, found.searched.tied(best.sharing), best, solution)
        self._store_tasks(trial, best.sharing, stranger)
        return self._finish(data, trial.basis, settings, best, solution, found.seen, reach, trust)

    def _strangers(
        self, data: Training, trial: TaskTrial, best: Outcome, solution: TaskSolution
    ) -> Calibrator | None:
        """How scores of tasks that are not known become probabilities, from tasks held out whole."""
        asked = self.unknown_task == "shared" or np.any(data.task < 0)  # type: ignore[operator]
        if not asked or self.cv is None or self.calibration is None or len(self.tasks_) < FEW_TASKS:
            return None
        alpha = best.alpha * len(data.rows) / len(trial.rows)
        F = stranger_scores(trial, best.sigma, alpha, solution.jitter if solution.lifted else 0.0)
        if len(trial.rows) == len(data.rows):
            self.stranger_scores_ = np.full((data.X.shape[0], F.shape[1]), np.nan, dtype=F.dtype)
            self.stranger_scores_[data.used] = F
        # A task is one witness of what happens to tasks that are not known.
        sample = replace(trial.rows.sample(F), size=len(np.unique(trial.rows.task)))  # type: ignore[arg-type]
        # The search looked at rows, not at tasks held out whole: these say how sharp, the rows say whether at all.
        believed = sample_credibility(self.calibration, data.rows.sample(best.F), signed=self.SIGNED)
        return self._calibrator(sample, believed)

    def _complete_sampled(self, begun: SampledTasks, done: Done) -> Any:
        """Calibrate by held-out scores of a sample of the tasks, and store all that is known."""
        data, found, solution = replace(begun.data, rows=begun.among), done.found, done.solution
        best, whole = found.outcome, found.trial
        if self.cv is not None:
            best = replace(best, calibrator=self._calibrator(data.rows.sample(best.F)))
        held = np.arange(len(best.F))
        reach, trust = self._chunked_reach(data.rows, whole.basis, whole.settings, held)
        # What tasks say of others depends on the ridge on the sum of the losses.
        alike = replace(best, alpha=best.alpha * begun.more)
        stranger = self._strangers(data, found.searched, alike, solution)
        self._store_relation(found.coupling, whole.tie.sharing)
        self.stranger_calibrator_ = stranger
        return self._finish(data, whole.basis, whole.settings, best, solution, found.seen, reach, trust)

    def _store_tasks(self, trial: TaskTrial, sharing: float, stranger: Calibrator | None) -> None:
        self._store_relation(trial.coupling, sharing)
        self.stranger_calibrator_ = stranger
