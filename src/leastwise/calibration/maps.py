"""Recalibration maps: from the probabilities of a model to better calibrated ones."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.special import softmax

from leastwise.calibration.calibrators import ClipNormalise
from leastwise.calibration.logits import centred

Array = np.ndarray


@dataclass(frozen=True)
class Predictions:
    """Probabilities of some rows before recalibration.

    Attributes
    ----------
    P : ndarray of shape (n, c)
        Probabilities; rows sum to one.
    base : ndarray of shape (n, c)
        Logarithms of the class shares, which are the prediction where nothing is known.
    group : ndarray of int of shape (n,)
        Codes of tasks or labels, which select the parameters of a row; -1 for a task that was not in training.
    in_domain : ndarray of shape (n,), optional
        1 for rows near the training data, 0 far away; None means 1 everywhere.
    """

    P: Array
    base: Array
    group: Array
    in_domain: Array | None = None

    def evidence(self, floor: float) -> Array:
        """Log-likelihood ratios log p - log(class shares); mixing in a share ``floor`` of these keeps them finite."""
        shares = np.exp(self.base)
        return np.log((1 - floor) * self.P + floor * shares) - self.base

    def one_class(self, k: int) -> Predictions:
        """Class k against the rest, as the second of two classes."""
        p, s = self.P[:, k], np.exp(self.base[:, k])
        return replace(self, P=np.column_stack([1 - p, p]), base=np.log(np.column_stack([1 - s, s])))


class Recalibrator(Protocol):
    """A map from probabilities to probabilities."""

    def proba(self, given: Predictions) -> Array:
        """Probabilities of shape (n, c); rows sum to one."""
        ...


@dataclass(frozen=True)
class Unchanged:
    """The identity."""

    def proba(self, given: Predictions) -> Array:
        """The given probabilities."""
        return given.P


@dataclass(frozen=True)
class Linear:
    """Logits linear in the log-likelihood ratios, see :mod:`leastwise.calibration.logits`.

    Attributes
    ----------
    W : ndarray of shape (G + 1, c, c)
    b : ndarray of shape (G + 1, c)
        For every task or label; the last ones are common. With G = 0 these apply to all rows.
    floor : float
    """

    W: Array
    b: Array
    floor: float

    def proba(self, given: Predictions) -> Array:
        """Probabilities."""
        E, shares = given.evidence(self.floor), np.exp(given.base)
        group = given.group if len(self.W) > 1 else np.full(len(E), -1)
        L = np.empty_like(E)
        for g in np.unique(group):
            rows = group == g
            in_domain = 1.0 if given.in_domain is None else given.in_domain[rows, None]
            L[rows] = given.base[rows] + E[rows] @ self.W[g].T + in_domain * self.b[g]
        return (1 - self.floor) * softmax(L, axis=1) + self.floor * shares


@dataclass(frozen=True)
class Quadratic:
    """Logits quadratic in the centred log-likelihood ratios s, see :mod:`leastwise.calibration.logits`.

    Attributes
    ----------
    tau : ndarray of shape (G + 1, 1)
        Slope that all classes share.
    D, u, b : ndarray of shape (G + 1, c)
        Differences of slopes, factors of s^2, and intercepts. As in ``Linear`` the last ones are common.
    reach : float
        s is cut off here, so that the map increases beyond the rows of its fit too.
    floor : float
    """

    tau: Array
    D: Array
    u: Array
    b: Array
    reach: float
    floor: float

    def proba(self, given: Predictions) -> Array:
        """Probabilities."""
        E, shares = given.evidence(self.floor), np.exp(given.base)
        S = centred(E, self.reach)
        g = given.group if len(self.b) > 1 else np.full(len(E), -1)
        in_domain = 1.0 if given.in_domain is None else given.in_domain[:, None]
        L = given.base + self.tau[g] * E + (self.D[g] + self.u[g] * S) * S + in_domain * self.b[g]
        return (1 - self.floor) * softmax(L, axis=1) + self.floor * shares


@dataclass(frozen=True)
class OneVersusRest:
    """A map of two classes for each class against the rest, divided by the sum."""

    parts: tuple[Recalibrator, ...]

    def proba(self, given: Predictions) -> Array:
        """Probabilities."""
        Q = np.column_stack([part.proba(given.one_class(k))[:, 1] for k, part in enumerate(self.parts)])
        return Q / Q.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Steps:
    """One monotone function per class, as in :class:`leastwise.calibration.calibrators.Isotonic`.

    Attributes
    ----------
    corners : tuple of tuples of (ndarray, ndarray)
        For every task or label, and last for all rows: the corners of each class.
    own : ndarray of shape (G + 1,)
        Weight of the functions of a task or label; the rest is the weight of the common ones.
    floor : float
    """

    corners: tuple[tuple[tuple[Array, Array], ...], ...]
    own: Array
    floor: float

    def proba(self, given: Predictions) -> Array:
        """Probabilities."""
        group = given.group if len(self.own) > 1 else np.full(len(given.P), -1)
        P = _interpolate(given.P, self.corners[-1])
        for g in np.unique(group[group >= 0]):
            rows = group == g
            P[rows] += self.own[g] * (_interpolate(given.P[rows], self.corners[g]) - P[rows])
        shares = np.exp(given.base)
        P = ClipNormalise(shares).proba(P)
        believed = (1 - self.floor) * (1.0 if given.in_domain is None else given.in_domain[:, None])
        return believed * P + (1 - believed) * shares


def _interpolate(P: Array, corners: tuple[tuple[Array, Array], ...]) -> Array:
    return np.column_stack([np.interp(p, *xy) for p, xy in zip(P.T, corners, strict=True)])
