"""The rows that a model is least sure of, and those of which it was sure and wrong.

How familiar rows are: how far they lie from the training rows, and whether that shows in the errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leastwise.report.markup import clean
from leastwise.report.numbers import plain, plain_list, share_of
from leastwise.report.reading import Part, Seen, Subject
from leastwise.report.tables import column, table

Array = np.ndarray

#: Lines of the two tables, and columns of the user's rows that are shown.
UNSURE, MISTAKEN, COLUMNS = 30, 30, 10


class Shown:
    """Rows of the user's to be shown: a frame, a mapping of columns, or a table of numbers."""

    def __init__(self, rows: Any, n: int) -> None:
        self.names, self.columns = ([], []) if rows is None else _columns(rows)
        for name, values in zip(self.names, self.columns, strict=True):
            if len(values) != n:
                raise ValueError(
                    f"rows has {len(values)} entries in column {name!r} and {n} rows are reported on: give one each."
                )
        self.names, self.columns = self.names[:COLUMNS], self.columns[:COLUMNS]

    def header(self) -> list[dict[str, Any]]:
        """Columns of the table."""
        return [column(clean(name, 40), "text") for name in self.names]

    def cells(self, row: int) -> list[str]:
        """What the user's columns hold in a row."""
        return [_cell(values[row]) for values in self.columns]


def _columns(rows: Any) -> tuple[list, list]:
    if isinstance(rows, Mapping):
        return [str(name) for name in rows], [np.asarray(values, dtype=object) for values in rows.values()]
    if hasattr(rows, "columns"):
        return [str(name) for name in rows.columns], [rows[name].to_numpy() for name in rows.columns]
    given = np.asarray(rows)
    if given.ndim != 2:
        raise ValueError(
            f"rows has shape {given.shape}: give a frame, a mapping of columns, or a table with columns."
        )
    return [f"column {j}" for j in range(given.shape[1])], list(given.T)


def _cell(value: Any) -> str:
    if value is None or value != value:
        return "–"
    return f"{value:.4g}" if isinstance(value, float | np.floating) else clean(value, 60)


def unsure_tables(subject: Subject, seen: Seen, shown: Shown) -> list[dict[str, Any]]:
    """The least sure, and the surest mistakes."""
    sure = np.concatenate([part.sure for part in seen.parts])
    wrong = np.concatenate([part.wrong for part in seen.parts])
    starts = np.cumsum([0, *map(len, seen.parts)])
    least = np.argsort(sure, kind="stable")[:UNSURE]
    mistakes = np.flatnonzero(wrong)
    mistakes = mistakes[np.argsort(-sure[mistakes], kind="stable")][:MISTAKEN]
    columns = [column("Row", "whole"), *_where(subject), column("Said", "text"), column("Sure", "percent", 1)]
    columns += [column("True", "text"), *shown.header()]
    made = [
        table("The rows the model is least sure of", columns, _lines(subject, seen, starts, least, shown), "rows"),
        table("Sure and wrong", columns, _lines(subject, seen, starts, mistakes, shown), "rows"),
    ]
    return [one for one in made if one["lines"]]


def _where(subject: Subject) -> list[dict[str, Any]]:
    return [column(subject.part_word.capitalize(), "text")] if subject.parts else []


def _lines(subject: Subject, seen: Seen, starts: Array, places: Array, shown: Shown) -> list[list]:
    lines = []
    for place in places.tolist():
        t = int(np.searchsorted(starts, place, side="right")) - 1
        lines.append(_line(subject, seen.parts[t], place - int(starts[t]), shown))
    return lines


def _line(subject: Subject, part: Part, i: int, shown: Shown) -> list:
    row, classes = int(part.rows[i]), part.classes
    where = [part.name] if subject.kind == "labels" else []
    if subject.tasks:
        t = int(part.evidence.task[i])  # type: ignore[index]
        where = [subject.tasks[t] if t >= 0 else "not known"]
    said = [classes[part.said[i]], float(round(part.sure[i], 5)), classes[part.evidence.codes[i]]]
    return [row, *where, *said, *shown.cells(row)]


#: Rows with at least this trust lie among the training rows.
AMONG = 0.999


def familiarity(subject: Subject, seen: Seen) -> dict[str, Any] | None:
    """Trust of the rows, and errors where it is full and where it is not; None where the model has no reach."""
    reach = getattr(subject.model, "reach_", None)
    if reach is None:
        return None
    counted = np.unique(np.concatenate([part.rows for part in seen.parts]))
    trust = np.asarray(seen.held.trust, dtype=float)[counted]
    trust = trust[~np.isnan(trust)]
    return {
        "radius": plain(reach.radius),
        "rows": len(trust),
        "among": plain(np.mean(trust >= AMONG)),
        "half": plain(np.mean(trust < 0.5)),
        "histogram": plain_list(np.histogram(trust, bins=10, range=(0, 1))[0]),
        "errors": [_errors(seen, True), _errors(seen, False)],
    }


def _errors(seen: Seen, among: bool) -> dict[str, Any] | None:
    """The error rate of rows among the training rows, or of those beyond; None where there are none."""
    wrong, w, rows = [], [], []
    for part in seen.parts:
        here = (np.asarray(seen.held.trust)[part.rows] >= AMONG) == among
        wrong.append(part.wrong[here])
        w.append(part.evidence.w[here])
        rows.append(part.rows[here])
    flat, weight, unit = np.concatenate(wrong), np.concatenate(w), np.concatenate(rows)
    if not len(flat):
        return None
    return {**share_of(flat, weight, unit if len(seen.parts) > 1 else None), "rows": len(np.unique(unit))}
