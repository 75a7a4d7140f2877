"""Columns of tables of pandas, polars and pyarrow, and of mappings, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from leastwise.sources.blocks import Array, Block, StreamError
from leastwise.sources.roles import Kind, Layout, Schema
from leastwise.utils.optional import frames


class Columns(Protocol):
    """How the tables of one library are taken apart."""

    def schema(self, table: Any) -> Schema:
        """Names of the columns, in order, and what they hold."""
        ...

    def rows(self, table: Any, first: int, last: int) -> Any:
        """Some of the rows."""
        ...

    def numbers(self, table: Any, name: Any, dtype: np.dtype) -> Array:
        """A column as floats, NaN where missing."""
        ...

    def values(self, table: Any, name: Any) -> Array:
        """A column as it is, None or NaN where missing."""
        ...


def assemble(columns: Columns, table: Any, layout: Layout, n: int) -> Block:
    """A block of the rows of a table."""
    X = np.empty((n, len(layout.features)), dtype=layout.dtype)
    for k, name in enumerate(layout.features):
        X[:, k] = columns.numbers(table, name, layout.dtype)
    roles = layout.roles
    picked: list[Any] = [
        None if n is None else columns.values(table, n) for n in (roles.weight, roles.task, roles.group)
    ]
    return Block(X, _targets(columns, table, layout), *picked)


def _targets(columns: Columns, table: Any, layout: Layout) -> Array | None:
    roles = layout.roles
    if not roles.targets:
        return None
    if not roles.several:
        return columns.values(table, roles.targets[0])
    parts = [columns.values(table, name) for name in roles.targets]
    return np.column_stack([_unknown_as_nan(p) for p in parts])


def _unknown_as_nan(values: Array) -> Array:
    """Numbers with gaps as floats; other objects stay."""
    if values.dtype.kind != "O" or any(isinstance(v, str | bytes) for v in values):
        return values
    return np.array([np.nan if v is None or v != v else float(v) for v in values])


def columns_of(table: Any) -> Columns | None:
    """The way to take a table apart; None for what is no table."""
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
    """Every name once."""
    if len(set(names)) < len(names):
        double = next(n for n in names if names.count(n) > 1)
        raise StreamError(f"{source}: more than one column has the name {double!r}: rename them.", where=source)


class ArrowColumns:
    """Tables and record batches of pyarrow."""

    def schema(self, table: Any) -> Schema:
        """Names and kinds of a table, or of a schema."""
        schema = getattr(table, "schema", table)
        check_names([field.name for field in schema])
        index = (schema.pandas_metadata or {}).get("index_columns", [])  # those of a plain count are no columns
        kinds = {field.name: arrow_kind(field.type) for field in schema}
        return {name: replace(kind, index=name in index) for name, kind in kinds.items()}

    def rows(self, table: Any, first: int, last: int) -> Any:
        """Without a copy."""
        return table.slice(first, last - first)

    def numbers(self, table: Any, name: Any, dtype: np.dtype) -> Array:
        """Whatever their type, gaps as NaN."""
        pa, column = frames("pyarrow"), table.column(name)
        if column.type != pa.from_numpy_dtype(dtype):
            column = column.cast(pa.from_numpy_dtype(dtype), safe=False)
        return _numpy(column)

    def values(self, table: Any, name: Any) -> Array:
        """Categories as their values, decimals as floats."""
        types, column = frames("pyarrow.types"), table.column(name)
        if types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if types.is_decimal(column.type):
            column = column.cast("float64")
        if column.null_count and types.is_integer(column.type):  # floats would change large ids
            return np.array(column.to_pylist(), dtype=object)
        return _numpy(column)


def _numpy(column: Any) -> Array:
    chunked = hasattr(column, "chunks")
    return np.asarray(column.to_numpy() if chunked else column.to_numpy(zero_copy_only=False))


def arrow_kind(type: Any) -> Kind:
    """What a column of this type of pyarrow holds."""
    types = frames("pyarrow.types")
    if types.is_float32(type):
        return Kind("number", "float32")
    if types.is_integer(type) or types.is_floating(type) or types.is_decimal(type) or types.is_null(type):
        return Kind("number", str(type))
    if types.is_boolean(type):
        return Kind("boolean", "bool")
    if types.is_dictionary(type):
        return Kind("text", "categories")
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
        """NA as None."""
        values = table[name].to_numpy()
        if values.dtype.kind == "O":
            values = np.where(table[name].isna().to_numpy(), None, values)
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


class MappingColumns:
    """Mappings from names to arrays."""

    def schema(self, table: Any) -> Schema:
        """By dtype."""
        return {name: _numpy_kind(np.asarray(values).dtype) for name, values in table.items()}

    def rows(self, table: Any, first: int, last: int) -> Any:
        """Slices."""
        return {name: values[first:last] for name, values in table.items()}

    def numbers(self, table: Any, name: Any, dtype: np.dtype) -> Array:
        """As they are."""
        return np.asarray(table[name], dtype=dtype)

    def values(self, table: Any, name: Any) -> Array:
        """As they are."""
        return np.asarray(table[name])


def _numpy_kind(dtype: Any) -> Kind:
    """Of numpy, and of the extensions of pandas, which have a kind too."""
    name = str(dtype).lower()
    kind = "O" if name.startswith("categ") else getattr(dtype, "kind", "O")
    if kind in "iuf":
        return Kind("number", name)
    if kind == "b":
        return Kind("boolean", "bool")
    return Kind("text", "text") if kind in "OUT" and not name.startswith("categ") else Kind("other", name)


def _polars_kind(dtype: Any) -> Kind:
    name = str(dtype).lower()
    if dtype.is_numeric():
        return Kind("number", name)
    return Kind("boolean", "bool") if name == "boolean" else Kind("text" if name == "string" else "other", name)
