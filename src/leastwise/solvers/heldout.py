"""Held-out scores of a ridge problem, by deleting rows and basis functions from the augmented system (H).

The equations are in the docstring of ``leastwise.solvers``. The solvers compute the blocks of the inverse
(``Inverse``), which ``delete_one`` and ``delete_block`` turn into held-out residuals. Of one task they come from a
dense factorisation:

``SpectralHeldout``
    One eigendecomposition or SVD of all rows, for any number of alphas.
``CholeskyHeldout``
    One Cholesky factor per alpha, and per large fold: cheaper for a few alphas.
``RefitHeldout``
    One decomposition per fold, for any number of alphas: cheaper for a few large folds.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from leastwise.linalg.decompositions import Cholesky, Spectrum, cholesky, solve_gram
from leastwise.problem.basis import Design
from leastwise.problem.coupling import Centring
from leastwise.problem.kernels import inner_products

Array = np.ndarray


@dataclass
class Inverse:
    """Blocks of the inverse of (H) without intercept, at the deleted indices.

    For rows left out one at a time, p, t, d have shape (m,) and PB, TB have shape (m, c + 1). For a block of m rows
    with o basis functions, p is (m, m), t is (m, o) and d is (o, o). vPB is v'P [z, v], of shape (c + 1,), or (m, c +
    1) if the ridge differs by row.
    """

    p: Array
    PB: Array
    vPB: Array
    t: Array
    d: Array
    TB: Array


def delete_one(B: Inverse, bias: bool, count: Array | None = None, penalty: float | Array = 1.0) -> Array:
    r"""The row part of (B_EE)^-1 (B z)_E for rows left out one at a time: a 2 x 2 system for each row.

    A row may represent m equal observations (``count``), of which one is left out. Split the row, and its own basis
    function, into that observation and the other m - 1. This is an orthogonal change of coordinates; the added
    coordinates have zero target and zero design, so the inverse of (H) is 1 for residuals and -1 / rho for
    coefficients there. The entries of the one observation are

        p' = p / m + (1 - 1/m),     t' = t / m,     d' = d / m - (1 - 1/m) / rho,

    (``penalty`` is rho, divided by the weight of the basis function if coefficients belong to the unweighted one),
    and the right-hand side is divided by sqrt(m), as is the root of the weight. Without a basis function of its own,
    the held-out residual is e / (1 - h / m), with e the residual and h = 1 - p the leverage of the row.
    """
    p, t, d = B.p, B.t, B.d
    Pz, Tz = B.PB[:, :-1], B.TB[:, :-1]
    if bias:
        Pv, Tv, vPv = B.PB[:, -1], B.TB[:, -1], B.vPB[:, -1]
        p, t, d = p - Pv**2 / vPv, t - Pv * Tv / vPv, d - Tv**2 / vPv
        Pz = Pz - Pv[:, None] * B.vPB[:, :-1] / vPv[:, None]
        Tz = Tz - Tv[:, None] * B.vPB[:, :-1] / vPv[:, None]
    if count is not None:
        p, t, d = split_counts(p, t, d, count, penalty)
    return (d[:, None] * Pz - t[:, None] * Tz) / (p * d - t**2)[:, None]


def split_counts(p: Array, t: Array, d: Array, count: Array, penalty: float | Array) -> tuple[Array, Array, Array]:
    """p', t', d' of one of the equal observations that each row represents; see ``delete_one``."""
    rest = 1 - 1 / count
    return p / count + rest, t / count, d / count - rest / penalty


def delete_block(B: Inverse, bias: bool) -> Array:
    """The row part of (B_EE)^-1 (B z)_E for a block of rows left out together."""
    M = np.block([[B.p, B.t], [B.t.T, B.d]])
    right = np.vstack([B.PB, B.TB])
    R = right[:, :-1]
    if bias:
        v = right[:, -1]
        M = M - np.outer(v, v / B.vPB[-1])
        R = R - np.outer(v, B.vPB[:-1] / B.vPB[-1])
    return np.linalg.solve(M, R)[: len(B.p)]


def degrees_of_freedom(B: Inverse, bias: bool) -> float:
    """Sum of the leverages of the rows, ``1 - P_ii``."""
    p = B.p if B.p.ndim == 1 else np.diagonal(B.p)
    if bias:
        p = p - B.PB[:, -1] ** 2 / B.vPB[..., -1]
    return float(np.sum(1 - p))


@dataclass(frozen=True)
class Folds:
    """Partition of the rows into held-out sets.

    Attributes
    ----------
    singles : ndarray of int
        Rows held out alone.
    blocks : list of ndarray of int
        Sets of two or more rows held out together.
    """

    singles: Array
    blocks: list[Array]

    @classmethod
    def from_labels(cls, labels: Array) -> Folds:
        """Rows with the same fold label are held out together."""
        order = np.argsort(labels, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(labels[order]) != 0])
        sizes = np.diff(np.r_[starts, len(labels)])
        singles = np.sort(order[starts[sizes == 1]])
        blocks = [order[a : a + m] for a, m in zip(starts, sizes, strict=True) if m > 1]
        return cls(singles, blocks)

    @classmethod
    def only(cls, rows: Array) -> Folds:
        """These rows are held out together, and no others; scores of the others, and leverages, are meaningless."""
        return cls(rows, []) if len(rows) == 1 else cls(rows[:0], [rows])

    def partial(self, n: int) -> bool:
        """True if some of n rows are not held out."""
        return len(self.singles) + sum(map(len, self.blocks)) < n


@dataclass(frozen=True)
class Problem:
    """One weighted ridge problem, as the held-out formulas need it.

    Attributes
    ----------
    Z : ndarray of shape (n, c)
        Targets, multiplied by the square roots of the weights.
    root : ndarray of shape (n,)
        Square roots of the weights, which have mean 1.
    bias : bool
        True if there is an unpenalised intercept; its column is ``root``.
    own : ndarray of shape (n,) or None
        Index of each row's own basis function, -1 for none; None if no row has one.
    folds : Folds
    centring : Centring or None
        W for task-specific intercepts; the Gram matrix is then given as ``W G W``.
    count : ndarray of shape (n,) or None
        Number of observations that each row represents; leave-one-out removes one at a time. None if whole rows are
        held out.
    """

    Z: Array
    root: Array
    bias: bool
    own: Array | None
    folds: Folds
    centring: Centring | None = None
    count: Array | None = None

    @cached_property
    def targets(self) -> Array:
        """Targets with the intercept column appended, centred."""
        return self.centred(np.column_stack([self.Z, self.root]))

    def centred(self, A: Array) -> Array:
        """``W A``."""
        return A if self.centring is None else self.centring.rows(A)

    def ridge(self, alpha: float, rows: Array) -> float:
        """Ridge of a fold: alpha times the weight of its training rows."""
        return alpha * float(len(self.root) - np.sum(self.root[rows] ** 2))

    def counts(self, rows: Array) -> Array | None:
        """Observation counts of these rows, for deleting one observation at a time; None if all are 1."""
        if self.count is None or np.all(self.count[rows] == 1):
            return None
        return self.count[rows].astype(self.Z.dtype)

    def single_weights(self, rows: Array) -> Array:
        """Weight removed when each of these rows, or one of its observations, is left out."""
        w = self.root[rows] ** 2
        return w if self.count is None else w / self.count[rows]

    @property
    def n_folds(self) -> float:
        """Number of deletions: blocks, plus the observations of rows left out alone."""
        singles = self.folds.singles
        alone = len(singles) if self.count is None else float(np.sum(self.count[singles]))
        return alone + len(self.folds.blocks)


@dataclass(frozen=True)
class HeldOut:
    """Held-out scores of all rows (n x c).

    ``noise`` (n) estimates the rounding error of each score, if it is not negligible. ``dof`` is the effective number
    of degrees of freedom: the sum of the leverages of the rows.
    """

    F: Array
    noise: Array | None = None
    dof: float = 0.0

    def without_rounding(self, nothing: Array | None = None) -> HeldOut:
        """Set scores that are only rounding error to zero; ``nothing`` masks rows whose scores are exactly zero.

        Held-out scores are computed as differences from targets of 0 and 1. If the true score is zero, because no
        training row is near, the remaining rounding error depends on the target, and a calibrator would learn it.
        """
        zero = np.abs(self.F) <= 100 * np.finfo(self.F.dtype).eps
        if self.noise is None and nothing is None and not zero.any():
            return self
        if self.noise is not None:
            zero |= np.abs(self.F) <= 100 * self.noise[:, None]
        if nothing is not None:
            zero |= nothing[:, None]
        return replace(self, F=np.where(zero, self.F.dtype.type(0), self.F))


# --------------------------------------------------------- dense factorisations


@dataclass
class SpectralHeldout:
    """Held-out scores for any number of alphas, from one spectrum."""

    problem: Problem
    spectrum: Spectrum
    _cache: dict = field(default_factory=dict, repr=False)

    def at(self, alpha: float) -> HeldOut:
        """Held-out scores at this alpha."""
        problem, folds = self.problem, self.problem.folds
        F, dof = np.zeros_like(problem.Z), 0.0
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
    """Held-out scores at one alpha from Cholesky factors, where every row is its own basis function.

    Cheaper than the spectrum for a few alphas. Requires equal weights. Rows that are held out alone share one factor
    with the ridge rho = alpha (n - 1). A block of m rows has the ridge rho - alpha (m - 1). If blocks are few and
    small (such as exact copies), their inverses follow from the Neumann series

        (G + rho - delta)^-1 = sum_k delta^k M^(k+1),   M = (G + rho)^-1,

    which gains log10((n-1)/(m-1)) digits per term. Otherwise each block has a factor of its own.

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
    def n_factors(folds: Folds, n: int) -> int:
        """Number of factors for one alpha."""
        return 1 if _few_and_small(folds, n) else bool(len(folds.singles)) + len(folds.blocks)

    def at(self, alpha: float) -> HeldOut:
        """Held-out scores at this alpha."""
        problem, folds, n = self.problem, self.problem.folds, len(self.K)
        F, dof = np.zeros_like(problem.Z), 0.0
        shares = _few_and_small(folds, n)
        if folds.partial(n) and problem.centring is None and not self.square:
            for block in [*folds.blocks, *folds.singles[:, None]]:
                self._refit(block, alpha * (n - len(block)), F)
            return HeldOut(F)
        if not shares:
            for block in folds.blocks:
                dof += self._block(block, alpha * (n - len(block)), F)
        if shares or len(folds.singles):
            rho = alpha * (n - 1)
            factor = cholesky(self._gram(), ridge=rho, overwrite=True)
            if shares and folds.blocks:
                self._blocks(factor, rho, alpha, F)
            i, inverse = folds.singles, self._singles(factor, rho)
            F[i] = (problem.Z - delete_one(inverse, problem.bias))[i]
            dof = degrees_of_freedom(inverse, problem.bias)  # of all rows
        return HeldOut(F, dof=dof)

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

    def _block(self, block: Array, rho: float, F: Array) -> float:
        """Fill in the held-out scores of one block, by a factor with its ridge; returns the sum of its leverages."""
        problem, K, c1 = self.problem, self.K, self.problem.Z.shape[1] + 1
        factor = cholesky(self._gram(), ridge=rho, overwrite=True)
        unit = np.zeros((len(K), len(block)), dtype=K.dtype)
        unit[block, np.arange(len(block))] = 1
        right = [problem.targets, problem.centred(unit)]
        M = factor.solve(np.hstack(right + ([K @ right[0], K[:, block]] if self.square else [])))
        vMB = np.einsum("i,ij->j", right[0][:, -1], M[:, :c1])
        M = problem.centred(M)[block]
        MB, M_f, rest = M[:, :c1], M[:, c1 : c1 + len(block)], M[:, c1 + len(block) :]
        t, d, TB = np.empty((len(block), 0)), np.empty((0, 0)), np.empty((0, c1))
        if self.square:
            t, d, TB = rest[:, c1:], -M_f, rest[:, :c1]
        inverse = Inverse(rho * M_f, rho * MB, rho * vMB, t, d, TB)
        F[block] = problem.Z[block] - delete_block(inverse, problem.bias)
        return degrees_of_freedom(inverse, problem.bias)

    def _refit(self, block: Array, rho: float, F: Array) -> None:
        """Fill in the held-out scores of one block by a fit to the other rows, without their leverages."""
        problem, stay = self.problem, np.delete(np.arange(len(self.K)), block)
        bias = problem.root[stay] if problem.bias else None
        A, b, _ = solve_gram(self.K[np.ix_(stay, stay)], problem.Z[stay], rho, bias)
        F[block] = self.K[np.ix_(block, stay)] @ A + b

    def _blocks(self, factor: Cholesky, rho: float, alpha: float, F: Array) -> None:
        """Fill in the held-out scores of few and small blocks."""
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


def _few_and_small(folds: Folds, n: int) -> bool:
    """True if the blocks are few and small enough for the Neumann series."""
    sizes = [len(block) for block in folds.blocks]
    return sum(sizes) <= n / 5 and max(sizes, default=0) <= max(n / 50, 2)


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
