"""The choice of hyperparameters of many tasks: on which tasks, and how the tasks are coupled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from leastwise.estimators.checks import check_search_memory, check_similarity, check_task_memory, task_penalties
from leastwise.estimators.choosing import SearchResult, fixed_point, for_all_rows, run_search
from leastwise.estimators.spec import Spec
from leastwise.estimators.validation import Dataset
from leastwise.model_selection.grid import Grid
from leastwise.model_selection.search import Search
from leastwise.model_selection.subsample import LEAST_TASKS, content_hashes, some_units, stratified_rows
from leastwise.problem.basis import Basis, given_basis
from leastwise.problem.coupling import Coupling, Pairwise, Shared
from leastwise.problem.kernels import Linear, Precomputed
from leastwise.problem.similarity import TASK_SIMILARITIES, ComparedRows
from leastwise.problem.targets import in_units
from leastwise.solvers.arrow import ArrowEvaluator
from leastwise.solvers.choose import task_solver
from leastwise.solvers.evaluator import Candidate, Evaluator, Rows, Settings
from leastwise.solvers.search_rows import SETTLE_NUMBERS, search_bytes, task_rows_to_search
from leastwise.solvers.solve_tasks import AnyTaskEvaluator, check_folds_within_tasks
from leastwise.solvers.task_evaluators import CoupledEvaluator
from leastwise.utils.hashing import task_hashes
from leastwise.utils.memory import available_memory

Array = np.ndarray

#: Similarities are computed on no more rows than this.
SIMILARITY_ROWS = 1200


def choose_tasks(spec: Spec, data: Dataset, settings: Settings) -> SearchResult:
    """Search on some tasks or all, then settle on all; then the similarities, where they come from the data."""
    found = _search(spec, data, settings, coupling_of(spec, data))
    return _relate(spec, data, settings, found) if spec.computes_similarity else found


def guess_tasks(spec: Spec, data: Dataset, settings: Settings) -> SearchResult:
    """A search on some tasks in the dual, with the alpha for all rows; no evaluator of all rows."""
    coupling, sharings = coupling_of(spec, data), spec.task_sharings
    sigmas, alphas = spec.data_grids(data.rows, settings)
    wish = 10 if spec.cv is None else spec.search_rows  # there is nothing to search
    count = task_rows_to_search(len(data.rows), len(data.rows), wish, by_arrow=False)
    some, kept = some_tasks(data, count, settings)
    part = task_evaluator(spec, data, some, settings, coupling.take(kept))
    if spec.cv is None:
        return SearchResult(fixed_point(data, sigmas, alphas, sharings), [], None, part, coupling)
    search, ratio = Search(part), len(some) / len(data.rows)
    guess = run_search(spec, search, sigmas, _for_sample(alphas, ratio), sharings)
    return SearchResult(*for_all_rows(guess, search.seen, alphas, ratio), None, search.evaluator, coupling)


def _for_sample(alphas: Grid, ratio: float) -> Grid:
    """Alphas for a share of the rows; a grid that was given is one for all rows."""
    return alphas if alphas.ratio else Grid(tuple(a / ratio for a in alphas.values))


# --------------------------------------------------------------------- coupling


def shared_coupling(spec: Spec, data: Dataset) -> Shared:
    """All tasks coupled alike, with the penalties that were asked for."""
    assert data.tasks is not None
    return Shared(task_penalties(spec.task_penalty, data.tasks))


def coupling_of(spec: Spec, data: Dataset) -> Coupling:
    """How the tasks are coupled, as far as that is known before the search."""
    shared, S = shared_coupling(spec, data), spec.similarity
    assert data.tasks is not None
    if isinstance(S, str):
        most = TASK_SIMILARITIES[S].max_tasks if S in TASK_SIMILARITIES else None
        if most is not None and len(data.tasks) > most:
            others = [repr(name) for name, rule in TASK_SIMILARITIES.items() if rule.max_tasks is None]
            raise ValueError(
                f"similarity={S!r} compares all pairs of tasks, and {len(data.tasks)} are too many for "
                f"that: up to {most} are possible. Use {', '.join(others)} or 'shared'."
            )
        return shared
    if callable(S):
        S = S(data.rows.X, given_targets(data), data.tasks.as_array()[data.rows.task])
    return Pairwise(shared.penalty, check_similarity(S, data.tasks))


def given_targets(data: Dataset) -> Array:
    """The targets of the rows that count, as they were given."""
    targets = data.targets
    if targets.kind == "classes":
        return data.classes[data.rows.y]
    return in_units(data.rows.values, targets.unit, targets.offset, targets.flat)


def compared_targets(data: Dataset) -> Array:
    """Targets by which tasks are compared: indicators, or values about their means in units of their deviation."""
    if data.targets.kind == "classes":
        return np.eye(len(data.classes))[data.rows.y]
    Z = np.asarray(data.rows.values, dtype=float)
    Z = Z - np.average(Z, axis=0, weights=data.rows.w)
    return Z / np.maximum(np.sqrt(np.average(Z**2, axis=0, weights=data.rows.w)), np.finfo(float).tiny)


# -------------------------------------------------------------------- evaluators


def task_basis(spec: Spec, data: Dataset, rows: Rows, settings: Settings, some: bool = False) -> Basis:
    """Basis functions; a linear kernel has the inputs themselves, where these are fewer than the rows.

    ``some`` says that there are many more rows than these.
    """
    d, kernel = rows.X.shape[1], settings.kernel
    linear = isinstance(kernel, Linear) and spec.few_functions(kernel) and spec.solver != "dual"
    if linear and spec.every_row and (d < len(rows) or some or spec.solver == "arrow"):
        assert isinstance(kernel, Linear)
        return given_basis(kernel.directions(d, rows.X.dtype), settings.n_outputs)
    return spec.basis_of(rows, data.seed, settings)


def task_evaluator(spec: Spec, data: Dataset, rows: Rows, settings: Settings, coupling: Coupling) -> AnyTaskEvaluator:
    """Held-out scores of some rows, by the cheapest exact way."""
    assert data.tasks is not None
    basis = task_basis(spec, data, rows, settings)
    b = basis.n_functions
    evaluator: AnyTaskEvaluator
    if task_solver(spec.solver, spec.few_functions(settings.kernel), b, len(rows)) == "arrow":
        check_task_memory(len(data.tasks), b, settings.n_outputs, rows.X.dtype.itemsize)
        # Centres are places here: they have no weight, and do not belong to rows.
        evaluator = ArrowEvaluator(rows, replace(basis, square=False, weighted=False), settings, coupling)
    else:
        evaluator = CoupledEvaluator(rows, basis, settings, coupling)
    return (
        with_intercept_ratios(spec, data, evaluator, possible_intercept_ratios(spec, data, data.rows))
        if spec.auto_intercept_ratios
        else evaluator
    )


def with_intercept_ratios(
    spec: Spec, data: Dataset, evaluator: AnyTaskEvaluator, everywhere: tuple[float, ...]
) -> AnyTaskEvaluator:
    """The evaluator with all intercept variances that may be tried: possible for its rows, and for all rows."""
    evaluator.intercept_ratios = tuple(
        intercept_ratio
        for intercept_ratio in possible_intercept_ratios(spec, data, evaluator.rows)
        if intercept_ratio in everywhere
    )
    return evaluator.with_intercept_ratio(evaluator.intercept_ratios[len(evaluator.intercept_ratios) // 2])


def possible_intercept_ratios(spec: Spec, data: Dataset, rows: Rows) -> tuple[float, ...]:
    """Intercept variances that are possible: with free intercepts every task needs a row outside of each fold."""
    alone = _held_out_whole(rows)
    return intercept_ratios_without(
        spec, data, alone, int(np.sum(rows.task == alone[0])) if len(alone) else 0, len(rows)
    )


def intercept_ratios_without(spec: Spec, data: Dataset, alone: Array, size: int, n: int) -> tuple[float, ...]:
    """The same, where all rows of the tasks ``alone`` are one fold; the first has ``size`` of n rows."""
    intercept_ratios = spec.intercept_ratios
    if spec.cv is None or not len(alone) or np.isfinite(intercept_ratios[-1]):
        return intercept_ratios
    if len(intercept_ratios) > 1:
        return intercept_ratios[:-1]
    assert data.tasks is not None
    raise ValueError(
        "bias='task' gives every task a free intercept, but holding out a fold leaves no row of some tasks "
        f"({len(alone)} of {len(data.tasks)}), such as {data.tasks.ids[alone[0]]!r} with "
        f"{size} of {n} rows. Use bias='shrunk' or 'shared', a cv that "
        "keeps a row of each task, or leave such tasks out."
    )


def _held_out_whole(rows: Rows) -> Array:
    """Tasks all of whose rows are held out together."""
    assert rows.task is not None
    cells = np.unique(np.stack([rows.task, rows.fold]), axis=1)
    once = np.bincount(cells[0]) == 1
    if rows.split_count is not None:  # of several observations in one row, all but one stay
        once &= np.bincount(rows.task, weights=rows.split_count) <= 1
    return np.flatnonzero(once)


# ------------------------------------------------------------------------ search


def _search(spec: Spec, data: Dataset, settings: Settings, coupling: Coupling) -> SearchResult:
    """Search on some tasks or all."""
    rows, sharings = data.rows, spec.task_sharings
    sigmas, alphas = spec.data_grids(rows, settings)
    whole = task_evaluator(spec, data, rows, settings, coupling)
    if spec.cv is None:
        return SearchResult(fixed_point(data, sigmas, alphas, sharings), [], whole, whole)
    count = task_rows_to_search(whole.basis.n_functions, len(rows), spec.search_rows, whole.streams)
    some, kept = some_tasks(data, count, settings)
    if isinstance(whole, ArrowEvaluator):
        check_search_memory(len(some), whole.basis.n_functions)
    if some is rows:
        search = Search(whole)
        outcome = run_search(spec, search, sigmas, alphas, sharings)
        return SearchResult(outcome, search.seen, search.evaluator, search.evaluator)
    if _too_large_to_settle(whole):
        check_folds_within_tasks(rows, len(some))
    search, ratio = Search(task_evaluator(spec, data, some, settings, coupling.take(kept))), len(some) / len(rows)
    guess = run_search(spec, search, sigmas, _for_sample(alphas, ratio), sharings)
    whole = _with_options(whole, search.evaluator)
    start, seen = for_all_rows(guess, search.seen, alphas, ratio)
    if _too_large_to_settle(whole):
        return SearchResult(start, seen, whole, search.evaluator)
    final = Search(whole)
    found = final.settle(start, alphas, sharings)
    return SearchResult(found, seen + final.seen, whole, whole)


def _with_options(evaluator: AnyTaskEvaluator, other: Any) -> AnyTaskEvaluator:
    """The evaluator with the options that another one has."""
    evaluator = evaluator.with_intercept_ratio(other.intercept_ratio)
    return evaluator if other.weight is None else evaluator.with_linear_weight(other.weight)


def _too_large_to_settle(whole: AnyTaskEvaluator) -> bool:
    """True if all rows can be gone through once or twice, but not be searched on."""
    numbers = whole.basis.n_functions * len(whole.rows)
    return whole.streams and (numbers > SETTLE_NUMBERS or search_bytes(numbers) > available_memory())


def some_tasks(data: Dataset, count: int, settings: Settings) -> tuple[Rows, Array]:
    """Rows that the search is made on, whole tasks if possible, and which tasks these are."""
    rows = data.rows
    assert rows.task is not None
    assert data.tasks is not None
    every = np.arange(len(data.tasks))
    if count >= len(rows):
        return rows, every
    precomputed = isinstance(settings.kernel, Precomputed)
    key, names = content_hashes(rows, "sample", precomputed), task_hashes(data.tasks.ids)
    # Whole tasks, since how much to share depends on how large they are.
    index = some_units(rows.task, names, rows.y, rows.w, count, key, LEAST_TASKS)
    some = rows.take(index, precomputed)
    if len(np.unique(some.fold)) < 2 or len(some) >= len(rows):
        return rows, every
    kept, task = np.unique(rows.task[index], return_inverse=True)
    return replace(some, task=task), kept


# -------------------------------------------------------------------- similarity


def _relate(spec: Spec, data: Dataset, settings: Settings, found: SearchResult) -> SearchResult:
    """Compute the similarities of the tasks where the search ended, and choose the sharing again.

    The similarities have seen the labels of all rows, so held-out scores are a little too good from here on, and
    better for less smoothing. Hence sigma stays, and alpha may only grow.
    """
    evaluator, best = found.evaluator, found.outcome
    assert isinstance(evaluator, CoupledEvaluator)
    rule, penalty = TASK_SIMILARITIES[spec.similarity], evaluator.coupling.penalty
    S = rule.function(_compared_rows(data, evaluator, best))
    coupling: Coupling = Shared(penalty, S) if rule.covariance else Pairwise(penalty, S)
    tied = evaluator.with_coupling(coupling)
    search = Search(tied)
    _, alphas = spec.data_grids(data.rows, settings)
    larger = best.alpha * np.sqrt(10.0) ** np.arange(3) if alphas.ratio else np.array(alphas.values)
    grid = Grid(tuple(float(a) for a in larger if best.alpha <= a <= 10.5 * best.alpha))
    related = search.run(Grid((best.sigma,)), grid, replace(spec.task_sharings, every=True))
    later = [{**point, "stage": 1} for point in search.seen]
    return SearchResult(related, found.seen + later, tied, tied)


def _compared_rows(data: Dataset, evaluator: CoupledEvaluator, best: Candidate) -> ComparedRows:
    """Some rows of all tasks, with their kernel matrix at the chosen point."""
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
