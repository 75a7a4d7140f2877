"""Blocks from arrays: in memory, mapped from disk, or sparse.

Blocks from tables: in memory, and those that other libraries read by batches.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.sources.blocks import BESIDE, Block, Place, StreamError, fault, reason_of, rows_per_block, width_of
from leastwise.sources.columns import ArrowColumns, Columns, PolarsColumns, assemble
from leastwise.sources.roles import Layout, Roles, layout_of


@dataclass
class ArraySource:
    """Rows of arrays; ``beside`` has y, sample_weight, tasks and groups, None for those that there are not."""

    X: Any
    beside: dict[str, Any]
    block_rows: int | None = None
    source: str = "X"
    whole: bool = False
    repeatable: bool = True
    names: list[str] | None = None
    n_rows: int | None = field(init=False)

    def __post_init__(self) -> None:
        if sparse.issparse(self.X) and self.X.format != "csr":
            self.X = self.X.tocsr()
        if self.X.ndim != 2:
            raise StreamError(
                f"{self.source} has shape {self.X.shape}: give rows and columns.",
                where=self.source,
            )
        self.n_rows = int(self.X.shape[0])
        self.beside = {name: sliceable(self.beside.get(name)) for name in BESIDE}
        for name, value in self.beside.items():
            if value is not None and len(value) != self.n_rows:
                raise StreamError(
                    f"{self.source}: {name} has {len(value)} rows, X has {self.n_rows}.", where=self.source
                )

    def pieces(self) -> Iterator[tuple[Place, Block]]:
        """Slices; numbers are converted, if they have to be, one block at a time."""
        n, step = self.X.shape[0], rows_per_block(self.block_rows, width_of(self.X))
        whole = self.whole and n <= step
        for first in range(0, n, step):
            part = slice(first, first + step)
            beside: dict[str, Any] = {name: None if v is None else v[part] for name, v in self.beside.items()}
            yield Place(self.source, first, whole), Block(self.X[part], **beside)


def sliceable(value: Any) -> Any:
    """Something that can be sliced by rows, without a copy of what is mapped from disk."""
    if value is None or isinstance(value, list | np.ndarray):
        return value
    if sparse.issparse(value):
        return value.toarray()
    if np.ndim(value) == 0:
        raise StreamError(f"{value!r} is no array: give one value for every row.")
    return value.to_numpy() if hasattr(value, "to_numpy") else np.asarray(value)


def mapped(path: str) -> np.ndarray:
    """A .npy file without reading it."""
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise StreamError(f"{path}: it cannot be mapped ({reason_of(error)}).", where=path) from error


@dataclass
class PairSource:
    """Pairs of .npy files, X and y, that are mapped when their turn comes."""

    pairs: list[tuple[str, str | None]]
    block_rows: int | None = None
    repeatable: bool = True
    names: list[str] | None = None
    n_rows: int | None = None
    _stamps: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._stamps = {path: stamp(path) for pair in self.pairs for path in pair if path is not None}
        self.n_rows = sum(int(self._opened(x, y).X.shape[0]) for x, y in self.pairs)

    def pieces(self) -> Iterator[tuple[Place, Block]]:
        """One pair after the other."""
        for pair in self.pairs:
            check_stamps({path: self._stamps[path] for path in pair if path is not None})
            yield from self._opened(*pair).pieces()

    def _opened(self, x: str, y: str | None) -> ArraySource:
        return ArraySource(mapped(x), {"y": None if y is None else mapped(y)}, self.block_rows, x)


def stamp(path: str) -> tuple[int, int]:
    """Size and time of a file: what changes when it is written to."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise StreamError(f"{path}: it cannot be read ({error.strerror}).", where=path) from error
    return found.st_size, found.st_mtime_ns


def check_stamps(stamps: dict[str, tuple[int, int]]) -> None:
    """An error if a file is gone or is another one than when the stream was opened."""
    for path, before in stamps.items():
        if not os.path.exists(path):
            raise StreamError(f"{path}: it was there when the stream was opened and is gone.", where=path)
        if stamp(path) != before:
            raise StreamError(
                f"{path}: it has changed since the stream was opened, and rows would not go together: open it anew.",
                where=path,
            )


@dataclass
class TableSource:
    """A table in memory; ``beside`` may have arrays for what is no column of it."""

    table: Any
    columns: Columns
    layout: Layout
    beside: dict[str, Any]
    block_rows: int | None = None
    source: str = "the table"
    whole: bool = False
    repeatable: bool = True
    names: list[str] | None = field(init=False)
    n_rows: int | None = field(init=False)

    def __post_init__(self) -> None:
        self.names = names_of(self.layout)
        self.n_rows = table_rows(self.table)
        self.beside = {name: sliceable(value) for name, value in self.beside.items() if value is not None}
        for name, value in self.beside.items():
            if len(value) != self.n_rows:
                raise StreamError(f"{self.source}: {name} has {len(value)} rows, the table has {self.n_rows}.")

    def pieces(self) -> Iterator[tuple[Place, Block]]:
        """Slices of the table."""
        n, step = self.n_rows or 0, rows_per_block(self.block_rows, len(self.layout.wanted))
        whole = self.whole and n <= step
        for first in range(0, n, step):
            last = min(n, first + step)
            block = assemble(self.columns, self.columns.rows(self.table, first, last), self.layout, last - first)
            beside = {name: self.beside[name][first:last] for name in self.beside}
            kept = {name: getattr(block, name) for name in BESIDE} | beside
            yield Place(self.source, first, whole), Block(block.X, **kept)


def table_rows(table: Any) -> int:
    """How many rows there are."""
    if hasattr(table, "num_rows"):
        return int(table.num_rows)
    if isinstance(table, dict):
        lengths = {name: len(values) for name, values in table.items()}
        if len(set(lengths.values())) > 1:
            raise StreamError(f"The columns have different numbers of rows: {lengths}.")
        return next(iter(lengths.values()), 0)
    return len(table)


def names_of(layout: Layout) -> list[str] | None:
    """Names of the inputs, where they are text."""
    return list(layout.features) if all(isinstance(n, str) for n in layout.features) else None


class DatasetSource:
    """A dataset of pyarrow, one fragment after the other."""

    repeatable = True
    n_rows: int | None = None

    def __init__(self, dataset: Any, roles: Roles, block_rows: int | None) -> None:
        self.dataset = dataset
        self.layout = layout_of(ArrowColumns().schema(dataset.schema), roles, "the dataset")
        self.names = names_of(self.layout)
        self.step = rows_per_block(block_rows, len(self.layout.wanted))

    def pieces(self) -> Iterator[tuple[Place, Block]]:
        """Batches of at most so many rows."""
        for fragment in self.dataset.get_fragments():
            first, source = 0, getattr(fragment, "path", "") or "the dataset"
            for batch in self._batches(fragment, source):
                yield Place(source, first), assemble(ArrowColumns(), batch, self.layout, batch.num_rows)
                first += batch.num_rows

    def _batches(self, fragment: Any, source: str) -> Iterator[Any]:
        done, options = 0, {"batch_readahead": 1, "use_threads": False}
        try:
            for batch in fragment.to_batches(
                schema=self.dataset.schema, columns=self.layout.wanted, batch_size=self.step, **options
            ):
                yield batch
                done += batch.num_rows
        except (OSError, ValueError) as error:  # pyarrow's errors are one of these
            reason = f"the rows after the first {done} cannot be read ({reason_of(error)})."
            raise fault(reason, source) from error


class LazySource:
    """A lazy frame of polars, collected by batches."""

    repeatable = True
    n_rows: int | None = None

    def __init__(self, frame: Any, roles: Roles, block_rows: int | None) -> None:
        if not hasattr(frame, "collect_batches"):
            raise StreamError(
                "This version of polars cannot collect a lazy frame by batches: write it by sink_parquet and give "
                "the file, or give the collected frame."
            )
        self.layout = layout_of(PolarsColumns().schema(frame.collect_schema()), roles, "the lazy frame")
        self.names = names_of(self.layout)
        self.step = rows_per_block(block_rows, len(self.layout.wanted))
        self.frame = frame.select(self.layout.wanted)

    def pieces(self) -> Iterator[tuple[Place, Block]]:
        """Batches of at most so many rows, in order."""
        first = 0
        for batch in self.frame.collect_batches(chunk_size=self.step, maintain_order=True):
            for start in range(0, len(batch), self.step):
                part = batch.slice(start, self.step)
                yield Place("the lazy frame", first), assemble(PolarsColumns(), part, self.layout, len(part))
                first += len(part)
