"""Predicted probabilities and true outcomes, overall and by class, task or label; errors among accepted rows.

The predictions may be those of a model inside a pipeline, a search or a wrapper:
:func:`leastwise.utils.unwrap.layers` finds it there.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from leastwise.calibration.risk import BETS, Decisions
from leastwise.estimators.abstaining import Abstaining
from leastwise.metrics.probabilities import checked_probabilities
from leastwise.metrics.reliability import exact_upper
from leastwise.problem.labels import Labels, encode_known, encode_labels
from leastwise.problem.tasks import encode_tasks
from leastwise.utils.unwrap import layers

Array = np.ndarray

#: Bisection steps of a betting bound, which is then accurate to 1e-5.
BISECTIONS = 17


# ------------------------------------------------------------------------ nested models


def outermost_with(model: Any, attribute: str) -> Any:
    """The outermost layer that has an attribute; the model itself if none has."""
    return next((layer for layer in layers(model) if hasattr(layer, attribute)), model)


def require(model: Any, attribute: str, hint: str) -> Any:
    """The outermost layer that has an attribute; an error with a hint if none has."""
    found = outermost_with(model, attribute)
    if not hasattr(found, attribute):
        raise ValueError(f"{type(model).__name__} has no {attribute}: {hint}.")
    return found


def abstaining_layer(model: Any) -> Abstaining | None:
    """The layer that abstains, if there is one."""
    return next((layer for layer in layers(model) if isinstance(layer, Abstaining)), None)


def legend_name(model: Any) -> str:
    """The class name of the first layer that makes probabilities rather than passing them on."""
    passing = (Pipeline, FrozenEstimator, Abstaining)
    own = (x for x in layers(model) if not isinstance(x, passing) and not hasattr(x, "best_estimator_"))
    return type(next(own, model)).__name__


def predicted_proba(estimator: Any, X: Any, tasks: Any) -> Any:
    """Probabilities of rows; ``tasks`` is passed on if the model takes it and has no task column."""
    *_, inner = layers(estimator)
    takes = "tasks" in signature(inner.predict_proba).parameters and getattr(inner, "task_column", None) is None
    return estimator.predict_proba(X, tasks=tasks) if takes and tasks is not None else estimator.predict_proba(X)


def heldout_proba(model: Any, y: Any) -> Any:
    """Held-out probabilities of the training rows."""
    rule = abstaining_layer(model)
    if rule is not None and isinstance(getattr(rule, "estimator_", None), FrozenEstimator):
        raise ValueError(
            "The model is frozen: its held-out rows are not the rows that the threshold was set on. Use "
            "from_estimator with those."
        )
    hint = (
        "fit a classifier of leastwise with cv= other than None, or use from_estimator with rows that it was not "
        "trained on"
    )
    P = require(model, "heldout_proba_", hint).heldout_proba_
    given, expected = (_n_rows(table) for table in (y, P[0] if isinstance(P, list) else P))
    if given != expected:
        raise ValueError(
            f"y has {given} rows, and the model was fitted to {expected}: give the y of the fit, or use "
            "from_estimator."
        )
    return P


def _n_rows(table: Any) -> int:
    return int(table.shape[0]) if hasattr(table, "shape") else len(table)


# ----------------------------------------------------------------------------- outcomes


@dataclass(frozen=True)
class Outcomes:
    """Probabilities p (n,) of events, and whether each event was true (n,)."""

    p: Array
    true: Array
    name: str | None = None


def concatenated(parts: list[Outcomes]) -> Outcomes:
    """All of them, without a name."""
    return Outcomes(np.concatenate([s.p for s in parts]), np.concatenate([s.true for s in parts]))


def is_table(y: Any) -> bool:
    """True if y has one column per label."""
    return len(getattr(y, "shape", None) or np.shape(y)) == 2


def class_outcomes(y: Any, proba: Any, classes: Any = None, pos_label: Any = None) -> Outcomes:
    """The event is that the most probable class is true or, with ``pos_label``, that this class is."""
    y, P, classes = _rows_with_proba(y, proba, classes)
    if pos_label is None:
        return Outcomes(P.max(axis=1), classes[P.argmax(axis=1)] == y)
    place = np.flatnonzero(classes == pos_label)
    if not len(place):
        raise ValueError(f"pos_label={pos_label!r} is not one of the classes {classes.tolist()}.")
    return Outcomes(P[:, place[0]], y == pos_label)


def has_proba(proba: Any) -> Array:
    """True for rows whose probabilities are not NaN; NaN marks rows that were never held out."""
    P = np.asarray(proba, dtype=float)
    return ~np.isnan(P.reshape(len(P), -1)).any(axis=1)


def _rows_with_proba(y: Any, proba: Any, classes: Any) -> tuple[Array, Array, Array]:
    P = np.asarray(proba, dtype=float)
    if P.ndim == 1:  # the probability of the second class
        P = np.stack([1 - P, P], axis=1)
    y, P, classes = checked_probabilities(y, P, classes)
    there = has_proba(P)
    if not there.any():
        raise ValueError(f"None of the {len(y)} rows has probabilities: all are NaN, or there are no rows.")
    return y[there], P[there], classes


def outcomes_by_class(y: Any, proba: Any, classes: Any = None) -> list[Outcomes]:
    """Each class against the rest."""
    y, P, classes = _rows_with_proba(y, proba, classes)
    names = [label if isinstance(label, str) else f"class {label}" for label in classes]
    return [Outcomes(P[:, k], y == label, name) for k, (label, name) in enumerate(zip(classes, names, strict=True))]


def outcomes_by_task(y: Any, proba: Any, tasks: Any, classes: Any = None, pos_label: Any = None) -> list[Outcomes]:
    """The rows of each task, as :func:`class_outcomes`."""
    codes, known = encode_tasks(tasks, len(y))
    codes, every = codes[has_proba(proba)], class_outcomes(y, proba, classes, pos_label)
    parts = [Outcomes(every.p[codes == t], every.true[codes == t], str(name)) for t, name in enumerate(known.ids)]
    return [part for part in parts if len(part.p)]


def outcomes_by_label(Y: Any, proba: Any, *, top: bool, names: Any = None, model: Any = None) -> list[Outcomes]:
    """The known entries of each label.

    With ``top``, and for labels of more than two classes, the event is that the most probable class is true;
    otherwise that the second of two classes is.
    """
    codes, labels = _label_codes(Y, model)
    names = labels.names if names is None else list(names)
    columns = proba if isinstance(proba, list) else list(np.asarray(proba, dtype=float).T)
    if len(columns) != codes.shape[1] or len(names) != codes.shape[1]:
        raise ValueError(
            f"y has {codes.shape[1]} labels, proba {len(columns)}, and there are {len(names)} names: all three "
            "must be equal."
        )
    parts = [_label_outcomes(p, codes[:, t], top, names[t]) for t, p in enumerate(columns)]
    return [part for part in parts if len(part.p)]


def _label_codes(Y: Any, model: Any) -> tuple[Array, Labels]:
    if model is None:
        return encode_labels(Y, _n_rows(Y))
    return encode_known(Y, model.label_index_, _n_rows(Y), model.missing), model.label_index_


def _label_outcomes(p: Array, code: Array, top: bool, name: Any) -> Outcomes:
    P = np.stack([1 - p, p], axis=1) if p.ndim == 1 else p
    there = (code >= 0) & ~np.isnan(P).any(axis=1)
    P, code = P[there], code[there]
    if top or P.shape[1] > 2:
        return Outcomes(P.max(axis=1), P.argmax(axis=1) == code, str(name))
    return Outcomes(P[:, 1], code == 1, str(name))


# ------------------------------------------------------------------------ risk and coverage


@dataclass(frozen=True)
class AcceptedRows:
    """What is accepted at every threshold: rows, errors among them, and the weights of both."""

    threshold: Array
    rows: Array
    errors: Array
    mass: Array
    error_mass: Array


def accepted_rows(
    confidence: Array, wrong: Array, thresholds: Array | None = None, w: Array | None = None
) -> AcceptedRows:
    """Count the rows whose confidence is at least a threshold; by default for all confidences, from the highest."""
    thresholds = np.unique(confidence)[::-1] if thresholds is None else thresholds
    w = np.ones(len(wrong)) if w is None else w
    order = np.argsort(confidence, kind="stable")
    first = np.searchsorted(confidence[order], thresholds, side="left")

    def above(values: Array) -> Array:
        return np.concatenate([np.cumsum(values[order][::-1])[::-1], [0]])[first]

    rows, errors = above(np.ones(len(wrong), dtype=int)), above(wrong.astype(int))
    return AcceptedRows(thresholds, rows, errors, above(w), above(w * wrong))


def risk_coverage_area(confidence: Array, wrong: Array) -> float:
    """Mean over k of the error among the k most confident rows, ties in random order."""
    _, place, count = np.unique(-confidence, return_inverse=True, return_counts=True)
    expected = (np.bincount(place, weights=wrong) / count)[np.sort(place)]
    return float(np.mean(np.cumsum(expected) / np.arange(1, len(place) + 1)))


def error_bounds(decisions: Decisions, thresholds: Array, delta: float) -> Array:
    """``decisions.bound(t, delta)`` at many thresholds at once, to 1e-5; NaN where nothing is accepted."""
    if decisions.plain:
        times = decisions.times[decisions.member]
        rows = accepted_rows(decisions.confidence, decisions.wrong, thresholds, times)
        errors = np.minimum(rows.error_mass + decisions.hidden, rows.mass)
        return np.where(rows.mass > 0, exact_upper(errors, np.maximum(rows.mass, 1), 1 - delta), np.nan)
    bounds = np.full(len(thresholds), np.nan)
    for k, threshold in enumerate(thresholds):
        accepted = decisions.accepted(float(threshold))
        if accepted.any():
            bounds[k] = _bet_bound(decisions, accepted, delta)
    return bounds


def _bet_bound(decisions: Decisions, accepted: Array, delta: float) -> float:
    """The error rate at which a bet against more errors wins 1 / delta; groups with equal results are combined."""
    unit = decisions.unit * accepted / decisions.most
    mass, lost = (np.bincount(decisions.member, weights=v) for v in (unit, unit * decisions.wrong))
    # A pair as one complex number: these sort far faster than rows of a table.
    pairs, place = np.unique(np.round(lost, 9) + 1j * np.round(mass, 9), return_inverse=True)
    times = np.bincount(place, weights=decisions.times)
    low, high = 0.0, 1.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        losses = (pairs.real - middle * pairs.imag) / (1 - middle)
        won = np.log1p(-BETS[:, None] * losses) @ times + decisions.hidden * np.log1p(-BETS)
        total = won.max() + np.log(np.mean(np.exp(won - won.max())))
        low, high = (low, middle) if total >= -np.log(delta) else (middle, high)
    return high
