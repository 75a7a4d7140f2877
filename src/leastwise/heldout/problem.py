"""The problem and its answer: folds, targets, held-out scores."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leastwise.centring import Centring

Array = np.ndarray


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
class Held:
    """Held-out scores of all rows (n x c).

    ``noise`` (n) is about how much of each score is rounding, where that is more than a little. ``freedom`` is the
    number of degrees of freedom that the fit takes up: the sum over rows of how much a score follows its own target.
    """

    F: Array
    noise: Array | None = None
    freedom: float = 0.0

    def settled(self, nothing: Array | None = None) -> Held:
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
