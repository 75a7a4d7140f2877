r"""Block-arrow solver: held-out scores of many tasks over a few shared basis functions.

With the letters of ``linalg.arrow``, the inverse of the Gram matrix of all rows, intercept included, is

    M = Q^-1 - G G',     G = Q^-1 J L'^-1,     A = L L',

where Q^-1 is block diagonal with one block per task. Rows f left out together have the held-out scores
``F_f = Z_f - M_ff^-1 (M Z)_f``; the basis does not change. For a fold of at most b + 1 rows, M_ff is solved directly.
For a larger one, the block D of Q^-1_ff of each task is solved first, and then, with ``E = D^-1 G_f``, a system of b
+ 1 unknowns:

    M_ff^-1 r = D^-1 r + E N^-1 G_f' D^-1 r,     N = I - G_f' E.

L N L' is the shared system of the training rows, so this equals a refit without another decomposition: all folds
together cost about as much as leave-one-out. A fold may contain all rows of a task.

The cost is linear in the rows and in the tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import Any, Self

import numpy as np

from leastwise.linalg.arrow import Decomposed, Factors, System, TaskFactors, decompose
from leastwise.linalg.arrow_batches import Chunk, fill, like_sizes, take, triangular_product, turn
from leastwise.linalg.moments import Whitening, whitening
from leastwise.problem.basis import Basis, double_kernel
from leastwise.problem.coupling import Centring, Coupling, CouplingMatrix
from leastwise.solvers.evaluator import Rows, Settings
from leastwise.solvers.heldout import Folds, HeldOut, Problem
from leastwise.solvers.task_evaluators import TaskEvaluator
from leastwise.utils.resources import block_bytes

Array = np.ndarray


@dataclass(frozen=True)
class Pieces:
    """Quantities of each row at one ridge; the last entry is a placeholder for padding.

    Attributes
    ----------
    GR : ndarray of shape (n + 1, p + c)
        ``[G, M Z]``, with p = b + 1 columns in G, or b without intercept.
    p : int
    X : ndarray of shape (n + 1, r)
        Within one task, ``Q^-1_ff = X_f X_f'``, or ``free I - X_f X_f'`` if the task has more rows than basis
        functions.
    free : ndarray of shape (n + 1,)
        1 / rho in the second case, 0 in the first.
    task : ndarray of int of shape (n + 1,)
    """

    GR: Array
    p: int
    X: Array
    free: Array
    task: Array

    @classmethod
    def empty(cls, n: int, p: int, c: int, r: int) -> Pieces:
        """Zeros, and 1 where a matrix must not be singular."""
        free = np.zeros(n + 1)
        free[n] = 1
        return cls(np.zeros((n + 1, p + c)), p, np.zeros((n + 1, r)), free, np.full(n + 1, -1))

    @property
    def noise(self) -> Array:
        """Estimated rounding error of each score: M_ii is a difference and may be much smaller than Q^-1_ii."""
        whole, left = self.diagonal
        return np.finfo(float).eps * whole / np.maximum(left, np.finfo(float).tiny)

    @cached_property
    def diagonal(self) -> tuple[Array, Array]:
        """Q^-1_ii and M_ii of all rows."""
        x = np.einsum("ij,ij->i", self.X, self.X)[:-1]
        whole = np.where(self.free[:-1] > 0, self.free[:-1] - x, x)
        return whole, whole - np.einsum("ij,ij->i", self.GR[:-1, : self.p], self.GR[:-1, : self.p])

    def enter(
        self, tasks: Array, table: Array, G: Array, R: Array, X: Array, free: float, centring: Centring | None
    ) -> None:
        """Fill in the rows of a table (tasks x rows, padded with -1)."""
        GR = np.concatenate([G, R], axis=2)
        if centring is not None:  # H^-1 = W (Q^-1 - G G') W
            u = np.where(table >= 0, centring.u[table], 0)[..., None].astype(float)
            kappa = centring.kappa[tasks, None, None].astype(float)
            GR, X = (A - kappa * u * (turn(u) @ A) for A in (GR, X))
            if free:  # W (I / rho - X X') W = I / rho - (2 kappa - kappa^2) u u' / rho - W X X' W
                X = np.concatenate([X, np.sqrt(kappa * (2 - kappa) * free) * u], axis=2)
        real = table >= 0
        i = table[real]
        self.GR[i], self.X[i, : X.shape[2]], self.free[i] = GR[real], X[real], free
        self.task[i] = np.repeat(tasks, real.sum(axis=1))

    def blocks(self, i: Array) -> Array:
        """``Q^-1_ff`` for many sets of rows (sets x rows, padded with -1); zeros between rows of different tasks."""
        X, task, free = self.X[i], self.task[i], self.free[i]
        D = X @ turn(X)
        D *= (task[:, :, None] == task[:, None, :]) * np.where(free > 0, -1, 1).astype(D.dtype)[:, :, None]
        j = np.arange(i.shape[1])
        D[:, j, j] += free
        return D

    def solve_small(self, i: Array) -> Array:
        """``M_ff^-1 (M Z)_f`` for many small folds."""
        GR = self.GR[i]
        G, R = GR[..., : self.p], GR[..., self.p :]
        return np.linalg.solve(self.blocks(i) - G @ turn(G), R)

    def solve_part(self, i: Array, R: Array) -> Array:
        """``D^-1 R`` for many sets of rows of one task each."""
        if i.shape[1] <= self.X.shape[1]:
            return np.linalg.inv(self.blocks(i)) @ R  # R is so wide that solve() takes three times as long
        # More rows than basis functions: (I / rho - X X')^-1 = rho I + rho X (I / rho - X'X)^-1 X'.
        X, free = self.X[i], self.free[i[:, 0], None, None]
        inner = free * np.eye(X.shape[2], dtype=X.dtype) - turn(X) @ X
        return (R + X @ np.linalg.solve(inner, turn(X) @ R)) / free

    def solve_large(self, f: Array) -> Iterator[tuple[Array, Array]]:
        """``M_ff^-1 (M Z)_f`` for one large fold, as pairs of row tables and values."""
        p, parts = self.p, []
        N = np.zeros((self.GR.shape[1],) * 2)
        f = f[np.argsort(self.task[f], kind="stable")]
        cuts = np.flatnonzero(np.diff(self.task[f])) + 1
        for i in _tables(f, np.diff(np.r_[0, cuts, len(f)]), self.X.shape[1]):
            GR = self.GR[i]
            solved = self.solve_part(i, GR)
            N += GR.reshape(-1, len(N)).T @ solved.reshape(-1, len(N))
            parts.append((i, solved))
        y = np.linalg.solve(np.eye(p) - N[:p, :p], N[:p, p:]).astype(self.GR.dtype)
        return ((i, solved[..., p:] + solved[..., :p] @ y) for i, solved in parts)


@dataclass
class ArrowHeldout:
    """Held-out scores of many tasks, for any number of ridges.

    Parameters
    ----------
    problem : Problem
        Its rows are ordered as in the decomposition; ``own`` is not used.
    decomposed : Decomposed
        Decomposition of the same rows; other sharings can reuse it.
    sharing : float
        Share of the model common to all tasks.
    own : ndarray of shape (n_tasks,)
        (1 - sharing) / penalty of each task.
    """

    problem: Problem
    decomposed: Decomposed
    sharing: float
    own: Array

    def at(self, alpha: float) -> HeldOut:
        """Held-out scores at this alpha; all k folds have the ridge alpha n (1 - 1/k)."""
        k, n = self.problem.n_folds, len(self.problem.Z)
        return self.from_system(*self._system(alpha * n * (1 - 1 / k)))

    def from_system(self, system: System, rho: float) -> HeldOut:
        """Held-out scores at this ridge, from a shared system that may include more tasks than these.

        For rows that do not fit into memory: ``arrow_system`` passes over all of them, then one object per chunk
        gives the held-out scores of the chunk. Every fold must lie within one chunk.
        """
        return held_out(self.problem, self._rows(system, float(rho)), rho)

    def unseen_task_scores(self, alpha: float) -> Array:
        """Scores of each task's rows from the shared part of all other tasks, at the ridge alpha n."""
        if sum(len(f.tasks) for f in self.decomposed.factors) < 2:
            raise ValueError("Leaving a task out needs at least two tasks; there is only one.")
        system, rho = self._system(alpha * len(self.problem.Z))
        pieces = self._rows(system, rho)
        return deleted(self.problem, pieces, Folds.from_labels(pieces.task[:-1]))

    def _system(self, rho: float) -> tuple[System, float]:
        return self.decomposed.system(self.sharing, self.own, float(rho), self.problem.bias), float(rho)

    def _rows(self, system: System, rho: float) -> Pieces:
        """Pieces of all rows, in double precision because differences are taken."""
        factors, Z = self.decomposed.factors, self.problem.Z
        inverse = system.inverse.T
        theta = system.factor.L.T @ system.theta
        width = max((f.s.shape[1] for f in factors), default=1) + (self.problem.centring is not None)
        pieces = Pieces.empty(len(Z), len(inverse), Z.shape[1], width)
        for f in factors:
            self._enter(pieces, f, rho, inverse, theta)
        return pieces

    def _enter(self, rows: Pieces, f: Factors, rho: float, inverse: Array, theta: Array) -> None:
        """Fill in the pieces of some tasks."""
        e, bias, b = f.inverse(self.own, rho)[..., None], self.problem.bias, f.Vt.shape[2]
        UJ = sqrt(self.sharing) * triangular_product((f.s[..., None] * f.Vt).reshape(-1, b), inverse.T[:, :b])
        if bias:
            UJ += f.UB[..., -1].reshape(-1, 1) * inverse[b]
        G = f.U @ (e * UJ.reshape(*f.s.shape, -1))
        QZ, X = f.U @ (e * f.UB[..., :-1]), f.U * turn(np.sqrt(e))
        if f.outside is not None:
            QZ += f.outside[..., :-1] / rho
            X = f.U * turn(np.sqrt(np.maximum(1 / rho - e, 0)))
            if bias:
                G += f.outside[..., -1:] * (inverse[b] / rho)
        rows.enter(
            f.tasks, f.rows, G, QZ - G @ theta, X, 0.0 if f.outside is None else 1 / rho, self.problem.centring
        )


def factored_pieces(problem: Problem, chunk: Chunk, factors: list[TaskFactors], system: System, rho: float) -> Pieces:
    """Pieces of the rows of a chunk from Cholesky factors, where these keep the digits (``system.regular``).

    With ``E = J L'^-1`` from the design itself, G = Q^-1 E. Rows of tasks of more than b rows have
    ``Q^-1 = I / rho - X X'`` with ``X = sqrt(own / rho) Phi L_t'^-1`` and ``P_t = L_t L_t'``.
    """
    inverse, b = system.inverse, chunk.design.shape[1]
    left = sqrt(system.sharing) * inverse[:, :b]
    E = triangular_product(chunk.design, left if chunk.whitening is None else left @ chunk.whitening.T)
    if system.bias:
        E += chunk.root[:, None] * inverse[:, b]
    theta, c = system.factor.L.T @ system.theta, chunk.Z.shape[1]
    EZ = np.concatenate([E, chunk.Z], axis=1)
    width = max((f.inverse.shape[1] for f in factors), default=1) + (problem.centring is not None)
    pieces = Pieces.empty(len(EZ), len(inverse), c, width)
    for f in factors:
        Y, own = take(EZ, f.rows), chunk.own[f.tasks, None, None]
        if f.wide:
            X, Y = turn(f.inverse), turn(f.inverse) @ f.inverse @ Y
        else:
            X = np.sqrt(own / rho) * (take(chunk.Phi, f.rows) @ turn(f.inverse))
            Y = Y / rho - X @ (turn(X) @ Y)
        G = Y[..., :-c]
        pieces.enter(f.tasks, f.rows, G, Y[..., -c:] - G @ theta, X, 0.0 if f.wide else 1 / rho, problem.centring)
    return pieces


def held_out(problem: Problem, pieces: Pieces, rho: float) -> HeldOut:
    """Held-out scores at the ridge of the pieces, with their rounding errors and the degrees of freedom."""
    F = deleted(problem, pieces, problem.folds, problem.counts(problem.folds.singles), rho)
    return HeldOut(F, pieces.noise, float(np.sum(1 - rho * pieces.diagonal[1])))


def deleted(problem: Problem, pieces: Pieces, folds: Folds, count: Array | None = None, rho: float = 1.0) -> Array:
    """Scores of all rows without their fold; of rows held out alone, one of ``count`` observations is deleted."""
    F, i = np.empty_like(problem.Z), folds.singles
    for f, x in _solved_blocks(pieces, folds):
        real = f >= 0
        F[f[real]] = problem.Z[f[real]] - x[real]
    left = pieces.diagonal[1][i]
    if count is not None:  # x' = M z / (M_ii / m + (1 - 1/m) / rho), see ``heldout.delete_one``
        left = left / count + (1 - 1 / count) / rho
    F[i] = problem.Z[i] - pieces.GR[i, pieces.p :] / left[:, None]
    return F / problem.root[:, None]


def _solved_blocks(rows: Pieces, folds: Folds) -> Iterator[tuple[Array, Array]]:
    """``M_ff^-1 (M Z)_f`` of the folds of several rows, as pairs of row tables and values."""
    small, p = [f for f in folds.blocks if len(f) <= rows.p], rows.p
    if small:
        sizes = np.array([len(f) for f in small])
        yield from ((i, rows.solve_small(i)) for i in _tables(np.concatenate(small), sizes, p))
    for f in folds.blocks:
        if len(f) > p:
            yield from rows.solve_large(f)


def _tables(rows: Array, sizes: Array, width: int) -> Iterator[Array]:
    """Split the rows into sets of these sizes; sets of similar size share a table (sets x rows), padded with -1."""
    first, rows = np.cumsum(sizes) - sizes, np.append(rows, -1)
    yield from (rows[fill(first[sets], sizes[sets])] for sets in like_sizes(sizes, width))


#: Largest size of the design of one chunk of tasks, in bytes.
CHUNK = 2**26
#: Smaller chunks stay in the cache, but have at least this many rows for each basis function, so that adding up their
#: sums costs little.
CACHED, ROWS_PER_FUNCTION = 2**21, 4


@dataclass(frozen=True)
class Stream:
    """Rows grouped by task, in chunks of a few whole tasks.

    Attributes
    ----------
    rows : Rows
    order : ndarray of int of shape (n,)
        Row numbers sorted by task.
    ends : ndarray of int of shape (T + 1,)
        Start and end of each task in that order.
    centers : array or sparse matrix of shape (b, d)
    settings : Settings
    """

    rows: Rows
    order: Array
    ends: Array
    centers: Any
    settings: Settings

    @classmethod
    def of(cls, rows: Rows, n_tasks: int, basis: Basis, settings: Settings) -> Stream:
        """Stream of all rows."""
        assert rows.task is not None
        order = np.argsort(rows.task, kind="stable")
        ends = np.searchsorted(rows.task[order], np.arange(n_tasks + 1))
        return cls(rows, order, ends, basis.centers, settings)

    def penalty(self, sigma: float) -> Whitening | None:
        """Whitening of the centres; None if the penalty is the identity."""
        if self.settings.norm == "coefficients":
            return None
        return whitening(double_kernel(self.settings.kernel, self.centers, self.centers, sigma))

    def chunks(
        self,
        sigma: float,
        coupling_matrix: CouplingMatrix,
        penalty: Whitening | None,
        centring: Centring | None = None,
    ) -> Iterator[tuple[Array, Chunk]]:
        """Row numbers and design of every chunk of tasks."""
        for tasks in self.cuts():
            yield self.chunk(tasks, sigma, coupling_matrix, penalty, centring)

    def chunk(
        self,
        tasks: slice,
        sigma: float,
        coupling_matrix: CouplingMatrix,
        penalty: Whitening | None,
        centring: Centring | None = None,
    ) -> tuple[Array, Chunk]:
        """Row numbers and design of some consecutive tasks."""
        mine = self.order[self.ends[tasks.start] : self.ends[tasks.stop]]
        some = self.rows.part(mine)
        design = self._design(some.X, sigma, penalty)
        root = np.sqrt(some.w).astype(some.X.dtype)
        Z = some.targets(self.settings.n_outputs) * root[:, None]
        if not np.all(root == 1):
            design *= root[:, None]
        starts = self.ends[tasks.start : tasks.stop + 1] - self.ends[tasks.start]
        chunk = Chunk(design, Z, root, starts, coupling_matrix.own[tasks], whitening=penalty)
        return mine, chunk if centring is None else centred(chunk, centring.part(mine, tasks))

    def _design(self, X: Any, sigma: float, penalty: Whitening | None) -> Array:
        """Kernel values of some rows; in double precision if they are to be whitened."""
        if penalty is None:
            return self.settings.kernel(X, self.centers, sigma)
        return np.ascontiguousarray(double_kernel(self.settings.kernel, X, self.centers[penalty.pivots], sigma))

    def cuts(self) -> Iterator[slice]:
        """Ranges of tasks whose designs fit into the cache, or single tasks."""
        b, first, T = self.centers.shape[0], 0, len(self.ends) - 1
        room = max(1, min(block_bytes(CHUNK) // (8 * b), max(CACHED // (8 * b), ROWS_PER_FUNCTION * b)))
        while first < T:
            last = int(np.searchsorted(self.ends, self.ends[first] + room, side="right")) - 1
            last = min(max(last, first + 1), T)
            yield slice(first, last)
            first = last


def centred(chunk: Chunk, centring: Centring) -> Chunk:
    """The chunk with its tasks centred, and the means that were subtracted."""
    whole = np.column_stack([chunk.design, chunk.Z, chunk.root])
    means = centring.sums(whole)
    left = centring.rows(whole)
    b = chunk.design.shape[1]
    Z, root = (A.astype(chunk.Z.dtype, copy=False) for A in (left[:, b:-1], left[:, -1]))
    return replace(chunk, design=left[:, :b], Z=Z, root=root, means=means)


class ArrowEvaluator(TaskEvaluator):
    """Held-out scores of many tasks in closed form, from one decomposition per task and sigma.

    The centres are fixed: they stay when a row is held out.
    """

    streams = True

    def __init__(self, rows: Rows, basis: Basis, settings: Settings, coupling: Coupling) -> None:
        self.rows, self.basis, self.settings, self.coupling = rows, basis, settings, coupling
        self.coupling_matrix = coupling.at(1.0)
        self.stream = Stream.of(rows, len(coupling.penalty), basis, settings)
        self._cached: dict[tuple[float, float], Decomposed] = {}

    @property
    def matrix_rows(self) -> int:
        """Basis functions: tasks are eliminated one by one, or in small batches."""
        return self.basis.n_functions

    def with_linear_weight(self, weight: float) -> Self:
        """Copy with this weight of the linear part of a sum of kernels."""
        other = super().with_linear_weight(weight)
        other.stream, other._cached = replace(self.stream, settings=other.settings), {}
        return other

    def decomposed(self, sigma: float) -> Decomposed:
        """Decomposition of all tasks at this sigma and intercept variance."""
        key = (sigma, self.intercept_ratio)
        if key not in self._cached:
            self._cached.clear()
            chunks = self.stream.chunks(sigma, self.coupling_matrix, self.stream.penalty(sigma), self.centring())
            self._cached[key] = decompose(chunk for _, chunk in chunks)
        return self._cached[key]

    def arrow(self, sigma: float) -> ArrowHeldout:
        """Held-out scores at this sigma, with rows in the order of the stream."""
        order, s, centring = self.stream.order, self.settings, self.centring()
        root = np.sqrt(self.rows.w[order]).astype(self.rows.X.dtype)
        Z = self.rows.targets(s.n_outputs)[order] * root[:, None]
        ordered = None if centring is None else centring.part(order, slice(0, None))
        split = self.rows.split_count
        count = None if split is None else split[order]
        problem = Problem(Z, root, self.bias, None, Folds.from_labels(self.rows.fold[order]), ordered, count)
        return ArrowHeldout(problem, self.decomposed(sigma), self.coupling_matrix.sharing, self.coupling_matrix.own)

    def heldout(self, sigma: float, count: int) -> Callable[[float], HeldOut]:
        """A function from alpha to held-out scores at this sigma."""
        arrow = self.arrow(sigma)

        def at(alpha: float) -> HeldOut:
            held = arrow.at(alpha)
            return replace(held, F=self.back(held.F), noise=None if held.noise is None else self.back(held.noise))

        return at

    def back(self, F: Array) -> Array:
        """Scores in the original order of the rows."""
        placed = np.empty_like(F)
        placed[self.stream.order] = F
        return placed
