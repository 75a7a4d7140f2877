r"""Block conjugate gradients for many right-hand sides, and the bordered systems of LS-SVMs.

``block_cg`` solves ``H X = B`` by products with H. All right-hand sides share one Krylov space: a product with k
columns adds k directions, which all columns use. Two measures avoid breakdown if columns are or become linearly
dependent (Dubrulle 2001, Ji and Li 2017):

* the residuals are ``R = Q C`` with orthonormal Q, even if they are small or dependent;
* the directions P are orthonormalised in H, and dependent ones are dropped.

Every step is optimal within the span of P, for any preconditioner. At the end the residual is recomputed from X; if
it differs from the recursive one, the iteration restarts from there. If it is computed from exact products, those of
the iterations may be approximate, such as products with a kernel in single precision: this is iterative refinement,
and the solution has the requested residual in double precision. Where approximate products are accurate enough for
the residual, exact ones are not needed.

LS-SVMs have a border of intercepts,

    [0  A'] [  b  ]   [0]
    [A  H ] [alpha] = [Z],

eqs. (5), (11), (18) and (24) of the multi-task LS-SVM paper: ``three_steps`` eliminates it as in section 3.4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from leastwise.linalg.decompositions import Cholesky, cholesky

Array = np.ndarray
Times = Callable[[Array], Array]

#: Smallest relative residual that can be requested, in units of rounding.
FLOOR = 20
#: Restart if this fraction of a step is along the directions of two steps ago.
STALE = 0.2
#: Consecutive restarts that may fail to halve the residual.
PATIENCE = 3


@dataclass(frozen=True)
class Krylov:
    """A solution of ``H X = B`` with diagnostics.

    Attributes
    ----------
    X : ndarray of shape (n, k)
    n_iter : int
    converged : bool
        True if the residual of every column is below the tolerance.
    residual : ndarray of shape (k,)
        ``|B - H X| / |B|`` of every column, recomputed from X; inf where not finite.
    n_products : int
        Total number of columns multiplied by H.
    """

    X: Array
    n_iter: int
    converged: bool
    residual: Array
    n_products: int


@dataclass
class _Counted:
    """Products with H, and a count of the columns."""

    times: Times
    columns: int = 0

    def __call__(self, V: Array) -> Array:
        self.columns += V.shape[1]
        return np.asarray(self.times(V), dtype=V.dtype)


@np.errstate(over="ignore", invalid="ignore")  # non-finite values end the iteration and are reported
def block_cg(
    times: Times,
    B: Array,
    precondition: Times | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    start: Array | None = None,
    report: Callable[[str], None] | None = None,
    exact: Times | None = None,
    accurate: Callable[[Array], bool] | None = None,
) -> Krylov:
    """Solve ``H X = B``, H symmetric and positive definite.

    Parameters
    ----------
    times : callable
        ``times(V)`` is ``H V`` for V of shape (n, any number of columns).
    B : ndarray of shape (n, k)
        Zero, equal and dependent columns are allowed and cost nothing. The solution has the same dtype.
    precondition : callable, optional
        ``precondition(V)`` approximates ``H^-1 V`` by a symmetric positive definite matrix.
    tol : float
        Stop when ``|B - H X| <= tol |B|`` in every column. Limited to about 2e-6 in single and 4e-15 in double
        precision. If H is ill-conditioned even that may be out of reach; then ``converged`` is False.
    start : ndarray of shape (n, k), optional
        Initial guess; zero by default.
    report : callable, optional
        Called with one line of progress for every iteration.
    exact : callable, optional
        ``H V`` in full precision, if ``times`` is approximate. It computes the residual after the iterations, and
        replaces ``times`` if these stagnate.
    accurate : callable, optional
        ``accurate(X)`` is True if ``times`` is accurate enough for the residual of X. By default it never is.
    """
    H, size = _Counted(times), np.linalg.norm(B, axis=0)
    true, M = H if exact is None else _Counted(exact), precondition or (lambda V: V)
    goal = max(tol, FLOOR * float(np.finfo(B.dtype).eps)) * size
    X = np.zeros_like(B) if start is None else np.where(size > 0, start, 0).astype(B.dtype)
    R = B if start is None else B - H(X)  # the residual is recomputed from exact products at the end
    aim = goal if exact is None else goal / 2  # approximate products underestimate the residual
    n_iter, best, vain = 0, np.inf, 0
    while True:
        left = np.linalg.norm(R, axis=0)
        share = _share(left, size)
        converged, residual = bool(np.all(left <= goal)), np.where(np.isfinite(share), share, np.inf)
        worst = float(residual.max(initial=0))
        best, vain = min(best, worst), 0 if worst < best / 2 else vain + 1
        if converged or n_iter >= max_iter or vain > PATIENCE or np.isinf(worst):
            return Krylov(X, n_iter, converged, residual, H.columns + (0 if true is H else true.columns))
        D, steps = _descend(true if vain else H, R, size, aim, M, max_iter - n_iter, report)
        X, n_iter = X + D, n_iter + steps
        R = B - (H if accurate is not None and accurate(X) else true)(X)


def _share(left: Array, size: Array) -> Array:
    """Columns, or their norms, divided by the norms of the right-hand sides; 0 where these are 0."""
    return np.divide(left, size, out=np.zeros_like(left), where=size != 0)


def _descend(
    H: Times,
    R: Array,
    size: Array,
    goal: Array,
    precondition: Times,
    max_iter: int,
    report: Callable[[str], None] | None,
) -> tuple[Array, int]:
    """Solve ``H D = R`` to the goal, or until a restart is due; return D and the number of iterations.

    With orthonormal Q, ``R - H D = Q C`` throughout. P are the latest directions, with ``P' H P = I``::

        P <- Z - P (H P)' Z, Z = M^-1 Q, orthonormalised in H
        D <- D + P (P' Q) C
        Q <- Q - H P (P' Q), orthonormalised; C absorbs the triangular factor

    Directions are conjugate to all previous ones up to rounding. When conjugacy is lost, conjugate gradients become
    as slow as steepest descent, and a restart is better.
    """
    Q, C = _independent(R, size)
    D = np.zeros_like(R)
    P = HP = last = R[:, :0]
    for n_iter in range(max_iter):
        left = np.linalg.norm(C, axis=0)
        if report is not None:
            report(f"krylov {n_iter}: {_share(left, size).max(initial=0):.1e} relative residual")
        if np.all(left <= goal):
            return D, n_iter
        Z = precondition(Q)
        Z, older, last = Z - P @ (HP.T @ Z), last, HP
        P, HP = _conjugate(Z, H(Z))
        if not P.shape[1]:  # no descent direction: rounding level, or H is not positive definite
            return D, n_iter
        step = P.T @ Q
        move = _share(step @ C, size)
        stale = np.linalg.norm(older.T @ P @ move) > STALE * np.linalg.norm(move)
        D = D + P @ (step @ C)
        if stale:
            return D, n_iter + 1
        Q, rest = np.linalg.qr(Q - HP @ step)
        C = rest @ C
    return D, max_iter


def _independent(R: Array, size: Array) -> tuple[Array, Array]:
    """``R = Q C`` with orthonormal Q, with as few columns as the numerical rank of R relative to ``size``."""
    scale = np.where(size > 0, size, 1)
    Q, C, order = qr(R / scale, mode="economic", pivoting=True, check_finite=False)
    heights = np.abs(np.diagonal(C))
    rank = int(np.sum(heights > len(R) ** 0.5 * np.finfo(R.dtype).eps * heights[:1]))
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return np.ascontiguousarray(Q[:, :rank]), C[:rank, back] * scale


def _conjugate(Z: Array, HZ: Array) -> tuple[Array, Array]:
    """P and H P with ``P' H P = I`` and the span of Z, without dependent directions; empty if H Z is not finite.

    Computed from the eigenvalues of ``Z' H Z`` after scaling its diagonal to 1.
    """
    G = Z.T @ HZ
    if not np.isfinite(G).all():
        return Z[:, :0], HZ[:, :0]
    height = np.diagonal(G)
    unit = np.where(height > 0, 1 / np.sqrt(np.where(height > 0, height, 1)), 0)
    e, V = np.linalg.eigh((G + G.T) / 2 * np.outer(unit, unit))
    keep = e > 10 * len(e) * np.finfo(e.dtype).eps
    T = unit[:, None] * V[:, keep] / np.sqrt(e[keep])
    return Z @ T, HZ @ T


# --------------------------------------------------- bordered systems: intercepts


def three_steps(solve: Callable[[Array], Krylov], A: Array, Z: Array) -> tuple[Array, Array, Krylov]:
    """Solve the bordered system in the three steps of section 3.4.

    1. ``H eta = A`` and ``H nu = Z``, all columns in one block;
    2. ``S = A' eta``, positive definite;
    3. ``b = S^-1 eta' Z`` and ``alpha = nu - eta b``.

    Each of the m columns of A is another right-hand side. With an intercept for each of many tasks it is cheaper to
    centre rows and targets within the tasks (``leastwise.problem.coupling``), which needs no such columns.

    Parameters
    ----------
    solve : callable
        ``solve(B)`` solves ``H X = B``, for example by ``block_cg``.
    A : ndarray of shape (n, m)
        The border: indicators of m tasks, or a column of ones; times the labels in the classification form.
        A column of zeros, a task without rows, has the intercept 0.
    Z : ndarray of shape (n, c)
        Right-hand sides: the targets, or ones in the classification form.

    Returns
    -------
    alpha : ndarray of shape (n, c)
    b : ndarray of shape (m, c)
    result : Krylov
        Of the block [A, Z].
    """
    m = A.shape[1]
    result = solve(np.hstack([A, Z]))
    eta, nu = result.X[:, :m], result.X[:, m:]
    b = _factor(A.T @ eta).solve((eta.T @ Z).astype(float)).astype(Z.dtype)
    return nu - eta @ b, b, result


def _factor(S: Array) -> Cholesky:
    """Factor a small matrix, symmetric up to rounding, in double precision."""
    S = S.astype(float)
    return cholesky((S + S.T) / 2)
