"""Feature weights for a kernel: learned from gradients, and kept only if they help on rows they have not seen.

Weights that have seen the labels flatter leave-one-out scores. So they are judged by cross-fitting: for each of four
folds weights are learned without it, and its rows are predicted by the model of the others with these weights. They
are kept if the mean loss falls by more than one standard error.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.estimators.ridge_problem import RidgeProblem
from leastwise.model_selection.folds import input_hashes
from leastwise.model_selection.search import natural_length
from leastwise.model_selection.splitters import grouped_folds
from leastwise.problem.metric import gradient_parts, mean_squared_gradient, weights_of
from leastwise.solvers.evaluator import Candidate
from leastwise.solvers.heldout import Folds, HeldOut
from leastwise.utils.hashing import pair_hashes, unit_hashes

Array = np.ndarray

#: Rounds of fitting and weighting.
ROUNDS = 2
#: Folds of the comparison with no weights.
FOLDS = 4
#: Standard errors by which the mean loss has to fall.
ERRORS = 1.0
#: Factors on sigma and alpha that are compared.
SIGMAS, ALPHAS = (0.7, 1.0), (1.0, 10.0)
#: Gradients of a function that interpolates the targets are noise: it has at least this ridge.
LEAST_ALPHA = 1e-3
#: With fewer rows than this nothing is learned,
FEWEST_ROWS = 60
#: nor with fewer columns than this.
FEWEST_COLUMNS = 2


@dataclass(frozen=True)
class WeightedInputs:
    """Feature weights, and what they are worth.

    Attributes
    ----------
    weights : ndarray of shape (d,)
    gain : float
        Increase of the score in cross-fitting.
    ratio : float
        Factor on sigma: how distances change, times what suits best.
    alpha : float
    """

    weights: Array
    gain: float
    ratio: float
    alpha: float


def can_learn(problem: RidgeProblem) -> bool:
    """True if weights can be learned for this kernel from these rows."""
    X, count = problem.rows.X, problem.rows.count
    observations = len(problem) if count is None else count.sum()
    large = observations >= FEWEST_ROWS and X.shape[1] >= FEWEST_COLUMNS
    return large and not sparse.issparse(X) and gradient_parts(problem.settings.kernel) is not None


def learn_weights(problem: RidgeProblem, found: Candidate) -> tuple[Array, float]:
    """Weights of the columns at the chosen point, and the factor by which the natural unit of sigma changes."""
    rows, kernel = problem.rows, problem.settings.kernel
    X, Z = np.asarray(rows.X, dtype=float), rows.targets(problem.settings.n_outputs).astype(float)
    w, length = rows.w.astype(float), natural_length(kernel, rows)
    task, coupling = rows.task, None
    if task is not None:
        coupling = problem.coupling.at(1.0 if found.sharing is None else found.sharing)

    def couple(K: Array) -> Array:
        return K if coupling is None else coupling.couple(K, task, task)

    weights, ratio = np.ones(X.shape[1]), 1.0
    alpha = max(found.alpha, LEAST_ALPHA)
    for _ in range(ROUNDS):
        square = mean_squared_gradient(kernel, found.sigma * ratio, X * weights, Z, w, alpha, couple)
        weights = weights_of(square * weights**2)
        ratio = natural_length(kernel, replace(rows, X=(X * weights).astype(rows.X.dtype))) / length
    return weights, ratio


def compare_weights(problem: RidgeProblem, found: Candidate) -> WeightedInputs | None:
    """Weights that are better than none by cross-fitting, with the sigma and alpha that are; None if none are."""
    rows, objective, fold = problem.rows, problem.settings.objective, _folds(problem)
    if fold is None:
        return None
    whole = replace(problem, data=replace(problem.data, rows=replace(rows, fold=fold, by_observation=False)))
    plain = _heldout(_evaluator(whole, found), found.sigma, [found.alpha])[0]
    points = [(sigma, alpha) for sigma in SIGMAS for alpha in ALPHAS]
    weighted = [np.empty_like(plain) for _ in points]
    for k in range(int(fold.max()) + 1):
        out = np.flatnonzero(fold == k)
        weights, ratio = learn_weights(problem.with_rows(rows.take(np.flatnonzero(fold != k), False)), found)
        X = (rows.X * weights).astype(rows.X.dtype)
        part = replace(whole, data=replace(whole.data, rows=replace(whole.rows, X=X)))
        alphas = [max(found.alpha, LEAST_ALPHA) * alpha for alpha in ALPHAS]
        evaluator = _evaluator(part, found)
        evaluator.folds = Folds.only(out)
        scores = [F for sigma in SIGMAS for F in _heldout(evaluator, found.sigma * ratio * sigma, alphas)]
        for F, mine in zip(weighted, scores, strict=True):
            F[out] = mine[out]
    values = [objective(rows, HeldOut(F), None)[0] for F in weighted]
    best = int(np.argmax(values))
    less = objective.row_losses(rows, HeldOut(plain)) - objective.row_losses(rows, HeldOut(weighted[best]))
    mean = float(np.average(less, weights=rows.w))
    error = float(np.sqrt(np.average((less - mean) ** 2, weights=rows.w) / rows.size))
    if not mean > ERRORS * error:
        return None
    weights, ratio = learn_weights(problem, found)
    gain = values[best] - objective(rows, HeldOut(plain), None)[0]
    alpha = max(found.alpha, LEAST_ALPHA) * points[best][1]
    return WeightedInputs(weights, gain, ratio * points[best][0], alpha)


def _folds(problem: RidgeProblem) -> Array | None:
    """Four folds, classes and tasks in proportion; None if there are too few rows.

    Groups, or the copies of a row, stay together. Folds depend on the content of the rows, not on their order, and
    copies are like weights.
    """
    rows = problem.rows
    unit = np.unique(rows.copy if rows.group is None else rows.group, return_inverse=True)[1]
    count = int(unit.max()) + 1
    if count < 2 * FOLDS:
        return None
    keys = input_hashes(rows)
    keys = keys if rows.task is None else pair_hashes(keys, rows.task.astype(np.uint64))
    if rows.y.ndim == 2:
        return grouped_folds(FOLDS, rows.y, unit, keys)
    cell, largest = (
        rows.y if rows.task is None else rows.y + rows.task * (rows.y.max() + 1),
        np.zeros(count, dtype=int),
    )
    np.maximum.at(largest, unit, cell)
    fold = np.empty(count, dtype=int)
    fold[np.lexsort((unit_hashes(keys, unit, "folds"), largest))] = np.arange(count) % FOLDS
    return fold[unit]


def _evaluator(problem: RidgeProblem, found: Candidate) -> Any:
    """Evaluator of these rows with the options of a point."""
    evaluator = problem.evaluator().with_sharing(found.sharing)
    if found.weight is not None:
        evaluator = evaluator.with_linear_weight(found.weight)
    if found.intercept_ratio is not None:
        evaluator = evaluator.with_intercept_ratio(found.intercept_ratio)
    return copy.copy(evaluator)


def _heldout(evaluator: Any, sigma: float, alphas: list[float]) -> list[Array]:
    """Held-out scores of the folds at this sigma and these alphas."""
    at = evaluator.heldout(sigma, len(alphas))
    return [evaluator.without_rounding(at(alpha)).F for alpha in alphas]
