"""Fits from sums over rows: models of few centres on more rows than their design could be held for.

Begin, add, settle: some rows choose the centres and sigma (:meth:`ByMoments._begin`), sums are made of all rows, and
held-out scores of some rows, from the sums of all, choose alpha and calibrate (:meth:`ByMoments._settled`).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leastwise.estimators._model import Training
from leastwise.linalg.moments import Moments
from leastwise.linalg.whitening import Whitening
from leastwise.model_selection.search import Search
from leastwise.model_selection.subsample import content_keys
from leastwise.problem.basis import Basis, given_basis
from leastwise.problem.kernels import Kernel
from leastwise.solvers.evaluator import Outcome, Rows, Settings
from leastwise.solvers.moment_evaluators import SAMPLE_ROWS, MomentTrial, Sums, sums_in_memory
from leastwise.solvers.solve import Solution
from leastwise.utils.hashing import EVERY, row_keys, threshold, unit_keys

Array = np.ndarray

#: Centres where their number is not given.
STREAM_CENTERS = 1000
#: Folds of more rows than this have sums of their own,
LARGE_FOLD = 2000
#: if there are no more folds than this.
MANY_FOLDS = 50
#: Copies are merged where a sample has more rows than so many times what was asked for.
COPIES = 2


@dataclass(frozen=True)
class Begun:
    """What was chosen on some rows.

    Attributes
    ----------
    kernel : Kernel
    basis : Basis
        Its centres are places.
    guess : Outcome
        Sigma, and the alpha that suits so many rows.
    n_rows : int
    seen : list of dict
        Points of the search.
    whitening : Whitening or None
        Coordinates in which the rows of a stream are summed.
    """

    kernel: Kernel
    basis: Basis
    guess: Outcome
    n_rows: int
    seen: list[dict]
    whitening: Whitening | None = None

    def zero(self) -> Moments:
        """Sums of no rows."""
        return Moments.zero(self.basis.n_functions, self.n_outputs, self.whitening)

    @property
    def n_outputs(self) -> int:
        """Columns of the targets."""
        return int(self.basis.blocks[-1].classes.stop)

    def widened(self, n_outputs: int) -> Begun:
        """The same choice for another number of outputs."""
        return replace(self, basis=given_basis(self.basis.centers, n_outputs))

    def for_rows(self, n: int, ratio: float | None) -> Outcome:
        """The guess for another number of rows: more want a smaller ridge on the mean loss, about in proportion.

        Where alphas come by a ratio the guess is a power of it, whatever the way that led there.
        """
        if not ratio:
            return self.guess
        alpha = self.guess.alpha * (self.n_rows or n) / n
        return replace(self.guess, alpha=float(ratio ** np.round(np.log(alpha) / np.log(ratio))))

    def seen_for_rows(self, n: int, ratio: float | None) -> list[dict]:
        """All points of the search, with alphas for another number of rows."""
        more = (self.n_rows or n) / n if ratio else 1.0
        return [{**point, "alpha": point["alpha"] * more} for point in self.seen]


class ByMoments:
    """Mixin for least-squares models with few centres."""

    # ------------------------------------------------------- begin, settle

    def _begin(self: Any, data: Training, settings: Settings) -> Begun:
        """Centres, and parameters chosen on some rows."""
        found = self._first_look(data, settings)
        settings = found.searched.settings
        basis = as_places(self._few_centers(data, settings))
        return Begun(settings.kernel, basis, found.outcome, len(data.rows), found.seen)

    def _few_centers(self: Any, data: Training, settings: Settings) -> Basis:
        """So many centres as were asked for, or about as many as a fit by sums is good for."""
        if self.n_centers is not None or not isinstance(self.centers, str):
            return self._basis(data.rows, data.seed, settings)
        other = copy.copy(self)
        other.n_centers = STREAM_CENTERS
        return other._basis(data.rows, data.seed, settings)

    def _moment_trial(self: Any, data: Training, rows: Rows, basis: Basis, settings: Settings, sums: Sums) -> Any:
        """The trial of some rows by sums over all."""
        return MomentTrial(rows, basis, settings, sums)

    def _settled(self: Any, data: Training, settings: Settings, begun: Begun, trial: Any, n: int) -> Any:
        """Alpha chosen, and the calibration made, on held-out rows; what was found, and the points that were seen."""
        alphas = self._data_grids(data.rows, settings)[1]
        guess = begun.for_rows(n, alphas.ratio)
        if self.cv is None:
            return guess, []
        search = Search(trial)
        return search.refine(guess, alphas), begun.seen_for_rows(n, alphas.ratio) + search.seen

    def _moment_solution(self: Any, trial: Any, outcome: Outcome) -> Any:
        """Coefficients on the centres."""
        spectrum, dtype = trial.decomposed(outcome.sigma)[1], trial.rows.X.dtype
        theta, b = spectrum.coefficients(outcome.alpha * spectrum.moments.mass)
        theta = theta if spectrum.moments.whitening else theta.astype(dtype)
        return Solution(theta, b.astype(dtype), spectrum.jitter)

    def _keep_moment_fit(
        self: Any,
        data: Training,
        basis: Basis,
        settings: Settings,
        outcome: Outcome,
        seen: list[dict],
        trial: Any,
        held: Array,
    ) -> Any:
        """Store the model; ``held`` are the rows that were held out."""
        reach, trust = self._chunked_reach(data.rows, basis, settings, held)
        solution = self._moment_solution(trial, outcome)
        return self._finish(data, basis, settings, outcome, solution, seen, reach, trust)

    # ------------------------------------------------------------ in memory

    def _fit_by_moments(self: Any, data: Training, settings: Settings) -> Any:
        """Rows are in memory, their design is not."""
        rows = data.rows
        found, n_folds = self._sampled(data)
        heavy, sample, place = without_copies(rows, found)
        some = replace(data, rows=heavy.take(sample, precomputed=False))
        lacking = self._first_shares(some.rows.y, some.rows.w, data.targets.classes)
        some = replace(some, rows=replace(some.rows, shares=lacking))
        begun = self._begin(some, settings)
        settings = replace(settings, kernel=begun.kernel)
        sums = sums_in_memory(rows, begun.basis, settings, n_folds)
        part = replace(heavy.part(sample), shares=self._shares_of(rows, settings.n_outputs))
        trial = self._moment_trial(some, part, begun.basis, settings, sums)
        outcome, seen = self._settled(some, settings, begun, trial, len(rows))
        F = np.full((len(rows), settings.n_outputs), np.nan, dtype=rows.X.dtype)
        if self.cv is not None:
            F[found] = outcome.F[place]
        return self._keep_moment_fit(data, begun.basis, settings, replace(outcome, F=F), seen, trial, found)

    def _sampled(self: Any, data: Training) -> tuple[Array, int]:
        """Rows whose held-out scores are looked at, and the number of folds that have sums of their own."""
        fold = data.rows.fold
        sizes = np.bincount(fold)
        if sizes.max() > LARGE_FOLD and len(sizes) <= MANY_FOLDS:
            return np.sort(np.argsort(content_keys(data.rows, "sample"), kind="stable")[:SAMPLE_ROWS]), len(sizes)
        return sampled_folds(data.rows, SAMPLE_ROWS), 1


def sampled_folds(rows: Rows, count: int) -> Array:
    """About ``count`` row numbers, in order, whole folds of them: those with the lowest keys.

    Copies of a row count as one. Of groups those that have more rows than this are left out, where there are others.
    """
    key, sizes = row_keys(rows.X), np.bincount(rows.fold)
    grouped = rows.group is not None
    if grouped:
        lowest = unit_keys(key, rows.fold, "sample")
    else:  # the key of the row and its copies, as in a stream
        lowest = np.full(len(sizes), EVERY, dtype=np.uint64)
        np.minimum.at(lowest, rows.fold, key)
    if grouped and np.sum(sizes <= count) > MANY_FOLDS:
        lowest[sizes > count] = EVERY
    key = lowest[rows.fold]
    return np.flatnonzero((key <= threshold(key[key < EVERY], count, rows=grouped)) & (key < EVERY))


def without_copies(rows: Rows, sample: Array) -> tuple[Rows, Array, Array]:
    """Some row numbers without those of copies, where these are many.

    Returns
    -------
    rows : Rows
        With the weights and counts of their copies, for those that stay.
    stay : ndarray of int
        Their numbers.
    place : ndarray of int of shape (len(sample),)
        Which of them each row of the sample is like.
    """
    if len(sample) <= COPIES * SAMPLE_ROWS:
        return rows, sample, np.arange(len(sample))
    values = [] if rows.values is None or rows.y.ndim == 2 else [rows.values[sample]]
    w, count = rows.w.copy(), np.ones(len(rows)) if rows.count is None else rows.count.copy()
    folds = [] if rows.by_observation else [rows.fold[sample]]
    same = np.column_stack([*folds, rows.copy[sample], rows.y[sample], *values])
    # Observations of one weight each are left out exactly; if there are too many weights, by their mean weight.
    for alike in (np.column_stack([same, (w / count)[sample]]), same):
        _, first, place = np.unique(alike, axis=0, return_index=True, return_inverse=True)
        if len(first) <= COPIES * SAMPLE_ROWS:
            break
    for each in (w, count):
        each[sample[first]] = np.bincount(place.reshape(-1), weights=each[sample])
    return replace(rows, w=w, count=count), sample[first], place.reshape(-1)


def as_places(basis: Basis) -> Basis:
    """The same centres, which stay when a row is held out."""
    return replace(basis, rows=None, blocks=tuple(replace(block, own=None) for block in basis.blocks))
