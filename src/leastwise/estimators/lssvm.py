"""Least-squares support vector machines for one task: regression and classification."""

from __future__ import annotations

from typing import Any

from leastwise.estimators.classifiers import Classifier
from leastwise.estimators.docs import documented
from leastwise.estimators.explaining import influence
from leastwise.estimators.plans import plan
from leastwise.estimators.regressors import Regressor
from leastwise.estimators.streaming import fit_stream, forget, partial_fit, unfit, without_rows
from leastwise.fitting.spec import Spec
from leastwise.problem.targets import ClassTargets, ValueTargets, check_bounds

#: Values of ``solver``.


@documented
class LSSVR(Regressor):
    r"""Least-squares support vector regression, tuned in closed form.

    A function in the kernel's space with an unpenalised intercept, fitted by least squares (Saunders et al. 1998,
    Suykens et al. 2002)::

        F(x) = sum_i a_i k(x, x_i) + b,      min  1/(2n) sum_i |F(x_i) - y_i|^2 + alpha/2 a'Ka

    which is the system (11) of Xu et al. (2013) with ``alpha = 1 / (n gamma)``. One decomposition gives the held-out
    predictions for a whole grid of alphas. ``fit`` uses them to choose the hyperparameters and stores them, and
    ``predict_interval`` computes intervals from them.

    Parameters
    ----------
    %(sigma)s
    %(alpha)s
    %(kernel)s
        Here "auto" adds a linear part: it chooses between "rbf+linear" and "laplace+linear".
    %(scale)s
    %(metric)s
    %(categories)s
    %(linear_weight)s
    %(n_centers)s
        %(fixed_size)s
    %(centers)s
    %(bias)s
    %(cv)s
    %(scoring.values)s
    %(solver.lssvm)s
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
    %(sigma_)s
    %(alpha_)s
    %(linear_weight_)s
    %(kernel_)s
    %(scale_)s
    %(inputs_)s
    %(feature_weights_)s
    %(categories_)s
    %(centers_)s
    %(center_indices_)s
    %(coef_)s
        In units of ``unit_``.
    %(intercept_)s
        In units of ``unit_``.
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
    %(moments_)s
    %(kept_)s
    %(n_features_in_)s
    %(feature_names_in_)s

    References
    ----------
    C. Saunders, A. Gammerman, V. Vovk, Ridge Regression Learning Algorithm in Dual Variables, ICML 1998.

    J. Suykens, T. Van Gestel, J. De Brabanter, B. De Moor, J. Vandewalle, Least Squares Support Vector Machines,
    World Scientific, 2002.

    %(xu_2014)s

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
        kernel: Any = "auto",
        scale: Any = "auto",
        metric: Any = "auto",
        categories: Any = "from_dtype",
        linear_weight: Any = "auto",
        n_centers: Any = "auto",
        centers: Any = "random",
        bias: str | None = "shared",
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> LSSVR:
        """Choose the hyperparameters and solve.

        Parameters
        ----------
        %(X)s
        %(y.values)s
        %(sample_weight)s
        %(groups)s

        Returns
        -------
        %(self)s
        """
        return self._fit(X, y, sample_weight, groups)

    def _spec(self) -> Spec:
        bounds = check_bounds(self.bounds)
        targets = ValueTargets(bias=self.bias is not None, owner=type(self).__name__, bounds=bounds)
        kernels = ("rbf+linear", "laplace+linear")
        return Spec.of(self, targets, family="machine", auto_kernels=kernels, device_rows=True)

    plan = plan
    influence = influence
    fit_stream = fit_stream
    partial_fit = partial_fit
    unfit = unfit
    forget = forget
    without_rows = without_rows


@documented
class LSSVC(Classifier):
    r"""Least-squares support vector classifier with calibrated probabilities, tuned in closed form.

    The classifier of Suykens and Vandewalle (1999), eq. (5) of Xu et al. (2013), is least-squares regression on
    targets of -1 and 1: multiplied by the labels, which are their own inverses, its system is that of :class:`LSSVR`.
    There is one problem for each class against the rest, and all are solved together. The hyperparameters and the
    calibration are chosen on held-out scores.

    Parameters
    ----------
    %(sigma)s
    %(alpha)s
    %(kernel)s
    %(scale)s
    %(metric)s
    %(categories)s
    %(linear_weight)s
    %(n_centers)s
        %(fixed_size)s
    %(centers.class)s
    %(bias)s
    %(cv)s
    %(scoring)s
    %(calibration)s
        %(clip_signed)s
    %(extrapolate)s
    %(class_weight)s
    %(solver.lssvm)s
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
    %(sigma_)s
    %(alpha_)s
    %(linear_weight_)s
    %(kernel_)s
    %(scale_)s
    %(inputs_)s
    %(feature_weights_)s
    %(categories_)s
    %(centers_)s
    %(center_indices_)s
    %(coef_)s
        They are alpha_i y_i in the papers. With two classes, the first column is minus the second.
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
    %(pruning_)s
    %(n_iter_.krylov)s
    %(residual_)s
    %(moments_)s
    %(kept_)s
    %(n_features_in_)s
    %(feature_names_in_)s

    References
    ----------
    %(xu_2014)s

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
        kernel: Any = "auto",
        scale: Any = "auto",
        metric: Any = "auto",
        categories: Any = "from_dtype",
        linear_weight: Any = "auto",
        n_centers: Any = "auto",
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> LSSVC:
        """Choose the hyperparameters, solve, and calibrate.

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
