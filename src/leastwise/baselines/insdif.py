"""InsDif: rows are bags of differences to the prototypes of the labels; labels follow from distances of bags."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, gen_batches

from leastwise.baselines._base import LabelClassifier, check_gram, count, number
from leastwise.utils.atomic_fit import all_or_nothing

Array = np.ndarray

#: Number of entries computed at a time.
CHUNK = 2**18


def hausdorff(X: Array, Z: Array, V: Array) -> Array:
    """Hausdorff distances between the bags {x - v: v in V} and {z - v: v in V}, of shape (len(X), len(Z)).

    All bags are shifts of one set. With u = V(x - z) and G_lm = |v_l - v_m|^2::

        |(x - v_l) - (z - v_m)|^2 = |x - z|^2 + 2 (u_m - u_l) + G_lm

    so that a pair of bags costs T^2 sums, independently of the number of features.
    """
    middle = V.mean(axis=0)  # subtracted so that a large offset loses no digits
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
    """k-medoids from M random rows: medoids, the group of every row, and the number of iterations.

    D contains the distances of all pairs. A row joins the nearest medoid, the first in case of ties; a medoid stays
    in its own group, so that none is empty. The new medoid of a group has the smallest sum of distances to the group.
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
        f"k-medoids did not converge in max_iter={max_iter} iterations: raise max_iter.",
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


class InsDif(LabelClassifier):
    r"""Multi-label learning by instance differentiation (Zhang and Zhou 2007, AAAI).

    The prototype v_l of a label is the mean of the training rows that have it, and a row x becomes the bag
    B(x) = {x - v_l: l = 1 ... T}. Bags are compared by the Hausdorff distance::

        d(A, B) = max(max_a min_b |a - b|, max_b min_a |a - b|)

    The training bags are clustered into M groups by k-medoids. With the medoids C_1 ... C_M, the scores of the
    labels are linear in the distances to them, by least squares against targets t of +1 and -1::

        f_l(x) = sum_j w_jl d(B(x), C_j),    min_W  1/2 sum_i sum_l (f_l(x_i) - t_il)^2

    A row has the labels with a score above 0.

    Parameters
    ----------
    ratio : float, default=0.2
        M as a fraction of the training rows, in (0, 1]; rounded, at least 1.
    max_iter : int, default=100
        Maximum number of iterations of k-medoids.
    random_state : int, RandomState or None, default=None
        Seed of the initial medoids.

    Attributes
    ----------
    classes_ : list of ndarray
        The values 0 and 1 of every label.
    n_labels_ : int
        T.
    prototypes_ : ndarray of shape (number of labels with a row, n_features)
        v_l of the labels that a training row has.
    prototype_labels_ : ndarray of int
        Which labels these are.
    medoids_ : ndarray of int of shape (M,)
        Dataset rows whose bags are the medoids.
    medoid_rows_ : ndarray of shape (M, n_features)
        These rows.
    groups_ : ndarray of int of shape (n,)
        The group of every training row.
    n_iter_ : int
        Iterations of k-medoids.
    coef_ : ndarray of shape (M, T)
        W.

    Notes
    -----
    Choices where the paper leaves details open:

    - The Hausdorff distance is the one with two maxima, not an average.
    - k-medoids alternates between assignment to the nearest medoid and update of the medoids, from random rows, until
      the sum of distances no longer decreases. There is one start.
    - There is no intercept and no ridge: W is the minimum-norm solution.
    - A row without positive scores gets the label with the largest score, the first in case of ties.
    - A label without training rows has no prototype and is in no bag; its scores are fitted like the others'.

    The distances of all pairs of training rows take n^2 memory and n^2 T^2 time.

    Examples
    --------
    >>> import numpy as np
    >>> from leastwise.baselines import InsDif
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = InsDif(random_state=0).fit(X, X > 0)
    >>> model.predict([[1.5, -1.5]])
    array([[1, 0]])
    """

    def __init__(self, ratio: float = 0.2, *, max_iter: int = 100, random_state: Any = None) -> None:
        self.ratio = ratio
        self.max_iter = max_iter
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> InsDif:
        """Find prototypes and medoids, then the weights.

        Parameters
        ----------
        X : array-like of shape (n, n_features)
        y : array-like, sparse matrix or frame of shape (n, T)
            1 or True where a row has the label, else 0 or False; at least one 1 somewhere.
        """
        ratio, max_iter = number("ratio", self.ratio), count("max_iter", self.max_iter)
        if ratio > 1:
            raise ValueError(f"ratio={self.ratio!r} must be at most 1: it is a fraction of the training rows.")
        X, Y = self._training_rows(X, y)
        check_gram(len(X), arrays=2, what="distances")
        # Mean row of every label that has rows.
        sizes = Y.sum(axis=0)
        self.prototype_labels_ = np.flatnonzero(sizes)
        if not len(self.prototype_labels_):
            raise ValueError("y has no positive label, so there are no prototypes: give rows with labels.")
        self.prototypes_ = (Y.T.astype(np.float64) @ X)[self.prototype_labels_] / sizes[self.prototype_labels_, None]
        D = hausdorff(X, X, self.prototypes_)
        M = max(1, round(ratio * len(X)))
        rng = check_random_state(self.random_state)
        self.medoids_, self.groups_, self.n_iter_ = medoids(D, M, max_iter, rng)
        self.medoid_rows_ = X[self.medoids_]
        self.coef_ = np.linalg.lstsq(D[:, self.medoids_], np.where(Y, 1.0, -1.0), rcond=None)[0]
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores of the labels, of shape (n, T)."""
        return hausdorff(self._new_rows(X), self.medoid_rows_, self.prototypes_) @ self.coef_

    def predict(self, X: Any) -> Array:
        """Labels of the rows (n, T): 1 where the score is positive, or for the largest score if none is."""
        scores = self.decision_function(X)
        labels = scores > 0
        none = np.flatnonzero(~labels.any(axis=1))
        labels[none, scores[none].argmax(axis=1)] = True
        return labels.astype(np.intp)
