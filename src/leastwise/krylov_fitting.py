"""Models solved by conjugate gradients, without the kernel matrix of all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leastwise.centring import Centring, shrunk_means
from leastwise.coupling import Tie
from leastwise.linalg.krylov import Krylov, Times, block_cg, three_steps
from leastwise.linalg.pivoted import pivoted_cholesky, ridge_inverse
from leastwise.matrix_free import KernelTimes
from leastwise.memory import available_memory
from leastwise.selection.trial import Rows, Settings

Array = np.ndarray

#: Bytes of kernel values that are held, at most.
BUDGET = 2**30
#: Columns of the kernel that make the preconditioner, at most.
RANK = 500


@dataclass(frozen=True)
class Effort:
    """When to stop, where the numbers come from, and who is told."""

    tol: float
    max_iter: int
    rng: np.random.Generator
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


def solve_by_krylov(
    rows: Rows, settings: Settings, sigma: float, alpha: float, bonds: Bonds | None, effort: Effort, start: Any = None
) -> Iterated:
    """``A = W (W G W + rho)^-1 W (Z - v b)`` by preconditioned block conjugate gradients.

    The border of the shared intercept is solved in the three steps of section 3.4 of Xu et al. Intercepts of the
    tasks' own are centring, so that no column is needed for each of them.

    Parameters
    ----------
    start : ndarray, optional
        ``story.X`` of a like problem, to start from.
    """
    # Vectors are in double precision whatever the rows: only kernel values are many.
    root = np.sqrt(rows.w.astype(float))
    Z = rows.targets(settings.n_outputs) * root[:, None]
    rho = alpha * len(rows)
    tied: dict[str, Any] = {} if bonds is None else {"tie": bonds.tie, "task": bonds.task}
    H = KernelTimes(settings.kernel, sigma, rows.X, root, rho=rho, budget=kernel_budget(), **tied)
    spread = 0.0 if bonds is None else bonds.spread * rows.mass
    centring = None if bonds is None or not spread else Centring.of(bonds.task, root, spread, len(bonds.tie.own))
    solve = _solver(H, rho, centring, effort, start)
    bias = settings.bias and np.isfinite(spread)
    V = root[:, None] if centring is None else centring.rows(root[:, None])
    right = Z if centring is None else centring.rows(Z)
    if bias:
        A, b, story = three_steps(solve, V, right)
    else:
        story = solve(right)
        A, b = story.X, np.zeros((1, Z.shape[1]), dtype=Z.dtype)
    own = None
    if centring is not None:
        assert bonds is not None
        A = centring.rows(A)
        left = Z - (H.times(A) - rho * A) - root[:, None] * b
        own = shrunk_means(left, root, bonds.task, spread, len(bonds.tie.own)).astype(rows.X.dtype)
    dtype = rows.X.dtype
    return Iterated((root[:, None] * A).astype(dtype), b[0].astype(dtype), own, story)


def _solver(
    H: KernelTimes, rho: float, centring: Centring | None, effort: Effort, start: Array | None
) -> Callable[[Array], Krylov]:
    """Solves ``(W G W + rho) X = B`` for as many columns as are wanted, from ``start``."""
    L, _ = pivoted_cholesky(H.diagonal(), H.columns, min(RANK, H.n), effort.rng, 0.0)
    L = L.astype(float)
    L = L if centring is None else centring.rows(L)
    times: Times = H.times if centring is None else _centred_times(H, rho, centring)
    options = {"tol": effort.tol, "max_iter": effort.max_iter, "report": effort.report}

    return lambda B: block_cg(times, B, ridge_inverse(L, rho), start=start, **options)  # type: ignore[arg-type]


def _centred_times(H: KernelTimes, rho: float, centring: Centring) -> Times:
    """``V -> (W G W + rho) V``."""

    def times(V: Array) -> Array:
        W = centring.rows(V)
        return centring.rows(H.times(W) - rho * W) + rho * V

    return times


def kernel_budget() -> int:
    """Bytes of kernel values to hold: a part of what there is, so that blocks are computed once where they fit."""
    return int(np.clip(available_memory() // 4, 2**24, BUDGET))
