r"""Part of a Cholesky factor, and the preconditioner that it makes.

``pivoted_cholesky`` looks at r columns of a positive semi-definite G and finds ``G ~ L L'`` with L of shape (n, r):
``ridge_inverse(L, rho)`` is then about ``(G + rho I)^-1``, and exactly that in the directions that L has got.

Pivots are drawn at random, by what is left of their diagonals (Chen, Epperly, Tropp and Webber 2023), a block at a
time, and of a block those are kept that the others do not explain. Taking the largest diagonal, one at a time, is the
older rule; for Gaussian kernels of 4,000 rows and r = 500 it took three times as long, and since it prefers outliers,
conjugate gradients then needed up to a quarter more iterations.

``L L'`` is the Nystroem approximation from the columns of the pivots. That from as many columns drawn evenly takes as
long to make. On 5,000 rows of letters, digits and normal numbers (r of 500 and 1,500, alpha of 1e-4 and 1e-6) it took
as many iterations within a tenth where there were more than ten, and up to a quarter more on letters: so it is not
there. Three times the columns halved the iterations, at best.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import get_lapack_funcs, solve_triangular

from leastwise.linalg.cholesky import cholesky

Array = np.ndarray

#: Pivots that are drawn at a time.
BLOCK = 64
#: A pivot of a block is worth its column if this share of the block's largest diagonal is left of its own.
WORTH = 1e-3
#: Numbers of L that are taken to double precision at a time.
PART = 2**20


def pivoted_cholesky(
    diagonal: Array,
    columns: Callable[[Array], Array],
    rank: int,
    rng: np.random.Generator,
    tol: float = 0.0,
    block: int = BLOCK,
) -> tuple[Array, Array]:
    """``G ~ L L'`` from some columns of G.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        That of G.
    columns : callable
        ``columns(index)`` is ``G[:, index]``.
    rank : int
        Columns of L, at most; fewer where ``tol``, or the digits, are reached before.
    tol : float
        Stop when the trace of ``G - L L'`` is this share of that of G.
    block : int
        Pivots to draw at a time.

    Returns
    -------
    L : ndarray of shape (n, r)
    pivots : ndarray of int of shape (r,)
        ``L[pivots]`` is lower triangular.
    """
    left, n = np.maximum(diagonal, 0), len(diagonal)
    enough = max(tol, n * float(np.finfo(left.dtype).eps)) * float(left.sum())
    L = np.empty((n, min(rank, n)), dtype=left.dtype, order="F")
    pivots, r = np.empty(L.shape[1], dtype=int), 0
    while r < L.shape[1] and left.sum() > enough:
        drawn = _draw(left, min(block, L.shape[1] - r), rng)
        G = columns(drawn) - L[:, :r] @ L[drawn, :r].T
        F, kept = _thin(G[drawn])
        k = len(kept)
        if k == 0:  # what is left is rounding
            break
        new = solve_triangular(F, G[:, kept].T, lower=True, check_finite=False).T
        L[:, r : r + k], pivots[r : r + k] = new, drawn[kept]
        left = np.maximum(left - np.einsum("ij,ij->i", new, new), 0)
        left[drawn[kept]] = 0
        r += k
    return L[:, :r], pivots[:r]


def _draw(left: Array, size: int, rng: np.random.Generator) -> Array:
    """Different rows, each with a chance in proportion to what is left of its diagonal."""
    p = left.astype(float)
    return rng.choice(len(p), size=min(size, int(np.count_nonzero(p))), replace=False, p=p / p.sum())


def _thin(G: Array) -> tuple[Array, Array]:
    """The pivots of a block that are worth it, the largest first, and the Cholesky factor of G among them."""
    (pstrf,) = get_lapack_funcs(("pstrf",), (G,))
    F, order, k, _ = pstrf(G, tol=WORTH * float(np.diagonal(G).max()), lower=1)
    return F[:k, :k], order[:k] - 1


def ridge_inverse(L: Array, rho: float) -> Callable[[Array], Array]:
    """``V -> (L L' + rho I)^-1 V``, as ``(V - L (L'L + rho I)^-1 L'V) / rho``.

    Of L'L + rho I, which is r x r, one Cholesky factor is needed; it is repaired where rounding makes it indefinite,
    which costs the preconditioner some of its use and the solution nothing. L may be in single precision, and is all
    that is held: its rows are taken to double precision some at a time, so that no digits are lost beside V.
    """
    parts = _parts(L)
    inside = np.zeros((L.shape[1], L.shape[1]))
    for rows in parts:
        some = L[rows].astype(float)
        inside += some.T @ some
    factor = cholesky(inside, ridge=rho, overwrite=True) if len(inside) else None

    def inverse(V: Array) -> Array:
        if factor is None:
            return V / V.dtype.type(rho)
        # V'L, not L'V: with few columns BLAS takes half the time in that order.
        seen = sum((V[rows].T @ L[rows].astype(float) for rows in parts), np.zeros((V.shape[1], len(inside))))
        coef = factor.solve(seen.T)
        rest = [V[rows] - L[rows].astype(float) @ coef for rows in parts]
        return (np.concatenate(rest) / rho).astype(V.dtype, copy=False)

    return inverse


def _parts(L: Array) -> list[slice]:
    """Rows of L, some at a time."""
    step = max(1, PART // max(L.shape[1], 1))
    return [slice(a, a + step) for a in range(0, len(L), step)]
