"""Held-out predictions of a fitted model as calibration sets, for one task, many tasks or many labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.calibration.maps import CalibrationSet, Predictions, Recalibrator
from leastwise.estimators.multi_label import MultiLabelLSPC

Array = np.ndarray

#: Rows with several observations are repeated, unless this multiplies the number of rows by more than this factor.
MOST = 100


@dataclass(frozen=True)
class Layout:
    """Columns of the classes of all labels in a table of probabilities of shape (n, outputs).

    Attributes
    ----------
    columns : tuple of ndarray of int of shape (L, c)
        Columns of the classes of all labels with c classes. A model of one label has one entry, of shape (1, c).
    shares : ndarray of shape (outputs,)
        Class shares of the model, which are its prediction far from the data.
    n_tasks : int
        Number of tasks with their own parameters; 0 if they share all parameters.
    """

    columns: tuple[Array, ...]
    shares: Array
    n_tasks: int = 0

    def predictions(self, P: Array, task: Array | None, in_domain: Array | None) -> list[Predictions]:
        """The rows of a table for each number of classes, one entry for every row and label."""
        return [
            Predictions(
                P[:, columns].reshape(-1, columns.shape[1]).astype(float),
                np.tile(np.log(self.shares[columns]), (len(P), 1)),
                self._groups(columns, len(P), task),
                None if in_domain is None else np.repeat(in_domain, len(columns)).astype(float),
            )
            for columns in self.columns
        ]

    def table(self, P: Array, parts: list[Array]) -> Array:
        """The table with these entries; labels of a single class and rows of NaN stay unchanged."""
        new = P.copy()
        for columns, part in zip(self.columns, parts, strict=True):
            new[:, columns] = part.reshape(len(P), *columns.shape)
        new[np.isnan(P[:, 0])] = np.nan
        return new

    def applied(self, maps: tuple[Recalibrator, ...], P: Array, task: Array | None, in_domain: Array | None) -> Array:
        """The recalibrated table."""
        parts = self.predictions(P, task, in_domain)
        return self.table(P, [m.proba(part) for m, part in zip(maps, parts, strict=True)])

    def _groups(self, columns: Array, n: int, task: Array | None) -> Array:
        if len(columns) > 1:
            return np.tile(np.arange(len(columns)), n)
        return np.zeros(n, dtype=int) if task is None or not self.n_tasks else task

    def n_groups(self, columns: Array) -> int:
        """Number of labels, or tasks, with their own parameters."""
        return max(len(columns), self.n_tasks, 1)


@dataclass(frozen=True)
class Truth:
    """True classes of training rows, with weights, groups and tasks.

    Attributes
    ----------
    codes, W : ndarray of shape (n, labels)
        Codes of the classes, and weights (including ``class_weight``).
    in_domain : ndarray of shape (n,)
    unit : ndarray of int of shape (n,)
        Codes of independent observations: groups, or rows.
    task : ndarray of int of shape (n,) or None
    times : ndarray of int of shape (n,) or None
        Number of observations of each row; None means one each.
    """

    codes: Array
    W: Array
    in_domain: Array
    unit: Array
    task: Array | None
    times: Array | None = None

    def expanded(self) -> tuple[Truth, Array]:
        """One row for each observation, and the row it comes from, so that weight 2 is equivalent to two copies."""
        rows = np.arange(len(self.unit))
        if self.times is None or self.times.sum() > MOST * len(rows):
            return self, rows
        rows = np.repeat(rows, self.times)
        task = None if self.task is None else self.task[rows]
        W = self.W[rows] / self.times[rows][:, None]
        return Truth(self.codes[rows], W, self.in_domain[rows], np.arange(len(rows)), task), rows


def read_truth(model: Any) -> Truth:
    """True classes, weights, independent observations and tasks of the training rows of a fitted model."""
    held = model.heldout_rows_
    n = len(held.codes)
    codes, W = (a.reshape(n, -1) for a in (held.codes, held.weight))
    times = None if held.count is None else np.round(held.count).astype(int)
    return Truth(codes, W, held.in_domain, np.arange(n) if held.group is None else held.group, held.task, times)


def read_proba(model: Any) -> Array:
    """Held-out probabilities of all classes of all labels, side by side."""
    P = model.heldout_proba_
    if isinstance(P, list):
        return np.hstack(P)
    if isinstance(model, MultiLabelLSPC) and model.label_index_.form != "flat":
        return np.stack([1 - P, P], axis=2).reshape(len(P), -1)
    return P


def read_heldout(model: Any, truth: Truth, by_task: bool) -> tuple[Layout, list[CalibrationSet], list[Array]]:
    """The layout of the model's tables, a calibration set per number of classes, and the places of its entries."""
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
    units = np.array([number.get(u, -1) for u in truth.unit.tolist()])
    samples, places = [], []
    for block, predictions in zip(columns, layout.predictions(P, truth.task, truth.in_domain), strict=True):
        labels = np.searchsorted(starts, block[:, 0])
        w = W[:, labels].ravel()
        used = np.flatnonzero(w > 0)
        y, unit = truth.codes[:, labels].ravel(), np.repeat(units, len(labels))
        parts = {name: a[used] for name, a in {**vars(predictions), "y": y, "w": w, "unit": unit}.items()}
        samples.append(CalibrationSet(**parts, n_units=len(number), n_groups=layout.n_groups(block)))
        places.append(rows[used // len(labels)] * len(labels) + used % len(labels))
    return layout, samples, places
