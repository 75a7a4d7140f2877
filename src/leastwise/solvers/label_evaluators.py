"""Evaluators of coupled labels.

``LabelEvaluator`` has held-out scores in closed form, along the modes of the label matrix.
``IncompleteLabelEvaluator`` handles unknown labels: every fold is refitted by conjugate gradients.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from leastwise.calibration.label_blend import LabelSample, class_counts
from leastwise.linalg.decompositions import Spectrum
from leastwise.linalg.kronecker import solve_spectral
from leastwise.linalg.moments import Whitening
from leastwise.problem.basis import Basis, Design
from leastwise.problem.label_coupling import Relation
from leastwise.solvers.evaluator import Candidate, Evaluator, Rows, Settings
from leastwise.solvers.heldout import HeldOut
from leastwise.solvers.label_modes import (
    CoupledLabels,
    LabelGroup,
    LabelHeldout,
    LabelRefits,
    LabelSpectrum,
    ModewiseHeldout,
)

Array = np.ndarray

#: Up to this many folds, none of a single row, each is decomposed once for all alphas and sharings.
FEW_FOLDS = 20

#: Conjugate gradients stop at this residual while hyperparameters are compared.
ROUGH = 1e-3


@dataclass(frozen=True)
class LabelRows(Rows):
    """Training rows with many labels: ``y`` holds class codes (n, T), -1 for unknown labels.

    Attributes
    ----------
    starts : ndarray of int of shape (T + 1,)
        Start of the output columns of each label.
    entries : ndarray of shape (n, T) or None
        Weights of all labels of all rows, of mean 1, and 0 for unknown labels; ``w`` are their means by row. None if
        every label is known and has the weight of its row.
    lone : ndarray of int of shape (n,) or None
        Fold labels for the first search in closed form (see ``filled``); None to use ``fold``.
    """

    starts: Any = None
    entries: Array | None = None
    lone: Array | None = None

    OPTIONAL: ClassVar[tuple[str, ...]] = ("group", "values", "count", "entries", "lone")

    @property
    def complete(self) -> bool:
        """True if every label is known and has the weight of its row."""
        return self.entries is None

    @property
    def W(self) -> Array:
        """Weights of all labels of all rows."""
        return np.broadcast_to(self.w[:, None], self.y.shape) if self.entries is None else self.entries

    @property
    def multiplicity(self) -> Array:
        """Multiplicity of each row on the scale of the weights: its largest label weight."""
        return self.W.max(axis=1)

    def take(self, index: Array, precomputed: bool) -> Self:
        """A subset of the rows with weights rescaled to mean 1."""
        some = super().take(index, precomputed)
        return some if some.entries is None else replace(some, entries=some.entries / some.entries.mean())

    def class_counts(self) -> Array:
        """Total weights of all classes of all labels."""
        return class_counts(self.y, self.W, self.starts)

    def label_sample(self, F: Array) -> LabelSample:
        """Calibration set of the rows with held-out scores; rows without a score (NaN) are left out."""
        known = ~np.isnan(F[:, 0])
        if known.all():
            return LabelSample(F, self.y, self.W, self.starts, self.size, self.shares)
        part = self.part(np.flatnonzero(known))
        counts = self.class_counts() if self.shares is None else self.shares
        return LabelSample(F[known], part.y, part.W, self.starts, part.size, counts)

    def take_labels(self, labels: Array) -> Self:
        """The rows with a subset of the labels."""
        assert self.values is not None
        widths = np.diff(self.starts)
        columns = np.concatenate([np.arange(self.starts[t], self.starts[t + 1]) for t in labels])
        entries = None if self.entries is None else self.entries[:, labels]
        starts = np.cumsum([0, *widths[labels]])
        shares = None if self.shares is None else self.shares[columns]
        few = replace(self, y=self.y[:, labels], values=self.values[:, columns], entries=entries, starts=starts)
        return replace(few, shares=shares)

    def filled(self) -> Self:
        """Rows of equal weights, with class shares as targets of unknown labels.

        These have a closed form, for a first search over sigma; the known labels keep their weights in the objective.
        """
        assert self.values is not None
        if self.complete:
            return self
        widths = np.diff(self.starts)
        unknown, W = np.repeat(self.y < 0, widths, axis=1), np.repeat(self.W, widths, axis=1)
        total = np.sum(W, axis=0)  # a subsample may contain no known value of a label
        shares = np.where(
            total > 0, np.sum(W * self.values, axis=0) / np.where(total > 0, total, 1), 1 / np.repeat(widths, widths)
        )
        values = np.where(unknown, shares.astype(self.values.dtype), self.values)
        fold = self.fold if self.lone is None else self.lone
        return replace(self, values=values, w=np.ones_like(self.w), fold=fold, by_observation=False)


class LabelEvaluator(Evaluator):
    """Held-out scores of many labels at one sharing, in closed form.

    Every label has the weight of its row. Targets of unknown labels must be imputed (``LabelRows.filled``).
    """

    rows: LabelRows
    #: Added to progress reports.
    note = ""
    #: True to use the exact ridge of every row, False to use one ridge per batch of similar weights.
    exact = False

    def __init__(
        self, rows: LabelRows, basis: Basis, settings: Settings, relation: Relation, families: list[LabelGroup]
    ) -> None:
        super().__init__(rows, basis, settings)
        self._tie(relation, families)

    def _tie(self, relation: Relation, families: list[LabelGroup]) -> None:
        self.relation, self.families = relation, families
        self.relations = [relation if len(families) == 1 else relation.take(f.labels) for f in families]
        self.sharing = 0.0
        self._cached: dict = {}
        self._coupled: dict[float, list[CoupledLabels]] = {}

    def for_worker(self) -> Self:
        """Copy for a parallel worker, with an empty cache."""
        other = super().for_worker()
        other._cached = {}
        return other

    def with_sharing(self, sharing: float | None) -> Self:
        """Copy with this sharing; the cache of the last sigma is used by all sharings."""
        if sharing is None:
            return self
        other = copy.copy(self)
        other.sharing = sharing
        return other

    def identity(self, sigma: float) -> tuple:
        """Everything that held-out scores at this sigma depend on, except sigma and alpha."""
        return *super().identity(sigma), self.relation, self.sharing, self.exact

    @property
    def coupled_labels(self) -> list[CoupledLabels]:
        """Label groups with the modes of their blocks of B at this sharing."""
        if self.sharing not in self._coupled:
            pairs = zip(self.families, self.relations, strict=True)
            self._coupled[self.sharing] = [
                CoupledLabels(f, r.modes(self.sharing).astype(self.Z.dtype)) for f, r in pairs
            ]
        return self._coupled[self.sharing]

    def with_exact_ridges(self) -> Self:
        """Copy with the exact ridge of every row; comparisons of hyperparameters do with an approximation."""
        other = copy.copy(self)
        other.exact = not self.rows.equal_weights
        return other

    @property
    def by_refits(self) -> bool:
        """True if folds are few and large."""
        return not len(self.folds.singles) and len(self.folds.blocks) <= FEW_FOLDS

    def heldout(self, sigma: float, count: int) -> Callable[[float], HeldOut]:
        """A function from alpha to held-out scores at this sigma and sharing."""
        base, coupled_labels = self._base(sigma), self.coupled_labels
        if isinstance(base, LabelRefits):
            return lambda alpha: base.scores(self.least(alpha) / self.unit, coupled_labels)
        held = (
            ModewiseHeldout(base.problem, base.spectrum, coupled_labels)
            if self.exact
            else LabelHeldout(base, coupled_labels)
        )
        return lambda alpha: held.at(self.least(alpha) / self.unit)

    def least(self, alpha: float) -> float:
        """Alpha, but not so small that it is zero in single precision."""
        return max(alpha, 1e-30) if self.Z.dtype == np.float32 else alpha

    def _base(self, sigma: float) -> LabelSpectrum | LabelRefits:
        """Decompositions at one sigma."""
        if sigma not in self._cached:
            self._cached.clear()  # free the memory of the last sigma
            (block,), (design,) = self.basis.blocks, self.designs(sigma)
            problem = self.problem(block)
            if self.by_refits:
                self._cached[sigma] = LabelRefits(problem, design)
            else:
                spectrum = design.spectrum() if problem.own is None else design.function_spectrum()
                self._cached[sigma] = LabelSpectrum(problem, spectrum)
        return self._cached[sigma]

    def decomposed(self, sigma: float) -> tuple[Spectrum, Whitening | None]:
        """Decomposition of all rows, and the whitening of its features."""
        kept = self._cached.get(sigma)
        if isinstance(kept, LabelSpectrum) and not self.penalised:
            return kept.spectrum, None
        (design,) = self.designs(sigma, deletes=False)
        return design.spectrum(), design.whitening

    def description(self) -> str:
        """Hyperparameters other than sigma and alpha, for progress reports."""
        return f", sharing {self.sharing:.3g}{super().description()}{self.note}"

    def without_rounding(self, held: HeldOut) -> HeldOut:
        """Held-out scores with pure rounding error set to zero."""
        return held.without_rounding()

    def objective(self, sigma: float, alpha: float, held: HeldOut, last: Candidate | None) -> Candidate:
        """Calibrate held-out scores and score the result."""
        outcome = super().objective(sigma, alpha, held, last)
        outcome.sharing = self.sharing
        return outcome


class IncompleteLabelEvaluator(LabelEvaluator):
    """Held-out scores of many labels, some of them unknown, by refits.

    There is no closed form: known rows differ from label to label, so that no rotation decouples the labels. The rows
    of each fold are decomposed once for all alphas and sharings; conjugate gradients start from the solution at the
    last alpha.

    With the penalty on the coefficients, a row's basis function has the weight of the row, as elsewhere.
    """

    streams = True

    def __init__(
        self,
        rows: LabelRows,
        basis: Basis,
        settings: Settings,
        relation: Relation,
        families: list[LabelGroup],
        tol: float = 1e-6,
        max_iter: int = 1000,
    ) -> None:
        super().__init__(rows, basis, settings, relation, families)
        self.root, self.Z = np.ones_like(self.root), rows.targets(settings.n_outputs)
        self.tol, self.max_iter = tol, max_iter

    def rough(self) -> IncompleteLabelEvaluator:
        """Copy with a larger tolerance; it shares the decompositions."""
        other = copy.copy(self)
        other.tol = max(ROUGH, self.tol)
        return other

    def identity(self, sigma: float) -> tuple:
        """Everything that held-out scores at this sigma depend on, except sigma and alpha."""
        return *super().identity(sigma), self.tol, self.max_iter

    @property
    def by_refits(self) -> bool:
        """Always True."""
        return True

    def designs(self, sigma: float, deletes: bool = True) -> list[Design]:
        """The design; its columns are weighted like the rows if every row is a centre with a coefficient penalty."""
        (design,) = super().designs(sigma, deletes)
        if not self.basis.weighted:
            return [design]
        column = np.sqrt(self.rows.multiplicity)
        even = np.ptp(column) <= 1e-12 * column.max()  # then the matrix stays symmetric
        return [replace(design, column=column, square=design.square and even)]

    def heldout(self, sigma: float, count: int) -> Callable[[float], HeldOut]:
        """A function from alpha to held-out scores at this sigma and sharing."""
        base, coupled_labels = self._base(sigma), self.coupled_labels
        assert isinstance(base, LabelRefits)
        last: dict = {}

        def at(alpha: float) -> HeldOut:
            F = np.empty_like(self.Z)
            for k, (rows, stay, left, spectrum) in enumerate(base.fits()):
                rho = self.least(alpha) / self.unit * float(np.sum(self.rows.w[stay]))
                for j, coupled in enumerate(coupled_labels):
                    Theta, a, last[k, j] = self.solve(spectrum, coupled, stay, rho, last.get((k, j)))
                    c = coupled.family.columns
                    F[np.ix_(rows, c.ravel())] = (
                        base.design.features(rows, left) @ Theta.reshape(len(Theta), -1) + a.ravel()
                    )
            return HeldOut(F)

        return at

    def solve(
        self, spectrum: Spectrum | None, coupled: CoupledLabels, rows: Array, rho: float, last: Any = None
    ) -> tuple[Array, Array, Any]:
        """Coefficients (b, c, T), intercepts (c, T), and a summary, to be passed as ``last`` at other ridges."""
        Z = np.ascontiguousarray(coupled.take(self.Z[rows]).transpose(1, 0, 2))
        W = self.rows.W[rows][:, coupled.family.labels]
        if spectrum is None:  # no basis function left: intercept only
            mean = np.sum(W * Z, axis=1) / np.maximum(np.sum(W, axis=0), np.finfo(W.dtype).tiny)
            return np.zeros((0, len(Z), Z.shape[2])), mean if self.settings.bias else 0 * mean, None
        found = solve_spectral(
            spectrum.U,
            np.sqrt(spectrum.g),
            coupled.modes,
            Z,
            W,
            rho,
            bias=self.settings.bias,
            tol=self.tol,
            max_iter=self.max_iter,
            start=None if last is None else last.Q,
        )
        root = np.sqrt(spectrum.g)
        # These are coefficients of U sqrt(g); convert them to coefficients of the basis functions (see Spectrum).
        scale = np.where(root > 0, spectrum.s / np.where(root > 0, root, 1), 0)
        Theta = spectrum.V @ (scale[:, None] * found.Q.transpose(1, 0, 2).reshape(len(root), -1))
        return Theta.reshape(len(Theta), *found.Q.shape[::2]), found.intercept, found
