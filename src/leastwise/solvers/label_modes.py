r"""Held-out scores of coupled labels, along the eigenvectors (modes) of the label matrix B.

Holding out a row holds out all of its labels. Rotated by the eigenvectors of B (``leastwise.linalg.sylvester``), the
problem decouples into one ridge problem per mode with the Gram matrix ``b_k G``, from which rows and their basis
functions are deleted as in ``leastwise.solvers``. With ``M_k = (b_k G + rho)^-1``, the blocks of the inverse are

    P_k = rho M_k,     T_k = sqrt(b_k) M_k Phi,     D_k = -(I - b_k Phi' M_k Phi) / rho.

``LabelHeldout`` computes all modes at once, ``ModewiseHeldout`` one after the other with the exact ridge of every
row, and ``LabelRefits`` decomposes the training rows of every fold.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from leastwise.linalg.decompositions import Spectrum
from leastwise.linalg.sylvester import Modes, solve_sylvester
from leastwise.solvers.heldout import HeldOut, Problem, RefitHeldout, SpectralHeldout, split_counts

Array = np.ndarray

#: Maximal number of batches, by weight, of rows held out alone.
BATCHES = 16
#: Array entries held at a time for blocks of rows.
ROOM = 2**23


@dataclass(frozen=True)
class LabelGroup:
    """Labels with common classes.

    Attributes
    ----------
    labels : ndarray of int of shape (T,)
        Label indices.
    columns : ndarray of int of shape (c, T)
        Output columns by class and label.
    """

    labels: Array
    columns: Array


@dataclass(frozen=True)
class CoupledLabels:
    """A label group with the modes of its block of B."""

    family: LabelGroup
    modes: Modes

    def take(self, A: Array) -> Array:
        """Targets or scores of the group, of shape (rows, c, T), from those of all outputs."""
        return A[:, self.family.columns]


@dataclass
class LabelSpectrum:
    """One spectrum, with arrays that depend on neither ridge nor sharing."""

    problem: Problem
    spectrum: Spectrum

    @cached_property
    def UZ(self) -> Array:
        """Projected targets ``U'Z``."""
        return self.spectrum.U.T @ self.problem.Z

    @cached_property
    def outside(self) -> Array | None:
        """Components of the targets, and of the intercept column appended to them, outside the span of U."""
        B = self.problem.targets
        return None if self.spectrum.complete else B - self.spectrum.U @ np.column_stack([self.UZ, self.Uv])

    @cached_property
    def Uv(self) -> Array:
        """Projected intercept column ``U'v``."""
        return self.spectrum.U.T @ self.problem.root

    @cached_property
    def pout(self) -> Array:
        """Squared norm of every row's unit vector outside the span of U."""
        U = self.spectrum.U
        return np.zeros(len(U), U.dtype) if self.spectrum.complete else np.maximum(1 - np.sum(U**2, axis=1), 0)

    @cached_property
    def own(self) -> Array | None:
        """The row of V of every row's own basis function; zeros if it has none."""
        if self.problem.own is None:
            return None
        V = self.spectrum.V[np.maximum(self.problem.own, 0)]
        V[self.problem.own < 0] = 0
        return V

    @cached_property
    def stacks(self) -> list[tuple[Array, Array]]:
        """Folds of several rows and their own basis functions, stacked by size and weight."""
        own, weights = self.problem.own, self.problem.root**2
        alike: dict[tuple[int, int, float], list[tuple[Array, Array]]] = {}
        for rows in self.problem.folds.blocks:
            functions = np.empty(0, dtype=int) if own is None else np.setdiff1d(own[rows], [-1])
            weight = float(f"{np.sum(weights[rows]):.3g}")  # similar weights have similar ridges
            alike.setdefault((len(rows), len(functions), weight), []).append((rows, functions))
        stacks = []
        for (q, o, _), members in alike.items():
            step = max(1, ROOM // ((q + o) ** 2 * self.spectrum.U.shape[1]))
            for a in range(0, len(members), step):
                some = members[a : a + step]
                stacks.append((np.stack([rows for rows, _ in some]), np.stack([own for _, own in some])))
        return stacks

    @cached_property
    def batches(self) -> list[tuple[Array, float]]:
        """Batches of rows held out alone, by weight, with the mean weight of each batch."""
        rows = self.problem.folds.singles
        leaving = self.problem.single_weights(rows)
        w, group = np.unique(leaving, return_inverse=True)
        if len(w) > BATCHES:
            group = group * BATCHES // len(w)
        return [(rows[group == k], float(np.mean(leaving[group == k]))) for k in np.unique(group)]

    @cached_property
    def _squares(self) -> tuple[Array, Array | None, Array | None]:
        U, V = self.spectrum.U, self.own
        return U**2, None if V is None else V**2, None if V is None else U * self.spectrum.s * V

    def pieces(self, rows: Array) -> tuple[Array, Array, Array | None, Array | None]:
        """``U``, ``U^2``, ``V^2`` and ``U s V`` of some rows."""
        (UU, VV, UsV), U = self._squares, self.spectrum.U
        if len(rows) == len(U):
            return U, UU, VV, UsV
        return U[rows], UU[rows], None if VV is None else VV[rows], None if UsV is None else UsV[rows]


@dataclass
class LabelHeldout:
    """Held-out scores of coupled labels at one sharing, for any alpha, from one spectrum.

    Holding out a row of weight w leaves a ridge of ``alpha (n - w)``. Rows of similar weight use the same ridge: this
    is exact if there are few distinct weights, otherwise the relative error is their difference divided by n.
    """

    base: LabelSpectrum
    coupled_labels: list[CoupledLabels]
    _rotated: dict = field(default_factory=dict, repr=False)

    def at(self, alpha: float) -> HeldOut:
        """Held-out scores at this alpha."""
        problem = self.base.problem
        F = np.zeros_like(problem.Z)
        for index, coupled in enumerate(self.coupled_labels):
            error = np.empty((len(F), *coupled.family.columns.shape), dtype=F.dtype)
            for rows, w in self.base.batches:
                error[rows] = self._singles(index, rows, alpha * (len(F) - w))
            for blocks, own in self.base.stacks:
                weight = float(np.mean(np.sum(problem.root[blocks] ** 2, axis=1)))
                error[blocks] = self._blocks(index, blocks, own, alpha * (len(F) - weight))
            F[:, coupled.family.columns] = coupled.take(problem.Z) - error
        return HeldOut(F / problem.root[:, None])

    def _targets(self, index: int) -> tuple[Array, Array | None]:
        """Rotated projected targets of a group (k, c, m), and their components outside the span of U (n, c, m)."""
        if index not in self._rotated:
            coupled, out = self.coupled_labels[index], self.base.outside
            outside = None if out is None else coupled.modes.rotate(coupled.take(out[:, :-1]))
            self._rotated[index] = coupled.modes.rotate(coupled.take(self.base.UZ)), outside
        return self._rotated[index]

    def _singles(self, index: int, rows: Array, rho: float) -> Array:
        """Held-out residuals of rows left out one at a time: a 2 x 2 system per row and mode."""
        base, modes, (UZ, outside) = self.base, self.coupled_labels[index].modes, self._targets(index)
        b, which = modes.values.astype(UZ.dtype), modes.which
        e = 1 / (base.spectrum.g[:, None] * b + UZ.dtype.type(rho))
        U, UU, VV, UsV = base.pieces(rows)
        eZ = e[:, None, which] * UZ
        p, Pz = rho * (UU @ e) + base.pout[rows][:, None], rho * times_each(U, eZ)
        if outside is not None:
            Pz += outside[rows]
        if base.own is None:
            t, d, Tz = np.zeros_like(p), np.full_like(p, -1), np.zeros_like(Pz)
        else:
            assert VV is not None
            assert UsV is not None
            assert base.problem.own is not None
            t, sV = np.sqrt(b) * (UsV @ e), base.own[rows] * base.spectrum.s
            d = np.where(base.problem.own[rows][:, None] < 0, -1, -VV @ e).astype(p.dtype)
            Tz = np.sqrt(b)[which] * times_each(sV, eZ)
        if base.problem.bias:
            Pv, Tv, vPv, vPz = self._bias(index, rows, rho, e, eZ)
            p, t, d = p - Pv**2 / vPv, t - Pv * Tv / vPv, d - Tv**2 / vPv
            share = vPz / vPv[which]
            Pz, Tz = Pz - Pv[:, None, which] * share, Tz - Tv[:, None, which] * share
        count = base.problem.counts(rows)
        if count is not None:
            p, t, d = split_counts(p, t, d, count[:, None], rho / (base.problem.root[rows] ** 2)[:, None])
        t, d, whole = t[:, None, which], d[:, None, which], (p * d - t**2)[:, None, which]
        return modes.back((d * Pz - t * Tz) / whole)

    def _bias(self, index: int, rows: Array, rho: float, e: Array, eZ: Array) -> tuple[Array, Array, Array, Array]:
        """``P v`` and ``T' v`` of some rows (m, d), ``v' P v`` (d) and ``v' P z`` (c, m)."""
        base, b, (_, outside) = self.base, self.coupled_labels[index].modes.values, self._targets(index)
        ev = e * base.Uv[:, None]
        Pv, vPv = rho * (base.spectrum.U[rows] @ ev), rho * (base.Uv @ ev)
        vPz = rho * np.einsum("k,kcm->cm", base.Uv, eZ)
        if outside is not None:
            assert base.outside is not None
            out = base.outside[:, -1]  # its square keeps its digits; a difference from v'v would lose them
            Pv, vPv = Pv + out[rows, None], vPv + out @ out
            vPz = vPz + np.einsum("i,icm->cm", out, outside)
        Tv = np.zeros_like(Pv) if base.own is None else np.sqrt(b) * ((base.own[rows] * base.spectrum.s) @ ev)
        return Pv, Tv, vPv, vPz

    def _blocks(self, index: int, rows: Array, own: Array, rho: float) -> Array:
        """Held-out residuals of rows left out together with their basis functions: one system per mode.

        ``rows`` (blocks, q) and ``own`` (blocks, o) belong to blocks of one size and one ridge.
        """
        base, modes, (UZ, outside) = self.base, self.coupled_labels[index].modes, self._targets(index)
        s, b, which = base.spectrum, modes.values.astype(UZ.dtype), modes.which
        e = 1 / (s.g[:, None] * b + UZ.dtype.type(rho))
        U, V, eZ = s.U[rows], s.V[own], e[:, None, which] * UZ
        p, Pz = rho * (_pairs(U, U) @ e), rho * times_each(U, eZ)
        if outside is not None:
            inside = U @ U.transpose(0, 2, 1)
            p, Pz = p + (np.eye(rows.shape[1], dtype=p.dtype) - inside)[..., None], Pz + outside[rows]
        t, d = np.sqrt(b) * (_pairs(U * s.s, V) @ e), -(_pairs(V, V) @ e)
        Tz = np.sqrt(b)[which] * times_each(V * s.s, eZ)
        M = np.concatenate([np.concatenate([p, t], 2), np.concatenate([t.transpose(0, 2, 1, 3), d], 2)], 1)
        R = np.concatenate([Pz, Tz], 1)  # (blocks, rows and functions, c, m)
        if base.problem.bias:
            Pv, _, vPv, vPz = self._bias(index, rows.ravel(), rho, e, eZ)
            Tv = np.sqrt(b) * ((V * s.s) @ (e * base.Uv[:, None]))
            v = np.concatenate([Pv.reshape(*rows.shape, -1), Tv], 1)
            M = M - v[:, :, None] * v[:, None] / vPv
            R = R - v[:, :, None, which] * (vPz / vPv[which])
        for k in range(len(b)):  # columns with the same eigenvalue share a system
            mine = which == k
            right = R[..., mine]
            R[..., mine] = np.linalg.solve(M[..., k], right.reshape(*R.shape[:2], -1)).reshape(right.shape)
        return modes.back(R[:, : rows.shape[1]])


def times_each(A: Array, B: Array) -> Array:
    """``A B`` for A of shape (..., k) and B (k, c, m)."""
    return (A @ B.reshape(len(B), -1)).reshape(*A.shape[:-1], *B.shape[1:])


def _pairs(A: Array, B: Array) -> Array:
    """Elementwise products of all pairs of rows within blocks: (blocks, q, o, k)."""
    return A[:, :, None] * B[:, None]


#: Smallest eigenvalue relative to the largest; a mode at this floor has no scores but its intercept.
LEAST = 1e-15


@dataclass
class ModewiseHeldout:
    """Held-out scores of coupled labels at one sharing, mode by mode.

    With unequal weights the ridge differs from row to row, so that nothing is gained by handling all modes at once.
    Mode k is an ordinary ridge problem with ``alpha / b_k``.
    """

    problem: Problem
    spectrum: Spectrum
    coupled_labels: list[CoupledLabels]

    def at(self, alpha: float) -> HeldOut:
        """Held-out scores at this alpha."""
        problem = self.problem
        F = np.zeros_like(problem.Z)
        for coupled in self.coupled_labels:
            modes, c = coupled.modes, coupled.family.columns
            Z = modes.rotate(coupled.take(problem.Z))
            G = np.empty_like(Z)
            least = LEAST * max(float(modes.values.max()), np.finfo(Z.dtype).tiny)
            for k, b in enumerate(modes.values):
                mine = modes.which == k
                part = replace(problem, Z=Z[:, :, mine].reshape(len(Z), -1))
                held = SpectralHeldout(part, self.spectrum).at(alpha / max(float(b), least))
                G[:, :, mine] = held.F.reshape(len(Z), len(c), -1)
            F[:, c] = modes.back(G)
        return HeldOut(F)


@dataclass
class LabelRefits(RefitHeldout):
    """Held-out scores by decomposing every fold's training rows, for all alphas and sharings."""

    def scores(self, alpha: float, coupled_labels: list[CoupledLabels]) -> HeldOut:
        """Held-out scores at this alpha and coupling."""
        problem = self.problem
        F = np.zeros_like(problem.Z)
        for rows, stay, left, spectrum in self.fits():
            v, rho = problem.root[stay] if problem.bias else None, problem.ridge(alpha, rows)
            for coupled in coupled_labels:
                c, Z = coupled.family.columns, coupled.take(problem.Z[stay])
                if spectrum is None:  # no basis function left: intercept only
                    b = np.zeros(c.shape) if v is None else np.tensordot(v, Z, 1) / (v @ v)
                    F[np.ix_(rows, c.ravel())] = b.ravel()
                else:
                    A, b = solve_sylvester(spectrum, coupled.modes, Z, rho, v)
                    F[np.ix_(rows, c.ravel())] = (times_each(self.design.features(rows, left), A) + b).reshape(
                        len(rows), -1
                    )
        return HeldOut(F)
