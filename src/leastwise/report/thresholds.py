"""Abstention at every threshold: how many rows are accepted, with how many errors, and which."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.calibration.risk import Decisions
from leastwise.inspection.outcomes import accepted_rows, error_bounds
from leastwise.report.evaluation import Evaluation, Predictions, Subject
from leastwise.report.formatting import MISSING, column, figures, percent, plain, plain_list, table, whole
from leastwise.utils.svg import Scale

Array = np.ndarray

#: Positions of the slider: steps of 0.01, of 0.001 above 0.99 and of 0.0001 above 0.999.
STOPS: Array = np.round(
    np.concatenate([np.arange(0, 0.99, 0.01), np.arange(0.99, 0.999, 0.001), np.arange(0.999, 1.00005, 0.0001)]), 4
)
#: At most this many tasks or labels can be shown alone.
MAX_GROUPS = 40
#: Up to this many classes have a confusion matrix; of more, this many of the most frequent errors are listed.
MAX_MATRIX, MAX_PAIRS = 12, 20
#: Where the slider starts if the model has no threshold.
START = 0.9
#: Coverages that the table of thresholds has a line for.
COVERAGES = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3)


def threshold_data(subject: Subject, evaluation: Evaluation) -> dict[str, Any]:
    """The data of the slider, the risk-coverage curve and the confusions."""
    by_label = subject.kind == "labels"
    delta = 1 - (0.95 if subject.abstaining is None else subject.abstaining.confidence)
    groups = _groups(subject, evaluation)
    stops = _stops(evaluation, [start for _, _, start in groups])
    curves = [_curve(_decisions(parts, by_label), stops, delta) for _, parts, _ in groups]
    for curve, (name, _, start) in zip(curves, groups, strict=True):
        first_at_least = int(np.searchsorted(stops, start - 1e-12))
        curve |= {"name": name, "start": min(first_at_least, len(stops) - 1)}
    return {
        "stops": stops.tolist(),
        "confidence": plain(1 - delta),
        "unit": "labels" if by_label else "rows",
        "chosen": subject.abstaining is not None,
        "by": subject.part_word,
        "groups": curves,
        "left_out": max(len(subject.parts) - MAX_GROUPS, 0),
        "confusions": confusions(evaluation, stops),
        "misses": miss_table(subject, evaluation),
    }


def _decisions(parts: list[Predictions], by_label: bool) -> Decisions:
    """Decisions on all rows; with labels, those on all labels of a row are one observation."""
    columns = zip(*((p.eligible_confidence, p.wrong, p.heldout.w) for p in parts), strict=True)
    confidence, wrong, w = (np.concatenate(column) for column in columns)
    groups = [p.heldout.group if p.heldout.group is not None else p.rows for p in parts]
    independent = parts[0].heldout.group is None and not by_label
    count = parts[0].heldout.count if independent else None
    if count is not None:
        count = np.concatenate([p.heldout.count for p in parts if p.heldout.count is not None])
    hidden = sum(p.heldout.hidden for p in parts)
    return Decisions(confidence, wrong, w, None if independent else np.concatenate(groups), count, hidden)


def _groups(subject: Subject, evaluation: Evaluation) -> list[tuple[str, list[Predictions], float]]:
    """All rows, then those of each task or label: name, predictions and the threshold to start at."""
    parts = evaluation.known
    groups = [("", parts, _start(subject, None))]
    if subject.kind == "labels":
        groups += [(p.name, [p], _start(subject, t)) for t, p in enumerate(evaluation.parts[:MAX_GROUPS]) if len(p)]
    elif subject.tasks:
        task = parts[0].heldout.task
        for t, name in enumerate(subject.tasks[:MAX_GROUPS]):
            rows = np.flatnonzero(task == t)
            if len(rows):
                groups.append((name, [parts[0].take(rows)], _start(subject, t)))
    return groups


def _start(subject: Subject, place: int | None) -> float:
    """The threshold of the model, of one of its tasks or of one of its labels."""
    model = subject.abstaining
    if model is None:
        return START
    if subject.kind == "labels":
        return float(np.median(model.threshold_) if place is None else model.threshold_[place])
    own = getattr(model, "task_thresholds_", None)
    return float(model.threshold_ if own is None or place is None else own[place])


def _stops(evaluation: Evaluation, starts: list[float]) -> Array:
    """From just below the smallest confidence, with the thresholds of the model, to one that nothing reaches."""
    least = min(float(p.confidence.min()) for p in evaluation.known)
    below = STOPS[least >= STOPS][-1:]
    own = [t for t in starts if np.isfinite(t) and 0 <= t <= 1]
    return np.unique(np.r_[below, STOPS[least < STOPS], own])


def _curve(decisions: Decisions, stops: Array, delta: float) -> dict[str, Any]:
    """Accepted rows, errors among them, and weighted shares of both at every stop, with the height of their chart."""
    found = accepted_rows(decisions.confidence, decisions.wrong, stops, decisions.w)
    error = np.where(found.mass > 0, found.error_mass / np.where(found.mass > 0, found.mass, 1), np.nan)
    bound = error_bounds(decisions, stops, delta)
    top = float(min(max(1.15 * np.nanmax(error), 1.4 * bound[0], 0.01), 1.0))
    return {
        "rows": len(decisions),
        "accepted": found.rows.tolist(),
        "wrong": found.errors.tolist(),
        "coverage": plain_list(found.mass / decisions.w.sum()),
        "error": plain_list(error),
        "bound": plain_list(bound),
        "top": plain(top),
        "ticks": plain_list(Scale(0.0, top, 0.0, 1.0).ticks()),
    }


def confusions(evaluation: Evaluation, stops: Array) -> dict[str, Any] | None:
    """Confusion counts among accepted rows at every stop; None for labels of more than two classes.

    Labels of two classes are counted together, as present or absent. Of many classes the most frequent errors are
    listed instead of the whole matrix.
    """
    parts = evaluation.known
    c = parts[0].heldout.P.shape[1]
    if len(parts) > 1 and any(part.heldout.P.shape[1] != 2 for part in parts):
        return None
    counts = np.zeros((len(stops) + 1, c * c), dtype=np.int32)
    for part in parts:
        reached = np.searchsorted(stops, part.eligible_confidence, side="right")  # the number of stops at or below
        np.add.at(counts, (reached, part.heldout.codes * c + part.predicted), 1)
    counts = counts[::-1].cumsum(axis=0)[::-1][1:]
    names = ["absent", "present"] if len(parts) > 1 else parts[0].classes
    if c <= MAX_MATRIX:
        return {"classes": names, "pairs": None, "counts": counts.tolist()}
    errors = np.where(np.eye(c, dtype=bool).ravel(), 0, counts[0])
    top = np.argsort(-errors, kind="stable")[:MAX_PAIRS]
    top = top[errors[top] > 0]
    pairs = [[int(k) // c, int(k) % c] for k in top]
    return {"classes": names, "pairs": pairs, "counts": counts[:, top].tolist()}


def miss_table(subject: Subject, evaluation: Evaluation) -> dict[str, Any] | None:
    """Classes or labels with a limit: their rows, and how many are accepted as another class; None without limits."""
    model = subject.abstaining
    if model is None or not model.max_miss:
        return None
    limited = np.flatnonzero(~np.isnan(model.miss_bounds_)).tolist()
    by_label = subject.kind == "labels"
    names = list(subject.model.label_index_.names) if by_label else model.classes_.tolist()
    lines = []
    for k in limited:
        part, code = (evaluation.parts[k], 1) if by_label else (evaluation.parts[0], k)
        level = np.full(len(part), _start(subject, k if by_label else None))
        own = getattr(model, "task_thresholds_", None)
        task = part.heldout.task
        if task is not None:
            known = level if own is None else own[np.maximum(task, 0)]
            level = np.where(task < 0, model.unseen_task_threshold_, known)
        rows = part.heldout.codes == code
        missed = rows & part.wrong & (part.eligible_confidence >= level)
        share = float(missed.sum() / rows.sum()) if rows.any() else np.nan
        shown, limit = subject.labels[k] if by_label else part.classes[k], model.max_miss[names[k]]
        lines.append([shown, int(rows.sum()), int(missed.sum()), plain(share), limit, plain(model.miss_levels_[k])])
    columns = [column("Label" if by_label else "Class", "text"), column("Rows", "whole"), column("Missed", "whole")]
    columns += [column("Share missed", "percent", 2), column("Limit", "percent", 2)]
    columns += [column("Level", "figures", 3, "a row is accepted as another class below this probability only")]
    return table("Missed rows: accepted as another class", columns, lines, "lines")


# ---------------------------------------------------------------------------- for the page


def outcome(data: dict[str, Any], group: int, stop: int) -> dict[str, str]:
    """The numbers at a stop, as text; the script of the page has the same rules."""
    g = data["groups"][group]
    accepted, rows = g["accepted"][stop], g["rows"]
    return {
        "threshold": figures(data["stops"][stop]),
        "accepted": f"{whole(accepted)} of {whole(rows)} ({percent(g['coverage'][stop])})",
        "rejected": whole(rows - accepted),
        "error": f"{whole(g['wrong'][stop])} ({percent(g['error'][stop])})" if accepted else MISSING,
        "bound": percent(g["bound"][stop]),
    }


def threshold_table(data: dict[str, Any]) -> dict[str, Any]:
    """Thresholds with about the coverages of ``COVERAGES``, and the threshold of the model."""
    g = data["groups"][0]
    coverage = np.array(g["coverage"], dtype=float)
    reached = [np.flatnonzero(coverage >= share - 1e-9) for share in COVERAGES]
    own = {g["start"]} if data["chosen"] else set()
    stops = sorted({int(places[-1]) for places in reached if len(places)} | own)
    columns = [column("Threshold", "figures", 4), column("Accepted", "percent", 1), column("Rejected", "whole")]
    columns += [column("Errors", "percent", 1), column("Upper bound", "percent", 1)]
    lines = [
        [data["stops"][k], g["coverage"][k], g["rows"] - g["accepted"][k], g["error"][k], g["bound"][k]]
        for k in stops
    ]
    return table("Selected thresholds", columns, lines, "lines")
