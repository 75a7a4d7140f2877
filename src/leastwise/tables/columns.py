"""What a column is (numbers, dates, booleans, categories, or not usable) and how it becomes features."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from leastwise.sources.blocks import TableError
from leastwise.sources.formats.cells import CELL_READERS, boolean, number, object_column, quoted, strip_cell
from leastwise.sources.formats.dates import check_format, guess_format, is_clock, read_date
from leastwise.tables.date_parts import part_names, useful_parts
from leastwise.tables.table import EXACT, Array, Table

KINDS = ("number", "boolean", "date", "category", "ignore")
#: Text with more distinct values than this, and than half of the rows, is not a category: names, ids, free text.
FEW_TEXTS = 10
#: Numbers with more distinct values than this are not category codes: text among them is a mistake,
FEW_CODES = 20
#: if at least this share of the cells are numbers.
MOSTLY = 0.9
#: A column 0, 1, 2, ... is a row number, and distinct integers in a column called id are ids, with this many rows.
COUNTED = 10
#: Columns that pandas adds for the index of a frame.
_INDEX_NAME = re.compile(r"__index_level_\d+__|Unnamed: 0(\.\d+)*")
#: Last words of names of ids.
ID_WORDS = {"phone", "telephone", "fax"} | frozenset(
    ("id", "ids", "idx", "index", "key", "code", "nr", "no", "mrn", "ssn", "uid", "uuid", "guid", "barcode", "serial")
)
#: Numbers that often stand for missing values, if they are far from all others.
_PLACEHOLDERS = frozenset(sign * (10**digits - 1) for digits in range(2, 7) for sign in (1, -1))
#: The name that the reader of text files gives to a first column without one, such as an index that pandas wrote.
_FIRST_UNNAMED = "unnamed_1"
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_EIGHT_DIGITS = re.compile(r"(19|20)\d{6}", re.ASCII)
_LEADING_ZERO = re.compile(r"0\d+", re.ASCII)


# ----------------------------------------------------------------------- cells


def texts_of(table: Table, name: str) -> list[str | None]:
    """The cells of a column as text; whole numbers without a decimal point, so that 3 and 3.0 are one category."""
    return table.meaning(name, "text", lambda column: object_column(text_cells(column))).tolist()


def text_cells(column: Array) -> list[str | None]:
    """The cells as text."""
    kind = column.dtype.kind
    if kind == "O":
        meaning = {cell: strip_cell(cell) for cell in set(column.tolist())}
        return [meaning[cell] for cell in column.tolist()]
    if kind == "M":
        return [None if np.isnat(v) else str(v) for v in column]
    if kind == "b":
        return ["true" if v else "false" for v in column.tolist()]
    if kind in "iu":  # ids may have more digits than floats
        return [str(v) for v in column.tolist()]
    return [None if v != v else _shortest(v) for v in column.tolist()]


def _shortest(value: float) -> str:
    value = float(value)
    return str(int(value)) if value.is_integer() and abs(value) < EXACT else repr(value)


def values_of(table: Table, name: str, kind: str, format: str = "") -> Array:
    """A column as floats, NaN where missing; an error names the first cell that is not of this kind.

    ``format`` is that of dates in text; "" for ISO dates.
    """
    return table.meaning(name, f"{kind} {format}", lambda column: _values(table, name, column, kind, format))


def _values(table: Table, name: str, column: Array, kind: str, format: str) -> Array:
    reader, expected = CELL_READERS[kind]
    if format:
        reader, expected = partial(read_date, format=format), f"a date of the format {format}"
    if column.dtype.kind == "M":
        if kind != "date":
            raise table.error(0, name, f"the column contains dates; expected {expected}.")
        moments = column.astype("datetime64[us]")
        return np.where(np.isnat(moments), np.nan, moments.astype("int64") / 86_400e6)
    if column.dtype.kind == "O":
        cells = column.tolist()
        meaning = {cell: np.nan if (text := strip_cell(cell)) is None else reader(text) for cell in set(cells)}
        wrong = {cell for cell, value in meaning.items() if value is None}
        if wrong:
            row = next(i for i, cell in enumerate(cells) if cell in wrong)
            raise table.error(row, name, f"{quoted(cells[row])} is not {expected}.")
        values = np.array([meaning[cell] for cell in cells], dtype=float)
    else:
        values = column.astype(float)
        valid = np.isnan(values) | (kind == "number") | ((kind == "boolean") & np.isin(values, [0, 1]))
        if not valid.all():
            row = int(np.argmin(valid))
            raise table.error(row, name, f"{_shortest(values[row])} is not {expected}.")
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        row = int(infinite[0])
        raise table.error(row, name, f"{column[row]} is not a finite number: correct it, or leave it empty.")
    return values


# ----------------------------------------------------------------------- kinds


@dataclass(frozen=True)
class ColumnKind:
    """The kind of a column, and why; for dates in text also their format, "" for ISO dates."""

    kind: str
    note: str = ""
    format: str = ""

    @staticmethod
    def given(name: str, text: str) -> ColumnKind:
        """The kind that a user gives: one of ``KINDS``, or "date:%d/%m/%Y"."""
        kind, _, format = text.partition(":")
        wrong = check_format(format) if kind == "date" and format else None
        if kind not in KINDS or (kind != "date" and format):
            raise TableError(f'kinds= has {text!r} for column "{name}": use one of {list(KINDS)}, or date:%d/%m/%Y.')
        if wrong:
            raise TableError(f'kinds= has {text!r} for column "{name}": {wrong}.')
        return ColumnKind(kind, f"as specified, {format}" if format else "as specified", format)


_EMPTY = ColumnKind("ignore", "no values")
_DATES = ColumnKind("date", "read as days since 1970-01-01")


def find_kind(table: Table, name: str) -> ColumnKind:
    """The kind of a column according to its cells, and to what its file declares."""
    column = table[name]
    if _INDEX_NAME.fullmatch(name):
        return ColumnKind("ignore", "the index of a pandas frame")
    declared = table.declared.get(name, "")
    if declared and declared != "category":
        return ColumnKind("ignore", f"{declared}: convert them to numbers or text to use them")
    if declared:
        return ColumnKind("category") if any(t is not None for t in texts_of(table, name)) else _EMPTY
    if column.dtype.kind == "b":
        return ColumnKind("boolean")
    if column.dtype.kind == "M":
        return _DATES if not np.isnat(column).all() else _EMPTY
    if column.dtype.kind == "O":
        return _kind_of_text(table, name)
    if column.dtype.kind in "iu" and len(column) and max(abs(int(column.min())), abs(int(column.max()))) > EXACT:
        return _kind_of_codes(len(np.unique(column)), len(column), "integers of more than 15 digits")
    values = column[~np.isnan(column)] if column.dtype.kind == "f" else column
    return _kind_of_numbers(name, values.astype(float), len(column)) if len(values) else _EMPTY


def _kind_of_text(table: Table, name: str) -> ColumnKind:
    cells = table[name].tolist()
    texts = {cell: text for cell in set(cells) if (text := strip_cell(cell)) is not None}
    if not texts:
        return _EMPTY
    numbers = {cell: value for cell, text in texts.items() if (value := number(text)) is not None}
    if len(numbers) == len(texts):
        if all(_EIGHT_DIGITS.fullmatch(text) for text in texts.values()):
            dates = _kind_of_dates(texts.values())
            if dates is not None:
                return dates
        why = _codes_in_digits(texts.values())
        if why:
            return _kind_of_codes(len(set(texts.values())), sum(cell in texts for cell in cells), why)
        return _kind_of_numbers(name, np.array([numbers[cell] for cell in cells if cell in numbers]), len(cells))
    if all(boolean(text) is not None for text in texts.values()):
        return ColumnKind("boolean")
    if (dates := _kind_of_dates(texts.values())) is not None:
        return dates
    known = [cell for cell in cells if cell in texts]
    _check_mistakes(table, name, numbers, known)
    values = len(set(texts.values()))
    if _mostly_distinct(values, len(known)):
        return ColumnKind("ignore", f"{values} distinct texts in {len(known)} rows: names, ids or free text")
    return ColumnKind("category")


def _kind_of_dates(texts: Collection[str]) -> ColumnKind | None:
    """Dates in one format; None if these are not dates."""
    found = guess_format(texts)
    if found is None:
        return None
    format, note = found
    how = f"format {format}" + (f" ({note})" if note else "") + ", " if format else ""
    return ColumnKind("date", how + ("read as a part of the day" if is_clock(format) else _DATES.note), format)


def _mostly_distinct(n_values: int, n: int) -> bool:
    return n_values > max(FEW_TEXTS, n / 2)


def _kind_of_numbers(name: str, values: Array, n: int) -> ColumnKind:
    if n >= COUNTED and len(values) == n and (values[1:] == values[:-1] + 1).all():
        return ColumnKind("ignore", "increases by one from row to row: a row number")
    if not (values == np.round(values)).all():
        return ColumnKind("number")
    if len(values) >= COUNTED and is_id_name(name) and len(np.unique(values)) == len(values):
        return ColumnKind("ignore", "a different integer in every row, and the name of an id")
    return ColumnKind("number")


def is_id_name(name: str) -> bool:
    """True if the last word of a name is one for ids, or the first is "id": patient_id, PatientID, Case Nr, mrn."""
    words = [word.lower() for word in _WORD.findall(name)]
    return name == _FIRST_UNNAMED or (bool(words) and (words[-1] in ID_WORDS or words[0] == "id"))


def leading_zeros(texts: Iterable[str | None]) -> bool:
    """True if some numbers have leading zeros: codes such as 007."""
    return any(text is not None and _LEADING_ZERO.fullmatch(text) is not None for text in texts)


def _codes_in_digits(texts: Collection[str]) -> str:
    """What shows that digits are codes and not quantities; empty if nothing does."""
    if not all(text.lstrip("+-").isdecimal() for text in texts):
        return ""
    if leading_zeros(texts):
        return "leading zeros"
    return "integers of more than 15 digits" if any(abs(int(text)) > EXACT for text in texts) else ""


def _kind_of_codes(n_values: int, n: int, why: str) -> ColumnKind:
    """Codes written in digits have the rules of text: they are ids, or categories if they are repeated."""
    if _mostly_distinct(n_values, n):
        return ColumnKind("ignore", f"{why}, {n_values} distinct values in {n} rows: ids")
    return ColumnKind("category", f"{why}: codes")


def _check_mistakes(table: Table, name: str, numbers: dict[Any, float], known: list) -> None:
    """A few texts among many distinct numbers are mistakes, or an unknown marker of missing values."""
    texts = [cell for cell in known if cell not in numbers]
    n_numbers = len(known) - len(texts)
    if len(set(numbers.values())) > FEW_CODES and n_numbers >= MOSTLY * len(known):
        raise table.error(
            table[name].tolist().index(texts[0]),
            name,
            f"{quoted(texts[0])} is not a number, but {n_numbers:,} of {len(known):,} cells of this column are. "
            f"Correct it; or, if it marks a missing value, add missing={texts[0]}; or, if these are codes, set the "
            "kind of the column to 'category'.",
        )


# -------------------------------------------------------------------- features


@dataclass(frozen=True)
class Column:
    """What was found in a column, and how it becomes features.

    Attributes
    ----------
    name, kind : str
        The kind is one of "number", "date", "boolean", "category" and "ignore".
    n_missing : int
        Number of missing cells in training. If there are any, one feature indicates them.
    n_values : int
        Number of distinct values in training.
    fill : float
        The value for missing cells: the median of numbers and dates, the share of true of booleans.
    mean, scale : float
        Numbers and dates become ``(value - mean) / scale``. With a scale of 0, the column is constant and left out.
    categories : tuple of str
        Values with their own feature.
    pooled : tuple of str
        Rare values, which share a feature.
    note : str
        A remark on the column.
    format : str
        The format of dates in text; "" for ISO dates.
    parts : tuple of str
        Parts of dates that have features: "time of year", "weekday", "time of day".
    """

    name: str
    kind: str
    n_missing: int = 0
    n_values: int = 0
    fill: float = 0.0
    mean: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()
    pooled: tuple[str, ...] = ()
    note: str = ""
    format: str = ""
    parts: tuple[str, ...] = ()

    @property
    def used(self) -> bool:
        """True if the column is an input."""
        return self.n_features > 0

    @property
    def nominal(self) -> bool:
        """True if only equality of values counts, not their order."""
        return self.kind in ("category", "boolean")

    @property
    def part_names(self) -> list[str]:
        """Names of the features of parts of dates."""
        return [f"{self.name}: {name}" for name in part_names(self.parts)]

    @property
    def n_codes(self) -> int:
        """Number of codes: one, and the parts of a date."""
        return 1 + len(part_names(self.parts)) if self.used else 0

    @property
    def n_features(self) -> int:
        """Number of features."""
        if self.kind == "ignore":
            return 0
        if self.kind == "category":
            own = len(self.categories) + bool(self.pooled)
        else:
            own = 1 + len(part_names(self.parts)) if self.scale > 0 else 0
        return own + (self.n_missing > 0)

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        if self.kind == "ignore":
            return []
        if self.kind == "category":
            own = [f"{self.name}={c}" for c in self.categories] + ([f"{self.name}=(other)"] if self.pooled else [])
        else:
            own = [self.name, *self.part_names] if self.scale > 0 else []
        return own + ([f"{self.name}=(missing)"] if self.n_missing else [])


def fit_column(
    table: Table, name: str, found: ColumnKind, max_categories: int, min_share: float, y: Array | None = None
) -> Column:
    """The column of the training rows; dates have parts that are related to the targets y, if these are given."""
    if found.kind == "ignore":
        return Column(name, "ignore", note=found.note)
    if found.kind == "category":
        return _fit_category(table, name, found.note, max_categories, min_share)
    given = found.kind == "date" and not found.format and found.note == "as specified"
    if given and table[name].dtype.kind == "O":  # a date in the format that its cells have
        found = _kind_of_dates([text for text in set(texts_of(table, name)) if text is not None]) or found
    values = values_of(table, name, found.kind, found.format)
    known = values[~np.isnan(values)]
    counts: dict[str, Any] = {"n_missing": len(values) - len(known), "n_values": len(np.unique(known))}
    if counts["n_values"] < 2:
        kind = found.kind if len(known) and counts["n_missing"] else "ignore"
        return Column(name, kind, **counts, scale=0.0, note="constant" if len(known) else "no values")
    if found.kind == "boolean":
        return Column(name, "boolean", **counts, fill=float(known.mean()))
    fill = float(np.median(known / 2) * 2)  # the mean of two halves cannot overflow
    size = np.abs(known).max()
    parts = np.where(np.isnan(values), fill, values) / size
    mean, scale = float(parts.mean() * size), float(parts.std() * size)
    cycles = useful_parts(values, y, found.format) if found.kind == "date" else ()
    marks = _placeholder_text(known) if found.kind == "number" else ""
    note = "; ".join(filter(None, [found.note, " and ".join(cycles) + " too" if cycles else "", marks]))
    made = Column(name, found.kind, **counts, fill=fill, mean=mean, scale=scale, note=note, format=found.format)
    return replace(made, parts=cycles)


def _placeholder_text(known: Array) -> str:
    """A hint at a repeated number such as -999 that is farther from all others than these are from each other."""
    for extreme in (known.min(), known.max()):
        others = known[known != extreme]
        repeated = len(known) - len(others) > 1 and len(others)
        if repeated and extreme in _PLACEHOLDERS and np.abs(others - extreme).min() > max(np.ptp(others), 1):
            count = len(known) - len(others)
            return f"{extreme:.0f} in {count} rows: if it marks missing values, add missing={extreme:.0f}"
    return ""


def _pooled_text(count: int) -> str:
    return f"{count} rare value{'s' * (count > 1)} pooled as (other)" if count else ""


def _fit_category(table: Table, name: str, why: str, max_categories: int, min_share: float) -> Column:
    texts = [text for text in texts_of(table, name) if text is not None]
    counts = Counter(texts)
    enough = max(2, min_share * len(texts))
    frequent = sorted(counts, key=lambda value: (-counts[value], value))[:max_categories]
    kept = tuple(sorted(value for value in frequent if counts[value] >= enough))
    pooled, missing = tuple(sorted(set(counts) - set(kept))), len(table) - len(texts)
    if len(counts) > 1 and kept:
        note = "; ".join(filter(None, [why, _pooled_text(len(pooled))]))
        return Column(name, "category", missing, len(counts), categories=kept, pooled=pooled, note=note)
    note = "constant" if len(counts) == 1 else f"{len(counts)} values, all of them rare" if texts else "no values"
    return Column(name, "category" if missing and texts else "ignore", missing, len(counts), note=note)
