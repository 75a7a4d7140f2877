"""Fits of many tasks from parts of the rows: streams of blocks, and partitions of Dask."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from leastwise.estimators._checks import check_classes, check_range, check_search_memory, check_task_memory
from leastwise.estimators._model import Training, all_or_nothing
from leastwise.estimators._sampled import Done, SampledTasks
from leastwise.estimators._task_blocks import TooManyWaitError, as_blocks, by_blocks, check_named
from leastwise.estimators._task_search import TaskSearch, for_all_rows
from leastwise.estimators._tuned import Found
from leastwise.model_selection.folds import observation_counts
from leastwise.model_selection.grid import Grid, Levels
from leastwise.model_selection.search import Search
from leastwise.problem.coupling import Coupling
from leastwise.problem.kernels import Kernel
from leastwise.problem.tasks import Tasks, split_tasks
from leastwise.problem.weights import check_class_weight
from leastwise.solvers.arrow_evaluator import ArrowTrial
from leastwise.solvers.evaluator import Outcome, Settings
from leastwise.solvers.search_rows import SETTLE_NUMBERS, task_rows_to_search
from leastwise.sources.dask import DaskParts
from leastwise.sources.parts import Move, Parts, Piece
from leastwise.sources.task_reading import Rules
from leastwise.sources.task_statistics import Known, choose_tasks, facts_of, known_of, told
from leastwise.sources.task_workers import PartsTrial, Remote, Sample, Terms, gathered
from leastwise.utils.memory import available_memory, human

Array = np.ndarray


class FromParts(TaskSearch):
    """Mixin for models of many tasks that can be had from parts of the rows."""

    @all_or_nothing
    def fit_stream(
        self,
        source: Any,
        y: Any = None,
        *,
        target: Any = None,
        features: Any = None,
        weight: Any = None,
        task: Any = None,
        block_rows: int | None = None,
        folder: Any = None,
    ) -> Any:
        """Fit to rows that come in blocks, and need not fit into memory together.

        Parameters
        ----------
        source : path, list of paths, array, memmap, frame, iterator, callable, or list of blocks
            Where rows come from, see :func:`leastwise.sources.open_blocks`. Blocks in a list are mappings with the
            names X, y, tasks and sample_weight, things with such attributes, ``(X, y, sample_weight, tasks)``,
            callables that return one of these, or parts of :meth:`leastwise.sources.Spool.by_task`. They are gone
            through four times or more.
        y : array, optional
            Targets, where ``source`` is an array.
        target, features, weight, task : str, list of str or array, optional
            Columns of files and frames; weights and tasks as arrays, where ``source`` is one.
        block_rows : int, optional
            Rows of a block, where that is ours to choose.
        folder : path, optional
            Where rows are kept, sorted by task, if they can be read once only, or if too many of them would wait in
            memory: rows of a task wait for the last block that has some. By default where temporary files are.

        Returns
        -------
        self
            Held-out attributes (``heldout_scores_``, ``heldout_rows_``) are those of the sample that parameters were
            chosen on; see :doc:`/distributed`.
        """
        names = {"target": target, "features": features, "weight": weight, "task": task}
        check_named(source, y, names, self.task_column)
        blocks = as_blocks(source, y, names, block_rows)
        by_blocks(self._fit_parts, blocks, folder)
        known = getattr(blocks, "names", None)
        if known is not None and self.task_column is None:
            self.feature_names_in_ = np.array(known, dtype=object)
        return self

    def _fit_dask(self, X: Any, y: Any, sample_weight: Any, groups: Any, tasks: Any) -> Any:
        """Fit from collections of Dask."""
        if groups is not None:
            raise ValueError("groups= is not possible with rows that Dask has: they are held out one by one.")
        return self._fit_parts(DaskParts.with_targets(X, y, sample_weight, tasks))

    def _fit_parts(self, parts: Parts) -> Any:
        raise NotImplementedError

    # ----------------------------------------------------------------- begin

    def _begin(self, raw: Parts, kernel: Kernel) -> SampledTasks | Piece:
        """Look at all parts, and gather a sample; all rows where they are so few that the sample would be all."""
        self._check_parts(kernel)
        rules = self._rules(kernel)
        known = known_of(list(raw.map(facts_of, None, rules)), rules)
        count = self._count(known)
        if count >= known.n:
            return self._collected(raw, known)
        self._meet_columns(known)
        plan = known.moves(self.task_column, raw.home)
        parts = self._regrouped(raw, known, plan)
        chosen, share, fewest = choose_tasks(known, count)
        self.task_index_ = known.tasks
        own = told(known, plan, chosen, self._shared().penalty)
        terms = Terms(rules, known.dtype, self._known_targets(known), known.factors, known.mass, share, fewest)
        sample = gathered(parts, own, terms)
        data = self._sampled(sample, known, chosen, kernel, terms)
        return SampledTasks(data, Remote(parts, own, terms), known, chosen, None if share >= 1 else sample.order)

    def _sampled(self, sample: Sample, known: Known, chosen: Array, kernel: Kernel, terms: Terms) -> Training:
        """The sample as if it were all, but for what is known of all rows: classes, tasks, the kernel's scale."""
        rows = sample.rows
        y = rows.y if terms.values else np.searchsorted(terms.targets, rows.y)
        self.task_index_ = Tasks([known.tasks.ids[k] for k in chosen])
        task, w = np.searchsorted(chosen, rows.index), terms.weights(rows.y, rows.w)
        count = observation_counts(rows.w)
        data = self._arranged(rows.X, y, w, None, kernel, task, terms.targets, count)
        self.task_index_ = known.tasks
        self.tasks_ = known.tasks.as_array()
        return replace(data, kernel=known.fitted(kernel), task=rows.index)

    def _regrouped(self, raw: Parts, known: Known, plan: list[Move]) -> Parts:
        """Parts that hold whole tasks."""
        if not any(move.home for move in plan):
            return raw
        need, have = known.waiting(plan), available_memory()
        if raw.home == "last" and need > have:
            raise TooManyWaitError(
                f"Rows of tasks that lie in several blocks wait for the last one: that takes about {human(need)} at "
                f"its peak; {human(have)} are available."
            )
        return raw.regrouped(plan)

    def _check_parts(self, kernel: Kernel) -> None:
        """Refuse what takes all rows at once."""
        if self.solver not in ("auto", "arrow") or not self._few_functions(kernel):
            raise ValueError(
                "Rows in parts are fitted by solver='arrow' (or 'auto'), which needs few basis functions and tasks "
                "that all share alike: give n_centers or centers, or kernel='linear'; and similarity='shared'."
            )
        if self.cv is not None and not (isinstance(self.cv, str) and self.cv == "loo"):
            raise ValueError(
                f"cv={self.cv!r}: rows in parts are held out one by one. Use cv='loo', or cv=None with numbers for "
                "all parameters."
            )

    def _rules(self, kernel: Kernel) -> Rules:
        bare = clone(self).set_params(random_state=None)
        weight, check = getattr(self, "class_weight", None), partial(check_range, kernel=kernel)
        check_class_weight(weight)
        return Rules(bare, self.task_column, weight, check, np.inf in self._all_spreads())

    def _all_spreads(self) -> tuple[float, ...]:
        """Spreads of the tasks' intercepts that are asked for."""
        return ()

    def _count(self, known: Known) -> int:
        """Rows that the search is made on."""
        given = np.shape(self.centers)[0] if not isinstance(self.centers, str) else self.n_centers
        return task_rows_to_search(int(given or known.width), known.n, self.search_rows, by_arrow=True)

    def _collected(self, raw: Parts, known: Known) -> Piece:
        """All rows."""
        need, have = 2 * known.n * known.width * known.dtype.itemsize, available_memory()
        if need > have:
            raise MemoryError(
                f"search_rows={self.search_rows!r} takes all {known.n} rows into memory, which needs about "
                f"{human(need)}; {human(have)} are available. Use search_rows='auto', or a number."
            )
        return raw.collect()

    def _meet_columns(self, known: Known) -> None:
        """Number and names of the columns."""
        head = next(part.head for part in known.parts if part.head is not None)
        validate_data(self, head, skip_check_array=True)
        if self.task_column is not None:
            split_tasks(head, self.task_column)

    def _known_targets(self, known: Known) -> Any:
        """What is known of the targets of all rows."""
        check_classes(np.zeros(min(known.n, len(known.classes) + 1), dtype=int), known.classes)
        return known.classes

    # ---------------------------------------------------------------- choose

    def _learn(self, begun: SampledTasks, settings: Settings, sharings: Levels) -> Done:
        """Choose on the sample, refine alpha on all rows where they are not too many, solve."""
        coupling, hold = self._coupling(begun.data), self.cv is not None
        best, seen, some = self._look(begun, self._sample_trial(begun, settings, coupling), sharings)
        whole, alphas = self._whole_trial(begun, some), self._data_grids(begun.data.rows, settings)[1]
        if hold and len(alphas.values) > 1 and some.basis.n_functions * begun.known.n <= SETTLE_NUMBERS:
            final = Search(whole)
            best, seen = final.refine(best, alphas), seen + final.seen
        whole = whole.tied(best.sharing)
        solution, held = whole.solved(best.sigma, best.alpha, hold)
        if held is not None:
            held = whole.settled(held)
            score, calibrator = settings.judge(whole.rows, held, None)
            best = replace(best, F=held.F, score=score, calibrator=calibrator)
        return Done(Found(best, seen, whole, some.tied(best.sharing), coupling), solution)

    def _look(
        self, begun: SampledTasks, some: ArrowTrial, sharings: Levels
    ) -> tuple[Outcome, list[dict], ArrowTrial]:
        """The best point on the sample, with the alpha for all rows; all points, and the trial as it ended."""
        rows = begun.data.rows
        sigmas, alphas = self._data_grids(rows, some.settings)
        if self.cv is None:
            data = replace(begun.data, rows=begun.among)
            return self._fixed(data, sigmas.values[0], alphas.values[0], sharings.values[0]), [], some
        check_search_memory(len(rows), some.basis.n_functions)
        search = Search(some)
        # A grid that was given is one for all rows.
        scaled = alphas if alphas.ratio else Grid(tuple(a * begun.more for a in alphas.values))
        guess = self._run(search, sigmas, scaled, sharings)
        assert isinstance(search.trial, ArrowTrial)
        return *for_all_rows(guess, search.seen, alphas, 1 / begun.more), search.trial

    def _sample_trial(self, begun: SampledTasks, settings: Settings, coupling: Coupling) -> ArrowTrial:
        """The sample as if it were all."""
        data = begun.data
        basis = replace(self._task_basis(data, data.rows, settings, some=True), square=False, weighted=False)
        check_task_memory(len(self.tasks_), basis.n_functions, settings.n_outputs, data.rows.X.dtype.itemsize)
        return ArrowTrial(data.rows, basis, settings, coupling.take(begun.kept))

    def _whole_trial(self, begun: SampledTasks, some: ArrowTrial) -> PartsTrial:
        """The sample among all rows: with the weights and the shared system that it has there."""
        settings, terms = some.settings, begun.remote.terms
        terms = replace(terms, centers=some.basis.centers, norm=settings.norm, n_outputs=settings.n_outputs)
        remote = replace(begun.remote, terms=terms)
        whole = PartsTrial(begun.among, some.basis, settings, some.coupling, remote, begun.known.n, begun.order)
        whole.spreads = some.spreads
        return whole.spreading(some.spread)
