"""The least-squares probabilistic classifier."""

from __future__ import annotations

from typing import Any

from leastwise.estimators.base import Classifier
from leastwise.estimators.explaining import influence
from leastwise.estimators.fitting import plan
from leastwise.estimators.spec import Spec
from leastwise.estimators.streaming import fit_stream, forget, partial_fit, unfit, without_rows
from leastwise.problem.targets import ClassTargets


class LSPC(Classifier):
    r"""Least-squares probabilistic classifier, tuned and calibrated in closed form.

    The score of class y is a linear combination of kernels, fitted to the class posterior by least squares
    (Sugiyama 2010)::

        F_y(x) = sum_l theta_l^(y) k(x, c_l) + b_y

        min  1/(2n) sum_i sum_y (F_y(x_i) - [y_i = y])^2  +  alpha/2 * penalty(theta)

    The solution is that of a linear system (eq. 2), and held-out scores for a whole grid of alphas come out of
    one decomposition. ``fit`` chooses sigma and alpha by them, calibrates on them, and keeps them.

    Parameters
    ----------
    sigma : "auto", float or sequence of float, default="auto"
        Width of the kernel; the Gaussian is ``exp(-d^2 / (2 sigma^2))``, eq. (6), Laplace ``exp(-d_1 / sigma)``; in
        "poly" and "sigmoid" inner products are divided by ``sigma^2``; "linear" has none. A number is used as it is,
        a sequence is a grid, "auto" is a grid of multiples of the median distance that grows at its border.
    alpha : "auto", float or sequence of float, default="auto"
        Ridge on the mean loss; the paper's lambda.
    kernel : {"rbf", "laplace", "linear", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        Or a sum such as "rbf+linear".
        A callable ``f(X, Y)`` returns an array of shape (rows of X, rows of Y).
    norm : {"function", "coefficients"}, default="function"
        What the ridge is on: the norm of the function (theta' K theta) or of the coefficients (theta' theta), as
        in the paper.
    basis : {"full", "class"}, default="full"
        Model (5), every centre for every class, or model (7), for each class the centres of that class.
    n_centers : int, optional
        A subset of kernels: so many centres instead of all rows; with ``basis="class"`` so many for each class.
    centers : {"random", "kmeans", "kmeans++", "leverage", "class"} or array (b, n_features), default="random"
        How that subset is chosen: "random" rows; the middles of clusters, "kmeans"; rows far from each other by
        "kmeans++"; rows drawn by approximate ridge leverage scores, "leverage", at sigma or the middle of its grid,
        with "auto" at the median distance; as many random rows of each class, "class". An array is used as it is
        (``basis="full"`` only).
    bias : {"shared", None}, default=None
        An unpenalised intercept per class, or none, as in the paper.
    cv : "loo", int, splitter, iterable of splits or None, default="loo"
        How rows are held out. "loo" leaves out each row with its own basis function, or each
        group where ``groups`` are given. None holds nothing out: sigma and alpha must be numbers, and
        ``calibration`` None.
    scoring : str or callable, default="log_loss"
        What the search maximises on held-out predictions, weighted as the rows are: "log_loss", "brier",
        "accuracy", "auc", "f1" (of the second class in ``classes_`` where there are two, else the mean over
        classes), a name of scikit-learn's, or a callable ``f(estimator, X, y)``.
    calibration : {"blend", "temperature", "isotonic", None}, default="blend"
        How scores become probabilities, see :mod:`leastwise.calibration.calibrators`. None clips and normalises, eq.
        (3).
    extrapolate : bool, default=False
        Whether scores are believed wherever they are. By default calibrated probabilities fall to the class shares as
        a row leaves the data: where its distance to the nearest centre is beyond what is usual among held-out
        training rows, see :mod:`leastwise.calibration.extrapolation`. (Kernels of a distance only.)
    class_weight : dict or "balanced", optional
        Weights of the classes, finite and 0 or more; a class that the dict does not name has weight 1, and a name
        that is no class is an error. Probabilities, class shares and held-out scores then speak of the reweighted
        population: with "balanced" all classes are equally frequent in it.
    solver : {"auto", "moments", "krylov", "sgd"}, default="auto"
        "auto" is exact, up to 10,000 rows where all are centres. "krylov", which it takes beyond, solves for all rows
        as centres by preconditioned conjugate gradients and never holds the kernel of all rows: parameters are
        chosen on some rows, and a tenth is held out to calibrate on (``norm="function"``, ``basis="full"``).
        "moments" sums over the rows, for few centres. "sgd" is stochastic gradient descent (section 4 of the paper),
        which holds the kernel between the centres, and between them and a sample of rows, but not all rows; a tenth
        of the rows is held out to calibrate on. To be used with ``n_centers`` or ``centers``.
    search_rows : "auto", int or None, default="auto"
        On how many rows sigma and alpha are searched; alpha is then refined on all rows. None takes all for both.
    max_passes, tol : int and float, default=100 and 1e-3
        Stop of ``solver="sgd"``, and of "krylov": passes through the rows, which are iterations there, and what may
        be left of the residual beside the targets.
    degree, coef0 : default=3 and 1.0
        Shape of the kernels "poly" and "sigmoid".
    n_jobs : int, optional
        How many sigmas are tried side by side: None is 1 unless a joblib context says otherwise, -1 all processors.
        What is chosen does not depend on it. See the page "Jobs and threads".
    random_state : int, RandomState or None, default=None
        For centres that are drawn (``n_centers``), the batches of ``solver="sgd"``, and the shuffling of ``cv=`` a
        number of folds. None is a fixed seed. The rows that large data are searched on depend on the data alone; see
        :doc:`/selection`.
    verbose : int, default=0
        1 prints the plan, and a line for every sigma.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_prior_ : ndarray of shape (n_classes,)
        Weighted class shares of the training rows.
    sigma_, alpha_ : float
        The chosen parameters; ``sigma_`` is 1 for a kernel without width.
    centers_ : array or sparse matrix of shape (b, n_features)
        Centres of the basis functions; ``center_indices_`` with a precomputed kernel.
    coef_ : ndarray of shape (b, n_classes)
        Coefficients; zero where a centre does not serve a class.
    intercept_ : ndarray of shape (n_classes,)
    calibrator_ : object
        From scores to probabilities.
    reach_ : Reach or None
        How far from the data the model is trusted.
    heldout_scores_, heldout_decision_, heldout_proba_ : ndarray
        What ``scores``, ``decision_function`` and ``predict_proba`` say of the training rows when these are held
        out. Not there with ``cv=None``. They chose the parameters, so as an estimate of performance they are a
        little optimistic: report that from rows that ``fit`` has not seen.
    heldout_rows_ : HeldRows
        The true classes, weights, groups and tasks of the training rows. Not there with ``cv=None``.
    learned_ : Learned
        Targets and weights of the training rows, for ``influence``; only there where that is possible.
    cv_results_ : dict of ndarray
        All points of the search: ``param_sigma``, ``param_alpha``, ``mean_test_score``, ``rank_test_score`` and
        ``n_rows``, the number of rows that the point was judged on.
    jitter_ : float
        What was added to a diagonal to make it positive definite: 0 or, where centres have a penalty of their own, a
        trifle.
    n_passes_ : int
        With ``solver="sgd"``: passes through the rows.
    n_iter_, residual_ : int and float
        With ``solver="krylov"``: iterations, and what is left of the residual beside the targets.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    M. Sugiyama, Superfast-Trainable Multi-Class Probabilistic Classifier by Least-Squares Posterior Fitting, IEICE
    Transactions on Information and Systems E93-D (10), 2690-2701, 2010.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from leastwise import LSPC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LSPC(random_state=0).fit(X, y)
    >>> model.predict_proba(X[:1]).round(1)
    array([[1., 0., 0.]])
    """

    def __init__(
        self,
        sigma: Any = "auto",
        alpha: Any = "auto",
        *,
        kernel: Any = "rbf",
        norm: str = "function",
        basis: str = "full",
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
        max_passes: int = 100,
        tol: float = 1e-3,
        degree: int = 3,
        coef0: float = 1.0,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.sigma = sigma
        self.alpha = alpha
        self.kernel = kernel
        self.norm = norm
        self.basis = basis
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
        self.max_passes = max_passes
        self.tol = tol
        self.degree = degree
        self.coef0 = coef0
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> LSPC:
        """Choose sigma and alpha, solve, calibrate.

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
        return Spec.of(
            self,
            ClassTargets(class_weight=self.class_weight),
            family="single",
            iteration_limit="max_passes",
            center_rules=("random", "kmeans", "kmeans++", "leverage", "class"),
            device_rows=True,
        )

    plan = plan
    influence = influence
    fit_stream = fit_stream
    partial_fit = partial_fit
    unfit = unfit
    forget = forget
    without_rows = without_rows
