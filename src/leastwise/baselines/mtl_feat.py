"""Convex multi-task feature learning: tasks whose functions use the same few features, which are learnt."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from leastwise.baselines._checks import KERNELS, check_gram, count, kernel_matrix, number
from leastwise.baselines._common import TaskClassifier, TaskEstimator, TaskRegressor
from leastwise.baselines._features import Design, TaskScores, learn_features, span
from leastwise.estimators.checks import choose
from leastwise.estimators.validation import all_or_nothing

Array = np.ndarray


class _MTLFeat(TaskEstimator):
    """Inputs or kernels to coordinates, the algorithm there, and back."""

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
                f"The objective still fell after {self.max_iter} iterations: raise max_iter, or tol={self.tol}.",
                ConvergenceWarning,
                stacklevel=3,
            )
        W = found.W.reshape(len(found.W), len(rows), Y.shape[1]).transpose(1, 2, 0)
        intercept = np.array([y - w @ z for w, (z, y) in zip(W, means, strict=True)])
        self._store(TaskScores(W if back is None else W @ back.T, intercept))

    def _coordinates(self, X: Array) -> tuple[Array, Array | None]:
        """Rows in coordinates of the space that the solution lies in, and how these come from kernels with X."""
        if self.kernel == "linear":
            return X, None
        check_gram(len(X), arrays=4)
        self.X_fit_ = X
        return span(kernel_matrix(self.kernel, self.sigma, X, X))

    def _store(self, scores: TaskScores) -> None:
        """Keep the functions, and show them without the axes that have no meaning."""
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
    r"""Ridge regression of many tasks in a metric that is learnt from all of them (Argyriou et al. 2008).

    The function of task t is f_t(x) = w_t' x + b_t. A matrix D, the same for all tasks, says which directions of the
    inputs are cheap::

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
        With "rbf" the w_t are functions of that kernel's space. The rows of all tasks span what is needed of it, and
        the algorithm works in an orthonormal basis of that span, which is exact; cubic in the rows.
    sigma : float, default=1.0
        Width of "rbf", ``exp(-|x - z|^2 / (2 sigma^2))``.
    fit_intercept : bool, default=True
        An intercept b_t for every task, without penalty, by centring inputs and targets in every task. The paper has
        none: for that, say False and give X a constant column.
    epsilon : float, default=1e-10
        What is added to W W' to keep D invertible, relative to the mean square of W along a direction at the start.
        It is lowered to this value in steps: for a small one from the start the directions would hardly turn.
    max_iter, tol : int and float, default=5000 and 1e-6
        Stop after so many iterations, or when one lowers the objective by no more than this part of it.
    task_column : str or int, optional
        The column of X that holds the task; without it, ``tasks=`` is to be given to every method. Tasks that were
        not there in training are refused: the method has no function that all tasks share.

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
    r"""Classification of many tasks in a metric that is learnt from all of them (Argyriou et al. 2008).

    Least squares on targets of +1 and -1, else as in :class:`MTLFeatRegressor`. With more than two classes, each of
    them against the rest is a task. So there are two ways to use it:

    - without tasks, the classes are the tasks, all of them with the same rows; this is how the paper treats sets of
      several classes, Dermatology for instance;
    - with tasks, every class in every task is one; with two classes, every task is.

    Parameters
    ----------
    alpha, kernel, sigma, fit_intercept, epsilon, max_iter, tol
        As in :class:`MTLFeatRegressor`.
    task_column : str or int, optional
        The column of X that holds the task; without it, ``tasks=`` is to be given to every method, or to none.

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
