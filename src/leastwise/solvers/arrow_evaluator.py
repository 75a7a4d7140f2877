"""Trials of many tasks over a few basis functions, by the block-arrow system: linear in the rows and in the tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from leastwise.linalg.arrow import Decomposed, decompose
from leastwise.linalg.arrow_batches import Chunk
from leastwise.linalg.whitening import Whitening, whitening
from leastwise.problem.basis import Basis, double_kernel
from leastwise.problem.coupling import Coupling, CouplingMatrix
from leastwise.problem.intercepts import Centring
from leastwise.solvers.arrow import ArrowHeldout
from leastwise.solvers.evaluator import Rows, Settings
from leastwise.solvers.heldout import Folds, Held, Problem
from leastwise.solvers.task_evaluators import TaskEvaluator
from leastwise.utils.memory import block_bytes

Array = np.ndarray

#: Bytes of the designs of the tasks in hand.
CHUNK = 2**26


@dataclass(frozen=True)
class Stream:
    """The rows of all tasks, a few whole tasks at a time, as the block-arrow solver wants them.

    Attributes
    ----------
    rows : Rows
    order : ndarray of int of shape (n,)
        The rows, task by task.
    ends : ndarray of int of shape (T + 1,)
        Where each task begins and ends in that order.
    centers : array or sparse matrix of shape (b, d)
    settings : Settings
    """

    rows: Rows
    order: Array
    ends: Array
    centers: Any
    settings: Settings

    @classmethod
    def of(cls, rows: Rows, n_tasks: int, basis: Basis, settings: Settings) -> Stream:
        """Of all rows."""
        assert rows.task is not None
        order = np.argsort(rows.task, kind="stable")
        ends = np.searchsorted(rows.task[order], np.arange(n_tasks + 1))
        return cls(rows, order, ends, basis.centers, settings)

    def penalty(self, sigma: float) -> Whitening | None:
        """Coordinates of the centres; None where the penalty is the identity."""
        if self.settings.norm == "coefficients":
            return None
        return whitening(double_kernel(self.settings.kernel, self.centers, self.centers, sigma))

    def chunks(
        self, sigma: float, tie: CouplingMatrix, penalty: Whitening | None, centring: Centring | None = None
    ) -> Iterator[tuple[Array, Chunk]]:
        """Some tasks, their rows in ``rows``, and their design; then the next."""
        for first, last in self._cuts():
            mine = self.order[self.ends[first] : self.ends[last]]
            some = self.rows.part(mine)
            Phi = self._features(some.X, sigma, penalty)
            root = np.sqrt(some.w).astype(Phi.dtype)
            Z = some.targets(self.settings.n_outputs) * root[:, None]
            Phi = Phi if np.all(root == 1) else Phi * root[:, None]
            starts = self.ends[first : last + 1] - self.ends[first]
            chunk = Chunk(Phi, Z, root, starts, tie.own[first:last])
            yield mine, chunk if centring is None else centred(chunk, centring.part(mine, slice(first, last)))

    def _features(self, X: Any, sigma: float, penalty: Whitening | None) -> Array:
        """The design of some rows; whitened coordinates are rounded to the type of X once they are computed."""
        if penalty is None:
            return self.settings.kernel(X, self.centers, sigma)
        K = double_kernel(self.settings.kernel, X, self.centers[penalty.pivots], sigma)
        return np.ascontiguousarray(penalty.whiten(K), dtype=X.dtype)

    def _cuts(self) -> Iterator[tuple[int, int]]:
        """Ranges of tasks whose designs stay within ``CHUNK`` bytes, or single tasks."""
        room = max(1, block_bytes(CHUNK) // (8 * self.centers.shape[0]))
        first, T = 0, len(self.ends) - 1
        while first < T:
            last = int(np.searchsorted(self.ends, self.ends[first] + room, side="right")) - 1
            last = min(max(last, first + 1), T)
            yield first, last
            first = last


def centred(chunk: Chunk, centring: Centring) -> Chunk:
    """The chunk with its tasks centred, and what was taken off."""
    whole = np.column_stack([chunk.Phi, chunk.Z, chunk.root])
    means = centring.sums(whole)
    left = centring.rows(whole)
    b = chunk.Phi.shape[1]
    return replace(chunk, Phi=left[:, :b], Z=left[:, b:-1], root=left[:, -1], means=means)


class ArrowEvaluator(TaskEvaluator):
    """Held-out scores of many tasks in closed form, from one decomposition of every task for each sigma.

    The centres are places: they stay when a row is held out.
    """

    streams = True

    def __init__(self, rows: Rows, basis: Basis, settings: Settings, coupling: Coupling) -> None:
        self.rows, self.basis, self.settings, self.coupling = rows, basis, settings, coupling
        self.tie = coupling.at(1.0)
        self.stream = Stream.of(rows, len(coupling.penalty), basis, settings)
        self._kept: dict[tuple[float, float], Decomposed] = {}

    def weighing(self, weight: float) -> Self:
        """The trial with this weight for the linear part of a sum of kernels."""
        other = super().weighing(weight)
        other.stream, other._kept = replace(self.stream, settings=other.settings), {}
        return other

    def decomposed(self, sigma: float) -> Decomposed:
        """All tasks at this sigma and spread."""
        key = (sigma, self.spread)
        if key not in self._kept:
            self._kept.clear()
            chunks = self.stream.chunks(sigma, self.tie, self.stream.penalty(sigma), self.centring())
            self._kept[key] = decompose(chunk for _, chunk in chunks)
        return self._kept[key]

    def arrow(self, sigma: float) -> ArrowHeldout:
        """The held-out scores at this sigma, rows in the order of the stream."""
        order, s, centring = self.stream.order, self.settings, self.centring()
        root = np.sqrt(self.rows.w[order]).astype(self.rows.X.dtype)
        Z = self.rows.targets(s.n_outputs)[order] * root[:, None]
        ordered = None if centring is None else centring.part(order, slice(0, None))
        split = self.rows.split_count
        count = None if split is None else split[order]
        problem = Problem(Z, root, self.bias, None, Folds.from_labels(self.rows.fold[order]), ordered, count)
        return ArrowHeldout(problem, self.decomposed(sigma), self.tie.sharing, self.tie.own)

    def heldout(self, sigma: float, count: int) -> Callable[[float], Held]:
        """A function from alpha to held-out scores at this sigma."""
        arrow = self.arrow(sigma)

        def at(alpha: float) -> Held:
            held = arrow.at(alpha)
            return replace(held, F=self.back(held.F), noise=None if held.noise is None else self.back(held.noise))

        return at

    def back(self, F: Array) -> Array:
        """Scores in the order of the rows."""
        placed = np.empty_like(F)
        placed[self.stream.order] = F
        return placed
