r"""Problems of tied labels in units in which their weights are about 1.

Conjugate gradients for many systems side by side, each with step lengths of its own.

Systems lie along the first axis of all arrays. Those that have come far enough are left alone, and cost nothing more.

What is solved is ``H x = r`` with H symmetric in an inner product ``<x, y> = x' N y``: in the plain one (N = I), or
in that of a space of functions, where N is the Gram matrix. Beside every direction its image ``N x`` is carried
along, so that one product with N makes a step.

Labels that are tied to one another, where not all of them are known, or weighed alike.

With the Gram matrix G of n rows, B of T labels, weights W (n x T; 0 where a label of a row is not known), targets Z
and the ridge rho, the scores ``F = G A B`` solve

    W o (F - Z) + rho A = 0.

Where all rows have the same weights, ``W = 1 c'``, two eigendecompositions are all it takes: this is the Sylvester
equation of the multi-label LSPC paper, section 5, with ``c^1/2 B c^1/2`` in the place of B. Elsewhere that is the
preconditioner of conjugate gradients, with the labels' mean weights c.

They run in the space of the functions, not in that of the entries of A. There, in units in which c = 1, the
preconditioner makes the matrix

    E K'W K E + rho / (g b + rho),     E^2 = g b / (g b + rho),

K being orthonormal, g and b the eigenvalues of G and B: about the identity in all directions that the known entries
determine. In the entries of A one would apply the inverse for all of them to those that are known. To scores within
1e-5, with 800 rows, 30 or 60 % of the labels unknown and alpha = 1e-3 or 1e-4, that took 47 to 105 iterations on
Enron, where this takes 11 to 44, and 19 to 26 on rotated labels, where this takes 10 to 26.

Intercepts are not penalised: they take the labels' weighted means out of scores and targets. For equal weights that
changes the preconditioner by a direction for each mode.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.csgraph import connected_components

from leastwise.linalg.sylvester import SAME, Modes, modes, untied

Array = np.ndarray

#: The mean weight of a label counts as no less than this share of the largest.
LEAST = 1e-2
#: Mean weights of labels within this factor are taken for equal.
EVEN = 1.5
#: Weights that differ by no more than this many units of rounding are equal.
ROUNDING = 100


@dataclass(frozen=True)
class Scaled:
    """The same problem with the weights ``W / c``.

    With ``root = c^1/2`` the targets are ``Z root``, the label matrix is ``root B root``, the scores ``F root``.

    Attributes
    ----------
    ties : Modes
        Of ``root B root``.
    Z : ndarray of shape (c, n, T)
    W : ndarray of shape (n, T)
    share : ndarray of shape (n, T)
        ``W`` by the sums of its columns; 0 where a label is known nowhere.
    root : ndarray of shape (T,)
    flat : bool
        Whether ``W`` has one column, repeated.
    """

    ties: Modes
    Z: Array
    W: Array
    share: Array
    root: Array
    flat: bool

    def centred(self, V: Array) -> Array:
        """V without the labels' weighted means."""
        return V - self.means(V)

    def means(self, V: Array) -> Array:
        """The labels' weighted means, of shape (c, 1, T)."""
        return weighted_means(self.share, V)


def weighted_means(share: Array, V: Array) -> Array:
    """Sums over the rows of ``share o V``, of shape (c, 1, T); ``share`` may have one column for all."""
    return np.sum(share * V, axis=1, keepdims=True)


def scaled(ties: Modes, Z: Array, W: Array) -> Scaled:
    """Divide by the labels' mean weights c or, where these are about equal, by the mean of all."""
    c = W.mean(axis=0, dtype=float)
    c = np.maximum(c, LEAST * c.max()) if c.any() else np.ones_like(c)
    rounding, each = ROUNDING * float(np.finfo(W.dtype).eps), W / c
    flat = bool(np.allclose(each, each.mean(axis=1, keepdims=True), rtol=rounding, atol=0))
    if c.max() <= c.min() * (1 + rounding if flat else EVEN):
        c = np.full_like(c, c.mean())
        ties = replace(ties, values=ties.values * c[0])
    else:
        ties = _weighed(ties, c)
    total = W.sum(axis=0, dtype=float)
    share = (W / np.where(total > 0, total, 1)).astype(Z.dtype)
    root = np.sqrt(c).astype(Z.dtype)
    return Scaled(ties.astype(Z.dtype), Z * root, (W / c).astype(Z.dtype), share, root, flat)


def _weighed(ties: Modes, c: Array) -> Modes:
    """The modes of ``c^1/2 B c^1/2``."""
    if ties.V is None:
        return untied(ties.eigenvalues * c)
    B = ties.back(ties.eigenvalues * ties.rotate(np.eye(len(c))))
    parts = connected_components(B != 0, directed=False)[1] if issparse(ties.V) else None
    root = np.sqrt(c)
    return modes(root[:, None] * (B + B.T) / 2 * root, parts)


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


@dataclass(frozen=True)
class Iterated:
    """Coefficients of tied labels and how they came about.

    Attributes
    ----------
    Q : ndarray of shape (c, k, T)
        Coefficients of c classes.
    intercept : ndarray of shape (c, T)
        0 if not asked for, and for labels that are known nowhere.
    n_iter : int
    converged : bool
        Whether the residual of every class is as small as was asked for.
    residual : ndarray of shape (c,)
        Relative residuals in the norm of the preconditioner, computed anew from Q; inf where they are not numbers.
    n_products : int
        Columns that were multiplied by the Gram matrix, all in all.
    """

    Q: Array
    intercept: Array
    n_iter: int
    converged: bool
    residual: Array
    n_products: int


def solve_spectral(
    U: Array,
    s: Array,
    ties: Modes,
    Z: Array,
    W: Array,
    rho: float,
    *,
    bias: bool = False,
    tol: float = 1e-6,
    max_iter: int = 1000,
    start: Array | None = None,
) -> Iterated:
    """Solve in the singular vectors of a design ``Phi = U diag(s) V'``, or of a Gram matrix ``U diag(s^2) U'``.

    Weights that rows have for all of their labels are best put into the design, unless there are intercepts: with
    ``w^1/2 Phi`` decomposed, hand over ``w^1/2 Z`` and ``W / w``.

    Parameters
    ----------
    U : ndarray of shape (n, k)
        Orthonormal columns.
    s : ndarray of shape (k,)
    ties : Modes
        Of B.
    Z : ndarray of shape (c, n, T)
        Targets of c classes. Where W is 0 they do not matter, as long as they are finite. Their type is that of the
        solution.
    W : ndarray of shape (n, T)
        Weights, none below 0. Labels that are known nowhere are welcome.
    rho : float
        The ridge, above 0.
    bias : bool
        Whether there are intercepts.
    tol : float
        Relative residual, in the norm of the preconditioner, to stop at; of single precision 2e-6 at best.
    max_iter : int
        Iterations, at most.
    start : ndarray of shape (c, k, T), optional
        Coefficients to start from, for example those of a ridge nearby.

    Returns
    -------
    Iterated
        ``F = U diag(s) Q + intercept``.
    """
    p = scaled(ties, Z, W)
    b = p.ties.eigenvalues.astype(float)
    M = np.multiply.outer(s.astype(float) ** 2, b) + rho
    H = _Spectral(U, s[:, None], p, np.sqrt(b / M).astype(Z.dtype), (rho / M).astype(Z.dtype), bias)
    if start is not None:
        seen = b > SAME * b.max(initial=0)
        start = p.ties.rotate(start * p.root) * np.where(seen, np.sqrt(M / np.where(seen, b, 1)), 0)
    story = iterate(H, H.down(p.W * (p.centred(p.Z) if bias else p.Z)), tol, max_iter, start)
    a = p.means(p.Z - H.up(story.X)) if bias else np.zeros((len(Z), 1, len(p.root)), dtype=Z.dtype)
    Q = p.ties.back(H.E * story.X) / p.root
    return Iterated(Q, a[:, 0] / p.root, story.n_iter, story.converged, story.residual, H.columns)


class _Spectral:
    """The systems of the classes in coordinates in which they are about the identity; columns are counted."""

    def __init__(self, U: Array, s: Array, p: Scaled, E: Array, rest: Array, bias: bool) -> None:
        self.U, self.s, self.p, self.E, self.rest, self.bias, self.columns = U, s, p, E, rest, bias, 0
        if bias:
            # Means out, equal weights: I - h h' in every mode. The inverse is I + h h' / gap, gap = 1 - h'h.
            u = U.sum(axis=0)[:, None] / np.sqrt(U.dtype.type(len(U)))
            self.h = u * s * E
            self.gap = np.maximum(1 - np.sum(u * u), 0) + np.sum(u * u * rest, axis=0)

    def up(self, X: Array) -> Array:
        """Scores from coordinates."""
        return at_once(self.U.dot, self.s * self.p.ties.back(self.E * X))

    def down(self, V: Array) -> Array:
        """What rows and labels say to the coordinates."""
        return self.E * self.p.ties.rotate(self.s * at_once(self.U.T.dot, V))

    def image(self, X: Array, on: Array) -> Array:
        return X

    def times(self, X: Array, image: Array, on: Array) -> Array:
        self.columns += len(X) * len(self.p.root)
        F = self.up(X)
        return self.down(self.p.W * (self.p.centred(F) if self.bias else F)) + self.rest * X

    def precondition(self, R: Array, on: Array) -> Array:
        if not self.bias:
            return R
        return R + self.h * (np.sum(self.h * R, axis=1, keepdims=True) / self.gap)
