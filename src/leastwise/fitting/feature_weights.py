r"""Feature weights for a kernel: learned from gradients, and kept only if they help on rows they have not seen.

For ``f(x) = sum_k C_k(x) k(x, x_k) a_k``, where C couples the tasks of two rows (1 for one task), the mean square
over the training rows of the derivative with respect to feature j says how much the function varies along it::

    m_j = mean_i sum_c (d f_c / d x_j (x_i))^2,        weight_j ~ m_j^(1/4).

Distances are then computed between rows whose columns are multiplied by their weights (recursive feature machines,
Radhakrishnan et al. 2024, have the square root; the fourth root adapts more cautiously). For the Gaussian kernel the
gradient is one matrix product for each output, ``(W X - X o W1) / sigma^2`` with ``W = K o a'``.

Weights that have seen the labels improve leave-one-out scores more than predictions. So they are evaluated by
cross-fitting: for each of four folds, weights are learned without it, and its rows are predicted by the model of the
other folds with these weights. They are kept if the mean loss falls by more than one standard error.

For the same reason, the held-out scores of the final model, which calibrate it and choose alpha, are cross-fitted too
(:func:`cross_fit_heldout`): each row is left out of a model whose weights were learned without its fold.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.fitting.ridge_problem import LOGISTIC_ALPHA, RidgeProblem
from leastwise.model_selection.folds import input_hashes
from leastwise.model_selection.objective import clearly_less
from leastwise.model_selection.search import SearchResult, natural_length
from leastwise.model_selection.splitters import grouped_folds
from leastwise.problem.gradients import gradient_parts, mean_squared_gradient, weights_of
from leastwise.solvers.evaluator import Candidate
from leastwise.solvers.heldout import HeldOut
from leastwise.utils.hashing import pair_hashes, row_hashes, unit_hashes

Array = np.ndarray

#: Rounds of fitting and weighting.
ROUNDS = 2
#: Folds of the comparison with no weights.
FOLDS = 4
#: Factors on sigma and alpha that are compared.
SIGMAS, ALPHAS = (0.7, 1.0), (1.0, 10.0)
#: The alpha of the final model is raised by this factor as long as this helps,
STEP = 3.0
#: at most so many times.
MOST_STEPS = 8
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
    unweighted = _evaluator(whole, found)
    points = [(sigma, alpha) for sigma in SIGMAS for alpha in ALPHAS]
    plain, *weighted = np.empty((1 + len(points), len(rows), problem.settings.n_outputs), dtype=rows.X.dtype)
    for k in range(int(fold.max()) + 1):
        out = np.flatnonzero(fold == k)
        plain[out] = _heldout(unweighted, out, found.sigma, [found.alpha])[0]
        weights, ratio = learn_weights(problem.with_rows(rows.take(np.flatnonzero(fold != k), False)), found)
        X = (rows.X * weights).astype(rows.X.dtype)
        part = replace(whole, data=replace(whole.data, rows=replace(whole.rows, X=X)))
        alphas = [max(found.alpha, LEAST_ALPHA) * alpha for alpha in ALPHAS]
        evaluator = _evaluator(part, found)
        scores = [F for sigma in SIGMAS for F in _heldout(evaluator, out, found.sigma * ratio * sigma, alphas)]
        for F, mine in zip(weighted, scores, strict=True):
            F[out] = mine
        if 0 < k < fold.max() and _hopeless(whole, found.calibrator, np.flatnonzero(fold <= k), plain, weighted):
            return None
    values, calibrators = zip(*(objective(rows, HeldOut(F), None) for F in (plain, *weighted)), strict=True)
    best = int(np.argmax(values[1:]))
    losses = objective.row_losses(rows, HeldOut(weighted[best]), calibrators[1 + best])
    others = objective.row_losses(rows, HeldOut(plain), calibrators[0])
    if not clearly_less(losses, others, rows.w, rows.size):
        return None
    weights, ratio = learn_weights(problem, found)
    alpha = max(found.alpha, LEAST_ALPHA) * points[best][1]
    return WeightedInputs(weights, values[1 + best] - values[0], ratio * points[best][0], alpha)


def cross_fit_heldout(problem: RidgeProblem, choice: SearchResult) -> SearchResult:
    """The choice with held-out scores by weights that have not seen the row, and the alpha that suits these best.

    Weights have seen the labels of all rows, so that leave-one-out scores are too good: with few rows and many
    columns, the alpha that they choose is too small, and probabilities calibrated by them are too sharp. Here the
    rows of each of four folds are held out, as ``cv`` says, with weights that were learned from the other folds;
    without a closed form, the fold is held out as a whole. Nothing changes without weights, or if they were learned
    from a sample, since they have not seen the other rows.

    Parameters
    ----------
    problem : RidgeProblem
        All rows, transformed by inputs with weights.
    choice : SearchResult
    """
    found, fold = choice.outcome, _folds(problem) if problem.settings.weights_of_all else None
    if fold is None:
        return choice
    heldout = _by_other_weights(replace(problem, coupling=choice.coupling), found, fold)

    def at(alpha: float) -> Candidate:
        F, dof = np.empty_like(found.F), 0.0
        for k, scores in enumerate(heldout):
            held, mine = scores(alpha), fold == k
            F[mine], dof = held.F[mine], dof + held.dof * float(np.mean(mine))
        outcome = choice.evaluator.objective(found.sigma, alpha, HeldOut(F, dof=dof), found)
        return replace(outcome, **{name: getattr(found, name) for name in ("sharing", "intercept_ratio", "weight")})

    best = at(found.alpha)
    for _ in range(MOST_STEPS if problem.grids.alphas.ratio else 0):
        more = at(best.alpha * STEP)
        if not more.better_than(best):
            break
        best = more
    return replace(choice, outcome=best)


def _by_other_weights(problem: RidgeProblem, found: Candidate, fold: Array) -> list[Callable[[float], HeldOut]]:
    """For each fold a function from alpha to held-out scores, with weights from the rows of the other folds."""
    known, settings = problem.settings.inputs.weights, problem.settings
    assert known is not None
    plain, functions = _reweighted(problem, 1 / np.where(known > 0, known, 1.0)), []
    lengths = [natural_length(settings.kernel, each.rows) for each in (plain, problem)]
    alpha = found.alpha / LOGISTIC_ALPHA if problem.spec.logistic else found.alpha  # weights are those of squares
    start, learner = replace(found, sigma=found.sigma * lengths[0] / lengths[1], alpha=alpha), plain.simplified()
    for k in range(int(fold.max()) + 1):
        others = learner.with_rows(learner.rows.take(np.flatnonzero(fold != k), False))
        weights, ratio = learn_weights(others, start)
        evaluator = _evaluator(_reweighted(plain, weights), found)
        if problem.refits:
            evaluator = evaluator.holding_out(np.flatnonzero(fold == k))
        functions.append(evaluator.heldout(start.sigma * ratio, 2))  # often only two alphas
    return functions


def _reweighted(problem: RidgeProblem, weights: Array) -> RidgeProblem:
    """The same problem with all columns multiplied by weights, and the kernel fitted to them."""
    rows = problem.rows
    X = (rows.X * weights).astype(rows.X.dtype)
    settings = replace(problem.settings, kernel=problem.settings.kernel.fitted(X, rows.w))
    return replace(problem, data=replace(problem.data, rows=replace(rows, X=X)), settings=settings)


def _hopeless(problem: RidgeProblem, calibrator: Any, done: Array, plain: Array, weighted: list[Array]) -> bool:
    """True if the losses of the first folds, with one calibrator, are worse with weights by a standard error."""
    rows, objective = problem.rows.part(done), problem.settings.objective
    losses = [objective.row_losses(rows, HeldOut(F[done]), calibrator) for F in (plain, *weighted)]
    best = min(losses[1:], key=lambda loss: float(np.average(loss, weights=rows.w)))
    return clearly_less(losses[0], best, rows.w, rows.size)


def _folds(problem: RidgeProblem) -> Array | None:
    """Four folds, classes and tasks in proportion; None if there are too few rows.

    Groups, or the copies of a row, stay together. Folds depend on the content of the rows, not on their order or the
    names of classes and tasks, and copies are like weights.
    """
    rows = problem.rows
    unit = np.unique(rows.copy if rows.group is None else rows.group, return_inverse=True)[1]
    count = int(unit.max()) + 1
    if count < 2 * FOLDS:
        return None
    keys, cell = input_hashes(rows), rows.y
    if rows.task is not None:
        keys = pair_hashes(keys, unit_hashes(keys, rows.task, "tasks")[rows.task])
        cell = cell + rows.task * (rows.y.max() + 1)
    if rows.y.ndim == 2:
        return grouped_folds(FOLDS, rows.y, unit, keys)
    largest = np.zeros(count, dtype=int)
    np.maximum.at(largest, unit, cell)
    key = unit_hashes(keys, unit, "folds")
    first = np.full(int(largest.max()) + 1, np.iinfo(key.dtype).max)
    np.minimum.at(first, largest, key)
    fold = np.empty(count, dtype=int)
    targets = row_hashes(rows.y[:, None] if rows.values is None else rows.values)
    ties = unit_hashes(pair_hashes(keys, targets), unit, "folds")  # names matter only for units with the same inputs
    fold[np.lexsort((ties, key, first[largest]))] = np.arange(count) % FOLDS
    return fold[unit]


def _evaluator(problem: RidgeProblem, found: Candidate) -> Any:
    """Evaluator of these rows with the options of a point."""
    evaluator = problem.evaluator().with_sharing(found.sharing)
    if found.weight is not None:
        evaluator = evaluator.with_linear_weight(found.weight)
    if found.intercept_ratio is not None:
        evaluator = evaluator.with_intercept_ratio(found.intercept_ratio)
    return evaluator


def _heldout(evaluator: Any, out: Array, sigma: float, alphas: list[float]) -> list[Array]:
    """Scores of the rows ``out``, held out together, at this sigma and these alphas."""
    part = evaluator.holding_out(out)
    at = part.heldout(sigma, len(alphas))
    return [part.without_rounding(at(alpha)).F[out] for alpha in alphas]
