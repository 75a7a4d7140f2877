"""Category columns: which columns of X they are, their values, and the codes that stand for them.

A table becomes a matrix of floats: the values of a category column are replaced by their positions 0, 1, ... among
the known values, which are sorted; -1 is an unknown value, NaN a missing one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from leastwise.sources.blocks import CodedRows, Known
from leastwise.sources.frames import Columns, Kind, Schema, columns_of, translated

Array = np.ndarray


def category_columns(X: Any, categories: Any) -> list[int]:
    """Positions of the category columns of X.

    Parameters
    ----------
    X : table, array or anything else that a fit takes
    categories : "from_dtype", sequence of names or positions, or None
        "from_dtype" are the columns of a table that hold text, categories or booleans. Objects that are all numbers
        are numbers.
    """
    if isinstance(X, CodedRows):
        return X.places
    if categories is None:
        return []
    if isinstance(categories, str) and categories == "from_dtype":
        columns, names = _adapter(X), _names(X)
        if columns is None or len(set(names)) < len(names):
            return []
        kinds = columns.schema(X)
        _refuse_dates(kinds)
        return [j for j, name in enumerate(names) if _is_category(columns, X, name, kinds[name].name)]
    if sparse.issparse(X):
        raise ValueError(f"categories={categories!r}: sparse X has no categories. Give a frame or a dense array.")
    width = np.shape(X)[1] if np.ndim(X) == 2 or hasattr(X, "shape") else len(X[0])
    return sorted({_position(entry, _names(X), width) for entry in categories})


def _refuse_dates(kinds: Schema) -> None:
    """Raise an error for columns that are neither numbers nor categories."""
    for name, kind in kinds.items():
        if kind.name in ("date", "other") and not kind.type.startswith("period"):
            what = "dates" if kind.name == "date" else f"values of type {kind.type}"
            raise ValueError(
                f"Column {name!r} holds {what}: turn them into numbers, such as days since the first one, or leave "
                "the column out. leastwise.tables.TableModel takes dates as they are."
            )


def check_categories(categories: Any) -> None:
    """Raise an error for a parameter ``categories`` that is never possible."""
    if categories is None or (isinstance(categories, str) and categories == "from_dtype"):
        return
    if isinstance(categories, str) or not isinstance(categories, Iterable) or isinstance(categories, Mapping):
        raise ValueError(
            f"categories={categories!r} is not known: use 'from_dtype', a list of column names or positions, or None."
        )


def nominal_columns(schema: Schema, features: Sequence, categories: Any) -> list[int]:
    """Positions of the category columns among the features of a table of which only the schema is known."""
    if categories is None:
        return []
    if isinstance(categories, str):
        return [j for j, name in enumerate(features) if schema[name].name in ("text", "category", "boolean")]
    return sorted({_position(entry, list(features), len(features)) for entry in categories})


def schema_of(columns: Columns, table: Any) -> Schema:
    """The schema of a table in memory; columns of objects that are all numbers are numbers."""
    kinds = dict(columns.schema(table))
    for name, kind in kinds.items():
        if kind.name == "text" and not _is_category(columns, table, name, "text"):
            kinds[name] = Kind("number", "object")
    return kinds


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
        known[j] = in_order(set(_values(X, j)) - {None})
    return known


def in_order(values: Iterable) -> list:
    """Values of a category, sorted, also if they are of several types."""
    values = list(values)
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=lambda value: (type(value).__name__, str(value)))


def merged_categories(a: Known, b: Known) -> Known:
    """The values of the columns of two sets of rows."""
    merged: Known = []
    for j, (one, other) in enumerate(zip(a, b, strict=True)):
        if one is None or other is None:
            if one or other:
                raise ValueError(
                    f"Column {j} holds numbers in some blocks and categories in others: give it one type, or list "
                    "the columns that are categories with categories=."
                )
            merged.append(None)  # a block without any value may have either type
        else:
            merged.append(in_order({*one, *other}))
    return merged


def has_categories(known: Known | None) -> bool:
    """True if some column is a category."""
    return known is not None and any(values is not None for values in known)


def category_codes(X: Any, j: int, known: list) -> Array:
    """Codes of column j: positions among the known values, -1 for others, NaN where missing."""
    if isinstance(X, CodedRows) and (own := X.values[j]) is not None:
        return translated(X.matrix[:, j], own, known)
    return _codes(_values(X, j), known)


def coded_column(values: Array, name: Any) -> tuple[Array, list]:
    """Codes of a column, and the values that they stand for."""
    listed = plain_values(values, name)
    known = in_order(set(listed) - {None})
    return _codes(listed, known), known


def _codes(values: list, known: list) -> Array:
    place = {value: float(code) for code, value in enumerate(known)}
    place[None] = np.nan
    return np.array([place.get(value, -1.0) for value in values], dtype=float)


def code_matrix(X: Any, known: Known, dtypes: list, model: Any = None) -> Array:
    """A table as a matrix, with codes for the values of categories."""
    places = [j for j, values in enumerate(known) if values is not None]
    codes = {j: category_codes(X, j, known[j] or []) for j in places}
    numeric = [j for j in range(len(known)) if j not in codes]
    dtype, numbers = dtypes[0], np.empty((X.shape[0], 0))
    if numeric:
        allowed: dict[str, Any] = {"dtype": dtypes, "ensure_all_finite": "allow-nan", "ensure_min_samples": 0}
        numbers = check_array(other_columns(X, places), estimator=model, input_name="X", **allowed)
        dtype = numbers.dtype
    matrix = np.empty((X.shape[0], len(known)), dtype=dtype)
    matrix[:, numeric] = numbers
    for j, column in codes.items():
        matrix[:, j] = column
    return matrix


def other_columns(X: Any, places: Sequence[int]) -> Any:
    """X without some columns."""
    rest = [j for j in range(X.shape[1]) if j not in set(places)]
    if isinstance(X, CodedRows):
        numbers = not has_categories([X.values[j] for j in rest])
        return X.matrix[:, rest] if numbers else np.column_stack([X[:, j] for j in rest])
    if hasattr(X, "iloc"):
        return X.iloc[:, rest]
    return X.select(rest) if hasattr(X, "column_names") else X[:, rest]


def _values(X: Any, j: int) -> list:
    """The values of a column, None where missing."""
    columns = _adapter(X)
    if columns is None:
        return plain_values(X[:, j], j)
    name = _names(X)[j]
    return plain_values(columns.values(X, name), name)


def plain_values(values: Array, name: Any) -> list:
    """The values of the column of this name as Python objects, None where missing."""
    listed = values.tolist()
    if values.dtype.kind in "biuU":
        return listed
    try:
        meaning = {v: None if is_missing(v) else v.item() if isinstance(v, np.generic) else v for v in set(listed)}
    except TypeError:
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
