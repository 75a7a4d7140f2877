r"""Influence of training rows, and of their labels, on predictions of a model with many labels.

The scores of class y are linear in the targets of that class for all labels of all rows::

    F_yt(x) = sum_i sum_s S_ts,i(x) z_ysi,

so row i contributes ``sum_s S_ts,i z_ysi`` to label t, of which ``S_tt,i z_yti`` comes from the label itself and the
rest from its other labels. Removing the row, at the same ridge on the sum of the losses, changes the score by minus
its *effect* ``sum_s S_ts,i r_ysi``, where r are the residuals of the row's labels under the model without it.

If all labels are known, the problem decouples along the modes of the label matrix
(:mod:`leastwise.linalg.sylvester`), and one decomposition of the kernel serves all of them (``ModeSmoother``).
Otherwise the system of all known labels of all rows is inverted (``EntrySmoother``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from leastwise.solvers.influence import Influence, sources, wrapped
from leastwise.solvers.label_modes import CoupledLabels, times_each
from leastwise.utils.text_format import NAME, short, shortened

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class LabelTrainingRecord:
    """Training data that influences need besides the coefficients.

    Attributes
    ----------
    index : ndarray of int of shape (n,)
        Positions of the rows with positive weight among all rows.
    codes : ndarray of int of shape (n, T)
        Class codes; -1 for unknown labels.
    w : ndarray of shape (n,)
        Weights, of mean 1.
    entries : ndarray of shape (n, T) or None
        Weights of all labels of all rows; None if all are known and have the weight of the row.
    ridge, jitter : float
        Ridge on the sum of the losses, and the value added to the diagonal of the kernel matrix.
    bias : bool
        True if there are intercepts.
    coupled_labels : tuple of Tied
        Label groups with the modes of their label matrices.
    """

    index: Array
    codes: Array
    w: Array
    entries: Array | None
    ridge: float
    jitter: float
    bias: bool
    coupled_labels: tuple[CoupledLabels, ...]

    def targets(self, starts: Array) -> Array:
        """One-hot targets of all labels, of shape (n, O)."""
        Z = np.zeros((len(self.codes), int(starts[-1])))
        i, t = np.nonzero(self.codes >= 0)
        Z[i, starts[t] + self.codes[i, t]] = 1
        return Z


@dataclass(frozen=True)
class LabelParts:
    """Contributions and effects for L labels of a group with c classes, m predictions and n training rows.

    Attributes
    ----------
    contribution, own, effect : ndarray of shape (m, n, c, L)
        ``own`` is the part of the contribution from the label itself.
    by_label : ndarray of shape (m, T, c, L)
        Total contributions by source label.
    """

    contribution: Array
    own: Array
    effect: Array
    by_label: Array


@dataclass(frozen=True, eq=False)
class ModeSmoother:
    """Smoother of a label group without unknown labels: one ridge problem per mode, from one decomposition.

    ``K`` is the kernel matrix of the training rows, Z (n x c x T) are the targets.
    """

    record: LabelTrainingRecord
    coupled: CoupledLabels
    K: Array
    Z: Array

    @cached_property
    def root(self) -> Array:
        """Square roots of the weights."""
        return np.sqrt(self.record.w.astype(float))

    @cached_property
    def spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of the weighted kernel."""
        return np.linalg.eigh(self.K * self.root[:, None] * self.root)

    @cached_property
    def filters(self) -> Array:
        """``1 / (b g + ridge)`` for all eigenvalues g of the kernel and b of the label matrix, (n, d)."""
        g, b = self.spectrum[0], self.coupled.modes.values.astype(float)
        return 1 / ((g[:, None] + self.record.jitter) * b + self.record.ridge)

    @cached_property
    def border(self) -> tuple[Array, Array]:
        """For every mode ``P v`` (n, d) and ``v'P v`` (d,), with P the inverse and v the intercept column."""
        U, v = self.spectrum[1], self.root
        Pv = U @ (self.filters * (U.T @ v)[:, None])
        return Pv, v @ Pv

    @cached_property
    def left(self) -> Array:
        """Leave-one-out residuals of the rotated targets, (n, c, modes)."""
        U, which = self.spectrum[1], self.coupled.modes.which
        z = self.coupled.modes.rotate(self.Z * self.root[:, None, None])
        R = times_each(U, self.filters[:, None, which] * times_each(U.T, z))
        diagonal = U**2 @ self.filters
        if self.record.bias:
            Pv, vPv = self.border
            R = R - Pv[:, None, which] * (np.einsum("nd,ncd->cd", Pv[:, which], z) / vPv[which])
            diagonal = diagonal - Pv**2 / vPv
        return R / diagonal[:, None, which] / self.root[:, None, None]

    def weights(self, K: Array) -> Array:
        """Weights of the rotated targets in rotated scores, for all eigenvalues of the label matrix: (m, n, d)."""
        (_, U), b = self.spectrum, self.coupled.modes.values.astype(float)
        k = K * self.root
        S = np.stack([((k @ U) * (b[d] * self.filters[:, d])) @ U.T for d in range(len(b))], axis=2)
        if self.record.bias:
            Pv, vPv = self.border
            S += (1 - b * (k @ Pv))[:, None] * (Pv / vPv)
        return S * self.root[:, None]

    def parts(self, K: Array, labels: Array) -> LabelParts:
        """Parts of the scores of ``labels`` (positions in the group), from their kernel with the training rows."""
        modes, S = self.coupled.modes.astype(float), self.weights(K)
        intercept_ratio = S[:, :, None, modes.which]
        E = modes.back(intercept_ratio * self.left)[..., labels]
        C = modes.back(intercept_ratio * modes.rotate(self.Z))[..., labels]
        unit = np.eye(self.Z.shape[2])[labels]  # component of every label along each eigenvalue: (d, L, T)
        along = np.stack([modes.back(modes.rotate(unit) * (modes.which == d)) for d in range(len(modes.values))])
        own = np.einsum("mnd,dl->mnl", S, along[:, np.arange(len(labels)), labels])
        whole = np.einsum("mnd,ncs->mdcs", S, self.Z, optimize=True)
        by_label = np.einsum("dls,mdcs->mscl", along, whole, optimize=True)
        return LabelParts(C, own[:, :, None] * self.Z[:, :, labels], E, by_label)


@dataclass(frozen=True, eq=False)
class EntrySmoother:
    """Smoother of a label group with unknown labels: one system per connected set of labels."""

    record: LabelTrainingRecord
    coupled: CoupledLabels
    K: Array
    Z: Array

    @cached_property
    def B(self) -> Array:
        """The label matrix."""
        modes = self.coupled.modes.astype(float)
        return modes.back(modes.eigenvalues * modes.rotate(np.eye(self.Z.shape[2])))

    @cached_property
    def sets(self) -> list[EntrySystem]:
        """One system for each set of labels that is not coupled to the others."""
        assert self.record.entries is not None
        W = self.record.entries[:, self.coupled.family.labels].astype(float)
        number, member = connected_components(np.abs(self.B) > 1e-14 * np.abs(self.B).max(), directed=False)
        return [EntrySystem(self, np.flatnonzero(member == k), W) for k in range(number)]

    def parts(self, K: Array, labels: Array) -> LabelParts:
        """As in :class:`ModeSmoother`."""
        (n, c, T), m = self.Z.shape, len(K)
        C, own, E = (np.zeros((m, n, c, len(labels))) for _ in range(3))
        by_label = np.zeros((m, T, c, len(labels)))
        for part in self.sets:
            for place in np.flatnonzero(np.isin(labels, part.labels)):
                views = (A[..., place] for A in (C, own, E, by_label))
                part.fill(LabelParts(*views), K, int(labels[place]))
        return LabelParts(C, own, E, by_label)


class EntrySystem:
    """The system of all known entries of a set of coupled labels."""

    def __init__(self, smoother: EntrySmoother, labels: Array, W: Array) -> None:
        self.smoother, self.labels = smoother, labels
        i, s = np.nonzero(W[:, labels] > 0)
        self.row, self.label = i, labels[s]
        self.root = np.sqrt(W[i, self.label])

    @cached_property
    def inverse(self) -> tuple[Array, Array]:
        """Inverse of the system with intercepts (N x N), and weights of the targets in the intercepts (T x N)."""
        known, B = self.smoother.record, self.smoother.B
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
        """Mask of entries that are the only known value of a label with an intercept."""
        return np.diagonal(self.inverse[0]) * self.smoother.record.ridge < 1e-12

    @cached_property
    def left(self) -> Array:
        """Residuals of each row under the model without all labels of that row, (N, c)."""
        M, Z = self.inverse[0], self.smoother.Z[self.row, :, self.label]
        R, left = M @ (self.root[:, None] * Z), np.zeros(Z.shape)
        for i in np.unique(self.row):
            mine = np.flatnonzero((self.row == i) & ~self.lone)
            left[mine] = np.linalg.solve(M[np.ix_(mine, mine)], R[mine])
        return left / self.root[:, None]

    def fill(self, into: LabelParts, K: Array, label: int) -> None:
        """Fill in the parts of the scores of one label; the arrays have no label axis."""
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


def make_smoother(
    record: LabelTrainingRecord, coupled: CoupledLabels, K: Array, Z: Array
) -> ModeSmoother | EntrySmoother:
    """The smoother for complete or incomplete labels; Z (n x O) are the targets of all outputs."""
    kind = ModeSmoother if record.entries is None else EntrySmoother
    return kind(record, coupled, K, coupled.take(Z))


#: Numbers of labels per prediction, and of source labels, that are printed.
SHOWN, FROM = 3, 3


@dataclass(frozen=True, eq=False)
class LabelInfluence(Influence):
    """The training rows behind m predictions of some labels, in order of decreasing effect.

    ``rows``, ``contribution``, ``effect``, ``score`` and ``outputs`` as in
    :class:`leastwise.solvers.influence.Influence`. The outputs are the classes of the first requested label, then
    those of the second, and so on.

    Attributes
    ----------
    target : ndarray of shape (m, k, n_outputs)
        Classes of the rows for the outputs' labels; NaN or None for unknown labels.
    own_contribution : ndarray of shape (m, k, n_outputs)
        The part of ``contribution`` from the row's value of the output's label; the rest comes from its other labels.
    by_label : ndarray of shape (m, T, n_outputs)
        Contributions of all rows, by the label that they come from; they sum to ``score``.
    labels : sequence of length T
        Names of all labels.
    output_label : ndarray of int of shape (n_outputs,)
        Label of each output, as its position in ``labels``.
    """

    own_contribution: Any = None
    by_label: Any = None
    labels: Sequence[Any] = ()
    output_label: Any = None

    COMMON = ("outputs", "tasks", "labels", "output_label")

    @property
    def own(self) -> Array:
        """Contributions of the label itself, (m, n_outputs)."""
        return self.by_label[:, self.output_label, np.arange(len(self.output_label))]

    def to_frame(self) -> Any:
        """A pandas data frame with one row per prediction, training row and output."""
        frame = super().to_frame()
        m, k, _ = self.effect.shape
        frame.insert(2, "label", [self.labels[t] for t in np.tile(self.output_label, m * k)])
        frame.insert(frame.columns.get_loc("effect"), "own_contribution", self.own_contribution.ravel())
        return frame

    def _lines(self, i: int) -> list[str]:
        """Text of one prediction: the most likely class of each label, its rows and source labels."""
        requested = np.unique(self.output_label)
        lines = [line for t in requested[:SHOWN].tolist() for line in self._block(i, t)]
        hidden = len(requested) - SHOWN
        return lines + ([f"... {hidden} more labels: see to_frame()"] if hidden > 0 else [])

    def _block(self, i: int, t: int) -> list[str]:
        places = np.flatnonzero(self.output_label == t)
        j = int(places[self.score[i, places].argmax()])
        of = f"label {short(self.labels[t], NAME)}, score of {self.outputs[j]!s}"
        lines = wrapped(f"prediction {i}: {of} {self.score[i, j]:.4g} ({self._sources(i, j)})")
        lines += [f"{'row':>8}  {'target':>10}  {'contribution':>12}  {'of its own':>12}  {'effect':>10}"]
        for r, row in enumerate(self.rows[i]):
            parts = f"{self.contribution[i, r, j]:>12.4g}  {self.own_contribution[i, r, j]:>12.4g}"
            lines.append(f"{row:>8}  {self.target[i, r, j]!s:>10}  {parts}  {self.effect[i, r, j]:>+10.4g}")
        return lines

    def _sources(self, i: int, j: int) -> str:
        """Contributions to the score by label."""
        t, part = int(self.output_label[j]), self.by_label[i, :, j]
        order = [s for s in np.argsort(-np.abs(part), kind="stable") if s != t and part[s] != 0]
        own = f"{part[t]:.4g} from the label itself"
        return "; ".join([own, *sources(part, order, shortened(self.labels, NAME), FROM)])
