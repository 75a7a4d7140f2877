"""Codes of tasks from their ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.onnx._categories import NOWHERE
from leastwise.onnx._classes import exact
from leastwise.onnx._columns import Columns, first_hit, place_of
from leastwise.onnx._graph import Graph, Value
from leastwise.problem.tasks import Tasks

TYPES: dict[str, Any] = {"text": object, "whole": np.int64, "real": np.float64}


def split(g: Graph, columns: Columns, model: Any, tasks: Tasks) -> tuple[Value, Value]:
    """Rows without the task column, and the codes of the tasks, of shape (n,); -1 for those that are not known.

    Without a task column the ids are an input of their own, ``tasks``, of text or numbers, if they have not come with
    a table.
    """
    kind = _kind(tasks.ids)
    if model.task_column is None:
        ids = g.input("tasks", TYPES[kind], []) if g.ids is None else g.ids
        X, code = columns.numbers(), _codes(g, ids, tasks.ids, kind)
    else:
        place = _place(model, len(columns))
        ids = columns.text(place) if kind == "text" else columns.pick([place]).numbers()
        X, code = columns.without(place).numbers(), place_of(g, ids.squeezed(1), tasks.ids)
    return X, _refused(g, code, tasks) if getattr(model, "unknown_task", "error") == "error" else code


def _kind(ids: list) -> str:
    if all(isinstance(name, str) for name in ids):
        return "text"
    if all(isinstance(name, int) and abs(name) < 2**63 for name in ids):
        return "whole"
    if all(isinstance(name, int | float) for name in ids):
        return "real"
    strange = next(name for name in ids if not isinstance(name, str))
    raise TypeError(
        f"Ids of tasks such as {strange!r} have no type in ONNX: they must be text, or numbers, all of them. Fit "
        "with str(id) for each id."
    )


def _codes(g: Graph, ids: Value, known: list, kind: str) -> Value:
    if kind != "real":
        return g.lookup(ids, known)
    return first_hit(g, ids.widened(1).equals(exact(g, np.array(known, dtype=float))))


def _refused(g: Graph, code: Value, tasks: Tasks) -> Value:
    """Codes looked up in a table that those of other tasks are not in, so that the runtime stops with an error."""
    outside = g.where(code < np.array(0), np.array(NOWHERE), code)
    return g.node("Gather", np.arange(len(tasks)), outside, label="unknown_task_is_an_error")


def _place(model: Any, width: int) -> int:
    column = model.task_column
    if isinstance(column, str):
        return list(model.feature_names_in_).index(column)
    return int(column) % width
