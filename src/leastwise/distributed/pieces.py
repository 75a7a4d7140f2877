"""Some rows as they were given, with all that belongs to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.extras import frames

Array = np.ndarray

#: What a block of rows may have, by the names that ``fit`` has for them.
NAMES = ("X", "y", "sample_weight", "tasks")


@dataclass(frozen=True)
class Piece:
    """Rows that are not looked at yet.

    Attributes
    ----------
    X : array, sparse matrix or frame
    y, sample_weight, tasks : array-like or None
    number : ndarray of int, optional
        The place of each row among all rows.
    """

    X: Any
    y: Any = None
    sample_weight: Any = None
    tasks: Any = None
    number: Array | None = None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def __sizeof__(self) -> int:  # what engines that move it go by
        return sum(size_of(getattr(self, field.name)) for field in fields(self))

    def take(self, index: Array) -> Piece:
        """Some of the rows."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: some_rows(a, index) for name, a in given.items() if a is not None})

    def numbered(self, first: int) -> Piece:
        """With the places of its rows, which follow one another."""
        return self if self.number is not None else replace(self, number=np.arange(first, first + len(self)))


def read_piece(block: Any) -> Piece:
    """A piece from what users give: a pair, all four, a mapping, or a thing with such attributes."""
    if isinstance(block, Piece):
        return block
    if isinstance(block, Mapping):
        given = dict(block)
    elif isinstance(block, Sequence) and not isinstance(block, str):
        given = dict(zip(NAMES, block, strict=False)) if len(block) in (2, 4) else {}
    elif isinstance(block, Iterable) and not hasattr(block, "X"):  # several blocks that are one part
        return joined([read_piece(one) for one in block])
    else:
        given = {name: getattr(block, name, None) for name in NAMES}
        given |= {} if getattr(block, "groups", None) is None else {"groups": block.groups}
    strange = [name for name in given if name not in NAMES]
    if strange or given.get("X") is None or not hasattr(given["X"], "shape"):
        raise ValueError(
            f"A block of rows is (X, y), (X, y, sample_weight, tasks), or a mapping with some of these names, where X"
            f"  is an array, a sparse matrix or a frame; this one is a {type(block).__name__}"
            + (f" with {strange}." if strange else ".")
        )
    return Piece(**given)


def size_of(A: Any) -> int:
    """About how many bytes rows take."""
    if sparse.issparse(A):
        return int(A.data.nbytes) * 2
    if hasattr(A, "memory_usage"):
        return int(np.sum(A.memory_usage()))
    return int(getattr(A, "nbytes", 0))


def some_rows(A: Any, index: Array) -> Any:
    """Some rows of an array, a list, a sparse matrix, a frame or a column."""
    if hasattr(A, "iloc"):
        return A.iloc[index]
    if isinstance(A, np.ndarray) or sparse.issparse(A) or hasattr(A, "to_numpy"):
        return A[index]
    return [A[i] for i in index] if isinstance(A, Sequence) and not isinstance(A, str) else A


def joined(pieces: Sequence[Piece]) -> Piece:
    """Pieces one below the other, in the order of their rows where these are numbered."""
    if len(pieces) == 1:
        whole = pieces[0]
    else:
        columns = {field.name: [getattr(piece, field.name) for piece in pieces] for field in fields(Piece)}
        whole = Piece(**{name: stacked(parts) for name, parts in columns.items()})
    if whole.number is None or np.all(np.diff(whole.number) > 0):
        return whole
    return whole.take(np.argsort(whole.number, kind="stable"))


def stacked(parts: list[Any]) -> Any:
    """Arrays, lists, sparse matrices, frames or columns one below the other; None where all are."""
    first = parts[0]
    if first is None:
        return None
    if sparse.issparse(first):
        return sparse.vstack(parts, format="csr")
    if hasattr(first, "iloc"):
        return frames("pandas").concat(parts)
    if hasattr(first, "to_numpy"):
        return frames("polars").concat(parts)
    return np.concatenate(parts) if isinstance(first, np.ndarray) else [v for part in parts for v in part]
