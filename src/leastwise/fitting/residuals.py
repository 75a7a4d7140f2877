"""Held-out residuals of a regressor, their scale, and what jackknife+ needs of the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.calibration.conformal import jackknife
from leastwise.calibration.extrapolation import independent_weights
from leastwise.calibration.spread import ResidualRows, Spread, fit_spread
from leastwise.fitting.dataset import Dataset
from leastwise.fitting.direct import Fitted
from leastwise.fitting.new_rows import raw_scores
from leastwise.fitting.spec import Spec
from leastwise.model_selection.optimism import excess, inflation
from leastwise.problem.coupling import Centring
from leastwise.problem.kernels import Linear, Precomputed
from leastwise.solvers.evaluator import Candidate
from leastwise.solvers.heldout import Folds
from leastwise.solvers.influence import BorderedInverse
from leastwise.solvers.solve_tasks import WIDE, unseen_task_scores

Array = np.ndarray

#: With fewer tasks than this, unseen tasks have no separate calibration.
FEW_TASKS = 3


@dataclass(eq=False)
class Residuals:
    """Held-out residuals, and the quantities from which the models of all folds can be computed.

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
        Whether there is a coefficient for every row, as jackknife+ needs.
    unseen_task, unseen_task_w : ndarray of shapes (m, outputs) and (m,), or None
        Residuals of rows of unseen tasks (the whole task is held out), and their weights.
    level : float
        Prior variance of the tasks' own intercepts.
    kernel : ndarray of shape (n, n) or None
        The kernel of the training rows, if it was precomputed.
    values : ndarray of shape (n, outputs)
        The targets.
    group : ndarray of int of shape (n,) or None
        The user's groups: a new row belongs to a new group.
    count : ndarray of shape (n,) or None
        Number of observations of each row; None if each row is one observation.
    split : bool
        Whether rows with several observations were held out one observation at a time.
    excess : ndarray of shape (n, outputs) or None
        Added to the absolute residuals, to correct for their use in the choice of hyperparameters.
    inflation : float
        Factor by which they are then multiplied.
    spread, unseen_spread : Spread or None
        Scales of the residuals, and of those of unseen tasks.
    position : ndarray of int of shape (n,) or None
        Positions of the rows among those given to ``fit``; None if no row has a weight of zero.
    inverse, same
        Cached results of the first interval.
    """

    residual: Array
    fold: Array
    w: Array
    rho: float
    bias: bool
    centring: Centring | None = None
    rows: bool = True
    unseen_task: Array | None = None
    unseen_task_w: Array | None = None
    level: float = 0.0
    kernel: Array | None = None
    values: Array | None = None
    group: Array | None = None
    count: Array | None = None
    split: bool = False
    excess: Array | None = None
    inflation: float = 1.0
    spread: Spread | None = None
    unseen_spread: Spread | None = None
    position: Array | None = None
    inverse: BorderedInverse | None = None
    same: Array | None = None

    @property
    def row_weights(self) -> Array:
        """Weight of each row in a quantile: its number of observations; with groups, the rows of a group sum to 1."""
        return independent_weights(self.w, self.group, self.count)

    def sizes(self, residual: Array) -> Array:
        """Absolute residuals, corrected for the choice of hyperparameters."""
        size = np.abs(residual)
        return self.inflation * (size if self.excess is None else np.maximum(size + self.excess, 0))

    def ratios(self, residual: Array, adaptive: bool = True) -> Array:
        """Sizes of residuals relative to the scales of their rows."""
        return self.sizes(residual) / (self.spread.heldout if adaptive and self.spread is not None else 1.0)

    def half_widths(self, coverage: float, adaptive: bool = True) -> Array:
        """Half the width of an interval relative to the scale of a row, of shape (1, outputs)."""
        nothing = np.zeros((1, self.residual.shape[1]))
        return jackknife(nothing, self.ratios(self.residual, adaptive), self.row_weights, coverage)[1]

    def unseen_task_half_widths(self, coverage: float, adaptive: bool = True) -> Array:
        """The same for unseen tasks."""
        assert self.unseen_task is not None
        assert self.unseen_task_w is not None
        scale = self.unseen_spread.heldout if adaptive and self.unseen_spread is not None else 1.0
        ratio = self.unseen_task / scale
        return jackknife(np.zeros((1, ratio.shape[1])), ratio, self.unseen_task_w, coverage)[1]

    def at_same_ridge(self) -> Array:
        """Residuals of models with the same ridge on the sum of losses as the full model: ``M_ff^-1 (M z)_f``.

        Held-out predictions are from models with the same ridge on the mean loss.
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
        return {**vars(self), "inverse": None, "same": None}  # large, and can be recomputed


def heldout_residuals(model: Any, spec: Spec, data: Dataset, fitted: Fitted) -> Residuals:
    """The record of held-out rows of a model with its coefficients, and of tasks that were held out completely."""
    rows, best = data.rows, fitted.outcome
    held = np.flatnonzero(~np.isnan(best.F[:, 0]))
    known = _record(data, best, fitted, held)
    task = None if rows.task is None else rows.task[held]
    n_tasks = 0 if data.tasks is None else len(data.tasks)
    size = known.sizes(known.residual)
    known.spread = _spread(model, size, rows, held, best.F, fitted, known.group, task, n_tasks)
    if not spec.many_tasks:
        return known
    evaluator = fitted.choice.searched
    if fitted.plain:
        # Unpenalised intercepts are treated as intercepts with a very large variance here.
        wide = evaluator.with_intercept_ratio(min(evaluator.intercept_ratio, WIDE))
        known.centring, known.bias = wide.centring(), fitted.settings.bias
        known.level = wide.unit_intercept_ratio * known.rho
    if spec.unknown_task == "shared" and n_tasks >= FEW_TASKS:
        rows = evaluator.rows
        F = unseen_task_scores(evaluator, best.sigma, fitted.chosen * len(data.rows) / len(rows))
        known.unseen_task = (rows.values - F).astype(float)
        known.unseen_task_w = rows.w.astype(float) / np.bincount(rows.task, weights=rows.w.astype(float))[rows.task]
        size, unseen = np.abs(known.unseen_task), np.full(len(F), -1)
        known.unseen_spread = _spread(model, size, rows, np.arange(len(F)), F, fitted, rows.task, unseen)
    return known


def _record(data: Dataset, best: Candidate, fitted: Fitted, held: Array) -> Residuals:
    """Residuals of the rows ``held``, corrected for the choice of hyperparameters."""
    rows, seen, settings = data.rows, fitted.choice.seen, fitted.settings
    assert rows.values is not None
    w = rows.w[held].astype(float)
    more = excess(seen, rows, settings)
    return Residuals(
        (rows.values - best.F)[held].astype(float),
        np.unique(rows.fold[held], return_inverse=True)[1],
        w / w.mean(),
        best.alpha * len(rows),
        settings.bias,
        rows=fitted.plain,
        kernel=rows.X if fitted.plain and isinstance(settings.kernel, Precomputed) else None,
        values=rows.values[held].astype(float),
        group=None if rows.group is None else rows.group[held],
        count=None if rows.count is None else rows.count[held],
        split=rows.by_observation,
        excess=None if more is None else more[held],
        inflation=inflation(seen, rows.size),
        position=None if len(data.used) == data.X.shape[0] else data.used[held],
    )


def _spread(
    model: Any,
    size: Array,
    rows: Any,
    held: Array,
    F: Array,
    fitted: Fitted,
    group: Array | None,
    task: Array | None,
    n_tasks: int = 0,
) -> Spread | None:
    """The scale of the residuals of the rows ``held``, with factors of the ``n_tasks`` tasks."""
    kernel, basis = fitted.settings.kernel, fitted.basis
    X = rows.X[held]
    moved = float(np.sqrt(np.mean(np.sum((raw_scores(model, X, task)[0] - F[held]) ** 2, axis=1))))
    precomputed = isinstance(kernel, Precomputed)
    points = not precomputed and (basis.rows is not None or not isinstance(kernel, Linear))
    w, count = rows.w[held].astype(float), None if rows.count is None else rows.count[held]
    known = ResidualRows(size, F[held].astype(float), None if precomputed else X, w, group, count, task, moved)
    return fit_spread(known, kernel, basis.centers if points else None, n_tasks)
