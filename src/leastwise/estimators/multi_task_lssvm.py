"""Multi-task least-squares support vector machines: regression and classification."""

from __future__ import annotations

from typing import Any

from leastwise.estimators.classifiers import TaskClassifier
from leastwise.estimators.docs import documented
from leastwise.estimators.explaining import task_influence
from leastwise.estimators.plans import task_plan
from leastwise.estimators.regressors import TaskRegressor
from leastwise.estimators.task_streaming import fit_stream
from leastwise.fitting.spec import Spec
from leastwise.problem.targets import ClassTargets, ValueTargets, check_bounds

#: Values of ``solver``.
#: sharing="auto": linear functions of tasks are often almost, but not exactly, equal.
SHARINGS = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.998, 1.0)
#: Variances of bias="shrunk", and, with 0 and infinity, of "auto".
INTERCEPT_RATIOS = (0.03, 0.3)


@documented
class MultiTaskLSSVR(TaskRegressor):
    r"""Multi-task least-squares support vector regression, tuned in closed form.

    The function of each task t is the sum of a part shared by all tasks and a task-specific part, with an intercept
    (Xu et al. 2013)::

        F(x, t) = <w_0 + v_t, phi(x)> + b_t

        min  1/2 |w_0|^2 + lambda/(2m) sum_t |v_t|^2 + gamma/2 sum_i (y_i - F(x_i, t_i))^2                      (20)

    In the dual (24) this is one system of n unknowns with the Gram matrix ``k(x_i, x_j) (sharing + (1 - sharing)
    [t_i = t_j])``, and unpenalised intercepts correspond to centring rows and targets within the tasks.
    :func:`leastwise.problem.coupling.from_gamma_lambda` converts the parameters of the paper.

    Parameters
    ----------
    %(sigma)s
    %(alpha)s
    %(sharing)s
        %(close_tasks)s
    %(similarity)s
    %(task_penalty)s
    %(task_column)s
    %(unknown_task)s
    %(kernel)s
        Here "auto" adds a linear part: it chooses between "rbf+linear" and "laplace+linear".
    %(scale)s
    %(metric)s
    %(categories)s
    %(linear_weight)s
    %(n_centers)s
        %(fixed_size)s
    %(centers.task)s
    %(bias.task)s
    %(cv)s
    %(scoring.values)s
        "r2" is over all tasks, and "task_r2" the mean over tasks; the linear model is shared by all tasks.
    %(solver.task_lssvm)s
    %(bounds)s
    %(prune)s
    %(search_rows)s
    %(tol.krylov)s
    %(max_iter.krylov)s
    %(degree)s
    %(coef0)s
    %(n_jobs)s
    %(random_state)s
    %(verbose)s

    Attributes
    ----------
    %(tasks_)s
    %(task_index_)s
    %(sigma_)s
    %(alpha_)s
    %(sharing_)s
    %(intercept_ratio_)s
    %(linear_weight_)s
    %(similarity_)s
    %(coupling_)s
    %(relation_)s
    %(coupling_matrix_)s
    %(kernel_)s
    %(scale_)s
    %(inputs_)s
    %(feature_weights_)s
    %(categories_)s
    %(centers_)s
    %(center_indices_)s
    %(form_)s
        In units of ``unit_``.
    %(dual_coef_)s
    %(coef_.task)s
    %(shared_coef_)s
    %(intercept_)s
        That of unseen tasks, if tasks have their own intercepts. In units of ``unit_``.
    %(task_intercept_)s
    %(unit_)s
    %(offset_)s
    %(flat_)s
    %(heldout_prediction_)s
    %(residuals_)s
    %(neighbourhood_)s
    %(training_record_)s
    %(cv_results_)s
    %(jitter_)s
    %(pruning_)s
    %(n_iter_.krylov)s
    %(residual_)s
    %(n_features_in_)s
        %(with_task_column)s
    %(feature_names_in_)s

    References
    ----------
    %(xu_2014)s

    %(nam_2012)s

    Examples
    --------
    >>> from leastwise import MultiTaskLSSVR
    >>> from leastwise.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=8, n_rows=30, kind="regression", random_state=0)
    >>> model = MultiTaskLSSVR(random_state=0).fit(data.X, data.y, tasks=data.task)
    >>> model.predict_interval(data.X[:2], tasks=data.task[:2]).shape
    (2, 2)
    """

    def __init__(
        self,
        sigma: Any = "auto",
        alpha: Any = "auto",
        sharing: Any = "auto",
        *,
        similarity: Any = "shared",
        task_penalty: Any = None,
        task_column: Any = None,
        unknown_task: str = "shared",
        kernel: Any = "auto",
        scale: Any = "auto",
        metric: Any = "auto",
        categories: Any = "from_dtype",
        linear_weight: Any = "auto",
        n_centers: Any = "auto",
        centers: Any = "random",
        bias: Any = "auto",
        cv: Any = "loo",
        scoring: Any = "cautious",
        solver: str = "auto",
        bounds: Any = None,
        prune: float | None = None,
        search_rows: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 500,
        degree: int = 3,
        coef0: float = 1.0,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.sigma = sigma
        self.alpha = alpha
        self.sharing = sharing
        self.similarity = similarity
        self.task_penalty = task_penalty
        self.task_column = task_column
        self.unknown_task = unknown_task
        self.kernel = kernel
        self.scale = scale
        self.metric = metric
        self.categories = categories
        self.linear_weight = linear_weight
        self.n_centers = n_centers
        self.centers = centers
        self.bias = bias
        self.cv = cv
        self.scoring = scoring
        self.solver = solver
        self.bounds = bounds
        self.prune = prune
        self.search_rows = search_rows
        self.tol = tol
        self.max_iter = max_iter
        self.degree = degree
        self.coef0 = coef0
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, tasks: Any = None) -> MultiTaskLSSVR:
        """Choose the hyperparameters and solve.

        Parameters
        ----------
        %(X.task)s
            %(dask)s
        %(y.values)s
        %(sample_weight)s
        %(groups)s
        %(tasks)s

        Returns
        -------
        %(self)s
        """
        return self._fit(X, y, sample_weight, groups, tasks)

    def _spec(self) -> Spec:
        bounds = check_bounds(self.bounds)
        targets = ValueTargets(bias=self.bias is not None, owner=type(self).__name__, bounds=bounds)
        rules = ("random", "kmeans", "kmeans++", "leverage", "task")
        grids: dict[str, Any] = {"sharings": SHARINGS, "auto_intercept_ratios": INTERCEPT_RATIOS}
        kernels = ("rbf+linear", "laplace+linear")
        return Spec.of(self, targets, family="task machine", center_rules=rules, auto_kernels=kernels, **grids)

    plan = task_plan
    influence = task_influence
    fit_stream = fit_stream


@documented
class MultiTaskLSSVC(TaskClassifier):
    r"""Multi-task least-squares support vector classifier with calibrated probabilities, tuned in closed form.

    The classifier (18) of Xu et al. (2013) is :class:`MultiTaskLSSVR` with targets of -1 and 1: multiplied by the
    labels, which are their own inverses, the two systems are the same. There is one problem for each class against
    the rest, and all are solved together. The hyperparameters and the calibration are chosen on held-out scores.

    Parameters
    ----------
    %(sigma)s
    %(alpha)s
    %(sharing)s
        %(close_tasks)s
    %(similarity)s
    %(task_penalty)s
    %(task_column)s
    %(unknown_task)s
        %(unseen_calibration)s
    %(kernel)s
    %(scale)s
    %(metric)s
    %(categories)s
    %(linear_weight)s
    %(n_centers)s
        %(fixed_size)s
    %(centers.class_task)s
    %(bias.task)s
    %(cv)s
        %(task_folds)s
    %(scoring)s
        %(task_auc)s
    %(calibration)s
        %(clip_signed)s
    %(extrapolate)s
    %(class_weight)s
    %(solver.task_lssvm)s
    %(prune)s
    %(search_rows)s
    %(tol.krylov)s
    %(max_iter.krylov)s
    %(degree)s
    %(coef0)s
    %(n_jobs)s
    %(random_state)s
    %(verbose)s

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
    %(intercept_ratio_)s
    %(linear_weight_)s
    %(similarity_)s
    %(coupling_)s
    %(relation_)s
    %(coupling_matrix_)s
    %(kernel_)s
    %(scale_)s
    %(inputs_)s
    %(feature_weights_)s
    %(categories_)s
    %(centers_)s
    %(center_indices_)s
    %(form_)s
    %(dual_coef_)s
        They are alpha_i y_i in the paper.
    %(coef_.task)s
    %(shared_coef_)s
    %(intercept_)s
        That of unseen tasks, if tasks have their own intercepts.
    %(task_intercept_)s
    %(calibrator_)s
    %(unseen_task_calibrator_)s
    %(unseen_task_scores_)s
    %(extrapolation_)s
    %(neighbourhood_)s
    %(heldout_scores_)s
    %(heldout_decision_)s
    %(heldout_proba_)s
    %(heldout_rows_)s
    %(training_record_)s
    %(cv_results_)s
    %(jitter_)s
    %(pruning_)s
    %(n_iter_.krylov)s
    %(residual_)s
    %(n_features_in_)s
        %(with_task_column)s
    %(feature_names_in_)s

    References
    ----------
    %(xu_2014)s

    %(nam_2012)s

    Examples
    --------
    >>> from leastwise import MultiTaskLSSVC
    >>> from leastwise.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=8, n_rows=30, random_state=0)
    >>> model = MultiTaskLSSVC(random_state=0).fit(data.X, data.y, tasks=data.task)
    >>> model.predict_proba(data.X[:1], tasks=data.task[:1]).shape
    (1, 2)
    """

    def __init__(
        self,
        sigma: Any = "auto",
        alpha: Any = "auto",
        sharing: Any = "auto",
        *,
        similarity: Any = "shared",
        task_penalty: Any = None,
        task_column: Any = None,
        unknown_task: str = "shared",
        kernel: Any = "auto",
        scale: Any = "auto",
        metric: Any = "auto",
        categories: Any = "from_dtype",
        linear_weight: Any = "auto",
        n_centers: Any = "auto",
        centers: Any = "random",
        bias: Any = "auto",
        cv: Any = "loo",
        scoring: Any = "log_loss",
        calibration: str | None = "blend",
        extrapolate: bool = False,
        class_weight: Any = None,
        solver: str = "auto",
        prune: float | None = None,
        search_rows: Any = "auto",
        tol: float = 1e-6,
        max_iter: int = 500,
        degree: int = 3,
        coef0: float = 1.0,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.sigma = sigma
        self.alpha = alpha
        self.sharing = sharing
        self.similarity = similarity
        self.task_penalty = task_penalty
        self.task_column = task_column
        self.unknown_task = unknown_task
        self.kernel = kernel
        self.scale = scale
        self.metric = metric
        self.categories = categories
        self.linear_weight = linear_weight
        self.n_centers = n_centers
        self.centers = centers
        self.bias = bias
        self.cv = cv
        self.scoring = scoring
        self.calibration = calibration
        self.extrapolate = extrapolate
        self.class_weight = class_weight
        self.solver = solver
        self.prune = prune
        self.search_rows = search_rows
        self.tol = tol
        self.max_iter = max_iter
        self.degree = degree
        self.coef0 = coef0
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, tasks: Any = None) -> MultiTaskLSSVC:
        """Choose the hyperparameters, solve, and calibrate.

        Parameters
        ----------
        %(X.task)s
            %(dask)s
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
        targets = ClassTargets(signed=True, class_weight=self.class_weight)
        rules = ("random", "kmeans", "kmeans++", "leverage", "class", "task")
        grids: dict[str, Any] = {"sharings": SHARINGS, "auto_intercept_ratios": INTERCEPT_RATIOS}
        return Spec.of(self, targets, family="task machine", center_rules=rules, **grids)

    plan = task_plan
    influence = task_influence
    fit_stream = fit_stream
