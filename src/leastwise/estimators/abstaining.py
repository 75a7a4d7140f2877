"""A classifier that abstains from uncertain decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.risk import Rule
from leastwise.estimators._abstention_rows import (
    check_frozen,
    compared,
    confident_decisions,
    heldout_decisions,
    is_flat,
    is_labels,
    label_thresholds,
    marked,
    marked_labels,
    over_levels,
    row_thresholds,
    task_codes,
)
from leastwise.estimators._html_repr import shows_fit
from leastwise.fitting.new_rows import row_index
from leastwise.utils.atomic_fit import all_or_nothing
from leastwise.utils.unwrap import Wrapping, fit_inside, has, inner_model, is_frozen, own_params, split_params

Array = np.ndarray


@shows_fit
class Abstaining(Wrapping, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    r"""A classifier that rejects uncertain rows, by a threshold set on held-out rows.

    A row is *accepted* if its confidence, the probability of the predicted class, is at least a threshold. Give
    one of: the largest error rate of accepted rows (``max_error``), the least confidence (``min_confidence``), or the
    cost of a rejection (``cost``). Limits for single classes (``max_miss``) can be added, or stand alone.

    Parameters
    ----------
    estimator : classifier of this library
        Or :class:`leastwise.Recalibrated` around one, or a pipeline that ends in one. Or any classifier, also of
        another library, as a :class:`sklearn.frozen.FrozenEstimator`: it is not fitted again, and ``fit`` sets the
        threshold on the given rows, which the classifier should not have seen.
    max_error : float, optional
        Largest error rate of accepted rows; see Notes for the guarantee.
    min_confidence : float, optional
        The threshold itself.
    cost : float, optional
        Cost of a rejection in units of the cost of an error (Chow 1970): a row is accepted if its error probability
        is below that.
    max_miss : mapping of classes to floats, optional
        Largest share of the rows of a class that are accepted as another class: ``{"fault": 0.01}``. Use it for rare
        classes, which can be missed altogether while the error rate of all accepted rows is low. For many labels the
        keys are names of labels, and the limit is for the rows that have the label.
    confidence : float, default=0.95
        Probability, over the draw of the training rows, that ``max_error`` is kept and bounds hold; the same for each
        limit of ``max_miss``.
    by_task : bool, default=False
        True gives every task its own threshold, with the same guarantee for each. A task with enough rows that do not
        prove the limit at any threshold is rejected completely, with a warning; good rows of other tasks do not count
        for it. Tasks with too few rows, even if all were correct, are pooled, with one guarantee for the pool. If the
        pool is too small as well, they have the common threshold without a guarantee.
    reject : object, optional
        The value of ``predict`` for rejected rows, which must not be a class. By default NaN if classes are numbers
        (the result is then float) and None otherwise; in data frames of labels their missing value.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    classes_, class_prior_, heldout_proba_
        Its classes, their shares, and its predictions of held-out training rows (not for a frozen estimator).
    threshold_ : float, or ndarray of shape (T,) for many labels
        Rows with at least this confidence are accepted; inf if none are.
    task_thresholds_ : ndarray of shape (T,)
        With ``by_task``: thresholds of the tasks ``estimator_.tasks_``; inf if a task is rejected completely.
    task_guarantees_ : ndarray of str of shape (T,)
        With ``by_task``: the guarantee of each task. "own": ``max_error`` on its own rows; "together": ``max_error``
        on the rows of all such tasks together; "none": no guarantee, for too few rows or other criteria.
    unseen_task_threshold_ : float
        Threshold of tasks that were not in training. With ``max_error`` it is set on tasks that were held out
        completely, each of which is one observation: with few tasks it is inf.
    coverage_ : float, or ndarray of shape (T,)
        Share of accepted held-out rows.
    error_bound_ : float, or ndarray of shape (T,)
        Upper bound of the error rate of accepted rows. It holds with probability ``confidence`` for a threshold that
        was given and not chosen; NaN if nothing is accepted.
    miss_levels_ : ndarray of shape (n_classes,), or (T,) for many labels
        With ``max_miss``: a row is accepted as another class only if its probability of the class is below this; inf
        for classes without a limit. 0 accepts rows as this class only.
    miss_bounds_ : ndarray of the same shape
        Upper bounds of the shares of missed rows; NaN for classes without a limit.
    unseen_task_miss_levels_ : ndarray of shape (n_classes,)
        The levels of tasks that were not in training, set on tasks that were held out completely.
    risk_coverage_ : RiskCoverage, or list of them
        ``threshold``, ``coverage``, ``error`` and ``bound`` of all thresholds, for plots.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    ``max_error``: over the draw of the held-out rows, the error rate on accepted new rows is above ``max_error`` with
    a probability of at most ``1 - confidence``. That is exact, for any number of rows, if

    - held-out rows and new rows are independent draws from one population; with ``groups``, the groups are, and no
      group is larger than the largest one seen;
    - the model was not fitted on the held-out rows, as with a ``FrozenEstimator`` and separate rows;
    - the error rate does not fall as the threshold is lowered.

    The held-out predictions of a fit are those of models without the row (or fold). They differ from the final model,
    and its hyperparameters were chosen on them. With up to 200 observations, five more fits therefore predict the
    rows, each without a fifth of them, in which the hyperparameters are chosen again. With more rows, and for many
    labels, each hyperparameter with several values counts as half an error that was not seen, less above 100 rows.
    The guarantee is approximate, since these models are not the final one; ``benchmarks.few_rows`` measures it. The
    same holds for ``Recalibrated``: the map of a held-out row was fitted to other rows, with a family chosen on all
    rows, which counts as one more choice; the map of new rows is fitted to all. The guarantee is for all accepted
    rows together, not for each row, class or region, and for the population of the training rows with their
    weights, including ``class_weight``. A repeated row counts twice: if copies were made to balance classes, use
    ``class_weight`` or ``groups="duplicates"`` instead. See :mod:`leastwise.calibration.risk` for the procedure.

    ``max_miss``: over the draw of the held-out rows of the class, the share of missed new rows of the class is above
    the limit with a probability of at most ``1 - confidence``, for each class. That is exact under the first two
    conditions; the third is not needed. The limit is for the rows of all tasks together. With ``max_error`` as well,
    the threshold is set on the rows that the class limits leave, and each class limit counts as half an error that
    was not seen. See :mod:`leastwise.calibration.misses`.

    For many labels every label of every row is accepted or rejected, and the guarantee holds for each label. A very
    rare label may be accepted everywhere with the prediction that it is absent, unless ``max_miss`` limits that.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from leastwise import LSPC
    >>> from leastwise import Abstaining
    >>> X, y = load_digits(return_X_y=True)
    >>> model = Abstaining(LSPC(random_state=0), max_error=0.02).fit(X[:1200] / 16, y[:1200])
    >>> accepted = model.accepts(X[1200:] / 16)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        max_error: float | None = None,
        min_confidence: float | None = None,
        cost: float | None = None,
        max_miss: Mapping[Any, float] | None = None,
        confidence: float = 0.95,
        by_task: bool = False,
        reject: Any = None,
    ) -> None:
        self.estimator = estimator
        self.max_error = max_error
        self.min_confidence = min_confidence
        self.cost = cost
        self.max_miss = max_miss
        self.confidence = confidence
        self.by_task = by_task
        self.reject = reject

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags.sparse, tags.input_tags.pairwise = inner.input_tags.sparse, inner.input_tags.pairwise
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.classifier_tags = inner.classifier_tags
        tags.target_tags.multi_output = inner.target_tags.multi_output
        return tags

    # ------------------------------------------------------------------ fit

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Abstaining:
        """Fit the estimator, and set the threshold on held-out rows.

        Parameters
        ----------
        X, y
            As in ``fit`` of the estimator.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, or, for many labels, of each label of each row.
        **fit_params
            Further parameters of its ``fit``: ``groups``, ``tasks``. In a pipeline names without a prefix belong to
            the last step: ``groups`` is the same as ``lspc__groups``.
        """
        fit_params |= {} if sample_weight is None else {"sample_weight": sample_weight}
        rule = Rule(self.max_error, self.min_confidence, self.cost, self.confidence, self.max_miss)
        model = clone(self.estimator)
        own, before = split_params(model, fit_params)
        if is_frozen(model):
            check_frozen(own, before)
        model = fit_inside(model, X, y, own, before)
        inner = inner_model(model)
        self._check_parameters(inner)
        promised = self.max_error is not None or bool(self.max_miss)
        heldout = heldout_decisions(model, X, y, own, before, promised)
        self.estimator_, self.classes_ = model, inner.classes_
        if heldout.labels:
            found = label_thresholds(rule, heldout, inner.label_index_.names)
        else:
            found = row_thresholds(rule, heldout, inner.classes_, inner.tasks_.tolist() if self.by_task else None)
        for name, value in vars(found).items():
            if value is not None:
                setattr(self, f"{name}_", value)
        return self

    def _check_parameters(self, inner: Any) -> None:
        if self.by_task and not hasattr(inner, "tasks_"):
            raise ValueError(
                f"by_task=True needs a multi-task model, such as MultiTaskLSPC; got {type(inner).__name__}."
            )
        classes = inner.classes_ if isinstance(inner.classes_, list) else [inner.classes_]
        if self.reject is not None and any(self.reject in c.tolist() for c in classes):
            raise ValueError(f"reject={self.reject!r} is one of the classes: give a value that is not a class.")

    # -------------------------------------------------------------- predict

    def accepts(self, X: Any, **params: Any) -> Array:
        """True for accepted rows, of shape (n,), or (n, T) for many labels; ``params`` as in ``predict``."""
        return self._decide(X, params)[1]

    def predict(self, X: Any, **params: Any) -> Any:
        """Predicted classes, with the value ``reject`` for rejected rows.

        Parameters
        ----------
        X
            As in ``predict`` of the estimator.
        **params
            Further parameters of its ``predict``: ``tasks``, ``class_prior``.

        Returns
        -------
        ndarray of shape (n,), or (n, T) for many labels
            Rejected rows have the value ``reject``; by default NaN if the classes are numbers, or None. For labels
            given to ``fit`` as a data frame the result is a data frame: rejected ones are NaN in pandas, where
            numbers become floats, and null in polars. For a sparse matrix it is an array, since 0 is a class.
        """
        codes, accepted = self._decide(X, params)
        inner = inner_model(self.estimator_)
        if is_labels(inner):
            return marked_labels(inner.label_index_, codes, accepted, self.reject, row_index(X))
        return marked(self.classes_[codes], accepted, self.reject)

    @has("predict_proba")
    def predict_proba(self, X: Any, **params: Any) -> Any:
        """Probabilities of the estimator."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X, **own_params(self.estimator_, params))

    @has("decision_function")
    def decision_function(self, X: Any, **params: Any) -> Any:
        """Decision values of the estimator."""
        return self._ask("decision_function", X, params)

    def score(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> float:
        """Accuracy of accepted rows, or of accepted labels of rows.

        0 if nothing is accepted, so that a search that compares scores does not choose a model that rejects
        everything. ``accepts(X).mean()`` is the share of accepted rows.
        """
        codes, accepted = self._decide(X, params)
        right, known = compared(inner_model(self.estimator_), codes, y)
        w = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        w = np.broadcast_to(w if codes.ndim == w.ndim else w[:, None], codes.shape)[accepted & known]
        return float(np.average(right[accepted & known], weights=w)) if w.sum() > 0 else 0.0

    def _decide(self, X: Any, params: dict[str, Any], P: Any = None) -> tuple[Array, Array]:
        """Codes of the predicted classes, and which of them are accepted; P are the probabilities, if known."""
        check_is_fitted(self)
        params = own_params(self.estimator_, params)
        P = self.estimator_.predict_proba(X, **params) if P is None else P
        codes, confidence = confident_decisions(self.estimator_, P)
        level, task = self.threshold_, task_codes(self.estimator_, X, params)
        if task is not None:
            known = getattr(self, "task_thresholds_", np.full(int(task.max(initial=0)) + 1, self.threshold_))
            level = np.where(task < 0, self.unseen_task_threshold_, known[np.maximum(task, 0)])
        accepted = confidence >= level
        if self.max_miss:
            levels = self.miss_levels_
            if task is not None:
                levels = np.where(task[:, None] < 0, self.unseen_task_miss_levels_, levels)
            accepted &= ~over_levels(self.estimator_, P, codes, levels)
        return (codes[:, 0], accepted[:, 0]) if is_flat(inner_model(self.estimator_)) else (codes, accepted)

    # ------------------------------------------- attributes of the estimator

    @property
    def n_features_in_(self) -> int:
        """Number of columns in ``fit``."""
        return self._fitted().n_features_in_

    @property
    def feature_names_in_(self) -> Array:
        """Names of the columns in ``fit``, if they had names."""
        return self._fitted().feature_names_in_

    @property
    def heldout_proba_(self) -> Any:
        """Predictions of the estimator for held-out training rows."""
        if is_frozen(self._fitted()):
            raise AttributeError("The estimator is frozen: the rows it held out are not those given to fit.")
        return inner_model(self.estimator_).heldout_proba_

    @property
    def class_prior_(self) -> Any:
        """Class shares of the training rows of the estimator."""
        return inner_model(self._fitted()).class_prior_

    def _fitted(self) -> Any:
        if "estimator_" not in vars(self):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet: call fit first.")
        return self.estimator_

    threshold_: Any
    coverage_: Any
    error_bound_: Any
    risk_coverage_: Any
    unseen_task_threshold_: float
