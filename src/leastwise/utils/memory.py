"""How much memory there is, and a clear word where it is not enough."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
#: More than any machine has.
UNLIMITED = 2**63 - 1
#: A block of rows takes no more than this share of what there is.
SHARE = 8
#: What was set for the whole process, and for the code within ``memory_limit``.
_everywhere: list[int | None] = [None]
#: When the system was last asked for the size of a block, and what it said; for so many seconds that will do.
_seen: list[float] = [-1e9, 0]
RECENT = 2.0
_here: ContextVar[int | None] = ContextVar("leastwise_memory", default=None)


def parse_size(text: str) -> int:
    """Bytes behind a text such as ``"4GB"``, ``"512 MiB"`` or ``"1000000"``."""
    number = text.strip().lower().removesuffix("b").removesuffix("i").strip()
    unit = number[-1:] if number[-1:] in "kmgt" else ""
    try:
        return int(float(number.removesuffix(unit)) * _UNITS[unit])
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a size of memory: write it as '4GB' or as a number of bytes.") from None


def set_memory_limit(limit: int | str | None) -> None:
    """Say how much memory fits and predictions may take, in this process from now on.

    Parameters
    ----------
    limit : int, str or None
        Bytes, or a text such as ``"4GB"``. None goes back to what machine and container leave (or to the environment
        variable ``LEASTWISE_MEMORY``).

    Examples
    --------
    >>> import leastwise
    >>> leastwise.set_memory_limit("4GB")
    >>> leastwise.set_memory_limit(None)
    """
    _everywhere[0] = _checked(limit)


@contextmanager
def memory_limit(limit: int | str | None) -> Iterator[None]:
    """Say how much memory the code within may take; other threads keep their own limit.

    Parameters
    ----------
    limit : int, str or None
        As in :func:`set_memory_limit`; None leaves all as it is.

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
    """Bytes, above 0."""
    if limit is None:
        return None
    whole = isinstance(limit, int) and not isinstance(limit, bool)
    size = parse_size(limit) if isinstance(limit, str) else limit if whole else -1
    if size <= 0:
        raise ValueError(f"A memory limit of {limit!r} is not possible: give a text such as '4GB', bytes, or None.")
    return size


def available_memory() -> int:
    """Bytes that can be allocated now: what was set, else ``LEASTWISE_MEMORY``, else what the system leaves."""
    told = told_memory()
    return _system() if told is None else told


def block_bytes(most: int) -> int:
    """Bytes of a block of rows: ``most``, or less where memory is short. The system is asked now and then only."""
    told = told_memory()
    if told is None:
        if time.monotonic() - _seen[0] > RECENT:
            _seen[:] = [time.monotonic(), _system()]
        told = int(_seen[1])
    return max(1, min(most, told // SHARE))


def told_memory() -> int | None:
    """What the user said, if anything."""
    for told in (_here.get(), _everywhere[0]):
        if told is not None:
            return told
    setting = os.environ.get("LEASTWISE_MEMORY")
    return parse_size(setting) if setting else None


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
    """What the control groups that this process is in leave, those that hold them included."""
    room = UNLIMITED
    for base, files in (
        (root, ("memory.max", "memory.current")),
        (root / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes")),
    ):
        for group in _groups(base, own):
            room = min(room, _left(group, *files))
    return room


def _groups(base: Path, own: Path) -> list[Path]:
    """The folder of the process's own control group and all above it; in a container often the root alone is."""
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
    """What one control group leaves; no limit where it names none."""
    try:
        most = int((group / limit).read_text())
        taken = int((group / used).read_text()) - _reclaimable(group / "memory.stat")
    except (OSError, ValueError):
        return UNLIMITED
    return max(most - taken, 0)


def _process() -> int:
    """What a limit on the address space of this process leaves (``ulimit -v``)."""
    try:
        import resource  # not there on Windows

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most == resource.RLIM_INFINITY:
            return UNLIMITED
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return most - pages * os.sysconf("SC_PAGE_SIZE")
    except (ImportError, OSError, ValueError):
        return UNLIMITED


def _reclaimable(stat: Path) -> int:
    """Bytes of cached files, which count as used but are given up on demand."""
    for line in stat.read_text().splitlines():
        if line.startswith(("inactive_file ", "total_inactive_file ")):
            return int(line.split()[1])
    return 0


def human(size: float) -> str:
    """A size as people write it."""
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if size < 999.5 or unit == "TB":  # three digits
            return f"{size:.3g} {unit}"
        size /= 1024
    return ""
