r"""Coupling of labels: the label matrix B at any sharing, by its eigendecomposition (modes).

``Alike``
    All labels share a part: ``B = sharing 1 1' + (1 - sharing) diag(own)``.
``Covariance``
    Any covariance S of the labels' functions, possibly negative: ``B = sharing S + (1 - sharing) diag(own)``.
``Differences``
    Section 5 of the multi-label paper: differences between the functions of similar labels are penalised::

        C = (1 - sharing) diag(penalty) + sharing (diag(S 1) - S),     B = C^-1 / mean(diag(C^-1)).

``own`` is 1 / penalty, divided by its mean, so that all three are the same at sharing = 0. The first two are
``leastwise.problem.coupling.Shared``, the last ``leastwise.problem.coupling.Pairwise``. Here the eigenvectors are
computed once for all sharings if the penalties are equal, separately for every connected component of the labels, and
without the matrix of all pairs of labels if possible.

Similarities and covariances are given by the user (``leastwise.problem.similarity_checks``), or computed from the
labels of the training rows. ``LABEL_SIMILARITIES`` is the only list of the names that ``similarity=`` of many labels
takes. A new one is a registered function that returns an array of shape (T, T)::

    @register_label_similarity("agreement")
    def agreement(codes, W, classes, size):
        return np.mean(codes[:, :, None] == codes[:, None], axis=0)

``correlation``
    Pearson correlation over the rows where both labels are known. The multi-label paper uses its positive part as the
    similarities of the ``Pairwise`` coupling. Labels of several classes are compared class by class, by value::

        cor(s, t) = sum_v cov([y_s = v], [y_t = v]) / sqrt(var_s var_t),     var_t = sum_v var([y_t = v])

    where the first sum is over the classes that both labels have. For binary labels it is the Pearson correlation.

``learned_relation``
    S for the coupling ``B = sharing S + (1 - sharing) I``, the prior covariance of the labels' functions. A label is
    its function plus independent noise; the noise does not contribute to the correlation of two labels but adds to
    the variance of each, which the identity in B represents. So S is derived from the correlations R of the labels,
    with three differences from the paper:

    - Signs are kept. A negatively correlated label is as informative as a positively correlated one.
    - Correlations are shrunk for noise. Those of N rows of unrelated labels have a standard deviation of N^(-1/2),
      and the largest of T of them is about sqrt(2 log(T) / N). Each is multiplied by
      ``max(0, 1 - 2 log(T) / (N r^2))`` (Breiman's garrote), which hardly changes large ones and sets
      small ones to zero. S is estimated from the labels of all rows, including those held out to choose ``sharing``;
      without this step held-out scores are optimistic, most of all for unrelated labels.
    - Indirect relations count, too: with J for the shrunk matrix, S is ``J + J J`` divided by its mean diagonal. A
      direction common to many labels, an eigenvector of J with a large eigenvalue j, gets j + j^2; the remaining
      noise, where j is small, is amplified less. Labels with many related labels get a larger diagonal, that is, a
      smaller ridge.

    S is positive semi-definite, and zero between labels that are not connected by a chain of correlations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from leastwise.linalg.sylvester import Modes, alike, distinct, untied
from leastwise.problem.coupling import laplacian

Array = np.ndarray

#: Eigenvalues of a Laplacian below this, relative to the largest, are zero: one per connected component.
NOTHING = 1e-10


@dataclass(frozen=True)
class Alike:
    """``B = sharing 1 1' + (1 - sharing) diag(own)``."""

    own: Array

    def modes(self, sharing: float) -> Modes:
        """Modes of B at one sharing."""
        own = (1 - sharing) * self.own
        if sharing == 0:
            return untied(own)
        if np.ptp(own) == 0:
            return alike(len(own), sharing, float(own[0]))
        b, V = np.linalg.eigh(sharing + np.diag(own))
        return Modes(*distinct(np.maximum(b, 0)), V)

    def take(self, labels: Array) -> Alike:
        """The coupling of a subset of the labels."""
        return Alike(self.own[labels])

    @property
    def similarity(self) -> None:
        """None: all labels are equally similar."""
        return None

    @property
    def related(self) -> bool:
        """True if sharing has an effect."""
        return len(self.own) > 1


@dataclass(frozen=True)
class _Related:
    """Labels with a similarity matrix S, handled by connected components.

    ``own`` is the diagonal of B at sharing = 0.
    """

    own: Array
    similarity: Any

    @cached_property
    def _sets(self) -> list[Array]:
        parts = connected_components(self.similarity != 0, directed=False)[1]
        return np.split(np.argsort(parts, kind="stable"), np.cumsum(np.bincount(parts))[:-1])

    @property
    def related(self) -> bool:
        """True if sharing has an effect."""
        return len(self._sets) < len(self.own)

    def _within(self, labels: Array) -> Array:
        S = self.similarity
        return S[labels][:, labels].toarray() if sparse.issparse(S) else S[np.ix_(labels, labels)]

    def modes(self, sharing: float) -> Modes:
        """Modes of B at one sharing."""
        if sharing == 0:
            return untied(self.own)
        found = [self._eigen(k, sharing) for k in range(len(self._sets))]
        b = np.concatenate([values for values, _ in found])
        mean = sum(float(values @ np.sum(V**2, axis=0)) for values, V in found) / len(b)
        values, which = distinct(np.maximum(b, 0) * self._scale(mean))
        if len(found) == 1:
            V = np.empty_like(found[0][1])
            V[self._sets[0]] = found[0][1]
            return Modes(values, which, V)
        order = np.argsort(np.concatenate(self._sets))
        return Modes(values, which, sparse.csr_array(sparse.block_diag([V for _, V in found], format="csr")[order]))

    def _eigen(self, k: int, sharing: float) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of B before scaling, within one component."""
        raise NotImplementedError

    def _scale(self, mean: float) -> float:
        """Scale factor of B, given the mean of its diagonal."""
        return 1.0


@dataclass(frozen=True)
class Covariance(_Related):
    """``B = sharing S + (1 - sharing) diag(own)``, S positive semi-definite."""

    def take(self, labels: Array) -> Covariance:
        """The coupling of a subset of the labels."""
        return Covariance(self.own[labels], self._within(labels))

    @cached_property
    def _vectors(self) -> list[tuple[Array, Array]]:
        return [np.linalg.eigh(self._within(labels)) for labels in self._sets]

    def _eigen(self, k: int, sharing: float) -> tuple[Array, Array]:
        own = (1 - sharing) * self.own[self._sets[k]]
        if np.ptp(self.own) == 0:
            values, V = self._vectors[k]
            return sharing * values + own, V
        return np.linalg.eigh(sharing * self._within(self._sets[k]) + np.diag(own))


@dataclass(frozen=True)
class Differences(_Related):
    """``B = C^-1 mean(own) / mean(diag(C^-1))`` with ``C = (1 - sharing) diag(penalty) + sharing laplacian(S)``.

    The mean of ``own`` is 1, except for a subset of the labels.
    """

    penalty: Array

    def take(self, labels: Array) -> Differences:
        """The coupling of a subset of the labels."""
        return Differences(self.own[labels], self._within(labels), self.penalty[labels])

    @cached_property
    def _vectors(self) -> list[tuple[Array, Array]]:
        """Eigenvalues and eigenvectors of the Laplacian, divided on both sides by the roots of the penalties."""
        found = []
        for labels in self._sets:
            root = 1 / np.sqrt(self.penalty[labels])
            m, V = np.linalg.eigh(root[:, None] * laplacian(self._within(labels)) * root)
            m[m < NOTHING * max(float(m[-1]), 1.0)] = 0
            found.append((m, V))
        return found

    def _eigen(self, k: int, sharing: float) -> tuple[Array, Array]:
        m, V = self._vectors[k]
        # In the limit of sharing = 1 only the part shared by the whole component remains.
        shrink = np.where(m == 0, 1.0, (1 - sharing) / np.where(m == 0, 1.0, 1 - sharing + sharing * m))
        if np.ptp(self.penalty) == 0:
            return shrink / self.penalty[0], V
        V = V / np.sqrt(self.penalty[self._sets[k]])[:, None]
        return np.linalg.eigh((V * shrink) @ V.T)

    def _scale(self, mean: float) -> float:
        return float(self.own.mean()) / mean


Relation = Alike | Covariance | Differences


def own_part(penalty: Array) -> Array:
    """Label-specific part of the diagonal of B, with mean 1."""
    return 1 / penalty / np.mean(1 / penalty)


# ---------------------------------------------------------------- similarities


Rule = Callable[[Array, Array, Sequence[Array], int], Array]

#: Values of sharing="auto" for user-supplied similarities, and the default for registered ones.
LEVELS: tuple[float, ...] = (0.0, 0.1, 0.5, 0.9, 0.97)


@dataclass(frozen=True)
class LabelSimilarity:
    """A rule that computes similarities of labels.

    Attributes
    ----------
    name : str
    function : callable or None
        ``f(codes, W, classes, size)``, as :func:`correlation`, returns an array of shape (T, T). None: all labels are
        equally similar.
    sharings : tuple of float
        Values of ``sharing="auto"``.
    covariance : bool
        True if the result is a covariance of the labels' functions, positive semi-definite
        (``leastwise.problem.label_coupling.Covariance``). Otherwise its entries are nonnegative weights of the
        differences between two labels (``Differences``).
    """

    name: str
    function: Rule | None
    sharings: tuple[float, ...] = LEVELS
    covariance: bool = False


#: Rules that compute similarities of labels, by name.
LABEL_SIMILARITIES: dict[str, LabelSimilarity] = {}


def register_label_similarity(
    name: str, sharings: tuple[float, ...] = LEVELS, covariance: bool = False
) -> Callable[[Rule], Rule]:
    """Decorator that registers a value of ``similarity=``; options are fields of :class:`LabelSimilarity`."""

    def add(function: Rule) -> Rule:
        LABEL_SIMILARITIES[name] = LabelSimilarity(name, function, sharings, covariance)
        return function

    return add


#: Correlations over N rows, fewer than this, are multiplied by N / FEW.
FEW = 20


def correlation(codes: Array, W: Array, classes: Sequence[Array], size: int) -> Array:
    """Correlations of all pairs of labels, each over the rows where both are known.

    Parameters
    ----------
    codes : ndarray of int of shape (n, T)
        Codes of the classes; -1 where a label is unknown.
    W : ndarray of shape (n, T)
        Weights in any unit; 0 where a label is unknown. A row has the geometric mean of the weights of the
        two labels, so that a weight of 2 is equivalent to repeating the row.
    classes : sequence of T arrays
        The classes of every label in the order of their codes. Classes with the same value are the same class.
    size : int
        Number of independent rows: a repeated row counts once.

    Returns
    -------
    ndarray of shape (T, T)
        Symmetric, in [-1, 1], with unit diagonal; 0 for labels that are constant or have no class in common. Pairs
        with fewer than 20 rows in common, N, are shrunk by N / 20. Positive semi-definite if every label is known in
        every row.
    """
    return _correlation(codes, W, classes, size)[0]


@register_label_similarity("learned", sharings=(0.0, 0.3, 0.7, 0.99), covariance=True)
def learned_relation(codes: Array, W: Array, classes: Sequence[Array], size: int) -> Array:
    """Covariance of the labels' functions estimated from the correlations of the labels, see above.

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
    The cost is that of a few products of (T, n) with (n, T) and of one eigendecomposition of size T. The result is
    deterministic.
    """
    R, rows = _correlation(codes, W, classes, size)
    T = len(R)
    chance = max(2 * np.log(T), np.finfo(float).tiny)
    J = R * (1 - chance / np.maximum(rows * R**2, chance))
    np.fill_diagonal(J, 1.0)
    J = _nearest_correlation(J)
    S = J + J @ J
    return (S + S.T) * (T / (2 * np.trace(S)))


LABEL_SIMILARITIES["shared"] = LabelSimilarity("shared", None, (0.0, 0.05, 0.2, 0.5, 0.9))


@register_label_similarity("correlation")
def positive_correlation(codes: Array, W: Array, classes: Sequence[Array], size: int) -> Array:
    """Correlations of labels; negative ones become zero."""
    return np.maximum(correlation(codes, W, classes, size), 0)


def _correlation(codes: Array, W: Array, classes: Sequence[Array], size: int) -> tuple[Array, Array]:
    """Correlations, and the numbers of independent rows where both labels are known, of shape (T, T)."""
    root = np.sqrt(W)
    mass = root.T @ root
    rows = size * mass / max(float(W.max(axis=1).sum()), np.finfo(float).tiny)
    # Covariances, and the variance of each label over the rows that it has in common with each other label.
    cov, var = np.zeros_like(mass), np.zeros_like(mass)
    for labels, wanted in _shared_classes(classes):
        Y = root[:, labels] * (codes[:, labels] == wanted)
        mean = _ratio(Y.T @ root, mass[labels])
        var[labels] += mean * (1 - mean)
        both = np.ix_(labels, labels)
        cov[both] += _ratio(Y.T @ Y, mass[both]) - mean[:, labels] * mean[:, labels].T
    var[var < 1e-10] = 0  # constant up to rounding
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
        pairs = pairs[1:]  # for binary labels one of the two classes is enough
    for places in pairs:
        yield places[:, 0], places[:, 1]


def _ratio(a: Array, b: Array) -> Array:
    """``a / b``, and 0 where b is 0."""
    return np.divide(a, b, out=np.zeros_like(a), where=b > 0)


def _nearest_correlation(J: Array) -> Array:
    """J without its negative eigenvalues, rescaled to unit diagonal; unconnected labels stay unconnected."""
    j, V = np.linalg.eigh(J)
    if j[0] >= 0:
        return J
    part = connected_components(J != 0, directed=False)[1]
    J = (V * np.maximum(j, 0)) @ V.T
    J[part[:, None] != part] = 0  # exactly zero, without rounding error
    size = np.sqrt(np.diagonal(J))
    J = J / np.multiply.outer(size, size)
    np.fill_diagonal(J, 1.0)
    return J
