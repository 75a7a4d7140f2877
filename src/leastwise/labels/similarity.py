r"""How labels are related: their correlation, and what can be learned from it.

``correlation``
    Pearson's, over the rows where both labels are known. The multi-label paper takes ``max(0, .)`` of it as the
    similarities of the ``Pairwise`` coupling. Labels of several classes are compared class by class, by value::

        cor(s, t) = sum_v cov([y_s = v], [y_t = v]) / sqrt(var_s var_t),     var_t = sum_v var([y_t = v])

    with the sum above over the classes that both have. For binary labels both classes say the same: it is Pearson's.

``learned_relation``
    S for the coupling ``B = sharing S + (1 - sharing) I``. B is the covariance of the labels' functions before any
    data. A label is its function and noise of its own; noise has no part in the correlation of two labels but adds to
    a label's own variance, which is what the identity in B is for. So the correlations R of the labels are where S
    comes from, with three differences to the paper:

    - Signs are kept. A label that is the contrary of another tells as much about it as one that is alike.
    - Chance is taken out. Correlations of N rows that mean nothing scatter by N^(-1/2), and the largest of T such are
      about sqrt(2 log(T) / N). Each is multiplied by ``max(0, 1 - 2 log(T) / (N r^2))`` (Breiman's garrote), which
      leaves large ones nearly as they are and makes small ones zero. S has seen the labels of all rows, also of those
      that are held out to choose ``sharing``; without this step held-out scores flatter most where labels have least
      to do with one another.
    - Labels are related through others, too: with J for the matrix that is left, S is ``J + J J``, in units of its
      mean diagonal. A direction that many labels have in common, an eigenvector of J with a large eigenvalue j, gets
      j + j^2, and what is left of chance, where j is small, gets little of it. Labels with many relatives get a
      larger diagonal, which is a smaller ridge.

    S is positive semi-definite, and zero between labels that no chain of correlations connects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

Array = np.ndarray

#: Correlations over N rows, fewer than this, are multiplied by N / FEW.
FEW = 20


def correlation(codes: Array, W: Array, classes: Sequence[Array], size: int) -> Array:
    """Correlations of all pairs of labels, each over the rows where both are known.

    Parameters
    ----------
    codes : ndarray of int of shape (n, T)
        Codes of the classes; -1 where a label is not known.
    W : ndarray of shape (n, T)
        Weights in any unit; 0 where a label is not known. A row counts with the geometric mean of the weights of the
        two labels, so that a row of weight 2 is the row twice.
    classes : sequence of T arrays
        The classes of every label in the order of their codes. Classes with the same value are the same class.
    size : int
        Number of independent witnesses among the rows: a row that is there twice is one.

    Returns
    -------
    ndarray of shape (T, T)
        Symmetric, in [-1, 1], with unit diagonal; 0 for labels that are constant or have no class in common. Pairs
        with fewer than 20 rows in common, N, are shrunk by N / 20. Positive semi-definite if every label is known in
        every row.
    """
    return _correlation(codes, W, classes, size)[0]


def learned_relation(codes: Array, W: Array, classes: Sequence[Array], size: int) -> Array:
    """The relation of labels that their correlations speak for, to be used as ``coupling.Shared(penalty, S)``.

    Parameters
    ----------
    codes, W, classes, size
        As for :func:`correlation`.

    Returns
    -------
    ndarray of shape (T, T)
        Symmetric and positive semi-definite, with a diagonal of mean 1. Entries may be negative.

    Notes
    -----
    The method is in the docstring of this module. It takes the time of a few products of (T, n) with (n, T) and of
    one eigendecomposition of size T. No random numbers are used.
    """
    R, rows = _correlation(codes, W, classes, size)
    T = len(R)
    chance = max(2 * np.log(T), np.finfo(float).tiny)
    J = R * (1 - chance / np.maximum(rows * R**2, chance))
    np.fill_diagonal(J, 1.0)
    J = _nearest_correlation(J)
    S = J + J @ J
    return (S + S.T) * (T / (2 * np.trace(S)))


def _correlation(codes: Array, W: Array, classes: Sequence[Array], size: int) -> tuple[Array, Array]:
    """Correlations, and of how many witnesses both labels are known, of shape (T, T)."""
    root = np.sqrt(W)
    mass = root.T @ root
    rows = size * mass / max(float(W.max(axis=1).sum()), np.finfo(float).tiny)
    cov, var = np.zeros_like(mass), np.zeros_like(mass)  # of each label over the rows common with every other
    for labels, wanted in _shared_classes(classes):
        Y = root[:, labels] * (codes[:, labels] == wanted)
        mean = _ratio(Y.T @ root, mass[labels])
        var[labels] += mean * (1 - mean)
        both = np.ix_(labels, labels)
        cov[both] += _ratio(Y.T @ Y, mass[both]) - mean[:, labels] * mean[:, labels].T
    var[var < 1e-10] = 0  # constant, but for rounding
    R = np.clip(_ratio(cov, np.sqrt(var * var.T)), -1.0, 1.0) * np.minimum(1.0, rows / FEW)
    R = (R + R.T) / 2
    np.fill_diagonal(R, 1.0)
    return R, rows


def _shared_classes(classes: Sequence[Array]) -> Iterator[tuple[Array, Array]]:
    """For every class, the labels that have it and the codes it has there."""
    found: dict[Any, list[tuple[int, int]]] = {}
    for label, values in enumerate(classes):
        for code, value in enumerate(np.asarray(values).tolist()):
            found.setdefault(value, []).append((label, code))
    pairs = [np.array(places) for places in found.values()]
    if len(pairs) == 2 and all(len(p) == len(classes) for p in pairs):
        pairs = pairs[1:]  # where all labels have the same two classes, either says it all
    for places in pairs:
        yield places[:, 0], places[:, 1]


def _ratio(a: Array, b: Array) -> Array:
    """``a / b``, and 0 where b is 0."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


def _nearest_correlation(J: Array) -> Array:
    """J without its negative eigenvalues, with unit diagonal again; labels that are not connected stay so."""
    j, V = np.linalg.eigh(J)
    if j[0] >= 0:
        return J
    part = connected_components(J != 0, directed=False)[1]
    J = (V * np.maximum(j, 0)) @ V.T
    J[part[:, None] != part] = 0  # exactly, not to rounding
    size = np.sqrt(np.diagonal(J))
    J = J / np.multiply.outer(size, size)
    np.fill_diagonal(J, 1.0)
    return J
