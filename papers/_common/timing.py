"""Timing of calls, convergence warnings, number of threads, and a description of the machine."""

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
    """Return value, wall time and processor time (of all threads) of a call."""

    value: Any
    wall: float
    cpu: float


def timed(call: Callable[[], Any]) -> Timed:
    """Time one call."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = call()
    return Timed(value, time.perf_counter() - wall, time.process_time() - cpu)


def timed_median(call: Callable[[], Any], repeats: int = 5, budget: float = 10.0) -> Timed:
    """Median times over up to ``repeats`` calls, as many as fit into about ``budget`` seconds, at least one."""
    runs: list[Timed] = []
    while len(runs) < repeats and (not runs or sum(r.wall for r in runs) + runs[-1].wall < budget):
        runs.append(timed(call))
    wall, cpu = (statistics.median(getattr(r, k) for r in runs) for k in ("wall", "cpu"))
    return Timed(runs[-1].value, wall, cpu)


def settled(call: Callable[[], Any]) -> tuple[Any, int]:
    """Return value and number of convergence warnings of a call; the warnings are suppressed."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", ConvergenceWarning)
        value = call()
    return value, sum(issubclass(w.category, ConvergenceWarning) for w in seen)


def machine(command: str, threads: int, quick: bool) -> dict[str, Any]:
    """Header of a result file."""
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
    """Context manager that limits the threads of BLAS and OpenMP."""
    from threadpoolctl import threadpool_limits  # a dependency of scikit-learn

    return threadpool_limits(limits=threads)
