"""What LS-SVMs of many tasks have in common: intercepts of the tasks' own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from leastwise.estimators._checks import choose
from leastwise.estimators._explained import TaskExplained
from leastwise.estimators._lssvm import LSSVM, Fitted
from leastwise.estimators._model import Training
from leastwise.estimators._plan import Size
from leastwise.estimators._sampled import Done, SampledTasks
from leastwise.estimators._task_parts import FromParts
from leastwise.estimators._task_search import for_all_rows
from leastwise.estimators._tuned import Found
from leastwise.model_selection.grid import Grid, Levels
from leastwise.model_selection.search import Search
from leastwise.problem.coupling import Coupling
from leastwise.problem.kernels import Kernel, Precomputed
from leastwise.solvers.arrow_evaluator import ArrowTrial
from leastwise.solvers.evaluator import Judge, Rows, Settings, Trial
from leastwise.solvers.krylov import Bonds, Iterated
from leastwise.solvers.search_rows import task_rows_to_search
from leastwise.solvers.solve_tasks import (
    DualForm,
    TaskSolution,
    TaskTrial,
    common_intercept,
    evaluate_tasks,
    solve_tasks,
    stream_tasks,
)
from leastwise.solvers.task_evaluators import CoupledTrial
from leastwise.sources.parts import Parts, Piece

Array = np.ndarray


class MultiTaskLSSVM(TaskExplained, LSSVM, FromParts):
    """What the two of them have in common: intercepts of the tasks' own."""

    #: sharing="auto": functions of a linear kernel may be almost, but not quite, the same.
    SHARINGS: ClassVar[tuple[float, ...]] = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.998, 1.0)
    #: Spreads of bias="shrunk", and, with 0 and infinity, of "auto".
    SPREADS: ClassVar[tuple[float, ...]] = (0.03, 0.3)

    def _checked(self, calibrated: bool) -> tuple[Kernel, Levels]:
        """All parameters checked, before any data are looked at; the kernel, and the sharings to try."""
        choose("solver", self.solver, ["auto", "dual", "arrow", "krylov"])
        if self.solver == "arrow" and self.prune is not None:
            raise ValueError("prune= needs a coefficient for every row: use solver='dual' with it.")
        kernel, sharings = self._checked_search(calibrated)
        kernel = self._weighted(kernel)
        self._check_lssvm(kernel)
        if self.solver == "krylov" and self._computes:
            raise ValueError(
                f"similarity={self.similarity!r} compares tasks by the kernel of all rows: use solver='dual', "
                "or give similarities as a matrix."
            )
        if self.cv is None and len(self._spreads()) > 1:
            raise ValueError(
                "cv=None holds nothing out, so there is nothing to choose by: bias must be 'task', 'shared', None or "
                "a number."
            )
        return kernel, sharings

    # ------------------------------------------------------------------ bias

    def _check_bias(self) -> None:
        self._spreads()

    def _spreads(self) -> tuple[float, ...]:
        """Spreads of the tasks' intercepts to try."""
        bias = self.bias
        if isinstance(bias, Real) and not isinstance(bias, bool) and float(bias) >= 0:
            return (float(bias),)
        if bias not in ("auto", "task", "shared", "shrunk", None):
            raise ValueError(
                f"bias={bias!r} is not known: use 'auto', 'task', 'shared', 'shrunk', None, or a spread, which is a "
                "number from 0 to inf."
            )
        shrunk = self.SPREADS
        return {"task": (np.inf,), "shrunk": shrunk, "auto": (0.0, *shrunk, np.inf)}.get(str(bias), (0.0,))

    def _possible(self, rows: Rows) -> tuple[float, ...]:
        """Those that are possible: with free intercepts every task needs a row outside of each fold."""
        alone = never_left(rows)
        return self._possible_without(alone, int(np.sum(rows.task == alone[0])) if len(alone) else 0, len(rows))

    def _possible_without(self, alone: Array, size: int, n: int) -> tuple[float, ...]:
        """Those that are possible where all rows of these tasks are one fold; the first has ``size`` of n rows."""
        spreads = self._spreads()
        if self.cv is None or not len(alone) or np.isfinite(spreads[-1]):
            return spreads
        if len(spreads) > 1:
            return spreads[:-1]
        raise ValueError(
            "bias='task' gives every task a free intercept, but holding out a fold leaves no row of some tasks "
            f"({len(alone)} of {len(self.task_index_)}), such as {self.task_index_.ids[alone[0]]!r} with "
            f"{size} of {n} rows. Use bias='shrunk' or 'shared', a cv that "
            "keeps a row of each task, or leave such tasks out."
        )

    def _options(self, search: Search) -> Iterator[tuple[Sequence[float], Callable, float]]:
        yield from super()._options(search)
        trial = search.trial
        assert isinstance(trial, CoupledTrial | ArrowTrial)
        if len(trial.spreads) > 1:
            yield trial.spreads, lambda spread: search.trial.spreading(spread), trial.spread

    def _intercept_spreads(self, trial: Trial) -> tuple[float, ...]:
        assert isinstance(trial, CoupledTrial | ArrowTrial)
        return trial.spreads

    def _trial(self, data: Training, rows: Rows, settings: Settings, coupling: Coupling) -> TaskTrial:
        return self._with_spreads(super()._trial(data, rows, settings, coupling), self._possible(data.rows))

    def _with_spreads(self, trial: TaskTrial, everywhere: tuple[float, ...]) -> TaskTrial:
        """The trial with all spreads that may be tried: possible for its rows, and for all rows."""
        trial.spreads = tuple(spread for spread in self._possible(trial.rows) if spread in everywhere)
        return trial.spreading(trial.spreads[len(trial.spreads) // 2])

    # ----------------------------------------------------------------- parts

    def _all_spreads(self) -> tuple[float, ...]:
        return self._spreads()

    def _sample_trial(self, begun: SampledTasks, settings: Settings, coupling: Coupling) -> ArrowTrial:
        found, known = super()._sample_trial(begun, settings, coupling), begun.known
        alone = known.tasks.codes(known.alone)
        size = int(known.cells[2][known.cells[0] == alone[0]].sum()) if len(alone) else 0
        trial = self._with_spreads(found, self._possible_without(alone, size, known.n))
        assert isinstance(trial, ArrowTrial)
        return trial

    def _fit_parts(self, parts: Parts) -> Any:
        kernel, sharings = self._checked(calibrated=getattr(self, "calibration", None) is not None)
        begun = self._begin(parts, kernel)
        if isinstance(begun, Piece):
            return self.fit(begun.X, begun.y, begun.sample_weight, tasks=begun.tasks)
        settings = self._settings(begun.data.kernel, self._judged(begun.data))
        fitted = fitted_sample(begun, self._learn(begun, settings, sharings))
        return self._completed(replace(begun.data, rows=begun.among), fitted)

    # ------------------------------------------------------------------- fit

    def _judged(self, data: Training) -> Judge:
        """What held-out scores are worth."""
        raise NotImplementedError

    def _completed(self, data: Training, fitted: Fitted) -> Any:
        """Store the model, and all that is known."""
        raise NotImplementedError

    def _choose(self, data: Training, settings: Settings) -> Found:
        found = self._search_tasks(data, settings, self._checked_tasks())
        best, trial = found.outcome, found.trial.tied(found.outcome.sharing)
        if self.cv is not None and len(best.F) != len(data.rows):  # judged on some tasks only
            assert isinstance(trial, ArrowTrial)
            held = stream_tasks(trial, best.sigma, best.alpha, hold=True)[1]
            assert held is not None
            held = trial.settled(held)
            score, calibrator = settings.judge(data.rows, held, None)
            best = replace(best, F=held.F, score=score, calibrator=calibrator)
        return Found(best, found.seen, trial, found.searched.tied(best.sharing))

    def _few_functions(self, kernel: Kernel) -> bool:
        return super()._few_functions(kernel) and self.prune is None

    FAMILY = "task machine"

    def _shape_kernel(self) -> Kernel:
        return self._checked(calibrated=getattr(self, "calibration", None) is not None)[0]

    def _own_facts(self, kernel: Kernel, size: Size, square: bool) -> dict[str, Any]:
        known = super()._own_facts(kernel, size, square)
        options = known["options"] + len(self._spreads()) - 1
        return {
            **known,
            "options": options,
            "iterates": known["iterates"] and not known["few"] and not self._computes,
        }

    def _few_unknowns(self, data: Training, kernel: Kernel) -> bool:
        return self._few_functions(kernel)

    def _part(self, data: Training, trial: CoupledTrial, index: Array) -> CoupledTrial:
        settings = trial.settings
        rows = data.rows.take(index, isinstance(settings.kernel, Precomputed))
        part = CoupledTrial(rows, self._basis(rows, data.seed, settings), settings, trial.coupling)
        return part.tied(trial.tie.sharing).spreading(trial.spread)

    def _solved(self, trial: TaskTrial, sigma: float, alpha: float, consume: bool) -> TaskSolution:
        return solve_tasks(trial, sigma, alpha)

    def _row_coef(self, solution: TaskSolution) -> Array:
        if not isinstance(solution.form, DualForm):
            raise ValueError("prune= needs a coefficient for every row: use solver='dual' with it.")
        return solution.form.A

    def _said(
        self, trial: CoupledTrial, solution: TaskSolution, sigma: float, rows: Rows, gone: Array, kept: Array
    ) -> Array:
        assert rows.task is not None
        task = rows.task[gone]
        if isinstance(trial.settings.kernel, Precomputed):
            F = solution.form.weigh(rows.X[np.ix_(gone, kept)].copy(), task)
        else:
            F, _ = evaluate_tasks(
                trial.settings.kernel, sigma, rows.X[gone], task, trial.basis.centers, None, solution.form
            )
        return F + solution.intercept + (0 if solution.own is None else solution.own[task])

    # ---------------------------------------------------------------- krylov

    def _guess(self, data: Training, settings: Settings) -> Found:
        """As if there were room for some rows only."""
        coupling, sharings = self._coupling(data), self._checked_tasks()
        sigmas, alphas = self._data_grids(data.rows, settings)
        wish = 10 if self.cv is None else self.search_rows  # there is nothing to search
        count = task_rows_to_search(len(data.rows), len(data.rows), wish, by_arrow=False)
        some, kept = self._some_tasks(data, count, settings)
        part = self._trial(data, some, settings, coupling.take(kept))
        if self.cv is None:
            point = self._fixed(data, sigmas.values[0], alphas.values[0], sharings.values[0])
            return Found(point, [], None, part, coupling)
        search, ratio = Search(part), len(some) / len(data.rows)
        # A grid that was given is one for all rows.
        scaled = alphas if alphas.ratio else Grid(tuple(a / ratio for a in alphas.values))
        guess = self._run(search, sigmas, scaled, sharings)
        return Found(*for_all_rows(guess, search.seen, alphas, ratio), None, search.trial, coupling)

    def _bonds(self, data: Training, choice: Found) -> Bonds:
        assert data.rows.task is not None
        assert choice.outcome.sharing is not None
        return Bonds(choice.coupling.at(choice.outcome.sharing), data.rows.task, choice.searched.spread)

    def _iterated_scores(
        self, settings: Settings, sigma: float, rows: Rows, held: Array, rest: Array, bonds: Any, model: Iterated
    ) -> Array:
        form, task = DualForm(model.A, bonds.task[rest], bonds.tie), bonds.task[held]
        F, _ = evaluate_tasks(settings.kernel, sigma, rows.X[held], task, rows.X[rest], None, form)
        return F + model.intercept + (0 if model.own is None else model.own[task])

    def _iterated_solution(self, model: Iterated, bonds: Any) -> TaskSolution:
        intercept, own = common_intercept(model.intercept, model.own, bool(np.isfinite(bonds.spread)))
        return TaskSolution(DualForm(model.A, bonds.task, bonds.tie), intercept, own=own)

    # ----------------------------------------------------------------- store

    def _store_choice(self, fitted: Fitted) -> None:
        choice = fitted.choice
        sharing = choice.outcome.sharing
        assert sharing is not None
        coupling = choice.coupling or choice.trial.coupling
        self._store_relation(coupling, sharing)
        self.spread_ = choice.searched.spread


def fitted_sample(begun: SampledTasks, done: Done) -> Fitted:
    """A model of all rows, as if the sample were all: what tasks say of others depends on the ridge on the sum."""
    found = done.found
    chosen = found.outcome.alpha * begun.more
    return Fitted(found, found.trial.settings, found.trial.basis, done.solution, False, chosen)


def never_left(rows: Rows) -> Array:
    """Tasks all of whose rows are held out together."""
    assert rows.task is not None
    cells = np.unique(np.stack([rows.task, rows.fold]), axis=1)
    once = np.bincount(cells[0]) == 1
    if rows.split_count is not None:  # of several observations in one row, all but one stay
        once &= np.bincount(rows.task, weights=rows.split_count) <= 1
    return np.flatnonzero(once)
