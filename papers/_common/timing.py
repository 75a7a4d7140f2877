"""Seconds of a call, and its warnings."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.exceptions import ConvergenceWarning


@dataclass(frozen=True)
class Timed:
    """What a call returned, and its seconds by the clock and of the processor (all threads together)."""

    value: Any
    wall: float
    cpu: float


def timed(call: Callable[[], Any]) -> Timed:
    """Call once."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = call()
    return Timed(value, time.perf_counter() - wall, time.process_time() - cpu)


def timed_median(call: Callable[[], Any], repeats: int = 5, budget: float = 10.0) -> Timed:
    """Medians over repeats, as many as fit into about ``budget`` seconds and one at least."""
    runs: list[Timed] = []
    while len(runs) < repeats and (not runs or sum(r.wall for r in runs) + runs[-1].wall < budget):
        runs.append(timed(call))
    wall, cpu = (statistics.median(getattr(r, k) for r in runs) for k in ("wall", "cpu"))
    return Timed(runs[-1].value, wall, cpu)


def settled(call: Callable[[], Any]) -> tuple[Any, int]:
    """What a call returns, and how many convergence warnings it gave; these are not shown."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ConvergenceWarning)
        value = call()
    return value, sum(issubclass(w.category, ConvergenceWarning) for w in seen)
