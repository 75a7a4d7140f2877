"""Scores of a table model on a table and on held-out rows, and its summary, as JSON values.

Every score stands beside that of a baseline that uses no input.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.metrics.calibration import calibration_error
from leastwise.metrics.label_report import label_report
from leastwise.metrics.losses import class_log_losses
from leastwise.metrics.probabilities import brier_score, task_auc
from leastwise.sources.blocks import TableError
from leastwise.tables.columns import values_of
from leastwise.tables.prepare import known_classes, read_labels
from leastwise.tables.table import Array, Table

# ----------------------------------------------------------------------- scores


def class_scores(codes: Array, P: Array) -> dict[str, float]:
    """Scores of probabilities P (n x c) for rows with the class codes ``codes``."""
    classes = np.arange(P.shape[1])
    score = P[:, 1] if P.shape[1] == 2 else P
    return {
        "rows": len(codes),
        "log_loss": float(class_log_losses(P, codes).mean()),
        "brier": brier_score(codes, P, classes=classes),
        "ece": max(calibration_error(codes, P, classes=classes), 0.0),  # debiased
        "accuracy": float(np.mean(P.argmax(axis=1) == codes)),
        "auc": float(task_auc(codes, score, np.zeros(len(codes)), average="pooled", labels=classes)),  # type: ignore[arg-type]
    }


def share_scores(codes: Array, prior: Array) -> dict[str, float]:
    """Scores of predicting the class frequencies of training for every row."""
    scores = class_scores(codes, np.tile(prior, (len(codes), 1)))
    return {name: scores[name] for name in ("log_loss", "brier", "accuracy")}


def decision_scores(wrong: Array, decided: Array) -> dict[str, float]:
    """The share of decided rows, and their error rate."""
    return {
        "decided": float(decided.mean()) if decided.size else np.nan,
        "error_of_decided": float(wrong[decided].mean()) if decided.any() else np.nan,
    }


def set_scores(codes: Array, inside: Array) -> dict[str, float]:
    """Coverage and mean size of prediction sets."""
    return {
        "set_coverage": float(inside[np.arange(len(codes)), codes].mean()),
        "set_size": float(inside.sum(axis=1).mean()),
    }


def number_scores(y: Array, predicted: Array) -> dict[str, float]:
    """Scores of predicted numbers."""
    error, variance = y - predicted, np.sum((y - y.mean()) ** 2)
    return {
        "rows": len(y),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "mae": float(np.mean(np.abs(error))),
        "r2": float(1 - np.sum(error**2) / variance) if variance > 0 else np.nan,
    }


def interval_scores(y: Array, ends: Array) -> dict[str, float]:
    """Coverage and mean width of prediction intervals."""
    inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
    return {"interval_coverage": float(inside.mean()), "interval_width": float(np.mean(ends[:, 1] - ends[:, 0]))}


def label_scores(Y: Array, P: Array, threshold: Any, names: list[str]) -> dict[str, Any]:
    """Scores of each label, and of all entries together."""
    table = label_report(Y, P, threshold, names).table
    wanted = [c for c in table if c != "label"]
    parts = [{c: table[c][t].item() for c in wanted} for t in range(len(names) + 1)]
    known = ~np.isnan(Y)
    right = (np.broadcast_to(threshold, len(names)) < P) == (Y == 1)
    overall = {"rows": len(Y), **parts[-1], "accuracy": float(right[known].mean())}
    return {**overall, "labels": dict(zip(names, parts[:-1], strict=True))}


def by_task(tasks: Array, score: Any) -> dict[str, dict[str, float]]:
    """A few scores for each task; ``score(rows)`` computes all of them."""
    few = ("rows", "log_loss", "accuracy", "rmse", "r2")
    parts = {str(t): score(np.flatnonzero(tasks == t)) for t in np.unique(tasks)}
    return {t: {name: s[name] for name in few if name in s} for t, s in parts.items()}


# ------------------------------------------------------------------- evaluation


def evaluate_model(model: Any, table: Table) -> dict[str, Any]:
    """Scores of a model on a table that includes the target."""
    needed = list(model.labels) if model.labels else [model.target]
    absent = [name for name in needed if name not in table.columns]
    if absent:
        raise table.missing_error(absent, "the evaluation needs")
    predicted = model.answer(table)
    evaluate = {"classes": _evaluate_classes, "numbers": _evaluate_numbers, "labels": _evaluate_labels}[model.kind_]
    scores = evaluate(model, table, predicted)
    return {**scores, "left_out": len(table) - scores["rows"], "notes": list(predicted.notes)}


def _evaluate_classes(model: Any, table: Table, predicted: Any) -> dict[str, Any]:
    target = known_classes(table, model.target, model.classes_)
    y, rows = target.y, _target_rows(target.known, model.target)
    P, prediction = predicted.proba[rows], predicted.prediction[rows]
    scores: dict[str, Any] = class_scores(y, P)
    if predicted.inside is not None:
        scores |= set_scores(y, predicted.inside[rows])
    if predicted.decided is not None:
        scores |= decision_scores(prediction != y, predicted.decided[rows])
    scores["baseline"] = share_scores(y, model.baseline_)
    if predicted.tasks is not None:
        scores["tasks"] = by_task(predicted.tasks[rows], lambda some: class_scores(y[some], P[some]))
    return scores


def _evaluate_numbers(model: Any, table: Table, predicted: Any) -> dict[str, Any]:
    values = values_of(table, model.target, "number")
    rows = _target_rows(~np.isnan(values), model.target)
    y, values = values[rows], predicted.prediction[rows]
    scores: dict[str, Any] = dict(number_scores(y, values))
    if predicted.intervals is not None:
        scores |= interval_scores(y, predicted.intervals[rows])
    scores["baseline"] = number_scores(y, np.full(len(y), model.baseline_))
    if predicted.tasks is not None:
        scores["tasks"] = by_task(predicted.tasks[rows], lambda some: number_scores(y[some], values[some]))
    return scores


def _evaluate_labels(model: Any, table: Table, predicted: Any) -> dict[str, Any]:
    names = list(model.labels)
    target = read_labels(table, names)
    Y, P, rows = target.y, predicted.proba[target.known], np.flatnonzero(target.known)
    scores = label_scores(Y, P, model._predictor.threshold_, names)
    known = ~np.isnan(Y)
    if predicted.decided is not None:
        scores |= decision_scores((predicted.prediction[rows] != Y)[known], predicted.decided[rows][known])
    if predicted.inside is not None:
        scores |= set_scores(Y[known].astype(int), predicted.inside[rows][known])
    shares = label_scores(Y, np.tile(model.baseline_, (len(Y), 1)), 0.5, names)
    scores["baseline"] = {name: shares[name] for name in ("log_loss", "accuracy")}
    return scores


def _target_rows(known: Array, target: str) -> Array:
    if not known.any():
        raise TableError(f'column "{target}", the target, has no values: there is nothing to evaluate.')
    return np.flatnonzero(known)


def heldout_scores(model: Any, y: Array) -> dict[str, Any]:
    """Scores of held-out predictions of the training rows with targets y; empty if there are none."""
    name = "heldout_prediction_" if model.kind_ == "numbers" else "heldout_proba_"
    heldout = getattr(model._predictor, name, None)
    if heldout is None:
        return {}
    heldout = np.asarray(heldout, dtype=float)
    rows = ~np.isnan(heldout.reshape(len(heldout), -1)[:, 0])
    y, heldout = y[rows], heldout[rows]
    if model.kind_ == "numbers":
        return number_scores(y, heldout)
    if model.kind_ == "labels":
        return label_scores(y, heldout, model._predictor.threshold_, list(model.labels))
    return class_scores(np.searchsorted(model.classes_, y), heldout)


# -------------------------------------------------------------------- summary


def summarize_model(model: Any) -> dict[str, Any]:
    """A summary of the fit: columns, rows, hyperparameters, scores."""
    inner = model._inner
    chosen = {
        name: getattr(inner, name + "_", None)
        for name in ("sigma", "alpha", "sharing", "linear_weight", "intercept_ratio")
    }
    summary = {
        "kind": model.kind_,
        "target": model.target or list(model.labels),
        "task": model.task,
        "model": type(inner).__name__,
        "rows": model.n_rows_,
        "left_out": model.left_out_,
        "features": model.encoder_.get_feature_names_out().tolist(),
        "columns": model.encoder_.describe().rows(),
        "chosen": {name: value for name, value in chosen.items() if value is not None},
        "baseline": model.baseline_,
        "heldout": getattr(model, "heldout_", {}),  # model files may omit it
        "coverage": model.coverage,
        "notes": model.notes_,
    }
    known = {name: getattr(inner, name + "_", None) for name in ("classes", "tasks") if model.kind_ != "labels"}
    summary |= {name: value for name, value in known.items() if value is not None}
    if model.decider_ is not None:
        names = ("threshold", "coverage", "error_bound")
        summary["decisions"] = {name: getattr(model.decider_, name + "_") for name in names}
        summary["decisions"] |= {"max_error": model.max_error, "min_confidence": model.min_confidence}
    return json_values(summary)


def json_values(value: Any) -> Any:
    """The value in types of JSON; NaN and infinite numbers become None."""
    if isinstance(value, dict):
        return {str(key): json_values(v) for key, v in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [json_values(v) for v in (value.tolist() if isinstance(value, np.ndarray) else value)]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value
