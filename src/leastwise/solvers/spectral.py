"""Held-out scores from one spectrum, for any number of ridges."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from leastwise.linalg.spectrum import Spectrum
from leastwise.solvers.heldout import Held, Inverse, Problem, delete_block, delete_one, follows

Array = np.ndarray


@dataclass
class SpectralHeldout:
    """Held-out scores of one problem for any number of ridges, from one spectrum."""

    problem: Problem
    spectrum: Spectrum
    _cache: dict = field(default_factory=dict, repr=False)

    def at(self, alpha: float) -> Held:
        """Held-out scores at this alpha."""
        problem, folds = self.problem, self.problem.folds
        F, freedom = np.empty_like(problem.Z), 0.0
        if len(folds.singles):
            i, inverse = folds.singles, self._singles(alpha)
            rho = alpha * (len(F) - problem.single_weights(i))
            F[i] = problem.Z[i] - delete_one(inverse, problem.bias, problem.counts(i), rho / problem.root[i] ** 2)
            freedom += follows(inverse, problem.bias)
        for i in folds.blocks:
            inverse = self._block(alpha, i)
            F[i] = problem.Z[i] - delete_block(inverse, problem.bias)
            freedom += follows(inverse, problem.bias)
        return Held(F / problem.root[:, None], freedom=freedom)

    def _shared(self) -> dict:
        """What no ridge changes: projections of the targets, the part outside of U, squares."""
        if not self._cache:
            s, B, i = self.spectrum, self.problem.targets, self.problem.folds.singles
            UB = s.U.T @ B
            outside = None if s.complete else B - s.U @ UB
            assert outside is None or self.problem.centring is None  # tasks have the Gram matrix of all rows
            rows = self.problem.centred(s.U)
            self._cache.update(UB=UB, vUB=UB[:, -1:] * UB, outside=outside)
            # v'(I - UU')B as a product of what is outside: it may be tiny, and v'B would drown it in rounding.
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
