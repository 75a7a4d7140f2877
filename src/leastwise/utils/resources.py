"""Memory and processors of this machine: what is available, and limits that the user sets.

BLAS libraries start as many threads as the machine has processors, and threads that wait for each other spin. If
another process needs a processor, a small factorization takes many times as long with two threads as with one. So
small matrices get one thread, and large ones as many as there are idle processors.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from functools import cache
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from joblib import cpu_count
from threadpoolctl import ThreadpoolController

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
#: No limit.
UNLIMITED = 2**63 - 1
#: A block of rows takes at most one over this of the available memory.
SHARE = 8
#: The limit of the process; ``_here`` is that of the code inside ``memory_limit``.
_everywhere: list[int | None] = [None]
#: Time and result of the last query of the system, which takes as long as a small fit. Blocks of rows reuse it for
#: RECENT seconds, the costs of the solvers for as long as it takes to compare them.
_seen: list[float] = [-1e9, 0]
RECENT, JUST_NOW = 2.0, 0.1
_here: ContextVar[int | None] = ContextVar("leastwise_memory", default=None)


def parse_size(text: str) -> int:
    """Parse a size such as ``"4GB"``, ``"512 MiB"`` or ``"1000000"``."""
    number = text.strip().lower().removesuffix("b").removesuffix("i").strip()
    unit = number[-1:] if number[-1:] in "kmgt" else ""
    try:
        return int(float(number.removesuffix(unit)) * _UNITS[unit])
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a memory size: use a string such as '4GB' or a number of bytes.") from None


def set_memory_limit(limit: int | str | None) -> None:
    """Limit the memory of fits and predictions in this process.

    Parameters
    ----------
    limit : int, str or None
        Bytes, or a string such as ``"4GB"``. None restores the default: the environment variable
        ``LEASTWISE_MEMORY``, or what machine and container have available.

    Examples
    --------
    >>> import leastwise
    >>> leastwise.set_memory_limit("4GB")
    >>> leastwise.set_memory_limit(None)
    """
    _everywhere[0] = _checked(limit)


@contextmanager
def memory_limit(limit: int | str | None) -> Iterator[None]:
    """Context manager that limits the memory of the code inside; other threads keep their own limit.

    Parameters
    ----------
    limit : int, str or None
        As in :func:`set_memory_limit`; None keeps the current limit.

    Examples
    --------
    >>> import leastwise
    >>> with leastwise.memory_limit("200MB"):
    ...     plan = leastwise.LSPC(norm="coefficients").plan((10_000, 20), n_outputs=3)
    >>> plan.fits
    False
    """
    checked = _checked(limit)
    token = _here.set(_here.get() if checked is None else checked)
    try:
        yield
    finally:
        _here.reset(token)


def _checked(limit: int | str | None) -> int | None:
    """Validate a limit; return bytes."""
    if limit is None:
        return None
    whole = isinstance(limit, int) and not isinstance(limit, bool)
    size = parse_size(limit) if isinstance(limit, str) else limit if whole else -1
    if size <= 0:
        raise ValueError(
            f"A memory limit cannot be {limit!r}: give a string such as '4GB', a number of bytes, or None."
        )
    return size


def available_memory() -> int:
    """Bytes that can be allocated: the limit that was set, else ``LEASTWISE_MEMORY``, else the free memory."""
    limit = configured_memory()
    return _recent_system(JUST_NOW) if limit is None else limit


def block_bytes(most: int) -> int:
    """Bytes of a block of rows: ``most``, or less if memory is short. The system is queried every few seconds."""
    limit = configured_memory()
    return max(1, min(most, (_recent_system(RECENT) if limit is None else limit) // SHARE))


def used_memory() -> int | None:
    """Bytes that this process has in memory; None where that is not known."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError, IndexError):
        return None


def configured_memory() -> int | None:
    """The limit that the user set, or None."""
    for limit in (_here.get(), _everywhere[0]):
        if limit is not None:
            return limit
    setting = os.environ.get("LEASTWISE_MEMORY")
    return parse_size(setting) if setting else None


def _recent_system(seconds: float) -> int:
    """The free memory, measured at most this many seconds ago."""
    if time.monotonic() - _seen[0] > seconds:
        _seen[:] = [time.monotonic(), _system()]
    return int(_seen[1])


def _system() -> int:
    return max(min(_machine(), _container(), _process()), 0)


def _machine() -> int:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return UNLIMITED


def _container(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """Free memory of the control groups of this process and their parents."""
    room = UNLIMITED
    for base, files in (
        (root, ("memory.max", "memory.current")),
        (root / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")),
    ):
        for group in _groups(base, own):
            room = min(room, _left(group, *files))
    return room


def _groups(base: Path, own: Path) -> list[Path]:
    """Directories of the control group of this process and its parents; in containers often the root only."""
    found = {base}
    try:
        lines = own.read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        _, kinds, path = [*line.split(":", 2), "", ""][:3]
        if kinds == "" or "memory" in kinds.split(","):
            folder = base / path.strip("/")
            found.update(part for part in (folder, *folder.parents) if part.is_relative_to(base))
    return sorted(found)


def _left(group: Path, limit: str, used: str) -> int:
    """Free memory of one control group; UNLIMITED if it has no limit."""
    try:
        most = int((group / limit).read_text())
        taken = int((group / used).read_text()) - _reclaimable(group / "memory.stat")
    except (OSError, ValueError):
        return UNLIMITED
    return max(most - taken, 0)


def _process() -> int:
    """Free address space of this process (``ulimit -v``)."""
    try:
        import resource  # not available on Windows

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most == resource.RLIM_INFINITY:
            return UNLIMITED
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return most - pages * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError, ValueError):
        return UNLIMITED


def _reclaimable(stat: Path) -> int:
    """Bytes of cached files, which count as used but are reclaimed on demand."""
    for line in stat.read_text().splitlines():
        if line.startswith(("inactive_file ", "total_inactive_file ")):
            return int(line.split()[1])
    return 0


@contextmanager
def explained_memory() -> Iterator[None]:
    """An allocation that fails inside says what is available and what to do; other errors are raised as they are.

    Plans are estimates. A limit of the address space (``ulimit -v``) also counts what threads and libraries reserve,
    and other processes take memory during a fit. So an allocation can fail although the plan fits.
    """
    try:
        yield
    except MemoryError as error:
        if type(error) is MemoryError and error.args:  # one of ours, with figures
            raise
        failed = str(error).rstrip(".") or "an allocation failed"
        room = _system()
        raise MemoryError(
            f"Out of memory: {failed}; {human(room)} are available to this process. Nothing was changed. A smaller "
            "limit than this, by leastwise.set_memory_limit or the environment variable LEASTWISE_MEMORY, makes "
            "smaller blocks and another solver possible; fewer rows, n_centers=, float32 rows, and fit_stream where "
            "the model has it, need less memory."
        ) from error


def human(size: float) -> str:
    """Format a size with three digits and a unit."""
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if size < 999.5 or unit == "TB":  # three digits
            return f"{size:.3g} {unit}"
        size /= 1024
    return ""


# --------------------------------------------------------------------- threads


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

    def usable(self) -> int:
        """Threads that the caller of the library allows: those before all limits of the library."""
        with self._lock:
            return min([cpu_count(), *(self._before if self._asked else (x.num_threads for x in _libraries()))])

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


Item = TypeVar("Item")
Result = TypeVar("Result")


def map_on_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Results of a function for all items, in their order, by one thread for each idle processor.

    For many small products and factorisations, which gain nothing from threads of BLAS: it has one thread meanwhile.
    At most two results for each thread wait to be used. Results do not depend on the number of threads.
    """
    workers = min(BLAS_LIMIT.usable(), idle_processors())
    with BLAS_LIMIT.at(1):
        if workers == 1:
            yield from map(function, items)
            return
        with ThreadPoolExecutor(workers) as pool:
            waiting: deque[Future[Result]] = deque()
            try:
                for item in items:
                    waiting.append(pool.submit(copy_context().run, function, item))
                    if len(waiting) > 2 * workers:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()


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
