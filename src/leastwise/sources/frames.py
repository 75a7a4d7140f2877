"""Tables of pandas, polars and pyarrow, and mappings, through one interface; :func:`columns_of` gives the adapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from leastwise.sources.blocks import CodedRows, StreamError, array_of
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
    return array_of(values) if isinstance(values, list) else np.asarray(values)


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
