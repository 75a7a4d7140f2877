"""Patients with one of six skin diseases, each disease a task over the same rows, and errors by four definitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from papers._common.data import Array, load_set, scale_of, standardise

#: Measures, by which an error can be told.
ERRORS = ("binary", "class", "any", "sum")


@dataclass(frozen=True)
class Patients:
    """Rows for training and for testing; targets of 1 and -1, one column for each disease."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    seed: int
    n_classes: int = 6

    @property
    def Y(self) -> Array:
        """Targets of the training rows."""
        return 2.0 * np.eye(self.n_classes)[self.y] - 1


def patient_draws(folder: str | None) -> Callable[[int, str], Patients]:
    """A function from the number of the draw, and the inputs, to random rows, whatever their classes."""
    data = load_set("dermatology", folder)
    y, age = np.unique(data.y, return_inverse=True)[1], data.X[:, -1].astype(float)
    plain, family = data.X[:, :-1].astype(float), list(data.feature_names).index("family_history")
    age = np.where(np.isnan(age), np.nanmean(age), age)
    linear = np.column_stack([np.delete(plain, family, axis=1), age])

    def draw(k: int, inputs: str) -> Patients:
        order = np.random.default_rng([2013, k]).permutation(len(y))
        train, test = order[:200], order[200:]
        X = linear if inputs == "with age" else plain
        Z = standardise(X, scale_of(X[train])) if inputs == "standardised" else X
        return Patients(Z[train], y[train], Z[test], y[test], k)

    return draw


def errors(y: Array, F: Array) -> dict[str, float]:
    """In percent, by four definitions."""
    wrong = (F > 0) != np.eye(F.shape[1], dtype=bool)[y]
    return {
        "binary": 100 * float(wrong.mean()),
        "class": 100 * float(np.mean(F.argmax(axis=1) != y)),
        "any": 100 * float(wrong.any(axis=1).mean()),
        "sum": 100 * float(wrong.sum(axis=1).mean()),
    }
