"""Random draws of multi-label data: Enron's messages, and rotated boundaries."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.datasets import make_rotated_labels
from papers._common.data import Array, load_set, scale_of, standardise
from papers._common.timing import settled

#: Training rows of Enron in the paper; the other 702 are for testing.
ENRON_ROWS = 1000


@dataclass(frozen=True)
class LabelSplit:
    """Training and test rows of one draw, with labels of 0 and 1."""

    name: str
    X: Array
    Y: Array
    X_test: Array
    Y_test: Array

    def __str__(self) -> str:
        return f"{self.name}, {len(self.Y)} / {len(self.Y_test)} rows, {self.Y.shape[1]} labels"

    def scaled(self) -> LabelSplit:
        """Standardise the features by the training rows."""
        scale = scale_of(self.X)
        return LabelSplit(self.name, standardise(self.X, scale), self.Y, standardise(self.X_test, scale), self.Y_test)


def divided(name: str, X: Array, Y: Array, train: Array, test: Array) -> LabelSplit:
    """Split into training and test rows."""
    return LabelSplit(name, X[train], Y[train], X[test], Y[test])


def enron(folder: str | None, rows: int = ENRON_ROWS, test_rows: int | None = None) -> Callable[[int], LabelSplit]:
    """Enron: a function of the seed; by default with the numbers of rows of the paper."""
    data = load_set("enron", folder)
    X, Y = np.asarray(data.X, dtype=float), np.asarray(data.Y)

    def draw(seed: int) -> LabelSplit:
        order = np.random.default_rng([2012, seed]).permutation(len(X))
        return divided("enron", X, Y, order[:rows], order[rows:][:test_rows])

    return draw


def rotated(n_labels: int, rows: int, test_rows: int, seed: int, **options: Any) -> LabelSplit:
    """The paper's toy data."""
    data = make_rotated_labels(n_labels, rows + test_rows, random_state=seed, **options)
    every = np.arange(rows + test_rows)
    return divided(f"rotated-{n_labels}", data.X, data.Y, every[:rows], every[rows:])


def calmly(call: Callable[[], Any]) -> tuple[Any, int]:
    """Return value and number of convergence warnings of a call; warnings about constant labels are suppressed."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Labels with one class only.*")
        warnings.filterwarnings("ignore", message="Rows without any known label.*")
        return settled(call)
