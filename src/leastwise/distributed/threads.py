"""One thread for matrix products, in all tasks of a process that run at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_LOCK = threading.Lock()
#: Tasks that are running, and what gives the threads back; limits are those of the whole process.
_RUNNING: dict[str, Any] = {"tasks": 0, "limits": None}


@contextmanager
def one_thread() -> Iterator[None]:
    """Within, matrix products use one thread: Dask starts as many tasks at a time as there are threads for them.

    The first task in takes the threads, the last one out gives them back.
    """
    from threadpoolctl import threadpool_limits

    with _LOCK:
        if _RUNNING["tasks"] == 0:
            _RUNNING["limits"] = threadpool_limits(limits=1)
        _RUNNING["tasks"] += 1
    try:
        yield
    finally:
        with _LOCK:
            _RUNNING["tasks"] -= 1
            if _RUNNING["tasks"] == 0:
                _RUNNING["limits"].restore_original_limits()
