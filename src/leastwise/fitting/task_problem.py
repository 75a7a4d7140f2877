"""The ridge of many tasks: how tasks are coupled and sampled, and which evaluator computes held-out scores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from leastwise.fitting.checks import check_search_memory, check_task_memory, task_penalties
from leastwise.fitting.dataset import Dataset
from leastwise.fitting.ridge_problem import RidgeProblem
from leastwise.fitting.spec import Spec
from leastwise.model_selection.folds import LEAST_TASKS, content_hashes, some_units, stratified_rows
from leastwise.model_selection.grids import Grid, SharingGrid
from leastwise.model_selection.search import Search, SearchResult
from leastwise.problem.basis import Basis, given_basis
from leastwise.problem.coupling import Coupling, Pairwise, Shared
from leastwise.problem.kernels import Linear, Precomputed
from leastwise.problem.similarity import TASK_SIMILARITIES, ComparedRows
from leastwise.problem.similarity_checks import check_similarity
from leastwise.problem.targets import in_units
from leastwise.solvers.arrow import ArrowEvaluator
from leastwise.solvers.choose import task_solver
from leastwise.solvers.evaluator import Candidate, Evaluator, Rows, Settings
from leastwise.solvers.solve_tasks import AnyTaskEvaluator, check_folds_within_tasks
from leastwise.solvers.task_evaluators import CoupledEvaluator, CoupledRefitEvaluator
from leastwise.solvers.work import SETTLE_NUMBERS, search_bytes, task_rows_to_search
from leastwise.utils.hashing import task_hashes
from leastwise.utils.resources import available_memory

Array = np.ndarray

#: Largest number of rows on which similarities are computed.
SIMILARITY_ROWS = 1200


@dataclass(frozen=True)
class TaskProblem(RidgeProblem):
    """Rows of many tasks, with the kernel ``G_ij B[t_i, t_j]``.

    Attributes
    ----------
    allowed_ratios : tuple of float or None
        Variances of the tasks' intercepts that are possible for all rows, if this is a subsample.
    """

    allowed_ratios: tuple[float, ...] | None = None

    @property
    def sharings(self) -> SharingGrid | None:
        """Values of sharing to try."""
        return self.spec.task_sharings

    @cached_property
    def basis(self) -> Basis:
        """Basis functions of these rows."""
        if self.spec.logistic:
            return self.spec.basis_of(self.rows, self.data.seed, self.settings)
        return task_basis(self.spec, self.data, self.rows, self.settings)

    @property
    def by_arrow(self) -> bool:
        """True if the block-arrow system is the cheapest exact method."""
        few = self.spec.few_functions(self.settings.kernel)
        return task_solver(self.spec.solver, few, self.basis.n_functions, len(self)) == "arrow"

    def rows_to_search(self, on_all_rows: bool) -> int:
        """Number of rows to search on."""
        n, wanted = len(self), self.spec.search_rows
        if self.spec.logistic:
            return n
        if on_all_rows:
            return task_rows_to_search(self.basis.n_functions, n, wanted, self.by_arrow)
        return task_rows_to_search(n, n, 10 if self.spec.cv is None else wanted, by_arrow=False)

    def take(self, count: int) -> Self:
        """About ``count`` rows, whole tasks if possible, since the best sharing depends on the size of the tasks."""
        rows, tasks = self.rows, self.data.tasks
        assert rows.task is not None
        assert tasks is not None
        if count >= len(rows):
            return self
        key, names = content_hashes(rows, "sample", self.precomputed), task_hashes(tasks.ids)
        index = some_units(rows.task, names, rows.y, rows.w, count, key, LEAST_TASKS)
        some = rows.take(index, self.precomputed)
        if len(np.unique(some.fold)) < 2 or len(some) >= len(rows):
            return self
        kept, task = np.unique(rows.task[index], return_inverse=True)
        part = replace(self, coupling=self.coupling.take(kept), allowed_ratios=self.intercept_ratios)
        return part.with_rows(replace(some, task=task))

    # -------------------------------------------------------------- evaluators

    def evaluator(self) -> Any:
        """Held-out scores of these rows, by the cheapest exact method."""
        rows, settings, coupling = self.rows, self.settings, self.coupling
        if self.spec.logistic:
            return CoupledRefitEvaluator(rows, self.basis, settings, coupling, self.refit_options)
        evaluator: AnyTaskEvaluator
        if self.by_arrow:
            assert self.data.tasks is not None
            check_task_memory(len(self.data.tasks), self.basis.n_functions, settings.n_outputs, rows.X.dtype.itemsize)
            # Centres are fixed points here: they have no weight, and do not belong to rows.
            basis = replace(self.basis, square=False, weighted=False)
            evaluator = ArrowEvaluator(rows, basis, settings, coupling)
        else:
            evaluator = CoupledEvaluator(rows, self.basis, settings, coupling)
        if not self.spec.auto_intercept_ratios:
            return evaluator
        return with_intercept_ratios(evaluator, self.intercept_ratios)

    @cached_property
    def intercept_ratios(self) -> tuple[float, ...]:
        """Variances of the tasks' intercepts to try: those possible for these rows and for all rows."""
        if self.spec.cv is None:
            return self.spec.intercept_ratios
        alone = _held_out_whole(self.rows)
        size = int(np.sum(self.rows.task == alone[0])) if len(alone) else 0
        possible = intercept_ratios_without(self.spec, self.data, alone, size, len(self))
        return tuple(r for r in possible if self.allowed_ratios is None or r in self.allowed_ratios)

    def check_search(self, evaluator: Any, sample: RidgeProblem) -> None:
        """Raise an error if a search on this sample is not possible."""
        if isinstance(evaluator, ArrowEvaluator):
            check_search_memory(len(sample), evaluator.basis.n_functions)
        if self.too_large_to_settle(evaluator):
            check_folds_within_tasks(self.rows, len(sample))

    def too_large_to_settle(self, evaluator: Any) -> bool:
        """True if one or two passes over the rows are affordable, but no search on them."""
        numbers = evaluator.basis.n_functions * len(self)
        return evaluator.streams and (numbers > SETTLE_NUMBERS or search_bytes(numbers) > available_memory())

    def relate(self, found: SearchResult) -> SearchResult:
        """Compute the similarities of the tasks at the chosen point, if requested, and choose the sharing again.

        The similarities use the labels of all rows, so held-out scores are slightly optimistic from here on, more so
        with less smoothing. Hence sigma is kept, and alpha can only increase.
        """
        evaluator, best = found.evaluator, found.outcome
        if not self.spec.computes_similarity:
            return found
        assert isinstance(evaluator, CoupledEvaluator)
        rule, penalty = TASK_SIMILARITIES[self.spec.similarity], evaluator.coupling.penalty
        S = rule.function(_compared_rows(self.data, evaluator, best))
        coupling: Coupling = Shared(penalty, S) if rule.covariance else Pairwise(penalty, S)
        related = evaluator.with_coupling(coupling)
        search, alphas = Search(related), self.grids.alphas
        larger = best.alpha * np.sqrt(10.0) ** np.arange(3) if alphas.ratio else np.array(alphas.values)
        grid = Grid(tuple(float(a) for a in larger if best.alpha <= a <= 10.5 * best.alpha))
        outcome = search.run(Grid((best.sigma,)), grid, replace(self.spec.task_sharings, every=True))
        later = [{**point, "stage": 1} for point in search.seen]
        return SearchResult(outcome, found.seen + later, related, related, coupling)


# --------------------------------------------------------------------- coupling


def shared_coupling(spec: Spec, data: Dataset) -> Shared:
    """All tasks coupled equally, with the given penalties."""
    assert data.tasks is not None
    return Shared(task_penalties(spec.task_penalty, data.tasks))


def coupling_of(spec: Spec, data: Dataset) -> Coupling:
    """The coupling of the tasks, as far as it is known before the search."""
    shared, S = shared_coupling(spec, data), spec.similarity
    assert data.tasks is not None
    if isinstance(S, str):
        most = TASK_SIMILARITIES[S].max_tasks if S in TASK_SIMILARITIES else None
        if most is not None and len(data.tasks) > most:
            others = [repr(name) for name, rule in TASK_SIMILARITIES.items() if rule.max_tasks is None]
            raise ValueError(
                f"similarity={S!r} compares all pairs of tasks and supports at most {most} tasks; there are "
                f"{len(data.tasks)}. Use {', '.join(others)} or 'shared'."
            )
        return shared
    if callable(S):
        S = S(data.rows.X, given_targets(data), data.tasks.as_array()[data.rows.task])
    return Pairwise(shared.penalty, check_similarity(S, data.tasks))


def given_targets(data: Dataset) -> Array:
    """The original targets of the rows with a weight above 0."""
    targets = data.targets
    if targets.kind == "classes":
        return data.classes[data.rows.y]
    return in_units(data.rows.values, targets.unit, targets.offset, targets.flat)


def compared_targets(data: Dataset) -> Array:
    """Targets by which tasks are compared: class indicators, or standardised values."""
    if data.targets.kind == "classes":
        return np.eye(len(data.classes))[data.rows.y]
    Z = np.asarray(data.rows.values, dtype=float)
    Z = Z - np.average(Z, axis=0, weights=data.rows.w)
    return Z / np.maximum(np.sqrt(np.average(Z**2, axis=0, weights=data.rows.w)), np.finfo(float).tiny)


# ------------------------------------------------------------ basis and intercepts


def task_basis(spec: Spec, data: Dataset, rows: Rows, settings: Settings, some: bool = False) -> Basis:
    """Basis functions; a linear kernel uses the inputs themselves if there are fewer of them than rows.

    ``some`` is true if these are a small part of the rows.
    """
    d, kernel = rows.X.shape[1], settings.kernel
    linear = isinstance(kernel, Linear) and spec.few_functions(kernel) and spec.solver != "dual"
    if linear and spec.every_row and (d < len(rows) or some or spec.solver == "arrow"):
        assert isinstance(kernel, Linear)
        return given_basis(kernel.directions(d, rows.X.dtype), settings.n_outputs)
    return spec.basis_of(rows, data.seed, settings)


def with_intercept_ratios(evaluator: AnyTaskEvaluator, ratios: tuple[float, ...]) -> AnyTaskEvaluator:
    """The evaluator with all intercept variances to try, set to the middle one."""
    evaluator.intercept_ratios = ratios
    return evaluator.with_intercept_ratio(ratios[len(ratios) // 2])


def intercept_ratios_without(spec: Spec, data: Dataset, alone: Array, size: int, n: int) -> tuple[float, ...]:
    """Intercept variances to try. The rows of each of the tasks ``alone`` are one fold; ``size`` of n for the first.

    With free intercepts every task needs a row outside of each fold.
    """
    intercept_ratios = spec.intercept_ratios
    if not len(alone) or np.isfinite(intercept_ratios[-1]):
        return intercept_ratios
    if len(intercept_ratios) > 1:
        return intercept_ratios[:-1]
    assert data.tasks is not None
    raise ValueError(
        "bias='task' gives every task an unpenalised intercept, but some folds contain all rows of a task "
        f"({len(alone)} of {len(data.tasks)}), such as {data.tasks.ids[alone[0]]!r} with "
        f"{size} of {n} rows. Use bias='shrunk' or 'shared', a cv that "
        "keeps a row of each task, or leave such tasks out."
    )


def _held_out_whole(rows: Rows) -> Array:
    """Tasks whose rows are all held out together."""
    assert rows.task is not None
    width = int(rows.fold.max()) + 1
    once = np.bincount(np.unique(rows.task.astype(np.int64) * width + rows.fold) // width) == 1
    if rows.split_count is not None:  # of several observations in one row, all but one stay
        once &= np.bincount(rows.task, weights=rows.split_count) <= 1
    return np.flatnonzero(once)


# -------------------------------------------------------------------- similarity


def _compared_rows(data: Dataset, evaluator: CoupledEvaluator, best: Candidate) -> ComparedRows:
    """A sample of the rows of all tasks, with their kernel matrix at the chosen point."""
    rows = evaluator.rows
    index = np.arange(len(rows))
    if len(rows) > SIMILARITY_ROWS:
        cell = np.unique(evaluator.task * (int(rows.y.max()) + 1) + rows.y, return_inverse=True)[1]
        key = content_hashes(rows, "similarity", isinstance(evaluator.settings.kernel, Precomputed))
        index = stratified_rows(cell, SIMILARITY_ROWS, key)
    K = Evaluator.kernel(evaluator, best.sigma) if evaluator.basis.square else evaluator.gram(best.sigma)
    K = K[np.ix_(index, index)].astype(float)
    task, Z = evaluator.task[index], compared_targets(data)[index]
    root = None if rows.equal_weights else evaluator.root[index].astype(float)
    count = None if rows.count is None else rows.count[index]
    rho = best.alpha / evaluator.unit * len(index)
    return ComparedRows(K, Z, task, rho, best.sharing or 0.0, root, count)
