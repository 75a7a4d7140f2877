"""Checkpoints of a search, from which an interrupted search can be resumed.

Inside :func:`checkpointing`, a listener is passed every finished step of a search, and may supply the result of a
step from an earlier run. Steps come in the same order for the same data and parameters, so that a step is identified
by its number and its hyperparameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class SearchStep:
    """A step of a search: all alphas at one sigma and sharing.

    Attributes
    ----------
    number : int
        Number of steps before it since the checkpoint was opened.
    sigma, sharing : float or None
    n_rows : int
    what : str
        Description of the other settings that it depends on.
    """

    number: int
    sigma: float
    sharing: float | None
    n_rows: int
    what: str


@dataclass(frozen=True)
class CheckpointEntry:
    """The result of a step: its best point, all evaluated points, and a line for the progress report."""

    step: SearchStep
    outcome: Any
    seen: list[dict]
    line: str


class CheckpointListener(Protocol):
    """Stores the steps of a search."""

    def load(self, step: SearchStep) -> CheckpointEntry | None:
        """The result of this step from an earlier run; None if there is none."""
        ...

    def save(self, step: SearchStep, entry: CheckpointEntry) -> None:
        """Store a finished step."""
        ...


class _NoCheckpoint:
    """Stores nothing."""

    def load(self, step: SearchStep) -> CheckpointEntry | None:
        return None

    def save(self, step: SearchStep, entry: CheckpointEntry) -> None:
        pass


@dataclass
class _Active:
    """The listener of the current context, and the number of steps so far."""

    listener: CheckpointListener
    steps: int = 0


_ACTIVE: ContextVar[_Active | None] = ContextVar("leastwise_checkpoint", default=None)


@contextmanager
def checkpointing(listener: CheckpointListener) -> Iterator[None]:
    """Pass every step of the searches made inside this context to ``listener``."""
    token = _ACTIVE.set(_Active(listener))
    try:
        yield
    finally:
        _ACTIVE.reset(token)


def next_step(sigma: float, sharing: float | None, n_rows: int, what: str) -> tuple[CheckpointListener, SearchStep]:
    """The listener, and the step that begins."""
    active = _ACTIVE.get() or _Active(_NoCheckpoint())
    step = SearchStep(active.steps, sigma, sharing, n_rows, what)
    active.steps += 1
    return active.listener, step
