"""What can go wrong with a stream, said by file, rows and column."""

from __future__ import annotations

from typing import Any


class StreamError(ValueError):
    """A block cannot be had: the message says where, and blocks before it have been delivered.

    Parameters
    ----------
    message : str
    where : str
        The file, or the block of an iterator.
    rows : (int, int), optional
        First and last row, counted from 0 in the file, among which the fault is.
    column : str, optional
        The column, where it is known.
    line : int, optional
        The line of a text file, counted from 1.
    """

    def __init__(
        self,
        message: str,
        *,
        where: str = "",
        rows: tuple[int, int] | None = None,
        column: Any = None,
        line: int | None = None,
    ) -> None:
        super().__init__(message)
        self.where = where
        self.rows = rows
        self.column = column
        self.line = line


class SpillError(OSError):
    """A stream cannot be kept on disk: no room, or no folder that can be written to."""


def span(rows: tuple[int, int]) -> str:
    """Rows in words."""
    return f"row {rows[0]}" if rows[0] == rows[1] else f"rows {rows[0]} to {rows[1]}"


def fault(
    reason: str,
    where: str,
    rows: tuple[int, int] | None = None,
    column: Any = None,
    line: int | None = None,
) -> StreamError:
    """The error about one place: its parts, then the reason."""
    parts = [where]
    if line is not None:
        parts.append(f"line {line}")
    elif rows is not None:
        parts.append(span(rows))
    if column is not None:
        parts.append(f'column "{column}"')
    place = ", ".join(p for p in parts if p)
    return StreamError(f"{place}: {reason}", where=where, rows=rows, column=column, line=line)


def reason_of(error: BaseException) -> str:
    """The first line of what another library says."""
    lines = str(error).splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
