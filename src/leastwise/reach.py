"""How far from its data a model is to be trusted.

A kernel model says something everywhere, and beyond its data what it says is extrapolation: with a wide kernel it can
be sure of itself and wrong. ``Reach`` measures the distance to the nearest centre in units of what is usual among the
training rows themselves, held out; beyond that the trust falls from one to zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leastwise.basis import Basis, row_chunks
from leastwise.kernels import Kernel

Array = np.ndarray

#: The radius is this quantile of the distances from held-out training rows to their nearest centre.
QUANTILE = 0.99


@dataclass(frozen=True)
class Reach:
    """Trust as a function of the distance d to the nearest centre: exp(-(d / radius - 1)^2 / 2) beyond the radius."""

    radius: float

    def trust(self, distance: Array) -> Array:
        """Between 0 and 1; 1 up to the radius."""
        with np.errstate(over="ignore"):
            beyond = np.maximum(distance / distance.dtype.type(self.radius) - 1, 0)
            return np.exp(-0.5 * beyond**2)


def heldout_distances(kernel: Kernel, basis: Basis, pairs: Array, fold: Array) -> Array:
    """For every training row the distance to the nearest centre outside of its own fold; inf if there is none."""
    distance = np.empty(len(pairs), dtype=pairs.dtype)
    home = None if basis.rows is None else fold[basis.rows]
    for part in row_chunks(len(pairs), pairs.shape[1], pairs.itemsize):
        block = pairs[part]
        if home is not None:
            block = np.where(fold[part, None] == home, np.inf, block)
        distance[part] = kernel.distances(block.min(axis=1))
    return distance


def fit_reach(distance: Array, copy: Array) -> Reach | None:
    """The reach of a model from held-out distances; copies of a row count once. None where it has no size."""
    first = np.unique(copy, return_index=True)[1]
    known = distance[first][np.isfinite(distance[first])]
    radius = float(np.quantile(known, QUANTILE)) if len(known) else 0.0
    return Reach(radius) if radius > 0 else None
