"""Checkpoints of a search: progress while it runs, and steps on disk from which ``fit --resume`` continues."""

from __future__ import annotations

import contextlib
import hashlib
import re
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from leastwise import __version__
from leastwise.model_selection.checkpoint import CheckpointEntry, CheckpointListener, SearchStep
from leastwise.persistence import FileError
from leastwise.persistence.model_files import read_object, write_object
from leastwise.tables import Table, TableModel
from leastwise.utils.atomic_files import write_atomically
from leastwise.utils.warn import warn_user

#: Steps are written once the search has run for this many seconds; a shorter search is as quickly started again.
MIN_SECONDS = 3.0
#: Files that a checkpoint consists of, and temporary files of an interrupted write.
OWN_FILES = re.compile(r"fingerprint|[0-9a-f]{32}\.step|\.(fingerprint|[0-9a-f]{32}\.step)\.[0-9a-f]+\.tmp")


@dataclass
class ProgressListener:
    """Shows every step of a search on the progress line.

    Attributes
    ----------
    spinner : object with a method ``update``
    inner : CheckpointListener, optional
        The checkpoint that steps are passed on to, and that may know a step from an interrupted run.
    best : CheckpointEntry, optional
        The best step so far: scores on more rows take precedence over scores on fewer.
    """

    spinner: Any
    inner: CheckpointListener | None = None
    best: CheckpointEntry | None = None

    def load(self, step: SearchStep) -> CheckpointEntry | None:
        """Look the step up in the checkpoint."""
        entry = None if self.inner is None else self.inner.load(step)
        self._show(step, entry)
        return entry

    def save(self, step: SearchStep, entry: CheckpointEntry) -> None:
        """Record a finished step."""
        if self.inner is not None:
            self.inner.save(step, entry)
        self._show(step, entry)

    def _show(self, step: SearchStep, entry: CheckpointEntry | None) -> None:
        if entry is not None and (self.best is None or _rank(entry) > _rank(self.best)):
            self.best = entry
        best = "" if self.best is None else "; best so far: " + self.best.line.partition(" (")[0]
        self.spinner.update(f"step {step.number + 1}, {step.n_rows:,} rows{best}")


def _rank(entry: CheckpointEntry) -> tuple[int, float]:
    return entry.step.n_rows, entry.outcome.score


@dataclass
class SearchCheckpoint:
    """Steps of a search in a directory beside the model file, which is removed once that file is written.

    Attributes
    ----------
    directory : Path
    fingerprint : str
        Identifies the data and the options that the steps belong to.
    n_read, n_written : int
        Steps read from the directory, and steps that are there.
    writable : bool
        False after a write has failed: the search goes on without a checkpoint.
    """

    directory: Path
    fingerprint: str
    n_read: int = 0
    n_written: int = 0
    writable: bool = True
    _pending: dict[str, tuple[SearchStep, CheckpointEntry]] = field(default_factory=dict)
    _started: float = field(default_factory=time.monotonic)
    _has_fingerprint: bool = False

    def open(self, resume: bool) -> str:
        """Read the state of the directory, and delete steps that do not belong to this search; return a note."""
        known = self.directory / "fingerprint"
        if not self.directory.is_dir():
            return f"No checkpoint found in {self.directory}; starting a new search."
        if resume and known.is_file() and known.read_bytes() == self.fingerprint.encode():
            self._has_fingerprint = True
            self.n_written = len(list(self.directory.glob("*.step")))
            return f"Resuming the search after {self.n_written} steps."
        self.remove()
        return "The checkpoint belongs to other data or options; starting a new search."

    def remove(self) -> None:
        """Delete the checkpoint's own files, and the directory if nothing else is in it."""
        with contextlib.suppress(OSError):
            for path in self.directory.iterdir():
                if OWN_FILES.fullmatch(path.name):
                    path.unlink()
            self.directory.rmdir()

    def load(self, step: SearchStep) -> CheckpointEntry | None:
        """Read a step from the directory; None if it is missing, damaged or a different step."""
        self.write()
        try:
            entry, _ = read_object(self._file(step), mmap=False)
        except (OSError, FileError):
            return None
        if not isinstance(entry, CheckpointEntry) or entry.step != step:
            return None
        self.n_read += 1
        return entry

    def save(self, step: SearchStep, entry: CheckpointEntry) -> None:
        """Record a finished step."""
        self._pending[step.key] = step, entry
        self.write()

    def write(self) -> None:
        """Write the finished steps, if the search has run for ``MIN_SECONDS``; warn once if that is not possible."""
        if not self.writable or not self._pending or time.monotonic() - self._started < MIN_SECONDS:
            return
        try:
            self._write()
        except OSError as error:
            self.writable = False
            why = error.strerror or str(error)
            warn_user(f"{self.directory}: steps cannot be saved ({why}), so the search cannot be resumed later.")

    def _write(self) -> None:
        self.directory.mkdir(exist_ok=True)
        if not self._has_fingerprint:
            write_atomically(str(self.directory / "fingerprint"), [self.fingerprint.encode()])
            self._has_fingerprint = True
        for key, (step, entry) in list(self._pending.items()):
            write_object(entry, self._file(step))
            self.n_written += 1
            del self._pending[key]

    def _file(self, step: SearchStep) -> Path:
        return self.directory / f"{step.key}.step"


def fingerprint(model: TableModel, table: Table) -> str:
    """Hash of everything that the search depends on: versions, parameters and data."""
    digest = hashlib.sha256(f"leastwise {__version__} numpy {np.__version__} {model.get_params()}".encode())
    for name, column in table.columns.items():
        digest.update(name.encode() + b"\0")
        if column.dtype.kind == "O":
            digest.update("\x1f".join(["\x1e" if cell is None else cell for cell in column.tolist()]).encode())
        else:
            digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()
