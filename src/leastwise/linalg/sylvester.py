r"""The continuous Sylvester equation of labels tied to one another, by two eigendecompositions.

The multi-label LSPC minimises, for every class,

    1/2 |Phi Theta - Z|^2 + rho/2 trace(Theta C Theta'),        Theta: basis functions x labels,

whose solution is that of ``Phi' Phi Theta + rho Theta C = Phi' Z``, eq. (1) of the multi-label paper. Here C is given
by its inverse B, which stays finite where labels are pooled, in its eigenvectors (``leastwise.linalg.modes``), and
Phi by its singular values (``leastwise.linalg.spectrum``). Along eigenvector k, and with the intercept's column v,

    theta_k = b_k Phi' (b_k G + rho)^-1 (z_k - v a_k),    a_k = v' P_k z_k / v' P_k v,    P_k = rho (b_k G + rho)^-1.
"""

from __future__ import annotations

import numpy as np

from leastwise.linalg.modes import Modes
from leastwise.linalg.spectrum import Spectrum

Array = np.ndarray


def solve_sylvester(
    spectrum: Spectrum, modes: Modes, Z: Array, rho: float, bias: Array | None = None
) -> tuple[Array, Array]:
    """Coefficients and intercepts of tied labels.

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
