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
"""

from __future__ import annotations

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
