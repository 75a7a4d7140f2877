"""A classifier whose probabilities are recalibrated on the held-out rows of its fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.calibrators import CalibratedScores
from leastwise.calibration.conformal import CalibrationSet, HeldRows
from leastwise.calibration.label_thresholds import choose_thresholds, decide
from leastwise.calibration.maps import FAMILIES
from leastwise.calibration.recalibration import choose_family
from leastwise.estimators._html_repr import shows_fit
from leastwise.estimators._recalibrated_rows import Layout, Truth, read_heldout, read_proba, read_truth
from leastwise.estimators.classifiers import Classifier, TaskClassifier
from leastwise.estimators.multi_label import MultiLabelLSPC
from leastwise.estimators.predicting import (
    SetOptions,
    calibration_set_of,
    held_rows,
    label_calibration_sets,
    unseen_task_calibration_set,
)
from leastwise.fitting.checks import choose
from leastwise.fitting.new_rows import row_index
from leastwise.model_selection.label_objective import threshold_metric
from leastwise.problem.labels import encode_known
from leastwise.problem.targets.labels import as_column, is_flat
from leastwise.utils.arrays import text_objects
from leastwise.utils.atomic_fit import all_or_nothing
from leastwise.utils.unwrap import Wrapping, arrive, fit_inside, inner_model, is_frozen, split_params

Array = np.ndarray

#: Attributes taken over from the fitted model, and from the pipeline around it.
KEPT = ("classes_", "class_prior_", "tasks_", "labels_", "label_index_", "heldout_rows_")
SEEN = ("n_features_in_", "feature_names_in_")


@shows_fit
class Recalibrated(Wrapping, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A classifier of this package with recalibrated probabilities, without a second fit of the model.

    The model is fitted once. Recalibration maps are then fitted to ``heldout_proba_``, its predictions of held-out
    training rows, and compared by cross-fitted log-loss. See :mod:`leastwise.calibration.logits` for the smooth maps.

    Parameters
    ----------
    estimator : LSPC, LSSVC, KernelLogisticRegression, their multi-task versions, or MultiLabelLSPC
        The model, or a pipeline that ends in one. It must hold rows out: ``cv=None`` leaves nothing to calibrate on.
    method : str, None or sequence of them, default="auto"
        "auto", "temperature", "vector", "beta", "quadratic", "isotonic", "structured", "dirichlet", or None for
        unchanged probabilities: the family of maps, or several of them. With several, the simplest one is chosen
        whose held-out log-loss is not significantly above the best. That may be None, unless some probabilities are
        0. "auto" tries "temperature" and "beta" with two classes; with more it tries "temperature", "vector" and,
        unless tasks or labels have their own parameters, "dirichlet".
    by_task : bool, default=False
        True gives every task its own parameters, shrunk towards those of all tasks by an amount chosen on held-out
        rows. Labels of ``MultiLabelLSPC`` always have their own.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model.
    method_ : str or None
        The chosen family.
    scores_ : dict of str or None to float
        Cross-fitted held-out log-loss of each family that was tried; None is the model without recalibration.
    setting_ : Setting
        The family with its pulls, in numbers of rows.
    calibrators_ : tuple
        The maps: one, or one for each number of classes of the labels.
    heldout_proba_, heldout_decision_ : ndarray
        ``predict_proba`` and ``decision_function`` of training rows that were held out both from the model and from
        the map.
    classes_, class_prior_, n_features_in_, feature_names_in_, tasks_, labels_, heldout_rows_
        Those of ``estimator_``.

    Notes
    -----
    Far from the data the probabilities fall to the class shares as those of the model do. Rows of unseen tasks keep
    the model's own probabilities if it has a calibration for them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from leastwise import LSSVC
    >>> from leastwise import Recalibrated
    >>> X, y = load_iris(return_X_y=True)
    >>> model = Recalibrated(LSSVC(), method="temperature").fit(X, y)
    >>> model.predict_proba(X[:2]).shape
    (2, 3)
    """

    def __init__(self, estimator: Any, method: Any = "auto", by_task: bool = False) -> None:
        self.estimator = estimator
        self.method = method
        self.by_task = by_task

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags, tags.target_tags = inner.input_tags, inner.target_tags
        tags.classifier_tags = inner.classifier_tags
        return tags

    # ------------------------------------------------------------------ fit

    @all_or_nothing
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None, tasks: Any = None, **fit_params: Any
    ) -> Recalibrated:
        """Fit the model, then the recalibration to its held-out predictions.

        Parameters
        ----------
        X, y
            As in ``fit`` of the model.
        sample_weight : array-like of shape (n,), or (n, T) for labels, optional
        groups : array-like of shape (n,), optional
            Rows of one group are held out together, by the model and in the choice of the family.
        tasks : array-like of shape (n,), optional
            The task of every row, for multi-task models if X does not contain it.
        **fit_params
            For a pipeline: names with a step as prefix. ``lspc__groups`` is the same as ``groups``.
        """
        self._check()
        plain = {"sample_weight": sample_weight, "groups": groups, "tasks": tasks}
        given = {name: value for name, value in plain.items() if value is not None} | fit_params
        self.estimator_ = clone(self.estimator)
        own, before = split_params(self.estimator_, given)
        fit_inside(self.estimator_, X, y, own, before)
        model, _ = arrive(self.estimator_, X)
        if not hasattr(model, "heldout_proba_"):
            raise ValueError(
                f"{type(model).__name__} has no held-out predictions to calibrate on (cv=None): set "
                "cv='loo' or a number of folds."
            )
        self._keep_names(model)
        self._calibrate(read_truth(model))
        return self

    def _check(self) -> None:
        if isinstance(self.method, list | tuple):
            for family in self.method:
                choose("method", family, list(FAMILIES))
        else:
            choose("method", self.method, ["auto", *FAMILIES])
        inner, frozen = inner_model(self.estimator), is_frozen(self.estimator)
        name = "FrozenEstimator" if frozen else type(inner).__name__
        if frozen or not isinstance(inner, Classifier):
            raise TypeError(
                f"{name} keeps no held-out predictions (heldout_proba_): give a classifier of leastwise, such as "
                "LSPC or MultiTaskLSPC, or a pipeline that ends in one. (Use Abstaining around Recalibrated, not "
                "inside it.) For other classifiers use sklearn.calibration.CalibratedClassifierCV."
            )
        if self.by_task and not isinstance(inner, TaskClassifier):
            raise ValueError(f"by_task=True needs a multi-task model, and {name} is not one: use by_task=False.")

    def _keep_names(self, model: Any) -> None:
        for holder, names in ((model, KEPT), (self.estimator_, SEEN)):
            for name in names:
                if hasattr(holder, name):
                    setattr(self, name, getattr(holder, name))

    def _calibrate(self, truth: Truth) -> None:
        self.layout_, samples, places = read_heldout(self._model, truth, self.by_task)
        choice = choose_family(samples, self.method)
        self.setting_, self.method_ = choice.setting, choice.setting.family
        self.scores_, self.calibrators_ = choice.scores, choice.maps
        P = read_proba(self._model)
        predictions = self.layout_.predictions(P, truth.task, truth.in_domain)
        parts = [m.proba(part) for m, part in zip(choice.maps, predictions, strict=True)]
        for part, rows, cross_fitted in zip(parts, places, choice.P, strict=True):
            _put_means(part, rows, cross_fitted)
        P = self.layout_.table(P, parts)
        self.heldout_proba_, self.heldout_decision_ = self._by_label(P), self._by_label(_log(P), True)
        if isinstance(self._model, MultiLabelLSPC):
            self.threshold_ = self._threshold(P, truth)

    def _threshold(self, P: Array, truth: Truth) -> Any:
        """Thresholds that were given, or those chosen for the recalibrated probabilities."""
        model = self._model
        if not isinstance(model.threshold, str):
            return model.threshold_
        held = ~np.isnan(P[:, 0])
        metric = threshold_metric(model.threshold, model._spec().scorer)
        return choose_thresholds(metric, P[held][:, 1::2], truth.codes[held], truth.W[held])

    # -------------------------------------------------------------- predict

    def predict_proba(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Any:
        """Probability of every class, in the form of ``predict_proba`` of the model.

        Parameters
        ----------
        X, tasks
            As in ``predict_proba`` of the model.
        class_prior : optional
            Class shares of the new rows, as in ``predict_proba`` of the model.
        """
        return self._shown(self._by_label(self._proba(X, tasks, class_prior)), X)

    def decision_function(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Any:
        """Log-probabilities; with two classes their difference, second minus first. In the form of the model."""
        return self._shown(self._by_label(_log(self._proba(X, tasks, class_prior)), difference=True), X)

    def predict_log_proba(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Any:
        """Logarithm of ``predict_proba``."""
        P = self._by_label(self._proba(X, tasks, class_prior))
        return self._shown([_log(p) for p in P] if isinstance(P, list) else _log(P), X)

    def predict(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Any:
        """The most probable class; for many labels, whether each is above its threshold."""
        codes = self._codes(X, tasks, class_prior)
        if isinstance(self._model, MultiLabelLSPC):
            return self.label_index_.decode(codes, row_index(X))
        return self.classes_[codes]

    def score(self, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> float:
        """Accuracy; for many labels the share of rows with all known labels correct."""
        codes = self._codes(X, tasks)
        if not isinstance(self._model, MultiLabelLSPC):
            return float(np.average(self.classes_[codes] == np.asarray(text_objects(y)), weights=sample_weight))
        y = as_column(y) if is_flat(y) else y
        true = encode_known(y, self.label_index_, len(codes), self._model.missing)
        right, w = ((codes == true) | (true < 0)).all(axis=1), (true >= 0).any(axis=1).astype(float)
        return float(np.average(right, weights=w if sample_weight is None else w * np.asarray(sample_weight)))

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
    ) -> Any:
        """Sets of classes that contain the true one with about this probability, from the recalibrated probabilities.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
        coverage : float, default=0.9
        tasks : array-like of shape (n,) or a single id, optional
            The tasks of the rows, if X does not contain them.
        method, by_class, by_task, allow_empty, random_state
            As in :meth:`leastwise.LSPC.predict_set` and :meth:`leastwise.MultiTaskLSPC.predict_set`.

        Returns
        -------
        ndarray of bool, or list of them
            In the form of ``predict_set`` of the model.
        """
        check_is_fitted(self)
        model = self._model
        if by_task and not isinstance(model, TaskClassifier):
            raise ValueError(f"by_task=True needs a multi-task model, and {type(model).__name__} is not one.")
        flags = {"by_class": by_class, "by_task": by_task, "allow_empty": allow_empty}
        wanted = SetOptions.checked(coverage, method, random_state, **flags)
        scored = self._calibrated_scores(X, tasks)
        P = self._mapped(scored)
        if isinstance(model, MultiLabelLSPC):
            return wanted.of_labels(P, label_calibration_sets(self), model.label_index_)
        if scored.task is None:
            return wanted.of(P, calibration_set_of(self))
        return wanted.of_tasks(P, scored.task, calibration_set_of(self), self._unseen_task_calibration_set())

    # ------------------------------------------------------------------ parts

    def _codes(self, X: Any, tasks: Any, class_prior: Any = None) -> Array:
        P = self._proba(X, tasks, class_prior)
        if isinstance(self._model, MultiLabelLSPC):
            return decide(P, self.label_index_.starts, self.threshold_)
        return P.argmax(axis=1)

    def _proba(self, X: Any, tasks: Any, class_prior: Any) -> Array:
        """Probabilities of all classes of all labels, side by side."""
        check_is_fitted(self)
        shift = self._model._shift(class_prior)
        new = self._mapped(self._calibrated_scores(X, tasks))
        return new if shift is None else shift.proba(new)

    def _held_rows(self) -> HeldRows:
        return held_rows(self)

    def _calibration_set(self) -> CalibrationSet:
        return calibration_set_of(self)

    def _unseen_task_calibration_set(self) -> CalibrationSet | None:
        """That of the model: unseen tasks keep its probabilities."""
        return unseen_task_calibration_set(self._model) if isinstance(self._model, TaskClassifier) else None

    def _calibrated_scores(self, X: Any, tasks: Any = None) -> CalibratedScores:
        """Predictions of the model before recalibration."""
        model, rows = arrive(self.estimator_, X)
        if isinstance(model, TaskClassifier):
            return model._calibrated_scores(rows, tasks).to_numpy()
        if tasks is not None:
            raise ValueError(f"tasks= was given, but {type(model).__name__} is not a multi-task model: omit it.")
        return model._calibrated_scores(rows).to_numpy()

    def _mapped(self, scored: CalibratedScores) -> Array:
        """Recalibrated probabilities; unseen tasks keep those of the model if it has a calibration for them."""
        P = scored.proba()
        new = self.layout_.applied(self.calibrators_, P, scored.task if self.by_task else None, scored.in_domain)
        if scored.unseen_task is not None and scored.unseen is not None:
            new[scored.unseen] = P[scored.unseen]
        return new

    @property
    def _model(self) -> Any:
        """The model at the end of the pipeline."""
        return inner_model(self.estimator_)

    def _by_label(self, A: Array, difference: bool = False) -> Any:
        if isinstance(self._model, MultiLabelLSPC):
            return self._model._by_label(A, difference)
        return A[:, 1] - A[:, 0] if difference and A.shape[1] == 2 else A

    def _shown(self, values: Any, X: Any) -> Any:
        """In the container chosen by ``set_output`` of the model."""
        if isinstance(values, list) or values.ndim == 1:
            return values
        labels = isinstance(self._model, MultiLabelLSPC)
        return self._model._shown(values, X) if labels else self._model._framed(values, X)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "scores_" in state:  # skops does not support the key None
            state["scores_"] = list(state["scores_"].items())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "scores_" in state:
            state = {**state, "scores_": dict(state["scores_"])}
        super().__setstate__(state)

    layout_: Layout
    calibrators_: Any


def _put_means(table: Array, rows: Array, values: Array) -> None:
    """Overwrite rows of a table; a row with several values gets their mean."""
    rows, which, count = np.unique(rows, return_inverse=True, return_counts=True)
    total = np.zeros((len(rows), values.shape[1]))
    np.add.at(total, which, values)
    table[rows] = total / count[:, None]


def _log(P: Array) -> Array:
    return np.log(np.maximum(P, np.finfo(P.dtype).tiny))
