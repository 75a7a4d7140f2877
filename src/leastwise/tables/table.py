"""Named columns of equal length, and where in a file their rows stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from os import PathLike
from typing import Any

import numpy as np

from leastwise.tables.preview import preview
from leastwise.utils.optional import frames

Array = np.ndarray


class TableError(ValueError):
    """A table that cannot be used; the message says which file, line and column, and what to do."""


class TableFileError(TableError, OSError):
    """A file that is not there, or cannot be read or written."""


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """Named columns of equal length.

    Attributes
    ----------
    columns : dict of str to ndarray of shape (n,)
        Text as objects (str, or None where missing), or numbers, booleans or dates as arrays of their own type. Text
        files give text only: what it means is for :class:`TableEncoder` to say.
    source : str
        The file, for messages; empty where there is none.
    lines : ndarray of int of shape (n,), optional
        Where in the file the rows are, counted from 1.
    unit : {"row", "line"}
        What is counted there.
    declared : dict of str to str
        Kinds that the file itself states, such as the categories of an ARFF file.
    absent : float, optional
        What a column that is not there means: 0 in libsvm files.
    notes : tuple of str
        What had to be decided while reading.

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

    def __post_init__(self) -> None:
        lengths = {name: len(column) for name, column in self.columns.items()}
        if len(set(lengths.values())) > 1:
            raise TableError(f"columns must have equal lengths; they have {dict(list(lengths.items())[:10])}.")

    def __len__(self) -> int:
        return next((len(column) for column in self.columns.values()), 0)

    def __repr__(self) -> str:
        return preview(self.columns, len(self), self.source)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.columns)

    def __getitem__(self, name: str) -> Array:
        if name not in self.columns:
            raise TableError(f"{self._file()}there is no column {name!r}{self._near([name])}; {self._listed()}")
        return self.columns[name]

    def take(self, rows: Any) -> Table:
        """Some of the rows, by their places or by a mask."""
        lines = self.line_numbers()[rows]
        return replace(self, columns={name: column[rows] for name, column in self.columns.items()}, lines=lines)

    def without(self, names: Any) -> Table:
        """The table without some columns."""
        out = set(names)
        return replace(self, columns={name: c for name, c in self.columns.items() if name not in out})

    def to_pandas(self) -> Any:
        """The table as a frame of pandas."""
        return frames("pandas").DataFrame(dict(self.columns))

    @staticmethod
    def of(data: Any) -> Table:
        """A table from a table, a mapping of columns, a frame of pandas or polars, or an Arrow table."""
        if isinstance(data, Table):
            return data
        if isinstance(data, Mapping):
            return _from_columns({str(name): values for name, values in data.items()})
        if hasattr(data, "column_names") and hasattr(data, "schema"):
            from leastwise.tables.arrow import from_arrow

            return from_arrow(data)
        if hasattr(data, "columns") and hasattr(data, "__getitem__"):
            return _from_frame(data)
        if isinstance(data, str | PathLike):
            raise TableError(
                f"a table is needed, not the name of a file: give leastwise.tables.read_table({str(data)!r})."
            )
        raise TableError(
            f"{type(data).__name__} is no table: give a frame of pandas or polars, a mapping from names to columns, "
            "or what leastwise.tables.read_table returns."
        )

    # ------------------------------------------------------------- messages

    def line_numbers(self) -> Array:
        """Where the rows stand: lines of the file, or row numbers counted from 1."""
        return np.arange(1, len(self) + 1) if self.lines is None else self.lines

    def error(self, row: int, column: str, message: str) -> TableError:
        """An error about one cell."""
        return TableError(f'{self._file()}{self.unit} {self.line_numbers()[row]}, column "{column}": {message}')

    def lacks(self, names: list[str], what: str = "the model needs") -> TableError:
        """An error about columns that are not there."""
        some = ", ".join(map(repr, names[:10])) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
        word = "column" if len(names) == 1 else "columns"
        return TableError(f"{self._file()}{what} the {word} {some}, not found{self._near(names)}; {self._listed()}")

    def _file(self) -> str:
        return f"{self.source}: " if self.source else ""

    def _near(self, names: list[str]) -> str:
        """What may have been meant."""
        small = {name.casefold(): name for name in reversed(self.names)}
        near = [small[close[0]] for n in names[:3] if (close := get_close_matches(n.casefold(), small, 1, 0.7))]
        return f" (did you mean {', '.join(map(repr, near))}?)" if near else ""

    def _listed(self) -> str:
        more = f" and {len(self.columns) - 20} more" if len(self.columns) > 20 else ""
        return f"the columns are {self.names[:20]}{more}."


# ------------------------------------------------------------------- reading


def _from_frame(frame: Any) -> Table:
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names):
        double = next(name for name in names if names.count(name) > 1)
        raise TableError(f"the frame has more than one column of the name {double!r}: rename them.")
    series = [frame[name] for name in frame.columns]
    declared = {
        name: "category"
        for name, s in zip(names, series, strict=True)
        if str(s.dtype).lower().startswith(_CATEGORIES)
    }
    columns = {name: _from_series(s, name) for name, s in zip(names, series, strict=True)}
    return Table(columns, declared=declared)


#: How names of dtypes begin, of pandas and polars, whose values are categories whatever they look like.
_CATEGORIES = ("categor", "enum")


def _from_series(series: Any, name: str) -> Array:
    values = series.to_numpy()
    if values.dtype.kind == "f" and str(series.dtype).lower().startswith(("int", "uint")):  # by its gaps
        cells = zip(series.to_list(), np.isnan(values).tolist(), strict=True)
        return column_of([None if gap else value for value, gap in cells], name)
    if values.dtype.kind == "O" and hasattr(series, "isna"):  # pandas: pd.NA, NaN and None are all missing
        values = np.where(series.isna().to_numpy(), None, values)
    return column_of(values, name)


def _from_columns(columns: Mapping[str, Any]) -> Table:
    return Table({name: column_of(values, name) for name, values in columns.items()})


def column_of(values: Any, name: str = "") -> Array:
    """One column: numbers, booleans and dates as they are, everything else as text, with None where missing."""
    array = values if isinstance(values, np.ndarray) else _array(list(values))
    if array.ndim != 1:
        raise TableError(f'column "{name}" has shape {array.shape}: give one value for every row.')
    if array.dtype.kind in "iufbM":
        return array
    if array.dtype.kind in "cmV":
        raise TableError(f'column "{name}" holds values of type {array.dtype}: give numbers, text, or dates.')
    cells = array.tolist()
    strange = next((type(v) for v in cells if isinstance(v, _STRANGE)), None)
    if strange is not None:
        raise TableError(f'column "{name}" holds values of type {strange.__name__}: give numbers, text, or dates.')
    return _mixed(cells)


#: Beyond this floats skip whole numbers.
WHOLE = 2**53
#: What has no meaning as a cell.
_STRANGE = (list, tuple, dict, set, bytes, complex, np.ndarray)


def _array(values: list) -> Array:
    """Numbers as numbers; anything mixed as objects, since numpy would make text of 1 and None."""
    kinds = {type(v) for v in values}
    if kinds and kinds <= {bool, np.bool_}:
        return np.array(values, dtype=bool)
    if kinds and all(issubclass(k, int | float | np.number) and k is not bool for k in kinds):
        return np.array(values)
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _mixed(values: list) -> Array:
    """Objects: numbers with gaps become floats, other things text, also ids too long for floats; None is missing."""
    known = [v for v in values if not _is_nothing(v)]
    numbers = known and all(isinstance(v, int | float | np.number) and not isinstance(v, bool) for v in known)
    if numbers and not any(isinstance(v, int | np.integer) and abs(int(v)) > WHOLE for v in known):
        return np.array([np.nan if _is_nothing(v) else float(v) for v in values])
    out = np.empty(len(values), dtype=object)
    out[:] = [None if _is_nothing(v) else _text(v) for v in values]
    return out


def _is_nothing(value: Any) -> bool:
    return value is None or (isinstance(value, float | np.floating) and value != value)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool | np.bool_) else str(value)
