"""Predictions of rows by models that chose their hyperparameters without them: one whole fit for each fold.

The held-out predictions of a fit have chosen its hyperparameters. That hides some of their errors, which promises on
few rows have to count (:mod:`leastwise.model_selection.optimism`). Predictions of other fits hide none: they are not
counted, and more rows are accepted. ``benchmarks.few_rows`` compares both.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.base import clone

from leastwise.calibration.conformal import CalibrationSet, gather
from leastwise.estimators.predicting import observations
from leastwise.model_selection.folds import fold_ids
from leastwise.sources.frames import take_rows
from leastwise.utils.unwrap import fit_inside, inner_model

Array = np.ndarray

#: The number of folds. More of them take longer, and hardly accept more.
FOLDS = 5
#: With more observations than this, the errors that a search hides cost little.
MOST_OBSERVATIONS = 200


def cross_fit_calibration(model: Any, X: Any, y: Any, own: dict[str, Any], before: dict[str, Any]) -> CalibrationSet:
    """Held-out predictions for a promise: of other fits if the fit has chosen hyperparameters on few rows.

    Those of the fit itself, with its hidden errors, if there are many rows or nothing was chosen, and where the
    estimator cannot be fitted to a part of the rows: a splitter with fixed rows, a matrix of all tasks, a precomputed
    kernel, a class in one fold only.

    Parameters
    ----------
    model : estimator
        Fitted to all rows. It may be a pipeline, whose steps are then fitted without the fold, too.
    X, y
        As in its ``fit``.
    own, before : dict
        Parameters of ``fit``, from ``split_params``.
    """
    inner = inner_model(model)
    heldout, held = inner._calibration_set(), inner._held_rows()
    if not heldout.hidden or observations(held) > MOST_OBSERVATIONS:
        return heldout
    n, P = len(held.codes), np.zeros((len(held.codes), len(inner.classes_)))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those of the fit to all rows have been shown
            fold = fold_ids(FOLDS, held.codes, held.group, 0, held.task)
            for k in np.unique(fold):
                rows, rest = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
                parts = [{name: _rows(value, rest, n) for name, value in given.items()} for given in (own, before)]
                part = fit_inside(clone(model), take_rows(X, rest), take_rows(y, rest), *parts)
                tasks = {"tasks": _rows(own["tasks"], rows, n)} if own.get("tasks") is not None else {}
                place = np.searchsorted(inner.classes_, inner_model(part).classes_)
                P[np.ix_(rows, place)] = np.asarray(part.predict_proba(take_rows(X, rows), **tasks))
    except ValueError:
        return heldout
    return gather(P, held)


def _rows(value: Any, rows: Array, n: int) -> Any:
    """The part of a parameter that has a value for each row; other parameters as they are."""
    one_each = hasattr(value, "__len__") and not isinstance(value, str) and len(value) == n
    return take_rows(value, rows) if one_each else value
