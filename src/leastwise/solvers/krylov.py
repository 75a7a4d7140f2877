r"""Kernels in single precision, of rows in double: half the room, and twice the speed.

Rows are moved to their mean and measured in widths of the kernel first, so that single precision has all its digits
for what the kernel looks at. Values are right to about 1e-6 then; where more is wanted, residuals are computed in
double precision (``leastwise.linalg.krylov``).

Products with a kernel matrix that is never there as a whole.

The matrix of a kernel ridge problem, with roots r of the rows' weights and rows of tasks t_i tied by B, is

    H = G + rho I,     G_ij = r_i k(x_i, x_j) B[t_i, t_j] r_j.

It is symmetric: of two blocks that mirror each other one is computed, and used twice. Blocks are small enough for the
processor's cache, where a product with few columns costs little beside the kernel's own values.

Models solved by conjugate gradients, without the kernel matrix of all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.linalg.cholesky import pivoted_cholesky, ridge_inverse
from leastwise.linalg.krylov import Krylov, Times, block_cg, three_steps
from leastwise.problem.coupling import CouplingMatrix
from leastwise.problem.intercepts import Centring, shrunk_means
from leastwise.problem.kernels import Kernel, Precomputed, Scaled, Sum
from leastwise.solvers.evaluator import Rows, Settings
from leastwise.utils.memory import available_memory
from leastwise.utils.random import generator

Array = np.ndarray

#: Rows that are further away than this many widths have squares that single precision does not hold.
FAR = 1e18


def in_single(kernel: Kernel, sigma: float, X: Any) -> tuple[Kernel, float, Any] | None:
    """The same kernel, its width and rows, in single precision.

    None where there is no such thing: for kernels that are not of a distance, or a sum with one that is; and for rows
    that are sparse, or in single precision already.
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
    """The kernel of rows that were moved, and are measured in other units."""
    if isinstance(kernel, Sum):
        return replace(kernel, parts=tuple(_measured(part, middle, unit) for part in kernel.parts))
    if isinstance(kernel, Scaled):
        origin = None if kernel.origin is None else ((kernel.origin - middle) / unit).astype(np.float32)
        return Scaled(origin, kernel.height / unit**2)
    return kernel


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
        tie: CouplingMatrix | None = None,
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
        self._cached: dict[tuple[int, int], Array] = {}

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
                values = self._cached.get((i, j))
                yield rows, others, self._keep((i, j), self._values(rows, others)) if values is None else values

    def _keep(self, place: tuple[int, int], values: Array) -> Array:
        """Keep a block if there is room for it."""
        if values.nbytes <= self._room:
            self._room -= values.nbytes
            self._cached[place] = values
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


#: Columns of the kernel that make the preconditioner of 2,500 rows; as the root of the rows otherwise.
RANK = 500
#: Bytes that are enough to compute a block of the kernel.
SMALL = 2**22


@dataclass(frozen=True)
class SolverOptions:
    """When to stop, and who is told."""

    tol: float
    max_iter: int
    report: Callable[[str], None] | None = None


@dataclass(frozen=True)
class RowCoupling:
    """How the tasks of some rows are tied: B, and the spread of their own intercepts."""

    tie: CouplingMatrix
    task: Array
    spread: float = 0.0

    def part(self, index: Array) -> RowCoupling:
        """Those of some rows."""
        return replace(self, task=self.task[index])


@dataclass(frozen=True)
class KrylovSolution:
    """Coefficients of the rows (n x c), shared intercepts (c), those of the tasks (T x c), and how it went."""

    A: Array
    intercept: Array
    own: Array | None
    summary: Krylov


class KrylovProblem:
    """``A = W (W G W + rho)^-1 W (Z - v b)`` by preconditioned block conjugate gradients, for any rho.

    The border of the shared intercept is solved in the three steps of section 3.4 of Xu et al. Intercepts of the
    tasks' own are centring, so that no column is needed for each of them.

    Kernel values that are kept, and the preconditioner's columns, serve every alpha. Where the values do not fit into
    the budget in double precision, iterations use single precision, and residuals are computed in double.

    Parameters
    ----------
    rows : Rows
    settings : Settings
    sigma : float
    row_coupling : Bonds or None
        How the rows' tasks are tied.
    solver_options : SolverOptions
    """

    def __init__(
        self,
        rows: Rows,
        settings: Settings,
        sigma: float,
        row_coupling: RowCoupling | None,
        solver_options: SolverOptions,
    ) -> None:
        # Vectors are in double precision whatever the rows: only kernel values are many.
        self.rows, self.row_coupling, self.solver_options = rows, row_coupling, solver_options
        self.root = np.sqrt(rows.w.astype(float))
        self.Z = rows.targets(settings.n_outputs) * self.root[:, None]
        tied: dict[str, Any] = {} if row_coupling is None else {"tie": row_coupling.tie, "task": row_coupling.task}
        budget, single = kernel_budget(), None
        if not half_fits(len(rows), rows.X.dtype.itemsize, budget):
            single = in_single(settings.kernel, sigma, rows.X)
        self.rough = None if single is None else KernelTimes(*single, self.root, budget=budget, **tied)
        # Exact products beside rough ones are few, and leave the room to these.
        self.H = KernelTimes(settings.kernel, sigma, rows.X, self.root, budget=SMALL if single else budget, **tied)
        spread = self.spread = 0.0 if row_coupling is None else row_coupling.spread * rows.mass
        self.centring = None
        if row_coupling is not None and spread > 0:
            self.centring = Centring.of(row_coupling.task, self.root, spread, len(row_coupling.tie.own))
        self.bias = settings.bias and np.isfinite(spread)
        self.L = self._columns(self.rough or self.H)

    def _columns(self, H: KernelTimes) -> Array:
        """``G ~ L L'``."""
        rank = preconditioner_rank(H.n, H.X.dtype.itemsize)
        L, _ = pivoted_cholesky(H.diagonal(), H.columns, rank, generator("preconditioner"), 0.0)
        return L if self.centring is None else self.centring.rows(L)

    def solve(self, alpha: float, start: Any = None) -> KrylovSolution:
        """The model at an alpha; ``start`` is ``story.X`` of a like problem, to start from."""
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
        """Beside the coefficients, the intercepts of the tasks' own, from what is left."""
        assert self.row_coupling is not None
        left = self.Z - (self.H.times(A) - rho * A) - self.root[:, None] * b
        own = shrunk_means(left, self.root, self.row_coupling.task, self.spread, len(self.row_coupling.tie.own))
        return A, own.astype(self.rows.X.dtype)

    def _solver(self, rho: float, start: Array | None) -> Callable[[Array], Krylov]:
        """Solves ``(W G W + rho) X = B`` for as many columns as are wanted, from ``start``."""
        times, exact = self._times(self.H, rho), None
        if self.rough is not None:
            times, exact = self._times(self.rough, rho), times
        options, precondition = self.solver_options, ridge_inverse(self.L, rho)
        how: dict[str, Any] = {"tol": options.tol, "max_iter": options.max_iter, "report": options.report}
        return partial(block_cg, times, start=start, exact=exact, precondition=precondition, **how)

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


def solve_by_krylov(
    rows: Rows,
    settings: Settings,
    sigma: float,
    alpha: float,
    row_coupling: RowCoupling | None,
    solver_options: SolverOptions,
    start: Any = None,
) -> KrylovSolution:
    """A :class:`KrylovProblem` at one alpha."""
    return KrylovProblem(rows, settings, sigma, row_coupling, solver_options).solve(alpha, start)


def kernel_budget() -> int:
    """Bytes of kernel values to hold: a part of what there is, so that blocks are computed once where they fit."""
    return max(available_memory() // 4, 2**24)


def preconditioner_rank(n: int, itemsize: int) -> int:
    """Columns of the preconditioner: as the root of the rows, in an eighth of the memory that there is."""
    room = max(available_memory() // 8, 2**24) // (n * itemsize)
    return max(1, min(n, room, int(RANK * (n / 2500) ** 0.5)))
