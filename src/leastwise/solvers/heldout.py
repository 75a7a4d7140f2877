"""Held-out scores by deleting rows and basis functions from the augmented system (H).

The equations are in the docstring of ``leastwise.solvers``. The solvers compute the blocks of the inverse
(``Inverse``); the functions here turn them into held-out residuals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leastwise.problem.intercepts import Centring

Array = np.ndarray


@dataclass
class Inverse:
    """Blocks of the inverse of (H) without intercept, at the deleted indices.

    For rows left out one at a time, p, t, d have shape (m,) and PB, TB have shape (m, c + 1). For a block of m rows
    with o basis functions, p is (m, m), t is (m, o) and d is (o, o). vPB is v'P [z, v], of shape (c + 1,), or (m, c +
    1) if the ridge differs by row.
    """

    p: Array
    PB: Array
    vPB: Array
    t: Array
    d: Array
    TB: Array


def delete_one(B: Inverse, bias: bool, count: Array | None = None, penalty: float | Array = 1.0) -> Array:
    r"""The row part of (B_EE)^-1 (B z)_E for rows left out one at a time: a 2 x 2 system for each row.

    A row may represent m equal observations (``count``), of which one is left out. Split the row, and its own basis
    function, into that observation and the other m - 1. This is an orthogonal change of coordinates; the added
    coordinates have zero target and zero design, so the inverse of (H) is 1 for residuals and -1 / rho for
    coefficients there. The entries of the one observation are

        p' = p / m + (1 - 1/m),     t' = t / m,     d' = d / m - (1 - 1/m) / rho,

    (``penalty`` is rho, divided by the weight of the basis function if coefficients belong to the unweighted one),
    and the right-hand side is divided by sqrt(m), as is the root of the weight. Without a basis function of its own,
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
    """p', t', d' of one of the equal observations that each row represents; see ``delete_one``."""
    rest = 1 - 1 / count
    return p / count + rest, t / count, d / count - rest / penalty


def delete_block(B: Inverse, bias: bool) -> Array:
    """The row part of (B_EE)^-1 (B z)_E for a block of rows left out together."""
    M = np.block([[B.p, B.t], [B.t.T, B.d]])
    right = np.vstack([B.PB, B.TB])
    R = right[:, :-1]
    if bias:
        v = right[:, -1]
        M = M - np.outer(v, v / B.vPB[-1])
        R = R - np.outer(v, B.vPB[:-1] / B.vPB[-1])
    return np.linalg.solve(M, R)[: len(B.p)]


def degrees_of_freedom(B: Inverse, bias: bool) -> float:
    """Sum of the leverages of the rows, ``1 - P_ii``."""
    p = B.p if B.p.ndim == 1 else np.diagonal(B.p)
    if bias:
        p = p - B.PB[:, -1] ** 2 / B.vPB[..., -1]
    return float(np.sum(1 - p))


@dataclass(frozen=True)
class Folds:
    """Partition of the rows into held-out sets.

    Attributes
    ----------
    singles : ndarray of int
        Rows held out alone.
    blocks : list of ndarray of int
        Sets of two or more rows held out together.
    """

    singles: Array
    blocks: list[Array]

    @classmethod
    def from_labels(cls, labels: Array) -> Folds:
        """Rows with the same fold label are held out together."""
        order = np.argsort(labels, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(labels[order]) != 0])
        sizes = np.diff(np.r_[starts, len(labels)])
        singles = np.sort(order[starts[sizes == 1]])
        blocks = [order[a : a + m] for a, m in zip(starts, sizes, strict=True) if m > 1]
        return cls(singles, blocks)


@dataclass(frozen=True)
class Problem:
    """One weighted ridge problem, as the held-out formulas need it.

    Attributes
    ----------
    Z : ndarray of shape (n, c)
        Targets, multiplied by the square roots of the weights.
    root : ndarray of shape (n,)
        Square roots of the weights, which have mean 1.
    bias : bool
        True if there is an unpenalised intercept; its column is ``root``.
    own : ndarray of shape (n,) or None
        Index of each row's own basis function, -1 for none; None if no row has one.
    folds : Folds
    centring : Centring or None
        W for task-specific intercepts; the Gram matrix is then given as ``W G W``.
    count : ndarray of shape (n,) or None
        Number of observations that each row represents; leave-one-out removes one at a time. None if whole rows are
        held out.
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
        """Targets with the intercept column appended, centred."""
        return self.centred(np.column_stack([self.Z, self.root]))

    def centred(self, A: Array) -> Array:
        """``W A``."""
        return A if self.centring is None else self.centring.rows(A)

    def ridge(self, alpha: float, rows: Array) -> float:
        """Ridge of a fold: alpha times the weight of its training rows."""
        return alpha * float(len(self.root) - np.sum(self.root[rows] ** 2))

    def counts(self, rows: Array) -> Array | None:
        """Observation counts of these rows, for deleting one observation at a time; None if all are 1."""
        if self.count is None or np.all(self.count[rows] == 1):
            return None
        return self.count[rows].astype(self.Z.dtype)

    def single_weights(self, rows: Array) -> Array:
        """Weight removed when each of these rows, or one of its observations, is left out."""
        w = self.root[rows] ** 2
        return w if self.count is None else w / self.count[rows]

    @property
    def n_folds(self) -> float:
        """Number of deletions: blocks, plus the observations of rows left out alone."""
        singles = self.folds.singles
        alone = len(singles) if self.count is None else float(np.sum(self.count[singles]))
        return alone + len(self.folds.blocks)


@dataclass(frozen=True)
class HeldOut:
    """Held-out scores of all rows (n x c).

    ``noise`` (n) estimates the rounding error of each score, if it is not negligible. ``dof`` is the effective number
    of degrees of freedom: the sum of the leverages of the rows.
    """

    F: Array
    noise: Array | None = None
    dof: float = 0.0

    def without_rounding(self, nothing: Array | None = None) -> HeldOut:
        """Set scores that are only rounding error to zero; ``nothing`` masks rows whose scores are exactly zero.

        Held-out scores are computed as differences from targets of 0 and 1. If the true score is zero, because no
        training row is near, the remaining rounding error depends on the target, and a calibrator would learn it.
        """
        zero = np.abs(self.F) <= 100 * np.finfo(self.F.dtype).eps
        if self.noise is not None:
            zero |= np.abs(self.F) <= 100 * self.noise[:, None]
        if nothing is not None:
            zero |= nothing[:, None]
        return replace(self, F=np.where(zero, self.F.dtype.type(0), self.F))
