"""Statistics of rows in blocks: tasks and their sizes, classes, weights, moments; the choice of a sample of tasks.

``block_statistics`` makes the statistics of one block, ``task_statistics`` those of all blocks. No rows leave their
block. Unlike the summaries of a fit of one task, they are not added up: which tasks each block has decides where the
rows of a task are brought together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.model_selection.folds import LEAST_TASKS, choose_units, observation_counts
from leastwise.problem.kernels import Kernel, Scaled, Sum, squared_norms
from leastwise.problem.targets.classes import balanced_factors, check_class_weight, is_balanced, mapped_factors
from leastwise.problem.tasks import Tasks
from leastwise.sources.blocks import Block, Known
from leastwise.sources.frames import merged_categories, take_rows
from leastwise.sources.task_reading import Clean, Move, Rules, moves, validated
from leastwise.utils.hashing import task_hashes

Array = np.ndarray


# ------------------------------------------------------------------- one block


@dataclass(frozen=True)
class BlockStatistics:
    """Statistics of one block.

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
    categories : list or None
        The values of the columns; None for a block without rows.
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
    categories: Known | None = None

    @property
    def sizes(self) -> Array:
        """Number of rows of each task."""
        return np.bincount(self.cells[0].astype(int), weights=self.cells[2], minlength=len(self.ids)).astype(int)


def block_statistics(block: Block, own: None, rules: Rules) -> BlockStatistics:
    """The statistics of a block."""
    rows = validated(block, rules)
    if rows is None:
        return BlockStatistics(0, None, None, [], np.zeros((4, 0)), {}, None, {})
    head, lost, met = take_rows(block.X, np.arange(1)), list(rows.lost), list(rows.met)
    if not len(rows.y):
        empty = BlockStatistics(len(block), head, None, [], np.zeros((4, 0)), {}, None, {}, lost, met)
        return replace(empty, categories=rows.categories)
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
    return BlockStatistics(
        len(block), head, kind, rows.names, cells, alone, labels, moments, lost, met, sparse_, flat, rows.categories
    )


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


# ------------------------------------------------------------------- all blocks


@dataclass(frozen=True)
class TaskStatistics:
    """Statistics of all blocks.

    Attributes
    ----------
    blocks : list of BlockStatistics
    class_weight : mapping, "balanced" or None
    """

    blocks: list[BlockStatistics]
    class_weight: Any = None

    @cached_property
    def filled(self) -> list[BlockStatistics]:
        """Blocks with rows of positive weight."""
        return [block for block in self.blocks if block.dtype is not None]

    @cached_property
    def categories(self) -> Known:
        """The values of the columns."""
        return reduce(merged_categories, (block.categories for block in self.blocks if block.categories is not None))

    @cached_property
    def tasks(self) -> Tasks:
        """All tasks, sorted if possible."""
        names = in_order(dict.fromkeys(name for block in self.blocks for name in block.ids))
        given = in_order(dict.fromkeys(name for block in self.blocks for name in (*block.ids, *block.lost)))
        return Tasks(names, None if len(given) == len(names) else given)

    @cached_property
    def classes(self) -> Array:
        """All classes, in order."""
        return np.unique(np.concatenate([block.classes for block in self.filled]))

    @cached_property
    def dtype(self) -> np.dtype:
        """The dtype of the rows."""
        return np.result_type(*(block.dtype for block in self.filled))

    def unit(self, dtype: Any, bias: bool) -> tuple[Array, Array, bool]:
        """Scale and offset of regression targets, and True if they are one-dimensional, as in ``KernelRegressor``."""
        low = np.min([block.classes[0] for block in self.filled], axis=0)
        high = np.max([block.classes[1] for block in self.filled], axis=0)
        mean = np.sum([block.classes[2] for block in self.filled], axis=0) / self.n
        offset = mean if dtype == np.float32 and bias else np.zeros(len(low))
        largest = np.maximum(high - offset, offset - low)
        return 2.0 ** np.floor(np.log2(np.where(largest > 0, largest, 1.0))), offset, self.filled[0].flat

    @cached_property
    def moments(self) -> dict:
        """For each class the weight, the mean of the rows and the sum of their squared distances from it."""
        names = dict.fromkeys(name for block in self.filled for name in block.moments)
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
    def incomplete(self) -> bool:
        """True if inputs have missing values."""
        return any(np.isnan(mean).any() for _, mean, _ in self.moments.values())

    @cached_property
    def width(self) -> int:
        """Number of features."""
        return len(next(iter(self.moments.values()))[1])

    @cached_property
    def alone(self) -> list:
        """Tasks with a single observation, of which leave-one-out leaves nothing."""
        total: dict[Any, float] = {}
        for block in self.blocks:
            for name, count in block.alone.items():
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
        """As in ``BlockStatistics``, with indices among all tasks and classes, and class weights included."""
        found = []
        for block in self.filled:
            names = list(block.moments)
            place = np.searchsorted(self.classes, block.classes) if names != [None] else np.zeros(1, dtype=int)
            factor = np.array([self.factors[name] for name in names])
            task, label = self.tasks.codes(block.ids), block.cells[1].astype(int)
            found.append(
                [task[block.cells[0].astype(int)], place[label], block.cells[2], block.cells[3] * factor[label]]
            )
        return np.concatenate([np.stack(cells) for cells in found], axis=1)

    def moves(self, column: Any, home: str) -> list[Move]:
        """The moves that bring all rows of each task into one block."""
        rows = [block.rows for block in self.blocks]
        return moves([block.ids for block in self.blocks], [block.sizes for block in self.blocks], rows, column, home)

    def waiting(self, plan: list[Move]) -> int:
        """Maximum size in bytes of the rows that wait for their destination, if blocks are read in order."""
        now, most, due = 0, 0, np.zeros(len(plan), dtype=int)
        for block, move in zip(self.blocks, plan, strict=True):
            for name, size in zip(block.ids, block.sizes.tolist(), strict=True):
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
        if any(block.sparse for block in self.filled):
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


def task_statistics(found: Sequence[BlockStatistics], rules: Rules) -> TaskStatistics:
    """The statistics of all blocks; an error if there are no rows."""
    known = TaskStatistics(list(found), rules.class_weight)
    met = in_order(dict.fromkeys(name for block in known.blocks for name in block.met))
    check_class_weight(rules.class_weight, met or None)
    if not known.filled:
        rows = sum(block.rows for block in known.blocks)
        raise ValueError(f"There are {rows} rows in {len(known.blocks)} blocks, but none with a weight above 0.")
    widths = {len(next(iter(block.moments.values()))[1]) for block in known.filled}
    if len(widths) > 1:
        raise ValueError(f"The blocks have different numbers of columns: {sorted(widths)}.")
    return known


# -------------------------------------------------------------- sample of tasks


@dataclass(frozen=True)
class BlockData:
    """Data for one block alone: its tasks, their indices among all, and their penalties.

    ``chosen`` are the tasks of the block that are in the sample. ``first`` is the position of the block's first row
    among all rows, before any moved.
    """

    tasks: Tasks
    codes: Array
    penalty: Array
    chosen: Array
    first: int


def choose_tasks(known: TaskStatistics, count: int) -> tuple[Array, float, int]:
    """Indices of tasks that have about ``count`` rows together, and how many of their rows to take.

    The same tasks as in memory, whatever the blocks; see ``model_selection.folds.choose_units``.
    """
    task, label, rows, weight = known.cells
    cells = task.astype(int), label.astype(int), rows, weight
    return choose_units(cells, task_hashes(known.tasks.ids), count, LEAST_TASKS)


def data_by_block(known: TaskStatistics, plan: Sequence[Move], chosen: Array, penalty: Array) -> list[BlockData]:
    """The data for each block about the tasks that are in it after the moves."""
    ids, home, mark = known.tasks.ids, np.zeros(len(known.tasks), dtype=int), np.zeros(len(known.tasks), dtype=bool)
    mark[chosen] = True
    for p, block in enumerate(known.blocks):
        home[known.tasks.codes([name for name in block.ids if name not in plan[p].home])] = p
    order = np.argsort(home, kind="stable")
    groups = np.split(order, np.searchsorted(home[order], np.arange(1, len(plan))))
    return [
        BlockData(Tasks([ids[k] for k in codes]), codes, penalty[codes], np.flatnonzero(mark[codes]), move.first)
        for move, codes in zip(plan, groups, strict=True)
    ]
