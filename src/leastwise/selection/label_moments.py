"""Trials of many labels over rows that are too many to hold their design."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from leastwise.basis import Basis
from leastwise.heldout import Held
from leastwise.heldout.label_modes import LEAST
from leastwise.heldout.labels import Family, Tied
from leastwise.heldout.moments import MomentHeldout
from leastwise.labels.relation import Relation
from leastwise.linalg.moments import MomentSpectrum
from leastwise.selection.labels import LabelRows, LabelTrial
from leastwise.selection.moments import MomentTrial, Sums
from leastwise.selection.trial import Settings

Array = np.ndarray


class LabelMomentTrial(LabelTrial):
    """Held-out scores of some rows, from sums over all: mode k of the labels is a ridge problem with alpha / b_k.

    Every label of every row has to be known, and to have the weight of its row.
    """

    def __init__(
        self,
        rows: LabelRows,
        basis: Basis,
        settings: Settings,
        relation: Relation,
        families: list[Family],
        sums: Sums,
    ) -> None:
        self.plain = MomentTrial(rows, basis, settings, sums)
        self.rows, self.basis, self.settings, self.Z = rows, basis, settings, self.plain.Z
        self._tie(relation, families)

    def heldout(self, sigma: float, count: int) -> Callable[[float], Held]:
        """A function from alpha to held-out scores at this sigma and sharing."""
        parts, spectrum = self.plain.decomposed(sigma)
        if len(parts) > 1:
            folds = self.plain.fold_heldout(sigma, parts)
            return lambda alpha: self.plain.rounded(folds.solved(lambda part: self._solved(part, alpha)))
        base = self.plain.problem_heldout(sigma, spectrum)
        ties = self.ties
        return lambda alpha: self.plain.rounded(_heldout(base, ties, self.least(alpha)))

    def coefficients(self, sigma: float, alpha: float) -> tuple[Array, Array]:
        """Coefficients (b x outputs) and intercepts (outputs) at this sharing."""
        return self._solved(self.plain.decomposed(sigma)[1], alpha)

    def _solved(self, spectrum: MomentSpectrum, alpha: float) -> tuple[Array, Array]:
        m = spectrum.moments
        b = spectrum.n_functions
        coef, intercept = np.empty((b, m.C.shape[1])), np.empty_like(m.z)
        for tie in self.ties:
            columns, modes = tie.family.columns, tie.modes
            parts, ends = np.empty((b, *_rotated(tie, m.C).shape[1:])), np.empty(_rotated(tie, m.z).shape)
            for mine, ridge, part in _modes(tie, spectrum):
                theta, ends_of = part.coefficients(self.least(alpha) * m.mass / ridge)
                parts[..., mine] = theta.reshape(*parts.shape[:2], -1)
                ends[:, mine] = ends_of.reshape(len(ends), -1)
            coef[:, columns], intercept[columns] = modes.back(parts), modes.back(ends)
        return coef, intercept


def _rotated(tie: Tied, A: Array) -> Array:
    """Columns of a family along its modes, of shape (..., c, m), from those of all outputs."""
    return tie.modes.rotate(A[..., tie.family.columns])


def _modes(tie: Tied, spectrum: MomentSpectrum) -> list[tuple[Array, float, MomentSpectrum]]:
    """For every eigenvalue of B the rotated columns that have it, what alpha is divided by, and their problem."""
    modes, m = tie.modes, spectrum.moments
    C, z = _rotated(tie, m.C), _rotated(tie, m.z)
    least = LEAST * max(float(modes.values.max()), np.finfo(float).tiny)
    found = []
    for k, b in enumerate(modes.values):
        mine = modes.which == k
        part = spectrum.of_targets(C[..., mine].reshape(len(C), -1), z[:, mine].ravel())
        found.append((mine, max(float(b), least), part))
    return found


def _heldout(base: MomentHeldout, ties: list[Tied], alpha: float) -> Held:
    problem = base.problem
    F = np.empty_like(problem.Z)
    for tie in ties:
        Z = _rotated(tie, problem.Z)
        scores = np.empty_like(Z)
        for mine, ridge, part in _modes(tie, base.spectrum):
            few = replace(problem, Z=Z[..., mine].reshape(len(Z), -1))
            held = MomentHeldout(few, base.U, part).at(alpha / ridge)
            scores[..., mine] = held.F.reshape(*Z.shape[:2], -1)
        F[:, tie.family.columns] = tie.modes.back(scores)
    return Held(F)
