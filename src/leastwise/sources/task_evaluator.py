"""Trials on some tasks that know the rows of all: held-out scores in closed form from sums over all parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from leastwise.linalg.arrow import System
from leastwise.problem.basis import Basis
from leastwise.problem.coupling import Coupling
from leastwise.solvers.arrow_evaluator import ArrowTrial
from leastwise.solvers.evaluator import Rows, Settings
from leastwise.solvers.heldout import Held
from leastwise.solvers.solve_tasks import TaskSolution
from leastwise.sources.task_workers import Point, Remote

Array = np.ndarray


class PartsTrial(ArrowTrial):
    """Held-out scores of the sample from the shared system of all tasks.

    Each point takes one reduction over the parts. The rows have the weights that they have among all. The ridge is
    that of all rows, not of all but a fold, as in ``task_fitting.stream_tasks``.

    Parameters
    ----------
    rows : Rows
        Those of the sample.
    basis, settings, coupling
        As in ``ArrowTrial``; the coupling is that of the tasks in the sample.
    remote : Remote
    n : int
        Number of all rows.
    order : ndarray of int, or None
        The order of the sample among the rows as the parts have them, where it holds some rows of its tasks only;
        None where it holds whole tasks, whose held-out scores can then be had without asking the parts.
    """

    def __init__(
        self,
        rows: Rows,
        basis: Basis,
        settings: Settings,
        coupling: Coupling,
        remote: Remote,
        n: int,
        order: Array | None,
    ) -> None:
        super().__init__(rows, basis, settings, coupling)
        self.remote, self.n, self.order = remote, n, order

    def point(self, sigma: float, alpha: float) -> Point:
        """What the parts are asked for."""
        penalty, rho = self.stream.penalty(sigma), float(alpha * self.n)
        return Point(self.settings.kernel, sigma, self.tie.sharing, rho, self.unit_spread, self.bias, penalty)

    def held(self, point: Point, system: System) -> Held:
        """Held-out scores of the sample."""
        if self.order is not None:
            return self.remote.heldout(point, system, self.order)
        held = self.arrow(point.sigma).given(system, point.rho)
        return replace(held, F=self.back(held.F), noise=None if held.noise is None else self.back(held.noise))

    def heldout(self, sigma: float, count: int) -> Callable[[float], Held]:
        """A function from alpha to held-out scores at this sigma."""

        def at(alpha: float) -> Held:
            point = self.point(sigma, alpha)
            return self.held(point, self.remote.system(point))

        return at

    def solved(self, sigma: float, alpha: float, hold: bool) -> tuple[TaskSolution, Held | None]:
        """The model of all rows, and held-out scores of the sample."""
        point = self.point(sigma, alpha)
        system = self.remote.system(point)
        return self.remote.solution(point, system), self.held(point, system) if hold else None
