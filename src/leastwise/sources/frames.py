"""Tables of pandas, polars and pyarrow, and mappings, through one interface; and their category columns.

:func:`columns_of` gives the adapter of a table. A table becomes a matrix of floats: the values of a category column
are replaced by their positions 0, 1, ... among the known values, which are sorted; -1 is an unknown value, NaN a
missing one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from leastwise.sources.blocks import CodedRows, Known, StreamError, array_of
from leastwise.utils.optional import frames

Array = np.ndarray


@dataclass(frozen=True)
class Kind:
    """The content of a column and the name of its type.

    ``name`` is "number", "boolean", "text", "category", "date" or "other". ``index`` marks an index that pandas wrote
    to the file: an input only if it is named explicitly.
    """

    name: str
    type: str
    index: bool = False

    @property
    def numeric(self) -> bool:
        """True if the column can be an input."""
        return self.name in ("number", "boolean")


Schema = Mapping[Any, Kind]


# -------------------------------------------------------------------- adapters


class Columns(Protocol):
    """Access to the tables of one library."""

    def schema(self, table: Any) -> Schema:
        """Column names, in order, and their kinds."""
        ...

    def rows(self, table: Any, first: int, last: int) -> Any:
        """A slice of the rows."""
        ...

    def numbers(self, table: Any, name: Any, dtype: np.dtype) -> Array:
        """A column as floats, NaN where missing."""
        ...

    def values(self, table: Any, name: Any) -> Array:
        """A column in its own type, None or NaN where missing."""
        ...


def columns_of(table: Any) -> Columns | None:
    """The adapter of a table; None if the object is not a table."""
    if isinstance(table, Mapping):
        return MappingColumns()
    if hasattr(table, "column_names") and hasattr(table, "schema"):
        return ArrowColumns()
    if hasattr(table, "iloc") and hasattr(table, "columns"):
        return PandasColumns()
    if hasattr(table, "get_column") and hasattr(table, "columns"):
        return PolarsColumns()
    return None


def check_names(names: list, source: str = "the table") -> None:
    """Column names must be unique."""
    if len(set(names)) < len(names):
        double = next(n for n in names if names.count(n) > 1)
        raise StreamError(f"{source}: more than one column is named {double!r}: rename them.", where=source)


class ArrowColumns:
    """Tables and record batches of pyarrow."""

    def schema(self, table: Any) -> Schema:
        """Names and kinds of a table, or of a schema."""
        schema = getattr(table, "schema", table)
        check_names([field.name for field in schema])
        index = (schema.pandas_metadata or {}).get("index_columns", [])  # a range index is no column
        kinds = {field.name: _arrow_kind(field.type) for field in schema}
        return {name: replace(kind, index=name in index) for name, kind in kinds.items()}

    def rows(self, table: Any, first: int, last: int) -> Any:
        """Without a copy."""
        return table.slice(first, last - first)

    def numbers(self, table: Any, name: Any, dtype: np.dtype) -> Array:
        """Any numeric type, nulls as NaN."""
        pa, column = frames("pyarrow"), table.column(name)
        if column.type != pa.from_numpy_dtype(dtype):
            column = column.cast(pa.from_numpy_dtype(dtype), safe=False)
        return _arrow_to_numpy(column)

    def values(self, table: Any, name: Any) -> Array:
        """Dictionaries as their values, decimals as floats."""
        types, column = frames("pyarrow.types"), table.column(name)
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if types.is_decimal(column.type):
            column = column.cast("float64")
        if types.is_date(column.type) or types.is_timestamp(column.type):
            column = column.cast(frames("pyarrow").timestamp("us"))
        if column.null_count and types.is_integer(column.type):  # floats would change large ids
            return np.array(column.to_pylist(), dtype=object)
        return _arrow_to_numpy(column)


def _arrow_to_numpy(column: Any) -> Array:
    chunked = hasattr(column, "chunks")
    return np.asarray(column.to_numpy() if chunked else column.to_numpy(zero_copy_only=False))


def _arrow_kind(type: Any) -> Kind:
    types = frames("pyarrow.types")
    if types.is_float32(type):
        return Kind("number", "float32")
    if types.is_integer(type) or types.is_floating(type) or types.is_decimal(type) or types.is_null(type):
        return Kind("number", str(type))
    if types.is_boolean(type):
        return Kind("boolean", "bool")
    if types.is_dictionary(type):
        return Kind("category", "categories")
    if types.is_date(type) or types.is_timestamp(type):
        return Kind("date", str(type))
    text = types.is_string(type) or types.is_large_string(type) or types.is_string_view(type)
    return Kind("text", "text") if text else Kind("other", str(type))


class PandasColumns:
    """Frames of pandas."""

    def schema(self, table: Any) -> Schema:
        """By dtype; objects count as text."""
        names = list(table.columns)
        check_names(names)
        return {name: _numpy_kind(dtype) for name, dtype in zip(names, table.dtypes, strict=True)}

    def rows(self, table: Any, first: int, last: int) -> Any:
        """By position, whatever the index."""
        return table.iloc[first:last]

    def numbers(self, table: Any, name: Any, dtype: np.dtype) -> Array:
        """NA as NaN."""
        return table[name].to_numpy(dtype=dtype, na_value=np.nan)

    def values(self, table: Any, name: Any) -> Array:
        """NA, NaN and None among objects, and NA among integers, as None."""
        series = table[name]
        values = series.to_numpy()
        as_float = values.dtype.kind == "f" and str(series.dtype).lower().startswith(("int", "uint"))
        if values.dtype.kind == "O" or as_float:
            values = np.where(series.isna().to_numpy(), None, series.to_numpy(dtype=object))
        return values


class PolarsColumns:
    """Frames of polars."""

    def schema(self, table: Any) -> Schema:
        """Names and kinds of a frame, or of a schema."""
        return {name: _polars_kind(dtype) for name, dtype in dict(getattr(table, "schema", table)).items()}

    def rows(self, table: Any, first: int, last: int) -> Any:
        """Without a copy."""
        return table.slice(first, last - first)

    def numbers(self, table: Any, name: Any, dtype: np.dtype) -> Array:
        """Nulls as NaN."""
        pl = frames("polars")
        kind = pl.Float32 if dtype == np.float32 else pl.Float64
        return table.get_column(name).cast(kind).to_numpy()

    def values(self, table: Any, name: Any) -> Array:
        """Nulls as None, of floats as NaN."""
        series = table.get_column(name)
        if series.null_count() and series.dtype.is_integer():
            return np.array(series.to_list(), dtype=object)
        return series.to_numpy()


def _polars_kind(dtype: Any) -> Kind:
    name = str(dtype).lower()
    if dtype.is_numeric():
        return Kind("number", name)
    if name.startswith(("categor", "enum")):
        return Kind("category", "categories")
    known = {"boolean": Kind("boolean", "bool"), "string": Kind("text", "text"), "time": Kind("text", "time")}
    return known.get(name, Kind("date" if name.startswith("date") else "other", name))


class MappingColumns:
    """Mappings from names to arrays."""

    def schema(self, table: Any) -> Schema:
        """By dtype."""
        return {name: _numpy_kind(_as_array(values).dtype) for name, values in table.items()}

    def rows(self, table: Any, first: int, last: int) -> Any:
        """Slices."""
        return {name: values[first:last] for name, values in table.items()}

    def numbers(self, table: Any, name: Any, dtype: np.dtype) -> Array:
        """Converted to floats."""
        return np.asarray(table[name], dtype=dtype)

    def values(self, table: Any, name: Any) -> Array:
        """Lists of mixed types as objects."""
        return _as_array(table[name])


def _as_array(values: Any) -> Array:
    return array_of(values) if isinstance(values, list | tuple) else np.asarray(values)


def _numpy_kind(dtype: Any) -> Kind:
    """For dtypes of numpy and the extension types of pandas."""
    name = str(dtype).lower()
    if name.startswith("categ"):
        return Kind("category", "categories")
    kind = getattr(dtype, "kind", "O")
    if kind in "iuf":
        return Kind("number", name)
    known = {"b": Kind("boolean", "bool"), "M": Kind("date", name)}
    return known.get(kind, Kind("text", "text") if kind in "OUT" else Kind("other", name))


# -------------------------------------------------------- rows of any container


def take_rows(A: Any, index: Array) -> Any:
    """Some rows of an array, a list, a sparse matrix, a frame or a column."""
    if hasattr(A, "iloc"):
        return A.iloc[index]
    if isinstance(A, np.ndarray | CodedRows) or sparse.issparse(A) or hasattr(A, "to_numpy"):
        return A[index]
    return [A[i] for i in index] if isinstance(A, Sequence) and not isinstance(A, str) else A


def stack_rows(parts: list[Any]) -> Any:
    """Concatenate the rows of arrays, lists, sparse matrices, frames or columns; None if they are None."""
    first = parts[0]
    if first is None:
        return None
    if sparse.issparse(first):
        return sparse.vstack(parts, format="csr")
    if isinstance(first, CodedRows):
        return _stack_coded(parts)
    if hasattr(first, "iloc"):
        return frames("pandas").concat(parts)
    if hasattr(first, "to_numpy"):
        return frames("polars").concat(parts)
    return np.concatenate(parts) if isinstance(first, np.ndarray) else [v for part in parts for v in part]


def _stack_coded(parts: list[CodedRows]) -> CodedRows:
    """Concatenate rows with categories, whose codes may differ."""
    matrix, values = np.concatenate([part.matrix for part in parts]), list(parts[0].values)
    for j in parts[0].places:
        columns = [(part.matrix[:, j], part.values[j] or []) for part in parts]
        known = list(dict.fromkeys(value for _, own in columns for value in own))
        matrix[:, j] = np.concatenate([translated(codes, own, known) for codes, own in columns])
        values[j] = known
    return CodedRows(matrix, values)


def translated(codes: Array, values: Sequence, known: Sequence) -> Array:
    """Codes of ``values`` as codes of ``known``: -1 for values that are not known, NaN where missing."""
    place = {value: float(code) for code, value in enumerate(known)}
    table = np.array([*(place.get(value, -1.0) for value in values), np.nan])
    return table[np.where(np.isnan(codes), -1, codes).astype(int)]


# ------------------------------------------------------------ category columns


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
        if kind.name in ("date", "other"):
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


@contextmanager
def naming_text(X: Any, known: Known | None, training: bool) -> Iterator[None]:
    """Turn an error of a conversion to numbers into one that names the first column of text, if there is one.

    Columns that have known values are categories.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        found = _first_text(X, known)
        if found is None:
            raise
        advice = (
            "turn it into numbers, name it in categories= (not with a kernel of your own), or leave it out"
            if training
            else "it held numbers in the training data"
        )
        raise ValueError(f"Column {found[0]!r} holds text, such as {found[1]!r:.50}: {advice}.") from error


def _first_text(X: Any, known: Known | None) -> tuple[Any, str] | None:
    """The first column with text that is no number, and that text."""
    columns = _adapter(X)
    if columns is None and not (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OUS"):
        return None
    for j in range(X.shape[1]):
        if known is not None and known[j] is not None:
            continue
        name = j if columns is None else _names(X)[j]
        for value in (X[:, j] if columns is None else columns.values(X, name)).tolist():
            if isinstance(value, str) and not _is_number(value):
                return name, value
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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
