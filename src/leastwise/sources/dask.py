"""One thread for matrix products, in all tasks of a process that run at the same time.

Parts that Dask has: row chunks of its arrays, partitions of its frames.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from leastwise.sources.parts import Move, Piece, Work, guarded, joined
from leastwise.utils.optional import needed

_LOCK = threading.Lock()
#: Tasks that are running, and what gives the threads back; limits are those of the whole process.
_RUNNING: dict[str, Any] = {"tasks": 0, "limits": None}


@contextmanager
def one_thread() -> Iterator[None]:
    """Within, matrix products use one thread: Dask starts as many tasks at a time as there are threads for them.

    The first task in takes the threads, the last one out gives them back.
    """
    from threadpoolctl import threadpool_limits

    with _LOCK:
        if _RUNNING["tasks"] == 0:
            _RUNNING["limits"] = threadpool_limits(limits=1)
        _RUNNING["tasks"] += 1
    try:
        yield
    finally:
        with _LOCK:
            _RUNNING["tasks"] -= 1
            if _RUNNING["tasks"] == 0:
                _RUNNING["limits"].restore_original_limits()


Array = np.ndarray

#: So many sums are added by one task: few enough that no worker holds many, many enough that the tree is low.
FAN_IN = 8


def is_dask(A: Any) -> bool:
    """Whether this is a collection of Dask; Dask is not imported to find out."""
    return type(A).__module__.split(".")[0] in ("dask", "dask_expr") and hasattr(A, "__dask_graph__")


@dataclass(frozen=True)
class DaskParts:
    """Parts in the hands of Dask. All work goes to the scheduler that is in use: threads, processes, a cluster.

    Attributes
    ----------
    pieces : list of Delayed
        Each gives a ``Piece``.
    """

    pieces: list[Any]
    #: Which of the parts that have rows of a task is its home.
    home: ClassVar[str] = "most"

    @classmethod
    def of(cls, X: Any, y: Any = None, sample_weight: Any = None, tasks: Any = None) -> DaskParts:
        """From collections that are cut into rows alike, or can be."""
        delayed = needed("dask", "dask").delayed
        blocks = row_blocks(X)
        others = {"y": y, "sample_weight": sample_weight, "tasks": tasks}
        cut = [aligned(name, A, X, len(blocks)) for name, A in others.items()]
        return cls([delayed(Piece, pure=False)(*parts) for parts in zip(blocks, *cut, strict=True)])

    @classmethod
    def with_targets(cls, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> DaskParts:
        """The same for a fit, which needs targets."""
        if y is None or isinstance(y, str):
            raise ValueError(
                f"y={y!r} is no collection of targets: give a column of the frame, such as frame['target'], or an "
                "array."
            )
        return cls.of(X, y, sample_weight, tasks)

    def tasks(self, work: Work, own: Sequence[Any] | None, shared: Any) -> list[Any]:
        """The work on all parts, to be done."""
        delayed = needed("dask", "dask").delayed
        told = delayed(shared, pure=False, traverse=False)  # sent once, not with every part
        do = delayed(on_worker, pure=False, traverse=False)
        each = [delayed(one, pure=False, traverse=False) for one in own or [None] * len(self.pieces)]
        return [do(work, k, piece, one, told) for k, (piece, one) in enumerate(zip(self.pieces, each, strict=True))]

    def map(self, work: Work, own: Sequence[Any] | None, shared: Any, at_once: int | None = None) -> Iterator[Any]:
        """What the work makes of each part, in order; ``at_once`` so many are held at a time at most."""
        todo = self.tasks(work, own, shared)
        step = at_once or len(todo)
        for a in range(0, len(todo), step):
            yield from computed(todo[a : a + step])

    def total(self, work: Work, own: Sequence[Any] | None, shared: Any) -> Any:
        """The sum of what the work makes of the parts, by a tree whose shape depends on their number alone."""
        delayed, todo = needed("dask", "dask").delayed, self.tasks(work, own, shared)
        while len(todo) > 1:
            add = delayed(added, pure=False)
            todo = [add(todo[a : a + FAN_IN]) for a in range(0, len(todo), FAN_IN)]
        return computed(todo)[0]

    def regrouped(self, plan: Sequence[Move]) -> DaskParts:
        """Parts with rows that were moved; those that are not concerned stay as they are."""
        delayed = needed("dask", "dask").delayed
        told = [delayed(move, pure=False, traverse=False) for move in plan]
        send, join = delayed(sent, pure=False), delayed(joined, pure=False)
        new = []
        for q, piece in enumerate(self.pieces):
            come = [send(self.pieces[p], told[p], q) for p in range(len(plan)) if p != q and q in plan[p].targets]
            new.append(join([send(piece, told[q], q), *come]) if come else send(piece, told[q], q))
        return DaskParts(new)

    def collect(self) -> Piece:
        """All rows, in their order."""
        return joined([piece for piece in computed(self.pieces) if len(piece)])


def computed(todo: list[Any]) -> tuple:
    """All of it done, by the scheduler that is in use.

    What all parts are told goes with the graph, however large: data that were sent ahead would be lost with a worker.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending large graph", UserWarning)
        return needed("dask", "dask").compute(*todo)


def on_worker(work: Work, place: int, piece: Piece, own: Any, shared: Any) -> Any:
    """The work on one part, in one thread."""
    with one_thread():
        return guarded(work, f"partition {place}", piece, own, shared)


def added(parts: list[Any]) -> Any:
    """Their sum, from the first to the last."""
    sum_ = parts[0]
    for more in parts[1:]:
        sum_ = sum_ + more
    return sum_


def sent(piece: Piece, move: Move, target: int) -> Piece:
    """The rows of a part that go to another one."""
    return move.sent(piece, target)


def row_blocks(A: Any) -> list[Any]:
    """The row chunks of an array, or the partitions of a frame, as Delayed."""
    if hasattr(A, "chunks") and A.ndim > 1 and len(A.chunks[1]) > 1:
        A = A.rechunk({1: -1})
    if hasattr(A, "npartitions") and not hasattr(A, "chunks"):
        return partitions(A)
    return list(np.ravel(np.array(A.to_delayed(), dtype=object)))


def partitions(frame: Any) -> list[Any]:
    """Those of a frame, as many as it says.

    Dask joins partitions of files of which few columns are wanted, of X others than of y. So only its rules that
    leave unwanted columns unread are applied.
    """
    lean = frame.simplify() if hasattr(frame, "simplify") else frame
    return list(lean.to_delayed(optimize_graph=False))


def aligned(name: str, A: Any, X: Any, count: int) -> list[Any]:
    """The pieces of y, weights or tasks that belong to the pieces of X."""
    if A is None or isinstance(A, str) or (np.ndim(A) == 0 and not is_dask(A)):
        return [A] * count
    sizes = X.chunks[0] if hasattr(X, "chunks") else (np.nan,)
    known = not np.isnan(sizes).any()
    if known and (not is_dask(A) or hasattr(A, "chunks")) and np.shape(A)[0] == X.shape[0]:
        A = needed("dask.array", "dask").asarray(A)
        return row_blocks(A.rechunk({0: sizes}))
    if not is_dask(A):
        raise ValueError(
            f"{name} is a {type(A).__name__} of shape {np.shape(A)}, and X a collection of Dask"
            + (f" with {X.shape[0]} rows." if known else " whose partitions have rows of unknown number.")
            + f" Give {name} as a collection of Dask with the same partitions."
        )
    blocks = row_blocks(A)
    if len(blocks) != count:
        raise ValueError(
            f"X has {count} partitions, and {name} has {len(blocks)}: both must be cut into rows alike. Take them "
            "from the same frame, as frames (.values and to_dask_array may join partitions), or rechunk one of them."
        )
    return blocks
