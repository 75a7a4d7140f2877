"""The search for sigma and alpha by held-out scores."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from leastwise.heldout import Folds, Held
from leastwise.kernels import Kernel, squared_norms
from leastwise.selection.grid import Grid, explore, walk
from leastwise.selection.trial import Outcome, Rows, Trial

Array = np.ndarray


@dataclass
class Search:
    """A search under way: the best point so far, and all points seen."""

    trial: Trial
    seen: list[dict] = field(default_factory=list)

    def run(self, sigmas: Grid, alphas: Grid) -> Outcome:
        """Try every sigma with every alpha, then finer alphas, and beyond the border, at the best; the best point."""

        def at(sigma: float, last: Outcome | None) -> Outcome:
            return self._at(sigma, lambda visit: explore(alphas, visit, grow=False), len(alphas.values))

        found = explore(sigmas, at)
        return self.refine(found.sigma, alphas, found.alpha, found) if alphas.ratio else found

    def refine(self, sigma: float, alphas: Grid, start: float, known: Outcome | None = None) -> Outcome:
        """At one sigma, go from a good guess, or a point that is known, to better alphas until there is none."""
        return self._at(sigma, lambda visit: walk(alphas, start, visit, known), count=3, what="refined, ")

    def _at(self, sigma: float, strategy: Callable, count: int, what: str = "") -> Outcome:
        """All of one sigma; ``count`` tells about how many alphas are to be looked at."""
        began, s = time.perf_counter(), self.trial.settings
        heldout = self.trial.heldout(sigma, count)
        found: Outcome = strategy(lambda alpha, last: self._point(sigma, alpha, heldout(alpha), last))
        s.report(
            f"sigma {sigma:.4g}: best alpha {found.alpha:.2g}, {s.scorer.name} {s.scorer.shown(found.score):.5g} "
            f"({what}{len(self.trial.rows)} rows, {time.perf_counter() - began:.2f} s)"
        )
        return found

    def _point(self, sigma: float, alpha: float, held: Held, last: Outcome | None) -> Outcome:
        outcome = self.trial.judge(sigma, alpha, held, last)
        self.seen.append({"sigma": sigma, "alpha": alpha, "score": outcome.score, "rows": len(self.trial.rows)})
        return outcome


def table(seen: list[dict]) -> dict[str, Array]:
    """The points of a search as columns, under scikit-learn's names."""
    score, rows = (np.array([point[name] for point in seen]) for name in ("score", "rows"))
    # What was judged on all rows goes before what was judged on some.
    ahead = (rows[None] > rows[:, None]) | ((rows[None] == rows[:, None]) & (score[None] > score[:, None]))
    return {
        "param_sigma": np.array([point["sigma"] for point in seen]),
        "param_alpha": np.array([point["alpha"] for point in seen]),
        "n_rows": rows,
        "mean_test_score": score,
        "rank_test_score": 1 + np.sum(ahead, axis=1),
    }


def natural_length(kernel: Kernel, rows: Rows) -> float:
    """The unit of sigma="auto": the median distance between distinct rows, or the mean norm for dot products.

    A thousand rows, evenly spaced, tell the median well enough.
    """
    if not kernel.has_sigma:
        return 1.0
    first = np.sort(np.unique(rows.copy, return_index=True)[1])
    if kernel.distance and len(first) < 2:
        raise ValueError(
            "All rows of X are equal, so the median distance is 0 and sigma='auto' has no scale to go by: "
            "give features that vary, or a number for sigma."
        )
    X = rows.X[first[np.linspace(0, len(first) - 1, min(len(first), 1000)).astype(int)]]
    norms = squared_norms(X)
    pairs = kernel.pairs(X, X)[np.triu_indices(X.shape[0], 1)] if kernel.distance else norms
    length = kernel.length(pairs, norms)
    if not length > 0:
        raise ValueError(
            "Distances between the rows of X are 0, or so small that their squares are: sigma='auto' has no scale to "
            "go by. Scale the features, or give a number for sigma."
        )
    return length


def natural_height(kernel: Kernel, rows: Rows, length: float, norm: str) -> float:
    """The unit of alpha="auto": 1 for kernels of a distance, else the mean of k(x, x), squared for coefficients."""
    if kernel.distance:
        return 1.0
    X = rows.X[:200]
    height = float(np.abs(np.diagonal(kernel.values(kernel.pairs(X, X), length))).mean())
    return (height if norm == "function" else height**2) or 1.0


def stratified_rows(y: Array, count: int, rng: np.random.Generator) -> Array:
    """About ``count`` row numbers, in order, with the classes in proportion and two rows of each at least."""
    order = rng.permutation(len(y))
    quota = np.maximum(np.round(np.bincount(y) * count / len(y)).astype(int), 2)
    return np.sort(np.concatenate([order[y[order] == k][:q] for k, q in enumerate(quota)]))


def held_out_tenth(rows: Rows, rng: np.random.Generator) -> Array:
    """About a tenth of the rows, whole folds of them, that leaves every class at least half of its rows."""
    left = np.bincount(rows.y)
    least = (left + 1) // 2
    held: list[Array] = []
    count = 0
    members = Folds.from_labels(rows.fold)
    parts = [*members.blocks, *members.singles[:, None]]
    for k in rng.permutation(len(parts)):
        part = parts[k]
        lost = np.bincount(rows.y[part], minlength=len(left))
        if count + len(part) <= max(len(rows) // 10, 2 * len(left)) and (left - lost >= least).all():
            held.append(part)
            left, count = left - lost, count + len(part)
    if not held:
        raise ValueError(
            f"solver='sgd' holds out a tenth of the rows to calibrate on, which {len(rows)} rows in "
            f"{len(parts)} groups do not allow: use solver='auto'."
        )
    return np.sort(np.concatenate(held))
