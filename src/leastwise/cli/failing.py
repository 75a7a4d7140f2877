"""What goes wrong, in one line and an exit code."""

from __future__ import annotations

import re
import traceback

#: Exit codes.
DONE, BUG, USAGE, DATA, MODEL, SYSTEM, EXTRA, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130

MEANING = {
    DONE: "done",
    BUG: "an error of leastwise itself",
    USAGE: "options or arguments are wrong",
    DATA: "the table is at fault",
    MODEL: "the model file is at fault",
    SYSTEM: "a file cannot be read or written",
    EXTRA: "a library is missing",
    INTERRUPTED: "interrupted",
}

#: What parameters of the library are called here.
OPTIONS = {
    "kinds": "--column",
    "n_centers": "--centers",
    "random_state": "--seed",
    "header": "--no-header",
    **{name: f"--{name}" for name in ("format", "encoding", "delimiter", "decimal", "ignore", "kind", "target")},
    **{name: f"--{name}" for name in ("labels", "task", "group", "weight", "coverage", "data")},
    "max_error": "--max-error",
    "min_confidence": "--min-confidence",
}
#: Text in quotes is from the table, and stays as it is.
_PARAMETER = re.compile(r'(?<!=)"[^"]*"|\b(' + "|".join(OPTIONS) + r""")=('[^']*'|"[^"]*"|[-\w.]*\w)?""")


class UsageError(Exception):
    """Options that do not go together."""


def explained(error: BaseException, source: str = "") -> tuple[int, str]:
    """The exit code and the line for an error; ``source`` is the table that was worked on."""
    code, line = _explained(error)
    if code == BUG:
        return code, line
    line = " ".join(in_options(line).split())
    return code, f"{source}: {line}" if code == DATA and source and source not in line else line


def _explained(error: BaseException) -> tuple[int, str]:
    if isinstance(error, KeyboardInterrupt):  # perhaps in the middle of an import
        return INTERRUPTED, "interrupted"
    if isinstance(error, UsageError):
        return USAGE, str(error)
    from leastwise.persistence.container import FileError
    from leastwise.tables import TableError
    from leastwise.tables.files import TableFileError

    if isinstance(error, TableError):
        return SYSTEM if isinstance(error, TableFileError) else DATA, str(error)
    if isinstance(error, FileError):
        return MODEL, str(error)
    if isinstance(error, ImportError):
        return EXTRA, str(error)
    if isinstance(error, OSError):
        return SYSTEM, _of_system(error)
    if isinstance(error, ValueError | MemoryError):  # estimators refuse data by these
        return DATA, str(error) or "there is not enough memory for this table."
    return BUG, "".join(traceback.format_exception(error)) + "This is an error of leastwise itself; please report it."


def in_options(text: str) -> str:
    """A message of the library in words of the command line: ``--format parquet`` for ``format='parquet'``."""
    return _PARAMETER.sub(_option, text)


def _option(match: re.Match) -> str:
    name, value = match.group(1), match.group(2)
    if name is None:
        return match.group(0)
    return OPTIONS[name] + ("" if value in (None, "False") else " " + value.strip("'\""))


def _of_system(error: OSError) -> str:
    """The words of the system, without its number."""
    return f"{error.filename}: {error.strerror}" if error.filename is not None else str(error.strerror or error)
