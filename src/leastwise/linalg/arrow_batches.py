"""Chunks of consecutive tasks, and batches of tasks of similar sizes, padded to stacks of matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from leastwise.linalg.moments import Whitening

Array = np.ndarray

#: Sizes within this ratio share a batch.
RATIO = 1.25
#: Entries of the design in one batch: large enough for BLAS, small enough for the cache.
BLOCK = 2**18


@dataclass(frozen=True)
class Chunk:
    """Some consecutive, complete tasks.

    Attributes
    ----------
    design : ndarray of shape (rows, b)
        Design, multiplied by the square roots of the weights.
    Z : ndarray of shape (rows, c)
        Targets, multiplied by the square roots of the weights.
    root : ndarray of shape (rows,)
        Square roots of the weights: the column v of the intercept.
    starts : ndarray of int of shape (k + 1,)
        Task i has the rows ``starts[i]:starts[i + 1]``, possibly none.
    own : ndarray of shape (k,)
        (1 - sharing) / penalty of each task.
    means : ndarray of shape (k, b + c + 1), optional
        Means of the rows [design, Z, root] of each task, in the direction of ``root``, before centring.
    whitening : Whitening, optional
        Coordinates where the penalty is the identity; None if it is that in those of the design.
    """

    design: Array
    Z: Array
    root: Array
    starts: Array
    own: Array
    means: Array | None = None
    whitening: Whitening | None = None

    @cached_property
    def Phi(self) -> Array:
        """The design in coordinates where the penalty is the identity."""
        return self.design if self.whitening is None else triangular_product(self.design, self.whitening.T)


#: Iterates over all tasks from the first, each time it is called.
Source = Callable[[], Iterable[Chunk]]


@dataclass(frozen=True)
class Batch:
    """Tasks of similar sizes: indices (k), rows (k, m) with -1 for padding, Phi (k, m, b), B = [Z, v]."""

    tasks: Array
    rows: Array
    Phi: Array
    B: Array

    @property
    def double(self) -> tuple[Array, Array]:
        """Phi and B in double precision: in single precision, products lose the digits of a small ridge."""
        return self.Phi.astype(float, copy=False), self.B.astype(float, copy=False)


def like_sizes(sizes: Array, width: int) -> Iterator[Array]:
    """Group items of similar sizes into batches of about BLOCK / width rows; empty items are left out."""
    level = np.ceil(np.log(np.maximum(sizes, 1)) / np.log(RATIO) - 1e-9) + (sizes > width)
    for value in np.unique(level[sizes > 0]):
        items = np.flatnonzero((level == value) & (sizes > 0))
        room = max(1, BLOCK // (width * int(sizes[items].max())))
        yield from (items[a : a + room] for a in range(0, len(items), room))


def fill(first: Array, sizes: Array) -> Array:
    """Row indices ``first[i], first[i] + 1, ...``, one line for each i, padded with -1."""
    place = np.arange(sizes.max())
    return np.where(place < sizes[:, None], first[:, None] + place, -1)


def take(A: Array, rows: Array) -> Array:
    """``A[rows]``, zeros for -1; a view if the rows are consecutive."""
    if rows[0, 0] >= 0 and rows[-1, -1] - rows[0, 0] == rows.size - 1 and np.all(np.diff(rows.ravel()) == 1):
        return A[rows[0, 0] : rows[-1, -1] + 1].reshape(*rows.shape, A.shape[1])
    taken = A[rows]
    taken[rows < 0] = 0
    return taken


def batches(chunk: Chunk) -> Iterator[Batch]:
    """Batches of the tasks of a chunk, by similar sizes."""
    sizes, B = np.diff(chunk.starts), np.column_stack([chunk.Z, chunk.root])
    for tasks in like_sizes(sizes, chunk.design.shape[1]):
        rows = fill(chunk.starts[tasks], sizes[tasks])
        yield Batch(tasks, rows, take(chunk.Phi, rows), take(B, rows))


#: Bytes of the rows that ``triangular_product`` takes at a time, so that they stay in the cache.
PANEL = 2**20
#: Columns are divided into this many blocks; the operations are (BLOCKS + 1) / (2 BLOCKS) of those of a full product.
BLOCKS = 4


def triangular_product(A: Array, T: Array) -> Array:
    """``A @ T.T`` for a lower triangular T, in double precision.

    NumPy's products run in several threads at a time, unlike SciPy's ``trmm``, which keeps Python's lock.
    """
    n, b = A.shape
    out, step = np.empty((n, len(T))), max(1, PANEL // (8 * b))
    edges = np.linspace(0, len(T), 1 + min(BLOCKS, max(1, len(T) // 32))).astype(int)
    for first in range(0, n, step):
        rows = slice(first, first + step)
        for a, z in pairwise(edges.tolist()):
            np.matmul(A[rows, :z], T[a:z, :z].T, out=out[rows, a:z])
    return out


def turn(A: Array) -> Array:
    """Transpose every matrix of a stack."""
    return A.transpose(0, 2, 1)
