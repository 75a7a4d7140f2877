r"""Conjugate gradients for many right-hand sides at once, and the bordered systems of LS-SVMs.

``block_cg`` solves ``H X = B`` with H known by its products only. All right-hand sides share one Krylov space: a
product with k columns makes k directions, each of which serves every column. Two things keep it from breaking down
where columns are dependent, or become so (Dubrulle 2001, Ji and Li 2017):

* the residuals are ``R = Q C`` with orthonormal Q, however small or dependent they are;
* the directions P are made orthonormal in H, and those that add nothing are dropped.

So every step is the best one within the span of P, for any preconditioner. In the end the residual is computed anew
from X. Where it is not what the iterations made believe, they start again from there. If it is computed from exact
products, those of the iterations may be rough, such as those with a kernel in single precision: that is iterative
refinement, and what comes out has the residual that was asked for in double precision.

LS-SVMs have a border of intercepts,

    [0  A'] [  b  ]   [0]
    [A  H ] [alpha] = [Z],

eqs. (5), (11), (18) and (24) of the multi-task LS-SVM paper: ``three_steps`` eliminates it as section 3.4 says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr

from leastwise.linalg.cholesky import Cholesky, cholesky

Array = np.ndarray
Times = Callable[[Array], Array]

#: Relative residuals below this many units of rounding cannot be asked for.
FLOOR = 20
#: Start again where this share of a step goes in directions that were done with two steps ago.
STALE = 0.2
#: Starts that may fail to halve the residual, one after the other.
PATIENCE = 3


@dataclass(frozen=True)
class Krylov:
    """A solution of ``H X = B`` and how it came about.

    Attributes
    ----------
    X : ndarray of shape (n, k)
    n_iter : int
    converged : bool
        Whether the residual of every column is as small as was asked for.
    residual : ndarray of shape (k,)
        ``|B - H X| / |B|`` of every column, computed anew from X; inf where it is not a number.
    n_products : int
        Columns that were multiplied by H, all in all.
    """

    X: Array
    n_iter: int
    converged: bool
    residual: Array
    n_products: int


@dataclass
class _Counted:
    """Products with H that are counted."""

    times: Times
    columns: int = 0

    def __call__(self, V: Array) -> Array:
        self.columns += V.shape[1]
        return np.asarray(self.times(V), dtype=V.dtype)


@np.errstate(over="ignore", invalid="ignore")  # what is not finite ends the iterations, and is told
def block_cg(
    times: Times,
    B: Array,
    precondition: Times | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
    start: Array | None = None,
    report: Callable[[str], None] | None = None,
    exact: Times | None = None,
) -> Krylov:
    """Solve ``H X = B``, H symmetric and positive definite.

    Parameters
    ----------
    times : callable
        ``times(V)`` is ``H V`` for V of shape (n, any number of columns).
    B : ndarray of shape (n, k)
        Zero, equal and dependent columns are welcome, and cost nothing. Its type is that of the solution.
    precondition : callable, optional
        ``precondition(V)`` is about ``H^-1 V``, by a matrix that is symmetric and positive definite.
    tol : float
        Stop when ``|B - H X| <= tol |B|`` in every column. Single precision cannot give less than about 2e-6, nor
        double less than 4e-15: these take the place of a smaller ``tol``. Where H is ill-conditioned even that may
        be out of reach, in single precision soon; then ``converged`` is False.
    start : ndarray of shape (n, k), optional
        Where to start from; at zero otherwise.
    report : callable, optional
        Is told how far it is, a line for every iteration.
    exact : callable, optional
        ``H V`` to all digits, where ``times`` has fewer. It makes the residual after the iterations, and takes over
        where these get no further without.
    """
    H, size = _Counted(times), np.linalg.norm(B, axis=0)
    true, M = H if exact is None else _Counted(exact), precondition or (lambda V: V)
    goal = max(tol, FLOOR * float(np.finfo(B.dtype).eps)) * size
    X = np.zeros_like(B) if start is None else np.where(size > 0, start, 0).astype(B.dtype)
    R = B if start is None else B - true(X)
    aim = goal if exact is None else goal / 2  # rough products make believe that there is less left than there is
    n_iter, best, vain = 0, np.inf, 0
    while True:
        converged, residual = _verdict(R, size, goal)
        worst = float(residual.max(initial=0))
        best, vain = min(best, worst), 0 if worst < best / 2 else vain + 1
        if converged or n_iter >= max_iter or vain > PATIENCE or np.isinf(worst):
            return Krylov(X, n_iter, converged, residual, H.columns + (0 if true is H else true.columns))
        D, steps = _descend(true if vain else H, R, size, aim, M, max_iter - n_iter, report)
        X, n_iter = X + D, n_iter + steps
        R = B - true(X)


def _verdict(R: Array, size: Array, goal: Array) -> tuple[bool, Array]:
    """Whether all residuals are small enough, and their relative sizes."""
    left = np.linalg.norm(R, axis=0)
    share = _share(left, size)
    return bool(np.all(left <= goal)), np.where(np.isfinite(share), share, np.inf)


def _share(left: Array, size: Array) -> Array:
    """Columns, or their norms, by the sizes of the right-hand sides; 0 where these are 0."""
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
    """D with ``H D = R`` to the goal, or as near as it gets without a new start, and the number of iterations.

    With orthonormal Q, ``R - H D = Q C`` throughout. P are the latest directions, with ``P' H P = I``::

        P <- Z - P (H P)' Z, Z = M^-1 Q, made orthonormal in H
        D <- D + P (P' Q) C
        Q <- Q - H P (P' Q), made orthonormal; C takes up the rest

    Directions are conjugate to all before, but for rounding. Where they no longer are, conjugate gradients become as
    slow as steepest descent, and a new start is better.
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
        if not P.shape[1]:  # no way further down: the end of the digits, or H is not what it has to be
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
    """``R = Q C`` with orthonormal Q, as few columns as R needs to rounding, beside ``size``."""
    scale = np.where(size > 0, size, 1)
    Q, C, order = qr(R / scale, mode="economic", pivoting=True, check_finite=False)
    heights = np.abs(np.diagonal(C))
    rank = int(np.sum(heights > len(R) ** 0.5 * np.finfo(R.dtype).eps * heights[:1]))
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return np.ascontiguousarray(Q[:, :rank]), C[:rank, back] * scale


def _conjugate(Z: Array, HZ: Array) -> tuple[Array, Array]:
    """P and H P with ``P' H P = I`` and the span of Z, less what is dependent; nothing where H Z is not finite.

    From the eigenvalues of ``Z' H Z``, in units where its diagonal is 1, or 0 where it is nothing.
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


# ------------------------------------------------------- the border of intercepts


def three_steps(solve: Callable[[Array], Krylov], A: Array, Z: Array) -> tuple[Array, Array, Krylov]:
    """The bordered system in the three steps of section 3.4.

    1. ``H eta = A`` and ``H nu = Z``, all columns in one block;
    2. ``S = A' eta``, positive definite;
    3. ``b = S^-1 eta' Z`` and ``alpha = nu - eta b``.

    Each of the m columns of A is one more right-hand side. With an intercept for each of many tasks it is cheaper to
    centre rows and targets within the tasks (``leastwise.problem.intercepts``), where no column is needed.

    Parameters
    ----------
    solve : callable
        ``solve(B)`` solves ``H X = B``, for example by ``block_cg``.
    A : ndarray of shape (n, m)
        The border: indicators of m tasks, or a column of ones; times the labels in the form of classification.
        A column of zeros, a task without rows, gets the intercept 0.
    Z : ndarray of shape (n, c)
        Right-hand sides: the targets, or ones in the form of classification.

    Returns
    -------
    alpha : ndarray of shape (n, c)
    b : ndarray of shape (m, c)
    story : Krylov
        Of the block [A, Z].
    """
    m = A.shape[1]
    story = solve(np.hstack([A, Z]))
    eta, nu = story.X[:, :m], story.X[:, m:]
    b = _factor(A.T @ eta).solve((eta.T @ Z).astype(float)).astype(Z.dtype)
    return nu - eta @ b, b, story


def _factor(S: Array) -> Cholesky:
    """Of a small matrix, symmetric up to rounding, in double precision."""
    S = S.astype(float)
    return cholesky((S + S.T) / 2)
