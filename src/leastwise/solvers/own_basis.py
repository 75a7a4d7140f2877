r"""Held-out scores of tasks tied together, where a row's basis function goes with it.

With the penalty on the coefficients every task has a coefficient for every basis function, tied to those of the other
tasks. The design that belongs to the Gram matrix ``(K K') o B`` is, for the basis function of row i, the block

    Psi_i = diag(k_i) S L,        B = L L',   S = the tasks of the rows, one-hot,

of as many columns as B has rank. Leaving out row i deletes its residual and all coefficients of that block from the
augmented system (see the package's text). The blocks of the inverse, with M = (Psi Psi' + rho)^-1, are

    P = rho M,     T = M Psi,     D = -(I - Psi' M Psi) / rho.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from leastwise.linalg.spectrum import Spectrum, gram_spectrum
from leastwise.problem.coupling import CouplingMatrix
from leastwise.solvers.heldout import Held, Inverse, Problem, delete_block

Array = np.ndarray

#: Numbers that are held at a time for the blocks of many rows.
ROOM = 2**23


@dataclass
class OwnBasisHeldout:
    """Held-out scores for any ridge, from one spectrum of the coupled Gram matrix and, for large folds, one for each.

    Parameters
    ----------
    problem : Problem
    K : ndarray of shape (n, n)
        Kernel between rows, the columns multiplied by the roots of the basis functions' weights.
    tie : Tie
    task : ndarray of int of shape (n,)
    """

    problem: Problem
    K: Array
    tie: CouplingMatrix
    task: Array
    _cache: dict = field(default_factory=dict, repr=False)

    def at(self, alpha: float) -> Held:
        """Held-out scores at this alpha."""
        problem, folds = self.problem, self.problem.folds
        F = np.empty_like(problem.Z)
        for rows in self._batches():
            rho = alpha * (len(F) - problem.single_weights(rows))
            for r in np.unique(rho):
                some = rows[rho == r]
                F[some] = problem.Z[some] - self._delete_rows(some, r)
        for rows in folds.blocks:
            if self._large(len(rows)):
                F[rows] = self._refit(rows, alpha)
            else:
                F[rows] = problem.Z[rows] - delete_block(self._block(rows, problem.ridge(alpha, rows)), problem.bias)
        return Held(F / problem.root[:, None])

    # ---------------------------------------------------------------- pieces

    @property
    def _spectrum(self) -> Spectrum:
        if "spectrum" not in self._cache:
            root = self.problem.root
            H = self.tie.couple(self.K @ self.K.T, self.task, self.task)
            self._cache["spectrum"] = gram_spectrum(H * root[:, None] * root)
        return self._cache["spectrum"]

    @property
    def _projected(self) -> Array:
        """U'[Z, v]."""
        if "UB" not in self._cache:
            self._cache["UB"] = self._spectrum.U.T @ self.problem.targets
        return self._cache["UB"]

    @property
    def _factor(self) -> Array:
        """L with B = L L', without columns of zeros."""
        if "L" not in self._cache:
            b, V = np.linalg.eigh(self.tie.matrix)
            kept = b > len(b) * np.finfo(b.dtype).eps * b[-1]
            self._cache["L"] = (V[:, kept] * np.sqrt(b[kept])).astype(self.K.dtype)
        return self._cache["L"]

    def _batches(self) -> list[Array]:
        singles = self.problem.folds.singles
        step = max(1, ROOM // (len(self.K) * max(len(self.tie.own), 1)))
        return [singles[a : a + step] for a in range(0, len(singles), step)]

    def _projections(self, rows: Array) -> Array:
        """``Psi_i' U`` for the basis functions of some rows, of shape (rows, rank of B, n)."""
        U, root, L = self._spectrum.U, self.problem.root, self._factor
        Y = np.zeros((len(rows), len(L), U.shape[1]), dtype=self.K.dtype)
        for t in np.unique(self.task):
            mine = np.flatnonzero(self.task == t)
            Y[:, t] = (self.K[np.ix_(mine, rows)] * root[mine, None]).T @ U[mine]
        return np.matmul(L.T, Y)

    # --------------------------------------------------------------- deletion

    def _delete_rows(self, rows: Array, rho: float) -> Array:
        """(B_EE)^-1 (B z)_E, first part, for rows left out one at a time, all with one ridge."""
        Y, U, UB = self._projections(rows), self._spectrum.U[rows], self._projected
        e = (1 / (self._spectrum.g + rho)).astype(Y.dtype)
        eY = Y * e
        d = (np.matmul(eY, Y.transpose(0, 2, 1)) - np.eye(Y.shape[1], dtype=Y.dtype)) / rho
        t = np.matmul(eY, U[:, :, None])  # (rows, rank, 1)
        TB, PB = np.matmul(eY, UB), rho * (U * e) @ UB
        p = rho * np.einsum("ik,ik,k->i", U, U, e)
        if self.problem.bias:
            v = self._projected[:, -1]
            vMB = (v * e) @ UB
            Pv, Tv = PB[:, -1:], TB[:, :, -1:]
            p = p - Pv[:, 0] ** 2 / (rho * vMB[-1])
            t = t - Tv * Pv[:, None] / (rho * vMB[-1])
            d = d - np.matmul(Tv, Tv.transpose(0, 2, 1)) / (rho * vMB[-1])
            TB = TB - Tv * vMB / vMB[-1]
            PB = PB - Pv * vMB / vMB[-1]
        count = self.problem.counts(rows)
        if count is not None:  # one of several equal observations: see ``deletion.delete_one``
            m = count[:, None, None]
            p, t = p / count + (1 - 1 / count), t / m
            d = d / m - (1 - 1 / m) / rho * np.eye(d.shape[1], dtype=d.dtype)
        solved = np.linalg.solve(d, np.concatenate([t, TB[:, :, :-1]], axis=2))
        across = np.matmul(t.transpose(0, 2, 1), solved)[:, 0]  # t'd^-1 [t, Tz]
        return (PB[:, :-1] - across[:, 1:]) / (p - across[:, 0])[:, None]

    def _block(self, rows: Array, rho: float) -> Inverse:
        """The pieces for rows that are left out together."""
        Y = self._projections(rows)
        Y, U, UB = Y.reshape(-1, Y.shape[2]), self._spectrum.U[rows], self._projected
        e = (1 / (self._spectrum.g + rho)).astype(Y.dtype)
        eY = Y * e
        d = (eY @ Y.T - np.eye(len(Y), dtype=Y.dtype)) / rho
        vPB = rho * (UB[:, -1] * e) @ UB
        return Inverse(rho * (U * e) @ U.T, rho * (U * e) @ UB, vPB, (eY @ U.T).T, d, eY @ UB)

    # ----------------------------------------------------------------- refits

    def _large(self, m: int) -> bool:
        """Whether a decomposition of the rest is cheaper than the block of so many rows."""
        n, size = len(self.K), m * self._factor.shape[1]
        return 12 * (n - m) ** 3 < 2 * size**2 * n + size**3

    def _refit(self, rows: Array, alpha: float) -> Array:
        """Scores of some rows, times the roots of their weights, from the others alone."""
        stay = np.setdiff1d(np.arange(len(self.K)), rows)
        root, key = self.problem.root, int(rows[0])
        Phi = self.K[np.ix_(stay, stay)]
        if key not in self._cache:
            H = self.tie.couple(Phi @ Phi.T, self.task[stay], self.task[stay])
            self._cache[key] = gram_spectrum(H * root[stay][:, None] * root[stay])
        bias = root[stay] if self.problem.bias else None
        A, b = self._cache[key].coefficients(self.problem.ridge(alpha, rows), self.problem.Z[stay], bias)
        across = self.tie.couple(self.K[np.ix_(rows, stay)] @ Phi.T, self.task[rows], self.task[stay])
        return root[rows, None] * (across @ (root[stay, None] * A) + b)
