"""InsDif: rows become bags of differences to the labels' prototypes, and labels follow from distances of bags."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from leastwise.baselines._bags import hausdorff, medoids
from leastwise.baselines._checks import check_gram, count, number
from leastwise.baselines._labels import LabelClassifier
from leastwise.estimators.validation import all_or_nothing

Array = np.ndarray


class InsDif(LabelClassifier):
    r"""Multi-label learning by instance differentiation (Zhang and Zhou 2007, AAAI).

    The prototype v_l of a label is the mean of the training rows that have it, and a row x becomes the bag
    B(x) = {x - v_l: l = 1 ... T}. Bags are compared by the Hausdorff distance::

        d(A, B) = max(max_a min_b |a - b|, max_b min_a |a - b|)

    The training bags are put in M groups by k-medoids. With the medoids C_1 ... C_M, the scores of the labels are
    linear in the distances to them, by least squares against targets t of +1 and -1::

        f_l(x) = sum_j w_jl d(B(x), C_j),    min_W  1/2 sum_i sum_l (f_l(x_i) - t_il)^2

    A row has the labels with a score above 0.

    Parameters
    ----------
    ratio : float, default=0.2
        M as a share of the training rows, above 0 and up to 1; rounded, and 1 at least.
    max_iter : int, default=100
        Rounds of k-medoids at most.
    random_state : int, RandomState or None, default=None
        Draws the rows that k-medoids starts from; a number gives the same model every time.

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
        Rounds of k-medoids.
    coef_ : ndarray of shape (M, T)
        W.

    Notes
    -----
    The readings taken where a choice was open:

    - The Hausdorff distance is the one with two maxima, not an average.
    - k-medoids alternates between joining the nearest medoid and moving the medoids, from rows drawn at random, until
      the sum of distances falls no more. There is one start.
    - There is no intercept, and no ridge: W is the solution of least norm, by singular values.
    - A row with no score above 0 gets the label with the largest one, the first of several.
    - A label that no training row has, has no prototype and is in no bag; its scores are fitted like the others'.

    The distances of all pairs of training rows are needed: n^2 numbers, and n^2 T^2 steps.

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
            raise ValueError(f"ratio={self.ratio!r} must be 1 at most: it is a share of the training rows.")
        X, Y = self._training_rows(X, y)
        check_gram(len(X), arrays=2, what="distances")
        self._prototypes(X, Y)
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
        """Labels of the rows, 1 where the score is above 0 or, if none is, the largest; of shape (n, T)."""
        scores = self.decision_function(X)
        labels = scores > 0
        none = np.flatnonzero(~labels.any(axis=1))
        labels[none, scores[none].argmax(axis=1)] = True
        return labels.astype(np.intp)

    def _prototypes(self, X: Array, Y: Array) -> None:
        """Mean row of every label that has one."""
        sizes = Y.sum(axis=0)
        self.prototype_labels_ = np.flatnonzero(sizes)
        if not len(self.prototype_labels_):
            raise ValueError("y holds no 1 at all, so no label has a prototype: give rows with labels.")
        self.prototypes_ = (Y.T.astype(np.float64) @ X)[self.prototype_labels_] / sizes[self.prototype_labels_, None]
