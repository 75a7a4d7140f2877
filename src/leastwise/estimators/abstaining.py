"""What ``Abstaining`` has of the estimator inside.

Decisions with a mark in the place of those that do not stand.

Decide where the model is sure enough, and leave the rest to a person.
"""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.abstention import Rule
from leastwise.estimators._abstention_rows import (
    check_frozen,
    compared,
    hear,
    is_flat,
    is_labels,
    judged,
    settle_labels,
    settle_rows,
    task_codes,
)
from leastwise.estimators._html_repr import FittedRepr
from leastwise.estimators.validation import row_index
from leastwise.problem.labels import Labels
from leastwise.utils.optional import frames
from leastwise.utils.unwrap import Wrapping, fit_inside, has, inner_model, is_frozen, own_params, split_params

Array = np.ndarray


class Inherited(Wrapping):
    """Mixin for ``Abstaining``: attributes that are there where the estimator has them."""

    @property
    def n_features_in_(self) -> int:
        """Number of columns seen in ``fit``."""
        return self._fitted().n_features_in_

    @property
    def feature_names_in_(self) -> Array:
        """Names of the columns seen in ``fit``, where they had names."""
        return self._fitted().feature_names_in_

    @property
    def heldout_proba_(self) -> Any:
        """What the estimator says of its training rows when these are held out."""
        if is_frozen(self._fitted()):
            raise AttributeError("The estimator is frozen: the rows that it held out are not those given to fit.")
        return inner_model(self.estimator_).heldout_proba_

    @property
    def class_prior_(self) -> Any:
        """Class shares that the estimator was trained on."""
        return inner_model(self._fitted()).class_prior_

    def _fitted(self) -> Any:
        if "estimator_" not in vars(self):
            raise AttributeError(f"This {type(self).__name__} is not fitted yet: call fit first.")
        return self.estimator_


def marked(values: Array, accepted: Array, reject: Any) -> Array:
    """Classes with another value in the place of those that are not accepted."""
    number = values.dtype.kind in "biuf"
    value = (np.nan if number else None) if reject is None else reject
    alike = isinstance(value, Real) if number else values.dtype.kind == "U" and isinstance(value, str)
    out = values.astype(np.result_type(values, np.asarray(value)) if alike else object)
    out[~accepted] = value
    return out


def marked_labels(labels: Labels, codes: Array, accepted: Array, reject: Any, index: Any) -> Any:
    """Labels in the form in which they were given, with those that are not accepted marked."""
    if labels.form == "pandas":
        return _in_pandas(labels.decode(codes, index), accepted, reject)
    if labels.form == "polars":
        return _in_polars(labels.decode(codes), accepted, reject)
    if labels.form == "flat":
        return marked(labels.classes[0][codes], accepted, reject)
    return marked(replace(labels, form="array").decode(codes), accepted, reject)


def _in_pandas(table: Any, accepted: Array, reject: Any) -> Any:
    """NaN, or what a column's own type has for missing; types do not depend on whether a label is rejected."""
    pandas = frames("pandas")
    columns = []
    for t in range(table.shape[1]):
        column = table.iloc[:, t]
        plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf"
        if plain or reject is not None:
            column = pandas.Series(marked(column.to_numpy(), accepted[:, t], reject), index=table.index)
        else:
            column = column.where(accepted[:, t])
        columns.append(column)
    marks = pandas.DataFrame(dict(enumerate(columns)), index=table.index)
    marks.columns = table.columns
    return marks


def _in_polars(table: Any, accepted: Array, reject: Any) -> Any:
    """Null, which every type has."""
    polars = frames("polars")
    columns = []
    for t, column in enumerate(table.iter_columns()):
        kept = zip(column.to_list(), accepted[:, t].tolist(), strict=True)
        values = [value if ok else reject for value, ok in kept]
        kind = column.dtype if reject is None else None
        columns.append(polars.Series(column.name, values, dtype=kind, strict=False))
    return polars.DataFrame(columns)


class Abstaining(FittedRepr, Inherited, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    r"""A classifier that decides where it is sure enough, by a threshold from held-out rows.

    A row is *accepted* where the probability of the class that it is given, its confidence, is at least a threshold.
    Say one of three: how many errors there may be among accepted rows (``max_error``), how sure is sure enough
    (``min_confidence``), or what a rejection costs (``cost``).

    Parameters
    ----------
    estimator : classifier of this library
        Or :class:`leastwise.Recalibrated` around one, or a pipeline that ends in one. Or any classifier,
        of another library too, as a :class:`sklearn.frozen.FrozenEstimator`: it is not fitted again, and ``fit``
        sets the threshold on the rows that it is given, which the classifier should not have seen.
    max_error : float, optional
        Errors among accepted rows, as a share of these, are to be at most so many; see Notes for the guarantee.
    min_confidence : float, optional
        The threshold itself.
    cost : float, optional
        Cost of a rejection in units of that of an error (Chow 1970): a row is accepted where its probability of being
        wrong is below that.
    confidence : float, default=0.95
        With which probability, over the draw of the training rows, ``max_error`` is kept, and bounds are true.
    by_task : bool, default=False
        Whether every task has a threshold of its own, with the same guarantee for each. A task whose rows are enough,
        and do not bear the limit out at any threshold, is rejected whole, with a warning: another task's good rows
        do not vouch for it. Tasks with too few rows, even if all were right, are one task together, with the
        guarantee for these together; if that is too few as well, they have the common threshold, on trust.
    reject : object, optional
        What ``predict`` says of rejected rows: a value that is no class. By default NaN where classes are numbers
        (which are floats then), and None elsewhere; in frames of labels what these have for missing.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier.
    classes_, class_prior_, heldout_proba_
        Its classes, their shares, and what it says of training rows that are held out (of a frozen one: not there).
    threshold_ : float, or ndarray of shape (T,) for many labels
        Rows with at least this confidence are accepted; inf where nothing is.
    task_thresholds_ : ndarray of shape (T,)
        With ``by_task``: those of the tasks ``estimator_.tasks_``; inf where a task is rejected whole.
    task_guarantees_ : ndarray of str of shape (T,)
        With ``by_task``: what each task is promised. "own": ``max_error`` on its own rows; "together": ``max_error``
        on the rows of all such tasks together; "none": nothing, as these are too few, or for other rules.
    stranger_threshold_ : float
        That of tasks that were not there in training. With ``max_error`` it is set on tasks that were held out whole,
        each of which is one witness: with few tasks it is inf.
    coverage_ : float, or ndarray of shape (T,)
        Share of held-out rows that are accepted.
    error_bound_ : float, or ndarray of shape (T,)
        An upper bound of the error rate on accepted rows, true with the probability ``confidence`` if the threshold
        was given and not chosen; NaN if nothing is accepted.
    risk_coverage_ : RiskCoverage, or list of them
        ``threshold``, ``coverage``, ``error`` and ``bound`` of all thresholds, to be plotted.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    ``max_error``: over the draw of the held-out rows, the error rate on accepted new rows is above ``max_error`` with
    a probability of at most ``1 - confidence``. That is exact, for any number of rows, if

    - held-out rows and new rows are independent draws from one population; with ``groups``, the groups are, and the
      largest one seen is as large as they get;
    - the model that is used was not fitted on the held-out rows: so with a ``FrozenEstimator`` and rows of its own;
    - errors do not become rarer as the threshold is lowered.

    The held-out predictions of a fit are those of models without the row (or fold), which differ from the final one,
    and its parameters were chosen by them: then the guarantee is approximate. The same is true of ``Recalibrated``:
    the map for a held-out row was fitted to other rows, with a family that was chosen by all; that for new rows is
    fitted to all. The guarantee speaks of all accepted rows together, not of every row, class or place; and of the
    population of the training rows, weighted as they were, by ``class_weight`` too. A row that is there twice counts
    twice: where copies were made to balance classes, give ``class_weight`` or ``groups="duplicates"`` instead. See
    :mod:`leastwise.calibration.risk` for the procedure.

    For a model of many labels every label of every row is decided or left open, and the guarantee holds for each
    label. A label that is hardly ever there may be decided everywhere, by always saying no.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from leastwise import LSPC
    >>> from leastwise import Abstaining
    >>> X, y = load_digits(return_X_y=True)
    >>> model = Abstaining(LSPC(random_state=0), max_error=0.02).fit(X[:1200] / 16, y[:1200])
    >>> decided = model.accepts(X[1200:] / 16)
    """

    def __init__(
        self,
        estimator: Any,
        *,
        max_error: float | None = None,
        min_confidence: float | None = None,
        cost: float | None = None,
        confidence: float = 0.95,
        by_task: bool = False,
        reject: Any = None,
    ) -> None:
        self.estimator = estimator
        self.max_error = max_error
        self.min_confidence = min_confidence
        self.cost = cost
        self.confidence = confidence
        self.by_task = by_task
        self.reject = reject

    def __sklearn_tags__(self) -> Any:
        tags, inner = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.input_tags.sparse, tags.input_tags.pairwise = inner.input_tags.sparse, inner.input_tags.pairwise
        tags.classifier_tags = inner.classifier_tags
        tags.target_tags.multi_output = inner.target_tags.multi_output
        return tags

    # ------------------------------------------------------------------ fit

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Abstaining:
        """Fit the estimator, and set the threshold on held-out rows.

        Parameters
        ----------
        X, y
            As the estimator takes them.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, or, for many labels, of each label of each row.
        **fit_params
            What else it takes: ``groups``, ``tasks``. In a pipeline plain names are for its last step:
            ``groups`` is the same as ``lspc__groups``.
        """
        fit_params |= {} if sample_weight is None else {"sample_weight": sample_weight}
        rule, model = Rule(self.max_error, self.min_confidence, self.cost, self.confidence), clone(self.estimator)
        own, before = split_params(model, fit_params)
        if is_frozen(model):
            check_frozen(own, before)
        model = fit_inside(model, X, y, own, before)
        heard, inner = hear(model, X, y, own), inner_model(model)
        self._check_choices(inner)
        self.estimator_, self.classes_ = model, inner.classes_
        if heard.labels:
            found = settle_labels(rule, heard, inner.label_index_.names)
        else:
            found = settle_rows(rule, heard, inner.tasks_.tolist() if self.by_task else None)
        for name, value in vars(found).items():
            if value is not None:
                setattr(self, f"{name}_", value)
            elif hasattr(self, f"{name}_"):  # of another fit
                delattr(self, f"{name}_")
        return self

    def _check_choices(self, inner: Any) -> None:
        if self.by_task and not hasattr(inner, "tasks_"):
            raise ValueError(
                f"by_task=True needs a model of many tasks, such as MultiTaskLSPC; given is {type(inner).__name__}."
            )
        classes = inner.classes_ if isinstance(inner.classes_, list) else [inner.classes_]
        if self.reject is not None and any(self.reject in c.tolist() for c in classes):
            raise ValueError(f"reject={self.reject!r} is one of the classes: give a value that is none of them.")

    # -------------------------------------------------------------- predict

    def accepts(self, X: Any, **params: Any) -> Array:
        """Which rows are decided, of shape (n,), or (n, T) for many labels; ``params`` as in ``predict``."""
        return self._judge(X, params)[1]

    def predict(self, X: Any, **params: Any) -> Any:
        """Classes, with rejected rows marked.

        Parameters
        ----------
        X
            Rows, as the estimator takes them.
        **params
            What else it takes: ``tasks``, ``class_prior``.

        Returns
        -------
        ndarray of shape (n,), or (n, T) for many labels
            Rejected rows have the value ``reject``; without one NaN, where the classes are numbers, or None. Labels
            that were given to ``fit`` as a frame are a frame: rejected ones are NaN in pandas, where numbers are
            floats, and null in polars. Those given as a sparse matrix are an array, since 0 is a class.
        """
        codes, accepted = self._judge(X, params)
        inner = inner_model(self.estimator_)
        if is_labels(inner):
            return marked_labels(inner.label_index_, codes, accepted, self.reject, row_index(X))
        return marked(self.classes_[codes], accepted, self.reject)

    @has("predict_proba")
    def predict_proba(self, X: Any, **params: Any) -> Any:
        """Probabilities, those of the estimator."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X, **own_params(self.estimator_, params))

    @has("decision_function")
    def decision_function(self, X: Any, **params: Any) -> Any:
        """Decision values, those of the estimator."""
        return self._ask("decision_function", X, params)

    def score(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> float:
        """Share of right answers among what is accepted: rows, or labels of rows.

        0 where nothing is accepted: there is no right answer then, and a search that compares scores does not choose
        a model that never decides. ``accepts(X).mean()`` is the share that is accepted.
        """
        codes, accepted = self._judge(X, params)
        right, known = compared(inner_model(self.estimator_), codes, y)
        w = np.ones(len(codes)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        w = np.broadcast_to(w if codes.ndim == w.ndim else w[:, None], codes.shape)[accepted & known]
        return float(np.average(right[accepted & known], weights=w)) if w.sum() > 0 else 0.0

    def _judge(self, X: Any, params: dict[str, Any]) -> tuple[Array, Array]:
        """Codes of the classes decided for, and which of these decisions stand."""
        check_is_fitted(self)
        params = own_params(self.estimator_, params)
        codes, sure = judged(self.estimator_, self.estimator_.predict_proba(X, **params))
        level, task = self.threshold_, task_codes(self.estimator_, X, params)
        if task is not None:
            known = getattr(self, "task_thresholds_", np.full(int(task.max(initial=0)) + 1, self.threshold_))
            level = np.where(task < 0, self.stranger_threshold_, known[np.maximum(task, 0)])
        accepted = sure >= level
        return (codes[:, 0], accepted[:, 0]) if is_flat(inner_model(self.estimator_)) else (codes, accepted)

    threshold_: Any
    coverage_: Any
    error_bound_: Any
    risk_coverage_: Any
    stranger_threshold_: float
