"""Values of hyperparameters to try: grids, and line searches on them.

A grid is fixed, or extended while the best value lies on the border.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

#: Maximal number of steps by which a grid is extended beyond each border.
GROWTH = 8
#: Default start of the line search over sharings.
MIDDLE = 0.5


class Comparable(Protocol):
    """A result that can be compared with others."""

    def better_than(self, other) -> bool:  # type: ignore[no-untyped-def]
        """True if this one is preferred."""
        ...

    def clearly_better(self, other) -> bool:  # type: ignore[no-untyped-def]
        """True if this one has a better score, not just a smoother model."""
        ...


T = TypeVar("T", bound=Comparable)


@dataclass(frozen=True)
class Grid:
    """Values in increasing order; ``ratio`` is the step by which the grid may be extended, None if it is fixed."""

    values: tuple[float, ...]
    ratio: float | None = None

    @property
    def single(self) -> bool:
        """True if there is only one value."""
        return len(self.values) == 1 and self.ratio is None

    def around(self, start: float) -> Callable[[int], float | None]:
        """A function from a number of steps to the value that many steps from ``start``; None beyond the grid."""
        if self.ratio:
            ratio, far = self.ratio, self.ratio ** (GROWTH + 0.5)
            low, high = self.values[0] / far, self.values[-1] * far
            start = min(max(start, low), high)
            return lambda steps: v if low <= (v := start * ratio**steps) <= high else None
        place = min(range(len(self.values)), key=lambda i: abs(math.log(self.values[i] / start)))
        return lambda steps: dict(enumerate(self.values)).get(place + steps)


@dataclass(frozen=True)
class SharingGrid:
    """Values from 0 to 1 in increasing order; ``every`` is True if all of them must be tried."""

    values: tuple[float, ...]
    every: bool = True

    def around(self, start: float) -> Callable[[int], float | None]:
        """As in ``Grid``, from the value closest to ``start``."""
        place = min(range(len(self.values)), key=lambda i: abs(self.values[i] - start))
        return lambda steps: dict(enumerate(self.values)).get(place + steps)


@dataclass(frozen=True)
class OptionGrid:
    """Any values in increasing order, including infinity."""

    values: tuple[float, ...]

    def around(self, start: float) -> Callable[[int], float | None]:
        """As in ``Grid``; ``start`` must be one of the values."""
        place = self.values.index(start)
        return lambda steps: dict(enumerate(self.values)).get(place + steps)


def best_of(found: list[T]) -> T:
    """The best of some results."""
    first, *others = found
    for outcome in others:
        first = outcome if outcome.better_than(first) else first
    return first


def explore(grid: Grid, visit: Callable[[float, T | None], T], grow: bool = True) -> T:
    """Visit all values, then, if the grid may be extended, continue beyond a border while the best value lies on it.

    The border must be clearly better than its neighbour, so that a plateau ends the search. ``visit(value, last)`` is
    passed the result of the neighbouring value for a warm start.
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


def _leads(found: list[T], end: int) -> bool:
    """True if the result at this end is the best, and clearly better than its neighbour."""
    inner = found[1 if end == 0 else -2] if len(found) > 1 else None
    return best_of(found) is found[end] and (inner is None or found[end].clearly_better(inner))


def walk(
    grid: Grid | SharingGrid | OptionGrid, start: float, visit: Callable[[float, T | None], T], known: T | None = None
) -> T:
    """Line search from the value closest to ``start``: downwards while it improves; if it never does, upwards.

    ``known`` is the result at the start, if available.
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


def full_grid(alphas: Grid) -> Callable:
    """The strategy that evaluates all alphas."""
    return partial(explore, alphas, grow=False)
