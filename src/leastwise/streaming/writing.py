"""Files that are being written: how much, and what is said and done where that fails."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType

from leastwise.memory import human
from leastwise.streaming.blocks import Blocks
from leastwise.streaming.errors import SpillError

#: No room on the disk, none left for this user, or none in one file.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass
class Writing:
    """A stream on its way to disk; files that were begun go if it does not arrive."""

    folder: str
    blocks: Blocks
    bytes: int = 0
    rows: int = 0
    files: set[str] = field(default_factory=set)

    def __enter__(self) -> Writing:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            for path in self.files:
                with suppress(OSError):
                    os.unlink(path)

    @contextmanager
    def to(self, path: str, rows: int) -> Iterator[None]:
        """Write rows to this file."""
        self.files.add(path)
        try:
            yield
        except OSError as error:
            if error.errno not in FULL or isinstance(error, SpillError):
                raise
            raise self._full(error.errno, self._needed(self.bytes, self.rows)) from error
        self.rows += rows

    def fitting(self, arrays: list, rows: int) -> list:
        """The arrays of a first block, if there is room for all the rows that there are."""
        size = sum(array.nbytes for array in arrays)
        needed = self._needed(size, rows) if not self.rows else None
        if needed is not None and needed > shutil.disk_usage(self.folder).free:
            raise self._full(errno.ENOSPC, needed)
        return arrays

    def _needed(self, size: int, rows: int) -> float | None:
        n = self.blocks.n_rows
        return None if n is None or not rows else size / rows * n

    def _full(self, number: int, needed: float | None) -> SpillError:
        free = shutil.disk_usage(self.folder).free
        about = "more is needed" if needed is None else f"about {human(needed)} are needed"
        return SpillError(
            number,
            f"The disk is full: {human(self.bytes)} ({self.rows} rows) were written, {about}, {human(free)} are free "
            "now. What was written is taken away. Choose another folder by Spool(folder=...) or the variable TMPDIR",
            self.folder,
        )
