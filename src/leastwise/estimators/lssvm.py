"""Least-squares support vector machines for one task: regression and classification."""

from __future__ import annotations

from typing import Any

from leastwise.estimators.base import Classifier, Regressor
from leastwise.estimators.explaining import influence
from leastwise.estimators.fitting import plan
from leastwise.estimators.spec import Spec
from leastwise.estimators.streaming import fit_stream, forget, partial_fit, unfit, without_rows
from leastwise.problem.targets import ClassTargets, ValueTargets

#: Values of ``solver``.


class LSSVR(Regressor):
    r"""Least-squares support vector regression, tuned in closed form.

    A function of the kernel's space and a free intercept, fitted by least squares (Saunders et al. 1998, Suykens et
    al. 2002)::

        F(x) = sum_i a_i k(x, x_i) + b,      min  1/(2n) sum_i |F(x_i) - y_i|^2 + alpha/2 a'Ka

    which is the system (11) of Xu et al. (2013) with ``alpha = 1 / (n gamma)``. Held-out predictions for a whole grid
    of alphas come out of one decomposition; ``fit`` chooses by them, keeps them, and makes intervals of them.

    Parameters
    ----------
    sigma : "auto", float or sequence of float, default="auto"
        Width of the kernel, ``exp(-d^2 / (2 sigma^2))`` for the Gaussian. A number is used as it is, a sequence is a
        grid, "auto" is a grid of multiples of the median distance that grows at its border.
    alpha : "auto", float or sequence of float, default="auto"
        Ridge on the mean loss.
    kernel : str or callable, default="rbf+linear"
        "rbf", "laplace", "linear", "poly", "sigmoid", "precomputed", a sum of "rbf", "laplace" and "linear" such as
        "rbf+linear", or a callable ``f(X, Y)``. In a sum the linear part is about the mean of the training rows and
        scaled such that its k(x, x) is 1 on average, as that of the others is.
    linear_weight : "auto", float or sequence of float, default="auto"
        Weight of the linear part of a sum; inf leaves nothing else. "auto" tries 1 and inf.
    n_centers : int, optional
        So many centres instead of all rows ("fixed-size LS-SVM").
    centers : {"random", "kmeans", "kmeans++", "leverage"} or array (b, n_features), default="random"
        How they are chosen: "random" rows; the middles of clusters, "kmeans"; rows far from each other by "kmeans++";
        rows drawn by approximate ridge leverage scores, "leverage", at sigma or the middle of its grid, with "auto"
        at the median distance. An array is used as it is.
    bias : {"shared", None}, default="shared"
        A free intercept, or none.
    cv : "loo", int, splitter, iterable of splits or None, default="loo"
        How rows are held out. "loo" leaves out each row, or each group
        where ``groups`` are given. None holds nothing out: sigma, alpha and linear_weight must be numbers.
    scoring : str or callable, default="cautious"
        What the search maximises on held-out predictions: "r2" (explained variance, the mean over the outputs),
        "mse", "mae", a name of scikit-learn's, or a callable ``f(estimator, X, y)``. "cautious" is "r2" with a charge
        for degrees of freedom, and with a linear model where what was found is not clearly better than that.
    solver : {"auto", "cholesky", "moments", "krylov"}, default="auto"
        "krylov" solves by preconditioned block conjugate gradients and never holds the kernel of all rows (section
        3.4 of Xu et al.); parameters are chosen on some rows, and a tenth is held out for intervals. "auto" takes it
        above 4,000 rows, and where the kernel of all rows does not fit into memory. "moments" sums
        over the rows, for few centres; "auto" takes that beyond 20 million rows times centres, and where memory is
        short.
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
        seed. The rows that large data are searched on depend on the data alone; see :doc:`/selection`.
    verbose : int, default=0
        1 prints the plan, and a line for every step of the search.

    Attributes
    ----------
    sigma_, alpha_, linear_weight_ : float
        The chosen parameters; ``linear_weight_`` is None for a kernel that is no such sum.
    centers_ : array or sparse matrix of shape (b, n_features)
        Centres; ``center_indices_`` with a precomputed kernel.
    coef_ : ndarray of shape (b, n_outputs)
        Coefficients, in units of ``unit_``.
    intercept_ : ndarray of shape (n_outputs,)
        In units of ``unit_``.
    unit_ : float
        A power of two that y was divided by.
    heldout_prediction_ : ndarray
        What ``predict`` says of the training rows when these are held out.
    cv_results_ : dict of ndarray
        All points of the search.
    pruning_ : dict
        With ``prune``: ``n_rows``, ``n_kept``, the held-out ``score`` of the whole model and ``pruned_score``.
    n_iter_, residual_
        With ``solver="krylov"``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from leastwise import LSSVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LSSVR(random_state=0).fit(X, y)
    >>> model.predict(X[:3]).shape, model.predict_interval(X[:3], coverage=0.8).shape
    ((3,), (3, 2))
    """

    def __init__(
        self,
        sigma: Any = "auto",
        alpha: Any = "auto",
        *,
        kernel: Any = "rbf+linear",
        linear_weight: Any = "auto",
        n_centers: int | None = None,
        centers: Any = "random",
        bias: str | None = "shared",
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> LSSVR:
        """Choose the parameters and solve.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows; with ``kernel="precomputed"`` the (n, n) kernel matrix.
        y : array-like of shape (n,) or (n, n_outputs)
            Quantities. All outputs have the same parameters, and are solved for at once.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows. A weight of 2 is the same as the row twice, 0 as no row. Whole numbers are counts of
            observations; other weights say how much a row matters.
        groups : array-like of shape (n,) or "duplicates", optional
            Rows of one group are held out together. "duplicates": rows with equal inputs are a group.
        """
        return self._fit(X, y, sample_weight, groups)

    def _spec(self) -> Spec:
        targets = ValueTargets(bias=self.bias is not None, owner=type(self).__name__)
        return Spec.of(self, targets, family="machine", device_rows=True)

    plan = plan
    influence = influence
    fit_stream = fit_stream
    partial_fit = partial_fit
    unfit = unfit
    forget = forget
    without_rows = without_rows


class LSSVC(Classifier):
    r"""Least-squares support vector classifier with calibrated probabilities, tuned in closed form.

    The classifier of Suykens and Vandewalle (1999), eq. (5) of Xu et al. (2013), is least-squares regression on
    targets of -1 and 1: multiplied by the labels, which are their own inverses, its system is that of :class:`LSSVR`.
    Each class is told from the rest; all of them are solved for at once. Held-out scores choose the parameters and
    make probabilities of the scores.

    Parameters
    ----------
    sigma : "auto", float or sequence of float, default="auto"
        Width of the kernel, ``exp(-d^2 / (2 sigma^2))`` for the Gaussian. A number is used as it is, a sequence is a
        grid, "auto" is a grid of multiples of the median distance that grows at its border.
    alpha : "auto", float or sequence of float, default="auto"
        Ridge on the mean loss.
    kernel : str or callable, default="rbf"
        "rbf", "laplace", "linear", "poly", "sigmoid", "precomputed", a sum of "rbf", "laplace" and "linear" such as
        "rbf+linear", or a callable ``f(X, Y)``. In a sum the linear part is about the mean of the training rows and
        scaled such that its k(x, x) is 1 on average, as that of the others is.
    linear_weight : "auto", float or sequence of float, default="auto"
        Weight of the linear part of a sum; inf leaves nothing else. "auto" tries 1 and inf.
    n_centers : int, optional
        So many centres instead of all rows ("fixed-size LS-SVM").
    centers : {"random", "kmeans", "kmeans++", "leverage", "class"} or array (b, n_features), default="random"
        How they are chosen: "random" rows; the middles of clusters, "kmeans"; rows far from each other by "kmeans++";
        rows drawn by approximate ridge leverage scores, "leverage", at sigma or the middle of its grid, with "auto"
        at the median distance; as many random rows of each class, "class". An array is used as it is.
    bias : {"shared", None}, default="shared"
        A free intercept, or none.
    cv : "loo", int, splitter, iterable of splits or None, default="loo"
        How rows are held out. "loo" leaves out each row, or each group where ``groups`` are
        given. None holds nothing out: sigma, alpha and linear_weight must be numbers, and ``calibration`` None.
    scoring : str or callable, default="log_loss"
        What the search maximises on held-out predictions: "log_loss", "brier", "accuracy", "auc", "f1", a name of
        scikit-learn's, or a callable ``f(estimator, X, y)``.
    calibration : {"blend", "temperature", "isotonic", None}, default="blend"
        How scores become probabilities, see :mod:`leastwise.calibration.calibrators`; fitted to held-out scores. None
        clips (F + 1) / 2 and normalises it.
    extrapolate : bool, default=False
        Whether scores are believed wherever they are, as in :class:`leastwise.LSPC`.
    class_weight : dict or "balanced", optional
        Weights of the classes; those that a dict does not name have weight 1.
    solver : {"auto", "cholesky", "moments", "krylov"}, default="auto"
        "krylov" solves by preconditioned block conjugate gradients and never holds the kernel of all rows (section
        3.4 of Xu et al.); parameters are chosen on some rows, and a tenth is held out to calibrate on. "auto"
        takes it above 4,000 rows, and where the kernel of all rows does not fit into memory. "moments" sums
        over the rows, for few centres; "auto" takes that beyond 20 million rows times centres, and where memory is
        short.
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
        seed. The rows that large data are searched on depend on the data alone; see :doc:`/selection`.
    verbose : int, default=0
        1 prints the plan, and a line for every step of the search.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_prior_ : ndarray of shape (n_classes,)
        Weighted class shares of the training rows.
    sigma_, alpha_, linear_weight_ : float
        The chosen parameters; ``linear_weight_`` is None for a kernel that is no sum with a linear part.
    centers_ : array or sparse matrix of shape (b, n_features)
        Centres; ``center_indices_`` with a precomputed kernel.
    coef_ : ndarray of shape (b, n_classes)
        The papers' alpha_i y_i. With two classes the first column is minus the second.
    intercept_ : ndarray of shape (n_classes,)
    calibrator_, reach_
        As in :class:`leastwise.LSPC`.
    heldout_scores_, heldout_decision_, heldout_proba_ : ndarray
        What ``scores``, ``decision_function`` and ``predict_proba`` say of the training rows when these are held out.
    heldout_rows_ : HeldRows
        The true classes, weights, groups and tasks of the training rows. Not there with ``cv=None``.
    cv_results_ : dict of ndarray
        All points of the search.
    pruning_ : dict
        With ``prune``: ``n_rows``, ``n_kept``, the held-out ``score`` of the whole model and ``pruned_score``.
    n_iter_, residual_
        With ``solver="krylov"``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from leastwise import LSSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LSSVC(random_state=0).fit(X, y)
    >>> model.predict_proba(X[:1]).round(1)
    array([[1., 0., 0.]])
    """

    def __init__(
        self,
        sigma: Any = "auto",
        alpha: Any = "auto",
        *,
        kernel: Any = "rbf",
        linear_weight: Any = "auto",
        n_centers: int | None = None,
        centers: Any = "random",
        bias: str | None = "shared",
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> LSSVC:
        """Choose the parameters, solve, calibrate.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows; with ``kernel="precomputed"`` the (n, n) kernel matrix.
        y : array-like of shape (n,)
            Classes.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows. A weight of 2 is the same as the row twice, 0 as no row. Whole numbers are counts of
            observations; other weights say how much a row matters.
        groups : array-like of shape (n,) or "duplicates", optional
            Rows of one group are held out together. "duplicates": rows with equal inputs are a group.
        """
        return self._fit(X, y, sample_weight, groups)

    def _spec(self) -> Spec:
        targets = ClassTargets(signed=True, class_weight=self.class_weight)
        rules = ("random", "kmeans", "kmeans++", "leverage", "class")
        return Spec.of(self, targets, family="machine", center_rules=rules, device_rows=True)

    plan = plan
    influence = influence
    fit_stream = fit_stream
    partial_fit = partial_fit
    unfit = unfit
    forget = forget
    without_rows = without_rows
