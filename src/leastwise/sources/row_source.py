"""Rows that do not come as one array: one interface for blocks that are read in turn and for partitions of Dask.

A fit makes passes over a :class:`RowSource`. It passes a function of a block of rows; the source calls it for every
block, where the rows are, and returns the results (``map``) or their sum (``total``). :class:`BlockSource` reads one
block at a time in this process; a block in memory is a list of one. ``DaskSource`` (module ``dask``) runs where Dask
holds the rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from leastwise.sources.blocks import Array, Block, StreamError
from leastwise.sources.frames import stack_rows, take_rows

if TYPE_CHECKING:
    from leastwise.sources.task_reading import Move

#: Seconds between two lines of progress.
PAUSE = 2.0

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
        """True if the rows before an error should be used, and there are any."""
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
    last_report: float = 0.0

    def tell(self, total: Any) -> None:
        """Report the number of rows of a sum."""
        now = time.monotonic() - self.began
        if self.report is not None and now - self.last_report >= PAUSE:
            self.last_report = now
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
