"""Work side by side: how many jobs there may be, and how many threads each of them has."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from threading import Lock
from typing import Any

from joblib import cpu_count
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController, threadpool_limits

from leastwise.memory import available_memory, memory_limit, told_memory


def check_n_jobs(value: Any) -> int | None:
    """A whole number other than 0, or None."""
    if value is None:
        return None
    if not isinstance(value, Integral) or isinstance(value, bool) or value == 0:
        raise ValueError(
            f"n_jobs={value!r} must be None or a whole number other than 0: -1 means all processors, -2 all but one."
        )
    return int(value)


def jobs_allowed(n_jobs: int | None, tasks: int, need: int) -> int:
    """How many jobs work side by side.

    Parameters
    ----------
    n_jobs : int or None
        As in scikit-learn: None is 1 unless a joblib context says otherwise, -1 is all processors.
    tasks : int
        How many tasks there are: jobs without a task are of no use.
    need : int
        Bytes that each job takes. There are as many jobs as fit into memory, and always one.
    """
    if tasks < 2 or n_jobs == 1 or _inside_another():
        return 1
    backend, usual = get_active_backend(prefer="threads")
    wish = backend.effective_n_jobs(usual if n_jobs is None else n_jobs)
    return max(1, min(wish, tasks, available_memory() // max(need, 1)))


def _inside_another() -> bool:
    """Whether this is a job already: then whoever made it has dealt out the processors."""
    if (get_active_backend()[0].nesting_level or 0) > 0:
        return True
    worker = sys.modules.get("distributed.worker")  # Dask does not count levels
    if worker is None:
        return False
    try:
        worker.get_worker()
    except ValueError:
        return False
    return True


class Stopped(Exception):
    """What is thrown into :func:`in_order` to stop its jobs. (To close it would make joblib warn of their loss.)"""


def in_order(function: Callable, tasks: Sequence[tuple], jobs: int) -> Generator[Any]:
    """``function(*task)`` of every task, in their order, each as soon as it is there.

    Jobs run where joblib's active backend has them, in threads if there is none. They share the threads of the
    linear algebra that this process has; afterwards all is as it was. They keep to the memory limit that is set here.
    """
    backend, _ = get_active_backend(prefer="threads")
    lazy = getattr(backend, "supports_return_generator", False)
    how = {"return_as": "generator"} if lazy else {}
    share, memory = max(1, blas_threads() // jobs), told_memory()
    with _LIMIT.at(share):
        run = Parallel(n_jobs=jobs, prefer="threads", **how)
        yield from run(delayed(_limited)(share, memory, function, task) for task in tasks)


def blas_threads() -> int:
    """Threads that linear algebra may use in this process now."""
    counts = [pool["num_threads"] for pool in ThreadpoolController().select(user_api="blas").info()]
    return min([cpu_count(), *counts])


def _limited(share: int, memory: int | None, function: Callable, task: tuple) -> Any:
    """What runs in a job, in this process or another: neither threads nor processes know the limits of who asks."""
    with _LIMIT.at(share), memory_limit(memory):
        return function(*task)


class _Limit:
    """A limit of the threads of a process that several of its threads can ask for: the last one takes it off.

    Each on its own would put back what it found, which may be the limit of another.
    """

    def __init__(self) -> None:
        self._lock, self._users, self._limits = Lock(), 0, None

    @contextmanager
    def at(self, threads: int) -> Iterator[None]:
        """Linear algebra has so many threads, or as many as who came first asked for."""
        with self._lock:
            if self._users == 0:
                self._limits = threadpool_limits(threads, user_api="blas")
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0 and self._limits is not None:
                    self._limits.restore_original_limits()
                    self._limits = None


_LIMIT = _Limit()
