"""The last step of a fit: coefficients at the chosen sigma and alpha, from all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.linalg.cholesky import solve_design, solve_gram, solve_square
from leastwise.linalg.sgd import Descent, descend
from leastwise.linalg.spectrum import square_spectrum
from leastwise.problem.basis import Basis, Design, evaluate
from leastwise.solvers.evaluator import Evaluator, Rows, Settings

Array = np.ndarray


@dataclass(frozen=True)
class Solution:
    """Coefficients on the centres (b x c), intercepts (c), and how they came about.

    ``jitter`` was added to a diagonal; ``lifted`` says that this was because the kernel matrix has negative
    eigenvalues. ``descent`` is the story of an iterative solver.
    """

    coef: Array
    intercept: Array
    jitter: float = 0.0
    lifted: bool = False
    descent: Descent | None = None


def solve(evaluator: Evaluator, sigma: float, alpha: float) -> Solution:
    """The exact solution; ``trial`` gives up its pairs and is not to be used afterwards."""
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
    """Block by block; classes that a basis function does not serve get a zero."""
    basis, c = evaluator.basis, evaluator.settings.n_outputs
    # Coefficients of centres that almost depend on one another are large and cancel: they keep double precision.
    coef = np.zeros((basis.n_functions, c), dtype=float if evaluator.penalised else evaluator.Z.dtype)
    intercept, jitter = np.zeros(c, dtype=evaluator.Z.dtype), 0.0
    for block, design in zip(basis.blocks, evaluator.designs(sigma, deletes=False), strict=True):
        A, b, lift = _solve_block(design, evaluator.Z[:, block.classes], rho, bias)
        coef[block.columns, block.classes], intercept[block.classes] = A, b
        jitter = max(jitter, lift)
    return Solution(coef, intercept, jitter, lifted=basis.square)


def _solve_block(design: Design, Z: Array, rho: float, bias: Array | None) -> tuple[Array, Array, float]:
    """By a Cholesky factor of b unknowns where that is accurate, else from the spectrum."""
    if not design.square and design.K.shape[0] >= design.K.shape[1]:
        found = solve_design(design.scaled, Z, rho, bias)
        if found is not None:
            A = found[0] if design.column is None else design.column[:, None] * found[0]
            return design.back(A), found[1], design.jitter
    spectrum = design.spectrum()
    A, b = spectrum.coefficients(rho, Z, bias)
    return design.back(A), b, spectrum.jitter


def sgd_sample(n: int, b: int) -> int:
    """How many rows make the preconditioner."""
    return min(n, max(2 * b, 1000))


def solve_by_sgd(
    rows: Rows, basis: Basis, settings: Settings, sigma: float, alpha: float, rng: Any, **options: Any
) -> Solution:
    """Stochastic gradient descent; of the kernel between rows and centres only batches exist, and a sample."""
    s, n, b = settings, len(rows), basis.n_functions
    Z = rows.targets(s.n_outputs)

    def batch(index: Array) -> tuple[Array, Array, Array]:
        Phi = s.kernel(rows.X[index], basis.centers, sigma)
        if s.bias:
            Phi = np.column_stack([Phi, np.ones(len(index), dtype=Phi.dtype)])
        return Phi, Z[index], rows.w[index]

    R = np.zeros((b + s.bias, b + s.bias), dtype=Z.dtype)
    R[:b, :b] = s.kernel(basis.centers, basis.centers, sigma) if s.norm == "function" else np.eye(b)
    sample = np.sort(rng.permutation(n)[: sgd_sample(n, b)])
    descent = descend(batch, n, R, alpha, sample, rng=rng, report=s.report, **options)
    theta = descent.theta
    intercept = theta[b] if s.bias else np.zeros(theta.shape[1], dtype=theta.dtype)
    return Solution(theta[:b], intercept, descent=descent)


def scores(solution: Solution, settings: Settings, sigma: float, X: Any, basis: Basis) -> Array:
    """Raw scores of a solution."""
    F, _ = evaluate(settings.kernel, sigma, X, basis.centers, basis.rows, solution.coef)
    return F + solution.intercept
