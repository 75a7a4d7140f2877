"""Blocks of rows, the unit in which all sources deliver, and the checks that every block passes.

A source yields raw blocks with their places; :class:`CheckedBlocks` validates each (numeric, not infinite, aligned,
like the blocks before it) and raises a :class:`StreamError` with the file, the rows and the column otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse

Array = np.ndarray

#: Default size of a block: bytes of numbers, and the maximum number of rows.
BUDGET = 2**25
MOST_ROWS = 2**18
#: The fields of a block other than X.
BESIDE = ("y", "sample_weight", "tasks", "groups")

#: The known values of each column; None for a column of numbers.
Known = list[list | None]


# ---------------------------------------------------------------------- errors


class TableError(ValueError):
    """A table that cannot be used; the message names the file, the line and the column, and says what to do."""


class StreamError(TableError):
    """Rows cannot be read; the message says where. Blocks before the error have been delivered.

    Parameters
    ----------
    message : str
    where : str
        The file, or the block of an iterator.
    rows : (int, int), optional
        First and last affected row, counted from 0 in the file.
    column : str, optional
        The column, if known.
    line : int, optional
        The line of a text file, counted from 1.
    """

    def __init__(
        self,
        message: str,
        *,
        where: str = "",
        rows: tuple[int, int] | None = None,
        column: Any = None,
        line: int | None = None,
    ) -> None:
        super().__init__(message)
        self.where = where
        self.rows = rows
        self.column = column
        self.line = line


class SpillError(OSError):
    """Rows cannot be written to disk: no space left, or the folder is not writable."""


def row_range(rows: tuple[int, int]) -> str:
    """Text for a range of rows."""
    return f"row {rows[0]}" if rows[0] == rows[1] else f"rows {rows[0]} to {rows[1]}"


def error_at(
    reason: str,
    where: str,
    rows: tuple[int, int] | None = None,
    column: Any = None,
    line: int | None = None,
) -> StreamError:
    """An error whose message begins with its position: file, line or rows, column."""
    parts = [where]
    if line is not None:
        parts.append(f"line {line}")
    elif rows is not None:
        parts.append(row_range(rows))
    if column is not None:
        parts.append(f'column "{column}"')
    place = ", ".join(p for p in parts if p)
    return StreamError(f"{place}: {reason}", where=where, rows=rows, column=column, line=line)


def reason_of(error: BaseException) -> str:
    """The first line of another library's error message."""
    lines = str(error).splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


# ---------------------------------------------------------------------- blocks


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows with categories: a matrix with codes in their columns, and the values that these stand for.

    Attributes
    ----------
    matrix : ndarray of shape (n, d)
        Numbers, and codes 0, 1, ...; NaN where a value is missing.
    values : list
        For each column the values of the codes 0, 1, ..., in any order; None for numbers.
    """

    matrix: Array
    values: Known
    columns: tuple = ()  # as for an array, there are no names

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and columns."""
        return self.matrix.shape[0], self.matrix.shape[1]

    @property
    def nbytes(self) -> int:
        """Size of the matrix."""
        return self.matrix.nbytes

    @property
    def places(self) -> list[int]:
        """Columns that are categories."""
        return [j for j, values in enumerate(self.values) if values is not None]

    def __len__(self) -> int:
        return len(self.matrix)

    def __getitem__(self, key: Any) -> Any:
        """Some rows, or ``[:, columns]``; a single column as an array of its values."""
        if not isinstance(key, tuple):
            return replace(self, matrix=self.matrix[key])
        rows, columns = key
        if isinstance(columns, int | np.integer):
            return self._column(int(columns))[rows]
        chosen = np.arange(len(self.values))[columns]
        return CodedRows(self.matrix[rows][:, chosen], [self.values[j] for j in chosen])

    def _column(self, j: int) -> Array:
        codes, values = self.matrix[:, j], self.values[j]
        if values is None:
            return codes
        table = np.empty(len(values) + 1, dtype=object)
        table[:-1] = values
        return table[np.where(np.isnan(codes), -1, codes).astype(int)]


@dataclass(frozen=True)
class Block:
    """Some rows.

    Attributes
    ----------
    X : array or csr matrix of shape (n, d), or CodedRows
        Inputs, float32 or float64; codes and their values if some columns are categories.
    y : array of shape (n,) or (n, c), or None
        Targets; None if only inputs are read.
    sample_weight, tasks, groups : array of shape (n,), optional
    where : str
        The origin of the rows, for messages: "sales.parquet, rows 40000 to 49999".
    number : array of int of shape (n,), optional
        The position of each row among all rows, if rows have moved between blocks.
    """

    X: Any
    y: Any
    sample_weight: Any = None
    tasks: Any = None
    groups: Any = None
    where: str = ""
    number: Array | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __sizeof__(self) -> int:  # used by schedulers that move it
        return sum(size_of(getattr(self, name)) for name in ("X", *BESIDE, "number"))

    def owned(self) -> Block:
        """A copy, for iterators that refill the arrays they have yielded."""
        parts = {name: getattr(self, name) for name in ("X", *BESIDE)}
        arrays: dict[str, Any] = {k: v for k, v in parts.items() if isinstance(v, np.ndarray) or sparse.issparse(v)}
        return replace(self, **{name: array.copy() for name, array in arrays.items()})


@runtime_checkable
class Blocks(Protocol):
    """An iterable of blocks.

    Attributes
    ----------
    repeatable : bool
        True if it can be iterated more than once.
    n_rows : int or None
        The number of rows, if known: beforehand, or after the first pass.

    The result of :func:`open_blocks` also has ``names``, the column names of X, if there are any.
    """

    repeatable: bool
    n_rows: int | None

    def __iter__(self) -> Iterator[Block]: ...


@dataclass(frozen=True)
class Place:
    """The position of a block's first row; ``line`` maps a row to its line in a text file."""

    source: str
    first: int = 0
    whole: bool = False
    line: Callable[[int], int | None] | None = None

    def describe(self, n: int) -> str:
        """Text for the position of n rows; the rows are left out if the block is the whole source."""
        if self.whole or not n:
            return self.source
        return f"{self.source}, {row_range((self.first, self.first + n - 1))}".removeprefix(", ")

    def error(self, row: int, reason: str, column: Any = None) -> StreamError:
        """An error about one row of the block."""
        number = self.first + row
        line = self.line(number) if self.line else None
        return error_at(reason, self.source, (number, number), column, line)


class Source(Protocol):
    """Rows before they are checked."""

    repeatable: bool
    n_rows: int | None
    names: list[str] | None

    def pieces(self) -> Iterator[tuple[Place, Block]]:
        """Blocks with their places, from the beginning."""
        ...


def width_of(X: Any) -> int:
    """Numbers stored per row; for sparse rows, values and their column indices."""
    return max(1, 2 * X.nnz // max(1, X.shape[0])) if sparse.issparse(X) else int(X.shape[1])


def rows_per_block(block_rows: int | None, n_columns: int, itemsize: int = 8) -> int:
    """``block_rows``, or as many rows as fit into the default size."""
    if block_rows is None:
        return max(1, min(MOST_ROWS, BUDGET // max(1, n_columns * itemsize)))
    if isinstance(block_rows, bool) or not isinstance(block_rows, int | np.integer) or block_rows < 1:
        raise ValueError(f"block_rows={block_rows!r} must be a positive integer or None.")
    return int(block_rows)


def size_of(A: Any) -> int:
    """The approximate size of rows in bytes."""
    if sparse.issparse(A):
        return int(A.data.nbytes) * 2
    if hasattr(A, "memory_usage"):
        return int(np.sum(A.memory_usage()))
    return int(getattr(A, "nbytes", 0))


# ---------------------------------------------------------------------- checks


class CheckedBlocks:
    """The blocks of a source, each validated and consistent with the first."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._started = False
        self._shapes: tuple | None = None
        self.repeatable = source.repeatable
        self.n_rows = source.n_rows
        self.names = source.names

    def __iter__(self) -> Iterator[Block]:
        if self._started and not self.repeatable:
            raise StreamError(
                "These blocks come from an iterator, which is exhausted: pass a function that returns a new "
                "iterator, or keep the rows on disk with leastwise.sources.Spool.keep."
            )
        self._started = True
        return self._blocks()

    def _blocks(self) -> Iterator[Block]:
        rows = 0
        for place, raw in self._source.pieces():
            self.names = self._source.names  # an iterator of tables knows them from its first table on
            block = _checked(place, raw, self.names)
            if not len(block):
                continue
            self._check_shapes(block)
            rows += len(block)
            yield block
        if not rows:
            raise StreamError("The stream has no rows.")
        if self.n_rows is not None and rows != self.n_rows:
            raise StreamError(
                f"The stream had {rows} rows in this pass, but {self.n_rows} were expected: every pass must give the "
                "same rows."
            )
        self.n_rows = rows

    def _check_shapes(self, block: Block) -> None:
        """X has as many columns, and the same other fields are present, as in the first block."""
        values = (getattr(block, name) for name in BESIDE)
        shapes = (block.X.shape[1], *(None if v is None else v.shape[1:] for v in values))
        if self._shapes is None:
            self._shapes = shapes
        elif shapes[0] != self._shapes[0]:
            raise StreamError(
                f"{block.where}: X has {shapes[0]} columns, but earlier blocks had {self._shapes[0]}.",
                where=block.where,
            )
        elif shapes != self._shapes:
            name = next(n for n, a, b in zip(BESIDE, shapes[1:], self._shapes[1:], strict=True) if a != b)
            raise StreamError(
                f"{block.where}: {name} differs from earlier blocks: it is missing in one of them, or has another "
                "number of columns.",
                where=block.where,
            )


def _checked(place: Place, block: Block, names: list[str] | None) -> Block:
    """The block with X as float32 or float64; an error names the row and the column."""
    where = place.describe(int(np.shape(block.X)[0]) if np.ndim(block.X) or sparse.issparse(block.X) else 0)
    coded = isinstance(block.X, CodedRows)
    X = _float_matrix(block.X.matrix if coded else block.X, where)
    beside = {name: _aligned(getattr(block, name), name, X.shape[0], where) for name in BESIDE}
    _check_finite(place, X, names)
    for name, value in beside.items():
        _check_present(place, value, name)
    weights = beside["sample_weight"]
    if weights is not None:
        if weights.dtype.kind not in "biuf":
            raise StreamError(
                f"{place.source}: weights must be numeric; their type is {weights.dtype}.", where=place.source
            )
        if (weights < 0).any():
            row = int(np.argmax(weights < 0))
            raise place.error(row, f"the weight is {weights[row]}, but weights must be 0 or more.")
        beside["sample_weight"] = weights.astype(np.float64, copy=False)
    return Block(replace(block.X, matrix=X) if coded else X, **beside, where=where)


def _float_matrix(X: Any, where: str) -> Any:
    """Two-dimensional, float32 if it was, else float64, as in ``fit``."""
    if not sparse.issparse(X):
        X = np.asarray(X)
    if X.ndim != 2:
        raise StreamError(
            f"{where}: X has shape {X.shape}, but must be two-dimensional. For a table, name the target column with "
            "target=.",
            where=where,
        )
    if X.dtype.kind not in "biuf":
        raise StreamError(
            f"{where}: X must be numeric, but has type {X.dtype}: encode it first, or give a frame.",
            where=where,
        )
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    return X.tocsr().astype(dtype, copy=False) if sparse.issparse(X) else np.asarray(X, dtype=dtype)


def _aligned(value: Any, name: str, n: int, where: str) -> Array | None:
    if value is None:
        return None
    value = array_of(value) if isinstance(value, list | tuple) else np.asarray(value)
    allowed = (1, 2) if name == "y" else (1,)
    if value.ndim not in allowed or len(value) != n:
        raise StreamError(f"{where}: {name} has shape {value.shape}, but X has {n} rows.", where=where)
    return value


def array_of(values: list | tuple) -> Array:
    """An array of numbers; of objects for text and mixed types, which numpy would turn into text of one width."""
    kinds = {type(v) for v in values}
    array = np.asarray(values) if len(kinds) <= 1 and str not in kinds else None
    if array is None or array.dtype.kind not in "biufM":
        array = np.empty(len(values), dtype=object)
        array[:] = values
    return array


def _check_finite(place: Place, X: Any, names: list[str] | None) -> None:
    """No value is infinite, and none is missing (NaN) in sparse X."""
    values = X.data if sparse.issparse(X) else X
    with np.errstate(all="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    wrong = ~np.isfinite(values) if sparse.issparse(X) else np.isinf(values)
    if not wrong.any():
        return
    if sparse.issparse(X):
        k = int(np.argmax(wrong))
        row, column = int(np.searchsorted(X.indptr, k, side="right")) - 1, int(X.indices[k])
        value = X.data[k]
    else:
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        value = X[row, column]
    reason = "missing value (NaN) in sparse X" if np.isnan(value) else f"the value is {value}"
    name = names[column] if names else f"X[:, {column}]"
    raise place.error(row, f"{reason}: impute or drop such rows first.", name)


def _check_present(place: Place, value: Array | None, name: str) -> None:
    """Every row has a target, task, group and weight; with several targets, some may be unknown."""
    if value is None or value.ndim == 2 or value.dtype.kind not in "fOM":
        return
    if value.dtype.kind == "O":
        missing = np.fromiter((v is None or v != v for v in value), dtype=bool, count=len(value))
    else:
        missing = np.isnat(value) if value.dtype.kind == "M" else ~np.isfinite(value)
    if missing.any():
        row = int(np.argmax(missing))
        what = {"sample_weight": "weight", "tasks": "task", "groups": "group", "y": "target"}[name]
        raise place.error(row, f"the {what} is {value[row]}, but every row needs one.")
