"""Recalibration: maps from the probabilities of a model to better calibrated ones, and families of them.

Every family has parameters for all rows together and, where there are several tasks or labels, parameters for each of
them that are shrunk towards the common ones, more strongly the fewer rows it has.

``FAMILIES`` lists all names that ``method=`` of ``Recalibrated`` accepts, simplest first. A new family is
one entry there::

    FAMILIES["name"] = Family(fit)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from scipy.special import softmax

from leastwise.calibration.calibrators import ClipNormalise
from leastwise.calibration.label_calibrators import stairs
from leastwise.calibration.logits import (
    Logits,
    centred,
    fit_near,
    fit_slopes,
    fit_temperature,
    matrices,
    off_diagonal,
    slopes,
)

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

    def log_ratios(self, floor: float) -> Array:
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
        E, shares = given.log_ratios(self.floor), np.exp(given.base)
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
    max_logit : float
        s is cut off here, so that the map increases beyond the rows of its fit too.
    floor : float
    """

    tau: Array
    D: Array
    u: Array
    b: Array
    max_logit: float
    floor: float

    def proba(self, given: Predictions) -> Array:
        """Probabilities."""
        E, shares = given.log_ratios(self.floor), np.exp(given.base)
        S = centred(E, self.max_logit)
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
        weight = (1 - self.floor) * (1.0 if given.in_domain is None else given.in_domain[:, None])
        return weight * P + (1 - weight) * shares


def _interpolate(P: Array, corners: tuple[tuple[Array, Array], ...]) -> Array:
    return np.column_stack([np.interp(p, *xy) for p, xy in zip(P.T, corners, strict=True)])


# --------------------------------------------------------------------- families


#: ``group_pull`` is chosen from these, in numbers of rows.
GROUP_PULLS = (1000.0, 100.0, 10.0)


@dataclass(frozen=True)
class CalibrationSet(Predictions):
    """Held-out predictions with the true classes.

    Attributes
    ----------
    y : ndarray of int of shape (n,)
        Codes of the classes.
    w : ndarray of shape (n,)
        Weights; those of a unit sum to about 1.
    unit : ndarray of int of shape (n,)
        Codes of independent observations: the rows of a group are one unit, and so are the labels of a row.
    n_units : int
        Number of units of the whole set, also if these rows are a part of it.
    n_groups : int
    """

    y: Array = None  # type: ignore[assignment]
    w: Array = None  # type: ignore[assignment]
    unit: Array = None  # type: ignore[assignment]
    n_units: int = 0
    n_groups: int = 1

    @property
    def floor(self) -> float:
        """Weight of the class shares in every recalibrated probability."""
        return 1 / (self.n_units + 2)

    @property
    def targets(self) -> Array:
        """One-hot except for the floor (Platt 2000, for many classes), so that the best slope is finite."""
        T = self.floor * np.exp(self.base)
        T[np.arange(len(T)), self.y] += 1 - self.floor
        return T

    def logits(self, kind: str) -> Logits:
        """The likelihood of a smooth family on these rows."""
        return replace(self._logits, kind=kind)

    @cached_property
    def _logits(self) -> Logits:
        in_domain = np.ones(len(self.w)) if self.in_domain is None else self.in_domain
        E, base, T = (np.asfortranarray(a) for a in (self.log_ratios(self.floor), self.base, self.targets))
        return Logits("temperature", E, base, T, self.w, in_domain, float(np.abs(centred(E)).max(initial=0.0)))

    @cached_property
    def places(self) -> tuple[Array, ...]:
        """Rows of each task or label."""
        order = np.argsort(self.group, kind="stable")
        ends = np.searchsorted(self.group[order], np.arange(self.n_groups + 1))
        return tuple(order[a:b] for a, b in pairwise(ends))

    @cached_property
    def tau(self) -> float:
        """The temperature, towards which all smooth families are shrunk."""
        return fit_temperature(self._logits)

    @cached_property
    def against_rest(self) -> tuple[CalibrationSet, ...]:
        """Each class against the rest."""
        return tuple(
            replace(self.one_class(k), y=(self.y == k).astype(int))  # type: ignore[call-arg, misc]
            for k in range(self.P.shape[1])
        )

    def take(self, rows: Any) -> CalibrationSet:
        """Some of the rows, with unchanged weights."""
        parts = (self.P, self.base, self.group, self.in_domain, self.y, self.w, self.unit)
        return CalibrationSet(*(None if a is None else a[rows] for a in parts), self.n_units, self.n_groups)  # type: ignore


@dataclass(frozen=True)
class Setting:
    """A family with its hyperparameters.

    Attributes
    ----------
    family : str or None
        None leaves the probabilities unchanged.
    pull : float
        Strength of the shrinkage towards a temperature, in rows; for families with more parameters.
    group_pull : float
        Strength of the shrinkage of a task or label towards the common parameters, in rows; inf has common
        parameters only.
    """

    family: str | None
    pull: float = 100.0
    group_pull: float = np.inf


# ------------------------------------------------------------------------ fits


def _fit_thetas(
    sample: CalibrationSet, setting: Setting, kind: str, starts: list[Array], factors: Array | float = 1.0
) -> list[Array]:
    """Parameters of every task or label, if they have their own, and last those of all rows."""
    pooled = sample.logits(kind)
    centre = fit_slopes(pooled, sample.tau, setting.pull, starts[-1] if starts else None, factors)
    thetas = []
    if sample.n_groups > 1 and np.isfinite(setting.group_pull):
        h = factors * pooled.curvature(pooled.at(centre)[1])
        firsts = starts[:-1] if len(starts) > 1 else [None] * sample.n_groups
        for rows, first in zip(sample.places, firsts, strict=True):
            thetas.append(fit_near(pooled.take(rows), centre, h, setting.group_pull, first) if len(rows) else centre)
    return [*thetas, centre]


def _fit_linear(
    sample: CalibrationSet, setting: Setting, near: Recalibrator | None, kind: str, structured: bool = False
) -> Linear:
    starts = []
    if isinstance(near, Linear):
        starts = [slopes(kind, W, b) for W, b in zip(near.W, near.b, strict=True)]
    c = sample.P.shape[1]
    thetas = _fit_thetas(sample, setting, kind, starts, off_diagonal(c) if structured else 1.0)
    W, b = zip(*(matrices(kind, theta, c) for theta in thetas), strict=True)
    return Linear(np.stack(W), np.stack(b), sample.floor)


def _fit_quadratic(sample: CalibrationSet, setting: Setting, near: Recalibrator | None) -> Quadratic:
    starts = list(np.hstack([near.tau, near.D, near.u, near.b])) if isinstance(near, Quadratic) else []
    thetas = np.stack(_fit_thetas(sample, setting, "quadratic", starts))
    D, u, b = np.split(thetas[:, 1:], 3, axis=1)
    return Quadratic(thetas[:, :1], D, u, b, sample.logits("quadratic").max_logit, sample.floor)


def _fit_beta(sample: CalibrationSet, setting: Setting, near: Recalibrator | None) -> Linear | OneVersusRest:
    """Beta calibration: with two classes that of vector, otherwise one for each class against the rest."""
    c = sample.P.shape[1]
    if c == 2:
        return _fit_linear(sample, setting, near, "vector")
    starts = near.parts if isinstance(near, OneVersusRest) else [None] * c
    parts = zip(sample.against_rest, starts, strict=True)
    return OneVersusRest(tuple(_fit_linear(one, setting, start, "vector") for one, start in parts))


def _fit_steps(sample: CalibrationSet, setting: Setting, near: Recalibrator | None) -> Steps:
    parts, own = [], []
    if sample.n_groups > 1 and np.isfinite(setting.group_pull):
        for members in sample.places:
            rows = sample.take(members)
            parts.append(_class_stairs(rows))
            own.append(rows.w.sum() / (rows.w.sum() + setting.group_pull))
    return Steps((*parts, _class_stairs(sample)), np.array([*own, 0.0]), sample.floor)


def _class_stairs(sample: CalibrationSet) -> tuple[tuple[Array, Array], ...]:
    shares = sample.w @ np.exp(sample.base) / max(sample.w.sum(), np.finfo(float).tiny)
    columns = zip(sample.P.T, shares, strict=True)
    if len(shares) == 2:  # the second is one minus the first
        x, p = stairs(sample.P[:, 0], sample.y == 0, sample.w, float(shares[0]))
        return (x, p), (1 - x[::-1], 1 - p[::-1])
    return tuple(stairs(p, sample.y == k, sample.w, float(s)) for k, (p, s) in enumerate(columns))


# ------------------------------------------------------------------- the table


@dataclass(frozen=True)
class Family:
    """A value of ``method=`` of ``Recalibrated``.

    Attributes
    ----------
    fit : callable
        ``fit(sample, setting, near)`` returns a Recalibrator; parameters as in :func:`fit_family`.
    auto : callable, optional
        Maps the number of classes, and whether tasks or labels have their own parameters, to the number of
        parameters; None if ``method="auto"`` does not try the family.
    penalised : bool
        True if the fit depends on ``Setting.pull``.
    group_pulls : tuple of float
        Values of ``Setting.group_pull`` to choose from.
    pull_from : str, optional
        A family whose chosen pull is the least one to try.
    """

    fit: Callable[[CalibrationSet, Setting, Recalibrator | None], Recalibrator]
    auto: Callable[[int, bool], int | None] = lambda c, grouped: None
    penalised: bool = False
    group_pulls: tuple[float, ...] = GROUP_PULLS
    pull_from: str | None = None


#: Every allowed name, simplest first: if held-out rows do not separate two families the first one is taken.
FAMILIES: dict[str | None, Family] = {
    None: Family(lambda sample, setting, near: Unchanged(), lambda c, grouped: 0, group_pulls=()),
    "temperature": Family(partial(_fit_linear, kind="temperature"), lambda c, grouped: 1),
    "vector": Family(partial(_fit_linear, kind="vector"), lambda c, grouped: 2 * c if c > 2 else None, True),
    "beta": Family(_fit_beta, lambda c, grouped: 6 if c == 2 else None, True),
    "quadratic": Family(_fit_quadratic, penalised=True),
    "isotonic": Family(_fit_steps, group_pulls=(100.0,)),
    "structured": Family(partial(_fit_linear, kind="dirichlet", structured=True), penalised=True, pull_from="vector"),
    "dirichlet": Family(
        partial(_fit_linear, kind="dirichlet"),
        lambda c, grouped: c * c + c if c > 2 and not grouped else None,
        penalised=True,
        pull_from="vector",
    ),
}


def fit_family(sample: CalibrationSet, setting: Setting, near: Recalibrator | None = None) -> Recalibrator:
    """The map of this family, fitted to held-out rows.

    ``near`` is a map of the same family, fitted to other rows or with other pulls, to start from. It changes the time
    of the fit, not its result.
    """
    return FAMILIES[setting.family].fit(sample, setting, near)
