"""The least-squares probabilistic classifier for many related tasks."""

from __future__ import annotations

from typing import Any

from leastwise.estimators.base import TaskClassifier
from leastwise.estimators.explaining import task_influence
from leastwise.estimators.fitting import task_plan
from leastwise.estimators.spec import Spec
from leastwise.estimators.task_streaming import fit_stream
from leastwise.problem.targets import ClassTargets


class MultiTaskLSPC(TaskClassifier):
    r"""Least-squares probabilistic classifier for many related tasks, tuned and calibrated in closed form.

    Each task t has scores of its own, a part that all tasks share and a part of its own (Simm et al. 2011)::

        F_y(x, t) = (beta_y0 + beta_yt)' phi(x)

        min  1/(2n) sum_i (F_y(x_i, t_i) - [y_i = y])^2 + lambda/2 |beta_y0|^2 + gamma/(2T) sum_t |beta_yt|^2      (4)

    Here ``sharing`` says how much is common and ``alpha`` how strong the ridge is
    (:func:`leastwise.problem.coupling.from_lambda_gamma` has the relation). In the dual, Lemma 1, this is one system
    of n unknowns with the Gram matrix ``G_ij (sharing + (1 - sharing) [t_i = t_j])``: the number of tasks does not
    matter. With fewer centres than rows it is a block-arrow system, linear in the number of rows and of tasks.

    Parameters
    ----------
    sigma : "auto", float or sequence of float, default="auto"
        Width of the kernel, as in :class:`leastwise.LSPC`.
    alpha : "auto", float or sequence of float, default="auto"
        Ridge on the mean loss over all rows of all tasks.
    sharing : "auto", float or sequence of float, default="auto"
        From 0, every task alone, to 1, all tasks pooled. "auto" tries 0, 0.05, 0.2, 0.5, 0.8, 0.95 and 1 (those on
        the way to the best for each sigma, all of them for the best sigma).
    similarity : {"shared", "learned", "correlation", "inputs"}, matrix, frame or callable, default="shared"
        Which tasks share. "shared": all alike. "learned": groups of tasks that belong together, found by their
        evidence, and tasks alone; a task that contradicts the others is kept apart then (up to 300 tasks).
        "correlation": agreement of the tasks' own models; "inputs": how alike their inputs are. A matrix of shape
        (T, T), in the order of ``tasks_``, a frame with the ids as names of rows and columns, or a callable
        ``f(X, y, tasks)`` that returns one: symmetric, 0 or more. All but the first two tie tasks in pairs (section 4
        of Nam et al. 2012).
    task_penalty : mapping or array of shape (T,), optional
        The ridge on each task's own part relative to the others', omega_t in section 3 of Nam et al. (2012); 1 for
        tasks that a mapping does not name. A task with a large one keeps close to what is shared.
    task_column : str or int, optional
        The column of X that holds the task; by name in frames, else by position, which may count from the end.
        Without it, ``tasks=`` is to be given to every method.
    unknown_task : {"shared", "error"}, default="shared"
        What a task that was not there in training gets: what all tasks share, with a calibration of its own made on
        tasks held out whole; or an error.
    kernel : {"rbf", "laplace", "linear", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        Or a sum such as "rbf+linear".
        As in :class:`leastwise.LSPC`.
    norm : {"function", "coefficients"}, default="function"
        What the ridge is on: the norm of the functions, or of the coefficients as in the paper. Held-out scores of
        the second cost more with many tasks, since a row takes its basis function out of every task; beyond 100,000
        rows times tasks it leaves it there.
    n_centers : int, optional
        So many centres instead of all rows. With ``similarity="shared"`` the cost is then linear in rows and tasks,
        and memory small; with others it saves nothing. The centres are places: unlike in :class:`leastwise.LSPC` they
        stay when their row is held out, and all folds have the ridge of the average one.
    centers : {"random", "kmeans", "kmeans++", "leverage", "class", "task"} or array (b, n_features), default="random"
        How they are chosen: "random" rows; the middles of clusters, "kmeans"; rows far from each other by "kmeans++";
        rows drawn by approximate ridge leverage scores, "leverage", at sigma or the middle of its grid, with "auto"
        at the median distance; as many random rows of each class, "class", or of each task, "task". An array is used
        as it is.
    bias : {"shared", None}, default=None
        An unpenalised intercept per class, common to all tasks; or none, as in the paper.
    cv : "loo", int, splitter, iterable of splits or None, default="loo"
        How rows are held out: one by one, in so many folds stratified
        by task and class together, or as a splitter says (one that asks for groups is given the tasks, if there are
        no other groups). A fold may hold all rows of a task: these then get what the other tasks say. With few
        centres and many rows folds must lie within a task each. None holds nothing out: sigma, alpha and sharing must
        be numbers, and ``calibration=None``.
    scoring : str or callable, default="log_loss"
        What the search maximises on held-out predictions: "log_loss", "brier", "accuracy", "f1", "auc" (of all rows
        pooled, as in the paper), "task_auc" (the mean over tasks), a name of scikit-learn's, or a callable
        ``f(estimator, X, y)``, as in :class:`leastwise.LSPC`.
    calibration : {"blend", "temperature", "isotonic", None}, default="blend"
        From scores to probabilities; None is the paper's clip and normalise, eq. (7).
    extrapolate : bool, default=False
        Believe the scores of rows wherever they are; see :class:`leastwise.LSPC`.
    class_weight : dict or "balanced", optional
        Weights of the classes; those that a dict does not name have weight 1.
    solver : {"auto", "dual", "arrow"}, default="auto"
        "dual" is a system of all rows. "arrow" goes through the tasks one by one with a system of the basis
        functions; it needs ``n_centers`` or ``centers``, or ``kernel="linear"`` with ``norm="function"``, and
        ``similarity="shared"``. "auto" is "arrow" where that is possible with fewer basis functions than rows.
    search_rows : "auto", int or None, default="auto"
        On about how many rows sigma, alpha and sharing are searched, whole tasks of them where that is possible.
        None takes all.
    degree, coef0 : default=3 and 1.0
        Shape of the kernels "poly" and "sigmoid".
    n_jobs : int, optional
        How many sigmas are tried side by side: None is 1 unless a joblib context says otherwise, -1 all processors.
        What is chosen does not depend on it. See the page "Jobs and threads".
    random_state : int, RandomState or None, default=None
        For centres that are drawn (``n_centers``) and for the shuffling of ``cv=`` a number of folds. None is a fixed
        seed. The tasks that large data are searched on depend on the data alone; see :doc:`/selection`.
    verbose : int, default=0
        1 prints the plan, and a line for every sigma and sharing.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_prior_ : ndarray of shape (n_classes,)
        Weighted class shares of the training rows, of all tasks.
    tasks_ : ndarray of shape (T,)
        The ids of the tasks, sorted if they can be.
    sigma_, alpha_, sharing_ : float
        The chosen parameters.
    similarity_ : ndarray of shape (T, T)
        Similarities of the tasks; ones where all are alike.
    coupling_ : ndarray of shape (T, T)
        The task matrix B: how much the tasks have in common at ``sharing_``.
    dual_coef_ : ndarray of shape (n, n_classes)
        One coefficient for every row, where the kernel is the Gram matrix; otherwise
    coef_, shared_coef_ : ndarrays of shape (T, b, n_classes) and (b, n_classes)
        coefficients on the centres for each task, and for a task that is not known.
    centers_ : array or sparse matrix of shape (b, n_features)
        The centres; ``center_indices_`` with a precomputed kernel.
    intercept_ : ndarray of shape (n_classes,)
    calibrator_, unseen_task_calibrator_ : object
        From scores to probabilities, for the tasks and for tasks that are not known.
    reach_ : Reach or None
        How far from the data the model is trusted.
    heldout_scores_, heldout_decision_, heldout_proba_ : ndarray
        What ``scores``, ``decision_function`` and ``predict_proba`` say of the training rows when these are held out.
        Not there with ``cv=None``.
    unseen_task_scores_ : ndarray of shape (n, n_classes)
        What ``scores`` would say of the training rows if their whole task were not known. There only where all rows
        were searched, and ``unseen_task_calibrator_`` is not None.
    heldout_rows_ : HeldRows
        The true classes, weights, groups and tasks of the training rows. Not there with ``cv=None``.
    cv_results_ : dict of ndarray
        All points of the search: ``param_sigma``, ``param_alpha``, ``param_sharing``, ``mean_test_score``,
        ``rank_test_score`` and ``n_rows``.
    jitter_ : float
        What was added to a diagonal to make it positive definite.
    n_features_in_, feature_names_in_
        As in scikit-learn; the task column counts.

    References
    ----------
    J. Simm, M. Sugiyama, T. Kato, Computationally Efficient Multi-task Learning with Least-squares Probabilistic
    Classifiers, IPSJ Transactions on Computer Vision and Applications 3, 1-8, 2011.

    H. Nam, H. Hachiya, M. Sugiyama, Computationally Efficient Multi-label Classification by Least-Squares
    Probabilistic Classifiers, 2012.

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
        kernel: Any = "rbf",
        norm: str = "function",
        n_centers: int | None = None,
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
        """Choose sigma, alpha and sharing, solve, calibrate.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
            Rows, with the task column if there is one; with ``kernel="precomputed"`` the (n, n) kernel matrix. Arrays
            and frames of Dask, with y, sample_weight and tasks of Dask too, are fitted where they are
            (:doc:`/distributed`).
        y : array-like of shape (n,)
            Classes. A task need not have seen all of them.
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
            family="tasks",
            center_rules=("random", "kmeans", "kmeans++", "leverage", "class", "task"),
        )

    plan = task_plan
    influence = task_influence
    fit_stream = fit_stream
