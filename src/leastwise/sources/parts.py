"""Rows in several parts: blocks that are read one after another, or the partitions of a Dask collection.

A fit needs three operations: ``map`` a function over the parts, ``total`` the results of a function (anything with
``+``), and ``regrouped`` parts, in which all rows of a task are in one part. ``LocalParts`` runs in this process, one
part at a time; ``DaskParts`` (module ``dask``) runs where Dask holds the rows.
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

from leastwise.problem.tasks import factor_tasks, split_tasks
from leastwise.sources.frames import size_of, stack_rows, take_rows

Array = np.ndarray

#: The fields of a block, named as in ``fit``.
NAMES = ("X", "y", "sample_weight", "tasks")


@dataclass(frozen=True)
class Piece:
    """Rows before validation.

    Attributes
    ----------
    X : array, sparse matrix or frame
    y, sample_weight, tasks : array-like or None
    number : ndarray of int, optional
        The position of each row among all rows.
    """

    X: Any
    y: Any = None
    sample_weight: Any = None
    tasks: Any = None
    number: Array | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __sizeof__(self) -> int:  # used by schedulers that move it
        return sum(size_of(getattr(self, field.name)) for field in fields(self))

    def take(self, index: Array) -> Piece:
        """Some of the rows."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: take_rows(a, index) for name, a in given.items() if a is not None})

    def numbered(self, first: int) -> Piece:
        """With the positions of its rows, which are consecutive from ``first``."""
        return self if self.number is not None else replace(self, number=np.arange(first, first + len(self)))


def read_piece(block: Any) -> Piece:
    """A piece from user input: a pair, all four fields, a mapping, or an object with such attributes."""
    if isinstance(block, Piece):
        return block
    if isinstance(block, Mapping):
        given = dict(block)
    elif isinstance(block, Sequence) and not isinstance(block, str):
        given = dict(zip(NAMES, block, strict=False)) if len(block) in (2, 4) else {}
    elif isinstance(block, Iterable) and not hasattr(block, "X"):  # several blocks form one part
        return joined([read_piece(one) for one in block])
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
    return Piece(**given)


def joined(pieces: Sequence[Piece]) -> Piece:
    """Concatenate pieces, in the order of their rows if these are numbered."""
    if len(pieces) == 1:
        whole = pieces[0]
    else:
        columns = {field.name: [getattr(piece, field.name) for piece in pieces] for field in fields(Piece)}
        whole = Piece(**{name: stack_rows(parts) for name, parts in columns.items()})
    if whole.number is None or np.all(np.diff(whole.number) > 0):
        return whole
    return whole.take(np.argsort(whole.number, kind="stable"))


@dataclass(frozen=True)
class Move:
    """Where the rows of one part go.

    Attributes
    ----------
    place : int
        The number of the part.
    first : int
        The position of its first row among all rows.
    home : dict
        The destination of each task that moves: the number of another part.
    column : str, int or None
        The column of X that holds the task.
    """

    place: int
    first: int
    home: dict
    column: Any = None

    @cached_property
    def targets(self) -> set[int]:
        """Parts that receive rows from this one."""
        return set(self.home.values())

    def sent(self, piece: Piece, target: int) -> Piece:
        """The rows of the part that move to ``target``, or that stay if ``target`` is this part."""
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
    """The moves that bring all rows of each task into one part.

    Parameters
    ----------
    ids, sizes : for each part, the ids of its tasks and how many rows each has there
    rows : number of rows of each part
    column : str, int or None
        The column of X that holds the task.
    home : {"most", "last"}
        The destination of a task: the part with most of its rows (the first on ties), or the last part with any.
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


#: ``work(piece, own, shared)``: a function of a part, of data for this part alone, and of data for all parts.
Work = Callable[[Piece, Any, Any], Any]


class Parts(Protocol):
    """Parts of the rows, local or remote."""

    #: The part to which all rows of a task are moved: the "last" part with any of them, or the one with "most".
    home: ClassVar[str]

    def map(self, work: Work, own: Sequence[Any] | None, shared: Any, at_once: int | None = None) -> Iterator[Any]:
        """The result of the work on each part, in order; at most ``at_once`` results are held at a time."""
        ...

    def total(self, work: Work, own: Sequence[Any] | None, shared: Any) -> Any:
        """The sum of the results, by ``+``."""
        ...

    def regrouped(self, plan: Sequence[Move]) -> Parts:
        """The parts after rows have moved."""
        ...

    def collect(self) -> Piece:
        """All rows, in their order."""
        ...


@contextmanager
def error_context(place: str) -> Iterator[None]:
    """Prefix TypeErrors and ValueErrors with the part that they are about."""
    try:
        yield
    except TypeError as error:
        raise TypeError(f"In {place}: {error}") from error
    except ValueError as error:  # some subclasses, such as UnicodeDecodeError, do not take a message
        raise ValueError(f"In {place}: {error}") from error


@dataclass(frozen=True)
class LocalParts:
    """Parts that this process reads one after another; one is held at a time.

    Attributes
    ----------
    open : callable
        Returns a new iterator over the pieces each time it is called.
    plan : sequence of Move, optional
        The moves. A task goes to the last part that has rows of it: its rows are held until that part is read.
    """

    open: Callable[[], Iterable[Piece]]
    plan: Sequence[Move] | None = None
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
        """The result of the work on each part, computed on demand."""
        each = repeat(None) if own is None else own
        for k, (piece, one) in enumerate(zip(self, each, strict=own is not None)):
            with error_context(f"block {k}"):
                result = work(piece, one, shared)
            yield result

    def total(self, work: Work, own: Sequence[Any] | None, shared: Any) -> Any:
        """The sum of the results."""
        return reduce(add, self.map(work, own, shared))

    def regrouped(self, plan: Sequence[Move]) -> LocalParts:
        """The parts after rows have moved."""
        return LocalParts(self.open, plan)

    def collect(self) -> Piece:
        """All rows, in their order."""
        return joined([piece for piece in self if len(piece)])


def local_parts(blocks: Any) -> LocalParts:
    """Parts from user input: a list of blocks or of callables that return one, or a callable for an iterator."""
    if callable(blocks):
        return LocalParts(lambda: map(read_piece, blocks()))
    once = hasattr(blocks, "__next__") or not getattr(blocks, "repeatable", True)
    if not isinstance(blocks, Iterable) or once or hasattr(blocks, "shape"):
        raise ValueError(
            f"blocks is a {type(blocks).__name__}: give a list of blocks, or a callable that returns a new iterator "
            "over them each time, as a fit makes several passes."
        )
    return LocalParts(lambda: (read_piece(block() if callable(block) else block) for block in blocks))
