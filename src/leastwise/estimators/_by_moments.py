"""Fits from sums over rows: models of few centres on more rows than their design could be held for.

Begin, add, settle: some rows choose the centres and sigma (:meth:`ByMoments._begin`), sums are made of all rows, and
held-out scores of some rows, from the sums of all, choose alpha and calibrate (:meth:`ByMoments._settle`).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leastwise.basis import Basis, given_basis
from leastwise.estimators._model import Training
from leastwise.fitting import Solution
from leastwise.kernels import Kernel
from leastwise.keys import row_keys, threshold
from leastwise.selection.moments import SAMPLE_ROWS, MomentTrial, Sums, sums_in_memory
from leastwise.selection.search import Search
from leastwise.selection.trial import Outcome, Rows, Settings

Array = np.ndarray

#: Centres where their number is not given.
STREAM_CENTERS = 1000
#: Folds of more rows than this have sums of their own.
LARGE_FOLD = 2000


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
    """

    kernel: Kernel
    basis: Basis
    guess: Outcome
    n_rows: int
    seen: list[dict]

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
            return self._basis(data.rows, data.rng, settings)
        other = copy.copy(self)
        other.n_centers = STREAM_CENTERS
        return other._basis(data.rows, data.rng, settings)

    def _moment_trial(self: Any, data: Training, rows: Rows, basis: Basis, settings: Settings, sums: Sums) -> Any:
        """The trial of some rows by sums over all."""
        return MomentTrial(rows, basis, settings, sums)

    def _settled(self: Any, data: Training, settings: Settings, begun: Begun, trial: Any, n: int) -> Any:
        """Alpha chosen, and the calibration made, on held-out rows; what was found, and the points that were seen."""
        alphas = self._data_grids(data.rows, settings)[1]
        guess = begun.for_rows(n, alphas.ratio)
        if self.cv is None:
            return guess, begun.seen
        search = Search(trial)
        return search.refine(guess, alphas), begun.seen + search.seen

    def _moment_solution(self: Any, trial: Any, outcome: Outcome) -> Any:
        """Coefficients on the centres."""
        spectrum, dtype = trial.decomposed(outcome.sigma)[1], trial.rows.X.dtype
        theta, b = spectrum.coefficients(outcome.alpha * spectrum.moments.mass)
        return Solution(theta.astype(dtype), b.astype(dtype), spectrum.jitter)

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
        sample, n_folds = self._sampled(data)
        some = replace(data, rows=rows.take(sample, precomputed=False))
        lacking = self._first_shares(some.rows.y, some.rows.w, data.targets.classes)
        some = replace(some, rows=replace(some.rows, shares=lacking))
        begun = self._begin(some, settings)
        settings = replace(settings, kernel=begun.kernel)
        sums = sums_in_memory(rows, begun.basis, settings, n_folds)
        part = replace(rows.part(sample), shares=self._shares_of(rows, settings.n_outputs))
        trial = self._moment_trial(some, part, begun.basis, settings, sums)
        outcome, seen = self._settled(some, settings, begun, trial, len(rows))
        F = np.full((len(rows), settings.n_outputs), np.nan, dtype=rows.X.dtype)
        if self.cv is not None:
            F[sample] = outcome.F
        return self._keep_moment_fit(data, begun.basis, settings, replace(outcome, F=F), seen, trial, sample)

    def _sampled(self: Any, data: Training) -> tuple[Array, int]:
        """Rows whose held-out scores are looked at, and the number of folds that have sums of their own."""
        fold = data.rows.fold
        sizes = np.bincount(fold)
        if sizes.max() > LARGE_FOLD:
            return np.sort(data.rng.permutation(len(fold))[:SAMPLE_ROWS]), len(sizes)
        return sampled_folds(data.rows), 1


def sampled_folds(rows: Rows, count: int = SAMPLE_ROWS) -> Array:
    """About ``count`` row numbers, in order, whole folds of them: those with the lowest keys."""
    key = row_keys(rows.X)
    lowest = np.full(int(rows.fold.max()) + 1, np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(lowest, rows.fold, key)  # a fold has the key of its lowest row: copies, and groups, stay together
    grouped = not np.array_equal(rows.group, rows.copy)  # of copies, which weigh as one row, there may be more
    return np.flatnonzero(lowest[rows.fold] <= threshold(lowest[rows.fold], count, rows=grouped))


def as_places(basis: Basis) -> Basis:
    """The same centres, which stay when a row is held out."""
    return replace(basis, rows=None, blocks=tuple(replace(block, own=None) for block in basis.blocks))
