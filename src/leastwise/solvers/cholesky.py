"""Held-out scores from one Cholesky factor, for one ridge."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from leastwise.linalg.cholesky import Cholesky, cholesky
from leastwise.problem.kernels import inner_products
from leastwise.solvers.heldout import Folds, Held, Inverse, Problem, delete_block, delete_one, follows

Array = np.ndarray


@dataclass
class CholeskyHeldout:
    """Held-out scores at one alpha from one Cholesky factor, where every row is its own basis function.

    Cheaper than the spectrum where few alphas are looked at. For equal weights, and folds that are single rows but
    for a few small blocks (exact copies, say). The factor is that of the singles' ridge, rho = alpha (n - 1); a
    block of m rows has the ridge rho - alpha (m - 1), and its inverse follows from the Neumann series

        (G + rho - delta)^-1 = sum_k delta^k M^(k+1),   M = (G + rho)^-1,

    which gains log10((n-1)/(m-1)) digits a term.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix, centred where the problem is; kept as it is.
    square : bool
        Penalty on the coefficients (G = K^2) instead of on the function (G = K).
    """

    problem: Problem
    K: Array
    square: bool
    _work: Array | None = field(default=None, repr=False)

    @staticmethod
    def suits(folds: Folds, n: int) -> bool:
        """Whether the blocks are few and small enough."""
        sizes = [len(block) for block in folds.blocks]
        return sum(sizes) <= n / 5 and max(sizes, default=0) <= max(n / 50, 2)

    def at(self, alpha: float) -> Held:
        """Held-out scores at this alpha."""
        K, problem = self.K, self.problem
        rho = alpha * (len(K) - 1)
        factor = cholesky(self._gram(), ridge=rho, overwrite=True)
        F = np.empty_like(problem.Z)
        if problem.folds.blocks:
            self._blocks(factor, rho, alpha, F)
        i, inverse = problem.folds.singles, self._singles(factor, rho)
        F[i] = (problem.Z - delete_one(inverse, problem.bias))[i]
        return Held(F, freedom=follows(inverse, problem.bias))

    def _gram(self) -> Array:
        """G, in room that all alphas share."""
        self._work = np.empty_like(self.K) if self._work is None else self._work
        if self.square:
            return np.matmul(self.K, self.K.T, out=self._work)
        np.copyto(self._work, self.K)
        return self._work

    def _singles(self, factor: Cholesky, rho: float) -> Inverse:
        """The pieces for rows left out alone; the factor is used up."""
        B = self.problem.targets
        MB, MKB = factor.solve(B), factor.solve(self.K @ B) if self.square else None
        L = factor.inverse_factor(overwrite=True)
        vMB = np.einsum("i,ij->j", B[:, -1], MB)[None]
        if self.problem.centring is not None:  # H^-1 = W M W
            L, MB = self.problem.centring.rows(np.ascontiguousarray(L.T)).T, self.problem.centring.rows(MB)
        m = np.einsum("ij,ij->j", L, L)  # diagonal of M = L'^-1 L^-1
        if MKB is None:
            return Inverse(rho * m, rho * MB, rho * vMB, np.zeros_like(m), np.zeros_like(m) - 1, np.zeros_like(MB))
        MK = np.einsum("ij,ij->j", L, L @ self.K)  # diagonal
        return Inverse(rho * m, rho * MB, rho * vMB, MK, -m, MKB)

    def _blocks(self, factor: Cholesky, rho: float, alpha: float, F: Array) -> None:
        """Fill in the held-out scores of the blocks."""
        problem, K, blocks = self.problem, self.K, self.problem.folds.blocks
        n, c1 = len(K), problem.Z.shape[1] + 1
        rows = np.concatenate(blocks)
        unit = np.zeros((n, len(rows)), dtype=K.dtype)
        unit[rows, np.arange(len(rows))] = 1
        unit = problem.centred(unit)
        right = [problem.targets, unit] + ([K @ problem.targets, K[:, rows]] if self.square else [])
        left = np.r_[c1 : c1 + len(rows), c1 - 1]
        powers = _powers(factor, np.hstack(right), left, max(len(b) for b in blocks) / n)
        start = 0
        for block in blocks:
            f, start = slice(start, start + len(block)), start + len(block)
            delta = alpha * (len(block) - 1)
            weight, ridge = delta ** np.arange(len(powers)), rho - delta
            M = np.tensordot(weight, powers[:, f], 1)
            vMB = np.tensordot(weight, powers[:, -1, :c1], 1)
            M_f = M[:, c1 : c1 + len(rows)][:, f]
            t, d, TB = np.empty((len(block), 0)), np.empty((0, 0)), np.empty((0, c1))
            if self.square:
                MK = M[:, c1 + len(rows) :]
                t, d, TB = MK[:, c1:][:, f], -M_f, MK[:, :c1]
            inverse = Inverse(ridge * M_f, ridge * M[:, :c1], ridge * vMB, t, d, TB)
            F[block] = problem.Z[block] - delete_block(inverse, problem.bias)


def _powers(factor: Cholesky, Y: Array, left: Array, ratio: float) -> Array:
    """M, M^2, ... between the columns ``left`` of Y and all of Y: as many as the Neumann series needs.

    ``left`` are the unit columns of the rows, and v behind them. M is symmetric, so M^(a+b) between ``left`` and Y is
    the inner product of M^a ``left`` and M^b Y, and half as many solves do.
    """
    terms = int(np.ceil(np.log(np.finfo(Y.dtype).eps) / np.log(min(ratio, 0.5))))
    solved = [Y]
    for _ in range((terms + 1) // 2):
        solved.append(factor.solve(solved[-1]))
    powers = []
    for p in range(1, terms + 1):
        a, b = (p + 1) // 2, p // 2
        powers.append(inner_products(np.ascontiguousarray(solved[a][:, left].T), np.ascontiguousarray(solved[b].T)))
    return np.stack(powers)
