"""Tables of classes, tasks and labels: a line for each, columns with a name, a kind and digits.

Which tasks or labels go together: a map in the order of a clustering, and the closest pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from leastwise.estimators._html_repr import bins_of
from leastwise.inspection.clustering import clustered, dense, off_diagonal
from leastwise.inspection.outcomes import exact_interval
from leastwise.report.numbers import LEVEL, plain
from leastwise.report.quality import statements
from leastwise.report.reading import Part, Seen, Subject

Array = np.ndarray

#: Fewer rows say nothing about calibration.
ENOUGH = 20


def column(name: str, kind: str = "number", digits: int = 3, about: str = "") -> dict[str, Any]:
    """A column: kinds are text, whole, number and percent."""
    return {"name": name, "kind": kind, "digits": digits, "about": about}


def table(caption: str, columns: list[dict[str, Any]], lines: list[list], what: str) -> dict[str, Any]:
    """A table; ``what`` are its lines, in the plural."""
    return {"caption": caption, "columns": columns, "lines": lines, "what": what}


def auc(part: Part) -> float | None:
    """Area under the ROC curve of two classes; None where there are others, or one only."""
    e = part.evidence
    if e.P.shape[1] != 2 or len(np.unique(e.codes)) < 2:
        return None
    return plain(area(e.codes == 1, e.P[:, 1], e.w))


def area(true: Array, p: Array, w: Array) -> float:
    """The weighted share of pairs, of a true row and another, that p has in order; equal ones count half."""
    place = np.unique(p, return_inverse=True)[1]
    yes, no = np.bincount(place, weights=w * true), np.bincount(place, weights=w * ~true)
    below = np.cumsum(no) - no / 2
    return float(yes @ below / (yes.sum() * no.sum()))


def calibration(part: Part, labels: bool) -> float | None:
    """The debiased calibration error; None where rows are few."""
    if len(part) < ENOUGH:
        return None
    said = statements(part, labels)
    return plain(max(bins_of(said.p, said.true, said.w).error(0, said.w, debiased=True), 0.0))


def _ends(wrong: Array) -> list:
    low, high = exact_interval(wrong.sum(), len(wrong), LEVEL)
    return [plain(low), plain(high)]


def _weighted(values: Array, part: Part) -> float | None:
    return plain(np.average(values, weights=part.evidence.w))


# --------------------------------------------------------------------------------- tasks


def task_table(subject: Subject, seen: Seen) -> dict[str, Any]:
    """A line for every task, those with most errors first."""
    part, two = seen.parts[0], len(seen.parts[0].classes) == 2
    columns = [column("Task", "text"), column("Rows", "whole")]
    columns += [column(f"Share of {part.classes[1]}", "percent", 1)] if two else []
    columns += [
        column("Errors", "percent", 1),
        column("Errors, low", "percent", 1, "lower end of the 95 % interval of the errors"),
        column("Errors, high", "percent", 1, "upper end of the 95 % interval of the errors"),
        column("Log-loss"),
        column("Mean confidence", "percent", 1),
        column("ECE"),
    ]
    columns += [column("AUC")] if two else []
    task = part.evidence.task
    groups = [part.some(np.flatnonzero(task == t)) for t in range(len(subject.tasks))]
    lines = [_task_line(name, own, two) for name, own in zip(subject.tasks, groups, strict=True) if len(own)]
    return table("Task by task", columns, _worst_first(lines, 3 if two else 2), "tasks")


def _task_line(name: str, own: Part, two: bool) -> list:
    line: list = [name, len(own)]
    line += [_weighted(own.evidence.codes == 1, own)] if two else []
    line += [_weighted(own.wrong, own), *_ends(own.wrong), _weighted(own.loss, own), _weighted(own.sure, own)]
    line.append(calibration(own, False))
    return [*line, auc(own)] if two else line


def _worst_first(lines: list[list], place: int) -> list[list]:
    return sorted(lines, key=lambda line: -(line[place] or 0.0))


# --------------------------------------------------------------------------------- labels


def label_table(seen: Seen) -> dict[str, Any]:
    """A line for every label, those with most errors first."""
    columns = [column("Label", "text"), column("Known", "whole")]
    columns += [column(name, "percent", 1) for name in ("Share", "Errors", "Precision", "Recall")]
    columns += [column("F1"), column("AUC"), column("Log-loss"), column("ECE"), column("Given above")]
    lines = [_label_line(part) for part in seen.parts if len(part)]
    return table("Label by label", columns, _worst_first(lines, 3), "labels")


def _label_line(part: Part) -> list:
    e, two = part.evidence, part.evidence.P.shape[1] == 2
    line = [part.name, len(part), _weighted(e.codes == 1, part) if two else None, _weighted(part.wrong, part)]
    line += [*found(part, 1), auc(part)] if two else [None, None, None, None]
    return [*line, _weighted(part.loss, part), calibration(part, True), plain(part.limit) if two else None]


def found(part: Part, k: int) -> list:
    """Precision, recall and F1 of a class, by weight; None where there is nothing to have a share of."""
    w, true, said = part.evidence.w, part.evidence.codes == k, part.said == k
    both, given, there = (float(w[rows].sum()) for rows in (true & said, said, true))
    return [
        plain(both / given) if given else None,
        plain(both / there) if there else None,
        plain(2 * both / (given + there)) if given + there else None,
    ]


# --------------------------------------------------------------------------------- classes


def class_table(seen: Seen) -> dict[str, Any]:
    """A line for every class."""
    part = seen.parts[0]
    e = part.evidence
    columns = [column("Class", "text"), column("Rows", "whole")]
    columns += [column(name, "percent", 1) for name in ("Share", "Mean probability", "Precision", "Recall")]
    columns += [column("F1"), column("ECE")]
    lines = []
    for k, name in enumerate(part.classes):
        error = bins_of(e.P[:, k], e.codes == k, e.w).error(0, e.w, debiased=True)
        shares = [_weighted(e.codes == k, part), _weighted(e.P[:, k], part)]
        lines.append([name, int((e.codes == k).sum()), *shares, *found(part, k), plain(max(error, 0.0))])
    return table("Each class against the rest", columns, lines, "classes")


#: Cells of a side; of more tasks neighbours share one. Leaves are put into the best order up to so many; beyond
#: the last number there is no map.
SIDE, ORDERED, MOST = 60, 200, 3000
#: Pairs that are listed, and how much similarities have to differ, in parts of the largest.
PAIRS, ALIKE = 12, 1e-3


def similarity(subject: Subject) -> dict[str, Any] | None:
    """The map; None for a model without tasks or labels."""
    names = subject.parts
    if len(names) < 2:
        return None
    known = {
        "by": subject.part_word,
        "count": len(names),
        "sharing": plain(getattr(subject.model, "sharing_", np.nan)),
    }
    given = getattr(subject.model, "similarity_", None) if len(names) <= MOST else None
    if given is None:
        return {**known, "note": "many" if len(names) > MOST else "alike"}
    S = dense(given)
    if _alike(S):
        return {**known, "note": "alike"}
    signed = bool((off_diagonal(S) < 0).any())
    order = _order(S, signed)
    cells, members = _blocks(S[np.ix_(order, order)])
    return {
        **known,
        "note": None,
        "signed": signed,
        "names": [names[i] for i in order] if len(names) <= SIDE else [],
        "members": members,
        "cells": [[plain(v) for v in line] for line in cells],
        "pairs": _pairs(S, names, subject.part_word),
    }


def _alike(S: Array) -> bool:
    """Whether there is no difference that could be seen."""
    off = off_diagonal(S)
    return bool(np.ptp(off) <= ALIKE * np.abs(off).max())


def _order(S: Array, signed: bool) -> Array:
    if len(S) <= ORDERED:
        return clustered(S, signed)
    distance = off_diagonal(S).max() - (S + S.T) / 2
    np.fill_diagonal(distance, 0)
    return leaves_list(linkage(squareform(distance, checks=False), "average")).astype(int)


def _blocks(S: Array) -> tuple[Array, int]:
    """Means over blocks of neighbours, without the diagonal, where there are more than fit; and their size."""
    size = int(np.ceil(len(S) / SIDE))
    if size == 1:
        return S, 1
    S, edges = S.copy(), np.arange(0, len(S), size)
    np.fill_diagonal(S, 0)
    there = 1.0 - np.eye(len(S))
    total, count = (np.add.reduceat(np.add.reduceat(A, edges, axis=0), edges, axis=1) for A in (S, there))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan), size


def _pairs(S: Array, names: list[str], by: str) -> dict[str, Any]:
    """The closest pairs, and the most opposed ones where there are any."""
    i, j = np.triu_indices(len(S), 1)
    values = (S[i, j] + S[j, i]) / 2
    top = np.argsort(-values, kind="stable")[:PAIRS]
    low = np.argsort(values, kind="stable")[: PAIRS // 3]
    low = low[(values[low] < 0) & ~np.isin(low, top)][::-1]
    lines = [[names[i[k]], names[j[k]], plain(values[k])] for k in [*top.tolist(), *low.tolist()]]
    word = by.capitalize()
    columns = [column(word, "text"), column(f"and {by}", "text"), column("Similarity")]
    return table("The closest pairs" + (" and the most opposed" if len(low) else ""), columns, lines, "pairs")
