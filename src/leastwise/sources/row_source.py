"""Rows that do not come as one array: one interface for blocks that are read in turn and for partitions of Dask.

A fit makes passes over a :class:`RowSource`. It passes a function of a block of rows; the source calls it for every
block, where the rows are, and returns the results (``map``) or their sum (``total``). :class:`BlockSource` reads one
block at a time in this process; a block in memory is a list of one. ``DaskSource`` (module ``dask``) runs where Dask
holds the rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain, repeat
from typing import Any, ClassVar, Protocol

import numpy as np

from leastwise.problem.tasks import factor_tasks, split_tasks
from leastwise.sources.blocks import Array, Block, StreamError
from leastwise.sources.frames import stack_rows, take_rows

#: Seconds between two lines of progress.
PAUSE = 2.0
#: The fields of a block with tasks, named as in ``fit``.
NAMES = ("X", "y", "sample_weight", "tasks")

#: ``function(block, own, shared)``: a function of a block, of data for this block alone, and of data for all blocks.
BlockFunction = Callable[[Block, Any, Any], Any]


class RowSource(Protocol):
    """Rows in blocks, here or on workers."""

    @property
    def repeatable(self) -> bool:
        """True if more than one pass is possible."""
        ...

    @property
    def names(self) -> list[str] | None:
        """Names of the columns of X, if the source knows them; known after the first pass."""
        ...

    @property
    def error(self) -> StreamError | None:
        """The error that ended a pass early; results are then those of the rows before it."""
        ...

    @property
    def home(self) -> str:
        """The block to which all rows of a task are moved: the "last" with any of them, or the one with "most"."""
        ...

    def first_look(self, function: BlockFunction, shared: Any, limit: int) -> tuple[Any, RowSource]:
        """The sum of a function of all rows, and a source that still has all of them.

        Rows that can be read only once are read until the sum has ``limit`` rows (its attribute ``n_rows``), and
        these are held. ``own`` is the sum of the blocks before, if blocks are read in turn, else None.
        """
        ...

    def map(
        self, function: BlockFunction, shared: Any, each: Sequence[Any] | None = None, at_once: int | None = None
    ) -> Iterator[Any]:
        """The result for each block, in order; at most ``at_once`` results are held at a time."""
        ...

    def total(self, function: BlockFunction, shared: Any, each: Sequence[Any] | None = None) -> Any:
        """The sum of the results, by ``+``."""
        ...

    def by_task(self, plan: Sequence[Move]) -> RowSource:
        """The same rows, with all rows of a task in one block."""
        ...

    def collect(self) -> Block:
        """All rows, in their order."""
        ...


# ------------------------------------------------------------------------ blocks


@dataclass
class BlockSource:
    """Blocks that this process reads in turn; one is held at a time.

    Attributes
    ----------
    blocks : iterable of Block
    repeatable : bool
        False for an iterator: its first blocks are held during the first look.
    report : callable, optional
        Prints a line of progress.
    until_error : bool
        A block that cannot be read ends a pass; the rows before it are used, and the error is stored.
    plan : sequence of Move, optional
        A task goes to the last block that has rows of it: its rows are held until that block is read.
    n_rows : int, optional
        The number of rows, if it is known.
    error : StreamError or None
    """

    blocks: Iterable[Block]
    repeatable: bool = True
    report: Callable[[str], None] | None = None
    until_error: bool = False
    plan: Sequence[Move] | None = None
    n_rows: int | None = None
    error: StreamError | None = None
    home: ClassVar[str] = "last"

    @property
    def names(self) -> list[str] | None:
        """Names of the columns of X."""
        return getattr(self.blocks, "names", None)

    def __iter__(self) -> Iterator[Block]:
        if self.plan is None:
            yield from self.blocks
            return
        waiting: dict[int, list[Block]] = {}
        for move, block in zip(self.plan, self.blocks, strict=True):
            for target in move.targets:
                waiting.setdefault(target, []).append(move.sent(block, target))
            whole = gather([*waiting.pop(move.place, []), move.sent(block, move.place)])
            yield replace(whole, where=block.where)

    def first_look(self, function: BlockFunction, shared: Any, limit: int) -> tuple[Any, BlockSource]:
        """The sum over all blocks, or over the first blocks of an iterator, and a source that has all blocks."""
        stream, held, total = iter(self), list[Block](), None
        progress, broken = Progress(self.report, "first look"), None
        try:
            for block in stream:
                with error_context(block.where):
                    result = function(block, total, shared)
                    total = result if total is None else total + result
                progress.tell(total)
                if not self.repeatable:
                    held.append(block)
                    if total.n_rows >= limit:
                        break
                    held[-1] = block.owned()
        except StreamError as error:
            if not self._usable(total):
                raise
            broken = error
        if total is None:
            raise StreamError("The stream has no rows: there is nothing to learn from.")
        if self.repeatable:
            return total, replace(self, n_rows=total.n_rows, error=broken)
        return total, replace(self, blocks=chain(held, () if broken else stream), error=broken)

    def map(
        self, function: BlockFunction, shared: Any, each: Sequence[Any] | None = None, at_once: int | None = None
    ) -> Iterator[Any]:
        """The result for each block, computed on demand."""
        own = repeat(None) if each is None else each
        for block, one in zip(self, own, strict=each is not None):
            with error_context(block.where):
                result = function(block, one, shared)
            yield result

    def total(self, function: BlockFunction, shared: Any, each: Sequence[Any] | None = None) -> Any:
        """The sum of the results."""
        progress, total = Progress(self.report, "sums", self.n_rows), None
        try:
            for result in self.map(function, shared, each):
                total = result if total is None else total + result
                progress.tell(total)
        except StreamError as error:
            if not self._usable(total):
                raise
            self.error = self.error or error
        if total is None:
            raise StreamError("The stream had no rows in this pass: every pass must give the same rows.")
        return total

    def _usable(self, total: Any) -> bool:
        """True if the rows before an error are to be used, and there are any."""
        return self.until_error and total is not None and total.n_rows > 0

    def by_task(self, plan: Sequence[Move]) -> BlockSource:
        """The same rows, with all rows of a task in one block."""
        return replace(self, plan=plan)

    def collect(self) -> Block:
        """All rows, in their order."""
        return gather(block for block in self if len(block))


@dataclass
class Progress:
    """Lines on the rows that have been read, at most one every few seconds."""

    report: Callable[[str], None] | None
    what: str
    n_rows: int | None = None
    began: float = field(default_factory=time.monotonic)
    told: float = 0.0

    def tell(self, total: Any) -> None:
        """Report the number of rows of a sum."""
        now = time.monotonic() - self.began
        if self.report is not None and now - self.told >= PAUSE:
            self.told = now
            of = "" if self.n_rows is None else f" of {self.n_rows:,}"
            self.report(f"{self.what}: {total.n_rows:,}{of} rows, {now:.0f} s")


@contextmanager
def error_context(place: str) -> Iterator[None]:
    """Prefix TypeErrors and ValueErrors with their place, if it is known; StreamErrors name theirs already."""
    try:
        yield
    except StreamError:
        raise
    except (TypeError, ValueError) as error:
        if not place:
            raise
        # Some subclasses, such as UnicodeDecodeError, do not take a message.
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"In {place}: {error}") from error


def gather(blocks: Any) -> Block:
    """Concatenate blocks into one block in memory.

    Parameters
    ----------
    blocks : Blocks or iterable of Block

    Returns
    -------
    Block
    """
    listed = list(blocks)
    if not listed:
        raise ValueError("There are no blocks to concatenate.")
    whole = listed[0]
    if len(listed) > 1:
        names = [field.name for field in fields(Block) if field.name != "where"]
        whole = Block(**{name: stack_rows([getattr(block, name) for block in listed]) for name in names})
    if whole.number is None or np.all(np.diff(whole.number) > 0):
        return whole
    return take_block(whole, np.argsort(whole.number, kind="stable"))


def take_block(block: Block, index: Array) -> Block:
    """Some rows of a block."""
    given = {field.name: getattr(block, field.name) for field in fields(block) if field.name != "where"}
    return replace(block, **{name: take_rows(a, index) for name, a in given.items() if a is not None})


def numbered(block: Block, first: int) -> Block:
    """A block with the positions of its rows among all rows, which are consecutive from ``first``."""
    return block if block.number is not None else replace(block, number=np.arange(first, first + len(block)))


# -------------------------------------------------------------------------- tasks


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

    @property
    def names(self) -> list[str] | None:
        """Names of the columns of X."""
        return getattr(self._blocks, "names", None)

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
        return gather(read_task_block(one) for one in block)
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
    return Block(**{"y": None} | given, where=getattr(block, "where", ""))


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
        away = {name: best[name][1] for name in names if name in apart and best[name][1] != p}
        found.append(Move(p, int(first[p]), away, column))
    return found
