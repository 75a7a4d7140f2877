"""Sources of rows in files: which files, in which order, and whether they have changed between passes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

from leastwise.sources.blocks import Block, Place, StreamError, reason_of, rows_per_block
from leastwise.sources.formats.arrow import ArrowReader, ParquetReader
from leastwise.sources.formats.csv import CsvReader
from leastwise.sources.frames import ArrowColumns
from leastwise.sources.layout import Layout, Roles, layout_of
from leastwise.sources.memory import ArraySource
from leastwise.utils.optional import frames

#: Readers by file extension.
READERS: dict[str, Any] = {
    ".parquet": ParquetReader,
    ".pq": ParquetReader,
    ".arrow": ArrowReader,
    ".feather": ArrowReader,
    ".ipc": ArrowReader,
    ".csv": CsvReader,
    ".txt": CsvReader,
    ".tsv": CsvReader,
    ".tab": CsvReader,
}


# ------------------------------------------------------------- unchanged files


def _stamp(path: str) -> tuple[int, int]:
    """Size and modification time of a file."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise StreamError(f"{path}: the file cannot be read ({error.strerror}).", where=path) from error
    return found.st_size, found.st_mtime_ns


def _check_unchanged(path: str, before: tuple[int, int]) -> None:
    if not os.path.exists(path):
        raise StreamError(f"{path}: the file existed when the stream was opened, but is gone.", where=path)
    if _stamp(path) != before:
        raise StreamError(
            f"{path}: the file has changed since the stream was opened, so that passes would differ: open it again.",
            where=path,
        )


# ------------------------------------------------------------------- .npy files


@dataclass
class PairSource:
    """Pairs of .npy files, X and y, memory-mapped one pair at a time."""

    pairs: list[tuple[str, str | None]]
    block_rows: int | None = None
    repeatable: bool = True
    names: list[str] | None = None
    n_rows: int | None = None
    _stamps: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._stamps = {path: _stamp(path) for pair in self.pairs for path in pair if path is not None}
        self.n_rows = sum(int(self._open(x, y).X.shape[0]) for x, y in self.pairs)

    def pieces(self) -> Iterator[tuple[Place, Block]]:
        """The blocks of each pair in turn."""
        for pair in self.pairs:
            for path in pair:
                if path is not None:
                    _check_unchanged(path, self._stamps[path])
            yield from self._open(*pair).pieces()

    def _open(self, x: str, y: str | None) -> ArraySource:
        return ArraySource(_memory_map(x), {"y": None if y is None else _memory_map(y)}, self.block_rows, x)


def _memory_map(path: str) -> np.ndarray:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise StreamError(f"{path}: the file cannot be memory-mapped ({reason_of(error)}).", where=path) from error


# ---------------------------------------------------------------- table files


class FileSource:
    """Files one after another, with the columns of the first."""

    repeatable = True

    def __init__(self, paths: list[str], roles: Roles, block_rows: int | None) -> None:
        frames("pyarrow")  # an error names the extra before any file is opened
        self.paths = paths
        self.stamps = {path: _stamp(path) for path in paths}
        first = READERS[extension(paths[0])](paths[0])
        self.layout: Layout = layout_of(first.kinds, roles, paths[0])
        self.names = self.layout.names
        self.step = rows_per_block(block_rows, len(self.layout.wanted))
        self.types: dict[str, str] | None = None
        self.n_rows = first.n_rows if len(paths) == 1 else None

    def pieces(self) -> Iterator[tuple[Place, Block]]:
        """The blocks of each file in turn; no block spans two files."""
        for path in self.paths:
            _check_unchanged(path, self.stamps[path])
            reader = READERS[extension(path)](path)
            self.layout.check(reader.kinds, path)
            first, line = 0, getattr(reader, "line", None)
            for table in _regrouped(self._batches(reader), self.step):
                yield Place(path, first, line=line), self.layout.block(ArrowColumns(), table, table.num_rows)
                first += table.num_rows
            _check_unchanged(path, self.stamps[path])

    def _batches(self, reader: Any) -> Iterator[Any]:
        if isinstance(reader, CsvReader):
            self.types = self.types or reader.types(self.layout)
            return reader.batches(self.types)
        if isinstance(reader, ParquetReader):
            return reader.batches(self.layout.wanted, self.step)
        return reader.batches(self.layout.wanted)


def _regrouped(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Tables of ``rows`` rows, the last of the remaining ones; before an error, the rows that were read."""
    pa, waiting, problem = frames("pyarrow"), [], None
    count = 0
    while problem is None:
        try:
            batch = next(batches, None)
        except StreamError as error:
            batch, problem = None, error
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
    if problem is not None:
        raise problem


# ---------------------------------------------------------------------- paths


def extension(path: str) -> str:
    """The extension that determines the format; an error lists the known ones."""
    name = path.lower()
    found = Path(name.removesuffix(".gz")).suffix
    if found not in READERS and found != ".npy":
        raise StreamError(f"{path}: the extension {found!r} is not one of {[*READERS, '.npy']}.", where=path)
    if name.endswith(".gz") and READERS.get(found) is not CsvReader:
        raise StreamError(f"{path}: only text files can be gzipped: decompress the file first.", where=path)
    return found


def paths_of(source: Any) -> list[str]:
    """The files of a path, a pattern, a folder, or a list of these."""
    if isinstance(source, list | tuple):
        found = [path for part in source for path in paths_of(part)]
        if len(set(found)) < len(found):
            double = next(path for path in found if found.count(path) > 1)
            raise StreamError(f"{double}: the file is in the list twice.", where=double)
        return found
    path = os.fspath(source)
    if os.path.isdir(path):
        return _files_in(path)
    if os.path.exists(path) or not any(mark in path for mark in "*?["):
        _stamp(path)
        extension(path)
        return [path]
    found = sorted(p for p in glob(path, recursive=True) if os.path.isfile(p))
    if not found:
        raise StreamError(f"{path}: no file matches.", where=path)
    return [p for p in found if extension(p)]


def _files_in(folder: str) -> list[str]:
    """Files of a folder by name, without those that begin with a dot or an underscore."""
    names = sorted(name for name in os.listdir(folder) if not name.startswith((".", "_")))
    for name in names:
        path = os.path.join(folder, name)
        inside = os.path.isdir(path)
        if inside or Path(name.lower().removesuffix(".gz")).suffix not in READERS:
            pattern = os.path.join(folder, *(["**"] if inside else []), "*.parquet")
            raise StreamError(
                f"{folder}: the folder also contains {name!r}, which is not a data file: give a pattern such as "
                f"{pattern!r}.",
                where=folder,
            )
        extension(path)
    if not names:
        raise StreamError(f"{folder}: the folder has no data files.", where=folder)
    return [os.path.join(folder, name) for name in names]
