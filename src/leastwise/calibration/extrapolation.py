r"""How far new rows are from the training data: domain weight, and the novelty p-value.

**Domain weight.** A kernel model predicts everywhere, and beyond its data that is extrapolation: with a wide kernel
it can be confident and wrong. ``Extrapolation`` measures the distance to the nearest centre in units of what is usual
among held-out training rows. Beyond that radius the domain weight falls from one to zero, and probabilities fall to
the class shares.

**Novelty.** With d(x) the distance from x to the nearest training row, and d_i the same for training row i without
itself and the other rows of its group::

    novelty_pvalue(x) = (1 + #{i : d_i >= d(x)}) / (1 + n).

This is the p-value of a conformal test of whether x comes from the distribution of the training rows: of new rows
that do, a share of about a have a p-value of a or less, for any distribution. Only about, since d_i is measured to
one row fewer than d(x): with few rows the share is a little lower. A group is one observation, as in
:mod:`leastwise.calibration.conformal`.

Distances are Euclidean, or sums of absolute differences for the Laplace kernel, over all columns without scaling.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import manhattan_distances

from leastwise.problem.basis import Basis, row_chunks
from leastwise.problem.kernels import Kernel, squared_distances
from leastwise.utils.arrays import get_namespace, scalar
from leastwise.utils.hashing import row_hashes, sample_hashes

Array = np.ndarray

#: The radius is this quantile of the distances from held-out training rows to their nearest centre,
QUANTILE = 0.99
#: but no less than the median distance to the centre of this rank: rows often come in small sets that are almost
#: equal, and the distances within such a set say nothing about new rows.
RANK = 10
#: Number of rows on which the second is measured.
SOME = 500
#: Largest numbers of training rows that novelty distances are measured to, and that are measured.
REFERENCE, MEASURED = 2000, 1000
#: Number of distances computed at a time.
ROOM = 2**22


# ----------------------------------------------------------------------- domain weight


@dataclass(frozen=True)
class Extrapolation:
    """Domain weight by the distance d to the nearest centre: exp(-(d / radius - 1)^2 / 2) beyond the radius."""

    radius: float

    def in_domain(self, distance: Array) -> Array:
        """Between 0 and 1; 1 up to the radius."""
        xp = get_namespace(distance)
        with np.errstate(over="ignore"):
            beyond = xp.clip(distance / scalar(self.radius, distance) - 1, 0, None)
            return xp.exp(-0.5 * beyond**2)


def ranked_distances(kernel: Kernel, pairs: Array, fold: Array, home: Array | None, rank: int = 1) -> Array:
    """Distance of every row to the centre of this rank among those outside its own fold.

    ``fold`` has the folds of the rows and ``home`` those of the centres, if these are training rows. With fewer
    centres than ``rank`` the farthest one counts; infinite if there are too few outside the fold.
    """
    block = pairs if home is None else np.where(fold[:, None] == home, np.inf, pairs)
    k = min(rank, block.shape[1]) - 1
    return kernel.distances(block.min(axis=1) if k == 0 else np.partition(block, k, axis=1)[:, k])


def heldout_distances(kernel: Kernel, X: Any, basis: Basis, fold: Array, held: Array) -> Array:
    """Distance of the rows ``held`` to the nearest centre outside their own fold, in chunks; inf for other rows."""
    home = None if basis.rows is None else fold[basis.rows]
    nearest = np.full(X.shape[0], np.inf, dtype=X.dtype)
    for part in row_chunks(len(held), basis.n_functions, X.dtype.itemsize):
        pairs = kernel.pairs(X[held[part]], basis.centers)
        nearest[held[part]] = ranked_distances(kernel, pairs, fold[held[part]], home)
    return nearest


def further_distances(kernel: Kernel, X: Any, basis: Basis, fold: Array, cell: Array, some: Array) -> Array:
    """Distance of some rows to the centre of rank ``RANK`` outside the fold; centres of one cell count once."""
    if basis.rows is None:
        return ranked_distances(kernel, kernel.pairs(X[some], basis.centers), fold[some], None, RANK)
    distinct = np.unique(cell[basis.rows], return_index=True)[1]
    pairs = kernel.pairs(X[some], basis.centers[distinct])
    return ranked_distances(kernel, pairs, fold[some], fold[basis.rows[distinct]], RANK)


def fit_extrapolation(nearest: Array, further: Array, copy: Array) -> Extrapolation | None:
    """The domain of a model; None if the radius is zero.

    Parameters
    ----------
    nearest : ndarray of shape (n,)
        Held-out distances to the nearest centre; infinite if unknown.
    further : ndarray
        Distances to the centre of rank ``RANK``, for some rows.
    copy : ndarray of shape (n,)
        Codes of equal rows, which count once.
    """
    first = np.unique(copy, return_index=True)[1]
    known, far = nearest[first][np.isfinite(nearest[first])], further[np.isfinite(further)]
    radius = float(np.quantile(known, QUANTILE)) if len(known) else 0.0
    radius = max(radius, float(np.median(far)) if len(far) else 0.0)
    return Extrapolation(radius) if radius > 0 else None


# --------------------------------------------------------------------- novelty


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Distances among training rows, and the rows that distances of new rows are measured to.

    Attributes
    ----------
    distance : ndarray of shape (k,)
        Distances of held-out training rows to the nearest other one, in rising order.
    weight : ndarray of shape (k + 1,)
        Number of observations with at least the distance of this rank; the last entry is 0.
    city : bool
        True for sums of absolute differences.
    places : ndarray of int or None
        The centres of the model that distances are measured to.
    rows : array or sparse matrix, or None
        The rows that distances are measured to, if the centres are not training rows.
    """

    distance: Array
    weight: Array
    city: bool
    places: Array | None = None
    rows: Any = None

    def novelty_pvalue(self, X: Any, centers: Any) -> Array:
        """The novelty p-value of every row of X, above 0 and at most 1."""
        to = self.rows if self.places is None else centers
        if self.places is not None and len(self.places) < to.shape[0]:
            to = to[self.places]
        rank = np.searchsorted(self.distance, nearest(X, to, self.city), side="left")
        return (1 + self.weight[rank]) / (1 + self.weight[0])


def nearest(X: Any, to: Any, city: bool, code: Array | None = None, codes: Array | None = None) -> Array:
    """Distance of every row to the nearest row of ``to``; with codes, to the nearest one of another code."""
    found, step = np.empty(X.shape[0]), max(1, ROOM // to.shape[0])
    for a in range(0, X.shape[0], step):
        part = X[a : a + step]
        D = manhattan_distances(part, to) if city else squared_distances(part, to)
        if code is not None and codes is not None:
            D[code[a : a + step, None] == codes] = np.inf
        found[a : a + step] = D.min(axis=1)
    return found if city else np.sqrt(found)


def fit_neighbourhood(
    X: Any, w: Array, group: Array | None, count: Array | None, centers: Array | None, city: bool
) -> Neighbourhood:
    """From training rows with weights, groups and counts; ``centers`` are the rows that are centres of the model."""
    n = X.shape[0]
    ties = [-w] if group is None else [-w, group]
    key = np.empty(0) if n <= MEASURED else sample_hashes(row_hashes(X), [], ties, "novelty")
    places = None if centers is None else _lowest(key if n <= MEASURED else key[centers], len(centers), REFERENCE)
    reference = _lowest(key, n, REFERENCE) if centers is None else centers[places]
    measured = _lowest(key, n, MEASURED)
    labels = np.arange(n) if group is None else group
    d = nearest(X[measured], X[reference], city, labels[measured], labels[reference])
    if group is None and count is not None:
        d[count[measured] > 1] = 0  # there are other observations of the same row
    known = np.isfinite(d)
    beside = (None if a is None else a[measured][known] for a in (group, count))
    weight = independent_weights(w[measured][known].astype(float), *beside)
    order = np.argsort(d[known], kind="stable")
    above = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)
    return Neighbourhood(d[known][order], above, city, places, X[reference] if centers is None else None)


def independent_weights(w: Array, group: Array | None = None, count: Array | None = None) -> Array:
    """Weights that sum to the number of independent observations; with groups, to 1 in each group."""
    if not len(w):
        return w
    if group is not None:
        member = np.unique(group, return_inverse=True)[1]
        return w / np.bincount(member, weights=w)[member]
    w = w / w.mean() if count is None else w * (count.sum() / w.sum())
    return np.where(np.abs(w - np.round(w)) < 1e-12 * np.maximum(w, 1), np.round(w), w)


def _lowest(key: Array, n: int, most: int) -> Array:
    """The ``most`` rows of n with the lowest keys, in order; all if there are no more."""
    if n <= most:
        return np.arange(n)
    low = np.flatnonzero(key <= np.partition(key, most - 1)[most - 1])
    return np.sort(low[np.argsort(key[low], kind="stable")[:most]])
