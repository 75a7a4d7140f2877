"""Checks of parameters and data shared by the estimators. Errors say what was given, what is allowed, what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from typing import Any

import numpy as np

from leastwise.calibration.label_thresholds import THRESHOLD_RULES
from leastwise.model_selection.grids import Grid, SharingGrid
from leastwise.problem.kernels import CallableKernel, Kernel, Precomputed, check_symmetric
from leastwise.problem.labels import Labels
from leastwise.problem.similarity_checks import real_numbers
from leastwise.problem.tasks import Tasks
from leastwise.solvers.work import search_bytes
from leastwise.utils.arrays import largest, numpy_dtype, text_objects
from leastwise.utils.resources import available_memory, human

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
    """A number above 0 whose square neither overflows nor underflows."""
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


def check_centers(value: Any) -> None:
    """A whole number of 1 or more, "auto" or None."""
    if isinstance(value, str):
        choose("n_centers", value, ["auto", None])
    else:
        check_count("n_centers", value)


def check_search_rows(value: Any) -> None:
    """A whole number of 1 or more, "auto" or None."""
    if isinstance(value, str):
        choose("search_rows", value, ["auto", None])
    else:
        check_count("search_rows", value)


def check_groups(groups: Any, n: int) -> Array:
    """One label for every row, without missing ones, as integer codes."""
    groups = np.asarray(text_objects(groups))
    if groups.shape != (n,):
        raise ValueError(f"groups has shape {groups.shape}; it must hold one label for each of the {n} rows.")
    labels = [str(g) if isinstance(g, str) else g for g in groups.tolist()]
    if any(g is None or g != g for g in labels):
        raise ValueError("groups holds missing labels (None or NaN): give every row a group.")
    number: dict[Any, int] = {}
    return np.array([number.setdefault(g, len(number)) for g in labels])


def check_range(X: Any, kernel: Kernel) -> None:
    """Raise an error for values whose squares overflow, which would turn distances into NaN."""
    if isinstance(kernel, CallableKernel | Precomputed):
        return
    most, dtype = largest(X), numpy_dtype(X)
    limit = float(np.sqrt(np.finfo(dtype).max / (8.0 * max(X.shape[1], 1))))
    if most > limit:
        raise ValueError(
            f"X holds values up to {most:.2g}, whose squares overflow {dtype}; the limit here is {limit:.2g}. "
            "Scale the features first, for example with sklearn.preprocessing.StandardScaler."
        )


def check_square(X: Any, name: str) -> None:
    """Check that a precomputed kernel for training is square and symmetric."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(f"kernel='precomputed' needs a square matrix for training; {name} got shape {X.shape}.")
    check_symmetric(X, "The training matrix of kernel='precomputed'")


# --------------------------------------------------------------------- tasks


def check_search_memory(n: int, b: int) -> None:
    """Raise MemoryError if the decompositions of a search on these rows would not fit in memory."""
    need, have = search_bytes(n * b), available_memory()
    if need > have:
        raise MemoryError(
            f"A search on {n} rows with {b} basis functions needs about {human(need)}; {human(have)} are available. "
            f"search_rows={max(1, int(have // search_bytes(b)))} would fit. (Set LEASTWISE_MEMORY to change the "
            "limit.)"
        )


def check_task_memory(T: int, b: int, c: int, itemsize: int) -> None:
    """Raise MemoryError if the coefficients of all tasks would not fit in memory."""
    need, have = 2 * (T + 1) * b * c * itemsize, available_memory()
    if need > have:
        fits = int(have // (2 * (T + 1) * c * itemsize))
        hint = f" n_centers={fits} would fit." if fits > 0 else ""
        raise MemoryError(
            f"Coefficients of {T} tasks on {b} basis functions for {c} classes need about {human(need)}; "
            f"{human(have)} are available.{hint} (float32 rows need half. Set LEASTWISE_MEMORY to change the limit.)"
        )


def check_levels(name: str, value: Any, auto: tuple[float, ...], what: str = "tasks") -> SharingGrid:
    """Values from 0 to 1, from a number, a sequence or "auto"."""
    allowed = f"use 'auto', a number from 0 ({what} independent) to 1 ({what} pooled), or several of them"
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f"{name}={value!r} is not known: {allowed}.")
        return SharingGrid(auto, every=False)
    if isinstance(value, Iterator):
        raise ValueError(f"{name} is an iterator, which can be read only once: give a list.")
    values = list(value) if isinstance(value, Iterable) and np.ndim(value) else [value]  # type: ignore[arg-type]
    values = [v[()] if isinstance(v, np.ndarray) and v.ndim == 0 else v for v in values]
    if not values or not all(_is_level(v) for v in values):
        raise ValueError(f"{name}={value!r} is not possible: {allowed}.")
    return SharingGrid(tuple(sorted({float(v) for v in values})))


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
        unseen = [name for name in value if name not in (tasks.given or tasks.ids)]
        if unseen:
            raise ValueError(
                f"task_penalty has values for {unseen[:10]}, which are not tasks; the tasks are {tasks.ids[:10]}. "
                "Tasks that are not listed have a penalty of 1."
            )
        value = [value.get(name, 1.0) for name in tasks.ids]
    penalty = tasks.in_order(real_numbers("task_penalty", value))
    if penalty.shape != (len(tasks),):
        raise ValueError(
            f"task_penalty has shape {penalty.shape}; it must be a mapping from task ids to numbers, or hold one "
            f"number for each of the {len(tasks)} tasks in the order of tasks_."
        )
    if not (np.isfinite(penalty).all() and (penalty > 0).all()):
        raise ValueError(f"task_penalty holds {penalty.tolist()[:10]}: every value must be a finite number above 0.")
    return penalty


# -------------------------------------------------------------------- labels


def check_threshold(value: Any, labels: Labels) -> Any:
    """A number from 0 to 1, one for each label, "auto", or the scoring for which thresholds are chosen."""
    if isinstance(value, str):
        if value != "auto" and value not in THRESHOLD_RULES:
            raise ValueError(
                f"threshold={value!r} is not known: use 'auto', a number from 0 to 1, one per label, or a metric to "
                f"choose thresholds for, one of {list(THRESHOLD_RULES)}."
            )
        if not labels.binary:
            raise ValueError(
                f"threshold={value!r} needs labels with two classes each, and some here have more or fewer: use "
                "threshold=0.5, which predicts the most probable class."
            )
        return value
    numbers = _for_labels("threshold", value, labels, 0.5)
    if not ((numbers >= 0) & (numbers <= 1)).all():
        raise ValueError(f"threshold holds {numbers.ravel().tolist()[:10]}: every value must lie between 0 and 1.")
    return float(numbers) if numbers.ndim == 0 else numbers


def label_penalties(value: Any, labels: Labels) -> Array:
    """A positive number for every label, from None, a number, a mapping by name, or an array in their order."""
    numbers = _for_labels("label_penalty", 1.0 if value is None else value, labels, 1.0)
    if not (np.isfinite(numbers) & (numbers > 0)).all():
        raise ValueError(
            f"label_penalty holds {numbers.ravel().tolist()[:10]}: every value must be a finite number above 0."
        )
    return np.broadcast_to(numbers, (labels.n_labels,)).astype(float)


def _for_labels(name: str, value: Any, labels: Labels, otherwise: float) -> Array:
    """A number, or one for each label; a mapping by names may leave some out."""
    if hasattr(value, "to_dict"):  # a pandas Series
        value = value.to_dict()
    if isinstance(value, Mapping):
        unseen = [key for key in value if key not in labels.names]
        if unseen:
            raise ValueError(
                f"{name} has values for {unseen[:10]}, which are not labels; the labels are "
                f"{list(labels.names[:10])}. Labels that are not listed have {otherwise:g}."
            )
        value = [value.get(key, otherwise) for key in labels.names]
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "iuf":
        raise ValueError(f"{name}={value!r:.80} must be a number, or one for each label.")
    numbers = numbers.astype(float)
    if numbers.shape not in ((), (labels.n_labels,)):
        raise ValueError(
            f"{name} has shape {numbers.shape}; it must be a number, a mapping from names of labels to numbers, or "
            f"hold one number for each of the {labels.n_labels} labels."
        )
    return numbers


def check_label_memory(n: int, n_outputs: int, n_labels: int, itemsize: int, pairs: bool) -> None:
    """Raise MemoryError if the arrays of all labels would not fit in memory.

    ``pairs`` is true if all pairs of labels are compared.
    """
    # Targets, projections, rotated ones, held-out scores and probabilities; S, its eigenvectors and workspace.
    scores, matrices = 10 * n * n_outputs * itemsize, 5 * n_labels**2 * 8 if pairs else 0
    have = available_memory()
    if scores + matrices <= have:
        return
    hint = (
        " similarity='shared', sharing=0 or a sparse matrix of similarities needs no table of all pairs of labels."
        if matrices > have / 2
        else " Fit a part of the labels at a time, or fewer rows; float32 rows need half of the memory."
    )
    raise MemoryError(
        f"{n_labels} labels of {n} rows need about {human(scores)} for their scores"
        + (f" and {human(matrices)} for all pairs of labels" if matrices else "")
        + f"; {human(have)} are available.{hint} (Set LEASTWISE_MEMORY to change the limit.)"
    )
