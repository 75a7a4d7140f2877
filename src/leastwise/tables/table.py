"""Named columns of equal length, with the position of their rows in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from os import PathLike
from typing import Any

import numpy as np

from leastwise.sources.blocks import TableError
from leastwise.sources.formats.cells import number, object_column
from leastwise.sources.frames import columns_of
from leastwise.utils.optional import frames

Array = np.ndarray

#: Integers above this are not exact as floats.
EXACT = 2**53
#: Types that a cell cannot have.
_UNSUPPORTED = (list, tuple, dict, set, bytes, complex, np.ndarray)
#: Rows of a preview, characters of a cell, and characters of a line.
PREVIEW_ROWS, PREVIEW_CELL, PREVIEW_LINE = 5, 32, 100


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Named columns of equal length.

    Attributes
    ----------
    columns : dict of str to ndarray of shape (n,)
        Text as objects (str, or None if missing), or numbers, booleans or dates as arrays of their own type. Text
        files give text only; :class:`TableEncoder` decides what it means.
    source : str
        The file, for messages; empty if there is none.
    lines : ndarray of int of shape (n,), optional
        The position of each row in the file, counted from 1.
    unit : {"row", "line"}
        What ``lines`` counts.
    declared : dict of str to str
        "category" for columns that the file itself declares as such, as the nominal attributes of an ARFF file; for
        columns that are not used, such as lists, what they contain.
    absent : float, optional
        The value of a column that is not in the file: 0 for libsvm.
    notes : tuple of str
        Decisions made while reading.

    Examples
    --------
    >>> from leastwise.tables import Table
    >>> table = Table.of({"size": [1.5, 2.0], "line": ["north", None]})
    >>> len(table), table.names
    (2, ['size', 'line'])
    >>> table
    2 rows, 2 columns
    size  line
    1.5   north
    2
    """

    columns: dict[str, Array]
    source: str = ""
    lines: Array | None = None
    unit: str = "row"
    declared: dict[str, str] = field(default_factory=dict)
    absent: float | None = None
    notes: tuple[str, ...] = ()
    #: What has been read of columns of text, with the column: a fit needs it in several places.
    _meanings: dict[tuple[int, str], tuple[Array, Array]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lengths = {name: len(column) for name, column in self.columns.items()}
        if len(set(lengths.values())) > 1:
            raise TableError(f"columns must have equal lengths; they have {dict(list(lengths.items())[:10])}.")

    def __len__(self) -> int:
        return next((len(column) for column in self.columns.values()), 0)

    def __repr__(self) -> str:
        return _preview(self.columns, len(self), self.source)

    @property
    def names(self) -> list[str]:
        """Column names."""
        return list(self.columns)

    def __getitem__(self, name: str) -> Array:
        if name not in self.columns:
            raise TableError(f"{self._prefix()}there is no column {name!r}{self._similar([name])}; {self._listed()}")
        return self.columns[name]

    def take(self, rows: Any) -> Table:
        """Some of the rows, by index or mask."""
        columns = {name: column[rows] for name, column in self.columns.items()}
        now = {id(column): columns[name] for name, column in self.columns.items()}
        meanings = {
            (id(now[key]), what): (now[key], meaning[rows])
            for (key, what), (_, meaning) in self._meanings.items()
            if key in now
        }
        return replace(self, columns=columns, lines=self.line_numbers()[rows], _meanings=meanings)

    def meaning(self, name: str, what: str, read: Callable[[Array], Array]) -> Array:
        """What ``read`` makes of a column, an array of the same length; of text it is made only once."""
        column = self[name]
        if column.dtype.kind != "O":
            return read(column)
        key = id(column), what  # the column is stored beside it, so that no other array can have its id
        if key not in self._meanings:
            self._meanings[key] = column, read(column)
            self._meanings[key][1].setflags(write=False)
        return self._meanings[key][1]

    def without(self, names: Any) -> Table:
        """The table without some columns."""
        out = set(names)
        return replace(self, columns={name: c for name, c in self.columns.items() if name not in out})

    def with_missing(self, words: Sequence[str]) -> Table:
        """The table where cells that are one of these words, in any case, or equal such a number are missing."""
        if not words:
            return self
        folded = {word.strip().casefold() for word in words}
        numbers = [value for word in words if (value := number(word.strip())) is not None]
        return replace(
            self, columns={name: _without_words(column, folded, numbers) for name, column in self.columns.items()}
        )

    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        cells = zip(*(column.tolist() for column in self.columns.values()), strict=True)
        return [dict(zip(self.columns, row, strict=True)) for row in cells]

    def to_pandas(self) -> Any:
        """The table as a frame of pandas."""
        return frames("pandas").DataFrame(dict(self.columns))

    @staticmethod
    def of(data: Any) -> Table:
        """A table from a table, a mapping of columns, a frame of pandas or polars, or an Arrow table."""
        if isinstance(data, Table):
            return data
        if isinstance(data, Mapping):
            return _table_of(data, {})
        adapter = columns_of(data)
        if adapter is None and isinstance(data, str | PathLike):
            raise TableError(
                f"a table is needed, not the name of a file: use leastwise.tables.read_table({str(data)!r})."
            )
        if adapter is None:
            raise TableError(
                f"{type(data).__name__} is not a table: give a frame of pandas or polars, a mapping from names to "
                "columns, or the result of leastwise.tables.read_table."
            )
        schema = adapter.schema(data)
        declared = {str(name): "category" for name, kind in schema.items() if kind.name == "category"}
        return _table_of({name: adapter.values(data, name) for name in schema}, declared)

    # ------------------------------------------------------------- messages

    def line_numbers(self) -> Array:
        """The position of each row: its line in the file, or its row number counted from 1."""
        return np.arange(1, len(self) + 1) if self.lines is None else self.lines

    def error(self, row: int, column: str, message: str) -> TableError:
        """An error about one cell."""
        file = f"{self.source}, " if self.source else ""
        return TableError(f'{file}{self.unit} {self.line_numbers()[row]}, column "{column}": {message}')

    def missing_error(self, names: list[str], what: str = "the model needs") -> TableError:
        """An error about columns that are not in the table."""
        some = ", ".join(map(repr, names[:10])) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
        word = "column" if len(names) == 1 else "columns"
        absent = f"{what} the {word} {some}, which the table does not have{self._similar(names)}"
        return TableError(f"{self._prefix()}{absent}; {self._listed()}")

    def _prefix(self) -> str:
        return f"{self.source}: " if self.source else ""

    def _similar(self, names: list[str]) -> str:
        """A hint at columns with similar names."""
        small = {name.casefold(): name for name in reversed(self.names)}
        near = [small[close[0]] for n in names[:3] if (close := get_close_matches(n.casefold(), small, 1, 0.7))]
        return f" (did you mean {', '.join(map(repr, near))}?)" if near else ""

    def _listed(self) -> str:
        more = f" and {len(self.columns) - 20} more" if len(self.columns) > 20 else ""
        return f"the columns are {self.names[:20]}{more}."


# --------------------------------------------------------------------- columns


def _table_of(columns: Mapping[Any, Any], declared: dict[str, str]) -> Table:
    """A table of columns; those of lists and other values without a meaning are text that is not used."""
    made = {}
    for key, values in columns.items():
        name = str(key)
        made[name], what = _column_or_text(values, name)
        if what:
            declared[name] = what
    return Table(made, declared=declared)


def column_of(values: Any, name: str = "") -> Array:
    """A column: numbers, booleans and dates in their own type, durations as days, and all else as text or None."""
    column, what = _column_or_text(values, name)
    if what:
        raise TableError(f'column "{name}" contains {what}: give numbers, text, or dates.')
    return column


def _column_or_text(values: Any, name: str) -> tuple[Array, str]:
    """A column, and what it contains where that has no meaning as a column; "" where it has."""
    array = values if isinstance(values, np.ndarray) else _array(list(values))
    if array.ndim != 1:
        raise TableError(f'column "{name}" has shape {array.shape}: give one value for each row.')
    if array.dtype.kind in "iufbM":
        return array, ""
    if array.dtype.kind == "m":  # a duration, in days
        lengths = array.astype("timedelta64[us]")
        return np.where(np.isnat(lengths), np.nan, lengths.astype("int64") / 86_400e6), ""
    cells = array.tolist()
    wrong = next((type(v).__name__ for v in cells if isinstance(v, _UNSUPPORTED)), "")
    if array.dtype.kind in "cV" or wrong:
        texts = object_column([None if _is_missing(v) else str(v) for v in cells])
        return texts, f"values of type {wrong or array.dtype}"
    return _object_column(cells), ""


def _without_words(column: Array, folded: set[str], numbers: list[float]) -> Array:
    """A column whose cells are None, or NaN, where they are one of the words, or of the numbers."""
    kind = column.dtype.kind
    if kind == "O":
        meaning = {cell: None if cell is None or _is_word(cell, folded, numbers) else cell for cell in set(column)}
        return object_column([meaning[cell] for cell in column.tolist()])
    if kind not in "iuf" or not np.isin(column, numbers).any():
        return column
    return np.where(np.isin(column, numbers), np.nan, column)


def _is_word(cell: str, folded: set[str], numbers: list[float]) -> bool:
    text = cell.strip()
    return text.casefold() in folded or (bool(numbers) and number(text) in numbers)


def _array(values: list) -> Array:
    """Numbers and booleans as such, everything else as objects: numpy would turn 1 and None into text."""
    kinds = {type(v) for v in values}
    if kinds and kinds <= {bool, np.bool_}:
        return np.array(values, dtype=bool)
    if kinds and all(issubclass(k, int | float | np.number) and k is not bool for k in kinds):
        return np.array(values)
    return object_column(values)


def _object_column(values: list) -> Array:
    """Numbers with missing values as floats; everything else, and integers that floats cannot hold, as text."""
    known = [v for v in values if not _is_missing(v)]
    numbers = known and all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in known)
    if numbers and not any(isinstance(v, int | np.integer) and abs(int(v)) > EXACT for v in known):
        return np.array([np.nan if _is_missing(v) else float(v) for v in values])
    return object_column([None if _is_missing(v) else text_of(v) for v in values])


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float | np.floating) and value != value)


def text_of(value: Any) -> str:
    """A value as it is written to a file."""
    return str(value).lower() if isinstance(value, bool | np.bool_) else str(value)


# --------------------------------------------------------------------- preview


def _preview(columns: dict[str, Array], n_rows: int, source: str = "") -> str:
    """The numbers of rows and columns, and the first rows of as many columns as fit on a line."""
    head = f"{_counted(n_rows, 'row')}, {_counted(len(columns), 'column')}" + (f", from {source}" if source else "")
    shown = [
        [_preview_cell(name), *map(_preview_cell, column[:PREVIEW_ROWS])]
        for name, column in list(columns.items())[:PREVIEW_LINE]
    ]
    widths = [max(map(len, column)) for column in shown]
    fits = int(np.searchsorted(np.cumsum([w + 2 for w in widths]), PREVIEW_LINE + 2, side="right"))
    lines = [
        "  ".join(f"{column[i]:<{width}}" for column, width in zip(shown[:fits], widths, strict=False)).rstrip()
        for i in range(min(PREVIEW_ROWS, n_rows) + 1)
    ]
    left = {"more row": n_rows - PREVIEW_ROWS, "more column": len(columns) - fits}
    more = " and ".join(_counted(count, what) for what, count in left.items() if count > 0)
    return "\n".join([head, *lines] + ([f"... {more}"] if more else []))


def _preview_cell(value: Any) -> str:
    """A value on one line, shortened if it is long; empty if it is missing."""
    if value is None or value != value:
        return ""
    text = f"{value:.6g}" if isinstance(value, float | np.floating) else " ".join(str(value).split())
    return text if len(text) <= PREVIEW_CELL else text[: PREVIEW_CELL - 3] + "..."


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")
