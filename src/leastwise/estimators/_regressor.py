"""What kernel regressors have in common: quantities as targets, held-out predictions, intervals."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from leastwise.calibration.conformal import jackknife, jackknife_plus
from leastwise.calibration.heldout_rows import witnesses
from leastwise.estimators._checks import check_weights, choose
from leastwise.estimators._model import Targets, Training
from leastwise.estimators._tuned import TunedModel
from leastwise.model_selection.objective import ValueJudge
from leastwise.model_selection.optimism import excess, inflation
from leastwise.model_selection.scoring import ValueScorer, resolve_value_scoring
from leastwise.model_selection.search import table
from leastwise.problem.basis import Basis, row_chunks
from leastwise.problem.intercepts import Centring
from leastwise.problem.kernels import Kernel, Precomputed
from leastwise.solvers.evaluator import Outcome, Settings
from leastwise.solvers.heldout import Folds
from leastwise.solvers.task_deletion import Bordered, bordered_inverse
from leastwise.sources.dask import by_partition
from leastwise.utils.arrays import at_home, bring, float_dtypes, library, like, widest
from leastwise.utils.memory import available_memory, human

Array = np.ndarray

#: Up to so many training rows the models of all folds are looked at for an interval.
PLUS_ROWS = 4000


@dataclass(eq=False)
class Residuals:
    """Held-out residuals, and what the models of all folds can be had from.

    Attributes
    ----------
    residual : ndarray of shape (n, outputs)
        In the unit of the model.
    fold : ndarray of int of shape (n,)
    w : ndarray of shape (n,)
        Weights of mean 1.
    rho : float
        The ridge on the sum of losses.
    bias : bool
    centring : Centring or None
    rows : bool
        Whether there is a coefficient for every row, as jackknife+ wants it.
    stranger, stranger_w : ndarray of shapes (m, outputs) and (m,), or None
        Residuals of rows whose whole task is held out, and their weights.
    level : float
        Prior variance of the tasks' own intercepts.
    kernel : ndarray of shape (n, n) or None
        The kernel of the training rows, where it was precomputed.
    values : ndarray of shape (n, outputs)
        The targets.
    group : ndarray of int of shape (n,) or None
        The user's groups: a new row is one of a new group.
    count : ndarray of shape (n,) or None
        How many observations each row stands for; None where each is one.
    split : bool
        Of a row that stands for several observations, one was left out at a time.
    excess : ndarray of shape (n, outputs) or None
        What is added to the absolute residuals, as these have chosen the parameters.
    inflation : float
        What they are multiplied by then.
    inverse, same
        What was computed for the first interval.
    """

    residual: Array
    fold: Array
    w: Array
    rho: float
    bias: bool
    centring: Centring | None = None
    rows: bool = True
    stranger: Array | None = None
    stranger_w: Array | None = None
    level: float = 0.0
    kernel: Array | None = None
    values: Array | None = None
    group: Array | None = None
    count: Array | None = None
    split: bool = False
    excess: Array | None = None
    inflation: float = 1.0
    inverse: Bordered | None = None
    same: Array | None = None

    @property
    def witness(self) -> Array:
        """How much each row counts for a quantile: its number of observations; with groups, 1 for each of them."""
        return witnesses(self.w, self.group, self.count)

    def sizes(self, residual: Array) -> Array:
        """Absolute residuals, enlarged by what the choice of the parameters hides."""
        size = np.abs(residual)
        return self.inflation * (size if self.excess is None else np.maximum(size + self.excess, 0))

    def half_widths(self, coverage: float) -> Array:
        """Half the width of intervals that are equally wide everywhere, of shape (1, outputs)."""
        nothing = np.zeros((1, self.residual.shape[1]))
        return jackknife(nothing, self.sizes(self.residual), self.witness, coverage)[1]

    def stranger_half_widths(self, coverage: float) -> Array:
        """The same for tasks that are not known."""
        assert self.stranger is not None
        assert self.stranger_w is not None
        return jackknife(np.zeros((1, self.stranger.shape[1])), self.stranger, self.stranger_w, coverage)[1]

    def at_same_ridge(self) -> Array:
        """Residuals of the models that have the ridge on the sum of losses of the whole one: ``M_ff^-1 (M z)_f``.

        Held-out predictions are of models with the same ridge on the mean.
        """
        assert self.inverse is not None
        if self.same is None:
            M, root = self.inverse.M, np.sqrt(self.w)[:, None]
            left = M @ (root * self.values)
            folds = Folds.from_labels(self.fold)
            own = np.diagonal(M)
            if self.split and self.count is not None:  # see ``heldout.deletion.delete_one``
                own = own / self.count + (1 - 1 / self.count) / self.rho
            left[folds.singles] /= own[folds.singles, None]
            for f in folds.blocks:
                left[f] = np.linalg.solve(M[np.ix_(f, f)], left[f])
            self.same = left / root
        return self.same

    def __getstate__(self) -> dict:
        return {**vars(self), "inverse": None, "same": None}  # large, and can be had again


class KernelRegressor(RegressorMixin, TunedModel):
    """Base of the kernel regressors that choose sigma and alpha by held-out predictions."""

    TARGET_CHECKS: ClassVar[dict[str, Any]] = {"multi_output": True, "y_numeric": True}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    # ------------------------------------------------------------------- fit

    def _training(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, kernel: Kernel, tasks: Any = None
    ) -> Training:
        y = bring(y)
        kind = np.asarray(y).dtype.kind
        if kind in "mM":
            raise ValueError(
                f"y holds {'dates' if kind == 'M' else 'durations'}: give numbers, such as days since some day."
            )
        text = next((v for v in np.asarray(y, dtype=object).ravel() if isinstance(v, str)), None)
        if text is not None:
            raise ValueError(
                f"y holds text, such as {str(text)!r}: {type(self).__name__} predicts quantities, and needs numbers. "
                f"For classes use {type(self).__name__[:-1]}C."
            )
        return super()._training(X, y, sample_weight, groups, kernel, tasks)

    def _weights(self, sample_weight: Any, X: Any, y: Array) -> Array:
        return check_weights(sample_weight, None, y)

    def _targets(self, y: Array, dtype: Any) -> Targets:
        """Quantities in units that are powers of two, so that nothing is rounded and nothing overflows."""
        Z = y.reshape(len(y), -1).astype(float)
        unit, offset = self._units(Z, dtype)
        if len(Z) > 1 and (np.ptp(Z, axis=0) == 0).all():
            warnings.warn(
                f"y holds one value only, {Z[0].tolist() if Z.shape[1] > 1 else float(Z[0, 0])}: there is nothing to "
                "learn but that.",
                UserWarning,
                stacklevel=7,
            )
        return self._coded(y, dtype, (unit, offset, y.ndim == 1))

    def _units(self, Z: Array, dtype: Any) -> tuple[Array, Array]:
        """The unit of every output, and what is subtracted before."""
        if Z.shape[1] == 0:
            raise ValueError(f"y has shape {Z.shape}: there is nothing to learn; give one column or more.")
        # In single precision a level far above the differences would take up all digits.
        offset = Z.mean(axis=0) if np.dtype(dtype) == np.float32 and self.bias is not None else np.zeros(Z.shape[1])
        largest = np.abs(Z - offset).max(axis=0)
        return 2.0 ** np.floor(np.log2(np.where(largest > 0, largest, 1.0))), offset

    def _coded(self, y: Array, dtype: Any, known: Any) -> Targets:
        unit, offset, flat = known
        Z = (y.reshape(len(y), -1).astype(float) - offset) / unit
        return Targets(np.zeros(len(Z), dtype=int), None, Z.astype(dtype), unit, offset, flat)

    def _scorer(self) -> ValueScorer:
        return resolve_value_scoring(self.scoring)

    def _judge(self, data: Training) -> ValueJudge:
        rows = data.rows
        assert rows.values is not None
        return ValueJudge.of(rows.values, rows.w, rows.task, self._scorer(), data.targets.unit)

    def _labels(self, data: Training) -> Array:
        """The targets of the rows that count, as they were given."""
        targets = data.targets
        return _shaped(data.rows.values, targets.unit, targets.offset, targets.flat)

    def _compared(self, data: Training) -> Array:
        """Targets by which tasks are compared: about their means, in units of their spread."""
        Z = np.asarray(data.rows.values, dtype=float)
        Z = Z - np.average(Z, axis=0, weights=data.rows.w)
        return Z / np.maximum(np.sqrt(np.average(Z**2, axis=0, weights=data.rows.w)), np.finfo(float).tiny)

    def _finish(
        self, data: Training, basis: Basis, settings: Settings, outcome: Outcome, solution: Any, seen: list[dict]
    ) -> Any:
        """Store the model, and what is known of held-out rows."""
        self._store(data, basis, settings, outcome, solution)
        self._warn_lifted(settings.kernel, solution)
        self.unit_, self.offset_, self.flat_ = data.targets.unit, data.targets.offset, data.targets.flat
        if self.cv is not None:
            F, _ = self._everyone(data, outcome.F)
            self.heldout_prediction_ = self._shown(F)
            self.cv_results_ = table(seen)
        return self

    # --------------------------------------------------------------- predict

    @by_partition
    def predict(self, X: Any) -> Array:
        """Predicted values, of shape (n,), or (n, n_outputs) where y had such a shape."""
        return self._shown(self._values(X)[0])

    @by_partition
    def predict_interval(self, X: Any, coverage: float = 0.9, method: str = "auto") -> Array:
        """Intervals that hold the value with about this probability, from held-out residuals.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
        coverage : float, default=0.9
            Above 0 and below 1.
        method : {"auto", "jackknife+", "jackknife"}, default="auto"
            "jackknife+" looks at the models without each fold (CV+ where folds hold several rows): intervals are
            wider where these differ, and cover with a probability of at least ``2 coverage - 1`` whatever the data
            are. It needs every training row as a centre, and an inverse of all rows that is computed at the first
            call. "jackknife" takes the same width everywhere. "auto" is "jackknife+" up to 4,000 training rows.

        Returns
        -------
        ndarray of shape (n, 2), or (n, n_outputs, 2)
            Lower and upper ends; infinite where there are too few rows (or groups) for that coverage, fewer than
            ``coverage / (1 - coverage)``: nine for 0.9. Weights of rows count beside one another: n rows count n,
            whatever their weights sum to.

        Notes
        -----
        Where ``fit`` was given ``groups``, intervals are for rows of new groups: residuals are of groups that were
        left out whole, and every group counts once, however many rows it has.

        Residuals that have chosen the parameters are too small. They are taken from the points of the search that the
        other rows would have chosen, and multiplied by ``sqrt(n / (n - p))`` for p chosen parameters, see
        ``leastwise.model_selection.optimism``; n is the number of groups where there are any. The guarantee of
        jackknife+ is for given parameters.
        """
        return self._interval(X, None, coverage, method)

    def _interval(self, X: Any, tasks: Any, coverage: float, method: str) -> Array:
        check_is_fitted(self)
        choose("method", method, ["auto", "jackknife+", "jackknife"])
        if isinstance(coverage, bool) or not isinstance(coverage, int | float | np.number) or not 0 < coverage < 1:
            hint = " (Tasks are given by name: tasks=.)" if np.ndim(coverage) else ""
            raise ValueError(f"coverage={coverage!r} must be a number above 0 and below 1, such as 0.9.{hint}")
        known = self._residuals(method)
        F, rows, task = self._values(bring(X), tasks)
        plus = known.rows and method != "jackknife" and self._room_for_plus(len(known.fold), method)
        low, high = np.empty(F.shape), np.empty(F.shape)
        own = np.ones(len(F), dtype=bool) if task is None or known.stranger is None else task >= 0
        for part in row_chunks(len(F), len(known.fold) * 4, 8):
            i = np.flatnonzero(own[part]) + part.start
            if plus and len(i):
                S = self._smoother(rows[i], None if task is None else task[i], known)
                left = known.at_same_ridge()
                weights, size = known.witness, known.sizes(left)
                if known.split and known.count is not None:  # one observation is that part of the row's target
                    S = S / known.count
                low[i], high[i] = jackknife_plus(F[i], S, left, known.fold, weights, coverage, size)
            else:
                half = known.half_widths(coverage)
                low[i], high[i] = F[i] - half, F[i] + half
        if not own.all():
            half = known.stranger_half_widths(coverage)
            low[~own], high[~own] = F[~own] - half, F[~own] + half
        return np.stack([self._shown(low), self._shown(high)], axis=-1)

    def _room_for_plus(self, n: int, method: str) -> bool:
        """Whether jackknife+ is to be: where it was asked for, or rows are few and their inverse fits into memory."""
        need, have = 3 * 8 * n * n, available_memory()
        if method == "jackknife+" and need > have:
            raise MemoryError(
                f"method='jackknife+' needs about {human(need)} for an inverse of {n} rows; {human(have)} are "
                "available. Use method='jackknife'. (Set LEASTWISE_MEMORY to change the limit.)"
            )
        return method == "jackknife+" or (n <= PLUS_ROWS and need <= have)

    def _residuals(self, method: str) -> Residuals:
        known = vars(self).get("residuals_")
        if known is None:
            raise ValueError(
                "cv=None held nothing out, so there are no residuals to make intervals of: use cv='loo'. (A model "
                "from a file that was saved with keep='predict' has lost them: use keep='all'.)"
            )
        if method == "jackknife+" and not known.rows:
            raise ValueError(
                "method='jackknife+' needs a coefficient for every training row, which a model with n_centers, "
                "prune=, solver='arrow' or 'krylov', or a linear kernel of many rows has not: use method='jackknife'."
            )
        return known

    def _smoother(self, X: Any, task: Array | None, known: Residuals) -> Array:
        """Weights of the training targets in the predictions of some rows (m x n)."""
        root = np.sqrt(known.w)
        if known.inverse is None:
            H = self._row_kernel(None, None, known) * root[:, None] * root
            known.inverse = bordered_inverse(H, known.rho + self.jitter_, root, known.bias, known.centring)
        K = self._row_kernel(X, task, known) * root
        return (K @ known.inverse.M + known.inverse.m) * root

    def _row_kernel(self, X: Any, task: Array | None, known: Residuals) -> Array:
        """Kernel between some rows and the training rows, or among these, in double precision."""
        if isinstance(self.kernel_, Precomputed):
            K: Any = known.kernel if X is None else X[:, self.center_indices_]
            return np.asarray(K.toarray() if hasattr(K, "toarray") else K, dtype=float)
        return self.kernel_(self.centers_ if X is None else X, self.centers_, self.sigma_).astype(float)

    def _values(self, X: Any, tasks: Any = None) -> tuple[Array, Any, Array | None]:
        """Predictions in the unit of the model, the rows as an array, and the codes of their tasks."""
        check_is_fitted(self)
        checks = {"accept_sparse": "csr", "accept_large_sparse": False}
        X = validate_data(self, X, reset=False, dtype=float_dtypes(X, self.intercept_.dtype), **checks)
        return self._scores(X)[0], X, None

    def _shown(self, F: Array) -> Array:
        """Predictions in the unit and shape of y."""
        return _shaped(F, self.unit_, self.offset_, self.flat_)

    unit_: Array
    offset_: Array
    flat_: bool
    kernel_: Kernel
    centers_: Any
    center_indices_: Array


def residuals(data: Training, best: Outcome, settings: Settings, plain: bool, seen: list[dict]) -> Residuals:
    """What is known of held-out rows.

    ``plain`` says that every row has a coefficient; ``seen`` are the points of the search.
    """
    rows, held = data.rows, ~np.isnan(best.F[:, 0])
    assert rows.values is not None
    given = rows.X if plain and isinstance(settings.kernel, Precomputed) else None
    w = rows.w[held].astype(float)
    fold = np.unique(rows.fold[held], return_inverse=True)[1]
    left = (rows.values - best.F)[held].astype(float)
    values = rows.values[held].astype(float)
    rho = best.alpha * len(rows)
    more = excess(seen, rows, settings)
    return Residuals(
        left,
        fold,
        w / w.mean(),
        rho,
        settings.bias,
        rows=plain,
        kernel=given,
        values=values,
        group=None if rows.group is None else rows.group[held],
        count=None if rows.count is None else rows.count[held],
        split=rows.by_observation,
        excess=None if more is None else more[held],
        inflation=inflation(seen, rows.size),
    )


def _shaped(F: Any, unit: Any, offset: Any, flat: bool) -> Array:
    if not at_home(F):
        wide = widest(F)
        values = library(F).astype(wide * like(unit, wide) + like(offset, wide), F.dtype)
        return values[:, 0] if flat else values
    values = np.asarray(F, dtype=float) * unit + offset
    if F.dtype == np.float32 and np.abs(values[np.isfinite(values)]).max(initial=0) < np.finfo(np.float32).max:
        values = values.astype(np.float32)
    return values[:, 0] if flat else values
