"""Blocks of rows with tasks: reading, validation, and the moves that bring all rows of a task into one block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_X_y

from leastwise.model_selection.folds import lowest_of_cells
from leastwise.problem.inputs import check_sparse_missing
from leastwise.problem.tasks import as_table, column_position, factor_tasks, split_tasks, without_column
from leastwise.sources.blocks import Block, Known, size_of
from leastwise.sources.frames import category_columns, code_matrix, has_categories, learn_categories
from leastwise.sources.row_source import gather, numbered, take_block
from leastwise.utils.hashing import pair_hashes, row_hashes, sample_hashes

Array = np.ndarray


#: The fields of a block, named as in ``fit``.
NAMES = ("X", "y", "sample_weight", "tasks")


class UncheckedBlocks:
    """Blocks with tasks as the user gives them; the functions of a pass validate their rows.

    Parameters
    ----------
    blocks : list of blocks, or of callables that return one; or a callable that returns an iterator
        A block is a pair (X, y), all four fields, a mapping, or an object with such attributes. X may be a frame that
        holds the task ids.
    """

    def __init__(self, blocks: Any) -> None:
        once = hasattr(blocks, "__next__") or not getattr(blocks, "repeatable", True)
        if not callable(blocks) and (not isinstance(blocks, Iterable) or once or hasattr(blocks, "shape")):
            raise ValueError(
                f"blocks is a {type(blocks).__name__}: give a list of blocks, or a callable that returns a new "
                "iterator over them each time, as a fit makes several passes."
            )
        self._blocks = blocks

    def __iter__(self) -> Iterator[Block]:
        for k, block in enumerate(self._blocks() if callable(self._blocks) else self._blocks):
            made = read_task_block(block() if callable(block) else block)
            yield made if made.where else replace(made, where=f"block {k}")


def read_task_block(block: Any) -> Block:
    """A block with tasks from user input."""
    if isinstance(block, Mapping):
        given = dict(block)
    elif isinstance(block, Sequence) and not isinstance(block, str):
        given = dict(zip(NAMES, block, strict=False)) if len(block) in (2, 4) else {}
    elif isinstance(block, Iterable) and not hasattr(block, "X"):  # several blocks form one
        return replace(gather(read_task_block(one) for one in block), where="")
    else:
        given = {name: getattr(block, name, None) for name in NAMES}
        given |= {} if getattr(block, "groups", None) is None else {"groups": block.groups}
    unseen = [name for name in given if name not in NAMES]
    if unseen or given.get("X") is None or not hasattr(given["X"], "shape"):
        raise ValueError(
            "A block of rows is (X, y), (X, y, sample_weight, tasks), or a mapping with some of these names, where X "
            f"is an array, a sparse matrix or a frame; this one is a {type(block).__name__}"
            + (f" with {unseen}." if unseen else ".")
        )
    return Block(**{"y": None} | given, where=block.where if isinstance(block, Block) else "")


# -------------------------------------------------------------------- validation


@dataclass(frozen=True)
class Rules:
    """How rows are read and checked.

    Attributes
    ----------
    model : estimator
        Without anything learned, for messages.
    targets : Targets
        Before any rows were seen.
    task_column : str, int or None
    class_weight : mapping, "balanced" or None
    check : callable, optional
        Raises an error for inputs that the model cannot use.
    distinct : bool
        True if the number of observations of each task is needed.
    allow_nan : bool
        True if inputs may be missing, or categories.
    categories : list or None
        The values of the columns; None if they are not known yet, so that those of every block are learned.
    """

    model: Any
    targets: Any
    task_column: Any = None
    class_weight: Any = None
    check: Callable[[Any], None] | None = None
    distinct: bool = False
    allow_nan: bool = False
    categories: Known | None = None

    def without_weight(self, y: Array) -> Array:
        """A mask of the rows whose class has a weight of zero."""
        if not isinstance(self.class_weight, Mapping):
            return np.zeros(len(y), dtype=bool)
        nothing = {label for label, weight in self.class_weight.items() if weight == 0}
        names, code = np.unique(y, return_inverse=True)
        return np.array([name in nothing for name in names.tolist()])[code]


@dataclass(frozen=True)
class Clean:
    """Validated rows with a positive weight.

    Attributes
    ----------
    X : ndarray or sparse matrix of shape (n, d)
    y : ndarray of shape (n,) or (n, outputs)
        As given.
    w : ndarray of shape (n,)
        Weights as given, without class weights.
    names : list
        Ids of the tasks that occur.
    index : ndarray of int of shape (n,)
        The task of each row, an index into ``names``.
    number : ndarray of int of shape (n,)
        The position of each row among all rows.
    lost : list
        Ids of tasks without a row of positive weight.
    met : list
        All classes, also those of zero weight; empty for regression targets.
    categories : list
        The values of the columns; None for numbers.
    """

    X: Any
    y: Array
    w: Array
    names: list
    index: Array
    number: Array
    lost: Sequence = ()
    met: Sequence = ()
    categories: Known | None = None

    def __sizeof__(self) -> int:
        return size_of(self.X) + self.y.nbytes + self.w.nbytes + self.index.nbytes + self.number.nbytes

    def part(self, rows: Array) -> Clean:
        """Some of the rows."""
        return Clean(self.X[rows], self.y[rows], self.w[rows], self.names, self.index[rows], self.number[rows])

    def counting(self, rows: Array) -> Clean:
        """Some of the rows, with the tasks that occur among them."""
        some = self.part(rows)
        present, index = np.unique(some.index, return_inverse=True)
        lost = [name for k, name in enumerate(self.names) if k not in set(present.tolist())]
        some = replace(some, names=[self.names[k] for k in present], index=index, lost=lost)
        return replace(some, met=self.met, categories=self.categories)


def clean(block: Block, rules: Rules) -> Clean | None:
    """The validated rows of a block with a positive weight; None if there are none."""
    rows = validated(block, rules)
    return rows if rows is not None and len(rows.y) else None


def validated(block: Block, rules: Rules) -> Clean | None:
    """The validated rows of a block with a positive weight, possibly none of them; None if the block is empty."""
    if not len(block):
        return None
    X, ids = _split_tasks(block, rules.task_column)
    categories = rules.categories or _learned(block.X, X, rules)
    if has_categories(categories):
        X = code_matrix(as_table(X), categories, [np.float64, np.float32], rules.model)
    X, y = check_X_y(
        X,
        block.y,
        dtype=[np.float64, np.float32],
        accept_sparse="csr",
        accept_large_sparse=False,
        estimator=rules.model,
        ensure_all_finite="allow-nan" if rules.allow_nan else True,
        **rules.targets.sklearn_checks,
    )
    check_sparse_missing(X)
    rules.targets.check(y)
    if rules.check is not None:
        rules.check(X)
    w = _checked_weights(block.sample_weight, len(y))
    names, index = factor_tasks(ids, len(y))
    number = numbered(block, 0).number
    assert number is not None
    met = [] if rules.targets.kind == "values" else np.unique(y).tolist()
    rows = Clean(X, y, w, names, index, number, met=met, categories=categories)
    used = np.flatnonzero((w > 0) & ~rules.without_weight(y))
    return rows if len(used) == len(y) else rows.counting(used)


def _learned(whole: Any, X: Any, rules: Rules) -> Known:
    """The values of the columns of a block; ``whole`` has the task column, if X had one."""
    places = category_columns(whole, rules.model.categories if rules.allow_nan else None)
    if rules.task_column is not None:
        places = without_column(places, column_position(as_table(whole), rules.task_column))
    width = X.shape[1] if hasattr(X, "shape") else len(X[0])
    return learn_categories(as_table(X) if places else X, places, width)


def _checked_weights(given: Any, n: int) -> Array:
    """Weights of n rows; in a block, all of them may be zero."""
    if given is None:
        return np.ones(n)
    w = check_array(given, dtype=np.float64, ensure_2d=False, input_name="sample_weight")
    if w.shape != (n,):
        raise ValueError(f"sample_weight has shape {w.shape}; it must have one weight for each of the {n} rows.")
    if (w < 0).any():
        raise ValueError(f"sample_weight has {int((w < 0).sum())} negative values; weights must be 0 or more.")
    return w


def _split_tasks(block: Block, column: Any) -> tuple[Any, Any]:
    """X without the task column, and the task ids."""
    if column is None and block.tasks is None:
        raise ValueError(
            "it is unknown which task each row belongs to: give tasks= with an id for each row, or name the column "
            "of X with task_column=."
        )
    if column is None:
        return block.X, block.tasks
    if block.tasks is not None:
        raise ValueError(f"tasks= and task_column={column!r} are both given: give one of the two.")
    return split_tasks(block.X, column)


def kept_rows(rows: Clean, code: Array, share: float, fewest: int, classes: Array | None) -> Array:
    """Indices of about this share of the rows of each task and class, at least ``fewest``, in order.

    These are the rows that a fit in memory takes (``model_selection.folds``): the choice depends on the content
    of the rows, not on their position. ``classes`` is None for regression targets.
    """
    n = len(code)
    if share >= 1:
        return np.arange(n)
    label = np.zeros(n, dtype=int) if classes is None else np.searchsorted(classes, rows.y)
    cell = np.unique(code * (int(label.max(initial=0)) + 1) + label, return_inverse=True)[1]
    ties = [*rows.y.reshape(n, -1).T, -rows.w] if classes is None else [-rows.w]
    x = pair_hashes(row_hashes(rows.X, single=True), label.astype(np.uint64))
    return lowest_of_cells(cell, share, fewest, sample_hashes(x, [code], ties, "sample"))


# ------------------------------------------------------------------------- moves


@dataclass(frozen=True)
class Move:
    """Where the rows of one block go.

    Attributes
    ----------
    place : int
        The number of the block.
    first : int
        The position of its first row among all rows.
    home : dict
        The destination of each task that moves: the number of another block.
    column : str, int or None
        The column of X that holds the task.
    """

    place: int
    first: int
    home: dict
    column: Any = None

    @cached_property
    def targets(self) -> set[int]:
        """Blocks that receive rows from this one."""
        return set(self.home.values())

    def sent(self, block: Block, target: int) -> Block:
        """The rows of the block that move to ``target``, or that stay if ``target`` is this block."""
        block = numbered(block, self.first)
        if not self.home or not len(block):
            return block if target == self.place else take_block(block, np.arange(0))
        ids = block.tasks if self.column is None else split_tasks(block.X, self.column)[1]
        names, index = factor_tasks(ids, len(block))
        where = np.array([self.home.get(name, self.place) for name in names])
        return take_block(block, np.flatnonzero(where[index] == target))


def moves(
    ids: Sequence[list], sizes: Sequence[Array], rows: Sequence[int], column: Any = None, home: str = "most"
) -> list[Move]:
    """The moves that bring all rows of each task into one block.

    Parameters
    ----------
    ids, sizes : for each block, the ids of its tasks and how many rows each has there
    rows : number of rows of each block
    column : str, int or None
        The column of X that holds the task.
    home : {"most", "last"}
        The destination of a task: the block with most of its rows (the first on ties), or the last block with any.
    """
    best: dict[Any, tuple[int, int]] = {}
    apart: set[Any] = set()
    for p, (names, counts) in enumerate(zip(ids, sizes, strict=True)):
        for name, count in zip(names, counts.tolist(), strict=True):
            known = best.get(name)
            if known is not None:
                apart.add(name)
            if known is None or home == "last" or count > known[0]:
                best[name] = count, p
    first = np.cumsum([0, *rows])
    found = []
    for p, names in enumerate(ids):
        moved = {name: best[name][1] for name in names if name in apart and best[name][1] != p}
        found.append(Move(p, int(first[p]), moved, column))
    return found
