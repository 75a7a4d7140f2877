"""Fits of many tasks from parts of the rows: streams of blocks, and partitions of Dask."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import validate_data

from leastwise.coupling import Coupling
from leastwise.distributed import DaskParts, Parts, Piece, local_parts
from leastwise.estimators._checks import check_classes, check_range, check_search_memory, check_task_memory
from leastwise.estimators._model import Training, all_or_nothing
from leastwise.estimators._task_search import TaskSearch, for_all_rows
from leastwise.estimators._tuned import Found
from leastwise.kernels import Kernel
from leastwise.memory import available_memory, human
from leastwise.probability import Sample as Scored
from leastwise.selection.arrow import ArrowTrial
from leastwise.selection.grid import Grid, Levels
from leastwise.selection.plan import SETTLE_NUMBERS, task_rows_to_search
from leastwise.selection.search import Search
from leastwise.selection.trial import Rows, Settings
from leastwise.task_fitting import TaskSolution
from leastwise.task_parts import Known, Own, PartsTrial, Remote, Rules, Terms, choose_tasks, facts, gathered, known_of
from leastwise.tasks import Tasks, split_tasks

Array = np.ndarray


@dataclass(frozen=True)
class SampledRows(Rows):
    """Rows of a sample; the class shares are those of all rows."""

    shares: Array | None = None

    def class_shares(self, n_classes: int) -> Array:
        """Weighted class shares of all rows."""
        assert self.shares is not None
        return self.shares

    def sample(self, F: Array) -> Scored:
        """The rows with their held-out scores, for calibrators and scorers."""
        found = super().sample(F)
        return found if self.shares is None else replace(found, prior=self.shares.astype(F.dtype))


@dataclass(frozen=True)
class Begun:
    """A fit whose sample is at hand.

    Attributes
    ----------
    data : Training
        The sample, as if it were all.
    remote : Remote
        All rows.
    known : Known
    kept : ndarray of int
        Numbers of the tasks in the sample.
    order : ndarray of int or None
        See ``PartsTrial``.
    """

    data: Training
    remote: Remote
    known: Known
    kept: Array
    order: Array | None

    @cached_property
    def among(self) -> SampledRows:
        """The rows of the sample with the weights that they have among all."""
        rows, known = self.data.rows, self.known
        given = {name: getattr(rows, name) for name in ("X", "y", "fold", "copy", "group", "task", "values")}
        w = rows.w.astype(float) * (rows.mass / known.mass)
        w[np.abs(w - 1) < 1e-12] = 1
        shares = None if self.data.targets.classes is None else known.shares
        return SampledRows(**given, w=w.astype(rows.X.dtype), mass=known.mass, shares=shares)

    @property
    def more(self) -> float:
        """How many rows there are for each of the sample."""
        return self.known.n / len(self.data.rows)


@dataclass(frozen=True)
class Done:
    """A model of all rows, found on a sample: held-out scores are those of the sample's rows."""

    found: Found
    solution: TaskSolution


class FromParts(TaskSearch):
    """Mixin for models of many tasks that can be had from parts of the rows."""

    @all_or_nothing
    def fit_stream(self, blocks: Any) -> Any:
        """Fit from blocks of rows that need not fit into memory together.

        Parameters
        ----------
        blocks : list, or callable that returns an iterator
            Blocks of rows: mappings with the names X, y, tasks and sample_weight of ``fit``, things with such
            attributes, ``(X, y, sample_weight, tasks)``, or ``(X, y)`` with ``task_column=``; in a list also
            callables that return one. They are gone through four times or more. Rows of a task that lie in several
            blocks wait in memory for its last block: sort rows by task where there are many of them.

        Returns
        -------
        self
            What is kept of held-out rows (``heldout_scores_``, ``heldout_rows_``) is that of the sample that
            parameters were chosen on; see :doc:`/distributed`.
        """
        return self._fit_parts(local_parts(blocks))

    def _fit_dask(self, X: Any, y: Any, sample_weight: Any, groups: Any, tasks: Any) -> Any:
        """Fit from collections of Dask."""
        if groups is not None:
            raise ValueError("groups= is not possible with rows that Dask has: they are held out one by one.")
        return self._fit_parts(DaskParts.of(X, y, sample_weight, tasks))

    def _fit_parts(self, parts: Parts) -> Any:
        raise NotImplementedError

    # ----------------------------------------------------------------- begin

    def _begin(self, raw: Parts, kernel: Kernel) -> Begun | Piece:
        """Look at all parts, and gather a sample; all rows where they are so few that the sample would be all."""
        self._check_parts(kernel)
        rules = self._rules(kernel)
        known = known_of(list(raw.map(facts, None, rules)), rules)
        count, share = self._count(known, kernel), 1.0
        if count >= known.n:
            return self._collected(raw, known)
        self._meet_columns(known)
        plan = known.moves(self.task_column, raw.home)
        parts = raw.regrouped(plan) if any(move.home for move in plan) else raw
        chosen, share = choose_tasks(known, count)
        own = self._own(known, plan, chosen)
        terms = Terms(rules, known.dtype, self._known_targets(known), known.factors, known.mass, share)
        sample = gathered(parts, own, terms)
        w, y = terms.weights(sample.rows.y, sample.rows.w), sample.rows.y
        y = y if terms.values else np.searchsorted(terms.targets, y)
        task = np.searchsorted(chosen, sample.rows.index)
        self.task_index_ = Tasks([known.tasks.ids[k] for k in chosen])
        data = self._arranged(sample.rows.X, y, w, None, kernel, task, terms.targets)
        data = replace(data, kernel=known.fitted(kernel), task=sample.rows.index)
        self.task_index_ = known.tasks
        self.tasks_ = known.tasks.as_array()
        return Begun(data, Remote(parts, own, terms), known, chosen, None if share >= 1 else sample.order)

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
        return Rules(bare, self.task_column, weight, check, np.inf in self._all_spreads())

    def _all_spreads(self) -> tuple[float, ...]:
        """Spreads of the tasks' intercepts that are asked for."""
        return ()

    def _count(self, known: Known, kernel: Kernel) -> int:
        """Rows that the search is made on."""
        d = len(next(iter(known.moments.values()))[1])
        given = np.shape(self.centers)[0] if not isinstance(self.centers, str) else self.n_centers
        return task_rows_to_search(int(given or d), known.n, self.search_rows, by_arrow=True)

    def _collected(self, raw: Parts, known: Known) -> Piece:
        """All rows."""
        d = len(next(iter(known.moments.values()))[1])
        need, have = 2 * known.n * d * known.dtype.itemsize, available_memory()
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
        check_classes(np.zeros(known.n, dtype=int), known.classes)
        return known.classes

    def _own(self, known: Known, plan: list, chosen: Array) -> list[Own]:
        """What each part is told of its tasks."""
        self.task_index_ = known.tasks
        penalty, mark = self._shared().penalty, np.zeros(len(known.tasks), dtype=bool)
        mark[chosen] = True
        home = np.zeros(len(known.tasks), dtype=int)
        for p, facts_ in enumerate(known.parts):
            codes = known.tasks.codes([name for name in facts_.ids if name not in plan[p].home])
            home[codes] = p
        return [
            Own(Tasks([known.tasks.ids[k] for k in codes]), codes, penalty[codes], np.flatnonzero(mark[codes]))
            for codes in _grouped(home, len(known.parts))
        ]

    # ---------------------------------------------------------------- choose

    def _learn(self, begun: Begun, settings: Settings, sharings: Levels) -> Done:
        """Choose on the sample, settle on all rows where they are not too many, solve."""
        data, coupling = begun.data, self._coupling(begun.data)
        some, hold = self._sample_trial(begun, settings, coupling), self.cv is not None
        sigmas, alphas = self._data_grids(data.rows, settings)
        if hold:
            check_search_memory(len(data.rows), some.basis.n_functions)
            search = Search(some)
            # A grid that was given is one for all rows.
            scaled = alphas if alphas.ratio else Grid(tuple(a * begun.more for a in alphas.values))
            guess = self._run(search, sigmas, scaled, sharings)
            best, seen = for_all_rows(guess, search.seen, alphas, 1 / begun.more)
            some = search.trial
        else:
            data = replace(data, rows=begun.among)
            best, seen = self._fixed(data, sigmas.values[0], alphas.values[0], sharings.values[0]), []
        whole = self._whole_trial(begun, some)
        if (
            hold
            and some.basis.n_functions * begun.known.n <= SETTLE_NUMBERS
            and len(alphas.values) + len(sharings.values) > 2
        ):
            final = Search(whole)
            best, seen = final.settle(best, alphas, sharings), seen + final.seen
        whole = whole.tied(best.sharing)
        solution, held = whole.solved(best.sigma, best.alpha, hold)
        if held is not None:
            held = whole.centred_far(whole.settled(held))
            score, calibrator = settings.judge(whole.rows, held, None)
            best = replace(best, F=held.F, score=score, calibrator=calibrator)
        return Done(Found(best, seen, whole, some.tied(best.sharing), coupling), solution)

    def _sample_trial(self, begun: Begun, settings: Settings, coupling: Coupling) -> ArrowTrial:
        """The sample as if it were all."""
        data = begun.data
        basis = replace(self._task_basis(data, data.rows, settings), square=False, weighted=False)
        check_task_memory(len(self.tasks_), basis.n_functions, settings.n_outputs, data.rows.X.dtype.itemsize)
        return ArrowTrial(data.rows, basis, settings, coupling.take(begun.kept))

    def _whole_trial(self, begun: Begun, some: ArrowTrial) -> PartsTrial:
        """The sample among all rows: with the weights and the shared system that it has there."""
        settings, terms = some.settings, begun.remote.terms
        terms = replace(terms, centers=some.basis.centers, norm=settings.norm, n_outputs=settings.n_outputs)
        remote = replace(begun.remote, terms=terms)
        whole = PartsTrial(begun.among, some.basis, settings, some.coupling, remote, begun.known.n, begun.order)
        whole.spreads = some.spreads
        return whole.spreading(some.spread)


def _grouped(home: Array, count: int) -> list[Array]:
    """The numbers of the tasks of every part, in order."""
    order = np.argsort(home, kind="stable")
    return np.split(order, np.searchsorted(home[order], np.arange(1, count)))
