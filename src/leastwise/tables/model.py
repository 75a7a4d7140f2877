"""A model of a table: from training columns to predictions and decisions for new tables."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from leastwise.estimators._html_repr import shows_fit
from leastwise.estimators.abstaining import Abstaining
from leastwise.estimators.lspc import LSPC
from leastwise.estimators.lssvm import LSSVR
from leastwise.estimators.multi_label import MultiLabelLSPC
from leastwise.estimators.multi_task import MultiTaskLSPC
from leastwise.estimators.multi_task_lssvm import MultiTaskLSSVR
from leastwise.estimators.recalibrated import Recalibrated
from leastwise.inspection.feature_weights import named_feature_weights
from leastwise.model_selection.checkpoint import search_time
from leastwise.solvers.plan import Plan, duration
from leastwise.sources.blocks import TableError
from leastwise.tables.columns import Column
from leastwise.tables.comparison import compare_models
from leastwise.tables.drift import check_drift, read_class_prior, reference_of
from leastwise.tables.effects import column_effects
from leastwise.tables.evaluation import (
    Predictions,
    evaluate_model,
    heldout_predictions,
    heldout_scores,
    json_values,
    novelty_pvalues,
    predict_classes,
    predict_labels,
    predict_numbers,
    summarize_model,
    true_target,
)
from leastwise.tables.linear import baseline_note, compare_baselines, linear_seconds
from leastwise.tables.planning import check_time_limit, sized_model, warn_time_limit
from leastwise.tables.prepare import (
    RULES,
    Prepared,
    Roles,
    Target,
    input_estimator,
    label_thresholds,
    miss_limits,
    prepare,
    task_ids,
    unseen_task_notes,
)
from leastwise.tables.table import Array, Table, text_of
from leastwise.utils.atomic_fit import all_or_nothing
from leastwise.utils.unwrap import core, fit_inside, inner_model, layers, split_params


@shows_fit
class TableModel(BaseEstimator):
    """A model of a table: columns of any kind in, predictions with probabilities, sets and decisions out.

    The kinds of the columns and of the target are found by documented rules; see the page "Tables".

    Parameters
    ----------
    target : str, optional
        The column to predict: classes or numbers.
    labels : sequence of str, optional
        Instead of a target: columns of 0 and 1 (yes and no, true and false); cells may be missing.
    task : str, optional
        The column with the task of each row, such as a site, person or product.
    group : str, optional
        Rows with the same value are held out together, such as rows of one person. A row with a missing value is a
        group of its own. "duplicates", if there is no such column, holds out equal rows together.
    weight : str, optional
        The column with the sample weights.
    id : str or sequence of str, optional
        Columns that are not inputs, and are copied to the predictions.
    kind : {"classes", "numbers"}, optional
        The kind of the target; by default found.
    model : estimator, optional
        The estimator, of this library or another; by default ``LSPC`` for classes, ``LSSVR`` for numbers,
        ``MultiLabelLSPC`` for labels, and ``MultiTaskLSPC`` and ``MultiTaskLSSVR`` with a task. Estimators of this
        library scale the numbers, encode the categories and take account of missing values themselves, as in a fit to
        a frame; others get the features of :class:`TableEncoder`.
    kinds, ignore
        As in :class:`TableEncoder`.
    missing : sequence of str, default=()
        Words that mark a missing cell in any column, beside those of the page "Tables": "unknown", "-999".
    max_error : float, optional
        Maximum error rate of the decisions; rows are left undecided to keep it, see
        :class:`leastwise.Abstaining`.
    min_confidence : float, optional
        Minimum probability of a decision.
    cost : float, optional
        Cost of leaving a row undecided, in units of the cost of an error. Give at most one of ``max_error``,
        ``min_confidence`` and ``cost``.
    max_miss : mapping of classes or labels to floats, optional
        Largest share of the rows of a class that are decided as another class: ``{"fault": 0.01}``; for labels, of
        the rows that have the label. Alone, or with one of the above.
    confidence : float, default=0.95
        Probability, over the draw of the training rows, that ``max_error`` is kept, and each limit of ``max_miss``.
    by_task : bool, default=False
        True gives every task its own threshold and, with ``recalibrate``, its own calibration.
    threshold : float, "auto" or mapping of labels to numbers, optional
        For labels: a label is predicted where its probability is above this; by default 0.5. "auto" chooses the
        thresholds on held-out rows.
    similarity : str, optional
        Which tasks, or labels, share: the names that ``MultiTaskLSPC`` and ``MultiLabelLSPC`` take.
    kernel : str, optional
        The kernel, such as "rbf", "laplace", "linear" or "rbf+linear"; by default chosen on held-out rows.
    bounds : pair of float, optional
        For numbers: the smallest and the largest possible value, such as ``(0, 10)``. Predictions and intervals stay
        within them.
    coverage : float, default=0.9
        Coverage of prediction sets and intervals.
    recalibrate : bool, default=False
        Calibrate again on held-out predictions, see :class:`leastwise.Recalibrated`.
    n_centers : "auto", int or None, default="auto"
        Number of kernel centres. "auto" is that of the estimators, see :class:`leastwise.LSPC`; with more than 10,000
        rows it is 500, and fewer where the memory (see :func:`leastwise.set_memory_limit`) or ``time_limit`` does not
        suffice.
    time_limit : float, optional
        Seconds that the fit may take. The number of centres follows it, and the search stops there with the best
        point so far. Times are planned, see :meth:`plan`, so the limit is kept approximately.
    random_state : int, RandomState or None, default=0
        For random centres. None is a fixed seed, too.

    Attributes
    ----------
    kind_ : {"classes", "numbers", "labels"}
    encoder_ : TableEncoder
    columns_ : list of Column
        The input columns.
    feature_weights_ : dict of str to float or None
        The weights that the kernel gives to the inputs, from the largest; None if it has none.
    model_ : estimator
        The fitted estimator.
    decider_ : Abstaining or None
        With a rule for decisions: ``model_`` and the thresholds.
    fitted_ : Abstaining, Recalibrated or estimator
        The outermost of these, which contains the others.
    classes_ : ndarray
        The classes, if the target has any.
    baseline_ : ndarray or float
        Weighted class shares of training, the frequency of 1 of each label, or the weighted mean number.
    n_rows_, left_out_ : int and dict
        Number of training rows, and of rows left out, by reason.
    rows_used_ : ndarray of int
        Indices of the training rows in the table.
    reference_ : dict
        How the training rows are distributed over bins of every column, for :meth:`check_drift`.
    stopped_ : bool
        Whether the search stopped at ``time_limit``.
    baselines_ : dict or None
        Held-out losses of the fit and of two baselines on the same rows: ``constant`` (class shares, or the mean) and
        ``linear`` (logistic or ridge regression with one-hot categories and tasks), with paired differences; None if
        too few rows were held out. See :func:`leastwise.tables.linear.compare_baselines`.
    effects_ : dict
        What the columns do to the predictions: ``importance`` by column, and ``lines`` of partial dependence for the
        most important ones. See :func:`leastwise.tables.effects.column_effects`.
    seconds_ : dict
        Seconds of this fit (``model``) and of one fit of the linear baseline (``linear``). Model files leave it out.
    heldout_ : dict
        Scores of held-out predictions, slightly optimistic as they also chose the hyperparameters.
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
        missing: Sequence[str] = (),
        max_error: float | None = None,
        min_confidence: float | None = None,
        cost: float | None = None,
        max_miss: Mapping[str, float] | None = None,
        confidence: float = 0.95,
        by_task: bool = False,
        threshold: Any = None,
        similarity: str | None = None,
        kernel: str | None = None,
        bounds: Sequence[float] | None = None,
        coverage: float = 0.9,
        recalibrate: bool = False,
        n_centers: Any = "auto",
        time_limit: float | None = None,
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
        self.missing = missing
        self.max_error = max_error
        self.min_confidence = min_confidence
        self.cost = cost
        self.max_miss = max_miss
        self.confidence = confidence
        self.by_task = by_task
        self.threshold = threshold
        self.similarity = similarity
        self.kernel = kernel
        self.bounds = bounds
        self.coverage = coverage
        self.recalibrate = recalibrate
        self.n_centers = n_centers
        self.time_limit = time_limit
        self.random_state = random_state

    # ------------------------------------------------------------------ fit

    @all_or_nothing
    def fit(self, table: Any, y: Any = None) -> TableModel:
        """Find kinds, encode, choose hyperparameters, fit, calibrate, set the threshold.

        Parameters
        ----------
        table : Table, frame or mapping of columns
            Including the target; or what ``prepare`` returned for it.
        y : ignored
        """
        found = self.prepare(table)
        roles, used, target, params = found.roles, found.used, found.target, found.params
        self.left_out_, self.encoder_ = found.left_out, found.encoder
        self.kind_, self.n_rows_, self.rows_used_ = target.kind, len(used), np.flatnonzero(target.known)
        model, plan = self._planned(found)
        warn_time_limit(plan, self.time_limit)
        started = time.perf_counter()
        with search_time(self.time_limit) as limit:
            self.fitted_ = fit_inside(model, self.encoder_.transform(used), target.y, *split_params(model, params))
        self.stopped_ = limit.n_skipped > 0
        seconds = time.perf_counter() - started
        self._store(target, roles, params.get("sample_weight", np.ones(len(used))))
        self._compare_baselines(found, seconds)
        self.effects_ = column_effects(self, found)
        self.reference_ = reference_of(self, used, params)
        self.notes_ = self._notes(found.table)
        return self

    def _read(self, table: Any) -> Table:
        """The table, with the words of ``missing`` as missing cells."""
        return Table.of(table).with_missing([self.missing] if isinstance(self.missing, str) else self.missing)

    def prepare(self, table: Any) -> Prepared:
        """What ``look``, ``plan`` and ``fit`` need of a table: pass it to them to read the cells only once."""
        return table if isinstance(table, Prepared) else prepare(self, self._read(table))

    def look(self, table: Any) -> dict[str, Any]:
        """What ``fit`` would use, without fitting: kinds of the columns and of the target, rows, classes.

        ``plan`` has the solver, centres, expected seconds and memory as in :meth:`plan`, or None.
        """
        found = self.prepare(table)
        plan = self._planned(found)[1]
        return json_values(found.summary() | {"plan": None if plan is None else plan.as_dict()})

    def plan(self, table: Any) -> Plan | None:
        """Solver, operations, memory and time that ``fit`` would need; None if ``model`` has no method ``plan``.

        Tables take time to be read and encoded, which is not included.
        """
        return self._planned(self.prepare(table))[1]

    def _planned(self, found: Prepared) -> tuple[Any, Plan | None]:
        """The estimator before its fit, and the plan of the fit."""
        check_time_limit(self.time_limit)
        kind, task = found.target.kind, found.roles.task
        n_centers = self.n_centers if self.model is None else None
        model, plan = sized_model(lambda count: self._chosen(kind, task, count), found, n_centers, self.time_limit)
        own = input_estimator(model)
        if own is not None:
            own.categories = found.encoder.nominal_ or "from_dtype"
        if self.recalibrate:
            model = Recalibrated(model, by_task=self.by_task)
        rule = {name: getattr(self, name) for name in RULES if getattr(self, name) is not None}
        if self.max_miss:
            rule["max_miss"] = miss_limits(self.max_miss, found)
        if rule:
            model = Abstaining(model, **rule, confidence=self.confidence, by_task=self.by_task)
        return model, plan

    def _chosen(self, kind: str, task: str | None, centers: Any) -> Any:
        """The given estimator, or the default for this kind of target."""
        if self.model is not None:
            return clone(self.model)
        classes: dict[tuple[str, bool], Any] = {
            ("classes", False): LSPC,
            ("classes", True): MultiTaskLSPC,
            ("numbers", False): LSSVR,
            ("numbers", True): MultiTaskLSSVR,
            ("labels", False): MultiLabelLSPC,
        }
        names = ("kernel", "similarity", "bounds")
        given = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        if self.threshold is not None:
            given["threshold"] = label_thresholds(self.threshold, list(self.labels or ()))
        return classes[kind, task is not None](n_centers=centers, random_state=self.random_state, **given)

    def _store(self, target: Target, roles: Roles, w: Array) -> None:
        """Set label names, classes, baseline and held-out scores."""
        inner = self._inner
        if self.kind_ == "labels":
            self.baseline_: Any = np.nanmean(np.asarray(target.y), axis=0)
        elif self.kind_ == "classes":
            self.classes_ = inner.classes_
            codes = np.searchsorted(self.classes_, target.y)
            self.baseline_ = np.bincount(codes, w, len(self.classes_)) / w.sum()
        else:
            self.baseline_ = float(np.average(target.y, weights=w))
        self.heldout_ = heldout_scores(self, target.y)

    def _compare_baselines(self, found: Prepared, seconds: float) -> None:
        """Compare held-out predictions with those of two baselines."""
        self.baselines_: dict[str, Any] | None = None
        self.seconds_ = {"model": seconds}
        heldout = heldout_predictions(self)
        if heldout is not None:
            self.baselines_ = json_values(compare_baselines(found, self.kind_, heldout))
        if self.baselines_ is not None:
            self.seconds_["linear"] = linear_seconds(found, self.kind_)

    def _notes(self, table: Table) -> list[str]:
        notes = [*table.notes, *(f"{count} rows left out: {why}." for why, count in self.left_out_.items() if count)]
        notes += [f'Column "{c.name}" is not used: {c.note}.' for c in self._unused()]
        centers = getattr(self._inner, "centers_", None)
        if self.model is None and centers is not None and centers.shape[0] < self.n_rows_:
            count = f"{centers.shape[0]} of {self.n_rows_} rows"
            notes.append(f"{count} are kernel centres (n_centers); all rows are used for training.")
        if self.stopped_ and self.time_limit is not None:
            notes.append(
                f"The search stopped at the time limit of {duration(self.time_limit)}, with the best point so far."
            )
        no_better = None if self.baselines_ is None else baseline_note(self.kind_, self.baselines_)
        return notes if no_better is None else [*notes, no_better]

    @property
    def columns_(self) -> list[Column]:
        """The input columns."""
        return self.encoder_.columns_

    @property
    def feature_weights_(self) -> dict[str, float] | None:
        """The weights that the kernel gives to the inputs, by name, from the largest; None if there are none."""
        return named_feature_weights(self.model_, self.input_names_)

    @property
    def input_names_(self) -> list[str] | None:
        """Names of the columns that the estimator gets; None if a pipeline makes others."""
        piped = any(isinstance(layer, Pipeline) for layer in layers(self.model_))
        return None if piped else self.encoder_.get_feature_names_out().tolist()

    @property
    def decider_(self) -> Abstaining | None:
        """The model with its threshold, if there is one."""
        return self.fitted_ if isinstance(self.fitted_, Abstaining) else None

    @property
    def model_(self) -> Any:
        """The fitted estimator."""
        return self.fitted_.estimator_ if isinstance(self.fitted_, Abstaining) else self.fitted_

    def _unused(self) -> list[Column]:
        """Input columns that are left out, but not by request."""
        requested = {*self.ignore, *(name for name, kind in (self.kinds or {}).items() if kind == "ignore")}
        return [column for column in self.columns_ if column.kind == "ignore" and column.name not in requested]

    @property
    def _predictor(self) -> Any:
        """The source of predictions, at the end of a pipeline: the estimator, or its second calibration."""
        return inner_model(self.model_)

    @property
    def _inner(self) -> Any:
        """The estimator itself, inside pipelines and a second calibration."""
        return core(self.model_)

    # -------------------------------------------------------------- predict

    def answer(self, table: Any, strict: bool = False, class_prior: Any = None) -> Predictions:
        """Predictions for the rows of a table, as arrays; parameters as in :meth:`predict_table`."""
        check_is_fitted(self)
        roles, table = Roles.of(self), self._read(table)
        if not len(table):
            raise TableError("there are no rows to predict.")
        if roles.task and roles.task not in table.columns:
            raise table.missing_error([roles.task], "the model needs its task in")
        encoded = self.encoder_.encode(table.without(roles.all))
        params, notes, known = {}, list(encoded.notes), None
        if roles.task:
            params["tasks"] = task_ids(table, roles.task)
            known = np.isin(params["tasks"], self._inner.tasks_)
            notes += unseen_task_notes(table, roles.task, params["tasks"], known, self._inner.tasks_, strict)
        make = {"classes": predict_classes, "labels": predict_labels, "numbers": predict_numbers}[self.kind_]
        prior = read_class_prior(self, class_prior, encoded.X, params)
        if prior is not None:
            if isinstance(class_prior, str) and class_prior == "estimate":
                notes.append(f"Estimated class shares: {self._shares_text(prior)}.")
            notes.append(
                "Limits of errors and prediction sets are for the class shares of training: there are no sets, and "
                "the limits may not be kept."
            )
        novelty = novelty_pvalues(self, encoded.X)
        made = make(self, encoded.X, params, {} if prior is None else {"class_prior": prior})
        return replace(made, novelty=novelty, notes=tuple(notes), tasks=params.get("tasks"), known_task=known)

    def _shares_text(self, shares: Any) -> str:
        """Shares of the classes, or of the labels."""
        names = list(self.labels or ()) if self.kind_ == "labels" else [text_of(c) for c in self.classes_]
        return ", ".join(f"{name} {share:.1%}" for name, share in zip(names, shares, strict=True))

    def predict_table(self, table: Any, strict: bool = False, class_prior: Any = None) -> Table:
        """Predictions, one row for each row.

        Parameters
        ----------
        table : Table, frame or mapping of columns
        strict : bool, default=False
            Raise an error for rows of tasks that did not occur in training; by default they have the shared model,
            and a warning names ids that differ only in upper and lower case, spaces or leading zeros from known ones.
        class_prior : mapping, "uniform" or "estimate", optional
            Class shares of the new rows, if they differ from those of training: by class, or by label the share of
            1. "estimate" finds them from the predicted probabilities, see :func:`leastwise.estimate_class_prior`.
            Then there are no prediction sets, whose coverage holds for the shares of training.

        Returns
        -------
        Table
            The columns of ``id``, or ``row``, counted from 1. For classes ``prediction``, ``p_<class>`` for each
            class, ``confidence`` (the probability of the prediction), ``decision`` (the prediction, or empty where a
            person has to decide; only with a rule for decisions), ``set`` (the prediction set, its
            classes separated by a bar, with a backslash before a bar or backslash in a name) and ``in_domain`` (from
            1, near the training rows, to 0). For numbers
            ``prediction``, ``interval_lower`` and ``interval_upper``. For labels the name of each, the same with the
            prefixes ``p_``, ``decision_`` and ``set_``, and ``in_domain``. Last, if the model has them, ``novelty``
            (the p-value of :meth:`leastwise.LSPC.novelty_pvalue`: small for rows unlike the training rows) and, with
            a task, ``known_task``: false where the task did not occur in training.
        """
        predicted, given = self.answer(table, strict, class_prior), Table.of(table)
        ids = Roles.of(self).ids
        kept = {name: given[name] for name in ids} if ids else {"row": np.arange(1, len(given) + 1)}
        columns = predicted.columns(self)
        double = sorted(set(kept) & set(columns))
        if double:
            raise TableError(f"the columns {double} are in the table and in the predictions: rename them.")
        return Table({**kept, **columns}, notes=predicted.notes)

    def evaluate(self, table: Any, strict: bool = False, class_prior: Any = None) -> dict[str, Any]:
        """Scores on a table that includes the target; rows without it are left out.

        ``strict`` and ``class_prior`` are as in :meth:`predict_table`.

        Returns
        -------
        dict
            For classes ``rows``, ``log_loss``, ``brier``, ``accuracy``, ``auc``, ``ece`` (the calibration error of
            the most probable class, debiased, 0 at least), ``classwise_ece`` (its mean over classes), the ends of
            their 95 % intervals (``ece_interval``, ``classwise_ece_interval``), ``set_coverage``, ``set_size``,
            ``decided`` and ``error_of_decided``; for numbers ``rmse``, ``mae``, ``r2``, ``interval_coverage`` and
            ``interval_width``; for labels those of each and of all. ``baseline`` has those of the class shares,
            or of the mean; ``tasks`` some for each task, among them ``decided`` and
            ``error_of_decided``; ``notes`` what was unusual about the rows. Rows are not weighted.
        """
        return evaluate_model(self, self._read(table), strict, class_prior)

    def score(self, table: Any, y: Any = None) -> float:
        """The accuracy on a table that includes the target, or R2 for numbers; for searches of scikit-learn.

        Parameters
        ----------
        table : Table, frame or mapping of columns
        y : ignored
        """
        found = self.evaluate(table)
        return float(found["r2" if self.kind_ == "numbers" else "accuracy"])

    def compare(self, other: TableModel, table: Any, strict: bool = False) -> dict[str, Any]:
        """Scores of this model and another one on a table that includes the target, and their paired differences.

        Parameters
        ----------
        other : TableModel
            A model of the same target.
        table : Table, frame or mapping of columns
            Rows that neither model was trained on.
        strict : bool, default=False
            As in :meth:`predict_table`.

        Returns
        -------
        dict
            ``scores`` has, by the name of each score, ``first`` (this model), ``second``, ``difference`` (second
            minus first), its 95 % bootstrap ``interval`` and ``better``: "first", "second", or None where the
            interval contains 0. Rows of one group are drawn together if the table has the column ``group``.
        """
        check_is_fitted(self)
        return compare_models(self, other, self._read(table), strict)

    def check_drift(self, table: Any, tolerance: float = 0.1, level: float = 0.01) -> dict[str, Any]:
        """Compare a new table with the training table: columns, categories, ranges, tasks, novelty and predictions.

        Parameters
        ----------
        table : Table, frame or mapping of columns
            It needs no target.
        tolerance : float, default=0.1
            Distance of two distributions up to which they count as equal: the share of rows that would have to
            change to make them equal.
        level : float, default=0.01
            Probability of any false alarm, if the rows are independent draws from the distribution of training.

        Returns
        -------
        dict
            ``drift`` lists what has changed; ``checks`` has for every column, the tasks, novelty and the predictions
            ``distance`` (None if a column is missing or cannot be read), ``p_value``, ``drift`` and ``note``.
        """
        check_is_fitted(self)
        return check_drift(self, self._read(table), tolerance, level)

    def labelled_rows(self, table: Any, strict: bool = False) -> dict[str, Any]:
        """``X``, ``y`` and ``tasks`` of the rows with a known target, for :func:`leastwise.report.write_report`."""
        check_is_fitted(self)
        table = self._read(table)
        target, roles = true_target(self, table), Roles.of(self)
        used = table.take(np.flatnonzero(target.known))
        y = self.classes_[target.y] if self.kind_ == "classes" else target.y
        tasks = task_ids(used, roles.task) if roles.task else None
        if roles.task and tasks is not None:
            known = np.isin(tasks, self._inner.tasks_)
            unseen_task_notes(used, roles.task, tasks, known, self._inner.tasks_, strict)
        return {"X": self.encoder_.transform(used.without(roles.all)), "y": y, "tasks": tasks, "used": used}

    def summary(self) -> dict[str, Any]:
        """A summary of the fit, as JSON values."""
        check_is_fitted(self)
        return summarize_model(self)

    kind_: str
    fitted_: Any
