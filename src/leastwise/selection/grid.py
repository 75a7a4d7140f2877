"""Grids of one hyper-parameter: fixed, or growing while the best value lies on the border."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

#: How many steps a grid may grow beyond each border.
GROWTH = 8


class Comparable(Protocol):
    """Something that knows whether it is better than another of its kind."""

    def better_than(self, other) -> bool:  # type: ignore[no-untyped-def]
        """Whether this one is to be preferred; None is worse than anything."""
        ...


T = TypeVar("T", bound=Comparable)


@dataclass(frozen=True)
class Grid:
    """Values to try, in rising order; ``ratio`` is the step by which it may grow, None if it may not."""

    values: tuple[float, ...]
    ratio: float | None = None

    @property
    def single(self) -> bool:
        """Whether there is nothing to choose."""
        return len(self.values) == 1 and self.ratio is None

    @property
    def most(self) -> int:
        """The largest number of values that may be looked at."""
        return len(self.values) + (GROWTH if self.ratio else 0)

    def times(self, factor: float) -> Grid:
        """The same grid in another unit."""
        return Grid(tuple(v * factor for v in self.values), self.ratio)

    def nearest(self, value: float) -> float:
        """The value of the grid that lies closest, by ratio; any value where the grid may grow."""
        if self.ratio:
            return value
        return min(self.values, key=lambda v: max(v / value, value / v))

    def neighbours(self, value: float) -> Iterator[float]:
        """The next values above and below."""
        if self.ratio:
            yield from (v for v in (value * self.ratio, value / self.ratio) if self.reaches(v))
            return
        place = self.values.index(value)
        yield from self.values[place + 1 : place + 2]
        yield from self.values[max(place - 1, 0) : place]

    def reaches(self, value: float) -> bool:
        """Whether the grid may grow as far as this."""
        far = (self.ratio or 1.0) ** (GROWTH + 0.5)
        return self.values[0] / far <= value <= self.values[-1] * far


def best_of(found: dict[float, T]) -> T:
    """The best of some outcomes."""
    first, *others = found.values()
    for outcome in others:
        first = outcome if outcome.better_than(first) else first
    return first


def explore(grid: Grid, visit: Callable[[float, T | None], T]) -> T:
    """Visit all values, then go on beyond a border for as long as the best lies on it.

    ``visit(value, last)`` is given the outcome next to it, as a place to start from.
    """
    found: dict[float, T] = {}
    last = None
    for value in grid.values:
        found[value] = last = visit(value, last)
    while grid.ratio:
        best, low, high = best_of(found), min(found), max(found)
        if best is not found[low] and best is not found[high]:
            break
        value = low / grid.ratio if best is found[low] else high * grid.ratio
        if not grid.reaches(value):
            break
        found[value] = visit(value, best)
    return best_of(found)


def walk(grid: Grid, start: float, visit: Callable[[float, T | None], T]) -> T:
    """From ``start`` go to the better neighbour until there is none."""
    known: dict[float, T] = {start: visit(start, None)}
    here = start
    while True:
        for value in grid.neighbours(here):
            if value not in known:
                known[value] = visit(value, known[here])
        best = best_of({v: known[v] for v in (here, *grid.neighbours(here))})
        if best is known[here]:
            return best
        here = next(v for v, outcome in known.items() if outcome is best)
