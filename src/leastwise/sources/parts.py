"""Rows that lie apart: in parts read one after another, or in the partitions of Dask on many machines.

A fit asks three things of its parts, whatever they are: to ``map`` a function over them, to ``total`` what a function
makes of each (anything with ``+``), and to be ``regrouped`` where rows that belong together lie apart. ``LocalParts``
does it in this process, a part at a time; ``DaskParts`` where Dask has the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property, reduce
from itertools import repeat
from operator import add
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy import sparse

from leastwise.problem.tasks import factor_tasks, split_tasks
from leastwise.utils.optional import frames

Array = np.ndarray

#: What a block of rows may have, by the names that ``fit`` has for them.
NAMES = ("X", "y", "sample_weight", "tasks")


@dataclass(frozen=True)
class Piece:
    """Rows that are not looked at yet.

    Attributes
    ----------
    X : array, sparse matrix or frame
    y, sample_weight, tasks : array-like or None
    number : ndarray of int, optional
        The place of each row among all rows.
    """

    X: Any
    y: Any = None
    sample_weight: Any = None
    tasks: Any = None
    number: Array | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __sizeof__(self) -> int:  # what engines that move it go by
        return sum(size_of(getattr(self, field.name)) for field in fields(self))

    def take(self, index: Array) -> Piece:
        """Some of the rows."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: some_rows(a, index) for name, a in given.items() if a is not None})

    def numbered(self, first: int) -> Piece:
        """With the places of its rows, which follow one another."""
        return self if self.number is not None else replace(self, number=np.arange(first, first + len(self)))


def read_piece(block: Any) -> Piece:
    """A piece from what users give: a pair, all four, a mapping, or a thing with such attributes."""
    if isinstance(block, Piece):
        return block
    if isinstance(block, Mapping):
        given = dict(block)
    elif isinstance(block, Sequence) and not isinstance(block, str):
        given = dict(zip(NAMES, block, strict=False)) if len(block) in (2, 4) else {}
    elif isinstance(block, Iterable) and not hasattr(block, "X"):  # several blocks that are one part
        return joined([read_piece(one) for one in block])
    else:
        given = {name: getattr(block, name, None) for name in NAMES}
        given |= {} if getattr(block, "groups", None) is None else {"groups": block.groups}
    strange = [name for name in given if name not in NAMES]
    if strange or given.get("X") is None or not hasattr(given["X"], "shape"):
        raise ValueError(
            f"A block of rows is (X, y), (X, y, sample_weight, tasks), or a mapping with some of these names, where X"
            f"  is an array, a sparse matrix or a frame; this one is a {type(block).__name__}"
            + (f" with {strange}." if strange else ".")
        )
    return Piece(**given)


def size_of(A: Any) -> int:
    """About how many bytes rows take."""
    if sparse.issparse(A):
        return int(A.data.nbytes) * 2
    if hasattr(A, "memory_usage"):
        return int(np.sum(A.memory_usage()))
    return int(getattr(A, "nbytes", 0))


def some_rows(A: Any, index: Array) -> Any:
    """Some rows of an array, a list, a sparse matrix, a frame or a column."""
    if hasattr(A, "iloc"):
        return A.iloc[index]
    if isinstance(A, np.ndarray) or sparse.issparse(A) or hasattr(A, "to_numpy"):
        return A[index]
    return [A[i] for i in index] if isinstance(A, Sequence) and not isinstance(A, str) else A


def joined(pieces: Sequence[Piece]) -> Piece:
    """Pieces one below the other, in the order of their rows where these are numbered."""
    if len(pieces) == 1:
        whole = pieces[0]
    else:
        columns = {field.name: [getattr(piece, field.name) for piece in pieces] for field in fields(Piece)}
        whole = Piece(**{name: stacked(parts) for name, parts in columns.items()})
    if whole.number is None or np.all(np.diff(whole.number) > 0):
        return whole
    return whole.take(np.argsort(whole.number, kind="stable"))


def stacked(parts: list[Any]) -> Any:
    """Arrays, lists, sparse matrices, frames or columns one below the other; None where all are."""
    first = parts[0]
    if first is None:
        return None
    if sparse.issparse(first):
        return sparse.vstack(parts, format="csr")
    if hasattr(first, "iloc"):
        return frames("pandas").concat(parts)
    if hasattr(first, "to_numpy"):
        return frames("polars").concat(parts)
    return np.concatenate(parts) if isinstance(first, np.ndarray) else [v for part in parts for v in part]


@dataclass(frozen=True)
class Move:
    """What becomes of the rows of one part.

    Attributes
    ----------
    place : int
        Its number.
    first : int
        The number of its first row among all rows.
    home : dict
        For ids of tasks that are at home elsewhere, the number of that part.
    column : str, int or None
        The column of X that holds the task.
    """

    place: int
    first: int
    home: dict
    column: Any = None

    @cached_property
    def targets(self) -> set[int]:
        """Parts that get rows from this one."""
        return set(self.home.values())

    def sent(self, piece: Piece, target: int) -> Piece:
        """The rows of the part that are at home in another one, or stay."""
        piece = piece.numbered(self.first)
        if not self.home or not len(piece):
            return piece if target == self.place else piece.take(np.arange(0))
        ids = piece.tasks if self.column is None else split_tasks(piece.X, self.column)[1]
        names, index = factor_tasks(ids, len(piece))
        where = np.array([self.home.get(name, self.place) for name in names])
        return piece.take(np.flatnonzero(where[index] == target))


def moves(
    ids: Sequence[list], sizes: Sequence[Array], rows: Sequence[int], column: Any = None, home: str = "most"
) -> list[Move]:
    """What has to move so that every task lies in one part.

    Parameters
    ----------
    ids, sizes : for every part, the ids of its tasks and how many rows each has there
    rows : number of rows of every part
    column : str, int or None
        The column of X that holds the task.
    home : {"most", "last"}
        Where: the part that has most of its rows, the first of several; or the last that has some.
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
        away = {name: best[name][1] for name in names if name in apart and best[name][1] != p}
        found.append(Move(p, int(first[p]), away, column))
    return found


#: ``work(piece, own, shared)``: what is to be done with a part, what it alone is told, and what all are told.
Work = Callable[[Piece, Any, Any], Any]


class Parts(Protocol):
    """Parts of the rows, wherever they are."""

    #: Where all rows of a task are brought: the "last" part that has some, or the one that has "most".
    home: ClassVar[str]

    def map(self, work: Work, own: Sequence[Any] | None, shared: Any, at_once: int | None = None) -> Iterator[Any]:
        """What the work makes of each part, in order; ``at_once`` so many are held at a time at most."""
        ...

    def total(self, work: Work, own: Sequence[Any] | None, shared: Any) -> Any:
        """The sum, by ``+``, of what the work makes of the parts."""
        ...

    def regrouped(self, plan: Sequence[Move]) -> Parts:
        """Parts with rows that were moved."""
        ...

    def collect(self) -> Piece:
        """All rows, in their order."""
        ...


def guarded(work: Work, place: str, piece: Piece, own: Any, shared: Any) -> Any:
    """Do the work; an error says which part it is about."""
    with placed(place):
        return work(piece, own, shared)


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Errors about rows say where these are."""
    try:
        yield
    except TypeError as error:
        raise TypeError(f"In {place}: {error}") from error
    except ValueError as error:  # one of its kinds, such as that of a codec, may not take a message
        raise ValueError(f"In {place}: {error}") from error


@dataclass(frozen=True)
class LocalParts:
    """Parts that this process goes through one after another; one is held at a time.

    Attributes
    ----------
    open : callable
        Gives an iterator over pieces, from the first, each time it is called.
    plan : sequence of Move, optional
        What moves. A task is at home in the last part that has rows of it: its rows wait until that comes.
    """

    open: Callable[[], Iterable[Piece]]
    plan: Sequence[Move] | None = None
    #: Which of the parts that have rows of a task is its home.
    home: ClassVar[str] = "last"

    def __iter__(self) -> Iterator[Piece]:
        if self.plan is None:
            yield from self.open()
            return
        waiting: dict[int, list[Piece]] = {}
        for move, piece in zip(self.plan, self.open(), strict=True):
            for target in move.targets:
                waiting.setdefault(target, []).append(move.sent(piece, target))
            yield joined([*waiting.pop(move.place, []), move.sent(piece, move.place)])

    def map(self, work: Work, own: Sequence[Any] | None, shared: Any, at_once: int | None = None) -> Iterator[Any]:
        """What the work makes of each part, when it is asked for."""
        told = repeat(None) if own is None else own
        for k, (piece, each) in enumerate(zip(self, told, strict=own is not None)):
            yield guarded(work, f"block {k}", piece, each, shared)

    def total(self, work: Work, own: Sequence[Any] | None, shared: Any) -> Any:
        """The sum of what the work makes of the parts."""
        return reduce(add, self.map(work, own, shared))

    def regrouped(self, plan: Sequence[Move]) -> LocalParts:
        """Parts with rows that were moved."""
        return LocalParts(self.open, plan)

    def collect(self) -> Piece:
        """All rows, in their order."""
        return joined([piece for piece in self if len(piece)])


def local_parts(blocks: Any) -> LocalParts:
    """Parts from what users give: a list of blocks, or of callables that give one; or a callable for an iterator."""
    if callable(blocks):
        return LocalParts(lambda: map(read_piece, blocks()))
    once = hasattr(blocks, "__next__") or not getattr(blocks, "repeatable", True)
    if not isinstance(blocks, Iterable) or once or hasattr(blocks, "shape"):
        raise ValueError(
            f"blocks is a {type(blocks).__name__}: give a list of blocks, or a callable that returns a new iterator "
            "over them each time, as a fit goes through them several times."
        )
    return LocalParts(lambda: (read_piece(block() if callable(block) else block) for block in blocks))
