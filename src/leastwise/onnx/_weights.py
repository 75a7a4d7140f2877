"""Coefficients of rows: the same for all, or those of each row's task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from leastwise.onnx._graph import Graph, Value
from leastwise.problem.coupling import Tie

Array = np.ndarray

#: Tasks that are gone through at a time where coefficients are multiplied out.
BLOCK = 64


class Weights(Protocol):
    """From kernel values, of shape (n, b), to scores, of shape (n, c)."""

    def apply(self, g: Graph, K: Value) -> Value:
        """The scores."""
        ...

    def folded(self, C: Array) -> Weights:
        """The weights of ``X`` in ``(X @ C.T) @ weights``."""
        ...


@dataclass(frozen=True)
class Common:
    """The same coefficients for all rows, of shape (b, c)."""

    coef: Array

    def apply(self, g: Graph, K: Value) -> Value:
        """The scores."""
        return K @ self.coef

    def folded(self, C: Array) -> Common:
        """The coefficients of features."""
        return Common(C.T @ np.asarray(self.coef, dtype=float))


@dataclass(frozen=True)
class ByTask:
    """Coefficients of each task, of shape (T + 1, b, c), the last for unknown ones; ``task`` are codes of rows."""

    coef: Array
    task: Value

    def apply(self, g: Graph, K: Value) -> Value:
        """The scores."""
        return (K.widened(1) @ g.value(self.coef).take(self.task, axis=0)).squeezed(1)

    def folded(self, C: Array) -> ByTask:
        """The coefficients of features."""
        return ByTask(np.einsum("bd,tbc->tdc", C, np.asarray(self.coef, dtype=float)), self.task)


@dataclass(frozen=True)
class Coupled:
    """One coefficient for every centre (b x c), times what the row's task has in common with the centre's."""

    A: Array
    home: Array
    tie: Tie
    task: Value

    def apply(self, g: Graph, K: Value) -> Value:
        """The scores."""
        return (K if self.tie.pooled else K * self._between(g)) @ self.A

    def _between(self, g: Graph) -> Value:
        """``B[t_i, t_j]``; whole where it has a form of its own, else from the rows of B."""
        if self.tie.B is not None:
            return g.value(np.asarray(self.tie.extended)).take(self.task, axis=0).take(self.home, axis=1)
        own = self.tie.sharing + self.tie.own[self.home]
        return g.where(self.task.widened(1).equals(self.home), own, float(self.tie.sharing))

    def folded(self, C: Array) -> Weights:
        """The coefficients of features, for each task."""
        A = np.asarray(self.A, dtype=float)
        if self.tie.pooled:
            return Common(C.T @ A)
        code = np.append(np.arange(len(self.tie.own)), -1)
        blocks = [code[i : i + BLOCK] for i in range(0, len(code), BLOCK)]
        return ByTask(
            np.concatenate([np.einsum("bd,tb,bc->tdc", C, self.tie.between(t, self.home), A) for t in blocks]),
            self.task,
        )
