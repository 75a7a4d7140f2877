"""A classifier whose probabilities are calibrated once more, on what its fit has left of held-out rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.families import FAMILIES
from leastwise.calibration.label_thresholds import choose_thresholds, decide
from leastwise.calibration.recalibration import choose_family
from leastwise.estimators._html_repr import FittedRepr
from leastwise.estimators._recalibrated_rows import Answering, Truth, read_heldout, read_proba, read_truth
from leastwise.estimators.base import Classifier, TaskClassifier
from leastwise.estimators.checks import choose
from leastwise.estimators.multi_label import MultiLabelLSPC
from leastwise.estimators.validation import all_or_nothing, row_index
from leastwise.problem.labels import encode_known
from leastwise.utils.unwrap import arrive, fit_inside, split_params, within

Array = np.ndarray

#: What is that of the model, and of the pipeline that it may be in.
KEPT = ("classes_", "class_prior_", "tasks_", "labels_", "label_index_", "heldout_rows_")
SEEN = ("n_features_in_", "feature_names_in_")


class Recalibrated(FittedRepr, Answering, MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """A classifier of this package with probabilities calibrated once more, without a refit.

    The model is fitted as it is, once. Maps from its probabilities to better ones are then fitted to
    ``heldout_proba_``, what the model says of its training rows when these are held out, and compared by the log-loss
    of rows that they were not fitted to. See :mod:`leastwise.calibration.newton` for the smooth ones.

    Parameters
    ----------
    estimator : LSPC, LSSVC, KernelLogisticRegression, their versions for many tasks, or MultiLabelLSPC
        What is fitted, or a pipeline that ends in one. It must hold rows out: ``cv=None`` leaves nothing to
        calibrate on.
    method : {"auto", "temperature", "vector", "dirichlet", "beta", "isotonic", None} or sequence, default="auto"
        The family of maps, or several of them. Of several the simplest is taken that is not told from the best by
        held-out log-loss, which may be None: the probabilities as they are, unless some of them are 0. "auto" has the
        choice among "temperature" and "beta" with two classes; among "temperature", "vector" and, where tasks and
        labels have no parameters of their own, "dirichlet" with more.
    by_task : bool, default=False
        Whether every task has parameters of its own, drawn to those of all tasks as far as held-out rows speak for
        it. Labels of ``MultiLabelLSPC`` always do.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model.
    method_ : str or None
        The family that was chosen.
    scores_ : dict of str or None to float
        Cross-fitted held-out log-loss of each family that was tried; None is the model as it is.
    setting_ : Setting
        The family with its pulls, in numbers of rows.
    calibrators_ : tuple
        The maps: one, or one for every number of classes that labels have.
    heldout_proba_, heldout_decision_ : ndarray
        What ``predict_proba`` and ``decision_function`` say of training rows that are held out, both from the model
        and from the map.
    classes_, class_prior_, n_features_in_, feature_names_in_, tasks_, labels_, heldout_rows_
        Those of ``estimator_``.

    Notes
    -----
    Far from the data the probabilities fall to the class shares as those of the model do. Rows of tasks that are not
    known keep the model's own probabilities where it has a calibration for them.

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
        """Fit the model, then the calibration on what it says of held-out rows.

        Parameters
        ----------
        X, y
            As the model wants them.
        sample_weight : array-like of shape (n,), or (n, T) for labels, optional
        groups : array-like of shape (n,), optional
            Rows of one group are held out together, by the model and in the choice of the calibration.
        tasks : array-like of shape (n,), optional
            The task of every row, for models of tasks where X does not hold it.
        **fit_params
            For a pipeline: names with that of a step, such as ``lspc__groups``, which is the same as ``groups``.
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
                f"{type(model).__name__} has held nothing out (cv=None), so there is nothing to calibrate on: set "
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
        inner = self.estimator
        while isinstance(inner, Pipeline):
            inner = within(inner)
        name = type(inner).__name__
        if not isinstance(inner, Classifier):
            raise TypeError(
                f"{name} keeps no held-out predictions (heldout_proba_): give a classifier of leastwise, such as "
                "LSPC or MultiTaskLSPC, or a pipeline that ends in one. (Abstaining stands around Recalibrated, not "
                "inside.) For other classifiers there is sklearn.calibration.CalibratedClassifierCV."
            )
        if self.by_task and not isinstance(inner, TaskClassifier):
            raise ValueError(f"by_task=True needs a model of tasks, and {name} is none: use by_task=False.")

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
        parts = [
            m.proba(given)
            for m, given in zip(choice.maps, self.layout_.given(P, truth.task, truth.trust), strict=True)
        ]
        for part, here, own in zip(parts, places, choice.P, strict=True):
            _put_means(part, here, own)
        P = self.layout_.table(P, parts)
        self.heldout_proba_, self.heldout_decision_ = self._by_label(P), self._by_label(_log(P), True)
        if isinstance(self._model, MultiLabelLSPC):
            self.threshold_ = self._threshold(P, truth)

    def _threshold(self, P: Array, truth: Truth) -> Any:
        """Thresholds that were given, or those that suit the new probabilities."""
        model = self._model
        if not isinstance(model.threshold, str):
            return model.threshold_
        scorer, held = model._scorer(), ~np.isnan(P[:, 0])
        metric = scorer.name if scorer.decides else "f1_micro"
        return choose_thresholds(metric, P[held][:, 1::2], truth.codes[held], truth.W[held])

    # -------------------------------------------------------------- predict

    def predict_proba(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Any:
        """Probability of every class, in the form in which the model has it.

        Parameters
        ----------
        X, tasks
            As the model wants them.
        class_prior : optional
            Class shares where the model is used, as ``predict_proba`` of the model takes them.
        """
        return self._shown(self._by_label(self._proba(X, tasks, class_prior)), X)

    def decision_function(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Any:
        """Logarithms of the probabilities; with two classes second minus first, in the form that the model has."""
        return self._shown(self._by_label(_log(self._proba(X, tasks, class_prior)), difference=True), X)

    def predict_log_proba(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Any:
        """Logarithm of ``predict_proba``."""
        P = self._by_label(self._proba(X, tasks, class_prior))
        return self._shown([_log(p) for p in P] if isinstance(P, list) else _log(P), X)

    def predict(self, X: Any, tasks: Any = None, *, class_prior: Any = None) -> Any:
        """The most probable class; of many labels those above their thresholds."""
        codes = self._codes(X, tasks, class_prior)
        if isinstance(self._model, MultiLabelLSPC):
            return self.label_index_.decode(codes, row_index(X))
        return self.classes_[codes]

    def score(self, X: Any, y: Any, sample_weight: Any = None, tasks: Any = None) -> float:
        """Share of rows that are predicted rightly, in all of their known labels where there are several."""
        codes = self._codes(X, tasks)
        if not isinstance(self._model, MultiLabelLSPC):
            return float(np.average(self.classes_[codes] == np.asarray(y), weights=sample_weight))
        y = np.asarray(y).reshape(-1, 1) if np.ndim(y) == 1 else y
        true = encode_known(y, self.label_index_, len(codes), self._model.missing)
        right, w = ((codes == true) | (true < 0)).all(axis=1), (true >= 0).any(axis=1).astype(float)
        return float(np.average(right, weights=w if sample_weight is None else w * np.asarray(sample_weight)))

    def _codes(self, X: Any, tasks: Any, class_prior: Any = None) -> Array:
        P = self._proba(X, tasks, class_prior)
        if isinstance(self._model, MultiLabelLSPC):
            return decide(P, self.label_index_.starts, self.threshold_)
        return P.argmax(axis=1)

    def _proba(self, X: Any, tasks: Any, class_prior: Any) -> Array:
        """Probabilities of all classes of all labels, side by side."""
        check_is_fitted(self)
        shift = self._model._shift(class_prior)
        new = self._mapped(self._answer(X, tasks))
        return new if shift is None else shift.proba(new)

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "scores_" in state:  # skops knows no key None
            state["scores_"] = list(state["scores_"].items())
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "scores_" in state:
            state = {**state, "scores_": dict(state["scores_"])}
        super().__setstate__(state)


def _put_means(table: Array, here: Array, values: Array) -> None:
    """Put lines of values into a table; the mean of those that belong to one line of it."""
    lines, which, count = np.unique(here, return_inverse=True, return_counts=True)
    total = np.zeros((len(lines), values.shape[1]))
    np.add.at(total, which, values)
    table[lines] = total / count[:, None]


def _log(P: Array) -> Array:
    return np.log(np.maximum(P, np.finfo(P.dtype).tiny))
