"""Kernel logistic regression as the LSPC paper had it: L-BFGS on the kernel's coefficients, nothing else.

    min  1/n sum_i [logsumexp(F_i) - F_i[y_i]] + alpha/2 sum_y theta_y' K theta_y,      F = K theta

The library's own ``KernelLogisticRegression`` minimises the same, but in the coordinates of a Cholesky factor of K
and by Newton's method, which makes it many times faster; this is the yardstick of the paper.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from leastwise.problem.kernels import RBF


class TextbookKLR:
    """Fitted at given sigma and alpha; SciPy's L-BFGS with its own tolerances."""

    def __init__(self, sigma: float, alpha: float) -> None:
        self.sigma, self.alpha = sigma, alpha

    def fit(self, X: np.ndarray, y: np.ndarray) -> TextbookKLR:
        """Minimise, from zero."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.X, (n, c) = X, (len(y), len(self.classes_))
        K, T, alpha = RBF()(X, X, self.sigma), np.eye(c)[codes], self.alpha

        def value_and_gradient(theta: np.ndarray) -> tuple[float, np.ndarray]:
            A = theta.reshape(n, c)
            F = K @ A
            L = F - F.max(axis=1, keepdims=True)
            P = np.exp(L)
            total = P.sum(axis=1, keepdims=True)
            P /= total
            loss = np.mean(np.log(total[:, 0]) - (T * L).sum(axis=1)) + alpha / 2 * np.sum(A * F)
            return float(loss), (K @ ((P - T) / n + alpha * A)).ravel()

        options = {"maxiter": 1000, "maxfun": 2000}
        found = minimize(value_and_gradient, np.zeros(n * c), jac=True, method="L-BFGS-B", options=options)
        self.theta, self.n_iter_ = found.x.reshape(n, c), int(found.nit)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The class with the greatest score."""
        return np.asarray(self.classes_[(RBF()(X, self.X, self.sigma) @ self.theta).argmax(axis=1)])
