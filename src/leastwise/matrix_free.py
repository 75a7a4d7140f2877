r"""Products with a kernel matrix that is never there as a whole.

The matrix of a kernel ridge problem, with roots r of the rows' weights and rows of tasks t_i tied by B, is

    H = G + rho I,     G_ij = r_i k(x_i, x_j) B[t_i, t_j] r_j.

It is symmetric: of two blocks that mirror each other one is computed, and used twice. Blocks are small enough for the
processor's cache, where a product with few columns costs little beside the kernel's own values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.coupling import Tie
from leastwise.kernels import Kernel, Precomputed

Array = np.ndarray

#: Bytes of kernel values that are held, unless told otherwise.
BUDGET = 2**26
#: Rows and columns of a block, at most.
SIDE = 256
#: Arrays of the size of a block, or of its rows, that computing one takes.
COPIES = 4


class KernelTimes:
    """``V -> H V`` by blocks.

    Parameters
    ----------
    kernel : Kernel
    sigma : float
        Its width.
    X : array or sparse matrix of shape (n, d)
        Rows; the kernel matrix itself where it is precomputed. Kernel values are of its type. With single precision
        here and V in double, values take half the room, and products are exact to double precision all the same.
    root : ndarray of shape (n,), optional
        Roots of the rows' weights, 1 if not given. They may have signs: labels of -1 and 1 make the matrix
        ``y_i y_j k(x_i, x_j)`` of an LS-SVM for classification.
    tie : Tie, optional
        How tasks are tied to one another.
    task : ndarray of int of shape (n,), optional
        Codes of the rows' tasks; needed with ``tie``.
    rho : float
        The ridge. It alone may be changed between products.
    budget : int
        Bytes of kernel values to hold at a time. Of the half of the kernel matrix that is needed, as many blocks as
        are within it are kept from the first product on; the others are computed anew in every product.
    """

    def __init__(
        self,
        kernel: Kernel,
        sigma: float,
        X: Any,
        root: Array | None = None,
        tie: Tie | None = None,
        task: Array | None = None,
        rho: float = 0.0,
        budget: int = BUDGET,
    ) -> None:
        self.kernel, self.sigma, self.tie, self.task, self.rho = kernel, sigma, tie, task, rho
        self.X = X.tocsr() if sparse.issparse(X) else X
        self.root = np.ones(self.n, dtype=X.dtype) if root is None else root
        if tie is not None and task is None:
            raise ValueError("A tie needs the tasks of the rows.")
        self.side = _side(self.n, _width(kernel, X), X.dtype.itemsize, budget)
        # A precomputed kernel is kept already; others need room for the block at hand too.
        work = COPIES * self.side * max(self.side, _width(kernel, X)) * X.dtype.itemsize
        self._room = 0 if isinstance(kernel, Precomputed) else max(budget - work, 0)
        self._kept: dict[tuple[int, int], Array] = {}

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.X.shape[0]

    def times(self, V: Array) -> Array:
        """``H V`` for V of shape (n, k), in the type of V; summed over blocks in double precision."""
        W, total = self._rooted(V.astype(np.result_type(V, self.X), copy=False)), np.zeros(V.shape)
        for rows, others, values in self._blocks():
            K = values.astype(W.dtype, copy=False)
            total[rows] += K @ W[others]
            if rows != others:
                total[others] += K.T @ W[rows]
        return (self._rooted(total) + self.rho * V).astype(V.dtype, copy=False)

    __call__ = times

    def columns(self, index: Array) -> Array:
        """``G[:, index]``, without the ridge."""
        K = np.empty((self.n, len(index)), dtype=self.X.dtype)
        for rows in self._parts(self.side):
            K[rows] = self._values(rows, index)
        return self._rooted(K) * self.root[index].astype(K.dtype)

    def diagonal(self) -> Array:
        """That of G, without the ridge."""
        small = self._parts(min(self.side, 32))  # the fewer rows, the less is computed beside the diagonal
        return self.root.astype(self.X.dtype) ** 2 * np.concatenate([np.diagonal(self._values(p, p)) for p in small])

    def _rooted(self, V: Array) -> Array:
        return self.root[:, None].astype(V.dtype, copy=False) * V

    def _parts(self, size: int) -> list[slice]:
        return [slice(a, min(a + size, self.n)) for a in range(0, self.n, size)]

    def _blocks(self) -> Iterator[tuple[slice, slice, Array]]:
        """The blocks on and above the diagonal."""
        parts = self._parts(self.side)
        for i, rows in enumerate(parts):
            for j, others in enumerate(parts[i:], i):
                values = self._kept.get((i, j))
                yield rows, others, self._keep((i, j), self._values(rows, others)) if values is None else values

    def _keep(self, place: tuple[int, int], values: Array) -> Array:
        """Keep a block if there is room for it."""
        if values.nbytes <= self._room:
            self._room -= values.nbytes
            self._kept[place] = values
        return values

    def _values(self, rows: slice, others: slice | Array) -> Array:
        """``k(x_i, x_j) B[t_i, t_j]`` of a block."""
        if isinstance(self.kernel, Precomputed):
            K = self.X[rows][:, others]
            K = K.toarray() if sparse.issparse(K) else np.array(K)
        else:
            A = self.X[rows]  # the same object twice where the rows are the same: the kernel looks for that
            K = self.kernel(A, A if others is rows else self.X[others], self.sigma)
        return K if self.tie is None or self.task is None else self.tie.couple(K, self.task[rows], self.task[others])


def half_fits(n: int, itemsize: int, budget: int) -> bool:
    """Whether the blocks on and above the diagonal can all be kept."""
    side = min(SIDE, n)
    return (n * (n + side) // 2 + COPIES * side * side) * itemsize <= budget


def _width(kernel: Kernel, X: Any) -> int:
    """Numbers of a row that computing a block copies."""
    if isinstance(kernel, Precomputed):
        return 1
    return X.nnz // max(X.shape[0], 1) if sparse.issparse(X) else X.shape[1]


def _side(n: int, d: int, itemsize: int, budget: int) -> int:
    """Rows of a block, such that it fits into the budget with all that computing it takes."""
    room = budget // (COPIES * itemsize)
    return max(1, min(SIDE, n, int(room**0.5), room // max(d, 1)))
