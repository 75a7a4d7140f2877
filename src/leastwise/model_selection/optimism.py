r"""What held-out residuals of a chosen model hide: they have chosen it.

Parameters are chosen such that held-out errors are small, so those of the chosen model are smaller than the errors on
new rows. Two corrections make up for it. Both vanish as rows become many.

*Selection by the others.* The error of row i is taken from the model that the other rows would have chosen: among all
points of the search the one with the best score without the fold of row i. Its own error then has no part in the
choice. This costs nothing, as the held-out predictions of all points are there anyway. (A nested cross-validation
would also keep row i out of the models that predict the other rows; it would take a search for every fold.)

*Degrees of freedom.* What remains is of the order of the number of parameters over the number of rows. As in the
residual variance of least squares, errors are multiplied by :math:`\sqrt{m / (m - p)}`, with m independent rows (or
groups) and p parameters of which more than one value was tried.

Coverage of intervals before and after is in ``benchmarks.intervals``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.model_selection.objective import ValueObjective, charge, clear_margin
from leastwise.model_selection.search import PARAMETERS
from leastwise.problem.kernels import Linear
from leastwise.solvers.evaluator import Rows, Settings

Array = np.ndarray


def inflation(seen: list[dict], size: int) -> float:
    """The factor for degrees of freedom; infinite where there are no more rows than parameters."""
    searched = sum(len({point.get(name) for point in seen}) > 1 for name in PARAMETERS)
    return float(np.sqrt(size / (size - searched))) if size > searched else np.inf


def excess(seen: list[dict], rows: Rows, settings: Settings) -> Array | None:
    """By how much the absolute errors are larger where the other folds choose the model, of shape (n, outputs).

    None where there was nothing to choose from, or the points were not kept.
    """
    objective = settings.objective
    points = [point for point in seen if len(point.get("F", ())) == len(rows)]
    if len(points) < 2 or not isinstance(objective, ValueObjective):
        return None
    assert rows.values is not None
    away = np.abs(rows.values.astype(float) - np.array([point["F"] for point in points], dtype=float))
    if not np.isfinite(away).all():
        return None
    by_fold = _Choice.of(points, away, rows, settings)
    fold = np.unique(rows.fold, return_inverse=True)[1]
    leaving = rows.w if rows.split_count is None else rows.w / rows.split_count
    chosen = np.array([by_fold.without(leaving * (fold == f)) for f in range(int(fold.max()) + 1)])[fold]
    return away[chosen, np.arange(len(rows))] - away[by_fold.without(np.zeros(len(rows)))]


class _Choice:
    """The choice of a point, as the search makes it, by some of the rows."""

    def __init__(self, loss: Array, square: Array, factor: Array, simple: Array, rows: Rows) -> None:
        self.loss, self.square, self.factor, self.simple, self.rows = loss, square, factor, simple, rows
        self.total = loss @ rows.w

    @classmethod
    def of(cls, points: list[dict], away: Array, rows: Rows, settings: Settings) -> _Choice:
        """``away`` are absolute errors (points x n x outputs)."""
        objective = settings.objective
        assert isinstance(objective, ValueObjective)
        assert rows.values is not None
        Z = rows.values.astype(float)
        spread = np.average((Z - np.average(Z, axis=0, weights=rows.w)) ** 2, axis=0, weights=rows.w)
        square = (away**2 / np.where(spread > 0, spread, 1)).mean(axis=2)
        loss = away.mean(axis=2) if objective.scorer.name == "mae" else square
        factor, simple = np.ones(len(points)), np.zeros(len(points), dtype=bool)
        if objective.scorer.cautious:
            factor = np.array([charge(rows.size, point["dof"]) for point in points])
            simple = np.array([_is_simple(point, settings) for point in points])
        return cls(loss, square, factor, simple, rows)

    def without(self, leaving: Array) -> int:
        """The point that is chosen where each row lacks so much of its weight."""
        gone = leaving > 0
        w = self.rows.w - leaving
        score = (self.total - self.loss[:, gone] @ leaving[gone]) * self.factor
        best = int(score.argmin())
        if not self.simple.any() or self.simple[best]:
            return best
        rival = int(np.where(self.simple, score, np.inf).argmin())
        stay = w > 0
        less = self.square[rival, stay] - self.square[best, stay]
        return best if clear_margin(less, w[stay], self.rows.size) else rival


def _is_simple(point: dict[str, Any], settings: Settings) -> bool:
    """Whether a point is a linear model that all tasks share, which "cautious" takes in doubt."""
    linear = point["weight"] == np.inf or isinstance(settings.kernel, Linear)
    return linear and point["sharing"] in (None, 1.0)
