"""Synthetic tasks with a given relatedness and known true functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.utils import check_array, check_random_state

Array = np.ndarray

KINDS = ("classification", "regression")
FUNCTIONS = ("smooth", "linear")
#: Number of cosines in a smooth function; enough to look like a draw from a Gaussian process.
N_COSINES = 200


# ------------------------------------------------------------------- functions


@dataclass(frozen=True, eq=False)
class Cosines:
    """Random Fourier features, with frequencies of shape (d, m) and phases of shape (m,)."""

    frequencies: Array
    phases: Array

    def __call__(self, X: Array) -> Array:
        """Values on rows, of shape (n, m)."""
        return np.cos(X @ self.frequencies + self.phases)


@dataclass(frozen=True, eq=False)
class TaskFunctions:
    """f_t(x) = sum over j of weights[t, j] b_j(x), where b_j are cosines, or the features themselves.

    Attributes
    ----------
    n_features : int
    basis : Cosines or None
        None for linear functions.
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
            raise ValueError(f"task must be from 0 to {known - 1}; it contains {np.unique(given).tolist()}.")
        return np.broadcast_to(given, (n,))


def _draw_functions(
    rng: Any, function: str, d: int, c: int, group: Array, flipped: Array, relatedness: float
) -> TaskFunctions:
    """Functions of variance one on standard normal rows; those of a group have the given correlation."""
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


# ----------------------------------------------------------------------- tasks


@dataclass(frozen=True, eq=False)
class RelatedTasks:
    """Rows of several tasks, and their true distribution.

    Attributes
    ----------
    X : ndarray of shape (n, d)
        Rows, task by task.
    y : ndarray of shape (n,)
        Classes 0, 1, ..., or targets.
    task : ndarray of int of shape (n,)
        The task 0, 1, ... of each row.
    group : ndarray of int of shape (T,)
        The group of each task. Tasks of different groups are independent.
    is_reversed : ndarray of bool of shape (T,)
        True for tasks whose classes are permuted, or whose function is negated.
    correlation : ndarray of shape (T, T)
        Between the functions of two tasks, over draws of functions. The correlation measured on the rows of one draw
        scatters around it. Intercepts are not included.
    kind : {"classification", "regression"}
    noise : float
    intercept : ndarray of shape (T,)
        The intercept of each task; zeros unless ``offset`` is given.
    coef : ndarray of shape (T, d) or None
        For linear regression tasks, the weights of the features: E(y | x, t) = coef[t] @ x + intercept[t].
    """

    X: Array
    y: Array
    task: Array
    group: Array
    is_reversed: Array
    correlation: Array
    kind: str
    noise: float
    intercept: Array
    coef: Array | None
    _functions: TaskFunctions

    def posterior(self, X: Any, task: Any) -> Array:
        """True class probabilities p(y | x, task).

        Parameters
        ----------
        X : array-like of shape (n, d)
        task : int or array-like of shape (n,)
            One task for all rows, or one for each row.

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
            One task for all rows, or one for each row.

        Returns
        -------
        ndarray of shape (n,)
        """
        if self.kind != "regression":
            raise ValueError("These are classification tasks: use posterior(X, task).")
        return self._functions(X, task)[:, 0] + self.intercept[np.asarray(task)]


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
    function: str = "smooth",
    offset: float = 0.0,
    random_state: Any = None,
) -> RelatedTasks:
    """Draw tasks with a given relatedness.

    Each group of tasks has a random function g for each class, and each task t its own function h_t, all of variance
    one, and the scores of the task are

        f_t = sqrt(relatedness) * g + sqrt(1 - relatedness) * h_t.

    Rows are standard normal. Classes are drawn from softmax(f_t(x) / noise); targets are f_t(x) plus Gaussian noise,
    and an intercept of the task if ``offset`` is given.

    Parameters
    ----------
    n_tasks : int, default=10
    n_rows : int or sequence of int, default=50
        Number of rows per task, or of each task.
    n_features : int, default=2
        Smooth functions vary over distances of sqrt(n_features), so that the difficulty does not depend on the
        dimension.
    n_classes : int, default=2
        Not used for regression.
    relatedness : float in [0, 1], default=0.8
        Correlation between the functions of two tasks of a group: 0 for independent, 1 for equal functions.
    n_groups : int, default=1
        Task t is in group t modulo n_groups.
    reversed_tasks : int, default=0
        Number of tasks, the last ones, whose classes are shifted by one, or whose function is negated. With two
        classes both reverse the scores.
    noise : float, default=0.3
        Standard deviation of the noise in targets; temperature of the class probabilities. 0 for no noise.
    kind : {"classification", "regression"}
    function : {"smooth", "linear"}, default="smooth"
        Random Fourier features, similar to draws from a Gaussian process, or linear functions of the features.
    offset : float, default=0.0
        For regression, the standard deviation of the intercepts, which are independent of group, relatedness and
        reversal. Rows, functions and noise are the same for every ``offset``.
    random_state : int, RandomState or None, default=None
        Random number generator.

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
    >>> lines = make_related_tasks(3, kind="regression", function="linear", offset=2.0, random_state=0)
    >>> lines.coef.shape, lines.intercept.shape
    ((3, 2), (3,))
    """
    sizes = _checked_sizes(n_tasks, n_rows)
    _check_counts(n_features=(n_features, 1, None), n_groups=(n_groups, 1, n_tasks))
    _check_counts(n_classes=(n_classes, 2, None), reversed_tasks=(reversed_tasks, 0, n_tasks))
    _check_choices(kind=(kind, KINDS), function=(function, FUNCTIONS))
    _check_numbers(relatedness, noise, offset, kind)
    rng = check_random_state(random_state)
    group, flipped = np.arange(n_tasks) % n_groups, np.arange(n_tasks) >= n_tasks - reversed_tasks
    c = n_classes if kind == "classification" else 1
    functions = _draw_functions(rng, function, n_features, c, group, flipped, relatedness)
    task = np.repeat(np.arange(n_tasks), sizes)
    X = rng.standard_normal((len(task), n_features))
    F = functions(X, task)
    y = _draw_classes(rng, _posterior(F, noise)) if c > 1 else noise * rng.standard_normal(len(F))
    # Drawn last, so that everything else is the same for every offset.
    intercept = offset * rng.standard_normal(n_tasks) if offset else np.zeros(n_tasks)
    if c == 1:
        y += F[:, 0] + intercept[task]
    return RelatedTasks(
        X=X,
        y=y,
        task=task,
        group=group,
        is_reversed=flipped,
        correlation=_correlation(group, flipped, relatedness, c),
        kind=kind,
        noise=float(noise),
        intercept=intercept,
        coef=functions.weights[:, :, 0] if c == 1 and function == "linear" else None,
        _functions=functions,
    )


# --------------------------------------------------------------------- truth


def _correlation(group: Array, flipped: Array, relatedness: float, c: int) -> Array:
    """Between scores of the same class, centred over classes, as the softmax is invariant to their mean.

    Centred scores of different classes have correlation -1 / (c - 1); so do those of the same class if one task is
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
    """One class per row: the first at which the cumulative probability exceeds a uniform number."""
    passed = np.cumsum(P, axis=1)[:, :-1] <= rng.uniform(size=(len(P), 1))
    return passed.sum(axis=1)


# ------------------------------------------------------------------ checking


def _checked_sizes(n_tasks: int, n_rows: int | Sequence[int]) -> Array:
    _check_counts(n_tasks=(n_tasks, 1, None))
    sizes = np.asarray(n_rows)
    if sizes.shape not in ((), (n_tasks,)) or sizes.dtype.kind not in "iu" or (sizes < 1).any():
        raise ValueError(f"n_rows={n_rows!r} must be a positive integer, or {n_tasks} of them, one for each task.")
    return np.broadcast_to(sizes, (n_tasks,))


def _check_counts(**counts: tuple[Any, int, int | None]) -> None:
    """Values by name, each with its minimum and maximum."""
    for name, (value, least, most) in counts.items():
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        if not whole or value < least or (most is not None and value > most):
            allowed = f"{least} or more" if most is None else f"from {least} to the number of tasks, {most}"
            raise ValueError(f"{name}={value!r} must be an integer, {allowed}.")


def _check_choices(**choices: tuple[Any, Sequence[str]]) -> None:
    """Values by name, each with the allowed ones."""
    for name, (value, known) in choices.items():
        if value not in known:
            raise ValueError(f"{name}={value!r} is unknown: use one of {list(known)}.")


def _check_numbers(relatedness: float, noise: float, offset: float, kind: str) -> None:
    if not 0 <= relatedness <= 1:
        raise ValueError(f"relatedness={relatedness!r} must be from 0 (independent) to 1 (equal functions).")
    for name, value in (("noise", noise), ("offset", offset)):
        if not 0 <= value < np.inf:
            raise ValueError(f"{name}={value!r} must be 0 or more, and finite.")
    if offset and kind != "regression":
        raise ValueError(f"offset={offset!r} is for regression: remove it, or set kind='regression'.")
