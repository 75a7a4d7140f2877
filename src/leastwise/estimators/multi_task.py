"""The least-squares probabilistic classifier for many related tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from leastwise.basis import Basis, given_basis
from leastwise.coupling import Coupling, Pairwise, Shared
from leastwise.estimators._base import Training, all_or_nothing
from leastwise.estimators._calibrated import CalibratedClassifier
from leastwise.estimators._checks import (
    check_dual_memory,
    check_search_memory,
    check_search_rows,
    check_similarity,
    check_task_memory,
    choose,
    search_bytes,
)
from leastwise.estimators._tasks import TaskClassifier
from leastwise.kernels import Kernel, Linear, Precomputed
from leastwise.memory import available_memory
from leastwise.probability import CALIBRATIONS, Calibrator, ClipNormalise, class_shares, fit_calibrator
from leastwise.selection.arrow import ArrowTrial
from leastwise.selection.coupled import CoupledTrial
from leastwise.selection.grid import Grid, Levels
from leastwise.selection.plan import ARRAYS, SETTLE_NUMBERS, task_rows_to_search
from leastwise.selection.search import Search, some_tasks, stratified_rows
from leastwise.selection.trial import Outcome, Rows, Settings, Trial
from leastwise.similarity import correlation_similarity, input_similarity, learned_similarity
from leastwise.task_fitting import (
    TaskSolution,
    TaskTrial,
    check_folds_within_tasks,
    solve_tasks,
    stranger_scores,
    stream_tasks,
)

Array = np.ndarray

#: Similarities that are computed from the data of the tasks, on so many rows at most.
COMPUTED = ("learned", "correlation", "inputs")
SIMILARITY_ROWS = 1200
#: With more tasks than this, learning their similarities takes too long.
MANY_TASKS = 300
#: With fewer tasks than this there is nothing to learn about tasks that are not known.
FEW_TASKS = 3


@dataclass(frozen=True)
class Found:
    """What a search found: the point, all points seen, the trial of all rows, and the one that was searched."""

    outcome: Outcome
    seen: list[dict]
    trial: TaskTrial
    searched: TaskTrial


def _too_large_to_settle(whole: TaskTrial) -> bool:
    """Whether all rows can be gone through once or twice, but not be searched on."""
    numbers = whole.basis.n_functions * len(whole.rows)
    return whole.streams and (numbers > SETTLE_NUMBERS or search_bytes(numbers) > available_memory())


class MultiTaskLSPC(TaskClassifier, CalibratedClassifier):
    r"""Least-squares probabilistic classifier for many related tasks, tuned and calibrated in closed form.

    Each task t has scores of its own, a part that all tasks share and a part of its own (Simm et al. 2011)::

        F_y(x, t) = (beta_y0 + beta_yt)' phi(x)

        min  1/(2n) sum_i (F_y(x_i, t_i) - [y_i = y])^2 + lambda/2 |beta_y0|^2 + gamma/(2T) sum_t |beta_yt|^2      (4)

    Here ``sharing`` says how much is common and ``alpha`` how strong the ridge is
    (:func:`leastwise.coupling.from_lambda_gamma` has the relation). In the dual, Lemma 1, this is one system of n
    unknowns with the Gram matrix ``G_ij (sharing + (1 - sharing) [t_i = t_j])``: the number of tasks does not matter.
    With fewer centres than rows it is a block-arrow system, linear in the number of rows and of tasks.

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
        As in :class:`leastwise.LSPC`.
    norm : {"function", "coefficients"}, default="function"
        What the ridge is on: the norm of the functions, or of the coefficients as in the paper. Held-out scores of
        the second cost more with many tasks, since a row takes its basis function out of every task; beyond 100,000
        rows times tasks it leaves it there.
    n_centers : int, optional
        So many centres instead of all rows. With ``similarity="shared"`` the cost is then linear in rows and tasks,
        and memory small; with others it saves nothing. The centres are places: unlike in :class:`leastwise.LSPC` they
        stay when their row is held out, and all folds have the ridge of the average one.
    centers : {"random", "kmeans"} or array of shape (b, n_features), default="random"
        How they are chosen; an array is used as it is.
    bias : {"shared", None}, default=None
        An unpenalised intercept per class, common to all tasks; or none, as in the paper.
    cv : "loo", int, splitter, iterable of splits or None, default="loo"
        How rows are held out: one by one (together with exact copies in the same task), in so many folds stratified
        by task and class together, or as a splitter says (one that asks for groups is given the tasks, if there are
        no other groups). A fold may hold all rows of a task: these then get what the other tasks say. With few
        centres and many rows folds must lie within a task each. None holds nothing out: sigma, alpha and sharing must
        be numbers, and ``calibration=None``.
    scoring : str or callable, default="log_loss"
        What the search maximises on held-out predictions: as in :class:`leastwise.LSPC`, where "auc" is the AUC of
        all rows pooled, as in the paper; or "task_auc", the mean over tasks.
    calibration : {"blend", "temperature", "isotonic", None}, default="blend"
        From scores to probabilities; None is the paper's clip and normalise, eq. (7).
    extrapolate : bool, default=False
        Believe the scores of rows wherever they are; see :class:`leastwise.LSPC`.
    class_weight : dict or "balanced", optional
        Weights of the classes.
    solver : {"auto", "dual", "arrow"}, default="auto"
        "dual" is a system of all rows. "arrow" goes through the tasks one by one with a system of the basis
        functions; it needs ``n_centers`` or ``centers``, or ``kernel="linear"`` with ``norm="function"``, and
        ``similarity="shared"``. "auto" is "arrow" where that is possible with fewer basis functions than rows.
    search_rows : "auto", int or None, default="auto"
        On about how many rows sigma, alpha and sharing are searched, whole tasks of them where that is possible.
        None takes all.
    degree, coef0 : default=3 and 1.0
        Shape of the kernels "poly" and "sigmoid".
    random_state : int, RandomState or None, default=None
        For random centres, folds, and the tasks that large data are searched on.
    verbose : int, default=0
        1 prints a line for every sigma and sharing.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
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
    calibrator_, stranger_calibrator_ : object
        From scores to probabilities, for the tasks and for tasks that are not known.
    reach_ : Reach or None
        How far from the data the model is trusted.
    heldout_scores_, heldout_decision_, heldout_proba_ : ndarray
        What ``scores``, ``decision_function`` and ``predict_proba`` say of the training rows when these are held out.
        Not there with ``cv=None``.
    stranger_scores_ : ndarray of shape (n, n_classes)
        What ``scores`` would say of the training rows if their whole task were not known. There only where all rows
        were searched, and ``stranger_calibrator_`` is not None.
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
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, tasks: Any = None) -> MultiTaskLSPC:
        """Choose sigma, alpha and sharing, solve, calibrate.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
            Rows, with the task column if there is one; with ``kernel="precomputed"`` the (n, n) kernel matrix.
        y : array-like of shape (n,)
            Classes. A task need not have seen all of them.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows. A weight of 2 is the same as the row twice, 0 as no row.
        groups : array-like of shape (n,), optional
            Rows of one group are held out together.
        tasks : array-like of shape (n,), optional
            The task of every row, any hashable ids, where X does not hold them.
        """
        kernel, sharings = self._checked()
        data = self._training(X, y, sample_weight, groups, kernel, tasks)
        settings = self._settings(kernel, data.classes, self.norm, self.calibration)
        found = self._select(data, settings, self._coupling(data), sharings)
        if self._computes:
            found = self._relate(data, settings, found, sharings)
        return self._complete(data, settings, found)

    # ------------------------------------------------------------- parameters

    def _checked(self) -> tuple[Kernel, Levels]:
        """All parameters checked, before any data are looked at; the kernel, and the sharings to try."""
        choose("norm", self.norm, ["function", "coefficients"])
        choose("calibration", self.calibration, CALIBRATIONS)
        choose("solver", self.solver, ["auto", "dual", "arrow"])
        if isinstance(self.similarity, str):
            choose("similarity", self.similarity, ["shared", *COMPUTED])
        check_search_rows(self.search_rows)
        sharings = self._checked_tasks()
        if self.cv is None and (len(sharings.values) > 1 or self._computes):
            raise ValueError(
                "cv=None holds nothing out, so there is nothing to choose by: give a number for sharing, and "
                "similarity='shared' or a matrix; or set cv='loo' or a number of folds."
            )
        kernel = self._checked_kernel(calibrated=self.calibration is not None)
        if self.solver == "arrow" and not self._few_functions(kernel):
            raise ValueError(
                "solver='arrow' needs few basis functions and tasks that all share alike: give n_centers or centers, "
                "or kernel='linear' with norm='function'; and similarity='shared'. solver='dual' takes all else."
            )
        return kernel, sharings

    @property
    def _computes(self) -> bool:
        """Whether similarities come from the data."""
        return isinstance(self.similarity, str) and self.similarity in COMPUTED

    def _few_functions(self, kernel: Kernel) -> bool:
        """Whether the block-arrow system applies."""
        chosen = self.n_centers is not None or not isinstance(self.centers, str)
        linear = isinstance(kernel, Linear) and self.norm == "function"
        return self._alike and (chosen or linear) and not isinstance(kernel, Precomputed)

    @property
    def _alike(self) -> bool:
        """Whether all tasks share alike."""
        return isinstance(self.similarity, str) and self.similarity == "shared"

    def _coupling(self, data: Training) -> Coupling:
        """How the tasks are tied, as far as that is known before the search."""
        shared = self._shared()
        if isinstance(self.similarity, str):
            if self.similarity == "learned" and len(self.tasks_) > MANY_TASKS:
                raise ValueError(
                    f"similarity='learned' compares all pairs of tasks, and {len(self.tasks_)} are too many for "
                    f"that: up to {MANY_TASKS} are possible. Use 'correlation', 'inputs' or 'shared'."
                )
            return shared
        S = self.similarity
        if callable(S):
            ids = self.tasks_[data.rows.task]
            S = S(data.rows.X, data.classes[data.rows.y], ids)
        return Pairwise(shared.penalty, check_similarity(S, self.task_index_))

    # ----------------------------------------------------------------- choice

    def _trial(self, data: Training, rows: Rows, settings: Settings, coupling: Coupling) -> TaskTrial:
        """Held-out scores of some rows, by the cheapest exact way."""
        basis = self._task_basis(data, rows, settings)
        b, applies = basis.n_functions, self.solver != "dual" and self._few_functions(settings.kernel)
        if applies and (self.solver == "arrow" or b < len(rows)):
            check_task_memory(len(self.tasks_), b, len(settings.classes), rows.X.dtype.itemsize)
            # Centres are places here: they have no weight, and are not tied to rows.
            return ArrowTrial(rows, replace(basis, square=False, weighted=False), settings, coupling)
        also = "" if self._alike and self.solver != "dual" else "with similarity='shared' and solver='auto', "
        hint = f"With few centres the cost is linear in the rows: {also}n_centers=200 for instance."
        check_dual_memory(len(rows), rows.X.dtype.itemsize, ARRAYS[settings.norm], hint)
        return CoupledTrial(rows, basis, settings, coupling)

    def _task_basis(self, data: Training, rows: Rows, settings: Settings) -> Basis:
        """The linear kernel has the inputs themselves for basis functions, where these are fewer than the rows."""
        d, kernel = rows.X.shape[1], settings.kernel
        linear = isinstance(kernel, Linear) and self._few_functions(kernel) and self.solver != "dual"
        chosen = self.n_centers is not None or not isinstance(self.centers, str)
        if linear and not chosen and (d < len(rows) or self.solver == "arrow"):
            return given_basis(np.eye(d, dtype=rows.X.dtype), len(settings.classes))
        return self._basis(rows, data.rng, settings)

    def _select(self, data: Training, settings: Settings, coupling: Coupling, sharings: Levels) -> Found:
        """Search on some tasks or all; the best point, all points, and the trial on all rows."""
        rows, (sigmas, alphas) = data.rows, self._data_grids(data.rows, settings)
        whole = self._trial(data, rows, settings, coupling)
        if self.cv is None:
            shares = class_shares(rows.y, rows.w, len(data.classes)).astype(rows.X.dtype)
            point = Outcome(sigmas.values[0], alphas.values[0], np.nan, np.empty(0), ClipNormalise(shares))
            return Found(replace(point, sharing=sharings.values[0]), [], whole, whole)
        some, kept = self._some(data, whole, settings)
        if isinstance(whole, ArrowTrial):
            check_search_memory(len(some), whole.basis.n_functions)
        if some is rows:
            search = Search(whole)
            return Found(search.run(sigmas, alphas, sharings), search.seen, whole, whole)
        if _too_large_to_settle(whole):
            check_folds_within_tasks(rows, len(some))
        return self._select_on_some(data, whole, self._trial(data, some, settings, coupling.take(kept)), sharings)

    def _select_on_some(self, data: Training, whole: TaskTrial, part: TaskTrial, sharings: Levels) -> Found:
        """Search on some tasks, then go on from there on all.

        What suits a task of so many rows is a ridge on the sum of the losses, however many tasks there are. So
        alphas, which are on the mean, are converted.
        """
        sigmas, alphas = self._data_grids(data.rows, whole.settings)
        ratio = len(part.rows) / len(whole.rows)
        search = Search(part)
        # A grid that was given is one for all rows.
        scaled = alphas if alphas.ratio else Grid(tuple(a / ratio for a in alphas.values))
        guess = search.run(sigmas, scaled, sharings)
        for point in search.seen:
            point["alpha"] *= ratio
        alpha = guess.alpha * ratio
        alpha = alpha if alphas.ratio else min(alphas.values, key=lambda a: abs(a - alpha))
        start = replace(guess, alpha=alpha)
        if _too_large_to_settle(whole):
            return Found(start, search.seen, whole, part)
        final = Search(whole)
        found = final.settle(start, alphas, sharings)
        return Found(found, search.seen + final.seen, whole, whole)

    def _some(self, data: Training, whole: TaskTrial, settings: Settings) -> tuple[Rows, Array]:
        """The rows that the search is made on, whole tasks if possible, and which tasks these are."""
        rows = data.rows
        assert rows.task is not None
        everyone = np.arange(len(self.tasks_))
        count = task_rows_to_search(whole.basis.n_functions, len(rows), self.search_rows, whole.streams)
        if count >= len(rows):
            return rows, everyone
        index = some_tasks(rows.task, rows.y, rows.w, count, data.rng)
        some = rows.take(index, isinstance(settings.kernel, Precomputed))
        if len(np.unique(some.fold)) < 2 or len(some) >= len(rows):
            return rows, everyone
        kept, task = np.unique(rows.task[index], return_inverse=True)
        return replace(some, task=task), kept

    def _relate(self, data: Training, settings: Settings, found: Found, sharings: Levels) -> Found:
        """Compute the similarities of the tasks where the search ended, and choose the sharing anew.

        These similarities have seen the labels of all rows, so held-out scores are a little too good from here on,
        and better for less smoothing. Hence sigma stays, and alpha may only grow.
        """
        trial, best = found.trial, found.outcome
        assert isinstance(trial, CoupledTrial)
        S = self._similarities(data, trial, best)
        penalty = trial.coupling.penalty
        coupling: Coupling = Shared(penalty, S) if self.similarity == "learned" else Pairwise(penalty, S)
        tied = trial.retied(coupling)
        search = Search(tied)
        _, alphas = self._data_grids(data.rows, settings)
        larger = best.alpha * np.sqrt(10.0) ** np.arange(3) if alphas.ratio else np.array(alphas.values)
        grid = Grid(tuple(float(a) for a in larger if best.alpha <= a <= 10.5 * best.alpha))
        related = search.run(Grid((best.sigma,)), grid, replace(sharings, every=True))
        later = [{**point, "stage": 1} for point in search.seen]
        return Found(related, found.seen + later, tied, tied)

    def _similarities(self, data: Training, trial: CoupledTrial, best: Outcome) -> Array:
        rows = trial.rows
        index = np.arange(len(rows))
        if len(rows) > SIMILARITY_ROWS:
            cell = np.unique(trial.task * len(data.classes) + rows.y, return_inverse=True)[1]
            index = stratified_rows(cell, SIMILARITY_ROWS, data.rng)
        K = Trial.kernel(trial, best.sigma) if trial.basis.square else trial.gram(best.sigma)
        K = K[np.ix_(index, index)].astype(float)
        task, Z = trial.task[index], rows.one_hot(len(data.classes))[index].astype(float)
        root = None if rows.equal_weights else trial.root[index].astype(float)
        rho = best.alpha / trial.unit * len(index)
        if self.similarity == "inputs":  # kernels that are not of a distance may be negative
            return np.maximum(input_similarity(K, task), 0)
        if self.similarity == "correlation":
            return correlation_similarity(K, Z, task, rho, root)
        return learned_similarity(K, Z, task, rho, best.sharing or 0.0, root)

    # ------------------------------------------------------------------ store

    def _complete(self, data: Training, settings: Settings, found: Found) -> MultiTaskLSPC:
        """Solve at the point that was chosen, and store all that is known."""
        best = found.outcome
        assert best.sharing is not None
        trial = found.trial.tied(best.sharing)
        if self.cv is None or len(best.F) == len(data.rows):
            solution = solve_tasks(trial, best.sigma, best.alpha)
        else:  # judged on some tasks only
            assert isinstance(trial, ArrowTrial)
            solution, held = stream_tasks(trial, best.sigma, best.alpha, hold=True)
            best.F = trial.settled(held).F  # type: ignore[arg-type]
            best.calibrator = fit_calibrator(self.calibration, data.rows.sample(best.F), solution.intercept)
        if isinstance(trial, ArrowTrial):
            reach, trust = self._chunked_reach(data.rows, trial.basis, settings, np.arange(len(data.rows)))
        else:
            reach, trust = self._reach(trial)
        stranger = self._strangers(data, found.searched.tied(best.sharing), best, solution)
        self._store_tasks(trial, best.sharing, stranger)
        return self._finish(data, trial.basis, settings, best, solution, found.seen, reach, trust)

    def _strangers(
        self, data: Training, trial: TaskTrial, best: Outcome, solution: TaskSolution
    ) -> Calibrator | None:
        """How scores of tasks that are not known become probabilities, from tasks held out whole."""
        asked = self.unknown_task == "shared" or np.any(data.task < 0)  # type: ignore[operator]
        if not asked or self.cv is None or self.calibration is None or len(self.tasks_) < FEW_TASKS:
            return None
        alpha = best.alpha * len(data.rows) / len(trial.rows)
        F = stranger_scores(trial, best.sigma, alpha, solution.jitter if solution.lifted else 0.0)
        if len(trial.rows) == len(data.rows):
            self.stranger_scores_ = np.full((data.X.shape[0], F.shape[1]), np.nan, dtype=F.dtype)
            self.stranger_scores_[data.used] = F
        # A task is one witness of what happens to tasks that are not known.
        sample = replace(trial.rows.sample(F), size=len(np.unique(trial.rows.task)))  # type: ignore[arg-type]
        return fit_calibrator(self.calibration, sample, solution.intercept)

    def _store_coef(self, solution: Any) -> None:
        self.form_ = solution.form

    def _store_tasks(self, trial: TaskTrial, sharing: float, stranger: Calibrator | None) -> None:
        self.sharing_, self.stranger_calibrator_ = sharing, stranger
        self.relation_, self.tie_ = trial.coupling, trial.tie

    @property
    def similarity_(self) -> Array:
        """Similarities of the tasks, of shape (T, T); ones where all are alike."""
        check_is_fitted(self)
        S = self.relation_.similarity
        return np.ones((len(self.tasks_), len(self.tasks_))) if S is None else S

    @property
    def coupling_(self) -> Array:
        """The task matrix B at ``sharing_``, of shape (T, T)."""
        check_is_fitted(self)
        return self.tie_.matrix
