"""Tables of tasks, labels and classes, rows to check, similarities, and distances from the training data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leastwise.inspection.similarity import (
    all_equal,
    block_means,
    clustered_order,
    dense,
    extreme_pairs,
    off_diagonal,
)
from leastwise.metrics.reliability import event_calibration_error, exact_interval
from leastwise.report.evaluation import LEVEL, Evaluation, Events, Predictions, Subject, share_interval
from leastwise.report.formatting import MISSING, clean, column, plain, plain_list, table
from leastwise.tables import TableModel
from leastwise.tables.linear import baseline_lines, baseline_note

Array = np.ndarray

#: A calibration error needs this many rows.
MIN_ROWS = 20
#: Lines of the tables of rows, and columns of the user's that they show.
MAX_LINES, MAX_COLUMNS = 30, 10
#: Cells per side of the similarity map, above which neighbours share a cell; no map is made of more than ``MAX_MAP``.
MAP_SIDE, MAX_MAP = 60, 3000
#: Pairs that are listed; similarities that differ by less than this share of the largest count as equal.
MAX_PAIRS, EQUAL = 12, 1e-3
#: Rows with at least this domain weight count as within the training data.
WITHIN = 0.999


# ------------------------------------------------------------------------------- measures


def area_under_roc(true: Array, p: Array, w: Array) -> float:
    """The weighted share of pairs of a positive and a negative row that p orders correctly; ties count half."""
    place = np.unique(p, return_inverse=True)[1]
    yes, no = np.bincount(place, weights=w * true), np.bincount(place, weights=w * ~true)
    below = np.cumsum(no) - no / 2
    return float(yes @ below / (yes.sum() * no.sum()))


def _auc(part: Predictions) -> float | None:
    """None unless there are two classes and both occur."""
    e = part.heldout
    if e.P.shape[1] != 2 or len(np.unique(e.codes)) < 2:
        return None
    return plain(area_under_roc(e.codes == 1, e.P[:, 1], e.w))


#: Columns of a calibration error.
ECE_COLUMNS = (column("ECE"), column("ECE, high", about="upper end of the 95% interval of the calibration error"))


def _calibration(part: Predictions, by_label: bool) -> list:
    """The calibration error and the upper end of its interval; None where there are too few rows."""
    return _event_calibration(part.events(by_label)) if len(part) >= MIN_ROWS else [None, None]


def _event_calibration(events: Events) -> list:
    found = event_calibration_error(events.p, events.true, events.w, events.unit, LEVEL)
    return [plain(found.value), plain(found.high)]


def _mean(values: Array, part: Predictions) -> float | None:
    return plain(np.average(values, weights=part.heldout.w))


def _precision_recall_f1(part: Predictions, k: int) -> list:
    """Weighted precision, recall and F1 of a class; None where the denominator is zero."""
    w, true, predicted = part.heldout.w, part.heldout.codes == k, part.predicted == k
    hits, positive, there = (float(w[rows].sum()) for rows in (true & predicted, predicted, true))
    return [
        plain(hits / positive) if positive else None,
        plain(hits / there) if there else None,
        plain(2 * hits / (positive + there)) if positive + there else None,
    ]


def _worst_first(lines: list[list], place: int) -> list[list]:
    return sorted(lines, key=lambda line: -(line[place] or 0.0))


# ------------------------------------------------------------------ tasks, labels, classes


def task_table(subject: Subject, evaluation: Evaluation) -> dict[str, Any]:
    """A line for every task, those with the most errors first."""
    part, binary = evaluation.parts[0], len(evaluation.parts[0].classes) == 2
    columns = [column("Task", "text"), column("Rows", "whole")]
    columns += [column(f"Share of {part.classes[1]}", "percent", 1)] if binary else []
    columns += [
        column("Errors", "percent", 1),
        column("Errors, low", "percent", 1, "lower end of the 95% interval of the error rate"),
        column("Errors, high", "percent", 1, "upper end of the 95% interval of the error rate"),
        column("Log-loss"),
        column("Mean confidence", "percent", 1),
        *ECE_COLUMNS,
    ]
    columns += [column("AUC")] if binary else []
    lines = []
    for t, name in enumerate(subject.tasks):
        own = part.take(np.flatnonzero(part.heldout.task == t))
        if len(own):
            line: list = [name, len(own), *([_mean(own.heldout.codes == 1, own)] if binary else [])]
            ends = exact_interval(own.wrong.sum(), len(own), LEVEL)
            line += [_mean(own.wrong, own), *map(plain, ends), _mean(own.loss, own), _mean(own.confidence, own)]
            lines.append([*line, *_calibration(own, False), *([_auc(own)] if binary else [])])
    return table("By task", columns, _worst_first(lines, 3 if binary else 2), "tasks")


def label_table(evaluation: Evaluation) -> dict[str, Any]:
    """A line for every label, those with the most errors first."""
    columns = [column("Label", "text"), column("Known", "whole")]
    columns += [column(name, "percent", 1) for name in ("Share", "Errors", "Precision", "Recall")]
    columns += [column("F1"), column("AUC"), column("Log-loss"), *ECE_COLUMNS, column("Threshold")]
    lines = []
    for part in evaluation.known:
        e, binary = part.heldout, part.heldout.P.shape[1] == 2
        line = [part.name, len(part), _mean(e.codes == 1, part) if binary else None, _mean(part.wrong, part)]
        line += [*_precision_recall_f1(part, 1), _auc(part)] if binary else [None, None, None, None]
        line += [_mean(part.loss, part), *_calibration(part, True), plain(part.threshold) if binary else None]
        lines.append(line)
    return table("By label", columns, _worst_first(lines, 3), "labels")


def class_table(evaluation: Evaluation) -> dict[str, Any]:
    """A line for every class."""
    part = evaluation.parts[0]
    e = part.heldout
    columns = [column("Class", "text"), column("Rows", "whole")]
    columns += [column(name, "percent", 1) for name in ("Share", "Mean probability", "Precision", "Recall")]
    columns += [column("F1"), *ECE_COLUMNS]
    lines = []
    for k, name in enumerate(part.classes):
        shares = [_mean(e.codes == k, part), _mean(e.P[:, k], part)]
        error = _event_calibration(Events(e.P[:, k], e.codes == k, e.w, e.group))
        lines.append([name, int((e.codes == k).sum()), *shares, *_precision_recall_f1(part, k), *error])
    return table("Each class against the rest", columns, lines, "classes")


# ----------------------------------------------------------------- baselines and columns


def baselines_table(model: Any) -> dict[str, Any] | None:
    """Held-out losses of a table model and of its baselines; None for other models."""
    found = getattr(model, "baselines_", None) if isinstance(model, TableModel) else None
    if found is None:
        return None
    root = np.sqrt if found["measure"] == "mse" else float
    lines: list[list] = [["this model", plain(root(found["loss"])), ""]]
    for key, (name, loss) in zip(("constant", "linear"), baseline_lines(model.kind_, found), strict=True):
        other = found[key]
        better = "yes" if other["better"] else "no" if other["interval"][1] < 0 else "within chance"
        lines.append([name, plain(loss), better])
    measure = "RMSE" if found["measure"] == "mse" else "Log-loss"
    columns = [column("", "text"), column(measure, "figures", 4), column("Is this model better?", "text")]
    caption = f"Compared with simple models, on {found['rows']:,} held-out rows"
    made = table(caption, columns, lines, "lines")
    return {**made, "note": baseline_note(model.kind_, found)}


def effects(model: Any) -> dict[str, Any] | None:
    """Importances, feature weights and partial dependence of the columns of a table model; None for others."""
    found = getattr(model, "effects_", None) if isinstance(model, TableModel) else None
    if found is None:
        return None
    weights = model.feature_weights_
    columns = [column("Column", "text"), column("Importance", "figures", 3)]
    columns += [] if weights is None else [column("Feature weight", "figures", 3)]
    lines = [
        [clean(name), plain(value), *([] if weights is None else [plain(weights.get(name, np.nan))])]
        for name, value in found["importance"].items()
    ]
    values = {
        of: [value for line in found["lines"] if line["of"] == of for value in line["value"]]
        for of in {line["of"] for line in found["lines"]}
    }
    span = max((max(v) - min(v) for v in values.values()), default=0.0)
    shown = []
    for line in found["lines"]:  # lines of one output have one scale, and those of all outputs the same range
        middle = (max(values[line["of"]]) + min(values[line["of"]])) / 2
        names = {"column": clean(line["column"]), "of": clean(line["of"]) if line["of"] else ""}
        shown.append({**line, **names, "ends": [plain(middle - span / 2), plain(middle + span / 2)]})
    return {"table": table("Columns", columns, lines, "columns"), "lines": shown}


# ---------------------------------------------------------------------------- rows to check


class ShownColumns:
    """The user's columns to show with the rows: from a frame, a mapping of columns, or a 2-D array."""

    def __init__(self, rows: Any, n: int) -> None:
        names, columns = ([], []) if rows is None else _named_columns(rows)
        for name, values in zip(names, columns, strict=True):
            if len(values) != n:
                raise ValueError(
                    f"rows has {len(values)} entries in column {name!r} and {n} rows are reported on: give one entry "
                    "for each row."
                )
        self.names, self.columns = names[:MAX_COLUMNS], columns[:MAX_COLUMNS]

    def header(self) -> list[dict[str, Any]]:
        """Columns of the table."""
        return [column(clean(name, 40), "text") for name in self.names]

    def cells(self, row: int) -> list[str]:
        """The values of a row, as text."""
        return [_cell(values[row]) for values in self.columns]


def _named_columns(rows: Any) -> tuple[list, list]:
    if isinstance(rows, Mapping):
        return [str(name) for name in rows], [np.asarray(values, dtype=object) for values in rows.values()]
    if hasattr(rows, "columns"):
        return [str(name) for name in rows.columns], [rows[name].to_numpy() for name in rows.columns]
    given = np.asarray(rows)
    if given.ndim != 2:
        raise ValueError(f"rows has shape {given.shape}: give a frame, a mapping of columns, or a 2-D array.")
    return [f"column {j}" for j in range(given.shape[1])], list(given.T)


def _cell(value: Any) -> str:
    if value is None or value != value:
        return MISSING
    return f"{value:.4g}" if isinstance(value, float | np.floating) else clean(value, 60)


def uncertain_rows(subject: Subject, evaluation: Evaluation, shown: ShownColumns) -> list[dict[str, Any]]:
    """The rows with the lowest confidence, and the errors with the highest."""
    parts = evaluation.parts
    confidence, wrong = (np.concatenate([getattr(p, name) for p in parts]) for name in ("confidence", "wrong"))
    least = np.argsort(confidence, kind="stable")[:MAX_LINES]
    errors = np.flatnonzero(wrong)
    errors = errors[np.argsort(-confidence[errors], kind="stable")][:MAX_LINES]
    columns = [column("Row", "whole")]
    columns += [column(subject.part_word.capitalize(), "text")] if subject.parts else []
    columns += [column("Predicted", "text"), column("Confidence", "percent", 1), column("True", "text")]
    columns += shown.header()
    starts = np.cumsum([0, *map(len, parts)])
    made = []
    for caption, places in (("Lowest confidence", least), ("Wrong with the highest confidence", errors)):
        lines = []
        for place in places.tolist():
            t = int(np.searchsorted(starts, place, side="right")) - 1
            lines.append(_row_line(subject, parts[t], place - int(starts[t]), shown))
        made.append(table(caption, columns, lines, "rows"))
    return [one for one in made if one["lines"]]


def _row_line(subject: Subject, part: Predictions, i: int, shown: ShownColumns) -> list:
    row, classes = int(part.rows[i]), part.classes
    where = [part.name] if subject.kind == "labels" else []
    if subject.tasks:
        t = int(part.heldout.task[i])  # type: ignore[index]
        where = [subject.tasks[t] if t >= 0 else "unknown"]
    outcome = [classes[part.predicted[i]], float(round(part.confidence[i], 5)), classes[part.heldout.codes[i]]]
    return [row, *where, *outcome, *shown.cells(row)]


# --------------------------------------------------------- similarity and training distance


def similarity(subject: Subject) -> dict[str, Any] | None:
    """The similarity map of tasks or labels in a clustered order; None for a model without."""
    names = subject.parts
    if len(names) < 2:
        return None
    known = {
        "by": subject.part_word,
        "count": len(names),
        "sharing": plain(getattr(subject.model, "sharing_", np.nan)),
    }
    given = getattr(subject.model, "similarity_", None) if len(names) <= MAX_MAP else None
    if given is None:
        return {**known, "note": "many" if len(names) > MAX_MAP else "equal"}
    S = dense(given)
    if all_equal(S, EQUAL):
        return {**known, "note": "equal"}
    signed = bool((off_diagonal(S) < 0).any())
    order = clustered_order(S, signed)
    cells, members = block_means(S[np.ix_(order, order)], MAP_SIDE)
    return {
        **known,
        "note": None,
        "signed": signed,
        "names": [names[i] for i in order] if len(names) <= MAP_SIDE else [],
        "members": members,
        "cells": [[plain(v) for v in line] for line in cells],
        "pairs": _pair_table(S, names, subject.part_word),
    }


def _pair_table(S: Array, names: list[str], by: str) -> dict[str, Any]:
    most, least = extreme_pairs(S, MAX_PAIRS)
    lines = [[names[i], names[j], plain(value)] for i, j, value in [*most, *least]]
    columns = [column(by.capitalize(), "text"), column(f"and {by}", "text"), column("Similarity")]
    return table("Most similar pairs" + (", and most dissimilar" if least else ""), columns, lines, "pairs")


def novelty(subject: Subject, evaluation: Evaluation) -> dict[str, Any] | None:
    """Domain weights of the rows, and error rates within and outside the training data; None if not measured."""
    extrapolation = getattr(subject.model, "extrapolation_", None)
    if extrapolation is None:
        return None
    counted = np.unique(np.concatenate([part.rows for part in evaluation.parts]))
    in_domain = np.asarray(evaluation.held.in_domain, dtype=float)[counted]
    in_domain = in_domain[~np.isnan(in_domain)]
    return {
        "radius": plain(extrapolation.radius),
        "rows": len(in_domain),
        "within": plain(np.mean(in_domain >= WITHIN)),
        "half": plain(np.mean(in_domain < 0.5)),
        "histogram": plain_list(np.histogram(in_domain, bins=10, range=(0, 1))[0]),
        "errors": [_error_rate(evaluation, within) for within in (True, False)],
    }


def _error_rate(evaluation: Evaluation, within: bool) -> dict[str, Any] | None:
    """The error rate of rows within the training data, or outside; None where there are none."""
    wrong, w, rows = [], [], []
    for part in evaluation.parts:
        here = (np.asarray(evaluation.held.in_domain)[part.rows] >= WITHIN) == within
        wrong.append(part.wrong[here])
        w.append(part.heldout.w[here])
        rows.append(part.rows[here])
    flat, weight, unit = np.concatenate(wrong), np.concatenate(w), np.concatenate(rows)
    if not len(flat):
        return None
    return {**share_interval(flat, weight, unit if evaluation.by_label else None), "rows": len(np.unique(unit))}


def novelty_table(known: dict[str, Any]) -> dict[str, Any]:
    """Error rates within and outside the training data."""
    columns = [column("Rows", "text"), column("Number", "whole"), column("Errors", "percent", 1)]
    columns += [column("Errors, low", "percent", 1), column("Errors, high", "percent", 1)]
    names = ("within the training data", "outside")
    lines = [
        [n, e["rows"], e["value"], e["low"], e["high"]] for n, e in zip(names, known["errors"], strict=True) if e
    ]
    return table("Errors by distance from the training data", columns, lines, "lines")
