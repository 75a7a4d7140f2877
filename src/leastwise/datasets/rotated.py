"""Labels whose boundaries are turned against each other in a plane, and whose truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.special import ndtr
from sklearn.utils import check_array, check_random_state

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class RotatedLabels:
    """Rows, their labels, and the truth that these were drawn from.

    Attributes
    ----------
    X : ndarray of shape (n, d)
    Y : ndarray of int of shape (n, T)
        1 where a row has a label, and 0 elsewhere.
    coef : ndarray of shape (T, d)
        The weights: without noise, a row has label t where ``coef[t] @ x > 0``. All are of length one.
    correlation : ndarray of shape (T, T)
        Between the labels, over all rows that could be drawn; the correlation of the columns of Y scatters around it.
    noise : float
    """

    X: Array
    Y: Array
    coef: Array
    correlation: Array
    noise: float

    @property
    def bayes_error(self) -> float:
        """The share of entries of Y that the best rule, the sign of ``coef[t] @ x``, gets wrong in the long run."""
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
    """Draw the toy data of multi-label LSPC: boundaries at equal angles all around the plane of two features.

    Rows are standard normal. Label t = 1, ..., T is there where

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
        Standard deviation of the noise beside that of the scores, which is 1. 0 is the paper's.
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
    """Of signs of Gaussian variables, by the orthant probability; the noise has no part in common."""
    steps = np.arange(n_labels)
    cosine = np.cos(2 * np.pi * (steps[:, None] - steps) / n_labels)
    correlation: Array = 2 / np.pi * np.arcsin(np.clip(cosine / (1 + noise**2), -1, 1))
    np.fill_diagonal(correlation, 1.0)
    return correlation


def _check_count(name: str, value: Any, least: int) -> None:
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number, {least} or more.")
