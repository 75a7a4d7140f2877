"""Draws of section 3.2: so many rows of each class, columns of zero mean and unit variance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from papers._common.data import Array, Scale, Split, load_set, per_class, scale_of, standardise

TEST_ROWS = 100


@dataclass(frozen=True)
class Source:
    """A data set with the scale of its training part."""

    name: str
    X: Array
    y: Array
    train: Array
    test: Array
    scale: Scale

    @property
    def n_classes(self) -> int:
        """Of the whole set."""
        return len(np.unique(self.y))

    def draw(self, n: int, c: int, seed: int) -> Split:
        """floor(n/c) rows of each of the first c classes, and 100 of each for testing."""
        rng = np.random.default_rng([seed, n, c])
        classes = np.unique(self.y)[:c]
        train = per_class(self.y, self.train, classes, n // c, rng)
        test = per_class(self.y, self.test, classes, TEST_ROWS, rng)
        A, B = (standardise(self.X[rows], self.scale) for rows in (train, test))
        return Split(self.name, A, self.y[train], B, self.y[test])


def source(name: str, folder: str | None) -> Source:
    """The data set; constant columns of its training part are dropped."""
    data = load_set(name, folder)
    is_train = np.asarray(data.is_train, dtype=bool)
    train, test = np.flatnonzero(is_train), np.flatnonzero(~is_train)
    X, y = np.asarray(data.X), np.asarray(data.y)
    return Source(name, X, y, train, test, scale_of(X[train]))
