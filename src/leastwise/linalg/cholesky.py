"""Cholesky factors that repair themselves a little, and say by how much."""

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
