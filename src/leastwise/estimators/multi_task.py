"""The least-squares probabilistic classifier for many related tasks."""

from __future__ import annotations

from typing import Any

from leastwise.estimators.classifiers import TaskClassifier
from leastwise.estimators.docs import documented
from leastwise.estimators.explaining import task_influence
from leastwise.estimators.plans import task_plan
from leastwise.estimators.task_streaming import fit_stream
from leastwise.fitting.spec import Spec
from leastwise.problem.targets import ClassTargets


@documented
class MultiTaskLSPC(TaskClassifier):
    r"""Least-squares probabilistic classifier for many related tasks, tuned and calibrated in closed form.

    The scores of each task t are the sum of a part shared by all tasks and a task-specific part (Simm et al. 2011)::

        F_y(x, t) = (beta_y0 + beta_yt)' phi(x)

        min  1/(2n) sum_i (F_y(x_i, t_i) - [y_i = y])^2 + lambda/2 |beta_y0|^2 + gamma/(2T) sum_t |beta_yt|^2      (4)

    Here ``sharing`` is the share of the common part and ``alpha`` the ridge
    (:func:`leastwise.problem.coupling.from_lambda_gamma` has the relation). In the dual, Lemma 1, this is one system
    of n unknowns with the Gram matrix ``G_ij (sharing + (1 - sharing) [t_i = t_j])``, for any number of tasks.
    With fewer centres than rows it is a block-arrow system, whose cost is linear in the number of rows and of tasks.

    Parameters
    ----------
    %(sigma)s
    %(alpha)s
        The mean is over all rows of all tasks.
    %(sharing)s
        "auto" tries 0, 0.05, 0.2, 0.5, 0.8, 0.95 and 1 (for each sigma those on the way to the best value, for the
        best sigma all of them).
    %(similarity)s
    %(task_penalty)s
    %(task_column)s
    %(unknown_task)s
        %(unseen_calibration)s
    %(kernel)s
    %(scale)s
    %(metric)s
    %(categories)s
    %(norm)s
        Held-out scores of "coefficients" cost more with many tasks, since the basis function of a row is removed from
        every task; above 100,000 rows times tasks the basis function stays.
    %(n_centers)s
        With ``similarity="shared"``, the cost is then linear in rows and tasks, and little memory is needed; with
        others it saves nothing. Unlike in :class:`leastwise.LSPC`, centres stay when their row is held out, and all
        folds have the ridge of the average fold.
    %(centers.class_task)s
    %(bias)s
        It is shared by all tasks. The paper has none.
    %(cv)s
        %(task_folds)s
        With few centres and many rows, each fold must lie within a task.
    %(scoring)s
        %(task_auc)s
    %(calibration)s
        None clips and normalises, eq. (7).
    %(extrapolate)s
    %(class_weight)s
    solver : {"auto", "dual", "arrow"}, default="auto"
        "dual" is one system with as many unknowns as rows. "arrow" goes through the tasks one by one with a system of
        the basis functions; it needs ``n_centers`` or ``centers``, or ``kernel="linear"`` with ``norm="function"``,
        and ``similarity="shared"``. "auto" is "arrow" if that is possible with fewer basis functions than rows.
    search_rows : "auto", int or None, default="auto"
        Approximate number of rows on which sigma, alpha and sharing are searched; whole tasks if possible.
        None uses all rows.
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
    %(coef_.task)s
    %(shared_coef_)s
    %(intercept_)s
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
    %(n_features_in_)s
        %(with_task_column)s
    %(feature_names_in_)s

    References
    ----------
    %(simm_2011)s

    %(nam_2012)s

    Examples
    --------
    >>> from leastwise import MultiTaskLSPC
    >>> from leastwise.datasets import make_related_tasks
    >>> data = make_related_tasks(n_tasks=8, n_rows=30, random_state=0)
    >>> model = MultiTaskLSPC(random_state=0).fit(data.X, data.y, tasks=data.task)
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
        norm: str = "function",
        n_centers: Any = "auto",
        centers: Any = "random",
        bias: str | None = None,
        cv: Any = "loo",
        scoring: Any = "log_loss",
        calibration: str | None = "blend",
        extrapolate: bool = False,
        class_weight: Any = None,
        solver: str = "auto",
        search_rows: Any = "auto",
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
        self.norm = norm
        self.n_centers = n_centers
        self.centers = centers
        self.bias = bias
        self.cv = cv
        self.scoring = scoring
        self.calibration = calibration
        self.extrapolate = extrapolate
        self.class_weight = class_weight
        self.solver = solver
        self.search_rows = search_rows
        self.degree = degree
        self.coef0 = coef0
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, tasks: Any = None) -> MultiTaskLSPC:
        """Choose sigma, alpha and sharing, solve, and calibrate.

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
        return Spec.of(
            self,
            ClassTargets(class_weight=self.class_weight),
            family="tasks",
            center_rules=("random", "kmeans", "kmeans++", "leverage", "class", "task"),
        )

    plan = task_plan
    influence = task_influence
    fit_stream = fit_stream
