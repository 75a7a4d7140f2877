"""Recalibration: the choice of a family and its pulls by cross-fitted log-loss on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leastwise.calibration.maps import FAMILIES, CalibrationSet, Recalibrator, Setting, fit_family
from leastwise.metrics.probabilities import class_log_losses

Array = np.ndarray

#: Folds of the held-out rows.
FOLDS = 5
#: ``pull`` is chosen from these, in numbers of rows.
PULLS = (1000.0, 100.0, 10.0)
#: A simpler family, or a stronger pull, is taken within this many standard errors of the best. Parameters of tasks or
#: labels need a larger margin, since they are many and overfit easily.
NOISE, GROUP_NOISE = 1.0, 2.0
#: "auto" leaves out families with fewer units than this per parameter.
UNITS = 5


@dataclass(frozen=True)
class Choice:
    """The chosen family with its maps.

    Attributes
    ----------
    setting : Setting
    maps : tuple of Recalibrator
        One for every sample, fitted to all of its rows.
    P : tuple of ndarray
        Cross-fitted probabilities: those of each row by a map that was fitted without it.
    scores : dict
        Log-loss of these, for the best setting of every family that was tried.
    """

    setting: Setting
    maps: tuple[Recalibrator, ...]
    P: tuple[Array, ...]
    scores: dict[str | None, float]


@dataclass(frozen=True)
class _Folded:
    """A sample with its folds: rows, the other rows, and the fold itself."""

    sample: CalibrationSet
    parts: tuple[tuple[Array, CalibrationSet, CalibrationSet], ...]

    @staticmethod
    def of(sample: CalibrationSet) -> _Folded:
        n = len(np.unique(sample.unit))
        if n < 2:
            return _Folded(sample, ())
        fold = fold_of(sample, min(FOLDS, n))
        masks = [fold == k for k in np.unique(fold)]
        return _Folded(sample, tuple((rows, sample.take(~rows), sample.take(rows)) for rows in masks))

    def cross_fitted(self, setting: Setting, near: Recalibrator | None) -> tuple[Recalibrator, Array]:
        """The map of all rows, and the probabilities of every row by the map of the other folds."""
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


def choose_family(samples: Sequence[CalibrationSet], method: Any = "auto") -> Choice:
    """The family with the least held-out log-loss, or the simplest that is not significantly worse.

    Parameters
    ----------
    samples : sequence of CalibrationSet
        Usually one; labels with another number of classes are another sample. Codes of units are common to all.
    method : str, None or sequence of names
        A key of ``FAMILIES`` takes that family and chooses its pulls only. A sequence chooses among its names and
        None, which leaves probabilities unchanged. "auto" chooses among the families that have ``Family.auto``.

    Notes
    -----
    The first family in the order of ``FAMILIES`` is taken whose loss exceeds the least by no more than one standard
    error of the difference over units. Pulls are chosen in the same way, stronger ones first; parameters of tasks or
    labels have to gain two standard errors. A full matrix is shrunk towards the temperature at least as strongly as a
    diagonal one, if both are tried. Probabilities are never left unchanged if some are 0: one new row of such a class
    would have an unbounded loss.
    """
    folded = [_Folded.of(sample) for sample in samples]
    tried: dict[str | None, _Tried] = {}
    for name in _families(samples, method):
        stronger = tried.get(FAMILIES[name].pull_from) if FAMILIES[name].pull_from else None
        least = 0.0 if stronger is None else stronger.setting.pull
        tried[name] = _best_setting(folded, name, [pull for pull in PULLS if pull >= least])
    if method is None or (isinstance(method, str) and method != "auto"):
        taken = tried[method]
    else:
        zeros = any((sample.P == 0).any() for sample in samples)
        taken = _simplest([t for name, t in tried.items() if name is not None or not zeros or len(tried) == 1])
    return Choice(taken.setting, taken.maps, taken.P, {name: t.loss for name, t in tried.items()})


def fold_of(sample: CalibrationSet, k: int) -> Array:
    """A fold 0 ... k-1 for every row; units stay together.

    At random, and not stratified: folds with the same share of every class in every task would treat the shares that
    tasks have by chance as their true ones. The draw is made on the order of the losses, so that it depends neither
    on the order of the rows nor on whether a row is there twice or has twice the weight.
    """
    unit = np.unique(sample.unit, return_inverse=True)[1]
    n = int(unit.max()) + 1
    mass = np.bincount(unit, weights=sample.w, minlength=n)
    loss = np.bincount(unit, weights=sample.w * class_log_losses(sample.P, sample.y), minlength=n) / mass
    fold = np.empty(n, dtype=int)
    fold[np.argsort(np.round(loss, 9), kind="stable")] = np.random.default_rng(0).permutation(n) % k
    return fold[unit]


def _families(samples: Sequence[CalibrationSet], method: Any) -> list[str | None]:
    """Names to try, simplest first: those that were given and None, or those with few enough parameters."""
    if method != "auto":
        wanted = {None, *([method] if isinstance(method, str | None) else method)}
        return [name for name in FAMILIES if name in wanted]
    c, units = max(sample.P.shape[1] for sample in samples), min(sample.n_units for sample in samples)
    grouped = any(sample.n_groups > 1 for sample in samples)
    counts = {name: family.auto(c, grouped) for name, family in FAMILIES.items()}
    return [name for name, count in counts.items() if count is not None and UNITS * count <= units]


def _best_setting(folded: Sequence[_Folded], name: str | None, pulls: Sequence[float]) -> _Tried:
    """Choose the pull first, then the pull of tasks or labels towards the common parameters."""
    family = FAMILIES[name]
    best = _simplest(_falling(folded, [Setting(name, pull) for pull in (pulls if family.penalised else pulls[:1])]))
    if all(f.sample.n_groups == 1 for f in folded):
        return best
    settings = [replace(best.setting, group_pull=pull) for pull in family.group_pulls]
    return _simplest(_falling(folded, settings, best), GROUP_NOISE)


def _falling(folded: Sequence[_Folded], settings: Sequence[Setting], before: _Tried | None = None) -> list[_Tried]:
    """Settings tried one after another as long as the loss falls; ``before`` was tried before the first."""
    tried = [] if before is None else [before]
    for setting in settings:
        tried.append(_try(folded, setting, tried[-1] if tried else None))
        if len(tried) > 1 and tried[-1].loss >= tried[-2].loss:
            break
    return tried


def _simplest(tried: Sequence[_Tried], noise: float = NOISE) -> _Tried:
    """The first whose loss is within the noise of the best."""
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
