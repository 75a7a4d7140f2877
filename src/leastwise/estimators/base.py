"""Base classes of the estimators: what users call on a fitted model.

An estimator consists of its parameters, its docstring and ``_spec()``, which checks and interprets the parameters.
``fit`` is :func:`leastwise.estimators.fitting.fit` for all of them. Further methods (``plan``, ``influence``,
``fit_stream``, ...) are functions that an estimator takes into its class body.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.calibrators import CalibratedScores
from leastwise.calibration.conformal import Evidence, HeldRows
from leastwise.calibration.prior import Shift, read_prior
from leastwise.estimators import intervals
from leastwise.estimators._html_repr import shows_fit
from leastwise.estimators.docs import documented
from leastwise.estimators.fitting import fit
from leastwise.estimators.predicting import (
    SetOptions,
    evidence_of,
    framed,
    held_rows,
    raw_scores,
    set_output,
    unseen_task_evidence,
)
from leastwise.estimators.spec import Spec
from leastwise.estimators.validation import all_or_nothing, read_numpy_rows, read_rows, read_task_rows
from leastwise.linalg.moments import Moments
from leastwise.problem.kernels import Kernel
from leastwise.problem.targets import check_bounds, in_units
from leastwise.solvers.solve_tasks import DualForm, PrimalForm
from leastwise.sources.bottom_k import Kept
from leastwise.sources.dask import by_partition
from leastwise.utils.arrays import back_like, bring, get_namespace, to_numpy

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


@documented
class Classifier(ClassifierMixin, KernelEstimator):
    """Base of the classifiers."""

    @by_partition
    def scores(self, X: Any) -> Array:
        """Raw scores, before any calibration.

        Parameters
        ----------
        %(X.new)s

        Returns
        -------
        ndarray of shape (n, n_classes)
        """
        return self._calibrated_scores(X).F

    @by_partition
    def in_domain(self, X: Any) -> Array:
        """Domain weight of each row, from 1 (among the training rows) to 0 (far from all of them).

        Parameters
        ----------
        %(X.new)s

        Returns
        -------
        ndarray of shape (n,)
            %(in_domain_ones)s
        """
        return self._calibrated_scores(X).in_domain

    @by_partition
    def decision_function(self, X: Any, *, class_prior: Any = None) -> Any:
        """Values that order the classes as the probabilities do.

        %(decision)s

        Parameters
        ----------
        %(X.new)s
        %(class_prior)s

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
            %(decision_shape)s
        """
        D = self._shifted(self._shift(class_prior), X).decision()
        return D if D.ndim == 1 else self._framed(D, X)

    @by_partition
    def predict_proba(self, X: Any, *, class_prior: Any = None) -> Any:
        """Probability of each class.

        Parameters
        ----------
        %(X.new)s
        %(class_prior)s

        Returns
        -------
        ndarray or frame of shape (n, n_classes)
            The columns follow ``classes_``.
        """
        return self._framed(self._shifted(self._shift(class_prior), X).proba(), X)

    @by_partition
    def predict_log_proba(self, X: Any, *, class_prior: Any = None) -> Any:
        """Logarithm of ``predict_proba``, with the same arguments."""
        return self._framed(logarithm(self._shifted(self._shift(class_prior), X).proba()), X)

    @by_partition
    def predict(self, X: Any, *, class_prior: Any = None) -> Array:
        """Most probable class.

        Parameters
        ----------
        %(X.new)s
        %(class_prior)s

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._named(self._shifted(self._shift(class_prior), X).best())

    @by_partition
    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        method: str = "lac",
        by_class: bool = False,
        allow_empty: bool = False,
        random_state: Any = None,
    ) -> Array:
        """Prediction sets that contain the true class with about this probability, from held-out probabilities.

        See :mod:`leastwise.calibration.conformal` for the guarantees and their conditions.

        Parameters
        ----------
        %(X.new)s
        %(coverage)s
        %(method.set)s
        %(by_class)s
        %(allow_empty)s
        %(random_state.set)s

        Returns
        -------
        ndarray of bool of shape (n, n_classes)
            The columns follow ``classes_``. Sets contain all classes if there are too few held-out rows for the
            coverage.
        """
        flags = {"by_class": by_class, "by_task": False, "allow_empty": allow_empty}
        wanted, evidence = SetOptions.checked(coverage, method, random_state, **flags), self._evidence()
        return wanted.of(to_numpy(self._calibrated_scores(X).proba()), evidence)

    def set_output(self, *, transform: str | None = None) -> Any:
        """Choose the container that ``predict_proba`` and a multi-class ``decision_function`` return.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, default=None
            "default" is an array; the others are frames with one column for each class. None changes nothing.

        Returns
        -------
        self : object
            The estimator.
        """
        return set_output(self, transform)

    # ------------------------------------------- used by wrappers, ONNX and reports

    def _calibrated_scores(self, X: Any) -> CalibratedScores:
        """Scores, domain weight and calibrator of rows, which are validated here."""
        check_is_fitted(self)
        return CalibratedScores(*raw_scores(self, read_rows(self, X)), self.calibrator_)

    def _shifted(self, shift: Shift | None, X: Any) -> CalibratedScores:
        return replace(self._calibrated_scores(X), shift=shift)

    def _shift(self, class_prior: Any) -> Shift | None:
        """From the class shares of the training rows to the given ones; None if none are given."""
        if class_prior is None:
            return None
        check_is_fitted(self)
        new = read_prior(class_prior, self.classes_)
        return Shift(new, self.class_prior_, np.array([0, len(new)]))

    def _named(self, codes: Any) -> Array:
        """Classes of codes; numbers in the array library of the rows, text in numpy."""
        return back_like(self.classes_[to_numpy(codes)], codes)

    def _framed(self, values: Array, X: Any, classes: Any = None) -> Any:
        return framed(self, values, X, classes)

    def _held_rows(self) -> HeldRows:
        return held_rows(self)

    def _evidence(self) -> Evidence:
        return evidence_of(self)

    calibrator_: Any
    classes_: Any
    class_prior_: Any


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


@documented
class TaskClassifier(Classifier):
    """Base of the multi-task classifiers."""

    dual_coef_ = property(dual_coef)
    coef_ = property(task_coef)
    shared_coef_ = property(shared_coef)
    similarity_ = property(task_similarity)
    coupling_ = property(task_coupling)

    novelty_pvalue = task_novelty_pvalue

    @by_partition
    def scores(self, X: Any, tasks: Any = None) -> Array:
        """Raw scores, before any calibration.

        Parameters
        ----------
        %(X.new_task)s
        %(tasks.new)s

        Returns
        -------
        ndarray of shape (n, n_classes)
        """
        return self._calibrated_scores(X, tasks).F

    @by_partition
    def in_domain(self, X: Any, tasks: Any = None) -> Array:
        """Domain weight of each row, from 1 (among the training rows) to 0 (far from all of them).

        The distance is that to the training rows of all tasks.

        Parameters
        ----------
        %(X.new_task)s
        %(tasks.new)s

        Returns
        -------
        ndarray of shape (n,)
            %(in_domain_ones)s
        """
        return self._calibrated_scores(X, tasks).in_domain

    @by_partition
    def decision_function(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Any:
        """Values that order the classes as the probabilities do.

        %(decision)s

        Parameters
        ----------
        %(X.new_task)s
        %(tasks.new)s
        %(class_prior)s
            %(prior_of_tasks)s

        Returns
        -------
        ndarray of shape (n,) or (n, n_classes)
            %(decision_shape)s
        """
        D = self._shifted(self._shift(class_prior), X, tasks).decision()
        return D if D.ndim == 1 else self._framed(D, X)

    @by_partition
    def predict_proba(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Any:
        """Probability of each class.

        Parameters
        ----------
        %(X.new_task)s
        %(tasks.new)s
        %(class_prior)s
            %(prior_of_tasks)s

        Returns
        -------
        ndarray or frame of shape (n, n_classes)
            The columns follow ``classes_``.
        """
        return self._framed(self._shifted(self._shift(class_prior), X, tasks).proba(), X)

    @by_partition
    def predict_log_proba(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Any:
        """Logarithm of ``predict_proba``, with the same arguments."""
        return self._framed(logarithm(self._shifted(self._shift(class_prior), X, tasks).proba()), X)

    @by_partition
    def predict(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Array:
        """Most probable class.

        Parameters
        ----------
        %(X.new_task)s
        %(tasks.new)s
        %(class_prior)s
            %(prior_of_tasks)s

        Returns
        -------
        ndarray of shape (n,)
        """
        return self._named(self._shifted(self._shift(class_prior), X, tasks).best())

    @by_partition
    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        tasks: Any = None,
        method: str = "lac",
        by_class: bool = False,
        by_task: bool = False,
        allow_empty: bool = False,
        random_state: Any = None,
    ) -> Array:
        """Prediction sets that contain the true class with about this probability, from held-out probabilities.

        See :mod:`leastwise.calibration.conformal` for the guarantees and their conditions.

        Parameters
        ----------
        %(X.new_task)s
        %(coverage)s
        %(tasks.new)s
        %(method.set)s
        %(by_class)s
        by_task : bool, default=False
            Whether the coverage should hold within each task. A task has its own threshold if at least
            ``5 / (1 - coverage)`` of its rows were held out (50 for 0.9); smaller tasks have that of all rows.
        %(allow_empty)s
        %(random_state.set)s

        Returns
        -------
        ndarray of bool of shape (n, n_classes)
            The columns follow ``classes_``. Sets of unseen tasks use the scores of tasks that were held out
            completely, each of which counts once: with few tasks, these sets contain all classes. If the model has no
            such scores, those of known tasks are used.
        """
        flags = {"by_class": by_class, "by_task": by_task, "allow_empty": allow_empty}
        wanted = SetOptions.checked(coverage, method, random_state, **flags)
        evidence, unseen = self._evidence(), self._unseen_task_evidence()
        scored = self._calibrated_scores(X, tasks)
        assert scored.task is not None
        return wanted.of_tasks(to_numpy(scored.proba()), scored.task, evidence, unseen)

    def score(self, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> float:
        """Accuracy over the rows of all tasks."""
        right = to_numpy(self.predict(X, tasks)) == np.asarray(bring(y))
        return float(np.average(right, weights=bring(sample_weight)))

    def _calibrated_scores(self, X: Any, tasks: Any = None) -> CalibratedScores:
        check_is_fitted(self)
        rows, task = read_task_rows(self, X, tasks)
        F, in_domain = raw_scores(self, rows, task)
        return CalibratedScores(F, in_domain, self.calibrator_, task < 0, self.unseen_task_calibrator_, task)

    def _shifted(self, shift: Shift | None, X: Any, tasks: Any = None) -> CalibratedScores:
        return replace(self._calibrated_scores(X, tasks), shift=shift)

    def _unseen_task_evidence(self) -> Evidence | None:
        return unseen_task_evidence(self)

    unseen_task_calibrator_: Any
    task_column: Any
    unknown_task: str


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
    """Base of the multi-task regressors."""

    dual_coef_ = property(dual_coef)
    coef_ = property(task_coef)
    shared_coef_ = property(shared_coef)
    similarity_ = property(task_similarity)
    coupling_ = property(task_coupling)

    novelty_pvalue = task_novelty_pvalue

    @by_partition
    def predict(self, X: Any, tasks: Any = None) -> Array:
        """Predicted values.

        Parameters
        ----------
        %(X.new_task)s
        %(tasks.new)s

        Returns
        -------
        ndarray of shape (n,) or (n, n_outputs)
            In the shape of the y of ``fit``.
        """
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


def logarithm(P: Any) -> Any:
    """Logarithm of probabilities in any array library; minus infinity for zero."""
    with np.errstate(divide="ignore"):
        return get_namespace(P).log(P)
