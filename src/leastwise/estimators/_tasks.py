"""What estimators of many tasks have in common: where the tasks come from, and predictions that know them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_array, check_is_fitted, check_X_y, validate_data

from leastwise.calibration.calibrators import Calibrator
from leastwise.estimators._base import Answer, KernelClassifier, logarithm
from leastwise.estimators._checks import check_levels, choose, task_penalties
from leastwise.estimators._model import KernelModel
from leastwise.estimators._sets import TaskSets
from leastwise.model_selection.grid import Levels
from leastwise.problem.coupling import Coupling, Shared
from leastwise.problem.tasks import Tasks, as_table, encode_tasks, factor_tasks, list_tasks, split_tasks
from leastwise.solvers.solve_tasks import DualForm, Form, PrimalForm, evaluate_tasks
from leastwise.sources.dask import by_partition
from leastwise.utils.arrays import bring, float_dtypes, here

Array = np.ndarray
CHECKS: dict[str, Any] = {"accept_sparse": "csr", "accept_large_sparse": False}


class TaskModel(KernelModel):
    """Mixin for models of many tasks.

    A subclass has the parameters sharing, task_penalty, task_column and unknown_task, and stores in ``fit``:
    ``form_`` and ``sharing_``.
    """

    #: sharing="auto"
    SHARINGS: ClassVar[tuple[float, ...]] = (0.0, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0)

    # ------------------------------------------------------------- parameters

    def _checked_tasks(self) -> Levels:
        """The parameters that concern tasks checked; the sharings to try."""
        choose("unknown_task", self.unknown_task, ["shared", "error"])
        if isinstance(self.kernel, str) and self.kernel == "precomputed" and self.task_column is not None:
            raise ValueError("kernel='precomputed' has no column to hold the task: give tasks= instead.")
        return check_levels("sharing", self.sharing, self.SHARINGS)

    def _shared(self) -> Coupling:
        """All tasks tied alike, with the penalties that were asked for."""
        return Shared(task_penalties(self.task_penalty, self.task_index_))

    # -------------------------------------------------------------------- fit

    def _validated(self, X: Any, y: Any, tasks: Any) -> tuple[Any, Array, Array | None]:
        """X without the task column and y as arrays, and the codes of the tasks."""
        dtypes = [np.float64, np.float32]
        check_no_column(X, tasks)
        if self.task_column is None:
            X, y = validate_data(self, X, y, dtype=dtypes, **CHECKS, **self.TARGET_CHECKS)
            column = None
        else:
            whole = X
            X, column = split_tasks(whole, self.task_column)
            validate_data(self, whole, y, skip_check_array=True)
            X, y = check_X_y(X, y, dtype=dtypes, estimator=self, **CHECKS, **self.TARGET_CHECKS)
        codes, self.task_index_ = encode_tasks(_one_way(column, tasks, X.shape[0], self), X.shape[0])
        self.tasks_ = self.task_index_.as_array()
        return X, y, codes

    def _used_tasks(self, task: Array, used: Array) -> Array:
        """A task whose rows all have weight zero is not known: its rows get the code -1."""
        present = np.unique(task[used])
        if len(present) < len(self.task_index_):
            place = np.full(len(self.task_index_), -1)
            place[present] = np.arange(len(present))
            task = place[task]
            self.task_index_ = self.task_index_.only(present)
            self.tasks_ = self.task_index_.as_array()
        return task

    # ---------------------------------------------------------------- predict

    def _task_scores(self, X: Any, tasks: Any) -> tuple[Array, Array, Array]:
        """Scores, trust and codes of the tasks, for rows that are not validated yet."""
        check_is_fitted(self)
        X, task, _ = self._met_rows(X, tasks)
        return *self._scores(X, task), task

    def _met_rows(self, X: Any, tasks: Any) -> tuple[Any, Array, list]:
        """Rows as an array, codes of their tasks, and the ids that are not known, which are refused or welcome."""
        X, task, strangers = self._validated_rows(X, tasks)
        if strangers:
            self._meet(strangers, int(np.sum(task < 0)))
        return X, task, strangers

    def _meet(self, strangers: list, rows: int) -> None:
        """Refuse ids that are not known, or warn where they look like known ones of another type."""
        names = ", ".join(map(repr, strangers[:5]))
        if self.unknown_task == "error":
            raise ValueError(
                f"{rows} rows belong to tasks that were not there in training, such as {names}. Known are "
                f"{self.tasks_.tolist()[:20]}. With unknown_task='shared' such rows get what all tasks share."
            )
        known = {str(name) for name in self.task_index_.ids}
        alike = next((name for name in strangers if str(name) in known), None)
        if alike is not None:
            warnings.warn(
                f"Task {alike!r} of type {type(alike).__name__} is not known, but one of another type that looks the "
                "same is: give ids of the type that they had in training. These rows get what all tasks share.",
                UserWarning,
                stacklevel=4,
            )

    def _validated_rows(self, X: Any, tasks: Any) -> tuple[Any, Array, list]:
        """X without the task column as an array, the codes of the tasks, and the ids that are not known."""
        dtypes, tasks = float_dtypes(X, self.intercept_.dtype), bring(tasks)
        if self.task_column is None:
            X, column = validate_data(self, X, reset=False, dtype=dtypes, **CHECKS), None
        else:
            whole, dtypes = as_table(bring(X)), [self.intercept_.dtype]
            validate_data(self, whole, reset=False, skip_check_array=True)
            X, column = split_tasks(whole, self.task_column)
            X = check_array(X, dtype=dtypes, estimator=self, input_name="X", **CHECKS)
        if isinstance(tasks, tuple) and tasks in self.task_index_:  # an id, not a sequence of ids
            tasks = [tasks] * X.shape[0]
        names, index = factor_tasks(_one_way(column, tasks, X.shape[0], self), X.shape[0])
        codes = self.task_index_.codes(names)
        return X, codes[index], [name for name, code in zip(names, codes, strict=True) if code < 0]

    def familiarity(self, X: Any, tasks: Any = None) -> Array:
        """How near rows are to the training rows of any task; see :meth:`leastwise.LSPC.familiarity`.

        ``tasks`` make no difference, and need not be given.
        """
        return super().familiarity(X)

    def _measured_rows(self, X: Any) -> Any:
        if self.task_column is None:
            return super()._measured_rows(X)
        whole = as_table(bring(X))
        validate_data(self, whole, reset=False, skip_check_array=True)
        dtypes = [self.intercept_.dtype]
        return check_array(split_tasks(whole, self.task_column)[0], dtype=dtypes, estimator=self, **CHECKS)

    def _intercepts(self, task: Array | None) -> Array:
        own = getattr(self, "task_intercept_", None)
        return self.intercept_ if own is None or task is None else np.vstack([own, self.intercept_])[task]

    def _evaluate(self, X: Any, task: Array | None) -> tuple[Array, Array]:
        assert task is not None
        rows = getattr(self, "center_indices_", None)
        return evaluate_tasks(self.kernel_, self.sigma_, X, task, getattr(self, "centers_", None), rows, self.form_)

    @property
    def dual_coef_(self) -> Array:
        """One coefficient for every row (n x c), where the kernel is the Gram matrix."""
        return self._form(DualForm).A

    @property
    def coef_(self) -> Array:
        """Coefficients on the centres for every task (T x b x c), where it is not."""
        return self._form(PrimalForm).coef[:-1]

    @property
    def shared_coef_(self) -> Array:
        """Coefficients on the centres (b x c) for a task that is not known."""
        return self._form(PrimalForm).coef[-1]

    def _form(self, kind: type) -> Any:
        form = vars(self).get("form_")
        if not isinstance(form, kind):
            raise AttributeError(f"This {type(self).__name__} has no coefficients of that kind.")
        return form

    sharing: Any
    task_penalty: Any
    task_column: Any
    unknown_task: str
    kernel: Any
    form_: Form
    task_index_: Tasks
    tasks_: Array
    sharing_: float


class TaskClassifier(TaskModel, TaskSets, KernelClassifier):
    """Mixin for classifiers of many tasks; a subclass stores ``stranger_calibrator_`` too."""

    def _labels(self, data: Any) -> Array:
        return data.classes[data.rows.y]

    def _compared(self, data: Any) -> Array:
        return np.eye(len(data.classes))[data.rows.y]

    def _answer(self, X: Any, tasks: Any = None) -> Answer:
        F, trust, task = self._task_scores(X, tasks)
        return Answer(F, trust, self.calibrator_, task < 0, self.stranger_calibrator_, task)

    def _asked(self, X: Any, class_prior: Any, tasks: Any = None) -> Answer:
        shift = self._shift(class_prior)
        return replace(self._answer(X, tasks), shift=shift)

    def _heldout_answer(self, F: Array, trust: Array, data: Any) -> Answer:
        return Answer(F, trust, self.calibrator_, data.task < 0, self.stranger_calibrator_)

    @by_partition
    def scores(self, X: Any, tasks: Any = None) -> Array:
        """Raw scores, before any calibration.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows, with the task column if there is one; with ``kernel="precomputed"`` the kernel between them and all
            training rows.
        tasks : array-like of shape (n,) or a single id, optional
            The tasks of the rows, where X does not hold them.

        Returns
        -------
        ndarray of shape (n, n_classes)
        """
        return self._answer(X, tasks).F

    @by_partition
    def trust(self, X: Any, tasks: Any = None) -> Array:
        """How far the scores of each row are to be believed, from 1 (among the training rows) to 0 (far from all).

        The distance to the training rows of all tasks counts, whatever the task. See :class:`leastwise.LSPC`.
        """
        return self._answer(X, tasks).trust

    @by_partition
    def decision_function(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Any:
        """Values that order the classes as the probabilities do; see :class:`leastwise.LSPC`.

        Returns
        -------
        ndarray of shape (n,) with two classes (second minus first), else (n, n_classes)
        """
        D = self._asked(X, class_prior, tasks).decision()
        return D if D.ndim == 1 else self._framed(D, X)

    @by_partition
    def predict_proba(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Any:
        """Probability of every class, of shape (n, n_classes); the columns follow ``classes_``.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
        tasks : array-like of shape (n,) or a single id, optional
            The tasks of the rows, where X does not hold them.
        class_prior : mapping, Series, array-like of shape (n_classes,) or "uniform", optional
            Class shares where the model is used; see :meth:`leastwise.LSPC.predict_proba`. They replace those of all
            training rows (``class_prior_``), whatever the task.
        """
        return self._framed(self._asked(X, class_prior, tasks).proba(), X)

    @by_partition
    def predict_log_proba(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Any:
        """Logarithm of ``predict_proba``."""
        with np.errstate(divide="ignore"):
            return self._framed(logarithm(self._asked(X, class_prior, tasks).proba()), X)

    @by_partition
    def predict(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Array:
        """The most probable class; ``tasks`` and ``class_prior`` as in ``predict_proba``."""
        return self._decided(self._asked(X, class_prior, tasks))

    def score(self, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> float:
        """Share of rows, over all tasks, whose most probable class is the true one."""
        right = here(self.predict(X, tasks)) == np.asarray(bring(y))
        return float(np.average(right, weights=bring(sample_weight)))

    stranger_calibrator_: Calibrator | None


def check_no_column(X: Any, tasks: Any) -> None:
    """A single id that is the name of a column is a slip."""
    if isinstance(tasks, str) and tasks in list(getattr(X, "columns", [])):
        raise ValueError(
            f"tasks={tasks!r} would be one task for all rows, and X has a column of that name: say "
            f"task_column={tasks!r} when the model is made, or give tasks=X[{tasks!r}] and X without that column."
        )


def _one_way(column: Any, tasks: Any, n: int, estimator: TaskModel) -> Any:
    """The ids of the tasks, from the column or the argument; both if they agree."""
    name = type(estimator).__name__
    if column is None and tasks is None:
        raise ValueError(
            f"{name} does not know which task each row belongs to: give tasks= with an id for every row, or say with "
            f"task_column= which column of X holds it. (Without tasks, use {name.removeprefix('MultiTask')}.)"
        )
    if column is None or tasks is None:
        return tasks if column is None else column
    one, other = list_tasks(column, n), list_tasks(tasks, n)
    if one != other:
        row = next(i for i, (a, b) in enumerate(zip(one, other, strict=True)) if a != b)
        raise ValueError(
            f"tasks= and the column task_column={estimator.task_column!r} of X differ, first in row {row}: "
            f"{other[row]!r} and {one[row]!r}. Give one of the two."
        )
    return column
