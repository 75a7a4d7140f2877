"""The roles of the columns of a table: inputs, targets, weights, tasks and groups.

A :class:`Layout` is fixed by the first table and checked against later ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from leastwise.sources.blocks import Array, Block, CodedRows, Known, StreamError
from leastwise.sources.frames import Columns, Schema, coded_column, nominal_columns


@dataclass(frozen=True)
class Roles:
    """Column names as requested; ``several`` if the targets were given as a list.

    ``categories`` are the inputs that are categories, as for the estimators.
    """

    targets: tuple = ()
    several: bool = False
    features: tuple | None = None
    weight: Any = None
    task: Any = None
    group: Any = None
    categories: Any = None

    @property
    def beside(self) -> tuple:
        """Columns that are not inputs."""
        return (*self.targets, *(name for name in (self.weight, self.task, self.group) if name is not None))

    @property
    def requested(self) -> list:
        """All columns that are named."""
        return [*self.beside, *(self.features or ())]


def roles_of(target: Any, features: Any, weight: Any, task: Any, group: Any, categories: Any = None) -> Roles:
    """The roles; an error if a column has two of them."""
    several = _is_list(target)
    if hasattr(target, "dtype") and (target.dtype.kind in "biuf" or len(set(target)) < len(target)):
        raise StreamError("target= must be a column name or a list of names: pass an array of targets as y.")
    targets = () if target is None else tuple(target) if several else (target,)
    if features is not None and not _is_list(features):
        raise StreamError(f"features={features!r} must be a list of column names.")
    inputs = None if features is None else tuple(features)
    roles = Roles(targets, several, inputs, weight, task, group, categories)
    taken = roles.requested
    double = next((name for name in taken if taken.count(name) > 1), None)
    if double is not None:
        raise StreamError(f"Column {double!r} is used twice: each column has one role.")
    if roles.features == ():
        raise StreamError("features=[] leaves no inputs: name at least one column.")
    return roles


def _is_list(names: Any) -> bool:
    return isinstance(names, Iterable) and not isinstance(names, str | bytes)


@dataclass(frozen=True)
class Layout:
    """The columns that are read, in order, and those among them that are categories; fixed by the first table."""

    roles: Roles
    features: tuple
    dtype: np.dtype
    every: tuple
    nominal: tuple = ()

    @property
    def wanted(self) -> list:
        """All columns that are read."""
        return [*self.features, *self.roles.beside]

    @property
    def names(self) -> list[str] | None:
        """Names of the inputs, if they are all strings."""
        return list(self.features) if all(isinstance(n, str) for n in self.features) else None

    def check(self, schema: Schema, source: str) -> None:
        """A later table must have the same columns, in any order."""
        lacking = [name for name in self.wanted if name not in schema]
        if lacking:
            raise StreamError(
                f"{source}: there is no column {lacking[0]!r}, which the first table has.",
                where=source,
                column=lacking[0],
            )
        extra = [name for name in _without_index(schema) if name not in self.every]
        if extra and self.roles.features is None:
            raise StreamError(
                f"{source}: column {extra[0]!r} is not in the first table: remove it, or set features=.",
                where=source,
                column=extra[0],
            )
        _check_numeric(self.features, self.nominal, schema, source)

    def block(self, columns: Columns, table: Any, n: int) -> Block:
        """A block of the n rows of a table."""
        X: Any = np.empty((n, len(self.features)), dtype=self.dtype)
        values: Known = [None] * len(self.features)
        for k, name in enumerate(self.features):
            if name in self.nominal:
                X[:, k], values[k] = coded_column(columns.values(table, name), name)
            else:
                X[:, k] = columns.numbers(table, name, self.dtype)
        X = CodedRows(X, values) if self.nominal else X
        roles = self.roles
        beside: list[Any] = [
            None if name is None else columns.values(table, name) for name in (roles.weight, roles.task, roles.group)
        ]
        targets = [columns.values(table, name) for name in roles.targets]
        if roles.several:
            y = np.column_stack([_missing_as_nan(values) for values in targets]) if targets else None
        else:
            y = targets[0] if targets else None
        return Block(X, y, *beside)


def _missing_as_nan(values: Array) -> Array:
    """Numeric objects with missing values as floats; other objects unchanged."""
    if values.dtype.kind != "O" or any(isinstance(v, str | bytes) for v in values):
        return values
    return np.array([np.nan if v is None or v != v else float(v) for v in values])


def layout_of(schema: Schema, roles: Roles, source: str) -> Layout:
    """The layout by the first table."""
    for name in roles.requested:
        if name not in schema:
            near = get_close_matches(str(name), [str(n) for n in schema], 1, 0.7)
            meant = f" (did you mean {near[0]!r}?)" if near else ""
            listed = f"the columns are {list(schema)[:20]}."
            raise StreamError(f"{source}: there is no column {name!r}{meant}; {listed}", where=source, column=name)
    features = roles.features
    if features is None:
        features = tuple(n for n in _without_index(schema) if n not in set(roles.beside))
    if "" in features:
        raise StreamError(
            f"{source}: a column has no name (pandas writes its index like this): write the file with index=False, "
            "or name the inputs with features=.",
            where=source,
        )
    if not features:
        raise StreamError(f"{source}: no column is left for the inputs; there are {list(schema)}.", where=source)
    nominal = tuple(features[j] for j in nominal_columns(schema, features, roles.categories))
    _check_numeric(features, nominal, schema, source)
    numbers = [name for name in features if name not in nominal]
    single = bool(numbers) and all(schema[name].type == "float32" for name in numbers)
    return Layout(roles, features, np.dtype(np.float32 if single else np.float64), tuple(schema), nominal)


def _without_index(schema: Schema) -> list:
    return [n for n, kind in schema.items() if not kind.index and not str(n).startswith("__index_level_")]


def _check_numeric(features: tuple, nominal: tuple, schema: Schema, source: str) -> None:
    for name in features:
        if name not in nominal and not schema[name].numeric:
            raise StreamError(
                f'{source}: column "{name}" holds {schema[name].type}, not numbers: encode it first, name it in '
                "categories=, or choose the inputs with features=.",
                where=source,
                column=name,
            )
