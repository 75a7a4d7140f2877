"""Mean squared gradients of a fitted kernel function, and the feature weights that they give."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from leastwise.problem.kernels import RBF, Kernel, Laplace, Scaled, Sum

Array = np.ndarray

#: Weights are the mean squared gradient to this power.
POWER = 0.25
#: More outputs than these are replaced by main components with this share of their squared norm.
FEW_OUTPUTS, ENERGY = 8, 0.95
#: The parts of a kernel with a gradient: a weight and the kernel.
Parts = list[tuple[float, Kernel]]


def gradient_parts(kernel: Kernel) -> Parts | None:
    """The parts of a kernel whose gradients are known; None if some are not, or none depends on distances."""
    parts: Parts = [(1.0, kernel)]
    if isinstance(kernel, Sum):
        parts = list(zip(kernel.weights, kernel.parts, strict=True))
    known = all(isinstance(part, RBF | Laplace | Scaled) for _, part in parts)
    return parts if known and any(part.distance for _, part in parts) else None


def mean_squared_gradient(
    kernel: Kernel, sigma: float, X: Array, Z: Array, w: Array, alpha: float, couple: Callable[[Array], Array]
) -> Array:
    """Mean over the rows of the squared derivatives of the ridge solution, summed over outputs.

    Parameters
    ----------
    kernel : Kernel
        Gaussian, Laplace, or a sum with a linear part.
    X : ndarray of shape (n, d)
    Z : ndarray of shape (n, c)
        Targets; their weighted means are subtracted.
    w : ndarray of shape (n,)
        Weights of mean 1.
    alpha : float
        Ridge on the mean loss.
    couple : callable
        Multiplies a matrix between all rows by the coupling of their tasks.
    """
    n, parts = len(X), gradient_parts(kernel)
    assert parts is not None
    X = np.asarray(X, dtype=float)
    matrices = [(weight, part, couple(part(X, X, sigma).astype(float))) for weight, part in parts]
    K = np.zeros((n, n))
    for weight, _, matrix in matrices:
        K += weight * matrix
    K[np.diag_indices(n)] += n * alpha / w
    A = _main_components(cho_solve(cho_factor(K, overwrite_a=True), Z - np.average(Z, axis=0, weights=w)))
    G = np.zeros((A.shape[1], *X.shape))
    for weight, part, matrix in matrices:
        if isinstance(part, RBF):
            for g, a in zip(G, A.T, strict=True):
                W = matrix * a
                g += weight / sigma**2 * (W @ X - X * W.sum(axis=1)[:, None])
        elif isinstance(part, Laplace):
            for j, x in enumerate(X.T):  # all outputs at once: the signs are what costs
                G[:, :, j] += weight / sigma * ((matrix * np.sign(x - x[:, None])) @ A).T
        else:
            assert isinstance(part, Scaled)
            origin = 0 if part.origin is None else part.origin
            ones = couple(np.ones((n, n)))
            for g, a in zip(G, A.T, strict=True):
                g += weight / part.height * ((ones * a) @ (X - origin))
    return np.einsum("i,cij->j", w, G**2) / w.sum()


def _main_components(A: Array) -> Array:
    """Few combinations of the outputs with nearly all of the squared norm of the coefficients.

    The sum over outputs of squared gradients does not change if the outputs are rotated; for many labels most of the
    rotated ones are negligible.
    """
    if A.shape[1] <= FEW_OUTPUTS:
        return A
    U, s, _ = np.linalg.svd(A, full_matrices=False)
    kept = 1 + int(np.searchsorted(np.cumsum(s**2), ENERGY * np.sum(s**2)))
    return U[:, :kept] * s[:kept]


def weights_of(mean_square: Array) -> Array:
    """Feature weights with a mean square of 1; all equal if nothing varies."""
    most = float(mean_square.max(initial=0.0))
    if not most > 0:
        return np.ones(len(mean_square))
    weights = (mean_square / most) ** POWER
    return weights / np.sqrt(np.mean(weights**2))
