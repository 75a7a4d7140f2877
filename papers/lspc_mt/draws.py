"""Random draws of tasks with their folds: minefields, faces, and synthetic tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from leastwise.datasets import make_related_tasks
from leastwise.metrics import task_auc
from leastwise.model_selection.folds import distinct_rows, task_fold_labels
from papers._common.data import Array, load_set

N_FOLDS = 5
#: The minefields, of 17, whose labels are reversed.
REVERSED = (15, 16)
WAYS = ("up", "nearest", "equal", "come")


@dataclass(frozen=True)
class Draw:
    """Training rows, sorted by task, with their folds; and test rows."""

    X: Array
    y: Array
    task: Array
    fold: Array
    X_test: Array
    y_test: Array
    task_test: Array
    by: str

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return int(self.task.max()) + 1

    @property
    def splits(self) -> list[tuple[Array, Array]]:
        """The folds: training rows and held-out rows."""
        return [(np.flatnonzero(self.fold != f), np.flatnonzero(self.fold == f)) for f in range(N_FOLDS)]

    def objective(self, score: Array) -> float:
        """The selection criterion: pooled AUC, or accuracy; a positive score is the second class."""
        return pooled_auc(self.y, score) if self.by == "auc" else float(np.mean((score > 0) == self.y))

    def test(self, score: Array) -> float:
        """The paper's measure: mean AUC over tasks, or accuracy."""
        if self.by == "auc":
            return float(task_auc(self.y_test, score, self.task_test))  # type: ignore[arg-type]
        return float(np.mean((score > 0) == self.y_test))


#: Function of n, seed and way of drawing that returns a draw.
Source = Callable[[int, int, str], Draw]


def pooled_auc(y: Array, score: Array) -> float:
    """Area under the ROC curve of all rows pooled."""
    ranks, ones = rankdata(score), y == 1
    a = int(ones.sum())
    return float((ranks[ones].sum() - a * (a + 1) / 2) / (a * (len(y) - a)))


def drawn(X: Array, parts: Sequence[tuple[Array, Array, Array, Array]], seed: int, by: str) -> Draw:
    """Combine training rows, their labels, test rows and their labels of every task."""
    train, y, test, y_test = ([part[k] for part in parts] for k in range(4))
    task, task_test = (np.repeat(np.arange(len(parts)), [len(r) for r in rows]) for rows in (train, test))
    labels, labels_test = np.concatenate(y).astype(int), np.concatenate(y_test).astype(int)
    fold = task_fold_labels(N_FOLDS, labels, task, seed)
    A, B = (np.asarray(X[np.concatenate(rows)], dtype=float) for rows in (train, test))
    return Draw(A, labels, task, fold, B, labels_test, task_test, by)


def landmine(folder: str | None) -> Source:
    """Minefields: a function of n, seed and way of drawing."""
    data = load_set("landmine", folder)
    X, task = np.asarray(data.X), np.asarray(data.task)
    y = np.where(np.isin(task, REVERSED), 1 - np.asarray(data.y), data.y)

    def draw(n: int, seed: int, way: str) -> Draw:
        rng = np.random.default_rng([2011, seed, n])
        parts = []
        for t in range(max(REVERSED) + 1):
            rows = rng.permutation(np.flatnonzero(task == t))
            train = mine_rows(rows, y[rows], n, way)
            test = np.setdiff1d(rows, train)
            parts.append((train, y[train], test, y[test]))
        return drawn(X, parts, seed, "auc")

    return draw


def mine_rows(rows: Array, y: Array, n: int, way: str) -> Array:
    """Choose n of the rows, which are in random order.

    "up", "nearest": classes in proportion, the count of the rarer class rounded up, or to the nearest number of at
    least 1. "equal": the same number of both. "come": the first rows.
    """
    if way == "come":
        return rows[:n]
    rare = y == (np.mean(y) < 1 / 2)
    share = n / 2 if way == "equal" else n * np.mean(rare)
    count = int(np.ceil(share)) if way == "up" else max(round(share), 1)
    return np.concatenate([rows[rare][:count], rows[~rare][: n - count]])


def umist(folder: str | None) -> Source:
    """Faces: a function of n and seed; duplicate images are dropped."""
    data = load_set("umist", folder)
    first = np.sort(np.unique(distinct_rows(data.X), return_index=True)[1])
    X, person, female = (np.asarray(v)[first] for v in (data.X, data.y, data.female))
    women, men = np.unique(person[female]), np.unique(person[~female])

    def draw(n: int, seed: int, way: str) -> Draw:
        rng = np.random.default_rng([2011, seed, n])
        pairs = zip(women, rng.choice(men, len(women), replace=False), strict=True)
        rows = [[rng.permutation(np.flatnonzero(person == p)) for p in pair] for pair in pairs]
        parts = [face_rows(woman, man, n) for woman, man in rows]
        return drawn(X, parts, seed, "accuracy")

    return draw


def face_rows(woman: Array, man: Array, n: int) -> tuple[Array, Array, Array, Array]:
    """N images of both persons, and equal numbers of the remaining ones; men are the second class."""
    left = min(len(woman), len(man)) - n
    train, test = (np.concatenate([woman[a:b], man[a:b]]) for a, b in ((0, n), (n, n + left)))
    return train, np.repeat([0, 1], n), test, np.repeat([0, 1], left)


def made(n_tasks: int, reversed_tasks: int) -> Source:
    """Synthetic related tasks of two classes, some reversed, with 200 test rows each: a function of n and seed."""

    def draw(n: int, seed: int, way: str) -> Draw:
        data = make_related_tasks(
            n_tasks, n + 200, n_features=5, noise=0.3, reversed_tasks=reversed_tasks, random_state=seed
        )
        parts = []
        for t in range(n_tasks):
            rows = np.flatnonzero(data.task == t)
            parts.append((rows[:n], data.y[rows[:n]], rows[n:], data.y[rows[n:]]))
        return drawn(data.X, parts, seed, "auc")

    return draw
