"""Rows for a fitted model: validation, scaling, codes of their tasks, and raw scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from leastwise.fitting.checks import check_range
from leastwise.fitting.dataset import computed, read_matrix, task_ids
from leastwise.problem.basis import evaluate
from leastwise.problem.inputs import has_missing
from leastwise.problem.tasks import as_table, factor_tasks, split_tasks
from leastwise.solvers.solve_tasks import evaluate_tasks
from leastwise.sources.frames import has_categories
from leastwise.utils.arrays import bring, float_dtypes, get_namespace, is_finite, is_numpy, to_namespace
from leastwise.utils.warn import warn_user

Array = np.ndarray


def raw_scores(model: Any, X: Any, task: Array | None = None) -> tuple[Array, Array]:
    """Scores and domain weights of validated rows; ``task`` holds task codes, -1 for an unseen task."""
    check_range(X, model.kernel_)
    centers, index = getattr(model, "centers_", None), getattr(model, "center_indices_", None)
    if task is None:
        F, nearest = evaluate(model.kernel_, model.sigma_, X, centers, index, model.coef_)
        intercept = model.intercept_
    else:
        F, nearest = evaluate_tasks(model.kernel_, model.sigma_, X, task, centers, index, model.form_)
        own = getattr(model, "task_intercept_", None)
        intercept = model.intercept_ if own is None else np.vstack([own, model.intercept_])[task]
    F += to_namespace(intercept, F)
    if is_numpy(F):
        F, nearest = (A.astype(model.intercept_.dtype, copy=False) for A in (F, nearest))
    if not is_finite(F):
        raise ValueError(
            "Scores overflow on these rows: their values are far larger than those of the training rows."
        )
    extrapolation = getattr(model, "extrapolation_", None)
    return F, get_namespace(F).ones_like(nearest) if extrapolation is None else extrapolation.in_domain(nearest)


def row_index(X: Any) -> Any:
    """The index of a pandas frame; None for other types."""
    return X.index if hasattr(X, "iloc") else None


def read_rows(model: Any, X: Any) -> Any:
    """Validated rows to predict; arrays of other libraries are not converted."""
    X = bring(X) if has_categories(vars(model).get("categories_")) else X
    return scaled(model, read_matrix(model, X, model.kernel_, float_dtypes(X, model.intercept_.dtype)))


def scaled(model: Any, X: Any) -> Any:
    """Validated rows, transformed for the kernel of a model, in the precision of its centres."""
    if model.inputs_.fill is None and computed(model.kernel_) and has_missing(X):
        raise ValueError(
            f"Input X contains NaN, and this {type(model).__name__} was fitted to sparse X, which has no missing "
            "values: fill them first, for example with sklearn.impute.SimpleImputer."
        )
    centers = getattr(model, "centers_", None)
    if is_numpy(X) and not model.inputs_.identity and centers is not None:
        X = X.astype(centers.dtype, copy=False)
    return model.inputs_(X)


def read_numpy_rows(model: Any, X: Any) -> Any:
    """Rows without the task column, as a numpy array or sparse matrix in the precision of the model."""
    return scaled(model, _read_split(model, bring(X), [model.intercept_.dtype])[0])


def _read_split(model: Any, X: Any, dtypes: list) -> tuple[Any, Any]:
    """Rows without the task column, and that column if there is one."""
    task_column = getattr(model, "task_column", None)
    if task_column is None:
        return read_matrix(model, X, model.kernel_, dtypes), None
    whole = as_table(bring(X))
    validate_data(model, whole, reset=False, skip_check_array=True)  # report wrong columns first
    X, column = split_tasks(whole, task_column)
    return read_matrix(model, X, model.kernel_, [model.intercept_.dtype], whole=whole), column


def read_tasks(model: Any, X: Any, tasks: Any) -> tuple[Any, Array, list]:
    """Rows as an array, codes of their tasks (-1 for an unseen task), and the unseen ids."""
    X = bring(X) if has_categories(vars(model).get("categories_")) else X
    X, column = _read_split(model, X, float_dtypes(X, model.intercept_.dtype))
    tasks, n = bring(tasks), X.shape[0]
    if isinstance(tasks, tuple) and tasks in model.task_index_:  # an id, not a sequence of ids
        tasks = [tasks] * n
    names, index = factor_tasks(task_ids(column, tasks, n, type(model).__name__, model.task_column), n)
    codes = model.task_index_.codes(names)
    return scaled(model, X), codes[index], [name for name, code in zip(names, codes, strict=True) if code < 0]


def task_codes(model: Any, X: Any, tasks: Any) -> Array:
    """Codes of the tasks of some rows; -1 for an unseen task."""
    return read_tasks(model, X, tasks)[1]


def read_task_rows(model: Any, X: Any, tasks: Any) -> tuple[Any, Array]:
    """Rows as an array, and codes of their tasks; -1 for an unseen task, which may be an error."""
    X, task, unseen = read_tasks(model, X, tasks)
    if unseen:
        _check_unseen(model, unseen, int(np.sum(task < 0)))
    return X, task


def _check_unseen(model: Any, unseen: list, rows: int) -> None:
    """Raise an error for unseen tasks, or warn if they look like known tasks of another type."""
    names = ", ".join(map(repr, unseen[:5]))
    if model.unknown_task == "error":
        raise ValueError(
            f"{rows} rows belong to tasks that were not in the training data, such as {names}. Known tasks are "
            f"{model.tasks_.tolist()[:20]}. With unknown_task='shared' such rows are predicted by the shared part."
        )
    known = {str(name) for name in model.task_index_.ids}
    alike = next((name for name in unseen if str(name) in known), None)
    if alike is not None:
        warn_user(
            f"Task {alike!r} of type {type(alike).__name__} is unknown, but a known task of another type looks the "
            "same: use ids of the same type as in training. These rows are predicted by the shared part."
        )
