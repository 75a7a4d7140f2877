"""What figures were measured with and on."""

from __future__ import annotations

import datetime
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn


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
