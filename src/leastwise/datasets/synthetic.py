"""The illustrative example of section 3.1: three classes in the plane whose posterior is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.utils import check_array, check_random_state

Array = np.ndarray

#: Class shares of 1/4, 1/4 and 1/2, the last of two equal parts: four Gaussians of the same weight.
MEANS = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, -3.0], [0.0, 2.0]])
DEVIATIONS = np.array([[1.0, 1.0], [1.0, 1.0], [2.0, 1.0], [1.0, 2.0]])
PART_CLASS = np.array([0, 1, 2, 2])
SHARES = np.array([0.25, 0.25, 0.5])


def make_three_class(
    n_samples: int = 200, *, random_state: Any = None, return_posterior: bool = False
) -> tuple[Array, ...]:
    """Draw from the three classes of section 3.1.

    Parameters
    ----------
    n_samples : int, default=200
        Number of rows; their classes are drawn at random, with probabilities 1/4, 1/4 and 1/2.
    random_state : int, RandomState or None, default=None
        Source of the numbers.
    return_posterior : bool, default=False
        Whether to return the true class probabilities of the rows as well.

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
        Rows sum to one, however far from the classes they lie.
    """
    return softmax(_log_joint(X), axis=1)


def _log_joint(X: Any) -> Array:
    """Logarithm of p(x, y), of shape (n, 3)."""
    X = check_array(X, dtype=np.float64)
    if X.shape[1] != 2:
        raise ValueError(f"X has {X.shape[1]} columns; the three classes lie in the plane: give 2.")
    Z = (X[:, None] - MEANS) / DEVIATIONS
    parts = -0.5 * np.sum(Z**2, axis=2) - np.log(2 * np.pi * DEVIATIONS.prod(axis=1)) - np.log(len(MEANS))
    return np.column_stack([parts[:, 0], parts[:, 1], logsumexp(parts[:, 2:], axis=1)])
