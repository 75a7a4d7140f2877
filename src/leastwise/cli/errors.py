"""Errors as one line on stderr and an exit code."""

from __future__ import annotations

import re
import traceback

#: Exit codes.
DONE, BUG, USAGE, DATA, MODEL, SYSTEM, EXTRA, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130

MEANING = {
    DONE: "success",
    BUG: "a bug in leastwise",
    USAGE: "invalid options or arguments",
    DATA: "invalid table",
    MODEL: "invalid model file",
    SYSTEM: "a file cannot be read or written",
    EXTRA: "a library is missing",
    INTERRUPTED: "interrupted",
}

#: Options by the name of the library's parameter.
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
#: A parameter and its value. Text in double quotes is quoted from the table and stays unchanged.
_PARAMETER = re.compile(r'(?<!=)"[^"]*"|\b(' + "|".join(OPTIONS) + r""")=('[^']*'|"[^"]*"|[-\w.]*\w)?""")


class UsageError(Exception):
    """Invalid options, or options that exclude each other."""


def explain(error: BaseException, source: str = "") -> tuple[int, str]:
    """Return the exit code and the message of an error; ``source`` is the name of the table."""
    code, message = _classify(error)
    if code == BUG:
        return code, message
    message = " ".join(with_option_names(message).split())
    return code, f"{source}: {message}" if code == DATA and source and source not in message else message


def _classify(error: BaseException) -> tuple[int, str]:
    if isinstance(error, KeyboardInterrupt):  # first: it may come in the middle of the imports below
        return INTERRUPTED, "interrupted"
    if isinstance(error, UsageError):
        return USAGE, str(error)
    from leastwise.persistence import FileError
    from leastwise.tables import TableError
    from leastwise.tables.files import TableFileError

    if isinstance(error, TableError):
        return SYSTEM if isinstance(error, TableFileError) else DATA, str(error)
    if isinstance(error, FileError):
        return MODEL, str(error)
    if isinstance(error, ImportError):
        return EXTRA, str(error)
    if isinstance(error, OSError):  # without the number of the error
        named = error.filename is not None
        return SYSTEM, f"{error.filename}: {error.strerror}" if named else str(error.strerror or error)
    if isinstance(error, ValueError | MemoryError):  # raised by estimators for data that they cannot use
        return DATA, str(error) or "not enough memory for this table."
    return BUG, "".join(traceback.format_exception(error)) + "This is a bug in leastwise; please report it."


def with_option_names(text: str) -> str:
    """Replace parameters of the library by options: ``format='parquet'`` becomes ``--format parquet``."""

    def option(match: re.Match) -> str:
        name, value = match.group(1), match.group(2)
        if name is None:
            return match.group(0)
        return OPTIONS[name] + ("" if value in (None, "False") else " " + value.strip("'\""))

    return _PARAMETER.sub(option, text)
