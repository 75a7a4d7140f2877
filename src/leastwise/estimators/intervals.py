"""Prediction intervals of regressors from held-out residuals: jackknife, jackknife+ and CV+, with adaptive widths."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.conformal import jackknife_plus
from leastwise.calibration.spread import Spread
from leastwise.fitting.checks import choose
from leastwise.fitting.residuals import Residuals
from leastwise.problem.basis import row_chunks
from leastwise.problem.kernels import Precomputed
from leastwise.solvers.influence import bordered_inverse
from leastwise.solvers.solve_tasks import DualForm
from leastwise.utils.arrays import bring
from leastwise.utils.resources import available_memory, human

Array = np.ndarray

#: Largest number of training rows for which jackknife+ is the default.
PLUS_ROWS = 4000


def residuals_of(model: Any, method: str) -> Residuals:
    """Held-out residuals of a fitted model; an error if there are none, or if the method needs more."""
    known = vars(model).get("residuals_")
    if known is None:
        raise ValueError(
            "Intervals need held-out residuals, and cv=None holds nothing out: use cv='loo'. (A model file "
            "saved with keep='predict' does not contain them: use keep='all'.)"
        )
    if method == "jackknife+" and not known.rows:
        raise ValueError(
            "method='jackknife+' needs a coefficient for every training row, which models with n_centers, "
            "prune=, solver='arrow' or 'krylov', or a linear kernel of many rows do not have: use "
            "method='jackknife'."
        )
    return known


def predict_interval(model: Any, X: Any, tasks: Any, coverage: float, method: str, adaptive: bool) -> Array:
    """Intervals of a fitted regressor; see ``Regressor.predict_interval``."""
    check_is_fitted(model)
    choose("method", method, ["auto", "jackknife+", "jackknife"])
    if isinstance(coverage, bool) or not isinstance(coverage, int | float | np.number) or not 0 < coverage < 1:
        hint = " (Tasks are given by name: tasks=.)" if np.ndim(coverage) else ""
        raise ValueError(f"coverage={coverage!r} must be a number above 0 and below 1, such as 0.9.{hint}")
    known = residuals_of(model, method)
    spread, unseen_spread = (known.spread, known.unseen_spread) if adaptive else (None, None)
    F, rows, task = model._values(bring(X), tasks)
    plus = known.rows and method != "jackknife" and _room_for_plus(len(known.fold), method)
    low, high = np.empty(F.shape), np.empty(F.shape)
    own = np.ones(len(F), dtype=bool) if task is None or known.unseen_task is None else task >= 0
    for part in row_chunks(len(F), len(known.fold) * 4, 8):
        i = np.flatnonzero(own[part]) + part.start
        scale = _scales(spread, rows[i], F[i], None if task is None else task[i])
        if plus and len(i):
            S = _smoother(model, rows[i], None if task is None else task[i], known)
            left = known.at_same_ridge()
            weights, size = known.row_weights, known.ratios(left, adaptive)
            if known.split and known.count is not None:  # one observation is this share of the row's target
                S = S / known.count
            low[i], high[i] = jackknife_plus(F[i], S, left, known.fold, weights, coverage, size, scale)
        else:
            half = scale * known.half_widths(coverage, adaptive)
            low[i], high[i] = F[i] - half, F[i] + half
    if not own.all():
        half = known.unseen_task_half_widths(coverage, adaptive)
        half = half * _scales(unseen_spread, rows[~own], F[~own])
        low[~own], high[~own] = F[~own] - half, F[~own] + half
    return np.stack([model._shown(low), model._shown(high)], axis=-1)


def _scales(spread: Spread | None, X: Any, F: Array, task: Array | None = None) -> Array:
    """Scales of rows; 1 without adaptive widths."""
    return np.ones(F.shape) if spread is None else spread(X, F, task)


def _room_for_plus(n: int, method: str) -> bool:
    """True if jackknife+ was requested, or if there are few rows and their inverse fits into memory."""
    need, have = 3 * 8 * n * n, available_memory()
    if method == "jackknife+" and need > have:
        raise MemoryError(
            f"method='jackknife+' needs about {human(need)} for an inverse of {n} rows; {human(have)} are "
            "available. Use method='jackknife'. (Set LEASTWISE_MEMORY to change the limit.)"
        )
    return method == "jackknife+" or (n <= PLUS_ROWS and need <= have)


def _smoother(model: Any, X: Any, task: Array | None, known: Residuals) -> Array:
    """Weights of the training targets in the predictions of some rows (m x n)."""
    root = np.sqrt(known.w)
    if known.inverse is None:
        H = _row_kernel(model, None, None, known) * root[:, None] * root
        known.inverse = bordered_inverse(H, known.rho + model.jitter_, root, known.bias, known.centring)
    K = _row_kernel(model, X, task, known) * root
    return (K @ known.inverse.M + known.inverse.m) * root


def _row_kernel(model: Any, X: Any, task: Array | None, known: Residuals) -> Array:
    """Kernel between some rows (default: the training rows) and the training rows, coupled by tasks, in float64."""
    if isinstance(model.kernel_, Precomputed):
        K: Any = known.kernel if X is None else X[:, model.center_indices_]
        K = np.asarray(K.toarray() if hasattr(K, "toarray") else K, dtype=float)
    else:
        K = model.kernel_(model.centers_ if X is None else X, model.centers_, model.sigma_).astype(float)
    form = vars(model).get("form_")
    if form is None:
        return K
    assert isinstance(form, DualForm)
    if X is None or task is None:
        return form.coupling_matrix.couple(K, form.task, form.task)
    return form.coupling_matrix.couple(K, task, form.task) + known.level * (task[:, None] == form.task)
