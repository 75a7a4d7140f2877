"""Stochastic gradient descent (SVRG) for a ridge problem whose design does not fit in memory.

The objective is that of the direct solvers,

    J(theta) = 1/2 mean_i w_i |z_i - Phi_i theta|^2 + alpha/2 theta' R theta,

evaluated on batches of rows. Steps are preconditioned by the Hessian of a subsample, and the variance of the batches
is reduced by the full gradient at the start of each pass (Johnson and Zhang 2013), so that a constant step size
converges to the minimum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from leastwise.linalg.decompositions import Cholesky, cholesky

Array = np.ndarray
Batch = Callable[[Array], tuple[Array, Array, Array]]


@dataclass(frozen=True)
class Descent:
    """A solution with diagnostics: convergence, number of passes, and relative size of the remaining step."""

    theta: Array
    converged: bool
    epochs: int
    change: float


def preconditioner(Phi: Array, w: Array, alpha: float, R: Array) -> tuple[Cholesky, float]:
    """Cholesky factor of the Hessian of the subsample, and its effective number of parameters."""
    S = (Phi.T * w) @ Phi / len(w)
    factor = cholesky(S + alpha * R, jitter=1e3 * np.finfo(S.dtype).eps * float(np.diagonal(S).mean()))
    return factor, float(np.trace(factor.solve(S)))


def descend(
    batch: Batch,
    n: int,
    R: Array,
    alpha: float,
    sample: Array,
    *,
    rng: np.random.Generator,
    batch_size: int = 256,
    max_epochs: int = 100,
    tol: float = 1e-3,
    report: Callable[[str], None] = lambda line: None,
) -> Descent:
    """Minimise J.

    Parameters
    ----------
    batch : callable
        ``batch(rows)`` returns the design, the targets and the weights (of overall mean 1) of these rows.
    n : int
        Number of rows.
    R : ndarray of shape (b, b)
        The penalty; zeros for coefficients without penalty.
    sample : ndarray of int
        Rows for the preconditioner.
    tol : float
        Stop when the preconditioned full gradient changes the scores of the subsample by less than this fraction of
        their norm.
    """
    Phi, Z, w = batch(sample)
    factor, dof = preconditioner(Phi, w, alpha, R)
    step = min(0.5, batch_size / (4 * max(dof, 1.0)))
    theta = np.zeros((Phi.shape[1], Z.shape[1]), dtype=Phi.dtype)
    change = np.inf
    for epoch in range(max_epochs + 1):
        full = factor.solve(_full_gradient(batch, n, batch_size, theta) + alpha * (R @ theta))
        change = _share(Phi @ full, Phi @ theta)
        report(f"sgd pass {epoch}: {change:.1e} relative change of the scores")
        if change < tol or epoch == max_epochs:
            break
        theta = _one_pass(batch, n, batch_size, theta, full, factor, alpha * R, step, rng)
    return Descent(theta, change < tol, epoch, change)


def _batches(order: Array, size: int) -> Iterator[Array]:
    return iter(np.array_split(order, max(1, round(len(order) / size))))


def _full_gradient(batch: Batch, n: int, size: int, theta: Array) -> Array:
    total = np.zeros_like(theta)
    for rows in _batches(np.arange(n), size):
        P, T, v = batch(rows)
        total += (P.T * v) @ (P @ theta - T)
    return total / n


def _one_pass(
    batch: Batch,
    n: int,
    size: int,
    origin: Array,
    full: Array,
    factor: Cholesky,
    penalty: Array,
    step: float,
    rng: np.random.Generator,
) -> Array:
    """One pass in random order; ``full`` is the preconditioned full gradient at ``origin``."""
    theta = origin.copy()
    for rows in _batches(rng.permutation(n), size):
        P, _, v = batch(rows)
        away = theta - origin
        theta -= step * (full + factor.solve((P.T * v) @ (P @ away) / len(rows) + penalty @ away))
    return theta


def _share(part: Array, whole: Array) -> float:
    size = float(np.linalg.norm(whole))
    return float(np.linalg.norm(part)) / size if size > 0 else np.inf
