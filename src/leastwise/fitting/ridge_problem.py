"""The coupled ridge of one fit, and the choice of its hyperparameters on held-out rows.

A :class:`RidgeProblem` has rows, targets, kernel, basis functions and coupling; sigma, alpha and sharing are left
open. One task, many tasks and many labels differ in how rows are sampled and in which evaluator has the held-out
scores.

:func:`choose` searches on an affordable subsample, then refines alpha on all rows. More rows need a proportionally
smaller ridge on the mean loss, so alphas are converted in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from leastwise.calibration.calibrators import ClipNormalise, Signed, fit_label_calibrator
from leastwise.fitting.dataset import Dataset
from leastwise.fitting.spec import Spec
from leastwise.linalg.logistic import Stop
from leastwise.model_selection.folds import search_sample
from leastwise.model_selection.grids import Grid, SharingGrid, best_of
from leastwise.model_selection.objective import ValueObjective
from leastwise.model_selection.search import Search, SearchResult
from leastwise.problem.basis import Basis
from leastwise.problem.kernels import Linear, Precomputed, Sum
from leastwise.solvers.evaluator import Candidate, Evaluator, Rows, Settings
from leastwise.solvers.label_evaluators import LabelRows
from leastwise.solvers.newton import RefitEvaluator, RefitOptions
from leastwise.solvers.work import SEARCH_ROWS, rows_to_refine, rows_to_search

Array = np.ndarray


#: The ridge of a logistic loss relative to that of squares: its curvature p (1 - p) is below 1/4.
LOGISTIC_ALPHA = 0.03


@dataclass(frozen=True)
class Grids:
    """Values of sigma, alpha and, for tasks and labels, sharing that the search starts from."""

    sigmas: Grid
    alphas: Grid
    sharings: SharingGrid | None = None

    @property
    def single(self) -> bool:
        """True if there is nothing to choose."""
        one = self.sharings is None or len(self.sharings.values) == 1
        return self.sigmas.single and self.alphas.single and one

    def for_share(self, share: float) -> Grids:
        """The grids for a share of the rows.

        The ridge on the sum of the losses is kept, while alphas are relative to the mean loss. Alphas given by the
        user refer to all rows; automatic grids suit any number of rows.
        """
        if self.alphas.ratio or share == 1:
            return self
        return replace(self, alphas=Grid(tuple(a / share for a in self.alphas.values)))


@dataclass(frozen=True)
class RidgeProblem:
    """The ridge of one task, or, with a logistic loss, its kernel logistic regression.

    Attributes
    ----------
    spec : Spec
    data : Dataset
        All rows, or a subsample.
    settings : Settings
        Kernel, norm and objective.
    coupling : Coupling, Relation or None
        How tasks, or labels, are coupled.
    """

    spec: Spec
    data: Dataset
    settings: Settings
    coupling: Any = None

    def __len__(self) -> int:
        return len(self.data.rows)

    @property
    def rows(self) -> Rows:
        """Training rows."""
        return self.data.rows

    @property
    def precomputed(self) -> bool:
        """True if X is a kernel matrix."""
        return isinstance(self.settings.kernel, Precomputed)

    @cached_property
    def grids(self) -> Grids:
        """Values to search, in the units of these data."""
        return Grids(*self.spec.data_grids(self.rows, self.settings), self.sharings)

    @property
    def sharings(self) -> SharingGrid | None:
        """Values of sharing to try; None for one task."""
        return None

    @cached_property
    def basis(self) -> Basis:
        """Basis functions of these rows."""
        return self.spec.basis_of(self.rows, self.data.seed, self.settings, self.spec.basis)

    # ------------------------------------------------------------- subsamples

    def rows_to_search(self, on_all_rows: bool) -> int:
        """Number of rows to search on; ``on_all_rows`` is true if an evaluator of all rows follows."""
        if self.spec.logistic:
            return len(self)
        if on_all_rows:
            return rows_to_search(self.basis, len(self), self.spec.search_rows)
        return SEARCH_ROWS if self.spec.search_rows == "auto" else int(self.spec.search_rows or len(self))

    def take(self, count: int) -> Self:
        """About ``count`` rows, stratified by class; all rows if there are no more, or fewer than two folds."""
        rows = self.rows
        if count < len(rows):
            index = search_sample(rows, count, self.precomputed)
            if len(np.unique(rows.fold[index])) > 1:
                return self.with_rows(rows.take(index, self.precomputed))
        return self.with_rows(rows.to_numpy())

    def with_rows(self, rows: Rows) -> Self:
        """The same problem with other rows, and a start with the same ridge on the sum of the losses."""
        if rows is self.rows:
            return self
        settings, start = self.settings, self.settings.start
        if start is not None:
            settings = replace(settings, start=replace(start, alpha=start.alpha * len(self) / len(rows)))
        return replace(self, data=replace(self.data, rows=rows), settings=settings)

    def simplified(self) -> RidgeProblem:
        """A problem with a closed form for the first search; the problem itself if it has one."""
        return self

    # -------------------------------------------------------------- evaluators

    @property
    def refits(self) -> bool:
        """True if held-out scores have no closed form."""
        return self.spec.logistic

    def evaluator(self) -> Any:
        """Held-out scores of these rows at any sigma, alpha and sharing."""
        if self.spec.logistic:
            return RefitEvaluator(self.rows, self.basis, self.settings, self.refit_options)
        return Evaluator(self.rows, self.basis, self.settings)

    @property
    def refit_options(self) -> RefitOptions:
        """Solver of kernel logistic regression and its limits."""
        stop = Stop(int(self.spec.max_iter), self.spec.tol)
        return RefitOptions(self.grids.alphas, self.spec.solver, stop)

    def check_search(self, evaluator: Any, sample: RidgeProblem) -> None:
        """Raise an error if a search on this sample is not possible."""

    def too_large_to_settle(self, evaluator: Any) -> bool:
        """True if one or two passes over the rows are affordable, but no search on them."""
        return False

    def exact(self, evaluator: Any, found: Candidate) -> Candidate:
        """The candidate with exact held-out scores, if the search used approximate ones."""
        return found

    def relate(self, found: SearchResult) -> SearchResult:
        """The result with a coupling that is computed at the chosen point; here the coupling is given."""
        return found


# ------------------------------------------------------------------- the choice


def choose(problem: RidgeProblem, on_all_rows: bool = True) -> SearchResult:
    """Sigma, alpha, sharing and other options by held-out scores.

    The search uses a subsample, and a simplified problem if the problem itself has no closed form; alpha and sharing
    are then refined on all rows. With ``on_all_rows=False`` there are too many rows for this: the result is that of
    the subsample, with alpha converted to all rows.
    """
    spec, grids = problem.spec, problem.grids
    given = spec.cv is None and on_all_rows  # there is nothing to search
    part = problem if given else problem.take(problem.rows_to_search(on_all_rows))
    last, first = problem if on_all_rows else part, part if given else part.simplified()
    evaluator, share = last.evaluator(), len(last) / len(problem)
    if spec.cv is None:
        found, seen, searched = fixed_point(problem.data, grids), list[dict](), evaluator
    else:
        found, seen, evaluator, searched = _search(last, first, first is not part, evaluator, grids.for_share(share))
    if last is not problem:
        found, seen = for_all_rows(found, seen, grids.alphas, share)
    return problem.relate(SearchResult(found, seen, evaluator if on_all_rows else None, searched, problem.coupling))


def _search(
    last: RidgeProblem, first: RidgeProblem, simplified: bool, evaluator: Any, grids: Grids
) -> tuple[Candidate, list[dict], Any, Any]:
    """Search on ``first``, then refine on ``last``: the best point, all points, the evaluator, and the last point."""
    spec, search = last.spec, Search(evaluator.rough())
    fixed = grids.single and not spec.has_options(last.settings.kernel)
    if first is last or (fixed and not last.too_large_to_settle(evaluator)):
        found = run_search(spec, search, grids.sigmas, grids.alphas, grids.sharings)
        evaluator, seen = evaluator.with_options_of(search.evaluator), search.seen
    else:
        last.check_search(evaluator, first)
        share, sample = len(first) / len(last), Search(first.evaluator())
        some = grids.for_share(share)
        guess = run_search(spec, sample, some.sigmas, some.alphas, some.sharings)
        start, seen = for_all_rows(guess, sample.seen, grids.alphas, share)
        evaluator = evaluator.with_options_of(sample.evaluator)
        if last.too_large_to_settle(evaluator):
            return start, seen, evaluator, sample.evaluator
        search, n = Search(evaluator.rough()), len(last)
        free = (
            not simplified and grids.alphas.ratio is not None
        )  # a given grid may have no alpha that suits more rows
        refined = rows_to_refine(len(first), n, last.basis.square) if free else n
        if len(first) < refined < n:
            middle = last.take(refined)
            between = Search(middle.evaluator().with_options_of(sample.evaluator))
            start = replace(start, alpha=start.alpha * n / len(middle))
            found = between.settle(start, grids.alphas, grids.sharings)
            start, more = for_all_rows(found, between.seen, grids.alphas, len(middle) / n)
            seen += more
        if refined < n:
            found = search.at(start.sigma, start.sharing, Grid((start.alpha,)))
        else:
            found = search.settle(start, grids.alphas, grids.sharings)
        # Points of a simplified problem rank below those of the problem itself.
        seen = seen + [{**point, "stage": 1} if simplified else point for point in search.seen]
    found = last.exact(evaluator, found)
    sharing = "" if found.sharing is None else f", sharing {found.sharing:.3g}"
    spec.report(f"chosen: sigma {found.sigma:.4g}, alpha {found.alpha:.2g}{sharing}")
    return found, seen, evaluator, evaluator


def fixed_point(data: Dataset, grids: Grids) -> Candidate:
    """The given point, if nothing is held out."""
    sigma, alpha = grids.sigmas.values[0], grids.alphas.values[0]
    sharing = None if grids.sharings is None else grids.sharings.values[0]
    return Candidate(sigma, alpha, np.nan, np.empty(0), plain_calibrator(data), sharing)


def plain_calibrator(data: Dataset) -> Any:
    """Clip and normalise, for models without held-out scores; None for regression."""
    rows, targets = data.rows, data.targets
    if targets.kind == "values":
        return None
    if isinstance(rows, LabelRows):
        assert rows.values is not None
        return fit_label_calibrator(None, rows.label_sample(rows.values))
    clip = ClipNormalise(rows.class_shares(len(data.classes)).astype(rows.X.dtype))
    return Signed(clip) if targets.signed else clip


def scaled_alphas(seen: Sequence[dict], ratio: float) -> list[dict]:
    """Points of a search with alphas for another number of rows; a checkpoint holds the originals."""
    return [{**point, "alpha": point["alpha"] * ratio} for point in seen]


def for_all_rows(guess: Candidate, seen: list[dict], alphas: Grid, ratio: float) -> tuple[Candidate, list[dict]]:
    """A point found on a share ``ratio`` of the rows, and all search points, with alphas converted to all rows.

    The ridge on the sum of the losses is kept for tasks of the same size, while alpha is relative to the mean loss.
    """
    alpha = guess.alpha * ratio
    alpha = alpha if alphas.ratio else min(alphas.values, key=lambda a: abs(a - alpha))
    return replace(guess, alpha=alpha), scaled_alphas(seen, ratio)


# --------------------------------------------------------------------- a search


def run_search(
    spec: Spec,
    search: Search,
    sigmas: Grid,
    alphas: Grid,
    sharings: SharingGrid | None = None,
    refined: Candidate | None = None,
) -> Candidate:
    """A whole search: sigma, alpha and sharing, then other options at the best point, then the first ones again.

    If inputs and kernel were already chosen, the search continues from there, or from ``refined``, where alpha has
    already been refined. With the scorer "cautious", a linear
    model is preferred unless the other one is clearly better.
    """
    settings = search.evaluator.settings
    start = settings.start
    if start is None:
        first = found = search.run(sigmas, alphas, sharings)
    elif settings.keeps_sigma:
        first = found = search.settle(start, alphas, sharings)
    else:
        first = found = search.descend(start, sigmas.ratio or spec.sigma_ratio, alphas, sharings, refined)
    for options, change, option in _options(spec, search):
        found = search.vary(found, options, change, alphas, option)
    if found is not first and alphas.ratio:
        found = search.settle(found, alphas, sharings)
    objective = search.evaluator.settings.objective
    if not isinstance(objective, ValueObjective) or not objective.scorer.cautious:
        return found
    simple = _simplest(spec, search, found, alphas, sharings)
    if simple is None or objective.clearly_better(search.evaluator.rows, found.F, simple[1].F):
        return found
    search.evaluator = simple[0]
    return simple[1]


def _options(spec: Spec, search: Search) -> Iterator[tuple[Sequence[float], Callable, float]]:
    """Other options to choose: their values, how to set one on an evaluator, and the current one."""
    weights = spec.linear_weights(search.evaluator.settings.kernel)
    if len(weights) > 1:
        assert search.evaluator.weight is not None
        yield weights, lambda weight: search.evaluator.with_linear_weight(weight), search.evaluator.weight
    evaluator: Any = search.evaluator
    if len(getattr(evaluator, "intercept_ratios", ())) > 1:
        yield (
            evaluator.intercept_ratios,
            lambda intercept_ratio: search.evaluator.with_intercept_ratio(intercept_ratio),
            evaluator.intercept_ratio,
        )


def _simplest(
    spec: Spec, search: Search, found: Candidate, alphas: Grid, sharings: SharingGrid | None
) -> tuple[Evaluator, Candidate] | None:
    """The linear model shared by all tasks, with its intercepts: its evaluator and its best point.

    None if it is already the chosen model, or was not requested.
    """
    evaluator, kernel, sharing = search.evaluator, search.evaluator.settings.kernel, None if sharings is None else 1.0
    if isinstance(kernel, Sum) and np.inf in spec.linear_weights(kernel):
        evaluator = evaluator.with_linear_weight(np.inf)
    elif not isinstance(kernel, Linear):
        return None
    pooled = sharings is None or (1.0 in sharings.values and found.sharing == 1)
    if (pooled and found.weight in (None, np.inf)) or (sharings is not None and 1.0 not in sharings.values):
        return None
    evaluators = [
        evaluator.with_intercept_ratio(intercept_ratio)
        for intercept_ratio in getattr(evaluator, "intercept_ratios", ()) or (0.0,)
    ]
    outcomes = [
        Search(other, search.seen, linear=search.linear).at(found.sigma, sharing, alphas) for other in evaluators
    ]
    best = best_of(outcomes)
    evaluator = evaluators[outcomes.index(best)]
    return evaluator, Search(evaluator, search.seen).refine(best, alphas, known=True) if alphas.ratio else best
