"""Statistics of rows in parts: tasks and their sizes, classes, weights, moments; and the choice of a sample of tasks.

``facts_of`` makes the statistics of one part, ``known_of`` those of all parts. No rows leave their part.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.model_selection.folds import observation_counts
from leastwise.model_selection.subsample import LEAST_TASKS, choose_units
from leastwise.problem.kernels import Kernel, Scaled, Sum, squared_norms
from leastwise.problem.tasks import Tasks
from leastwise.problem.weights import balanced_factors, check_class_weight, is_balanced, mapped_factors
from leastwise.sources.frames import take_rows
from leastwise.sources.parts import Move, Piece, moves
from leastwise.sources.task_reading import Clean, Rules, validated
from leastwise.utils.hashing import task_hashes

Array = np.ndarray


# ------------------------------------------------------------------- one part


@dataclass(frozen=True)
class Facts:
    """Statistics of one part.

    Attributes
    ----------
    rows : int
        Number of rows, including those of zero weight; ``head`` is the first of them, as given.
    dtype : dtype, or None if no row has a positive weight
    ids : list
        Tasks of the rows with a positive weight.
    cells : ndarray of shape (4, k)
        For each task and class that occur together: their indices, the number of rows, and their weight.
    alone : dict
        The number of observations of each task.
    classes : ndarray
        The classes; for regression the minima, maxima and sums of the targets, of shape (3, outputs).
    moments : dict
        For each class the weight, the mean of the rows and the sum of their squared distances from it.
    lost : list
        Tasks that have rows here, but none of positive weight.
    met : list
        All classes that occur, also those of zero weight; empty for regression.
    """

    rows: int
    head: Any
    dtype: Any
    ids: list
    cells: Array
    alone: dict
    classes: Any
    moments: dict
    lost: Sequence = ()
    met: Sequence = ()
    sparse: bool = False
    flat: bool = True

    @property
    def sizes(self) -> Array:
        """Number of rows of each task."""
        return np.bincount(self.cells[0].astype(int), weights=self.cells[2], minlength=len(self.ids)).astype(int)


def facts_of(piece: Piece, own: None, rules: Rules) -> Facts:
    """The statistics of a part."""
    rows = validated(piece, rules)
    if rows is None:
        return Facts(0, None, None, [], np.zeros((4, 0)), {}, None, {})
    head, lost, met = take_rows(piece.X, np.arange(1)), list(rows.lost), list(rows.met)
    if not len(rows.y):
        return Facts(len(piece), head, None, [], np.zeros((4, 0)), {}, None, {}, lost, met)
    values = rules.targets.kind == "values"
    if values:
        Z = rows.y.reshape(len(rows.y), -1).astype(float)
        labels, codes = np.stack([Z.min(axis=0), Z.max(axis=0), Z.sum(axis=0)]), np.zeros(len(Z), dtype=int)
        names: list = [None]
    else:
        labels, codes = np.unique(rows.y, return_inverse=True)
        names = labels.tolist()
    moments = {name: _moments(rows.X[codes == k], rows.w[codes == k]) for k, name in enumerate(names)}
    cells, alone = _cells(rows, codes), _observations(rows) if rules.distinct else {}
    kind, sparse_, flat = rows.X.dtype, sparse.issparse(rows.X), rows.y.ndim == 1
    return Facts(len(piece), head, kind, rows.names, cells, alone, labels, moments, lost, met, sparse_, flat)


def _cells(rows: Clean, codes: Array) -> Array:
    """For each task and class that occur together: their indices, the number of rows, and their weight."""
    c = int(codes.max()) + 1
    pairs, cell, count = np.unique(rows.index * c + codes, return_inverse=True, return_counts=True)
    return np.stack([*np.divmod(pairs, c), count, np.bincount(cell, weights=rows.w)]).astype(float)


def _observations(rows: Clean) -> dict:
    """The number of observations of each task."""
    total = np.bincount(rows.index, weights=observation_counts(rows.w), minlength=len(rows.names))
    return dict(zip(rows.names, total.tolist(), strict=True))


def _moments(X: Any, w: Array) -> tuple[float, Array, float]:
    """Weight, mean, and weighted sum of squared distances from the mean."""
    total, mean = float(w.sum()), np.asarray((w @ X) / w.sum(), dtype=float).ravel()
    norms = squared_norms(X) if sparse.issparse(X) else squared_norms(X - mean)
    scatter = float(w @ norms) - (total * float(mean @ mean) if sparse.issparse(X) else 0.0)
    return total, mean, scatter


def _merged_moments(parts: Sequence[tuple[float, Array, float]]) -> tuple[float, Array, float]:
    """Moments of all rows from those of disjoint parts."""
    total = sum(part[0] for part in parts)
    mean = sum(part[0] * part[1] for part in parts) / total
    return total, np.asarray(mean), sum(p[2] + p[0] * float(np.sum((p[1] - mean) ** 2)) for p in parts)


# ------------------------------------------------------------------- all parts


@dataclass(frozen=True)
class Known:
    """Statistics of all parts.

    Attributes
    ----------
    parts : list of Facts
    class_weight : mapping, "balanced" or None
    """

    parts: list[Facts]
    class_weight: Any = None

    @cached_property
    def filled(self) -> list[Facts]:
        """Parts with rows of positive weight."""
        return [part for part in self.parts if part.dtype is not None]

    @cached_property
    def tasks(self) -> Tasks:
        """All tasks, sorted if possible."""
        names = in_order(dict.fromkeys(name for part in self.parts for name in part.ids))
        given = in_order(dict.fromkeys(name for part in self.parts for name in (*part.ids, *part.lost)))
        return Tasks(names, None if len(given) == len(names) else given)

    @cached_property
    def classes(self) -> Array:
        """All classes, in order."""
        return np.unique(np.concatenate([part.classes for part in self.filled]))

    @cached_property
    def dtype(self) -> np.dtype:
        """The dtype of the rows."""
        return np.result_type(*(part.dtype for part in self.filled))

    def unit(self, dtype: Any, bias: bool) -> tuple[Array, Array, bool]:
        """Scale and offset of regression targets, and True if they are one-dimensional, as in ``KernelRegressor``."""
        low = np.min([part.classes[0] for part in self.filled], axis=0)
        high = np.max([part.classes[1] for part in self.filled], axis=0)
        mean = np.sum([part.classes[2] for part in self.filled], axis=0) / self.n
        offset = mean if dtype == np.float32 and bias else np.zeros(len(low))
        largest = np.maximum(high - offset, offset - low)
        return 2.0 ** np.floor(np.log2(np.where(largest > 0, largest, 1.0))), offset, self.filled[0].flat

    @cached_property
    def moments(self) -> dict:
        """For each class the weight, the mean of the rows and the sum of their squared distances from it."""
        names = dict.fromkeys(name for part in self.filled for name in part.moments)
        return {name: _merged_moments([p.moments[name] for p in self.filled if name in p.moments]) for name in names}

    @cached_property
    def factors(self) -> dict:
        """The class weights."""
        if self.class_weight is None:
            return dict.fromkeys(self.moments, 1.0)
        if is_balanced(self.class_weight):
            factor = balanced_factors(np.array([moments[0] for moments in self.moments.values()]))
        else:
            factor = mapped_factors(self.class_weight, self.moments)
        return dict(zip(self.moments, factor.tolist(), strict=True))

    @cached_property
    def width(self) -> int:
        """Number of features."""
        return len(next(iter(self.moments.values()))[1])

    @cached_property
    def alone(self) -> list:
        """Tasks with a single observation, of which leave-one-out leaves nothing."""
        total: dict[Any, float] = {}
        for part in self.parts:
            for name, count in part.alone.items():
                total[name] = total.get(name, 0.0) + count
        return [name for name, count in total.items() if count <= 1]

    @cached_property
    def n(self) -> int:
        """Number of rows with a positive weight."""
        return int(self.cells[2].sum())

    @cached_property
    def mass(self) -> float:
        """Mean weight of the rows with a positive weight."""
        return sum(self.factors[name] * moments[0] for name, moments in self.moments.items()) / self.n

    @cached_property
    def shares(self) -> Array:
        """Weighted class shares."""
        total = np.array([self.factors[name] * self.moments[name][0] for name in self.classes.tolist()])
        return total / total.sum()

    @cached_property
    def cells(self) -> Array:
        """As in ``Facts``, with indices among all tasks and classes, and class weights included."""
        found = []
        for part in self.filled:
            names = list(part.moments)
            place = np.searchsorted(self.classes, part.classes) if names != [None] else np.zeros(1, dtype=int)
            factor = np.array([self.factors[name] for name in names])
            task, label = self.tasks.codes(part.ids), part.cells[1].astype(int)
            found.append(
                [task[part.cells[0].astype(int)], place[label], part.cells[2], part.cells[3] * factor[label]]
            )
        return np.concatenate([np.stack(cells) for cells in found], axis=1)

    def moves(self, column: Any, home: str) -> list[Move]:
        """The moves that bring all rows of each task into one part."""
        rows = [part.rows for part in self.parts]
        return moves([part.ids for part in self.parts], [part.sizes for part in self.parts], rows, column, home)

    def waiting(self, plan: list[Move]) -> int:
        """Maximum size in bytes of the rows that wait for their destination, if parts are read in order."""
        now, most, due = 0, 0, np.zeros(len(plan), dtype=int)
        for part, move in zip(self.parts, plan, strict=True):
            for name, size in zip(part.ids, part.sizes.tolist(), strict=True):
                if name in move.home:
                    now, due[move.home[name]] = now + size, due[move.home[name]] + size
            most, now = max(most, now), now - int(due[move.place])
        return most * (self.width + 2) * 8

    def fitted(self, kernel: Kernel) -> Kernel:
        """The kernel fitted to all rows, as by ``Kernel.fitted``."""
        if isinstance(kernel, Sum):
            return replace(kernel, parts=tuple(self.fitted(part) for part in kernel.parts))
        if not isinstance(kernel, Scaled):
            return kernel
        total, mean, scatter = _merged_moments(
            [(self.factors[k] * W, m, self.factors[k] * s) for k, (W, m, s) in self.moments.items()]
        )
        if any(part.sparse for part in self.filled):
            height = scatter / total + float(mean @ mean)
            return Scaled(None, height if height > 0 else 1.0)
        return Scaled(mean.astype(self.dtype), scatter / total if scatter > 0 else 1.0)


def in_order(names: Iterable) -> list:
    """Ids, sorted if possible."""
    names = list(names)
    try:
        return sorted(names)
    except TypeError:
        return names


def known_of(found: Sequence[Facts], rules: Rules) -> Known:
    """The statistics of all parts; an error if there are no rows."""
    known = Known(list(found), rules.class_weight)
    met = in_order(dict.fromkeys(name for part in known.parts for name in part.met))
    check_class_weight(rules.class_weight, met or None)
    if not known.filled:
        rows = sum(part.rows for part in known.parts)
        raise ValueError(f"There are {rows} rows in {len(known.parts)} parts, but none with a weight above 0.")
    widths = {len(next(iter(part.moments.values()))[1]) for part in known.filled}
    if len(widths) > 1:
        raise ValueError(f"The parts have different numbers of columns: {sorted(widths)}.")
    return known


# -------------------------------------------------------------- sample of tasks


@dataclass(frozen=True)
class Own:
    """Data for one part alone: its tasks, their indices among all, and their penalties.

    ``chosen`` are the tasks of the part that are in the sample. ``first`` is the position of the part's first row
    among all rows, before any moved.
    """

    tasks: Tasks
    codes: Array
    penalty: Array
    chosen: Array
    first: int


def choose_tasks(known: Known, count: int) -> tuple[Array, float, int]:
    """Indices of tasks that have about ``count`` rows together, and how many of their rows to take.

    The same tasks as in memory, whatever the parts; see ``model_selection.subsample.choose_units``.
    """
    task, label, rows, weight = known.cells
    cells = task.astype(int), label.astype(int), rows, weight
    return choose_units(cells, task_hashes(known.tasks.ids), count, LEAST_TASKS)


def told(known: Known, plan: Sequence[Move], chosen: Array, penalty: Array) -> list[Own]:
    """The data for each part about the tasks that are in it after the moves."""
    ids, home, mark = known.tasks.ids, np.zeros(len(known.tasks), dtype=int), np.zeros(len(known.tasks), dtype=bool)
    mark[chosen] = True
    for p, part in enumerate(known.parts):
        home[known.tasks.codes([name for name in part.ids if name not in plan[p].home])] = p
    order = np.argsort(home, kind="stable")
    groups = np.split(order, np.searchsorted(home[order], np.arange(1, len(plan))))
    return [
        Own(Tasks([ids[k] for k in codes]), codes, penalty[codes], np.flatnonzero(mark[codes]), move.first)
        for move, codes in zip(plan, groups, strict=True)
    ]
