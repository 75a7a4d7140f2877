"""Arrow files (IPC, Feather), record batch by record batch.

Parquet files, row group by row group.

Blocks from files: which ones, in which order, and whether they are still the same.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from typing import Any

from leastwise.sources.arrays import check_stamps, names_of, stamp
from leastwise.sources.blocks import Block, Place, StreamError, fault, reason_of, rows_per_block
from leastwise.sources.columns import ArrowColumns, assemble
from leastwise.sources.roles import Layout, Roles, layout_of
from leastwise.sources.text import TextReader
from leastwise.utils.optional import frames

_MAGIC = b"ARROW1"


class ArrowReader:
    """One file, of the file format or of the stream format.

    The file format is the stream format between two marks. It is read as a stream, from the first mark on, so that a
    file that was cut off gives what it has.
    """

    n_rows = None

    def __init__(self, path: str) -> None:
        self.path = path
        with self._mapped() as file:
            schema = self._stream(file).schema
        self.kinds = ArrowColumns().schema(schema)

    def batches(self, columns: list[str]) -> Iterator[Any]:
        """Record batches as they were written, of the columns that are wanted."""
        with self._mapped() as file:
            stream, done = self._stream(file, columns), 0
            while (batch := self._next(stream, done)) is not None:
                done += batch.num_rows
                yield batch
            if self._cut(file):
                raise fault(f"the file was cut off after row {done - 1}.", self.path, (done, done))

    def _mapped(self) -> Any:
        pa = frames("pyarrow")
        try:
            return pa.memory_map(self.path)
        except (pa.ArrowException, OSError) as error:
            raise fault(f"it cannot be read ({reason_of(error)}).", self.path) from error

    def _stream(self, file: Any, columns: list[str] | None = None) -> Any:
        pa, ipc = frames("pyarrow"), frames("pyarrow.ipc")
        order = [] if columns is None else list(self.kinds)
        fields = None if columns is None else sorted(order.index(name) for name in columns)
        options = ipc.IpcReadOptions(use_threads=False, included_fields=fields)
        try:
            file.seek(8 if file.read_at(6, 0) == _MAGIC else 0)
            return ipc.open_stream(file, options=options)
        except (pa.ArrowException, OSError) as error:
            raise fault(f"this is no Arrow file that can be read ({reason_of(error)}).", self.path) from error

    def _next(self, stream: Any, done: int) -> Any:
        pa = frames("pyarrow")
        try:
            batch = stream.read_next_batch()
            batch.validate(full=True)  # a broken file may point to places outside of its data
        except StopIteration:
            return None
        except (pa.ArrowException, OSError) as error:
            reason = f"the record batch that begins here is broken or cut off ({reason_of(error)})."
            raise fault(reason, self.path, (done, done)) from error
        return batch

    def _cut(self, file: Any) -> bool:
        """The file format ends with its mark; a stream may end after any batch."""
        return file.read_at(6, 0) == _MAGIC and file.read_at(6, file.size() - 6) != _MAGIC


#: Bytes that are read ahead of each column, instead of a whole row group of it.
BUFFER = 2**20


class ParquetReader:
    """One file. Batches never reach over the end of a row group, so that a broken one spoils no other."""

    def __init__(self, path: str) -> None:
        self.path = path
        with self._opened() as file:
            self.kinds = ArrowColumns().schema(file.schema_arrow)
            self.n_rows = file.metadata.num_rows

    def batches(self, columns: list[str], rows: int) -> Iterator[Any]:
        """Record batches of at most so many rows."""
        with self._opened() as file:
            first = 0
            for group in range(file.num_row_groups):
                last = first + file.metadata.row_group(group).num_rows
                yield from self._group(file, group, columns, rows, (first, last))
                first = last

    def _opened(self) -> Any:
        pa, pq = frames("pyarrow"), frames("pyarrow.parquet")
        try:
            return pq.ParquetFile(self.path, buffer_size=BUFFER, pre_buffer=False, page_checksum_verification=True)
        except (pa.ArrowException, OSError) as error:
            raise fault(f"this is no Parquet file that can be read ({reason_of(error)}).", self.path) from error

    def _group(self, file: Any, group: int, columns: list[str], rows: int, span: tuple[int, int]) -> Iterator[Any]:
        pa, done = frames("pyarrow"), span[0]
        try:
            for batch in file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False):
                batch.validate(full=True)  # a broken file may point to places outside of its data
                yield batch
                done += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise self._broken(group, columns, (done, span[1] - 1), error) from error

    def _broken(self, group: int, columns: list[str], rows: tuple[int, int], error: Exception) -> StreamError:
        """Which columns of the row group cannot be read, each tried alone."""
        bad = [name for name in columns if not self._readable(group, name)]
        more = f" and {len(bad) - 1} more" if len(bad) > 1 else ""
        reason = f"row group {group} is broken{more and ' here' + more} ({reason_of(error)})."
        return fault(reason, self.path, rows, bad[0] if bad else None)

    def _readable(self, group: int, name: str) -> bool:
        try:
            with self._opened() as file:
                for batch in file.iter_batches(2**16, row_groups=[group], columns=[name], use_threads=False):
                    batch.validate(full=True)
        except (frames("pyarrow").ArrowException, OSError, StreamError):
            return False
        return True


READERS: dict[str, Any] = {
    ".parquet": ParquetReader,
    ".pq": ParquetReader,
    ".arrow": ArrowReader,
    ".feather": ArrowReader,
    ".ipc": ArrowReader,
    ".csv": TextReader,
    ".txt": TextReader,
    ".tsv": TextReader,
    ".tab": TextReader,
}
_PACKED = (".csv", ".txt", ".tsv", ".tab")


class FileSource:
    """Files one after another, with the columns of the first."""

    repeatable = True

    def __init__(self, paths: list[str], roles: Roles, block_rows: int | None) -> None:
        self.paths = paths
        self.stamps = {path: stamp(path) for path in paths}
        first = reader_of(paths[0])
        self.layout: Layout = layout_of(first.kinds, roles, paths[0])
        self.names = names_of(self.layout)
        self.step = rows_per_block(block_rows, len(self.layout.wanted))
        self.types: dict[str, str] | None = None
        self.n_rows = first.n_rows if len(paths) == 1 else None

    def pieces(self) -> Iterator[tuple[Place, Block]]:
        """Blocks of every file; none reaches over the end of its file."""
        for path in self.paths:
            check_stamps({path: self.stamps[path]})
            reader = reader_of(path)
            self.layout.check(reader.kinds, path)
            first, line = 0, getattr(reader, "line", None)
            for table in regrouped(self._batches(reader), self.step):
                block = assemble(ArrowColumns(), table, self.layout, table.num_rows)
                yield Place(path, first, line=line), block
                first += table.num_rows
            check_stamps({path: self.stamps[path]})

    def _batches(self, reader: Any) -> Iterator[Any]:
        if isinstance(reader, TextReader):
            self.types = self.types or reader.types(self.layout)
            return reader.batches(self.types)
        if isinstance(reader, ParquetReader):
            return reader.batches(self.layout.wanted, self.step)
        return reader.batches(self.layout.wanted)


def regrouped(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Tables of ``rows`` rows, the last of what is left; where a batch is broken, first the rows before it."""
    pa, waiting, fault = frames("pyarrow"), [], None
    count = 0
    while fault is None:
        try:
            batch = next(batches, None)
        except StreamError as error:
            batch, fault = None, error
        if batch is None:
            break
        waiting.append(batch)
        count += batch.num_rows
        while count >= rows:
            table = pa.Table.from_batches(waiting)
            yield table.slice(0, rows)
            waiting, count = table.slice(rows).to_batches(), count - rows
    if count:
        yield pa.Table.from_batches(waiting)
    if fault is not None:
        raise fault


def reader_of(path: str) -> Any:
    """The reader for the ending of a file."""
    frames("pyarrow")
    return READERS[ending(path)](path)


def ending(path: str) -> str:
    """The ending that tells the format, or an error that names those that do."""
    name = path.lower()
    found = Path(name.removesuffix(".gz")).suffix
    if found not in READERS and found != ".npy":
        raise StreamError(f"{path}: the ending {found!r} is not one of {[*READERS, '.npy']}.", where=path)
    if name.endswith(".gz") and found not in _PACKED:
        raise StreamError(f"{path}: only text can be packed by gzip: unpack it first.", where=path)
    return found


def paths_of(source: Any) -> list[str]:
    """The files of a path, a pattern, a folder, or a list of these."""
    if isinstance(source, list | tuple):
        found = [path for part in source for path in paths_of(part)]
        double = (
            next((path for path in found if found.count(path) > 1), None) if len(set(found)) < len(found) else None
        )
        if double is not None:
            raise StreamError(f"{double}: the file is in the list twice.", where=double)
        return found
    path = os.fspath(source)
    if os.path.isdir(path):
        return _folder(path)
    if os.path.exists(path) or not any(mark in path for mark in "*?["):
        stamp(path)
        ending(path)
        return [path]
    found = sorted(p for p in glob(path, recursive=True) if os.path.isfile(p))
    if not found:
        raise StreamError(f"{path}: no file has such a name.", where=path)
    return [p for p in found if ending(p)]


def _folder(path: str) -> list[str]:
    """Files of a folder by name; those whose names begin with a dot or a line are of the program that wrote them."""
    names = sorted(name for name in os.listdir(path) if not name.startswith((".", "_")))
    strange = next((n for n in names if _strange(os.path.join(path, n))), None)
    if strange is not None:
        inside = os.path.isdir(os.path.join(path, strange))
        pattern = os.path.join(path, *(["**"] if inside else []), "*.parquet")
        raise StreamError(
            f"{path}: the folder also has {strange!r}, which is no file of rows: give a pattern such as {pattern!r}.",
            where=path,
        )
    if not names:
        raise StreamError(f"{path}: the folder has no files of rows.", where=path)
    return [os.path.join(path, name) for name in names]


def _strange(path: str) -> bool:
    try:
        return os.path.isdir(path) or ending(path) == ".npy"
    except StreamError:
        return True
