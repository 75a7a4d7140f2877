"""Steps of a long search, kept in a folder beside the model file until that is written."""

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
from leastwise.model_selection.checkpoint import Entry, Step
from leastwise.persistence.container import FileError
from leastwise.persistence.model_files import read_object, write_object
from leastwise.tables import Table, TableModel
from leastwise.utils.atomic_files import write_atomically

#: A search of fewer seconds is quicker begun anew.
SHORT = 3.0
#: Files of a search, also those that were not written to their end.
OWN = re.compile(r"mark|\d{5,}\.step|\.(mark|\d{5,}\.step)\.[0-9a-f]+\.tmp")


@dataclass
class Kept:
    """A diary on disk.

    Attributes
    ----------
    folder : Path
    mark : str
        What data and options the steps belong to.
    recalled, written : int
        Steps taken from the folder, and put there.
    """

    folder: Path
    mark: str
    recalled: int = 0
    written: int = 0
    waiting: dict[int, tuple[Step, Entry]] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)
    marked: bool = False

    def open(self, resume: bool) -> str:
        """Look what there is; steps of other data or options, or that nobody asked for, are thrown away."""
        known = self.folder / "mark"
        if not self.folder.is_dir():
            return f"There is no search to take up ({self.folder}); it begins anew."
        if resume and known.is_file() and known.read_bytes() == self.mark.encode():
            self.marked = True
            self.written = len(list(self.folder.glob("*.step")))
            return f"The search goes on after {self.written} steps."
        self.clear()
        return "The search that was broken off had other data or options; it begins anew."

    def clear(self) -> None:
        """Nothing to take up any more; files in the folder that are not of a search stay, and so does the folder."""
        with contextlib.suppress(OSError):
            for path in self.folder.iterdir():
                if OWN.fullmatch(path.name):
                    path.unlink()
            self.folder.rmdir()

    def recall(self, step: Step) -> Entry | None:
        """The step from the folder, if it is this very one and whole."""
        self.keep()
        try:
            entry, _ = read_object(self._file(step), mmap=False)
        except (OSError, FileError):  # never reached, or cut off in the middle
            return None
        if not isinstance(entry, Entry) or entry.step != step:
            return None
        self.recalled += 1
        return entry

    def note(self, step: Step, entry: Entry) -> None:
        """A step is done."""
        self.waiting[step.number] = step, entry
        self.keep()

    def keep(self) -> None:
        """Write the steps that are done, once the search has lasted a while."""
        if not self.waiting or time.monotonic() - self.began < SHORT:
            return
        self.folder.mkdir(exist_ok=True)
        if not self.marked:
            write_atomically(str(self.folder / "mark"), [self.mark.encode()])
            self.marked = True
        for number, (step, entry) in list(self.waiting.items()):
            write_object(entry, self._file(step))
            self.written += 1
            del self.waiting[number]

    def _file(self, step: Step) -> Path:
        return self.folder / f"{step.number:05d}.step"


def fingerprint(model: TableModel, table: Table) -> str:
    """A mark of all that the search depends on."""
    digest = hashlib.sha256(f"leastwise {__version__} numpy {np.__version__} {model.get_params()}".encode())
    for name, column in table.columns.items():
        digest.update(name.encode() + b"\0")
        digest.update(_bytes(column))
    return digest.hexdigest()


def _bytes(column: Any) -> bytes:
    if column.dtype.kind == "O":
        return "\x1f".join("\x1e" if cell is None else str(cell) for cell in column.tolist()).encode()
    return np.ascontiguousarray(column).tobytes()
