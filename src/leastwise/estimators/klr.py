"""Kernel logistic regression, tuned by cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.estimators.base import Classifier
from leastwise.estimators.spec import Spec
from leastwise.problem.targets import ClassTargets


class KernelLogisticRegression(Classifier):
    r"""Kernel logistic regression, tuned by cross-validation.

    The score of class y is a linear combination of kernels, the probabilities are the softmax of the scores::

        F_y(x) = sum_l theta_l^(y) k(x, c_l) + b_y

        min  1/n sum_i [logsumexp(F(x_i)) - F_{y_i}(x_i)]  +  alpha/2 sum_y theta^(y)' K theta^(y)

    This is the maximum-likelihood counterpart of :class:`leastwise.LSPC`: it has to iterate, and every
    held-out score costs a refit. Refits at one sigma share a factor of the kernel and start from one another.

    Parameters
    ----------
    sigma : "auto", float or sequence of float, default="auto"
        Width of the kernel. A number is used as it is, a sequence is a grid, "auto" is a grid of multiples of
        the median distance that grows at its border.
    alpha : "auto", float or sequence of float, default="auto"
        Ridge on the mean loss, with weights of mean 1.
    kernel : {"rbf", "laplace", "linear", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        Or a sum such as "rbf+linear".
        A callable ``f(X, Y)`` returns an array of shape (rows of X, rows of Y).
    n_centers : int, optional
        A subset of kernels: so many centres instead of all rows. A centre is held out with its row.
    centers : {"random", "kmeans", "kmeans++", "leverage", "class"} or array (b, n_features), default="random"
        How that subset is chosen: "random" rows; the middles of clusters, "kmeans"; rows far from each other by
        "kmeans++"; rows drawn by approximate ridge leverage scores, "leverage", at sigma or the middle of its grid,
        with "auto" at the median distance; as many random rows of each class, "class". An array is used as it is.
    bias : {"shared", None}, default="shared"
        An unpenalised intercept per class, or none.
    cv : int, "loo", splitter, iterable of splits or None, default=5
        How rows are held out; "loo" makes as many refits as there are rows. None holds nothing out: sigma and
        alpha must be numbers.
    scoring : str or callable, default="log_loss"
        What the search maximises on held-out predictions: "log_loss", "brier", "accuracy", "auc", "f1", a
        name of scikit-learn's, or a callable ``f(estimator, X, y)``.
    extrapolate : bool, default=False
        Believe the scores of rows wherever they are. Otherwise probabilities go to the class shares beyond the reach
        of the training rows, see :mod:`leastwise.calibration.extrapolation`. (Kernels of a distance only.)
    class_weight : dict or "balanced", optional
        Weights of the classes; those that a dict does not name have weight 1.
    solver : {"auto", "lbfgs", "newton"}, default="auto"
        See :func:`leastwise.linalg.logistic.solve_logistic`.
    max_iter, tol : int and float, default=200 and 1e-6
        Stop of the solver: iterations, and norm of the gradient in units of the root of the mean of k(x, x).
    degree, coef0 : default=3 and 1.0
        Shape of the kernels "poly" and "sigmoid".
    n_jobs : int, optional
        How many sigmas are tried side by side: None is 1 unless a joblib context says otherwise, -1 all processors.
        What is chosen does not depend on it. See the page "Jobs and threads".
    random_state : int, RandomState or None, default=None
        For centres that are drawn (``n_centers``) and for the shuffling of folds. None is a fixed seed.
    verbose : int, default=0
        1 prints a line for every sigma.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_prior_ : ndarray of shape (n_classes,)
        Weighted class shares of the training rows.
    sigma_, alpha_ : float
        The chosen parameters; ``sigma_`` is 1 for a kernel without width.
    centers_ : array or sparse matrix of shape (b, n_features)
        Centres of the basis functions; ``center_indices_`` with a precomputed kernel.
    coef_, intercept_ : ndarray of shape (b, n_classes) and (n_classes,)
    calibrator_ : object
        From scores to probabilities: the softmax.
    reach_ : Reach or None
        How far from the data the model is trusted.
    n_iter_ : int
        Iterations of the last fit, the one of all rows.
    heldout_scores_, heldout_decision_, heldout_proba_ : ndarray
        What ``scores``, ``decision_function`` and ``predict_proba`` say of the training rows when these are
        held out. Not there with ``cv=None``.
    heldout_rows_ : HeldRows
        The true classes, weights, groups and tasks of the training rows. Not there with ``cv=None``.
    cv_results_ : dict of ndarray
        All points of the search, as in :class:`leastwise.LSPC`.
    jitter_ : float
        What was added to the diagonal of the kernel matrix to make it positive definite.

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
        kernel: Any = "rbf",
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
        """Choose sigma and alpha, then fit to all rows.

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
            family="logistic",
            center_rules=("random", "kmeans", "kmeans++", "leverage", "class"),
            sigma_multiples=(0.3, 0.6, 1.0, 1.7),
            sigma_ratio=1.7,
            alpha_values=tuple(10.0 ** np.arange(-6, 0.1, 1.5)),
        )
