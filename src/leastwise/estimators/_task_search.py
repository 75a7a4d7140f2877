"""How models of many tasks choose: which trial, on which tasks, and how the tasks are tied."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from leastwise.estimators._checks import (
    check_search_memory,
    check_search_rows,
    check_similarity,
    check_task_memory,
    choose,
)
from leastwise.estimators._model import Training
from leastwise.estimators._plan import TaskPlanned
from leastwise.estimators._tasks import TaskModel
from leastwise.estimators._tuned import Found, TunedModel
from leastwise.model_selection.grid import Grid, Levels
from leastwise.model_selection.search import Search
from leastwise.model_selection.subsample import LEAST_TASKS, content_keys, some_units, stratified_rows
from leastwise.problem.basis import Basis, given_basis
from leastwise.problem.coupling import Coupling, Pairwise, Shared
from leastwise.problem.kernels import Kernel, Linear, Precomputed
from leastwise.problem.similarity import correlation_similarity, input_similarity, learned_similarity
from leastwise.solvers.arrow_evaluator import ArrowTrial
from leastwise.solvers.choose import task_solver
from leastwise.solvers.evaluator import Outcome, Rows, Settings, Trial
from leastwise.solvers.search_rows import SETTLE_NUMBERS, search_bytes, task_rows_to_search
from leastwise.solvers.solve_tasks import TaskTrial, check_folds_within_tasks
from leastwise.solvers.task_evaluators import CoupledTrial
from leastwise.utils.hashing import task_keys
from leastwise.utils.memory import available_memory

Array = np.ndarray

#: Similarities that are computed from the data of the tasks, on so many rows at most.
COMPUTED = ("learned", "correlation", "inputs")
SIMILARITY_ROWS = 1200
#: With more tasks than this, learning their similarities takes too long.
MANY_TASKS = 300


def _too_large_to_settle(whole: TaskTrial) -> bool:
    """Whether all rows can be gone through once or twice, but not be searched on."""
    numbers = whole.basis.n_functions * len(whole.rows)
    return whole.streams and (numbers > SETTLE_NUMBERS or search_bytes(numbers) > available_memory())


def for_all_rows(guess: Outcome, seen: list[dict], alphas: Grid, ratio: float) -> tuple[Outcome, list[dict]]:
    """A point that was found on a share ``ratio`` of the rows, and all points seen, with alphas for all rows.

    What suits a task of so many rows is a ridge on the sum of the losses, and alphas are on the mean.
    """
    seen = [{**point, "alpha": point["alpha"] * ratio} for point in seen]  # a diary has the others
    alpha = guess.alpha * ratio
    return replace(guess, alpha=alpha if alphas.ratio else min(alphas.values, key=lambda a: abs(a - alpha))), seen


def alike(trial: TaskTrial, other: Trial) -> TaskTrial:
    """The trial with the options that another one has."""
    assert isinstance(other, CoupledTrial | ArrowTrial)
    trial = trial.spreading(other.spread)
    return trial if other.weight is None else trial.weighing(other.weight)


class TaskSearch(TaskPlanned, TaskModel, TunedModel):
    """Mixin for models of many tasks that choose sigma, alpha and sharing by held-out scores.

    A subclass has the parameters similarity, solver and search_rows beside those of ``TaskModel``.
    """

    CENTERS: ClassVar[tuple[str, ...]] = (*TunedModel.CENTERS, "task")
    FAMILY = "tasks"
    #: What the ridge is on.
    norm: str = "function"

    def _checked_search(self, calibrated: bool) -> tuple[Kernel, Levels]:
        """The parameters of the search checked, before any data are seen; the kernel, and the sharings to try."""
        if isinstance(self.similarity, str):
            choose("similarity", self.similarity, ["shared", *COMPUTED])
        check_search_rows(self.search_rows)
        sharings = self._checked_tasks()
        if self.cv is None and (len(sharings.values) > 1 or self._computes):
            raise ValueError(
                "cv=None holds nothing out, so there is nothing to choose by: give a number for sharing, and "
                "similarity='shared' or a matrix; or set cv='loo' or a number of folds."
            )
        kernel = self._checked_kernel(calibrated)
        if self.solver == "arrow" and not self._few_functions(kernel):
            with_norm = " with norm='function'" if "norm" in self.get_params(deep=False) else ""
            raise ValueError(
                "solver='arrow' needs few basis functions and tasks that all share alike: give n_centers or centers, "
                f"or kernel='linear'{with_norm}; and similarity='shared'. solver='dual' takes all else."
            )
        return kernel, sharings

    def _search_tasks(self, data: Training, settings: Settings, sharings: Levels) -> Found:
        """All of the choice."""
        found = self._select(data, settings, self._coupling(data), sharings)
        return self._relate(data, settings, found, sharings) if self._computes else found

    @property
    def _computes(self) -> bool:
        """Whether similarities come from the data."""
        return isinstance(self.similarity, str) and self.similarity in COMPUTED

    def _few_functions(self, kernel: Kernel) -> bool:
        """Whether the block-arrow system applies."""
        chosen = self.n_centers is not None or not isinstance(self.centers, str)
        linear = isinstance(kernel, Linear) and self.norm == "function"
        return self._alike and (chosen or linear) and not isinstance(kernel, Precomputed)

    @property
    def _alike(self) -> bool:
        """Whether all tasks share alike."""
        return isinstance(self.similarity, str) and self.similarity == "shared"

    def _coupling(self, data: Training) -> Coupling:
        """How the tasks are tied, as far as that is known before the search."""
        shared = self._shared()
        if isinstance(self.similarity, str):
            if self.similarity == "learned" and len(self.tasks_) > MANY_TASKS:
                raise ValueError(
                    f"similarity='learned' compares all pairs of tasks, and {len(self.tasks_)} are too many for "
                    f"that: up to {MANY_TASKS} are possible. Use 'correlation', 'inputs' or 'shared'."
                )
            return shared
        S = self.similarity
        if callable(S):
            ids = self.tasks_[data.rows.task]
            S = S(data.rows.X, self._labels(data), ids)
        return Pairwise(shared.penalty, check_similarity(S, self.task_index_))

    # ----------------------------------------------------------------- choice

    def _trial(self, data: Training, rows: Rows, settings: Settings, coupling: Coupling) -> TaskTrial:
        """Held-out scores of some rows, by the cheapest exact way."""
        basis = self._task_basis(data, rows, settings)
        b = basis.n_functions
        if task_solver(self.solver, self._few_functions(settings.kernel), b, len(rows)) == "arrow":
            check_task_memory(len(self.tasks_), b, settings.n_outputs, rows.X.dtype.itemsize)
            # Centres are places here: they have no weight, and are not tied to rows.
            return ArrowTrial(rows, replace(basis, square=False, weighted=False), settings, coupling)
        return CoupledTrial(rows, basis, settings, coupling)

    def _task_basis(self, data: Training, rows: Rows, settings: Settings, some: bool = False) -> Basis:
        """The linear kernel has the inputs themselves for basis functions, where these are fewer than the rows.

        ``some`` says that there are many more rows than these.
        """
        d, kernel = rows.X.shape[1], settings.kernel
        linear = isinstance(kernel, Linear) and self._few_functions(kernel) and self.solver != "dual"
        chosen = self.n_centers is not None or not isinstance(self.centers, str)
        if linear and not chosen and (d < len(rows) or some or self.solver == "arrow"):
            assert isinstance(kernel, Linear)
            return given_basis(kernel.directions(d, rows.X.dtype), settings.n_outputs)
        return self._basis(rows, data.seed, settings)

    def _select(self, data: Training, settings: Settings, coupling: Coupling, sharings: Levels) -> Found:
        """Search on some tasks or all; the best point, all points, and the trial on all rows."""
        rows, (sigmas, alphas) = data.rows, self._data_grids(data.rows, settings)
        whole = self._trial(data, rows, settings, coupling)
        if self.cv is None:
            return Found(self._fixed(data, sigmas.values[0], alphas.values[0], sharings.values[0]), [], whole, whole)
        count = task_rows_to_search(whole.basis.n_functions, len(rows), self.search_rows, whole.streams)
        some, kept = self._some_tasks(data, count, settings)
        if isinstance(whole, ArrowTrial):
            check_search_memory(len(some), whole.basis.n_functions)
        if some is rows:
            search = Search(whole)
            outcome = self._run(search, sigmas, alphas, sharings)
            return Found(outcome, search.seen, search.trial, search.trial)
        if _too_large_to_settle(whole):
            check_folds_within_tasks(rows, len(some))
        return self._select_on_some(data, whole, self._trial(data, some, settings, coupling.take(kept)), sharings)

    def _select_on_some(self, data: Training, whole: TaskTrial, part: TaskTrial, sharings: Levels) -> Found:
        """Search on some tasks, then go on from there on all.

        What suits a task of so many rows is a ridge on the sum of the losses, however many tasks there are. So
        alphas, which are on the mean, are converted.
        """
        sigmas, alphas = self._data_grids(data.rows, whole.settings)
        ratio = len(part.rows) / len(whole.rows)
        search = Search(part)
        # A grid that was given is one for all rows.
        scaled = alphas if alphas.ratio else Grid(tuple(a / ratio for a in alphas.values))
        guess = self._run(search, sigmas, scaled, sharings)
        whole = alike(whole, search.trial)
        start, seen = for_all_rows(guess, search.seen, alphas, ratio)
        if _too_large_to_settle(whole):
            return Found(start, seen, whole, search.trial)
        final = Search(whole)
        found = final.settle(start, alphas, sharings)
        return Found(found, seen + final.seen, whole, whole)

    def _some_tasks(self, data: Training, count: int, settings: Settings) -> tuple[Rows, Array]:
        """The rows that the search is made on, whole tasks if possible, and which tasks these are."""
        rows = data.rows
        assert rows.task is not None
        everyone = np.arange(len(self.tasks_))
        if count >= len(rows):
            return rows, everyone
        precomputed = isinstance(settings.kernel, Precomputed)
        key, names = content_keys(rows, "sample", precomputed), task_keys(self.task_index_.ids)
        # Whole tasks, since how much to share depends on how large they are.
        index = some_units(rows.task, names, rows.y, rows.w, count, key, LEAST_TASKS)
        some = rows.take(index, precomputed)
        if len(np.unique(some.fold)) < 2 or len(some) >= len(rows):
            return rows, everyone
        kept, task = np.unique(rows.task[index], return_inverse=True)
        return replace(some, task=task), kept

    def _relate(self, data: Training, settings: Settings, found: Found, sharings: Levels) -> Found:
        """Compute the similarities of the tasks where the search ended, and choose the sharing anew.

        These similarities have seen the labels of all rows, so held-out scores are a little too good from here on,
        and better for less smoothing. Hence sigma stays, and alpha may only grow.
        """
        trial, best = found.trial, found.outcome
        assert isinstance(trial, CoupledTrial)
        S = self._similarities(data, trial, best)
        penalty = trial.coupling.penalty
        coupling: Coupling = Shared(penalty, S) if self.similarity == "learned" else Pairwise(penalty, S)
        tied = trial.retied(coupling)
        search = Search(tied)
        _, alphas = self._data_grids(data.rows, settings)
        larger = best.alpha * np.sqrt(10.0) ** np.arange(3) if alphas.ratio else np.array(alphas.values)
        grid = Grid(tuple(float(a) for a in larger if best.alpha <= a <= 10.5 * best.alpha))
        related = search.run(Grid((best.sigma,)), grid, replace(sharings, every=True))
        later = [{**point, "stage": 1} for point in search.seen]
        return Found(related, found.seen + later, tied, tied)

    def _similarities(self, data: Training, trial: CoupledTrial, best: Outcome) -> Array:
        rows = trial.rows
        index = np.arange(len(rows))
        if len(rows) > SIMILARITY_ROWS:
            cell = np.unique(trial.task * (int(rows.y.max()) + 1) + rows.y, return_inverse=True)[1]
            key = content_keys(rows, "similarity", isinstance(trial.settings.kernel, Precomputed))
            index = stratified_rows(cell, SIMILARITY_ROWS, key)
        K = Trial.kernel(trial, best.sigma) if trial.basis.square else trial.gram(best.sigma)
        K = K[np.ix_(index, index)].astype(float)
        task, Z = trial.task[index], self._compared(data)[index]
        root = None if rows.equal_weights else trial.root[index].astype(float)
        count = None if rows.count is None else rows.count[index]
        rho = best.alpha / trial.unit * len(index)
        if self.similarity == "inputs":  # kernels that are not of a distance may be negative
            return np.maximum(input_similarity(K, task, root), 0)
        if self.similarity == "correlation":
            return correlation_similarity(K, Z, task, rho, root, count)
        return learned_similarity(K, Z, task, rho, best.sharing or 0.0, root, count)

    # ------------------------------------------------------------------ store

    def _store_coef(self, solution: Any) -> None:
        self.form_ = solution.form
        if solution.own is not None:
            self.task_intercept_ = solution.intercept + solution.own

    def _store_relation(self, coupling: Coupling, sharing: float) -> None:
        self.sharing_, self.relation_, self.tie_ = sharing, coupling, coupling.at(sharing)

    @property
    def similarity_(self) -> Array:
        """Similarities of the tasks, of shape (T, T); ones where all are alike."""
        check_is_fitted(self)
        S = self.relation_.similarity
        return np.ones((len(self.tasks_), len(self.tasks_))) if S is None else S

    @property
    def coupling_(self) -> Array:
        """The task matrix B at ``sharing_``, of shape (T, T)."""
        check_is_fitted(self)
        return self.tie_.matrix

    #: The targets of the rows that count as they were given, and those by which tasks are compared (n x c).
    _labels: Callable[[Training], Array]
    _compared: Callable[[Training], Array]
    similarity: Any
    solver: str
    search_rows: Any
