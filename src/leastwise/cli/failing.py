"""What goes wrong, in one line and an exit code."""

from __future__ import annotations

import traceback

#: Exit codes.
DONE, BUG, USAGE, DATA, MODEL, SYSTEM, EXTRA, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130

MEANING = {
    DONE: "done",
    BUG: "an error of the program itself",
    USAGE: "an option or argument is wrong",
    DATA: "the table is at fault; the message says which file, line and column",
    MODEL: "the model file is at fault",
    SYSTEM: "a file cannot be read or written",
    EXTRA: "a library is missing; the message says which extra brings it",
    INTERRUPTED: "interrupted; files are as they were before",
}


class UsageError(Exception):
    """Options that do not go together."""


def explained(error: BaseException) -> tuple[int, str]:
    """The exit code and the line for an error."""
    from leastwise.files import FileError
    from leastwise.tables import TableError

    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "interrupted"
    if isinstance(error, UsageError):
        return USAGE, str(error)
    if isinstance(error, TableError):
        return DATA, str(error)
    if isinstance(error, FileError):
        return MODEL, str(error)
    if isinstance(error, ImportError):
        return EXTRA, str(error)
    if isinstance(error, OSError):
        return SYSTEM, _of_system(error)
    if isinstance(error, ValueError | MemoryError):  # estimators refuse data by these
        return DATA, str(error)
    return BUG, "".join(traceback.format_exception(error)) + "This is an error of leastwise itself; please report it."


def _of_system(error: OSError) -> str:
    """The words of the system, without its number."""
    return f"{error.filename}: {error.strerror}" if error.filename is not None else str(error.strerror or error)
