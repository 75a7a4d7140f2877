"""What trials of tasks tied together have in common.

Trials of tasks tied together: the kernel between rows is multiplied by that between their tasks.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Self

import numpy as np

from leastwise.linalg.whitening import Whitening, whitening
from leastwise.problem.basis import Basis, Design
from leastwise.problem.coupling import Coupling, CouplingMatrix
from leastwise.problem.intercepts import Centring
from leastwise.solvers.evaluator import Candidate, Evaluator, Rows, Settings
from leastwise.solvers.heldout import Held, Problem
from leastwise.solvers.newton import RefitEvaluator, RefitOptions
from leastwise.solvers.own_basis import OwnBasisHeldout
from leastwise.solvers.search_rows import ARRAYS

Array = np.ndarray


class TaskEvaluator(Evaluator):
    """A trial of many tasks at one sharing, with intercepts of their own of one spread."""

    coupling: Coupling
    tie: CouplingMatrix
    spread: float = 0.0
    #: Spreads to choose from; none where tasks have no intercepts of their own.
    spreads: tuple[float, ...] = ()

    @property
    def bias(self) -> bool:
        """Whether there is an intercept that all tasks share; where each has a free one, there is no room for it."""
        return self.settings.bias and np.isfinite(self.spread)

    def centring(self) -> Centring | None:
        """What intercepts of the tasks' own do to the rows; None where there are none."""
        if self.spread == 0:
            return None
        assert self.rows.task is not None
        root = np.sqrt(self.rows.w).astype(self.rows.X.dtype)
        return Centring.of(self.rows.task, root, self.unit_spread, len(self.tie.own))

    @property
    def unit_spread(self) -> float:
        """The spread in units of the noise of a row of mean weight; as given it is for a row of weight 1."""
        return self.spread * self.rows.mass

    def described(self) -> str:
        """What there is to say of a trial beside sigma and alpha."""
        spread = f", spread {self.spread:.3g}" if self.spreads else ""
        return f", sharing {self.tie.sharing:.3g}{spread}{super().described()}"

    def spreading(self, spread: float) -> Self:
        """The trial with intercepts of this spread."""
        other = copy.copy(self)
        other.spread = spread
        return other

    def tied(self, sharing: float | None) -> Self:
        """The trial with this sharing; what was computed for the last sigma is kept for all sharings."""
        if sharing is None:
            return self
        other = copy.copy(self)
        other.tie = self.coupling.at(sharing)
        return other

    @property
    def isolated(self) -> Array | None:
        """Rows whose tasks share nothing with any row that stays."""
        assert self.rows.task is not None
        if self.spread != 0:
            return None
        isolated = self.tie.isolated(self.rows.task, self.rows.fold)
        split = self.rows.split_count  # of several observations the others stay
        return isolated if split is None else isolated & (split <= 1)

    def objective(self, sigma: float, alpha: float, held: Held, last: Candidate | None) -> Candidate:
        """Calibrate held-out scores and score the result."""
        outcome = super().objective(sigma, alpha, held, last)
        outcome.sharing, outcome.spread = self.tie.sharing, self.spread
        return outcome


#: Up to so many rows times tasks a row takes its basis function out of every task when it is held out.
OWN_LIMIT = 100_000


class CoupledEvaluator(TaskEvaluator):
    """Held-out scores of many tasks in the dual: ``H_ij = G_ij B[t_i, t_j]``, n x n whatever the number of tasks.

    G is the kernel itself where the penalty is on the function and every row is a centre, else the inner products of
    the designs. Centres that are fewer than the rows are places and nothing more: they stay when a row is held out.
    """

    sharing_costs = True

    def __init__(self, rows: Rows, basis: Basis, settings: Settings, coupling: Coupling) -> None:
        super().__init__(rows, basis, settings)
        assert rows.task is not None
        self.task, self.coupling = rows.task, coupling
        self.tie: CouplingMatrix = coupling.at(1.0)
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

    def retied(self, coupling: Coupling) -> CoupledEvaluator:
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
            K = Evaluator.kernel(self, sigma)
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
                G = Evaluator.kernel(self, sigma)
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


class CoupledRefitEvaluator(CoupledEvaluator, RefitEvaluator):
    """Refits of many tasks: the kernel logistic regression of rows and tasks together."""

    def __init__(
        self, rows: Rows, basis: Basis, settings: Settings, coupling: Coupling, effort: RefitOptions
    ) -> None:
        RefitEvaluator.__init__(self, rows, basis, settings, effort)
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

    heldout = RefitEvaluator.heldout

    @property
    def penalised(self) -> bool:
        """Never: with tasks tied, every row is a centre."""
        return False

    def objective(self, sigma: float, alpha: float, held: Held, last: Candidate | None) -> Candidate:
        """Score held-out predictions."""
        outcome = RefitEvaluator.objective(self, sigma, alpha, held, last)
        outcome.sharing = self.tie.sharing
        return outcome

    def _gone(self, out: Array) -> Array | None:
        return None
