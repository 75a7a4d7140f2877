"""The final solution at the selected hyperparameters: ``solve`` for one task, ``solve_labels`` for many labels.

Both are exact. ``solve_by_sgd`` (stochastic gradient descent) and ``solve_labels_free`` (conjugate gradients) do
without the kernel matrix of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.linalg.decompositions import pivoted_cholesky, solve_design, solve_gram, solve_square, square_spectrum
from leastwise.linalg.kronecker import solve_matrix_free
from leastwise.linalg.sgd import Descent, descend
from leastwise.linalg.sylvester import solve_sylvester
from leastwise.problem.basis import Basis, Design, evaluate, row_chunks
from leastwise.solvers.evaluator import Evaluator, Rows, Settings
from leastwise.solvers.krylov import KernelTimes, SolverOptions
from leastwise.solvers.label_evaluators import IncompleteLabelEvaluator, LabelEvaluator, LabelRows
from leastwise.solvers.label_modes import CoupledLabels
from leastwise.solvers.work import RANK, kernel_budget
from leastwise.utils.hashing import generator

Array = np.ndarray


@dataclass(frozen=True)
class Solution:
    """Coefficients of the centres (b x c), intercepts (c), and diagnostics.

    ``jitter`` was added to a diagonal; ``lifted`` is True if the reason was negative eigenvalues of the kernel
    matrix. ``descent`` is the history of stochastic gradient descent.
    """

    coef: Array
    intercept: Array
    jitter: float = 0.0
    lifted: bool = False
    descent: Descent | None = None


def solve(evaluator: Evaluator, sigma: float, alpha: float) -> Solution:
    """The exact solution; it overwrites ``evaluator.pairs``, so the evaluator must not be used afterwards."""
    basis, s, root = evaluator.basis, evaluator.settings, evaluator.root
    rho, bias = alpha / evaluator.unit * len(evaluator.rows), root if s.bias else None
    if not basis.square or not evaluator.definite:
        return _solve_blocks(evaluator, sigma, rho, bias)
    K = s.kernel.values(evaluator.pairs, sigma, out=evaluator.pairs)
    if not evaluator.rows.equal_weights:
        K *= root
        K *= root[:, None]
    if s.norm == "function":
        A, b, jitter = solve_gram(K, evaluator.Z, rho, bias)
    else:
        A, b, jitter = solve_square(K, evaluator.Z, rho, bias) or (
            *square_spectrum(K).coefficients(rho, evaluator.Z, bias),
            0.0,
        )
    return Solution(root[:, None] * A, b, jitter)


def _solve_blocks(evaluator: Evaluator, sigma: float, rho: float, bias: Array | None) -> Solution:
    """Solve block by block; coefficients of classes outside a block are zero."""
    basis, c = evaluator.basis, evaluator.settings.n_outputs
    # Coefficients of nearly dependent centres are large and cancel, so they stay in double precision.
    coef = np.zeros((basis.n_functions, c), dtype=float if evaluator.penalised else evaluator.Z.dtype)
    intercept, jitter = np.zeros(c, dtype=evaluator.Z.dtype), 0.0
    for block, design in zip(basis.blocks, evaluator.designs(sigma, deletes=False), strict=True):
        A, b, lift = _solve_block(design, evaluator.Z[:, block.classes], rho, bias)
        coef[block.columns, block.classes], intercept[block.classes] = A, b
        jitter = max(jitter, lift)
    return Solution(coef, intercept, jitter, lifted=basis.square)


def _solve_block(design: Design, Z: Array, rho: float, bias: Array | None) -> tuple[Array, Array, float]:
    """Solve by a Cholesky factor of b unknowns if that is accurate, otherwise from the spectrum."""
    if not design.square and design.K.shape[0] >= design.K.shape[1]:
        found = solve_design(design.scaled, Z, rho, bias)
        if found is not None:
            A = found[0] if design.column is None else design.column[:, None] * found[0]
            return design.back(A), found[1], design.jitter
    spectrum = design.spectrum()
    A, b = spectrum.coefficients(rho, Z, bias)
    return design.back(A), b, spectrum.jitter


def solve_by_sgd(
    rows: Rows, basis: Basis, settings: Settings, sigma: float, alpha: float, rng: Any, **options: Any
) -> Solution:
    """Stochastic gradient descent; only batches and a sample of the kernel between rows and centres are in memory."""
    s, n, b = settings, len(rows), basis.n_functions
    Z = rows.targets(s.n_outputs)

    def batch(index: Array) -> tuple[Array, Array, Array]:
        Phi = s.kernel(rows.X[index], basis.centers, sigma)
        if s.bias:
            Phi = np.column_stack([Phi, np.ones(len(index), dtype=Phi.dtype)])
        return Phi, Z[index], rows.w[index]

    R = np.zeros((b + s.bias, b + s.bias), dtype=Z.dtype)
    R[:b, :b] = s.kernel(basis.centers, basis.centers, sigma) if s.norm == "function" else np.eye(b)
    sample = np.sort(rng.permutation(n)[: min(n, max(2 * b, 1000))])
    descent = descend(batch, n, R, alpha, sample, rng=rng, report=s.report, **options)
    theta = descent.theta
    intercept = theta[b] if s.bias else np.zeros(theta.shape[1], dtype=theta.dtype)
    return Solution(theta[:b], intercept, descent=descent)


def scores(solution: Solution, settings: Settings, sigma: float, X: Any, basis: Basis) -> Array:
    """Raw scores of a solution."""
    F, _ = evaluate(settings.kernel, sigma, X, basis.centers, basis.rows, solution.coef)
    return F + solution.intercept


@dataclass(frozen=True)
class LabelSolution:
    """Coefficients of the centres (b x outputs), intercepts (outputs), and diagnostics.

    ``jitter`` was added to a diagonal; ``lifted`` is True if the reason was negative eigenvalues of the kernel
    matrix. ``summary`` holds the convergence summaries of conjugate gradients, if these were used.
    """

    coef: Array
    intercept: Array
    jitter: float = 0.0
    lifted: bool = False
    summary: Any = None

    @classmethod
    def empty(cls, n_functions: int, n_outputs: int, dtype: Any, wide: bool = False, **known: Any) -> LabelSolution:
        """Zeros to be filled in; ``wide`` coefficients have double precision, intercepts the type of the rows."""
        coef = np.zeros((n_functions, n_outputs), float if wide else dtype)
        return cls(coef, np.zeros(n_outputs, dtype), **known)


def solve_labels(evaluator: LabelEvaluator, sigma: float, alpha: float, sharing: float) -> LabelSolution:
    """The exact solution: by two eigendecompositions, or by conjugate gradients if some labels are unknown."""
    evaluator = evaluator.with_sharing(sharing)
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
    for coupled in evaluator.coupled_labels:
        if isinstance(evaluator, IncompleteLabelEvaluator):
            Theta, a, summary = evaluator.solve(spectrum, coupled, np.arange(len(evaluator.rows)), rho)
            summaries.append(summary)
        else:
            v = evaluator.root if evaluator.settings.bias else None
            Theta, a = solve_sylvester(spectrum, coupled.modes, coupled.take(evaluator.Z), rho, v)
        if known is not None:
            Theta = known.unwhiten(Theta.reshape(len(Theta), -1)).reshape(-1, *Theta.shape[1:])
        found.coef[:, coupled.family.columns], found.intercept[coupled.family.columns] = Theta, a
    return found


def solve_labels_free(
    rows: LabelRows,
    settings: Settings,
    sigma: float,
    alpha: float,
    coupled_labels: list[CoupledLabels],
    solver_options: SolverOptions,
    start: Any = None,
) -> LabelSolution:
    """Solve by conjugate gradients without the kernel matrix; ``start`` are summaries of a similar problem."""
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
    for k, coupled in enumerate(coupled_labels):
        c, modes = coupled.family.columns, coupled.modes.astype(float)
        summary = solve_matrix_free(
            G.times,
            (L.astype(float), pivots),
            modes,
            np.ascontiguousarray(coupled.take(Z).transpose(1, 0, 2)),
            W[:, coupled.family.labels],
            rho,
            bias=settings.bias,
            tol=solver_options.tol,
            max_iter=solver_options.max_iter,
            start=None if start is None else start[k],
        )
        summaries.append(summary)
        A = modes.back(modes.eigenvalues * modes.rotate(summary.Q)).transpose(1, 0, 2)
        found.coef[:, c] = G.coefficients(A.reshape(len(A), -1)).reshape(A.shape)
        found.intercept[c] = summary.intercept
    return found


@dataclass(frozen=True)
class _Gram:
    """Products with the Gram matrix: K, or K diag(m) K with weights m of the basis functions."""

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
        """Coefficients of the basis functions from the dual ones."""
        return A if self.m is None else self.m * self.K.times(A)
