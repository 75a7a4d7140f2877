r"""Multi-task models from rows in blocks, each of which contains whole tasks.

The shared system of the block-arrow problem (``linalg.arrow``) is a sum over tasks, so that a block returns one b x b
matrix for all of its tasks. A fit makes these passes over the parts:

    one       for statistics (``task_statistics``): tasks and their sizes, classes, weights;
    one       for a sample of whole tasks, on which centres, sigma, sharing and alpha are chosen in memory;
    one       for the sums at these parameters, and one for each further alpha that is tried on all rows;
    one       for the coefficients of the tasks, given the solution of the shared system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from leastwise.linalg.arrow import Arrow, Sums, System, Triangle, arrow_sums, arrow_triangle
from leastwise.linalg.arrow_batches import Chunk
from leastwise.linalg.moments import Whitening
from leastwise.model_selection.folds import observation_counts
from leastwise.problem.basis import Basis, given_basis
from leastwise.problem.coupling import Centring, Coupling, CouplingMatrix
from leastwise.problem.inputs import Inputs
from leastwise.problem.kernels import Kernel
from leastwise.solvers.arrow import ArrowEvaluator, Stream
from leastwise.solvers.evaluator import Rows, Settings
from leastwise.solvers.heldout import HeldOut
from leastwise.solvers.solve_tasks import (
    PrimalForm,
    TaskSolution,
    chunk_coef,
    chunk_heldout,
    common_intercept,
    empty_coef,
    unwhitened,
)
from leastwise.sources.blocks import Block
from leastwise.sources.frames import stack_rows
from leastwise.sources.row_source import RowSource, numbered
from leastwise.sources.task_reading import Clean, Rules, clean, kept_rows
from leastwise.sources.task_statistics import BlockData

Array = np.ndarray

#: Bytes of coefficients that are transferred at a time.
ROOM = 2**28


@dataclass(frozen=True)
class WorkerConfig:
    """Data for all blocks.

    Attributes
    ----------
    rules : Rules
    dtype : dtype
    targets : Targets
        With the classes or units of all rows.
    factors : dict
        Class weights.
    mass : float
        Mean weight of all rows with a positive weight.
    share : float
        Share of the rows of the chosen tasks that is in the sample.
    fewest : int
        Minimum number of rows of each class of a task in the sample.
    centers : array or sparse matrix of shape (b, d)
    norm : str
    n_outputs : int
    inputs : Inputs
        What is done to the rows before kernels are computed.
    """

    rules: Rules
    dtype: Any
    targets: Any
    factors: dict
    mass: float
    share: float = 1.0
    fewest: int = 2
    centers: Any = None
    norm: str = "function"
    n_outputs: int = 0
    inputs: Inputs = field(default_factory=Inputs)

    @property
    def values(self) -> bool:
        """True if the targets are regression targets."""
        return self.targets.kind == "values"

    @property
    def taken(self) -> tuple[float, int, Array | None]:
        """The keys that decide which rows are in the sample; see ``kept_rows``."""
        return self.share, self.fewest, None if self.values else self.targets.classes

    def weights(self, y: Array, w: Array) -> Array:
        """Weights of the rows times class weights."""
        if self.values:
            return w
        classes = self.targets.classes
        return w * np.array([self.factors[name] for name in classes.tolist()])[np.searchsorted(classes, y)]


@dataclass(frozen=True)
class Point:
    """Hyperparameters of a solve; ``intercept_ratio`` is in units of the noise of a row of mean weight."""

    kernel: Kernel
    sigma: float
    sharing: float
    rho: float
    intercept_ratio: float
    bias: bool
    penalty: Whitening | None

    def width(self, terms: WorkerConfig) -> int:
        """Number of columns of the design matrix."""
        return int(terms.centers.shape[0]) if self.penalty is None else self.penalty.rank


@dataclass(frozen=True)
class Width:
    """Placeholder for an objective when nothing is scored."""

    n_outputs: int


@dataclass(frozen=True)
class Share:
    """The tasks of a block, as input of the block-arrow solver."""

    stream: Stream
    coupling_matrix: CouplingMatrix
    centring: Centring | None
    point: Point

    @classmethod
    def of(cls, rows: Rows, penalty: Array, terms: WorkerConfig, point: Point) -> Share:
        """For rows whose tasks have these penalties."""
        assert rows.task is not None
        settings = Settings(point.kernel, terms.norm, point.bias, Width(terms.n_outputs))  # type: ignore[arg-type]
        stream = Stream.of(rows, len(penalty), given_basis(terms.centers, terms.n_outputs), settings)
        root = np.sqrt(rows.w).astype(rows.X.dtype)
        centring = (
            None if point.intercept_ratio == 0 else Centring.of(rows.task, root, point.intercept_ratio, len(penalty))
        )
        return cls(stream, CouplingMatrix(point.sharing, (1 - point.sharing) / penalty), centring, point)

    def chunks(self) -> Iterator[tuple[Array, Chunk]]:
        """Batches of tasks, each with the indices of its rows."""
        return self.stream.chunks(self.point.sigma, self.coupling_matrix, self.point.penalty, self.centring)

    def source(self) -> Iterator[Chunk]:
        """The batches without the indices of the rows."""
        return (chunk for _, chunk in self.chunks())


def training_rows(rows: Clean, task: Array, terms: WorkerConfig) -> Rows:
    """Rows as a trial has them, held out one observation at a time."""
    X, label = terms.inputs(rows.X.astype(terms.dtype, copy=False)), np.arange(len(task))
    w = terms.weights(rows.y, rows.w) / terms.mass
    w[np.abs(w - 1) < 1e-12] = 1
    y = rows.y if terms.values else np.searchsorted(terms.targets.classes, rows.y)
    codes, values = terms.targets.arrange(y, terms.dtype)
    made = Rows(X, codes, w.astype(terms.dtype), label, label, None, terms.mass, task, values)
    return replace(made, count=observation_counts(rows.w), by_observation=True)


def share_of(block: Block, own: BlockData, terms: WorkerConfig, point: Point) -> Share | None:
    """The tasks of a block; None if it has none."""
    rows = clean(block, terms.rules)
    if rows is None:
        return None
    return Share.of(training_rows(rows, own.tasks.codes(rows.names)[rows.index], terms), own.penalty, terms, point)


def block_sums(block: Block, own: BlockData, shared: tuple[WorkerConfig, Point]) -> Sums:
    """The sums of a block."""
    terms, point = shared
    share, none = share_of(block, own, *shared), Sums.zeros(point.width(terms), terms.n_outputs + 1, terms.dtype)
    return none if share is None else arrow_sums(share.source, point.rho, none)


def block_triangle(block: Block, own: BlockData, shared: tuple[WorkerConfig, Point]) -> Triangle:
    """The triangular factor that replaces the sums if their products lose precision."""
    (terms, point), share = shared, share_of(block, own, *shared)
    width = point.width(terms) + point.bias + terms.n_outputs
    source = (lambda: iter(())) if share is None else share.source
    return arrow_triangle(source, point.sharing, point.rho, point.bias, width)


def block_coef(block: Block, own: BlockData, shared: tuple[WorkerConfig, Point, Arrow]) -> tuple[Array, Array | None]:
    """Coefficients of the tasks of a block, and the intercept of each task."""
    terms, point, arrow = shared
    share = share_of(block, own, terms, point)
    if share is None:
        return empty_coef(0, arrow, point.penalty), None
    found = [chunk_coef(chunk, arrow, point.penalty, point.intercept_ratio) for chunk in share.source()]
    added = None if share.centring is None else np.concatenate([own for _, own in found if own is not None])
    return np.concatenate([coef for coef, _ in found]), added


def block_heldout(block: Block, own: BlockData, shared: tuple[WorkerConfig, Point, System]) -> tuple[Array, Array]:
    """Held-out scores, and their rounding errors, of the rows of a block that are in the sample."""
    terms, point, system = shared
    none = np.empty((0, terms.n_outputs), terms.dtype), np.empty(0)
    rows = clean(block, terms.rules) if len(own.chosen) else None
    if rows is None:
        return none
    code = own.tasks.codes(rows.names)[rows.index]
    mine = np.flatnonzero(np.isin(code, own.chosen))
    task, some = np.searchsorted(own.chosen, code[mine]), rows.part(mine)
    known = training_rows(some, task, terms)
    share = Share.of(known, own.penalty[own.chosen], terms, point)
    F, noise, first = np.empty((len(mine), terms.n_outputs), terms.dtype), np.empty(len(mine)), 0
    for where, chunk in share.chunks():
        tasks = slice(first, first + len(chunk.own))
        centring = None if share.centring is None else share.centring.part(where, tasks)
        held = chunk_heldout(known.part(where), chunk, centring, system, point.rho)
        F[where], noise[where], first = held.F, held.noise, tasks.stop
    kept = kept_rows(some, task, *terms.taken)
    return F[kept], noise[kept]


@dataclass(frozen=True)
class Remote:
    """All blocks with their data; callers need not know where they are."""

    source: RowSource
    own: list[BlockData]
    terms: WorkerConfig

    def system(self, point: Point) -> System:
        """The shared system: one reduction, or two if the ridge is so small that products lose precision."""
        sums = self.source.total(block_sums, (self.terms, point), self.own)
        if sums.keep_digits(point.sharing):
            return sums.system(point.sharing, point.bias)
        triangle = self.source.total(block_triangle, (self.terms, point), self.own)
        return triangle.system(point.width(self.terms), point.sharing, point.bias, np.dtype(self.terms.dtype))

    def solution(self, point: Point, system: System) -> TaskSolution:
        """The coefficients of all tasks."""
        arrow, T = Arrow.of(system, point.rho), sum(len(own.tasks) for own in self.own)
        coef = empty_coef(T + 1, arrow, point.penalty)
        own = None if point.intercept_ratio == 0 else np.zeros((T, coef.shape[2]), dtype=coef.dtype)
        size = max(len(own.tasks) for own in self.own) * coef[0].nbytes
        found = self.source.map(block_coef, (self.terms, point, arrow), self.own, max(1, ROOM // max(size, 1)))
        for each, (own_coef, added) in zip(self.own, found, strict=True):
            coef[each.codes] = own_coef
            if own is not None and added is not None:
                own[each.codes] = added
        coef[-1:] = unwhitened(arrow.shared[None], point.penalty)
        jitter = max(arrow.jitter, 0.0 if point.penalty is None else point.penalty.jitter)
        intercept, own = common_intercept(arrow.intercept, own, point.bias)
        return TaskSolution(PrimalForm(coef), intercept, jitter, own=own)

    def heldout(self, point: Point, system: System, order: Array) -> HeldOut:
        """Held-out scores of the sample, with its rows in this order."""
        found = list(self.source.map(block_heldout, (self.terms, point, system), self.own))
        F, noise = (np.concatenate([one[k] for one in found])[order] for k in (0, 1))
        return HeldOut(F, noise)


# ---------------------------------------------------------------------- sample


@dataclass(frozen=True)
class Sample:
    """Rows of the chosen tasks.

    Attributes
    ----------
    rows : Clean
        ``index`` counts all tasks, ``names`` is empty.
    order : ndarray of int
        Their positions among the rows of the blocks, one block after the other.
    """

    rows: Clean
    order: Array


def gathered(source: RowSource, own: list[BlockData], terms: WorkerConfig) -> Sample:
    """The rows of the chosen tasks, in the order that they have among all rows."""
    found = [rows for rows in source.map(chosen_rows, terms, own) if rows is not None]
    y, w, index, number = (
        np.concatenate([getattr(rows, name) for rows in found]) for name in ("y", "w", "index", "number")
    )
    whole = Clean(stack_rows([rows.X for rows in found]), y, w, [], index, number)
    order = np.argsort(whole.number, kind="stable")
    return Sample(whole.part(order), order)


def chosen_rows(block: Block, own: BlockData, terms: WorkerConfig) -> Clean | None:
    """The rows of a block that are in the sample; ``index`` counts all tasks."""
    if not len(own.chosen):
        return None
    rows = clean(numbered(block, own.first), terms.rules)
    if rows is None:
        return None
    code = own.tasks.codes(rows.names)[rows.index]
    mine = np.flatnonzero(np.isin(code, own.chosen))
    mine = mine[kept_rows(rows.part(mine), code[mine], *terms.taken)]
    some = rows.part(mine)
    X: Any = some.X.astype(terms.dtype, copy=False)
    return Clean(X, some.y, some.w, [], own.codes[code[mine]], some.number)


class PartitionEvaluator(ArrowEvaluator):
    """Evaluates hyperparameters on a sample of tasks, with the shared system of all tasks.

    Each point takes one reduction over the blocks. The rows have the weights that they have among all. The ridge is
    that of all rows, not of all but a fold.

    Parameters
    ----------
    rows : Rows
        The rows of the sample.
    basis, settings, coupling
        As in ``ArrowEvaluator``; the coupling is that of the tasks in the sample.
    remote : Remote
    n : int
        Number of all rows.
    order : ndarray of int, or None
        The order of the sample among the rows of the blocks, if it has only some rows of its tasks; None if it has
        whole tasks, whose held-out scores do not need another pass.
    """

    def __init__(
        self,
        rows: Rows,
        basis: Basis,
        settings: Settings,
        coupling: Coupling,
        remote: Remote,
        n: int,
        order: Array | None,
    ) -> None:
        super().__init__(rows, basis, settings, coupling)
        self.remote, self.n, self.order = remote, n, order

    def point(self, sigma: float, alpha: float) -> Point:
        """The hyperparameters for the blocks."""
        penalty, rho = self.stream.penalty(sigma), float(alpha * self.n)
        sharing, ratio = self.coupling_matrix.sharing, self.unit_intercept_ratio
        return Point(self.settings.kernel, sigma, sharing, rho, ratio, self.bias, penalty)

    def held(self, point: Point, system: System) -> HeldOut:
        """Held-out scores of the sample."""
        if self.order is not None:
            return self.remote.heldout(point, system, self.order)
        held = self.arrow(point.sigma).from_system(system, point.rho)
        return replace(held, F=self.back(held.F), noise=None if held.noise is None else self.back(held.noise))

    def heldout(self, sigma: float, count: int) -> Callable[[float], HeldOut]:
        """A function from alpha to held-out scores at this sigma."""

        def at(alpha: float) -> HeldOut:
            point = self.point(sigma, alpha)
            return self.held(point, self.remote.system(point))

        return at

    def solved(self, sigma: float, alpha: float, hold: bool) -> tuple[TaskSolution, HeldOut | None]:
        """The model of all rows, and held-out scores of the sample."""
        point = self.point(sigma, alpha)
        system = self.remote.system(point)
        return self.remote.solution(point, system), self.held(point, system) if hold else None
