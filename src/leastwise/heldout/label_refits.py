"""Held-out scores of tied labels from a decomposition for every fold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leastwise.heldout.labels import Tied, times_each
from leastwise.heldout.problem import Held
from leastwise.heldout.refit import RefitHeldout
from leastwise.linalg.sylvester import solve_sylvester

Array = np.ndarray


@dataclass
class LabelRefits(RefitHeldout):
    """Held-out scores by a decomposition of every fold's training part, which serves all ridges and sharings."""

    def scores(self, alpha: float, ties: list[Tied]) -> Held:
        """Held-out scores at this alpha, of labels tied in this way."""
        problem = self.problem
        F = np.empty_like(problem.Z)
        for rows, stay, left, spectrum in self.fits():
            v, rho = problem.root[stay] if problem.bias else None, problem.ridge(alpha, rows)
            for tie in ties:
                c, Z = tie.family.columns, tie.take(problem.Z[stay])
                if spectrum is None:  # all basis functions are gone: the intercept remains
                    b = np.zeros(c.shape) if v is None else np.tensordot(v, Z, 1) / (v @ v)
                    F[np.ix_(rows, c.ravel())] = b.ravel()
                else:
                    A, b = solve_sylvester(spectrum, tie.modes, Z, rho, v)
                    F[np.ix_(rows, c.ravel())] = (times_each(self.design.features(rows, left), A) + b).reshape(
                        len(rows), -1
                    )
        return Held(F)
