r"""Multinomial logistic regression with a ridge.

The objective, for a design D (n x k), codes y of c classes and weights w of any scale, is::

    min  sum_i w_i [logsumexp(F_i) - F_i[y_i]] / sum_i w_i  +  alpha/2 ||Theta||^2,      F = D Theta + b,

with the intercept b, one number per class, without penalty. Two classes need one column only. The loss
depends on f = F_1 - F_0 = D theta + beta only, and of all Theta with Theta_1 - Theta_0 = theta the ridge
is smallest for (-theta/2, theta/2), whose squared norm is ||theta||^2 / 2. Therefore::

    min  sum_i w_i log(1 + exp(-+ f_i)) / sum_i w_i  +  alpha/4 ||theta||^2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from leastwise.linalg.decompositions import cholesky

Array = np.ndarray

#: Memory of L-BFGS.
MEMORY = 20
#: With two classes and up to this many parameters, factoring the Hessian is faster than conjugate gradients.
FACTOR = 150


@dataclass(frozen=True)
class Task:
    """A problem: design (n x k), class codes, weights, ridge, number of classes, intercept or not."""

    D: Array
    y: Array
    w: Array
    alpha: float
    n_classes: int
    bias: bool = True


@dataclass(frozen=True)
class Stop:
    """Stopping rule: maximum number of iterations, and norm of the gradient in the unit of ``Logistic.gradient``."""

    max_iter: int = 200
    tol: float = 1e-6


@dataclass(frozen=True)
class Logistic:
    """A solution with diagnostics.

    Attributes
    ----------
    Theta : ndarray of shape (k, c)
    intercept : ndarray of shape (c,)
        Sums to zero, since a common shift of all classes changes nothing; zeros without intercept.
    n_iter : int
    converged : bool
    gradient : float
        Norm of the final gradient, in units of the root mean square norm of the rows of D.
    start : ndarray
        The solver's parameters, a warm start for a similar problem.
    """

    Theta: Array
    intercept: Array
    n_iter: int
    converged: bool
    gradient: float
    start: Array

    def scores(self, D: Array) -> Array:
        """F for rows of a design."""
        return D @ self.Theta + self.intercept


@dataclass(frozen=True)
class Point:
    """Value, gradient and probabilities of the rows at a point."""

    value: float
    gradient: Array
    P: Array

    @property
    def norm(self) -> float:
        """Norm of the gradient."""
        return float(np.linalg.norm(self.gradient))


class Multiclass:
    """The objective with a column for every class.

    Parameters are one vector, the row of the intercept last. That row is multiplied by ``unit``, the size of a row
    of D, so that the problem does not depend on the scale of the kernel.
    """

    def __init__(self, task: Task) -> None:
        self.task, self.columns, self.ridge = task, task.n_classes, task.alpha
        self.share = (task.w / task.w.sum())[:, None].astype(np.float64)
        square = float(np.einsum("i,ij,ij->", self.share[:, 0], task.D, task.D))
        self.unit = np.sqrt(square) if square > 0 else 1.0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows (intercept included) and columns of the parameters."""
        return self.task.D.shape[1] + self.task.bias, self.columns

    def scores(self, x: Array) -> Array:
        """F, or f with two classes, at a vector of parameters."""
        X = x.reshape(self.shape)
        k = self.task.D.shape[1]
        F = self.task.D @ X[:k]
        return F + self.unit * X[k] if self.task.bias else F

    def pull(self, R: Array) -> Array:
        """The transpose of ``scores``, without the ridge."""
        parts = self.task.D.T @ R
        return (np.vstack([parts, self.unit * R.sum(axis=0)]) if self.task.bias else parts).ravel()

    def penalty_slope(self, x: Array) -> Array:
        """Gradient of the ridge."""
        slope = self.ridge * x.reshape(self.shape)
        if self.task.bias:
            slope[-1] = 0
        return slope.ravel()

    def at(self, x: Array) -> Point:
        """Value, gradient and probabilities."""
        losses, P, residual = self.loss(self.scores(x))
        slope = self.penalty_slope(x)
        value = float(np.sum(self.share[:, 0] * losses) + x @ slope / 2)
        return Point(value, self.pull(self.share * residual) + slope, P)

    def loss(self, F: Array) -> tuple[Array, Array, Array]:
        """Losses, probabilities, and derivatives of the losses with respect to F."""
        rows, y = np.arange(len(F)), self.task.y
        L = F - F.max(axis=1, keepdims=True)
        P = np.exp(L)
        total = P.sum(axis=1, keepdims=True)
        P /= total
        residual = P.copy()
        residual[rows, y] -= 1
        return np.log(total[:, 0]) - L[rows, y], P, residual

    def curvature(self, P: Array, F: Array) -> Array:
        """Second derivative of the losses times a direction in F."""
        Q = P * F
        return Q - P * Q.sum(axis=1, keepdims=True)

    def hessian_times(self, P: Array, v: Array) -> Array:
        """Hessian of the whole objective times a vector of parameters."""
        return self.pull(self.share * self.curvature(P, self.scores(v))) + self.penalty_slope(v)

    def newton_step(self, point: Point, limit: float) -> Array:
        """An approximate Newton direction, accurate enough to reach a gradient of norm ``limit``."""
        return _conjugate_gradient(self, point, limit)

    def solution(self, x: Array, n_iter: int, norm: float, tol: float) -> Logistic:
        """Build the result."""
        X, k = self.class_columns(x.reshape(self.shape)), self.task.D.shape[1]
        b = self.unit * X[k] if self.task.bias else np.zeros(X.shape[1])
        gradient = float(norm / self.unit)
        return Logistic(X[:k], b - b.mean(), n_iter, gradient <= tol, gradient, x)

    def class_columns(self, X: Array) -> Array:
        """Parameters with a column for every class."""
        return X


class Binary(Multiclass):
    """The objective of two classes, in one column."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.columns, self.ridge = 1, task.alpha / 2

    def loss(self, F: Array) -> tuple[Array, Array, Array]:
        """See ``Multiclass``, with respect to f."""
        f, second = F[:, 0], self.task.y == 1
        P = expit(F)
        return np.logaddexp(0, np.where(second, -f, f)), P, P - second[:, None]

    def curvature(self, P: Array, F: Array) -> Array:
        """See ``Multiclass``, with respect to f."""
        return P * (1 - P) * F

    def newton_step(self, point: Point, limit: float) -> Array:
        """The exact Newton direction by a Cholesky factor of the Hessian, if there are few parameters."""
        if self.shape[0] > FACTOR:
            return super().newton_step(point, limit)
        k, root = self.task.D.shape[1], np.sqrt(self.share * point.P * (1 - point.P))
        A = np.empty((len(root), self.shape[0]))
        np.multiply(self.task.D, root, out=A[:, :k])
        A[:, k:] = self.unit * root
        H = A.T @ A
        H[np.arange(k), np.arange(k)] += self.ridge
        return -cholesky(H, overwrite=True).solve(point.gradient[:, None])[:, 0]

    def class_columns(self, X: Array) -> Array:
        """Half of the column for the second class, minus half for the first."""
        return np.hstack([-X, X]) / 2


def solve_logistic(
    task: Task, solver: str = "auto", stop: Stop | None = None, start: Array | None = None
) -> Logistic:
    """Minimise the objective.

    Parameters
    ----------
    solver : {"auto", "lbfgs", "newton"}
        "newton" factors the Hessian for two classes and few parameters, and uses conjugate gradients otherwise. To
        the same norm of the gradient it took between a sixth and all of the time of "lbfgs" (50 to 1500 rows, 2 to
        10 classes, alphas from 1e-6 to 0.1), less for smaller alpha; only with 1500 rows it was sometimes slower, by
        at most 60 percent. "auto" is "newton".
    start : ndarray, optional
        ``Logistic.start`` of a problem of the same shape; zeros if not given.
    """
    objective = Binary(task) if task.n_classes == 2 else Multiclass(task)
    stop = stop or Stop()
    x = np.zeros(objective.shape[0] * objective.shape[1]) if start is None else start
    return (_lbfgs if solver == "lbfgs" else _newton)(objective, x, stop)


def _lbfgs(objective: Multiclass, x: Array, stop: Stop) -> Logistic:
    """Limited-memory BFGS."""
    limit, norm = stop.tol * objective.unit, [np.inf]

    def value_and_gradient(x: Array) -> tuple[float, Array]:
        point = objective.at(x)
        norm[0] = point.norm
        return point.value, point.gradient

    def enough(x: Array) -> None:
        # The line search ends at the last point evaluated, so the stored norm is the current one.
        if norm[0] <= limit:
            raise StopIteration

    options = {"maxiter": stop.max_iter, "maxfun": 20 * stop.max_iter, "maxcor": MEMORY, "gtol": 0, "ftol": 0}
    value_and_gradient(x)
    if norm[0] <= limit:
        return objective.solution(x, 0, norm[0], stop.tol)
    found = minimize(value_and_gradient, x, jac=True, method="L-BFGS-B", callback=enough, options=options)
    return objective.solution(found.x, int(found.nit), objective.at(found.x).norm, stop.tol)


def _newton(objective: Multiclass, x: Array, stop: Stop) -> Logistic:
    """Newton's method with a line search."""
    point, limit = objective.at(x), stop.tol * objective.unit
    n_iter = 0
    while point.norm > limit and n_iter < stop.max_iter:
        moved = _line_search(objective, x, point, objective.newton_step(point, limit))
        if moved is None:  # no descent at this precision
            break
        x, point = moved
        n_iter += 1
    return objective.solution(x, n_iter, point.norm, stop.tol)


def _conjugate_gradient(objective: Multiclass, point: Point, limit: float) -> Array:
    """Inexact Newton direction by CG; the tolerance is looser far from the optimum."""
    ratio = point.norm / objective.unit
    target = max(min(0.25, np.sqrt(ratio)) * point.norm, limit / 10)
    step, r = np.zeros_like(point.gradient), -point.gradient
    p, rr = r.copy(), float(r @ r)
    for _ in range(len(r)):
        Hp = objective.hessian_times(point.P, p)
        curve = float(p @ Hp)
        if not curve > 0:
            break
        step += rr / curve * p
        r -= rr / curve * Hp
        rr, last = float(r @ r), rr
        if rr <= target**2:
            break
        p = r + rr / last * p
    return step


def _line_search(objective: Multiclass, x: Array, point: Point, step: Array) -> tuple[Array, Point] | None:
    """Backtracking line search; None if the value never decreases enough."""
    slope, noise = float(point.gradient @ step), 1e-14 * (1 + abs(point.value))
    for shrink in 0.5 ** np.arange(30):
        new = objective.at(x + shrink * step)
        if new.value <= point.value + 1e-4 * shrink * slope + noise:
            return x + shrink * step, new
    return None
