"""What the columns of a table do to the predictions: how much each one changes them, and partial dependence.

The *importance* of a column is the mean absolute change of the predictions if its values are exchanged between rows;
for probabilities, half the sum of the changes of all classes. The *partial dependence* on a column is the mean
prediction over rows in which the column is set to one value. Both are of the model, not of the world: a column that
says the same as another one may have none.

The points of a line are evenly spaced between the 5 % and the 95 % quantile, or the most frequent categories, so that
they show no cell of a single row.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from leastwise.sources.formats.dates import is_clock
from leastwise.tables.columns import Column, texts_of, values_of
from leastwise.tables.prepare import Prepared
from leastwise.tables.table import Array, Table, text_of

#: Most rows that are predicted for a column, and for all columns together; most columns.
MAX_ROWS, MAX_PREDICTIONS, MAX_COLUMNS = 100, 4000, 200
#: Number of lines, points of a line, and rows that a category must have.
LINES, POINTS, MIN_ROWS = 6, 9, 10
DAY = np.timedelta64(86_400_000_000, "us")


def column_effects(model: Any, found: Prepared, seed: int = 0) -> dict[str, Any]:
    """Importances of the columns, and partial dependence on the most important ones, as JSON values.

    Returns
    -------
    dict
        ``importance`` has a number for every column, from the largest. ``lines`` has a dict for each of the first
        six: ``column``, ``kind``, ``of`` (the class or label whose probability changes most; "" for numbers), ``at``
        and ``value``.
    """
    columns = [column for column in model.columns_ if column.used][:MAX_COLUMNS]
    rng = np.random.default_rng(seed)
    count = min(len(found.used), MAX_ROWS, max(MAX_PREDICTIONS // len(columns), 20))
    rows = np.sort(rng.choice(len(found.used), count, replace=False))
    table = found.used.take(rows).without(found.roles.all)
    tasks = found.params["tasks"][rows] if "tasks" in found.params else None
    before = _predict(model, table, tasks)
    importance = {}
    for column in columns:
        changed = _with(table, column.name, table[column.name][rng.permutation(count)])
        change = np.abs(_predict(model, changed, tasks) - before)
        importance[column.name] = float(change.mean() if model.kind_ != "classes" else change.sum(axis=1).mean() / 2)
    order = sorted(columns, key=lambda column: -importance[column.name])
    lines = [_line(model, found.used, table, tasks, column) for column in order[:LINES]]
    return {
        "importance": {column.name: importance[column.name] for column in order},
        "lines": [line for line in lines if line is not None],
    }


def _predict(model: Any, table: Table, tasks: Array | None) -> Array:
    """Numbers or probabilities of rows, of shape (n, outputs)."""
    params = {} if tasks is None else {"tasks": tasks}
    method = model.model_.predict if model.kind_ == "numbers" else model.model_.predict_proba
    predicted = np.asarray(method(model.encoder_.transform(table), **params), dtype=float)
    return predicted.reshape(len(predicted), -1)


def _with(table: Table, name: str, values: Array) -> Table:
    return replace(table, columns={**table.columns, name: values})


def _line(model: Any, used: Table, table: Table, tasks: Array | None, column: Column) -> dict[str, Any] | None:
    """The partial dependence on a column; None if there are fewer than two points."""
    values, at = _points(used, column)
    if len(at) < 2:
        return None
    n = len(table)
    repeated = table.take(np.tile(np.arange(n), len(at)))
    again = None if tasks is None else np.tile(tasks, len(at))
    predicted = _predict(model, _with(repeated, column.name, np.repeat(values, n)), again)
    means = predicted.reshape(len(at), n, -1).mean(axis=1)
    shown, name = 0, ""
    if model.kind_ != "numbers":
        names = [text_of(c) for c in (model.labels if model.kind_ == "labels" else model.classes_)]
        shown = int(np.argmax(np.ptp(means, axis=0)))
        if len(names) == 2 and model.kind_ == "classes":  # both change alike: the rarer one, for all columns
            shown = int(np.argmin(model.baseline_))
        name = names[shown]
    kind = "clock" if column.kind == "date" and is_clock(column.format) else column.kind
    return {"column": column.name, "kind": kind, "of": name, "at": at, "value": means[:, shown].tolist()}


def _points(used: Table, column: Column) -> tuple[Array, list]:
    """Values to set the column to, and what they are called."""
    if column.kind == "category":
        counts = Counter(text for text in texts_of(used, column.name) if text is not None)
        common = [text for text, count in counts.most_common(POINTS) if count >= MIN_ROWS]
        return np.array(common, dtype=object), common
    if column.kind == "boolean":
        return np.array([0.0, 1.0]), ["no", "yes"]
    values = values_of(used, column.name, column.kind, column.format)
    values = values[~np.isnan(values)]
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = np.quantile(values, [0.05, 0.95])
        if not np.isfinite(high - low):  # the range of numbers near the largest one has no points
            return np.array([]), []
    clock = column.kind == "date" and is_clock(column.format)
    whole = (column.kind == "date" and not clock) or bool((values == np.round(values)).all())
    points = np.linspace(low, high, POINTS)
    if whole:
        points = np.unique(np.round(points))
    elif high > low:  # three digits of the range
        digits = 2 - int(np.floor(np.log10(high - low)))
        points = np.unique(np.round(points, digits))
    if column.kind == "date":
        days = np.datetime64("1970-01-01", "us") + np.round(points * DAY.astype(float)).astype("timedelta64[us]")
        return days, points.tolist()
    return points, points.tolist()
