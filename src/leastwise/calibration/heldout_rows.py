"""Held-out training rows: their probabilities, true classes, weights, groups and tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class HeldRows:
    """True classes of all training rows, with weights, groups and tasks.

    Attributes
    ----------
    codes : ndarray of int of shape (n,) or (n, T)
        Codes of the true classes in ``classes_``; -1 where a label is unknown.
    weight : ndarray of the same shape
        0 where a row or label does not count: of weight zero, unknown, or never held out.
    in_domain : ndarray of shape (n,)
        Domain weights of the held-out scores.
    group : ndarray of int of shape (n,), optional
        Groups given by the user.
    task : ndarray of int of shape (n,), optional
        Codes of the tasks in ``tasks_``; -1 where a task does not count.
    count : ndarray of shape (n,), optional
        Number of observations of each row, without groups.
    """

    codes: Array
    weight: Array
    in_domain: Array
    group: Array | None = None
    task: Array | None = None
    count: Array | None = None


@dataclass(frozen=True)
class Evidence:
    """Held-out rows of positive weight.

    Attributes
    ----------
    P : ndarray of shape (n, c)
        Probabilities, in double precision.
    codes : ndarray of int of shape (n,)
        True classes.
    w : ndarray of shape (n,)
        Weights above 0.
    group : ndarray of int of shape (n,), optional
        Rows of a group are one observation.
    task : ndarray of int of shape (n,), optional
    count : ndarray of shape (n,), optional
        Number of observations of each row; one each by default.
    """

    P: Array
    codes: Array
    w: Array
    group: Array | None = None
    task: Array | None = None
    count: Array | None = None

    def __len__(self) -> int:
        return len(self.codes)

    def part(self, rows: Array) -> Evidence:
        """Some of the rows."""
        beside = (None if a is None else a[rows] for a in (self.group, self.task, self.count))
        return Evidence(self.P[rows], self.codes[rows], self.w[rows], *beside)

    def of_unseen_tasks(self) -> Evidence:
        """The same with each task as one observation, to predict what happens in unseen tasks."""
        return replace(self, group=self.task, task=None, count=None)


def gather(P: Array, held: HeldRows, label: int | None = None) -> Evidence:
    """The rows of positive weight, with their held-out probabilities P (n x c); of one label for many labels."""
    column = (slice(None),) if label is None else (slice(None), label)
    codes, w = held.codes[column], held.weight[column]
    rows = np.flatnonzero((w > 0) & ~np.isnan(P[:, 0]))
    beside = (None if a is None else a[rows] for a in (held.group, held.task, held.count))
    return Evidence(P[rows].astype(float), codes[rows], w[rows].astype(float), *beside)


def independent_weights(w: Array, group: Array | None = None, count: Array | None = None) -> Array:
    """Weights that sum to the number of independent observations; with groups, to 1 in each group."""
    if not len(w):
        return w
    if group is not None:
        member = np.unique(group, return_inverse=True)[1]
        return w / np.bincount(member, weights=w)[member]
    w = w / w.mean() if count is None else w * (count.sum() / w.sum())
    return np.where(np.abs(w - np.round(w)) < 1e-12 * np.maximum(w, 1), np.round(w), w)
