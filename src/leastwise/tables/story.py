"""What a model of a table has learned, and how good it is on another table, as plain values."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.tables.cells import values_of
from leastwise.tables.scores import (
    by_task,
    class_scores,
    decision_scores,
    interval_scores,
    label_scores,
    number_scores,
    set_scores,
    share_scores,
)
from leastwise.tables.table import Array, Table, TableError
from leastwise.tables.targets import known_classes, read_labels


def evaluated(model: Any, table: Table) -> dict[str, Any]:
    """Scores of a model on a table with the target in it."""
    needed = list(model.labels) if model.labels else [model.target]
    lost = [name for name in needed if name not in table.columns]
    if lost:
        raise table.lacks(lost, "to be compared with, there must be")
    answer = model.answer(table)
    scores = {"classes": _classes, "numbers": _numbers, "labels": _labels}[model.kind_](model, table, answer)
    return {**scores, "left_out": len(table) - scores["rows"], "notes": list(answer.notes)}


def _classes(model: Any, table: Table, answer: Any) -> dict[str, Any]:
    target = known_classes(table, model.target, model.classes_)
    y, rows = target.y, _rows(target.known, model.target)
    P, prediction = answer.proba[rows], answer.prediction[rows]
    scores: dict[str, Any] = class_scores(y, P)
    if answer.inside is not None:
        scores |= set_scores(y, answer.inside[rows])
    if answer.decided is not None:
        scores |= decision_scores(prediction != y, answer.decided[rows])
    scores["baseline"] = share_scores(y, model.baseline_)
    if answer.tasks is not None:
        scores["tasks"] = by_task(answer.tasks[rows], lambda some: class_scores(y[some], P[some]))
    return scores


def _numbers(model: Any, table: Table, answer: Any) -> dict[str, Any]:
    values = values_of(table, model.target, "number")
    rows = _rows(~np.isnan(values), model.target)
    y, predicted = values[rows], answer.prediction[rows]
    scores: dict[str, Any] = dict(number_scores(y, predicted))
    if answer.ends is not None:
        scores |= interval_scores(y, answer.ends[rows])
    scores["baseline"] = number_scores(y, np.full(len(y), model.baseline_))
    if answer.tasks is not None:
        scores["tasks"] = by_task(answer.tasks[rows], lambda some: number_scores(y[some], predicted[some]))
    return scores


def _labels(model: Any, table: Table, answer: Any) -> dict[str, Any]:
    names = list(model.labels)
    target = read_labels(table, names)
    Y, P, rows = target.y, answer.proba[target.known], np.flatnonzero(target.known)
    scores = label_scores(Y, P, model._spoken.threshold_, names)
    known = ~np.isnan(Y)
    if answer.decided is not None:
        scores |= decision_scores((answer.prediction[rows] != Y)[known], answer.decided[rows][known])
    if answer.inside is not None:
        scores |= set_scores(Y[known].astype(int), answer.inside[rows][known])
    shares = label_scores(Y, np.tile(model.baseline_, (len(Y), 1)), 0.5, names)
    scores["baseline"] = {name: shares[name] for name in ("log_loss", "accuracy")}
    return scores


def _rows(known: Array, target: str) -> Array:
    if not known.any():
        raise TableError(f'column "{target}", the target, holds no values: there is nothing to compare with.')
    return np.flatnonzero(known)


# ------------------------------------------------------------------- held out


def heldout_scores(model: Any, y: Array) -> dict[str, Any]:
    """Scores of held-out predictions of the training rows, whose target is y; nothing where none were held out."""
    name = "heldout_prediction_" if model.kind_ == "numbers" else "heldout_proba_"
    said = getattr(model._spoken, name, None)
    if said is None:
        return {}
    said = np.asarray(said, dtype=float)
    rows = ~np.isnan(said.reshape(len(said), -1)[:, 0])
    y, said = y[rows], said[rows]
    if model.kind_ == "numbers":
        return number_scores(y, said)
    if model.kind_ == "labels":
        return label_scores(y, said, model._spoken.threshold_, list(model.labels))
    return class_scores(np.searchsorted(model.classes_, y), said)


# -------------------------------------------------------------------- summary


def summarised(model: Any) -> dict[str, Any]:
    """What was learned from what."""
    inner, described = model._inner, model.encoder_.describe()
    chosen = {
        name: getattr(inner, name + "_", None) for name in ("sigma", "alpha", "sharing", "linear_weight", "spread")
    }
    story = {
        "kind": model.kind_,
        "target": model.target or list(model.labels),
        "task": model.task,
        "model": type(inner).__name__,
        "rows": model.n_rows_,
        "left_out": model.left_out_,
        "features": model.encoder_.get_feature_names_out().tolist(),
        "columns": [dict(zip(described.names, row, strict=True)) for row in _lines(described)],
        "chosen": {name: value for name, value in chosen.items() if value is not None},
        "baseline": model.baseline_,
        "heldout": getattr(model, "heldout_", {}),  # files may leave it out
        "coverage": model.coverage,
        "notes": model.notes_,
    }
    known = {name: getattr(inner, name + "_", None) for name in ("classes", "tasks") if model.kind_ != "labels"}
    story |= {name: value for name, value in known.items() if value is not None}
    if model.decider_ is not None:
        names = ("threshold", "coverage", "error_bound")
        story["decisions"] = {name: getattr(model.decider_, name + "_") for name in names}
        story["decisions"] |= {"max_error": model.max_error, "min_confidence": model.min_confidence}
    return plain(story)


def _lines(table: Table) -> Any:
    return zip(*(table[name].tolist() for name in table.names), strict=True)


def plain(value: Any) -> Any:
    """Values that JSON has: NaN and infinite ones are None."""
    if isinstance(value, dict):
        return {str(key): plain(v) for key, v in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(v) for v in (value.tolist() if isinstance(value, np.ndarray) else value)]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value
