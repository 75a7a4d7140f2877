"""Parquet and Arrow IPC (Feather) files through pyarrow, as record batches.

Batches are validated as they are read, so that a broken file gives the rows before the damage and an error that names
the rows and the column.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from leastwise.sources.blocks import Array, StreamError, error_at, reason_of
from leastwise.sources.frames import ArrowColumns
from leastwise.utils.optional import frames
from leastwise.utils.resources import available_memory, human

MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow"}
#: Bytes that are read ahead of each column, instead of a whole row group.
BUFFER = 2**20


class ArrowReader:
    """Record batches of one file in the IPC file format or the IPC stream format.

    The file format is the stream format between two marks. It is read as a stream from the first mark on, so that a
    truncated file gives the batches that it has.

    Parameters
    ----------
    path : str
        The file; also its name in messages.
    data : bytes, optional
        The content, if it does not come from this file.
    """

    n_rows = None

    def __init__(self, path: str, data: bytes | None = None) -> None:
        self.path, self._data = path, data
        with self._open() as file:
            self.schema = self._stream(file).schema
        self.kinds = ArrowColumns().schema(self.schema)

    def batches(self, columns: list[str] | None = None) -> Iterator[Any]:
        """Record batches as they were written, with the given columns."""
        with self._open() as file:
            stream, done = self._stream(file, columns), 0
            while (batch := self._next(stream, done)) is not None:
                done += batch.num_rows
                yield batch
            if self._is_truncated(file):
                raise error_at(f"the file was cut off after row {done - 1}.", self.path, (done, done))

    def _open(self) -> Any:
        pa = frames("pyarrow")
        try:
            return pa.memory_map(self.path) if self._data is None else pa.BufferReader(self._data)
        except (pa.ArrowException, OSError) as error:
            raise error_at(f"the file cannot be read ({reason_of(error)}).", self.path) from error

    def _stream(self, file: Any, columns: list[str] | None = None) -> Any:
        pa, ipc = frames("pyarrow"), frames("pyarrow.ipc")
        order = [] if columns is None else list(self.kinds)
        fields = None if columns is None else sorted(order.index(name) for name in columns)
        options = ipc.IpcReadOptions(use_threads=False, included_fields=fields)
        try:
            file.seek(8 if file.read_at(6, 0) == b"ARROW1" else 0)
            return ipc.open_stream(file, options=options)
        except (pa.ArrowException, OSError) as error:
            raise error_at(f"not a readable Arrow file ({reason_of(error)}).", self.path) from error

    def _next(self, stream: Any, done: int) -> Any:
        pa = frames("pyarrow")
        try:
            batch = stream.read_next_batch()
            batch.validate(full=True)  # offsets of a broken file may point outside of its data
        except StopIteration:
            return None
        except (pa.ArrowException, OSError) as error:
            reason = f"the record batch that begins here is broken or cut off ({reason_of(error)})."
            raise error_at(reason, self.path, (done, done)) from error
        return batch

    def _is_truncated(self, file: Any) -> bool:
        """The file format ends with its mark; a stream may end after any batch."""
        return file.read_at(6, 0) == b"ARROW1" and file.read_at(6, file.size() - 6) != b"ARROW1"


class ParquetReader:
    """Record batches of one Parquet file. No batch spans two row groups, so that a broken one affects no other.

    Parameters
    ----------
    path : str
        The file; also its name in messages.
    data : bytes, optional
        The content, if it does not come from this file.
    """

    def __init__(self, path: str, data: bytes | None = None) -> None:
        self.path, self._data = path, data
        with self._open() as file:
            self.schema = file.schema_arrow
            self.n_rows = file.metadata.num_rows
        self.kinds = ArrowColumns().schema(self.schema)

    def batches(self, columns: list[str] | None = None, rows: int = 2**16) -> Iterator[Any]:
        """Record batches of at most ``rows`` rows."""
        with self._open() as file:
            first = 0
            for group in range(file.num_row_groups):
                last = first + file.metadata.row_group(group).num_rows
                yield from self._group_batches(file, group, columns, rows, (first, last))
                first = last

    def _open(self) -> Any:
        pa, pq = frames("pyarrow"), frames("pyarrow.parquet")
        source = self.path if self._data is None else pa.BufferReader(self._data)
        try:
            return pq.ParquetFile(source, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True)
        except (pa.ArrowException, OSError) as error:
            raise error_at(f"not a readable Parquet file ({reason_of(error)}).", self.path) from error

    def _group_batches(
        self, file: Any, group: int, columns: list[str] | None, rows: int, limits: tuple[int, int]
    ) -> Iterator[Any]:
        pa, done = frames("pyarrow"), limits[0]
        try:
            for batch in file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False):
                batch.validate(full=True)  # offsets of a broken file may point outside of its data
                yield batch
                done += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            bad = [name for name in columns or list(self.kinds) if not self._is_readable(group, name)]
            more = f" here and in {len(bad) - 1} more columns" if len(bad) > 1 else ""
            reason = f"row group {group} is broken{more} ({reason_of(error)})."
            raise error_at(reason, self.path, (done, limits[1] - 1), bad[0] if bad else None) from error

    def _is_readable(self, group: int, name: str) -> bool:
        try:
            with self._open() as file:
                for batch in file.iter_batches(2**16, row_groups=[group], columns=[name], use_threads=False):
                    batch.validate(full=True)
        except (frames("pyarrow").ArrowException, OSError, StreamError):
            return False
        return True


def read_arrow(format: str, path: str, data: bytes | None = None) -> Any:
    """A whole file as a table of pyarrow."""
    reader: Any = ArrowReader(path, data) if format == "arrow" else ParquetReader(path, data)
    batches = reader.batches() if format == "arrow" else reader.batches(rows=2**12)
    return frames("pyarrow").Table.from_batches(list(_bounded(batches, path)), schema=reader.schema)


def _bounded(batches: Iterator[Any], path: str) -> Iterator[Any]:
    """Batches up to a limit of memory: a few bytes may stand for many rows."""
    left = limit = available_memory() // 8
    for batch in batches:
        left -= _unpacked_bytes(batch)
        if left < 0:
            raise error_at(f"the decompressed table exceeds {human(limit)}, too much for the available memory.", path)
        yield batch


def _unpacked_bytes(batch: Any) -> int:
    """Bytes of a batch as arrays: a cell takes at least eight, and dictionaries are replaced by their values."""
    types, compute = frames("pyarrow.types"), frames("pyarrow.compute")
    size = batch.nbytes + 8 * batch.num_rows * batch.num_columns
    for column in batch.columns:
        if types.is_dictionary(column.type) and types.is_string(column.type.value_type):
            lengths = compute.binary_length(column.dictionary).cast("int64")
            size += compute.sum(lengths.take(column.indices)).as_py() or 0
    return size


def write_arrow(columns: dict[str, Array], format: str) -> bytes:
    """The content of a file with these columns; columns of objects are text, also if all values are missing."""
    pa, target = frames("pyarrow"), io.BytesIO()
    table = pa.table(
        {
            name: pa.array(v.tolist(), pa.string()) if v.dtype.kind == "O" else pa.array(v, from_pandas=True)
            for name, v in columns.items()
        }
    )
    if format == "parquet":
        frames("pyarrow.parquet").write_table(table, target)
    else:
        with frames("pyarrow.ipc").new_file(target, table.schema) as writer:
            writer.write_table(table)
    return target.getvalue()
