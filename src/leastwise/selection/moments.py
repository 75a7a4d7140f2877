"""Trials over rows that are too many to hold their design: sums over all of them, held-out scores of some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leastwise.basis import Basis, penalty_factor, row_chunks
from leastwise.heldout import Folds, Held, Problem
from leastwise.heldout.moments import FoldMomentHeldout, MomentHeldout
from leastwise.linalg.cholesky import Cholesky
from leastwise.linalg.moments import Moments, MomentSpectrum, moment_spectrum
from leastwise.selection.trial import Rows, Settings, Trial

Array = np.ndarray

#: Rows whose held-out scores choose alpha and calibrate.
SAMPLE_ROWS = 20_000

#: From sigma to the sums of every fold: one sum of all rows where these are held out in small folds.
Sums = Callable[[float], list[Moments]]


class MomentTrial(Trial):
    """Held-out scores of some rows, from sums over all; one pass over the rows for each sigma.

    Parameters
    ----------
    rows : Rows
        Those whose held-out scores are wanted, whole folds of them, with the weights that they have in the sums.
    basis, settings
        As in :class:`Trial`; the centres are places.
    sums : callable
        Sums over all rows.
    """

    def __init__(self, rows: Rows, basis: Basis, settings: Settings, sums: Sums) -> None:
        self.rows, self.basis, self.settings, self.sums = rows, basis, settings, sums
        self.root = np.sqrt(rows.w.astype(float))
        self.Z = rows.targets(settings.n_outputs) * self.root.astype(rows.X.dtype)[:, None]
        self._kept: tuple[float, list[Moments], MomentSpectrum] | None = None

    def penalty(self, sigma: float) -> Cholesky | None:
        """The factor of the penalty; None for the identity."""
        if self.settings.norm == "coefficients":
            return None
        C = self.basis.centers
        return penalty_factor(self.settings.kernel(C, C, sigma).astype(float))

    def decomposed(self, sigma: float) -> tuple[list[Moments], MomentSpectrum]:
        """Sums of every fold, and the problem of all rows decomposed; those of the last sigma are kept."""
        if self._kept is None or self._kept[0] != sigma:
            parts = self.sums(sigma)
            spectrum = moment_spectrum(sum(parts[1:], parts[0]), self.penalty(sigma), self.settings.bias)
            self._kept = sigma, parts, spectrum
        return self._kept[1:]

    def design(self, sigma: float) -> Array:
        """Kernel between the rows in question and the centres, in double precision."""
        return self.settings.kernel(self.rows.X, self.basis.centers, sigma).astype(float)

    def heldout(self, sigma: float, count: int) -> Callable[[float], Held]:
        """A function from alpha to held-out scores of the rows in question."""
        parts, spectrum = self.decomposed(sigma)
        found: Any = self.problem_heldout(sigma, spectrum)
        if len(parts) > 1:
            s = self.settings
            found = FoldMomentHeldout(self.design(sigma), self.rows.fold, parts, self.penalty(sigma), s.bias)
        return lambda alpha: self.rounded(found.at(alpha))

    def problem_heldout(self, sigma: float, spectrum: MomentSpectrum) -> MomentHeldout:
        """What gives held-out scores of small folds."""
        problem = Problem(
            self.Z.astype(float), self.root, self.settings.bias, None, Folds.from_labels(self.rows.fold)
        )
        return MomentHeldout(problem, spectrum.coordinates(self.design(sigma)) * self.root[:, None], spectrum)

    def rounded(self, held: Held) -> Held:
        """In the precision of the rows."""
        dtype = self.rows.X.dtype
        return Held(held.F.astype(dtype), held.far.astype(dtype), freedom=held.freedom)


def sums_in_memory(rows: Rows, basis: Basis, settings: Settings, n_folds: int) -> Sums:
    """Sums over rows that are in memory, by blocks whose design is small."""
    c = settings.n_outputs

    def sums(sigma: float) -> list[Moments]:
        parts = [Moments.zero(basis.n_functions, c) for _ in range(n_folds)]
        for block in row_chunks(len(rows), max(basis.n_functions, rows.X.shape[1]), 8):
            some = rows.part(np.arange(block.start, block.stop))
            Phi, Z, w = settings.kernel(some.X, basis.centers, sigma), some.targets(c), some.w
            if n_folds == 1:
                parts[0] = parts[0] + Moments.of(Phi, Z, None if rows.equal_weights else w)
                continue
            for k in np.unique(some.fold):
                mine = some.fold == k
                parts[k] = parts[k] + Moments.of(Phi[mine], Z[mine], w[mine])
        return parts

    return sums
