"""Convex multi-task feature learning (Argyriou, Evgeniou and Pontil 2008): a metric common to all tasks is learned.

The alternating algorithm stores the metric as D = floor I + U diag(gain) U', since W has few columns or few rows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh, qr, svd
from sklearn.exceptions import ConvergenceWarning

from leastwise.baselines._base import (
    KERNELS,
    TaskClassifier,
    TaskEstimator,
    TaskRegressor,
    check_gram,
    count,
    kernel_matrix,
    number,
)
from leastwise.fitting.checks import choose
from leastwise.utils.atomic_fit import all_or_nothing

Array = np.ndarray

#: Factor by which the perturbation is reduced.
STEP = 4.0


@dataclass(frozen=True)
class Metric:
    """D = floor I + U diag(gain) U'; ``trace`` is that of (W W' + epsilon I)^(1/2), by which D is divided."""

    U: Array
    gain: Array
    floor: float
    trace: float = 1.0

    @classmethod
    def flat(cls, p: int) -> Metric:
        """The metric I / p."""
        return cls(np.empty((p, 0)), np.empty(0), 1.0 / p)

    @classmethod
    def best(cls, W: Array, epsilon: float) -> Metric:
        """The minimiser for given W: (W W' + epsilon I)^(1/2), divided by its trace."""
        U, s, _ = svd(W, full_matrices=False)
        root, floor = np.sqrt(s**2 + epsilon), np.sqrt(epsilon)
        trace = float(root.sum() + (len(W) - len(s)) * floor)
        return cls(U, (root - floor) / trace, floor / trace, trace)

    def matrix(self) -> Array:
        """D as a dense matrix."""
        return (self.U * self.gain) @ self.U.T + self.floor * np.eye(len(self.U))


@dataclass(frozen=True)
class Design:
    """Rows of one task and their targets, reduced to at most p rows.

    ``rest`` is the part of the loss that does not depend on the coefficients, ``gram`` is X X'.
    """

    X: Array
    Y: Array
    gram: Array
    rest: float

    @classmethod
    def of(cls, X: Array, Y: Array) -> Design:
        """Reduce more than p rows by QR; the least-squares problem stays the same."""
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
            raise ValueError(f"alpha={alpha} is too small for these inputs: give a larger value.") from None
        W = metric.floor * (self.X.T @ B) + metric.U @ (metric.gain[:, None] * (XU.T @ B))
        return W, self.rest + alpha**2 * float((B**2).sum())


@dataclass(frozen=True)
class Features:
    """Solution: W (p x tasks), the metric, the objective of every iteration, and convergence."""

    W: Array
    metric: Metric
    objective: Array
    converged: bool


def learn_features(designs: list[Design], alpha: float, epsilon: float, max_iter: int, tol: float) -> Features:
    """Minimise  sum of losses + alpha tr(D^-1 (W W' + e I))  over W and D alternately, for decreasing e.

    With the best D the penalty is alpha (tr (W W' + e I)^(1/2))^2, the squared trace norm for e = 0. Each half step
    minimises exactly, and a smaller e lowers the penalty, so the objective cannot grow. With a small e the directions
    of W hardly change, since others are expensive: e starts at the mean square of the coefficients along a direction
    and is reduced, whenever the objective has converged, down to ``epsilon`` times that.
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


class _MTLFeat(TaskEstimator):
    """Common part of regressor and classifier: the algorithm in the coordinates of the inputs or of the kernel."""

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        kernel: str = "linear",
        sigma: float = 1.0,
        fit_intercept: bool = True,
        epsilon: float = 1e-10,
        max_iter: int = 5000,
        tol: float = 1e-6,
        task_column: Any = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.sigma = sigma
        self.fit_intercept = fit_intercept
        self.epsilon = epsilon
        self.max_iter = max_iter
        self.tol = tol
        self.task_column = task_column

    def _check(self) -> None:
        for name in ("alpha", "sigma", "epsilon"):
            number(name, getattr(self, name))
        number("tol", self.tol, zero=True)
        count("max_iter", self.max_iter)
        choose("kernel", self.kernel, KERNELS)
        choose("fit_intercept", self.fit_intercept, [True, False])

    def _learn(self, X: Array, Y: Array, task: Array) -> None:
        """Fit the columns of Y in every task."""
        Z, back = self._coordinates(X)
        rows = [np.flatnonzero(task == t) for t in range(task.max() + 1)]
        means = [(Z[r].mean(axis=0), Y[r].mean(axis=0)) for r in rows]
        if not self.fit_intercept:
            means = [(0 * z, 0 * y) for z, y in means]
        designs = [Design.of(Z[r] - z, Y[r] - y) for r, (z, y) in zip(rows, means, strict=True)]
        found = learn_features(designs, self.alpha, self.epsilon, self.max_iter, self.tol)
        self.metric_, self.objective_, self.n_iter_ = found.metric.matrix(), found.objective, len(found.objective)
        if not found.converged:
            warnings.warn(
                f"The objective did not converge in {self.max_iter} iterations: raise max_iter, or tol={self.tol}.",
                ConvergenceWarning,
                stacklevel=3,
            )
        W = found.W.reshape(len(found.W), len(rows), Y.shape[1]).transpose(1, 2, 0)
        intercept = np.array([y - w @ z for w, (z, y) in zip(W, means, strict=True)])
        self._store(TaskScores(W if back is None else W @ back.T, intercept))

    def _coordinates(self, X: Array) -> tuple[Array, Array | None]:
        """Coordinates of the rows, and the matrix that maps kernel values with X to coordinates."""
        if self.kernel == "linear":
            return X, None
        check_gram(len(X), arrays=4)
        self.X_fit_ = X
        return span(kernel_matrix(self.kernel, self.sigma, X, X))

    def _store(self, scores: TaskScores) -> None:
        """Store the functions; the public attributes omit axes of length one."""
        self.scores_ = scores
        shown = (0,) if self.tasks_ is None else (slice(None), 0) if scores.coef.shape[1] == 1 else ()
        self.intercept_ = scores.intercept[shown]
        setattr(self, "coef_" if self.kernel == "linear" else "dual_coef_", scores.coef[shown])

    def _scores(self, X: Any, tasks: Any) -> Array:
        X, task = self._new_rows(X, tasks)
        kernel, sigma = self.used_["kernel"], self.used_["sigma"]
        Phi = X if kernel == "linear" else kernel_matrix(kernel, sigma, X, self.X_fit_)
        return self.scores_(Phi, task)


class MTLFeatRegressor(_MTLFeat, TaskRegressor):
    r"""Ridge regression of many tasks in a metric that is learned from all of them (Argyriou et al. 2008).

    The function of task t is f_t(x) = w_t' x + b_t. A matrix D, the same for all tasks, determines which directions
    of the inputs are cheap::

        min over W, D   sum_i (y_i - f_{t_i}(x_i))^2 + alpha sum_t w_t' D^-1 w_t,   D >= 0,  trace D <= 1

    For the best D the penalty is alpha times the squared trace norm of W = (w_1 ... w_T): the tasks come to lie in
    few directions that they have in common. Ridge regressions for given D, and D = (W W')^(1/2) divided by its trace
    for given W, follow one another.

    Parameters
    ----------
    alpha : float, default=1.0
        Weight of the penalty on the sum of squares over all rows: the gamma of the paper. One task alone is a ridge
        regression with this ``alpha``.
    kernel : {"linear", "rbf"}, default="linear"
        With "rbf" the w_t are functions in the kernel's space. The algorithm works in an orthonormal basis of the
        span of all rows, which is exact; cubic in the rows.
    sigma : float, default=1.0
        Width of "rbf", ``exp(-|x - z|^2 / (2 sigma^2))``.
    fit_intercept : bool, default=True
        An intercept b_t for every task, without penalty, by centring inputs and targets in every task. The paper has
        none: use False and a constant column of X.
    epsilon : float, default=1e-10
        Added to W W' to keep D invertible, relative to the initial mean square of W along a direction. It is reduced
        to this value in steps: with a small value from the start the directions would hardly change.
    max_iter, tol : int and float, default=5000 and 1e-6
        Maximum number of iterations, and relative decrease of the objective at which to stop.
    task_column : str or int, optional
        The column of X that holds the task; without it, every method needs ``tasks=``. Tasks that are not in the
        training data are an error: the method has no part that all tasks share.

    Attributes
    ----------
    tasks_ : ndarray of shape (T,)
        Ids of the tasks.
    coef_, intercept_ : ndarray of shape (T, d) and (T,)
        With "rbf" there is ``dual_coef_`` instead, of shape (T, n).
    metric_ : ndarray of shape (d, d)
        The matrix D. With "rbf" it is in coordinates of the basis.
    objective_ : ndarray
        The objective with the best D for the W of every iteration; it cannot grow.
    n_iter_ : int

    Examples
    --------
    >>> from leastwise.baselines import MTLFeatRegressor
    >>> from leastwise.datasets import make_related_tasks
    >>> data = make_related_tasks(5, 20, kind="regression", random_state=0)
    >>> MTLFeatRegressor().fit(data.X, data.y, tasks=data.task).coef_.shape
    (5, 2)
    """

    @all_or_nothing
    def fit(self, X: Any, y: Any, tasks: Any = None) -> MTLFeatRegressor:
        """Learn the metric and the coefficients of all tasks."""
        self._check()
        X, y, task = self._training_numbers(X, y, tasks)
        self._learn(X, y[:, None], task)
        return self

    def predict(self, X: Any, tasks: Any = None) -> Array:
        """Targets of the rows in their tasks, of shape (n,)."""
        return self._scores(X, tasks)[:, 0]


class MTLFeatClassifier(_MTLFeat, TaskClassifier):
    r"""Classification of many tasks in a metric that is learned from all of them (Argyriou et al. 2008).

    Least squares on targets of +1 and -1, otherwise as in :class:`MTLFeatRegressor`. With more than two classes, each
    class against the rest is a task. There are two ways to use it:

    - without tasks, the classes are the tasks, all of them with the same rows; this is how the paper treats sets of
      several classes, Dermatology for instance;
    - with tasks, every class in every task is one; with two classes, every task is.

    Parameters
    ----------
    alpha, kernel, sigma, fit_intercept, epsilon, max_iter, tol
        As in :class:`MTLFeatRegressor`.
    task_column : str or int, optional
        The column of X that holds the task; without it, ``tasks=`` is given to every method or to none.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    tasks_ : ndarray of shape (T,) or None
    coef_, intercept_ : ndarray
        Of shape (T, d) and (T,) with two classes, (T, n_classes, d) and (T, n_classes) with more; without tasks,
        (1, d) or (n_classes, d). With "rbf" there is ``dual_coef_``, on all rows, instead of ``coef_``.
    metric_, objective_, n_iter_
        As in :class:`MTLFeatRegressor`.
    """

    single = True

    @all_or_nothing
    def fit(self, X: Any, y: Any, tasks: Any = None) -> MTLFeatClassifier:
        """Learn the metric and the coefficients of all tasks and classes."""
        self._check()
        X, y, task = self._training_classes(X, y, tasks)
        against = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        self._learn(X, np.where(y[:, None] == np.array(against), 1.0, -1.0), task)
        return self

    def decision_function(self, X: Any, tasks: Any = None) -> Array:
        """Scores of the second class (n,), or of each of several (n, n_classes)."""
        F = self._scores(X, tasks)
        return F[:, 0] if F.shape[1] == 1 else F

    def predict(self, X: Any, tasks: Any = None) -> Array:
        """The class with the largest score."""
        F = self._scores(X, tasks)
        return self.classes_[F.argmax(axis=1) if F.shape[1] > 1 else (F[:, 0] > 0).astype(int)]
