"""Kernel logistic regression, tuned by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.estimators.classifiers import Classifier
from leastwise.estimators.docs import documented
from leastwise.estimators.plans import plan
from leastwise.fitting.spec import Spec
from leastwise.problem.targets import ClassTargets


@documented
class KernelLogisticRegression(Classifier):
    r"""Kernel logistic regression, tuned by cross-validation.

    The score of class y is a linear combination of kernels, the probabilities are the softmax of the scores::

        F_y(x) = sum_l theta_l^(y) k(x, c_l) + b_y

        min  1/n sum_i [logsumexp(F(x_i)) - F_{y_i}(x_i)]  +  alpha/2 sum_y theta^(y)' K theta^(y)

    This is the maximum-likelihood counterpart of :class:`leastwise.LSPC`. The solver is iterative, and every held-out
    score costs a refit. Refits at one sigma share a factor of the kernel matrix, and each starts at the solution of
    another.

    Parameters
    ----------
    %(sigma)s
    %(alpha)s
    %(kernel)s
    %(scale)s
    %(metric)s
    %(categories)s
    %(n_centers)s
        A centre is held out with its row.
    %(centers.class)s
    %(bias)s
    %(cv)s
        "loo" needs as many refits as there are rows.
    %(scoring)s
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
    %(intercept_)s
    %(calibrator_)s
        %(softmax)s
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
    %(feature_names_in_)s

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from leastwise import KernelLogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> KernelLogisticRegression(random_state=0).fit(X, y).predict(X[:2])
    array([0, 0])
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
        n_centers: int | None = None,
        centers: Any = "random",
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
        self.kernel = kernel
        self.scale = scale
        self.metric = metric
        self.categories = categories
        self.n_centers = n_centers
        self.centers = centers
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> KernelLogisticRegression:
        """Choose sigma and alpha, and fit to all rows.

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
            family="logistic",
            center_rules=("random", "kmeans", "kmeans++", "leverage", "class"),
            sigma_multiples=(0.3, 0.6, 1.0, 1.7),
            sigma_ratio=1.7,
            alpha_values=tuple(10.0 ** np.arange(-6, 0.1, 1.5)),
        )

    plan = plan
