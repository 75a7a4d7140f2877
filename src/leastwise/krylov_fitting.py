"""Models solved by conjugate gradients, without the kernel matrix of all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from leastwise.centring import Centring, shrunk_means
from leastwise.coupling import Tie
from leastwise.linalg.krylov import Krylov, Times, block_cg, three_steps
from leastwise.linalg.pivoted import pivoted_cholesky, ridge_inverse
from leastwise.matrix_free import KernelTimes, half_fits
from leastwise.memory import available_memory
from leastwise.precision import in_single
from leastwise.seeds import generator
from leastwise.selection.trial import Rows, Settings

Array = np.ndarray

#: Columns of the kernel that make the preconditioner of 2,500 rows; as the root of the rows otherwise.
RANK = 500
#: Bytes that are enough to compute a block of the kernel.
SMALL = 2**22


@dataclass(frozen=True)
class Effort:
    """When to stop, and who is told."""

    tol: float
    max_iter: int
    report: Callable[[str], None] | None = None


@dataclass(frozen=True)
class Bonds:
    """How the tasks of some rows are tied: B, and the spread of their own intercepts."""

    tie: Tie
    task: Array
    spread: float = 0.0

    def part(self, index: Array) -> Bonds:
        """Those of some rows."""
        return replace(self, task=self.task[index])


@dataclass(frozen=True)
class Iterated:
    """Coefficients of the rows (n x c), shared intercepts (c), those of the tasks (T x c), and how it went."""

    A: Array
    intercept: Array
    own: Array | None
    story: Krylov


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
    bonds : Bonds or None
        How the rows' tasks are tied.
    effort : Effort
    """

    def __init__(self, rows: Rows, settings: Settings, sigma: float, bonds: Bonds | None, effort: Effort) -> None:
        # Vectors are in double precision whatever the rows: only kernel values are many.
        self.rows, self.bonds, self.effort = rows, bonds, effort
        self.root = np.sqrt(rows.w.astype(float))
        self.Z = rows.targets(settings.n_outputs) * self.root[:, None]
        tied: dict[str, Any] = {} if bonds is None else {"tie": bonds.tie, "task": bonds.task}
        budget, single = kernel_budget(), None
        if not half_fits(len(rows), rows.X.dtype.itemsize, budget):
            single = in_single(settings.kernel, sigma, rows.X)
        self.rough = None if single is None else KernelTimes(*single, self.root, budget=budget, **tied)
        # Exact products beside rough ones are few, and leave the room to these.
        self.H = KernelTimes(settings.kernel, sigma, rows.X, self.root, budget=SMALL if single else budget, **tied)
        spread = self.spread = 0.0 if bonds is None else bonds.spread * rows.mass
        self.centring = None
        if bonds is not None and spread > 0:
            self.centring = Centring.of(bonds.task, self.root, spread, len(bonds.tie.own))
        self.bias = settings.bias and np.isfinite(spread)
        self.L = self._columns(self.rough or self.H)

    def _columns(self, H: KernelTimes) -> Array:
        """``G ~ L L'``."""
        rank = preconditioner_rank(H.n, H.X.dtype.itemsize)
        L, _ = pivoted_cholesky(H.diagonal(), H.columns, rank, generator("preconditioner"), 0.0)
        return L if self.centring is None else self.centring.rows(L)

    def solve(self, alpha: float, start: Any = None) -> Iterated:
        """The model at an alpha; ``start`` is ``story.X`` of a like problem, to start from."""
        rho, Z, centring = alpha * len(self.rows), self.Z, self.centring
        solve = self._solver(rho, start)
        V = self.root[:, None] if centring is None else centring.rows(self.root[:, None])
        right = Z if centring is None else centring.rows(Z)
        if self.bias:
            A, b, story = three_steps(solve, V, right)
        else:
            story = solve(right)
            A, b = story.X, np.zeros((1, Z.shape[1]), dtype=Z.dtype)
        A, own = (A, None) if centring is None else self._own(centring.rows(A), b, rho)
        dtype = self.rows.X.dtype
        return Iterated((self.root[:, None] * A).astype(dtype), b[0].astype(dtype), own, story)

    def _own(self, A: Array, b: Array, rho: float) -> tuple[Array, Array]:
        """Beside the coefficients, the intercepts of the tasks' own, from what is left."""
        assert self.bonds is not None
        left = self.Z - (self.H.times(A) - rho * A) - self.root[:, None] * b
        own = shrunk_means(left, self.root, self.bonds.task, self.spread, len(self.bonds.tie.own))
        return A, own.astype(self.rows.X.dtype)

    def _solver(self, rho: float, start: Array | None) -> Callable[[Array], Krylov]:
        """Solves ``(W G W + rho) X = B`` for as many columns as are wanted, from ``start``."""
        times, exact = self._times(self.H, rho), None
        if self.rough is not None:
            times, exact = self._times(self.rough, rho), times
        options: dict[str, Any] = {"tol": self.effort.tol, "max_iter": self.effort.max_iter, "exact": exact}
        options |= {"precondition": ridge_inverse(self.L, rho), "report": self.effort.report}
        return partial(block_cg, times, start=start, **options)

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
    rows: Rows, settings: Settings, sigma: float, alpha: float, bonds: Bonds | None, effort: Effort, start: Any = None
) -> Iterated:
    """A :class:`KrylovProblem` at one alpha."""
    return KrylovProblem(rows, settings, sigma, bonds, effort).solve(alpha, start)


def kernel_budget() -> int:
    """Bytes of kernel values to hold: a part of what there is, so that blocks are computed once where they fit."""
    return max(available_memory() // 4, 2**24)


def preconditioner_rank(n: int, itemsize: int) -> int:
    """Columns of the preconditioner: as the root of the rows, in an eighth of the memory that there is."""
    room = max(available_memory() // 8, 2**24) // (n * itemsize)
    return max(1, min(n, room, int(RANK * (n / 2500) ** 0.5)))
