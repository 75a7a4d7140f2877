"""Baselines beside every fit: predictions without inputs, and a linear model, on the rows that the fit held out.

The linear model is logistic regression for classes and labels, and ridge regression for numbers, with one-hot
categories and tasks. Rows are held out in five folds; groups as a whole. Its ridge is chosen within the other folds
for numbers, and is that of scikit-learn for classes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import ndtri
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold

from leastwise.metrics.probabilities import class_log_losses
from leastwise.solvers.plan import duration
from leastwise.tables.prepare import Prepared
from leastwise.tables.table import Array

#: Number of folds, and most rows that the baselines are trained and scored on.
FOLDS, MAX_ROWS = 5, 20_000
#: Ridges that are tried for numbers, for standardised columns.
RIDGES = np.logspace(-2, 4, 13)
#: Level of the interval of a difference.
LEVEL = 0.95
#: A linear model that takes less than this share of the time of the fit is named as the faster one.
FASTER = 0.2

NAMES = {"classes": "logistic regression", "labels": "logistic regression", "numbers": "ridge regression"}
CONSTANTS = {"classes": "the class shares", "labels": "the shares of the labels", "numbers": "the mean"}


def compare_baselines(found: Prepared, kind: str, heldout: Array, random_state: int = 0) -> dict[str, Any] | None:
    """Held-out losses of a fit and of both baselines on the same rows, with paired differences; None for few rows.

    Parameters
    ----------
    found : Prepared
        The training data.
    kind : {"classes", "numbers", "labels"}
    heldout : ndarray of shape (n,), (n, c) or (n, T)
        Held-out predictions of the fit; NaN where a row was never held out.

    Returns
    -------
    dict
        ``measure`` ("log_loss", or "mse" for numbers), ``rows``, and the mean ``loss`` of the fit; by baseline,
        "constant" and "linear", its ``loss``, the ``difference`` (baseline minus fit) with its 95 % ``interval``, and
        ``better``: True if the fit is, beyond chance.
    """
    group = found.params.get("groups")
    group = group if isinstance(group, np.ndarray) else None
    rows = np.flatnonzero(~np.isnan(heldout.reshape(len(heldout), -1)).any(axis=1))
    if len(rows) < 2 * FOLDS:
        return None
    if len(rows) > MAX_ROWS:
        rows = np.sort(np.random.default_rng(random_state).choice(rows, MAX_ROWS, replace=False))
    y, w = (
        np.asarray(found.target.y)[rows],
        np.asarray(found.params.get("sample_weight", np.ones(len(heldout))))[rows],
    )
    unit = None if group is None else np.unique(group[rows], return_inverse=True)[1]
    if unit is not None and unit.max() < 1:
        return None
    classes = np.unique(np.asarray(found.target.y)) if kind == "classes" else None
    X = linear_features(found, rows)
    own = _losses(kind, y, heldout[rows], classes)
    others = {"constant": np.full_like(own, np.nan), "linear": np.full_like(own, np.nan)}
    for train, test in _folds(kind, y, unit, random_state):
        others["constant"][test] = _losses(
            kind, y[test], _constant(kind, y[train], w[train], len(test), classes), classes
        )
        predicted = _linear(kind, X[train], y[train], w[train], X[test], classes)
        others["linear"][test] = _losses(kind, y[test], predicted, classes)
    if kind == "labels":  # every known cell counts the same, as in the scores of the fit
        own, *rest = (losses / (~np.isnan(y)).sum(axis=1).mean() for losses in (own, *others.values()))
        others = dict(zip(others, rest, strict=True))
    result: dict[str, Any] = {"measure": "mse" if kind == "numbers" else "log_loss", "rows": len(rows)}
    result["loss"] = float(np.nanmean(own))
    for name, losses in others.items():
        mean, half = _paired(losses - own, unit)
        interval = [mean - half, mean + half]
        loss = float(np.nanmean(losses))
        result[name] = {"loss": loss, "difference": mean, "interval": interval, "better": interval[0] > 0}
    return result


def linear_seconds(found: Prepared, kind: str) -> float:
    """The time of one fit of the linear model to the rows that it uses."""
    rows = np.arange(min(len(found.used), MAX_ROWS))
    y, w = np.asarray(found.target.y)[rows], np.asarray(found.params.get("sample_weight", np.ones(len(rows))))[rows]
    X, classes = linear_features(found, rows), np.unique(y) if kind == "classes" else None
    started = time.perf_counter()
    _linear(kind, X, y, w, X[:1], classes)
    return time.perf_counter() - started


def linear_features(found: Prepared, rows: Array) -> Any:
    """Standardised numbers, one-hot categories and tasks of some rows; sparse if there are many tasks."""
    encoder = copy(found.encoder)
    encoder.output = "features"
    X = encoder.transform(found.used.take(rows))
    if "tasks" not in found.params:
        return X
    tasks = np.unique(found.params["tasks"][rows], return_inverse=True)[1]
    one_hot = sparse.csr_matrix((np.ones(len(rows)), (np.arange(len(rows)), tasks)))
    return np.hstack([X, one_hot.toarray()]) if one_hot.shape[1] <= 200 else sparse.hstack([X, one_hot]).tocsr()


def _folds(kind: str, y: Array, unit: Array | None, random_state: int) -> Any:
    """Training and test rows; classes are in all folds if they can be."""
    if unit is not None:
        return GroupKFold(min(FOLDS, int(unit.max()) + 1)).split(y, groups=unit)
    if kind == "classes" and np.unique(y, return_counts=True)[1].min() >= FOLDS:
        return StratifiedKFold(FOLDS, shuffle=True, random_state=random_state).split(y, y)
    return KFold(FOLDS, shuffle=True, random_state=random_state).split(y)


def _constant(kind: str, y: Array, w: Array, n: int, classes: Array | None) -> Array:
    """The mean, the class shares or the shares of labels of training rows, for n rows."""
    if kind == "numbers":
        return np.full(n, np.average(y, weights=w))
    if kind == "classes":
        assert classes is not None
        hot = (y[:, None] == classes) * w[:, None]
        return np.tile((hot.sum(axis=0) + 0.5) / (w.sum() + 0.5 * len(classes)), (n, 1))
    known = ~np.isnan(y)
    shares = (np.where(known, y, 0).T @ w + 0.5) / (known.T @ w + 1)
    return np.tile(shares, (n, 1))


def _linear(kind: str, X: Any, y: Array, w: Array, new: Any, classes: Array | None) -> Array:
    """Predictions of the linear model."""
    if kind == "numbers":
        return RidgeCV(RIDGES).fit(X, y, sample_weight=w).predict(new)
    if kind == "classes":
        assert classes is not None
        return _logistic(X, y, w, new, classes)
    columns = []
    for values in y.T:
        known = np.flatnonzero(~np.isnan(values))
        columns.append(_logistic(X[known], values[known], w[known], new, np.array([0.0, 1.0]))[:, 1])
    return np.column_stack(columns)


def _logistic(X: Any, y: Array, w: Array, new: Any, classes: Array) -> Array:
    """Probabilities of logistic regression; classes that are not in the training rows have a small one."""
    there = np.unique(y)
    P = np.full((new.shape[0], len(classes)), 1 / (len(y) + len(classes)))
    if len(there) == 1:
        P[:, classes == there[0]] = 1.0
    elif len(there) > 1:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LogisticRegression(max_iter=300).fit(X, y, sample_weight=w)
        P[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(new)
    return P / P.sum(axis=1, keepdims=True)


def _losses(kind: str, y: Array, predicted: Array, classes: Array | None) -> Array:
    """Squared error or log-loss of every row; of labels, the sum over the known ones."""
    if kind == "numbers":
        return (y - predicted) ** 2
    if kind == "classes":
        assert classes is not None
        return class_log_losses(predicted, np.searchsorted(classes, y))
    tiny = np.finfo(float).tiny
    loss = -np.log(np.maximum(np.where(y == 1, predicted, 1 - predicted), tiny))
    return np.where(np.isnan(y), 0.0, loss).sum(axis=1)


def _paired(difference: Array, unit: Array | None) -> tuple[float, float]:
    """The mean of differences and half the width of its interval; rows of a group are dependent."""
    mean = float(np.mean(difference))
    off = difference - mean
    sums = off if unit is None else np.bincount(unit, weights=off)
    n = len(sums)
    error = np.sqrt(n / (n - 1) * np.sum(sums**2)) / len(difference) if n > 1 else np.inf
    return mean, float(ndtri((1 + LEVEL) / 2) * error)


def baseline_note(kind: str, found: dict[str, Any], seconds: dict[str, float] | None = None) -> str | None:
    """A sentence if the fit is no better than a baseline; None if it is better than both."""
    name = next((name for name in ("constant", "linear") if not found[name]["better"]), None)
    if name is None:
        return None
    other = CONSTANTS[kind] if name == "constant" else NAMES[kind]
    show: Callable[[float], str] = (
        (lambda v: f"{np.sqrt(v):.4g}") if found["measure"] == "mse" else (lambda v: f"{v:.4g}")
    )
    measure = "RMSE" if found["measure"] == "mse" else "log-loss"
    worse = found[name]["interval"][1] < 0
    text = f"On held-out rows the model is {'worse than' if worse else 'no better than'} {other}: {measure} "
    text += f"{show(found['loss'])} against {show(found[name]['loss'])}"
    text += "." if worse else ", a difference within chance."
    if name == "constant":
        return f"{text} The columns say little or nothing about the target."
    if seconds is not None and seconds["linear"] < FASTER * seconds["model"]:
        text += f" It takes {duration(seconds['linear'])}; this fit took {duration(seconds['model'])}."
    return text


def baseline_lines(kind: str, found: dict[str, Any]) -> list[tuple[str, float]]:
    """Names and losses of both baselines; of numbers the root of the mean squared error."""
    names: Sequence[tuple[str, str]] = (("constant", CONSTANTS[kind].removeprefix("the ")), ("linear", NAMES[kind]))
    root = np.sqrt if found["measure"] == "mse" else float
    return [(shown, float(root(found[name]["loss"]))) for name, shown in names]
