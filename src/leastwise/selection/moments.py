"""Trials over rows that are too many to hold their design: sums over all of them, held-out scores of some."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Source:
    """Rows in blocks, as often as they are wanted.

    Attributes
    ----------
    blocks : callable
        Returns an iterator of (X, Z, w, fold): rows, targets, weights and the number of the fold.
    n_folds : int
        Number of large folds that have sums of their own; 1 where rows are held out in small folds.
    """

    blocks: Callable[[], Iterator[tuple[Any, Array, Array, Array | None]]]
    n_folds: int = 1

    def moments(self, kernel: Callable[[Any], Array], b: int, c: int) -> list[Moments]:
        """Sums of every fold, in one pass."""
        parts = [Moments.zero(b, c) for _ in range(self.n_folds)]
        for X, Z, w, fold in self.blocks():
            Phi = kernel(X)
            if fold is None:
                parts[0] = parts[0] + Moments.of(Phi, Z, w)
                continue
            for k in np.unique(fold):
                mine = fold == k
                parts[k] = parts[k] + Moments.of(Phi[mine], Z[mine], w[mine])
        return parts


class MomentTrial(Trial):
    """Held-out scores of some rows, from sums over all; one pass over the rows for each sigma.

    Parameters
    ----------
    rows : Rows
        Those whose held-out scores are wanted, whole folds of them. Weights are those among all rows.
    basis, settings
        As in :class:`Trial`; the centres are places.
    source : Source
        All rows.
    """

    def __init__(self, rows: Rows, basis: Basis, settings: Settings, source: Source) -> None:
        self.rows, self.basis, self.settings, self.source = rows, basis, settings, source
        self._kept: tuple[float, list[Moments]] | None = None

    def penalty(self, sigma: float) -> Cholesky | None:
        """The factor of the penalty; None for the identity."""
        if self.settings.norm == "coefficients":
            return None
        C = self.basis.centers
        return penalty_factor(self.settings.kernel(C, C, sigma).astype(float))

    def moments(self, sigma: float) -> list[Moments]:
        """Sums of every fold at this sigma; those of the last sigma are kept."""
        if self._kept is None or self._kept[0] != sigma:
            s, C = self.settings, self.basis.centers
            found = self.source.moments(lambda X: s.kernel(X, C, sigma), self.basis.n_functions, s.n_outputs)
            self._kept = sigma, found
        return self._kept[1]

    def spectrum(self, sigma: float) -> MomentSpectrum:
        """The decomposed problem of all rows."""
        parts = self.moments(sigma)
        return moment_spectrum(sum(parts[1:], parts[0]), self.penalty(sigma), self.settings.bias)

    def heldout(self, sigma: float, count: int) -> Callable[[float], Held]:
        """A function from alpha to held-out scores of the rows in question."""
        s, rows, dtype = self.settings, self.rows, self.rows.X.dtype
        Phi = s.kernel(rows.X, self.basis.centers, sigma).astype(float)
        if self.source.n_folds > 1:
            found: Any = FoldMomentHeldout(Phi, rows.fold, self.moments(sigma), self.penalty(sigma), s.bias)
        else:
            root = np.sqrt(rows.w.astype(float))
            Z = rows.targets(s.n_outputs).astype(float) * root[:, None]
            problem = Problem(Z, root, s.bias, None, Folds.from_labels(rows.fold))
            found = MomentHeldout(problem, Phi, self.spectrum(sigma))

        def at(alpha: float) -> Held:
            held = found.at(alpha)
            return Held(held.F.astype(dtype), held.far.astype(dtype), freedom=held.freedom)

        return at


def in_blocks(rows: Rows, n_outputs: int, width: int, n_folds: int) -> Source:
    """Rows that are in memory, in blocks whose design is small."""

    def blocks() -> Iterator[tuple[Any, Array, Array, Array | None]]:
        for part in row_chunks(len(rows), width, 8, least=width):  # sums of (width x width) numbers
            some = rows.part(np.arange(part.start, part.stop))
            yield some.X, some.targets(n_outputs), some.w, some.fold if n_folds > 1 else None

    return Source(blocks, n_folds)


def sampled_folds(fold: Array, count: int, rng: np.random.Generator) -> Array:
    """About ``count`` row numbers, in order, whole folds of them; all if there are no more."""
    if len(fold) <= count:
        return np.arange(len(fold))
    sizes = np.bincount(fold)
    order = rng.permutation(len(sizes))
    chosen = np.zeros(len(sizes), dtype=bool)
    chosen[order[: max(int(np.searchsorted(np.cumsum(sizes[order]), count)), 2)]] = True
    return np.flatnonzero(chosen[fold])
