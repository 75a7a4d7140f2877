"""Convert the arguments of ``fit`` and ``predict`` to arrays: validation, weights, folds, codes of tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold
from sklearn.utils.validation import check_array, check_X_y, validate_data

from leastwise.fitting.checks import check_groups, check_range, check_square, choose
from leastwise.fitting.spec import Spec
from leastwise.model_selection.folds import (
    distinct_rows,
    fold_ids,
    input_hashes,
    is_leave_one_out,
    observation_counts,
    warn_of_copies,
)
from leastwise.model_selection.splitters import grouped_folds, label_fold_ids
from leastwise.problem.inputs import Inputs, check_sparse_missing
from leastwise.problem.kernels import CallableKernel, Kernel, Precomputed
from leastwise.problem.targets import LabelTargets, Targets, ValueTargets
from leastwise.problem.tasks import (
    Tasks,
    as_table,
    column_position,
    encode_tasks,
    list_tasks,
    split_tasks,
    without_column,
)
from leastwise.solvers.evaluator import Rows
from leastwise.solvers.label_evaluators import LabelRows
from leastwise.solvers.work import DOUBLE_ROWS, STAND_IN
from leastwise.sources.blocks import Known
from leastwise.sources.frames import (
    category_columns,
    code_matrix,
    has_categories,
    learn_categories,
    naming_text,
)
from leastwise.utils.arrays import DeviceRows, bring, float_dtypes, foreign, text_objects, to_numpy
from leastwise.utils.hashing import all_distinct, generator, row_hashes, seed_of

Array = np.ndarray
CHECKS: dict[str, Any] = {"accept_sparse": "csr", "accept_large_sparse": False}
#: The value by which scikit-learn recognises that there is no y to validate.
NO_TARGETS = "no_validation"


@dataclass(frozen=True)
class Dataset:
    """Validated training data.

    Attributes
    ----------
    rows : Rows
        Rows of a weight above 0, with weights, folds, codes and Z.
    targets : Targets
        With the classes, units or labels of these rows.
    kernel : Kernel
        Fitted to these rows.
    used : ndarray of int
        Positions of ``rows`` among all rows of X.
    X : array
        All rows.
    seed : int
        From ``random_state``.
    task : ndarray of int or None
        Codes of the tasks of all rows; -1 for a task whose rows all have weight 0.
    tasks : Tasks or None
        Ids of the tasks.
    n_features : int
        Number of columns of X.
    categories : list
        The known values of each column of X; None for a column of numbers.
    precision : dtype or None
        Type of the rows as they were given; X is in double precision if there are few of them.
    """

    rows: Rows
    targets: Targets
    kernel: Kernel
    used: Array
    X: Any
    seed: int
    task: Array | None = None
    tasks: Tasks | None = None
    n_features: int = 0
    categories: Known = field(default_factory=list)
    precision: Any = None

    @property
    def category_columns(self) -> list[int]:
        """Columns of X that hold codes of categories, before ``with_inputs``."""
        return [j for j, values in enumerate(self.categories) if values is not None]

    def encoded(self, X: Any) -> Array:
        """Other rows, such as centres, in the precision of these and with codes for categories."""
        dtype = self.rows.X.dtype
        return code_matrix(as_table(X), self.categories, [dtype]) if self.category_columns else np.asarray(X, dtype)

    @property
    def classes(self) -> Array:
        """All classes, sorted."""
        assert self.targets.classes is not None
        return self.targets.classes

    def with_inputs(self, inputs: Inputs, kernel: Kernel) -> Dataset:
        """The same rows transformed by ``inputs``, and the kernel fitted to them."""
        rows = replace(self.rows, X=inputs(self.rows.X))
        check_range(rows.X, kernel)
        X = rows.X if self.X is self.rows.X else inputs(self.X)
        same = inputs.identity and kernel is self.kernel
        return replace(self, rows=rows, X=X, kernel=kernel if same else kernel.fitted(rows.X, rows.w))

    def rng(self, name: str) -> np.random.Generator:
        """Random numbers for one use, such as "centers"; see :mod:`leastwise.utils.hashing`."""
        return generator(name, self.seed)

    def to_numpy(self) -> Dataset:
        """The same with all rows in numpy arrays, for fits that store kernel matrices."""
        return replace(self, rows=self.rows.to_numpy(), X=to_numpy(self.X))


# ------------------------------------------------------------------- training rows


def read_dataset(
    spec: Spec, model: Any, X: Any, y: Any, sample_weight: Any, groups: Any, kernel: Kernel, tasks: Any = None
) -> Dataset:
    """Validate, encode the targets, drop rows of weight zero, assign folds. The model learns its columns."""
    y, sample_weight, groups, tasks = (bring(a) for a in (y, sample_weight, groups, tasks))
    by_dtype = spec.categories is None or isinstance(spec.categories, str)
    stays = spec.device_rows and foreign(X) and by_dtype and not isinstance(kernel, Precomputed)
    stays = stays and not (spec.every_row and X.shape[0] <= DOUBLE_ROWS)
    X = X if stays else bring(X)
    if isinstance(spec.targets, ValueTargets):
        spec.targets.check_raw(y)
    targets, task, index = spec.targets, None, None
    places = category_columns(X, spec.categories if computed(kernel) else None)
    if isinstance(targets, LabelTargets):
        X = read_matrix(model, X, kernel, float_dtypes(X), learn=places)
        y, targets = targets.read(y, X.shape[0])
    elif spec.many_tasks:
        X, y, task, index = _read_tasks(spec, model, X, y, tasks, kernel, places)
    else:
        X, y = read_matrix(model, X, kernel, float_dtypes(X), y, learn=places, **targets.sklearn_checks)
    precision = X.dtype
    if stays:
        X, precision = DeviceRows(X), None
    elif X.shape[0] <= DOUBLE_ROWS:
        X = X.astype(float, copy=False)
    targets.check(y)
    if not spec.scales_inputs(kernel):
        check_range(X, kernel)
    if isinstance(kernel, Precomputed):
        check_square(X, spec.name)
    W = targets.weights(sample_weight, y)
    count = observation_counts(sample_weight)
    data = arrange(spec, targets, X, y, W, groups, kernel, task=task, tasks=index, count=count)
    return replace(data, categories=model.categories_, precision=precision)


def _read_tasks(
    spec: Spec, model: Any, X: Any, y: Any, tasks: Any, kernel: Kernel, places: list[int]
) -> tuple[Any, Array, Array, Tasks]:
    """X without the task column and y as arrays, the codes of the tasks, and their ids."""
    dtypes, column, whole = [np.float64, np.float32], None, None
    check_no_column(X, tasks)
    if spec.task_column is not None:
        whole = X
        X, column = split_tasks(whole, spec.task_column)
        places = without_column(places, column_position(as_table(whole), spec.task_column))
    X, y = read_matrix(model, X, kernel, dtypes, y, learn=places, whole=whole, **spec.targets.sklearn_checks)
    codes, index = encode_tasks(task_ids(column, tasks, X.shape[0], spec.name, spec.task_column), X.shape[0])
    return X, y, codes, index


def arrange(
    spec: Spec,
    targets: Targets,
    X: Any,
    y: Array,
    W: Array,
    groups: Any,
    kernel: Kernel,
    *,
    task: Array | None = None,
    tasks: Tasks | None = None,
    count: Array | None = None,
    encoded: bool = False,
) -> Dataset:
    """Validated rows with their weights: drop those of weight zero, assign folds.

    Parameters
    ----------
    W : ndarray of shape (n,) or (n, T)
        Weights of rows, or of all labels of rows.
    count : ndarray or None
        Number of observations of each row; None for one each.
    encoded : bool
        True if ``targets`` have all classes or units and y holds codes (or values): the rows are a part of all.
    """
    w = W if W.ndim == 1 else W.mean(axis=1)
    if W.ndim == 2:  # a label of weight 0 is treated as unknown
        y = np.where(W > 0, y, -1)
    used = np.flatnonzero((w / w.max()).astype(X.dtype) > 0)
    y = y[used]
    if not encoded and not isinstance(targets, LabelTargets):
        targets = targets.fitted_to(y, X.dtype)
        y = targets.encode(y)
    codes, values = targets.arrange(y, X.dtype)
    kept = X if len(used) == X.shape[0] else X.only(used) if isinstance(X, DeviceRows) else X[used]
    if isinstance(kernel, Precomputed):
        kept = kept[:, used]
        kept = kept.toarray() if hasattr(kept, "toarray") else kept
    seed = seed_of(spec.random_state)
    if task is not None:
        assert tasks is not None
        task, tasks = _used_tasks(task, used, tasks)
    own = None if task is None else task[used]
    copy = _duplicate_groups(kept, own, isinstance(kernel, Precomputed) and not isinstance(groups, str))
    count = None if count is None else count[used]
    group = _read_groups(spec, groups, kept, copy, codes if values is None else values, count, used, X.shape[0])
    draw = int(generator("folds", seed).integers(2**31 - 1))
    fold = _fold_ids(spec, codes, own, group, used, X.shape[0], draw)
    mass = float(w[used].mean())
    w = w[used] / mass
    w[np.abs(w - 1) < 1e-12] = 1
    rows = Rows(kept, codes, w.astype(X.dtype), fold, copy, group, mass, own, values)
    rows = replace(rows, count=count, by_observation=group is None and is_leave_one_out(spec.cv))
    if isinstance(targets, LabelTargets):
        weights = (W[used] / mass).astype(X.dtype)
        rows = _label_rows(spec, rows, weights, targets, isinstance(kernel, Precomputed))
    return Dataset(rows, targets, kernel.fitted(kept, rows.w), used, X, seed, task, tasks, X.shape[1])


def _used_tasks(task: Array, used: Array, tasks: Tasks) -> tuple[Array, Tasks]:
    """Code -1 for tasks whose rows all have weight zero: they are treated as unseen."""
    present = np.unique(task[used])
    if len(present) == len(tasks):
        return task, tasks
    place = np.full(len(tasks), -1)
    place[present] = np.arange(len(present))
    return place[task], tasks.only(present)


def _duplicate_groups(X: Any, task: Array | None, whole: bool) -> Array:
    """Codes of rows that are equal in X and task; with ``whole`` there are no rows to compare."""
    if whole or all_distinct(row_hashes(X)):
        return np.arange(X.shape[0])
    copy = distinct_rows(X)
    if task is not None:
        copy = np.unique(copy * (int(task.max()) + 1) + task, return_inverse=True)[1]
    return copy


def _read_groups(
    spec: Spec, groups: Any, X: Any, copy: Array, targets: Array, count: Array | None, used: Array, n: int
) -> Array | None:
    if groups is None:
        if spec.cv is not None:
            warn_of_copies(X, copy, targets, count)
        return None
    if isinstance(groups, str):
        return choose("groups", groups, ["duplicates"]) and copy
    return check_groups(groups, n)[used]


def _fold_ids(spec: Spec, y: Array, task: Array | None, group: Array | None, used: Array, n: int, seed: int) -> Array:
    """Folds of the rows with a weight above 0. A list of splits refers to all rows, a splitter sees only these."""
    cv = spec.cv
    if cv is None:
        return np.arange(len(y))
    if len(y) == 1:
        raise ValueError("n_samples=1: holding out the only row leaves nothing to train on. Give more rows.")
    if group is not None and len(np.unique(group)) < 2:
        raise ValueError("groups has only one group: holding it out leaves nothing to train on.")
    if spec.many_labels and isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        return _label_fold_ids(int(cv), y, group, seed)
    if isinstance(cv, Iterable) and not isinstance(cv, str) and not hasattr(cv, "split"):
        labels = fold_ids(cv, np.zeros(n, dtype=int), None, seed)[used]
    else:
        labels = fold_ids(cv, y, group, seed, task)
    if len(np.unique(labels)) < 2:
        raise ValueError("cv holds out all rows at once, which leaves nothing to train on.")
    return labels


def _label_fold_ids(k: int, y: Array, group: Array | None, seed: int) -> Array:
    """K folds, stratified by the classes of all labels."""
    most = len(y) if group is None else len(np.unique(group))
    if k < 2 or k > most:
        what = "rows" if group is None else "groups"
        raise ValueError(f"cv={k} folds: with {most} {what} use a number from 2 to {most}, or 'loo'.")
    if group is None:
        return label_fold_ids(k, y, seed)
    labels = np.empty(len(y), dtype=int)
    for fold, (_, test) in enumerate(GroupKFold(k, shuffle=True, random_state=seed).split(y, None, group)):
        labels[test] = fold
    return labels


def _label_rows(spec: Spec, rows: Rows, W: Array, targets: LabelTargets, precomputed: bool) -> LabelRows:
    """Rows with many labels; if some labels are unknown, five folds replace leave-one-out."""
    complete = bool((rows.y >= 0).all() and (np.ptp(W, axis=1) <= 1e-12 * W.max(axis=1)).all())
    labelled = LabelRows(**vars(rows), starts=targets.labels.starts, entries=None if complete else W)
    if complete or not isinstance(spec.cv, str):
        return labelled
    fold = grouped_folds(STAND_IN, rows.y, rows.group, input_hashes(rows, precomputed))
    return replace(labelled, fold=fold, lone=rows.fold, by_observation=False)


# -------------------------------------------------------------- matrices of numbers


def computed(kernel: Kernel) -> bool:
    """True if the kernel is computed from rows, which may then have missing values and categories."""
    return not isinstance(kernel, Precomputed | CallableKernel)


def read_matrix(
    model: Any,
    X: Any,
    kernel: Kernel,
    dtypes: list,
    y: Any = NO_TARGETS,
    *,
    learn: list[int] | None = None,
    whole: Any = None,
    **checks: Any,
) -> Any:
    """X as a matrix of floats, validated: NaN for missing values, codes for categories; with y, both.

    Parameters
    ----------
    model : estimator
        It has the number and names of the columns and the values of categories; with ``learn`` they are stored.
    X : array, sparse matrix or table
    kernel : Kernel
        Missing values are allowed if it is computed from rows.
    dtypes : list of dtype
    y : array, optional
    learn : list of int, optional
        Columns of X that are categories; None for rows to predict.
    whole : table, optional
        X with its task column.
    **checks
        Of scikit-learn, for y.
    """
    checks |= {**CHECKS, "dtype": dtypes, "ensure_all_finite": "allow-nan" if computed(kernel) else True}
    alone, y = isinstance(y, str) and y == NO_TARGETS, text_objects(y)
    reset, known = learn is not None, vars(model).get("categories_")
    if learn:
        X = as_table(X)
        known = learn_categories(X, learn, X.shape[1])
    elif reset:
        known = None
    encode, table = has_categories(known), X
    if encode or whole is not None:
        validate_data(model, X if whole is None else whole, y, reset=reset, skip_check_array=True)
        if encode:
            with naming_text(table, known, reset):
                X = code_matrix(as_table(X), known, dtypes, model)
        checks |= {"estimator": model}
    # scikit-learn sums all numbers to find NaN, and sums of large ones overflow.
    with np.errstate(invalid="ignore"), naming_text(table, known, reset):
        if not (encode or whole is not None):
            found = validate_data(model, X, y, reset=reset, **checks)
        else:
            found = check_array(X, input_name="X", **checks) if alone else check_X_y(X, y, **checks)
    matrix = found if alone else found[0]
    check_sparse_missing(matrix)
    if reset:
        model.categories_ = known if known is not None else [None] * matrix.shape[1]
    return found


def check_no_column(X: Any, tasks: Any) -> None:
    """Raise an error for a single id that is the name of a column."""
    if isinstance(tasks, str) and tasks in list(getattr(X, "columns", [])):
        raise ValueError(
            f"tasks={tasks!r} would be one task for all rows, but X has a column of that name: set "
            f"task_column={tasks!r} on the model, or give tasks=X[{tasks!r}] and X without that column."
        )


def task_ids(column: Any, tasks: Any, n: int, name: str, task_column: Any) -> Any:
    """The ids of the tasks, from the column or the argument; both if they agree."""
    if column is None and tasks is None:
        raise ValueError(
            f"{name} needs the task of each row: give tasks= with an id for every row, or set "
            f"task_column= to the column of X that holds it. (Without tasks, use {name.removeprefix('MultiTask')}.)"
        )
    if column is None or tasks is None:
        return tasks if column is None else column
    one, other = list_tasks(column, n), list_tasks(tasks, n)
    if one != other:
        row = next(i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
        raise ValueError(
            f"tasks= and the column task_column={task_column!r} of X differ, first in row {row}: "
            f"{other[row]!r} and {one[row]!r}. Give one of the two."
        )
    return column
