"""Held-out scores of one task from dense factorizations.

``SpectralHeldout``
    One eigendecomposition or SVD of all rows, for any number of alphas.
``CholeskyHeldout``
    One Cholesky factor per alpha: cheaper for a few alphas.
``RefitHeldout``
    One decomposition per fold, for any number of alphas: cheaper for a few large folds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from leastwise.linalg.cholesky import Cholesky, cholesky
from leastwise.linalg.spectrum import Spectrum
from leastwise.problem.basis import Design
from leastwise.problem.kernels import inner_products
from leastwise.solvers.heldout import Folds, HeldOut, Inverse, Problem, degrees_of_freedom, delete_block, delete_one

Array = np.ndarray


@dataclass
class SpectralHeldout:
    """Held-out scores for any number of alphas, from one spectrum."""

    problem: Problem
    spectrum: Spectrum
    _cache: dict = field(default_factory=dict, repr=False)

    def at(self, alpha: float) -> HeldOut:
        """Held-out scores at this alpha."""
        problem, folds = self.problem, self.problem.folds
        F, dof = np.empty_like(problem.Z), 0.0
        if len(folds.singles):
            i, inverse = folds.singles, self._singles(alpha)
            rho = alpha * (len(F) - problem.single_weights(i))
            F[i] = problem.Z[i] - delete_one(inverse, problem.bias, problem.counts(i), rho / problem.root[i] ** 2)
            dof += degrees_of_freedom(inverse, problem.bias)
        for i in folds.blocks:
            inverse = self._block(alpha, i)
            F[i] = problem.Z[i] - delete_block(inverse, problem.bias)
            dof += degrees_of_freedom(inverse, problem.bias)
        return HeldOut(F / problem.root[:, None], dof=dof)

    def _shared(self) -> dict:
        """Arrays that do not depend on the ridge: projected targets, components outside the span of U, squares."""
        if not self._cache:
            s, B, i = self.spectrum, self.problem.targets, self.problem.folds.singles
            UB = s.U.T @ B
            outside = None if s.complete else B - s.U @ UB
            assert outside is None or self.problem.centring is None  # coupled tasks use the n x n Gram matrix
            rows = self.problem.centred(s.U)
            self._cache.update(UB=UB, vUB=UB[:, -1:] * UB, outside=outside)
            # v'(I - UU')B from the outside components: it may be tiny, and v'B - v'UU'B would lose it to rounding.
            self._cache["vout"] = 0.0 if outside is None else outside[:, -1] @ outside
            self._cache["rows"] = rows
            self._cache["U"] = U = rows[i]
            self._cache["UU"] = UU = U**2
            self._cache["pout"] = 0.0 if s.complete else np.maximum(1 - UU.sum(axis=1), 0)
            if self.problem.own is not None:
                V = _own_rows(s.V, self.problem.own[i])
                self._cache.update(sV=V * s.s, VV=V**2, UsV=U * V * s.s)
        return self._cache

    def _singles(self, alpha: float) -> Inverse:
        q, s, i, own = self._shared(), self.spectrum, self.problem.folds.singles, self.problem.own
        rho = alpha * (len(self.problem.root) - self.problem.single_weights(i))
        if np.ptp(rho) <= 1e-12 * rho.max():
            rho = rho[:1]
        rho = rho[:, None].astype(s.g.dtype)  # (1, 1) or (m, 1)
        e = 1 / (s.g + rho)  # (1, k) or (m, k)
        PB = rho * _product(q["U"], e, q["UB"])
        if q["outside"] is not None:
            PB += q["outside"][i]
        p = rho[:, 0] * _row_sums(q["UU"], e) + q["pout"]
        vPB = rho * (e @ q["vUB"]) + q["vout"]
        if own is None:
            t = np.zeros_like(p)
            return Inverse(p, PB, vPB, t, t - 1, np.zeros_like(PB))
        d = np.where(own[i] < 0, -1, -_row_sums(q["VV"], e)).astype(p.dtype)
        return Inverse(p, PB, vPB, _row_sums(q["UsV"], e), d, _product(q["sV"], e, q["UB"]))

    def _block(self, alpha: float, i: Array) -> Inverse:
        q, s = self._shared(), self.spectrum
        rho = self.problem.ridge(alpha, i)
        e = 1 / (s.g + rho)
        U, eUB = q["rows"][i], e[:, None] * q["UB"]
        p, PB = rho * (U * e) @ U.T, rho * (U @ eUB)
        if q["outside"] is not None:
            p += np.eye(len(i), dtype=p.dtype) - U @ U.T
            PB += q["outside"][i]
        own = np.empty(0, dtype=int) if self.problem.own is None else np.unique(self.problem.own[i])
        V = s.V[own[own >= 0]]
        vPB = rho * (e @ q["vUB"]) + q["vout"]
        return Inverse(p, PB, vPB, (U * (s.s * e)) @ V.T, -(V * e) @ V.T, V @ (s.s[:, None] * eUB))


def _own_rows(V: Array, own: Array) -> Array:
    """Row ``own[i]`` of V for every i; zeros where own[i] is -1."""
    rows = V[np.maximum(own, 0)]
    rows[own < 0] = 0
    return rows


def _product(A: Array, e: Array, B: Array) -> Array:
    """``A diag(e) B`` with one e for all rows, or one per row."""
    return A @ (e[0][:, None] * B) if len(e) == 1 else (A * e) @ B


def _row_sums(A: Array, e: Array) -> Array:
    """``sum_k A_ik e_ik`` with one e for all rows, or one per row."""
    return A @ e[0] if len(e) == 1 else np.einsum("ik,ik->i", A, e)


@dataclass
class CholeskyHeldout:
    """Held-out scores at one alpha from one Cholesky factor, where every row is its own basis function.

    Cheaper than the spectrum for a few alphas. Requires equal weights, and folds that are single rows except for a
    few small blocks (such as exact copies). The factor has the ridge of single rows, rho = alpha (n - 1); a block of
    m rows has the ridge rho - alpha (m - 1), and its inverse follows from the Neumann series

        (G + rho - delta)^-1 = sum_k delta^k M^(k+1),   M = (G + rho)^-1,

    which gains log10((n-1)/(m-1)) digits per term.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix, centred if the problem is. It is not modified.
    square : bool
        True if the penalty is on the coefficients (G = K^2), False if on the function (G = K).
    """

    problem: Problem
    K: Array
    square: bool
    _work: Array | None = field(default=None, repr=False)

    @staticmethod
    def suits(folds: Folds, n: int) -> bool:
        """True if the blocks are few and small enough for the Neumann series."""
        sizes = [len(block) for block in folds.blocks]
        return sum(sizes) <= n / 5 and max(sizes, default=0) <= max(n / 50, 2)

    def at(self, alpha: float) -> HeldOut:
        """Held-out scores at this alpha."""
        K, problem = self.K, self.problem
        rho = alpha * (len(K) - 1)
        factor = cholesky(self._gram(), ridge=rho, overwrite=True)
        F = np.empty_like(problem.Z)
        if problem.folds.blocks:
            self._blocks(factor, rho, alpha, F)
        i, inverse = problem.folds.singles, self._singles(factor, rho)
        F[i] = (problem.Z - delete_one(inverse, problem.bias))[i]
        return HeldOut(F, dof=degrees_of_freedom(inverse, problem.bias))

    def _gram(self) -> Array:
        """G, in a buffer reused for all alphas."""
        self._work = np.empty_like(self.K) if self._work is None else self._work
        if self.square:
            return np.matmul(self.K, self.K.T, out=self._work)
        np.copyto(self._work, self.K)
        return self._work

    def _singles(self, factor: Cholesky, rho: float) -> Inverse:
        """Inverse blocks for rows left out alone; overwrites the factor."""
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
    """M, M^2, ... between the columns ``left`` of Y and all of Y: as many powers as the Neumann series needs.

    ``left`` are the unit columns of the rows, followed by v. M is symmetric, so M^(a+b) between ``left`` and Y is the
    inner product of M^a ``left`` and M^b Y, which halves the number of solves.
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


@dataclass
class RefitHeldout:
    """Held-out scores by decomposing every fold's training rows: cheaper for a few large folds.

    These are plain refits; each decomposition serves all alphas.
    """

    problem: Problem
    design: Design
    _parts: list = field(default_factory=list, repr=False)

    def at(self, alpha: float) -> HeldOut:
        """Held-out scores at this alpha."""
        problem, design = self.problem, self.design
        F, dof = np.empty_like(problem.Z), float(problem.bias)
        for rows, stay, left, spectrum in self.fits():
            v = problem.root[stay] if problem.bias else None
            if spectrum is None:  # no basis function left: intercept only
                F[rows] = 0 if v is None else v @ problem.Z[stay] / (v @ v)
            else:
                rho = problem.ridge(alpha, rows)
                A, b = spectrum.coefficients(rho, problem.Z[stay], v)
                dof += float(np.sum(spectrum.g / (spectrum.g + rho))) / len(self._parts)
                F[rows] = design.features(rows, left) @ A + b
        return HeldOut(F, dof=dof)

    def fits(self) -> list[tuple[Array, Array, Array, Spectrum | None]]:
        """For every fold: held-out rows, training rows, remaining basis functions, spectrum of the training part."""
        if not self._parts:
            n = len(self.design.K)
            blocks = [*self.problem.folds.blocks, *self.problem.folds.singles[:, None]]
            for rows in blocks:
                stay, left = np.delete(np.arange(n), rows), self.design.left(self._owned(rows))
                spectrum = self.design.without(rows, left).spectrum() if left.shape[-1] else None
                self._parts.append((rows, stay, left, spectrum))
        return self._parts

    def _owned(self, rows: Array) -> Array:
        """Basis functions deleted together with these rows."""
        if self.design.square:
            return rows
        own = self.problem.own
        return np.empty(0, dtype=int) if own is None else np.setdiff1d(own[rows], [-1])
