"""What is learned from, before anything is learned: which rows, which target, which columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.tables.encoder import TableEncoder
from leastwise.tables.roles import Roles
from leastwise.tables.rows import complete, group_numbers, task_ids, weights
from leastwise.tables.table import Table, TableError
from leastwise.tables.targets import Target, class_text, read_labels, read_target


@dataclass(frozen=True)
class Prepared:
    """What was found in a table.

    Attributes
    ----------
    roles : Roles
    used : Table
        The rows with a target and a task, and a weight above 0.
    target : Target
    left_out : dict of str to int
        Rows that are not used, by reason.
    params : dict
        Weights, groups and tasks of the rows, where there are such.
    encoder : TableEncoder
        Fitted.
    """

    roles: Roles
    used: Table
    target: Target
    left_out: dict[str, int]
    params: dict[str, Any]
    encoder: TableEncoder

    def story(self) -> dict[str, Any]:
        """The same in plain values."""
        described = self.encoder.describe()
        lines = zip(*(described[name].tolist() for name in described.names), strict=True)
        story: dict[str, Any] = {
            "kind": self.target.kind,
            "target": self.roles.target or self.roles.labels,
            "rows": len(self.used),
            "left_out": self.left_out,
            "columns": [dict(zip(described.names, line, strict=True)) for line in lines],
        }
        if self.target.kind == "classes":
            classes, counts = np.unique(self.target.y, return_counts=True)
            story["classes"] = {class_text(c): int(k) for c, k in zip(classes, counts, strict=True)}
        if "tasks" in self.params:
            story["tasks"] = len(set(self.params["tasks"].tolist()))
        return story


def prepare(model: Any, table: Table) -> Prepared:
    """Look at a table as a model was told to."""
    roles = Roles.of(model)
    roles.check(table)
    target = read_labels(table, roles.labels) if roles.labels else read_target(table, roles.target, model.kind)
    _check_rule(model, target.kind, roles)
    used, target, left_out = complete(table, target, roles.task, roles.weight)
    params = _fit_params(used, roles)
    inputs = table.without(roles.all)
    if not inputs.names:
        raise TableError("there is no column to learn from: there is none but the target and what goes with it.")
    encoder = _encoder(model, roles).fit_rows(inputs, np.flatnonzero(target.known))
    if not any(column.features for column in encoder.columns_):
        found = "; ".join(f'"{c.name}": {c.note or c.kind}' for c in encoder.columns_[:10])
        raise TableError(f"there is no column to learn from ({found}).")
    return Prepared(roles, used, target, left_out, params, encoder)


def _check_rule(model: Any, kind: str, roles: Roles) -> None:
    if not 0 < model.coverage < 1:
        raise TableError(f"coverage={model.coverage!r} must be a number above 0 and below 1, such as 0.9.")
    rule = model.max_error is not None or model.min_confidence is not None
    if kind == "numbers" and (rule or model.recalibrate):
        raise TableError(
            f'column "{roles.target}" holds numbers: max_error, min_confidence and recalibrate are for classes '
            "and labels. Numbers have intervals (coverage=)."
        )


def _encoder(model: Any, roles: Roles) -> TableEncoder:
    """What was said of columns with a part of their own has no meaning for the inputs."""
    kinds = {name: kind for name, kind in (model.kinds or {}).items() if name not in roles.all}
    return TableEncoder(kinds=kinds, ignore=[name for name in model.ignore if name not in roles.all])


def _fit_params(table: Table, roles: Roles) -> dict[str, Any]:
    params: dict[str, Any] = {}
    if roles.weight:
        params["sample_weight"] = weights(table, roles.weight)
    if roles.group:
        params["groups"] = roles.group if roles.by_copies(table) else group_numbers(table, roles.group)
    if roles.task:
        params["tasks"] = task_ids(table, roles.task)
    return params
