"""The paper's grid of sigma, lambda and gamma, and the best point of it by cross-validation."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.problem.coupling import from_lambda_gamma
from papers._common.data import Array, median_distance
from papers.lspc_mt.draws import Draw

LAMBDAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
GAMMAS = (0.0, *LAMBDAS)
#: In medians of the distance, for the paper's kernel exp(-d^2 / sigma^2); ours has a 2 in it.
SIGMAS = (1 / 2, 2 / 3, 5 / 6, 1, 4 / 3, 5 / 3)
#: What stands for gamma = 0, where the tasks' own parts have no ridge at all.
TINY = 1e-9
N_POINTS = len(SIGMAS) * len(LAMBDAS) * len(GAMMAS)


@dataclass(frozen=True)
class Point:
    """A point of the grid, and how well it did in cross-validation."""

    sigma: float
    alpha: float
    sharing: float
    score: float = np.nan

    def rank(self) -> tuple:
        """The best score; of equals, to six digits, the first on a rising grid."""
        return round(self.score, 6), -self.alpha, -self.sigma, -self.sharing

    @property
    def values(self) -> dict[str, Any]:
        """As parameters of an estimator."""
        return {"sigma": self.sigma, "alpha": self.alpha, "sharing": self.sharing}


def ties(kind: str, n_tasks: int) -> list[tuple[float, float]]:
    """Sharing and alpha of the paper's lambdas and gammas, those of one sharing together, from large alphas down.

    At gamma = 0 the tasks are alone whatever lambda is: these six points are one.
    """
    if kind == "STI":
        pairs = [(np.inf, v) for v in LAMBDAS]
    elif kind == "STC":
        pairs = [(v, np.inf) for v in LAMBDAS]
    else:
        pairs = [(np.inf, TINY), *itertools.product(LAMBDAS, GAMMAS[1:])]
    found = [from_lambda_gamma(*pair, n_tasks) for pair in pairs]
    return sorted({(round(f["sharing"], 12), f["alpha"]) for f in found}, key=lambda p: (p[0], -p[1]))


def sigmas(draw: Draw) -> list[float]:
    """For these rows."""
    length = median_distance(draw.X)
    return [float(s * length / np.sqrt(2)) for s in SIGMAS]


def best_point(draw: Draw, held: Callable[..., Iterator[tuple[Point, Array]]], kind: str, unit: float = 1.0) -> Point:
    """The best of all points by cross-validation; alphas are in a unit."""
    pairs = [(sharing, alpha * unit) for sharing, alpha in ties(kind, draw.n_tasks)]
    found = [
        Point(**point.values, score=draw.judge(score))
        for sigma in sigmas(draw)
        for point, score in held(draw, sigma, pairs)
    ]
    return max(found, key=Point.rank)
