"""Predictions of a table model as columns of a table, and its scores on a table and on held-out rows, as JSON values.

Every score is compared with that of a baseline that uses no input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.metrics.label_report import label_report
from leastwise.metrics.probabilities import brier_score, class_log_losses, task_auc
from leastwise.metrics.reliability import calibration_errors
from leastwise.problem.kernels import KERNELS
from leastwise.sources.blocks import TableError
from leastwise.sources.formats.cells import object_column
from leastwise.tables.columns import values_of
from leastwise.tables.prepare import Target, known_classes, read_labels
from leastwise.tables.table import Array, Table, text_of
from leastwise.utils.unwrap import arrive

# ------------------------------------------------------------------ predictions


@dataclass(frozen=True)
class Predictions:
    """Predictions of all rows.

    Attributes
    ----------
    prediction : ndarray of shape (n,) or (n, T)
        Numbers, class codes, or 0 and 1 for labels.
    proba : ndarray of shape (n, c) or (n, T), optional
        Class probabilities, or the probability of each label.
    decided : ndarray of bool of the shape of ``prediction``, optional
        True where the model decides.
    inside : ndarray of bool of shape (n, c) or (n, T, 2), optional
        Prediction sets.
    intervals : ndarray of shape (n, 2), optional
        Prediction intervals.
    in_domain, novelty : ndarray of shape (n,), optional
        The domain weight, and the p-value of the test that a row comes from the distribution of the training rows.
    tasks : ndarray of shape (n,), optional
    known_task : ndarray of bool of shape (n,), optional
        True where the task occurred in training.
    notes : tuple of str
    """

    prediction: Array
    proba: Array | None = None
    decided: Array | None = None
    inside: Array | None = None
    intervals: Array | None = None
    in_domain: Array | None = None
    novelty: Array | None = None
    tasks: Array | None = None
    known_task: Array | None = None
    notes: tuple[str, ...] = ()

    def columns(self, model: Any) -> dict[str, Array]:
        """Columns of a table."""
        if model.kind_ == "numbers":
            ends = self.intervals
            limits = {} if ends is None else {"interval_lower": ends[:, 0], "interval_upper": ends[:, 1]}
            columns = {"prediction": self.prediction, **limits}
        elif model.kind_ == "labels":
            columns = self._label_columns(list(model.labels))
        else:
            columns = self._class_columns(model.classes_)
        last = {"in_domain": self.in_domain, "novelty": self.novelty, "known_task": self.known_task}
        return columns | {name: values for name, values in last.items() if values is not None}

    def _class_columns(self, classes: Array) -> dict[str, Array]:
        assert self.proba is not None
        names = np.array([text_of(c) for c in classes], dtype=object)
        values = classes if classes.dtype.kind in "iub" else names
        columns = {"prediction": values[self.prediction]}
        columns |= {f"p_{name}": self.proba[:, k] for k, name in enumerate(names)}
        columns["confidence"] = self.proba[np.arange(len(self.proba)), self.prediction]
        if self.decided is not None:
            columns["decision"] = _decisions(self.decided, names[self.prediction])
        if self.inside is not None:
            columns["set"] = _set_texts(self.inside, names)
        return columns

    def _label_columns(self, labels: list[str]) -> dict[str, Array]:
        assert self.proba is not None
        columns: dict[str, Array] = {}
        digits = np.array(["0", "1"], dtype=object)
        for t, name in enumerate(labels):
            columns |= {name: self.prediction[:, t], f"p_{name}": self.proba[:, t]}
            if self.decided is not None:
                columns[f"decision_{name}"] = _decisions(self.decided[:, t], digits[self.prediction[:, t]])
            if self.inside is not None:
                columns[f"set_{name}"] = _set_texts(self.inside[:, t], digits)
        return columns


def _decisions(decided: Array, names: Array) -> Array:
    """Names, None where undecided."""
    out = names.copy()
    out[~decided] = None
    return out


def _set_texts(inside: Array, names: Array) -> Array:
    """Sets as text, separated by bars; a bar or a backslash in a name has a backslash in front."""
    escaped = np.array([str(name).replace("\\", "\\\\").replace("|", "\\|") for name in names], dtype=object)
    return object_column(["|".join(escaped[row].tolist()) for row in inside])


def predict_classes(model: Any, X: Array, params: dict[str, Any], prior: dict[str, Any]) -> Predictions:
    """Probabilities, decisions, sets and domain weight of rows; no sets if ``prior`` has other class shares."""
    P = np.asarray(model.model_.predict_proba(X, **params, **prior), dtype=float)
    decided = None if model.decider_ is None else model.decider_._decide(X, {**params, **prior}, P)[1]
    inside = None if prior else _sets(model, X, params)
    return Predictions(P.argmax(axis=1), P, decided, inside, in_domain=_in_domain(model, X, params))


def predict_labels(model: Any, X: Array, params: dict[str, Any], prior: dict[str, Any]) -> Predictions:
    """Probabilities, decisions, sets and domain weight of rows with several labels."""
    P = np.asarray(model.model_.predict_proba(X, **prior), dtype=float)
    decided = None if model.decider_ is None else model.decider_._decide(X, prior, P)[1]
    codes = (np.broadcast_to(model._predictor.threshold_, P.shape) < P).astype(int)
    inside = None if prior else _sets(model, X, params)
    return Predictions(codes, P, decided, inside, in_domain=_in_domain(model, X, params))


def predict_numbers(model: Any, X: Array, params: dict[str, Any], prior: dict[str, Any]) -> Predictions:
    """Numbers with prediction intervals."""
    values = np.asarray(model.model_.predict(X, **params), dtype=float)
    inner, rows = arrive(model.model_, X)
    if not hasattr(inner, "predict_interval"):
        return Predictions(values)
    ends = inner.predict_interval(rows, coverage=model.coverage, **params).astype(float)
    return Predictions(values, intervals=ends)


def _sets(model: Any, X: Array, params: dict[str, Any]) -> Array | None:
    """Prediction sets, if the model has them."""
    inner, rows = arrive(model.model_, X)
    if not hasattr(inner, "predict_set") or not hasattr(inner, "heldout_rows_"):
        return None
    return inner.predict_set(rows, coverage=model.coverage, **params)


def novelty_pvalues(model: Any, X: Array) -> Array | None:
    """The novelty p-values of the rows, if the model has what they need."""
    inner, rows = arrive(model.model_, X, through=True)
    return inner.novelty_pvalue(rows) if getattr(inner, "neighbourhood_", None) is not None else None


def _in_domain(model: Any, X: Array, params: dict[str, Any]) -> Array | None:
    """How close the rows are to the training rows, if the model has it."""
    inner, rows = arrive(model.model_, X, through=True)
    return np.asarray(inner.in_domain(rows, **params), dtype=float) if hasattr(inner, "in_domain") else None


# ----------------------------------------------------------------------- scores


def class_scores(codes: Array, P: Array) -> dict[str, float]:
    """Scores of probabilities P (n x c) for rows with the class codes ``codes``."""
    classes = np.arange(P.shape[1])
    score = P[:, 1] if P.shape[1] == 2 else P
    return {
        "rows": len(codes),
        "log_loss": float(class_log_losses(P, codes).mean()),
        "brier": brier_score(codes, P, classes=classes),
        "accuracy": float(np.mean(P.argmax(axis=1) == codes)),
        "auc": float(task_auc(codes, score, np.zeros(len(codes)), average="pooled", labels=classes)),  # type: ignore[arg-type]
    }


def calibration_scores(codes: Array, P: Array, w: Array | None = None, group: Array | None = None) -> dict[str, Any]:
    """Calibration errors with their intervals, those that reports have."""
    top, classwise = calibration_errors(codes, P, w, group)
    return {
        "ece": top.value,
        "ece_interval": [top.low, top.high],
        "classwise_ece": classwise.value,
        "classwise_ece_interval": [classwise.low, classwise.high],
    }


def share_scores(codes: Array, prior: Array) -> dict[str, float]:
    """Scores of predicting the class shares of training for every row."""
    scores = class_scores(codes, np.tile(prior, (len(codes), 1)))
    return {name: scores[name] for name in ("log_loss", "brier", "accuracy")}


def decision_scores(wrong: Array, decided: Array) -> dict[str, float]:
    """The share of decided rows, and their error rate."""
    return {
        "decided": float(decided.mean()) if decided.size else np.nan,
        "error_of_decided": float(wrong[decided].mean()) if decided.any() else np.nan,
    }


def miss_limits_of(model: Any) -> dict[str, dict[str, float]]:
    """By class or label: the limit of missed rows, its level (infinite where all rows are accepted) and bound."""
    decider = model.decider_
    if decider is None or not decider.max_miss:
        return {}
    names = [text_of(c) for c in (model.labels if model.kind_ == "labels" else model.classes_)]
    found = zip(names, decider.miss_levels_.tolist(), decider.miss_bounds_.tolist(), strict=True)
    limits = {str(name): limit for name, limit in model.max_miss.items()}
    return {n: {"limit": limits[n], "level": level, "bound": bound} for n, level, bound in found if n in limits}


def miss_scores(model: Any, positive: dict[str, Array], missed: dict[str, Array]) -> dict[str, dict[str, float]]:
    """By class or label with a limit: rows, the share of them that is decided as another class, and the limit."""
    return {
        name: {
            "rows": int(positive[name].sum()),
            "missed": float(missed[name][positive[name]].mean()) if positive[name].any() else np.nan,
            "limit": found["limit"],
        }
        for name, found in miss_limits_of(model).items()
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
    few = ("rows", "log_loss", "accuracy", "decided", "error_of_decided", "rmse", "r2", "interval_coverage")
    parts = {str(t): score(np.flatnonzero(tasks == t)) for t in np.unique(tasks)}
    return {t: {name: s[name] for name in few if name in s} for t, s in parts.items()}


# ------------------------------------------------------------------- evaluation


def evaluate_model(model: Any, table: Table, strict: bool = False, class_prior: Any = None) -> dict[str, Any]:
    """Scores of a model on a table that includes the target."""
    target = true_target(model, table)
    predicted = model.answer(table, strict, class_prior)
    evaluate = {"classes": _evaluate_classes, "numbers": _evaluate_numbers, "labels": _evaluate_labels}[model.kind_]
    scores = evaluate(model, target, predicted)
    return {**scores, "left_out": len(table) - scores["rows"], "notes": list(predicted.notes)}


def true_target(model: Any, table: Table) -> Target:
    """The true target of the rows where it is known: codes of classes, numbers, or labels."""
    needed = list(model.labels) if model.labels else [model.target]
    absent = [name for name in needed if name not in table.columns]
    if absent:
        raise table.missing_error(absent, "the evaluation needs")
    if model.kind_ == "labels":
        return read_labels(table, needed)
    if model.kind_ == "classes":
        target = known_classes(table, model.target, model.classes_)
    else:
        values = values_of(table, model.target, "number")
        target = Target("numbers", values[~np.isnan(values)], ~np.isnan(values))
    if not target.known.any():
        raise TableError(f'column "{model.target}", the target, has no values: there is nothing to evaluate.')
    return target


def _evaluate_classes(model: Any, target: Target, predicted: Predictions) -> dict[str, Any]:
    y, rows = target.y, np.flatnonzero(target.known)
    assert predicted.proba is not None
    P, wrong = predicted.proba[rows], predicted.prediction[rows] != y
    scores: dict[str, Any] = class_scores(y, P) | calibration_scores(y, P)
    if predicted.inside is not None:
        scores |= set_scores(y, predicted.inside[rows])
    decided = None if predicted.decided is None else predicted.decided[rows]
    scores |= {} if decided is None else decision_scores(wrong, decided)
    scores["baseline"] = share_scores(y, model.baseline_)
    if decided is not None and model.max_miss:
        positive = {text_of(c): y == k for k, c in enumerate(model.classes_)}
        scores["misses"] = miss_scores(model, positive, dict.fromkeys(positive, wrong & decided))

    def score(some: Array) -> dict[str, float]:
        return class_scores(y[some], P[some]) | (
            {} if decided is None else decision_scores(wrong[some], decided[some])
        )

    if predicted.tasks is not None:
        scores["tasks"] = by_task(predicted.tasks[rows], score)
    return scores


def _evaluate_numbers(model: Any, target: Target, predicted: Predictions) -> dict[str, Any]:
    y, rows = target.y, np.flatnonzero(target.known)
    values, ends = predicted.prediction[rows], predicted.intervals
    ends = None if ends is None else ends[rows]

    def score(some: Any) -> dict[str, float]:
        of_intervals = {} if ends is None else interval_scores(y[some], ends[some])
        return number_scores(y[some], values[some]) | of_intervals

    scores: dict[str, Any] = score(slice(None))
    scores["baseline"] = number_scores(y, np.full(len(y), model.baseline_))
    if predicted.tasks is not None:
        scores["tasks"] = by_task(predicted.tasks[rows], score)
    return scores


def _evaluate_labels(model: Any, target: Target, predicted: Predictions) -> dict[str, Any]:
    names, rows = list(model.labels), np.flatnonzero(target.known)
    assert predicted.proba is not None
    Y, P = target.y, predicted.proba[rows]
    scores = label_scores(Y, P, model._predictor.threshold_, names)
    known = ~np.isnan(Y)
    if predicted.decided is not None:
        wrong = predicted.prediction[rows] != Y
        scores |= decision_scores(wrong[known], predicted.decided[rows][known])
        if model.max_miss:
            positive, missed = (table.T for table in (Y == 1, wrong & predicted.decided[rows]))
            named = (dict(zip(names, table, strict=True)) for table in (positive, missed))
            scores["misses"] = miss_scores(model, *named)
    if predicted.inside is not None:
        scores |= set_scores(Y[known].astype(int), predicted.inside[rows][known])
    shares = label_scores(Y, np.tile(model.baseline_, (len(Y), 1)), 0.5, names)
    scores["baseline"] = {name: shares[name] for name in ("log_loss", "accuracy")}
    return scores


def heldout_predictions(model: Any) -> Array | None:
    """Held-out numbers or probabilities of the training rows, NaN where a row was not held out; None without any."""
    name = "heldout_prediction_" if model.kind_ == "numbers" else "heldout_proba_"
    heldout = getattr(model._predictor, name, None)
    return None if heldout is None else np.asarray(heldout, dtype=float)


def heldout_scores(model: Any, y: Array) -> dict[str, Any]:
    """Scores of held-out predictions of the training rows with targets y; empty if there are none."""
    heldout = heldout_predictions(model)
    if heldout is None:
        return {}
    rows = ~np.isnan(heldout.reshape(len(heldout), -1)[:, 0])
    y, heldout = y[rows], heldout[rows]
    if model.kind_ == "numbers":
        return number_scores(y, heldout)
    if model.kind_ == "labels":
        return label_scores(y, heldout, model._predictor.threshold_, list(model.labels))
    codes, held = np.searchsorted(model.classes_, y), getattr(model._inner, "heldout_rows_", None)
    w, group = (None, None) if held is None else (held.weight, held.group)
    calibration = calibration_scores(codes, heldout, *(None if a is None else a.ravel()[rows] for a in (w, group)))
    return class_scores(codes, heldout) | calibration


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
        "kernel": kernel_name(inner),
        "rows": model.n_rows_,
        "left_out": model.left_out_,
        "features": model.encoder_.get_feature_names_out().tolist(),
        "columns": model.encoder_.describe().rows(),
        "chosen": {name: value for name, value in chosen.items() if value is not None},
        "feature_weights": model.feature_weights_,
        "baseline": model.baseline_,
        "heldout": getattr(model, "heldout_", {}),  # model files may omit it
        "baselines": getattr(model, "baselines_", None),
        "effects": getattr(model, "effects_", None),
        "coverage": model.coverage,
        "notes": model.notes_,
    }
    known = {name: getattr(inner, name + "_", None) for name in ("classes", "tasks") if model.kind_ != "labels"}
    summary |= {name: value for name, value in known.items() if value is not None}
    if model.decider_ is not None:
        names = ("threshold", "coverage", "error_bound")
        summary["decisions"] = {name: getattr(model.decider_, name + "_") for name in names}
        summary["decisions"] |= {name: getattr(model, name) for name in ("max_error", "min_confidence", "cost")}
        summary["decisions"]["misses"] = miss_limits_of(model)
    return json_values(summary)


def kernel_name(model: Any) -> str | None:
    """The kernel that was given or chosen; None for other estimators."""
    if not hasattr(model, "kernel_"):
        return None
    if model.kernel != "auto":
        return text_of(model.kernel)
    ruler = type(model.kernel_.ruler)
    return next((name for name, kernel in KERNELS.items() if kernel is ruler), ruler.__name__)


def json_values(value: Any) -> Any:
    """The value in types of JSON; NaN and infinite numbers become None."""
    if isinstance(value, dict):
        return {str(key): json_values(v) for key, v in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [json_values(v) for v in (value.tolist() if isinstance(value, np.ndarray) else value)]
    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not np.isfinite(value) else value
