"""Parts of the rows, and those that this process goes through one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from leastwise.distributed.pieces import Piece, joined
from leastwise.distributed.regrouping import Move

#: ``work(piece, own, shared)``: what is to be done with a part, what it alone is told, and what all are told.
Work = Callable[[Piece, Any, Any], Any]


class Parts(Protocol):
    """Parts of the rows, wherever they are."""

    def __len__(self) -> int:
        """How many there are."""
        ...

    def map(self, work: Work, own: Sequence[Any], shared: Any, at_once: int | None = None) -> Iterator[Any]:
        """What the work makes of each part, in order; ``at_once`` so many are held at a time at most."""
        ...

    def total(self, work: Work, own: Sequence[Any], shared: Any) -> Any:
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
    try:
        return work(piece, own, shared)
    except (ValueError, TypeError) as error:
        raise type(error)(f"In {place}: {error}") from error


@dataclass(frozen=True)
class LocalParts:
    """Parts that are read again whenever they are needed; one is held at a time.

    Attributes
    ----------
    readers : tuple of callables
        Each gives a ``Piece``.
    what : str
        What errors call a part.
    """

    readers: tuple[Callable[[], Piece], ...]
    what: str = "block"

    def __len__(self) -> int:
        return len(self.readers)

    def map(self, work: Work, own: Sequence[Any], shared: Any, at_once: int | None = None) -> Iterator[Any]:
        """What the work makes of each part, when it is asked for."""
        for k, (read, told) in enumerate(zip(self.readers, own, strict=True)):
            yield guarded(work, f"{self.what} {k}", read(), told, shared)

    def total(self, work: Work, own: Sequence[Any], shared: Any) -> Any:
        """The sum of what the work makes of the parts."""
        results = self.map(work, own, shared)
        sum_ = next(results)
        for more in results:
            sum_ = sum_ + more
        return sum_

    def regrouped(self, plan: Sequence[Move]) -> LocalParts:
        """Parts with rows that were moved: whatever has rows for a part is read for it again."""

        def reader(q: int) -> Callable[[], Piece]:
            sources = [p for p, move in enumerate(plan) if p == q or q in move.targets]
            return lambda: joined([plan[p].sent(self.readers[p](), q) for p in sources])

        return LocalParts(tuple(reader(q) for q in range(len(self))), self.what)

    def collect(self) -> Piece:
        """All rows, in their order."""
        return joined([piece for piece in (read() for read in self.readers) if len(piece)])
