r"""Held-out scores in closed form: what the model says of rows that it was not trained on, without a refit.

The ridge problem, with residual r = z - Phi theta and intercept column v, is the symmetric system

    [ I     Phi   v ] [ r     ]   [ z ]
    [ Phi' -rho   0 ] [ theta ] = [ 0 ]                                                        (H)
    [ v'    0     0 ] [ b     ]   [ 0 ]

Leaving out the rows f, together with the basis functions o that those rows own, deletes the unknowns r_f and
theta_o with their equations. Let B be the inverse of (H) and E the deleted indices. Then the held-out scores are

    f_f = z_f - [ (B_EE)^-1 (B [z; 0; 0])_E ]_f,

exact, for one row or many. Without the intercept, and with Phi = U diag(s) V', the blocks of the inverse are

    P = I - U diag(s^2 e) U',   T = U diag(s e) V',   D = -V diag(e) V',   e = 1 / (s^2 + rho);

the intercept takes off one rank. For one row this is a 2 x 2 system, and a whole regularisation path of
leave-one-out costs a few matrix products. Where the penalty is on the function and every row is a basis
function, deleting the row deletes its basis function too: E = f alone does it.

The ridge is rho = alpha * (weight of the rows that stay), as a refit would have it; with unequal weights it
differs from fold to fold.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from leastwise.linalg.cholesky import Cholesky, cholesky
from leastwise.linalg.spectrum import Spectrum

Array = np.ndarray


@dataclass(frozen=True)
class Folds:
    """Which rows are held out together.

    Attributes
    ----------
    singles : ndarray of int
        Rows that are held out alone.
    blocks : list of ndarray of int
        Sets of two or more rows that are held out together.
    """

    singles: Array
    blocks: list[Array]

    @classmethod
    def from_labels(cls, labels: Array) -> Folds:
        """Rows with the same label are held out together."""
        order = np.argsort(labels, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(labels[order]) != 0])
        sizes = np.diff(np.r_[starts, len(labels)])
        singles = np.sort(order[starts[sizes == 1]])
        blocks = [order[a : a + m] for a, m in zip(starts, sizes, strict=True) if m > 1]
        return cls(singles, blocks)


@dataclass(frozen=True)
class Problem:
    """One ridge problem as the held-out formulas see it.

    Attributes
    ----------
    Z : ndarray of shape (n, c)
        Targets, multiplied by the roots of the weights.
    root : ndarray of shape (n,)
        Roots of the weights; the weights have mean 1.
    bias : bool
        Whether there is an unpenalised intercept; its column is ``root``.
    own : ndarray of shape (n,) or None
        The basis function that belongs to each row, -1 for none; None where no row owns one.
    folds : Folds
    """

    Z: Array
    root: Array
    bias: bool
    own: Array | None
    folds: Folds

    @property
    def targets(self) -> Array:
        """Targets with the intercept's column behind them."""
        return np.column_stack([self.Z, self.root])

    def ridge(self, alpha: float, rows: Array) -> float:
        """The ridge of a fold: alpha times the weight of the rows that stay."""
        return alpha * float(len(self.root) - np.sum(self.root[rows] ** 2))


@dataclass(frozen=True)
class Held:
    """Held-out scores of all rows (n x c), and the scores far from all data (c): the intercepts, or zeros."""

    F: Array
    far: Array


@dataclass
class _Inverse:
    """The blocks of the inverse of (H) without intercept, on the deleted indices (see the module's text).

    Singles: p, t, d have shape (m,) and PB, TB (m, c + 1). Blocks: p (m, m), t (m, o), d (o, o).
    vPB is v'P [z, v], of shape (c + 1,) or, where the ridge differs by row, (m, c + 1).
    """

    p: Array
    PB: Array
    vPB: Array
    t: Array
    d: Array
    TB: Array


@dataclass
class SpectralHeldout:
    """Held-out scores of one problem for any number of ridges, from one spectrum."""

    problem: Problem
    spectrum: Spectrum
    _cache: dict = field(default_factory=dict, repr=False)

    def at(self, alpha: float) -> Held:
        """Held-out scores at this alpha."""
        problem, folds = self.problem, self.problem.folds
        F = np.empty_like(problem.Z)
        if len(folds.singles):
            i = folds.singles
            F[i] = problem.Z[i] - _delete_one(self._singles(alpha), problem.bias)
        for i in folds.blocks:
            F[i] = problem.Z[i] - _delete_block(self._block(alpha, i), problem.bias)
        q, rho = self._shared(), alpha * len(F)
        vPB = rho * ((1 / (self.spectrum.g + rho)) @ q["vUB"]) + q["vout"]
        return Held(F / problem.root[:, None], _intercept(vPB, problem.bias))

    def _shared(self) -> dict:
        """What no ridge changes: projections of the targets, the part outside of U, squares."""
        if not self._cache:
            s, B, i = self.spectrum, self.problem.targets, self.problem.folds.singles
            UB = s.U.T @ B
            outside = None if s.complete else B - s.U @ UB
            self._cache.update(UB=UB, vUB=UB[:, -1:] * UB, outside=outside)
            self._cache["vout"] = 0.0 if outside is None else B[:, -1] @ outside
            self._cache["U"] = U = s.U[i]
            self._cache["UU"] = UU = U**2
            self._cache["pout"] = 0.0 if s.complete else np.maximum(1 - UU.sum(axis=1), 0)
            if self.problem.own is not None:
                V = _own_rows(s.V, self.problem.own[i])
                self._cache.update(sV=V * s.s, VV=V**2, UsV=U * V * s.s)
        return self._cache

    def _singles(self, alpha: float) -> _Inverse:
        q, s, i, own = self._shared(), self.spectrum, self.problem.folds.singles, self.problem.own
        rho = alpha * (len(self.problem.root) - self.problem.root[i] ** 2)
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
            return _Inverse(p, PB, vPB, t, t - 1, np.zeros_like(PB))
        d = np.where(own[i] < 0, -1, -_row_sums(q["VV"], e)).astype(p.dtype)
        return _Inverse(p, PB, vPB, _row_sums(q["UsV"], e), d, _product(q["sV"], e, q["UB"]))

    def _block(self, alpha: float, i: Array) -> _Inverse:
        q, s = self._shared(), self.spectrum
        rho = self.problem.ridge(alpha, i)
        e = 1 / (s.g + rho)
        U, eUB = s.U[i], e[:, None] * q["UB"]
        p, PB = rho * (U * e) @ U.T, rho * (U @ eUB)
        if q["outside"] is not None:
            p += np.eye(len(i), dtype=p.dtype) - U @ U.T
            PB += q["outside"][i]
        own = np.empty(0, dtype=int) if self.problem.own is None else np.unique(self.problem.own[i])
        V = s.V[own[own >= 0]]
        vPB = rho * (e @ q["vUB"]) + q["vout"]
        return _Inverse(p, PB, vPB, (U * (s.s * e)) @ V.T, -(V * e) @ V.T, V @ (s.s[:, None] * eUB))


def _intercept(vPB: Array, bias: bool) -> Array:
    """The intercepts: b = v'PZ / v'Pv."""
    return vPB[:-1] / vPB[-1] if bias else np.zeros_like(vPB[:-1])


def _own_rows(V: Array, own: Array) -> Array:
    """Row ``own[i]`` of V for every i, zeros where there is none."""
    rows = V[np.maximum(own, 0)]
    rows[own < 0] = 0
    return rows


def _product(A: Array, e: Array, B: Array) -> Array:
    """``A diag(e) B`` with one e for all rows, or one for each."""
    return A @ (e[0][:, None] * B) if len(e) == 1 else (A * e) @ B


def _row_sums(A: Array, e: Array) -> Array:
    """``sum_k A_ik e_ik`` with one e for all rows, or one for each."""
    return A @ e[0] if len(e) == 1 else np.einsum("ik,ik->i", A, e)


def _delete_one(B: _Inverse, bias: bool) -> Array:
    """(B_EE)^-1 (B z)_E, first part, for rows left out one at a time: a 2 x 2 system for each."""
    p, t, d = B.p, B.t, B.d
    Pz, Tz = B.PB[:, :-1], B.TB[:, :-1]
    if bias:
        Pv, Tv, vPv = B.PB[:, -1], B.TB[:, -1], B.vPB[:, -1]
        p, t, d = p - Pv**2 / vPv, t - Pv * Tv / vPv, d - Tv**2 / vPv
        Pz = Pz - Pv[:, None] * B.vPB[:, :-1] / vPv[:, None]
        Tz = Tz - Tv[:, None] * B.vPB[:, :-1] / vPv[:, None]
    return (d[:, None] * Pz - t[:, None] * Tz) / (p * d - t**2)[:, None]


def _delete_block(B: _Inverse, bias: bool) -> Array:
    """(B_EE)^-1 (B z)_E, first part, for a set of rows left out together."""
    M = np.block([[B.p, B.t], [B.t.T, B.d]])
    right = np.vstack([B.PB, B.TB])
    R = right[:, :-1]
    if bias:
        v = right[:, -1]
        M = M - np.outer(v, v / B.vPB[-1])
        R = R - np.outer(v, B.vPB[:-1] / B.vPB[-1])
    return np.linalg.solve(M, R)[: len(B.p)]


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
        Kernel matrix; kept as it is.
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
        F[i] = (problem.Z - _delete_one(inverse, problem.bias))[i]
        return Held(F, _intercept(inverse.vPB[0], problem.bias))

    def _gram(self) -> Array:
        """G, in room that all alphas share."""
        self._work = np.empty_like(self.K) if self._work is None else self._work
        if self.square:
            return np.matmul(self.K, self.K, out=self._work)
        np.copyto(self._work, self.K)
        return self._work

    def _singles(self, factor: Cholesky, rho: float) -> _Inverse:
        """The pieces for rows left out alone; the factor is used up."""
        B = self.problem.targets
        MB, MKB = factor.solve(B), factor.solve(self.K @ B) if self.square else None
        L = factor.inverse_factor(overwrite=True)
        m = np.einsum("ij,ij->j", L, L)  # diagonal of M = L'^-1 L^-1
        vMB = np.einsum("i,ij->j", self.problem.root, MB)[None]
        if MKB is None:  # P = rho M, and the factor rho cancels
            return _Inverse(m, MB, vMB, np.zeros_like(m), np.zeros_like(m) - 1, np.zeros_like(MB))
        MK = np.einsum("ij,ij->j", L, L @ self.K)  # diagonal
        return _Inverse(rho * m, rho * MB, rho * vMB, MK, -m, MKB)

    def _blocks(self, factor: Cholesky, rho: float, alpha: float, F: Array) -> None:
        """Fill in the held-out scores of the blocks."""
        problem, K, blocks = self.problem, self.K, self.problem.folds.blocks
        n, c1 = len(K), problem.Z.shape[1] + 1
        rows = np.concatenate(blocks)
        unit = np.zeros((n, len(rows)), dtype=K.dtype)
        unit[rows, np.arange(len(rows))] = 1
        right = [problem.targets, unit] + ([K @ problem.targets, K[:, rows]] if self.square else [])
        powers = _powers(factor, np.hstack(right), rows, problem.root, max(len(b) for b in blocks) / n)
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
            inverse = _Inverse(ridge * M_f, ridge * M[:, :c1], ridge * vMB, t, d, TB)
            F[block] = problem.Z[block] - _delete_block(inverse, problem.bias)


def _powers(factor: Cholesky, Y: Array, rows: Array, v: Array, ratio: float) -> Array:
    """These rows of M Y, M^2 Y, ..., and v'M Y, v'M^2 Y, ... behind them: as many as the Neumann series needs."""
    terms = int(np.ceil(np.log(np.finfo(Y.dtype).eps) / np.log(min(ratio, 0.5))))
    powers = np.empty((terms, len(rows) + 1, Y.shape[1]), dtype=Y.dtype)
    for k in range(terms):
        Y = factor.solve(Y)
        powers[k, :-1], powers[k, -1] = Y[rows], np.einsum("i,ij->j", v, Y)
    return powers
