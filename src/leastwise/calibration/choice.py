"""Which family, and how strong its pulls: by the log-loss of held-out rows, themselves held out in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from leastwise.calibration.families import FAMILIES, Recalibrator, Setting, fit_family
from leastwise.calibration.sample import HeldOut, fold_of

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
class _Tried:
    """A setting with its held-out probabilities, and the loss of every unit."""

    setting: Setting
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


def choose_family(samples: Sequence[HeldOut], method: str | None = "auto") -> Choice:
    """The family with the least held-out log-loss, or the simplest that is not told from it.

    Parameters
    ----------
    samples : sequence of HeldOut
        Most often one; rows with another number of classes are another sample. Units are labelled across all.
    method : {"auto", "temperature", "vector", "dirichlet", "beta", "isotonic", None}
        With a name that family is taken, and only its pulls are chosen; None leaves probabilities as they are.

    Notes
    -----
    Of the families in the order of ``FAMILIES`` the first is taken whose loss exceeds the least by no more than one
    standard error of the difference, counted over units. Pulls are chosen in the same way, the stronger ones first;
    parameters of tasks or labels have to gain two standard errors.
    """
    folds = [fold_of(sample, min(FOLDS, len(np.unique(sample.unit)))) for sample in samples]
    names = _families(samples) if method == "auto" else tuple(dict.fromkeys((None, method)))
    tried = [_best_setting(samples, folds, name) for name in names]
    taken = _simplest(tried) if method == "auto" else tried[-1]
    maps = tuple(fit_family(sample, taken.setting) for sample in samples)
    return Choice(taken.setting, maps, taken.P, {t.setting.family: t.loss for t in tried})


def _families(samples: Sequence[HeldOut]) -> tuple[str | None, ...]:
    """What "auto" tries. With two classes vector and dirichlet are beta; for tasks a full matrix each is too much."""
    c, units = max(sample.P.shape[1] for sample in samples), min(sample.n_units for sample in samples)
    count = {None: 0, "temperature": 1, "vector": 2 * c, "beta": 3 * c, "isotonic": 3 * c, "dirichlet": c * c + c}
    left_out = {"vector", "dirichlet"} if c == 2 else set()
    left_out |= {"dirichlet"} if any(sample.n_groups > 1 for sample in samples) else set()
    return tuple(name for name in FAMILIES if UNITS * count[name] <= units and name not in left_out)


def _best_setting(samples: Sequence[HeldOut], folds: Sequence[Array], name: str | None) -> _Tried:
    """The pull first, then the pull of tasks or labels to what they have in common."""
    pulls = PULLS if name in ("vector", "beta", "dirichlet") else PULLS[:1]
    best = _simplest(_falling(samples, folds, [Setting(name, pull) for pull in pulls]))
    if name is None or all(sample.n_groups == 1 for sample in samples):
        return best
    pulls = GROUP_PULLS[1:2] if name == "isotonic" else GROUP_PULLS
    own = _falling(samples, folds, [replace(best.setting, group_pull=pull) for pull in pulls])
    return _simplest([best, *own], GROUP_NOISE)


def _falling(samples: Sequence[HeldOut], folds: Sequence[Array], settings: Sequence[Setting]) -> list[_Tried]:
    """Settings tried one after another, as long as the loss falls."""
    tried = [_try(samples, folds, settings[0])]
    for setting in settings[1:]:
        tried.append(_try(samples, folds, setting))
        if tried[-1].loss >= tried[-2].loss:
            break
    return tried


def _simplest(tried: Sequence[_Tried], noise: float = NOISE) -> _Tried:
    """The first that is not told from the best."""
    best = min(tried, key=lambda t: t.loss)
    return next(t for t in tried if t.loss - best.loss <= noise * t.noise(best))


def _try(samples: Sequence[HeldOut], folds: Sequence[Array], setting: Setting) -> _Tried:
    P = tuple(_cross_fitted(sample, fold, setting) for sample, fold in zip(samples, folds, strict=True))
    n = 1 + max(int(sample.unit.max()) for sample in samples)
    losses, mass = np.zeros(n), np.zeros(n)
    for sample, p in zip(samples, P, strict=True):
        own = np.maximum(p[np.arange(len(p)), sample.y], np.finfo(float).eps)
        losses += np.bincount(sample.unit, weights=-sample.w * np.log(own), minlength=n)
        mass += np.bincount(sample.unit, weights=sample.w, minlength=n)
    return _Tried(setting, P, losses, mass)


def _cross_fitted(sample: HeldOut, fold: Array, setting: Setting) -> Array:
    """Probabilities of every row by the map that was fitted to the other folds."""
    P = sample.P.copy()
    if setting.family is None or fold.max() == 0:
        return P
    for k in np.unique(fold):
        P[fold == k] = fit_family(sample.take(fold != k), setting).proba(sample.take(fold == k))
    return P
