"""The methods on the paper's grid: LSPC, and kernel logistic regression (KLR).

LSPC          model (7): for each class the kernels at the rows of that class
LSPC(full)    model (5): all kernels for all classes
KLR           KLR as in the paper: L-BFGS on the coefficients of the kernel, penalty lambda theta'K theta added to
              the sum of the losses; at the hyperparameters that "KLR here" chose
KLR here      KernelLogisticRegression of this library: the same minimum by Newton's method, many times faster, in the
              coordinates of a Cholesky factor of K
LSPC()        the default of this library: penalty on the function, sigma and alpha by leave-one-out log-loss on its
              own grid, calibrated (the reported time is that of one fit)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize

from leastwise import LSPC, KernelLogisticRegression
from leastwise.problem.kernels import RBF
from papers._common import PLAIN


class TextbookKLR:
    """KLR as in the paper, at given sigma and alpha, by SciPy's L-BFGS with its default tolerances::

    min  1/n sum_i [logsumexp(F_i) - F_i[y_i]] + alpha/2 sum_y theta_y' K theta_y,      F = K theta
    """

    def __init__(self, sigma: float, alpha: float) -> None:
        self.sigma, self.alpha = sigma, alpha

    def fit(self, X: np.ndarray, y: np.ndarray) -> TextbookKLR:
        """Minimise, starting at zero."""
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
        """The class with the largest score."""
        return np.asarray(self.classes_[(RBF()(X, self.X, self.sigma) @ self.theta).argmax(axis=1)])


#: In units of the median distance between rows.
SIGMAS = (1 / 10, 1 / 5, 1 / 2, 2 / 3, 1, 3 / 2, 2, 5, 10)
ALPHAS = tuple(10.0 ** np.array([-2, -1.5, -1, -0.5, 0]))


@dataclass(frozen=True)
class Method:
    """An estimator with its parameters for the search and for a fit at the chosen hyperparameters."""

    make: Callable[..., Any]
    search: dict = field(default_factory=dict)
    bare: dict = field(default_factory=dict)
    paper_grid: bool = True

    def tuned(self, length: float, n: int, seed: int) -> Any:
        """The estimator that searches a grid in units of ``length``, for n rows."""
        alphas = [2 * a / n for a in ALPHAS] if self.make is KernelLogisticRegression else list(ALPHAS)
        grid = {"sigma": [s * length for s in SIGMAS], "alpha": alphas} if self.paper_grid else {}
        return self.make(**PLAIN, **grid, **self.search, random_state=seed)

    def at(self, model: Any, **more: Any) -> Any:
        """The estimator at the sigma and alpha that ``model`` chose."""
        return self.make(**PLAIN, sigma=model.sigma_, alpha=model.alpha_, cv=None, **{**self.bare, **more})


PAPER = {"norm": "coefficients", "calibration": None, "bias": None}
CROSS_VALIDATED = {"cv": 2, "scoring": "accuracy"}
METHODS = {
    "LSPC": Method(
        LSPC, {**PAPER, **CROSS_VALIDATED, "basis": "class", "search_rows": None}, {**PAPER, "basis": "class"}
    ),
    "LSPC(full)": Method(LSPC, {**PAPER, **CROSS_VALIDATED, "search_rows": None}, PAPER),
    "KLR here": Method(KernelLogisticRegression, {**CROSS_VALIDATED, "bias": None}, {"bias": None}),
    "LSPC()": Method(LSPC, bare={"calibration": None}, paper_grid=False),
}
TEXTBOOK = "KLR"
LABELS = ("LSPC", "LSPC(full)", TEXTBOOK, "KLR here", "LSPC()")
