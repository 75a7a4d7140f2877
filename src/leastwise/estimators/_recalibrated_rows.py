"""Held-out predictions of a fitted model, one task, many tasks or many labels, in one form.

What the model inside ``Recalibrated`` says, after the maps; and sets of classes from that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.families import Recalibrator
from leastwise.calibration.heldout_rows import Evidence, HeldRows
from leastwise.calibration.recalibration_sample import Given, HeldOut
from leastwise.estimators.base import TaskClassifier
from leastwise.estimators.multi_label import MultiLabelLSPC
from leastwise.estimators.predicting import Answer
from leastwise.estimators.sets import Wanted, evidence_of, held_rows, label_tables, unseen_task_evidence
from leastwise.utils.unwrap import Wrapping, arrive, inner_model

Array = np.ndarray

#: Rows that stand for several observations are repeated, unless there would be so many times as many.
MOST = 100


@dataclass(frozen=True)
class Layout:
    """Where the classes of all labels stand in a table of probabilities, of shape (n, outputs).

    Attributes
    ----------
    columns : tuple of ndarray of int of shape (L, c)
        Columns of the classes of labels that have c of them. A model of one label has one entry, of shape (1, c).
    shares : ndarray of shape (outputs,)
        Class shares: those of the model, which are its answer far from the data.
    n_tasks : int
        Number of tasks that have parameters of their own; 0 where they have none.
    """

    columns: tuple[Array, ...]
    shares: Array
    n_tasks: int = 0

    def given(self, P: Array, task: Array | None, trust: Array | None) -> list[Given]:
        """Rows of a table, one entry for every label, by number of classes."""
        return [
            Given(
                P[:, columns].reshape(-1, columns.shape[1]).astype(float),
                np.tile(np.log(self.shares[columns]), (len(P), 1)),
                self._groups(columns, len(P), task),
                None if trust is None else np.repeat(trust, len(columns)).astype(float),
            )
            for columns in self.columns
        ]

    def table(self, P: Array, parts: list[Array]) -> Array:
        """The table with these entries; labels of a single class stay as they are, and so do rows of NaN."""
        new = P.copy()
        for columns, part in zip(self.columns, parts, strict=True):
            new[:, columns] = part.reshape(len(P), *columns.shape)
        new[np.isnan(P[:, 0])] = np.nan
        return new

    def applied(self, maps: tuple[Recalibrator, ...], P: Array, task: Array | None, trust: Array | None) -> Array:
        """The table after its maps."""
        given = self.given(P, task, trust)
        return self.table(P, [m.proba(part) for m, part in zip(maps, given, strict=True)])

    def _groups(self, columns: Array, n: int, task: Array | None) -> Array:
        if len(columns) > 1:
            return np.tile(np.arange(len(columns)), n)
        return np.zeros(n, dtype=int) if task is None or not self.n_tasks else task

    def n_groups(self, columns: Array) -> int:
        """Number of labels, or tasks, that have parameters of their own."""
        return max(len(columns), self.n_tasks, 1)


@dataclass(frozen=True)
class Truth:
    """What is known of training rows.

    Attributes
    ----------
    codes, W : ndarray of shape (n, labels)
        Classes, and weights (those of ``class_weight`` too).
    trust : ndarray of shape (n,)
    unit : ndarray of int of shape (n,)
        Labels of independent observations: groups, or rows.
    task : ndarray of int of shape (n,) or None
    times : ndarray of int of shape (n,) or None
        Observations that each row stands for; None for one each.
    """

    codes: Array
    W: Array
    trust: Array
    unit: Array
    task: Array | None
    times: Array | None = None

    def expanded(self) -> tuple[Truth, Array]:
        """One row for each observation, and which row it comes from: weight 2 is the row twice here too."""
        rows = np.arange(len(self.unit))
        if self.times is None or self.times.sum() > MOST * len(rows):
            return self, rows
        rows = np.repeat(rows, self.times)
        task = None if self.task is None else self.task[rows]
        W = self.W[rows] / self.times[rows][:, None]
        return Truth(self.codes[rows], W, self.trust[rows], np.arange(len(rows)), task), rows


def read_truth(model: Any) -> Truth:
    """Classes, weights, independent observations and tasks of the training rows."""
    held = model.heldout_rows_
    n = len(held.codes)
    codes, W = (a.reshape(n, -1) for a in (held.codes, held.weight))
    times = None if held.count is None else np.round(held.count).astype(int)
    return Truth(codes, W, held.trust, np.arange(n) if held.group is None else held.group, held.task, times)


def read_proba(model: Any) -> Array:
    """Held-out probabilities of all classes of all labels, side by side."""
    P = model.heldout_proba_
    if isinstance(P, list):
        return np.hstack(P)
    if isinstance(model, MultiLabelLSPC) and model.label_index_.form != "flat":
        return np.stack([1 - P, P], axis=2).reshape(len(P), -1)
    return P


def read_heldout(model: Any, truth: Truth, by_task: bool) -> tuple[Layout, list[HeldOut], list[Array]]:
    """The layout of the model's tables, a sample for every number of classes, and where its entries stand in them."""
    P = read_proba(model)
    truth, rows = truth.expanded()
    P = P[rows]
    starts = model.label_index_.starts if isinstance(model, MultiLabelLSPC) else np.array([0, P.shape[1]])
    W = np.where(np.isnan(P[:, :1]), 0.0, truth.W)
    row = W.sum(axis=1) / np.maximum((W > 0).sum(axis=1), 1)
    number = {u: k for k, u in enumerate(np.unique(truth.unit[row > 0]).tolist())}
    W = W * (len(number) / row.sum())
    widths = np.diff(starts)
    columns = [starts[:-1][widths == c][:, None] + np.arange(c) for c in np.unique(widths[widths > 1])]
    n_tasks = len(model.tasks_) if by_task else 0
    shares = model.calibrator_.shares if isinstance(model, MultiLabelLSPC) else model.class_prior_
    layout = Layout(tuple(columns), shares.astype(float), n_tasks)
    witness = np.array([number.get(u, -1) for u in truth.unit.tolist()])
    samples, places = [], []
    for block, given in zip(columns, layout.given(P, truth.task, truth.trust), strict=True):
        labels = np.searchsorted(starts, block[:, 0])
        w = W[:, labels].ravel()
        here = np.flatnonzero(w > 0)
        y, unit = truth.codes[:, labels].ravel(), np.repeat(witness, len(labels))
        parts = {name: a[here] for name, a in {**vars(given), "y": y, "w": w, "unit": unit}.items()}
        samples.append(HeldOut(**parts, n_units=len(number), n_groups=layout.n_groups(block)))
        places.append(rows[here // len(labels)] * len(labels) + here % len(labels))
    return layout, samples, places


class Answering(Wrapping):
    """Mixin for ``Recalibrated``, whose held-out probabilities are by maps that were fitted without the row."""

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
        """Sets of classes that hold the true one with about this probability, from the calibrated probabilities.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
        coverage : float, default=0.9
        tasks : array-like of shape (n,) or a single id, optional
            The tasks of the rows, where X does not hold them.
        method, by_class, by_task, allow_empty, random_state
            As in :meth:`leastwise.LSPC.predict_set` and :meth:`leastwise.MultiTaskLSPC.predict_set`.

        Returns
        -------
        ndarray of bool, or list of them
            In the form in which ``predict_set`` of the model has them.
        """
        check_is_fitted(self)
        model = self._model
        if by_task and not isinstance(model, TaskClassifier):
            raise ValueError(f"by_task=True needs a model of tasks, and {type(model).__name__} is none.")
        flags = {"by_class": by_class, "by_task": by_task, "allow_empty": allow_empty}
        wanted = Wanted.checked(coverage, method, random_state, **flags)
        answer = self._answer(X, tasks)
        P = self._mapped(answer)
        if isinstance(model, MultiLabelLSPC):
            labels = model.label_index_
            return wanted.of_labels(P, label_tables(self.heldout_proba_, labels.form), held_rows(self), labels)
        if answer.task is None:
            return wanted.of(P, evidence_of(self))
        return wanted.of_tasks(P, answer.task, evidence_of(self), self._stranger_evidence())

    def _stranger_evidence(self) -> Evidence | None:
        """That of the model: tasks that are not known keep its probabilities."""
        return unseen_task_evidence(self._model) if isinstance(self._model, TaskClassifier) else None

    def _held_rows(self) -> HeldRows:
        return held_rows(self)

    def _evidence(self) -> Evidence:
        return evidence_of(self)

    def _answer(self, X: Any, tasks: Any = None) -> Answer:
        """What the model says, before the maps."""
        model, rows = arrive(self.estimator_, X)
        if isinstance(model, TaskClassifier):
            return model._answer(rows, tasks).here()
        if tasks is not None:
            raise ValueError(f"tasks= was given, and {type(model).__name__} knows no tasks: leave it out.")
        return model._answer(rows).here()

    def _mapped(self, answer: Answer) -> Array:
        """Probabilities after the maps; tasks that are not known keep those of the model, if it has some for them."""
        P = answer.proba()
        new = self.layout_.applied(self.calibrators_, P, answer.task if self.by_task else None, answer.trust)
        if answer.stranger is not None and answer.strange is not None:
            new[answer.strange] = P[answer.strange]
        return new

    @property
    def _model(self) -> Any:
        """The model itself, at the end of a pipeline."""
        return inner_model(self.estimator_)

    def _by_label(self, A: Array, difference: bool = False) -> Any:
        if isinstance(self._model, MultiLabelLSPC):
            return self._model._by_label(A, difference)
        return A[:, 1] - A[:, 0] if difference and A.shape[1] == 2 else A

    def _shown(self, values: Any, X: Any) -> Any:
        """In the container that ``set_output`` of the model asked for."""
        if isinstance(values, list) or values.ndim == 1:
            return values
        return (
            self._model._shown(values, X)
            if isinstance(self._model, MultiLabelLSPC)
            else self._model._framed(values, X)
        )

    by_task: bool
    layout_: Layout
    calibrators_: Any
