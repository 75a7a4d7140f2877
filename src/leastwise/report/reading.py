"""Rows that the user gives, with their truth, in place of those that the fit held out.

The model within what was given, and what is known of rows that it did not see.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from inspect import signature
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.heldout_rows import Evidence, HeldRows, gather
from leastwise.estimators._abstention_rows import class_codes, decided
from leastwise.estimators.abstaining import Abstaining
from leastwise.estimators.base import KernelEstimator, Regressor
from leastwise.estimators.labels import LabelClassifier
from leastwise.estimators.recalibrated import Recalibrated
from leastwise.estimators.sets import label_tables
from leastwise.estimators.validation import task_codes
from leastwise.metrics.losses import class_log_losses
from leastwise.problem.labels import encode_known
from leastwise.report.markup import Names
from leastwise.tables import TableModel
from leastwise.utils.unwrap import arrive

Array = np.ndarray


def with_tasks(function: Any, X: Any, tasks: Any, **more: Any) -> Any:
    """A method of the model within, told the tasks where there are any to tell."""
    told = {} if tasks is None or "tasks" not in signature(function).parameters else {"tasks": tasks}
    return function(X, **told, **more)


def given_rows(subject: Subject, X: Any, y: Any, tasks: Any) -> Seen:
    """What a classifier says of rows that are given."""
    P = subject.whole.predict_proba(X, **({} if tasks is None else {"tasks": tasks}))
    model, within = subject.model, arrive(subject.whole, X, through=True)[1]
    n = P[0].shape[0] if isinstance(P, list) else P.shape[0]
    if len(y) != n:
        raise ValueError(f"y has {len(y)} entries and X has {n} rows: give one for each.")
    trust = np.asarray(with_tasks(model.trust, within, tasks))
    task = task_codes(model, within, tasks) if hasattr(model, "task_index_") else None
    codes = _codes(model, y, n)
    weight = (codes >= 0).astype(float)
    return seen_of(subject, P, HeldRows(codes, weight, trust, None, task), False)


def _codes(model: Any, y: Any, n: int) -> Array:
    index = getattr(model, "label_index_", None)
    if index is None:
        return class_codes(model.classes_, y)
    flat = index.form == "flat"
    return encode_known(np.asarray(y).reshape(-1, 1) if flat else y, index, n, model.missing)


@dataclass(frozen=True)
class Subject:
    """A fitted model, and what it is wrapped in.

    Attributes
    ----------
    whole : object
        What takes rows as the user has them.
    model : KernelEstimator
        The model within.
    kind : {"classes", "labels", "values"}
    wrappers : tuple of str
        Names of the classes around the model, from outside.
    abstaining, recalibrated : object or None
        Those of the wrappers.
    names : Names
    """

    whole: Any
    model: Any
    kind: str
    wrappers: tuple[str, ...] = ()
    abstaining: Any = None
    recalibrated: Any = None
    names: Names = field(default_factory=Names)

    @property
    def speaker(self) -> Any:
        """Whose probabilities count: those of the model, or of its calibration."""
        return self.model if self.recalibrated is None else self.recalibrated

    @cached_property
    def tasks(self) -> list[str]:
        """Names of the tasks; none for a model without."""
        return self.names.all("tasks", self.model.task_index_.ids) if hasattr(self.model, "task_index_") else []

    @cached_property
    def labels(self) -> list[str]:
        """Names of the labels; none for a model without."""
        return self.names.all("labels", self.model.label_index_.names) if self.kind == "labels" else []

    @property
    def parts(self) -> list[str]:
        """Names of the tasks or labels."""
        return self.labels or self.tasks

    @property
    def part_word(self) -> str:
        """What the parts are."""
        return "label" if self.kind == "labels" else "task"

    def class_names(self, label: int = 0) -> list[str]:
        """Names of the classes, of a label where there are many."""
        index = getattr(self.model, "label_index_", None)
        return self.names.all("classes", self.model.classes_ if index is None else index.classes[label])


def subject_of(given: Any, names: Any = None) -> Subject:
    """Look through wrappers, pipelines and models of tables for a model of this library."""
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
            model = model.estimator_
        elif isinstance(model, Pipeline | FrozenEstimator):
            model = model.estimator if isinstance(model, FrozenEstimator) else model.steps[-1][1]
        else:
            raise TypeError(
                f"model is, or ends in, {type(model).__name__}: a report is of a fitted model of leastwise, such as "
                "LSPC or MultiTaskLSPC, alone, in a pipeline, or within Abstaining or Recalibrated."
            )
    check_is_fitted(model)
    kind = _kind(model)
    called = Names(names, "tasks" if kind == "values" else kind)
    return Subject(whole, model, kind, tuple(wrappers), names=called, **found)


def _kind(model: Any) -> str:
    if isinstance(model, Regressor):
        return "values"
    many = isinstance(model, LabelClassifier) and model.label_index_.form != "flat"
    return "labels" if many else "classes"


# ------------------------------------------------------------------------ what was said of rows


@dataclass(frozen=True)
class Part:
    """What was said of rows, and what is true: of all rows, or of a label.

    Attributes
    ----------
    evidence : Evidence
        Probabilities, true classes, weights, groups and tasks.
    rows : ndarray of int
        Where the rows stand.
    classes : list of str
    limit : float
        Above which probability the second of two classes is decided for.
    name : str
        Of a label.
    """

    evidence: Evidence
    rows: Array
    classes: list[str]
    limit: float = 0.5
    name: str = ""

    def __len__(self) -> int:
        return len(self.rows)

    @cached_property
    def said(self) -> Array:
        """Codes of the classes that are decided for."""
        return decided(self.evidence.P, self.limit)

    @cached_property
    def sure(self) -> Array:
        """Their probabilities."""
        return self.evidence.P[np.arange(len(self)), self.said]

    @cached_property
    def wrong(self) -> Array:
        """Whether another class is the true one."""
        return self.said != self.evidence.codes

    @cached_property
    def loss(self) -> Array:
        """Log-loss of every row."""
        return class_log_losses(self.evidence.P, self.evidence.codes)

    @cached_property
    def square(self) -> Array:
        """Squared distance between probabilities and the truth of every row, summed over classes."""
        hot = self.evidence.codes[:, None] == np.arange(self.evidence.P.shape[1])
        return np.sum((self.evidence.P - hot) ** 2, axis=1)

    def some(self, places: Array) -> Part:
        """Some of the rows."""
        return Part(self.evidence.part(places), self.rows[places], self.classes, self.limit, self.name)


@dataclass(frozen=True)
class Seen:
    """Rows that a classifier did not see in training, with what it said of them.

    Attributes
    ----------
    parts : list of Part
        One, or one for each label.
    n : int
        Number of rows, also of those that do not count.
    held : HeldRows
    heldout : bool
        Whether these are training rows that were held out; otherwise they were given.
    """

    parts: list[Part]
    n: int
    held: HeldRows
    heldout: bool = True


def held_out(subject: Subject) -> Seen | None:
    """The held-out rows of a classifier; None where there are none."""
    held = vars(subject.model).get("heldout_rows_")
    if held is None:
        return None
    return seen_of(subject, subject.speaker.heldout_proba_, held, True)


def seen_of(subject: Subject, P: Any, held: HeldRows, heldout: bool) -> Seen:
    """Probabilities in the form in which models give them, beside the truth."""
    index = getattr(subject.model, "label_index_", None)
    if index is None:
        P = np.asarray(P)
        return Seen([_part(P, held, None, subject.class_names())], len(P), held, heldout)
    tables = label_tables(P, index.form)
    limits = np.broadcast_to(getattr(subject.speaker, "threshold_", 0.5), len(tables))
    names = subject.labels or [""]
    parts = [
        _part(table, held, t, subject.class_names(t), float(limit), name)
        for t, (table, limit, name) in enumerate(zip(tables, limits, names, strict=True))
    ]
    return Seen(parts, len(tables[0]), held, heldout)


def _part(
    P: Array, held: HeldRows, label: int | None, classes: list[str], limit: float = 0.5, name: str = ""
) -> Part:
    w = held.weight if label is None else held.weight[:, label]
    rows = np.flatnonzero((w > 0) & ~np.isnan(P[:, 0]))
    return Part(gather(P, held, label), rows, classes, limit, name)
