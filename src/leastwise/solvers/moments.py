"""Held-out scores of some rows, from sums over all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from leastwise.linalg.moments import Moments, MomentSpectrum, moment_spectrum
from leastwise.solvers.heldout import Held, Problem

Array = np.ndarray


@dataclass(frozen=True)
class MomentHeldout:
    """Rows of small folds, each held out from the sums: what it adds to them is known.

    The basis functions are places: they stay when a row is held out. All folds have the ridge of the average one.

    Attributes
    ----------
    problem : Problem
        The rows in question; every fold is there with all of its rows.
    U : ndarray of shape (m, b)
        The rows along the eigenvectors (``MomentSpectrum.coordinates``), multiplied by the roots of their weights.
    spectrum : MomentSpectrum
        Of all rows.
    """

    problem: Problem
    U: Array
    spectrum: MomentSpectrum

    def at(self, alpha: float) -> Held:
        """Held-out scores at one alpha."""
        p, m, s = self.problem, self.spectrum.moments, self.spectrum
        rho = alpha * (m.mass - float(np.sum(p.root**2)) / max(p.n_folds, 1))
        e, share = 1 / (s.g + rho), 1 / m.mass if s.bias else 0.0
        F = self.U @ (e[:, None] * s.right) + p.root[:, None] * (m.z * share)
        R = p.Z - F
        h = np.einsum("ij,j,ij->i", self.U, e, self.U) + share * p.root**2
        each = h if p.count is None else h / p.count
        left = R / np.maximum(1 - each, np.finfo(float).eps)[:, None]
        for block in p.folds.blocks:
            left[block] = _without(self.U[block], e, p.root[block] if s.bias else None, share, R[block])
        return Held((p.Z - left) / p.root[:, None], freedom=float(np.sum(s.g * e)) + bool(s.bias))


@dataclass(frozen=True)
class FoldMomentHeldout:
    """Rows of few large folds: the sums of all folds but one make the model for that one.

    Attributes
    ----------
    Phi : ndarray of shape (m, b)
        Values of all basis functions.
    fold : ndarray of int of shape (m,)
        Which of the parts each row belongs to.
    parts : list of Moments
        Sums of every fold.
    bias : bool
    """

    Phi: Array
    fold: Array
    parts: list[Moments]
    bias: bool

    @cached_property
    def spectra(self) -> list[MomentSpectrum]:
        """Of all folds but each."""
        whole = sum(self.parts[1:], self.parts[0])
        return [moment_spectrum(whole - part, self.bias) for part in self.parts]

    def at(self, alpha: float) -> Held:
        """Held-out scores at one alpha."""
        held = self.solved(lambda spectrum: spectrum.coefficients(alpha * spectrum.moments.mass))
        freedom = [float(np.sum(s.g / (s.g + alpha * s.moments.mass))) for s in self.spectra]
        return replace(held, freedom=float(np.mean(freedom)))

    def solved(self, solve: Callable[[MomentSpectrum], tuple[Array, Array]]) -> Held:
        """The same with coefficients and intercepts of one's own."""
        F = np.empty((len(self.Phi), self.parts[0].C.shape[1]))
        for k, spectrum in enumerate(self.spectra):
            theta, b = solve(spectrum)
            rows = self.fold == k
            F[rows] = self.Phi[rows] @ theta + b
        return Held(F)


def _without(U: Array, e: Array, v: Array | None, share: float, R: Array) -> Array:
    """``(I - U e U' - share v v')^-1 R``, by a system of rows or of functions, whichever is smaller."""
    if v is not None:
        U, e = np.column_stack([U, v]), np.append(e, share)
    if len(U) <= U.shape[1]:
        return np.linalg.solve(np.eye(len(U)) - (U * e) @ U.T, R)
    return R + U @ np.linalg.solve(np.diag(1 / e) - U.T @ U, U.T @ R)
