r"""How familiar a row is: the share of training rows that were at least as far from the others.

With d(x) the distance from x to the nearest training row, and d_i the same for training row i without itself and the
other rows of its group::

    familiarity(x) = (1 + #{i : d_i >= d(x)}) / (1 + n).

This is the p-value of a conformal test of whether x comes from where the training rows come from: of new rows that
do, a share of about a are at or below a, whatever the distribution. About, since d_i is measured to one row fewer
than d(x): with few rows the share is a little lower. Groups are one witness each, as in
:mod:`leastwise.calibration.conformal`.

Distances are Euclidean, or sums of absolute differences for the Laplace kernel, over all columns: those in other
units, or of no use, count as they are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import manhattan_distances

from leastwise.calibration.heldout_rows import witnesses
from leastwise.problem.kernels import squared_distances
from leastwise.utils.hashing import row_keys, sample_keys

Array = np.ndarray

#: Training rows that distances are measured to, and training rows that are measured, at most.
REFERENCE, MEASURED = 2000, 1000
#: Distances that are held at a time.
ROOM = 2**22


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Distances among training rows, and what those of new rows are measured to.

    Attributes
    ----------
    distance : ndarray of shape (k,)
        Those of held-out training rows to the nearest other one, in rising order.
    weight : ndarray of shape (k + 1,)
        How many witnesses have at least the distance of this rank; behind them 0.
    city : bool
        Whether distances are sums of absolute differences.
    places : ndarray of int or None
        Which of the model's centres they are measured to.
    rows : array or sparse matrix, or None
        Rows that they are measured to, where the centres are no training rows.
    """

    distance: Array
    weight: Array
    city: bool
    places: Array | None = None
    rows: Any = None

    def familiarity(self, X: Any, centers: Any) -> Array:
        """Above 0, and 1 at most, for every row of X."""
        to = self.rows if self.places is None else centers
        if self.places is not None and len(self.places) < to.shape[0]:
            to = to[self.places]
        rank = np.searchsorted(self.distance, nearest(X, to, self.city), side="left")
        return (1 + self.weight[rank]) / (1 + self.weight[0])


def nearest(X: Any, to: Any, city: bool, home: Array | None = None, away: Array | None = None) -> Array:
    """The distance of every row to the nearest of others, not to those with the same label (``home``, ``away``)."""
    found, step = np.empty(X.shape[0]), max(1, ROOM // to.shape[0])
    for a in range(0, X.shape[0], step):
        part = X[a : a + step]
        D = manhattan_distances(part, to) if city else squared_distances(part, to)
        if home is not None and away is not None:
            D[home[a : a + step, None] == away] = np.inf
        found[a : a + step] = D.min(axis=1)
    return found if city else np.sqrt(found)


def fit_neighbourhood(
    X: Any, w: Array, group: Array | None, count: Array | None, centers: Array | None, city: bool
) -> Neighbourhood:
    """From training rows with weights, groups and counts; ``centers`` are those that are centres of the model."""
    n = X.shape[0]
    ties = [-w] if group is None else [-w, group]
    key = np.empty(0) if n <= MEASURED else sample_keys(row_keys(X), [], ties, "familiarity")
    places = None if centers is None else _lowest(key if n <= MEASURED else key[centers], len(centers), REFERENCE)
    reference = _lowest(key, n, REFERENCE) if centers is None else centers[places]
    measured = _lowest(key, n, MEASURED)
    labels = np.arange(n) if group is None else group
    d = nearest(X[measured], X[reference], city, labels[measured], labels[reference])
    if group is None and count is not None:
        d[count[measured] > 1] = 0  # there are other observations at the same place
    known = np.isfinite(d)
    beside = (None if a is None else a[measured][known] for a in (group, count))
    weight = witnesses(w[measured][known].astype(float), *beside)
    order = np.argsort(d[known], kind="stable")
    above = np.append(np.cumsum(weight[order][::-1])[::-1], 0.0)
    return Neighbourhood(d[known][order], above, city, places, X[reference] if centers is None else None)


def _lowest(key: Array, n: int, most: int) -> Array:
    """The numbers of ``most`` of n rows, in order: those of the lowest keys; all if there are no more."""
    return np.arange(n) if n <= most else np.sort(np.argsort(key, kind="stable")[:most])
