"""Blocks from files: which ones, in which order, and whether they are still the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from glob import glob
from pathlib import Path
from typing import Any

from leastwise.extras import frames
from leastwise.streaming.arrays import check_stamps, stamp
from leastwise.streaming.blocks import Block, Place, rows_per_block
from leastwise.streaming.columns import ArrowColumns, assemble
from leastwise.streaming.errors import StreamError
from leastwise.streaming.ipc import ArrowReader
from leastwise.streaming.parquet import ParquetReader
from leastwise.streaming.roles import Layout, Roles, layout_of
from leastwise.streaming.tables import names_of
from leastwise.streaming.text import TextReader

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
