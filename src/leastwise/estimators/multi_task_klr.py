"""Kernel logistic regression for many related tasks."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.estimators.classifiers import TaskClassifier
from leastwise.estimators.docs import documented
from leastwise.estimators.plans import task_plan
from leastwise.fitting.spec import Spec
from leastwise.problem.targets import ClassTargets


@documented
class MultiTaskKernelLogisticRegression(TaskClassifier):
    r"""Kernel logistic regression for many related tasks, tuned by cross-validation.

    :class:`leastwise.KernelLogisticRegression` with the kernel of rows and tasks together::

        k(x, x') (sharing + (1 - sharing) [t = t'])

    This is the maximum-likelihood counterpart of :class:`leastwise.MultiTaskLSPC`, and the method that the paper
    compares it with (KLR-MT). The solver is iterative, and every held-out score costs a refit; refits go from the
    largest alpha down, each starting at the solution of the one before.

    Parameters
    ----------
    %(sigma)s
    %(alpha)s
    %(sharing)s
        "auto" tries 0, 0.2, 0.5, 0.8 and 1.
    %(task_penalty)s
    %(task_column)s
    %(unknown_task)s
    %(kernel)s
    %(scale)s
    %(metric)s
    %(categories)s
    %(bias)s
        It is shared by all tasks.
    %(cv)s
        %(task_folds)s
    %(scoring)s
        %(task_auc)s
    %(extrapolate)s
    %(class_weight)s
    %(solver.logistic)s
    %(max_iter.logistic)s
    %(tol.logistic)s
    %(degree)s
    %(coef0)s
    %(n_jobs)s
    %(random_state.logistic)s
    %(verbose.logistic)s

    Attributes
    ----------
    %(classes_)s
    %(class_prior_)s
        %(all_tasks)s
    %(tasks_)s
    %(task_index_)s
    %(sigma_)s
    %(alpha_)s
    %(sharing_)s
    %(kernel_)s
    %(scale_)s
    %(inputs_)s
    %(feature_weights_)s
    %(categories_)s
    %(centers_)s
        They are the training rows.
    %(center_indices_)s
    %(form_)s
        Here it is ``dual_coef_``.
    %(dual_coef_)s
    %(intercept_)s
    %(calibrator_)s
        %(softmax)s
    unseen_task_calibrator_ : None
        Scores of unseen tasks are mapped by ``calibrator_``.
    %(extrapolation_)s
    %(neighbourhood_)s
    %(heldout_scores_)s
    %(heldout_decision_)s
    %(heldout_proba_)s
    %(heldout_rows_)s
    %(cv_results_)s
    %(jitter_)s
    %(n_iter_.logistic)s
    %(n_features_in_)s
        %(with_task_column)s
    %(feature_names_in_)s

    References
    ----------
    %(simm_2011)s

    %(nam_2012)s

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
        kernel: Any = "auto",
        scale: Any = "auto",
        metric: Any = "auto",
        categories: Any = "from_dtype",
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
        self.scale = scale
        self.metric = metric
        self.categories = categories
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
        """Choose sigma, alpha and sharing, and fit to all rows.

        Parameters
        ----------
        %(X.task)s
        %(y.classes)s
            %(few_classes)s
        %(sample_weight)s
        %(groups)s
        %(tasks)s

        Returns
        -------
        %(self)s
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

    plan = task_plan
