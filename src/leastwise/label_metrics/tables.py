"""Tables of every kind as arrays, with what is known in them, and two tables side by side."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

Array = np.ndarray

#: What values may be. The frequent ones come first, and unions are made once, since every entry may be looked at.
PLAIN = (str, int, float, np.bool_, Real)
FLOATS = (float, np.floating)


@dataclass(frozen=True, eq=False)
class Table:
    """One value for each row and label.

    Attributes
    ----------
    name : str
        What errors call it.
    values : ndarray of shape (n, T)
        Numbers, strings, or objects where columns differ in that.
    known : ndarray of bool of shape (n, T)
    labels : tuple of str, optional
        Names of the columns of a frame.
    index : pandas Index, optional
        Names of the rows.
    """

    name: str
    values: Array
    known: Array
    labels: tuple[str, ...] | None = None
    index: Any = None

    @property
    def number(self) -> bool:
        """Whether there are numbers only."""
        return self.values.dtype.kind in "biuf"

    def where(self, t: int) -> str:
        """How errors speak of a column."""
        return f"Column {self.labels[t] if self.labels else t!r} of {self.name}"

    def beside(self, truth: Table) -> Table:
        """With columns in the order of the truth; an error where the two do not belong together."""
        order = _order(self, truth) if self.labels and truth.labels else slice(None)
        if self.values.shape != truth.values.shape:
            raise ValueError(
                f"{self.name} has shape {self.values.shape} but {truth.name} {truth.values.shape}: give a value for "
                "each of its entries."
            )
        _check_rows(self, truth)
        return replace(self, values=self.values[:, order], known=self.known[:, order], labels=truth.labels)


def read(Y: Any, name: str, missing: Any = None) -> Table:
    """A table of any kind; ``missing`` is a value that stands for unknown beside NaN, None, NA and masks."""
    if hasattr(Y, "collect"):
        raise ValueError(f"{name} is a {type(Y).__name__}, which holds no rows yet: give {name}.collect().")
    values = _values_of(Y, name)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"{name} has shape {values.shape}: give a table of rows, with one column for each label.")
    unknown = _unknown(values, _checked_missing(missing))
    if isinstance(Y, np.ma.MaskedArray):
        unknown = unknown | np.ma.getmaskarray(Y)
    if values.dtype.kind == "O":
        values = _typed(values, ~unknown, name)
    if values.dtype.kind not in "biufUO":
        raise ValueError(f"{name} is of type {values.dtype}: give numbers or strings.")
    return Table(name, values, ~unknown, _labels(Y), getattr(Y, "index", None) if hasattr(Y, "iloc") else None)


# ------------------------------------------------------------------- reading


def _values_of(Y: Any, name: str) -> Array:
    """An array; of objects where there are strings beside other things."""
    if sparse.issparse(Y):
        return Y.toarray()
    if hasattr(Y, "iloc"):
        if Y.ndim == 2 and all(dtype.kind in "biuf" for dtype in Y.dtypes):
            return Y.to_numpy(dtype=float, na_value=np.nan)
        return Y.to_numpy(dtype=object)
    if hasattr(Y, "get_columns"):
        return Y.to_numpy()
    try:
        values = np.asarray(Y)
    except ValueError as error:
        raise ValueError(f"{name} is no table of numbers or strings with one column a label: {error}") from None
    if values.dtype.kind == "T" or (values.dtype.kind in "US" and not hasattr(Y, "dtype")):
        return np.asarray(Y, dtype=object)  # in a list, a string makes strings of None and of numbers
    return values


def _labels(Y: Any) -> tuple[str, ...] | None:
    """Names of the columns, as strings since polars has no others; 0 ... T-1 in pandas are none."""
    if not hasattr(Y, "columns"):
        return None
    names = list(Y.columns)
    return None if names == list(range(len(names))) else tuple(map(str, names))


def _checked_missing(missing: Any) -> Any:
    """None where there is no value beside those that are always unknown."""
    if absent(missing):
        return None
    if not isinstance(missing, PLAIN):
        raise ValueError(f"missing={missing!r} must be NaN, or a number or string that stands for an unknown label.")
    return missing


def absent(value: Any) -> bool:
    """Whether a value always stands for unknown."""
    if isinstance(value, str):
        return False
    if isinstance(value, FLOATS):
        return bool(value != value)
    return value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType")


def _unknown(values: Array, missing: Any) -> Array:
    if values.dtype.kind == "O":
        each = [absent(v) or _is(v, missing) for v in values.ravel().tolist()]
        return np.array(each, dtype=bool).reshape(values.shape)
    gone = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)
    alike = missing is not None and isinstance(missing, str) == (values.dtype.kind == "U")
    return gone | (values == missing) if alike else gone


def _is(value: Any, missing: Any) -> bool:
    return missing is not None and isinstance(value, PLAIN) and bool(value == missing)


def _typed(values: Array, known: Array, name: str) -> Array:
    """Objects as numbers where they are; None where one is not known."""
    told = values[known].tolist()
    strange = next((v for v in told if not isinstance(v, PLAIN)), None)
    if strange is not None:
        raise ValueError(
            f"{name} is no table of numbers or strings with one column a label: it holds {strange!r:.40} of type "
            f"{type(strange).__name__}."
        )
    if any(isinstance(v, str) for v in told):
        values = values.copy()
        values[~known] = None
        return values
    numbers = np.full(values.shape, np.nan)
    numbers[known] = told
    return numbers


# ----------------------------------------------------------------- two tables


def _order(given: Table, truth: Table) -> list[int]:
    """Where the columns of the truth stand in the other table."""
    for table in (given, truth):
        names = table.labels or ()
        twice = next((name for name in names if names.count(name) > 1), None) if len({*names}) < len(names) else None
        if twice is not None:
            raise ValueError(f"{table.name} has several columns named {twice!r}: give every label a name of its own.")
    theirs, ours = given.labels or (), truth.labels or ()
    lost, more = [x for x in ours if x not in {*theirs}], [x for x in theirs if x not in {*ours}]
    if lost or more:
        raise ValueError(
            f"{given.name} and {truth.name} have columns of different names: {truth.name} alone has {lost[:10]}, "
            f"{given.name} alone {more[:10]}. Give both the same names, or arrays with columns in the same order."
        )
    place = {name: t for t, name in enumerate(theirs)}
    return [place[name] for name in ours]


def _check_rows(given: Table, truth: Table) -> None:
    """Rows are never put in order here; where their names are in another order someone has to look."""
    if given.index is None or truth.index is None or given.index.equals(truth.index):
        return
    if {*given.index.tolist()} == {*truth.index.tolist()}:
        raise ValueError(
            f"The rows of {given.name} and {truth.name} have the same names (index) in another order, and rows are "
            f"compared as they stand: give {given.name}.loc[{truth.name}.index], or arrays if the names mean nothing."
        )
