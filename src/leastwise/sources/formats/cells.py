"""The meaning of a cell of text: missing, number, boolean or date, by the rules of ``docs/tables.md``.

All readers of text files and ``leastwise.tables`` use these functions, so that a cell has one meaning everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import product
from typing import Any

import numpy as np

Array = np.ndarray

#: Cells that mark a missing value, in any case and with surrounding spaces.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
TRUE, FALSE = frozenset({"true", "yes", "y", "positive"}), frozenset({"false", "no", "n", "negative"})
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?", re.ASCII)
_INTEGER = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?: ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?)?",
    re.ASCII,
)
#: Numbers written with a decimal comma: 1,5 or 1.234,5 or 1.234.567.
_COMMA_NUMBER = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+(?:,\d*)?|\d*,\d+|\d+,)(?:[eE][+-]?\d+)?", re.ASCII)
#: Numbers that are the same with a decimal comma and with a decimal point, and those with a point.
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+", re.ASCII)
_POINT_NUMBER = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


#: Rows from which the delimiter and the row of names are found.
SNIFFED = 20


@dataclass(frozen=True)
class TextColumns:
    """The columns of a text file.

    Attributes
    ----------
    columns : dict of str to ndarray of shape (n,)
        Cells as objects of type str, or numbers where the format has no other values.
    lines : ndarray of int of shape (n,)
        The line of each row in the file, counted from 1.
    declared : dict of str to str
        Column kinds that the file itself declares, such as the nominal attributes of an ARFF file.
    absent : float, optional
        The value of columns that are not in the file: 0 for libsvm.
    notes : tuple of str
        Decisions made while reading.
    """

    columns: dict[str, Array]
    lines: Array
    declared: dict[str, str] = field(default_factory=dict)
    absent: float | None = None
    notes: tuple[str, ...] = ()


def object_column(values: Any) -> Array:
    """A one-dimensional array of objects."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def strip_cell(cell: str | None) -> str | None:
    """The cell without surrounding spaces; None if it marks a missing value."""
    if cell is None:
        return None
    text = cell.strip()
    return None if text.lower() in MISSING else text


def number(text: str) -> float | None:
    """The number, infinite if it overflows or says so; None if the text is not a number."""
    if _NUMBER.fullmatch(text):
        return float(text)
    if _THOUSANDS.fullmatch(text):
        return float(text.replace(",", ""))
    return float(text) if _INFINITE.fullmatch(text) else None


def integer(text: str) -> int | None:
    """The integer; None if the text is not an integer of 64 bits."""
    value = int(text.replace(",", "")) if len(text) < 30 and _INTEGER.fullmatch(text) else None
    return value if value is not None and -(2**63) <= value < 2**63 else None


def boolean(text: str) -> float | None:
    """1 for true, yes, y and positive, 0 for false, no, n and negative; None for other text."""
    word = text.lower()
    return 1.0 if word in TRUE else 0.0 if word in FALSE else None


def boolean_or_digit(text: str) -> float | None:
    """Like ``boolean``; the numbers 0 and 1 are accepted, too."""
    return {0.0: 0.0, 1.0: 1.0}.get(number(text), boolean(text))  # type: ignore[arg-type]


def date(text: str) -> float | None:
    """Days since 1970-01-01, in UTC if the cell has a time zone; None if it is not an ISO date."""
    if not _DATE.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text[:11] + text[11:].replace("UTC", "Z").replace(" ", ""))
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        return (moment - _EPOCH).total_seconds() / 86400
    except OverflowError:
        return None


#: For each kind of column, the function that reads a cell and what the cell should be.
CELL_READERS: dict[str, tuple[Callable[[str], float | None], str]] = {
    "number": (number, "a number"),
    "boolean": (boolean_or_digit, "true or false (also yes or no, y or n, positive or negative, 1 or 0)"),
    "date": (date, "an ISO date such as 2024-05-31"),
}


def guess_decimal(cells: list[str], delimiter: str) -> str:
    """The decimal mark: a comma if cells are not delimited by it and more numbers have a comma than a point."""
    if delimiter == ",":
        return "."
    stripped = [cell for cell in map(str.strip, cells) if not _GROUPED.fullmatch(cell)]
    commas = sum(_COMMA_NUMBER.fullmatch(cell) is not None for cell in stripped)
    return "," if commas > sum(_POINT_NUMBER.fullmatch(cell) is not None for cell in stripped) else "."


def decimal_point(cell: str) -> str:
    """A number with a decimal comma, rewritten with a decimal point; other cells unchanged."""
    return cell.replace(".", "").replace(",", ".") if _COMMA_NUMBER.fullmatch(cell.strip()) else cell


def count_titles(rows: Sequence[Sequence[str]]) -> int:
    """The number of leading rows with a single filled cell, if a row of names and another row are below: titles."""
    filled = [[cell for cell in row if cell.strip()] for row in rows]
    first = next((i for i, row in enumerate(filled) if len(row) > 1), 0)
    below = filled[first + 1] if first + 1 < len(filled) else []
    return first if len(below) > 1 and all(number(cell.strip()) is None for cell in filled[first]) else 0


def looks_numeric(text: str) -> bool:
    """True for decimal fractions and digits: not what a column is usually called."""
    return _POINT_NUMBER.fullmatch(text) is not None or text.isdecimal()


def quoted(cell: str) -> str:
    """The cell for an error message: in quotes, at most 60 characters, undecodable bytes as escapes."""
    return '"' + cell[:60].encode(errors="backslashreplace").decode() + '"'


def spellings(words: frozenset[str]) -> list[str]:
    """All combinations of upper and lower case, for readers that compare cells exactly."""
    pairs = ([{c.lower(), c.upper()} for c in word] for word in sorted(words))
    return ["".join(letters) for pair in pairs for letters in product(*map(sorted, pair))]
