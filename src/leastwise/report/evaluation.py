"""The model of a report, its predictions for rows that it was not trained on, and how good these are.

The rows are those that the fit held out, or rows that the user gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
from scipy.special import ndtri
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.conformal import CalibrationSet, HeldRows, gather
from leastwise.calibration.misses import blocked
from leastwise.estimators._abstention_rows import class_codes, decided
from leastwise.estimators.abstaining import Abstaining
from leastwise.estimators.base import KernelEstimator
from leastwise.estimators.multi_label import MultiLabelLSPC
from leastwise.estimators.predicting import hidden_by_selection, label_tables
from leastwise.estimators.recalibrated import Recalibrated
from leastwise.estimators.regressors import Regressor
from leastwise.fitting.new_rows import task_codes
from leastwise.metrics.probabilities import class_log_losses
from leastwise.metrics.reliability import (
    Interval,
    calibration_errors,
    event_calibration_error,
    exact_interval,
    merged_width_bins,
    reliability_bins,
)
from leastwise.problem.labels import encode_known
from leastwise.problem.targets.labels import as_column
from leastwise.report.formatting import Names, plain, plain_list
from leastwise.tables import TableModel
from leastwise.utils.unwrap import arrive, within

Array = np.ndarray

#: Level of all intervals.
LEVEL = 0.95
#: At most this many classes or labels have their own reliability diagram.
MAX_DIAGRAMS = 12


# ----------------------------------------------------------------------------- the model


@dataclass(frozen=True)
class Subject:
    """The fitted model of a report, with its wrappers.

    Attributes
    ----------
    whole : object
        The outermost model, which takes rows as the user has them.
    model : KernelEstimator
        The model inside.
    kind : {"classes", "labels", "values"}
    wrappers : tuple of str
        Class names of the wrappers, from the outside.
    abstaining, recalibrated : object or None
        Those of the wrappers.
    names : Names
    inputs : sequence of str or None
        Names of the columns of a table that the model gets.
    """

    whole: Any
    model: Any
    kind: str
    wrappers: tuple[str, ...] = ()
    abstaining: Any = None
    recalibrated: Any = None
    names: Names = field(default_factory=Names)
    inputs: Sequence[str] | None = None

    @property
    def calibrated(self) -> Any:
        """The layer whose probabilities are reported: the recalibrated model if there is one."""
        return self.model if self.recalibrated is None else self.recalibrated

    @cached_property
    def tasks(self) -> list[str]:
        """Names of the tasks; empty for a single-task model."""
        return self.names.all("tasks", self.model.task_index_.ids) if hasattr(self.model, "task_index_") else []

    @cached_property
    def labels(self) -> list[str]:
        """Names of the labels; empty for a single-label model."""
        return self.names.all("labels", self.model.label_index_.names) if self.kind == "labels" else []

    @property
    def parts(self) -> list[str]:
        """Names of the labels or tasks."""
        return self.labels or self.tasks

    @property
    def part_word(self) -> str:
        """What ``parts`` are."""
        return "label" if self.kind == "labels" else "task"

    def class_names(self, label: int = 0) -> list[str]:
        """Names of the classes, of one label where there are several."""
        index = getattr(self.model, "label_index_", None)
        return self.names.all("classes", self.model.classes_ if index is None else index.classes[label])


def subject_of(given: Any, names: Any = None) -> Subject:
    """Find the model of this library inside table models, wrappers and pipelines."""
    wrappers: list[str] = []
    found: dict[str, Any] = {}
    if isinstance(given, TableModel):
        check_is_fitted(given)
    whole = model = given.fitted_ if isinstance(given, TableModel) else given
    while not isinstance(model, KernelEstimator):
        wrappers.append(type(model).__name__)
        if isinstance(model, Abstaining | Recalibrated):
            found["abstaining" if isinstance(model, Abstaining) else "recalibrated"] = model
            check_is_fitted(model)
        inner = within(model)
        if inner is None:
            raise TypeError(
                f"model is, or ends in, {type(model).__name__}: a report needs a fitted model of leastwise, such as "
                "LSPC or MultiTaskLSPC, alone, in a pipeline, or in Abstaining or Recalibrated."
            )
        model = inner
    check_is_fitted(model)
    if isinstance(model, Regressor):
        kind = "values"
    else:
        several = isinstance(model, MultiLabelLSPC) and model.label_index_.form != "flat"
        kind = "labels" if several else "classes"
    display_names = Names(names, "tasks" if kind == "values" else kind)
    inputs = given.input_names_ if isinstance(given, TableModel) else None
    return Subject(whole, model, kind, tuple(wrappers), names=display_names, inputs=inputs, **found)


# --------------------------------------------------------------------------- predictions


@dataclass(frozen=True)
class Predictions:
    """Probabilities and true classes: of all rows, or of one label.

    Attributes
    ----------
    heldout : CalibrationSet
        Probabilities, true classes, weights, groups and tasks.
    rows : ndarray of int
        Positions of the rows.
    classes : list of str
    threshold : float
        The second of two classes is predicted where its probability is above this.
    name : str
        The label.
    levels : ndarray of shape (n, c), optional
        A row is not accepted as another class if its probability of a class reaches this.
    """

    heldout: CalibrationSet
    rows: Array
    classes: list[str]
    threshold: float = 0.5
    name: str = ""
    levels: Array | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def predicted(self) -> Array:
        """Codes of the predicted classes."""
        return decided(self.heldout.P, self.threshold)

    @cached_property
    def confidence(self) -> Array:
        """Probabilities of the predicted classes."""
        return self.heldout.P[np.arange(len(self)), self.predicted]

    @cached_property
    def eligible_confidence(self) -> Array:
        """The same, with -1 for rows that the limits of classes exclude from any decision."""
        if self.levels is None:
            return self.confidence
        return np.where(blocked(self.heldout.P, self.predicted, self.levels), -1.0, self.confidence)

    @cached_property
    def wrong(self) -> Array:
        """True where another class is the true one."""
        return self.predicted != self.heldout.codes

    @cached_property
    def loss(self) -> Array:
        """Log-loss of every row."""
        return class_log_losses(self.heldout.P, self.heldout.codes)

    @cached_property
    def brier(self) -> Array:
        """Squared distance between probabilities and one-hot classes of every row."""
        hot = self.heldout.codes[:, None] == np.arange(self.heldout.P.shape[1])
        return np.sum((self.heldout.P - hot) ** 2, axis=1)

    def take(self, places: Array) -> Predictions:
        """Some of the rows."""
        levels = None if self.levels is None else self.levels[places]
        part, rows = self.heldout.part(places), self.rows[places]
        return Predictions(part, rows, self.classes, self.threshold, self.name, levels)

    def events(self, by_label: bool) -> Events:
        """That the most probable class is true; of a label with two classes, that the second one is."""
        e = self.heldout
        unit = e.group if e.group is not None else (self.rows if by_label else None)
        if by_label and e.P.shape[1] == 2:
            return Events(e.P[:, 1], e.codes == 1, e.w, unit)
        return Events(e.P.max(axis=1), e.P.argmax(axis=1) == e.codes, e.w, unit)


@dataclass(frozen=True)
class Events:
    """Events with their probabilities p, whether they were true, weights w; rows of one ``unit`` are dependent."""

    p: Array
    true: Array
    w: Array
    unit: Array | None


@dataclass(frozen=True)
class Evaluation:
    """Predictions of a classifier for rows that it was not trained on.

    Attributes
    ----------
    parts : list of Predictions
        One, or one for each label.
    n : int
        Number of rows, including those that do not count.
    held : HeldRows
    heldout : bool
        True for held-out training rows, False for rows that were given.
    """

    parts: list[Predictions]
    n: int
    held: HeldRows
    heldout: bool = True

    @property
    def by_label(self) -> bool:
        """True if there are several labels."""
        return len(self.parts) > 1

    @cached_property
    def known(self) -> list[Predictions]:
        """The parts that have rows."""
        return [part for part in self.parts if len(part)]

    def events(self) -> Events:
        """Those of all parts."""
        parts = [part.events(self.by_label) for part in self.known]
        unit = None if parts[0].unit is None else np.concatenate([e.unit for e in parts])
        p, true, w = (np.concatenate([getattr(e, name) for e in parts]) for name in ("p", "true", "w"))
        return Events(p, true, w, unit)


def heldout_evaluation(subject: Subject) -> Evaluation | None:
    """The held-out rows of a classifier; None where there are none."""
    held = vars(subject.model).get("heldout_rows_")
    return None if held is None else _evaluation(subject, subject.calibrated.heldout_proba_, held, True)


def given_evaluation(subject: Subject, X: Any, y: Any, tasks: Any) -> Evaluation:
    """Rows that are given with their true classes or labels."""
    P = subject.whole.predict_proba(X, **({} if tasks is None else {"tasks": tasks}))
    model, inner_rows = subject.model, arrive(subject.whole, X, through=True)[1]
    n = P[0].shape[0] if isinstance(P, list) else P.shape[0]
    if len(y) != n:
        raise ValueError(f"y has {len(y)} entries and X has {n} rows: give one entry for each row.")
    in_domain = np.asarray(call_with_tasks(model.in_domain, inner_rows, tasks))
    task = task_codes(model, inner_rows, tasks) if hasattr(model, "task_index_") else None
    index = getattr(model, "label_index_", None)
    if index is None:
        codes = class_codes(model.classes_, y)
    else:
        codes = encode_known(as_column(y) if index.form == "flat" else y, index, n, model.missing)
    return _evaluation(subject, P, HeldRows(codes, (codes >= 0).astype(float), in_domain, None, task), False)


def call_with_tasks(method: Any, X: Any, tasks: Any, **more: Any) -> Any:
    """Call a method of the inner model, with ``tasks`` if they are given and the method takes them."""
    takes = tasks is not None and "tasks" in signature(method).parameters
    return method(X, **({"tasks": tasks} if takes else {}), **more)


def _evaluation(subject: Subject, P: Any, held: HeldRows, heldout: bool) -> Evaluation:
    """From probabilities in the form that models return."""
    index = getattr(subject.model, "label_index_", None)
    hidden = hidden_by_selection(subject.calibrated, held) if heldout else 0.0
    if index is None:
        P = np.asarray(P)
        part = _predictions(P, held, None, hidden, subject.class_names())
        return Evaluation([_limited(subject, part)], len(P), held, heldout)
    tables = label_tables(P, index.form)
    hidden /= len(tables)
    thresholds = np.broadcast_to(getattr(subject.calibrated, "threshold_", 0.5), len(tables))
    names = subject.labels or [""]
    parts = [
        _limited(subject, _predictions(table, held, t, hidden, subject.class_names(t), float(threshold), name), t)
        for t, (table, threshold, name) in enumerate(zip(tables, thresholds, names, strict=True))
    ]
    return Evaluation(parts, len(tables[0]), held, heldout)


def _predictions(
    P: Array,
    held: HeldRows,
    label: int | None,
    hidden: float,
    classes: list[str],
    threshold: float = 0.5,
    name: str = "",
) -> Predictions:
    w = held.weight if label is None else held.weight[:, label]
    rows = np.flatnonzero((w > 0) & ~np.isnan(P[:, 0]))
    return Predictions(gather(P, held, label, hidden), rows, classes, threshold, name)


def _limited(subject: Subject, part: Predictions, label: int | None = None) -> Predictions:
    """The predictions with the limits of classes, or of the label, if the model has any."""
    model = subject.abstaining
    if model is None or not model.max_miss:
        return part
    levels = np.tile(model.miss_levels_ if label is None else [np.inf, model.miss_levels_[label]], (len(part), 1))
    if label is None and part.heldout.task is not None:
        levels[part.heldout.task < 0] = model.unseen_task_miss_levels_
    return replace(part, levels=levels)


# ------------------------------------------------------------------------------ measures


def mean_interval(values: Array, w: Array, unit: Array | None) -> dict[str, Any]:
    """A weighted mean with a normal interval; rows of one unit (a group, or the labels of a row) are dependent."""
    mean = float(np.average(values, weights=w))
    off = w * (values - mean)
    sums = off if unit is None else np.bincount(np.unique(unit, return_inverse=True)[1], weights=off)
    n = len(sums)
    error = float(np.sqrt(n / (n - 1) * np.sum(sums**2)) / w.sum()) if n > 1 else np.nan
    half = ndtri((1 + LEVEL) / 2) * error
    return {"value": plain(mean), "low": plain(max(mean - half, 0.0)), "high": plain(mean + half)}


def share_interval(true: Array, w: Array, unit: Array | None) -> dict[str, Any]:
    """A share with an interval: Clopper-Pearson where rows are independent and have equal weights."""
    if unit is None and np.ptp(w) <= 1e-9 * w.max():
        low, high = exact_interval(true.sum(), len(true), LEVEL)
        return {"value": plain(true.mean()), "low": plain(low), "high": plain(high)}
    found = mean_interval(true.astype(float), w, unit)
    return {**found, "high": None if found["high"] is None else min(found["high"], 1.0)}


def measures(evaluation: Evaluation) -> dict[str, Any]:
    """Errors, log-loss, Brier score and calibration error over rows, or over known labels, with intervals."""
    parts, events = evaluation.known, evaluation.events()
    loss, brier, wrong = (np.concatenate([getattr(p, name) for p in parts]) for name in ("loss", "brier", "wrong"))
    return {
        "rows": len(np.unique(np.concatenate([part.rows for part in parts]))),
        "entries": len(loss),
        "error": share_interval(wrong, events.w, events.unit),
        "log_loss": mean_interval(loss, events.w, events.unit),
        "brier": mean_interval(brier, events.w, events.unit),
        **_calibration(evaluation),
    }


def _calibration(evaluation: Evaluation) -> dict[str, Any]:
    """The calibration error over rows or known labels; of classes, the mean over classes too."""
    if evaluation.by_label:
        events = evaluation.events()
        return {"ece": plain_interval(event_calibration_error(events.p, events.true, events.w, events.unit, LEVEL))}
    e = evaluation.known[0].heldout
    top, classwise = calibration_errors(e.codes, e.P, e.w, e.group, LEVEL)
    return {"ece": plain_interval(top), "classwise_ece": plain_interval(classwise)}


def plain_interval(found: Interval) -> dict[str, Any]:
    """A value with its interval, as plain numbers."""
    return {"value": plain(found.value), "low": plain(found.low), "high": plain(found.high)}


def reliability_curve(events: Events, name: str = "") -> dict[str, Any]:
    """A reliability diagram: bins with exact intervals, a histogram of p, and the debiased calibration error."""
    p, true, w = events.p, events.true, events.w
    bins = reliability_bins(p, true, merged_width_bins(p), w)
    low, high = bins.exact_interval(LEVEL)
    return {
        "p": plain_list(bins.p),
        "share": plain_list(bins.share),
        "low": plain_list(low),
        "high": plain_list(high),
        "rows": bins.counts.tolist(),
        "histogram": plain_list(np.histogram(p, bins=20, range=(0, 1), weights=w)[0] / w.sum()),
        "ece": plain_interval(event_calibration_error(p, true, w, events.unit, LEVEL)),
        "name": name,
    }


def reliability(evaluation: Evaluation) -> dict[str, Any]:
    """The diagram of all rows, and one for each class or label; of many, those with the largest errors."""
    by_label, parts, events = evaluation.by_label, evaluation.known, evaluation.events()
    if by_label:
        panels = [reliability_curve(part.events(True), part.name) for part in parts]
    else:
        e, names = parts[0].heldout, parts[0].classes
        classes = [1] if e.P.shape[1] == 2 else range(e.P.shape[1])  # with two classes one diagram is enough
        panels = [reliability_curve(Events(e.P[:, k], e.codes == k, e.w, e.group), names[k]) for k in classes]
    worst = sorted(panels, key=lambda panel: -panel["ece"]["value"])[:MAX_DIAGRAMS]
    shown = worst if len(panels) > MAX_DIAGRAMS else panels
    return {
        "all": reliability_curve(events),
        "by": "label" if by_label else "class",
        "panels": shown,
        "left_out": len(panels) - len(shown),
    }
