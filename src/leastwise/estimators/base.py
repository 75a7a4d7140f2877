"""Base classes of the estimators: what users call on a fitted model.

An estimator is its parameters, its docstring and ``_spec()``, which says what the parameters ask for. ``fit`` is
:func:`leastwise.estimators.fitting.fit` for all of them. Further methods (``plan``, ``influence``, ``fit_stream``,
...) are functions that an estimator takes into its class body.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.heldout_rows import Evidence, HeldRows
from leastwise.calibration.prior import Shift, read_prior
from leastwise.estimators import intervals
from leastwise.estimators._html_repr import FittedRepr
from leastwise.estimators.fitting import fit
from leastwise.estimators.predicting import Answer, framed, raw_scores, set_output
from leastwise.estimators.sets import SetOptions, evidence_of, held_rows, unseen_task_evidence
from leastwise.estimators.spec import Spec
from leastwise.estimators.validation import all_or_nothing, read_numpy_rows, read_rows, read_task_rows
from leastwise.problem.targets import in_units
from leastwise.solvers.solve_tasks import DualForm, PrimalForm
from leastwise.sources.dask import by_partition
from leastwise.utils.arrays import back_like, bring, get_namespace, to_numpy

Array = np.ndarray


class KernelEstimator(FittedRepr, BaseEstimator):
    """Base of all kernel models."""

    def _spec(self) -> Spec:
        """What the parameters ask for."""
        raise NotImplementedError

    @all_or_nothing
    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any, tasks: Any = None) -> Any:
        return fit(self, self._spec(), X, y, sample_weight, groups, tasks)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags

    @by_partition
    def familiarity(self, X: Any) -> Array:
        """The share of training rows that were, held out, at least as far from the nearest other one as each row.

        Of new rows like the training rows about 5 in 100 are at or below 0.05, so that ``familiarity(X) <= 0.05``
        marks rows that are far from the data, with 5 false alarms in 100. See
        :mod:`leastwise.calibration.extrapolation`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n,)
            From ``1 / (n_training_rows + 1)`` (further than all) to 1 (training rows themselves). Distances are
            measured to 2,000 training rows at most, and judged by those of 1,000.
        """
        return self._familiarity(X)

    def _familiarity(self, X: Any) -> Array:
        check_is_fitted(self)
        known = vars(self).get("neighbourhood_")
        if known is None:
            raise ValueError(
                "familiarity() measures distances between rows, which this model does not have: it has "
                "kernel='precomputed', was fitted with keep_rows=0, or comes from a file that was saved with "
                "keep='predict'."
            )
        return known.familiarity(read_numpy_rows(self, X), vars(self).get("centers_"))

    kernel: Any
    cv: Any


class Classifier(ClassifierMixin, KernelEstimator):
    """Base of the classifiers."""

    @by_partition
    def scores(self, X: Any) -> Array:
        """Raw scores, before any calibration.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
            Rows; with ``kernel="precomputed"`` the kernel between them and all training rows.

        Returns
        -------
        ndarray of shape (n, n_classes)
        """
        return self._answer(X).F

    @by_partition
    def trust(self, X: Any) -> Array:
        """How far the scores of each row are to be believed, from 1 (among the training rows) to 0 (far from all).

        Returns
        -------
        ndarray of shape (n,)
            Ones where the model makes no difference: without calibration, with ``extrapolate=True``, and for kernels
            that are not functions of a distance.
        """
        return self._answer(X).trust

    @by_partition
    def decision_function(self, X: Any, *, class_prior: Any = None) -> Any:
        """Values that order the classes as the probabilities do.

        Log-probabilities up to a constant per row where the model is calibrated by a smooth family; the
        probabilities themselves with ``calibration="isotonic"`` and ``None``. Log-probabilities with ``class_prior``.

        Returns
        -------
        ndarray of shape (n,) with two classes (second minus first), else (n, n_classes)
        """
        D = self._shifted(self._shift(class_prior), X).decision()
        return D if D.ndim == 1 else self._framed(D, X)

    @by_partition
    def predict_proba(self, X: Any, *, class_prior: Any = None) -> Any:
        """Probability of every class, of shape (n, n_classes); the columns follow ``classes_``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
        class_prior : mapping, Series, array-like of shape (n_classes,) or "uniform", optional
            Class shares where the model is used, if they differ from those that it was trained on
            (``class_prior_``): a mapping of classes to shares, or an array in the order of ``classes_``. See
            :mod:`leastwise.calibration.prior`, and :func:`leastwise.estimate_class_prior` for shares that are not
            known.
        """
        return self._framed(self._shifted(self._shift(class_prior), X).proba(), X)

    @by_partition
    def predict_log_proba(self, X: Any, *, class_prior: Any = None) -> Any:
        """Logarithm of ``predict_proba``."""
        return self._framed(logarithm(self._shifted(self._shift(class_prior), X).proba()), X)

    @by_partition
    def predict(self, X: Any, *, class_prior: Any = None) -> Array:
        """The most probable class; ``class_prior`` as in ``predict_proba``."""
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
        """Sets of classes that hold the true one with about this probability, from held-out probabilities.

        See :mod:`leastwise.calibration.conformal` for what is guaranteed, and when.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
        coverage : float, default=0.9
            Above 0 and below 1.
        method : {"lac", "aps", "random-aps"}, default="lac"
            "lac" makes the smallest sets; "aps" makes sets that grow with how hard a row is; "random-aps" is the same
            with chance in it.
        by_class : bool, default=False
            Whether the coverage is to hold for the rows of each class. A class with too few rows for that is in all
            sets.
        allow_empty : bool, default=False
            Whether a set may be empty: the row is then unlike all classes. Otherwise it holds the most probable one.
        random_state : int, RandomState or None, default=None
            For "random-aps".

        Returns
        -------
        ndarray of bool of shape (n, n_classes)
            The columns follow ``classes_``. All classes where there are too few held-out rows for that coverage.
        """
        flags = {"by_class": by_class, "by_task": False, "allow_empty": allow_empty}
        wanted, evidence = SetOptions.checked(coverage, method, random_state, **flags), self._evidence()
        return wanted.of(to_numpy(self._answer(X).proba()), evidence)

    def set_output(self, *, transform: str | None = None) -> Any:
        """Choose what ``predict_proba`` and a multi-class ``decision_function`` return.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"}, optional
            Arrays, or a frame with one column per class (the word is scikit-learn's). None changes nothing.
        """
        return set_output(self, transform)

    # ------------------------------------------- used by wrappers, ONNX and reports

    def _answer(self, X: Any) -> Answer:
        """Scores, trust and calibrator for rows that are not validated yet."""
        check_is_fitted(self)
        return Answer(*raw_scores(self, read_rows(self, X)), self.calibrator_)

    def _shifted(self, shift: Shift | None, X: Any) -> Answer:
        return replace(self._answer(X), shift=shift)

    def _shift(self, class_prior: Any) -> Shift | None:
        """From the class shares of the training rows to those that were asked for; None where none were."""
        if class_prior is None:
            return None
        check_is_fitted(self)
        new = read_prior(class_prior, self.classes_)
        return Shift(new, self.class_prior_, np.array([0, len(new)]))

    def _named(self, codes: Any) -> Array:
        """Classes by their codes; numbers in the library of the rows, text in numpy."""
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
    intercept_: Array


class TaskCoefficients:
    """Coefficients of a model of many tasks, by the form that its solver gave them."""

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

    @property
    def similarity_(self) -> Array:
        """Similarities of the tasks, of shape (T, T); ones where all are alike."""
        check_is_fitted(self)
        S = self.relation_.similarity  # type: ignore[attr-defined]
        T = len(self.tasks_)  # type: ignore[attr-defined]
        return np.ones((T, T)) if S is None else S

    @property
    def coupling_(self) -> Array:
        """The task matrix B at ``sharing_``, of shape (T, T)."""
        check_is_fitted(self)
        return self.tie_.matrix  # type: ignore[attr-defined]

    def _form(self, kind: type) -> Any:
        form = vars(self).get("form_")
        if not isinstance(form, kind):
            raise AttributeError(f"This {type(self).__name__} has no coefficients of that kind.")
        return form

    def familiarity(self, X: Any, tasks: Any = None) -> Array:
        """How near rows are to the training rows of any task; see :meth:`leastwise.LSPC.familiarity`.

        ``tasks`` make no difference, and need not be given.
        """
        return super().familiarity(X)  # type: ignore[misc]


class TaskClassifier(TaskCoefficients, Classifier):
    """Base of the classifiers of many tasks."""

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
        D = self._shifted(self._shift(class_prior), X, tasks).decision()
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
        return self._framed(self._shifted(self._shift(class_prior), X, tasks).proba(), X)

    @by_partition
    def predict_log_proba(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Any:
        """Logarithm of ``predict_proba``."""
        return self._framed(logarithm(self._shifted(self._shift(class_prior), X, tasks).proba()), X)

    @by_partition
    def predict(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Array:
        """The most probable class; ``tasks`` and ``class_prior`` as in ``predict_proba``."""
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
        """Sets of classes that hold the true one with about this probability; see :meth:`leastwise.LSPC.predict_set`.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
        coverage : float, default=0.9
        tasks : array-like of shape (n,) or a single id, optional
            The tasks of the rows, where X does not hold them.
        method, by_class, allow_empty, random_state
            As in :meth:`leastwise.LSPC.predict_set`.
        by_task : bool, default=False
            Whether the coverage is to hold for the rows of each task. A task has a level of its own where at least
            ``5 / (1 - coverage)`` of its rows were held out (50 for 0.9); smaller tasks have that of all rows.

        Returns
        -------
        ndarray of bool of shape (n, n_classes)
            Rows of tasks that are not known get sets by the scores of tasks that were held out whole, each of which
            counts once: with few tasks these sets hold all classes. Where the model has no such scores they are
            as those of the known tasks.
        """
        flags = {"by_class": by_class, "by_task": by_task, "allow_empty": allow_empty}
        wanted = SetOptions.checked(coverage, method, random_state, **flags)
        evidence, unseen = self._evidence(), self._unseen_task_evidence()
        answer = self._answer(X, tasks)
        assert answer.task is not None
        return wanted.of_tasks(to_numpy(answer.proba()), answer.task, evidence, unseen)

    def score(self, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> float:
        """Share of rows, over all tasks, whose most probable class is the true one."""
        right = to_numpy(self.predict(X, tasks)) == np.asarray(bring(y))
        return float(np.average(right, weights=bring(sample_weight)))

    def _answer(self, X: Any, tasks: Any = None) -> Answer:
        check_is_fitted(self)
        rows, task = read_task_rows(self, X, tasks)
        F, trust = raw_scores(self, rows, task)
        return Answer(F, trust, self.calibrator_, task < 0, self.unseen_task_calibrator_, task)

    def _shifted(self, shift: Shift | None, X: Any, tasks: Any = None) -> Answer:
        return replace(self._answer(X, tasks), shift=shift)

    def _unseen_task_evidence(self) -> Evidence | None:
        return unseen_task_evidence(self)

    unseen_task_calibrator_: Any
    task_column: Any
    unknown_task: str


class Regressor(RegressorMixin, KernelEstimator):
    """Base of the regressors."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @by_partition
    def predict(self, X: Any) -> Array:
        """Predicted values, of shape (n,), or (n, n_outputs) where y had such a shape."""
        return self._shown(self._values(X)[0])

    @by_partition
    def predict_interval(self, X: Any, coverage: float = 0.9, method: str = "auto") -> Array:
        """Intervals that hold the value with about this probability, from held-out residuals.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
        coverage : float, default=0.9
            Above 0 and below 1.
        method : {"auto", "jackknife+", "jackknife"}, default="auto"
            "jackknife+" looks at the models without each fold (CV+ where folds hold several rows): intervals are
            wider where these differ, and cover with a probability of at least ``2 coverage - 1`` whatever the data
            are. It needs every training row as a centre, and an inverse of all rows that is computed at the first
            call. "jackknife" takes the same width everywhere. "auto" is "jackknife+" up to 4,000 training rows.

        Returns
        -------
        ndarray of shape (n, 2), or (n, n_outputs, 2)
            Lower and upper ends; infinite where there are too few rows (or groups) for that coverage, fewer than
            ``coverage / (1 - coverage)``: nine for 0.9. Weights of rows count beside one another: n rows count n,
            whatever their weights sum to.

        Notes
        -----
        Where ``fit`` was given ``groups``, intervals are for rows of new groups: residuals are of groups that were
        left out whole, and every group counts once, however many rows it has.

        Residuals that have chosen the parameters are too small. They are taken from the points of the search that the
        other rows would have chosen, and multiplied by ``sqrt(n / (n - p))`` for p chosen parameters, see
        ``leastwise.model_selection.optimism``; n is the number of groups where there are any. The guarantee of
        jackknife+ is for given parameters.
        """
        return intervals.predict_interval(self, X, None, coverage, method)

    def _values(self, X: Any, tasks: Any = None) -> tuple[Array, Any, Array | None]:
        """Predictions in the unit of the model, the rows as an array, and the codes of their tasks."""
        check_is_fitted(self)
        X = read_rows(self, X)
        return raw_scores(self, X)[0], X, None

    def _shown(self, F: Array) -> Array:
        """Predictions in the unit and shape of y."""
        return in_units(F, self.unit_, self.offset_, self.flat_)

    def _residuals(self, method: str) -> Any:
        return intervals.residuals_of(self, method)

    unit_: Array
    offset_: Array
    flat_: bool


class TaskRegressor(TaskCoefficients, Regressor):
    """Base of the regressors of many tasks."""

    @by_partition
    def predict(self, X: Any, tasks: Any = None) -> Array:
        """Predicted values, of shape (n,), or (n, n_outputs) where y had such a shape.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
            Rows, with the task column if there is one.
        tasks : array-like of shape (n,) or a single id, optional
            The tasks of the rows, where X does not hold them.
        """
        return self._shown(self._values(X, tasks)[0])

    @by_partition
    def predict_interval(self, X: Any, coverage: float = 0.9, method: str = "auto", tasks: Any = None) -> Array:
        """Intervals that hold the value with about this probability; see :meth:`LSSVR.predict_interval`.

        Rows of tasks that are not known get intervals from tasks that were held out whole, of the same width for all
        of them. A task counts once there: nine tasks are needed for a coverage of 0.9, four for 0.8, and with
        fewer the ends are infinite. (With less than three tasks nothing is known of others, and the intervals are
        those of known tasks.) Groups that were given to ``fit`` count once each for known tasks.
        """
        return intervals.predict_interval(self, X, tasks, coverage, method)

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
    """Of probabilities, in whatever library; minus infinity for zero."""
    with np.errstate(divide="ignore"):
        return get_namespace(P).log(P)
