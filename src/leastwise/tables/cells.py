"""What cells mean: missing, numbers, booleans and dates, by rules that are stated in ``docs/tables.md``."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np

from leastwise.tables.table import Table

Array = np.ndarray

#: Cells that say that there is no value, in any case of letters and with spaces around.
MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?", "-"})
TRUE, FALSE = frozenset({"true", "yes"}), frozenset({"false", "no"})
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?", re.ASCII)
_INFINITE = re.compile(r"[+-]?inf(?:inity)?", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?(?:Z|[+-]\d{2}:\d{2})?)?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def stripped(cell: Any) -> str | None:
    """A cell of text without spaces around; None where it says that there is no value."""
    if cell is None:
        return None
    text = cell.strip()
    return None if text.lower() in MISSING else text


def number(text: str) -> float | None:
    """A number; infinite where it is too large or says so; None where it is none."""
    if _NUMBER.fullmatch(text):
        return float(text)
    if _THOUSANDS.fullmatch(text):
        return float(text.replace(",", ""))
    return float(text) if _INFINITE.fullmatch(text) else None


def boolean(text: str) -> float | None:
    """1 or 0; None where it is neither."""
    word = text.lower()
    return 1.0 if word in TRUE else 0.0 if word in FALSE else None


def boolean_or_digit(text: str) -> float | None:
    """As ``boolean``, and 0 and 1 as well."""
    return {0.0: 0.0, 1.0: 1.0}.get(number(text), boolean(text))  # type: ignore[arg-type]


def date(text: str) -> float | None:
    """Days since 1970-01-01, in UTC where the cell names a zone; None where it is no ISO date."""
    if not _DATE.fullmatch(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        return (moment - _EPOCH).total_seconds() / 86400
    except OverflowError:
        return None


READERS: dict[str, tuple[Callable[[str], float | None], str]] = {
    "number": (number, "a number"),
    "boolean": (boolean_or_digit, "true or false (also yes or no, 1 or 0)"),
    "date": (date, "an ISO date such as 2024-05-31"),
}


def text_cells(column: Array) -> list[str | None]:
    """The cells of a column as text; numbers that are whole without a point, so that 3 and 3.0 are one category."""
    kind = column.dtype.kind
    if kind == "O":
        meant = {cell: stripped(cell) for cell in set(column.tolist())}
        return [meant[cell] for cell in column.tolist()]
    if kind == "M":
        return [None if np.isnat(v) else str(v) for v in column]
    if kind == "b":
        return ["true" if v else "false" for v in column.tolist()]
    if kind in "iu":  # ids may have more digits than floats
        return [str(v) for v in column.tolist()]
    return [None if v != v else _shortest(v) for v in column.tolist()]


def _shortest(value: float) -> str:
    value = float(value)
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def values_of(table: Table, name: str, kind: str) -> Array:
    """A column as numbers, NaN where missing; an error names the first cell that is not of its kind."""
    column, (reader, wanted) = table[name], READERS[kind]
    if column.dtype.kind == "M":
        if kind != "date":
            raise table.error(0, name, f"the column holds dates; it should hold {wanted}.")
        return days(column)
    if column.dtype.kind != "O":
        return _typed(table, name, kind, wanted)
    meant = {cell: np.nan if (text := stripped(cell)) is None else reader(text) for cell in set(column.tolist())}
    wrong = {cell for cell, value in meant.items() if value is None}
    if wrong:
        row = next(i for i, cell in enumerate(column.tolist()) if cell in wrong)
        raise table.error(row, name, f'"{column[row]:.60}" is not {wanted}.')
    return _finite(table, name, np.array([meant[cell] for cell in column.tolist()], dtype=float))


def _typed(table: Table, name: str, kind: str, wanted: str) -> Array:
    """A column that comes with a type: numbers or booleans."""
    values = table[name].astype(float)
    if kind != "number":
        wrong = np.flatnonzero(~np.isnan(values) & ((kind == "date") | ~np.isin(values, [0, 1])))
        if len(wrong):
            raise table.error(int(wrong[0]), name, f"{_shortest(values[wrong[0]])} is not {wanted}.")
    return _finite(table, name, values)


def _finite(table: Table, name: str, values: Array) -> Array:
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        cell = table[name][infinite[0]]
        raise table.error(int(infinite[0]), name, f"{cell} is not a finite number: correct it, or leave it empty.")
    return values


def days(column: Array) -> Array:
    """Dates of numpy as days since 1970-01-01; NaN where missing."""
    whole = column.astype("datetime64[us]")
    return np.where(np.isnat(whole), np.nan, whole.astype("int64") / 86_400e6)
