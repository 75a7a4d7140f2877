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
from leastwise.seeds import generator
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
    K = KernelTimes(settings.kernel, sigma, rows.X, budget=kernel_budget())
    on_function = settings.norm == "function"
    G = _Gram(K, None if on_function else rows.multiplicity.astype(float)[:, None])
    L, pivots = pivoted_cholesky(G.diagonal(), G.columns, min(RANK, len(rows)), generator("preconditioner"), 0.0)
    Z, W, rho = (
        rows.targets(settings.n_outputs).astype(float),
        rows.W.astype(float),
        alpha / (1.0 if on_function else rows.mass) * len(rows),
    )
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
    """Products with the Gram matrix: the kernel K itself, or, with weights m of the basis functions, K diag(m) K."""

    K: KernelTimes
    m: Array | None

    def times(self, V: Array) -> Array:
        return self.K.times(self.coefficients(V))

    def columns(self, index: Array) -> Array:
        columns = self.K.columns(index)
        return columns if self.m is None else self.K.times(self.m * columns)

    def diagonal(self) -> Array:
        if self.m is None:
            return self.K.diagonal()
        X, n = self.K.X, self.K.n
        parts = row_chunks(n, n, X.dtype.itemsize)
        return np.concatenate([(self.K.kernel(X[p], X, self.K.sigma) ** 2) @ self.m[:, 0] for p in parts])

    def coefficients(self, A: Array) -> Array:
        """On the basis functions, from those of the rows."""
        return A if self.m is None else self.m * self.K.times(A)
