"""Tasks that are related by as much as one asks for, and whose truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.utils import check_array, check_random_state

Array = np.ndarray

#: Number of cosines in a random function; enough for it to look like a draw of a Gaussian process.
N_COSINES = 200
KINDS = ("classification", "regression")


@dataclass(frozen=True, eq=False)
class RelatedTasks:
    """Rows of several tasks, and the truth that they were drawn from.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Rows, task by task.
    y : ndarray of shape (n,)
        Classes 0, 1, ..., or targets.
    task : ndarray of int of shape (n,)
        The task 0, 1, ... of every row.
    group : ndarray of int of shape (T,)
        The group of every task. Tasks of different groups have nothing in common.
    is_reversed : ndarray of bool of shape (T,)
        Which tasks have their classes exchanged, or their function negated.
    correlation : ndarray of shape (T, T)
        Between the functions of two tasks, over all draws of functions. In a single draw the functions are few, and
        what one would measure on rows scatters around it.
    kind : {"classification", "regression"}
    noise : float
    """

    X: Array
    y: Array
    task: Array
    group: Array
    is_reversed: Array
    correlation: Array
    kind: str
    noise: float
    _functions: _Functions

    def posterior(self, X: Any, task: Any) -> Array:
        """True class probabilities p(y | x, task).

        Parameters
        ----------
        X : array-like of shape (n, d)
        task : int or array-like of shape (n,)
            One task for all rows, or one a row.

        Returns
        -------
        ndarray of shape (n, c)
        """
        if self.kind != "classification":
            raise ValueError("These are regression tasks, which have no classes: use mean(X, task).")
        return _posterior(self._functions(X, task), self.noise)

    def mean(self, X: Any, task: Any) -> Array:
        """True mean of the target, E(y | x, task).

        Parameters
        ----------
        X : array-like of shape (n, d)
        task : int or array-like of shape (n,)
            One task for all rows, or one a row.

        Returns
        -------
        ndarray of shape (n,)
        """
        if self.kind != "regression":
            raise ValueError("These are classification tasks: use posterior(X, task).")
        return self._functions(X, task)[:, 0]


def make_related_tasks(
    n_tasks: int = 10,
    n_rows: int | Sequence[int] = 50,
    *,
    n_features: int = 2,
    n_classes: int = 2,
    relatedness: float = 0.8,
    n_groups: int = 1,
    reversed_tasks: int = 0,
    noise: float = 0.3,
    kind: str = "classification",
    random_state: Any = None,
) -> RelatedTasks:
    """Draw tasks that resemble each other by a known amount.

    Every group of tasks has a random smooth function g for each class, every task t an h_t of its own, all of
    variance one, and the scores of the task are

        f_t = sqrt(relatedness) * g + sqrt(1 - relatedness) * h_t.

    Rows are standard normal. Classes are drawn from softmax(f_t(x) / noise); targets are f_t(x) plus Gaussian noise.

    Parameters
    ----------
    n_tasks : int, default=10
    n_rows : int or sequence of int, default=50
        Rows of every task, or of each.
    n_features : int, default=2
        The functions vary over distances of sqrt(n_features), so that tasks are as hard in many dimensions as in few.
    n_classes : int, default=2
        Has no meaning for regression.
    relatedness : float in [0, 1], default=0.8
        Correlation between the functions of two tasks of a group: 0 means nothing in common, 1 the same function.
    n_groups : int, default=1
        Task t is in group t modulo n_groups.
    reversed_tasks : int, default=0
        How many of the last tasks have each class called by the name of the next one, or the negative function.
        With two classes this is the same: it reverses the scores.
    noise : float, default=0.3
        Standard deviation of the noise in targets; temperature of the class probabilities. 0 means certainty.
    kind : {"classification", "regression"}
    random_state : int, RandomState or None, default=None
        Source of the numbers.

    Returns
    -------
    RelatedTasks

    Examples
    --------
    >>> from leastwise.datasets import make_related_tasks
    >>> data = make_related_tasks(3, [20, 5, 10], random_state=0)
    >>> data.X.shape, data.y.shape, data.task[[0, -1]].tolist()
    ((35, 2), (35,), [0, 2])
    >>> data.posterior([[0.0, 0.0]], task=1).shape
    (1, 2)
    """
    sizes = _checked_sizes(n_tasks, n_rows)
    _check_counts(n_features=(n_features, 1, None), n_groups=(n_groups, 1, n_tasks))
    _check_counts(n_classes=(n_classes, 2, None), reversed_tasks=(reversed_tasks, 0, n_tasks))
    _check_numbers(relatedness, noise, kind)
    rng = check_random_state(random_state)
    group, flipped = np.arange(n_tasks) % n_groups, np.arange(n_tasks) >= n_tasks - reversed_tasks
    c = n_classes if kind == "classification" else 1
    functions = _draw_functions(rng, n_features, c, group, flipped, relatedness)
    task = np.repeat(np.arange(n_tasks), sizes)
    X = rng.standard_normal((len(task), n_features))
    F = functions(X, task)
    y = _draw_classes(rng, _posterior(F, noise)) if c > 1 else F[:, 0] + noise * rng.standard_normal(len(F))
    correlation = _correlation(group, flipped, relatedness, c)
    return RelatedTasks(X, y, task, group, flipped, correlation, kind, float(noise), functions)


# ----------------------------------------------------------------- functions


@dataclass(frozen=True, eq=False)
class _Functions:
    """f_t(x) = sum over j of weights[t, j] cos(frequencies_j' x + phases_j): random Fourier features.

    Attributes
    ----------
    frequencies : ndarray of shape (d, m)
    phases : ndarray of shape (m,)
    weights : ndarray of shape (T, m, c)
    """

    frequencies: Array
    phases: Array
    weights: Array

    def __call__(self, X: Any, task: Any) -> Array:
        """Scores of rows in their tasks, of shape (n, c)."""
        X = check_array(X, dtype=np.float64)
        if X.shape[1] != len(self.frequencies):
            raise ValueError(f"X has {X.shape[1]} columns; these tasks have {len(self.frequencies)} features.")
        task = self._checked_tasks(task, len(X))
        waves = np.cos(X @ self.frequencies + self.phases)
        F = np.empty((len(X), self.weights.shape[2]))
        for t in np.unique(task):
            F[task == t] = waves[task == t] @ self.weights[t]
        return F

    def _checked_tasks(self, task: Any, n: int) -> Array:
        given, known = np.asarray(task), len(self.weights)
        if given.shape not in ((), (n,)):
            raise ValueError(f"task has shape {given.shape}: give one task for all rows, or one for each of the {n}.")
        if given.dtype.kind not in "iu" or (given < 0).any() or (given >= known).any():
            raise ValueError(f"task must hold numbers from 0 to {known - 1}; it holds {np.unique(given).tolist()}.")
        return np.broadcast_to(given, (n,))


def _draw_functions(rng: Any, d: int, c: int, group: Array, flipped: Array, relatedness: float) -> _Functions:
    frequencies = rng.standard_normal((d, N_COSINES)) / np.sqrt(d)
    phases = rng.uniform(0, 2 * np.pi, N_COSINES)
    common = rng.standard_normal((group.max() + 1, N_COSINES, c))
    own = rng.standard_normal((len(group), N_COSINES, c))
    weights = np.sqrt(relatedness) * common[group] + np.sqrt(1 - relatedness) * own
    weights *= np.sqrt(2 / N_COSINES)  # a cosine of random phase has mean square 1/2
    weights[flipped] = np.roll(weights[flipped], 1, axis=2) if c > 1 else -weights[flipped]
    return _Functions(frequencies, phases, weights)


def _correlation(group: Array, flipped: Array, relatedness: float, c: int) -> Array:
    """Between scores of the same class, taken from their mean over classes, which the softmax does not see.

    Such scores of different classes have correlation -1 / (c - 1); so do those of the same class where one task is
    reversed. With two classes, and in regression, that is -1.
    """
    same = np.equal.outer(group, group)
    alike = np.equal.outer(flipped, flipped)
    correlation = relatedness * same * np.where(alike, 1.0, -1 / max(c - 1, 1))
    np.fill_diagonal(correlation, 1.0)
    return correlation


def _posterior(F: Array, noise: float) -> Array:
    if noise == 0:
        return np.eye(F.shape[1])[F.argmax(axis=1)]
    return softmax(F / noise, axis=1)


def _draw_classes(rng: Any, P: Array) -> Array:
    """One class a row by its probabilities: the first at which their running sum passes a uniform number."""
    passed = np.cumsum(P, axis=1)[:, :-1] <= rng.uniform(size=(len(P), 1))
    return passed.sum(axis=1)


# ------------------------------------------------------------------ checking


def _checked_sizes(n_tasks: int, n_rows: int | Sequence[int]) -> Array:
    _check_counts(n_tasks=(n_tasks, 1, None))
    sizes = np.asarray(n_rows)
    if sizes.shape not in ((), (n_tasks,)) or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        raise ValueError(
            f"n_rows={n_rows!r} must be a number of rows, 1 or more, or {n_tasks} of them, one for each task."
        )
    return np.broadcast_to(sizes, (n_tasks,))


def _check_counts(**counts: tuple[Any, int, int | None]) -> None:
    """Values by name, each with the least and the most that it may be."""
    for name, (value, least, most) in counts.items():
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        if not whole or value < least or (most is not None and value > most):
            allowed = f"{least} or more" if most is None else f"from {least} to the number of tasks, {most}"
            raise ValueError(f"{name}={value!r} must be a whole number, {allowed}.")


def _check_numbers(relatedness: float, noise: float, kind: str) -> None:
    if not 0 <= relatedness <= 1:
        raise ValueError(f"relatedness={relatedness!r} must be from 0 (nothing in common) to 1 (the same function).")
    if not 0 <= noise < np.inf:
        raise ValueError(f"noise={noise!r} must be 0 or more, and finite.")
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} is not known: use one of {list(KINDS)}.")
