"""What every estimator asks of its parameters and data, with errors that say what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import _check_sample_weight

from leastwise.model_selection.grid import Grid, Levels
from leastwise.problem.kernels import Given, Kernel, Precomputed, check_symmetric
from leastwise.problem.tasks import Tasks
from leastwise.problem.weights import class_factors
from leastwise.solvers.search_rows import search_bytes
from leastwise.utils.arrays import largest, numpy_dtype
from leastwise.utils.memory import available_memory, human

Array = np.ndarray


def parse_grid(name: str, value: Any, auto: Iterable[float], ratio: float) -> Grid:
    """A grid from a number, a sequence or "auto"."""
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f"{name}={value!r} is not known: use 'auto', a positive number, or several of them.")
        return Grid(tuple(float(v) for v in auto), ratio)
    if isinstance(value, Iterator):
        raise ValueError(f"{name} is an iterator, which can be read only once: give a list.")
    values = list(value) if isinstance(value, Iterable) and np.ndim(value) else [value]  # type: ignore[arg-type]
    if not values:
        raise ValueError(f"{name} is an empty sequence: give 'auto', a positive number, or several of them.")
    return Grid(tuple(sorted({check_positive(name, v) for v in values})))


def check_positive(name: str, value: Any) -> float:
    """A number above 0 whose square neither overflows nor vanishes."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    number = isinstance(value, Real) and not isinstance(value, bool)
    if not number or not np.isfinite(float(value)) or not float(value) > 0:
        raise ValueError(f"{name} contains {value!r}: every value must be a finite number above 0.")
    if not 1e-100 < float(value) < 1e100:
        raise ValueError(f"{name} contains {value!r}: it must lie between 1e-100 and 1e100. Scale the features.")
    return float(value)


def choose(name: str, value: Any, allowed: Iterable[Any]) -> Any:
    """``value`` if it is one of the allowed ones."""
    allowed = list(allowed)
    if not any(value is a or (isinstance(value, str) and value == a) for a in allowed):
        raise ValueError(f"{name}={value!r} is not known: use one of {allowed}.")
    return value


def check_count(name: str, value: Any) -> int | None:
    """A whole number of 1 or more, or None."""
    if value is None:
        return None
    whole = isinstance(value, Real) and not isinstance(value, bool) and float(value).is_integer()
    if not whole or float(value) < 1:
        raise ValueError(f"{name}={value!r} must be None or a whole number of 1 or more.")
    return int(float(value))


def check_search_rows(value: Any) -> None:
    """A whole number of 1 or more, "auto" or None."""
    if isinstance(value, str):
        choose("search_rows", value, ["auto", None])
    else:
        check_count("search_rows", value)


def check_groups(groups: Any, n: int) -> Array:
    """One label for every row, none of them missing, as numbers."""
    groups = np.asarray(groups)
    if groups.shape != (n,):
        raise ValueError(f"groups has shape {groups.shape}; it must hold one label for each of the {n} rows.")
    labels = [str(g) if isinstance(g, str) else g for g in groups.tolist()]
    if any(g is None or g != g for g in labels):
        raise ValueError("groups holds missing labels (None or NaN): give every row a group.")
    number: dict[Any, int] = {}
    return np.array([number.setdefault(g, len(number)) for g in labels])


def check_range(X: Any, kernel: Kernel) -> None:
    """Values so large that their squares overflow would turn distances into NaN."""
    if isinstance(kernel, Given | Precomputed):
        return
    most, dtype = largest(X), numpy_dtype(X)
    limit = float(np.sqrt(np.finfo(dtype).max / (8.0 * max(X.shape[1], 1))))
    if most > limit:
        raise ValueError(
            f"X holds values up to {most:.2g}, whose squares overflow {dtype}; the limit here is {limit:.2g}. "
            "Scale the features first, for example with sklearn.preprocessing.StandardScaler."
        )


def check_square(X: Any, name: str) -> None:
    """A precomputed kernel for training is square and symmetric."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(f"kernel='precomputed' needs a square matrix to train on; {name} was given shape {X.shape}.")
    check_symmetric(X, "The matrix of kernel='precomputed' to train on")


def check_weights(sample_weight: Any, class_weight: Any, y: Array) -> Array:
    """Row weights, not negative and not all zero."""
    w = _check_sample_weight(sample_weight, y, dtype=np.float64)  # y, which is numpy's wherever X is
    if (w < 0).any():
        raise ValueError(f"sample_weight has {int((w < 0).sum())} negative values; weights must be 0 or more.")
    if class_weight is not None:
        classes, codes = np.unique(y, return_inverse=True)
        factor = class_factors(class_weight, classes, np.bincount(codes, weights=w, minlength=len(classes)))
        assert factor is not None
        with np.errstate(over="ignore"):
            w = w * factor[codes]
    with np.errstate(over="ignore"):
        total = w.sum()
    if not total > 0:
        raise ValueError(
            "sample_weight sums to 0 (with class_weight counted in): at least one row must have a weight above 0."
        )
    if not np.isfinite(total):
        raise ValueError(
            f"Weights up to {w.max():.2g} (with class_weight counted in) overflow when they are summed: divide them "
            "by a constant, which changes nothing."
        )
    return w


def block_weights(sample_weight: Any, n: int) -> Array:
    """Weights of the rows of a block, all of which may be 0."""
    if sample_weight is None:
        return np.ones(n)
    w = np.asarray(sample_weight, dtype=np.float64)
    w = np.full(n, w) if w.ndim == 0 else w
    if w.shape != (n,):
        raise ValueError(f"sample_weight has shape {w.shape}; it must hold one weight for each of the {n} rows.")
    if not np.isfinite(w).all():
        raise ValueError("sample_weight contains NaN or inf; every weight must be finite.")
    if (w < 0).any():
        raise ValueError(f"sample_weight has {int((w < 0).sum())} negative values; weights must be 0 or more.")
    return w


def check_classes(y: Array, classes: Array) -> None:
    """Two classes or more, and no more classes than rows."""
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class only, {str(classes[0])!r} (rows of weight 0 do not count): a classifier needs two "
            "classes or more."
        )
    if len(classes) == len(y) and len(y) > 2:
        raise ValueError(
            f"y holds {len(classes)} classes in {len(y)} rows, a class for every row: give at least one class two "
            "rows or more. (If y is a quantity, this is a regression problem.)"
        )


def check_memory(n: int, b: int, itemsize: int, arrays: int, blocks: int = 1) -> None:
    """Refuse, before any work, a fit that would not fit in memory; name the number of centres that would.

    ``blocks`` is the number of classes where each has centres of its own, which are then counted by class.
    """
    need, have = arrays * n * b * itemsize, available_memory()
    if need <= have:
        return
    fits = int(have // (arrays * n * itemsize * blocks))
    hint = f" n_centers={fits} would fit." if fits > 0 else ""
    raise MemoryError(
        f"{n} rows with {b} basis functions need about {human(need)} for the kernel matrix and its factors; "
        f"{human(have)} are available.{hint} (leastwise.set_memory_limit or LEASTWISE_MEMORY change the limit.)"
    )


# --------------------------------------------------------------------- tasks


def check_search_memory(n: int, b: int) -> None:
    """Refuse a search on so many rows that their decompositions would not fit in memory."""
    need, have = search_bytes(n * b), available_memory()
    if need > have:
        raise MemoryError(
            f"A search on {n} rows with {b} basis functions needs about {human(need)}; {human(have)} are available. "
            f"search_rows={max(1, int(have // search_bytes(b)))} would fit. (Set LEASTWISE_MEMORY to change the "
            "limit.)"
        )


def check_task_memory(T: int, b: int, c: int, itemsize: int) -> None:
    """Refuse, before any work, coefficients of all tasks that would not fit in memory."""
    need, have = 2 * (T + 1) * b * c * itemsize, available_memory()
    if need > have:
        fits = int(have // (2 * (T + 1) * c * itemsize))
        hint = f" n_centers={fits} would fit." if fits > 0 else ""
        raise MemoryError(
            f"Coefficients of {T} tasks on {b} basis functions for {c} classes need about {human(need)}; "
            f"{human(have)} are available.{hint} (float32 rows take half. Set LEASTWISE_MEMORY to change the limit.)"
        )


def check_levels(name: str, value: Any, auto: tuple[float, ...], what: str = "tasks") -> Levels:
    """Values from 0 to 1, from a number, a sequence or "auto"."""
    allowed = f"use 'auto', a number from 0 ({what} independent) to 1 ({what} pooled), or several of them"
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f"{name}={value!r} is not known: {allowed}.")
        return Levels(auto, every=False)
    if isinstance(value, Iterator):
        raise ValueError(f"{name} is an iterator, which can be read only once: give a list.")
    values = list(value) if isinstance(value, Iterable) and np.ndim(value) else [value]  # type: ignore[arg-type]
    values = [v[()] if isinstance(v, np.ndarray) and v.ndim == 0 else v for v in values]
    if not values or not all(_is_level(v) for v in values):
        raise ValueError(f"{name}={value!r} is not possible: {allowed}.")
    return Levels(tuple(sorted({float(v) for v in values})))


def _is_level(value: Any) -> bool:
    number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    return number and 0 <= float(value) <= 1


def task_penalties(value: Any, tasks: Tasks) -> Array:
    """A positive number for every task, from None, a mapping by id, or an array in the order of the tasks."""
    if value is None:
        return np.ones(len(tasks))
    if hasattr(value, "index") and hasattr(value, "to_dict"):  # a pandas Series
        value = value.to_dict()
    if isinstance(value, Mapping):
        strange = [name for name in value if name not in (tasks.given or tasks.ids)]
        if strange:
            raise ValueError(
                f"task_penalty has values for {strange[:10]}, which are no tasks; the tasks are {tasks.ids[:10]}. "
                "Tasks that are not named have 1."
            )
        value = [value.get(name, 1.0) for name in tasks.ids]
    penalty = tasks.in_order(_numbers("task_penalty", value))
    if penalty.shape != (len(tasks),):
        raise ValueError(
            f"task_penalty has shape {penalty.shape}; it must be a mapping from task ids to numbers, or hold one "
            f"number for each of the {len(tasks)} tasks in the order of tasks_."
        )
    if not (np.isfinite(penalty).all() and (penalty > 0).all()):
        raise ValueError(f"task_penalty holds {penalty.tolist()[:10]}: every value must be a finite number above 0.")
    return penalty


def check_similarity(value: Any, tasks: Tasks) -> Array:
    """Similarities of all pairs of tasks, in units of the largest, from an array or a frame with the ids as names."""
    if hasattr(value, "columns"):
        value = _by_names(value, tasks)
    if sparse.issparse(value):
        raise ValueError("similarity is sparse: give similarity.toarray().")
    S = np.array(tasks.in_order(_numbers("similarity", value)))
    T = len(tasks)
    if S.shape != (T, T):
        given = f"={value!r}" if S.ndim == 0 else f" has shape {S.shape}"
        raise ValueError(
            f"similarity{given}; for {T} tasks it must be a matrix of shape ({T}, {T}), a frame with the ids as "
            "names, a callable that returns one, or one of 'shared', 'learned', 'correlation', 'inputs'."
        )
    wrong = ~np.isfinite(S) | (S < 0)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise ValueError(
            f"similarity is {S[i, j]:.6g} between {tasks.ids[i]!r} and {tasks.ids[j]!r}: every value must be a "
            "finite number of 0 or more."
        )
    if np.abs(S - S.T).max(initial=0) > 1e-8 * S.max(initial=0):
        i, j = np.unravel_index(np.abs(S - S.T).argmax(), S.shape)
        raise ValueError(
            f"similarity is not symmetric: {S[i, j]:.6g} from {tasks.ids[i]!r} to {tasks.ids[j]!r}, {S[j, i]:.6g} "
            "back. Use (S + S.T) / 2 if that is meant."
        )
    np.fill_diagonal(S, 0)
    S = (S + S.T) / (2 * (S.max(initial=0) or 1.0))
    np.fill_diagonal(S, 1)
    return S


def _numbers(name: str, value: Any) -> Array:
    """Real numbers, or an error that names the parameter."""
    array = np.asarray(value)
    if array.dtype.kind == "O" and all(isinstance(v, Real) for v in array.ravel()):
        array = array.astype(float)
    if array.dtype.kind not in "iufb":
        raise ValueError(f"{name} must hold real numbers; it holds values of type {array.dtype}: {value!r:.80}.")
    return array.astype(float)


def _by_names(frame: Any, tasks: Tasks) -> Array:
    """The rows and columns of a frame in the order of the tasks; rows without names are in that of the columns."""
    columns = list(frame.columns)
    rows = list(frame.index) if hasattr(frame, "index") else columns
    for side, names in (("row", rows), ("column", columns)):
        lost = [name for name in tasks.ids if names.count(name) != 1]
        if lost:
            raise ValueError(
                f"similarity has no {side}, or more than one, for the tasks {lost[:10]}; its {side}s are "
                f"{names[:10]}."
            )
    values = frame.to_numpy()
    return values[np.ix_([rows.index(name) for name in tasks.ids], [columns.index(name) for name in tasks.ids])]
