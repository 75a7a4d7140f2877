"""What can go wrong with a stream, said by file, rows and column.

Blocks of rows: what every source gives and every fit by stream takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy import sparse


class StreamError(ValueError):
    """A block cannot be had: the message says where, and blocks before it have been delivered.

    Parameters
    ----------
    message : str
    where : str
        The file, or the block of an iterator.
    rows : (int, int), optional
        First and last row, counted from 0 in the file, among which the fault is.
    column : str, optional
        The column, where it is known.
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
    """A stream cannot be kept on disk: no room, or no folder that can be written to."""


def span(rows: tuple[int, int]) -> str:
    """Rows in words."""
    return f"row {rows[0]}" if rows[0] == rows[1] else f"rows {rows[0]} to {rows[1]}"


def fault(
    reason: str,
    where: str,
    rows: tuple[int, int] | None = None,
    column: Any = None,
    line: int | None = None,
) -> StreamError:
    """The error about one place: its parts, then the reason."""
    parts = [where]
    if line is not None:
        parts.append(f"line {line}")
    elif rows is not None:
        parts.append(span(rows))
    if column is not None:
        parts.append(f'column "{column}"')
    place = ", ".join(p for p in parts if p)
    return StreamError(f"{place}: {reason}", where=where, rows=rows, column=column, line=line)


def reason_of(error: BaseException) -> str:
    """The first line of what another library says."""
    lines = str(error).splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


Array = np.ndarray

#: Bytes of numbers in a block, and the most rows, where nothing is said about its size.
BUDGET = 2**25
MOST_ROWS = 2**18


@dataclass(frozen=True)
class Block:
    """Some rows.

    Attributes
    ----------
    X : array or csr matrix of shape (n, d)
        Inputs, of float32 or float64.
    y : array of shape (n,) or (n, c), or None
        Targets; None where only inputs are wanted.
    sample_weight, tasks, groups : array of shape (n,), optional
    where : str
        Where the rows come from, for messages: "sales.parquet, rows 40000 to 49999".
    """

    X: Any
    y: Any
    sample_weight: Array | None = None
    tasks: Array | None = None
    groups: Array | None = None
    where: str = ""

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def owned(self) -> Block:
        """The same in arrays of its own, where an iterator might fill those that it has yielded again."""
        parts = {name: getattr(self, name) for name in ("X", *BESIDE)}
        arrays: dict[str, Any] = {k: v for k, v in parts.items() if isinstance(v, np.ndarray) or sparse.issparse(v)}
        return replace(self, **{name: array.copy() for name, array in arrays.items()})


#: What a block has beside X.
BESIDE = ("y", "sample_weight", "tasks", "groups")


@runtime_checkable
class Blocks(Protocol):
    """Blocks one after another.

    Attributes
    ----------
    repeatable : bool
        Whether they can be gone through again.
    n_rows : int or None
        How many rows there are, if that is known: beforehand, or after the first time.

    Those of :func:`open_blocks` also have ``names``, those of the columns of X, where there are any.
    """

    repeatable: bool
    n_rows: int | None

    def __iter__(self) -> Iterator[Block]: ...


@dataclass(frozen=True)
class Place:
    """Where the first row of a block stands; ``line`` finds the line of a row in a text file."""

    source: str
    first: int = 0
    whole: bool = False
    line: Callable[[int], int | None] | None = None

    def tell(self, n: int) -> str:
        """In words, with the rows, where the block is not all there is."""
        if self.whole or not n:
            return self.source
        return f"{self.source}, {span((self.first, self.first + n - 1))}".removeprefix(", ")


class Source(Protocol):
    """Rows as they come, before they are checked."""

    repeatable: bool
    n_rows: int | None
    names: list[str] | None

    def pieces(self) -> Iterator[tuple[Place, Block]]:
        """Blocks with their places, from the beginning."""
        ...


def width_of(X: Any) -> int:
    """Numbers of a row; of a sparse one those that there are, each with its column."""
    return max(1, 2 * X.nnz // max(1, X.shape[0])) if sparse.issparse(X) else int(X.shape[1])


def rows_of_budget(n_columns: int, itemsize: int = 8) -> int:
    """How many rows a block has where nothing is said."""
    return max(1, min(MOST_ROWS, BUDGET // max(1, n_columns * itemsize)))


def rows_per_block(block_rows: int | None, n_columns: int, itemsize: int = 8) -> int:
    """``block_rows`` if it is a number of rows, else by the budget."""
    if block_rows is None:
        return rows_of_budget(n_columns, itemsize)
    if isinstance(block_rows, bool) or not isinstance(block_rows, int | np.integer) or block_rows < 1:
        raise ValueError(f"block_rows={block_rows!r} must be a whole number of rows, 1 or more, or None.")
    return int(block_rows)


def gather(blocks: Any) -> Block:
    """All rows of some blocks as one block, in memory.

    Parameters
    ----------
    blocks : Blocks or iterable of Block

    Returns
    -------
    Block
    """
    listed = list(blocks)
    if not listed:
        raise ValueError("There are no blocks to put together.")
    if len(listed) == 1:
        return listed[0]
    X = [b.X for b in listed]
    parts = {name: [getattr(b, name) for b in listed] for name in BESIDE}
    beside: dict[str, Any] = {name: None if p[0] is None else np.concatenate(p) for name, p in parts.items()}
    return Block(sparse.vstack(X, format="csr") if sparse.issparse(X[0]) else np.concatenate(X), **beside)
