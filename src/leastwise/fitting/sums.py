"""Fits from sums over rows, for few centres and too many rows to hold the design matrix.

The centres, the kernel and sigma are chosen on a sample (:func:`begin`). Sums are computed over all rows. Alpha is
chosen and the calibration fitted on held-out scores of the sample, which follow from the sums over all rows
(:func:`conclude`). Rows come from memory, from blocks of a stream, or from Dask partitions: the sums of two parts are
added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from leastwise.fitting.checks import check_range
from leastwise.fitting.dataset import Dataset, arrange
from leastwise.fitting.direct import Fitted, label_attributes, make_problem
from leastwise.fitting.input_search import choose_inputs
from leastwise.fitting.label_problem import LabelProblem
from leastwise.fitting.planning import refuse_large_stream
from leastwise.fitting.ridge_problem import RidgeProblem, choose, scaled_alphas
from leastwise.fitting.spec import Spec
from leastwise.linalg.moments import Moments, Whitening
from leastwise.model_selection.folds import content_hashes
from leastwise.model_selection.search import Search, SearchResult
from leastwise.problem.basis import Basis, given_basis, row_chunks
from leastwise.problem.inputs import Inputs
from leastwise.problem.kernels import Kernel
from leastwise.problem.targets import Targets
from leastwise.solvers.evaluator import Candidate, Rows, Settings
from leastwise.solvers.label_evaluators import LabelRows
from leastwise.solvers.moments import (
    SAMPLE_ROWS,
    LabelMomentEvaluator,
    MomentEvaluator,
    center_whitening,
    pivot_centers,
    row_sums,
    sums_in_memory,
)
from leastwise.solvers.moments import Sums as SumsBySigma
from leastwise.solvers.solve import LabelSolution, Solution
from leastwise.sources.blocks import Known
from leastwise.sources.bottom_k import Kept
from leastwise.utils.hashing import EVERY, row_hashes, threshold, unit_hashes

Array = np.ndarray

#: Number of centres if it is not given.
STREAM_CENTERS = 1000
#: Folds with more rows than this have their own sums,
LARGE_FOLD = 2000
#: if there are no more folds than this.
MANY_FOLDS = 50
#: Copies are merged if a sample has more rows than this many times the requested number.
COPIES = 2


@dataclass(frozen=True)
class StreamState:
    """The choices made on the sample.

    Attributes
    ----------
    kernel : Kernel
    basis : Basis
        Its centres are fixed points: they stay when a row is held out.
    guess : Outcome
        Sigma, and the alpha for ``n_rows`` rows.
    n_rows : int
    seen : list of dict
        Points of the search.
    whitening : Whitening or None
        Coordinates in which the rows of a stream are summed.
    inputs : Inputs
        Transformation of the rows before they are summed.
    tried : tuple of dict
        Search points of the choice of inputs and kernel,
    chosen : dict
        and their names.
    """

    kernel: Kernel
    basis: Basis
    guess: Candidate
    n_rows: int
    seen: list[dict]
    whitening: Whitening | None = None
    inputs: Inputs = field(default_factory=Inputs)
    tried: tuple[dict, ...] = ()
    chosen: dict[str, str] = field(default_factory=dict)

    def zero(self) -> Moments:
        """Sums of no rows."""
        return Moments.zero(self.basis.n_functions, self.n_outputs, self.whitening)

    @property
    def n_outputs(self) -> int:
        """Columns of Z."""
        return int(self.basis.blocks[-1].classes.stop)

    def widened(self, n_outputs: int) -> StreamState:
        """The same choice for another number of outputs."""
        return replace(self, basis=given_basis(self.basis.centers, n_outputs))

    def for_rows(self, n: int, ratio: float | None) -> Candidate:
        """The guess for another number of rows: more rows need a proportionally smaller ridge on the mean loss.

        If alphas form a geometric grid, the guess is rounded to a power of its ratio.
        """
        if not ratio:
            return self.guess
        alpha = self.guess.alpha * (self.n_rows or n) / n
        return replace(self.guess, alpha=float(ratio ** np.round(np.log(alpha) / np.log(ratio))))

    def points_for_rows(self, seen: Sequence[dict], n: int, ratio: float | None) -> list[dict]:
        """Points of a search, with alphas for another number of rows."""
        return scaled_alphas(seen, (self.n_rows or n) / n if ratio else 1.0)


# ---------------------------------------------------------------- begin, conclude


def begin(spec: Spec, data: Dataset, settings: Settings) -> StreamState:
    """Centres, and parameters chosen on some rows."""
    found = choose(make_problem(spec, data, settings), on_all_rows=False)
    settings = found.searched.settings
    basis = as_places(_few_centers(spec, data, settings))
    return StreamState(settings.kernel, basis, found.outcome, len(data.rows), found.seen)


def _few_centers(spec: Spec, data: Dataset, settings: Settings) -> Basis:
    """The requested number of centres, or 1,000; a linear kernel uses the inputs themselves."""
    directions = spec.linear_directions(len(data.rows), data.rows.X.shape[1], settings.kernel)
    few = spec if directions else spec.with_centers(STREAM_CENTERS)
    return few.basis_of(data.rows, data.seed, settings)


def moment_evaluator(problem: RidgeProblem, rows: Rows, basis: Basis, sums: SumsBySigma) -> Any:
    """Held-out scores of some rows, from sums over all rows."""
    if not isinstance(problem, LabelProblem):
        return MomentEvaluator(rows, basis, problem.settings, sums)
    assert isinstance(rows, LabelRows)
    return LabelMomentEvaluator(rows, basis, problem.settings, problem.coupling, problem.families, sums)


def settle(problem: RidgeProblem, begun: StreamState, evaluator: Any, n: int) -> SearchResult:
    """Choose alpha and sharing and fit the calibration on held-out rows, for n rows."""
    alphas = problem.grids.alphas
    guess = begun.for_rows(n, alphas.ratio)
    if problem.spec.cv is None:
        return SearchResult(guess, [], evaluator, evaluator, problem.coupling)
    search, before = Search(evaluator), begun.points_for_rows(begun.seen, n, alphas.ratio)
    found = search.settle(guess, alphas, problem.sharings)
    # Scores from the sums of all rows rank above those of the subsample.
    seen = before + [{**point, "stage": 1} for point in search.seen]
    return SearchResult(found, seen, evaluator, evaluator, problem.coupling)


def fitted(spec: Spec, basis: Basis, settings: Settings, choice: SearchResult) -> Fitted:
    """The model at the chosen point."""
    evaluator, best = choice.evaluator, choice.outcome
    dtype = evaluator.rows.X.dtype
    if not spec.many_labels:
        spectrum = evaluator.decomposed(best.sigma)[1]
        theta, b = spectrum.coefficients(best.alpha * spectrum.moments.mass)
        theta = theta if spectrum.moments.whitening else theta.astype(dtype)
        attributes = {"n_iter_": 1} if spec.machine else {}
        solution: Any = Solution(theta, b.astype(dtype), spectrum.jitter)
    else:
        spectrum = evaluator.plain.decomposed(best.sigma)[1]
        coef, intercept = evaluator.with_sharing(best.sharing).coefficients(best.sigma, best.alpha)
        coef = coef if spectrum.moments.whitening else coef.astype(dtype)
        solution = LabelSolution(coef, intercept.astype(dtype), spectrum.jitter)
        attributes = label_attributes(spec, solution)
    return Fitted(choice, settings, basis, solution, False, best.alpha, attributes)


# ----------------------------------------------------------------------- in memory


def fit_by_sums(spec: Spec, data: Dataset, settings: Settings) -> Fitted:
    """Fit to rows in memory without holding their design matrix."""
    rows, targets = data.rows, data.targets
    if spec.many_labels and not (isinstance(rows, LabelRows) and rows.complete):
        raise ValueError(
            "solver='moments' needs all labels of all rows, with one weight per row: use solver='auto' if some are "
            "not known."
        )
    found, n_folds = _sampled(rows)
    heavy, sample, place = without_copies(rows, found)
    some = replace(data, rows=heavy.take(sample, precomputed=False))
    some = replace(some, rows=replace(some.rows, shares=targets.first_shares(some.rows.y, some.rows.w)))
    begun = begin(spec, some, settings)
    settings = replace(settings, kernel=begun.kernel)
    sums = sums_in_memory(rows, begun.basis, settings, n_folds)
    part = replace(heavy.part(sample), shares=targets.shares_of(rows))
    problem = make_problem(spec, some, settings)
    choice = settle(problem, begun, moment_evaluator(problem, part, begun.basis, sums), len(rows))
    F = np.full((len(rows), settings.n_outputs), np.nan, dtype=rows.X.dtype)
    if spec.cv is not None:
        F[found] = choice.outcome.F[place]
    return fitted(spec, begun.basis, settings, replace(choice, outcome=replace(choice.outcome, F=F)))


def _sampled(rows: Rows) -> tuple[Array, int]:
    """Rows whose held-out scores are used, and the number of folds with their own sums."""
    sizes = np.bincount(rows.fold)
    if sizes.max() > LARGE_FOLD and len(sizes) <= MANY_FOLDS:
        return np.sort(np.argsort(content_hashes(rows, "sample"), kind="stable")[:SAMPLE_ROWS]), len(sizes)
    return sampled_folds(rows, SAMPLE_ROWS), 1


def sampled_folds(rows: Rows, count: int) -> Array:
    """About ``count`` row numbers, in order, in whole folds: those with the lowest hashes.

    Copies of a row count as one. Groups with more rows than this are left out if there are others.
    """
    key, sizes = row_hashes(rows.X), np.bincount(rows.fold)
    grouped = rows.group is not None
    if grouped:
        lowest = unit_hashes(key, rows.fold, "sample")
    else:  # the hash of the row and its copies, as in a stream
        lowest = np.full(len(sizes), EVERY, dtype=np.uint64)
        np.minimum.at(lowest, rows.fold, key)
    if grouped and np.sum(sizes <= count) > MANY_FOLDS:
        lowest[sizes > count] = EVERY
    key = lowest[rows.fold]
    return np.flatnonzero((key <= threshold(key[key < EVERY], count, rows=grouped)) & (key < EVERY))


def without_copies(rows: Rows, sample: Array) -> tuple[Rows, Array, Array]:
    """The sampled rows, with copies merged if there are many.

    Returns
    -------
    rows : Rows
        The remaining rows, with the weights and counts of their copies.
    stay : ndarray of int
        Their numbers.
    place : ndarray of int of shape (len(sample),)
        Index of the remaining row that is equal to each sampled row.
    """
    if len(sample) <= COPIES * SAMPLE_ROWS:
        return rows, sample, np.arange(len(sample))
    values = [] if rows.values is None or rows.y.ndim == 2 else [rows.values[sample]]
    w, count = rows.w.copy(), np.ones(len(rows)) if rows.count is None else rows.count.copy()
    folds = [] if rows.by_observation else [rows.fold[sample]]
    same = np.column_stack([*folds, rows.copy[sample], rows.y[sample], *values])
    # Observations of equal weight are held out exactly; with too many different weights, by their mean weight.
    for alike in (np.column_stack([same, (w / count)[sample]]), same):
        _, first, place = np.unique(alike, axis=0, return_index=True, return_inverse=True)
        if len(first) <= COPIES * SAMPLE_ROWS:
            break
    for each in (w, count):
        each[sample[first]] = np.bincount(place.reshape(-1), weights=each[sample])
    return replace(rows, w=w, count=count), sample[first], place.reshape(-1)


def as_places(basis: Basis) -> Basis:
    """The same centres as fixed points, which stay when a row is held out."""
    return replace(basis, rows=None, blocks=tuple(replace(block, own=None) for block in basis.blocks))


# ----------------------------------------------------------------------- in blocks


def begin_stream(
    spec: Spec, kept: Kept, targets: Targets, kernel: Kernel, keep_rows: int, categories: Known
) -> StreamState:
    """Centres, kernel and sigma, chosen on the kept rows, with these values of categories."""
    data = replace(kept_rows(spec, kept, targets, kernel, None), categories=categories)
    settings = spec.settings(data.kernel, targets, data.rows)
    refuse_large_stream(spec, data, settings, spec.n_centers or STREAM_CENTERS, min(len(kept), keep_rows))
    spec, data, settings = choose_inputs(spec, data, settings, by_blocks=True)
    begun = begin(spec, data, settings)
    spec.report(
        f"chosen on {len(data.rows)} rows: {begun.basis.n_functions} centres, sigma {begun.guess.sigma:.4g}, alpha "
        f"{begun.guess.alpha:.2g}"
    )
    known = center_whitening(begun.kernel, begun.basis.centers, begun.guess.sigma, settings.norm)
    return replace(begun, whitening=known, inputs=settings.inputs, tried=settings.seen, chosen=settings.chosen)


def kept_rows(spec: Spec, kept: Kept, targets: Targets, kernel: Kernel, moments: Moments | None) -> Dataset:
    """The kept rows as training data; with the class shares of all rows, once these are known."""
    W = targets.row_weights(kept.w.astype(float))
    count = None if np.all(kept.count <= 1) else kept.count
    data = arrange(spec, targets, kept.X, kept.y, W, kept.group, kernel, count=count, encoded=True)
    if moments is None:
        return replace(data, rows=replace(data.rows, shares=targets.first_shares(kept.y, kept.w)))
    shares = targets.shares(moments, data.rows.mass)
    return replace(data, rows=replace(data.rows, shares=shares), kernel=kernel)


def block_moments(X: Any, codes: Array, w: Array, targets: Targets, begun: StreamState) -> Moments:
    """Sums over the rows of a block; only a part of the design matrix is held at a time."""
    b, c = begun.basis.n_functions, begun.n_outputs
    X, total, plain = begun.inputs(X), begun.zero(), bool(np.all(w == 1))
    check_range(X, begun.kernel)
    centers = pivot_centers(begun.basis.centers, begun.whitening)
    for part in row_chunks(X.shape[0], max(b, X.shape[1]), 8, least=b):
        y, values = targets.arrange(codes[part], X.dtype)
        Z = np.eye(c)[y] if values is None else values
        some = X[part], centers, begun.guess.sigma, begun.whitening, Z, None if plain else w[part]
        total = total + row_sums(begun.kernel, *some)
    return total


def conclude(
    spec: Spec, begun: StreamState, moments: Moments, kept: Kept | None, targets: Targets
) -> tuple[Dataset, Fitted]:
    """The model of these sums; alpha and the calibration are based on the kept rows."""
    if not moments.mass > 0:
        raise ValueError("There are no rows with a weight above 0: add some with partial_fit().")
    targets = targets.with_sums(moments)
    n = begun.basis.n_functions
    # Without rows, the centres replace them as a placeholder: nothing is learned from them.
    some = kept or Kept.all(begun.basis.centers, targets.blank(n), np.ones(n), None, n)
    data = kept_rows(spec, some, targets, begun.kernel, moments)
    if kept:
        data = replace(data.with_inputs(begun.inputs, begun.kernel), kernel=begun.kernel)
    settings = replace(spec.settings(data.kernel, targets, data.rows), kernel=begun.kernel, inputs=begun.inputs)
    tried = begun.points_for_rows(begun.tried, moments.n, spec.grids(1.0, 1.0)[1].ratio)
    settings = replace(settings, seen=tuple(tried), chosen=begun.chosen)
    scaled = moments * (1 / data.rows.mass)
    problem = make_problem(spec, data, settings)
    evaluator = moment_evaluator(problem, data.rows, begun.basis, lambda sigma: [scaled])
    choice = settle(problem, begun, evaluator, moments.n)
    return data, fitted(spec, begun.basis, settings, choice)
