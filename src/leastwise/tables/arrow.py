"""Parquet and Arrow files, by pyarrow."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from leastwise.tables.table import Array, Table, TableError, column_of
from leastwise.utils.optional import frames


def read_arrow(data: bytes | str, format: str, source: str) -> Table:
    """A table of a file of this format."""
    if isinstance(data, str):
        raise TableError(f"{source}: format={format!r} needs a stream of bytes; given is one of text.")
    pa = frames("pyarrow")
    try:
        arrow = _opened(data, format)
        arrow.validate(full=True)  # broken files may point to places outside of their data
        return from_arrow(arrow, source)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TableError(f"{source}: this is no {format} file that can be read ({reason}).") from None


def _opened(data: bytes, format: str) -> Any:
    if format == "parquet":
        return frames("pyarrow.parquet").read_table(io.BytesIO(data))
    ipc = frames("pyarrow.ipc")
    if data.startswith(b"ARROW1"):
        return ipc.open_file(io.BytesIO(data)).read_all()
    return ipc.open_stream(io.BytesIO(data)).read_all()


def from_arrow(arrow: Any, source: str = "") -> Table:
    """The columns of an Arrow table; an error names the first that is neither numbers, text nor dates."""
    names = list(arrow.column_names)
    double = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if double is not None:
        raise TableError(f"{source}: more than one column has the name {double!r}: rename them.")
    if not names or not arrow.num_rows:
        raise TableError(f"{source or 'the table'}: there are no {'rows' if names else 'columns'}.")
    columns = {name: _column(arrow.column(name), name, source) for name in names}
    types = frames("pyarrow.types")
    declared = {name: "category" for name in names if types.is_dictionary(arrow.schema.field(name).type)}
    return Table(columns, source, declared=declared)


def _column(chunked: Any, name: str, source: str) -> Array:
    types, kind = frames("pyarrow.types"), chunked.type
    if types.is_dictionary(kind):
        chunked = chunked.cast(kind.value_type)
        kind = chunked.type
    if types.is_integer(kind) and chunked.null_count:
        return column_of(chunked.to_pylist(), name)
    if types.is_integer(kind) or types.is_floating(kind):
        return np.asarray(chunked.to_numpy())
    if types.is_decimal(kind):
        return np.asarray(chunked.cast("float64").to_numpy())
    if types.is_date(kind) or types.is_timestamp(kind):
        return np.asarray(chunked.cast(frames("pyarrow").timestamp("us")).to_numpy(), dtype="datetime64[us]")
    if types.is_boolean(kind) and not chunked.null_count:
        return np.asarray(chunked.to_numpy())
    if not (types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)) and not (
        types.is_boolean(kind) or types.is_null(kind)
    ):
        where = f"{source}: " if source else ""
        raise TableError(f'{where}column "{name}" holds values of type {kind}: leave it out, or make it text.')
    column = np.empty(len(chunked), dtype=object)
    column[:] = [str(v).lower() if isinstance(v, bool) else v for v in chunked.to_pylist()]
    return column


def write_arrow(table: Table, format: str) -> bytes:
    """The bytes of a file of this format."""
    pa, target = frames("pyarrow"), io.BytesIO()
    arrow = pa.table({name: _array(pa, column) for name, column in table.columns.items()})
    if format == "parquet":
        frames("pyarrow.parquet").write_table(arrow, target)
    else:
        with frames("pyarrow.ipc").new_file(target, arrow.schema) as writer:
            writer.write_table(arrow)
    return target.getvalue()


def _array(pa: Any, column: Array) -> Any:
    """Objects are text, also where all of them are missing."""
    if column.dtype.kind == "O":
        return pa.array(column.tolist(), pa.string())
    return pa.array(column, from_pandas=True)
