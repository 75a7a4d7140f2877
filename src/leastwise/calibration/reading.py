"""Held-out predictions of a fitted model, one task, many tasks or many labels, in one form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from leastwise.calibration.families import Recalibrator
from leastwise.calibration.sample import Given, HeldOut
from leastwise.estimators._checks import check_groups, check_weights
from leastwise.estimators._labels import is_flat
from leastwise.estimators._tasks import TaskModel
from leastwise.estimators.multi_label import MultiLabelLSPC
from leastwise.folds import distinct_rows
from leastwise.kernels import Precomputed
from leastwise.labels.encoding import encode_known
from leastwise.labels.weights import label_weights

Array = np.ndarray


@dataclass(frozen=True)
class Layout:
    """Where the classes of all labels stand in a table of probabilities, of shape (n, outputs).

    Attributes
    ----------
    columns : tuple of ndarray of int of shape (L, c)
        Columns of the classes of labels that have c of them. A model of one label has one entry, of shape (1, c).
    shares : ndarray of shape (outputs,)
        Class shares.
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
    """What is known of training rows: codes and weights of shape (n, labels), units, tasks."""

    codes: Array
    W: Array
    unit: Array
    task: Array | None


def read_truth(model: Any, X: Any, y: Any, sample_weight: Any, groups: Any, tasks: Any) -> Truth:
    """Classes, weights (those of ``class_weight`` too), independent witnesses and tasks of the training rows."""
    task = None
    if isinstance(model, TaskModel):
        X, task, _ = model._validated_rows(X, tasks)
    else:
        X = validate_data(model, X, reset=False, accept_sparse="csr", accept_large_sparse=False)
    if groups is not None:
        unit = check_groups(groups, X.shape[0])
    else:
        unit = np.arange(X.shape[0]) if isinstance(model.kernel_, Precomputed) else distinct_rows(X)
        unit = unit if task is None else np.unique(unit * (task.max() + 2) + task, return_inverse=True)[1]
    codes, W = _read_classes(model, X, y, sample_weight)
    return Truth(codes, W, unit, task)


def _read_classes(model: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Array, Array]:
    weight = getattr(model, "class_weight", None)
    if isinstance(model, MultiLabelLSPC):
        y = np.asarray(y).reshape(-1, 1) if is_flat(y) else y
        codes = encode_known(y, model.label_index_, X.shape[0], model.missing)
        W = label_weights(sample_weight, weight, codes, model.label_index_)
        return codes, W * (codes >= 0)
    y = np.asarray(y).ravel()
    w = check_weights(sample_weight, weight, X, y)
    known = np.isin(y, model.classes_)  # a class of which all rows have weight zero is not
    codes = np.where(known, np.searchsorted(model.classes_, np.where(known, y, model.classes_[0])), -1)
    return codes[:, None], (w * known)[:, None]


def read_proba(model: Any) -> Array:
    """Held-out probabilities of all classes of all labels, side by side."""
    P = model.heldout_proba_
    if isinstance(P, list):
        return np.hstack(P)
    if isinstance(model, MultiLabelLSPC) and model.label_index_.form != "flat":
        return np.stack([1 - P, P], axis=2).reshape(len(P), -1)
    return P


def read_heldout(model: Any, truth: Truth, by_task: bool) -> tuple[Layout, list[HeldOut], list[Array]]:
    """The layout of the model's tables, a sample for every number of classes, and where in it the entries stand."""
    P = read_proba(model)
    starts = model.label_index_.starts if isinstance(model, MultiLabelLSPC) else np.array([0, P.shape[1]])
    W = np.where(np.isnan(P[:, :1]), 0.0, truth.W)
    row = W.sum(axis=1) / np.maximum((W > 0).sum(axis=1), 1)
    number = {u: k for k, u in enumerate(np.unique(truth.unit[row > 0]).tolist())}
    W = W * (len(number) / row.sum())
    widths = np.diff(starts)
    columns = [starts[:-1][widths == c][:, None] + np.arange(c) for c in np.unique(widths[widths > 1])]
    n_tasks = len(model.tasks_) if by_task else 0
    layout = Layout(tuple(columns), _shares(truth.codes, W, starts), n_tasks)
    samples, places = [], []
    for block, given in zip(columns, layout.given(P, truth.task, None), strict=True):
        labels = np.searchsorted(starts, block[:, 0])
        w = W[:, labels].ravel()
        here = np.flatnonzero(w > 0)
        unit = np.array([number.get(u, -1) for u in truth.unit.tolist()])
        parts = (given.P, given.base, given.group, truth.codes[:, labels].ravel(), w, np.repeat(unit, len(labels)))
        p, base, group, y, w, unit = (a[here] for a in parts)
        samples.append(HeldOut(p, base, group, None, y, w, unit, len(number), layout.n_groups(block)))
        places.append(here)
    return layout, samples, places


def _shares(codes: Array, W: Array, starts: Array) -> Array:
    """Weighted class shares side by side; of many labels with half a row more for each class."""
    i, t = np.nonzero(W > 0)
    counts: Array = np.bincount(starts[t] + codes[i, t], weights=W[i, t], minlength=int(starts[-1]))
    counts = counts + (0.5 if len(starts) > 2 or not counts.all() else 0.0)
    return counts / np.repeat(np.add.reduceat(counts, starts[:-1]), np.diff(starts))
