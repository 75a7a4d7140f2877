"""Checkpoints and time limits of searches.

An interrupted search can be resumed. Inside :func:`checkpointing`, a listener is passed every finished step of a
search, and may supply the result of a step from an earlier run. A step is identified by a fingerprint of its problem:
rows, targets, weights, folds, kernel, objective and hyperparameters.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from leastwise.solvers.evaluator import Evaluator
from leastwise.utils.hashing import fingerprint


@dataclass(frozen=True)
class SearchStep:
    """A step of a search: all alphas at one sigma and sharing.

    Attributes
    ----------
    key : str
        Fingerprint of everything that the result depends on.
    number : int
        Number of steps before it since the checkpoint was opened, for progress reports.
    sigma, sharing : float or None
    n_rows : int
    what : str
        Description of the other settings that it depends on.
    """

    key: str
    number: int = field(compare=False)
    sigma: float
    sharing: float | None
    n_rows: int
    what: str


@dataclass(frozen=True)
class CheckpointEntry:
    """Result of a step: best point, all evaluated points, a line for the progress report, and a warm start."""

    step: SearchStep
    outcome: Any
    seen: list[dict]
    line: str
    warm_start: Any = None


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


def next_step(
    evaluator: Evaluator, sigma: float, sharing: float | None, strategy: Callable, what: str
) -> tuple[CheckpointListener, SearchStep]:
    """The listener, and the step that begins; without a checkpoint, its key is empty."""
    active = _ACTIVE.get()
    n_rows = len(evaluator.rows)
    if active is None:
        return _NoCheckpoint(), SearchStep("", 0, sigma, sharing, n_rows, what)
    key = fingerprint(evaluator.identity(sigma), sigma, sharing, strategy, what)
    step = SearchStep(key, active.steps, sigma, sharing, n_rows, what)
    active.steps += 1
    return active.listener, step


@dataclass
class TimeLimit:
    """A limit of the time of searches.

    Attributes
    ----------
    seconds : float
        From the start of the context.
    n_skipped : int
        Steps that were skipped as the time was up.
    """

    seconds: float
    n_skipped: int = 0
    started: float = field(default_factory=time.monotonic)

    @property
    def is_up(self) -> bool:
        """True if no time is left."""
        return time.monotonic() - self.started > self.seconds


_LIMIT: ContextVar[TimeLimit | None] = ContextVar("leastwise_time_limit", default=None)


@contextmanager
def search_time(seconds: float | None) -> Iterator[TimeLimit]:
    """Limit the time of the searches made inside this context; None is no limit.

    Every search takes at least one step. Steps after the limit are skipped, and the best point so far is the result.
    """
    limit = TimeLimit(np.inf if seconds is None else seconds)
    token = _LIMIT.set(limit)
    try:
        yield limit
    finally:
        _LIMIT.reset(token)


def time_limit() -> TimeLimit | None:
    """The time limit of the current context."""
    return _LIMIT.get()
