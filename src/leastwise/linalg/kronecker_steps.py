r"""Conjugate gradients for many systems side by side, each with step lengths of its own.

Systems lie along the first axis of all arrays. Those that have come far enough are left alone, and cost nothing more.

What is solved is ``H x = r`` with H symmetric in an inner product ``<x, y> = x' N y``: in the plain one (N = I), or
in that of a space of functions, where N is the Gram matrix. Beside every direction its image ``N x`` is carried
along, so that one product with N makes a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

Array = np.ndarray

#: Relative residuals below this many units of rounding cannot be asked for.
FLOOR = 20
#: Starts that may fail to halve the residual, one after the other.
PATIENCE = 2


class Systems(Protocol):
    """Systems that share a shape; ``on`` are the numbers of those that X holds."""

    def image(self, X: Array, on: Array) -> Array:
        """``N X``."""

    def times(self, X: Array, image: Array, on: Array) -> Array:
        """``H X``, given ``N X``."""

    def precondition(self, R: Array, on: Array) -> Array:
        """About ``H^-1 R``, by something symmetric and positive definite in the inner product."""


@dataclass(frozen=True)
class Steps:
    """Solutions, and how they came about.

    Attributes
    ----------
    X : ndarray of shape (systems, n, columns)
    n_iter : int
        Iterations of the system that took most.
    converged : bool
        Whether the residual of every system is as small as was asked for.
    residual : ndarray of shape (systems / together,)
        Relative residuals, computed anew from X, in the norm of the preconditioner; inf where they are not numbers.
    """

    X: Array
    n_iter: int
    converged: bool
    residual: Array


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # what is not finite ends the iterations, and is told
def iterate(
    systems: Systems, right: Array, tol: float, max_iter: int, start: Array | None = None, together: int = 1
) -> Steps:
    """Solve ``H x = right`` for each of the systems.

    Parameters
    ----------
    right : ndarray of shape (c, n, columns)
        Its type is that of the solution.
    tol : float
        Stop when ``|right - H x| <= tol |right|``, in the norm of the preconditioner, for every system. Single
        precision cannot give less than about 2e-6, nor double less than 4e-15: these take the place of a smaller one.
    max_iter : int
        Iterations, at most.
    start : ndarray of shape (c, n, columns), optional
        Where to start from; at zero otherwise.
    together : int
        So many systems, one after the other, are parts of one: residuals are relative to the size of the whole.
    """
    everything, tol = np.arange(len(right)), max(tol, FLOOR * float(np.finfo(right.dtype).eps))
    Z, V = _towards(systems, right)
    size = np.repeat(_joint(_norm(_dot(right, V)), together), together)
    X, R = np.zeros_like(right), right
    if start is not None:
        X = np.where(_wide(size == 0), 0, start).astype(right.dtype)
        R = right - systems.times(X, systems.image(X, everything), everything)
        Z, V = _towards(systems, R)
    n_iter, best, vain = 0, np.inf, 0
    while True:
        residual = _share(_norm(_dot(R, V)), size)
        worst = float(residual.max(initial=0))
        best, vain = min(best, worst), 0 if worst < best / 2 else vain + 1
        if worst <= tol or n_iter >= max_iter or vain > PATIENCE or np.isinf(worst):
            return Steps(X, n_iter, worst <= tol, _joint(residual, together))
        n_iter += _descend(systems, X, R, Z, V, tol * size, np.flatnonzero(residual > tol), max_iter - n_iter)
        R = right - systems.times(X, systems.image(X, everything), everything)
        Z, V = _towards(systems, R)


def at_once(product: Callable[[Array], Array], X: Array) -> Array:
    """The product of a matrix with every system, as one product."""
    c, n, m = X.shape
    V = np.asarray(product(X.transpose(1, 0, 2).reshape(n, c * m)), dtype=X.dtype)
    return np.ascontiguousarray(V.reshape(-1, c, m).transpose(1, 0, 2))


def _towards(systems: Systems, R: Array) -> tuple[Array, Array]:
    """The preconditioned residuals of all systems, and their images."""
    everything = np.arange(len(R))
    Z = systems.precondition(R, everything)
    return Z, systems.image(Z, everything)


def _descend(systems: Systems, X: Array, R: Array, Z: Array, V: Array, goal: Array, on: Array, max_iter: int) -> int:
    """Step until the goals are met, as the steps have it, or none leads down; changes X; the number of iterations."""
    x, r, p, v, goal = X[on], R[on], Z[on], V[on], goal[on]
    height = _dot(r, v)
    for n_iter in range(1, max_iter + 1):
        h = systems.times(p, v, on)
        length = _wide(height / _dot(v, h))
        fine = np.isfinite(length.ravel()) & (length.ravel() > 0)  # else: the end of the digits
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
    """Inner products of the systems' entries."""
    g = len(A)
    return np.asarray(A.reshape(g, 1, -1) @ B.reshape(g, -1, 1)).reshape(g)


def _norm(square: Array) -> Array:
    """Roots. A square below zero is rounding where it is small, and where it is not must not pass for small."""
    return np.sqrt(np.abs(square))


def _joint(size: Array, together: int) -> Array:
    """Root mean squares of the parts."""
    return np.sqrt(np.mean(size.reshape(-1, together) ** 2, axis=1))


def _share(left: Array, size: Array) -> Array:
    """Relative sizes; 0 where there is nothing to solve, inf where they are not numbers."""
    share = np.where(size == 0, 0, left / np.where(size == 0, 1, size))
    return np.where(np.isfinite(share), share, np.inf)


def _wide(a: Array) -> Array:
    """A number for every system, of a shape that fits the systems."""
    return a.reshape(-1, 1, 1)
