"""Solver by moments: sums over all rows, for data whose design matrix does not fit into memory.

The ridge problem needs only the moments ``Phi'Phi`` and ``Phi'Z``. Held-out scores of a sample of rows follow from
the moments of all rows, because the contribution of each sampled row, or of each fold, is known. With many coupled
labels, mode k of the label matrix is a ridge problem with alpha / b_k over the same moments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from leastwise.linalg.moments import Moments, MomentSpectrum, Whitening, moment_spectrum, whitening
from leastwise.problem.basis import Basis, chunks_there, double_kernel, row_chunks
from leastwise.problem.kernels import Kernel
from leastwise.problem.label_coupling import Relation
from leastwise.solvers.evaluator import Evaluator, Rows, Settings
from leastwise.solvers.heldout import Folds, HeldOut, Problem
from leastwise.solvers.label_evaluators import LabelEvaluator, LabelRows
from leastwise.solvers.label_modes import LEAST, CoupledLabels, LabelGroup
from leastwise.utils.arrays import DeviceRows, rows_at, to_namespace

Array = np.ndarray


@dataclass(frozen=True)
class MomentHeldout:
    """Held-out scores of small folds: the contribution of each fold is subtracted from the moments of all rows.

    The basis functions are fixed: they stay when a row is held out. All folds have the ridge of the average fold.

    Attributes
    ----------
    problem : Problem
        The sampled rows, which must be whole folds.
    U : ndarray of shape (m, b)
        Coordinates of the rows along the eigenvectors (``MomentSpectrum.coordinates``), multiplied by the square
        roots of their weights.
    spectrum : MomentSpectrum
        Decomposed moments of all rows.
    """

    problem: Problem
    U: Array
    spectrum: MomentSpectrum

    def at(self, alpha: float) -> HeldOut:
        """Held-out scores at one alpha."""
        p, m, s = self.problem, self.spectrum.moments, self.spectrum
        rho = alpha * (m.mass - float(np.sum(p.root**2)) / max(p.n_folds, 1))
        e, share = 1 / (s.g + rho), 1 / m.mass if s.bias else 0.0
        F = self.U @ (e[:, None] * s.right) + p.root[:, None] * (m.z * share)
        R = p.Z - F
        h = np.einsum("ij,j,ij->i", self.U, e, self.U) + share * p.root**2
        each = h if p.count is None else h / p.count
        left = R / np.maximum(1 - each, np.finfo(float).eps)[:, None]
        for block in p.folds.blocks:
            left[block] = _without(self.U[block], e, p.root[block] if s.bias else None, share, R[block])
        return HeldOut((p.Z - left) / p.root[:, None], dof=float(np.sum(s.g * e)) + bool(s.bias))


@dataclass(frozen=True)
class FoldMomentHeldout:
    """Held-out scores of a few large folds: the model for each fold comes from the moments of the others.

    Attributes
    ----------
    Phi : ndarray of shape (m, b)
        Basis functions evaluated at the sampled rows.
    fold : ndarray of int of shape (m,)
        Fold of each row, an index into ``parts``.
    parts : list of Moments
        Moments of each fold.
    bias : bool
    """

    Phi: Array
    fold: Array
    parts: list[Moments]
    bias: bool

    @cached_property
    def spectra(self) -> list[MomentSpectrum]:
        """For each fold, the decomposed moments of the others."""
        whole = sum(self.parts[1:], self.parts[0])
        return [moment_spectrum(whole - part, self.bias) for part in self.parts]

    def at(self, alpha: float) -> HeldOut:
        """Held-out scores at one alpha."""
        held = self.solved(lambda spectrum: spectrum.coefficients(alpha * spectrum.moments.mass))
        dof = [float(np.sum(s.g / (s.g + alpha * s.moments.mass))) for s in self.spectra]
        return replace(held, dof=float(np.mean(dof)))

    def solved(self, solve: Callable[[MomentSpectrum], tuple[Array, Array]]) -> HeldOut:
        """Held-out scores with coefficients and intercepts computed by ``solve``."""
        F = np.empty((len(self.Phi), self.parts[0].C.shape[1]))
        for k, spectrum in enumerate(self.spectra):
            theta, b = solve(spectrum)
            rows = self.fold == k
            F[rows] = self.Phi[rows] @ theta + b
        return HeldOut(F)


def _without(U: Array, e: Array, v: Array | None, share: float, R: Array) -> Array:
    """``(I - U e U' - share v v')^-1 R``, in the rows or in the basis functions, whichever is smaller."""
    if v is not None:
        U, e = np.column_stack([U, v]), np.append(e, share)
    if len(U) <= U.shape[1]:
        return np.linalg.solve(np.eye(len(U)) - (U * e) @ U.T, R)
    return R + U @ np.linalg.solve(np.diag(1 / e) - U.T @ U, U.T @ R)


#: Number of sampled rows whose held-out scores select alpha and calibrate.
SAMPLE_ROWS = 20_000

#: Function from sigma to the moments of each fold; a single entry for all rows if folds are small.
Sums = Callable[[float], list[Moments]]


class MomentEvaluator(Evaluator):
    """Held-out scores of a sample, from the moments of all rows; one pass over the rows per sigma.

    Parameters
    ----------
    rows : Rows
        The sample: whole folds, with the weights that the rows have in the moments.
    basis, settings
        As in :class:`Evaluator`; the centres are fixed.
    sums : callable
        Computes the moments of all rows.
    """

    def __init__(self, rows: Rows, basis: Basis, settings: Settings, sums: Sums) -> None:
        self.rows, self.basis, self.settings, self.sums = rows, basis, settings, sums
        self.root = np.sqrt(rows.w.astype(float))
        self.Z = rows.targets(settings.n_outputs) * self.root.astype(rows.X.dtype)[:, None]
        self._cached: tuple[float, list[Moments], MomentSpectrum] | None = None
        self._folds: tuple[float, FoldMomentHeldout] | None = None

    def decomposed(self, sigma: float) -> tuple[list[Moments], MomentSpectrum]:
        """Moments of each fold, and the decomposed moments of all rows; cached for the last sigma."""
        if self._cached is None or self._cached[0] != sigma:
            parts = self.sums(sigma)
            spectrum = moment_spectrum(sum(parts[1:], parts[0]), self.settings.bias)
            self._cached = sigma, parts, spectrum
        return self._cached[1:]

    def design(self, sigma: float, known: Whitening | None = None) -> Array:
        """Kernel between the sampled rows and the centres (or the pivots among them), in double precision."""
        return double_kernel(self.settings.kernel, self.rows.X, pivot_centers(self.basis.centers, known), sigma)

    def heldout(self, sigma: float, count: int) -> Callable[[float], HeldOut]:
        """A function from alpha to held-out scores of the sample."""
        parts, spectrum = self.decomposed(sigma)
        found: FoldMomentHeldout | MomentHeldout = (
            self.fold_heldout(sigma, parts) if len(parts) > 1 else self.problem_heldout(sigma, spectrum)
        )
        return lambda alpha: self.rounded(found.at(alpha))

    def fold_heldout(self, sigma: float, parts: list[Moments]) -> FoldMomentHeldout:
        """Held-out scores of a few large folds; cached for the last sigma."""
        if self._folds is None or self._folds[0] != sigma:
            self._folds = sigma, FoldMomentHeldout(self.design(sigma), self.rows.fold, parts, self.settings.bias)
        return self._folds[1]

    def problem_heldout(self, sigma: float, spectrum: MomentSpectrum) -> MomentHeldout:
        """Held-out scores of small folds."""
        folds, count = Folds.from_labels(self.rows.fold), self.rows.split_count
        problem = Problem(self.Z.astype(float), self.root, self.settings.bias, None, folds, count=count)
        U = spectrum.coordinates(self.design(sigma, spectrum.moments.whitening))
        return MomentHeldout(problem, U if self.rows.equal_weights else U * self.root[:, None], spectrum)

    def rounded(self, held: HeldOut) -> HeldOut:
        """Scores cast to the type of the rows."""
        dtype = self.rows.X.dtype
        return HeldOut(held.F.astype(dtype), dof=held.dof)


def center_whitening(kernel: Kernel, centers: Any, sigma: float, norm: str) -> Whitening | None:
    """Whitening of the features before they are summed; None if the penalty is on the coefficients."""
    return None if norm == "coefficients" else whitening(double_kernel(kernel, centers, centers, sigma))


def pivot_centers(centers: Any, known: Whitening | None) -> Any:
    """The centres that the whitened features are computed from."""
    return centers if known is None else centers[known.pivots]


def row_sums(
    kernel: Kernel, X: Any, centers: Any, sigma: float, known: Whitening | None, Z: Any, w: Array | None
) -> Moments:
    """Moments of a block of rows; ``centers`` are those of ``pivot_centers``."""
    return Moments.of(double_kernel(kernel, X, centers, sigma), Z, w, known)


def sums_in_memory(rows: Rows, basis: Basis, settings: Settings, n_folds: int) -> Sums:
    """Moments of rows in memory, computed by blocks."""
    c = settings.n_outputs

    def sums(sigma: float) -> list[Moments]:
        known = center_whitening(settings.kernel, basis.centers, sigma, settings.norm)
        centers = pivot_centers(basis.centers, known)
        parts = [Moments.zero(basis.n_functions, c, known) for _ in range(n_folds)]
        for block in _blocks(rows, max(basis.n_functions, rows.X.shape[1])):
            X = rows.X.there[block, ...] if isinstance(rows.X, DeviceRows) else rows.X[block]
            Z, w = _targets(rows, block, c, X), rows.w[block]
            if n_folds == 1:
                weights = None if rows.equal_weights else w
                parts[0] = parts[0] + row_sums(settings.kernel, X, centers, sigma, known, Z, weights)
                continue
            for k in np.unique(rows.fold[block]):
                mine = np.flatnonzero(rows.fold[block] == k)
                part = rows_at(X, mine), centers, sigma, known, rows_at(Z, mine), w[mine]
                parts[k] = parts[k] + row_sums(settings.kernel, *part)
        return parts

    return sums


def _blocks(rows: Rows, width: int) -> Iterator[slice]:
    return (
        chunks_there(rows.X.there, width)
        if isinstance(rows.X, DeviceRows)
        else row_chunks(len(rows), width, 8, least=width)
    )


def _targets(rows: Rows, block: slice, n_outputs: int, X: Any) -> Any:
    """Targets of a block in the array library of X; for classes only the codes are transferred."""
    if rows.values is not None:
        return to_namespace(rows.values[block], X)
    return rows_at(to_namespace(np.eye(n_outputs, dtype=rows.X.dtype), X), rows.y[block])


class LabelMomentEvaluator(LabelEvaluator):
    """Held-out scores of many labels: mode k of the label matrix is a ridge problem with alpha / b_k.

    Every label of every row must be known and have the weight of its row.
    """

    def __init__(
        self,
        rows: LabelRows,
        basis: Basis,
        settings: Settings,
        relation: Relation,
        families: list[LabelGroup],
        sums: Sums,
    ) -> None:
        self.plain = MomentEvaluator(rows, basis, settings, sums)
        self.rows, self.basis, self.settings, self.Z = rows, basis, settings, self.plain.Z
        self._tie(relation, families)

    def heldout(self, sigma: float, count: int) -> Callable[[float], HeldOut]:
        """A function from alpha to held-out scores at this sigma and sharing."""
        parts, spectrum = self.plain.decomposed(sigma)
        if len(parts) > 1:
            folds = self.plain.fold_heldout(sigma, parts)
            return lambda alpha: self.plain.rounded(folds.solved(lambda part: self._solved(part, alpha)))
        base = self.plain.problem_heldout(sigma, spectrum)
        coupled_labels = self.coupled_labels
        return lambda alpha: self.plain.rounded(_heldout(base, coupled_labels, self.least(alpha)))

    def coefficients(self, sigma: float, alpha: float) -> tuple[Array, Array]:
        """Coefficients (b x outputs) and intercepts (outputs) at this sharing."""
        return self._solved(self.plain.decomposed(sigma)[1], alpha)

    def _solved(self, spectrum: MomentSpectrum, alpha: float) -> tuple[Array, Array]:
        m = spectrum.moments
        b = spectrum.n_functions
        coef, intercept = np.empty((b, m.C.shape[1])), np.empty_like(m.z)
        for coupled in self.coupled_labels:
            columns, modes = coupled.family.columns, coupled.modes
            parts, ends = np.empty((b, *_rotated(coupled, m.C).shape[1:])), np.empty(_rotated(coupled, m.z).shape)
            for mine, ridge, part in _modes(coupled, spectrum):
                theta, ends_of = part.coefficients(self.least(alpha) * m.mass / ridge)
                parts[..., mine] = theta.reshape(*parts.shape[:2], -1)
                ends[:, mine] = ends_of.reshape(len(ends), -1)
            coef[:, columns], intercept[columns] = modes.back(parts), modes.back(ends)
        return coef, intercept


def _rotated(coupled: CoupledLabels, A: Array) -> Array:
    """Columns of a label group rotated to its modes, of shape (..., c, m), from those of all outputs."""
    return coupled.modes.rotate(A[..., coupled.family.columns])


def _modes(coupled: CoupledLabels, spectrum: MomentSpectrum) -> list[tuple[Array, float, MomentSpectrum]]:
    """For every distinct eigenvalue of B: mask of its rotated columns, divisor of alpha, and their ridge problem."""
    modes, m = coupled.modes, spectrum.moments
    C, z = _rotated(coupled, m.C), _rotated(coupled, m.z)
    least = LEAST * max(float(modes.values.max()), np.finfo(float).tiny)
    found = []
    for k, b in enumerate(modes.values):
        mine = modes.which == k
        part = spectrum.of_targets(C[..., mine].reshape(len(C), -1), z[:, mine].ravel())
        found.append((mine, max(float(b), least), part))
    return found


def _heldout(base: MomentHeldout, coupled_labels: list[CoupledLabels], alpha: float) -> HeldOut:
    problem = base.problem
    F = np.empty_like(problem.Z)
    for coupled in coupled_labels:
        Z = _rotated(coupled, problem.Z)
        scores = np.empty_like(Z)
        for mine, ridge, part in _modes(coupled, base.spectrum):
            few = replace(problem, Z=Z[..., mine].reshape(len(Z), -1))
            held = MomentHeldout(few, base.U, part).at(alpha / ridge)
            scores[..., mine] = held.F.reshape(*Z.shape[:2], -1)
        F[:, coupled.family.columns] = coupled.modes.back(scores)
    return HeldOut(F)
