"""Kernel logistic regression for many related tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.estimators.base import TaskClassifier
from leastwise.estimators.spec import Spec
from leastwise.problem.targets import ClassTargets


class MultiTaskKernelLogisticRegression(TaskClassifier):
    r"""Kernel logistic regression for many related tasks, tuned by cross-validation.

    :class:`leastwise.KernelLogisticRegression` with the kernel of rows and tasks together::

        k(x, x') (sharing + (1 - sharing) [t = t'])

    The maximum-likelihood counterpart of :class:`leastwise.MultiTaskLSPC`, and its yardstick in the paper (KLR-MT).
    It has to iterate, and every held-out score costs a refit; refits go from the largest alpha down, each starting
    from the one before.

    Parameters
    ----------
    sigma, alpha : "auto", float or sequence of float, default="auto"
        Width of the kernel, and ridge on the mean loss.
    sharing : "auto", float or sequence of float, default="auto"
        From 0, every task alone, to 1, all tasks pooled. "auto" tries 0, 0.2, 0.5, 0.8 and 1.
    task_penalty : mapping or array of shape (T,), optional
        The ridge on each task's own part relative to the others'.
    task_column : str or int, optional
        The column of X that holds the task. Without it, ``tasks=`` is to be given to every method.
    unknown_task : {"shared", "error"}, default="shared"
        What a task that was not there in training gets: what all tasks share, or an error.
    kernel : {"rbf", "laplace", "linear", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        Or a sum such as "rbf+linear".
        As in :class:`leastwise.LSPC`.
    bias : {"shared", None}, default="shared"
        An unpenalised intercept per class, common to all tasks, or none.
    cv : int, "loo", splitter, iterable of splits or None, default=5
        How rows are held out; so many folds are stratified by task and class together.
    scoring : str or callable, default="log_loss"
        What the search maximises on held-out predictions, as in :class:`leastwise.MultiTaskLSPC`.
    extrapolate : bool, default=False
        Believe the scores of rows wherever they are. Otherwise probabilities go to the class shares beyond the reach
        of the training rows, see :mod:`leastwise.calibration.extrapolation`. (Kernels of a distance only.)
    class_weight : dict or "balanced", optional
        Weights of the classes; those that a dict does not name have weight 1.
    solver, max_iter, tol : default="auto", 200 and 1e-6
        As in :class:`leastwise.KernelLogisticRegression`.
    degree, coef0 : default=3 and 1.0
        Shape of the kernels "poly" and "sigmoid".
    n_jobs : int, optional
        How many sigmas are tried side by side: None is 1 unless a joblib context says otherwise, -1 all processors.
        What is chosen does not depend on it. See the page "Jobs and threads".
    random_state : int, RandomState or None, default=None
        For the shuffling of folds. None is a fixed seed.
    verbose : int, default=0
        1 prints a line for every sigma and sharing.

    Attributes
    ----------
    classes_, tasks_ : ndarray
    sigma_, alpha_, sharing_ : float
        The chosen parameters.
    dual_coef_, intercept_ : ndarrays of shape (n, n_classes) and (n_classes,)
    centers_ : array or sparse matrix of shape (n, n_features)
        The training rows; ``center_indices_`` with a precomputed kernel.
    reach_ : Reach or None
        How far from the data the model is trusted.
    n_iter_ : int
        Iterations of the last fit, the one of all rows.
    heldout_scores_, heldout_decision_, heldout_proba_, heldout_rows_, cv_results_
        As in :class:`leastwise.MultiTaskLSPC`.
    jitter_ : float
        What was added to the diagonal of the kernel matrix to make it positive definite.

    Examples
    --------
    >>> from leastwise import MultiTaskKernelLogisticRegression
    >>> from leastwise.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=4, n_rows=20, random_state=0)
    >>> model = MultiTaskKernelLogisticRegression(1.0, 0.01, 0.5, random_state=0)
    >>> model.fit(data.X, data.y, tasks=data.task).predict(data.X[:2], tasks=data.task[:2]).shape
    (2,)
    """

    def __init__(
        self,
        sigma: Any = "auto",
        alpha: Any = "auto",
        sharing: Any = "auto",
        *,
        task_penalty: Any = None,
        task_column: Any = None,
        unknown_task: str = "shared",
        kernel: Any = "rbf",
        bias: str | None = "shared",
        cv: Any = 5,
        scoring: Any = "log_loss",
        extrapolate: bool = False,
        class_weight: Any = None,
        solver: str = "auto",
        max_iter: int = 200,
        tol: float = 1e-6,
        degree: int = 3,
        coef0: float = 1.0,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.sigma = sigma
        self.alpha = alpha
        self.sharing = sharing
        self.task_penalty = task_penalty
        self.task_column = task_column
        self.unknown_task = unknown_task
        self.kernel = kernel
        self.bias = bias
        self.cv = cv
        self.scoring = scoring
        self.extrapolate = extrapolate
        self.class_weight = class_weight
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.degree = degree
        self.coef0 = coef0
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, tasks: Any = None
    ) -> MultiTaskKernelLogisticRegression:
        """Choose sigma, alpha and sharing, then fit to all rows.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
            Rows, with the task column if there is one; with ``kernel="precomputed"`` the (n, n) kernel matrix.
        y : array-like of shape (n,)
            Classes.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows. A weight of 2 is the same as the row twice, 0 as no row. Whole numbers are counts of
            observations; other weights say how much a row matters.
        groups : array-like of shape (n,) or "duplicates", optional
            Rows of one group are held out together. "duplicates": rows with equal inputs are a group.
        tasks : array-like of shape (n,), optional
            The task of every row, any hashable ids, where X does not hold them.
        """
        return self._fit(X, y, sample_weight, groups, tasks)

    def _spec(self) -> Spec:
        return Spec.of(
            self,
            ClassTargets(class_weight=self.class_weight),
            family="task logistic",
            center_rules=("random", "kmeans", "kmeans++", "leverage", "class"),
            sigma_multiples=(0.3, 0.6, 1.0, 1.7),
            sigma_ratio=1.7,
            alpha_values=tuple(10.0 ** np.arange(-6, 0.1, 1.5)),
            sharings=(0.0, 0.2, 0.5, 0.8, 1.0),
        )
