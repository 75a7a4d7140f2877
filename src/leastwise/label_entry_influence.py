"""Influence where labels are known in part: the system of all known labels of all rows is inverted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse.csgraph import connected_components

from leastwise.heldout.labels import Tied
from leastwise.label_influence import LabelLearned, LabelParts, ModeSmoother

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class EntrySmoother:
    """A family of labels that are known in part: the system of all known labels, set by set of tied ones."""

    learned: LabelLearned
    tie: Tied
    K: Array
    Z: Array

    @cached_property
    def B(self) -> Array:
        """The label matrix."""
        modes = self.tie.modes.astype(float)
        return modes.back(modes.eigenvalues * modes.rotate(np.eye(self.Z.shape[2])))

    @cached_property
    def sets(self) -> list[EntrySystem]:
        """A system for each set of labels that has nothing to do with the others."""
        assert self.learned.entries is not None
        W = self.learned.entries[:, self.tie.family.labels].astype(float)
        number, member = connected_components(np.abs(self.B) > 1e-14 * np.abs(self.B).max(), directed=False)
        return [EntrySystem(self, np.flatnonzero(member == k), W) for k in range(number)]

    def parts(self, K: Array, labels: Array) -> LabelParts:
        """As that of :class:`ModeSmoother`."""
        (n, c, T), m = self.Z.shape, len(K)
        C, own, E = (np.zeros((m, n, c, len(labels))) for _ in range(3))
        by_label = np.zeros((m, T, c, len(labels)))
        for part in self.sets:
            for place in np.flatnonzero(np.isin(labels, part.labels)):
                views = (A[..., place] for A in (C, own, E, by_label))
                part.fill(LabelParts(*views), K, int(labels[place]))
        return LabelParts(C, own, E, by_label)


class EntrySystem:
    """The known labels of all rows, of a set of labels, as one system."""

    def __init__(self, smoother: EntrySmoother, labels: Array, W: Array) -> None:
        self.smoother, self.labels = smoother, labels
        i, s = np.nonzero(W[:, labels] > 0)
        self.row, self.label = i, labels[s]
        self.root = np.sqrt(W[i, self.label])

    @cached_property
    def inverse(self) -> tuple[Array, Array]:
        """Of the system with its intercepts (N x N), and the weights of the targets in these (T x N)."""
        known, B = self.smoother.learned, self.smoother.B
        K = self.smoother.K + known.jitter * np.eye(len(self.smoother.K))
        H = K[np.ix_(self.row, self.row)] * B[np.ix_(self.label, self.label)] * self.root[:, None] * self.root
        M, m = np.linalg.inv(H + known.ridge * np.eye(len(H))), np.zeros((len(B), len(H)))
        if known.bias:
            present = np.unique(self.label)
            V = self.root[:, None] * (self.label[:, None] == present)
            MV = M @ V
            m[present] = np.linalg.solve(V.T @ MV, MV.T)
            M = M - MV @ m[present]
        return M, m

    @cached_property
    def lone(self) -> Array:
        """The only known value of a label with an intercept of its own: without it nothing is known of the label."""
        return np.diagonal(self.inverse[0]) * self.smoother.learned.ridge < 1e-12

    @cached_property
    def left(self) -> Array:
        """What is left of the targets of each row by the model without it, all labels of it at once: (N, c)."""
        M, Z = self.inverse[0], self.smoother.Z[self.row, :, self.label]
        R, left = M @ (self.root[:, None] * Z), np.zeros(Z.shape)
        for i in np.unique(self.row):
            mine = np.flatnonzero((self.row == i) & ~self.lone)
            left[mine] = np.linalg.solve(M[np.ix_(mine, mine)], R[mine])
        return left / self.root[:, None]

    def fill(self, into: LabelParts, K: Array, label: int) -> None:
        """Take the scores of one label apart, into arrays without an axis of labels."""
        S, Z = self.weights(K, label), self.smoother.Z
        for s in self.labels.tolist():
            mine = self.label == s
            rows, weight = self.row[mine], S[:, mine, None]
            given = weight * Z[rows, :, s]
            into.contribution[:, rows] += given
            into.effect[:, rows] += weight * self.left[mine]
            into.by_label[:, s] = given.sum(axis=1)
            if s == label:
                into.own[:, rows] = given
        into.effect[:, self.row[self.lone & (self.label == label)]] = np.nan

    def weights(self, K: Array, label: int) -> Array:
        """Weights of all targets in the score of a label: (m, N)."""
        M, m = self.inverse
        k = K[:, self.row] * self.smoother.B[label, self.label] * self.root
        return (k @ M + m[label]) * self.root


def make_smoother(learned: LabelLearned, tie: Tied, K: Array, Z: Array) -> ModeSmoother | EntrySmoother:
    """The one that suits what is known; Z (n x O) are the targets of all classes of all labels."""
    kind = ModeSmoother if learned.entries is None else EntrySmoother
    return kind(learned, tie, K, tie.take(Z))
