"""The alternating algorithm of convex multi-task feature learning (Argyriou, Evgeniou and Pontil 2008).

All that it needs of the metric is the form D = floor I + U diag(gain) U', since W has few columns or few rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, qr, svd

Array = np.ndarray

#: What the perturbation is divided by when it is lowered.
STEP = 4.0


@dataclass(frozen=True)
class Metric:
    """D = floor I + U diag(gain) U'; ``trace`` is that of (W W' + epsilon I)^(1/2), which D is divided by."""

    U: Array
    gain: Array
    floor: float
    trace: float = 1.0

    @classmethod
    def flat(cls, p: int) -> Metric:
        """All directions alike."""
        return cls(np.empty((p, 0)), np.empty(0), 1.0 / p)

    @classmethod
    def best(cls, W: Array, epsilon: float) -> Metric:
        """The minimiser for given W: (W W' + epsilon I)^(1/2), divided by its trace."""
        U, s, _ = svd(W, full_matrices=False)
        root, floor = np.sqrt(s**2 + epsilon), np.sqrt(epsilon)
        trace = float(root.sum() + (len(W) - len(s)) * floor)
        return cls(U, (root - floor) / trace, floor / trace, trace)

    def matrix(self) -> Array:
        """D itself."""
        return (self.U * self.gain) @ self.U.T + self.floor * np.eye(len(self.U))


@dataclass(frozen=True)
class Design:
    """Rows of one task and their targets, no more of them than dimensions.

    ``rest`` is the loss that no coefficients can take away, ``gram`` is X X'.
    """

    X: Array
    Y: Array
    gram: Array
    rest: float

    @classmethod
    def of(cls, X: Array, Y: Array) -> Design:
        """Many rows are replaced by the triangular factor of X, which has the same least squares."""
        rest = 0.0
        if len(X) > X.shape[1]:
            Q, R = qr(X, mode="economic")
            short = Q.T @ Y
            rest = float(((Y - Q @ short) ** 2).sum())
            X, Y = R, short
        return cls(X, Y, X @ X.T, rest)

    def ridge(self, metric: Metric, alpha: float) -> tuple[Array, float]:
        """W = D X' (X D X' + alpha I)^-1 Y, and its loss: the residuals are alpha times the dual coefficients."""
        XU = self.X @ metric.U
        M = metric.floor * self.gram + (XU * metric.gain) @ XU.T
        M[np.diag_indices_from(M)] += alpha
        try:
            B = cho_solve(cho_factor(M, lower=True, overwrite_a=True, check_finite=False), self.Y, check_finite=False)
        except LinAlgError:
            raise ValueError(
                f"alpha={alpha} is too small for these inputs to solve with: give a larger one."
            ) from None
        W = metric.floor * (self.X.T @ B) + metric.U @ (metric.gain[:, None] * (XU.T @ B))
        return W, self.rest + alpha**2 * float((B**2).sum())


@dataclass(frozen=True)
class Features:
    """What was learnt: W (p x tasks), the metric, the objective after every iteration, whether it came to rest."""

    W: Array
    metric: Metric
    objective: Array
    converged: bool


def learn_features(designs: list[Design], alpha: float, epsilon: float, max_iter: int, tol: float) -> Features:
    """Minimise  sum of losses + alpha tr(D^-1 (W W' + e I))  over W and D in turn, for smaller and smaller e.

    With the best D the penalty is alpha (tr (W W' + e I)^(1/2))^2, the squared trace norm for e = 0. Each half step
    minimises exactly, and a smaller e lowers the penalty, so the objective cannot grow. For a small e the directions
    of W hardly turn any more, since others cost too much: so e starts at the mean square of the coefficients along a
    direction, and is lowered, when the objective has come to rest, down to ``epsilon`` times that.
    """
    p = designs[0].X.shape[1]
    metric, objective, converged = Metric.flat(p), [], False
    W, loss = _ridges(designs, metric, alpha)
    size = float((W**2).sum()) / p or 1.0
    least = epsilon * size
    for _ in range(max_iter):
        metric = Metric.best(W, size)
        objective.append(loss + alpha * metric.trace**2)
        rests = len(objective) > 1 and objective[-2] - objective[-1] <= tol * objective[-2]
        converged = rests and size <= least
        if converged:
            break
        if rests:
            size = max(size / STEP, least)
        W, loss = _ridges(designs, metric, alpha)
    return Features(W, metric, np.array(objective), converged)


def _ridges(designs: list[Design], metric: Metric, alpha: float) -> tuple[Array, float]:
    parts = [design.ridge(metric, alpha) for design in designs]
    return np.hstack([W for W, _ in parts]), sum(loss for _, loss in parts)


def span(K: Array) -> tuple[Array, Array]:
    """Coordinates of rows with Gram matrix K in an orthonormal basis of their span, and the basis in the rows.

    With K = U S U' the coordinates are U S^(1/2), and those of any other row are its kernels with all rows times
    U S^(-1/2).
    """
    s, U = eigh(K)
    kept = s > len(s) * np.finfo(float).eps * s[-1]
    root = np.sqrt(s[kept])
    return U[:, kept] * root, U[:, kept] / root


@dataclass(frozen=True)
class TaskScores:
    """Linear functions of every task: coefficients (T x c x f) and intercepts (T x c)."""

    coef: Array
    intercept: Array

    def __call__(self, Phi: Array, task: Array) -> Array:
        """Scores of rows, of shape (n, c)."""
        F = np.empty((len(Phi), self.coef.shape[1]))
        for t in np.unique(task):
            rows = task == t
            F[rows] = Phi[rows] @ self.coef[t].T + self.intercept[t]
        return F
