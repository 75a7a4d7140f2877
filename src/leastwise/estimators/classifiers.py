"""Base classes of the classifiers: scores, probabilities, decisions and prediction sets of a fitted model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.calibrators import CalibratedScores
from leastwise.calibration.conformal import CalibrationSet, HeldRows
from leastwise.calibration.prior import Shift, read_prior
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
from leastwise.estimators.predicting import (
    SetOptions,
    calibration_set_of,
    framed,
    held_rows,
    set_output,
    unseen_task_calibration_set,
)
from leastwise.fitting.new_rows import raw_scores, read_rows, read_task_rows
from leastwise.sources.dask import by_partition
from leastwise.utils.arrays import back_like, bring, get_namespace, text_objects, to_numpy

Array = np.ndarray


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
        D = self._at_prior(X, class_prior).decision()
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
        return self._framed(self._at_prior(X, class_prior).proba(), X)

    @by_partition
    def predict_log_proba(self, X: Any, *, class_prior: Any = None) -> Any:
        """Logarithm of ``predict_proba``, with the same arguments."""
        return self._framed(logarithm(self._at_prior(X, class_prior).proba()), X)

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
        return self._named(self._at_prior(X, class_prior).best())

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
        wanted, heldout = SetOptions.checked(coverage, method, random_state, **flags), self._calibration_set()
        return wanted.of(to_numpy(self._calibrated_scores(X).proba()), heldout)

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

    def _at_prior(self, X: Any, class_prior: Any, *tasks: Any) -> CalibratedScores:
        """The same for these class shares, and the tasks of the rows if the estimator has tasks."""
        shift = self._shift(class_prior)
        return replace(self._calibrated_scores(X, *tasks), shift=shift)

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

    def _calibration_set(self) -> CalibrationSet:
        return calibration_set_of(self)

    calibrator_: Any
    classes_: Any
    class_prior_: Any


@documented
class TaskClassifier(Classifier):
    """Base of the multi-task classifiers; a method without a docstring has that of ``Classifier``, with its tasks."""

    dual_coef_ = property(dual_coef)
    coef_ = property(task_coef)
    shared_coef_ = property(shared_coef)
    similarity_ = property(task_similarity)
    coupling_ = property(task_coupling)

    novelty_pvalue = task_novelty_pvalue

    @by_partition
    def scores(self, X: Any, tasks: Any = None) -> Array:
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
        D = self._at_prior(X, class_prior, tasks).decision()
        return D if D.ndim == 1 else self._framed(D, X)

    @by_partition
    def predict_proba(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Any:
        return self._framed(self._at_prior(X, class_prior, tasks).proba(), X)

    @by_partition
    def predict_log_proba(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Any:
        return self._framed(logarithm(self._at_prior(X, class_prior, tasks).proba()), X)

    @by_partition
    def predict(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Array:
        return self._named(self._at_prior(X, class_prior, tasks).best())

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
        heldout, unseen = self._calibration_set(), self._unseen_task_calibration_set()
        scored = self._calibrated_scores(X, tasks)
        assert scored.task is not None
        return wanted.of_tasks(to_numpy(scored.proba()), scored.task, heldout, unseen)

    def score(self, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> float:
        """Accuracy over the rows of all tasks."""
        right = to_numpy(self.predict(X, tasks)) == np.asarray(text_objects(bring(y)))
        return float(np.average(right, weights=bring(sample_weight)))

    def _calibrated_scores(self, X: Any, tasks: Any = None) -> CalibratedScores:
        check_is_fitted(self)
        rows, task = read_task_rows(self, X, tasks)
        F, in_domain = raw_scores(self, rows, task)
        return CalibratedScores(F, in_domain, self.calibrator_, task < 0, self.unseen_task_calibrator_, task)

    def _unseen_task_calibration_set(self) -> CalibrationSet | None:
        return unseen_task_calibration_set(self)

    unseen_task_calibrator_: Any
    task_column: Any
    unknown_task: str


def logarithm(P: Any) -> Any:
    """Logarithm of probabilities in any array library; minus infinity for zero."""
    with np.errstate(divide="ignore"):
        return get_namespace(P).log(P)
