"""Synthetic data with a known posterior: three classes in the plane, and labels with rotated boundaries."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtr, softmax
from sklearn.utils import check_array, check_random_state

Array = np.ndarray

#: Four Gaussians of equal weight, the last two of one class: class probabilities of 1/4, 1/4 and 1/2.
MEANS = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, -3.0], [0.0, 2.0]])
DEVIATIONS = np.array([[1.0, 1.0], [1.0, 1.0], [2.0, 1.0], [1.0, 2.0]])
PART_CLASS = np.array([0, 1, 2, 2])
SHARES = np.array([0.25, 0.25, 0.5])


def make_three_class(
    n_samples: int = 200, *, random_state: Any = None, return_posterior: bool = False
) -> tuple[Array, ...]:
    """Draw from the three classes of the illustrative example in section 3.1 of the paper.

    Parameters
    ----------
    n_samples : int, default=200
        Number of rows; their classes are drawn with probabilities 1/4, 1/4 and 1/2.
    random_state : int, RandomState or None, default=None
        Random number generator.
    return_posterior : bool, default=False
        If True, return the true class probabilities of the rows, too.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
    y : ndarray of int of shape (n_samples,)
        0, 1 and 2 for the paper's 1, 2 and 3.
    posterior : ndarray of shape (n_samples, 3)
        Only with ``return_posterior=True``.

    Examples
    --------
    >>> from leastwise.datasets import make_three_class
    >>> X, y = make_three_class(5, random_state=0)
    >>> X.shape, y.shape
    ((5, 2), (5,))
    """
    if n_samples < 1:
        raise ValueError(f"n_samples={n_samples!r} must be 1 or more.")
    rng = check_random_state(random_state)
    part = rng.randint(len(MEANS), size=n_samples)
    X = MEANS[part] + DEVIATIONS[part] * rng.standard_normal((n_samples, 2))
    y = PART_CLASS[part]
    return (X, y, three_class_posterior(X)) if return_posterior else (X, y)


def three_class_density(X: Any) -> Array:
    """Class-conditional densities p(x|y) of :func:`make_three_class`, figure 4 of the paper.

    Parameters
    ----------
    X : array-like of shape (n, 2)

    Returns
    -------
    ndarray of shape (n, 3)
    """
    return np.exp(_log_joint(X)) / SHARES


def three_class_posterior(X: Any) -> Array:
    """True class probabilities p(y|x) of :func:`make_three_class`.

    Parameters
    ----------
    X : array-like of shape (n, 2)

    Returns
    -------
    ndarray of shape (n, 3)
        Rows sum to one, also far from all classes.
    """
    return softmax(_log_joint(X), axis=1)


def _log_joint(X: Any) -> Array:
    """Logarithm of p(x, y), of shape (n, 3)."""
    X = check_array(X, dtype=np.float64)
    if X.shape[1] != 2:
        raise ValueError(f"X has {X.shape[1]} columns; the three classes are in the plane: give 2.")
    Z = (X[:, None] - MEANS) / DEVIATIONS
    parts = -0.5 * np.sum(Z**2, axis=2) - np.log(2 * np.pi * DEVIATIONS.prod(axis=1)) - np.log(len(MEANS))
    return np.column_stack([parts[:, 0], parts[:, 1], logsumexp(parts[:, 2:], axis=1)])


# -------------------------------------------------------------- rotated labels


@dataclass(frozen=True, eq=False)
class RotatedLabels:
    """Rows, their labels, and the distribution of these.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    Y : ndarray of int of shape (n, T)
        1 if a row has a label, else 0.
    coef : ndarray of shape (T, d)
        The weights: without noise, a row has label t if ``coef[t] @ x > 0``. All have norm one.
    correlation : ndarray of shape (T, T)
        Between the labels, in the population; the correlation of the columns of Y scatters around it.
    noise : float
    """

    X: Array
    Y: Array
    coef: Array
    correlation: Array
    noise: float

    @property
    def bayes_error(self) -> float:
        """The expected error rate per entry of Y of the best rule, the sign of ``coef[t] @ x``."""
        return float(np.arctan(self.noise) / np.pi)

    def posterior(self, X: Any) -> Array:
        """True probabilities p(y_t = 1 | x) of the labels.

        Parameters
        ----------
        X : array-like of shape (n, d)

        Returns
        -------
        ndarray of shape (n, T)
        """
        X = check_array(X, dtype=np.float64)
        if X.shape[1] != self.coef.shape[1]:
            raise ValueError(
                f"X has {X.shape[1]} columns; these labels were drawn for {self.coef.shape[1]}: give those."
            )
        scores = X @ self.coef.T
        return ndtr(scores / self.noise) if self.noise else (scores > 0).astype(float)


def make_rotated_labels(
    n_labels: int = 10,
    n_rows: int = 2000,
    *,
    n_features: int = 300,
    noise: float = 0.0,
    random_state: Any = None,
) -> RotatedLabels:
    """Draw the toy data of multi-label LSPC: boundaries at equal angles in the plane of two features.

    Rows are standard normal. A row has label t = 1, ..., T if

        cos(2 pi t / T) x_1 + sin(2 pi t / T) x_2 + noise * e > 0,

    with a standard normal e for every row and label. The other features say nothing.

    Parameters
    ----------
    n_labels : int, default=10
        Number T of labels. They are positively correlated from T = 5 on: neighbours are 2 pi / T apart, and those
        at a right angle have nothing in common. If T is even, every label has one that is its contrary.
    n_rows : int, default=2000
        Rows, in the paper of the training part; draw more for a test part.
    n_features : int, default=300
        2 or more.
    noise : float, default=0.0
        Standard deviation of the noise, relative to that of the scores, which is 1. The paper uses 0.
    random_state : int, RandomState or None, default=None
        Source of the numbers. Rows are the same for every ``noise``.

    Returns
    -------
    RotatedLabels

    Notes
    -----
    Labels at an angle of a are correlated by 2 / pi * arcsin(cos(a) / (1 + noise**2)), without noise 1 - 2 a / pi.

    References
    ----------
    H. Nam, H. Hachiya, M. Sugiyama, Computationally efficient multi-label classification by least-squares
    probabilistic classifiers, section 6.1.

    Examples
    --------
    >>> from leastwise.datasets import make_rotated_labels
    >>> data = make_rotated_labels(8, 100, n_features=20, random_state=0)
    >>> data.X.shape, data.Y.shape
    ((100, 20), (100, 8))
    >>> data.correlation[0, :3].round(2)
    array([1. , 0.5, 0. ])
    """
    _check_count("n_labels", n_labels, 1)
    _check_count("n_rows", n_rows, 1)
    _check_count("n_features", n_features, 2)
    if not 0 <= noise < np.inf:
        raise ValueError(f"noise={noise!r} must be 0 or more, and finite.")
    rng = check_random_state(random_state)
    X = rng.standard_normal((n_rows, n_features))
    coef = _coef(n_labels, n_features)
    scores = X @ coef.T
    if noise:
        scores += noise * rng.standard_normal(scores.shape)
    return RotatedLabels(X, (scores > 0).astype(np.intp), coef, _correlation(n_labels, noise), float(noise))


def _coef(n_labels: int, n_features: int) -> Array:
    angle = 2 * np.pi * np.arange(1, n_labels + 1) / n_labels
    coef = np.zeros((n_labels, n_features))
    coef[:, 0], coef[:, 1] = np.cos(angle), np.sin(angle)
    return coef


def _correlation(n_labels: int, noise: float) -> Array:
    """The correlation of signs of Gaussian variables, by the orthant probability; the noise is independent."""
    steps = np.arange(n_labels)
    cosine = np.cos(2 * np.pi * (steps[:, None] - steps) / n_labels)
    correlation: Array = 2 / np.pi * np.arcsin(np.clip(cosine / (1 + noise**2), -1, 1))
    np.fill_diagonal(correlation, 1.0)
    return correlation


def _check_count(name: str, value: Any, least: int) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r} must be an integer, {least} or more.")
