"""Rows as bags of differences to prototypes: the Hausdorff distance of bags, and their medoids."""

from __future__ import annotations

import warnings

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import gen_batches

Array = np.ndarray

#: Numbers held at a time while distances are computed.
CHUNK = 2**18


def hausdorff(X: Array, Z: Array, V: Array) -> Array:
    """Hausdorff distances between the bags {x - v: v in V} and {z - v: v in V}, of shape (len(X), len(Z)).

    All bags are shifts of one set, so that with u = V(x - z) and G_lm = |v_l - v_m|^2::

        |(x - v_l) - (z - v_m)|^2 = |x - z|^2 + 2 (u_m - u_l) + G_lm

    and a pair of bags costs T^2 sums, whatever the number of features.
    """
    middle = V.mean(axis=0)  # taken off, so that a large offset costs no digits
    X, Z, V = X - middle, Z - middle, V - middle
    G = cdist(V, V, "sqeuclidean")
    P, Q = 2.0 * V @ X.T, 2.0 * V @ Z.T
    out = np.empty((len(X), len(Z)))
    for rows in gen_batches(len(X), max(1, CHUNK // (len(V) * len(Z)))):
        far = _farthest(P[:, rows, None] - Q[:, None, :], G)
        out[rows] = cdist(X[rows], Z, "sqeuclidean") + far
    return np.sqrt(np.maximum(out, 0.0))


def _farthest(U: Array, G: Array) -> Array:
    """The larger of max_l min_m and max_m min_l of U_m - U_l + G_lm; the labels are the first axis of U."""
    far = np.full(U.shape[1:], -np.inf)
    for l, g in enumerate(G):  # G is symmetric: g is its column, too
        g = g[:, None, None]
        np.maximum(far, (U + g).min(axis=0) - U[l], out=far)
        np.maximum(far, (g - U).min(axis=0) + U[l], out=far)
    return far


def medoids(D: Array, M: int, max_iter: int, rng: np.random.RandomState) -> tuple[Array, Array, int]:
    """M rows in the middle of M groups, the group of every row, and the rounds it took, from M rows drawn at random.

    D holds the distances of all pairs. A row joins the nearest medoid, the first of several; a medoid stays in its
    own group, so that none is empty. The new medoid of a group has the least sum of distances to it.
    """
    middle = np.sort(rng.choice(len(D), M, replace=False))
    group, cost = _join(D, middle)
    for rounds in range(1, max_iter + 1):
        new = np.array([_middle(D, np.flatnonzero(group == j)) for j in range(M)])
        new_group, new_cost = _join(D, new)
        if new_cost >= cost:
            return middle, group, rounds
        middle, group, cost = new, new_group, new_cost
    warnings.warn(
        f"The groups still changed after max_iter={max_iter} rounds: raise max_iter.",
        ConvergenceWarning,
        stacklevel=4,
    )
    return middle, group, max_iter


def _join(D: Array, middle: Array) -> tuple[Array, float]:
    group = D[:, middle].argmin(axis=1)
    group[middle] = np.arange(len(middle))
    return group, float(D[np.arange(len(D)), middle[group]].sum())


def _middle(D: Array, members: Array) -> int:
    return int(members[D[np.ix_(members, members)].sum(axis=0).argmin()])
