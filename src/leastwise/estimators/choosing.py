"""The choice of hyperparameters: search on a subsample that is cheap enough, then settle alpha on all rows.

More rows call for a smaller ridge on the mean loss, about in proportion, so alphas are converted in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from leastwise.calibration.calibrators import ClipNormalise, Signed, fit_label_calibrator
from leastwise.estimators.label_problem import LabelProblem, relation_of
from leastwise.estimators.ridge_problem import Grids, RidgeProblem
from leastwise.estimators.spec import Spec
from leastwise.estimators.task_problem import TaskProblem, coupling_of, shared_coupling
from leastwise.estimators.validation import Dataset
from leastwise.model_selection.grid import Grid, SharingGrid, best_of
from leastwise.model_selection.objective import ValueObjective
from leastwise.model_selection.search import Search, SearchResult
from leastwise.problem.kernels import Linear, Sum
from leastwise.solvers.evaluator import Candidate, Evaluator, Settings
from leastwise.solvers.label_evaluators import LabelRows

Array = np.ndarray


def make_problem(spec: Spec, data: Dataset, settings: Settings) -> RidgeProblem:
    """The coupled ridge of these data."""
    if spec.many_labels:
        return LabelProblem(spec, data, settings, relation_of(spec, data))
    if spec.many_tasks:
        coupling = shared_coupling(spec, data) if spec.logistic else coupling_of(spec, data)
        return TaskProblem(spec, data, settings, coupling)
    return RidgeProblem(spec, data, settings)


def choose(problem: RidgeProblem, on_all_rows: bool = True) -> SearchResult:
    """Sigma, alpha, sharing and other options by held-out scores.

    The search is made on a subsample, in a simplified problem if that one has no closed form; alpha and sharing are
    then settled on all rows. With ``on_all_rows=False`` there are too many rows for an evaluator of them: the choice
    is that of the subsample, with the alpha that suits all rows.
    """
    spec, grids = problem.spec, problem.grids
    part = problem.take(problem.rows_to_search(on_all_rows))
    last, first = problem if on_all_rows else part, part.simplified()
    evaluator, share = last.evaluator(), len(last) / len(problem)
    if spec.cv is None:
        found, seen, searched = fixed_point(problem.data, grids), list[dict](), evaluator
    else:
        found, seen, evaluator, searched = _search(last, first, first is not part, evaluator, grids.for_share(share))
    if last is not problem:
        found, seen = for_all_rows(found, seen, grids.alphas, share)
    result = SearchResult(found, seen, evaluator if on_all_rows else None, searched, problem.coupling)
    return problem.relate(result) if isinstance(problem, TaskProblem) and spec.computes_similarity else result


def _search(
    last: RidgeProblem, first: RidgeProblem, simplified: bool, evaluator: Any, grids: Grids
) -> tuple[Candidate, list[dict], Any, Any]:
    """Search on ``first``, then settle on ``last``: the best point, all points, the evaluator, and where it ended."""
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
        search = Search(evaluator.rough())
        found = search.settle(start, grids.alphas, grids.sharings)
        # Points of a simplified problem rank below those of the problem itself.
        seen = seen + [{**point, "stage": 1} if simplified else point for point in search.seen]
    found = last.exact(evaluator, found)
    sharing = "" if found.sharing is None else f", sharing {found.sharing:.3g}"
    spec.report(f"chosen: sigma {found.sigma:.4g}, alpha {found.alpha:.2g}{sharing}")
    return found, seen, evaluator, evaluator


def fixed_point(data: Dataset, grids: Grids) -> Candidate:
    """The point that was given, where nothing is held out."""
    sigma, alpha = grids.sigmas.values[0], grids.alphas.values[0]
    sharing = None if grids.sharings is None else grids.sharings.values[0]
    return Candidate(sigma, alpha, np.nan, np.empty(0), plain_calibrator(data), sharing)


def plain_calibrator(data: Dataset) -> Any:
    """Clip and normalise, for models that hold nothing out; None for regression."""
    rows, targets = data.rows, data.targets
    if targets.kind == "values":
        return None
    if isinstance(rows, LabelRows):
        assert rows.values is not None
        return fit_label_calibrator(None, rows.label_sample(rows.values))
    clip = ClipNormalise(rows.class_shares(len(data.classes)).astype(rows.X.dtype))
    return Signed(clip) if targets.signed else clip


def scaled_alphas(seen: list[dict], ratio: float) -> list[dict]:
    """Points of a search with alphas for another number of rows; a checkpoint holds the originals."""
    return [{**point, "alpha": point["alpha"] * ratio} for point in seen]


def for_all_rows(guess: Candidate, seen: list[dict], alphas: Grid, ratio: float) -> tuple[Candidate, list[dict]]:
    """A point that was found on a share ``ratio`` of the rows, and all points seen, with alphas for all rows.

    What suits a task of so many rows is a ridge on the sum of the losses, and alphas are on the mean.
    """
    alpha = guess.alpha * ratio
    alpha = alpha if alphas.ratio else min(alphas.values, key=lambda a: abs(a - alpha))
    return replace(guess, alpha=alpha), scaled_alphas(seen, ratio)


# --------------------------------------------------------------------- a search


def run_search(
    spec: Spec, search: Search, sigmas: Grid, alphas: Grid, sharings: SharingGrid | None = None
) -> Candidate:
    """A whole search: sigma, alpha and sharing, then other options where it ended, then the rest once more.

    Where inputs and kernel were chosen before, the search goes on from there. With the scorer "cautious" a linear
    model replaces one that is not clearly better.
    """
    settings = search.evaluator.settings
    start = settings.start
    if start is None or not alphas.ratio:
        first = found = search.run(sigmas, alphas, sharings)
    elif settings.keeps_sigma:
        first = found = search.settle(start, alphas, sharings)
    else:
        first = found = search.descend(start, spec.sigma_ratio, alphas, sharings)
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
    """What else there is to choose: the values, how an evaluator gets one, and which it has."""
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
    """The linear model that all tasks share, with its intercepts: its evaluator, and its best point.

    None if that is what was found, or was not asked for.
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
    outcomes = [Search(other, search.seen).at(found.sigma, sharing, alphas) for other in evaluators]
    best = best_of(outcomes)
    evaluator = evaluators[outcomes.index(best)]
    return evaluator, Search(evaluator, search.seen).refine(best, alphas, known=True) if alphas.ratio else best
