"""Held-out scores of some rows, from sums over all rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leastwise.heldout.problem import Held, Problem
from leastwise.linalg.cholesky import Cholesky
from leastwise.linalg.moments import Moments, MomentSpectrum, moment_spectrum

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
        folds = max(len(p.folds.singles) + len(p.folds.blocks), 1)
        rho = alpha * (m.mass - float(np.sum(p.root**2)) / folds)
        e, share = 1 / (s.g + rho), 1 / m.mass if s.bias else 0.0
        F = self.U @ (e[:, None] * s.right) + p.root[:, None] * (m.z * share)
        R = p.Z - F
        h = np.einsum("ij,j,ij->i", self.U, e, self.U) + share * p.root**2
        left = R / np.maximum(1 - h, np.finfo(float).eps)[:, None]
        for block in p.folds.blocks:
            some, v = self.U[block], p.root[block]
            H = (some * e) @ some.T + share * np.outer(v, v)
            left[block] = np.linalg.solve(np.eye(len(block)) - H, R[block])
        far = s.coefficients(alpha * m.mass)[1]
        return Held((p.Z - left) / p.root[:, None], far, freedom=float(np.sum(s.g * e)) + bool(s.bias))


@dataclass(frozen=True)
class FoldMomentHeldout:
    """Rows of few large folds: the sums of all folds but one make the model for that one.

    Attributes
    ----------
    Phi : ndarray of shape (m, b)
    fold : ndarray of int of shape (m,)
        Which of the parts each row belongs to.
    parts : list of Moments
        Sums of every fold.
    penalty : Cholesky or None
    bias : bool
    """

    Phi: Array
    fold: Array
    parts: list[Moments]
    penalty: Cholesky | None
    bias: bool

    @cached_property
    def spectra(self) -> list[MomentSpectrum]:
        """Of all folds but each."""
        whole = sum(self.parts[1:], self.parts[0])
        return [moment_spectrum(whole - part, self.penalty, self.bias) for part in self.parts]

    def at(self, alpha: float) -> Held:
        """Held-out scores at one alpha."""
        F, far, freedom = np.empty((len(self.Phi), self.parts[0].C.shape[1])), [], []
        for k, spectrum in enumerate(self.spectra):
            rho = alpha * spectrum.moments.mass
            theta, b = spectrum.coefficients(rho)
            rows = self.fold == k
            F[rows] = self.Phi[rows] @ theta + b
            far.append(b)
            freedom.append(float(np.sum(spectrum.g / (spectrum.g + rho))))
        return Held(F, np.mean(far, axis=0), freedom=float(np.mean(freedom)))
