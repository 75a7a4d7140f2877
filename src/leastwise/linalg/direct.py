"""Ridge solutions by one Cholesky factor."""

from __future__ import annotations

import numpy as np

from leastwise.linalg.cholesky import cholesky

Array = np.ndarray

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
