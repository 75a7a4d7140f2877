"""Regularized multi-task learning: support vector machines with a part that all tasks share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import SVC, SVR
from sklearn.utils import gen_batches

from leastwise.baselines._base import (
    KERNELS,
    TaskClassifier,
    TaskEstimator,
    TaskRegressor,
    check_gram,
    kernel_matrix,
    number,
)
from leastwise.fitting.checks import choose
from leastwise.utils.atomic_fit import all_or_nothing

Array = np.ndarray

#: Rows predicted at a time.
BATCH = 1000
#: Size of the solver's kernel cache in MB.
CACHE = 500


class _RMTL(TaskEstimator):
    """Common part of regressor and classifier: the multi-task kernel and an SVM with a precomputed kernel."""

    C: float
    mu: float
    kernel: str
    sigma: float
    intercept: str
    unknown_task: str
    tol: float

    def _check(self) -> None:
        for name in ("C", "mu", "sigma", "tol"):
            number(name, getattr(self, name))
        choose("kernel", self.kernel, KERNELS)
        choose("intercept", self.intercept, ["shared", "task"])
        choose("unknown_task", self.unknown_task, ["shared", "error"])

    def _train(self, machine: Any, X: Array, y: Array, task: Array) -> Any:
        check_gram(len(X), arrays=2)
        self.X_fit_, self.task_fit_ = X, task
        self.machine_ = machine.fit(self._kernel(X, task), y)
        self.support_ = self.machine_.support_
        return self

    def _kernel(self, X: Array, task: Array) -> Array:
        """(1/mu + [s = t]) k(x, z) between rows and training rows; 1/mu alone for an unknown task (-1)."""
        K = kernel_matrix(self.used_["kernel"], self.used_["sigma"], X, self.X_fit_)
        if self.used_["intercept"] == "task":
            K += 1.0
        for t in np.unique(task):
            own = np.ix_(task == t, self.task_fit_ == t)
            K[own] *= 1.0 + self.used_["mu"]
        K /= self.used_["mu"]
        return np.ascontiguousarray(K)

    def _ask(self, method: str, X: Any, tasks: Any) -> Array:
        X, task = self._new_rows(X, tasks)
        answer = getattr(self.machine_, method)
        return np.concatenate([answer(self._kernel(X[rows], task[rows])) for rows in gen_batches(len(X), BATCH)])


class RMTLRegressor(_RMTL, TaskRegressor):
    r"""Support vector regression for many tasks (Evgeniou and Pontil 2004).

    The function of task t is f_t(x) = (w_0 + v_t)' phi(x) + b, with a part that all tasks share::

        min  1/2 [mu |w_0|^2 + sum_t |v_t|^2] + C sum_i max(0, |y_i - f_{t_i}(x_i)| - epsilon)

    This is one support vector machine with the kernel (1/mu + [s = t]) k(x, z) between row x of task s and row z of
    task t.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses. In the paper, with penalties lambda_1/T on the v_t and lambda_2 on w_0, it is
        T / (2 lambda_1).
    epsilon : float, default=0.1
        Width of the tube without loss, in units of y.
    mu : float, default=1.0
        Penalty of the shared part relative to the parts of the tasks: towards 0 all tasks are pooled, towards
        infinity they are independent. In the paper it is T lambda_2 / lambda_1.
    kernel : {"linear", "rbf"}, default="linear"
        The kernel k of the inputs.
    sigma : float, default=1.0
        Width of "rbf", ``exp(-|x - z|^2 / (2 sigma^2))``.
    intercept : {"shared", "task"}, default="shared"
        "shared" is the intercept b of the support vector machine, common to all tasks and without penalty. "task"
        adds an intercept for every task by a constant feature: k becomes k + 1.
    task_column : str or int, optional
        The column of X that holds the task; without it, every method needs ``tasks=``.
    unknown_task : {"shared", "error"}, default="shared"
        Prediction for a task that is not in the training data: the shared part, w_0' phi(x) + b, or an error.
    tol : float, default=1e-3
        Tolerance of the solver, which works in single precision: far below 1e-5 it may not terminate.

    Attributes
    ----------
    tasks_ : ndarray of shape (T,)
        Ids of the tasks.
    machine_ : sklearn.svm.SVR
        The machine with the kernel of rows and tasks.
    support_ : ndarray of int
        Dataset rows that are support vectors.

    Examples
    --------
    >>> from leastwise.baselines import RMTLRegressor
    >>> from leastwise.datasets import make_related_tasks
    >>> data = make_related_tasks(5, 20, kind="regression", random_state=0)
    >>> model = RMTLRegressor(kernel="rbf").fit(data.X, data.y, tasks=data.task)
    >>> model.predict(data.X[:3], tasks=data.task[:3]).shape
    (3,)
    """

    def __init__(
        self,
        C: float = 1.0,
        epsilon: float = 0.1,
        *,
        mu: float = 1.0,
        kernel: str = "linear",
        sigma: float = 1.0,
        intercept: str = "shared",
        task_column: Any = None,
        unknown_task: str = "shared",
        tol: float = 1e-3,
    ) -> None:
        self.C = C
        self.epsilon = epsilon
        self.mu = mu
        self.kernel = kernel
        self.sigma = sigma
        self.intercept = intercept
        self.task_column = task_column
        self.unknown_task = unknown_task
        self.tol = tol

    @all_or_nothing
    def fit(self, X: Any, y: Any, tasks: Any = None) -> RMTLRegressor:
        """Fit the machine to the rows of all tasks."""
        self._check()
        number("epsilon", self.epsilon, zero=True)
        rows = self._training_numbers(X, y, tasks)
        machine = SVR(kernel="precomputed", C=self.C, epsilon=self.epsilon, tol=self.tol, cache_size=CACHE)
        return self._train(machine, *rows)

    def predict(self, X: Any, tasks: Any = None) -> Array:
        """Targets of the rows in their tasks, of shape (n,)."""
        return self._ask("predict", X, tasks)


class RMTLClassifier(_RMTL, TaskClassifier):
    r"""Support vector classification for many tasks (Evgeniou and Pontil 2004).

    As :class:`RMTLRegressor`, with labels of +1 and -1 and the hinge loss::

        min  1/2 [mu |w_0|^2 + sum_t |v_t|^2] + C sum_i max(0, 1 - y_i f_{t_i}(x_i))

    More than two classes are handled one against one, as in scikit-learn's ``SVC``.

    Parameters
    ----------
    C, mu, kernel, sigma, intercept, task_column, unknown_task, tol
        As in :class:`RMTLRegressor`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    tasks_, support_
        As in :class:`RMTLRegressor`.
    machine_ : sklearn.svm.SVC
        The machine with the kernel of rows and tasks; its classes are indices into ``classes_``.
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        mu: float = 1.0,
        kernel: str = "linear",
        sigma: float = 1.0,
        intercept: str = "shared",
        task_column: Any = None,
        unknown_task: str = "shared",
        tol: float = 1e-3,
    ) -> None:
        self.C = C
        self.mu = mu
        self.kernel = kernel
        self.sigma = sigma
        self.intercept = intercept
        self.task_column = task_column
        self.unknown_task = unknown_task
        self.tol = tol

    @all_or_nothing
    def fit(self, X: Any, y: Any, tasks: Any = None) -> RMTLClassifier:
        """Fit the machine to the rows of all tasks."""
        self._check()
        rows = self._training_classes(X, y, tasks)
        return self._train(SVC(kernel="precomputed", C=self.C, tol=self.tol, cache_size=CACHE), *rows)

    def decision_function(self, X: Any, tasks: Any = None) -> Array:
        """Scores of the second class (n,), or of every class (n, n_classes)."""
        return self._ask("decision_function", X, tasks)

    def predict(self, X: Any, tasks: Any = None) -> Array:
        """Classes of the rows in their tasks."""
        return self.classes_[self._ask("predict", X, tasks)]
