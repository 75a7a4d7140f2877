"""Stochastic gradient descent for a ridge problem whose design is too large to hold.

The objective is that of the direct solvers,

    J(theta) = 1/2 mean_i w_i |z_i - Phi_i theta|^2 + alpha/2 theta' R theta,

seen a batch of rows at a time. Steps are preconditioned with the Hessian of a sample of the rows, which makes
all directions about equally fast; the step is constant, and the answer is the average of the iterates since the
middle of the run, which converges to the minimum for least squares.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leastwise.linalg.cholesky import Cholesky, cholesky

Array = np.ndarray
Batch = Callable[[Array], tuple[Array, Array, Array]]


@dataclass(frozen=True)
class Descent:
    """A solution with its story: whether it settled, after how many passes, and how much it still moved."""

    theta: Array
    converged: bool
    epochs: int
    change: float


def preconditioner(Phi: Array, w: Array, alpha: float, R: Array) -> tuple[Cholesky, float]:
    """Factor of the Hessian on sample rows, and the effective number of parameters there."""
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
        ``batch(rows)`` gives the design, the targets and the weights (mean 1 over all) of these rows.
    n : int
        Number of rows.
    R : ndarray of shape (b, b)
        The penalty; zeros where a coefficient is free.
    sample : ndarray of int
        Rows for the preconditioner.
    tol : float
        Stop when, over a pass, the averaged solution moves the scores of the sample by less than this share of
        their size.
    """
    Phi, Z, w = batch(sample)
    factor, dof = preconditioner(Phi, w, alpha, R)
    step = min(0.5, batch_size / (4 * max(dof, 1.0)))
    theta = np.zeros((Phi.shape[1], Z.shape[1]), dtype=Phi.dtype)
    mean, count, before, change = theta.copy(), 0, None, np.inf
    for epoch in range(1, max_epochs + 1):
        if epoch & (epoch - 1) == 0:  # at epochs 1, 2, 4, ... the average starts anew: it spans the last half
            mean, count = np.zeros_like(theta), 0
        for rows in np.array_split(rng.permutation(n), max(1, round(n / batch_size))):
            P, T, v = batch(rows)
            gradient = (P.T * v) @ (P @ theta - T) / len(rows) + alpha * (R @ theta)
            theta -= step * factor.solve(gradient)
            count += 1
            mean += (theta - mean) / count
        scores = Phi @ mean
        if before is not None:
            change = float(np.linalg.norm(scores - before) / (np.linalg.norm(scores) + np.finfo(float).tiny))
        report(f"sgd pass {epoch}: scores moved by {change:.1e} of their size")
        before = scores
        if change < tol:
            return Descent(mean, True, epoch, change)
    return Descent(mean, False, max_epochs, change)
