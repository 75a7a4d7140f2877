"""Cholesky factors that repair themselves a little, and say by how much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import get_lapack_funcs, solve_triangular

Array = np.ndarray


@dataclass(frozen=True)
class Cholesky:
    """``A + jitter I = L L'``.

    Attributes
    ----------
    L : ndarray of shape (n, n)
        The factor, in its lower triangle; the upper triangle is not to be read.
    jitter : float
        What had to be added to the diagonal; 0 if nothing.
    """

    L: Array
    jitter: float

    def solve(self, B: Array) -> Array:
        """``(A + jitter I)^-1 B``."""
        (potrs,) = get_lapack_funcs(("potrs",), (self.L, B))
        return potrs(self.L, B, lower=1)[0]

    def inverse_factor(self) -> Array:
        """``L^-1``, lower triangular with zeros above."""
        (trtri,) = get_lapack_funcs(("trtri",), (self.L,))
        return np.tril(trtri(self.L, lower=1)[0])

    def whiten(self, Phi: Array) -> Array:
        """``Phi L'^-1``: the columns of Phi in coordinates where the penalty is the identity."""
        return solve_triangular(self.L, Phi.T, lower=True, check_finite=False).T

    def unwhiten(self, V: Array) -> Array:
        """``L'^-1 V``: coefficients back from these coordinates."""
        return solve_triangular(self.L, V, lower=True, trans=1, check_finite=False)


def cholesky(A: Array, ridge: float = 0.0, jitter: float = 0.0, overwrite: bool = False) -> Cholesky:
    """Factor ``A + (ridge + jitter) I``, with more jitter, ten times as much each time, until it works.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        Symmetric. Both triangles have to be filled.
    ridge : float
        Part of the problem: added to the diagonal and not reported.
    jitter : float
        First repair to try at once; 0 tries without.
    overwrite : bool
        Allow A to be destroyed. Saves one n x n array.
    """
    (potrf,) = get_lapack_funcs(("potrf",), (A,))
    unit = float(np.finfo(A.dtype).eps * max(np.abs(np.diagonal(A)).mean(), np.finfo(A.dtype).tiny))
    for _ in range(40):
        # A is symmetric: its transpose is the same matrix in the column order that LAPACK wants.
        shifted = A.T if overwrite and A.flags.c_contiguous else np.array(A, order="F")
        shifted[np.diag_indices_from(shifted)] += A.dtype.type(ridge + jitter)
        # the lower triangle of the result; a failed try has destroyed what it was given
        keep = None if not overwrite else np.array(np.diagonal(shifted))
        L, info = potrf(shifted, lower=1, clean=0, overwrite_a=1)
        if info == 0:
            return Cholesky(L, jitter)
        if keep is not None:
            A = _restore(shifted, keep, ridge + jitter)
        jitter = 10 * jitter if jitter else 10 * unit
    raise np.linalg.LinAlgError("The matrix is not positive definite, not even with a large jitter.")


def _restore(destroyed: Array, diagonal: Array, shift: float) -> Array:
    """The matrix again, from its untouched upper triangle and its diagonal, after a failed factorisation."""
    upper = np.triu(destroyed, 1)
    restored = upper + upper.T
    restored[np.diag_indices_from(restored)] = diagonal - shift
    return restored
