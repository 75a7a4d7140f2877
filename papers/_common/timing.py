"""Seconds of a call, and its warnings.

What figures were measured with and on.
"""

from __future__ import annotations

import datetime
import os
import platform
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
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


def machine(command: str, threads: int, quick: bool) -> dict[str, Any]:
    """The head of a record."""
    return {
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "threads": threads,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "quick": quick,
    }


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def capped(threads: int) -> Any:
    """Context in which BLAS and OpenMP use no more than so many threads, whatever the method."""
    from threadpoolctl import threadpool_limits  # scikit-learn brings it

    return threadpool_limits(limits=threads)
