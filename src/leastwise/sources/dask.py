"""Dask collections: a source of rows for fits, and lazy predictions.

Work runs on the scheduler that is in use (threads, processes, a cluster), one thread per task for matrix products.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce, wraps
from inspect import signature
from operator import add
from typing import Any, ClassVar

import numpy as np

from leastwise.sources.blocks import Block
from leastwise.sources.row_source import BlockFunction, error_context, gather
from leastwise.sources.task_reading import Move
from leastwise.utils.arrays import is_dask
from leastwise.utils.optional import frames, needed
from leastwise.utils.resources import BLAS_LIMIT

Array = np.ndarray

#: Number of sums that one task adds: small enough for a worker's memory, large enough for a shallow tree.
FAN_IN = 8

# ---------------------------------------------------------------------- source


@dataclass(frozen=True)
class DaskSource:
    """Rows held by Dask, as a :class:`~leastwise.sources.row_source.RowSource`.

    Attributes
    ----------
    blocks : list of Delayed
        Each computes a ``Block``.
    """

    blocks: list[Any]
    repeatable: ClassVar[bool] = True
    names: ClassVar[None] = None
    error: ClassVar[None] = None
    home: ClassVar[str] = "most"

    @classmethod
    def of(cls, X: Any, y: Any = None, sample_weight: Any = None, tasks: Any = None) -> DaskSource:
        """From collections with the same row chunks, or that can be rechunked to them."""
        delayed = needed("dask", "dask").delayed
        blocks = row_blocks(X)
        others = {"y": y, "sample_weight": sample_weight, "tasks": tasks}
        aligned = [aligned_blocks(name, A, X, len(blocks)) for name, A in others.items()]
        return cls([delayed(Block, pure=False)(*parts) for parts in zip(blocks, *aligned, strict=True)])

    @classmethod
    def with_targets(cls, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> DaskSource:
        """Like ``of``, for a fit, which needs targets."""
        if y is None or isinstance(y, str):
            raise ValueError(
                f"y={y!r} is not a collection of targets: give a column of the frame, such as frame['target'], or an "
                "array."
            )
        return cls.of(X, y, sample_weight, tasks)

    def delayed_results(self, function: BlockFunction, shared: Any, each: Sequence[Any] | None) -> list[Any]:
        """The result for each block, as Delayed."""
        delayed = needed("dask", "dask").delayed
        sent = delayed(shared, pure=False, traverse=False)  # once, not with every block
        do = delayed(on_worker, pure=False, traverse=False)
        own = [delayed(one, pure=False, traverse=False) for one in each or [None] * len(self.blocks)]
        pairs = enumerate(zip(self.blocks, own, strict=True))
        return [do(function, k, block, one, sent) for k, (block, one) in pairs]

    def first_look(self, function: BlockFunction, shared: Any, limit: int) -> tuple[Any, DaskSource]:
        """The sum over all blocks, and the same source: every pass reads all rows."""
        return self.total(function, shared), self

    def map(
        self, function: BlockFunction, shared: Any, each: Sequence[Any] | None = None, at_once: int | None = None
    ) -> Iterator[Any]:
        """The result for each block, in order; at most ``at_once`` results are held at a time."""
        todo = self.delayed_results(function, shared, each)
        step = at_once or len(todo)
        for a in range(0, len(todo), step):
            yield from computed(todo[a : a + step])

    def total(self, function: BlockFunction, shared: Any, each: Sequence[Any] | None = None) -> Any:
        """The sum of the results, by a tree whose shape depends on the number of blocks alone."""
        delayed, todo = needed("dask", "dask").delayed, self.delayed_results(function, shared, each)
        while len(todo) > 1:
            join = delayed(added, pure=False)
            todo = [join(todo[a : a + FAN_IN]) for a in range(0, len(todo), FAN_IN)]
        return computed(todo)[0]

    def by_task(self, plan: Sequence[Move]) -> DaskSource:
        """The same rows, with all rows of a task in one block; blocks that are not affected stay as they are."""
        delayed = needed("dask", "dask").delayed
        moves = [delayed(move, pure=False, traverse=False) for move in plan]
        send, join = delayed(moved_rows, pure=False), delayed(gather, pure=False)
        new = []
        for q, block in enumerate(self.blocks):
            come = [send(self.blocks[p], moves[p], q) for p in range(len(plan)) if p != q and q in plan[p].targets]
            new.append(join([send(block, moves[q], q), *come]) if come else send(block, moves[q], q))
        return DaskSource(new)

    def collect(self) -> Block:
        """All rows, in their order."""
        return gather(block for block in computed(self.blocks) if len(block))


def computed(todo: list[Any]) -> tuple:
    """Compute all tasks with the scheduler in use.

    Shared data is part of the graph, whatever its size: data that was scattered before would be lost with a worker.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        return needed("dask", "dask").compute(*todo)


def on_worker(function: BlockFunction, place: int, block: Block, own: Any, shared: Any) -> Any:
    """The result for one block, with one thread."""
    with BLAS_LIMIT.at(1), error_context(f"partition {place}"):
        return function(block, own, shared)


def added(parts: list[Any]) -> Any:
    """The sum, from first to last."""
    return reduce(add, parts)


def moved_rows(block: Block, move: Move, target: int) -> Block:
    """The rows of a block that move to ``target``."""
    return move.sent(block, target)


def row_blocks(A: Any) -> list[Any]:
    """The row chunks of an array, or the partitions of a frame, as Delayed.

    Dask merges partitions of files if few columns are used, and differently for X and y; so only the optimisations
    that skip unused columns are applied to frames.
    """
    if hasattr(A, "npartitions") and not hasattr(A, "chunks"):
        lean = A.simplify() if hasattr(A, "simplify") else A
        return list(lean.to_delayed(optimize_graph=False))
    if hasattr(A, "chunks") and A.ndim > 1 and len(A.chunks[1]) > 1:
        A = A.rechunk({1: -1})
    return list(np.ravel(np.array(A.to_delayed(), dtype=object)))


def aligned_blocks(name: str, A: Any, X: Any, count: int) -> list[Any]:
    """The blocks of y, weights or tasks that belong to the blocks of X."""
    if A is None or isinstance(A, str) or (np.ndim(A) == 0 and not is_dask(A)):
        return [A] * count
    sizes = X.chunks[0] if hasattr(X, "chunks") else (np.nan,)
    known = not np.isnan(sizes).any()
    if known and (not is_dask(A) or hasattr(A, "chunks")) and np.shape(A)[0] == X.shape[0]:
        A = needed("dask.array", "dask").asarray(A)
        return row_blocks(A.rechunk({0: sizes}))
    if not is_dask(A):
        raise ValueError(
            f"{name} is a {type(A).__name__} of shape {np.shape(A)}, but X is a Dask collection"
            + (f" with {X.shape[0]} rows." if known else " whose partitions have unknown numbers of rows.")
            + f" Give {name} as a Dask collection with the same partitions."
        )
    blocks = row_blocks(A)
    if len(blocks) != count:
        raise ValueError(
            f"X has {count} partitions, but {name} has {len(blocks)}: both must have the same row partitions. Take "
            "them from the same frame, as frames (.values and to_dask_array may merge partitions), or rechunk one of "
            "them."
        )
    return blocks


# ----------------------------------------------------------------- predictions


def by_partition(method: Callable) -> Callable:
    """A method ``(self, X, tasks=None, ...)`` that returns a lazy Dask array for Dask collections.

    With ``set_output(transform="pandas")``, it returns a Dask frame.
    """

    @wraps(method)
    def wrapped(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *args, **kwargs)
        given = dict(bind(self, X, *args, **kwargs).arguments)
        return _lazy(self, method.__name__, X, {k: value for k, value in given.items() if k not in ("self", "X")})

    bind = signature(method).bind

    return wrapped


def _lazy(model: Any, name: str, X: Any, kwargs: dict) -> Any:
    """The result of a method of the model for a Dask collection, not computed yet."""
    delayed, array = needed("dask", "dask").delayed, needed("dask.array", "dask")
    blocks = row_blocks(X)
    tasks = aligned_blocks("tasks", kwargs.get("tasks"), X, len(blocks))
    options = {key: value for key, value in kwargs.items() if key != "tasks"}
    empty = _empty_result(model, name, options)
    if not hasattr(empty, "iloc") and hasattr(empty, "to_pandas"):
        raise ValueError(
            f"{name}() returns frames of polars (set_output), but Dask supports frames of pandas only: use "
            "set_output(transform='pandas') or 'default'."
        )
    if isinstance(empty, list):
        raise ValueError(
            f"{name}() returns a list of arrays for labels with more than two classes, which has no Dask collection: "
            "call it for one partition at a time (map_partitions)."
        )
    sent = delayed(model, pure=False, traverse=False)
    call = delayed(_block_result, pure=False, traverse=False)
    results = [
        call(sent, name, block, t, options, empty, k) for k, (block, t) in enumerate(zip(blocks, tasks, strict=True))
    ]
    if hasattr(empty, "iloc"):
        return needed("dask.dataframe", "dask").from_delayed(results, meta=empty)
    sizes = X.chunks[0] if hasattr(X, "chunks") else (np.nan,) * len(blocks)
    shapes = [(size, *empty.shape[1:]) for size in sizes]
    parts = [array.from_delayed(a, shape, empty.dtype) for a, shape in zip(results, shapes, strict=True)]
    return array.concatenate(parts, allow_unknown_chunksizes=True)


def _block_result(model: Any, name: str, X: Any, tasks: Any, options: dict, empty: Any, place: int) -> Any:
    """The result for one block; ``empty`` if it has no rows."""
    if not len(X):
        return empty
    if tasks is not None:
        options = {**options, "tasks": tasks}
    with BLAS_LIMIT.at(1), error_context(f"partition {place}"):
        return getattr(model, name)(X, **options)


def _empty_result(model: Any, name: str, options: dict) -> Any:
    """The result for no rows, which has the columns and types of all results: call the method for a row of zeros."""
    names: Any = getattr(model, "feature_names_in_", None)
    index: Any = getattr(model, "task_index_", None)
    column = None if index is None else model.task_column
    X: Any = np.zeros((1, model.n_features_in_), dtype=float if column is None else object)
    if column is not None and isinstance(column, int | np.integer):
        X[0, column] = index.ids[0]
    if names is not None:
        X = frames("pandas").DataFrame(X, columns=names)
        if column is not None and not isinstance(column, int | np.integer):
            X[column] = index.ids[:1]
    tasks = {} if index is None or column is not None else {"tasks": index.ids[0]}
    found = getattr(model, name)(X, **options, **tasks)
    if isinstance(found, list):
        return found
    return found.iloc[:0] if hasattr(found, "iloc") else found[:0]
