r"""Which training rows, and which labels of these, the scores of a model of many labels come from.

The scores of class y are linear in what is known of that class for all labels of all rows::

    F_yt(x) = sum_i sum_s S_ts,i(x) z_ysi,

so row i contributes ``sum_s S_ts,i z_ysi`` to label t, of which ``S_tt,i z_yti`` comes from the label itself, and the
rest from its other labels. Without the row, at the same ridge on the sum of the losses, the score loses
``sum_s S_ts,i r_ysi``, where r are the residuals of the row's labels under the model without it: its *effect*.

Where all labels are known, they come apart along the modes of the label matrix (:mod:`leastwise.linalg.sylvester`),
and one decomposition of the kernel serves them all. Where not, see ``leastwise.solvers.label_influence``.

Influence where labels are known in part: the system of all known labels of all rows is inverted.

What ``influence`` of a model of many labels returns: the training rows and labels behind some predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from leastwise.solvers.influence import Influence, sources, wrapped
from leastwise.solvers.label_modes import Tied, times_each
from leastwise.utils.text_format import NAME, short, shortened

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class LabelLearned:
    """What the training rows had to say.

    Attributes
    ----------
    index : ndarray of int of shape (n,)
        Where the rows that count stood among all.
    codes : ndarray of int of shape (n, T)
        Their classes; -1 where a label is not known.
    w : ndarray of shape (n,)
        Their weights, of mean 1.
    entries : ndarray of shape (n, T) or None
        Weights of all of their labels; None where all are known and have the weight of the row.
    ridge, jitter : float
        On the sum of the losses, and what was added to the diagonal of the kernel.
    bias : bool
        Whether the classes of all labels have intercepts.
    ties : tuple of Tied
        How labels are tied.
    """

    index: Array
    codes: Array
    w: Array
    entries: Array | None
    ridge: float
    jitter: float
    bias: bool
    ties: tuple[Tied, ...]

    def targets(self, starts: Array) -> Array:
        """1 for the classes that rows have, of shape (n, O)."""
        Z = np.zeros((len(self.codes), int(starts[-1])))
        i, t = np.nonzero(self.codes >= 0)
        Z[i, starts[t] + self.codes[i, t]] = 1
        return Z


@dataclass(frozen=True)
class LabelParts:
    """Scores of some labels of a family taken apart, for m rows: c classes, L labels, and all n training rows.

    Attributes
    ----------
    contribution, own, effect : ndarray of shape (m, n, c, L)
        ``own`` is the part of the contribution that comes from the label itself.
    by_label : ndarray of shape (m, T, c, L)
        Contributions of all rows, by the label that they come from.
    """

    contribution: Array
    own: Array
    effect: Array
    by_label: Array


@dataclass(frozen=True, eq=False)
class ModeSmoother:
    """A family of labels that are known throughout: a ridge problem for every mode, from one decomposition.

    ``K`` is the kernel of the training rows, Z (n x c x T) are the targets.
    """

    learned: LabelLearned
    tie: Tied
    K: Array
    Z: Array

    @cached_property
    def root(self) -> Array:
        """Roots of the weights."""
        return np.sqrt(self.learned.w.astype(float))

    @cached_property
    def spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues and eigenvectors of the weighted kernel."""
        return np.linalg.eigh(self.K * self.root[:, None] * self.root)

    @cached_property
    def filters(self) -> Array:
        """``1 / (b g + ridge)`` for all eigenvalues g of the kernel and b of the label matrix, (n, d)."""
        g, b = self.spectrum[0], self.tie.modes.values.astype(float)
        return 1 / ((g[:, None] + self.learned.jitter) * b + self.learned.ridge)

    @cached_property
    def border(self) -> tuple[Array, Array]:
        """For every mode the inverse times the intercept's column, (n, d), and that column's own part of it, (d,)."""
        U, v = self.spectrum[1], self.root
        Pv = U @ (self.filters * (U.T @ v)[:, None])
        return Pv, v @ Pv

    @cached_property
    def left(self) -> Array:
        """What is left of the rotated targets of each row by the model without it, (n, c, modes)."""
        U, which = self.spectrum[1], self.tie.modes.which
        z = self.tie.modes.rotate(self.Z * self.root[:, None, None])
        R = times_each(U, self.filters[:, None, which] * times_each(U.T, z))
        diagonal = U**2 @ self.filters
        if self.learned.bias:
            Pv, vPv = self.border
            R = R - Pv[:, None, which] * (np.einsum("nd,ncd->cd", Pv[:, which], z) / vPv[which])
            diagonal = diagonal - Pv**2 / vPv
        return R / diagonal[:, None, which] / self.root[:, None, None]

    def weights(self, K: Array) -> Array:
        """Weights of the rotated targets in rotated scores, for all eigenvalues of the label matrix: (m, n, d)."""
        (_, U), b = self.spectrum, self.tie.modes.values.astype(float)
        k = K * self.root
        S = np.stack([((k @ U) * (b[d] * self.filters[:, d])) @ U.T for d in range(len(b))], axis=2)
        if self.learned.bias:
            Pv, vPv = self.border
            S += (1 - b * (k @ Pv))[:, None] * (Pv / vPv)
        return S * self.root[:, None]

    def parts(self, K: Array, labels: Array) -> LabelParts:
        """Scores of some labels, as places in the family, from the kernel (m x n) with the training rows."""
        modes, S = self.tie.modes.astype(float), self.weights(K)
        spread = S[:, :, None, modes.which]
        E = modes.back(spread * self.left)[..., labels]
        C = modes.back(spread * modes.rotate(self.Z))[..., labels]
        unit = np.eye(self.Z.shape[2])[labels]  # what of every label lies along each eigenvalue: (d, L, T)
        along = np.stack([modes.back(modes.rotate(unit) * (modes.which == d)) for d in range(len(modes.values))])
        own = np.einsum("mnd,dl->mnl", S, along[:, np.arange(len(labels)), labels])
        whole = np.einsum("mnd,ncs->mdcs", S, self.Z, optimize=True)
        by_label = np.einsum("dls,mdcs->mscl", along, whole, optimize=True)
        return LabelParts(C, own[:, :, None] * self.Z[:, :, labels], E, by_label)


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


#: So many labels of a prediction, and so many labels that one comes from, are printed.
SHOWN, FROM = 3, 3


@dataclass(frozen=True, eq=False)
class LabelInfluence(Influence):
    """The training rows behind m predictions of some labels, those of the largest effects first.

    ``rows``, ``contribution``, ``effect``, ``score`` and ``outputs`` as in
    :class:`leastwise.solvers.influence.Influence`. The outputs are the classes of the first label that was asked for,
    then those of the second, and so on.

    Attributes
    ----------
    target : ndarray of shape (m, k, n_outputs)
        The rows' classes of the outputs' labels; NaN or None where these are not known.
    own_contribution : ndarray of shape (m, k, n_outputs)
        The part of ``contribution`` that comes from the row's value of the output's label; the rest comes from its
        other labels.
    by_label : ndarray of shape (m, T, n_outputs)
        Contributions of all rows, by the label that they come from; they sum to ``score``.
    labels : sequence of length T
        Names of all labels.
    output_label : ndarray of int of shape (n_outputs,)
        The label of each output, as its place in ``labels``.
    """

    own_contribution: Any = None
    by_label: Any = None
    labels: Sequence[Any] = ()
    output_label: Any = None

    COMMON = ("outputs", "tasks", "labels", "output_label")

    @property
    def own(self) -> Array:
        """What comes from the label itself, (m, n_outputs)."""
        return self.by_label[:, self.output_label, np.arange(len(self.output_label))]

    def to_frame(self) -> Any:
        """A frame (pandas) with a line for every prediction, training row and output."""
        frame = super().to_frame()
        m, k, _ = self.effect.shape
        frame.insert(2, "label", [self.labels[t] for t in np.tile(self.output_label, m * k)])
        frame.insert(frame.columns.get_loc("effect"), "own_contribution", self.own_contribution.ravel())
        return frame

    def _lines(self, i: int) -> list[str]:
        """One prediction: the likeliest class of each label, its rows, and the labels that it comes from."""
        asked = np.unique(self.output_label)
        lines = [line for t in asked[:SHOWN].tolist() for line in self._block(i, t)]
        hidden = len(asked) - SHOWN
        return lines + ([f"... {hidden} more labels: to_frame() has them all"] if hidden > 0 else [])

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
        """Where the score comes from, label by label."""
        t, part = int(self.output_label[j]), self.by_label[i, :, j]
        order = [s for s in np.argsort(-np.abs(part), kind="stable") if s != t and part[s] != 0]
        own = f"{part[t]:.4g} from the label itself"
        return "; ".join([own, *sources(part, order, shortened(self.labels, NAME), FROM)])
