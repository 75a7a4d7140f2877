"""Base classes of the estimators: what users call on a fitted model.

An estimator consists of its parameters, its docstring and ``_spec()``, which checks and interprets the parameters.
``fit`` is :func:`leastwise.fitting.fit.fit` for all of them. Further methods (``plan``, ``influence``,
``fit_stream``, ...) are functions that an estimator takes into its class body.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from leastwise.estimators._html_repr import shows_fit
from leastwise.estimators.docs import documented
from leastwise.fitting.fit import fit
from leastwise.fitting.new_rows import read_numpy_rows
from leastwise.fitting.spec import Spec
from leastwise.linalg.moments import Moments
from leastwise.problem.kernels import Kernel
from leastwise.solvers.solve_tasks import DualForm, PrimalForm
from leastwise.sources.bottom_k import Kept
from leastwise.sources.dask import by_partition
from leastwise.utils.atomic_fit import all_or_nothing

Array = np.ndarray


@shows_fit
@documented
class KernelEstimator(BaseEstimator):
    """Base of all estimators."""

    def _spec(self) -> Spec:
        """The checked parameters."""
        raise NotImplementedError

    @all_or_nothing
    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any, tasks: Any = None) -> Any:
        return fit(self, self._spec(), X, y, sample_weight, groups, tasks)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = isinstance(self.kernel, str) and self.kernel != "precomputed"
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags

    @by_partition
    def novelty_pvalue(self, X: Any) -> Array:
        """Share of training rows that are at least as far from their nearest neighbour as each row is: a p-value.

        About 5% of new rows from the distribution of the training rows have a value of 0.05 or less. So
        ``novelty_pvalue(X) <= 0.05`` marks rows that are far from the data, with 5% false alarms. See
        :mod:`leastwise.calibration.extrapolation`.

        Parameters
        ----------
        %(X.new)s

        Returns
        -------
        ndarray of shape (n,)
            From ``1 / (n_training_rows + 1)`` (farther than all training rows) to 1 (equal to a training row).
            Distances are measured to at most 2,000 training rows, and compared with those of 1,000.
        """
        return self._novelty_pvalue(X)

    def _novelty_pvalue(self, X: Any) -> Array:
        check_is_fitted(self)
        known = vars(self).get("neighbourhood_")
        if known is None:
            raise ValueError(
                "novelty_pvalue() measures distances between rows, which this model does not have: it has "
                "kernel='precomputed', was fitted with keep_rows=0, or comes from a file that was saved with "
                "keep='predict'."
            )
        return known.novelty_pvalue(read_numpy_rows(self, X), vars(self).get("centers_"))

    kernel: Any
    cv: Any
    kernel_: Kernel
    sigma_: float
    alpha_: float
    centers_: Any
    coef_: Any
    intercept_: Array
    moments_: Moments
    kept_: Kept | None


# Coefficients of a model of many tasks, in the form in which they were solved for.


def dual_coef(model: Any) -> Array:
    """One coefficient for each row (n x c), if the system was solved in the dual."""
    return _form(model, DualForm).A


def task_coef(model: Any) -> Array:
    """Coefficients of the centres for each task (T x b x c), if it was not solved in the dual."""
    return _form(model, PrimalForm).coef[:-1]


def shared_coef(model: Any) -> Array:
    """Coefficients of the centres (b x c) for unseen tasks."""
    return _form(model, PrimalForm).coef[-1]


def task_similarity(model: Any) -> Array:
    """Similarities of the tasks, of shape (T, T); ones if all are equally similar."""
    check_is_fitted(model)
    S, T = model.relation_.similarity, len(model.tasks_)
    return np.ones((T, T)) if S is None else S


def task_coupling(model: Any) -> Array:
    """The task matrix B at ``sharing_``, of shape (T, T)."""
    check_is_fitted(model)
    return model.coupling_matrix_.matrix


def _form(model: Any, kind: type) -> Any:
    form = vars(model).get("form_")
    if not isinstance(form, kind):
        raise AttributeError(f"This {type(model).__name__} has no coefficients of that kind.")
    return form


def task_novelty_pvalue(self: KernelEstimator, X: Any, tasks: Any = None) -> Array:
    """Closeness of rows to the training rows of any task; see :meth:`leastwise.LSPC.novelty_pvalue`.

    ``tasks`` have no effect and may be omitted.
    """
    return self._novelty_pvalue(X)
