"""One basis on some rows: held-out scores for any sigma and alpha, and their judgement."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from leastwise.calibration.calibrators import Sample, class_shares
from leastwise.linalg.cholesky import cholesky
from leastwise.linalg.whitening import Whitening, full_whitening, whitening
from leastwise.problem.basis import Basis, Block, Design, block_design, double_kernel, row_chunks
from leastwise.problem.kernels import Kernel, Precomputed, Scaled, Sum
from leastwise.solvers.dense import CholeskyHeldout, RefitHeldout, SpectralHeldout
from leastwise.solvers.heldout import Folds, HeldOut, Problem
from leastwise.solvers.search_rows import ARRAYS, FEW_ALPHAS, cheaper_to_refit
from leastwise.utils.arrays import is_numpy, to_numpy

Array = np.ndarray


@dataclass(frozen=True)
class Rows:
    """Training rows with all that belongs to them.

    Attributes
    ----------
    X : array or sparse matrix
    y : ndarray of int
        Codes of the classes.
    w : ndarray
        Weights of mean 1.
    fold : ndarray of int
        Rows with the same label are held out together.
    copy : ndarray of int
        Rows with the same label are equal in every entry.
    group : ndarray of int or None
        The user's groups: rows with the same label are not independent. None where all rows are.
    mass : float
        Mean of the weights as the user gave them.
    task : ndarray of int or None
        Codes of the tasks, where there are several.
    values : ndarray of shape (n, outputs) or None
        Targets that are not 0 and 1: quantities, or -1 and 1.
    shares : ndarray of shape (outputs,) or None
        Class shares (of many labels: weights of the classes), where they are known better than from these rows.
    count : ndarray or None
        How many observations each row stands for; None where each is one.
    by_observation : bool
        Leave-one-out: of a row that stands for several observations, one is held out at a time. Otherwise rows are
        held out whole.
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

    #: What rows may have or not.
    OPTIONAL: ClassVar[tuple[str, ...]] = ("group", "task", "values", "count")

    def __len__(self) -> int:
        return len(self.y)

    @property
    def size(self) -> int:
        """Number of independent observations: groups where there are some, else all that the rows stand for."""
        if self.group is not None:
            return len(np.unique(self.group))
        return len(self) if self.count is None else round(float(np.sum(self.count)))

    @property
    def split_count(self) -> Array | None:
        """Observations of each row, where they are held out one at a time; None where rows are held out whole."""
        return self.count if self.by_observation else None

    @property
    def place(self) -> Array:
        """Labels for distances to other rows: one for the rows of a fold, or for equal rows in leave-one-out."""
        return self.copy if self.by_observation else self.fold

    @property
    def equal_weights(self) -> bool:
        """Whether all rows count the same."""
        return bool(np.all(self.w == 1))

    def sample(self, F: Array) -> Sample:
        """The rows with their held-out scores, for calibrators and scorers.

        Rows without a score do not count, but for the class shares.
        """
        known = ~np.isnan(F[:, 0])
        if known.all() and self.shares is None:
            return Sample(F, self.y, self.w, self.size, task=self.task)
        shares = self.class_shares(F.shape[1]).astype(F.dtype)
        part = self.part(np.flatnonzero(known))
        return Sample(F[known], part.y, part.w, part.size, shares, part.task)

    def class_shares(self, n_classes: int) -> Array:
        """Weighted class shares."""
        return class_shares(self.y, self.w, n_classes) if self.shares is None else self.shares

    def targets(self, n_outputs: int) -> Array:
        """What is fitted: the values, or 1 in the column of the row's class."""
        return np.eye(n_outputs, dtype=self.X.dtype)[self.y] if self.values is None else self.values

    def to_numpy(self) -> Self:
        """The same with X in numpy's arrays."""
        return self if is_numpy(self.X) else replace(self, X=to_numpy(self.X))

    def part(self, index: Array) -> Self:
        """Some of the rows, with the weights that they have among all."""
        names = ("X", "y", "w", "fold", "copy", *self.OPTIONAL)
        given = {name: getattr(self, name) for name in names}
        return replace(self, **{name: a[index] for name, a in given.items() if a is not None})

    def take(self, index: Array, precomputed: bool) -> Self:
        """Some of the rows, with weights of mean 1 again; a precomputed kernel loses the same columns."""
        some = self.part(index)
        w = some.w if self.equal_weights else some.w / some.w.mean()
        mass = self.mass * float(some.w.mean())
        return replace(some, X=some.X[:, index] if precomputed else some.X, w=w, mass=mass)


class Objective(Protocol):
    """What held-out scores are worth; see ``leastwise.model_selection.objective``."""

    @property
    def scorer(self) -> Any:
        """What the search maximises."""
        ...

    @property
    def n_outputs(self) -> int:
        """Columns of the targets."""
        ...

    @property
    def of_classes(self) -> bool:
        """Whether scores are of classes; otherwise they are quantities."""
        ...

    @property
    def scale(self) -> float:
        """The size of scores: differences of a millionth of it are none."""
        ...

    def __call__(self, rows: Rows, held: HeldOut, last: Any) -> tuple[float, Any]:
        """A score, greater is better, and what makes predictions of scores; ``last`` is a neighbour's."""
        ...


@dataclass(frozen=True)
class Settings:
    """What does not change during a search."""

    kernel: Kernel
    norm: str
    bias: bool
    objective: Objective
    report: Callable[[str], None] = lambda line: None
    n_jobs: int | None = None

    @property
    def n_outputs(self) -> int:
        """Columns of the targets."""
        return self.objective.n_outputs


def _silent(line: str) -> None:
    """Tell nobody."""


@dataclass
class Candidate:
    """One point of the grid: its score, and the held-out scores and calibrator behind it.

    ``scale`` is the size that scores have, as a measure of what is about the same.
    """

    sigma: float
    alpha: float
    score: float
    F: Array = field(repr=False)
    calibrator: Any = field(repr=False)
    sharing: float | None = None
    spread: float | None = None
    weight: float | None = None
    scale: float = 1.0

    def better_than(self, other: Candidate) -> bool:
        """A higher score, or the same to six digits and smoother."""
        return self._smoothness > other._smoothness if self._close(other) else self.score > other.score

    def clearly_better(self, other: Candidate) -> bool:
        """A higher score, within six digits."""
        return self.score > other.score and not self._close(other)

    def _close(self, other: Candidate) -> bool:
        return abs(self.score - other.score) <= 1e-6 * (self.scale + abs(other.score))

    @property
    def _smoothness(self) -> tuple[float, float, float]:
        return self.alpha, self.sigma, self.sharing or 0.0


class Evaluator:
    """Held-out scores on some rows with some basis; the pairs of the kernel are computed once for all sigmas."""

    #: Whether it goes through the rows for every alpha.
    streams = False
    #: Whether another sharing at the same sigma takes another decomposition.
    sharing_costs = False

    def __init__(self, rows: Rows, basis: Basis, settings: Settings) -> None:
        self.rows, self.basis, self.settings = rows, basis, settings
        self.pairs = basis.pairs(settings.kernel, rows.X)
        self.root = np.sqrt(rows.w).astype(rows.X.dtype)
        self.Z = rows.targets(settings.n_outputs) * self.root[:, None]
        self.folds = Folds.from_labels(rows.fold)

    def for_worker(self) -> Self:
        """The trial for a job of its own: nothing that it computes touches this one, and it has nobody to tell."""
        other = copy.copy(self)
        other.settings = replace(self.settings, report=_silent)
        return other

    def warm_start(self, sigma: float) -> Any:
        """What steps at this sigma leave behind for later ones; a closed form needs nothing."""
        return None

    def set_warm_start(self, sigma: float, state: Any) -> None:
        """Take over what a copy has left behind."""

    @property
    def room(self) -> int:
        """Bytes that a step takes at its peak."""
        s, numbers = self.settings, len(self.rows) * self.basis.n_functions
        return ARRAYS[s.norm] * numbers * self.rows.X.dtype.itemsize

    def with_sharing(self, sharing: float | None) -> Evaluator:
        """The trial with this sharing between tasks; a single task has none."""
        return self

    def with_intercept_variance(self, spread: float) -> Evaluator:
        """The trial with intercepts of this spread among tasks; a single task has none."""
        return self

    def with_linear_weight(self, weight: float) -> Self:
        """The trial with this weight for the linear part of a sum of kernels.

        The linear part alone, which competes with the sum, has an infinite weight and no other.
        """
        kernel = self.settings.kernel
        if weight == self.weight:
            return self
        assert isinstance(kernel, Sum)
        other = copy.copy(self)
        other.settings = replace(self.settings, kernel=kernel.weighing(weight))
        return other

    def description(self) -> str:
        """What there is to say of a trial beside sigma and alpha."""
        return "" if self.weight is None else f", linear weight {self.weight:.3g}"

    @property
    def weight(self) -> float | None:
        """Of the linear part of a sum of kernels, if there is one."""
        kernel = self.settings.kernel
        return np.inf if isinstance(kernel, Scaled) else getattr(kernel, "weight", None)

    @property
    def unit(self) -> float:
        """What alpha is divided by.

        Where the ridge is on the coefficients and every row is a centre, repeating a row also repeats its basis
        function, which halves the penalty on it. Weights stand for repeated rows, so they have to do the same.
        """
        return self.rows.mass if self.basis.weighted else 1.0

    @cached_property
    def definite(self) -> bool:
        """Whether the Gram matrix has no negative eigenvalues, so that Cholesky factors and spectra agree.

        Asked of square designs only. For kernels that do not say so themselves (and have no width) a factor tells.
        With the penalty on the coefficients the Gram matrix is a square, and never has any.
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
            raise ValueError("Kernel values overflow on these data: scale the features, or raise sigma.")
        return K

    @property
    def penalised(self) -> bool:
        """Whether the penalty is the kernel between centres, other than the design itself."""
        return self.settings.norm == "function" and not self.basis.square

    def center_kernel(self, sigma: float, columns: Any = slice(None)) -> Array:
        """Kernel between some centres, in double precision unless it came precomputed."""
        basis, kernel = self.basis, self.settings.kernel
        if isinstance(kernel, Precomputed):
            assert basis.rows is not None
            return self.pairs[basis.rows[columns]][:, columns]
        centers = basis.centers[columns]
        return self._finite(double_kernel(kernel, centers, centers, sigma))

    def whitened(self, sigma: float, known: Whitening, columns: Any = slice(None)) -> Array:
        """All rows in the coordinates of these centres (n x r), computed in double precision a part at a time.

        Pairs in single precision are not used: the error of a kernel value would be multiplied by T.
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
        """One design for every block of the basis; with ``deletes`` rows may take their basis functions along."""
        if self.penalised:
            return [self._penalised_design(sigma, block, deletes) for block in self.basis.blocks]
        K = self.kernel(sigma)
        return [block_design(self.basis, block, K, self.settings.norm, self.root) for block in self.basis.blocks]

    def _penalised_design(self, sigma: float, block: Block, deletes: bool) -> Design:
        R = self.center_kernel(sigma, block.columns)
        known = full_whitening(R) if deletes and block.own is not None else whitening(R)
        return Design(self.whitened(sigma, known, block.columns), known, self.root, None, False, True)

    def problem(self, block: Block) -> Problem:
        """The ridge problem of one block, for the held-out formulas."""
        # With the penalty on the function and the kernel itself as Gram, a row takes its basis function along.
        own = None if self.basis.square and self.settings.norm == "function" else block.own
        Z, count = self.Z[:, block.classes], self.rows.split_count
        if own is not None and count is not None and not self.basis.weighted:
            own = np.where(count > 1, -1, own)  # a place stays as long as there are observations at it
        return Problem(Z, self.root, self.settings.bias, own, self.folds, count=count)

    @property
    def by_cholesky(self) -> bool:
        """Whether a single alpha can be judged from a Cholesky factor."""
        single = self.settings.norm == "coefficients" and self.Z.dtype == np.float32  # a square has too few digits
        plain = self.basis.square and self.rows.equal_weights and self.rows.split_count is None and not single
        return plain and CholeskyHeldout.suits(self.folds, len(self.rows)) and self.definite

    def heldout(self, sigma: float, count: int) -> Callable[[float], HeldOut]:
        """A function from alpha to held-out scores at this sigma; about ``count`` alphas are wanted."""
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
        """The cheapest way to this many alphas."""
        if count <= FEW_ALPHAS and self.by_cholesky:
            return CholeskyHeldout(problem, design.K, square=not design.function)
        n, b = len(design.K), design.n_functions
        if problem.centring is None and cheaper_to_refit(
            n, b, self.folds, design.square, problem.own is not None, count
        ):
            return RefitHeldout(problem, design)
        return SpectralHeldout(problem, design.spectrum() if problem.own is None else design.function_spectrum())

    @property
    def isolated(self) -> Array | None:
        """Rows of which nothing can be known when they are held out, if there are such."""
        return None

    def without_rounding(self, held: HeldOut) -> HeldOut:
        """Held-out scores without what is rounding only; for quantities zero is a number as any other."""
        return (
            held
            if not self.settings.objective.of_classes
            else held.without_rounding(None if self.settings.bias else self.isolated)
        )

    def objective(self, sigma: float, alpha: float, held: HeldOut, last: Candidate | None) -> Candidate:
        """Judge held-out scores."""
        held = self.without_rounding(held)
        score, calibrator = self.settings.objective(self.rows, held, None if last is None else last.calibrator)
        return Candidate(
            sigma, alpha, score, held.F, calibrator, weight=self.weight, scale=self.settings.objective.scale
        )
