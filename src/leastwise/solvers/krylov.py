r"""Krylov solver: preconditioned conjugate gradients, without storing the kernel matrix.

The matrix of a kernel ridge problem, with square roots r of the rows' weights and tasks t_i coupled by B, is

    H = G + rho I,     G_ij = r_i k(x_i, x_j) B[t_i, t_j] r_j.

Products with H are computed by blocks (``KernelTimes``). H is symmetric, so only the blocks on and above the diagonal
are computed. They fit into the processor's cache, where a product with few columns is cheap compared with the kernel
values.

Rows of blocks are computed by several threads at a time. Kernel values in single precision take half the memory and
half the time, and so do products with them. Rows are first centred and divided by sigma,
so that all digits are used; values are then accurate to about 1e-6. Residuals are computed in double precision
(``leastwise.linalg.krylov``), unless a few rows of the product show that single precision is accurate enough.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.linalg.decompositions import inner_gram, pivoted_cholesky, ridge_inverse, single_suffices
from leastwise.linalg.krylov import Krylov, Times, block_cg, three_steps
from leastwise.problem.coupling import Centring, CouplingMatrix, shrunk_means
from leastwise.problem.kernels import Kernel, Precomputed, Scaled, Sum
from leastwise.solvers.evaluator import Rows, Settings
from leastwise.solvers.work import kernel_budget, preconditioner_rank
from leastwise.utils.hashing import generator
from leastwise.utils.resources import map_on_threads

Array = np.ndarray

#: Distances in units of sigma above this have squares that overflow in single precision.
FAR = 1e18


def in_single(kernel: Kernel, sigma: float, X: Any) -> tuple[Kernel, float, Any] | None:
    """Kernel, sigma and rows converted to single precision.

    None if that is not possible: for kernels that are neither distance-based nor sums, and for rows that are sparse
    or already in single precision.
    """
    if not (kernel.distance or isinstance(kernel, Sum)) or sparse.issparse(X) or X.dtype != np.float64:
        return None
    middle = X.mean(axis=0)
    single = np.empty(X.shape, dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for a in range(0, len(X), 4096):  # no copy of all rows in double precision
            single[a : a + 4096] = (X[a : a + 4096] - middle) / sigma
    if not np.abs(single).max(initial=0) < FAR:
        return None
    return _measured(kernel, middle, sigma), 1.0, single


def _measured(kernel: Kernel, middle: Array, unit: float) -> Kernel:
    """The kernel for rows shifted by ``middle`` and divided by ``unit``."""
    if isinstance(kernel, Sum):
        return replace(kernel, parts=tuple(_measured(part, middle, unit) for part in kernel.parts))
    if isinstance(kernel, Scaled):
        origin = None if kernel.origin is None else ((kernel.origin - middle) / unit).astype(np.float32)
        return Scaled(origin, kernel.height / unit**2)
    return kernel


#: Default number of bytes of kernel values in memory.
BUDGET = 2**26
#: Maximal number of rows and columns of a block.
SIDE = 256
#: Number of cached blocks in one array.
SLAB = 64
#: Temporary arrays, of the size of a block or of its rows, needed to compute a block.
COPIES = 4


class KernelTimes:
    """``V -> H V`` by blocks.

    Parameters
    ----------
    kernel : Kernel
    sigma : float
        Its width.
    X : array or sparse matrix of shape (n, d)
        Rows, or the kernel matrix if it is precomputed. Kernel values have its type. With X in single and V in double
        precision, values take half the memory, and products are accumulated in double precision.
    root : ndarray of shape (n,), optional
        Square roots of the rows' weights, 1 by default. They may be negative: labels of -1 and 1 make the matrix
        ``y_i y_j k(x_i, x_j)`` of an LS-SVM for classification.
    coupling_matrix : CouplingMatrix, optional
        Coupling of the tasks.
    task : ndarray of int of shape (n,), optional
        Task codes of the rows; required with ``coupling_matrix``.
    rho : float
        The ridge, the only attribute that may be changed between products.
    budget : int
        Bytes of kernel values to keep. Of the blocks on and above the diagonal, as many as fit are cached in the
        first product; the others are recomputed in every product.
    product_dtype : dtype, optional
        Type of the products of blocks; by default that of V or of the kernel values, whichever has more digits.
    boundary : int
        A row where a block begins, so that ``leading`` can take the rows before it.
    """

    def __init__(
        self,
        kernel: Kernel,
        sigma: float,
        X: Any,
        root: Array | None = None,
        coupling_matrix: CouplingMatrix | None = None,
        task: Array | None = None,
        rho: float = 0.0,
        budget: int = BUDGET,
        product_dtype: Any = None,
        boundary: int = 0,
    ) -> None:
        self.kernel, self.sigma, self.coupling_matrix, self.task, self.rho = kernel, sigma, coupling_matrix, task, rho
        self.X = X.tocsr() if sparse.issparse(X) else X
        self.root = np.ones(self.n, dtype=X.dtype) if root is None else root
        if coupling_matrix is not None and task is None:
            raise ValueError("coupling_matrix requires the task codes of the rows.")
        self.product_dtype = product_dtype
        self.side = _side(self.n, _width(kernel, X), X.dtype.itemsize, budget)
        # A precomputed kernel is in memory already; others need memory for the current block too.
        work = COPIES * self.side * max(self.side, _width(kernel, X)) * X.dtype.itemsize
        room = 0 if isinstance(kernel, Precomputed) else max(budget - work, 0)
        self._cached: dict[int, Array] = {}
        self._slabs: dict[int, Array] = {}
        self._bands = self._parts(self.side, 0, boundary) + self._parts(self.side, boundary, self.n)
        blocks = len(self._bands) * (len(self._bands) + 1) // 2
        self._room = min(room // (self.side**2 * X.dtype.itemsize), blocks)

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.X.shape[0]

    def times(self, V: Array) -> Array:
        """``H V`` for V of shape (n, k), in the type of V; summed over blocks in double precision."""
        total = np.zeros(V.shape)
        work = partial(self._times_rows, self._rooted(V.astype(self._dtype(V), copy=False)))
        for rows, across, below in map_on_threads(work, range(len(self._bands))):
            total[rows] += across
            total[rows.stop :] += below
        return (self._rooted(total) + self.rho * V).astype(V.dtype, copy=False)

    __call__ = times

    def _dtype(self, V: Array) -> Any:
        """Type of the products."""
        return self.product_dtype or np.result_type(V, self.X)

    def _times_rows(self, W: Array, i: int) -> tuple[slice, Array, Array]:
        """Products of the i-th rows of blocks from the diagonal on: for their rows, and for the rows below."""
        rows = self._bands[i]
        across, below = np.zeros((rows.stop - rows.start, W.shape[1])), np.empty((self.n - rows.stop, W.shape[1]))
        for j, others in enumerate(self._bands[i:], i):
            K = self._block(i, j, rows, others).astype(W.dtype, copy=False)
            across += K @ W[others]
            if i != j:
                below[others.start - rows.stop : others.stop - rows.stop] = K.T @ W[rows]
        return rows, across, below

    def leading(self, n: int, root: Array) -> KernelTimes:
        """The same for the rows before the boundary n, with other weights; kernel values are shared."""
        part = copy.copy(self)
        part.X, part.root, part.task = self.X[:n], root, None if self.task is None else self.task[:n]
        part._bands = [rows for rows in self._bands if rows.stop <= n]
        return part

    def in_products_of(self, dtype: Any) -> KernelTimes:
        """The same with products in another precision; kernel values are shared."""
        other = copy.copy(self)
        other.product_dtype = dtype
        return other

    def rows_of_product(self, index: Array, V: Array) -> Array:
        """``(H V)[index]``, without the other rows of the product."""
        W, total = self._rooted(V.astype(self._dtype(V), copy=False)), np.zeros((len(index), V.shape[1]))
        for some in self._parts(self.side, 0, len(index)):
            for others in self._bands:
                total[some] += self._values(index[some], others) @ W[others]
        return self.root[index, None] * total + self.rho * V[index]

    def columns(self, index: Array) -> Array:
        """``G[:, index]``, without the ridge."""
        K = np.empty((self.n, len(index)), dtype=self.X.dtype)
        for rows in self._bands:
            K[rows] = self._values(rows, index)
        return self._rooted(K) * self.root[index].astype(K.dtype)

    def diagonal(self) -> Array:
        """Diagonal of G, without the ridge."""
        small = self._parts(min(self.side, 32), 0, self.n)  # small blocks waste fewer off-diagonal values
        return self.root.astype(self.X.dtype) ** 2 * np.concatenate([np.diagonal(self._values(p, p)) for p in small])

    def _rooted(self, V: Array) -> Array:
        return self.root[:, None].astype(V.dtype, copy=False) * V

    @staticmethod
    def _parts(size: int, first: int, last: int) -> list[slice]:
        return [slice(a, min(a + size, last)) for a in range(first, last, size)]

    def _block(self, i: int, j: int, rows: slice, others: slice) -> Array:
        """A block on or above the diagonal; those of the first columns are cached, as many as fit into the budget."""
        number = j * (j + 1) // 2 + i
        values = self._cached.get(number)
        if values is None:
            values = self._values(rows, rows if i == j else others)
            if number < self._room:
                self._cached[number] = self._stored(number, values)
        return values

    def _stored(self, number: int, values: Array) -> Array:
        """A copy in an array of many blocks: the system provides large arrays in large pages, which saves time."""
        k, i = divmod(number, SLAB)
        if k not in self._slabs:
            shape = min(SLAB, self._room - k * SLAB), self.side, self.side
            self._slabs.setdefault(k, np.empty(shape, dtype=values.dtype))
        kept = self._slabs[k][i, : values.shape[0], : values.shape[1]]
        kept[...] = values
        return kept

    def _values(self, rows: slice | Array, others: slice | Array) -> Array:
        """``k(x_i, x_j) B[t_i, t_j]`` of a block."""
        if isinstance(self.kernel, Precomputed):
            K = self.X[rows][:, others]
            K = K.toarray() if sparse.issparse(K) else np.array(K)
        else:
            A = self.X[rows]  # pass the same object twice on the diagonal: the kernel takes advantage of it
            K = self.kernel(A, A if others is rows else self.X[others], self.sigma)
        return (
            K
            if self.coupling_matrix is None or self.task is None
            else self.coupling_matrix.couple(K, self.task[rows], self.task[others])
        )


def half_fits(n: int, itemsize: int, budget: int) -> bool:
    """True if all blocks on and above the diagonal fit into the budget."""
    side = min(SIDE, n)
    return (n * (n + side) // 2 + COPIES * side * side) * itemsize <= budget


def _width(kernel: Kernel, X: Any) -> int:
    """Entries copied per row when a block is computed."""
    if isinstance(kernel, Precomputed):
        return 1
    return X.nnz // max(X.shape[0], 1) if sparse.issparse(X) else X.shape[1]


def _side(n: int, d: int, itemsize: int, budget: int) -> int:
    """Number of rows of a block, such that it fits into the budget with its temporary arrays."""
    room = budget // (COPIES * itemsize)
    return max(1, min(SIDE, n, int(room**0.5), room // max(d, 1)))


#: Budget in bytes that suffices to compute a block of the kernel.
SMALL = 2**22
#: With a tolerance from here on, iterations are in single precision whatever the memory.
COARSE = 1e-5
#: Rows of a product from which the effect of single precision on the residual is estimated.
SAMPLED = 256


@dataclass(frozen=True)
class SolverOptions:
    """Stopping criterion and progress callback of an iterative solver."""

    tol: float
    max_iter: int
    report: Callable[[str], None] | None = None


@dataclass(frozen=True)
class RowCoupling:
    """Coupling of the tasks of some rows: B, task codes, and the prior variance of task intercepts."""

    coupling_matrix: CouplingMatrix
    task: Array
    intercept_ratio: float = 0.0

    def part(self, index: Array) -> RowCoupling:
        """Coupling of a subset of the rows."""
        return replace(self, task=self.task[index])


@dataclass(frozen=True)
class KrylovSolution:
    """Coefficients of the rows (n x c), intercepts (c), task intercepts (T x c), and convergence summary."""

    A: Array
    intercept: Array
    own: Array | None
    summary: Krylov


class KrylovProblem:
    """``A = W (W G W + rho)^-1 W (Z - v b)`` by preconditioned block conjugate gradients, for any rho.

    The bordered system of the shared intercept is solved in the three steps of section 3.4 of Xu et al. Task
    intercepts are represented by centring, so that they need no columns.

    Cached kernel values and the columns of the preconditioner serve every alpha, and the problem of the first rows
    too. Iterations use single precision if the tolerance allows, or if double does not fit into the budget.
    Residuals are computed in double precision, unless single precision is accurate enough.

    Parameters
    ----------
    rows : Rows
    settings : Settings
    sigma : float
    row_coupling : RowCoupling or None
        Coupling of the rows' tasks.
    solver_options : SolverOptions
    first : int
        Number of rows of ``of_first_rows``; 0 if there is no such problem.
    """

    def __init__(
        self,
        rows: Rows,
        settings: Settings,
        sigma: float,
        row_coupling: RowCoupling | None,
        solver_options: SolverOptions,
        first: int = 0,
    ) -> None:
        self.settings, self.solver_options, self.first = settings, solver_options, first
        self._weigh(rows, row_coupling)
        shared: dict[str, Any] = {"boundary": first}
        if row_coupling is not None:
            shared |= {"coupling_matrix": row_coupling.coupling_matrix, "task": row_coupling.task}
        budget, coarse, single = kernel_budget(), solver_options.tol >= COARSE, None
        if coarse or not half_fits(len(rows), rows.X.dtype.itemsize, budget):
            single = in_single(settings.kernel, sigma, rows.X)
        # Exact products are few compared with rough ones, so the cache is left to these.
        self.H = KernelTimes(settings.kernel, sigma, rows.X, self.root, budget=SMALL if single else budget, **shared)
        self.rough = None
        if single is not None:
            self.rough = KernelTimes(*single, self.root, budget=budget, product_dtype=np.float32, **shared)
        elif coarse and rows.X.dtype == np.float32:
            self.rough = self.H.in_products_of(np.float32)
        rank = preconditioner_rank(len(rows), (self.rough or self.H).X.dtype.itemsize)
        self.L, self.scale = self._columns(self.rough or self.H, rank), 1.0
        self._grams: dict[tuple[int, int, bool], Array] = {}

    def _weigh(self, rows: Rows, row_coupling: RowCoupling | None) -> None:
        """Set the rows, their weighted targets, and how they are centred."""
        # Vectors are always in double precision: only the kernel values take much memory.
        self.rows, self.row_coupling, self.centring = rows, row_coupling, None
        self.root = np.sqrt(rows.w.astype(float))
        self.Z = rows.targets(self.settings.n_outputs) * self.root[:, None]
        ratio = self.intercept_ratio = 0.0 if row_coupling is None else row_coupling.intercept_ratio * rows.mass
        if row_coupling is not None and ratio > 0:
            self.centring = Centring.of(row_coupling.task, self.root, ratio, len(row_coupling.coupling_matrix.own))
        self.bias = self.settings.bias and np.isfinite(ratio)

    @staticmethod
    def _columns(H: KernelTimes, rank: int) -> Array:
        """``G ~ L L'``."""
        return pivoted_cholesky(H.diagonal(), H.columns, rank, generator("preconditioner"), 0.0)[0]

    def of_first_rows(self) -> KrylovProblem:
        """The problem of the ``first`` rows alone, with weights of mean 1, from the same kernel values."""
        part, m, index = copy.copy(self), self.first, np.arange(self.first)
        part._weigh(
            self.rows.take(index, precomputed=False),
            None if self.row_coupling is None else self.row_coupling.part(index),
        )
        part.H = self.H.leading(m, part.root)
        part.rough = None if self.rough is None else self.rough.leading(m, part.root)
        part.L, part.scale = self.L[:m], float(np.sum(part.root**2) / np.sum(self.root[:m] ** 2))
        return part

    def solve(self, alpha: float, start: Any = None) -> KrylovSolution:
        """The solution at an alpha; ``start`` is ``summary.X`` of a similar problem."""
        rho, Z, centring = alpha * len(self.rows), self.Z, self.centring
        solve = self._solver(rho, start)
        V = self.root[:, None] if centring is None else centring.rows(self.root[:, None])
        right = Z if centring is None else centring.rows(Z)
        if self.bias:
            A, b, summary = three_steps(solve, V, right)
        else:
            summary = solve(right)
            A, b = summary.X, np.zeros((1, Z.shape[1]), dtype=Z.dtype)
        A, own = (A, None) if centring is None else self._own(centring.rows(A), b, rho)
        dtype = self.rows.X.dtype
        return KrylovSolution((self.root[:, None] * A).astype(dtype), b[0].astype(dtype), own, summary)

    def _own(self, A: Array, b: Array, rho: float) -> tuple[Array, Array]:
        """Coefficients, and task intercepts from the residuals."""
        assert self.row_coupling is not None
        left = self.Z - (self.H.times(A) - rho * A) - self.root[:, None] * b
        own = shrunk_means(
            left, self.root, self.row_coupling.task, self.intercept_ratio, len(self.row_coupling.coupling_matrix.own)
        )
        return A, own.astype(self.rows.X.dtype)

    def _solver(self, rho: float, start: Array | None) -> Callable[[Array], Krylov]:
        """Function that solves ``(W G W + rho) X = B`` for any number of columns, from ``start``."""
        options = self.solver_options
        how: dict[str, Any] = {"tol": options.tol, "max_iter": options.max_iter, "report": options.report}
        how |= {"start": start, "precondition": self._preconditioner(rho / self.scale)}
        exact, rough = self._times(self.H, rho), self.rough
        if rough is None:
            return partial(block_cg, exact, **how)
        times = self._times(rough, rho)
        return lambda B: block_cg(times, B, exact=exact, accurate=partial(self._accurate, options.tol, B), **how)

    def _preconditioner(self, rho: float) -> Times:
        """``V -> (L L' + rho)^-1 V``; ``L'L`` serves every alpha, and that of the first rows is a part of it."""
        if self.centring is not None:
            return ridge_inverse(self.centring.rows(self.L), rho)
        single, first, n = single_suffices(self.L, rho), self.first, len(self.L)
        gram = np.zeros((self.L.shape[1],) * 2)
        for part in [(a, b, single) for a, b in ((0, first), (first, n)) if a < b]:
            if part not in self._grams:
                self._grams[part] = inner_gram(self.L[part[0] : part[1]], single)
            gram += self._grams[part]
        return ridge_inverse(self.L, rho, gram)

    def _accurate(self, tol: float, B: Array, X: Array) -> bool:
        """True if single precision changes the residual of X by less than a tenth of the tolerance.

        Estimated from some rows of the product, which take little time.
        """
        assert self.rough is not None
        n, X = len(X), X if self.centring is None else self.centring.rows(X)
        index = generator("residual").choice(n, size=min(n, SAMPLED), replace=False)
        change = self.rough.rows_of_product(index, X) - self.H.rows_of_product(index, X)
        error = np.sqrt(n / len(index)) * np.linalg.norm(change, axis=0)
        return bool(np.all(error <= tol / 10 * np.linalg.norm(B, axis=0)))

    def _times(self, H: KernelTimes, rho: float) -> Times:
        """``V -> (W G W + rho) V``."""
        H.rho = rho
        if self.centring is None:
            return H.times
        rows = self.centring.rows

        def times(V: Array) -> Array:
            W = rows(V)
            return rows(H.times(W) - rho * W) + rho * V

        return times
