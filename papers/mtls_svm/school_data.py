"""The School data by the published splits, synthetic substitutes, and explained variance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.datasets import make_related_tasks
from papers._common.data import Array, DataAbsent, files_of, load_set, scale_of, standardise

#: Measures; the first is the paper's.
EXPLAINED = ("total", "within", "schools", "plain")


@dataclass(frozen=True)
class Split:
    """Training and test rows."""

    X: Array
    y: Array
    task: Array
    X_test: Array
    y_test: Array
    task_test: Array
    seed: int

    @property
    def tasks(self) -> Array:
        """The schools."""
        return np.unique(self.task)

    def of(self, t: int) -> tuple[Array, Array]:
        """Training and test rows of a school."""
        return np.flatnonzero(self.task == t), np.flatnonzero(self.task_test == t)

    def quarter(self, step: int = 1) -> tuple[Array, Array]:
        """Training rows of every ``step``-th school, split into three quarters for fitting and one for validation."""
        rng = np.random.default_rng(self.seed)
        rows = rng.permutation(np.flatnonzero(np.isin(self.task, self.tasks[::step])))
        order = rows[np.argsort(self.task[rows], kind="stable")]
        held = np.arange(len(order)) % 4 == 0
        return order[~held], order[held]


def school_splits(folder: str | None, last: int | None = None, step: int = 1) -> Callable[[int, bool], Split]:
    """A function of the number of the split and whether to standardise; optionally of some schools only."""
    data = load_set("school", folder)
    if data.splits is None:
        raise DataAbsent(f"The files of 'school' hold no splits, which table 2 needs: {files_of('school')}.")
    few = np.isin(data.task, np.unique(data.task)[:last:step])
    X, y, task = data.X[few].astype(float), data.y[few].astype(float), data.task[few].astype(int)

    def split(k: int, standard: bool) -> Split:
        train = data.splits[k][few]
        scale = scale_of(X[train])
        Z = standardise(X, scale) if standard else X[:, scale[2]]
        return Split(Z[train], y[train], task[train], Z[~train], y[~train], task[~train], k)

    return split


def made_splits(n_tasks: int, rows: int) -> Callable[[int, bool], Split]:
    """Splits of synthetic linear tasks with offsets, and 100 test rows each."""

    def split(k: int, standard: bool) -> Split:
        options: dict[str, Any] = {"kind": "regression", "function": "linear", "offset": 1.0, "noise": 0.5}
        data = make_related_tasks(n_tasks, rows + 100, n_features=10, random_state=k, **options)
        train = np.arange(len(data.y)) % (rows + 100) < rows
        scale = scale_of(data.X[train])
        Z = standardise(data.X, scale) if standard else data.X
        return Split(Z[train], data.y[train], data.task[train], Z[~train], data.y[~train], data.task[~train], k)

    return split


def explained(y: Array, f: Array, task: Array) -> dict[str, float]:
    """Explained variance in percent, by four definitions."""
    parts = [(y[task == t], f[task == t]) for t in np.unique(task)]
    each = np.array([[len(a), np.sum((a - b) ** 2), len(a) * np.var(a)] for a, b in parts])
    count, error, variance = each.T
    own = 1 - error / np.maximum(variance, 1e-12)
    return {
        "total": 100 * float(1 - error.sum() / len(y) / np.var(y)),
        "within": 100 * float(1 - error.sum() / variance.sum()),
        "schools": 100 * float(np.average(own, weights=count)),
        "plain": 100 * float(own.mean()),
    }
