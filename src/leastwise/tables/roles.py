"""Which columns of a table are no inputs, and what they are for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leastwise.tables.table import Table, TableError


@dataclass(frozen=True)
class Roles:
    """Names of the columns with a part of their own; empty where there is none."""

    target: str
    labels: list[str]
    task: str | None
    group: str | None
    weight: str | None
    ids: list[str]

    @staticmethod
    def of(model: Any) -> Roles:
        """As a model was told."""
        ids = [model.id] if isinstance(model.id, str) else list(model.id or ())
        if isinstance(model.labels, str):
            raise TableError(f"labels={model.labels!r} must be a list of columns; for one column use target=.")
        roles = Roles(model.target or "", list(model.labels or ()), model.task, model.group, model.weight, ids)
        if bool(roles.target) == bool(roles.labels):
            raise TableError("give target=, the column to be predicted, or labels=, several of them; one of the two.")
        if roles.labels and (roles.task or model.kind):
            raise TableError("labels= goes with neither task= nor kind=: leave these out, or give one target=.")
        if model.kind not in (None, "classes", "numbers"):
            raise TableError(f"kind={model.kind!r} is not known: use 'classes' or 'numbers'.")
        return roles

    @property
    def all(self) -> list[str]:
        """All of them."""
        single = [self.target, self.task, self.group, self.weight]
        return [name for name in [*single, *self.labels, *self.ids] if name]

    def by_copies(self, table: Table) -> bool:
        """True if group="duplicates" asks for equal rows to be held out together: there is no column of that name."""
        return self.group == "duplicates" and self.group not in table.columns

    def check(self, table: Table) -> None:
        """All are there, and none is two things."""
        named = [name for name in self.all if name != self.group or not self.by_copies(table)]
        lost = [name for name in named if name not in table.columns]
        if lost:
            raise table.lacks(lost, "the model is to use")
        different = [name for name in self.all if name != self.group]  # a task may be the group too
        double = next((name for name in different if different.count(name) > 1), None)
        if double is not None or self.group in (self.target, *self.labels):
            raise TableError(f'column "{double or self.group}" is given two parts: one of target, labels, task, ....')
        said = {
            "trust",
            *(() if self.ids else ("row",)),
            *(part + name for part in ("p_", "decision_", "set_") for name in self.labels),
        }
        clash = next((name for name in self.labels if name in said), None)
        if clash is not None:
            raise TableError(f'label "{clash}": predictions have a column of that name beside the labels: rename it.')
