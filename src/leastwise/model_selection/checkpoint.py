"""What a search tells while it runs, and what it can be reminded of.

A long search that was broken off can go on where it was: whoever calls ``fit`` inside of :func:`diary` is told of
every step when it is done, and may answer for a step from an earlier run. Steps come in the same order for the same
data and parameters, so that a step is known by its number and what it looks at.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class SearchStep:
    """All of one sigma and sharing.

    Attributes
    ----------
    number : int
        Steps before it since the diary was opened.
    sigma, sharing : float or None
    n_rows : int
    what : str
        What else it depends on, in words.
    """

    number: int
    sigma: float
    sharing: float | None
    n_rows: int
    what: str


@dataclass(frozen=True)
class CheckpointEntry:
    """What a step found: its best point, all points that it saw, and a line about it."""

    step: SearchStep
    outcome: Any
    seen: list[dict]
    line: str


class CheckpointListener(Protocol):
    """Somebody who listens."""

    def load(self, step: SearchStep) -> CheckpointEntry | None:
        """What is known of this step from an earlier run."""
        ...

    def save(self, step: SearchStep, entry: CheckpointEntry) -> None:
        """A step is done."""
        ...


class _Silent:
    """Nobody listens."""

    def load(self, step: SearchStep) -> CheckpointEntry | None:
        return None

    def save(self, step: SearchStep, entry: CheckpointEntry) -> None:
        pass


@dataclass
class _Open:
    """The diary of this thread of work, and how many steps it has seen."""

    checkpointing: CheckpointListener
    steps: int = 0


_OPEN: ContextVar[_Open | None] = ContextVar("leastwise_diary", default=None)


@contextmanager
def checkpointing(listener: CheckpointListener) -> Iterator[None]:
    """Every search made inside is told to ``listener``, step by step."""
    token = _OPEN.set(_Open(listener))
    try:
        yield
    finally:
        _OPEN.reset(token)


def next_step(sigma: float, sharing: float | None, n_rows: int, what: str) -> tuple[CheckpointListener, SearchStep]:
    """Who listens, and the step that begins."""
    now = _OPEN.get() or _Open(_Silent())
    step = SearchStep(now.steps, sigma, sharing, n_rows, what)
    now.steps += 1
    return now.checkpointing, step
