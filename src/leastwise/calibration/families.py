"""Families of maps from probabilities to better ones, each fitted to held-out rows.

Every one has parameters for all rows together and, where there are several tasks or labels, parameters for each of
them that are drawn to the common ones, the more the fewer rows it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import softmax

from leastwise.calibration.calibrators import ClipNormalise
from leastwise.calibration.label_calibrators import stairs
from leastwise.calibration.newton import fit_near, fit_slopes, matrices, slopes
from leastwise.calibration.recalibration_sample import Given, HeldOut

Array = np.ndarray

#: From the simplest on; where held-out rows do not tell two apart the first one is taken.
FAMILIES = (None, "temperature", "vector", "beta", "isotonic", "dirichlet")


class Recalibrator(Protocol):
    """Probabilities in, probabilities out."""

    def proba(self, given: Given) -> Array:
        """Probabilities of shape (n, c); rows sum to one."""
        ...


@dataclass(frozen=True)
class Setting:
    """What there is to choose.

    Attributes
    ----------
    family : str or None
        None leaves the probabilities as they are.
    pull : float
        How many rows speak for a temperature, in the fit of families that have more parameters.
    group_pull : float
        How many rows speak for the common parameters, in the fit of those of a task or label; inf has common
        ones only.
    """

    family: str | None
    pull: float = 100.0
    group_pull: float = np.inf


@dataclass(frozen=True)
class Unchanged:
    """Probabilities as they are."""

    def proba(self, given: Given) -> Array:
        """The probabilities that were given."""
        return given.P


@dataclass(frozen=True)
class Linear:
    """Logits linear in the evidence, see :mod:`leastwise.calibration.newton`.

    Attributes
    ----------
    W : ndarray of shape (G + 1, c, c)
    b : ndarray of shape (G + 1, c)
        Of every task or label; the last are the common ones. With G = 0 these are for all rows.
    floor : float
    """

    W: Array
    b: Array
    floor: float

    def proba(self, given: Given) -> Array:
        """Probabilities."""
        E, shares = given.evidence(self.floor), np.exp(given.base)
        group = given.group if len(self.W) > 1 else np.full(len(E), -1)
        L = np.empty_like(E)
        for g in np.unique(group):
            rows = group == g
            trust = 1.0 if given.trust is None else given.trust[rows, None]
            L[rows] = given.base[rows] + E[rows] @ self.W[g].T + trust * self.b[g]
        return (1 - self.floor) * softmax(L, axis=1) + self.floor * shares


@dataclass(frozen=True)
class OneVersusRest:
    """A map for each class against the others; divided by the sum."""

    parts: tuple[Recalibrator, ...]

    def proba(self, given: Given) -> Array:
        """Probabilities."""
        Q = np.column_stack([part.proba(given.one_class(k))[:, 1] for k, part in enumerate(self.parts)])
        return Q / Q.sum(axis=1, keepdims=True)


@dataclass(frozen=True)
class Steps:
    """One monotone function per class, as in :class:`leastwise.calibration.calibrators.Isotonic`.

    Attributes
    ----------
    corners : tuple of tuples of (ndarray, ndarray)
        For every task or label and last for all rows: the corners of each class.
    own : ndarray of shape (G + 1,)
        How much of the answer is a task's or label's own, the rest being the common one.
    floor : float
    """

    corners: tuple[tuple[tuple[Array, Array], ...], ...]
    own: Array
    floor: float

    def proba(self, given: Given) -> Array:
        """Probabilities."""
        group = given.group if len(self.own) > 1 else np.full(len(given.P), -1)
        P = _climb(given.P, self.corners[-1])
        for g in np.unique(group[group >= 0]):
            rows = group == g
            P[rows] += self.own[g] * (_climb(given.P[rows], self.corners[g]) - P[rows])
        shares = np.exp(given.base)
        P = ClipNormalise(shares).proba(P)
        believed = (1 - self.floor) * (1.0 if given.trust is None else given.trust[:, None])
        return believed * P + (1 - believed) * shares


def fit_family(sample: HeldOut, setting: Setting, near: Recalibrator | None = None) -> Recalibrator:
    """The map of this family, fitted to held-out rows.

    ``near`` is a map of the same family, fitted to other rows or with other pulls, to start from. It changes the time
    that the fit takes, and nothing else.
    """
    family, c = setting.family, sample.P.shape[1]
    if family is None:
        return Unchanged()
    if family == "isotonic":
        return _fit_steps(sample, setting.group_pull)
    if family == "beta" and c > 2:
        starts = near.parts if isinstance(near, OneVersusRest) else [None] * c
        return OneVersusRest(
            tuple(fit_family(one, setting, first) for one, first in zip(sample.against_rest, starts, strict=True))
        )
    kind = "vector" if family == "beta" else family
    return _fit_linear(sample, kind, setting, near if isinstance(near, Linear) else None)


def _fit_linear(sample: HeldOut, kind: str, setting: Setting, near: Linear | None) -> Linear:
    starts = [None] if near is None else [slopes(kind, W, b) for W, b in zip(near.W, near.b, strict=True)]
    everyone = sample.logits(kind)
    centre = fit_slopes(everyone, sample.tau, setting.pull, starts[-1])
    thetas = []
    if sample.n_groups > 1 and np.isfinite(setting.group_pull):
        h = everyone.curvature(everyone.at(centre)[1])
        firsts = starts[:-1] if len(starts) > 1 else [None] * sample.n_groups
        for rows, first in zip(sample.places, firsts, strict=True):
            thetas.append(
                fit_near(everyone.take(rows), centre, h, setting.group_pull, first) if len(rows) else centre
            )
    W, b = zip(*(matrices(kind, theta, sample.P.shape[1]) for theta in [*thetas, centre]), strict=True)
    return Linear(np.stack(W), np.stack(b), sample.floor)


def _fit_steps(sample: HeldOut, group_pull: float) -> Steps:
    parts, own = [], []
    if sample.n_groups > 1 and np.isfinite(group_pull):
        for here in sample.places:
            rows = sample.take(here)
            parts.append(_stairs_of(rows))
            own.append(rows.w.sum() / (rows.w.sum() + group_pull))
    return Steps((*parts, _stairs_of(sample)), np.array([*own, 0.0]), sample.floor)


def _stairs_of(sample: HeldOut) -> tuple[tuple[Array, Array], ...]:
    shares = sample.w @ np.exp(sample.base) / max(sample.w.sum(), np.finfo(float).tiny)
    columns = zip(sample.P.T, shares, strict=True)
    if len(shares) == 2:  # the second is the first turned round
        x, p = stairs(sample.P[:, 0], sample.y == 0, sample.w, float(shares[0]))
        return (x, p), (1 - x[::-1], 1 - p[::-1])
    return tuple(stairs(p, sample.y == k, sample.w, float(s)) for k, (p, s) in enumerate(columns))


def _climb(P: Array, corners: tuple[tuple[Array, Array], ...]) -> Array:
    return np.column_stack([np.interp(p, *xy) for p, xy in zip(P.T, corners, strict=True)])
