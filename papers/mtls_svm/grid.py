"""The paper's grid search by leave-one-out; the grid grows where its best point is on the border.

gamma, lambda and p (of the kernel exp(-p d^2)) are powers of 2. Held-out residuals are in closed form.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

from papers._common.data import Array

#: Exponents of 2.
GAMMAS, LAMBDAS, WIDTHS = range(-5, 16, 2), range(-10, 11, 2), range(-15, 4, 2)
#: Number of steps by which an axis may grow on either side.
GROWTH = 8


@dataclass(frozen=True)
class Choice:
    """The best exponents, their score, and the number of points tried."""

    at: tuple[int, ...]
    score: float
    points: int


def grid_search(line: Callable[[tuple[int, ...], Sequence[int]], Array], *axes: range) -> Choice:
    """The best point of a grid that grows where a point on the border is better than all points inside.

    Ties go to the smaller exponents. ``line`` returns the scores of several values of the first axis, gamma, at one
    point of the other axes.
    """
    spans, found = [(a[0], a[-1]) for a in axes], dict[tuple[int, ...], float]()
    limits = [(a[0] - 2 * GROWTH, a[-1] + 2 * GROWTH) for a in axes]
    while True:
        first, *others = (range(low, high + 1, 2) for low, high in spans)
        for rest in itertools.product(*others):
            missing = [g for g in first if (g, *rest) not in found]
            if missing:
                found |= {(g, *rest): s for g, s in zip(missing, line(rest, missing), strict=True)}
        best = max(sorted(found), key=lambda point: (round(float(found[point]), 9), -borders(point, spans)))
        grown = [wider(*case) for case in zip(best, spans, limits, strict=True)]
        if grown == spans:
            return Choice(best, float(found[best]), len(found))
        spans = grown


def borders(point: tuple[int, ...], spans: Sequence[tuple[int, int]]) -> int:
    """Number of borders of the grid that a point is on."""
    return sum(at in span for at, span in zip(point, spans, strict=True))


def wider(at: int, span: tuple[int, int], limit: tuple[int, int]) -> tuple[int, int]:
    """Extend an axis by one step on the side of the best value."""
    if span[0] == span[1]:
        return span
    low, high = span
    return max(low - 2, limit[0]) if at == low else low, min(high + 2, limit[1]) if at == high else high


def rbf(A: Array, B: Array, p: int) -> Array:
    """The kernel matrix."""
    return np.asarray(np.exp(-(2.0**p) * cdist(A, B, "sqeuclidean")))


def width(p: int) -> float:
    """The library's sigma, exp(-d^2 / (2 sigma^2))."""
    return float(np.sqrt(1 / (2 * 2.0**p)))


class Machine:
    """LS-SVM with an intercept: leave-one-out residuals for any gamma from one eigendecomposition."""

    def __init__(self, K: Array, Y: Array) -> None:
        centred = K - K.mean(axis=0)
        centred -= centred.mean(axis=1)[:, None]
        centred += 2 * np.trace(K) / len(K)  # moves the constant vector to the last eigenvalue, which is dropped
        e, V = eigh(centred, driver="evd")
        self.e, self.V = np.maximum(e[:-1], 0), V[:, :-1]
        self.squares, self.A = self.V**2, self.V.T @ (Y - Y.mean(axis=0))

    def parts(self, gamma: float) -> tuple[Array, Array]:
        """Coefficients, and the diagonal of the matrix that maps targets to coefficients."""
        w = 1 / (self.e + 1 / gamma)
        return self.V @ (w[:, None] * self.A), self.squares @ w

    def residuals(self, gamma: float) -> Array:
        """Target minus held-out prediction."""
        coef, diagonal = self.parts(gamma)
        return coef / diagonal[:, None]


def squares(machine: Machine, gammas: Sequence[int]) -> Array:
    """Minus the sum of squared held-out residuals for several gammas."""
    return np.array([-np.sum(machine.residuals(2.0**g) ** 2) for g in gammas])
