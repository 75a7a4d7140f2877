"""BLAS threads: one for small matrices, and for large ones as many as there are idle processors.

BLAS libraries start as many threads as the machine has processors, and threads that wait for each other spin. If
another process needs a processor, a small factorization takes many times as long with two threads as with one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

#: Matrices with up to this many rows are factorized by one thread.
SMALL_ROWS = 600


@cache
def _libraries() -> list[Any]:
    """Controllers of the BLAS libraries that are loaded."""
    return ThreadpoolController().select(user_api="blas").lib_controllers


def blas_threads() -> int:
    """Number of threads that BLAS may use now, at most the processors that this process may use."""
    return min([cpu_count(), *(library.num_threads for library in _libraries())])


class BlasLimit:
    """Limit of the BLAS threads of this process, for all its Python threads: the smallest that is asked for.

    The last user restores the numbers that the first one found. If each restored what it found, one thread could
    make the limit of another permanent.
    """

    def __init__(self) -> None:
        # Reentrant, because a generator that is collected inside the lock may end a limit of the same thread.
        self._lock = RLock()
        self._asked: dict[object, int] = {}
        self._before: list[int] = []

    @contextmanager
    def at(self, threads: int) -> Iterator[None]:
        """Use at most ``threads`` threads; never more than before."""
        user, interrupt = object(), None
        try:
            with self._lock:
                if not self._asked:
                    self._before = [library.num_threads for library in _libraries()]
                self._asked[user] = threads
                self._apply()
            yield
        finally:
            while True:  # until it is done, also if Ctrl-C is pressed again
                try:
                    with self._lock:
                        self._asked.pop(user, None)
                        self._apply()
                    break
                except KeyboardInterrupt as error:
                    interrupt = error
            if interrupt is not None:
                raise interrupt

    def before(self) -> int:
        """Number of threads of BLAS without the limits."""
        with self._lock:
            return max(self._before if self._asked else [library.num_threads for library in _libraries()], default=1)

    def _apply(self) -> None:
        for library, before in zip(_libraries(), self._before, strict=True):
            wanted = min([before, *self._asked.values()])
            if library.num_threads != wanted:
                _set_threads(library, wanted)


def _set_threads(library: Any, threads: int) -> None:
    """Set the number of threads from any Python thread.

    Recent versions of threadpoolctl ignore all Python threads but the first that sets a limit. Here a lock keeps them
    apart, and the callers of this module stay free to set limits of their own.
    """
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(threads)
    release(force=True)


BLAS_LIMIT = BlasLimit()


@contextmanager
def threads_for(rows: int) -> Iterator[None]:
    """Limit BLAS to what pays for matrices with this many rows, on this machine now."""
    with BLAS_LIMIT.at(1 if rows <= SMALL_ROWS else idle_processors()):
        yield


def idle_processors() -> int:
    """Processors that this process may use and no other process is using; at least 1.

    It respects affinity masks and quotas of containers. What other processes do is known on Linux only.
    """
    usable, machine = cpu_count(), os.cpu_count() or 1
    try:
        running = int(Path("/proc/loadavg").read_text().split()[3].split("/")[0])
        own = sum(_runs(task) for task in Path("/proc/self/task").iterdir())
    except (OSError, ValueError, IndexError):
        return usable
    return max(1, min(usable, machine - max(running - own, 0)))


def _runs(task: Path) -> bool:
    """True if this thread is running or waiting for a processor."""
    try:
        return (task / "stat").read_text().rpartition(")")[2].split()[0] == "R"
    except OSError:  # it has ended
        return False
