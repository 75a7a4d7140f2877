"""Evaluator of hyperparameters: held-out scores at any sigma and alpha, and the objective computed from them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from leastwise.calibration.blend import Sample, class_shares
from leastwise.linalg.decompositions import cholesky
from leastwise.linalg.moments import Whitening, full_whitening, whitening
from leastwise.problem.basis import Basis, Block, Design, block_design, double_kernel, row_chunks
from leastwise.problem.inputs import Inputs
from leastwise.problem.kernels import Kernel, Precomputed, Scaled, Sum
from leastwise.solvers.heldout import CholeskyHeldout, Folds, HeldOut, Problem, RefitHeldout, SpectralHeldout
from leastwise.solvers.work import ARRAYS, FEW_ALPHAS, cheaper_to_refit
from leastwise.utils.arrays import is_numpy, to_numpy

Array = np.ndarray


@dataclass(frozen=True)
class Rows:
    """Training rows with targets, weights and fold labels.

    Attributes
    ----------
    X : array or sparse matrix
    y : ndarray of int
        Class codes.
    w : ndarray
        Weights of mean 1.
    fold : ndarray of int
        Rows with the same label are held out together.
    copy : ndarray of int
        Rows with the same label have equal X.
    group : ndarray of int or None
        The user's groups: rows of one group are not independent. None if all rows are independent.
    mass : float
        Mean of the weights before they were divided by it.
    task : ndarray of int or None
        Task codes of a multi-task problem.
    values : ndarray of shape (n, outputs) or None
        Targets other than 0 and 1: regression targets, or -1 and 1.
    shares : ndarray of shape (outputs,) or None
        Class shares (for many labels: total weights of the classes), if known from more than these rows.
    count : ndarray or None
        Number of observations that each row represents; None if each is one.
    by_observation : bool
        Leave-one-out over observations: of a row that represents several, one is held out at a time. Otherwise whole
        rows are held out.
    """

    X: Any
    y: Array
    w: Array
    fold: Array
    copy: Array
    group: Array | None = None
    mass: float = 1.0
    task: Array | None = None
    values: Array | None = None
    shares: Array | None = None
    count: Array | None = None
    by_observation: bool = False

    #: Attributes with one entry per row that may be None.
    OPTIONAL: ClassVar[tuple[str, ...]] = ("group", "task", "values", "count")

    def __len__(self) -> int:
        return len(self.y)

    @cached_property
    def size(self) -> int:
        """Number of independent observations: groups if there are any, otherwise the observations of all rows."""
        if self.group is not None:
            return len(np.unique(self.group))
        return len(self) if self.count is None else round(float(np.sum(self.count)))

    @property
    def split_count(self) -> Array | None:
        """Observations of each row if they are held out one at a time; None if whole rows are held out."""
        return self.count if self.by_observation else None

    @property
    def place(self) -> Array:
        """Labels of rows that do not count as neighbours of one another: folds, or copies in leave-one-out."""
        return self.copy if self.by_observation else self.fold

    @cached_property
    def equal_weights(self) -> bool:
        """True if all rows have the same weight."""
        return bool(np.all(self.w == 1))

    def sample(self, F: Array) -> Sample:
        """Calibration set of the rows with their held-out scores.

        Rows without a score (NaN) only count for the class shares.
        """
        known = ~np.isnan(F[:, 0])
        shares = self.class_shares(F.shape[1]).astype(F.dtype)
        if known.all():
            return Sample(F, self.y, self.w, self.size, shares, self.task)
        part = self.part(np.flatnonzero(known))
        return Sample(F[known], part.y, part.w, part.size, shares, part.task)

    def class_shares(self, n_classes: int) -> Array:
        """Weighted class shares."""
        if self.shares is not None:
            return self.shares
        known = self.__dict__.setdefault("_own_shares", {})  # the same at all points of a search
        if n_classes not in known:
            known[n_classes] = class_shares(self.y, self.w, n_classes)
        return known[n_classes]

    def targets(self, n_outputs: int) -> Array:
        """Target matrix: ``values``, or one-hot class indicators."""
        return np.eye(n_outputs, dtype=self.X.dtype)[self.y] if self.values is None else self.values

    def to_numpy(self) -> Self:
        """The same rows with X as a numpy array."""
        return self if is_numpy(self.X) else replace(self, X=to_numpy(self.X))

    def part(self, index: Array) -> Self:
        """A subset of the rows with unchanged weights."""
        names = ("X", "y", "w", "fold", "copy", *self.OPTIONAL)
        given = {name: getattr(self, name) for name in names}
        return replace(self, **{name: a[index] for name, a in given.items() if a is not None})

    def take(self, index: Array, precomputed: bool) -> Self:
        """A subset of the rows with weights rescaled to mean 1; a precomputed kernel is restricted to it too."""
        some = self.part(index)
        w = some.w if self.equal_weights else some.w / some.w.mean()
        mass = self.mass * float(some.w.mean())
        return replace(some, X=some.X[:, index] if precomputed else some.X, w=w, mass=mass)


class Objective(Protocol):
    """Objective of the search; see ``leastwise.model_selection.objective``."""

    @property
    def scorer(self) -> Any:
        """The metric to maximise."""
        ...

    @property
    def n_outputs(self) -> int:
        """Columns of the targets."""
        ...

    @property
    def of_classes(self) -> bool:
        """True for classification, False for regression."""
        ...

    @property
    def scale(self) -> float:
        """Magnitude of the objective; differences below a millionth of it count as ties."""
        ...

    def row_losses(self, rows: Rows, held: HeldOut, calibrator: Any = None) -> Array:
        """A loss of each row, for paired comparisons; ``calibrator`` is that of these scores, if known."""
        ...

    def __call__(self, rows: Rows, held: HeldOut, last: Any) -> tuple[float, Any]:
        """Objective value (greater is better) and calibrator; ``last`` is a calibrator to start from."""
        ...


@dataclass(frozen=True)
class Settings:
    """Settings that stay fixed during a search.

    Attributes
    ----------
    kernel : Kernel
    norm : {"function", "coefficients"}
    bias : bool
        True if there is an intercept for all rows.
    objective : Objective
    report : callable
        Prints a line of progress.
    n_jobs : int or None
    inputs : Inputs
        What was done to the rows before.
    start : Candidate or None
        Where the choice of inputs and kernel ended: the search starts there.
    keeps_sigma : bool
        True if the search keeps the sigma of ``start``.
    weights_of_all : bool
        True if feature weights were learned from all rows, so that held-out scores have to be cross-fitted.
    seen : tuple of dict
        Points of that choice.
    chosen : dict
        Names of the scale and the kernel that were chosen; empty if they were given.
    note : str
        Added to progress reports.
    """

    kernel: Kernel
    norm: str
    bias: bool
    objective: Objective
    report: Callable[[str], None] = lambda line: None
    n_jobs: int | None = None
    inputs: Inputs = field(default_factory=Inputs)
    start: Candidate | None = None
    keeps_sigma: bool = False
    weights_of_all: bool = False
    seen: tuple[dict, ...] = ()
    chosen: dict[str, str] = field(default_factory=dict)
    note: str = ""

    @property
    def n_outputs(self) -> int:
        """Columns of the targets."""
        return self.objective.n_outputs


def _silent(line: str) -> None:
    """Report nothing."""


@dataclass
class Candidate:
    """One point of the grid: its objective value, held-out scores and calibrator.

    ``scale`` is the magnitude of the objective, relative to which ties are defined.
    """

    sigma: float
    alpha: float
    score: float
    F: Array = field(repr=False)
    calibrator: Any = field(repr=False)
    sharing: float | None = None
    intercept_ratio: float | None = None
    weight: float | None = None
    scale: float = 1.0

    def better_than(self, other: Candidate) -> bool:
        """True if the score is higher, or equal to six digits with a smoother model."""
        return self._smoothness > other._smoothness if self._close(other) else self.score > other.score

    def clearly_better(self, other: Candidate) -> bool:
        """True if the score is higher by more than six-digit rounding."""
        return self.score > other.score and not self._close(other)

    def _close(self, other: Candidate) -> bool:
        return abs(self.score - other.score) <= 1e-6 * (self.scale + abs(other.score))

    @property
    def _smoothness(self) -> tuple[float, float, float]:
        return self.alpha, self.sigma, self.sharing or 0.0


class Evaluator:
    """Held-out scores of some rows with one basis; distances or inner products are computed once for all sigmas."""

    #: True if every alpha takes another pass over the rows.
    streams = False
    #: True if every sharing takes another decomposition at the same sigma.
    sharing_costs = False

    def __init__(self, rows: Rows, basis: Basis, settings: Settings) -> None:
        self.rows, self.basis, self.settings = rows, basis, settings
        self.pairs = basis.pairs(settings.kernel, rows.X)
        self.root = np.sqrt(rows.w).astype(rows.X.dtype)
        self.Z = rows.targets(settings.n_outputs) * self.root[:, None]
        self.folds = Folds.from_labels(rows.fold)

    def for_worker(self) -> Self:
        """Copy for a parallel worker: it shares no mutable state with this one and reports nothing."""
        other = copy.copy(self)
        other.settings = replace(self.settings, report=_silent)
        return other

    def warm_start(self, sigma: float) -> Any:
        """State for warm starts at this sigma; None for closed forms."""
        return None

    def set_warm_start(self, sigma: float, state: Any) -> None:
        """Adopt the warm-start state of a copy."""

    def identity(self, sigma: float) -> tuple:
        """Everything that held-out scores at this sigma depend on, except sigma and alpha.

        Rows that are known by their sums only are not part of it.
        """
        s = self.settings
        return type(self), self.rows, self.basis, s.kernel, s.norm, s.bias, s.objective

    @property
    def room(self) -> int:
        """Peak memory of a search step in bytes."""
        s, numbers = self.settings, len(self.rows) * self.basis.n_functions
        return ARRAYS[s.norm] * numbers * self.rows.X.dtype.itemsize

    @property
    def matrix_rows(self) -> int:
        """Rows of the largest matrix that is factorized."""
        return len(self.rows)

    def with_sharing(self, sharing: float | None) -> Evaluator:
        """Copy with this sharing between tasks; itself for a single task."""
        return self

    def with_intercept_ratio(self, intercept_ratio: float) -> Evaluator:
        """Copy with this prior variance of task intercepts; itself for a single task."""
        return self

    def with_linear_weight(self, weight: float) -> Self:
        """Copy with this weight of the linear part of a sum of kernels.

        The linear kernel alone, which competes with the sum, has infinite weight.
        """
        kernel = self.settings.kernel
        if weight == self.weight:
            return self
        assert isinstance(kernel, Sum)
        other = copy.copy(self)
        other.settings = replace(self.settings, kernel=kernel.with_linear_weight(weight))
        return other

    def with_options_of(self, other: Evaluator) -> Evaluator:
        """Copy with the options that a search ended on with another evaluator."""
        return self if other.weight is None else self.with_linear_weight(other.weight)

    def holding_out(self, rows: Array) -> Self:
        """Copy that holds out these rows together, and no others; its scores of other rows are meaningless."""
        other = self.for_worker()  # what this one has computed belongs to its folds
        other.folds = Folds.only(rows)
        return other

    def rough(self) -> Evaluator:
        """An evaluator that is accurate enough to compare hyperparameters; itself for closed forms."""
        return self

    def description(self) -> str:
        """Hyperparameters other than sigma and alpha, for progress reports."""
        weight = "" if self.weight is None else f", linear weight {self.weight:.3g}"
        return f"{weight}{self.settings.note}"

    @property
    def weight(self) -> float | None:
        """Weight of the linear part of a sum of kernels; None for other kernels."""
        kernel = self.settings.kernel
        return np.inf if isinstance(kernel, Scaled) else getattr(kernel, "weight", None)

    @property
    def unit(self) -> float:
        """Divisor of alpha.

        If the ridge is on the coefficients and every row is a centre, repeating a row also repeats its basis
        function, which halves its penalty. A weight of 2 must have the same effect as repeating the row.
        """
        return self.rows.mass if self.basis.weighted else 1.0

    @cached_property
    def definite(self) -> bool:
        """True if the Gram matrix has no negative eigenvalues, so that Cholesky factors and spectra agree.

        Only used for square designs. Kernels that do not declare it (these have no width) are tested by a
        factorization. With the penalty on the coefficients the Gram matrix is a square and always positive
        semi-definite.
        """
        known = True if self.settings.norm == "coefficients" else self.settings.kernel.definite
        if known is None:
            K = self.kernel(1.0)
            slight = 1e3 * float(np.finfo(K.dtype).eps) * float(np.abs(np.diagonal(K)).mean())
            known = cholesky(K, jitter=slight).jitter <= slight
        return known

    def kernel(self, sigma: float) -> Array:
        """Kernel between rows and centres."""
        return self._finite(self.settings.kernel.values(self.pairs, sigma))

    def _finite(self, K: Array) -> Array:
        if not self.settings.kernel.distance and not np.isfinite(K).all():
            raise ValueError("Kernel values overflow: scale the features, or increase sigma.")
        return K

    @property
    def penalised(self) -> bool:
        """True if the penalty is the kernel matrix of the centres, and that is not the design itself."""
        return self.settings.norm == "function" and not self.basis.square

    def center_kernel(self, sigma: float, columns: Any = slice(None)) -> Array:
        """Kernel matrix of some centres, in double precision unless precomputed."""
        basis, kernel = self.basis, self.settings.kernel
        if isinstance(kernel, Precomputed):
            assert basis.rows is not None
            return self.pairs[basis.rows[columns]][:, columns]
        centers = basis.centers[columns]
        return self._finite(double_kernel(kernel, centers, centers, sigma))

    def whitened(self, sigma: float, known: Whitening, columns: Any = slice(None)) -> Array:
        """Whitened features of all rows (n x r), computed in double precision by blocks of rows.

        Distances in single precision are not used: whitening would amplify the error of the kernel values.
        """
        index = np.arange(self.basis.n_functions)[columns][known.pivots]
        kernel, n, dtype = self.settings.kernel, len(self.rows), self.rows.X.dtype
        exact = self.pairs.dtype == np.float64 or isinstance(kernel, Precomputed)
        centers, found = None if exact else self.basis.centers[index], np.empty((n, known.rank), dtype=dtype)
        for part in row_chunks(n, known.size, 8):
            if exact:
                pairs = np.take(self.pairs[part], index, axis=1)
                K = kernel.values(pairs, sigma, out=pairs)
            else:
                K = double_kernel(kernel, self.rows.X[part], centers, sigma)
            found[part] = known.whiten(self._finite(K))
        return found

    def designs(self, sigma: float, deletes: bool = True) -> list[Design]:
        """One design per block of the basis; with ``deletes``, deleting a row may also delete its basis function."""
        if self.penalised:
            return [self._penalised_design(sigma, block, deletes) for block in self.basis.blocks]
        K = self.kernel(sigma)
        return [block_design(self.basis, block, K, self.settings.norm, self.root) for block in self.basis.blocks]

    def _penalised_design(self, sigma: float, block: Block, deletes: bool) -> Design:
        R = self.center_kernel(sigma, block.columns)
        known = full_whitening(R) if deletes and block.own is not None else whitening(R)
        return Design(self.whitened(sigma, known, block.columns), known, self.root, None, False, True)

    def problem(self, block: Block) -> Problem:
        """Ridge problem of one block, for the held-out formulas."""
        # With the penalty on the function and K as the Gram matrix, deleting a row also deletes its basis function.
        own = None if self.basis.square and self.settings.norm == "function" else block.own
        Z, count = self.Z[:, block.classes], self.rows.split_count
        if own is not None and count is not None and not self.basis.weighted:
            own = np.where(count > 1, -1, own)  # a centre stays as long as observations remain at it
        return Problem(Z, self.root, self.settings.bias, own, self.folds, count=count)

    def by_cholesky(self, count: int) -> bool:
        """True if Cholesky factors are possible, and cheaper than a spectrum for this many alphas."""
        if count * CholeskyHeldout.n_factors(self.folds, len(self.rows)) > FEW_ALPHAS:
            return False
        single = self.settings.norm == "coefficients" and self.Z.dtype == np.float32  # K^2 has too few digits
        plain = self.basis.square and self.rows.equal_weights and self.rows.split_count is None and not single
        return plain and self.definite

    def heldout(self, sigma: float, count: int) -> Callable[[float], HeldOut]:
        """A function from alpha to held-out scores at this sigma; about ``count`` alphas will be evaluated."""
        parts = [
            self._part(self.problem(block), design, count)
            for block, design in zip(self.basis.blocks, self.designs(sigma), strict=True)
        ]

        def at(alpha: float) -> HeldOut:
            held = [part.at(alpha / self.unit) for part in parts]
            dof = float(np.mean([h.dof for h in held]))
            return HeldOut(np.hstack([h.F for h in held]), dof=dof)

        return at

    def _part(self, problem: Problem, design: Design, count: int) -> CholeskyHeldout | SpectralHeldout | RefitHeldout:
        """The cheapest method for this many alphas."""
        if self.by_cholesky(count):
            return CholeskyHeldout(problem, design.K, square=not design.function)
        n, b = len(design.K), design.n_functions
        if problem.centring is None and cheaper_to_refit(
            n, b, self.folds, design.square, problem.own is not None, count
        ):
            return RefitHeldout(problem, design)
        return SpectralHeldout(problem, design.spectrum() if problem.own is None else design.function_spectrum())

    @property
    def isolated(self) -> Array | None:
        """Mask of rows that are coupled to no training row when held out; None if there are none."""
        return None

    def without_rounding(self, held: HeldOut) -> HeldOut:
        """Held-out scores with pure rounding error set to zero; unchanged for regression."""
        return (
            held
            if not self.settings.objective.of_classes
            else held.without_rounding(None if self.settings.bias else self.isolated)
        )

    def objective(self, sigma: float, alpha: float, held: HeldOut, last: Candidate | None) -> Candidate:
        """Candidate with the objective value of these held-out scores."""
        held = self.without_rounding(held)
        score, calibrator = self.settings.objective(self.rows, held, None if last is None else last.calibrator)
        return Candidate(
            sigma, alpha, score, held.F, calibrator, weight=self.weight, scale=self.settings.objective.scale
        )
