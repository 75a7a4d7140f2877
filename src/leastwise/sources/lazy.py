"""Predictions of rows that Dask has: made when they are asked for, where the rows are."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any

import numpy as np

from leastwise.sources.dask import aligned, is_dask, one_thread, row_blocks
from leastwise.sources.parts import placed
from leastwise.utils.optional import frames, needed

Array = np.ndarray

#: Arguments that are not passed on as they are.
ME = ("self", "X")


def by_partition(method: Callable) -> Callable:
    """A method ``(self, X, tasks=None, ...)`` that gives a lazy array of Dask for rows that Dask has.

    Rows may also be given by a frame; where ``set_output(transform="pandas")`` asks for frames, they come as one.
    """

    @wraps(method)
    def wrapped(self: Any, X: Any, *args: Any, **kwargs: Any) -> Any:
        if not is_dask(X):
            return method(self, X, *args, **kwargs)
        given = dict(bind(self, X, *args, **kwargs).arguments)
        return lazily(self, method.__name__, X, {name: value for name, value in given.items() if name not in ME})

    bind = signature(method).bind

    return wrapped


def lazily(model: Any, name: str, X: Any, kwargs: dict) -> Any:
    """What a method of the model says of rows that Dask has."""
    delayed, array = needed("dask", "dask").delayed, needed("dask.array", "dask")
    blocks = row_blocks(X)
    cut = aligned("tasks", kwargs.get("tasks"), X, len(blocks))
    rest = {key: value for key, value in kwargs.items() if key != "tasks"}
    like = answered(model, name, rest)
    sent = delayed(model, pure=False, traverse=False)
    say = delayed(said, pure=False, traverse=False)
    answers = [say(sent, name, block, t, rest, like, k) for k, (block, t) in enumerate(zip(blocks, cut, strict=True))]
    if not hasattr(like, "iloc") and hasattr(like, "to_pandas"):
        raise ValueError(
            f"{name}() is to give frames of polars (set_output), and Dask has those of pandas only: use "
            "set_output(transform='pandas') or 'default'."
        )
    if isinstance(like, list):
        raise ValueError(
            f"{name}() of labels with other than two classes gives a list of arrays, which Dask has no collection "
            "for: ask for the rows of one partition at a time (map_partitions)."
        )
    if hasattr(like, "iloc"):
        return needed("dask.dataframe", "dask").from_delayed(answers, meta=like)
    sizes = X.chunks[0] if hasattr(X, "chunks") else (np.nan,) * len(blocks)
    shapes = [(size, *like.shape[1:]) for size in sizes]
    parts = [array.from_delayed(a, shape, like.dtype) for a, shape in zip(answers, shapes, strict=True)]
    return array.concatenate(parts, allow_unknown_chunksizes=True)


def said(model: Any, name: str, X: Any, tasks: Any, rest: dict, like: Any, place: int) -> Any:
    """The answer for one block; none for no rows."""
    if not len(X):
        return like
    if tasks is not None:
        rest = {**rest, "tasks": tasks}
    with one_thread(), placed(f"partition {place}"):
        return getattr(model, name)(X, **rest)


def answered(model: Any, name: str, rest: dict) -> Any:
    """An answer for no rows, which tells the columns and types of all answers: that for a row of zeros without it."""
    X, tasks = example(model)
    found = getattr(model, name)(X, **(rest if tasks is None else {**rest, "tasks": tasks}))
    if isinstance(found, list):
        return found
    return found.iloc[:0] if hasattr(found, "iloc") else found[:0]


def example(model: Any) -> tuple[Any, Any]:
    """A row of zeros such as the model takes, and its task, where that is no column."""
    names: Any = getattr(model, "feature_names_in_", None)
    index: Any = getattr(model, "task_index_", None)
    column = None if index is None else model.task_column
    X: Any = np.zeros((1, model.n_features_in_), dtype=float if column is None else object)
    if column is not None and isinstance(column, int | np.integer):
        X[0, column] = index.ids[0]
    if names is not None:
        X = frames("pandas").DataFrame(X, columns=names)
        if column is not None and not isinstance(column, int | np.integer):
            X[column] = index.ids[:1]
    return X, None if index is None or column is not None else index.ids[0]
