"""Held-out predictions with what is known of their rows, and folds of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from leastwise.calibration.newton import Logits, fit_temperature

Array = np.ndarray


@dataclass(frozen=True)
class Given:
    """What a model says of some rows.

    Attributes
    ----------
    P : ndarray of shape (n, c)
        Probabilities; rows sum to one.
    base : ndarray of shape (n, c)
        Logarithms of the class shares: what is left where nothing is known.
    group : ndarray of int of shape (n,)
        Whose parameters a row has: codes of tasks or labels; -1 is one that was not there in training.
    trust : ndarray of shape (n,), optional
        From 1, the scores are to be believed, to 0, nothing is known; None is 1 throughout.
    """

    P: Array
    base: Array
    group: Array
    trust: Array | None = None

    def evidence(self, floor: float) -> Array:
        """Logarithms of what the class shares are multiplied by; a share ``floor`` of them keeps it finite."""
        shares = np.exp(self.base)
        return np.log((1 - floor) * self.P + floor * shares) - self.base

    def one_class(self, k: int) -> Given:
        """Class k against the others, as the second of two."""
        p, s = self.P[:, k], np.exp(self.base[:, k])
        return replace(self, P=np.column_stack([1 - p, p]), base=np.log(np.column_stack([1 - s, s])))


@dataclass(frozen=True)
class HeldOut(Given):
    """Predictions of rows that were held out, and the truth.

    Attributes
    ----------
    y : ndarray of int of shape (n,)
        Codes of the classes.
    w : ndarray of shape (n,)
        Weights; those of a unit have about the sum 1.
    unit : ndarray of int of shape (n,)
        Labels of independent observations: the rows of a group are one, and so are the labels of a row.
    n_units : int
        Number of all of them, also where these rows are a part.
    n_groups : int
    """

    y: Array = None  # type: ignore[assignment]
    w: Array = None  # type: ignore[assignment]
    unit: Array = None  # type: ignore[assignment]
    n_units: int = 0
    n_groups: int = 1

    @property
    def floor(self) -> float:
        """Share of every answer that is the class shares."""
        return 1 / (self.n_units + 2)

    @property
    def targets(self) -> Array:
        """One-hot but for the floor (Platt 2000, for many classes), so that the best slope is finite."""
        T = self.floor * np.exp(self.base)
        T[np.arange(len(T)), self.y] += 1 - self.floor
        return T

    def logits(self, kind: str) -> Logits:
        """The likelihood of a smooth family on these rows."""
        return replace(self._logits, kind=kind)

    @cached_property
    def _logits(self) -> Logits:
        trust = np.ones(len(self.w)) if self.trust is None else self.trust
        E, base, T = (np.asfortranarray(a) for a in (self.evidence(self.floor), self.base, self.targets))
        return Logits("temperature", E, base, T, self.w, trust)

    @cached_property
    def places(self) -> tuple[Array, ...]:
        """Rows of each task or label."""
        order = np.argsort(self.group, kind="stable")
        ends = np.searchsorted(self.group[order], np.arange(self.n_groups + 1))
        return tuple(order[a:b] for a, b in pairwise(ends))

    @cached_property
    def tau(self) -> float:
        """The temperature, to which all smooth families are drawn."""
        return fit_temperature(self._logits)

    @cached_property
    def against_rest(self) -> tuple[HeldOut, ...]:
        """Each class against the others."""
        return tuple(
            replace(self.one_class(k), y=(self.y == k).astype(int))  # type: ignore[call-arg, misc]
            for k in range(self.P.shape[1])
        )

    def take(self, rows: Any) -> HeldOut:
        """Some of the rows, with weights as they are."""
        parts = (self.P, self.base, self.group, self.trust, self.y, self.w, self.unit)
        return HeldOut(*(None if a is None else a[rows] for a in parts), self.n_units, self.n_groups)  # type: ignore


def fold_of(sample: HeldOut, k: int) -> Array:
    """A fold 0 ... k-1 for every row; units stay together.

    At random, and not stratified: folds with the same share of every class in every task would take the shares that
    tasks have by chance for their true ones. The draw is made on the order of the losses, so that it depends neither
    on the order of the rows nor on whether a row is there twice or has twice the weight.
    """
    unit = np.unique(sample.unit, return_inverse=True)[1]
    n = int(unit.max()) + 1
    mass = np.bincount(unit, weights=sample.w, minlength=n)
    own = np.maximum(sample.P[np.arange(len(unit)), sample.y], np.finfo(float).tiny)
    loss = np.bincount(unit, weights=-sample.w * np.log(own), minlength=n) / mass
    fold = np.empty(n, dtype=int)
    fold[np.argsort(np.round(loss, 9), kind="stable")] = np.random.default_rng(0).permutation(n) % k
    return fold[unit]
