"""Some whole tasks for the search: which, by their ids alone, and how their rows are gathered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.model_selection.subsample import LEAST_TASKS, choose_units
from leastwise.problem.tasks import Tasks
from leastwise.sources.parts import Move, Parts, Piece, stacked
from leastwise.sources.task_reading import Clean, clean, kept_rows
from leastwise.sources.task_statistics import Known
from leastwise.sources.task_workers import Own, Terms
from leastwise.utils.hashing import task_keys

Array = np.ndarray

COLUMNS = ("y", "w", "index", "number")


@dataclass(frozen=True)
class Sample:
    """Rows of some tasks.

    Attributes
    ----------
    rows : Clean
        ``index`` counts all tasks, ``names`` is empty.
    order : ndarray of int
        Their places among the rows as the parts have them, one part after the other.
    """

    rows: Clean
    order: Array


def choose_tasks(known: Known, count: int) -> tuple[Array, float, int]:
    """Numbers of tasks that have about ``count`` rows together, and how many of their rows are to be taken.

    The same tasks as in memory, however the rows lie in parts; see ``selection.subsample.choose_units``.
    """
    task, label, rows, weight = known.cells
    cells = task.astype(int), label.astype(int), rows, weight
    return choose_units(cells, task_keys(known.tasks.ids), count, LEAST_TASKS)


def told(known: Known, plan: Sequence[Move], chosen: Array, penalty: Array) -> list[Own]:
    """What each part is told of its tasks, which are those that are at home there."""
    ids, home, mark = known.tasks.ids, np.zeros(len(known.tasks), dtype=int), np.zeros(len(known.tasks), dtype=bool)
    mark[chosen] = True
    for p, part in enumerate(known.parts):
        home[known.tasks.codes([name for name in part.ids if name not in plan[p].home])] = p
    order = np.argsort(home, kind="stable")
    groups = np.split(order, np.searchsorted(home[order], np.arange(1, len(plan))))
    return [
        Own(Tasks([ids[k] for k in codes]), codes, penalty[codes], np.flatnonzero(mark[codes]), move.first)
        for move, codes in zip(plan, groups, strict=True)
    ]


def gathered(parts: Parts, own: list[Own], terms: Terms) -> Sample:
    """The rows of the tasks that were chosen, in the order that they have among all rows."""
    found = [rows for rows in parts.map(chosen_rows, own, terms) if rows is not None]
    y, w, index, number = (np.concatenate([getattr(rows, name) for rows in found]) for name in COLUMNS)
    whole = Clean(stacked([rows.X for rows in found]), y, w, [], index, number)
    order = np.argsort(whole.number, kind="stable")
    return Sample(whole.part(order), order)


def chosen_rows(piece: Piece, own: Own, terms: Terms) -> Clean | None:
    """Rows of the tasks that were chosen, with the numbers of all tasks; those that ``kept_rows`` keeps."""
    if not len(own.chosen):
        return None
    rows = clean(piece.numbered(own.first), terms.rules)
    if rows is None:
        return None
    code = own.tasks.codes(rows.names)[rows.index]
    mine = np.flatnonzero(np.isin(code, own.chosen))
    mine = mine[kept_rows(rows.part(mine), code[mine], *terms.taken)]
    some = rows.part(mine)
    X: Any = some.X.astype(terms.dtype, copy=False)
    return Clean(X, some.y, some.w, [], own.codes[code[mine]], some.number)
