"""Multi-task least-squares support vector machines: regression and classification."""

from __future__ import annotations

from typing import Any

from leastwise.estimators.base import TaskClassifier, TaskRegressor
from leastwise.estimators.explaining import task_influence
from leastwise.estimators.fitting import task_plan
from leastwise.estimators.spec import Spec
from leastwise.estimators.task_streaming import fit_stream
from leastwise.problem.targets import ClassTargets, ValueTargets

#: Values of ``solver``.
#: sharing="auto": functions of a linear kernel may be almost, but not quite, the same.
SHARINGS = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99, 0.998, 1.0)
#: Variances of bias="shrunk", and, with 0 and infinity, of "auto".
SPREADS = (0.03, 0.3)


class MultiTaskLSSVR(TaskRegressor):
    r"""Multi-task least-squares support vector regression, tuned in closed form.

    Each task t has a function with a part that all tasks share and a part of its own, and an intercept (Xu et al.
    2013)::

        F(x, t) = <w_0 + v_t, phi(x)> + b_t

        min  1/2 |w_0|^2 + lambda/(2m) sum_t |v_t|^2 + gamma/2 sum_i (y_i - F(x_i, t_i))^2                      (20)

    In the dual (24) this is one system of n unknowns with the Gram matrix ``k(x_i, x_j) (sharing + (1 - sharing)
    [t_i = t_j])``, and free intercepts are the centring of rows and targets within the tasks.
    :func:`leastwise.problem.coupling.from_gamma_lambda` has the relation between the paper's parameters and these.

    Parameters
    ----------
    sigma : "auto", float or sequence of float, default="auto"
        Width of the kernel, ``exp(-d^2 / (2 sigma^2))`` for the Gaussian. A number is used as it is, a sequence is a
        grid, "auto" is a grid of multiples of the median distance that grows at its border.
    alpha : "auto", float or sequence of float, default="auto"
        Ridge on the mean loss.
    sharing : "auto", float or sequence of float, default="auto"
        From 0, every task alone, to 1, all tasks pooled.
    similarity : {"shared", "learned", "correlation", "inputs"}, matrix, frame or callable, default="shared"
        How alike the tasks are, as in :class:`leastwise.MultiTaskLSPC`.
    task_penalty : mapping or array of shape (n_tasks,), optional
        Ridges of the tasks' own parts relative to one another.
    task_column : str or int, optional
        The column of X that holds the task; otherwise ``tasks=`` is given.
    unknown_task : {"shared", "error"}, default="shared"
        What to do about tasks that were not there in training: predict by what all tasks share, or refuse.
    kernel : str or callable, default="rbf+linear"
        "rbf", "laplace", "linear", "poly", "sigmoid", "precomputed", a sum of "rbf", "laplace" and "linear" such as
        "rbf+linear", or a callable ``f(X, Y)``. In a sum the linear part is about the mean of the training rows and
        scaled such that its k(x, x) is 1 on average, as that of the others is.
    linear_weight : "auto", float or sequence of float, default="auto"
        Weight of the linear part of a sum; inf leaves nothing else. "auto" tries 1 and inf.
    n_centers : int, optional
        So many centres instead of all rows ("fixed-size LS-SVM").
    centers : {"random", "kmeans", "kmeans++", "leverage", "task"} or array (b, n_features), default="random"
        How they are chosen: "random" rows; the middles of clusters, "kmeans"; rows far from each other by "kmeans++";
        rows drawn by approximate ridge leverage scores, "leverage", at sigma or the middle of its grid, with "auto"
        at the median distance; as many random rows of each task, "task". An array is used as it is.
    bias : {"auto", "task", "shared", "shrunk", None} or float, default="auto"
        Intercepts. "task" is the paper's, a free one for every task, which small tasks overfit; "shared" a free one
        for all; "shrunk" a free one for all and beside it one of each task's own, whose variance in units of the
        noise's, its *spread*, is 0.03 or 0.3, as held-out rows decide; a number is that spread. "auto" chooses among
        all of these.
    cv : "loo", int, splitter, iterable of splits or None, default="loo"
        How rows are held out. "loo" leaves out each row, or each group
        where ``groups`` are given. None holds nothing out: all parameters must be numbers.
    scoring : str or callable, default="cautious"
        What the search maximises on held-out predictions: "r2" (explained variance over all tasks, the mean over the
        outputs), "task_r2" (the mean over tasks), "mse", "mae", a name of scikit-learn's, or a callable
        ``f(estimator, X, y)``. "cautious" is "r2" with a charge for degrees of freedom, and with a linear model that
        all tasks share where what was found is not clearly better than that.
    solver : {"auto", "dual", "arrow", "krylov"}, default="auto"
        "dual" is a system of as many unknowns as rows, whatever the number of tasks; "arrow" goes through the tasks
        one by one, for a linear kernel or few centres: its cost is linear in the rows. "krylov" solves by
        preconditioned block conjugate gradients and never holds the kernel of all rows (section 3.4 of the paper);
        parameters are chosen on some tasks, and a tenth of the rows is held out for what is to be fitted on held-out
        rows. "auto" is "arrow" where that is possible, "dual" up to 4,000 rows where they fit into memory, else
        "krylov", or "arrow" if the linear part alone did best.
    prune : float or int, optional
        Sparsity by pruning (section 3.3): the share, or number, of rows to take away, those of the smallest weights
        first, with a refit at every fifth. ``pruning_`` says what it cost.
    search_rows : "auto", int or None, default="auto"
        On how many rows the parameters are searched; alpha is then refined on all rows. None takes all for both.
    tol, max_iter : float and int, default=1e-6 and 500
        Stop of ``solver="krylov"``: residual relative to the right-hand side.
    degree, coef0 : default=3 and 1.0
        Shape of the kernels "poly" and "sigmoid".
    n_jobs : int, optional
        How many sigmas are tried side by side: None is 1 unless a joblib context says otherwise, -1 all processors.
        What is chosen does not depend on it. See the page "Jobs and threads".
    random_state : int, RandomState or None, default=None
        For centres that are drawn (``n_centers``) and for the shuffling of ``cv=`` a number of folds. None is a fixed
        seed. The tasks that large data are searched on depend on the data alone; see :doc:`/selection`.
    verbose : int, default=0
        1 prints the plan, and a line for every step of the search.

    Attributes
    ----------
    tasks_ : ndarray
        Ids of the tasks.
    sigma_, alpha_, sharing_, spread_, linear_weight_ : float
        The chosen parameters. ``spread_`` is 0 for a shared intercept, inf for free ones.
    similarity_, coupling_ : ndarray of shape (T, T)
        Similarities of the tasks, and the task matrix B.
    dual_coef_ : ndarray of shape (n, n_outputs)
        One coefficient for every row, or ``coef_`` (T, b, n_outputs) and ``shared_coef_`` on the centres; in units of
        ``unit_``, a power of two that y was divided by.
    intercept_ : ndarray of shape (n_outputs,)
        That of a task that is not known, in units of ``unit_``.
    task_intercept_ : ndarray of shape (T, n_outputs)
        Those of the tasks, where they have some of their own.
    heldout_prediction_ : ndarray
        What ``predict`` says of the training rows when these are held out.
    cv_results_ : dict of ndarray
        All points of the search.
    pruning_, n_iter_, residual_
        As in :class:`LSSVR`.

    References
    ----------
    S. Xu, X. An, X. Qiao, L. Zhu, Multi-task least-squares support vector machines, Multimedia Tools and Applications
    71, 699-715, 2014.

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
        kernel: Any = "rbf+linear",
        linear_weight: Any = "auto",
        n_centers: int | None = None,
        centers: Any = "random",
        bias: Any = "auto",
        cv: Any = "loo",
        scoring: Any = "cautious",
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
        self.linear_weight = linear_weight
        self.n_centers = n_centers
        self.centers = centers
        self.bias = bias
        self.cv = cv
        self.scoring = scoring
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, tasks: Any = None) -> MultiTaskLSSVR:
        """Choose the parameters and solve.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
            Rows, with the task column if there is one; with ``kernel="precomputed"`` the (n, n) kernel matrix. Arrays
            and frames of Dask, with y, sample_weight and tasks of Dask too, are fitted where they are
            (:doc:`/distributed`).
        y : array-like of shape (n,) or (n, n_outputs)
            Quantities. All outputs have the same parameters, and are solved for at once.
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
        targets = ValueTargets(bias=self.bias is not None, owner=type(self).__name__)
        rules = ("random", "kmeans", "kmeans++", "leverage", "task")
        known: dict[str, Any] = {"center_rules": rules, "sharings": SHARINGS, "spreads": SPREADS}
        return Spec.of(self, targets, family="task machine", **known)

    plan = task_plan
    influence = task_influence
    fit_stream = fit_stream


class MultiTaskLSSVC(TaskClassifier):
    r"""Multi-task least-squares support vector classifier with calibrated probabilities, tuned in closed form.

    The classifier (18) of Xu et al. (2013) is :class:`MultiTaskLSSVR` with targets of -1 and 1: multiplied by the
    labels, which are their own inverses, the two systems are one. Each class is told from the rest, all of them at
    once, and held-out scores make probabilities of the scores.

    Parameters
    ----------
    sigma : "auto", float or sequence of float, default="auto"
        Width of the kernel, ``exp(-d^2 / (2 sigma^2))`` for the Gaussian. A number is used as it is, a sequence is a
        grid, "auto" is a grid of multiples of the median distance that grows at its border.
    alpha : "auto", float or sequence of float, default="auto"
        Ridge on the mean loss.
    sharing : "auto", float or sequence of float, default="auto"
        From 0, every task alone, to 1, all tasks pooled.
    similarity : {"shared", "learned", "correlation", "inputs"}, matrix, frame or callable, default="shared"
        How alike the tasks are, as in :class:`leastwise.MultiTaskLSPC`.
    task_penalty : mapping or array of shape (n_tasks,), optional
        Ridges of the tasks' own parts relative to one another.
    task_column : str or int, optional
        The column of X that holds the task; otherwise ``tasks=`` is given.
    unknown_task : {"shared", "error"}, default="shared"
        What to do about tasks that were not there in training: predict by what all tasks share, or refuse.
    kernel : str or callable, default="rbf"
        "rbf", "laplace", "linear", "poly", "sigmoid", "precomputed", a sum of "rbf", "laplace" and "linear" such as
        "rbf+linear", or a callable ``f(X, Y)``. In a sum the linear part is about the mean of the training rows and
        scaled such that its k(x, x) is 1 on average, as that of the others is.
    linear_weight : "auto", float or sequence of float, default="auto"
        Weight of the linear part of a sum; inf leaves nothing else. "auto" tries 1 and inf.
    n_centers : int, optional
        So many centres instead of all rows ("fixed-size LS-SVM").
    centers : {"random", "kmeans", "kmeans++", "leverage", "class", "task"} or array (b, n_features), default="random"
        How they are chosen: "random" rows; the middles of clusters, "kmeans"; rows far from each other by "kmeans++";
        rows drawn by approximate ridge leverage scores, "leverage", at sigma or the middle of its grid, with "auto"
        at the median distance; as many random rows of each class, "class", or of each task, "task". An array is used
        as it is.
    bias : {"auto", "task", "shared", "shrunk", None} or float, default="auto"
        Intercepts. "task" is the paper's, a free one for every task, which small tasks overfit; "shared" a free one
        for all; "shrunk" a free one for all and beside it one of each task's own, whose variance in units of the
        noise's, its *spread*, is 0.03 or 0.3, as held-out rows decide; a number is that spread. "auto" chooses among
        all of these.
    cv : "loo", int, splitter, iterable of splits or None, default="loo"
        How rows are held out. "loo" leaves out each row, or each group where ``groups`` are
        given. None holds nothing out: all parameters must be numbers, and ``calibration`` None.
    scoring : str or callable, default="log_loss"
        What the search maximises on held-out predictions: "log_loss", "brier", "accuracy", "auc", "f1", "task_auc"
        (the mean over tasks), a name of scikit-learn's, or a callable ``f(estimator, X, y)``.
    calibration : {"blend", "temperature", "isotonic", None}, default="blend"
        How scores become probabilities, see :mod:`leastwise.calibration.calibrators`; fitted to held-out scores. None
        clips (F + 1) / 2 and normalises it.
    extrapolate : bool, default=False
        Whether scores are believed wherever they are, as in :class:`leastwise.LSPC`.
    class_weight : dict or "balanced", optional
        Weights of the classes; those that a dict does not name have weight 1.
    solver : {"auto", "dual", "arrow", "krylov"}, default="auto"
        "dual" is a system of as many unknowns as rows, whatever the number of tasks; "arrow" goes through the tasks
        one by one, for a linear kernel or few centres: its cost is linear in the rows. "krylov" solves by
        preconditioned block conjugate gradients and never holds the kernel of all rows (section 3.4 of the paper);
        parameters are chosen on some tasks, and a tenth of the rows is held out for what is to be fitted on held-out
        rows. "auto" is "arrow" where that is possible, "dual" up to 4,000 rows where they fit into memory, else
        "krylov", or "arrow" if the linear part alone did best.
    prune : float or int, optional
        Sparsity by pruning (section 3.3): the share, or number, of rows to take away, those of the smallest weights
        first, with a refit at every fifth. ``pruning_`` says what it cost.
    search_rows : "auto", int or None, default="auto"
        On how many rows the parameters are searched; alpha is then refined on all rows. None takes all for both.
    tol, max_iter : float and int, default=1e-6 and 500
        Stop of ``solver="krylov"``: residual relative to the right-hand side.
    degree, coef0 : default=3 and 1.0
        Shape of the kernels "poly" and "sigmoid".
    n_jobs : int, optional
        How many sigmas are tried side by side: None is 1 unless a joblib context says otherwise, -1 all processors.
        What is chosen does not depend on it. See the page "Jobs and threads".
    random_state : int, RandomState or None, default=None
        For centres that are drawn (``n_centers``) and for the shuffling of ``cv=`` a number of folds. None is a fixed
        seed. The tasks that large data are searched on depend on the data alone; see :doc:`/selection`.
    verbose : int, default=0
        1 prints the plan, and a line for every step of the search.

    Attributes
    ----------
    classes_, tasks_ : ndarray
    sigma_, alpha_, sharing_, spread_, linear_weight_ : float
        The chosen parameters. ``spread_`` is 0 for a shared intercept, inf for free ones.
    similarity_, coupling_ : ndarray of shape (T, T)
        Similarities of the tasks, and the task matrix B.
    dual_coef_ : ndarray of shape (n, n_classes)
        The paper's alpha_i y_i, or ``coef_`` (T, b, n_classes) and ``shared_coef_`` on the centres.
    intercept_ : ndarray of shape (n_classes,)
        That of a task that is not known.
    task_intercept_ : ndarray of shape (T, n_classes)
        Those of the tasks, where they have some of their own.
    calibrator_, unseen_task_calibrator_, reach_, heldout_scores_, heldout_decision_, heldout_proba_, heldout_rows_
        As in :class:`leastwise.MultiTaskLSPC`.
    cv_results_
        As in :class:`leastwise.MultiTaskLSPC`.
    pruning_, n_iter_, residual_
        As in :class:`LSSVC`.

    References
    ----------
    S. Xu, X. An, X. Qiao, L. Zhu, Multi-task least-squares support vector machines, Multimedia Tools and Applications
    71, 699-715, 2014.

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
        kernel: Any = "rbf",
        linear_weight: Any = "auto",
        n_centers: int | None = None,
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
        """Choose the parameters, solve, calibrate.

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
        targets = ClassTargets(signed=True, class_weight=self.class_weight)
        rules = ("random", "kmeans", "kmeans++", "leverage", "class", "task")
        known: dict[str, Any] = {"center_rules": rules, "sharings": SHARINGS, "spreads": SPREADS}
        return Spec.of(self, targets, family="task machine", **known)

    plan = task_plan
    influence = task_influence
    fit_stream = fit_stream
