"""From a table with a target to decisions on new tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from leastwise.estimators._html_repr import FittedRepr
from leastwise.estimators.abstaining import Abstaining
from leastwise.estimators.lspc import LSPC
from leastwise.estimators.lssvm import LSSVR
from leastwise.estimators.multi_label import MultiLabelLSPC
from leastwise.estimators.multi_task import MultiTaskLSPC
from leastwise.estimators.multi_task_lssvm import MultiTaskLSSVR
from leastwise.estimators.recalibrated import Recalibrated
from leastwise.estimators.validation import all_or_nothing
from leastwise.tables.answers import Answer, answer_classes, answer_labels, answer_numbers
from leastwise.tables.kinds import Column
from leastwise.tables.prepared import prepare
from leastwise.tables.roles import Roles
from leastwise.tables.rows import task_ids
from leastwise.tables.story import evaluated, heldout_scores, plain, summarised
from leastwise.tables.table import Array, Table, TableError
from leastwise.tables.targets import Target
from leastwise.utils.unwrap import core, fit_inside, inner_model, split_params

#: Beyond so many rows the kernels stand on some of them,
MANY_ROWS = 5000
#: namely so many.
CENTERS = 500


class TableModel(FittedRepr, BaseEstimator):
    """A model of a table: columns of any kind in, predictions with their probabilities, sets and decisions out.

    Kinds of columns, and of the target, are found by stated rules; see the page "Tables".

    Parameters
    ----------
    target : str, optional
        The column to be predicted: classes or numbers.
    labels : sequence of str, optional
        Instead of a target: columns of 0 and 1 (yes and no, true and false), any of which may be missing.
    task : str, optional
        The column that says which of many related tasks (sites, persons, products) a row belongs to.
    group : str, optional
        Rows with the same value are held out together, as rows of one person should be. A missing one is a group of
        its own. "duplicates", if there is no such column, holds equal rows out together.
    weight : str, optional
        The column of the weights of the rows.
    id : str or sequence of str, optional
        Columns that are no inputs, and are kept in predictions.
    kind : {"classes", "numbers"}, optional
        What the target is; by default found.
    model : estimator, optional
        What is fitted, of this library or another; by default ``LSPC`` for classes, ``LSSVR`` for numbers,
        ``MultiLabelLSPC`` for labels, and ``MultiTaskLSPC`` and ``MultiTaskLSSVR`` with a task.
    kinds, ignore
        As in :class:`TableEncoder`.
    max_error : float, optional
        Decide only where so many errors, as a share, are kept among what is decided; see
        :class:`leastwise.Abstaining`.
    min_confidence : float, optional
        Decide only from this probability on.
    coverage : float, default=0.9
        Of sets of classes, and of intervals.
    recalibrate : bool, default=False
        Calibrate once more on held-out predictions, see :class:`leastwise.Recalibrated`.
    n_centers : "auto", int or None, default="auto"
        Kernels on so many rows. "auto" takes all; for classes and labels of more than 5,000 rows it takes 500.
    random_state : int, RandomState or None, default=0
        For centres that are drawn. None is a fixed seed, too.

    Attributes
    ----------
    kind_ : {"classes", "numbers", "labels"}
    encoder_ : TableEncoder
    columns_ : list of Column
        What was found in the input columns.
    model_ : estimator
        The fitted estimator.
    decider_ : Abstaining or None
        With ``max_error`` or ``min_confidence``: ``model_`` and the threshold.
    fitted_ : Abstaining, Recalibrated or estimator
        The outermost of these, which holds the others.
    classes_ : ndarray
        Classes, where the target has such.
    baseline_ : ndarray or float
        Weighted class shares of training, shares of ones of each label, or the weighted mean number.
    n_rows_, left_out_ : int and dict
        Rows that were learned from, and how many were left out, by reason.
    rows_used_ : ndarray of int
        Which rows of the table were learned from, counted from 0.
    heldout_ : dict
        Scores of held-out predictions. They chose the parameters: a little optimistic.
    notes_ : list of str

    Examples
    --------
    >>> import numpy as np
    >>> from leastwise.tables import TableModel
    >>> rng = np.random.default_rng(0)
    >>> size = rng.normal(size=200)
    >>> line = rng.choice(["north", "south"], 200)
    >>> table = {"size": size, "line": line, "finding": np.where(size > 0, "fault", "fine")}
    >>> model = TableModel(target="finding").fit(table)
    >>> model.predict_table({"size": [2.0], "line": ["north"]})["prediction"].tolist()
    ['fault']
    """

    def __init__(
        self,
        target: str | None = None,
        *,
        labels: Sequence[str] | None = None,
        task: str | None = None,
        group: str | None = None,
        weight: str | None = None,
        id: str | Sequence[str] | None = None,
        kind: str | None = None,
        model: Any = None,
        kinds: Mapping[str, str] | None = None,
        ignore: Sequence[str] = (),
        max_error: float | None = None,
        min_confidence: float | None = None,
        coverage: float = 0.9,
        recalibrate: bool = False,
        n_centers: Any = "auto",
        random_state: Any = 0,
    ) -> None:
        self.target = target
        self.labels = labels
        self.task = task
        self.group = group
        self.weight = weight
        self.id = id
        self.kind = kind
        self.model = model
        self.kinds = kinds
        self.ignore = ignore
        self.max_error = max_error
        self.min_confidence = min_confidence
        self.coverage = coverage
        self.recalibrate = recalibrate
        self.n_centers = n_centers
        self.random_state = random_state

    # ------------------------------------------------------------------ fit

    @all_or_nothing
    def fit(self, table: Any, y: Any = None) -> TableModel:
        """Find kinds, make features, choose parameters, solve, calibrate, set the threshold.

        Parameters
        ----------
        table : Table, frame or mapping of columns
            With the target in it.
        y : ignored
        """
        table = Table.of(table)
        found = prepare(self, table)
        roles, used, target, params = found.roles, found.used, found.target, found.params
        self.left_out_, self.encoder_ = found.left_out, found.encoder
        X = self.encoder_.transform(used)
        self.kind_, self.n_rows_, self.rows_used_ = target.kind, len(used), np.flatnonzero(target.known)
        self._fit_model(X, target.y, params, roles)
        self._keep(target, roles, params.get("sample_weight", np.ones(len(used))))
        self.notes_ = self._notes(table)
        return self

    def look(self, table: Any) -> dict[str, Any]:
        """What ``fit`` would learn from, without learning: kinds of the columns and of the target, rows, classes."""
        return plain(prepare(self, Table.of(table)).story())

    def _fit_model(self, X: Array, y: Array, params: dict[str, Any], roles: Roles) -> None:
        model = self._chosen(len(X), roles.task)
        if self.recalibrate:
            model = Recalibrated(model)
        if self.max_error is not None or self.min_confidence is not None:
            model = Abstaining(model, max_error=self.max_error, min_confidence=self.min_confidence)
        self.fitted_ = fit_inside(model, X, y, *split_params(model, params))

    def _chosen(self, n: int, task: str | None) -> Any:
        """The estimator: the user's, or the one for this kind of target."""
        if self.model is not None:
            return clone(self.model)
        many = n > MANY_ROWS and self.kind_ != "numbers"  # those have a solver for many rows
        centers = (CENTERS if many else None) if self.n_centers == "auto" else self.n_centers
        classes: dict[tuple[str, bool], Any] = {
            ("classes", False): LSPC,
            ("classes", True): MultiTaskLSPC,
            ("numbers", False): LSSVR,
            ("numbers", True): MultiTaskLSSVR,
            ("labels", False): MultiLabelLSPC,
        }
        return classes[self.kind_, task is not None](n_centers=centers, random_state=self.random_state)

    def _keep(self, target: Target, roles: Roles, w: Array) -> None:
        """What is known of the training rows, as few plain values."""
        inner = self._inner
        if self.kind_ == "labels":
            for holder in (inner, self._spoken):
                holder.label_index_ = replace(holder.label_index_, names=tuple(roles.labels))
                holder.labels_ = np.array(roles.labels)
            self.baseline_: Any = np.nanmean(target.y, axis=0)
        elif self.kind_ == "classes":
            self.classes_ = inner.classes_
            codes = np.searchsorted(self.classes_, target.y)
            self.baseline_ = np.bincount(codes, w, len(self.classes_)) / w.sum()
        else:
            self.baseline_ = float(np.average(target.y, weights=w))
        self.heldout_ = heldout_scores(self, target.y)

    def _notes(self, table: Table) -> list[str]:
        notes = [*table.notes, *(f"{count} rows left out: {why}." for why, count in self.left_out_.items() if count)]
        notes += [f'Column "{c.name}" is not used: {c.note}.' for c in self._unused()]
        centers = getattr(self._inner, "n_centers", None)
        if self.model is None and centers is not None and centers < self.n_rows_:
            notes.append(f"Of {self.n_rows_} rows {centers} carry kernels (n_centers); all are learned from.")
        return notes

    @property
    def columns_(self) -> list[Column]:
        """What was found in the input columns."""
        return self.encoder_.columns_

    @property
    def decider_(self) -> Abstaining | None:
        """The model with its threshold, where there is one."""
        return self.fitted_ if isinstance(self.fitted_, Abstaining) else None

    @property
    def model_(self) -> Any:
        """The fitted estimator."""
        return self.fitted_.estimator_ if isinstance(self.fitted_, Abstaining) else self.fitted_

    def _unused(self) -> list[Column]:
        """Input columns that are left out for a reason of their own."""
        said = {*self.ignore, *(name for name, kind in (self.kinds or {}).items() if kind == "ignore")}
        return [column for column in self.columns_ if column.kind == "ignore" and column.name not in said]

    @property
    def _spoken(self) -> Any:
        """What predictions come from, at the end of a pipeline: the estimator, or its second calibration."""
        return inner_model(self.model_)

    @property
    def _inner(self) -> Any:
        """The estimator itself, beneath pipelines and a second calibration."""
        return core(self.model_)

    # -------------------------------------------------------------- predict

    def answer(self, table: Any) -> Answer:
        """What the model says of the rows of a table, as arrays."""
        check_is_fitted(self)
        roles, table = Roles.of(self), Table.of(table)
        if not len(table):
            raise TableError("there are no rows to predict.")
        if roles.task and roles.task not in table.columns:
            raise table.lacks([roles.task], "the model needs its task in")
        encoded = self.encoder_.encode(table.without(roles.all))
        params, notes = {}, list(encoded.notes)
        if roles.task:
            params["tasks"] = task_ids(table, roles.task)
            strange = ~np.isin(params["tasks"], self._inner.tasks_)
            if strange.any():
                notes.append(f"{strange.sum()} rows are of tasks that training has not seen.")
        make = {"classes": answer_classes, "labels": answer_labels, "numbers": answer_numbers}[self.kind_]
        return replace(make(self, encoded.X, params), notes=tuple(notes), tasks=params.get("tasks"))

    def predict_table(self, table: Any) -> Table:
        """Predictions, a row for every row.

        Returns
        -------
        Table
            The columns of ``id``, or ``row``, counted from 1. For classes ``prediction``, ``p_<class>`` for every
            class, ``confidence`` (that of the prediction), ``decision`` (the prediction, or empty where a person has
            to look; only with ``max_error`` or ``min_confidence``), ``set`` (classes that cannot be excluded, with a
            bar between) and ``trust`` (from 1, near the training rows, to 0). For numbers ``prediction``, ``lower``
            and ``upper``. For labels the name of each, ``p_``, ``decision_`` and ``set_`` with it, and ``trust``.
        """
        answer, given = self.answer(table), Table.of(table)
        ids = Roles.of(self).ids
        kept = {name: given[name] for name in ids} if ids else {"row": np.arange(1, len(given) + 1)}
        said = answer.columns(self)
        double = sorted(set(kept) & set(said))
        if double:
            raise TableError(f"the columns {double} are in the table and in the predictions: rename them.")
        return Table({**kept, **said}, notes=answer.notes)

    def evaluate(self, table: Any) -> dict[str, Any]:
        """Scores on a table with the target in it; rows where it is missing are left out.

        Returns
        -------
        dict
            Plain numbers. For classes ``rows``, ``log_loss``, ``brier``, ``ece`` (debiased, 0 at least),
            ``accuracy``, ``auc``, ``set_coverage``, ``set_size``, ``decided`` and ``error_of_decided``; for numbers
            ``rmse``, ``mae``, ``r2``, ``interval_coverage`` and ``interval_width``; for labels those of each and of
            all. ``baseline`` has those of class shares, or of the mean; ``tasks`` some of every task; ``notes`` what
            was strange about the rows. Every row counts once, whatever its weight.
        """
        return evaluated(self, Table.of(table))

    def summary(self) -> dict[str, Any]:
        """What was learned from what, as plain values (JSON)."""
        check_is_fitted(self)
        return summarised(self)

    kind_: str
    fitted_: Any
