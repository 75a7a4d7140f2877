"""Base classes of the baselines: validation of parameters, tasks, targets and labels."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from leastwise.fitting.dataset import check_no_column
from leastwise.problem.kernels import RBF, Kernel, Linear
from leastwise.problem.tasks import Tasks, as_table, encode_tasks, factor_tasks, list_tasks, split_tasks
from leastwise.utils.resources import available_memory, human

Array = np.ndarray
KERNELS: dict[str, Kernel] = {"linear": Linear(), "rbf": RBF()}


def number(name: str, value: Any, *, zero: bool = False) -> float:
    """Return a parameter that must be finite and positive, or with ``zero`` non-negative."""
    real = isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(float(value))
    if not real or float(value) < 0 or (float(value) == 0 and not zero):
        raise ValueError(f"{name}={value!r} must be finite and {'non-negative' if zero else 'positive'}.")
    return float(value)


def count(name: str, value: Any) -> int:
    """Return a parameter that must be a positive integer."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r} must be an integer of at least 1.")
    return int(value)


def kernel_matrix(kernel: str, sigma: float, X: Array, Y: Array) -> Array:
    """k(x, y) for all rows x of X and y of Y."""
    return KERNELS[kernel](X, Y, sigma)


def check_gram(n: int, arrays: int, what: str = "kernel matrix") -> None:
    """Raise MemoryError before allocating matrices of all pairs of n rows that do not fit in memory."""
    need, have = 8 * arrays * n * n, available_memory()
    if need > have:
        raise MemoryError(
            f"{n} rows need about {human(need)} for their {what}; {human(have)} is available. Give at most "
            f"about {int(np.sqrt(have / (8 * arrays)))} rows. (Set LEASTWISE_MEMORY to change the limit.)"
        )


class TaskEstimator(BaseEstimator):
    """Takes the task of every row from ``tasks=`` or from a column of X.

    Subclasses have the parameter task_column, and unknown_task if the method can predict tasks that are not in the
    training data. Such a task has the code -1.
    """

    #: True if the method also works without tasks.
    single: ClassVar[bool] = False

    task_column: Any
    used_: dict[str, Any]
    task_index_: Tasks | None
    tasks_: Array | None

    def _training_rows(self, X: Any, y: Any, tasks: Any) -> tuple[Array, Array, Array]:
        """Validate; return X without the task column, y, and the task codes."""
        check_no_column(X, tasks)
        self.used_ = self.get_params(deep=False)  # set_params after the fit does not change predictions
        if self.task_column is None:
            X, y = validate_data(self, X, y, dtype=np.float64)
            column = None
        else:
            validate_data(self, X, y, skip_check_array=True)
            X, column = split_tasks(X, self.task_column)
            X, y = check_X_y(X, y, dtype=np.float64, estimator=self)
        ids = self._one_way(column, tasks, len(X))
        self.task_index_ = self.tasks_ = None
        if ids is None:
            return X, y, np.zeros(len(X), dtype=np.intp)
        codes, self.task_index_ = encode_tasks(ids, len(X))
        self.tasks_ = self.task_index_.as_array()
        return X, y, codes

    def _new_rows(self, X: Any, tasks: Any) -> tuple[Array, Array]:
        """Validate; return X without the task column, and the task codes."""
        check_is_fitted(self)
        if self.task_column is None:
            X, column = validate_data(self, X, reset=False, dtype=np.float64), None
        else:
            whole = as_table(X)
            validate_data(self, whole, reset=False, skip_check_array=True)
            X, column = split_tasks(whole, self.task_column)
            X = check_array(X, dtype=np.float64, estimator=self, input_name="X")
        return X, self._known(self._given(column, tasks, len(X)), len(X))

    def _given(self, column: Any, tasks: Any, n: int) -> Any:
        """Task ids of new rows, which must be given if and only if they were given to fit."""
        if self.task_index_ is None and tasks is not None:
            raise ValueError(f"This {type(self).__name__} was fitted without tasks: omit tasks=.")
        if self.task_index_ is not None and isinstance(tasks, tuple) and tasks in self.task_index_:
            tasks = [tasks] * n  # an id, not a sequence of ids
        return None if self.task_index_ is None else self._one_way(column, tasks, n, single=False)

    def _known(self, ids: Any, n: int) -> Array:
        if self.task_index_ is None:
            return np.zeros(n, dtype=np.intp)
        names, index = factor_tasks(ids, n)
        codes = self.task_index_.codes(names)
        if (codes < 0).any() and getattr(self, "unknown_task", "error") == "error":
            lost = [name for name, code in zip(names, codes, strict=True) if code < 0]
            raise ValueError(
                f"The tasks {lost[:5]} are not in the training data, which has {self.task_index_.ids[:20]}. "
                + self._hint()
            )
        return codes[index]

    def _hint(self) -> str:
        if hasattr(self, "unknown_task"):
            return "unknown_task='shared' predicts their rows by the part that all tasks share."
        return f"{type(self).__name__} has no part that all tasks share: give rows of these tasks to fit."

    def _one_way(self, column: Any, tasks: Any, n: int, single: bool | None = None) -> Any:
        """Task ids from the column or the argument; if both are given they must agree."""
        if column is None and tasks is None and not (self.single if single is None else single):
            raise ValueError(
                f"{type(self).__name__} needs the task of every row: give tasks= with one id for each row, or set "
                "task_column= to the column of X that contains it."
            )
        if column is not None and tasks is not None and list_tasks(column, n) != list_tasks(tasks, n):
            raise ValueError(
                f"tasks= and the column task_column={self.task_column!r} of X differ: give one of the two."
            )
        return tasks if column is None else column


class TaskRegressor(RegressorMixin, TaskEstimator):
    """Base class for regression."""

    def _training_numbers(self, X: Any, y: Any, tasks: Any) -> tuple[Array, Array, Array]:
        X, y, codes = self._training_rows(X, y, tasks)
        unseen = [value for value in y.tolist() if not isinstance(value, Real)]
        if unseen:
            raise ValueError(
                f"y must be numeric for {type(self).__name__}; it contains {unseen[0]!r}. (For classes, use a "
                "classifier.)"
            )
        y = y.astype(np.float64)
        if not np.isfinite(y).all():
            raise ValueError(
                f"y contains {int((~np.isfinite(y)).sum())} values that are NaN or infinite: remove these rows."
            )
        return X, y, codes

    def score(self, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> float:
        """R^2 over the rows of all tasks."""
        return float(r2_score(y, self.predict(X, tasks), sample_weight=sample_weight))


class TaskClassifier(ClassifierMixin, TaskEstimator):
    """Base class for classification: the classes are common to all tasks; a task may lack some of them."""

    def _training_classes(self, X: Any, y: Any, tasks: Any) -> tuple[Array, Array, Array]:
        X, y, codes = self._training_rows(X, y, tasks)
        check_classification_targets(y)
        self.classes_, y = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"y contains one class only, {self.classes_[0]!r}: a classifier needs at least two classes."
            )
        return X, y, codes

    def score(self, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> float:
        """Accuracy over the rows of all tasks."""
        return float(accuracy_score(y, self.predict(X, tasks), sample_weight=sample_weight))


def check_labels(y: Any, n: int) -> Array:
    """Validate the labels of n rows; return a boolean array of shape (n, T)."""
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: give an array of 0 and 1, one column for each label."
        )
    table = y.toarray() if sparse.issparse(y) else _as_array(y)
    if table.ndim != 2 or table.shape[1] == 0:
        raise ValueError(
            f"y has shape {table.shape}; it must be of shape (rows, labels) with at least one column. For one "
            "label give y.reshape(-1, 1); for lists of labels use sklearn.preprocessing.MultiLabelBinarizer first."
        )
    if len(table) != n:
        raise ValueError(f"X has {n} rows and y has {len(table)}: they must have the same number of rows.")
    if table.dtype.kind not in "biuf":
        unseen = [value for value in table.ravel().tolist() if not isinstance(value, Real)]
        if unseen:
            raise ValueError(f"y contains {unseen[0]!r}; its values must be 0 or 1 (or False and True).")
    values = table.astype(np.float64)
    missing = int(np.isnan(values).sum())
    if missing:
        raise ValueError(f"y contains {missing} NaN values: remove these rows, or set the values to 0 or 1.")
    unseen = np.unique(values[(values != 0) & (values != 1)]).tolist()
    if unseen:
        hint = " For -1 and 1 give y > 0." if unseen == [-1.0] else ""
        raise ValueError(f"y contains {unseen[:5]}; its values must be 0 or 1 (or False and True).{hint}")
    return values == 1


def _as_array(y: Any) -> Array:
    try:
        return np.asarray(y)
    except ValueError:
        raise ValueError(
            "y has rows of different lengths; it must be an array of 0 and 1, one column for each label. "
            "sklearn.preprocessing.MultiLabelBinarizer converts lists of labels."
        ) from None


class LabelClassifier(ClassifierMixin, MultiOutputMixin, BaseEstimator):
    """Base class for multi-label classification: a row can have any number of labels."""

    #: True if X may be a sparse matrix.
    sparse_rows: ClassVar[bool] = False

    classes_: list[Array]
    n_labels_: int

    def _training_rows(self, X: Any, y: Any) -> tuple[Any, Array]:
        """Validate; return X as floats, and the labels as a boolean array."""
        X = validate_data(self, X, dtype=np.float64, accept_sparse="csr" if self.sparse_rows else False)
        Y = check_labels(y, X.shape[0])
        self.n_labels_ = Y.shape[1]
        self.classes_ = [np.array([0, 1])] * self.n_labels_
        return X, Y

    def _new_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        accept = "csr" if self.sparse_rows else False
        return validate_data(self, X, reset=False, dtype=np.float64, accept_sparse=accept)

    def predict(self, X: Any) -> Array:
        """Labels of the rows, 0 or 1, of shape (n, T)."""
        raise NotImplementedError

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Subset accuracy: fraction of rows with all labels correct."""
        predicted = self.predict(X)
        truth = check_labels(y, len(predicted))
        if truth.shape[1] != self.n_labels_:
            raise ValueError(
                f"y has {truth.shape[1]} labels; this {type(self).__name__} was fitted with {self.n_labels_}."
            )
        return float(np.average((predicted == truth).all(axis=1), weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.sparse_rows
        tags.target_tags.single_output = False
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        return tags
