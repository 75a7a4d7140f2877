"""The least-squares probabilistic classifier."""

from __future__ import annotations

from typing import Any

from leastwise.estimators.classifiers import Classifier
from leastwise.estimators.docs import documented
from leastwise.estimators.explaining import influence
from leastwise.estimators.plans import plan
from leastwise.estimators.streaming import fit_stream, forget, partial_fit, unfit, without_rows
from leastwise.fitting.spec import Spec
from leastwise.problem.targets import ClassTargets


@documented
class LSPC(Classifier):
    r"""Least-squares probabilistic classifier, tuned and calibrated in closed form.

    The score of class y is a linear combination of kernels, fitted to the class posterior by least squares
    (Sugiyama 2010)::

        F_y(x) = sum_l theta_l^(y) k(x, c_l) + b_y

        min  1/(2n) sum_i sum_y (F_y(x_i) - [y_i = y])^2  +  alpha/2 * penalty(theta)

    The solution is that of a linear system (eq. 2). One decomposition gives the held-out scores for a whole grid of
    alphas. ``fit`` uses them to choose sigma and alpha and to calibrate, and stores them.

    Parameters
    ----------
    %(sigma)s
        "rbf" is eq. (6) of the paper.
    %(alpha)s
        The lambda of the paper.
    %(kernel)s
    %(scale)s
    %(metric)s
    %(categories)s
    %(norm)s
    basis : {"full", "class"}, default="full"
        Model (5), every centre for every class, or model (7), for each class the centres of that class.
    %(n_centers)s
        With ``basis="class"``, their number for each class.
    %(centers.class)s
        An array needs ``basis="full"``.
    %(bias)s
        %(no_bias)s
    %(cv)s
        The basis function of a row is left out together with it.
    %(scoring)s
    %(calibration)s
        None clips and normalises, eq. (3).
    %(extrapolate)s
    %(class_weight)s
    solver : {"auto", "cholesky", "moments", "krylov", "sgd"}, default="auto"
        "cholesky" factorises the kernel matrix, or that of few centres; all rows have leave-one-out scores. "krylov"
        solves with all rows as centres by preconditioned conjugate gradients and never stores the kernel
        matrix of all rows: hyperparameters are chosen on a subsample, and a tenth of the rows is held out for
        calibration (``norm="function"`` and ``basis="full"`` only). "moments" sums over the rows, for few centres.
        "sgd" is stochastic gradient descent (section 4 of the paper), for use with ``n_centers`` or ``centers``: it
        stores the kernel between the centres, and between them and a sample of rows, but not all rows; a tenth of the
        rows is held out for calibration. "auto" takes the cheapest of the first three that fits in memory, and
        prefers exact leave-one-out scores, see :meth:`plan`.
    %(search_rows)s
    max_passes : int, default=100
        Maximum number of passes through the rows with ``solver="sgd"``, of iterations with "krylov".
    tol : float, default=0.001
        Stopping rule of ``solver="sgd"`` and "krylov": norm of the residual relative to the targets.
    %(degree)s
    %(coef0)s
    %(n_jobs)s
    %(random_state)s
        Also for the batches of ``solver="sgd"``.
    %(verbose)s

    Attributes
    ----------
    %(classes_)s
    %(class_prior_)s
    %(sigma_)s
    %(alpha_)s
    %(kernel_)s
    %(scale_)s
    %(inputs_)s
    %(feature_weights_)s
    %(categories_)s
    %(centers_)s
    %(center_indices_)s
    %(coef_)s
        With ``basis="class"``, zero if a centre does not belong to the class.
    %(intercept_)s
    %(calibrator_)s
    %(extrapolation_)s
    %(neighbourhood_)s
    %(heldout_scores_)s
    %(heldout_decision_)s
    %(heldout_proba_)s
    %(heldout_rows_)s
    %(training_record_)s
    %(cv_results_)s
    %(jitter_)s
    n_passes_ : int
        With ``solver="sgd"``: passes through the rows.
    n_iter_ : int
        With ``solver="krylov"``: iterations.
    %(residual_)s
    %(moments_)s
    %(kept_)s
    %(n_features_in_)s
    %(feature_names_in_)s

    References
    ----------
    %(sugiyama_2010)s

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
        kernel: Any = "auto",
        scale: Any = "auto",
        metric: Any = "auto",
        categories: Any = "from_dtype",
        norm: str = "function",
        basis: str = "full",
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
        self.scale = scale
        self.metric = metric
        self.categories = categories
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
        """Choose sigma and alpha, solve, and calibrate.

        Parameters
        ----------
        %(X)s
        %(y.classes)s
        %(sample_weight)s
        %(groups)s

        Returns
        -------
        %(self)s
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
