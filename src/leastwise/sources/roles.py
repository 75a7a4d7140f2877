"""What the columns of a table are for: inputs, targets, weights, tasks, groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from leastwise.sources.blocks import StreamError


@dataclass(frozen=True)
class Kind:
    """What a column holds: "number", "boolean", "text" or "other", and the name of its type.

    ``index`` tells that pandas wrote its index there: an input only where it is asked for.
    """

    name: str
    type: str
    index: bool = False

    @property
    def numeric(self) -> bool:
        """Whether it can be an input."""
        return self.name in ("number", "boolean")


Schema = Mapping[Any, Kind]


@dataclass(frozen=True)
class Roles:
    """Names as they were asked for; ``several`` if targets came as a list."""

    targets: tuple = ()
    several: bool = False
    features: tuple | None = None
    weight: Any = None
    task: Any = None
    group: Any = None

    @property
    def beside(self) -> tuple:
        """Columns that are no inputs."""
        return (*self.targets, *(name for name in (self.weight, self.task, self.group) if name is not None))


def roles_of(target: Any, features: Any, weight: Any, task: Any, group: Any) -> Roles:
    """Check that no column has two roles."""
    several = _several(target)
    if hasattr(target, "dtype") and (target.dtype.kind in "biuf" or len(set(target)) < len(target)):
        raise StreamError("target= is the name of a column, or a list of names: give an array of targets as y.")
    targets = () if target is None else tuple(target) if several else (target,)
    if features is not None and not _several(features):
        raise StreamError(f"features={features!r} must be a list of names of columns.")
    roles = Roles(targets, several, None if features is None else tuple(features), weight, task, group)
    taken = [*roles.beside, *(roles.features or ())]
    double = next((name for name in taken if taken.count(name) > 1), None)
    if double is not None:
        raise StreamError(f"The column {double!r} is asked for twice: every column has one role.")
    if roles.features == ():
        raise StreamError("features=[] leaves no inputs: name one column or more.")
    return roles


def _several(names: Any) -> bool:
    return isinstance(names, Iterable) and not isinstance(names, str | bytes)


@dataclass(frozen=True)
class Layout:
    """Which columns are read, in which order; fixed by the first table."""

    roles: Roles
    features: tuple
    dtype: np.dtype
    every: tuple

    @property
    def wanted(self) -> list:
        """All columns that are read."""
        return [*self.features, *self.roles.beside]

    def check(self, schema: Schema, source: str) -> None:
        """A later table must have the same columns, in any order."""
        lacking = [name for name in self.wanted if name not in schema]
        if lacking:
            raise StreamError(
                f"{source}: there is no column {lacking[0]!r}, which the first table has.",
                where=source,
                column=lacking[0],
            )
        extra = [name for name in plain(schema) if name not in self.every] if self.roles.features is None else []
        if extra:
            raise StreamError(
                f"{source}: the column {extra[0]!r} is not in the first table: take it out, or give features=.",
                where=source,
                column=extra[0],
            )
        _check_numeric(self.features, schema, source)


def layout_of(schema: Schema, roles: Roles, source: str) -> Layout:
    """The columns of the first table."""
    asked = [*roles.beside, *(roles.features or ())]
    for name in asked:
        if name not in schema:
            raise StreamError(_not_there(name, list(schema), source), where=source, column=name)
    taken = set(roles.beside)
    features = roles.features if roles.features is not None else tuple(n for n in plain(schema) if n not in taken)
    if "" in features:
        raise StreamError(
            f"{source}: a column has no name (pandas writes its index so): write the file without it (index=False), "
            "or name the inputs by features=.",
            where=source,
        )
    if not features:
        raise StreamError(f"{source}: no column is left for inputs; there are {list(schema)}.", where=source)
    _check_numeric(features, schema, source)
    single = all(schema[name].type == "float32" for name in features)
    return Layout(roles, features, np.dtype(np.float32 if single else np.float64), tuple(schema))


def plain(schema: Schema) -> list:
    """All columns but an index of pandas."""
    return [n for n, kind in schema.items() if not kind.index and not str(n).startswith("__index_level_")]


def _check_numeric(features: tuple, schema: Schema, source: str) -> None:
    for name in features:
        if not schema[name].numeric:
            raise StreamError(
                f'{source}: column "{name}" holds {schema[name].type}, not numbers: encode it first (TableModel does '
                "that, in memory), or name the columns to learn from by features=.",
                where=source,
                column=name,
            )


def _not_there(name: Any, names: list, source: str) -> str:
    near = get_close_matches(str(name), [str(n) for n in names], 1, 0.7)
    meant = f" (did you mean {near[0]!r}?)" if near else ""
    return f"{source}: there is no column {name!r}{meant}; the columns are {names[:20]}."
