r"""Feature weights from the gradients of a fitted function.

For ``f(x) = sum_k C_k(x) k(x, x_k) a_k``, where C couples the tasks of two rows (1 for one task), the mean square
over the training rows of the derivative with respect to feature j says how much the function varies along it::

    m_j = mean_i sum_c (d f_c / d x_j (x_i))^2,        weight_j ~ m_j^(1/4).

Distances are then computed between rows whose columns are multiplied by their weights (recursive feature machines,
Radhakrishnan et al. 2024, have the square root; the fourth root adapts more cautiously). For the Gaussian kernel the
gradient is one matrix product for each output, ``(W X - X o W1) / sigma^2`` with ``W = K o a'``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from leastwise.problem.kernels import RBF, Kernel, Laplace, Scaled, Sum

Array = np.ndarray

#: Weights are the mean squared gradient to this power.
POWER = 0.25

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
    A = cho_solve(cho_factor(K, overwrite_a=True), Z - np.average(Z, axis=0, weights=w))
    total = np.zeros(X.shape[1])
    ones = couple(np.ones((n, n)))
    for a in A.T:
        G = np.zeros_like(X)
        for weight, part, matrix in matrices:
            if isinstance(part, RBF):
                W = matrix * a
                G += weight / sigma**2 * (W @ X - X * W.sum(axis=1)[:, None])
            elif isinstance(part, Laplace):
                W = matrix * a
                for j in range(X.shape[1]):
                    G[:, j] += weight / sigma * np.sum(W * np.sign(X[:, j] - X[:, j, None]), axis=1)
            else:
                assert isinstance(part, Scaled)
                origin = 0 if part.origin is None else part.origin
                G += weight / part.height * ((ones * a) @ (X - origin))
        total += w @ G**2 / w.sum()
    return total


def weights_of(mean_square: Array) -> Array:
    """Feature weights with a mean square of 1; all equal if nothing varies."""
    most = float(mean_square.max(initial=0.0))
    if not most > 0:
        return np.ones(len(mean_square))
    weights = (mean_square / most) ** POWER
    return weights / np.sqrt(np.mean(weights**2))
