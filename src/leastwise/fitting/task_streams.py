"""Fits of many tasks to blocks of rows or to Dask partitions.

``fit_stream`` and the fit to Dask collections are one function, :func:`fit_task_source`, with a different
:class:`~leastwise.sources.row_source.RowSource`. Its passes differ from those of
:func:`leastwise.fitting.sources.fit_source`. All rows of a task have to be in one block, so the first pass
makes statistics of the tasks of each block, and rows move. The shared system of the block-arrow problem is a sum over
tasks that depends on alpha, so each alpha that is tried on all rows takes a pass
(:mod:`leastwise.sources.task_workers`). A sample of whole tasks is searched in memory. Alpha is refined on all rows
if there are not too many. Rows that can be read only once are first sorted by task on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from leastwise.fitting.checks import check_range, check_search_memory, check_task_memory, task_penalties
from leastwise.fitting.dataset import Dataset, arrange, computed
from leastwise.fitting.direct import Fitted
from leastwise.fitting.input_search import choose_inputs
from leastwise.fitting.ridge_problem import Grids, fixed_point, for_all_rows, run_search, scaled_alphas
from leastwise.fitting.spec import Spec
from leastwise.fitting.store import store
from leastwise.fitting.task_problem import (
    TaskProblem,
    coupling_of,
    intercept_ratios_without,
    task_basis,
    with_intercept_ratios,
)
from leastwise.model_selection.folds import observation_counts
from leastwise.model_selection.grids import Grid
from leastwise.model_selection.search import Search, SearchResult
from leastwise.problem.kernels import Kernel
from leastwise.problem.targets import Targets, check_classes
from leastwise.problem.targets.classes import check_class_weight
from leastwise.problem.tasks import Tasks, split_tasks
from leastwise.solvers.arrow import ArrowEvaluator
from leastwise.solvers.evaluator import Candidate, Rows, Settings
from leastwise.solvers.work import SETTLE_NUMBERS, task_rows_to_search
from leastwise.sources.blocks import Block
from leastwise.sources.frames import has_categories
from leastwise.sources.opening import open_blocks
from leastwise.sources.row_source import BlockSource, RowSource
from leastwise.sources.spill import Spool
from leastwise.sources.task_reading import Move, Rules, UncheckedBlocks
from leastwise.sources.task_statistics import (
    TaskStatistics,
    block_statistics,
    choose_tasks,
    data_by_block,
    task_statistics,
)
from leastwise.sources.task_workers import PartitionEvaluator, Remote, Sample, WorkerConfig, gathered
from leastwise.utils.resources import available_memory, human

Array = np.ndarray


class TooManyWaitError(MemoryError):
    """Rows of tasks spread over many blocks would need too much memory until the last of these is read."""


@dataclass(frozen=True)
class SampledTasks:
    """A sample of whole tasks, and the statistics of all rows of all tasks.

    Attributes
    ----------
    data : Dataset
        The sample, treated as if it were all rows.
    remote : Remote
        All rows.
    known : TaskStatistics
        Statistics of all rows.
    kept : ndarray of int
        Numbers of the tasks in the sample.
    order : ndarray of int or None
        See ``PartitionEvaluator``.
    """

    data: Dataset
    remote: Remote
    known: TaskStatistics
    kept: Array
    order: Array | None

    @cached_property
    def among(self) -> Rows:
        """The rows of the sample with their weights relative to all rows."""
        rows, known = self.data.rows, self.known
        w = rows.w.astype(float) * (rows.mass / known.mass)
        w[np.abs(w - 1) < 1e-12] = 1
        shares = None if self.data.targets.classes is None else known.shares
        return replace(rows, w=w.astype(rows.X.dtype), mass=known.mass, shares=shares)

    def with_inputs(self, data: Dataset, settings: Settings) -> SampledTasks:
        """The same with the input transformation chosen on the sample; workers apply it to all rows."""
        remote = replace(self.remote, terms=replace(self.remote.terms, inputs=settings.inputs))
        return replace(self, data=replace(data, tasks=self.data.tasks), remote=remote)

    @property
    def alone(self) -> Dataset:
        """The sample with its own tasks only."""
        known = self.known.tasks
        return replace(self.data, tasks=replace(known.only(self.kept), given=known.given or known.ids))

    @property
    def more(self) -> float:
        """Number of rows divided by that of the sample."""
        return self.known.n / len(self.data.rows)


# ----------------------------------------------------------------------- sources


def fit_by_blocks(fit: Callable[[RowSource], Any], blocks: Any, folder: Any) -> None:
    """The blocks, or rows sorted by task on disk if too many would have to be held in memory."""
    if getattr(blocks, "repeatable", True):
        try:
            fit(BlockSource(UncheckedBlocks(blocks)))
            return
        except TooManyWaitError:
            pass
    with Spool(folder) as spool:
        listed = isinstance(blocks, Sequence)
        stream = open_blocks(lambda: iter(UncheckedBlocks(blocks))) if listed else blocks
        fit(BlockSource(UncheckedBlocks(spool.by_task(stream))))


# --------------------------------------------------------------------------- fit


def fit_task_source(model: Any, spec: Spec, source: RowSource) -> Any:
    """Fit to the rows of a source: statistics, a sample, the search, sums over all, coefficients of all tasks."""
    kernel = spec.check()
    begun = _begin(model, spec, source, kernel)
    if isinstance(begun, Block):
        return model.fit(begun.X, begun.y, begun.sample_weight, tasks=begun.tasks)
    settings = spec.settings(begun.data.kernel, begun.data.targets, begun.data.rows)
    spec, data, settings = choose_inputs(spec, begun.alone, settings, by_blocks=True)
    begun = begun.with_inputs(data, settings)
    if spec.grids(1.0, 1.0)[1].ratio:
        settings = replace(settings, seen=tuple(scaled_alphas(settings.seen, 1 / begun.more)))
    choice, solution = _learn(spec, begun, settings)
    # Predictions for unseen tasks depend on the ridge on the sum of the losses.
    chosen, evaluator = choice.outcome.alpha * begun.more, choice.evaluator
    attributes = {"n_iter_": 1} if spec.machine else {}
    fitted = Fitted(choice, evaluator.settings, evaluator.basis, solution, False, chosen, attributes)
    data = replace(begun.data, rows=begun.among, tasks=begun.known.tasks)
    return store(model, spec, data, fitted)


def _begin(model: Any, spec: Spec, source: RowSource, kernel: Kernel) -> SampledTasks | Block:
    """Statistics of all blocks, and a sample; all rows if there are few."""
    _check_parameters(spec, kernel)
    rules = _rules(model, spec, kernel)
    known = task_statistics(list(source.map(block_statistics, rules)), rules)
    if has_categories(known.categories):
        rules = replace(rules, categories=known.categories)
        known = task_statistics(list(source.map(block_statistics, rules)), rules)
    given = np.shape(spec.centers)[0] if not isinstance(spec.centers, str) else spec.n_centers
    count = task_rows_to_search(int(given or known.width), known.n, spec.search_rows, by_arrow=True)
    if count >= known.n:
        return _collected(spec, source, known)
    _set_columns(model, spec, known)
    plan = known.moves(spec.task_column, source.home)
    source = _by_task(source, known, plan)
    chosen, share, fewest = choose_tasks(known, count)
    own = data_by_block(known, plan, chosen, task_penalties(spec.task_penalty, known.tasks))
    targets = _targets(spec, known)
    terms = WorkerConfig(rules, known.dtype, targets, known.factors, known.mass, share, fewest)
    sample = gathered(source, own, terms)
    data = _sampled(spec, sample, known, chosen, kernel, terms)
    return SampledTasks(data, Remote(source, own, terms), known, chosen, None if share >= 1 else sample.order)


def _targets(spec: Spec, known: TaskStatistics) -> Targets:
    """The targets of all rows."""
    targets = spec.targets
    if targets.kind == "classes":
        check_classes(min(known.n, len(known.classes) + 1), known.classes)
        return targets.with_known(classes=known.classes)
    unit, offset, flat = known.unit(known.dtype, spec.bias is not None)
    return targets.with_known(unit=unit, offset=offset, flat=flat)


def _sampled(
    spec: Spec, sample: Sample, known: TaskStatistics, chosen: Array, kernel: Kernel, terms: WorkerConfig
) -> Dataset:
    """The sample as training data, with the classes, tasks and kernel scale of all rows."""
    rows, targets = sample.rows, terms.targets
    y = rows.y if terms.values else np.searchsorted(targets.classes, rows.y)
    some, task = Tasks([known.tasks.ids[k] for k in chosen]), np.searchsorted(chosen, rows.index)
    w, count = terms.weights(rows.y, rows.w), observation_counts(rows.w)
    data = arrange(spec, targets, rows.X, y, w, None, kernel, task=task, tasks=some, count=count, encoded=True)
    # With missing values or categories the mean of all rows is unknown, and the kernel is fitted to the sample.
    fitted = data.kernel if known.incomplete or has_categories(known.categories) else known.fitted(kernel)
    return replace(data, kernel=fitted, task=rows.index, tasks=known.tasks, categories=known.categories)


def _by_task(source: RowSource, known: TaskStatistics, plan: list[Move]) -> RowSource:
    """A source whose blocks hold whole tasks."""
    if not any(move.home for move in plan):
        return source
    need, have = known.waiting(plan), available_memory()
    if source.home == "last" and need > have:
        raise TooManyWaitError(
            f"Rows of tasks that are spread over several blocks have to be held in memory until the last of these: "
            f"about {human(need)} at the peak; {human(have)} are available."
        )
    return source.by_task(plan)


def _check_parameters(spec: Spec, kernel: Kernel) -> None:
    """Raise an error for parameters that need all rows at once."""
    if spec.solver not in ("auto", "arrow") or not spec.few_functions(kernel):
        raise ValueError(
            "Rows in blocks are fitted by solver='arrow' (or 'auto'), which needs few basis functions and equal "
            "sharing between tasks: give n_centers or centers, or kernel='linear'; and similarity='shared'."
        )
    if spec.cv is not None and not (isinstance(spec.cv, str) and spec.cv == "loo"):
        raise ValueError(
            f"cv={spec.cv!r} is not supported: rows in blocks are held out one at a time. Use cv='loo', or cv=None "
            "with numbers for all hyperparameters."
        )


def _no_check(X: Any) -> None:
    """Any finite value is allowed: rows are scaled later."""


def _rules(model: Any, spec: Spec, kernel: Kernel) -> Rules:
    bare = clone(model).set_params(random_state=None)
    weight = getattr(spec.targets, "class_weight", None)
    check = _no_check if spec.scales_inputs(kernel) else partial(check_range, kernel=kernel)
    check_class_weight(weight)
    free = np.inf in spec.intercept_ratios
    return Rules(bare, spec.targets, spec.task_column, weight, check, free, allow_nan=computed(kernel))


def _collected(spec: Spec, source: RowSource, known: TaskStatistics) -> Block:
    """All rows."""
    need, have = 2 * known.n * known.width * known.dtype.itemsize, available_memory()
    if need > have:
        raise MemoryError(
            f"search_rows={spec.search_rows!r} reads all {known.n} rows into memory, which needs about "
            f"{human(need)}; {human(have)} are available. Use search_rows='auto', or a number."
        )
    return source.collect()


def _set_columns(model: Any, spec: Spec, known: TaskStatistics) -> None:
    """Number and names of the columns."""
    head = next(block.head for block in known.blocks if block.head is not None)
    validate_data(model, head, skip_check_array=True)
    model.categories_ = known.categories
    if spec.task_column is not None:
        split_tasks(head, spec.task_column)


# ------------------------------------------------------------------------- choice


def _learn(spec: Spec, begun: SampledTasks, settings: Settings) -> tuple[SearchResult, Any]:
    """Choose on the sample, refine alpha on all rows if there are not too many, and solve."""
    coupling, hold = coupling_of(spec, begun.data), spec.cv is not None
    some = _sample_evaluator(spec, begun, settings, coupling)
    best, seen, some = _look(spec, begun, some)
    whole, alphas = _whole_evaluator(begun, some), spec.data_grids(begun.data.rows, settings)[1]
    if hold and len(alphas.values) > 1 and some.basis.n_functions * begun.known.n <= SETTLE_NUMBERS:
        final = Search(whole)
        best, seen = final.refine(best, alphas), seen + final.seen
    whole = whole.with_sharing(best.sharing)
    solution, held = whole.solved(best.sigma, best.alpha, hold)
    if held is not None:
        held = whole.without_rounding(held)
        score, calibrator = settings.objective(whole.rows, held, None)
        best = replace(best, F=held.F, score=score, calibrator=calibrator)
    return SearchResult(best, seen, whole, some.with_sharing(best.sharing), coupling), solution


def _look(spec: Spec, begun: SampledTasks, some: ArrowEvaluator) -> tuple[Candidate, list[dict], ArrowEvaluator]:
    """The best point on the sample, with the alpha for all rows; all points, and the evaluator as it ended."""
    rows, sharings = begun.data.rows, spec.task_sharings
    sigmas, alphas = spec.data_grids(rows, some.settings)
    if spec.cv is None:
        return fixed_point(replace(begun.data, rows=begun.among), Grids(sigmas, alphas, sharings)), [], some
    check_search_memory(len(rows), some.basis.n_functions)
    search = Search(some)
    # A given grid refers to all rows.
    scaled = alphas if alphas.ratio else Grid(tuple(a * begun.more for a in alphas.values))
    guess = run_search(spec, search, sigmas, scaled, sharings)
    assert isinstance(search.evaluator, ArrowEvaluator)
    return *for_all_rows(guess, search.seen, alphas, 1 / begun.more), search.evaluator


def _sample_evaluator(spec: Spec, begun: SampledTasks, settings: Settings, coupling: Any) -> ArrowEvaluator:
    """The sample, treated as if it were all rows."""
    data, known = begun.data, begun.known
    basis = replace(task_basis(spec, data, data.rows, settings, some=True), square=False, weighted=False)
    check_task_memory(len(known.tasks), basis.n_functions, settings.n_outputs, data.rows.X.dtype.itemsize)
    evaluator = ArrowEvaluator(data.rows, basis, settings, coupling.take(begun.kept))
    if not spec.auto_intercept_ratios:
        return evaluator
    alone = known.tasks.codes(known.alone)
    size = int(known.cells[2][known.cells[0] == alone[0]].sum()) if len(alone) else 0
    allowed = intercept_ratios_without(spec, data, alone, size, known.n)
    part = TaskProblem(spec, data, settings, evaluator.coupling, allowed_ratios=allowed)
    found = with_intercept_ratios(evaluator, part.intercept_ratios)
    assert isinstance(found, ArrowEvaluator)
    return found


def _whole_evaluator(begun: SampledTasks, some: ArrowEvaluator) -> PartitionEvaluator:
    """The sample within all rows: with the weights and the shared system of all rows."""
    settings, terms = some.settings, begun.remote.terms
    terms = replace(terms, centers=some.basis.centers, norm=settings.norm, n_outputs=settings.n_outputs)
    remote = replace(begun.remote, terms=terms)
    whole = PartitionEvaluator(begun.among, some.basis, settings, some.coupling, remote, begun.known.n, begun.order)
    whole.intercept_ratios = some.intercept_ratios
    return whole.with_intercept_ratio(some.intercept_ratio)
