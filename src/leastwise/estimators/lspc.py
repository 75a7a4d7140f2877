"""The least-squares probabilistic classifier."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from leastwise.basis import Basis, Recipe, make_basis
from leastwise.estimators._base import KernelClassifier, Training
from leastwise.estimators._checks import check_count, check_memory, choose, parse_grid
from leastwise.fitting import Solution, scores, solve, solve_by_sgd
from leastwise.kernels import Kernel, Precomputed
from leastwise.probability import CALIBRATIONS, Blend, ClipNormalise, Sample, fit_calibrator
from leastwise.scoring import resolve_scoring
from leastwise.selection.grid import Grid
from leastwise.selection.plan import ARRAYS, SEARCH_ROWS, rows_to_search
from leastwise.selection.search import (
    ALPHA_VALUES,
    SIGMA_MULTIPLES,
    Search,
    natural_height,
    natural_length,
    stratified_rows,
)
from leastwise.selection.trial import Outcome, Rows, Settings, Trial

Array = np.ndarray


class LSPC(KernelClassifier):
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
        Width of the kernel; the Gaussian is ``exp(-d^2 / (2 sigma^2))``, eq. (6). A number is used as it is, a
        sequence is a grid, "auto" is a grid of multiples of the median distance that grows at its border.
    alpha : "auto", float or sequence of float, default="auto"
        Ridge on the mean loss; the paper's lambda.
    kernel : {"rbf", "laplace", "linear", "poly", "sigmoid", "precomputed"} or callable, default="rbf"
        A callable ``f(X, Y)`` returns an array of shape (rows of X, rows of Y).
    norm : {"function", "coefficients"}, default="function"
        What the ridge is on: the norm of the function (theta' K theta) or of the coefficients (theta' theta), as
        in the paper.
    basis : {"full", "class"}, default="full"
        Model (5), every centre for every class, or model (7), for each class the centres of that class.
    n_centers : int, optional
        A subset of kernels: so many centres instead of all rows; with ``basis="class"`` so many for each class.
    centers : {"random", "kmeans"} or array of shape (b, n_features), default="random"
        How that subset is chosen; an array is used as it is (``basis="full"`` only).
    bias : {"shared", None}, default=None
        An unpenalised intercept per class, or none, as in the paper. Far from the data calibrated probabilities
        go to the class shares either way.
    cv : "loo", int, splitter, iterable of splits or None, default="loo"
        How rows are held out. "loo" leaves out each row with its own basis function and its exact copies, or each
        group where ``groups`` are given. None holds nothing out: sigma and alpha must be numbers, and
        ``calibration`` None.
    scoring : str or callable, default="log_loss"
        What the search maximises on held-out predictions: "log_loss", "brier", "accuracy", "auc", "f1", a name of
        scikit-learn's, or a callable ``f(estimator, X, y)``.
    calibration : {"blend", "temperature", "isotonic", None}, default="blend"
        How scores become probabilities, see :mod:`leastwise.probability`. None clips and normalises, eq. (3).
    class_weight : dict or "balanced", optional
        Weights of the classes.
    solver : {"auto", "sgd"}, default="auto"
        "auto" is exact. "sgd" is stochastic gradient descent (section 4 of the paper), which never holds more than
        a batch of kernel rows; a tenth of the rows is held out to calibrate on.
    search_rows : "auto", int or None, default="auto"
        On how many rows sigma and alpha are searched; alpha is then refined on all rows. None takes all for both.
    max_passes, tol : int and float, default=100 and 1e-3
        Stop of ``solver="sgd"``.
    degree, coef0 : default=3 and 1.0
        Shape of the kernels "poly" and "sigmoid".
    random_state : int, RandomState or None, default=None
        For random centres, folds and subsets of rows.
    verbose : int, default=0
        1 prints a line for every sigma.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    sigma_, alpha_ : float
        The chosen parameters; sigma_ is 1 for a kernel without width.
    centers_ : array or sparse matrix of shape (b, n_features)
        Centres of the basis functions; ``center_indices_`` with a precomputed kernel.
    coef_ : ndarray of shape (b, n_classes)
        Coefficients; zero where a centre does not serve a class.
    intercept_ : ndarray of shape (n_classes,)
    calibrator_ : object
        From scores to probabilities.
    heldout_scores_, heldout_decision_, heldout_proba_ : ndarray
        What ``scores``, ``decision_function`` and ``predict_proba`` say of the training rows when these are held
        out. Not there with ``cv=None``.
    cv_results_ : dict of ndarray
        All points of the search: ``param_sigma``, ``param_alpha``, ``mean_test_score``, ``rank_test_score`` and
        ``n_rows``, the number of rows that the point was judged on.
    jitter_ : float
        What had to be added to a diagonal to make it positive definite; 0 almost always.
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
        class_weight: Any = None,
        solver: str = "auto",
        search_rows: Any = "auto",
        max_passes: int = 100,
        tol: float = 1e-3,
        degree: int = 3,
        coef0: float = 1.0,
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
        self.class_weight = class_weight
        self.solver = solver
        self.search_rows = search_rows
        self.max_passes = max_passes
        self.tol = tol
        self.degree = degree
        self.coef0 = coef0
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
            Weights of the rows. A weight of 2 is the same as the row twice, 0 as no row.
        groups : array-like of shape (n,), optional
            Rows of one group are held out together.
        """
        kernel = self._checked()
        data = self._training(X, y, sample_weight, groups, kernel)
        settings = self._settings(kernel, data.classes)
        basis = self._basis(data.rows, data.rng, kernel)
        if self.solver == "sgd":
            return self._fit_by_sgd(data, basis, settings)
        self._check_memory(data.rows, basis)
        outcome, seen, trial = self._select(data, basis, settings)
        solution = solve(trial, outcome.sigma, outcome.alpha)
        self._store(basis, settings, outcome, solution)
        if self.cv is not None:
            self._store_heldout(data, outcome.F, settings, seen)
        return self

    # ----------------------------------------------------------- parameters

    def _checked(self) -> Kernel:
        """All parameters checked, before any data are looked at; the kernel."""
        choose("norm", self.norm, ["function", "coefficients"])
        choose("basis", self.basis, ["full", "class"])
        choose("bias", self.bias, ["shared", None])
        choose("calibration", self.calibration, CALIBRATIONS)
        choose("solver", self.solver, ["auto", "sgd"])
        check_count("n_centers", self.n_centers)
        check_count("max_passes", self.max_passes)
        if self.search_rows != "auto":
            check_count("search_rows", self.search_rows)
        sigmas, alphas = self._grids(1.0, 1.0)
        kernel = self._resolve_kernel()
        fixed = alphas.single and (sigmas.single or not kernel.has_sigma)
        if self.cv is None and not (fixed and self.calibration is None):
            raise ValueError(
                "cv=None holds nothing out, so there is nothing to choose or calibrate by: give sigma and alpha as "
                "numbers and calibration=None, or set cv='loo'."
            )
        self._check_centers(isinstance(kernel, Precomputed))
        resolve_scoring(self.scoring)
        return kernel

    def _check_centers(self, precomputed: bool) -> None:
        if isinstance(self.centers, str):
            choose("centers", self.centers, ["random", "kmeans"])
        elif self.basis == "class":
            raise ValueError("centers given as an array serve all classes: use basis='full' with them.")
        if (
            precomputed
            and self.centers is not None
            and not (isinstance(self.centers, str) and self.centers == "random")
        ):
            raise ValueError("kernel='precomputed' knows no rows to place centres at: use centers='random'.")
        if self.solver == "sgd" and (precomputed or self.basis == "class"):
            raise ValueError("solver='sgd' needs rows to compute kernels from, and basis='full'.")

    def _grids(self, length: float, height: float) -> tuple[Grid, Grid]:
        sigmas = parse_grid("sigma", self.sigma, np.multiply(SIGMA_MULTIPLES, length), 1.5)
        return sigmas, parse_grid("alpha", self.alpha, np.multiply(ALPHA_VALUES, height), 10**0.5)

    def _settings(self, kernel: Kernel, classes: Array) -> Settings:
        return Settings(
            kernel=kernel,
            norm=self.norm,
            bias=self.bias is not None,
            classes=classes,
            calibration=self.calibration,
            scorer=resolve_scoring(self.scoring),
            report=self._report,
        )

    def _report(self, line: str) -> None:
        if self.verbose:
            print(f"[{type(self).__name__}] {line}", flush=True)

    def _basis(self, rows: Rows, rng: np.random.Generator, kernel: Kernel) -> Basis:
        recipe = Recipe(self.basis, self.n_centers, self.centers, self.norm, isinstance(kernel, Precomputed))
        return make_basis(recipe, rows.X, rows.y, rows.fold, rows.copy, rng)

    def _check_memory(self, rows: Rows, basis: Basis) -> None:
        check_memory(len(rows), basis.blocks[-1].columns.stop, rows.X.dtype.itemsize, ARRAYS, advice=True)

    # --------------------------------------------------------------- choice

    def _data_grids(self, rows: Rows, kernel: Kernel) -> tuple[Grid, Grid]:
        """The grids in the units of the data."""
        length = natural_length(kernel, rows) if isinstance(self.sigma, str) else 1.0
        height = natural_height(kernel, rows, length, self.norm) if isinstance(self.alpha, str) else 1.0
        sigmas, alphas = self._grids(length, height)
        return (sigmas if kernel.has_sigma else Grid((1.0,))), alphas

    def _select(self, data: Training, basis: Basis, settings: Settings) -> tuple[Outcome, list[dict], Trial]:
        """Search on some rows or all; the best point, all points, and the trial on all rows."""
        rows, kernel = data.rows, settings.kernel
        if self.cv is None:
            sigma, alpha = (grid.values[0] for grid in self._data_grids(rows, kernel))
            point = Outcome(
                sigma, alpha, np.nan, np.empty(0), ClipNormalise(_shares(rows, len(data.classes)))
            )
            return point, [], Trial(rows, basis, settings)
        some = self._some(data, rows_to_search(basis, len(rows), self.search_rows), kernel)
        sigmas, alphas = self._data_grids(some, kernel)
        if some is rows or (sigmas.single and alphas.single):
            whole = Search(Trial(rows, basis, settings))
            return whole.run(sigmas, alphas), whole.seen, whole.trial
        part = Search(Trial(some, self._basis(some, data.rng, kernel), settings))
        guess = part.run(sigmas, alphas)
        whole = Search(Trial(rows, basis, settings))
        # The best ridge on the sum of the losses changes less with the number of rows than that on their mean.
        found = whole.refine(guess.sigma, alphas, guess.alpha * len(some) / len(rows))
        return found, part.seen + whole.seen, whole.trial

    def _some(self, data: Training, count: int, kernel: Kernel) -> Rows:
        """About so many rows, the classes in proportion; all if there are no more."""
        if count >= len(data.rows):
            return data.rows
        index = stratified_rows(data.rows.y, count, data.rng)
        return data.rows.take(index, isinstance(kernel, Precomputed))

    # ---------------------------------------------------------------- store

    def _store(self, basis: Basis, settings: Settings, outcome: Outcome, solution: Solution) -> None:
        self.kernel_, self.classes_ = settings.kernel, settings.classes
        self.sigma_, self.alpha_ = outcome.sigma, outcome.alpha
        self.coef_, self.intercept_, self.jitter_ = solution.coef, solution.intercept, solution.jitter
        self.calibrator_ = outcome.calibrator
        if isinstance(self.calibrator_, Blend):  # held-out intercepts differ a little from the final ones
            self.calibrator_ = replace(self.calibrator_, far=solution.intercept)
        if isinstance(settings.kernel, Precomputed):
            self.center_indices_ = basis.rows
        else:
            self.centers_ = basis.centers

    def _store_heldout(self, data: Training, F: Array, settings: Settings, seen: list[dict]) -> None:
        """Held-out scores for all rows; rows of weight zero were never trained on, so the model's own serve."""
        rows, n = data.rows, data.X.shape[0]
        everyone = np.full((n, F.shape[1]), np.nan, dtype=F.dtype)
        everyone[data.used] = F
        unused = np.setdiff1d(np.arange(n), data.used)
        if len(unused):
            everyone[unused] = self._scores(data.X[unused])
        if settings.calibration == "isotonic":
            held = ~np.isnan(F[:, 0])
            sample = Sample(F[held], rows.y[held], rows.w[held], rows.size)
            self.calibrator_ = fit_calibrator("isotonic", sample, self.intercept_)
        self.heldout_scores_ = everyone
        self.heldout_decision_ = self._decision(everyone)
        self.heldout_proba_ = self.calibrator_.proba(everyone)
        self.cv_results_ = _table(seen)

    # ------------------------------------------------------------------ sgd

    def _fit_by_sgd(self, data: Training, basis: Basis, settings: Settings) -> LSPC:
        """Choose on some rows in closed form, descend on nine tenths of all, calibrate on the tenth."""
        rows = data.rows
        held = stratified_rows(rows.y, max(len(rows) // 10, 2 * len(data.classes)), data.rng)
        index = stratified_rows(rows.y, min(len(rows), self._sgd_search_rows(len(rows))), data.rng)
        some = rows.take(index, precomputed=False)
        search = Search(Trial(some, self._basis(some, data.rng, settings.kernel), settings))
        outcome = search.run(*self._data_grids(some, settings.kernel))
        train = rows.take(np.setdiff1d(np.arange(len(rows)), held), precomputed=False)
        options = {"max_epochs": self.max_passes, "tol": self.tol}
        solution = solve_by_sgd(train, basis, settings, outcome.sigma, outcome.alpha, data.rng, **options)
        self._warn_unsettled(solution)
        F = np.full((len(rows), len(data.classes)), np.nan, dtype=rows.X.dtype)
        F[held] = scores(solution, settings, outcome.sigma, rows.X[held], basis)
        sample = Sample(F[held], rows.y[held], rows.w[held], len(np.unique(rows.group[held])))
        outcome.calibrator = fit_calibrator(settings.calibration, sample, solution.intercept)
        self._store(basis, settings, outcome, solution)
        self._store_heldout(data, F, settings, search.seen)
        return self

    def _sgd_search_rows(self, n: int) -> int:
        return (
            n if self.search_rows is None else SEARCH_ROWS if self.search_rows == "auto" else self.search_rows
        )

    def _warn_unsettled(self, solution: Solution) -> None:
        descent = solution.descent
        assert descent is not None
        self.n_passes_ = descent.epochs
        if not descent.converged:
            warnings.warn(
                f"solver='sgd' stopped after max_passes={self.max_passes} passes with its scores still off by about "
                f"{descent.change:.1e} of their size (tol={self.tol:g}): raise max_passes or alpha.",
                ConvergenceWarning,
                stacklevel=4,
            )


def _shares(rows: Rows, n_classes: int) -> Array:
    counts = np.bincount(rows.y, weights=rows.w, minlength=n_classes)
    return (counts / counts.sum()).astype(rows.X.dtype)


def _table(seen: list[dict]) -> dict[str, Array]:
    """The points of a search as columns."""
    score = np.array([point["score"] for point in seen])
    return {
        "param_sigma": np.array([point["sigma"] for point in seen]),
        "param_alpha": np.array([point["alpha"] for point in seen]),
        "n_rows": np.array([point["rows"] for point in seen]),
        "mean_test_score": score,
        "rank_test_score": 1 + np.sum(score[None] > score[:, None], axis=1),
    }
