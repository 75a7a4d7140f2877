"""How good predictions are, as plain numbers beside those of a baseline that looks at no input."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.metrics.calibration import calibration_error
from leastwise.metrics.label_report import label_report
from leastwise.metrics.losses import class_log_losses
from leastwise.metrics.probabilities import brier_score, task_auc

Array = np.ndarray


def class_scores(codes: Array, P: Array) -> dict[str, float]:
    """Scores of probabilities P (n x c) for rows of the classes ``codes``."""
    classes = np.arange(P.shape[1])
    score = P[:, 1] if P.shape[1] == 2 else P
    return {
        "rows": len(codes),
        "log_loss": float(class_log_losses(P, codes).mean()),
        "brier": brier_score(codes, P, classes=classes),
        "ece": max(calibration_error(codes, P, classes=classes), 0.0),  # without what chance makes of it
        "accuracy": float(np.mean(P.argmax(axis=1) == codes)),
        "auc": float(task_auc(codes, score, np.zeros(len(codes)), average="pooled", labels=classes)),  # type: ignore[arg-type]
    }


def share_scores(codes: Array, prior: Array) -> dict[str, float]:
    """Those of the class shares of training, said of every row."""
    scores = class_scores(codes, np.tile(prior, (len(codes), 1)))
    return {name: scores[name] for name in ("log_loss", "brier", "accuracy")}


def decision_scores(wrong: Array, decided: Array) -> dict[str, float]:
    """What share is decided, and how many of these wrongly."""
    return {
        "decided": float(decided.mean()) if decided.size else np.nan,
        "error_of_decided": float(wrong[decided].mean()) if decided.any() else np.nan,
    }


def set_scores(codes: Array, inside: Array) -> dict[str, float]:
    """How often the true class is in its set, and how large the sets are."""
    return {
        "set_coverage": float(inside[np.arange(len(codes)), codes].mean()),
        "set_size": float(inside.sum(axis=1).mean()),
    }


def number_scores(y: Array, predicted: Array) -> dict[str, float]:
    """Scores of predicted numbers."""
    error, spread = y - predicted, np.sum((y - y.mean()) ** 2)
    return {
        "rows": len(y),
        "rmse": float(np.sqrt(np.mean(error**2))),
        "mae": float(np.mean(np.abs(error))),
        "r2": float(1 - np.sum(error**2) / spread) if spread > 0 else np.nan,
    }


def interval_scores(y: Array, ends: Array) -> dict[str, float]:
    """How often the number is in its interval, and how wide these are."""
    inside = (ends[:, 0] <= y) & (y <= ends[:, 1])
    return {"interval_coverage": float(inside.mean()), "interval_width": float(np.mean(ends[:, 1] - ends[:, 0]))}


def label_scores(Y: Array, P: Array, threshold: Any, names: list[str]) -> dict[str, Any]:
    """Scores of every label, and of all entries together."""
    table = label_report(Y, P, threshold, names).table
    wanted = [c for c in table if c != "label"]
    parts = [{c: table[c][t].item() for c in wanted} for t in range(len(names) + 1)]
    known = ~np.isnan(Y)
    right = (np.broadcast_to(threshold, len(names)) < P) == (Y == 1)
    overall = {"rows": len(Y), **parts[-1], "accuracy": float(right[known].mean())}
    return {**overall, "labels": dict(zip(names, parts[:-1], strict=True))}


def by_task(tasks: Array, score: Any) -> dict[str, dict[str, float]]:
    """A few scores for the rows of every task; ``score(rows)`` gives them all."""
    few = ("rows", "log_loss", "accuracy", "rmse", "r2")
    parts = {str(t): score(np.flatnonzero(tasks == t)) for t in np.unique(tasks)}
    return {t: {name: s[name] for name in few if name in s} for t, s in parts.items()}
