"""Fits from sums over rows: models of few centres on more rows than their design could be held for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from leastwise.basis import Basis
from leastwise.estimators._model import Training
from leastwise.fitting import Solution
from leastwise.selection.moments import SAMPLE_ROWS, MomentTrial, in_blocks, sampled_folds
from leastwise.selection.search import Search
from leastwise.selection.trial import Outcome, Settings

Array = np.ndarray

#: Folds of more rows than this have sums of their own.
LARGE_FOLD = 2000


class ByMoments:
    """Mixin for least-squares models of a single task."""

    def _fit_by_moments(self: Any, data: Training, settings: Settings) -> Any:
        """Sigma by a look at some rows; alpha and the calibration by held-out scores of some, from sums over all."""
        rows = data.rows
        basis = as_places(self._basis(rows, data.rng, settings))
        guess, seen = self._first_look(data, settings)
        sample, n_folds = self._sampled(data)
        source = in_blocks(rows, settings.n_outputs, basis.n_functions, n_folds)
        trial = MomentTrial(rows.part(sample), basis, settings, source)
        search = Search(trial)
        outcome = guess if self.cv is None else search.refine(guess, self._data_grids(rows, settings)[1])
        F = np.full((len(rows), settings.n_outputs), np.nan, dtype=rows.X.dtype)
        if self.cv is not None:
            F[sample] = outcome.F
        outcome = replace(outcome, F=F)
        solution = from_moments(trial, outcome)
        reach, trust = self._chunked_reach(rows, basis, settings, sample)
        return self._finish(data, basis, settings, outcome, solution, seen + search.seen, reach, trust)

    def _sampled(self: Any, data: Training) -> tuple[Array, int]:
        """Rows whose held-out scores are looked at, and the number of folds that have sums of their own."""
        sizes = np.bincount(data.rows.fold)
        if sizes.max() > LARGE_FOLD:
            some = data.rng.permutation(len(data.rows))[:SAMPLE_ROWS]
            return np.sort(some), len(sizes)
        return sampled_folds(data.rows.fold, SAMPLE_ROWS, data.rng), 1


def as_places(basis: Basis) -> Basis:
    """The same centres, which stay when a row is held out."""
    return replace(basis, rows=None, blocks=tuple(replace(block, own=None) for block in basis.blocks))


def from_moments(trial: MomentTrial, outcome: Outcome) -> Solution:
    """Coefficients on the centres."""
    spectrum, dtype = trial.spectrum(outcome.sigma), trial.rows.X.dtype
    theta, b = spectrum.coefficients(outcome.alpha * spectrum.moments.mass)
    return Solution(theta.astype(dtype), b.astype(dtype), spectrum.jitter)
