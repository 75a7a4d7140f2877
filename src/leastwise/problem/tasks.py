"""Tasks of the rows: a column of X, or one id per row.

Ids are any hashable objects. Internally, tasks are codes 0 ... T-1 in the order of ``Tasks.ids``; -1 is an unseen
task.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import isfinite
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

Array = np.ndarray


@dataclass(frozen=True)
class Tasks:
    """The known tasks, sorted if their ids are comparable.

    ``given`` are all ids in the data, if some of them have no row of positive weight.
    """

    ids: list
    given: list | None = None
    _place: dict = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._place.update((name, code) for code, name in enumerate(self.ids))

    def __getstate__(self) -> dict:
        return {"ids": self.ids, "given": self.given}  # not every file format supports dict keys of any type

    def __setstate__(self, state: dict) -> None:
        vars(self).update(state, _place={})
        self.__post_init__()

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, name: Any) -> bool:
        return _hashable(name) and name in self._place

    def codes(self, ids: list) -> Array:
        """The code of every id, -1 for unseen tasks."""
        place = self._place
        return np.fromiter((place.get(name, -1) for name in ids), dtype=np.intp, count=len(ids))

    def only(self, kept: Array) -> Tasks:
        """A subset of the tasks."""
        return Tasks([self.ids[k] for k in kept], given=self.ids)

    def in_order(self, values: Array) -> Array:
        """Select the values of these tasks on every axis, if ``values`` refers to all given ids."""
        if self.given is None or any(size != len(self.given) for size in values.shape):
            return values
        kept = [self.given.index(name) for name in self.ids]
        return values[np.ix_(*[kept] * values.ndim)]

    def as_array(self) -> Array:
        """The ids as an array of numbers, or of objects."""
        if all(type(name) in (int, float) for name in self.ids):
            return np.array(self.ids)
        array = np.empty(len(self.ids), dtype=object)
        array[:] = self.ids
        return array


def encode_tasks(ids: Any, n: int) -> tuple[Array, Tasks]:
    """Task codes of the rows, and the tasks."""
    names, index = factor_tasks(ids, n)
    try:
        tasks = Tasks(sorted(names))
    except TypeError:  # ids that are not comparable stay in order of appearance
        tasks = Tasks(names)
    return tasks.codes(names)[index], tasks


def factor_tasks(ids: Any, n: int) -> tuple[list, Array]:
    """The distinct ids, and the index of each row's id among them."""
    values = ids.to_numpy() if hasattr(ids, "to_numpy") else ids
    plain = isinstance(values, np.ndarray) and values.shape == (n,) and values.dtype.kind in "iufbU"
    if plain and (values.dtype.kind != "f" or np.isfinite(values).all()):  # without a loop over rows
        names, index = np.unique(values, return_inverse=True)
        return names.tolist(), index
    listed = list_tasks(ids, n)
    place = {name: k for k, name in enumerate(dict.fromkeys(listed))}
    return list(place), np.fromiter((place[name] for name in listed), dtype=np.intp, count=n)


def list_tasks(ids: Any, n: int) -> list:
    """One hashable id for each of n rows; a single id that is not a sequence applies to all rows."""
    if isinstance(ids, set | dict):
        raise ValueError(f"tasks is a {type(ids).__name__}, which is not ordered: give a list or an array.")
    if isinstance(ids, str | bytes | frozenset) or not isinstance(ids, Iterable):
        ids = [ids] * n
    values = ids.to_numpy() if hasattr(ids, "to_numpy") else ids
    if isinstance(values, np.ndarray) and values.dtype.kind in "mM":  # tolist() converts finer units to integers
        values = values.astype(f"{values.dtype.kind}8[us]")
    listed = values.tolist() if isinstance(values, np.ndarray) else list(values)
    listed = [name.item() if isinstance(name, np.generic) else name for name in listed]
    if len(listed) != n or np.ndim(values if isinstance(values, np.ndarray) else 0) > 1:
        shape = np.shape(values) if isinstance(values, np.ndarray) else (len(listed),)
        raise ValueError(f"tasks has shape {shape}; it must hold one id for each of the {n} rows, or be a single id.")
    _check_ids(listed)
    return listed


def _check_ids(ids: list) -> None:
    missing = sum(map(_missing, ids))
    if missing:
        raise ValueError(
            f"Of {len(ids)} task ids {missing} are missing (None, NaN or inf): give every row a task. A separate "
            "name such as 'unknown' makes them a task too."
        )
    try:
        set(ids)
    except TypeError:
        row = next(i for i, name in enumerate(ids) if not _hashable(name))
        raise TypeError(
            f"A task argument must be hashable, such as a string, a tuple or a number: row {row} has {ids[row]!r}."
        ) from None


def _hashable(name: Any) -> bool:
    try:
        hash(name)
    except TypeError:
        return False
    return True


def _missing(name: Any) -> bool:
    if isinstance(name, float):
        return not isfinite(name)
    if isinstance(name, tuple):
        return any(map(_missing, name))
    return name is None or type(name).__name__ in ("NAType", "NaTType") or bool(name != name)


# ------------------------------------------------------------------- columns


def as_table(X: Any) -> Any:
    """X as an array, a sparse matrix or a data frame of two dimensions."""
    if hasattr(X, "collect"):
        raise ValueError(f"X is a {type(X).__name__}, which holds no rows yet: give X.collect().")
    if not hasattr(X, "columns") and not sparse.issparse(X):
        X = X if isinstance(X, np.ndarray) else _array_of(X)
    if len(X.shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(X.shape)}D array instead: X needs a column for the task. Reshape your data "
            "with X.reshape(1, -1) if it is a single row."
        )
    if getattr(X, "dtype", None) is not None and np.issubdtype(X.dtype, np.complexfloating):
        raise ValueError(f"Complex data not supported: X is of type {X.dtype}.")
    return X


def split_tasks(X: Any, column: Any) -> tuple[Any, Any]:
    """X without its task column, and that column.

    Parameters
    ----------
    X : array, sparse matrix, pandas or polars frame, or list of rows
    column : str or int
        Name of the column, for frames, or its position, which may count from the end.
    """
    X = as_table(X)
    if X.shape[1] < 2:
        raise ValueError(
            f"Found array with {X.shape[1]} feature(s) (shape={X.shape}) while a minimum of 2 is required: "
            "one column is the task, and there must be others to learn from."
        )
    place = column_position(X, column)
    rest = [j for j in range(X.shape[1]) if j != place]
    if hasattr(X, "iloc"):
        return X.iloc[:, rest], X.iloc[:, place]
    if sparse.issparse(X):
        return X.tocsr()[:, rest], X.tocsc()[:, [place]].toarray().ravel()
    return X[:, rest], X[:, place]


def without_column(places: list[int], gone: int) -> list[int]:
    """Positions of columns once a column is taken out."""
    return [j - (j > gone) for j in places if j != gone]


def _array_of(X: Any) -> Array:
    """Array from lists; of objects if there is text, so that numbers stay numbers and text has no common width."""
    listed = isinstance(X, list | tuple) and any(isinstance(v, str) for row in X if np.iterable(row) for v in row)
    plain = np.asarray(X, dtype=object if listed else None)
    return plain.astype(object) if plain.dtype.kind in "US" else plain


def column_position(X: Any, column: Any) -> int:
    """Position of the task column."""
    width = X.shape[1]
    if isinstance(column, Integral) and not isinstance(column, bool):
        if not -width <= column < width:
            raise ValueError(
                f"task_column={column}: X has n_features={width} columns. Give a position from 0 to {width - 1}, or "
                f"from -{width} to -1 counted from the end."
            )
        return int(column) % width
    if isinstance(column, Real):
        raise ValueError(f"task_column={column!r} must be the name of a column, or its position as an integer.")
    names = list(getattr(X, "columns", []))
    if not names:
        raise ValueError(
            f"task_column={column!r} is a name, but {type(X).__name__} has no column names: give its position, or a "
            "pandas or polars frame. (In a pipeline, earlier steps convert frames to arrays, unless "
            '.set_output(transform="pandas") is called.)'
        )
    if names.count(column) != 1:
        how = "is not among" if column not in names else f"occurs {names.count(column)} times among"
        raise ValueError(
            f"task_column={column!r} {how} the columns of X, which are {names}: give one of these names, or a "
            "position."
        )
    return names.index(column)
