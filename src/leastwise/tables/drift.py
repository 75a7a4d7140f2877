"""Drift: how a new table differs from the training table, and class shares of new rows.

In ``fit``, a model stores in which bins the training rows lie: between deciles for numbers and dates, a bin for each
category, task and class. ``check_drift`` counts the rows of a new table in the same bins. The distance of the two
distributions is the share of rows that would have to move to another bin to make them equal (total variation). There
is drift if it is above a tolerance and, by a chi-squared test, above chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import chi2_contingency

from leastwise.estimators.prior_shift import estimate_class_prior
from leastwise.sources.blocks import TableError
from leastwise.tables.columns import Column, texts_of, values_of
from leastwise.tables.prepare import Roles, task_ids
from leastwise.tables.table import Array, Table, text_of

#: Inner borders of the bins of numbers, as quantiles of the training rows.
DECILES = np.arange(1, 10) / 10
#: The share of rows like those of training with a novelty p-value of at most this is this.
NOVEL = 0.05
#: Names of this many values are shown in a note.
MAX_SHOWN = 5

# ----------------------------------------------------------------------- class shares


def read_class_prior(model: Any, given: Any, X: Array, params: dict[str, Any]) -> Any:
    """Class shares for ``predict_proba``, from shares by the name of the class or label, "uniform" or "estimate"."""
    if given is None:
        return None
    if model.kind_ == "numbers":
        raise TableError("class_prior= is for classes and labels; this model predicts numbers.")
    if isinstance(given, str) and given == "estimate":
        return estimate_class_prior(model.fitted_, X, **params)
    if not isinstance(given, Mapping):
        return given
    names = list(model.labels) if model.kind_ == "labels" else [text_of(c) for c in model.classes_]
    unknown = [str(name) for name in given if str(name) not in names]
    if unknown:
        what = "labels" if model.kind_ == "labels" else "classes"
        raise TableError(f"class_prior= names {unknown[:10]}; the {what} of the model are {names[:20]}.")
    if model.kind_ == "labels":
        return dict(given)
    shares = {str(name): share for name, share in given.items()}
    lacking = [name for name in names if name not in shares]
    if lacking:
        raise TableError(
            f"class_prior= has no share of {', '.join(map(repr, lacking[:10]))}: give the share of every class, 0 "
            "for a class that no longer occurs."
        )
    return {c: shares[text_of(c)] for c in model.classes_.tolist()}


# --------------------------------------------------------------------- training rows


def reference_of(model: Any, used: Table, params: dict[str, Any]) -> dict[str, Any]:
    """The distribution of the training rows over bins, for every column that is used, the tasks and predictions."""
    columns = {}
    for column in model.encoder_.columns_:
        if column.used:
            ordered = column.kind in ("number", "date")
            edges = _edges(values_of(used, column.name, column.kind, column.format)) if ordered else []
            columns[column.name] = {"edges": edges, "shares": _column_shares(used, column, edges).tolist()}
    reference: dict[str, Any] = {"columns": columns}
    if "tasks" in params:
        reference["tasks"] = _task_shares(params["tasks"], model._inner.tasks_).tolist()
    heldout = getattr(model._predictor, "heldout_prediction_", None)
    if heldout is not None:
        values = np.asarray(heldout, dtype=float)
        edges = _edges(values)
        reference["prediction"] = {"edges": edges, "shares": _value_shares(values, edges).tolist()}
    return reference


def _edges(values: Array) -> list[float]:
    """The lowest value, the distinct deciles and the highest value."""
    known = values[~np.isnan(values)]
    if not len(known):
        return []
    with np.errstate(over="ignore", invalid="ignore"):  # deciles of the largest numbers overflow and are left out
        ends = np.array([known.min(), *np.quantile(known, DECILES), known.max()])
    return np.unique(ends[np.isfinite(ends)]).tolist()


def _value_shares(values: Array, edges: list[float]) -> Array:
    """Shares of rows below the lowest value, between the edges, above the highest value, and missing."""
    known, borders = values[~np.isnan(values)], np.array(edges)
    place = np.searchsorted(borders, known, side="right")
    place[known == borders[-1:].sum()] = len(borders) - 1  # the highest value belongs to the last bin
    counts = np.bincount(place, minlength=len(borders) + 1)
    return np.append(counts, len(values) - len(known)) / len(values)


def _column_shares(table: Table, column: Column, edges: list[float]) -> Array:
    """Shares of the rows over the bins of a column; the last bin is missing cells."""
    if column.kind in ("number", "date"):
        return _value_shares(values_of(table, column.name, column.kind, column.format), edges)
    if column.kind == "boolean":
        values = values_of(table, column.name, "boolean")
        return np.array([np.mean(values == 0), np.mean(values == 1), np.isnan(values).mean()])
    place: dict[str | None, int] = {text: k for k, text in enumerate(column.categories)}
    other = len(place)
    place |= dict.fromkeys(column.pooled, other) | {None: other + 2}
    codes = [place.get(text, other + 1) for text in texts_of(table, column.name)]
    return np.bincount(codes, minlength=other + 3) / len(table)


def _task_shares(tasks: Array, known: Array) -> Array:
    """Shares of the rows over the tasks of training; the last is that of other tasks."""
    place = {str(task): k for k, task in enumerate(known)}
    codes = [place.get(str(task), len(place)) for task in tasks]
    return np.bincount(codes, minlength=len(place) + 1) / len(tasks)


# ---------------------------------------------------------------------------- check


def check_drift(model: Any, table: Table, tolerance: float, level: float) -> dict[str, Any]:
    """What :meth:`leastwise.TableModel.check_drift` returns."""
    if not 0 <= tolerance < 1 or not 0 < level < 1:
        raise TableError(f"tolerance={tolerance!r} and level={level!r} must be between 0 and 1.")
    if not len(table):
        raise TableError("there are no rows to check.")
    reference = getattr(model, "reference_", None)
    if reference is None:
        raise TableError("this model file has no summary of its training data: save the model with keep='all'.")
    roles = Roles.of(model)
    lines = [_column_line(model, table, column, reference) for column in model.columns_ if column.used]
    if roles.task:
        lines.append(_task_line(model, table, roles.task, reference))
    unreadable = any(line["distance"] is None for line in lines)
    lines += [] if unreadable else _prediction_lines(model, table, reference)
    tests = max(sum(line["p_value"] is not None for line in lines), 1)
    for line in lines:
        chance = line["p_value"] is not None and line["p_value"] >= level / tests
        line["drift"] = line["distance"] is None or (line["distance"] > tolerance and not chance)
    known = {column.name for column in model.columns_} | set(roles.all)
    extra = [name for name in table.names if name not in known]
    notes = [f"Columns that the model does not use: {_some(extra, 10)}."] if extra else []
    if unreadable:
        notes.append("The table cannot be predicted, so novelty and predictions are not compared.")
    drifted = [line["name"] for line in lines if line["drift"]]
    return {"rows": len(table), "tolerance": tolerance, "checks": lines, "drift": drifted, "notes": notes}


def _line(what: str, name: str, trained: Array, new: Array, n_trained: int, n: int, note: str = "") -> dict[str, Any]:
    """One line: the distance of two distributions, and the probability of such a difference by chance."""
    counts = np.array([trained * n_trained, new * n])
    counts = counts[:, counts.sum(axis=0) > 0]
    p_value = float(chi2_contingency(counts, correction=False).pvalue) if counts.shape[1] > 1 else 1.0
    distance = float(np.abs(trained - new).sum() / 2)
    return {"what": what, "name": name, "distance": distance, "p_value": p_value, "note": note}


def _broken(what: str, name: str, note: str) -> dict[str, Any]:
    return {"what": what, "name": name, "distance": None, "p_value": None, "note": note}


def _column_line(model: Any, table: Table, column: Column, reference: dict[str, Any]) -> dict[str, Any]:
    if column.name not in table.columns:
        return _broken("column", column.name, "the column is missing")
    stored = reference["columns"][column.name]
    trained = np.array(stored["shares"])
    try:
        new = _column_shares(table, column, stored["edges"])
    except TableError as error:
        return _broken("column", column.name, str(error))
    notes = []
    if column.kind in ("number", "date"):
        notes.append(_share_text(new[0] + new[-2], "are outside the range of training"))
    elif column.kind == "category" and new[-2]:
        known = {*column.categories, *column.pooled, None}
        unseen = list(dict.fromkeys(text for text in texts_of(table, column.name) if text not in known))
        notes.append(_share_text(new[-2], f"have values that did not occur in training ({_some(unseen)})"))
    if abs(new[-1] - trained[-1]) > 0.01:
        notes.append(f"{new[-1]:.1%} missing, {trained[-1]:.1%} in training")
    note = "; ".join(filter(None, notes))
    return _line("column", column.name, trained, new, model.n_rows_, len(table), note)


def _task_line(model: Any, table: Table, name: str, reference: dict[str, Any]) -> dict[str, Any]:
    if name not in table.columns:
        return _broken("task", name, "the column is missing")
    tasks, known = task_ids(table, name), model._inner.tasks_
    new = _task_shares(tasks, known)
    unseen = list(dict.fromkeys(tasks[~np.isin(tasks, known)].tolist()))
    note = _share_text(new[-1], f"belong to tasks that did not occur in training ({_some(unseen)})")
    return _line("task", name, np.array(reference["tasks"]), new, model.n_rows_, len(table), note)


def _prediction_lines(model: Any, table: Table, reference: dict[str, Any]) -> list[dict[str, Any]]:
    """Novelty of the rows, and the shares of the predicted classes, labels or numbers."""
    predicted, n, lines = model.answer(table), len(table), []
    if predicted.novelty is not None:
        novel = float(np.mean(predicted.novelty <= NOVEL))
        note = f"{novel:.1%} of the rows have a novelty p-value of at most {NOVEL:g}; {NOVEL:.0%} are expected"
        pair = np.array([NOVEL, 1 - NOVEL]), np.array([max(novel, NOVEL), 1 - max(novel, NOVEL)])
        lines.append(_line("novelty", "novelty", *pair, model.n_rows_, n, note))
    if model.kind_ == "numbers":
        stored = reference.get("prediction")
        if stored is not None:
            new = _value_shares(predicted.prediction, stored["edges"])
            lines.append(_line("prediction", str(model.target), np.array(stored["shares"]), new, model.n_rows_, n))
    elif model.kind_ == "labels":
        for name, trained, new in zip(model.labels, model.baseline_, predicted.proba.mean(axis=0), strict=True):
            note = f"{new:.1%} predicted, {trained:.1%} in training"
            pair = np.array([1 - trained, trained]), np.array([1 - new, new])
            lines.append(_line("label", name, *pair, model.n_rows_, n, note))
    else:
        shares = predicted.proba.mean(axis=0)
        both = zip(model.classes_, shares, model.baseline_, strict=True)
        parts = [f"{text_of(c)} {new:.1%} predicted, {old:.1%} in training" for c, new, old in both]
        note = _some(parts, separator="; ")
        lines.append(_line("classes", str(model.target), model.baseline_, shares, model.n_rows_, n, note))
    return lines


def _share_text(share: float, what: str) -> str:
    return f"{share:.1%} of the rows {what}" if share > 0 else ""


def _some(names: list[Any], count: int = MAX_SHOWN, separator: str = ", ") -> str:
    more = f" and {len(names) - count} more" if len(names) > count else ""
    return separator.join(map(str, names[:count])) + more
