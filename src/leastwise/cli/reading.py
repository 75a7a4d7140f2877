"""Tables and model files that the commands work with."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Any

from leastwise.cli.failing import UsageError
from leastwise.cli.showing import Shown
from leastwise.persistence.container import FileError
from leastwise.persistence.model_files import load
from leastwise.tables import Table, TableModel, read_table


def table_of(shown: Shown, data: str, format: str | None, **options: Any) -> Table:
    """The table of a file or of stdin; what had to be decided on the way is said."""
    check_source(data)
    if data == "-" and sys.stdin.isatty():
        shown.note("The table is read from the terminal; end it with Ctrl-D.")
    if options.pop("no_header", False):
        options["header"] = False
    with shown.working(f"reading {data}"):
        table = read_table(data, format=format, **options)
    for note in table.notes:
        shown.note(note)
    return table


def opened(path: Path) -> TableModel:
    """The model of a table in a file."""
    model: Any = load(path)
    if not isinstance(model, TableModel):
        raise FileError(
            f"{path} holds a {type(model).__name__}, which knows no columns: this command needs a model made by "
            "`leastwise fit`, or a leastwise.tables.TableModel. In Python, leastwise.load opens it."
        )
    return model


def listed(text: str | None) -> list[str]:
    """Names between commas."""
    return [] if text is None else [name.strip() for name in text.split(",") if name.strip()]


def share(option: str, value: float | None) -> float | None:
    """A number between 0 and 1, or nothing."""
    if value is not None and not 0 < value < 1:
        raise UsageError(f"{option} {value:g}: give a share between 0 and 1, such as 0.9.")
    return value


def check_source(data: str) -> None:
    """A folder is no table."""
    if Path(data).is_dir():
        raise UsageError(f"{data} is a folder; give the name of a file.")


def check_place(path: Path | None, *sources: str | Path) -> None:
    """Whether a file can be written there, and is none of those that are read: before the work, not after it."""
    if path is not None and path.is_file() and any(os.path.exists(s) and path.samefile(s) for s in sources):
        raise UsageError(f"{path} is what is read here: write to another file.")
    if path is not None and not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.absolute().parent}; make it first.")
    if path is not None and path.is_dir():
        raise UsageError(f"{path} is a folder; give the name of a file.")
    if path is not None and not os.access(path.absolute().parent, os.W_OK):
        raise PermissionError(errno.EACCES, "the folder cannot be written to", str(path))
