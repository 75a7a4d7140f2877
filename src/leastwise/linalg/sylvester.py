r"""Coupled labels by eigendecompositions: modes of the label matrix B, and the Sylvester equation.

Labels coupled by B are one ridge problem with the Gram matrix ``G (x) B`` (Kronecker product). With ``B = V diag(b)
V'`` the columns of the targets ``Z V`` are independent problems: column k has the Gram matrix ``b_k G`` or,
equivalently, the ridge ``rho / b_k``.

Structure is exploited. Columns with the same eigenvalue share all that depends on it. If B is a multiple of the
identity except in a few directions (all labels equally similar: one direction), only these are rotated::

    B = V diag(b) V' + rest (I - V V').

If the labels fall into disconnected components, V is sparse.

The multi-label LSPC minimises, for every class,

    1/2 |Phi Theta - Z|^2 + rho/2 trace(Theta C Theta'),        Theta: basis functions x labels,

whose solution is that of the Sylvester equation ``Phi' Phi Theta + rho Theta C = Phi' Z``, eq. (1) of the multi-label
paper. Here C is given by its inverse B, which stays finite if labels are pooled, and Phi by its singular values
(``leastwise.linalg.decompositions``). For eigenvector k, with the column v of the intercept,

    theta_k = b_k Phi' (b_k G + rho)^-1 (z_k - v a_k),    a_k = v' P_k z_k / v' P_k v,    P_k = rho (b_k G + rho)^-1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.linalg.decompositions import Spectrum

Array = np.ndarray

#: Eigenvalues that differ by less than this, relative to the largest, are treated as equal.
SAME = 1e-12


@dataclass(frozen=True)
class Modes:
    """Eigendecomposition of B.

    Attributes
    ----------
    values : ndarray of shape (d,)
        Distinct eigenvalues, non-negative.
    which : ndarray of int of shape (m,)
        The eigenvalue of every rotated column.
    V : ndarray or sparse matrix of shape (T, r), or None
        Eigenvectors; None if labels are not coupled and nothing is rotated.
    complement : bool
        True if the complement of V is an eigenspace too; then the rotated columns are the r directions followed by
        all T labels projected onto the complement.
    """

    values: Array
    which: Array
    V: Any = None
    complement: bool = False

    def rotate(self, Z: Array) -> Array:
        """Independent columns, of shape (..., m), from those of the labels (..., T)."""
        if self.V is None:
            return Z
        along = _times(Z, self.V)
        return along if not self.complement else np.concatenate([along, Z - _times(along, self.V.T)], axis=-1)

    def back(self, Y: Array) -> Array:
        """Columns of the labels, of shape (..., T), from rotated ones."""
        if self.V is None:
            return Y
        r = self.V.shape[1]
        labels = _times(Y[..., :r], self.V.T)
        return labels if not self.complement else labels + Y[..., r:]

    @property
    def eigenvalues(self) -> Array:
        """The eigenvalue of every rotated column."""
        return self.values[self.which]

    def astype(self, dtype: Any) -> Modes:
        """Convert to another dtype."""
        V = None if self.V is None else self.V.astype(dtype)
        return Modes(self.values.astype(dtype), self.which, V, self.complement)


def _times(A: Array, V: Any) -> Array:
    """``A V`` for A of shape (..., T), and V dense or sparse."""
    flat = A.reshape(-1, A.shape[-1])  # one large product instead of many small ones
    return np.asarray(flat @ V, dtype=A.dtype).reshape(*A.shape[:-1], V.shape[1])


def untied(b: Array) -> Modes:
    """``B = diag(b)``."""
    values, which = distinct(np.asarray(b, dtype=float))
    return Modes(values, which)


def alike(n_labels: int, shared: float, own: float) -> Modes:
    """``B = shared 1 1' + own I``: one direction and its complement."""
    if n_labels == 1 or shared == 0:
        return untied(np.full(n_labels, shared + own))
    V = np.full((n_labels, 1), n_labels**-0.5)
    return Modes(np.array([shared * n_labels + own, own]), np.r_[0, np.ones(n_labels, dtype=int)], V, True)


def modes(B: Array, parts: Array | None = None) -> Modes:
    """Modes of a symmetric positive semi-definite B; ``parts`` numbers its connected components."""
    T = len(B)
    parts = np.zeros(T, dtype=int) if parts is None else parts
    sets = [np.flatnonzero(parts == p) for p in np.unique(parts)]
    if len(sets) == T:
        return untied(np.diagonal(B))
    found = [np.linalg.eigh(B[np.ix_(s, s)]) for s in sets]
    values, which = distinct(np.maximum(np.concatenate([b for b, _ in found]), 0))
    if len(sets) == 1:
        return Modes(values, which, found[0][1])
    V = sparse.block_diag([vectors for _, vectors in found], format="csr")
    order = np.argsort(np.concatenate(sets))
    return Modes(values, which, sparse.csr_array(V[order]))


def distinct(b: Array) -> tuple[Array, Array]:
    """Values distinct up to rounding, and the index of each entry in them."""
    order = np.argsort(b)
    steps = np.diff(b[order]) > SAME * max(float(b.max(initial=0)), np.finfo(float).tiny)
    group = np.r_[0, np.cumsum(steps)]
    which = np.empty(len(b), dtype=int)
    which[order] = group
    first = np.r_[0, np.flatnonzero(steps) + 1]
    return b[order][first], which


def solve_sylvester(
    spectrum: Spectrum, modes: Modes, Z: Array, rho: float, bias: Array | None = None
) -> tuple[Array, Array]:
    """Coefficients and intercepts of coupled labels.

    Parameters
    ----------
    Z : ndarray of shape (n, c, T)
        Targets of c classes and T labels.
    bias : ndarray of shape (n,), optional
        The column of the intercept.

    Returns
    -------
    Theta : ndarray of shape (b, c, T)
    intercept : ndarray of shape (c, T)
    """
    b, which = modes.values.astype(Z.dtype), modes.which
    e = 1 / (spectrum.g[:, None] * b + Z.dtype.type(rho))  # (k, d)
    Zr = modes.rotate(Z)
    intercept = np.zeros(Zr.shape[1:], dtype=Z.dtype)
    UZ = (spectrum.U.T @ Zr.reshape(len(Zr), -1)).reshape(-1, *Zr.shape[1:])
    if bias is not None:  # as in Spectrum.coefficients
        Uv = spectrum.U.T @ bias
        out, inside = bias - spectrum.U @ Uv, Z.dtype.type(rho) * e * Uv[:, None]  # (n), (k, d)
        vPZ = np.einsum("km,kcm->cm", inside[:, which], UZ) + np.einsum("i,icm->cm", out, Zr)
        intercept = vPZ / (Uv @ inside + out @ out)[which]
        UZ = UZ - Uv[:, None, None] * intercept
    shrink = spectrum.s[:, None] * b * e
    Theta = spectrum.V @ (shrink[:, None, which] * UZ).reshape(len(UZ), -1)
    return modes.back(Theta.reshape(len(Theta), *Zr.shape[1:])), modes.back(intercept)
