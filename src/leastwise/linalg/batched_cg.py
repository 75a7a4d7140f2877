"""Preconditioned conjugate gradients for many systems at once, each with its own step lengths.

The systems are along the first axis of all arrays. Systems that have converged are removed from the iteration.

The method solves ``H x = r`` with H symmetric in an inner product ``<x, y> = x' N y``: the Euclidean one (N = I), or
that of a space of functions, where N is the Gram matrix. With every direction x its image ``N x`` is stored, so that
one product with N is needed in an iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

Array = np.ndarray

#: Smallest relative residual that can be requested, in units of rounding.
FLOOR = 20
#: Consecutive restarts that may fail to halve the residual.
PATIENCE = 2


class Systems(Protocol):
    """Systems of the same shape; ``on`` are the indices of the systems that X contains."""

    def image(self, X: Array, on: Array) -> Array:
        """``N X``."""

    def times(self, X: Array, image: Array, on: Array) -> Array:
        """``H X``, given ``N X``."""

    def precondition(self, R: Array, on: Array) -> Array:
        """Approximate ``H^-1 R`` by a matrix that is symmetric and positive definite in the inner product."""


@dataclass(frozen=True)
class Steps:
    """Solutions with diagnostics.

    Attributes
    ----------
    X : ndarray of shape (systems, n, columns)
    n_iter : int
        Largest number of iterations of all systems.
    converged : bool
        True if the residual of every system is below the tolerance.
    residual : ndarray of shape (systems / together,)
        Relative residuals, recomputed from X, in the norm of the preconditioner; inf where not finite.
    """

    X: Array
    n_iter: int
    converged: bool
    residual: Array


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # non-finite values end the iteration and are reported
def iterate(
    systems: Systems, right: Array, tol: float, max_iter: int, start: Array | None = None, together: int = 1
) -> Steps:
    """Solve ``H x = right`` for each of the systems.

    Parameters
    ----------
    right : ndarray of shape (c, n, columns)
        The solution has the same dtype.
    tol : float
        Stop when ``|right - H x| <= tol |right|``, in the norm of the preconditioner, for every system. Limited
        to about 2e-6 in single and 4e-15 in double precision.
    max_iter : int
        Maximum number of iterations.
    start : ndarray of shape (c, n, columns), optional
        Initial guess; zero by default.
    together : int
        This many consecutive systems are parts of one: residuals are relative to the size of the whole.
    """
    everything, tol = np.arange(len(right)), max(tol, FLOOR * float(np.finfo(right.dtype).eps))
    Z, V = _preconditioned(systems, right)
    size = np.repeat(_joint(_norm(_dot(right, V)), together), together)
    X, R = np.zeros_like(right), right
    if start is not None:
        X = np.where(_wide(size == 0), 0, start).astype(right.dtype)
        R = right - systems.times(X, systems.image(X, everything), everything)
        Z, V = _preconditioned(systems, R)
    n_iter, best, vain = 0, np.inf, 0
    while True:
        residual = _share(_norm(_dot(R, V)), size)
        worst = float(residual.max(initial=0))
        best, vain = min(best, worst), 0 if worst < best / 2 else vain + 1
        if worst <= tol or n_iter >= max_iter or vain > PATIENCE or np.isinf(worst):
            return Steps(X, n_iter, worst <= tol, _joint(residual, together))
        n_iter += _descend(systems, X, R, Z, V, tol * size, np.flatnonzero(residual > tol), max_iter - n_iter)
        R = right - systems.times(X, systems.image(X, everything), everything)
        Z, V = _preconditioned(systems, R)


def at_once(product: Callable[[Array], Array], X: Array) -> Array:
    """Multiply all systems by a matrix in one product."""
    c, n, m = X.shape
    V = np.asarray(product(X.transpose(1, 0, 2).reshape(n, c * m)), dtype=X.dtype)
    return np.ascontiguousarray(V.reshape(-1, c, m).transpose(1, 0, 2))


def _preconditioned(systems: Systems, R: Array) -> tuple[Array, Array]:
    """Preconditioned residuals of all systems, and their images."""
    everything = np.arange(len(R))
    Z = systems.precondition(R, everything)
    return Z, systems.image(Z, everything)


def _descend(systems: Systems, X: Array, R: Array, Z: Array, V: Array, goal: Array, on: Array, max_iter: int) -> int:
    """Iterate until the recursive residuals reach the goals or no step descends; update X; return iterations."""
    x, r, p, v, goal = X[on], R[on], Z[on], V[on], goal[on]
    height = _dot(r, v)
    for n_iter in range(1, max_iter + 1):
        h = systems.times(p, v, on)
        length = _wide(height / _dot(v, h))
        fine = np.isfinite(length.ravel()) & (length.ravel() > 0)  # otherwise the rounding level is reached
        length = np.where(_wide(fine), length, 0).astype(x.dtype)
        x, r = x + length * p, r - length * h
        z = systems.precondition(r, on)
        image = systems.image(z, on)
        new = _dot(r, image)
        turn = _wide(new / height).astype(x.dtype)
        p, v, height = z + turn * p, image + turn * v, new
        further = fine & (_norm(new) > goal)
        if not further.all():
            X[on[~further]] = x[~further]
            on, x, r, p, v, height, goal = (a[further] for a in (on, x, r, p, v, height, goal))
        if not len(on):
            return n_iter
    X[on] = x
    return max_iter


def _dot(A: Array, B: Array) -> Array:
    """Inner products, one for each system."""
    g = len(A)
    return np.asarray(A.reshape(g, 1, -1) @ B.reshape(g, -1, 1)).reshape(g)


def _norm(square: Array) -> Array:
    """Square roots of absolute values: a negative square is rounding if small, and must not count as small if not."""
    return np.sqrt(np.abs(square))


def _joint(size: Array, together: int) -> Array:
    """Root mean squares of the parts."""
    return np.sqrt(np.mean(size.reshape(-1, together) ** 2, axis=1))


def _share(left: Array, size: Array) -> Array:
    """Relative sizes; 0 where the right-hand side is 0, inf where not finite."""
    share = np.where(size == 0, 0, left / np.where(size == 0, 1, size))
    return np.where(np.isfinite(share), share, np.inf)


def _wide(a: Array) -> Array:
    """Reshape one number for each system to broadcast over the systems."""
    return a.reshape(-1, 1, 1)
