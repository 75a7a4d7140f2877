"""Coupled labels with missing entries or unequal weights: preconditioned CG for Kronecker-structured systems.

With the Gram matrix G of n rows, B of T labels, weights W (n x T; 0 where a label is unknown), targets Z and the
ridge rho, the scores ``F = G A B`` solve

    W o (F - Z) + rho A = 0.

If all rows have the same weights, ``W = 1 c'``, two eigendecompositions suffice: this is the Sylvester equation of
the multi-label LSPC paper, section 5, with ``c^1/2 B c^1/2`` in place of B. Otherwise its inverse, with the mean
weights c of the labels, is the preconditioner of conjugate gradients.

``solve_spectral`` iterates in the space of the functions, not in that of the entries of A. There, in units in which
c = 1, the preconditioned matrix is

    E K'W K E + rho / (g b + rho),     E^2 = g b / (g b + rho),

with orthonormal K, and g and b the eigenvalues of G and B: close to the identity in all directions that the known
entries determine. In the entries of A, the inverse for all entries would be applied to the known ones. To scores
within 1e-5, with 800 rows, 30 or 60 % of the labels unknown and alpha = 1e-3 or 1e-4, that took 47 to 105 iterations
on Enron, where this takes 11 to 44, and 19 to 26 on rotated labels, where this takes 10 to 26.

Intercepts are not penalised: the weighted means of the labels are subtracted from scores and targets. For equal
weights this changes the preconditioner by one direction for each mode.

``solve_matrix_free`` needs products with the Gram matrix only. The coefficients A have an entry for every row and
label, with ``F = G A B`` and ``W o F + rho A = W o Z``. As a linear map of A this is symmetric in the inner product
of the functions, ``<A, A~> = tr(A' G A~ B)``, in which conjugate gradients run. The preconditioner stays in that
space. For sums of kernels at the pivots P of a partial Cholesky factor ``G ~ L L'`` it solves, mode by mode, as if
all labels of a row had the row's mean weight r. In the orthogonal complement it replaces G by t, a typical
eigenvalue of ``G - L L'``::

    A -> A / (b t + rho) - E_P J diag(e) N'A,     L' diag(r) L = Y diag(q) Y',
    N = L Y,     J = L_P^-T Y,     e = 1 / (b t + rho) - 1 / (b q + rho).

It is positive definite for every L. Where b is 0 it is 0 too: components of A there do not change the scores, and
nothing would keep them from growing. On 800 rows of Enron, 30 % of the labels unknown, alpha = 1e-4 and 200 pivots,
it took 54 iterations; with t = 0 it took 141.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import solve_triangular
from scipy.sparse import issparse
from scipy.sparse.csgraph import connected_components

from leastwise.linalg.batched_cg import at_once, iterate
from leastwise.linalg.sylvester import SAME, Modes, untied
from leastwise.linalg.sylvester import modes as make_modes

Array = np.ndarray

#: Lower bound of the mean weight of a label, as a fraction of the largest.
LEAST = 1e-2
#: Mean weights within this factor are treated as equal.
EVEN = 1.5
#: Weights within this many units of rounding are equal.
ROUNDING = 100


@dataclass(frozen=True)
class Scaled:
    """The problem in units in which the mean weights of the labels are 1: weights ``W / c``.

    With ``root = c^1/2`` the targets are ``Z root``, the label matrix is ``root B root``, the scores ``F root``.

    Attributes
    ----------
    modes : Modes
        Eigendecomposition of ``root B root``.
    Z : ndarray of shape (c, n, T)
    W : ndarray of shape (n, T)
    share : ndarray of shape (n, T)
        ``W`` divided by its column sums; 0 for a label without known entries.
    root : ndarray of shape (T,)
    flat : bool
        True if all columns of ``W`` are equal.
    """

    modes: Modes
    Z: Array
    W: Array
    share: Array
    root: Array
    flat: bool

    def centred(self, V: Array) -> Array:
        """V minus the weighted means of the labels."""
        return V - self.means(V)

    def means(self, V: Array) -> Array:
        """Weighted means of the labels, of shape (c, 1, T)."""
        return weighted_means(self.share, V)


def weighted_means(share: Array, V: Array) -> Array:
    """Sums over the rows of ``share o V``, of shape (c, 1, T); ``share`` may have one column for all."""
    return np.sum(share * V, axis=1, keepdims=True)


def scaled(modes: Modes, Z: Array, W: Array) -> Scaled:
    """Divide by the mean weights c of the labels or, if these are similar, by their mean."""
    c = W.mean(axis=0, dtype=float)
    c = np.maximum(c, LEAST * c.max()) if c.any() else np.ones_like(c)
    rounding, each = ROUNDING * float(np.finfo(W.dtype).eps), W / c
    flat = bool(np.allclose(each, each.mean(axis=1, keepdims=True), rtol=rounding, atol=0))
    if c.max() <= c.min() * (1 + rounding if flat else EVEN):
        c = np.full_like(c, c.mean())
        modes = replace(modes, values=modes.values * c[0])
    else:
        modes = _weighed(modes, c)
    total = W.sum(axis=0, dtype=float)
    share = (W / np.where(total > 0, total, 1)).astype(Z.dtype)
    root = np.sqrt(c).astype(Z.dtype)
    return Scaled(modes.astype(Z.dtype), Z * root, (W / c).astype(Z.dtype), share, root, flat)


def _weighed(modes: Modes, c: Array) -> Modes:
    """Eigendecomposition of ``c^1/2 B c^1/2``."""
    if modes.V is None:
        return untied(modes.eigenvalues * c)
    B = modes.back(modes.eigenvalues * modes.rotate(np.eye(len(c))))
    parts = connected_components(B != 0, directed=False)[1] if issparse(modes.V) else None
    root = np.sqrt(c)
    return make_modes(root[:, None] * (B + B.T) / 2 * root, parts)


@dataclass(frozen=True)
class KrylovSolution:
    """Coefficients of coupled labels, with diagnostics.

    Attributes
    ----------
    Q : ndarray of shape (c, k, T)
        Coefficients of c classes.
    intercept : ndarray of shape (c, T)
        0 without intercepts, and for labels without known entries.
    n_iter : int
    converged : bool
        True if the residual of every class is below the tolerance.
    residual : ndarray of shape (c,)
        Relative residuals in the norm of the preconditioner, recomputed from Q; inf where not finite.
    n_products : int
        Total number of columns multiplied by the Gram matrix.
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
    modes: Modes,
    Z: Array,
    W: Array,
    rho: float,
    *,
    bias: bool = False,
    tol: float = 1e-6,
    max_iter: int = 1000,
    start: Array | None = None,
) -> KrylovSolution:
    """Solve in the singular vectors of a design ``Phi = U diag(s) V'``, or of a Gram matrix ``U diag(s^2) U'``.

    Without intercepts, sample weights w common to all labels of a row are best moved into the design: decompose
    ``w^1/2 Phi``, and pass ``w^1/2 Z`` and ``W / w``.

    Parameters
    ----------
    U : ndarray of shape (n, k)
        Orthonormal columns.
    s : ndarray of shape (k,)
    modes : Modes
        Eigendecomposition of B.
    Z : ndarray of shape (c, n, T)
        Targets of c classes, finite also where W is 0. The solution has the same dtype.
    W : ndarray of shape (n, T)
        Non-negative weights. Labels without known entries are allowed.
    rho : float
        The ridge, positive.
    bias : bool
        True to fit intercepts.
    tol : float
        Relative residual, in the norm of the preconditioner, at which to stop; at least 2e-6 in single precision.
    max_iter : int
        Maximum number of iterations.
    start : ndarray of shape (c, k, T), optional
        Initial guess, for example the coefficients at a similar ridge.

    Returns
    -------
    KrylovSolution
        ``F = U diag(s) Q + intercept``.
    """
    p = scaled(modes, Z, W)
    b = p.modes.eigenvalues.astype(float)
    M = np.multiply.outer(s.astype(float) ** 2, b) + rho
    H = _Spectral(U, s[:, None], p, np.sqrt(b / M).astype(Z.dtype), (rho / M).astype(Z.dtype), bias)
    if start is not None:
        seen = b > SAME * b.max(initial=0)
        start = p.modes.rotate(start * p.root) * np.where(seen, np.sqrt(M / np.where(seen, b, 1)), 0)
    result = iterate(H, H.down(p.W * (p.centred(p.Z) if bias else p.Z)), tol, max_iter, start)
    a = p.means(p.Z - H.up(result.X)) if bias else np.zeros((len(Z), 1, len(p.root)), dtype=Z.dtype)
    Q = p.modes.back(H.E * result.X) / p.root
    return KrylovSolution(Q, a[:, 0] / p.root, result.n_iter, result.converged, result.residual, H.columns)


class _Spectral:
    """The systems of the classes in preconditioned coordinates; counts the columns multiplied."""

    def __init__(self, U: Array, s: Array, p: Scaled, E: Array, rest: Array, bias: bool) -> None:
        self.U, self.s, self.p, self.E, self.rest, self.bias, self.columns = U, s, p, E, rest, bias, 0
        if bias:
            # Centring with equal weights is I - h h' in every mode. Its inverse is I + h h' / gap, gap = 1 - h'h.
            u = U.sum(axis=0)[:, None] / np.sqrt(U.dtype.type(len(U)))
            self.h = u * s * E
            self.gap = np.maximum(1 - np.sum(u * u), 0) + np.sum(u * u * rest, axis=0)

    def up(self, X: Array) -> Array:
        """Scores from coordinates."""
        return at_once(self.U.dot, self.s * self.p.modes.back(self.E * X))

    def down(self, V: Array) -> Array:
        """Coordinates from entries of rows and labels: the transpose of ``up``."""
        return self.E * self.p.modes.rotate(self.s * at_once(self.U.T.dot, V))

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


#: Random directions for the estimate of the residual ``G - L L'``.
PROBES = 8


def solve_matrix_free(
    times: Callable[[Array], Array],
    factor: tuple[Array, Array],
    modes: Modes,
    Z: Array,
    W: Array,
    rho: float,
    *,
    bias: bool = False,
    tol: float = 1e-6,
    max_iter: int = 1000,
    start: Array | None = None,
) -> KrylovSolution:
    """Solve for coefficients of the rows by products with G.

    If ``W = w c'``, for example if all labels are known, the modes are independent: each mode of each class has its
    own step lengths and stops when it has converged.

    Parameters
    ----------
    times : callable
        ``times(V)`` is ``G V`` for V of shape (n, any number of columns).
    factor : tuple of ndarrays
        L with ``G ~ L L'`` and the pivots, both from ``pivoted_cholesky``.
    ties, Z, W, rho, bias, tol, max_iter
        As for ``solve_spectral``.
    start : ndarray of shape (c, n, T), optional
        Initial guess.

    Returns
    -------
    KrylovSolution
        ``F = G Q B + intercept``, with Q of shape (c, n, T). If G or B is singular, Q is not unique.
    """
    p, G = scaled(modes, Z, W), _Gram(times)
    right = p.W * (p.centred(p.Z) if bias else p.Z)
    first = None if start is None else start / p.root
    b, m = p.modes.eigenvalues, len(p.modes.which)
    if p.flat:
        H = _free(G, factor, p, np.tile(b, len(Z))[:, None, None], rho, bias)
        first = None if first is None else _apart(p.modes, first)
        result = iterate(H, _apart(p.modes, right), tol, max_iter, first, together=m)
        X = p.modes.back(result.X.reshape(len(Z), m, -1).transpose(0, 2, 1))
    else:
        H = _free(G, factor, p, b[None, None], rho, bias)
        result = iterate(H, right, tol, max_iter, first)
        X = result.X
    a = np.zeros((len(Z), 1, len(p.root)), dtype=Z.dtype)
    if bias:
        a = p.means(p.Z - p.modes.back(b * p.modes.rotate(G.times(X))))
    return KrylovSolution(X * p.root, a[:, 0] / p.root, result.n_iter, result.converged, result.residual, G.columns)


def _apart(modes: Modes, Z: Array) -> Array:
    """Rotated columns as separate systems, of shape (c m, n, 1)."""
    return np.ascontiguousarray(modes.rotate(Z).transpose(0, 2, 1)).reshape(-1, Z.shape[1], 1)


@dataclass
class _Gram:
    """G, with a count of the columns multiplied."""

    product: Callable[[Array], Array]
    columns: int = 0

    def times(self, X: Array) -> Array:
        """``G X`` of all systems in one product, so that G is evaluated once."""
        self.columns += X.shape[0] * X.shape[2]
        return at_once(self.product, X)


@dataclass(frozen=True)
class _Free:
    """Systems in the coefficients of the rows.

    ``b``, ``inverse`` and ``e``, which depend on the eigenvalues, have length 1 along the first axis, or one entry
    for each system. ``share`` is None without intercepts.
    """

    G: _Gram
    modes: Modes
    W: Array
    share: Array | None
    rho: float
    pivots: Array
    N: Array
    J: Array
    b: Array
    inverse: Array
    e: Array

    def image(self, X: Array, on: Array) -> Array:
        return self._along(self.b, self.G.times(X), on)

    def times(self, X: Array, image: Array, on: Array) -> Array:
        F = image if self.share is None else image - weighted_means(self.share, image)
        return self.W * F + self.rho * X

    def precondition(self, R: Array, on: Array) -> Array:
        Z = self._along(self.inverse, R, on)
        Z[:, self.pivots] -= self.J @ self._along(self.e, self.N.T @ R, on)
        return Z

    def _along(self, b: Array, V: Array, on: Array) -> Array:
        """Multiply every mode by its factor."""
        return self.modes.back((b if len(b) == 1 else b[on]) * self.modes.rotate(V))


def _free(G: _Gram, factor: tuple[Array, Array], p: Scaled, b: Array, rho: float, bias: bool) -> _Free:
    """Build the systems; the preconditioner uses the mean weight of each row for all of its labels."""
    L, pivots = factor
    row = p.W.mean(axis=1, keepdims=True)
    centred = L - weighted_means(row / max(float(row.sum()), np.finfo(float).tiny), L[None])[0] if bias else L
    q, Y = np.linalg.eigh(centred.T @ (row * centred))
    J = solve_triangular(L[pivots], Y, lower=True, trans="T", check_finite=False) if len(q) else Y
    seen = b > SAME * b.max(initial=0)
    inverse = seen / (b * _tail(G, L) + rho)
    e = inverse - seen / (b * np.maximum(q, 0)[:, None] + rho)
    dtype = p.W.dtype
    N, J, b, inverse, e = (np.asarray(A, dtype=dtype) for A in (L @ Y, J, b, inverse, e))
    modes, W, share = (untied(np.ones(1)).astype(dtype), row, p.share[:, :1]) if p.flat else (p.modes, p.W, p.share)
    return _Free(G, modes, W, share if bias else None, rho, pivots, N, J, b, inverse, e)


def _tail(G: _Gram, L: Array) -> float:
    """A typical eigenvalue of ``G - L L'``: the mean weighted by the eigenvalues."""
    V = np.random.default_rng(0).choice(np.array([-1, 1], dtype=L.dtype), size=(len(L), PROBES))
    EV = G.times(V[None])[0] - L @ (L.T @ V)
    trace = float(np.sum(V * EV))
    return float(np.sum(EV * EV)) / trace if trace > 0 else 0.0
