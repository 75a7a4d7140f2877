"""Spectral form of a ridge problem: one decomposition, then each ridge costs one product.

Notation (docs/notation.md): a design Phi (n x b), targets Z (n x c), a ridge rho. The Gram matrix is
``G = Phi Phi' = U diag(g) U'`` and the coefficients are

    theta(rho) = V diag(s / (g + rho)) U' Z,

with ``s = sqrt(g)`` and V the right singular vectors of Phi, or ``s = 1`` and ``V = U`` where the problem is
posed in the Gram matrix itself (a penalty on the function, one coefficient per row).

Decompositions and products use numpy's BLAS only. NumPy and SciPy bring one BLAS each, whose threads spin for a while
after every call: alternating between the two slows both down.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Spectrum:
    """A decomposed ridge problem.

    Attributes
    ----------
    U : ndarray of shape (n, k)
        Orthonormal directions in the space of the rows.
    g : ndarray of shape (k,)
        Eigenvalues of the Gram matrix, non-negative.
    V : ndarray of shape (b, k)
        Directions in the space of the coefficients.
    s : ndarray of shape (k,)
        Numerators of the coefficients.
    jitter : float
        Added to make the Gram matrix positive semi-definite.
    """

    U: Array
    g: Array
    V: Array
    s: Array
    jitter: float = 0.0

    @property
    def complete(self) -> bool:
        """True if U is square, so that it spans all rows."""
        return self.U.shape[0] == self.U.shape[1]

    def coefficients(self, rho: float, Z: Array, bias: Array | None = None) -> tuple[Array, Array]:
        """Coefficients (b x c) and intercepts (c) at the ridge rho; ``bias`` is the column of the intercept."""
        e, UZ = 1 / (self.g + Z.dtype.type(rho)), self.U.T @ Z
        b = np.zeros(Z.shape[1], dtype=Z.dtype)
        if bias is not None:
            # The intercept is the projection of the residual of Z onto that of the bias column:
            # b = v'PZ / v'Pv with P = I - U diag(g e) U' = rho U diag(e) U' + (I - UU'), both parts without
            # cancellation, since v'Pv is tiny with a small ridge.
            Uv = self.U.T @ bias
            out, inside = bias - self.U @ Uv, Z.dtype.type(rho) * e * Uv
            b = (inside @ UZ + out @ Z) / (inside @ Uv + out @ out)
            UZ = UZ - np.outer(Uv, b)
        return self.V @ ((self.s * e)[:, None] * UZ), b


def gram_spectrum(K: Array) -> Spectrum:
    """Penalty on the function: G = K."""
    g, U, jitter = _psd_eigh(K)
    return Spectrum(U, g, U, np.ones_like(g), jitter)


def square_spectrum(K: Array) -> Spectrum:
    """Penalty on the coefficients, as many basis functions as rows: Phi = K, symmetric, so G = K^2."""
    s, U = np.linalg.eigh(K)
    return Spectrum(U, s**2, U, s)


def design_spectrum(Phi: Array) -> Spectrum:
    """Any design, with the ridge on theta' theta.

    The singular values of Phi are used, not the eigenvalues of Phi'Phi: squaring would lose the digits that
    leave-one-out needs with a small ridge. After QR, the small factor is decomposed in double precision.
    """
    if Phi.shape[0] <= 2 * Phi.shape[1]:
        U, s, Vt = np.linalg.svd(Phi, full_matrices=False)
        return Spectrum(U, s**2, Vt.T, s)
    Q, R = np.linalg.qr(Phi)
    U, s, Vt = np.linalg.svd(R.astype(float, copy=False), full_matrices=False)
    U, g, V, s = (A.astype(Phi.dtype, copy=False) for A in (U, s**2, Vt.T, s))
    return Spectrum(Q @ U, g, V, s)


def _psd_eigh(K: Array) -> tuple[Array, Array, float]:
    """Eigenvalues, shifted so that none is negative, eigenvectors, and the shift (0 within rounding)."""
    g, U = np.linalg.eigh(K)
    rounding = len(g) * np.finfo(K.dtype).eps * max(abs(g[-1]), abs(g[0]))
    jitter = float(-g[0]) if g[0] < -rounding else 0.0
    return np.maximum(g + K.dtype.type(jitter), 0), U, jitter
