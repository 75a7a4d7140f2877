"""Parts of the rows, and those that this process goes through one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import repeat
from operator import add
from typing import Any, ClassVar, Protocol

from leastwise.distributed.pieces import Piece, joined, read_piece
from leastwise.distributed.regrouping import Move

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
