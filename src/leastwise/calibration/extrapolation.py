"""How far from its data a model is to be trusted.

A kernel model says something everywhere, and beyond its data what it says is extrapolation: with a wide kernel it can
be sure of itself and wrong. ``Reach`` measures the distance to the nearest centre in units of what is usual among the
training rows themselves, held out; beyond that the trust falls from one to zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leastwise.problem.basis import Basis, row_chunks
from leastwise.problem.kernels import Kernel
from leastwise.utils.arrays import library, scalar

Array = np.ndarray

#: The radius is this quantile of the distances from held-out training rows to their nearest centre,
QUANTILE = 0.99
#: but no less than the median distance to the centre of this rank: rows often come in small sets that are all but
#: equal, and the distances within such a set say nothing about new rows.
RANK = 10
#: Rows that the second is measured on.
SOME = 500


@dataclass(frozen=True)
class Reach:
    """Trust as a function of the distance d to the nearest centre: exp(-(d / radius - 1)^2 / 2) beyond the radius."""

    radius: float

    def trust(self, distance: Array) -> Array:
        """Between 0 and 1; 1 up to the radius."""
        xp = library(distance)
        with np.errstate(over="ignore"):
            beyond = xp.clip(distance / scalar(self.radius, distance) - 1, 0, None)
            return xp.exp(-0.5 * beyond**2)


def ranked_distances(kernel: Kernel, pairs: Array, fold: Array, home: Array | None, rank: int = 1) -> Array:
    """For every row the distance to the centre of this rank among those outside of its own fold.

    ``fold`` labels the rows and ``home`` the centres, where these are rows. The last rank there is where there are
    fewer centres; infinite where those outside do not reach that far.
    """
    block = pairs if home is None else np.where(fold[:, None] == home, np.inf, pairs)
    k = min(rank, block.shape[1]) - 1
    return kernel.distances(block.min(axis=1) if k == 0 else np.partition(block, k, axis=1)[:, k])


def heldout_distances(kernel: Kernel, basis: Basis, pairs: Array, fold: Array) -> Array:
    """For every training row the distance to the nearest centre outside of its own fold; inf if there is none."""
    home = None if basis.rows is None else fold[basis.rows]
    chunks = row_chunks(len(pairs), pairs.shape[1], pairs.itemsize)
    return np.concatenate([ranked_distances(kernel, pairs[part], fold[part], home) for part in chunks])


def further_distances(kernel: Kernel, basis: Basis, pairs: Array, fold: Array, copy: Array, some: Array) -> Array:
    """For some rows the distance to the centre of rank ``RANK`` outside of the fold; copies of centres count once."""
    if basis.rows is None:
        return ranked_distances(kernel, pairs[some], fold[some], None, RANK)
    columns = np.unique(copy[basis.rows], return_index=True)[1]
    return ranked_distances(kernel, pairs[np.ix_(some, columns)], fold[some], fold[basis.rows[columns]], RANK)


def fit_reach(nearest: Array, further: Array, copy: Array) -> Reach | None:
    """The reach of a model; None where it has no size.

    Parameters
    ----------
    nearest : ndarray of shape (n,)
        Held-out distances to the nearest centre; infinite where not known.
    further : ndarray
        Those to the centre of rank ``RANK``, for some rows.
    copy : ndarray of shape (n,)
        Copies of a row, which have the same label, count once.
    """
    first = np.unique(copy, return_index=True)[1]
    known, far = nearest[first][np.isfinite(nearest[first])], further[np.isfinite(further)]
    radius = float(np.quantile(known, QUANTILE)) if len(known) else 0.0
    radius = max(radius, float(np.median(far)) if len(far) else 0.0)
    return Reach(radius) if radius > 0 else None
