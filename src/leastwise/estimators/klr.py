"""Kernel logistic regression, tuned by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.exceptions import ConvergenceWarning

from leastwise.basis import Basis, Recipe, make_basis
from leastwise.estimators._base import KernelClassifier, Training
from leastwise.estimators._checks import check_count, check_memory, choose, parse_grid
from leastwise.estimators.lspc import _table
from leastwise.heldout import Held
from leastwise.kernels import Kernel, Precomputed
from leastwise.linalg.cholesky import Cholesky, cholesky
from leastwise.linalg.logistic import SOLVERS, Logistic, Stop, Task, solve_logistic
from leastwise.probability import Sample
from leastwise.scoring import resolve_scoring
from leastwise.selection.grid import Grid
from leastwise.selection.plan import ARRAYS
from leastwise.selection.search import Search, natural_height, natural_length
from leastwise.selection.trial import Outcome, Rows, Settings, Trial

Array = np.ndarray

#: sigma="auto": these multiples of the kernel's natural length.
SIGMA_MULTIPLES = (0.3, 0.6, 1.0, 1.7)
#: alpha="auto": these multiples of the kernel's natural height first, then steps of sqrt(10) around the best.
ALPHA_VALUES = tuple(10.0 ** np.arange(-6, 0.1, 1.5))
#: With more folds than this a refit starts from zero: to keep the last solution of each takes too much room.
WARM_FOLDS = 20


@dataclass(frozen=True)
class Softmax:
    """Scores that are log-probabilities up to a constant per row."""

    def proba(self, F: Array) -> Array:
        """Probabilities; rows sum to one."""
        return softmax(F, axis=1)

    def decision(self, F: Array) -> Array:
        """The scores; with two classes their difference is the log-odds."""
        return F


@dataclass(frozen=True)
class Design:
    """Rows in coordinates where the penalty is the identity: ``D = K L'^-1``, with ``L L' = K_cc``.

    Where every row is a centre, D is L.
    """

    D: Array
    factor: Cholesky


@dataclass(frozen=True)
class Effort:
    """How refits are made: the alphas that are sure to be asked for, the solver, and when it stops."""

    alphas: Grid
    solver: str
    stop: Stop


class Refits(Trial):
    """Held-out scores by refits, from the largest alpha down, each starting from the one before."""

    def __init__(self, rows: Rows, basis: Basis, settings: Settings, effort: Effort) -> None:
        super().__init__(rows, basis, settings)
        self.effort = effort
        self.folds_out = [np.flatnonzero(rows.fold == label) for label in np.unique(rows.fold)]
        self.unsettled: set[tuple[float, float]] = set()

    def design(self, sigma: float, gone: Array | None = None) -> Design:
        """The design of all rows without the centres ``gone``."""
        K, Kcc = self.kernel(sigma), self.center_kernel(sigma)
        if Kcc is None:
            # Some rows of this design serve as the design of these rows alone: to directions that they do not
            # span, the ridge gives nothing. So one factor serves all folds.
            factor = cholesky(K, overwrite=True)
            return Design(np.ascontiguousarray(factor.L, dtype=np.float64), factor)
        if gone is not None:
            K, Kcc = np.delete(K, gone, 1), np.delete(np.delete(Kcc, gone, 0), gone, 1)
        jitter = 1e3 * np.finfo(K.dtype).eps * float(np.abs(np.diagonal(Kcc)).mean())
        factor = cholesky(Kcc, jitter=jitter)
        return Design(np.ascontiguousarray(factor.whiten(K), dtype=np.float64), factor)

    def solve(self, D: Array, y: Array, w: Array, alpha: float, start: Array | None = None) -> Logistic:
        """The model of some rows; every class from 0 to the last has one."""
        task = Task(D, y, w, alpha, int(y.max()) + 1, self.settings.bias)
        return solve_logistic(task, self.effort.solver, self.effort.stop, start)

    def heldout(self, sigma: float, few: bool) -> Callable[[float], Held]:
        """A function from alpha to held-out scores at this sigma."""
        design = self.design(sigma)
        starts: dict[int, Array] = {}
        known: dict[float, Array] = {}
        far = np.zeros(self.Z.shape[1], dtype=self.Z.dtype)  # of use to calibrators, and there is none

        def at(alpha: float) -> Held:
            for a in [*(a for a in self.effort.alphas.values[::-1] if a > alpha), alpha]:
                if a not in known:
                    known[a] = self._heldout(design, sigma, a, starts)
            return Held(known[alpha], far)

        return at

    def _heldout(self, design: Design, sigma: float, alpha: float, starts: dict[int, Array]) -> Array:
        """Held-out scores at one point; ``starts`` holds the last parameters of every fold."""
        F = np.empty_like(self.Z)
        for k, out in enumerate(self.folds_out):
            gone = self._gone(out)
            D = design.D if gone is None else self.design(sigma, gone).D
            stay = np.setdiff1d(np.arange(len(D)), out)
            F[out], story = self._refit(D, stay, out, alpha, starts.get(k))
            if story is not None and len(self.folds_out) <= WARM_FOLDS:
                starts[k] = story.start
            if story is not None and not story.converged:
                self.unsettled.add((sigma, alpha))
        return F

    def _gone(self, out: Array) -> Array | None:
        """The centres that go with some rows: their own, unless that is all of them."""
        own = self.basis.blocks[0].own
        if self.basis.square or own is None:
            return None
        gone = np.unique(own[out][own[out] >= 0])
        return gone if 0 < len(gone) < self.basis.blocks[0].columns.stop else None

    def _refit(
        self, D: Array, stay: Array, out: Array, alpha: float, start: Array | None
    ) -> tuple[Array, Logistic | None]:
        """Scores of the rows ``out`` from a model of the rows ``stay``.

        A class without a row in ``stay`` cannot be fitted. Its probability is 1 / (n + 2), for n rows.
        """
        present, y = np.unique(self.rows.y[stay], return_inverse=True)
        F = np.empty((len(out), self.Z.shape[1]))
        story = None
        if len(present) > 1:
            story = self.solve(D[stay], y, self.rows.w[stay], alpha, start)
        F[:, present] = 0 if story is None else story.scores(D[out])
        absent = np.setdiff1d(np.arange(F.shape[1]), present)
        F[:, absent] = logsumexp(F[:, present], axis=1, keepdims=True) - np.log(len(stay) + 2)
        return F, story

    def judge(self, sigma: float, alpha: float, held: Held, last: Outcome | None) -> Outcome:
        """Score held-out predictions."""
        s, sample = self.settings, Sample(held.F, self.rows.y, self.rows.w, self.rows.size)
        return Outcome(sigma, alpha, s.scorer(sample, Softmax(), s.classes), held.F, Softmax())


class KernelLogisticRegression(KernelClassifier):
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
        A callable ``f(X, Y)`` returns an array of shape (rows of X, rows of Y).
    n_centers : int, optional
        A subset of kernels: so many centres instead of all rows. A centre is held out with its row.
    centers : {"random", "kmeans"} or array of shape (b, n_features), default="random"
        How that subset is chosen; an array is used as it is.
    bias : {"shared", None}, default="shared"
        An unpenalised intercept per class, or none.
    cv : int, "loo", splitter, iterable of splits or None, default=5
        How rows are held out; "loo" makes as many refits as there are rows. None holds nothing out: sigma and
        alpha must be numbers.
    scoring : str or callable, default="log_loss"
        What the search maximises on held-out predictions: "log_loss", "brier", "accuracy", "auc", "f1", a
        name of scikit-learn's, or a callable ``f(estimator, X, y)``.
    class_weight : dict or "balanced", optional
        Weights of the classes.
    solver : {"auto", "lbfgs", "newton"}, default="auto"
        See :func:`leastwise.linalg.logistic.solve_logistic`.
    max_iter, tol : int and float, default=200 and 1e-6
        Stop of the solver: iterations, and norm of the gradient in units of the root of the mean of k(x, x).
    degree, coef0 : default=3 and 1.0
        Shape of the kernels "poly" and "sigmoid".
    random_state : int, RandomState or None, default=None
        For random centres and folds.
    verbose : int, default=0
        1 prints a line for every sigma.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    sigma_, alpha_ : float
        The chosen parameters; sigma_ is 1 for a kernel without width.
    centers_ : array or sparse matrix of shape (b, n_features)
        Centres of the basis functions; ``center_indices_`` with a precomputed kernel.
    coef_, intercept_ : ndarray of shape (b, n_classes) and (n_classes,)
    calibrator_ : object
        From scores to probabilities: the softmax.
    n_iter_ : int
        Iterations of the last fit, the one of all rows.
    heldout_scores_, heldout_decision_, heldout_proba_ : ndarray
        What ``scores``, ``decision_function`` and ``predict_proba`` say of the training rows when these are
        held out. Not there with ``cv=None``.
    cv_results_ : dict of ndarray
        All points of the search, as in :class:`leastwise.LSPC`.
    jitter_ : float
        What was added to the diagonal of the kernel matrix to make it positive definite.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from leastwise.estimators.klr import KernelLogisticRegression
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
        class_weight: Any = None,
        solver: str = "auto",
        max_iter: int = 200,
        tol: float = 1e-6,
        degree: int = 3,
        coef0: float = 1.0,
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
        self.class_weight = class_weight
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.degree = degree
        self.coef0 = coef0
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
            Weights of the rows. A weight of 2 is the same as the row twice, 0 as no row.
        groups : array-like of shape (n,), optional
            Rows of one group are held out together.
        """
        kernel = self._checked()
        data = self._training(X, y, sample_weight, groups, kernel)
        rows = data.rows
        recipe = Recipe("full", self.n_centers, self.centers, "function", isinstance(kernel, Precomputed))
        basis = make_basis(recipe, rows.X, rows.y, rows.fold, rows.copy, data.rng)
        # The solver works in double precision whatever the precision of X.
        check_memory(len(rows), basis.blocks[0].columns.stop, 8, ARRAYS, advice=True)
        sigmas, alphas = self._data_grids(rows, kernel)
        search = Search(self._refits(data, basis, kernel, alphas))
        if self.cv is None:
            point = Outcome(sigmas.values[0], alphas.values[0], np.nan, np.empty(0), Softmax())
        else:
            point = search.run(sigmas, alphas)
        self._store(search.trial, point)  # type: ignore[arg-type]
        if self.cv is not None:
            self._store_heldout(data, point.F)
            self.cv_results_ = _table(search.seen)
        return self

    # ----------------------------------------------------------- parameters

    def _checked(self) -> Kernel:
        """All parameters checked, before any data are looked at; the kernel."""
        choose("bias", self.bias, ["shared", None])
        choose("solver", self.solver, SOLVERS)
        check_count("n_centers", self.n_centers)
        if check_count("max_iter", self.max_iter) is None:
            raise ValueError("max_iter=None must be a whole number of 1 or more.")
        parse_grid("tol", [self.tol], (), 1.0)
        sigmas, alphas = self._grids(1.0, 1.0)
        kernel = self._resolve_kernel()
        if self.cv is None and not (alphas.single and (sigmas.single or not kernel.has_sigma)):
            raise ValueError(
                "cv=None holds nothing out, so there is nothing to choose by: give sigma and alpha as numbers, "
                "or set cv=5."
            )
        named = (
            choose("centers", self.centers, ["random", "kmeans"]) if isinstance(self.centers, str) else None
        )
        if isinstance(kernel, Precomputed) and named != "random":
            raise ValueError("kernel='precomputed' knows no rows to place centres at: use centers='random'.")
        resolve_scoring(self.scoring)
        return kernel

    def _grids(self, length: float, height: float) -> tuple[Grid, Grid]:
        sigmas = parse_grid("sigma", self.sigma, np.multiply(SIGMA_MULTIPLES, length), 1.7)
        return sigmas, parse_grid("alpha", self.alpha, np.multiply(ALPHA_VALUES, height), 10**0.5)

    def _data_grids(self, rows: Rows, kernel: Kernel) -> tuple[Grid, Grid]:
        """The grids in the units of the data."""
        length = natural_length(kernel, rows) if isinstance(self.sigma, str) else 1.0
        height = natural_height(kernel, rows, length, "function") if isinstance(self.alpha, str) else 1.0
        sigmas, alphas = self._grids(length, height)
        return (sigmas if kernel.has_sigma else Grid((1.0,))), alphas

    def _refits(self, data: Training, basis: Basis, kernel: Kernel, alphas: Grid) -> Refits:
        settings = Settings(
            kernel=kernel,
            norm="function",
            bias=self.bias is not None,
            classes=data.classes,
            calibration=None,
            scorer=resolve_scoring(self.scoring),
            report=self._report,
        )
        return Refits(data.rows, basis, settings, Effort(alphas, self.solver, Stop(self.max_iter, self.tol)))

    def _report(self, line: str) -> None:
        if self.verbose:
            print(f"[{type(self).__name__}] {line}", flush=True)

    # ---------------------------------------------------------------- store

    def _store(self, refits: Refits, point: Outcome) -> None:
        """Fit to all rows at the chosen point, and keep the model."""
        settings, basis, dtype = refits.settings, refits.basis, refits.Z.dtype
        design = refits.design(point.sigma)
        model = refits.solve(design.D, refits.rows.y, refits.rows.w, point.alpha)
        self._warn_unsettled(model, (point.sigma, point.alpha) in refits.unsettled)
        self.kernel_, self.classes_ = settings.kernel, settings.classes
        self.sigma_, self.alpha_ = point.sigma, point.alpha
        self.coef_ = design.factor.unwhiten(model.Theta).astype(dtype)
        self.intercept_, self.jitter_ = model.intercept.astype(dtype), design.factor.jitter
        self.n_iter_, self.calibrator_ = max(model.n_iter, 1), point.calibrator
        if isinstance(settings.kernel, Precomputed):
            self.center_indices_ = basis.rows
        else:
            self.centers_ = basis.centers

    def _warn_unsettled(self, model: Logistic, refits: bool) -> None:
        if model.converged and not refits:
            return
        where = "The fit" if not model.converged else "A refit for the held-out scores"
        warnings.warn(
            f"{where} stopped before the gradient was small (max_iter={self.max_iter}, tol={self.tol:g}; its "
            f"norm on all rows is {model.gradient:.1e}): raise max_iter, alpha or tol.",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _store_heldout(self, data: Training, F: Array) -> None:
        """Held-out scores for all rows; rows of weight zero were not trained on, so the model's own serve."""
        everyone = np.empty((data.X.shape[0], F.shape[1]), dtype=F.dtype)
        everyone[data.used] = F
        unused = np.setdiff1d(np.arange(len(everyone)), data.used)
        if len(unused):
            everyone[unused] = self._scores(data.X[unused])
        self.heldout_scores_ = everyone
        self.heldout_decision_ = self._decision(everyone)
        self.heldout_proba_ = self.calibrator_.proba(everyone)
