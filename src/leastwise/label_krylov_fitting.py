"""Models of many labels solved by conjugate gradients, without the kernel matrix of all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.basis import row_chunks
from leastwise.heldout.labels import Tied
from leastwise.krylov_fitting import RANK, Effort, kernel_budget
from leastwise.label_fitting import LabelSolution
from leastwise.linalg.kronecker_free import solve_matrix_free
from leastwise.linalg.pivoted import pivoted_cholesky
from leastwise.matrix_free import KernelTimes
from leastwise.selection.labels import LabelRows
from leastwise.selection.trial import Settings

Array = np.ndarray


def solve_labels_free(
    rows: LabelRows,
    settings: Settings,
    sigma: float,
    alpha: float,
    ties: list[Tied],
    effort: Effort,
    start: Any = None,
) -> LabelSolution:
    """By conjugate gradients, without the kernel matrix of all rows; ``start`` are the stories of a like problem."""
    G = _Gram(KernelTimes(settings.kernel, sigma, rows.X, budget=kernel_budget()), settings.norm == "function")
    L, pivots = pivoted_cholesky(G.diagonal(), G.columns, min(RANK, len(rows)), effort.rng, 0.0)
    Z, W, rho = rows.targets(settings.n_outputs).astype(float), rows.W.astype(float), alpha * len(rows)
    stories: list = []
    found = LabelSolution.empty(len(rows), settings.n_outputs, rows.X.dtype, story=stories)
    for k, tie in enumerate(ties):
        c, modes = tie.family.columns, tie.modes.astype(float)
        story = solve_matrix_free(
            G.times,
            (L.astype(float), pivots),
            modes,
            np.ascontiguousarray(tie.take(Z).transpose(1, 0, 2)),
            W[:, tie.family.labels],
            rho,
            bias=settings.bias,
            tol=effort.tol,
            max_iter=effort.max_iter,
            start=None if start is None else start[k],
        )
        stories.append(story)
        A = modes.back(modes.eigenvalues * modes.rotate(story.Q)).transpose(1, 0, 2)
        found.coef[:, c] = G.coefficients(A.reshape(len(A), -1)).reshape(A.shape)
        found.intercept[c] = story.intercept
    return found


@dataclass(frozen=True)
class _Gram:
    """Products with the Gram matrix: the kernel K itself, or its square where the penalty is on the coefficients."""

    K: KernelTimes
    function: bool

    def times(self, V: Array) -> Array:
        return self.K.times(V) if self.function else self.K.times(self.K.times(V))

    def columns(self, index: Array) -> Array:
        columns = self.K.columns(index)
        return columns if self.function else self.K.times(columns)

    def diagonal(self) -> Array:
        if self.function:
            return self.K.diagonal()
        X, n = self.K.X, self.K.n
        parts = row_chunks(n, n, X.dtype.itemsize)
        return np.concatenate([np.sum(self.K.kernel(X[p], X, self.K.sigma) ** 2, axis=1) for p in parts])

    def coefficients(self, A: Array) -> Array:
        """On the basis functions, from those of the rows."""
        return A if self.function else self.K.times(A)
