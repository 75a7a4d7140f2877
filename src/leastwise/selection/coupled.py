"""Trials of tasks tied together: the kernel between rows is multiplied by that between their tasks."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Self

import numpy as np

from leastwise.basis import Basis, Design
from leastwise.coupling import Coupling, Tie
from leastwise.heldout import Held, OwnBasisHeldout, Problem
from leastwise.linalg.whitening import Whitening, whitening
from leastwise.selection.plan import ARRAYS
from leastwise.selection.refits import Effort, Refits
from leastwise.selection.tied import TiedTrial
from leastwise.selection.trial import Outcome, Rows, Settings, Trial

Array = np.ndarray

#: Up to so many rows times tasks a row takes its basis function out of every task when it is held out.
OWN_LIMIT = 100_000


class CoupledTrial(TiedTrial):
    """Held-out scores of many tasks in the dual: ``H_ij = G_ij B[t_i, t_j]``, n x n whatever the number of tasks.

    G is the kernel itself where the penalty is on the function and every row is a centre, else the inner products of
    the designs. Centres that are fewer than the rows are places and nothing more: they stay when a row is held out.
    """

    sharing_costs = True

    def __init__(self, rows: Rows, basis: Basis, settings: Settings, coupling: Coupling) -> None:
        super().__init__(rows, basis, settings)
        assert rows.task is not None
        self.task, self.coupling = rows.task, coupling
        self.tie: Tie = coupling.at(1.0)
        self._kept: dict[float, Array] = {}

    def apart(self) -> Self:
        """The trial for a job of its own."""
        other = super().apart()
        other._kept = {}
        return other

    @property
    def room(self) -> int:
        """Bytes that a step takes at its peak: the Gram matrix has all rows, however few the centres."""
        return ARRAYS[self.settings.norm] * len(self.rows) ** 2 * self.rows.X.dtype.itemsize

    def weighing(self, weight: float) -> Self:
        """The trial with this weight for the linear part of a sum of kernels."""
        other = super().weighing(weight)
        other._kept = {}
        return other

    def retied(self, coupling: Coupling) -> CoupledTrial:
        """The trial with its tasks tied in another way."""
        other = copy.copy(self)
        other.coupling, other.tie = coupling, coupling.at(1.0)
        return other

    # ------------------------------------------------------------------ gram

    @property
    def plain(self) -> bool:
        """Whether the kernel itself is the Gram matrix."""
        return self.basis.square and self.settings.norm == "function"

    def features(self, sigma: float) -> Array:
        """The design whose inner products are the Gram matrix."""
        if self.settings.norm == "coefficients":
            K = Trial.kernel(self, sigma)
            return K * self.root if self.basis.weighted else K
        return self.whitened(sigma, self.coordinates(sigma))

    def coordinates(self, sigma: float) -> Whitening:
        """Coordinates of the centres, where the penalty is on the function."""
        return whitening(self.center_kernel(sigma))

    def gram(self, sigma: float) -> Array:
        """G, not yet coupled; not to be changed."""
        if sigma not in self._kept:
            self._kept.clear()
            if self.plain:
                G = Trial.kernel(self, sigma)
            else:
                Phi = self.features(sigma)
                G = Phi @ Phi.T
            self._kept[sigma] = G
        return self._kept[sigma]

    def kernel(self, sigma: float) -> Array:
        """The kernel of rows and tasks together."""
        return self.tie.couple(self.gram(sigma).copy(), self.task, self.task)

    def designs(self, sigma: float, deletes: bool = True) -> list[Design]:
        """One design for all outputs."""
        K, centring = self.kernel(sigma), self.centring()
        if centring is None:
            return [Design(K, None, self.root, None, square=True, function=True)]
        G = centring.gram(K if self.rows.equal_weights else K * self.root * self.root[:, None])
        return [Design(G, None, np.ones_like(self.root), None, square=True, function=True)]

    # --------------------------------------------------------------- held out

    def heldout(self, sigma: float, count: int) -> Callable[[float], Held]:
        """A function from alpha to held-out scores at this sigma; about ``count`` alphas are wanted."""
        split = self.rows.split_count
        problem = Problem(self.Z, self.root, self.bias, None, self.folds, self.centring(), split)
        if self.basis.square and not self.plain and len(self.rows) * len(self.tie.own) <= OWN_LIMIT:
            part = OwnBasisHeldout(problem, self.features(sigma), self.tie, self.task)
            return lambda alpha: part.at(alpha / self.unit)
        gram = self._part(problem, self.designs(sigma)[0], count)
        return lambda alpha: gram.at(alpha / self.unit)


class CoupledRefits(CoupledTrial, Refits):
    """Refits of many tasks: the kernel logistic regression of rows and tasks together."""

    def __init__(self, rows: Rows, basis: Basis, settings: Settings, coupling: Coupling, effort: Effort) -> None:
        Refits.__init__(self, rows, basis, settings, effort)
        assert rows.task is not None
        self.task, self.coupling, self.tie = rows.task, coupling, coupling.at(1.0)
        self._kept = {}
        self._pasts: dict[float, tuple[dict, set]] = {}

    def apart(self) -> Self:
        """The trial for a job of its own."""
        other = super().apart()
        other._pasts = {}
        return other

    def tied(self, sharing: float | None) -> Self:
        """The trial with this sharing, and with its own solutions to start from."""
        other = super().tied(sharing)
        if sharing is not None:
            other.past, other.unsettled = self._pasts.setdefault(sharing, ({}, set()))
        return other

    heldout = Refits.heldout

    @property
    def penalised(self) -> bool:
        """Never: with tasks tied, every row is a centre."""
        return False

    def judge(self, sigma: float, alpha: float, held: Held, last: Outcome | None) -> Outcome:
        """Score held-out predictions."""
        outcome = Refits.judge(self, sigma, alpha, held, last)
        outcome.sharing = self.tie.sharing
        return outcome

    def _gone(self, out: Array) -> Array | None:
        return None
