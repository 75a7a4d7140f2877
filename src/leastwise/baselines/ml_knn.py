"""ML-kNN: labels by Bayes' rule from the number of neighbours that have them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from leastwise.baselines._base import LabelClassifier, count, number
from leastwise.utils.atomic_fit import all_or_nothing

Array = np.ndarray


def count_shares(near: Array, rows: Array, k: int, s: float) -> Array:
    """Smoothed frequency of exactly j neighbours with a label among the selected rows, of shape (k + 1, T).

    near, of shape (n, T), contains the numbers of neighbours with a label; rows, of the same shape, selects the rows
    to count.
    """
    numbers = np.array([((near == j) & rows).sum(axis=0) for j in range(k + 1)], dtype=np.float64)
    return (s + numbers) / (s * (k + 1) + numbers.sum(axis=0))


class MLkNN(LabelClassifier):
    r"""Multi-label k nearest neighbours (Zhang and Zhou 2007, Pattern Recognition 40).

    Labels are predicted independently. Let H1 be the event that a row has the label, H0 that it does not, E_j that
    exactly j of its k nearest training rows have it. Then::

        P(H1)       = (s + number of training rows with l) / (2 s + n)
        P(E_j | H1) = (s + c[j])  / (s (k + 1) + sum_i c[i])
        P(E_j | H0) = (s + c'[j]) / (s (k + 1) + sum_i c'[i])
        P(H1 | E_j) = P(H1) P(E_j | H1) / (P(H1) P(E_j | H1) + P(H0) P(E_j | H0))

    where c[j] and c'[j] are the numbers of training rows with and without the label that have exactly j neighbours
    with it, the row itself not being one of its neighbours.

    Parameters
    ----------
    n_neighbors : int, default=10
        k, the number of neighbours by Euclidean distance; less than the number of training rows.
    smoothing : float, default=1.0
        s > 0; 1 is Laplace smoothing.

    Attributes
    ----------
    classes_ : list of ndarray
        The values 0 and 1 of every label.
    n_labels_ : int
        T.
    prior_ : ndarray of shape (T,)
        P(H1) of every label.
    counts_given_label_, counts_given_none_ : ndarray of shape (k + 1, T)
        P(E_j | H1) and P(E_j | H0); row j is for j neighbours.
    neighbors_ : sklearn.neighbors.NearestNeighbors
        The neighbour search.

    Notes
    -----
    Choices where the paper leaves details open: at equal probabilities the label is not assigned. Among training
    rows at equal distance, the neighbours are those that scikit-learn returns first. A label without training rows
    has the small probability that results from the smoothing.

    Examples
    --------
    >>> import numpy as np
    >>> from leastwise.baselines import MLkNN
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> model = MLkNN(n_neighbors=5).fit(X, X > 0)
    >>> model.predict([[1.5, -1.5]])
    array([[1, 0]])
    """

    sparse_rows = True

    def __init__(self, n_neighbors: int = 10, *, smoothing: float = 1.0) -> None:
        self.n_neighbors = n_neighbors
        self.smoothing = smoothing

    @all_or_nothing
    def fit(self, X: Any, y: Any) -> MLkNN:
        """Count labels, and neighbours with labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
        y : array-like, sparse matrix or frame of shape (n, T)
            1 or True where a row has the label, else 0 or False.
        """
        k, s = count("n_neighbors", self.n_neighbors), number("smoothing", self.smoothing)
        X, Y = self._training_rows(X, y)
        n = len(Y)
        if k >= n:
            raise ValueError(
                f"n_neighbors={k} is too large for n_samples={n} training rows: a row is not its own neighbour, so "
                f"give at most {n - 1}" + (", which needs more rows." if n == 1 else ".")
            )
        self.neighbors_ = NearestNeighbors(n_neighbors=k).fit(X)
        self.labels_fit_ = Y
        near = self._near(None)
        self.prior_ = (s + Y.sum(axis=0)) / (2 * s + n)
        self.counts_given_label_ = count_shares(near, Y, k, s)
        self.counts_given_none_ = count_shares(near, ~Y, k, s)
        return self

    def predict_proba(self, X: Any) -> Array:
        """Probability of every label, P(H1 | E_j), of shape (n, T)."""
        near = self._near(self._new_rows(X))
        label = np.arange(self.n_labels_)
        yes = self.prior_ * self.counts_given_label_[near, label]
        no = (1.0 - self.prior_) * self.counts_given_none_[near, label]
        return yes / (yes + no)

    def predict(self, X: Any) -> Array:
        """Labels of the rows, 1 where the probability is above 1/2, of shape (n, T)."""
        return (self.predict_proba(X) > 0.5).astype(np.intp)

    def _near(self, X: Any) -> Array:
        """Number of neighbours with each label; for None those of the training rows, excluding themselves."""
        graph = self.neighbors_.kneighbors_graph(X, mode="connectivity")
        return np.rint(graph @ self.labels_fit_.astype(np.float64)).astype(np.intp)
