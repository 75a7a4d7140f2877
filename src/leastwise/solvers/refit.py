"""Held-out scores from a decomposition for every fold."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from leastwise.linalg.spectrum import Spectrum
from leastwise.problem.basis import Design
from leastwise.solvers.heldout import Held, Problem

Array = np.ndarray


@dataclass
class RefitHeldout:
    """Held-out scores by a decomposition of every fold's training part: cheaper for few large folds.

    No formula but the fit itself; each decomposition serves all alphas.
    """

    problem: Problem
    design: Design
    _parts: list = field(default_factory=list, repr=False)

    def at(self, alpha: float) -> Held:
        """Held-out scores at this alpha."""
        problem, design = self.problem, self.design
        F, freedom = np.empty_like(problem.Z), float(problem.bias)
        for rows, stay, left, spectrum in self.fits():
            v = problem.root[stay] if problem.bias else None
            if spectrum is None:  # all basis functions are gone: the intercept remains
                F[rows] = 0 if v is None else v @ problem.Z[stay] / (v @ v)
            else:
                rho = problem.ridge(alpha, rows)
                A, b = spectrum.coefficients(rho, problem.Z[stay], v)
                freedom += float(np.sum(spectrum.g / (spectrum.g + rho))) / len(self._parts)
                F[rows] = design.features(rows, left) @ A + b
        return Held(F, freedom=freedom)

    def fits(self) -> list[tuple[Array, Array, Array, Spectrum | None]]:
        """For every fold its rows, the rows that stay, what is left of the basis, and its spectrum."""
        if not self._parts:
            n = len(self.design.K)
            blocks = [*self.problem.folds.blocks, *self.problem.folds.singles[:, None]]
            for rows in blocks:
                stay, left = np.delete(np.arange(n), rows), self.design.left(self._owned(rows))
                spectrum = self.design.without(rows, left).spectrum() if left.shape[-1] else None
                self._parts.append((rows, stay, left, spectrum))
        return self._parts

    def _owned(self, rows: Array) -> Array:
        """The basis functions that go with these rows."""
        if self.design.square:
            return rows
        own = self.problem.own
        return np.empty(0, dtype=int) if own is None else np.setdiff1d(own[rows], [-1])
