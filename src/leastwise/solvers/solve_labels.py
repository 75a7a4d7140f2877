"""The last step of a fit of many labels: coefficients at the chosen sigma, alpha and sharing, from all rows.

Models of many labels solved by conjugate gradients, without the kernel matrix of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.linalg.cholesky import pivoted_cholesky
from leastwise.linalg.kronecker import solve_matrix_free
from leastwise.linalg.sylvester import solve_sylvester
from leastwise.problem.basis import row_chunks
from leastwise.solvers.evaluator import Settings
from leastwise.solvers.krylov import RANK, KernelTimes, SolverOptions, kernel_budget
from leastwise.solvers.label_evaluators import IncompleteLabelEvaluator, LabelEvaluator, LabelRows
from leastwise.solvers.label_modes import Tied
from leastwise.utils.random import generator

Array = np.ndarray


@dataclass(frozen=True)
class LabelSolution:
    """Coefficients on the centres (b x outputs), intercepts (outputs), and how they came about.

    ``jitter`` was added to a diagonal; ``lifted`` says that this was because the kernel matrix has negative
    eigenvalues. ``story`` is that of conjugate gradients, where they were needed.
    """

    coef: Array
    intercept: Array
    jitter: float = 0.0
    lifted: bool = False
    summary: Any = None

    @classmethod
    def empty(cls, n_functions: int, n_outputs: int, dtype: Any, wide: bool = False, **known: Any) -> LabelSolution:
        """Zeros, to be filled in; ``wide`` coefficients have double precision, intercepts that of the rows."""
        coef = np.zeros((n_functions, n_outputs), float if wide else dtype)
        return cls(coef, np.zeros(n_outputs, dtype), **known)


def solve_labels(evaluator: LabelEvaluator, sigma: float, alpha: float, sharing: float) -> LabelSolution:
    """The exact solution: by two eigendecompositions, or, where labels are not known, by conjugate gradients."""
    evaluator = evaluator.tied(sharing)
    rho, (spectrum, known) = (
        evaluator.least(alpha) / evaluator.unit * len(evaluator.rows),
        evaluator.decomposed(sigma),
    )
    lifted = evaluator.basis.square and spectrum.jitter > 0
    summaries: list = []
    found = LabelSolution.empty(
        evaluator.basis.n_functions,
        evaluator.Z.shape[1],
        evaluator.Z.dtype,
        wide=known is not None,
        jitter=spectrum.jitter,
        lifted=lifted,
        summary=summaries,
    )
    for tie in evaluator.ties:
        if isinstance(evaluator, IncompleteLabelEvaluator):
            Theta, a, summary = evaluator.solve(spectrum, tie, np.arange(len(evaluator.rows)), rho)
            summaries.append(summary)
        else:
            v = evaluator.root if evaluator.settings.bias else None
            Theta, a = solve_sylvester(spectrum, tie.modes, tie.take(evaluator.Z), rho, v)
        if known is not None:
            Theta = known.unwhiten(Theta.reshape(len(Theta), -1)).reshape(-1, *Theta.shape[1:])
        found.coef[:, tie.family.columns], found.intercept[tie.family.columns] = Theta, a
    return found


def solve_labels_free(
    rows: LabelRows,
    settings: Settings,
    sigma: float,
    alpha: float,
    ties: list[Tied],
    effort: SolverOptions,
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
    summaries: list = []
    found = LabelSolution.empty(len(rows), settings.n_outputs, rows.X.dtype, summary=summaries)
    for k, tie in enumerate(ties):
        c, modes = tie.family.columns, tie.modes.astype(float)
        summary = solve_matrix_free(
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
        summaries.append(summary)
        A = modes.back(modes.eigenvalues * modes.rotate(summary.Q)).transpose(1, 0, 2)
        found.coef[:, c] = G.coefficients(A.reshape(len(A), -1)).reshape(A.shape)
        found.intercept[c] = summary.intercept
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
