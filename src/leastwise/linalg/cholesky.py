"""Cholesky factors that repair themselves a little, and say by how much.

Ridge solutions by one Cholesky factor.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs, solve_triangular

Array = np.ndarray


@dataclass(frozen=True)
class Cholesky:
    """``A + jitter I = L L'``.

    Attributes
    ----------
    L : ndarray of shape (n, n)
        The factor, lower triangular.
    jitter : float
        What had to be added to the diagonal; 0 if nothing.
    """

    L: Array
    jitter: float

    def solve(self, B: Array) -> Array:
        """``(A + jitter I)^-1 B``."""
        (potrs,) = get_lapack_funcs(("potrs",), (self.L, B))
        return potrs(self.L, B, lower=1)[0]

    def inverse_factor(self, overwrite: bool = False) -> Array:
        """``L^-1``, lower triangular; with ``overwrite`` it takes the place of L, and nothing else can follow."""
        (trtri,) = get_lapack_funcs(("trtri",), (self.L,))
        return trtri(self.L, lower=1, overwrite_c=overwrite)[0]

    def whiten(self, Phi: Array) -> Array:
        """``Phi L'^-1``: the columns of Phi in coordinates where the penalty is the identity."""
        (trsm,) = get_blas_funcs(("trsm",), (self.L, Phi))
        return trsm(1.0, self.L, np.ascontiguousarray(Phi).T, lower=1).T  # rows in order, in the column order of BLAS

    def unwhiten(self, V: Array) -> Array:
        """``L'^-1 V``: coefficients back from these coordinates."""
        return solve_triangular(self.L, V, lower=True, trans=1, check_finite=False)


def cholesky(A: Array, ridge: float = 0.0, jitter: float = 0.0, overwrite: bool = False) -> Cholesky:
    """Factor ``A + (ridge + jitter) I``, with more jitter, ten times as much each time, until it works.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        Symmetric, both triangles filled.
    ridge : float
        Part of the problem: added to the diagonal and not reported.
    jitter : float
        First repair to try at once; 0 tries without.
    overwrite : bool
        Put the factor in A's place, if A is in row order. Saves one n x n array.
    """
    (potrf,) = get_lapack_funcs(("potrf",), (A,))
    work = A if overwrite and A.flags.c_contiguous else np.array(A, order="C")
    diagonal = np.array(np.diagonal(A))
    info = np.finfo(A.dtype)
    unit = float(info.eps) * max(float(np.abs(diagonal).mean()), float(info.tiny))
    for _ in range(20):
        np.fill_diagonal(work, diagonal + A.dtype.type(ridge + jitter))
        # The transpose of a symmetric matrix is the same matrix in the column order that LAPACK wants.
        L, failed = potrf(work.T, lower=1, clean=0, overwrite_a=1)
        if not failed and np.isfinite(jitter + L[-1, -1]):
            return Cholesky(_lower(L), jitter)
        half = np.tril(work, -1)  # the triangle that a failed try leaves as it was
        np.add(half, half.T, out=work)
        jitter = 10 * jitter if jitter else 10 * unit
    raise np.linalg.LinAlgError("The matrix is not positive definite, not even with a large jitter.")


def _lower(L: Array) -> Array:
    """Zeros above the diagonal, in place and column by column."""
    for j in range(1, L.shape[1]):
        L[:j, j] = 0
    return L


#: Numbers that are taken to double precision at a time.
PART = 2**20


def solve_gram(K: Array, Z: Array, rho: float, bias: Array | None) -> tuple[Array, Array, float]:
    """Penalty on the function: A = (K + rho I)^-1 (Z - v b). K is destroyed.

    Returns
    -------
    A : ndarray of shape (n, c)
    b : ndarray of shape (c,)
        Intercepts; zeros without a bias column v.
    jitter : float
    """
    factor = cholesky(K, ridge=rho, overwrite=True)
    A, b = _with_intercept(factor.solve(_beside(Z, bias)), bias)
    return A, b, factor.jitter


def solve_square(K: Array, Z: Array, rho: float, bias: Array | None) -> tuple[Array, Array, float] | None:
    """Penalty on the coefficients, eq. (5): theta = (K^2 + rho I)^-1 K (Z - v b). K is kept.

    None where the ridge is so small that squaring K would lose the digits of the solution: use the spectrum.
    """
    G = K @ K.T  # the transpose lets BLAS use the symmetry
    if not _regular(G, rho):
        return None
    factor = cholesky(G, ridge=rho, overwrite=True)
    A, b = _with_intercept(factor.solve(_beside(Z, bias)), bias)
    return K @ A, b, factor.jitter


def _regular(G: Array, rho: float) -> bool:
    """Whether a third of the digits survive the condition number of G + rho I."""
    eps = float(np.finfo(G.dtype).eps)
    return bool(eps * np.trace(G) <= eps ** (1 / 3) * rho)


def _beside(Z: Array, bias: Array | None) -> Array:
    return Z if bias is None else np.column_stack([Z, bias])


def _with_intercept(solved: Array, bias: Array | None) -> tuple[Array, Array]:
    """From M Z (and M v) to M (Z - v b), with b such that v' M (Z - v b) = 0."""
    if bias is None:
        return solved, np.zeros(solved.shape[1], dtype=solved.dtype)
    A, u = solved[:, :-1], solved[:, -1]
    b = (bias @ A) / (bias @ u)
    return A - np.outer(u, b), b


def solve_design(Phi: Array, Z: Array, rho: float, bias: Array | None) -> tuple[Array, Array] | None:
    """Any design with fewer columns than rows, eq. (8): theta = (Phi'Phi + rho I)^-1 Phi' (Z - v b).

    The system of as many unknowns as columns is in double precision, and so is theta, whatever Phi has.

    None where the ridge is so small that forming Phi'Phi would lose the digits of the solution: use the spectrum.
    """
    H, right = _products(Phi, _beside(Z, bias))
    if not _regular(H, rho):
        return None
    factor = cholesky(H, ridge=rho, overwrite=True)
    if bias is None:
        return factor.solve(right), np.zeros(Z.shape[1], dtype=Z.dtype)
    solved = factor.solve(right)
    A, u = solved[:, :-1], solved[:, -1]
    # b = v'PZ / v'Pv with P = I - Phi (Phi'Phi + rho I)^-1 Phi'
    Pv = bias - np.concatenate([Phi[part].astype(float, copy=False) @ u for part in _parts(Phi)])
    b = (Pv @ Z) / (Pv @ bias)
    return A - np.outer(u, b), b


def _products(Phi: Array, B: Array) -> tuple[Array, Array]:
    """``Phi'Phi`` and ``Phi'B`` in double precision, without a copy of Phi in it.

    In single precision an error of eps in Phi'Phi would meet a ridge of alpha; one of eps in Phi meets its root.
    """
    H, right = np.zeros((Phi.shape[1], Phi.shape[1])), np.zeros((Phi.shape[1], B.shape[1]))
    for part in _parts(Phi):
        some = Phi[part].astype(float, copy=False)
        H += some.T @ some
        right += some.T @ B[part].astype(float, copy=False)
    return H, right


def _parts(Phi: Array) -> list[slice]:
    """All rows at once where Phi has double precision; else so many that ``PART`` numbers are converted at a time."""
    n, step = len(Phi), len(Phi) if Phi.dtype == np.float64 else max(1, PART // Phi.shape[1])
    return [slice(start, start + step) for start in range(0, n, max(step, 1))]
