"""What every threshold would do: how many rows are decided, with how many errors, and which."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.calibration.risk import Decisions
from leastwise.report.numbers import bounds, plain, plain_list
from leastwise.report.reading import Part, Seen, Subject
from leastwise.utils.svg import Scale

Array = np.ndarray

#: Thresholds that the slider stops at: steps of 0.01, of 0.001 above 0.99 and of 0.0001 above 0.999.
STOPS: Array = np.round(
    np.concatenate([np.arange(0, 0.99, 0.01), np.arange(0.99, 0.999, 0.001), np.arange(0.999, 1.00005, 0.0001)]), 4
)
#: So many tasks or labels can be looked at alone, so many classes have a table of confusions, and so many pairs of
#: more classes a line.
ALONE, TABLE, LISTED = 40, 12, 20
#: Where the slider starts if the model has no threshold.
START = 0.9


def decisions_of(parts: list[Part], labels: bool) -> Decisions:
    """Decisions on all rows, or on all labels of all rows, which are one witness a row."""
    sure, wrong, w = (
        np.concatenate(column) for column in zip(*((p.sure, p.wrong, p.evidence.w) for p in parts), strict=True)
    )
    groups = [p.evidence.group if p.evidence.group is not None else p.rows for p in parts]
    apart = parts[0].evidence.group is None and not labels
    count = parts[0].evidence.count if apart else None
    if count is not None:
        count = np.concatenate([p.evidence.count for p in parts if p.evidence.count is not None])
    return Decisions(sure, wrong, w, None if apart else np.concatenate(groups), count)


def threshold_data(subject: Subject, seen: Seen) -> dict[str, Any]:
    """All that the slider shows."""
    labels = subject.kind == "labels"
    doubt = 1 - (0.95 if subject.abstaining is None else subject.abstaining.confidence)
    groups = _groups(subject, seen)
    stops = _stops(seen, [start for _, _, start in groups])
    made = [_outcomes(decisions_of(parts, labels), stops, doubt) for _, parts, _ in groups]
    for one, (name, _, start) in zip(made, groups, strict=True):
        one |= {"name": name, "start": _place(stops, start)}
    return {
        "stops": stops.tolist(),
        "confidence": plain(1 - doubt),
        "unit": "labels" if labels else "rows",
        "chosen": subject.abstaining is not None,
        "by": subject.part_word,
        "groups": made,
        "left_out": max(len(subject.parts) - ALONE, 0),
        "confusions": confusions(seen, stops),
    }


def _groups(subject: Subject, seen: Seen) -> list[tuple[str, list[Part], float]]:
    """All rows, then those of each task or label, with the thresholds to start from."""
    known = [part for part in seen.parts if len(part)]
    made = [("", known, _start(subject, None))]
    if subject.kind == "labels":
        made += [(p.name, [p], _start(subject, t)) for t, p in enumerate(seen.parts[:ALONE]) if len(p)]
    elif subject.tasks:
        task = known[0].evidence.task
        for t, name in enumerate(subject.tasks[:ALONE]):
            rows = np.flatnonzero(task == t)
            if len(rows):
                made.append((name, [known[0].some(rows)], _start(subject, t)))
    return made


def _start(subject: Subject, place: int | None) -> float:
    model = subject.abstaining
    if model is None:
        return START
    if subject.kind == "labels":
        return float(np.median(model.threshold_) if place is None else model.threshold_[place])
    own = getattr(model, "task_thresholds_", None)
    return float(model.threshold_ if own is None or place is None else own[place])


def _stops(seen: Seen, starts: list[float]) -> Array:
    """From just below the smallest confidence; with the thresholds of the model, and one that nothing reaches."""
    least = min(float(p.sure.min()) for p in seen.parts if len(p))
    below = STOPS[least >= STOPS][-1:]
    own = [t for t in starts if np.isfinite(t) and 0 <= t <= 1]
    return np.unique(np.r_[below, STOPS[least < STOPS], own])


def _place(stops: Array, threshold: float) -> int:
    """The stop of a threshold: the first that is at least as high."""
    return min(int(np.searchsorted(stops, threshold - 1e-12)), len(stops) - 1)


def _outcomes(decisions: Decisions, stops: Array, doubt: float) -> dict[str, Any]:
    """Rows that are decided, errors among them, and shares of both by weight, at every stop."""
    order = np.argsort(decisions.confidence, kind="stable")
    first = np.searchsorted(decisions.confidence[order], stops, side="left")

    def above(values: Array) -> Array:
        sums = np.concatenate([np.cumsum(values[order][::-1])[::-1], [0]])
        return sums[first]

    mass, lost = above(decisions.w), above(decisions.w * decisions.wrong)
    error = np.where(mass > 0, lost / np.where(mass > 0, mass, 1), np.nan)
    bound = bounds(decisions, stops, doubt)
    return {
        "rows": len(decisions),
        "decided": above(np.ones(len(decisions), dtype=int)).tolist(),
        "wrong": above(decisions.wrong.astype(int)).tolist(),
        "coverage": plain_list(mass / decisions.w.sum()),
        "error": plain_list(error),
        "bound": plain_list(bound),
        **_height(error, bound),
    }


def _height(error: Array, bound: Array) -> dict[str, Any]:
    """How high the picture of a curve has to be, and the round values beside it."""
    top = float(min(max(1.15 * np.nanmax(error), 1.4 * bound[0], 0.01), 1.0))
    return {"top": plain(top), "ticks": plain_list(Scale(0.0, top, 0.0, 1.0).ticks())}


def confusions(seen: Seen, stops: Array) -> dict[str, Any] | None:
    """Which class is taken for which, among decided rows, at every stop; None for labels of several classes.

    Labels of two classes are counted together: is there, is not there. Of many classes the most frequent errors are
    listed, in place of a table of all.
    """
    parts = [part for part in seen.parts if len(part)]
    c = parts[0].evidence.P.shape[1]
    if len(parts) > 1 and any(part.evidence.P.shape[1] != 2 for part in parts):
        return None
    counts = np.zeros((len(stops) + 1, c * c), dtype=np.int32)
    for part in parts:
        reached = np.searchsorted(stops, part.sure, side="right")  # so many stops are at or below
        np.add.at(counts, (reached, part.evidence.codes * c + part.said), 1)
    counts = counts[::-1].cumsum(axis=0)[::-1][1:]
    names = ["is not there", "is there"] if len(parts) > 1 else parts[0].classes
    if c <= TABLE:
        return {"classes": names, "pairs": None, "counts": counts.tolist()}
    errors = np.where(np.eye(c, dtype=bool).ravel(), 0, counts[0])
    top = np.argsort(-errors, kind="stable")[:LISTED]
    top = top[errors[top] > 0]
    pairs = [[int(k) // c, int(k) % c] for k in top]
    return {"classes": names, "pairs": pairs, "counts": counts[:, top].tolist()}
