"""Held-out scores of tied labels, mode by mode, where rows have weights."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leastwise.heldout.labels import Tied
from leastwise.heldout.problem import Held, Problem
from leastwise.heldout.spectral import SpectralHeldout
from leastwise.linalg.spectrum import Spectrum

Array = np.ndarray

#: Eigenvalues below this, relative to the largest, count as this: such a mode has no scores but its intercept.
LEAST = 1e-15


@dataclass
class ModewiseHeldout:
    """Held-out scores of tied labels at one sharing.

    Rows of different weights leave different ridges behind when they are held out, so that nothing is gained by
    looking at all modes at once. Mode k is a ridge problem like any other, with ``alpha / b_k``.
    """

    problem: Problem
    spectrum: Spectrum
    ties: list[Tied]

    def at(self, alpha: float) -> Held:
        """Held-out scores at this alpha."""
        problem = self.problem
        F = np.empty_like(problem.Z)
        for tie in self.ties:
            modes, c = tie.modes, tie.family.columns
            Z = modes.rotate(tie.take(problem.Z))
            G = np.empty_like(Z)
            least = LEAST * max(float(modes.values.max()), np.finfo(Z.dtype).tiny)
            for k, b in enumerate(modes.values):
                mine = modes.which == k
                part = replace(problem, Z=Z[:, :, mine].reshape(len(Z), -1))
                held = SpectralHeldout(part, self.spectrum).at(alpha / max(float(b), least))
                G[:, :, mine] = held.F.reshape(len(Z), len(c), -1)
            F[:, c] = modes.back(G)
        return Held(F)
