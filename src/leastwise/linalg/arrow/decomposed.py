"""All tasks decomposed, for any sharing and ridge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from leastwise.linalg.arrow.batches import Chunk, batches
from leastwise.linalg.arrow.shared import Factors, Sums, System, by_qr

Array = np.ndarray


@dataclass(frozen=True)
class Decomposed:
    """All tasks of a problem, decomposed: any sharing, own and rho is then a matter of scaling and products."""

    factors: list[Factors]

    def system(self, sharing: float, own: Array, rho: float, bias: bool = True) -> System:
        """The shared part at these parameters; ``own`` has a number for each task."""
        c = self.factors[0].UB.shape[2]
        sums = Sums.zeros(self.factors[0].Vt.shape[2], c, self.factors[0].dtype)
        for f in self.factors:
            root = np.sqrt(f.inverse(own, rho))[..., None]
            sums.add_rows((f.s[..., None] * root) * f.Vt, root * f.UB)
            if f.outside is not None:
                X = f.outside.reshape(-1, c)
                sums.C += X.T @ X / rho
        if sums.keep_digits(sharing):
            return sums.system(sharing, bias)
        return by_qr(((f, own) for f in self.factors), sharing, rho, bias)


def decompose(chunks: Iterable[Chunk]) -> Decomposed:
    """Decompose the tasks of some chunks; ``own`` of the chunks is not looked at."""
    factors, n, k = [], 0, 0
    for chunk in chunks:
        for batch in batches(chunk):
            factors.append(Factors.of(batch, batch.tasks + k, np.where(batch.rows < 0, -1, batch.rows + n)))
        n, k = n + len(chunk.Phi), k + len(chunk.own)
    return Decomposed(factors)
