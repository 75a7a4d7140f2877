r"""Which training rows, and which labels of these, the scores of a model of many labels come from.

The scores of class y are linear in what is known of that class for all labels of all rows::

    F_yt(x) = sum_i sum_s S_ts,i(x) z_ysi,

so row i contributes ``sum_s S_ts,i z_ysi`` to label t, of which ``S_tt,i z_yti`` comes from the label itself, and the
rest from its other labels. Without the row, at the same ridge on the sum of the losses, the score loses
``sum_s S_ts,i r_ysi``, where r are the residuals of the row's labels under the model without it: its *effect*.

Where all labels are known, they come apart along the modes of the label matrix (:mod:`leastwise.linalg.modes`), and
one decomposition of the kernel serves them all. Where not, see ``leastwise.label_entry_influence``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leastwise.heldout.labels import Tied, times_each

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
