"""The choice of hyperparameters of one task, and what it has in common with that of tasks and labels.

Every choice has the same form: search on a subsample that is cheap enough, then settle alpha on all rows. More rows
call for a smaller ridge on the mean loss, about in proportion, so that alphas are converted in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leastwise.calibration.calibrators import ClipNormalise, Signed, fit_label_calibrator
from leastwise.estimators.spec import Spec
from leastwise.estimators.validation import Dataset
from leastwise.model_selection.grid import Grid, SharingGrid, best_of
from leastwise.model_selection.objective import ValueObjective
from leastwise.model_selection.search import Search
from leastwise.model_selection.subsample import search_sample
from leastwise.problem.kernels import Linear, Precomputed, Sum
from leastwise.solvers.evaluator import Candidate, Evaluator, Rows, Settings
from leastwise.solvers.label_evaluators import LabelRows
from leastwise.solvers.search_rows import SEARCH_ROWS, rows_to_search

Array = np.ndarray


@dataclass(frozen=True)
class SearchResult:
    """Result of a search.

    Attributes
    ----------
    outcome : Outcome
        The best point.
    seen : list of dict
        All points.
    trial : Trial or None
        Evaluator of all rows; None where all rows are too many for one.
    searched : Trial
        Evaluator that the search was made on.
    coupling : Coupling or None
        Coupling of the tasks, where no evaluator of all rows holds it.
    """

    outcome: Candidate
    seen: list[dict]
    evaluator: Any
    searched: Any
    coupling: Any = None


def fixed_point(data: Dataset, sigmas: Grid, alphas: Grid, sharings: SharingGrid | None = None) -> Candidate:
    """The point that was given, where nothing is held out."""
    sharing = None if sharings is None else sharings.values[0]
    return Candidate(sigmas.values[0], alphas.values[0], np.nan, np.empty(0), plain_calibrator(data), sharing)


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

    With the scorer "cautious" a linear model replaces one that is not clearly better.
    """
    first = found = search.run(sigmas, alphas, sharings)
    for options, change, start in _options(spec, search):
        found = search.vary(found, options, change, alphas, start)
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


# -------------------------------------------------------------------- one task


def choose_single(spec: Spec, data: Dataset, settings: Settings) -> SearchResult:
    """Search on some rows or all; then alpha on all."""
    rows, basis = data.rows, spec.basis_of(data.rows, data.seed, settings, spec.basis)
    some = some_rows(data, rows_to_search(basis, len(rows), spec.search_rows), settings)
    sigmas, alphas = spec.data_grids(rows, settings)
    whole = Search(Evaluator(rows, basis, settings))
    if spec.cv is None:
        return SearchResult(fixed_point(data, sigmas, alphas), [], whole.evaluator, whole.evaluator)
    if some is rows or (sigmas.single and alphas.single):
        found = run_search(spec, whole, sigmas, alphas)
        return SearchResult(found, whole.seen, whole.evaluator, whole.evaluator)
    part = Search(Evaluator(some, spec.basis_of(some, data.seed, settings, spec.basis), settings))
    guess = run_search(spec, part, sigmas, alphas)
    whole = Search(Evaluator(rows, basis, part.evaluator.settings))
    found = whole.refine(replace(guess, alpha=guess.alpha * len(some) / len(rows)), alphas)
    return SearchResult(found, part.seen + whole.seen, whole.evaluator, whole.evaluator)


def first_look(spec: Spec, data: Dataset, settings: Settings) -> SearchResult:
    """The best point on some rows in closed form, with the alpha that suits all rows; no evaluator of all rows."""
    count = SEARCH_ROWS if spec.search_rows == "auto" else spec.search_rows or len(data.rows)
    some = some_rows(data, min(int(count), len(data.rows)), settings)
    sigmas, alphas = spec.data_grids(data.rows, settings)
    search = Search(Evaluator(some, spec.basis_of(some, data.seed, settings), settings))
    if spec.cv is None:
        return SearchResult(fixed_point(data, sigmas, alphas), [], None, search.evaluator)
    found = run_search(spec, search, sigmas, alphas)
    ratio = len(some) / len(data.rows) if alphas.ratio else 1.0
    return SearchResult(
        replace(found, alpha=found.alpha * ratio), scaled_alphas(search.seen, ratio), None, search.evaluator
    )


def some_rows(data: Dataset, count: int, settings: Settings) -> Rows:
    """About ``count`` rows, the classes in proportion; all if there are no more, or no two folds among them."""
    if count >= len(data.rows):
        return data.rows.to_numpy()
    precomputed = isinstance(settings.kernel, Precomputed)
    index = search_sample(data.rows, count, precomputed)
    if len(np.unique(data.rows.fold[index])) < 2:
        return data.rows.to_numpy()
    return data.rows.take(index, precomputed)
