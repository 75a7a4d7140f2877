"""How much memory there is, and a clear word where it is not enough."""

from __future__ import annotations

import os
from pathlib import Path

_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def parse_size(text: str) -> int:
    """Bytes behind a text such as ``"4GB"``, ``"512 MiB"`` or ``"1000000"``."""
    number = text.strip().lower().removesuffix("b").removesuffix("i").strip()
    unit = number[-1:] if number[-1:] in "kmgt" else ""
    try:
        return int(float(number.removesuffix(unit)) * _UNITS[unit])
    except ValueError:
        raise ValueError(f"{text!r} is not a size of memory: write it as '4GB' or as a number of bytes.") from None


def available_memory() -> int:
    """Bytes that can be allocated now: ``LEASTWISE_MEMORY`` if set, else what machine and container leave."""
    setting = os.environ.get("LEASTWISE_MEMORY")
    if setting:
        return parse_size(setting)
    return min(_machine(), _container())


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
        return 2**63 - 1


def _container() -> int:
    root = Path("/sys/fs/cgroup")
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            taken = int((root / used).read_text()) - _reclaimable(root / Path(used).parent / "memory.stat")
            return max(int((root / limit).read_text()) - taken, 0)
        except (OSError, ValueError):
            continue
    return 2**63 - 1


def _reclaimable(stat: Path) -> int:
    """Bytes of cached files, which count as used but are given up on demand."""
    for line in stat.read_text().splitlines():
        if line.startswith(("inactive_file ", "total_inactive_file ")):
            return int(line.split()[1])
    return 0


def human(size: float) -> str:
    """A size as people write it."""
    for unit in ("B", "KB", "MB", "GB", "TB"):
        if size < 1024 or unit == "TB":
            return f"{size:.3g} {unit}"
        size /= 1024
    return ""
