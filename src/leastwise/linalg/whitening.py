r"""Whitening: coordinates in which the penalty of a model with centers is the identity.

The penalty :math:`\theta' R \theta`, with the kernel R between the centers, is often close to singular: neighbouring
centers are almost the same function. Sums of products of kernel values then lose all digits, since :math:`R^{-1}`
multiplies their rounding errors by the condition number of R. Sums in whitened coordinates do not.

A Cholesky factor with complete pivoting selects centers P with ``R[P, P] = L L'`` such that every other center is a
combination of these up to rounding. With ``T = L^-1``,

    psi(x) = T k(x, P),     theta[P] = T' a,     theta' R theta = a' a,     |psi(x)|^2 <= k(x, x).

The rank depends on R only, so that these coordinates can be used for every ridge. An error of eps in a kernel value
becomes one of about ``eps / sqrt(d_j)`` in coordinate j, whose size is about ``sqrt(d_j)``, with d_j its pivot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from leastwise.linalg.cholesky import cholesky
from leastwise.utils.arrays import get_namespace, is_numpy, numbers_like, to_namespace

Array = np.ndarray

#: Smallest pivot in units of the number of centers times rounding. At 1 the last pivots are half rounding
#: themselves, and scores of rows far from all centers changed by up to 1e-4 with the last digit of the kernel; at 10
#: by 1e-6, with about the same error compared with fifty digits.
PIVOT = 10
#: A matrix is indefinite if the residual exceeds this multiple of the tolerance when no pivot is positive.
INDEFINITE = 1e3
#: Jitter, in units of rounding.
JITTER = 1e3


@dataclass(frozen=True)
class Whitening:
    """Coordinates of b basis functions with ``psi = T phi[pivots]``.

    Attributes
    ----------
    T : ndarray of shape (r, r)
        The inverse of the Cholesky factor, lower triangular, in double precision.
    pivots : ndarray of int of shape (r,)
        Basis functions that span all others, whose coefficients are zero.
    size : int
        Number of basis functions, b.
    jitter : float
        Added to the diagonal; 0 unless the matrix has negative eigenvalues.
    """

    T: Array
    pivots: Array
    size: int
    jitter: float = 0.0

    @property
    def rank(self) -> int:
        """Number of coordinates."""
        return len(self.pivots)

    def whiten(self, Phi: Any) -> Any:
        """Whitened rows (n x r) from the values of the pivots, ``Phi[:, pivots]``, which may be overwritten.

        Arrays of another library stay in that library.
        """
        if not is_numpy(Phi):
            return Phi @ to_namespace(self.T, Phi).T
        (trmm,) = get_blas_funcs(("trmm",), (self.T,))
        # BLAS works in column order: transposes of C-contiguous arrays are passed without a copy.
        rows = np.ascontiguousarray(Phi, dtype=float).T
        return trmm(1.0, np.ascontiguousarray(self.T).T, rows, lower=0, trans_a=1, overwrite_b=1).T

    def columns(self, Phi: Any) -> Any:
        """A copy of ``Phi[:, pivots]``."""
        if not is_numpy(Phi):
            return get_namespace(Phi).take(Phi, numbers_like(self.pivots, Phi), axis=1)
        return np.take(Phi, self.pivots, axis=1)

    def unwhiten(self, V: Array) -> Array:
        """Coefficients (b x c) of the basis functions from those in whitened coordinates (r x c)."""
        theta = np.zeros((self.size, V.shape[1]))
        theta[self.pivots] = self.T.T @ V
        return theta

    def same(self, other: Whitening) -> bool:
        """True if both are the same coordinates up to rounding."""
        if self is other:
            return True
        return (
            self.size == other.size
            and np.array_equal(self.pivots, other.pivots)
            and bool(np.allclose(self.T, other.T, rtol=1e-4, atol=1e-6 * np.abs(self.T).max()))
        )


def whitening(R: Array) -> Whitening:
    """Coordinates for the penalty R, which is positive semi-definite up to the rounding of its type.

    If R has negative eigenvalues, a multiple of the identity is added and reported as jitter.
    """
    eps, R = float(np.finfo(R.dtype).eps), R.astype(float, copy=False)
    tol = PIVOT * len(R) * eps * float(np.abs(np.diagonal(R)).max())
    (pstrf, trtri) = get_lapack_funcs(("pstrf", "trtri"), (R,))
    F, order, rank, _ = pstrf(R, tol=tol, lower=1)
    if rank:
        pivots = order[:rank] - 1
        T = np.tril(trtri(np.asfortranarray(np.tril(F[:rank, :rank])), lower=1)[0])
        seen = R[:, pivots] @ T.T
        if np.abs(R - seen @ seen.T).max() <= INDEFINITE * tol:
            return Whitening(np.ascontiguousarray(T), pivots.astype(int), len(R))
    return _jittered(R, eps)


def full_whitening(R: Array) -> Whitening:
    """Coordinates in which every basis function has a coefficient, for the penalty R plus jitter.

    Leave-one-out deletes the basis functions of rows and therefore needs all of them, including those that are almost
    combinations of others.
    """
    return _jittered(R.astype(float, copy=False), float(np.finfo(R.dtype).eps))


def _jittered(R: Array, eps: float) -> Whitening:
    height = float(np.abs(np.diagonal(R)).mean()) or float(np.finfo(float).tiny)
    factor = cholesky(R, jitter=JITTER * eps * height)
    return Whitening(np.ascontiguousarray(factor.inverse_factor()), np.arange(len(R)), len(R), factor.jitter)
