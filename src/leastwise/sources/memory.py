"""Sources of rows in memory: arrays, tables, lazy frames and iterators."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.sources.blocks import (
    BESIDE,
    Block,
    Place,
    Source,
    StreamError,
    error_at,
    reason_of,
    rows_per_block,
    width_of,
)
from leastwise.sources.frames import ArrowColumns, Columns, PolarsColumns, columns_of, schema_of
from leastwise.sources.layout import Layout, Roles, layout_of
from leastwise.utils.arrays import text_objects


@dataclass
class ArraySource:
    """Rows of arrays; ``beside`` maps y, sample_weight, tasks and groups to arrays or None."""

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
                f"{self.source} has shape {self.X.shape}, but must be two-dimensional.", where=self.source
            )
        self.n_rows = int(self.X.shape[0])
        self.beside = {name: _sliceable(self.beside.get(name)) for name in BESIDE}
        _check_lengths(self.beside, self.n_rows, "X", self.source)

    def pieces(self) -> Iterator[tuple[Place, Block]]:
        """Slices; types are converted one block at a time."""
        n, step = self.X.shape[0], rows_per_block(self.block_rows, width_of(self.X))
        whole = self.whole and n <= step
        for first in range(0, n, step):
            part = slice(first, first + step)
            beside: dict[str, Any] = {name: None if v is None else v[part] for name, v in self.beside.items()}
            yield Place(self.source, first, whole), Block(self.X[part], **beside)


def _sliceable(value: Any) -> Any:
    """An object that can be sliced by rows, without a copy of memory maps."""
    value = text_objects(value)
    if value is None or isinstance(value, list | np.ndarray):
        return value
    if sparse.issparse(value):
        return value.toarray()
    if np.ndim(value) == 0:
        raise StreamError(f"{value!r} is not an array: give one value for each row.")
    return value.to_numpy() if hasattr(value, "to_numpy") else np.asarray(value)


def _check_lengths(beside: dict[str, Any], n: int, what: str, source: str) -> None:
    for name, value in beside.items():
        if value is not None and len(value) != n:
            raise StreamError(f"{source}: {name} has {len(value)} rows, but {what} has {n}.", where=source)


@dataclass
class TableSource:
    """A table in memory; ``beside`` may hold arrays for y, weights, tasks or groups that are not columns."""

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
        self.names = self.layout.names
        self.n_rows = _table_length(self.table)
        self.beside = {name: _sliceable(value) for name, value in self.beside.items() if value is not None}
        _check_lengths(self.beside, self.n_rows, "the table", self.source)

    def pieces(self) -> Iterator[tuple[Place, Block]]:
        """Slices of the table."""
        n, step = self.n_rows or 0, rows_per_block(self.block_rows, len(self.layout.wanted))
        whole = self.whole and n <= step
        for first in range(0, n, step):
            last = min(n, first + step)
            block = self.layout.block(self.columns, self.columns.rows(self.table, first, last), last - first)
            beside = {name: getattr(block, name) for name in BESIDE}
            beside |= {name: value[first:last] for name, value in self.beside.items()}
            yield Place(self.source, first, whole), Block(block.X, **beside)


def _table_length(table: Any) -> int:
    if hasattr(table, "num_rows"):
        return int(table.num_rows)
    if isinstance(table, Mapping):
        lengths = {name: len(values) for name, values in table.items()}
        if len(set(lengths.values())) > 1:
            raise StreamError(f"The columns have different numbers of rows: {lengths}.")
        return next(iter(lengths.values()), 0)
    return len(table)


class DatasetSource:
    """A dataset of pyarrow, fragment by fragment."""

    repeatable = True
    n_rows: int | None = None

    def __init__(self, dataset: Any, roles: Roles, block_rows: int | None) -> None:
        self.dataset = dataset
        self.layout = layout_of(ArrowColumns().schema(dataset.schema), roles, "the dataset")
        self.names = self.layout.names
        self.step = rows_per_block(block_rows, len(self.layout.wanted))

    def pieces(self) -> Iterator[tuple[Place, Block]]:
        """Batches of at most ``step`` rows."""
        for fragment in self.dataset.get_fragments():
            first, source = 0, getattr(fragment, "path", "") or "the dataset"
            for batch in self._batches(fragment, source):
                yield Place(source, first), self.layout.block(ArrowColumns(), batch, batch.num_rows)
                first += batch.num_rows

    def _batches(self, fragment: Any, source: str) -> Iterator[Any]:
        done, options = 0, {"batch_readahead": 1, "use_threads": False, "batch_size": self.step}
        try:
            for batch in fragment.to_batches(schema=self.dataset.schema, columns=self.layout.wanted, **options):
                yield batch
                done += batch.num_rows
        except (OSError, ValueError) as error:  # errors of pyarrow are one of these
            reason = f"the rows after the first {done} cannot be read ({reason_of(error)})."
            raise error_at(reason, source) from error


class LazySource:
    """A lazy frame of polars, collected in batches."""

    repeatable = True
    n_rows: int | None = None

    def __init__(self, frame: Any, roles: Roles, block_rows: int | None) -> None:
        if not hasattr(frame, "collect_batches"):
            raise StreamError(
                "This version of polars cannot collect a lazy frame in batches: write it with sink_parquet and pass "
                "the file, or pass the collected frame."
            )
        self.layout = layout_of(PolarsColumns().schema(frame.collect_schema()), roles, "the lazy frame")
        self.names = self.layout.names
        self.step = rows_per_block(block_rows, len(self.layout.wanted))
        self.frame = frame.select(self.layout.wanted)

    def pieces(self) -> Iterator[tuple[Place, Block]]:
        """Batches of at most ``step`` rows, in order."""
        first = 0
        for batch in self.frame.collect_batches(chunk_size=self.step, maintain_order=True):
            for start in range(0, len(batch), self.step):
                part = batch.slice(start, self.step)
                yield Place("the lazy frame", first), self.layout.block(PolarsColumns(), part, len(part))
                first += len(part)


class IteratorSource:
    """The items of an iterator, or of one that a function makes for every pass.

    Items are blocks, tuples ``(X, y)`` and ``(X, y, sample_weight)``, mappings with "X", tables or arrays.
    """

    n_rows: int | None = None

    def __init__(self, make: Callable[[], Iterable], roles: Roles, block_rows: int | None, repeatable: bool) -> None:
        self.make, self.roles, self.block_rows = make, roles, block_rows
        self.repeatable = repeatable
        self.names: list[str] | None = None
        self._layout: Layout | None = None
        self._targets: list | None = None

    def pieces(self) -> Iterator[tuple[Place, Block]]:
        """All items, split where one is too large for a block."""
        made = self.make()
        if not isinstance(made, Iterable):
            raise StreamError(f"The function returned {type(made).__name__}: it must return an iterator of blocks.")
        items, number = iter(made), 0
        while True:
            try:
                item = next(items)
            except StopIteration:
                return
            except Exception as error:
                error.add_note(f"Raised while block {number} of the stream was produced.")
                raise
            yield from self._source(item, f"block {number}").pieces()
            number += 1

    def _source(self, item: Any, name: str) -> Source:
        if isinstance(item, Block):
            return self._array_source(item.X, {key: getattr(item, key) for key in BESIDE}, item.where or name)
        if isinstance(item, Mapping) and "X" in item:
            unseen = [key for key in item if key not in ("X", *BESIDE)]
            if unseen:
                raise StreamError(f"{name}: {unseen[0]!r} is not one of {['X', *BESIDE]}.", where=name)
            return self._pair_source(item["X"], {key: item.get(key) for key in BESIDE}, name)
        columns = columns_of(item)
        if columns is not None:
            return self._table_source(item, columns, name, {})
        if isinstance(item, tuple) or (isinstance(item, list) and item and np.ndim(item[0]) == 2):
            if not 1 <= len(item) <= 3:
                raise StreamError(
                    f"{name}: a tuple of {len(item)} parts: give (X, y), (X, y, sample_weight), or a Block.",
                    where=name,
                )
            return self._pair_source(item[0], dict(zip(("y", "sample_weight"), item[1:], strict=False)), name)
        return self._array_source(item, {}, name)

    def _array_source(self, X: Any, beside: dict, name: str) -> Source:
        if requested := self.roles.requested:
            raise StreamError(f"{name}: an array has no named columns, but {requested} were requested.", where=name)
        return ArraySource(_matrix(X, name), beside, self.block_rows, name, whole=True)

    def _table_source(self, table: Any, columns: Any, name: str, beside: dict) -> Source:
        schema = schema_of(columns, table)
        if self._layout is None:
            self._layout = layout_of(schema, self.roles, name)
            self.names = self._layout.names
        else:
            self._layout.check(schema, name)
        return TableSource(table, columns, self._layout, beside, self.block_rows, name, whole=True)

    def _pair_source(self, X: Any, beside: dict[str, Any], name: str) -> Source:
        beside = {**beside, "y": self._ordered_targets(beside.get("y"), name)}
        columns = None if isinstance(X, Mapping) else columns_of(X)
        if columns is not None:
            return self._table_source(X, columns, name, beside)
        return self._array_source(X, beside, name)

    def _ordered_targets(self, y: Any, name: str) -> Any:
        """Named targets in the column order of the first block."""
        if not hasattr(y, "columns") or not hasattr(y, "to_numpy"):
            return y
        names = list(y.columns)
        self._targets = names if self._targets is None else self._targets
        if set(names) != set(self._targets):
            raise StreamError(f"{name}: y has the columns {names}; the first block had {self._targets}.", where=name)
        return y if names == self._targets else y[self._targets]


def _matrix(X: Any, name: str) -> Any:
    if sparse.issparse(X) or isinstance(X, np.ndarray):
        return X
    try:
        array = np.asarray(X)
    except ValueError as error:
        raise StreamError(f"{name}: X is not an array ({error}).", where=name) from error
    if array.dtype.kind not in "biuf" or array.ndim != 2:
        raise StreamError(
            f"{name}: {type(X).__name__} is not a block: give a Block, (X, y), (X, y, sample_weight), a mapping or a "
            "table with target=.",
            where=name,
        )
    return array
