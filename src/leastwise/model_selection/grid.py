"""Grids of one hyper-parameter: fixed, or growing while the best value lies on the border."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

#: How many steps a grid may grow beyond each border.
GROWTH = 8


class Comparable(Protocol):
    """Something that knows whether it is better than another of its kind."""

    def better_than(self, other) -> bool:  # type: ignore[no-untyped-def]
        """Whether this one is to be preferred."""
        ...

    def clearly_better(self, other) -> bool:  # type: ignore[no-untyped-def]
        """Whether this one is better by more than its being smoother."""
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

    def around(self, start: float) -> Callable[[int], float | None]:
        """A function from a number of steps to the value so far from ``start``; None where the grid has ended."""
        if self.ratio:
            ratio, far = self.ratio, self.ratio ** (GROWTH + 0.5)
            low, high = self.values[0] / far, self.values[-1] * far
            start = min(max(start, low), high)
            return lambda steps: v if low <= (v := start * ratio**steps) <= high else None
        place = min(range(len(self.values)), key=lambda i: abs(math.log(self.values[i] / start)))
        return lambda steps: dict(enumerate(self.values)).get(place + steps)


def best_of(found: list[T]) -> T:
    """The best of some outcomes."""
    first, *others = found
    for outcome in others:
        first = outcome if outcome.better_than(first) else first
    return first


def _leads(found: list[T], end: int) -> bool:
    """Whether the outcome at this end is the best, and not by being the smoothest of equals."""
    inner = found[1 if end == 0 else -2] if len(found) > 1 else None
    return best_of(found) is found[end] and (inner is None or found[end].clearly_better(inner))


def explore(grid: Grid, visit: Callable[[float, T | None], T], grow: bool = True) -> T:
    """Visit all values, then, if the grid may grow, go on beyond a border for as long as the best lies on it.

    On a plateau there is nothing to be found further out: the border has to be clearly better than its neighbour.
    ``visit(value, last)`` is given the outcome next to it, as a place to start from.
    """
    found: list[T] = []
    for value in grid.values:
        found.append(visit(value, found[-1] if found else None))
    for end, step in ((0, -1), (-1, 1)):
        beyond = grid.around(grid.values[end])
        steps = step
        while grow and grid.ratio and _leads(found, end) and (further := beyond(steps)) is not None:
            found.insert(0 if step < 0 else len(found), visit(further, found[end]))
            steps += step
    return best_of(found)


@dataclass(frozen=True)
class SharingGrid:
    """Values from 0 to 1, in rising order; ``every`` says that all of them have to be tried."""

    values: tuple[float, ...]
    every: bool = True

    def around(self, start: float) -> Callable[[int], float | None]:
        """As in ``Grid``, from the value next to ``start``."""
        place = min(range(len(self.values)), key=lambda i: abs(self.values[i] - start))
        return lambda steps: dict(enumerate(self.values)).get(place + steps)


@dataclass(frozen=True)
class OptionGrid:
    """Values in rising order, whatever they are, infinity too."""

    values: tuple[float, ...]

    def around(self, start: float) -> Callable[[int], float | None]:
        """As in ``Grid``, from a value of its own."""
        place = self.values.index(start)
        return lambda steps: dict(enumerate(self.values)).get(place + steps)


def walk(
    grid: Grid | SharingGrid | OptionGrid, start: float, visit: Callable[[float, T | None], T], known: T | None = None
) -> T:
    """From the grid's value next to ``start`` go down while that is better; if it never was, go up.

    ``known`` is the outcome at the start, if there is one already.
    """
    value = grid.around(start)
    first = value(0)
    assert first is not None
    here = visit(first, None) if known is None else known
    for way in (-1, 1):
        steps = way
        while (there := value(steps)) is not None:
            outcome = visit(there, here)
            if not outcome.clearly_better(here):
                break
            here, steps = outcome, steps + way
        if steps != way:
            break
    return here
