"""What is asked of rows: a target, a task, a group, a weight."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from leastwise.tables.cells import text_cells, values_of
from leastwise.tables.table import Array, Table, TableError
from leastwise.tables.targets import Target

#: What a task that is missing is called: a task that training has not seen.
NO_TASK = "(missing)"


def complete(
    table: Table, target: Target, task: str | None, weight: str | None = None
) -> tuple[Table, Target, dict[str, int]]:
    """The rows with a target, a task and a weight above 0, and how many have none."""
    keep = target.known.copy()
    left_out = {"no target": int((~keep).sum())}
    if task:
        given = task_ids(table, task) != NO_TASK
        left_out["no task"] = int((keep & ~given).sum())
        keep &= given
    if not keep.any():
        raise TableError("there is no row with a target and a task.")
    if weight:
        heavy = np.ones(len(table), dtype=bool)
        heavy[keep] = weights(table.take(np.flatnonzero(keep)), weight) > 0
        left_out["weight 0"] = int((~heavy).sum())
        keep &= heavy
        if not keep.any():
            raise TableError(f'column "{weight}": all weights are 0.')
    return table.take(np.flatnonzero(keep)), replace(target, y=target.y[keep[target.known]], known=keep), left_out


def task_ids(table: Table, name: str) -> Array:
    """The tasks as text."""
    return np.array([NO_TASK if text is None else text for text in text_cells(table[name])], dtype=object)


def group_numbers(table: Table, name: str) -> Array:
    """Numbers of the groups; a row whose group is missing is one of its own."""
    texts = text_cells(table[name])
    number: dict[Any, int] = {}
    return np.array([number.setdefault(i if text is None else text, len(number)) for i, text in enumerate(texts)])


def weights(table: Table, name: str) -> Array:
    """Numbers of 0 or more, or an error that names the cell."""
    w = values_of(table, name, "number")
    wrong = np.flatnonzero(np.isnan(w) | (w < 0))
    if len(wrong):
        raise table.error(int(wrong[0]), name, f"{table[name][wrong[0]]!r} is no weight: give a number of 0 or more.")
    return w
