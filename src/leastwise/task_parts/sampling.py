"""Some whole tasks for the search: which, by their ids alone, and how their rows are gathered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.distributed import Move, Parts, Piece
from leastwise.distributed.pieces import stacked
from leastwise.keys import id_keys
from leastwise.selection.search import LEAST_TASKS
from leastwise.task_parts.knowing import Known
from leastwise.task_parts.reading import Clean, clean, kept_rows
from leastwise.task_parts.working import Own, Terms
from leastwise.tasks import Tasks

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


def choose_tasks(known: Known, count: int) -> tuple[Array, float]:
    """Numbers of tasks that have about ``count`` rows together, and which share of their rows is to be taken.

    As ``selection.search.some_tasks``, with the keys of the ids for random numbers: the same tasks, however the rows
    lie in parts. Tasks of heavier rows come first. A class that would be lost brings tasks that have it.
    """
    T, (task, label, rows, weight) = len(known.tasks), known.cells
    task, label = task.astype(int), label.astype(int)
    sizes = np.bincount(task, weights=rows, minlength=T)
    even = (keys_of(known.tasks.ids).astype(float) + 1) / 2.0**64
    order = np.argsort(-np.log(even) * sizes / np.bincount(task, weights=weight, minlength=T), kind="stable")
    chosen = np.zeros(T, dtype=bool)
    chosen[order[: max(int(np.searchsorted(np.cumsum(sizes[order]), count)) + 1, LEAST_TASKS)]] = True
    mine = chosen[task]
    for k in np.flatnonzero(np.bincount(label[mine], weights=rows[mine], minlength=int(label.max()) + 1) < 2):
        owners = np.bincount(task[label == k], weights=rows[label == k], minlength=T)
        chosen[np.argsort(-owners, kind="stable")[:2]] |= owners.max() > 0
    total = float(sizes[chosen].sum())
    return np.flatnonzero(chosen), 1.0 if total <= 2 * count else count / total


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


def keys_of(ids: list) -> Array:
    """A number for every id, the same in any process."""
    plain = all(type(name) in (int, float, bool, str) for name in ids)
    return id_keys(ids if plain else [repr(name) for name in ids])


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
    mine = mine[kept_rows(rows.part(mine), code[mine], terms.share, terms.values)]
    some = rows.part(mine)
    X: Any = some.X.astype(terms.dtype, copy=False)
    return Clean(X, some.y, some.w, [], own.codes[code[mine]], some.number)
