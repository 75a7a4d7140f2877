"""Which family, and how strong its pulls: by the log-loss of held-out rows, themselves held out in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leastwise.calibration.families import FAMILIES, Recalibrator, Setting, fit_family
from leastwise.calibration.recalibration_sample import HeldOut, fold_of
from leastwise.metrics.losses import class_log_losses

Array = np.ndarray

#: Folds of the held-out rows.
FOLDS = 5
#: What ``pull`` and ``group_pull`` are chosen from.
PULLS = (1000.0, 100.0, 10.0)
GROUP_PULLS = (1000.0, 100.0, 10.0)
#: A simpler family, or a stronger pull, is taken within so many standard errors of the best. What tasks or labels
#: have of their own has to be told from chance more clearly, since it is much that can look good by chance.
NOISE, GROUP_NOISE = 1.0, 2.0
#: "auto" leaves out families with fewer units than this for each of their parameters.
UNITS = 5


@dataclass(frozen=True)
class Choice:
    """What was chosen.

    Attributes
    ----------
    setting : Setting
    maps : tuple of Recalibrator
        One for every sample, fitted to all of its rows.
    P : tuple of ndarray
        Probabilities of the held-out rows by maps that were fitted without them.
    scores : dict
        Log-loss of these, for the best setting of every family that was tried.
    """

    setting: Setting
    maps: tuple[Recalibrator, ...]
    P: tuple[Array, ...]
    scores: dict[str | None, float]


@dataclass(frozen=True)
class _Folded:
    """A sample, and parts of it with the rest: both are read once, whatever is tried on them."""

    sample: HeldOut
    parts: tuple[tuple[Array, HeldOut, HeldOut], ...]

    @staticmethod
    def of(sample: HeldOut) -> _Folded:
        n = len(np.unique(sample.unit))
        if n < 2:
            return _Folded(sample, ())
        fold = fold_of(sample, min(FOLDS, n))
        masks = [fold == k for k in np.unique(fold)]
        return _Folded(sample, tuple((rows, sample.take(~rows), sample.take(rows)) for rows in masks))

    def cross_fitted(self, setting: Setting, near: Recalibrator | None) -> tuple[Recalibrator, Array]:
        """The map of all rows, and probabilities of every row by the map that was fitted to the other folds."""
        P, whole = self.sample.P.copy(), fit_family(self.sample, setting, near)
        if setting.family is not None:
            for rows, rest, part in self.parts:
                P[rows] = fit_family(rest, setting, whole).proba(part)
        return whole, P


@dataclass(frozen=True)
class _Tried:
    """A setting with its maps, held-out probabilities, and the loss of every unit."""

    setting: Setting
    maps: tuple[Recalibrator, ...]
    P: tuple[Array, ...]
    losses: Array
    mass: Array

    @property
    def loss(self) -> float:
        return float(self.losses.sum() / self.mass.sum())

    def noise(self, other: _Tried) -> float:
        """Standard error of the difference of two losses."""
        gap = self.losses - other.losses
        return float(np.sqrt(np.sum((gap - self.mass * (self.loss - other.loss)) ** 2)) / self.mass.sum())


def choose_family(samples: Sequence[HeldOut], method: Any = "auto") -> Choice:
    """The family with the least held-out log-loss, or the simplest that is not told from it.

    Parameters
    ----------
    samples : sequence of HeldOut
        Most often one; rows with another number of classes are another sample. Units are labelled across all.
    method : {"auto", "temperature", "vector", "dirichlet", "beta", "isotonic", None} or sequence of names
        With a name that family is taken, and only its pulls are chosen; with several there is a choice among them and
        None, which leaves probabilities as they are.

    Notes
    -----
    Of the families in the order of ``FAMILIES`` the first is taken whose loss exceeds the least by no more than one
    standard error of the difference, counted over units. Pulls are chosen in the same way, the stronger ones first;
    parameters of tasks or labels have to gain two standard errors. A full matrix is drawn to the temperature at least
    as strongly as a diagonal one, where both are tried. Probabilities are never left as they are if some are 0.
    """
    folded = [_Folded.of(sample) for sample in samples]
    tried: dict[str | None, _Tried] = {}
    for name in _families(samples) if method == "auto" else _named(method):
        weakest = tried["vector"].setting.pull if name == "dirichlet" and "vector" in tried else 0.0
        tried[name] = _best_setting(folded, name, [pull for pull in PULLS if pull >= weakest])
    single = method is None or (isinstance(method, str) and method != "auto")
    taken = tried[method] if single else _simplest(_lasting(samples, tried))
    return Choice(taken.setting, taken.maps, taken.P, {name: t.loss for name, t in tried.items()})


def _lasting(samples: Sequence[HeldOut], tried: dict[str | None, _Tried]) -> list[_Tried]:
    """All, but not None where a class has the probability 0: one new row of it would cost without bounds."""
    zeros = any((sample.P == 0).any() for sample in samples)
    return [t for name, t in tried.items() if name is not None or not zeros or len(tried) == 1]


def _named(method: Any) -> tuple[str | None, ...]:
    """These families and none, from the simplest on."""
    wanted = {None, *([method] if isinstance(method, str | None) else method)}
    return tuple(name for name in FAMILIES if name in wanted)


def _families(samples: Sequence[HeldOut]) -> tuple[str | None, ...]:
    """What "auto" tries; for tasks or labels a full matrix each is too much."""
    c, units = max(sample.P.shape[1] for sample in samples), min(sample.n_units for sample in samples)
    count = {None: 0, "temperature": 1} | ({"beta": 6} if c == 2 else {"vector": 2 * c, "dirichlet": c * c + c})
    if any(sample.n_groups > 1 for sample in samples):
        count.pop("dirichlet", None)
    return tuple(name for name in count if UNITS * count[name] <= units)


def _best_setting(folded: Sequence[_Folded], name: str | None, pulls: Sequence[float]) -> _Tried:
    """The pull first, then the pull of tasks or labels to what they have in common."""
    drawn = name in ("vector", "beta", "dirichlet")
    best = _simplest(_falling(folded, [Setting(name, pull) for pull in (pulls if drawn else pulls[:1])]))
    if name is None or all(f.sample.n_groups == 1 for f in folded):
        return best
    pulls = GROUP_PULLS[1:2] if name == "isotonic" else GROUP_PULLS
    own = _falling(folded, [replace(best.setting, group_pull=pull) for pull in pulls], best)
    return _simplest(own, GROUP_NOISE)


def _falling(folded: Sequence[_Folded], settings: Sequence[Setting], before: _Tried | None = None) -> list[_Tried]:
    """Settings tried one after another, as long as the loss falls; ``before`` is the one before the first."""
    tried = [] if before is None else [before]
    for setting in settings:
        tried.append(_try(folded, setting, tried[-1] if tried else None))
        if len(tried) > 1 and tried[-1].loss >= tried[-2].loss:
            break
    return tried


def _simplest(tried: Sequence[_Tried], noise: float = NOISE) -> _Tried:
    """The first that is not told from the best."""
    best = min(tried, key=lambda t: t.loss)
    return next(t for t in tried if t.loss - best.loss <= noise * t.noise(best))


def _try(folded: Sequence[_Folded], setting: Setting, near: _Tried | None) -> _Tried:
    starts = [None] * len(folded) if near is None else near.maps
    found = [f.cross_fitted(setting, start) for f, start in zip(folded, starts, strict=True)]
    n = 1 + max(int(f.sample.unit.max()) for f in folded)
    losses, mass = np.zeros(n), np.zeros(n)
    for f, (_, P) in zip(folded, found, strict=True):
        losses += np.bincount(f.sample.unit, weights=f.sample.w * class_log_losses(P, f.sample.y), minlength=n)
        mass += np.bincount(f.sample.unit, weights=f.sample.w, minlength=n)
    maps, P = zip(*found, strict=True)
    return _Tried(setting, maps, P, losses, mass)
