"""Base classes of the regressors: predictions and prediction intervals of a fitted model."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from leastwise.estimators import intervals
from leastwise.estimators.base import (
    KernelEstimator,
    dual_coef,
    shared_coef,
    task_coef,
    task_coupling,
    task_novelty_pvalue,
    task_similarity,
)
from leastwise.estimators.docs import documented
from leastwise.fitting.new_rows import raw_scores, read_rows, read_task_rows
from leastwise.problem.targets import check_bounds, in_units
from leastwise.sources.dask import by_partition

Array = np.ndarray


@documented
class Regressor(RegressorMixin, KernelEstimator):
    """Base of the regressors."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @by_partition
    def predict(self, X: Any) -> Array:
        """Predicted values.

        Parameters
        ----------
        %(X.new)s

        Returns
        -------
        ndarray of shape (n,) or (n, n_outputs)
            In the shape of the y of ``fit``.
        """
        return self._shown(self._values(X)[0])

    @by_partition
    def predict_interval(
        self, X: Any, coverage: float = 0.9, method: str = "auto", *, adaptive: bool = True
    ) -> Array:
        """Intervals that contain the target with about this probability, from held-out residuals.

        Parameters
        ----------
        %(X.new)s
        %(coverage)s
        %(method.interval)s
        %(adaptive)s

        Returns
        -------
        ndarray of shape (n, 2) or (n, n_outputs, 2)
            Lower and upper ends; infinite if there are too few rows (or groups) for the coverage, fewer than
            ``coverage / (1 - coverage)``: nine for 0.9. Only the ratios of weights matter, not their sum.

        Notes
        -----
        If ``fit`` was given ``groups``, intervals are for rows of new groups: residuals are those of groups that were
        held out completely, and each group counts once, however many rows it has.

        Residuals of rows on which the hyperparameters were chosen are too small. Therefore they are taken at the
        points of the search that the other rows would have chosen, and multiplied by ``sqrt(n / (n - p))`` for p
        chosen hyperparameters, see ``leastwise.model_selection.objective``; n is the number of groups if there are
        any. The guarantee of jackknife+ is for given hyperparameters.
        """
        return intervals.predict_interval(self, X, None, coverage, method, adaptive)

    def _values(self, X: Any, tasks: Any = None) -> tuple[Array, Any, Array | None]:
        """Predictions in units of ``unit_``, the rows as an array, and the codes of their tasks."""
        check_is_fitted(self)
        X = read_rows(self, X)
        return raw_scores(self, X)[0], X, None

    def _shown(self, F: Array) -> Array:
        """Predictions in the units and the shape of y."""
        return in_units(F, self.unit_, self.offset_, self.flat_, check_bounds(self.bounds))

    def _residuals(self, method: str) -> Any:
        return intervals.residuals_of(self, method)

    unit_: Array
    offset_: Array
    flat_: bool
    bounds: Any


@documented
class TaskRegressor(Regressor):
    """Base of the multi-task regressors; ``predict`` has the docstring of ``Regressor``, with its tasks."""

    dual_coef_ = property(dual_coef)
    coef_ = property(task_coef)
    shared_coef_ = property(shared_coef)
    similarity_ = property(task_similarity)
    coupling_ = property(task_coupling)

    novelty_pvalue = task_novelty_pvalue

    @by_partition
    def predict(self, X: Any, tasks: Any = None) -> Array:
        return self._shown(self._values(X, tasks)[0])

    @by_partition
    def predict_interval(
        self, X: Any, coverage: float = 0.9, method: str = "auto", tasks: Any = None, *, adaptive: bool = True
    ) -> Array:
        """Intervals that contain the target with about this probability, from held-out residuals.

        Parameters
        ----------
        %(X.new_task)s
        %(coverage)s
        %(method.interval)s
        %(tasks.new)s
        %(adaptive)s

        Returns
        -------
        ndarray of shape (n, 2) or (n, n_outputs, 2)
            Lower and upper ends, as in :meth:`leastwise.LSSVR.predict_interval`.

        Notes
        -----
        Intervals of unseen tasks come from tasks that were held out completely. Each task counts once: nine tasks are
        needed for a coverage of 0.9, four for 0.8; with fewer, the ends are infinite. With fewer than three tasks,
        unseen tasks get the intervals of known tasks. For known tasks, each group that was given to ``fit`` counts
        once.
        """
        return intervals.predict_interval(self, X, tasks, coverage, method, adaptive)

    def score(self, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> float:
        """Explained variance (R^2) of the predictions, over all tasks."""
        return float(r2_score(y, self.predict(X, tasks), sample_weight=sample_weight))

    def _values(self, X: Any, tasks: Any = None) -> tuple[Array, Any, Array | None]:
        check_is_fitted(self)
        rows, task = read_task_rows(self, X, tasks)
        return raw_scores(self, rows, task)[0], rows, task

    task_column: Any
    unknown_task: str
