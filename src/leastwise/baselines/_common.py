"""What the peer methods have in common: where the tasks come from, and the kinds of targets."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from leastwise.estimators.validation import check_no_column
from leastwise.problem.tasks import Tasks, as_table, encode_tasks, factor_tasks, list_tasks, split_tasks

Array = np.ndarray


class TaskEstimator(BaseEstimator):
    """Takes the task of every row from ``tasks=`` or from a column of X.

    A subclass has the parameter task_column, and unknown_task if the method can say something about a task that was
    not there in training. Such a task has the code -1.
    """

    #: Whether rows without tasks make sense.
    single: ClassVar[bool] = False

    task_column: Any
    used_: dict[str, Any]
    task_index_: Tasks | None
    tasks_: Array | None

    def _training_rows(self, X: Any, y: Any, tasks: Any) -> tuple[Array, Array, Array]:
        """X without the task column, y, and the codes of the tasks."""
        check_no_column(X, tasks)
        self.used_ = self.get_params(deep=False)  # predictions are those of the fit, whatever is set later
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
        """X without the task column, and the codes of the tasks."""
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
        """The ids of new rows, given in the way in which those of the training rows were."""
        if self.task_index_ is None and tasks is not None:
            raise ValueError(f"This {type(self).__name__} was fitted without tasks: predict without tasks=, too.")
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
                f"The tasks {lost[:5]} were not there in training; known are {self.task_index_.ids[:20]}. "
                + self._hint()
            )
        return codes[index]

    def _hint(self) -> str:
        if hasattr(self, "unknown_task"):
            return "With unknown_task='shared' their rows get what all tasks share."
        return f"{type(self).__name__} has no function that all tasks share: give rows of these tasks to fit, too."

    def _one_way(self, column: Any, tasks: Any, n: int, single: bool | None = None) -> Any:
        """The ids from the column or the argument; both if they agree."""
        if column is None and tasks is None and not (self.single if single is None else single):
            raise ValueError(
                f"{type(self).__name__} does not know which task each row belongs to: give tasks= with an id for "
                "every row, or say with task_column= which column of X holds it."
            )
        if column is not None and tasks is not None and list_tasks(column, n) != list_tasks(tasks, n):
            raise ValueError(
                f"tasks= and the column task_column={self.task_column!r} of X differ: give one of the two."
            )
        return tasks if column is None else column


class TaskRegressor(RegressorMixin, TaskEstimator):
    """Targets are numbers."""

    def _training_numbers(self, X: Any, y: Any, tasks: Any) -> tuple[Array, Array, Array]:
        X, y, codes = self._training_rows(X, y, tasks)
        strange = [value for value in y.tolist() if not isinstance(value, Real)]
        if strange:
            raise ValueError(
                f"y must hold numbers for {type(self).__name__}; it holds {strange[0]!r}. (If y is a class, use a "
                "classifier.)"
            )
        y = y.astype(np.float64)
        if not np.isfinite(y).all():
            raise ValueError(
                f"y holds {int((~np.isfinite(y)).sum())} values that are NaN or inf: leave such rows out."
            )
        return X, y, codes

    def score(self, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> float:
        """R^2, the share of the variance of y over all rows of all tasks that is explained."""
        return float(r2_score(y, self.predict(X, tasks), sample_weight=sample_weight))


class TaskClassifier(ClassifierMixin, TaskEstimator):
    """Targets are classes, the same in all tasks; a task need not have all of them."""

    def _training_classes(self, X: Any, y: Any, tasks: Any) -> tuple[Array, Array, Array]:
        X, y, codes = self._training_rows(X, y, tasks)
        check_classification_targets(y)
        self.classes_, y = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class only, {self.classes_[0]!r}: a classifier needs two classes or more.")
        return X, y, codes

    def score(self, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> float:
        """Share of rows, over all tasks, whose class is right."""
        return float(accuracy_score(y, self.predict(X, tasks), sample_weight=sample_weight))
