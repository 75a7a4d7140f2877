"""From a table to training data: roles of columns, kind of the target, usable rows, and the fitted encoder."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leastwise.problem.label_tables import NamedLabels
from leastwise.problem.targets import check_bounds
from leastwise.sources.blocks import TableError
from leastwise.sources.formats.cells import boolean_or_digit, number, quoted
from leastwise.tables.columns import find_kind, leading_zeros, texts_of, values_of
from leastwise.tables.encoder import TableEncoder
from leastwise.tables.table import Array, Table, text_of
from leastwise.utils.unwrap import Wrapping

#: Whole numbers are classes if there are at most this many distinct values,
FEW_CLASSES = 20
#: each in this many rows on average.
ROWS_PER_CLASS = 5
#: Parameters that decide which rows are accepted; at most one of them is given.
RULES = ("max_error", "min_confidence", "cost")
#: The task of rows whose task is missing, which does not occur in training.
NO_TASK = "(missing)"


# ----------------------------------------------------------------------- roles


@dataclass(frozen=True)
class Roles:
    """Names of the columns that are not inputs; empty or None if there is none."""

    target: str
    labels: list[str]
    task: str | None
    group: str | None
    weight: str | None
    ids: list[str]

    @staticmethod
    def of(model: Any) -> Roles:
        """The roles given by a model's parameters."""
        ids = [model.id] if isinstance(model.id, str) else list(model.id or ())
        if isinstance(model.labels, str):
            raise TableError(f"labels={model.labels!r} must be a list of columns; for one column use target=.")
        roles = Roles(model.target or "", list(model.labels or ()), model.task, model.group, model.weight, ids)
        if bool(roles.target) == bool(roles.labels):
            raise TableError("give either target=, the column to predict, or labels=, a list of columns.")
        if roles.labels and (roles.task or model.kind):
            raise TableError("labels= cannot be combined with task= or kind=: remove these, or give one target=.")
        if model.kind not in (None, "classes", "numbers"):
            raise TableError(f"kind={model.kind!r} is unknown: use 'classes' or 'numbers'.")
        return roles

    @property
    def all(self) -> list[str]:
        """All columns that are not inputs."""
        single = [self.target, self.task, self.group, self.weight]
        return [name for name in [*single, *self.labels, *self.ids] if name]

    def by_duplicates(self, table: Table) -> bool:
        """True if group="duplicates" is a request, not a column: equal rows are held out together."""
        return self.group == "duplicates" and self.group not in table.columns

    def _named(self, role: str) -> list[str]:
        value = getattr(self, role)
        return value if isinstance(value, list) else [value]

    def check(self, table: Table) -> None:
        """All columns exist, none has two roles, and labels do not collide with columns of predictions."""
        named = [name for name in self.all if name != self.group or not self.by_duplicates(table)]
        for role in ("target", "labels", "task", "group", "weight", "ids"):
            absent = [name for name in self._named(role) if name in named and name not in table.columns]
            if absent:
                raise table.missing_error(absent, f"{role.removesuffix('s') if role == 'ids' else role}= names")
        different = [name for name in self.all if name != self.group]  # a task may be the group too
        double = next((name for name in different if different.count(name) > 1), None)
        if double is not None or self.group in (self.target, *self.labels):
            raise TableError(
                f'column "{double or self.group}" has two roles: choose one of target, labels, task, ...'
            )
        taken = {
            "in_domain",
            "novelty",
            *(() if self.ids else ("row",)),
            *(part + name for part in ("p_", "decision_", "set_") for name in self.labels),
        }
        clash = next((name for name in self.labels if name in taken), None)
        if clash is not None:
            raise TableError(f'label "{clash}": predictions have another column of that name: rename it.')


# ---------------------------------------------------------------------- target


@dataclass(frozen=True)
class Target:
    """The target of the rows where it is known.

    Attributes
    ----------
    kind : {"classes", "numbers", "labels"}
    y : ndarray of shape (n,) or (n, T)
        Classes as text, whole numbers or booleans, as in the table; labels as 0, 1 or NaN.
    known : ndarray of bool
        The rows of the table that ``y`` belongs to.
    """

    kind: str
    y: Array
    known: Array


def read_target(table: Table, name: str, kind: str | None) -> Target:
    """The target of training rows, as classes or as numbers."""
    kind = kind or find_target_kind(table, name)
    if kind == "numbers":
        values = values_of(table, name, "number")
        known = ~np.isnan(values)
        y = values[known]
    else:
        texts = texts_of(table, name)
        known = np.array([text is not None for text in texts], dtype=bool)
        numbers = {text: number(text) for text in set(texts) if text is not None}
        if table[name].dtype.kind == "b":
            y = table[name][known]
        elif all(v is not None and v.is_integer() and abs(v) < 2**53 for v in numbers.values()) and not leading_zeros(
            numbers
        ):
            y = np.array([numbers[text] for text in texts if text is not None], dtype=float).astype(np.int64)
        else:
            y = np.array([text for text in texts if text is not None], dtype=object)  # of the width of each text
    if not len(y):
        raise TableError(f'column "{name}", the target, has no values.')
    return Target(kind, y, known)


def find_target_kind(table: Table, name: str) -> str:
    """Classes for text, booleans and few whole numbers; numbers for others."""
    found = find_kind(table, name)
    if found.kind in ("boolean", "category"):
        return "classes"
    if found.kind == "number":
        values = values_of(table, name, "number")
        values = values[~np.isnan(values)]
        distinct = len(np.unique(values))
        few = distinct <= FEW_CLASSES and len(values) >= ROWS_PER_CLASS * distinct
        return "classes" if few and (values == np.round(values)).all() else "numbers"
    if found.note == "no values":
        raise TableError(f'column "{name}", the target, has no values.')
    why = "it contains dates" if found.kind == "date" else found.note
    raise TableError(
        f'column "{name}" cannot be the target as it is ({why}). Set kind="classes" or kind="numbers" to force it.'
    )


def read_labels(table: Table, names: list[str]) -> Target:
    """0, 1 or NaN for each label of each row; rows without any known label are left out."""
    Y = np.column_stack([_label_values(table, name) for name in names])
    known = ~np.isnan(Y).all(axis=1)
    if not known.any():
        raise TableError(f"the label columns {names[:10]} have no values.")
    return Target("labels", NamedLabels.of(Y[known], names), known)


def _label_values(table: Table, name: str) -> Array:
    """The cells of a label as 0, 1 and NaN; an error says how to mark unknown ones."""
    try:
        return values_of(table, name, "boolean")
    except TableError as error:
        word = next((text for text in texts_of(table, name) if text and boolean_or_digit(text) is None), "")
        raise TableError(f"{error} If it marks an unknown label, add missing={word}.") from None


def known_classes(table: Table, name: str, classes: Array) -> Target:
    """The target of new rows, as codes of known classes; upper and lower case may differ."""
    exact = {_class_key(text_of(c), classes): k for k, c in enumerate(classes)}
    folded = [text_of(c).casefold() for c in classes]
    code_of = {f: k for k, f in enumerate(folded) if folded.count(f) == 1} | exact
    texts = texts_of(table, name)
    codes = np.full(len(texts), -1)
    for i, text in enumerate(texts):
        if text is None:
            continue
        code = code_of.get(_class_key(text, classes), code_of.get(text.casefold()))
        if code is None:
            shown = [text_of(c) for c in classes[:10]]
            raise table.error(i, name, f"{quoted(text)} is not one of the classes of training, which are {shown}.")
        codes[i] = code
    return Target("classes", codes[codes >= 0], codes >= 0)


def _class_key(text: str, classes: Array) -> Any:
    if classes.dtype.kind in "iu":
        return number(text)
    return boolean_or_digit(text) if classes.dtype.kind == "b" else text


# ------------------------------------------------------------------------ rows


def complete(
    table: Table, target: Target, task: str | None, weight: str | None = None
) -> tuple[Table, Target, dict[str, int]]:
    """The rows with a target, a task and a positive weight, and the numbers of rows left out."""
    keep = target.known.copy()
    left_out = {"no target": int((~keep).sum())}
    if task:
        given = task_ids(table, task) != NO_TASK
        left_out["no task"] = int((keep & ~given).sum())
        keep &= given
    if not keep.any():
        raise TableError("no row has both a target and a task.")
    if weight:
        heavy = np.ones(len(table), dtype=bool)
        heavy[keep] = weights(table.take(np.flatnonzero(keep)), weight) > 0
        left_out["weight 0"] = int((~heavy).sum())
        keep &= heavy
        if not keep.any():
            raise TableError(f'column "{weight}": all weights are 0.')
    y = target.y[keep[target.known]]
    if isinstance(target.y, NamedLabels):
        y = NamedLabels.of(y, target.y.names or ())
    return table.take(np.flatnonzero(keep)), replace(target, y=y, known=keep), left_out


def task_ids(table: Table, name: str) -> Array:
    """The tasks as text."""
    return np.array([NO_TASK if text is None else text for text in texts_of(table, name)], dtype=object)


def unseen_task_notes(
    table: Table, name: str, tasks: Array, known: Array, trained: Array, strict: bool = False
) -> list[str]:
    """A note on rows of tasks that did not occur in training; a warning names ids that are almost those of training.

    Where ``strict`` is true, the first such row is an error.
    """
    unseen = list(dict.fromkeys(tasks[~known].tolist()))
    if not unseen:
        return []
    meant: dict[str, str] = {}
    for task in map(str, trained):
        meant.setdefault(_task_key(task), task)
    near = {task: meant[_task_key(task)] for task in unseen if _task_key(task) in meant}
    if strict:
        row = int(np.argmin(known))
        hint = f" (did you mean {quoted(near[tasks[row]])}?)" if tasks[row] in near else ""
        raise table.error(row, name, f"the task {quoted(tasks[row])} did not occur in training{hint}.")
    if near:
        pairs = [f"{quoted(task)} (training has {quoted(other)})" for task, other in list(near.items())[:5]]
        more = f" and {len(near) - 5} more" if len(near) > 5 else ""
        warnings.warn(
            f'Column "{name}" has tasks that did not occur in training, but are almost those of training: '
            f"{', '.join(pairs)}{more}. Their rows have the shared model; correct the ids if they are misspelt.",
            UserWarning,
            stacklevel=4,
        )
    shown = ", ".join(map(quoted, unseen[:5])) + (f" and {len(unseen) - 5} more" if len(unseen) > 5 else "")
    return [f"{(~known).sum()} rows belong to tasks that did not occur in training: {shown}."]


def _task_key(task: str) -> str:
    """An id without differences of case, spaces and leading zeros."""
    small = re.sub(r"[\s_-]+", "", task.casefold())
    return re.sub(r"\d+", lambda digits: digits[0].lstrip("0") or "0", small.removesuffix(".0"))


def group_numbers(table: Table, name: str) -> Array:
    """Group numbers; a row with a missing group is a group of its own."""
    texts = texts_of(table, name)
    number: dict[Any, int] = {}
    return np.array([number.setdefault(i if text is None else text, len(number)) for i, text in enumerate(texts)])


def weights(table: Table, name: str) -> Array:
    """Numbers of 0 or more; an error names the first other cell."""
    w = values_of(table, name, "number")
    wrong = np.flatnonzero(np.isnan(w) | (w < 0))
    if len(wrong):
        row = int(wrong[0])
        raise table.error(row, name, f"{table[name][row]!r} is not a weight: give a number of 0 or more.")
    return w


# ----------------------------------------------------------------- preparation


@dataclass(frozen=True)
class Prepared:
    """Training data of a table.

    Attributes
    ----------
    table : Table
        All rows.
    roles : Roles
    used : Table
        The rows with a target, a task and a positive weight.
    target : Target
    left_out : dict of str to int
        Number of rows that are not used, by reason.
    params : dict
        Weights, groups and tasks of the rows, if there are any.
    encoder : TableEncoder
        Fitted.
    """

    table: Table
    roles: Roles
    used: Table
    target: Target
    left_out: dict[str, int]
    params: dict[str, Any]
    encoder: TableEncoder

    def summary(self) -> dict[str, Any]:
        """A summary, as a dictionary."""
        summary: dict[str, Any] = {
            "kind": self.target.kind,
            "target": self.roles.target or self.roles.labels,
            "rows": len(self.used),
            "left_out": self.left_out,
            "columns": self.encoder.describe().rows(),
        }
        if self.target.kind == "classes":
            classes, counts = np.unique(self.target.y, return_counts=True)
            summary["classes"] = {text_of(c): int(k) for c, k in zip(classes, counts, strict=True)}
        if "tasks" in self.params:
            summary["tasks"] = len(set(self.params["tasks"].tolist()))
        return summary


def prepare(model: Any, table: Table) -> Prepared:
    """The training data of a table, according to a model's parameters."""
    roles = Roles.of(model)
    roles.check(table)
    target = read_labels(table, roles.labels) if roles.labels else read_target(table, roles.target, model.kind)
    check_parameters(model, roles)
    _check_kind(model, target.kind, roles)
    if model.bounds is not None:
        _check_bounds(table, roles.target, target, model.bounds)
    used, target, left_out = complete(table, target, roles.task, roles.weight)
    params: dict[str, Any] = {}
    if roles.weight:
        params["sample_weight"] = weights(used, roles.weight)
    if roles.group:
        params["groups"] = roles.group if roles.by_duplicates(used) else group_numbers(used, roles.group)
    if roles.task:
        params["tasks"] = task_ids(used, roles.task)
        _warn_single_tasks(params["tasks"], roles.task)
        _warn_spellings(params["tasks"], roles.task, "tasks")
    inputs = table.without(roles.all)
    if not inputs.names:
        raise TableError("there is no input column: all columns are the target or have another role.")
    # Kinds given for columns that are not inputs have no meaning here.
    kinds = {name: kind for name, kind in (model.kinds or {}).items() if name not in roles.all}
    ignore = [name for name in model.ignore if name not in roles.all]
    output = "features" if model.model is not None and input_estimator(model.model) is None else "codes"
    encoder = TableEncoder(kinds=kinds, ignore=ignore, output=output)
    encoder.fit_rows(inputs, np.flatnonzero(target.known), np.asarray(target.y))
    if target.kind == "classes":
        _warn_single_rows(target.y, roles.target)
        _warn_spellings(target.y, roles.target, "classes")
    if not any(column.used for column in encoder.columns_):
        found = "; ".join(f'"{c.name}": {c.note or c.kind}' for c in encoder.columns_[:10])
        raise TableError(f"there is no usable input column ({found}).")
    return Prepared(table, roles, used, target, left_out, params, encoder)


def input_estimator(model: Any) -> Any:
    """The estimator within wrappers, if it scales numbers and encodes categories itself; None otherwise."""
    while isinstance(model, Wrapping):
        model = model.estimator
    by_itself = getattr(model, "categories", None) == "from_dtype"
    return model if by_itself and isinstance(model.kernel, str) and model.kernel != "precomputed" else None


def _warn_single_rows(y: Array, name: str) -> None:
    """Warn of classes with one row: where it is held out, nothing is known of its class."""
    classes, counts = np.unique(y, return_counts=True)
    single = [quoted(text_of(c)) for c in classes[counts == 1]]
    if single:
        shown = ", ".join(single[:5]) + (f" and {len(single) - 5} more" if len(single) > 5 else "")
        which = f"class {shown} has a single row" if len(single) == 1 else f"classes {shown} have a single row each"
        warnings.warn(
            f'Column "{name}": {which}. Held-out predictions say nothing about such a class: give more rows of it, '
            "or leave it out.",
            UserWarning,
            stacklevel=4,
        )


def _warn_spellings(names: Array, column: str, what: str) -> None:
    """Warn of classes or tasks that differ only in case or spaces: they are likely one, in several spellings."""
    spellings: dict[str, list[str]] = {}
    for name in map(str, np.unique(names)):
        spellings.setdefault(" ".join(name.casefold().split()), []).append(name)
    alike = [each for each in spellings.values() if len(each) > 1 and max(map(len, each)) > 1]
    if alike:
        shown = "; ".join(" and ".join(map(quoted, each)) for each in alike[:3])
        more = f"; and {len(alike) - 3} more" if len(alike) > 3 else ""
        warnings.warn(
            f'Column "{column}" has {what} that differ only in case or spaces: {shown}{more}. They are used as '
            f"different {what}: if they are not, give them one spelling.",
            UserWarning,
            stacklevel=4,
        )


def _warn_single_tasks(tasks: Array, name: str) -> None:
    """Warn if most rows have a task of their own."""
    n_tasks = len(set(tasks.tolist()))
    if n_tasks > len(tasks) / 2:
        warnings.warn(
            f'Column "{name}" has {n_tasks:,} tasks in {len(tasks):,} rows. A task needs several rows: if this is an '
            "id of rows, ignore it and choose another column as the task.",
            UserWarning,
            stacklevel=4,
        )


def _check_bounds(table: Table, name: str, target: Target, bounds: Any) -> None:
    """Refuse a target outside of its bounds; the error names the first such cell."""
    try:
        ends = check_bounds(bounds)
    except ValueError as error:
        raise TableError(str(error)) from None
    assert ends is not None
    outside = np.flatnonzero((target.y < ends[0]) | (target.y > ends[1]))
    if len(outside):
        row = int(np.flatnonzero(target.known)[outside[0]])
        value = float(target.y[outside[0]])
        raise table.error(row, name, f"{value:g} is outside of the bounds, {ends[0]:g} and {ends[1]:g}.")


def _check_kind(model: Any, kind: str, roles: Roles) -> None:
    """Refuse parameters that do not suit the kind of target."""
    rules = [name for name in RULES if getattr(model, name) is not None]
    if kind == "numbers" and (rules or model.max_miss or model.recalibrate):
        raise TableError(
            f'column "{roles.target}" contains numbers: {", ".join(f"{name}=" for name in RULES)}, max_miss= and '
            "recalibrate= are for classes and labels. Numbers have intervals (coverage=)."
        )
    if kind != "numbers" and model.bounds is not None:
        raise TableError("bounds= is for numbers: this target is of classes or labels.")


def check_parameters(model: Any, roles: Roles) -> None:
    """Refuse parameters that do not suit each other or the roles of the columns."""
    if not 0 < model.coverage < 1:
        raise TableError(f"coverage={model.coverage!r} must be a number above 0 and below 1, such as 0.9.")
    rules = [name for name in RULES if getattr(model, name) is not None]
    if len(rules) > 1:
        raise TableError(f"{rules[0]}= and {rules[1]}= exclude each other: give one of them.")
    if model.by_task and not (roles.task and (rules or model.recalibrate)):
        raise TableError(
            f"by_task=True gives every task its own threshold or calibration: it needs task=, and one of "
            f"{', '.join(f'{name}=' for name in RULES)} or recalibrate=True."
        )
    if model.threshold is not None and not roles.labels:
        raise TableError("threshold= is for labels= alone; classes have min_confidence=, which sets rows aside.")
    if model.similarity is not None and not (roles.task or roles.labels):
        raise TableError("similarity= relates tasks or labels: it needs task= or labels=.")
    own = [name for name in ("threshold", "similarity", "kernel", "bounds") if getattr(model, name) is not None]
    if model.model is not None and own:
        raise TableError(f"{own[0]}= is for the default model: set it in model= instead.")


def label_thresholds(threshold: Any, labels: list[str]) -> Any:
    """The thresholds of the labels in their order; labels that a mapping does not name have 0.5."""
    if not isinstance(threshold, Mapping):
        return threshold
    unknown = [name for name in threshold if name not in labels]
    if unknown:
        raise TableError(f"threshold= names {unknown[:10]}, which are not labels; these are {labels[:20]}.")
    return np.array([float(threshold.get(name, 0.5)) for name in labels])


def miss_limits(limits: Mapping[str, float], found: Prepared) -> dict[Any, float]:
    """Limits of missed rows by class, or by label, from their names as text."""
    if found.roles.labels:
        known: dict[str, Any] = {name: name for name in found.roles.labels}
    else:
        known = {text_of(c): c for c in np.unique(found.target.y)}
    unknown = [name for name in limits if str(name) not in known]
    if unknown:
        what = "labels" if found.roles.labels else "classes"
        raise TableError(f"max_miss= names {str(unknown[0])!r}; the {what} are {list(known)[:20]}.")
    plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in known.items()}
    return {plain[str(name)]: limit for name, limit in limits.items()}
