"""Search over sigma, alpha, sharing and other hyperparameters by held-out scores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from leastwise.model_selection.checkpoint import CheckpointEntry, next_step, time_limit
from leastwise.model_selection.folds import distinct_sample
from leastwise.model_selection.grids import MIDDLE, Grid, OptionGrid, SharingGrid, best_of, explore, full_grid, walk
from leastwise.model_selection.steps import GridJob, Prefetch, grid_jobs, make_step
from leastwise.problem.kernels import Kernel, Precomputed, squared_norms
from leastwise.solvers.evaluator import Candidate, Evaluator, Rows

Array = np.ndarray


#: A skipped step has a score so much worse than the best one, relative to its magnitude.
SKIPPED = 1e9

#: Hyperparameters of a point of a search, and the names of the public parameters.
PARAMETERS = {
    "sigma": "sigma",
    "alpha": "alpha",
    "sharing": "sharing",
    "intercept_ratio": "intercept_ratio",
    "weight": "linear_weight",
    "scale": "scale",
    "kernel": "kernel",
}


@dataclass(frozen=True)
class SearchResult:
    """Result of a search.

    Attributes
    ----------
    outcome : Candidate
        The best point.
    seen : list of dict
        All points.
    evaluator : Evaluator or None
        Evaluator of all rows; None if there are too many rows.
    searched : Evaluator
        Evaluator that the search ended on.
    coupling : Coupling, Relation or None
        How tasks or labels are coupled.
    """

    outcome: Candidate
    seen: list[dict]
    evaluator: Any
    searched: Any
    coupling: Any = None


@dataclass
class Search:
    """A search with one evaluator; ``seen`` lists all evaluated points.

    With ``walks``, alphas at one sigma are found by a line search from the best alpha of the last one, and steps are
    not computed in parallel. ``made`` has the results of all steps by sigma and sharing. ``linear`` has those of
    linear functions, which depend on no sigma, by sharing, prior variance of the intercepts and alphas; searches of
    the same rows may share it.
    """

    evaluator: Evaluator
    seen: list[dict] = field(default_factory=list)
    made: dict[tuple[float, float | None], Candidate] = field(default_factory=dict)
    linear: dict[tuple, Candidate] = field(default_factory=dict)
    walks: bool = False

    def run(self, sigmas: Grid, alphas: Grid, sharings: SharingGrid | None = None) -> Candidate:
        """Evaluate every sigma with every alpha, then refine alpha at the best point, also beyond the border.

        With every sigma, all sharings are evaluated, or, if ``sharings.every`` is False, those on a line search from
        the best sharing of the last sigma; at the best sigma all are. If every alpha takes a pass over the rows,
        alphas of an automatic grid are also found by a line search from the last best one.
        """
        with closing(Prefetch(self.evaluator, alphas)) as ahead:
            found = self._grid(ahead, sigmas, alphas, sharings)
        return self.refine(found, alphas, known=True) if alphas.ratio else found

    def _grid(self, ahead: Prefetch, sigmas: Grid, alphas: Grid, sharings: SharingGrid | None) -> Candidate:
        """The best point of the grids, with sigmas beyond the border; steps may be computed ahead in parallel."""
        tried: dict[tuple[float, float | None], Candidate] = {}
        walks = self.walks or (self.evaluator.streams and alphas.ratio is not None)

        def at(sigma: float, sharing: float | None, last: Candidate | None) -> Candidate:
            if (sigma, sharing) not in tried:
                strategy = full_grid(alphas)
                if walks and last is not None:
                    strategy = partial(walk, Grid(alphas.values), last.alpha)
                tried[sigma, sharing] = self._at(sigma, sharing, strategy, len(alphas.values), ahead=ahead)
            return tried[sigma, sharing]

        def best(sigma: float, last: Candidate | None) -> Candidate:
            if sharings is None:
                return at(sigma, None, last)
            if sharings.every:
                found = list[Candidate]()
                for sharing in sharings.values:
                    found.append(at(sigma, sharing, found[-1] if walks and found else last))
                return best_of(found)
            start = MIDDLE if last is None or last.sharing is None else last.sharing
            return walk(sharings, start, lambda sharing, near: at(sigma, sharing, near or last))

        if not walks:
            ahead.expect(grid_jobs(self.evaluator, sigmas.values, sharings))
        found = explore(sigmas, best)
        if sharings is None:
            return found
        if self.evaluator.sharing_costs and not walks:
            left = [sharing for sharing in sharings.values if (found.sigma, sharing) not in tried]
            ahead.expect([GridJob(found.sigma, SharingGrid((sharing,))) for sharing in left])
        return best_of([found, *(at(found.sigma, sharing, found) for sharing in sharings.values)])

    def refine(self, start: Candidate, alphas: Grid, known: bool = False) -> Candidate:
        """Line search over alpha from ``start``; with ``known``, its score on these rows is not recomputed."""
        strategy = partial(_walk_alphas, alphas, start, known)
        return self._at(start.sigma, start.sharing, strategy, count=3, what="refined, ")

    def settle(
        self, start: Candidate, alphas: Grid, sharings: SharingGrid | None, refined: Candidate | None = None
    ) -> Candidate:
        """Refine alpha, and the sharing if there are several, from a point found on a subsample.

        ``refined`` is the result of ``refine(start, alphas)``, if available.
        """
        found = self.refine(start, alphas) if refined is None else refined
        if sharings is None or start.sharing is None or len(sharings.values) == 1:
            return found

        def at(sharing: float, last: Candidate | None) -> Candidate:
            return self.refine(replace(last or found, sharing=sharing), alphas)

        return walk(sharings, start.sharing, at, known=found)

    def descend(
        self,
        start: Candidate,
        ratio: float,
        alphas: Grid,
        sharings: SharingGrid | None,
        refined: Candidate | None = None,
    ) -> Candidate:
        """Settle alpha and sharing at the sigma of ``start``, then follow sigma in steps of ``ratio``.

        A start with held-out scores of as many rows was settled on these rows before. ``refined`` as in ``settle``.
        """
        options = start.weight, start.intercept_ratio
        same = options == (self.evaluator.weight, getattr(self.evaluator, "intercept_ratio", None))
        known = same and len(start.F) == len(self.evaluator.rows)
        found = start if known else self.settle(start, alphas, sharings, refined)

        def at(sigma: float, last: Candidate | None) -> Candidate:
            return self.refine(replace(last or found, sigma=sigma), alphas)

        return walk(Grid((start.sigma,), ratio), start.sigma, at, known=found)

    def vary(
        self, found: Candidate, options: Sequence[float], change: Callable, alphas: Grid, start: float
    ) -> Candidate:
        """Line search over another hyperparameter at the sigma and sharing found, from its value ``start``.

        ``change(option)`` makes the evaluator for an option. This search continues with the best one.
        """
        if len(options) < 2:
            return found

        def at(option: float, last: Candidate | None) -> Candidate:
            other = Search(change(option), self.seen, linear=self.linear)
            tried[option] = other, other.at(found.sigma, found.sharing, alphas)
            return tried[option][1]

        tried = {start: (self, found)}
        best = walk(OptionGrid(tuple(sorted(options))), start, at, found)
        chosen = next(search for search, outcome in tried.values() if outcome is best)
        self.evaluator, self.made = chosen.evaluator, chosen.made
        return best

    def at(self, sigma: float, sharing: float | None, alphas: Grid) -> Candidate:
        """The best alpha of the grid at this sigma and sharing."""
        if self.evaluator.weight != np.inf:
            return self._at(sigma, sharing, full_grid(alphas), len(alphas.values))
        key = sharing, getattr(self.evaluator, "intercept_ratio", None), alphas.values
        if key not in self.linear:
            self.linear[key] = self._at(sigma, sharing, full_grid(alphas), len(alphas.values))
        return replace(self.linear[key], sigma=sigma)

    def _at(
        self, sigma: float, sharing: float | None, strategy: Callable, count: int, what: str = "", ahead: Any = None
    ) -> Candidate:
        """One search step: one sigma and sharing, about ``count`` alphas; skipped if the time is up."""
        limit = time_limit()
        if limit is not None and self.made and limit.is_up:
            limit.n_skipped += 1
            return self._skipped(sigma, sharing)
        evaluator = self.evaluator.with_sharing(sharing)
        shared = evaluator.description()
        listener, step = next_step(evaluator, sigma, sharing, strategy, f"{what}{count} alphas{shared}")
        entry = listener.load(step)
        if entry is None:
            made = (ahead and ahead.find(sigma, sharing)) or make_step(evaluator, sigma, strategy, count)
            how = f"{what}{len(evaluator.rows)} rows, {made.seconds:.2f} s"
            scorer = self.evaluator.settings.objective.scorer
            score = f"{scorer.name} {scorer.shown(made.outcome.score):.5g}"
            line = f"sigma {made.outcome.sigma:.4g}{shared}: best alpha {made.outcome.alpha:.2g}, {score} ({how})"
            entry = CheckpointEntry(step, made.outcome, made.seen, line, made.warm_start)
            listener.save(step, entry)
        evaluator.set_warm_start(sigma, entry.warm_start)
        self.seen.extend(entry.seen)
        self.evaluator.settings.report(entry.line)
        self.made[sigma, sharing] = entry.outcome
        return entry.outcome

    def _skipped(self, sigma: float, sharing: float | None) -> Candidate:
        """The result of a step that is not made: the known one at this point, or one that is never the best."""
        if (sigma, sharing) in self.made:
            return self.made[sigma, sharing]
        best = best_of(list(self.made.values()))
        worse = best.score - SKIPPED * (best.scale + abs(best.score))
        return replace(best, sigma=sigma, sharing=sharing, score=worse)


def _walk_alphas(alphas: Grid, start: Candidate, known: bool, visit: Callable) -> Candidate:
    """The calibrator of the first point is fitted from that of the start, the others from that of the last point."""
    first = start if known else None
    return walk(alphas, start.alpha, lambda alpha, last: visit(alpha, last or start), first)


def table(seen: list[dict]) -> dict[str, Array]:
    """The points of a search as columns of ``cv_results_``."""
    score, rows = (np.array([point[name] for point in seen]) for name in ("score", "rows"))
    # Points of the last stage, with the final coupling of the tasks, rank first; then points evaluated on more rows.
    stage = np.array([point.get("stage", 0) for point in seen])
    level = stage * (rows.max(initial=0) + 1) + rows
    ahead = (level[None] > level[:, None]) | ((level[None] == level[:, None]) & (score[None] > score[:, None]))
    names = [name for name in PARAMETERS if all(point.get(name) is not None for point in seen)]
    if not any(point.get("intercept_ratio") for point in seen):  # tasks have no intercepts of their own
        names = [name for name in names if name != "intercept_ratio"]
    return {
        **{f"param_{PARAMETERS[name]}": np.array([point[name] for point in seen]) for name in names},
        "n_rows": rows,
        "mean_test_score": score,
        "rank_test_score": 1 + np.sum(ahead, axis=1),
    }


def natural_length(kernel: Kernel, rows: Rows) -> float:
    """Unit of sigma="auto": the median distance between distinct rows, or the mean norm for dot products.

    It is estimated from a sample of a thousand rows.
    """
    kernel = kernel.ruler
    if not kernel.has_sigma:
        return 1.0
    some = distinct_sample(rows, 1000, "scale")
    if kernel.distance and len(some) < 2:
        raise ValueError(
            "All rows of X are equal, so the median distance is 0 and sigma='auto' has no scale: give features that "
            "vary, or a number for sigma."
        )
    X = rows.X[some]
    norms = squared_norms(X)
    pairs = kernel.pairs(X, X).ravel()[_upper_triangle(X.shape[0])] if kernel.distance else norms
    length = kernel.length(pairs, norms)
    if not length > 0:
        raise ValueError(
            "The rows of X are equal, or so close that their squared distances are 0: sigma='auto' has no scale. "
            "Give features that vary, scale them, or give a number for sigma."
        )
    return length


@lru_cache(maxsize=4)
def _upper_triangle(n: int) -> Array:
    """Flat indices of the entries above the diagonal; the folds and rounds of a fit ask for the same ones."""
    return np.flatnonzero(~np.tri(n, dtype=bool))


def natural_height(kernel: Kernel, rows: Rows, length: float, norm: str) -> float:
    """Unit of alpha="auto": 1 for distance-based kernels, otherwise mean k(x, x), squared for norm="coefficients"."""
    if kernel.distance:
        return 1.0
    precomputed = isinstance(kernel, Precomputed)
    some = distinct_sample(rows, 200, "scale", precomputed)  # copies of a row count once
    X = rows.X[np.ix_(some, some)] if precomputed else rows.X[some]
    height = float(np.abs(np.diagonal(kernel.values(kernel.pairs(X, X), length))).mean())
    return (height if norm == "function" else height**2) or 1.0
