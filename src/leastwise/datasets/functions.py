"""Random functions of several tasks that have a part in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array

Array = np.ndarray

#: Number of cosines in a smooth function; enough for it to look like a draw of a Gaussian process.
N_COSINES = 200
FUNCTIONS = ("smooth", "linear")


@dataclass(frozen=True, eq=False)
class Cosines:
    """Of random frequencies and phases, of shapes (d, m) and (m,): random Fourier features."""

    frequencies: Array
    phases: Array

    def __call__(self, X: Array) -> Array:
        """Values on rows, of shape (n, m)."""
        return np.cos(X @ self.frequencies + self.phases)


@dataclass(frozen=True, eq=False)
class TaskFunctions:
    """f_t(x) = sum over j of weights[t, j] b_j(x), where b are cosines, or the features themselves.

    Attributes
    ----------
    n_features : int
    basis : Cosines or None
        None for the features.
    weights : ndarray of shape (T, m, c)
    """

    n_features: int
    basis: Cosines | None
    weights: Array

    def __call__(self, X: Any, task: Any) -> Array:
        """Scores of rows in their tasks, of shape (n, c)."""
        X = check_array(X, dtype=np.float64)
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} columns; these tasks have {self.n_features} features.")
        task = self._checked_tasks(task, len(X))
        values = X if self.basis is None else self.basis(X)
        F = np.empty((len(X), self.weights.shape[2]))
        for t in np.unique(task):
            F[task == t] = values[task == t] @ self.weights[t]
        return F

    def _checked_tasks(self, task: Any, n: int) -> Array:
        given, known = np.asarray(task), len(self.weights)
        if given.shape not in ((), (n,)):
            raise ValueError(f"task has shape {given.shape}: give one task for all rows, or one for each of the {n}.")
        if given.dtype.kind not in "iu" or (given < 0).any() or (given >= known).any():
            raise ValueError(f"task must hold numbers from 0 to {known - 1}; it holds {np.unique(given).tolist()}.")
        return np.broadcast_to(given, (n,))


def draw_functions(
    rng: Any, function: str, d: int, c: int, group: Array, flipped: Array, relatedness: float
) -> TaskFunctions:
    """Functions of variance one on standard normal rows, of which those of a group correlate by the relatedness."""
    basis = _draw_cosines(rng, d) if function == "smooth" else None
    # A cosine of random phase has mean square 1/2, a feature 1.
    m, scale = (d, np.sqrt(1 / d)) if basis is None else (N_COSINES, np.sqrt(2 / N_COSINES))
    common = rng.standard_normal((group.max() + 1, m, c))
    own = rng.standard_normal((len(group), m, c))
    weights = np.sqrt(relatedness) * common[group] + np.sqrt(1 - relatedness) * own
    weights *= scale
    weights[flipped] = np.roll(weights[flipped], 1, axis=2) if c > 1 else -weights[flipped]
    return TaskFunctions(d, basis, weights)


def _draw_cosines(rng: Any, d: int) -> Cosines:
    frequencies = rng.standard_normal((d, N_COSINES)) / np.sqrt(d)
    return Cosines(frequencies, rng.uniform(0, 2 * np.pi, N_COSINES))
