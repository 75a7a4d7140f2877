"""Trials of labels that are known in part: every fold is refitted, by conjugate gradients."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from leastwise.basis import Basis, Design
from leastwise.heldout import Held
from leastwise.heldout.label_refits import LabelRefits
from leastwise.heldout.labels import Family, Tied
from leastwise.labels.relation import Relation
from leastwise.linalg.kronecker import solve_spectral
from leastwise.linalg.spectrum import Spectrum
from leastwise.selection.labels import LabelRows, LabelTrial
from leastwise.selection.trial import Settings

Array = np.ndarray


class IncompleteTrial(LabelTrial):
    """Held-out scores of many labels, each row counting for the labels that it has, by refits.

    There is no closed form: what is known differs from label to label, and then no rotation takes them apart. Each
    fold's rows are decomposed once for all ridges and sharings; conjugate gradients do the rest, each time from the
    solution at the last ridge.

    With the penalty on the coefficients a row's basis function has the row's weight, as elsewhere.
    """

    streams = True

    def __init__(
        self,
        rows: LabelRows,
        basis: Basis,
        settings: Settings,
        relation: Relation,
        families: list[Family],
        tol: float = 1e-6,
        max_iter: int = 1000,
    ) -> None:
        super().__init__(rows, basis, settings, relation, families)
        self.root, self.Z = np.ones_like(self.root), rows.targets(settings.n_outputs)
        self.tol, self.max_iter = tol, max_iter

    def roughly(self, tol: float) -> IncompleteTrial:
        """The trial with another tolerance, for comparisons; what is decomposed is kept."""
        other = copy.copy(self)
        other.tol = max(tol, self.tol)
        return other

    @property
    def by_refits(self) -> bool:
        """Always."""
        return True

    def designs(self, sigma: float, deletes: bool = True) -> list[Design]:
        """The design; its columns have the rows' weights where every row is a centre with a penalty of its own."""
        (design,) = super().designs(sigma, deletes)
        if not self.basis.weighted:
            return [design]
        column = np.sqrt(self.rows.multiplicity)
        even = np.ptp(column) <= 1e-12 * column.max()  # then the kernel stays symmetric
        return [replace(design, column=column, square=design.square and even)]

    def heldout(self, sigma: float, count: int) -> Callable[[float], Held]:
        """A function from alpha to held-out scores at this sigma and sharing."""
        base, ties = self._base(sigma), self.ties
        assert isinstance(base, LabelRefits)
        last: dict = {}

        def at(alpha: float) -> Held:
            F = np.empty_like(self.Z)
            for k, (rows, stay, left, spectrum) in enumerate(base.fits()):
                rho = self.least(alpha) / self.unit * float(np.sum(self.rows.w[stay]))
                for j, tie in enumerate(ties):
                    Theta, a, last[k, j] = self.solve(spectrum, tie, stay, rho, last.get((k, j)))
                    c = tie.family.columns
                    F[np.ix_(rows, c.ravel())] = (
                        base.design.features(rows, left) @ Theta.reshape(len(Theta), -1) + a.ravel()
                    )
            return Held(F)

        return at

    def solve(
        self, spectrum: Spectrum | None, tie: Tied, rows: Array, rho: float, last: Any = None
    ) -> tuple[Array, Array, Any]:
        """Coefficients (b, c, T), intercepts (c, T), and the story, which also serves as a start for other ridges."""
        Z = np.ascontiguousarray(tie.take(self.Z[rows]).transpose(1, 0, 2))
        W = self.rows.W[rows][:, tie.family.labels]
        if spectrum is None:  # all basis functions are gone: the intercept remains
            mean = np.sum(W * Z, axis=1) / np.maximum(np.sum(W, axis=0), np.finfo(W.dtype).tiny)
            return np.zeros((0, len(Z), Z.shape[2])), mean if self.settings.bias else 0 * mean, None
        found = solve_spectral(
            spectrum.U,
            np.sqrt(spectrum.g),
            tie.modes,
            Z,
            W,
            rho,
            bias=self.settings.bias,
            tol=self.tol,
            max_iter=self.max_iter,
            start=None if last is None else last.Q,
        )
        root = np.sqrt(spectrum.g)
        # The coefficients are on U sqrt(g); those on the basis functions follow (see Spectrum).
        scale = np.where(root > 0, spectrum.s / np.where(root > 0, root, 1), 0)
        Theta = spectrum.V @ (scale[:, None] * found.Q.transpose(1, 0, 2).reshape(len(root), -1))
        return Theta.reshape(len(Theta), *found.Q.shape[::2]), found.intercept, found
