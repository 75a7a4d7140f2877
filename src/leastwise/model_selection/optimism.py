r"""Corrections for the optimism of selected models.

Hyperparameters are selected for small held-out errors, so those of the selected model are smaller than
errors on new rows. Two corrections compensate for this. Both vanish as the number of rows grows.

*Selection without the row.* The error of row i is taken from the model that the other rows would have selected: among
all points of the search, the one with the best score without the fold of row i. Its own error then has no influence
on the selection. This costs nothing, because the held-out predictions of all points are available. (A nested
cross-validation would also keep row i out of the models that predict the other rows, at the cost of one search per
fold.)

*Degrees of freedom.* The remaining optimism is of the order of the number of hyperparameters over the number of rows.
As in the residual variance of least squares, errors are multiplied by :math:`\sqrt{m / (m - p)}`, with m independent
rows (or groups) and p hyperparameters for which more than one value was tried.

The coverage of intervals with and without the corrections is in ``benchmarks.intervals``.

*Hidden errors.* For classes, the choice of p hyperparameters may have turned some errors into correct decisions, and
rows outside their sets into rows inside. Thresholds and sets count half an observation for each hyperparameter with
more than one value as an error that was not seen; less above 100 rows, where the choice adapts less to single rows
(``caution``). ``benchmarks.few_rows`` measures how often promises are broken, with and without it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.model_selection.objective import (
    ERRORS,
    ValueObjective,
    caution,
    charge,
    clearly_less,
    targets_and_variance,
)
from leastwise.model_selection.search import PARAMETERS
from leastwise.problem.kernels import Linear
from leastwise.solvers.evaluator import Rows, Settings

Array = np.ndarray


def hidden_errors(results: dict[str, Array] | None, size: float, others: int = 0) -> float:
    """Errors among ``size`` held-out observations that the choice of hyperparameters in ``cv_results_`` may hide.

    ``others`` is the number of other choices that were made on the same rows.
    """
    names = [f"param_{name}" for name in PARAMETERS.values()]
    searched = sum(len(np.unique(results[name])) > 1 for name in names if name in results) if results else 0
    return (searched + others) / 2 * caution(max(size, 1))


def inflation(seen: list[dict], size: int) -> float:
    """Factor for the degrees of freedom; infinite if there are no more rows than hyperparameters."""
    searched = sum(len({point.get(name) for point in seen}) > 1 for name in PARAMETERS)
    return float(np.sqrt(size / (size - searched))) if size > searched else np.inf


def excess(seen: list[dict], rows: Rows, settings: Settings) -> Array | None:
    """Increase of the absolute errors if the other folds select the model, of shape (n, outputs).

    None if there was only one point, or the predictions of the points were not stored.
    """
    objective = settings.objective
    points = [point for point in seen if len(point.get("F", ())) == len(rows)]
    if len(points) < 2 or not isinstance(objective, ValueObjective):
        return None
    assert rows.values is not None
    errors = np.abs(rows.values.astype(float) - np.array([point["F"] for point in points], dtype=float))
    if not np.isfinite(errors).all():
        return None
    by_fold = _Choice.of(points, errors, rows, settings)
    fold = np.unique(rows.fold, return_inverse=True)[1]
    leaving = rows.w if rows.split_count is None else rows.w / rows.split_count
    chosen = np.array([by_fold.without(leaving * (fold == f)) for f in range(int(fold.max()) + 1)])[fold]
    return errors[chosen, np.arange(len(rows))] - errors[by_fold.without(np.zeros(len(rows)))]


class _Choice:
    """Selection of a point by a subset of the rows, by the same rule as in the search."""

    def __init__(self, loss: Array, square: Array, factor: Array, simple: Array, rows: Rows) -> None:
        self.loss, self.square, self.factor, self.simple, self.rows = loss, square, factor, simple, rows
        self.total = loss @ rows.w

    @classmethod
    def of(cls, points: list[dict], errors: Array, rows: Rows, settings: Settings) -> _Choice:
        """``errors`` are absolute errors (points x n x outputs)."""
        objective = settings.objective
        assert isinstance(objective, ValueObjective)
        square = (errors**2 / targets_and_variance(rows)[1]).mean(axis=2)
        loss = errors.mean(axis=2) if objective.scorer.name == "mae" else square
        factor, simple = np.ones(len(points)), np.zeros(len(points), dtype=bool)
        if objective.scorer.cautious:
            factor = np.array([charge(rows.size, point["dof"]) for point in points])
            simple = np.array([_is_simple(point, settings) for point in points])
        return cls(loss, square, factor, simple, rows)

    def without(self, leaving: Array) -> int:
        """Index of the point that is selected if each row loses ``leaving`` of its weight."""
        left = leaving > 0
        w = self.rows.w - leaving
        score = (self.total - self.loss[:, left] @ leaving[left]) * self.factor
        best = int(score.argmin())
        if not self.simple.any() or self.simple[best]:
            return best
        simplest = int(np.where(self.simple, score, np.inf).argmin())
        stay = w > 0
        squares, n = self.square[:, stay], self.rows.size
        clear = clearly_less(squares[best], squares[simplest], w[stay], n, ERRORS * caution(n))
        return best if clear else simplest


def _is_simple(point: dict[str, Any], settings: Settings) -> bool:
    """True for a linear model shared by all tasks, which "cautious" prefers unless another is clearly better."""
    linear = point["weight"] == np.inf or isinstance(settings.kernel, Linear)
    return linear and point["sharing"] in (None, 1.0)
