"""Category columns of tables, as codes.

A table becomes a matrix of floats: the values of a category column are replaced by their positions 0, 1, ... among
the known values, which are sorted; -1 is a value that is not known, NaN a missing one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.sources.frames import Columns, Kind, columns_of

Array = np.ndarray

#: The known values of each column; None for a column of numbers.
Known = list[list | None]


def category_columns(X: Any, categories: Any) -> list[int]:
    """Positions of the category columns of X.

    Parameters
    ----------
    X : table, array or anything else that a fit takes
    categories : "from_dtype", sequence of names or positions, or None
        "from_dtype" are the columns of a table that hold text, categories or booleans. Objects that are all numbers
        are numbers.
    """
    if categories is None:
        return []
    if isinstance(categories, str) and categories == "from_dtype":
        columns, names = _adapter(X), _names(X)
        if columns is None or len(set(names)) < len(names):
            return []
        kinds = columns.schema(X)
        return [j for j, name in enumerate(names) if _is_category(columns, X, name, kinds[name].name)]
    if sparse.issparse(X):
        raise ValueError(f"categories={categories!r}: sparse X has no categories. Give a frame or a dense array.")
    width = np.shape(X)[1] if np.ndim(X) == 2 or hasattr(X, "shape") else len(X[0])
    return sorted({_position(entry, _names(X), width) for entry in categories})


def check_categories(categories: Any) -> None:
    """Raise an error for a parameter ``categories`` that is never possible."""
    if categories is None or (isinstance(categories, str) and categories == "from_dtype"):
        return
    if isinstance(categories, str) or not isinstance(categories, Iterable) or isinstance(categories, Mapping):
        raise ValueError(
            f"categories={categories!r} is not known: use 'from_dtype', a list of column names or positions, or None."
        )


def refuse_categories(X: Any, categories: Any) -> None:
    """Raise an error that names the first category column of a block; booleans are numbers there."""
    by_dtype = categories is None or isinstance(categories, str)
    places, names, columns = category_columns(X, "from_dtype" if by_dtype else categories), _names(X), _adapter(X)
    for j in places:
        kind = columns.schema(X)[names[j]] if by_dtype and columns is not None else Kind("category", "categories")
        if not kind.numeric:
            raise ValueError(
                f"Column {names[j] if names else j!r} holds {kind.type}, but rows in blocks must be numeric: encode "
                "it first, for example with sklearn.preprocessing.OneHotEncoder, or pass all rows to fit()."
            )


def _adapter(X: Any) -> Columns | None:
    return None if isinstance(X, Mapping) else columns_of(X)


def _names(X: Any) -> list:
    return list(getattr(X, "column_names", getattr(X, "columns", [])))


def _position(entry: Any, names: list, width: int) -> int:
    """The position of a column that is given by its name or position."""
    if entry in names:
        return names.index(entry)
    whole = isinstance(entry, Integral) and not isinstance(entry, bool)
    if whole and -width <= entry < width:
        return int(entry) % width
    known = f"the columns are {names[:20]}" if names else f"X has {width} columns without names"
    raise ValueError(f"categories names the column {entry!r}, which X does not have: {known}.")


def _is_category(columns: Columns, X: Any, name: Any, kind: str) -> bool:
    if kind != "text":
        return kind in ("category", "boolean")
    values = columns.values(X, name)
    if values.dtype.kind != "O":
        return True
    known = [v for v in values.tolist() if not is_missing(v)]
    return not known or any(isinstance(v, bool) or not isinstance(v, Real | Decimal) for v in known)


# ------------------------------------------------------------------------ values


def learn_categories(X: Any, places: Sequence[int], width: int) -> Known:
    """The known values of each column."""
    known: Known = [None] * width
    for j in places:
        values = set(_values(X, j)) - {None}
        try:
            known[j] = sorted(values)
        except TypeError:  # values of several types
            known[j] = sorted(values, key=lambda value: (type(value).__name__, str(value)))
    return known


def has_categories(known: Known | None) -> bool:
    """True if some column is a category."""
    return known is not None and any(values is not None for values in known)


def category_codes(X: Any, j: int, known: list) -> Array:
    """Codes of column j: positions among the known values, -1 for others, NaN where missing."""
    place = {value: float(code) for code, value in enumerate(known)}
    place[None] = np.nan
    return np.array([place.get(value, -1.0) for value in _values(X, j)], dtype=float)


def other_columns(X: Any, places: Sequence[int]) -> Any:
    """X without some columns."""
    rest = [j for j in range(X.shape[1]) if j not in set(places)]
    if hasattr(X, "iloc"):
        return X.iloc[:, rest]
    return X.select(rest) if hasattr(X, "column_names") else X[:, rest]


def _values(X: Any, j: int) -> list:
    """The values of a column, None where missing."""
    columns = _adapter(X)
    values = X[:, j] if columns is None else columns.values(X, _names(X)[j])
    listed = values.tolist()
    if values.dtype.kind in "biuU":
        return listed
    try:
        meaning = {v: None if is_missing(v) else v.item() if isinstance(v, np.generic) else v for v in set(listed)}
    except TypeError:
        name = j if columns is None else _names(X)[j]
        odd = next(type(v).__name__ for v in listed if getattr(v, "__hash__", None) is None)
        raise ValueError(
            f"Column {name!r} holds objects of type {odd}, which cannot be categories: remove the column, or turn "
            "its values into text or numbers."
        ) from None
    return [meaning[v] for v in listed]


def is_missing(value: Any) -> bool:
    """True for None, NA, NaN and other values that are not equal to themselves."""
    if value is None or type(value).__name__ == "NAType":
        return True
    return not isinstance(value, np.ndarray) and bool(value != value)
