"""Deleting rows and basis functions from the augmented system (H); see the package's text.

The problem and its answer: folds, targets, held-out scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leastwise.problem.intercepts import Centring

Array = np.ndarray


@dataclass
class Inverse:
    """The blocks of the inverse of (H) without intercept, on the deleted indices (see the module's text).

    Singles: p, t, d have shape (m,) and PB, TB (m, c + 1). Blocks: p (m, m), t (m, o), d (o, o).
    vPB is v'P [z, v], of shape (c + 1,) or, where the ridge differs by row, (m, c + 1).
    """

    p: Array
    PB: Array
    vPB: Array
    t: Array
    d: Array
    TB: Array


def delete_one(B: Inverse, bias: bool, count: Array | None = None, penalty: float | Array = 1.0) -> Array:
    r"""(B_EE)^-1 (B z)_E, first part, for rows left out one at a time: a 2 x 2 system for each.

    A row may stand for m equal observations (``count``), of which one is left out. Split the row, and the basis
    function that it owns, into that one and the other m - 1: an orthogonal change of coordinates, in which what is
    added has no target and no design. There the inverse of (H) is 1 for residuals and -1 / rho for coefficients, so
    that the entries of the one observation are

        p' = p / m + (1 - 1/m),     t' = t / m,     d' = d / m - (1 - 1/m) / rho,

    (``penalty`` is rho, divided by the weight of the basis function where coefficients belong to the unweighted one),
    and the right hand side is divided by sqrt(m), as is the root of the weight. Without a basis function of its own
    the held-out residual is e / (1 - h / m), with e the residual and h = 1 - p the leverage of the row.
    """
    p, t, d = B.p, B.t, B.d
    Pz, Tz = B.PB[:, :-1], B.TB[:, :-1]
    if bias:
        Pv, Tv, vPv = B.PB[:, -1], B.TB[:, -1], B.vPB[:, -1]
        p, t, d = p - Pv**2 / vPv, t - Pv * Tv / vPv, d - Tv**2 / vPv
        Pz = Pz - Pv[:, None] * B.vPB[:, :-1] / vPv[:, None]
        Tz = Tz - Tv[:, None] * B.vPB[:, :-1] / vPv[:, None]
    if count is not None:
        p, t, d = split_counts(p, t, d, count, penalty)
    return (d[:, None] * Pz - t[:, None] * Tz) / (p * d - t**2)[:, None]


def split_counts(p: Array, t: Array, d: Array, count: Array, penalty: float | Array) -> tuple[Array, Array, Array]:
    """p', t', d' of one of the equal observations that each row stands for; see ``delete_one``."""
    rest = 1 - 1 / count
    return p / count + rest, t / count, d / count - rest / penalty


def delete_block(B: Inverse, bias: bool) -> Array:
    """(B_EE)^-1 (B z)_E, first part, for a set of rows left out together."""
    M = np.block([[B.p, B.t], [B.t.T, B.d]])
    right = np.vstack([B.PB, B.TB])
    R = right[:, :-1]
    if bias:
        v = right[:, -1]
        M = M - np.outer(v, v / B.vPB[-1])
        R = R - np.outer(v, B.vPB[:-1] / B.vPB[-1])
    return np.linalg.solve(M, R)[: len(B.p)]


def degrees_of_freedom(B: Inverse, bias: bool) -> float:
    """The sum over the rows of how much their fitted scores follow their own targets: ``1 - P_ii``."""
    p = B.p if B.p.ndim == 1 else np.diagonal(B.p)
    if bias:
        p = p - B.PB[:, -1] ** 2 / B.vPB[..., -1]
    return float(np.sum(1 - p))


@dataclass(frozen=True)
class Folds:
    """Which rows are held out together.

    Attributes
    ----------
    singles : ndarray of int
        Rows that are held out alone.
    blocks : list of ndarray of int
        Sets of two or more rows that are held out together.
    """

    singles: Array
    blocks: list[Array]

    @classmethod
    def from_labels(cls, labels: Array) -> Folds:
        """Rows with the same label are held out together."""
        order = np.argsort(labels, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(labels[order]) != 0])
        sizes = np.diff(np.r_[starts, len(labels)])
        singles = np.sort(order[starts[sizes == 1]])
        blocks = [order[a : a + m] for a, m in zip(starts, sizes, strict=True) if m > 1]
        return cls(singles, blocks)


@dataclass(frozen=True)
class Problem:
    """One ridge problem as the held-out formulas see it.

    Attributes
    ----------
    Z : ndarray of shape (n, c)
        Targets, multiplied by the roots of the weights.
    root : ndarray of shape (n,)
        Roots of the weights; the weights have mean 1.
    bias : bool
        Whether there is an unpenalised intercept; its column is ``root``.
    own : ndarray of shape (n,) or None
        The basis function that belongs to each row, -1 for none; None where no row owns one.
    folds : Folds
    centring : Centring or None
        W, where tasks have intercepts of their own; the Gram matrix is then given as ``W G W``.
    count : ndarray of shape (n,) or None
        How many observations each row stands for. Leave-one-out takes one of them away at a time. None where rows
        are held out whole.
    """

    Z: Array
    root: Array
    bias: bool
    own: Array | None
    folds: Folds
    centring: Centring | None = None
    count: Array | None = None

    @property
    def targets(self) -> Array:
        """Targets with the intercept's column behind them, centred."""
        return self.centred(np.column_stack([self.Z, self.root]))

    def centred(self, A: Array) -> Array:
        """``W A``."""
        return A if self.centring is None else self.centring.rows(A)

    def ridge(self, alpha: float, rows: Array) -> float:
        """The ridge of a fold: alpha times the weight of the rows that stay."""
        return alpha * float(len(self.root) - np.sum(self.root[rows] ** 2))

    def counts(self, rows: Array) -> Array | None:
        """Observations of each of these rows, of which one is left out at a time; None if all stand for one."""
        if self.count is None or np.all(self.count[rows] == 1):
            return None
        return self.count[rows].astype(self.Z.dtype)

    def single_weights(self, rows: Array) -> Array:
        """The weight that leaves with each of these rows, which are left out one at a time."""
        w = self.root[rows] ** 2
        return w if self.count is None else w / self.count[rows]

    @property
    def n_folds(self) -> float:
        """How many times something is left out: folds, and observations of rows that are left out alone."""
        singles = self.folds.singles
        alone = len(singles) if self.count is None else float(np.sum(self.count[singles]))
        return alone + len(self.folds.blocks)


@dataclass(frozen=True)
class HeldOut:
    """Held-out scores of all rows (n x c).

    ``noise`` (n) is about how much of each score is rounding, where that is more than a little. ``freedom`` is the
    number of degrees of freedom that the fit takes up: the sum over rows of how much a score follows its own target.
    """

    F: Array
    noise: Array | None = None
    dof: float = 0.0

    def without_rounding(self, nothing: Array | None = None) -> HeldOut:
        """Without what is rounding only; ``nothing`` marks rows whose scores are zero for sure.

        Held-out scores are differences from targets of 0 and 1. Where the true score is zero, since nothing is near,
        the rounding that is left depends on the target, and a calibrator would make much of it.
        """
        zero = np.abs(self.F) <= 100 * np.finfo(self.F.dtype).eps
        if self.noise is not None:
            zero |= np.abs(self.F) <= 100 * self.noise[:, None]
        if nothing is not None:
            zero |= nothing[:, None]
        return replace(self, F=np.where(zero, self.F.dtype.type(0), self.F))
