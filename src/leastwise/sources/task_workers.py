r"""Models of many tasks from parts of the rows, each of which holds whole tasks.

The shared system of the block-arrow problem (``linalg.arrow``) is a sum over tasks, so that a part tells no more than
a matrix of b x b for all of its tasks. A fit goes through the parts

    once      to know what there is (``facts``): tasks and their sizes, classes, weights;
    once      for a sample of whole tasks, on which centres, sigma, sharing and alpha are chosen in memory;
    once      for the sums at these parameters, and for each other alpha where that is refined on all rows;
    once      for the coefficients of the tasks, with the solution of the shared system put back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leastwise.linalg.arrow import Arrow, Sums, System, Triangle, arrow_sums, arrow_triangle
from leastwise.linalg.arrow_batches import Chunk
from leastwise.linalg.whitening import Whitening
from leastwise.model_selection.folds import observation_counts
from leastwise.problem.basis import given_basis
from leastwise.problem.coupling import Tie
from leastwise.problem.intercepts import Centring
from leastwise.problem.kernels import Kernel
from leastwise.problem.tasks import Tasks
from leastwise.solvers.arrow_evaluator import Stream
from leastwise.solvers.evaluator import Rows, Settings
from leastwise.solvers.heldout import Held
from leastwise.solvers.solve_tasks import (
    PrimalForm,
    TaskSolution,
    chunk_coef,
    chunk_heldout,
    common_intercept,
    empty_coef,
    unwhitened,
)
from leastwise.sources.parts import Parts, Piece
from leastwise.sources.task_reading import Clean, Rules, clean, kept_rows

Array = np.ndarray

#: Bytes of coefficients that are on their way at a time.
ROOM = 2**28


@dataclass(frozen=True)
class Terms:
    """What all parts are told once.

    Attributes
    ----------
    rules : Rules
    dtype : dtype
    targets : Targets
        With the classes or units of all rows.
    factors : dict
        Weights of the classes.
    mass : float
        Mean weight of all rows that count.
    share : float
        Which share of the rows of the tasks that were chosen is in the sample.
    fewest : int
        Rows of every class of a task that are in the sample at least.
    centers : array or sparse matrix of shape (b, d)
    norm : str
    n_outputs : int
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

    @property
    def values(self) -> bool:
        """Whether the targets are quantities."""
        return self.targets.kind == "values"

    @property
    def taken(self) -> tuple[float, int, Array | None]:
        """What tells which rows are in the sample; see ``kept_rows``."""
        return self.share, self.fewest, None if self.values else self.targets.classes

    def weights(self, y: Array, w: Array) -> Array:
        """Weights with those of the classes, as they would be given in one."""
        if self.values:
            return w
        classes = self.targets.classes
        return w * np.array([self.factors[name] for name in classes.tolist()])[np.searchsorted(classes, y)]


@dataclass(frozen=True)
class Own:
    """What a part alone is told: its tasks, their numbers among all, penalties, and which were chosen for the sample.

    ``chosen`` counts the tasks of the part. ``first`` is the number of its first row among all, where none moved.
    """

    tasks: Tasks
    codes: Array
    penalty: Array
    chosen: Array
    first: int


@dataclass(frozen=True)
class Point:
    """Where the model is to be solved; ``spread`` is in units of the noise of a row of mean weight."""

    kernel: Kernel
    sigma: float
    sharing: float
    rho: float
    spread: float
    bias: bool
    penalty: Whitening | None

    def width(self, terms: Terms) -> int:
        """Columns of the design."""
        return int(terms.centers.shape[0]) if self.penalty is None else self.penalty.rank


@dataclass(frozen=True)
class Width:
    """What stands for a judge where nothing is judged."""

    n_outputs: int


@dataclass(frozen=True)
class Share:
    """The tasks of a part, as the block-arrow solver wants them."""

    stream: Stream
    tie: Tie
    centring: Centring | None
    point: Point

    @classmethod
    def of(cls, rows: Rows, penalty: Array, terms: Terms, point: Point) -> Share:
        """Of rows whose tasks have these penalties."""
        assert rows.task is not None
        settings = Settings(point.kernel, terms.norm, point.bias, Width(terms.n_outputs))  # type: ignore[arg-type]
        stream = Stream.of(rows, len(penalty), given_basis(terms.centers, terms.n_outputs), settings)
        root = np.sqrt(rows.w).astype(rows.X.dtype)
        centring = None if point.spread == 0 else Centring.of(rows.task, root, point.spread, len(penalty))
        return cls(stream, Tie(point.sharing, (1 - point.sharing) / penalty), centring, point)

    def chunks(self) -> Iterator[tuple[Array, Chunk]]:
        """Some tasks, then the next."""
        return self.stream.chunks(self.point.sigma, self.tie, self.point.penalty, self.centring)

    def source(self) -> Iterator[Chunk]:
        """The same without the numbers of the rows."""
        return (chunk for _, chunk in self.chunks())


def training_rows(rows: Clean, task: Array, terms: Terms) -> Rows:
    """Rows as a trial has them, held out one observation at a time."""
    X, label = rows.X.astype(terms.dtype, copy=False), np.arange(len(task))
    w = terms.weights(rows.y, rows.w) / terms.mass
    w[np.abs(w - 1) < 1e-12] = 1
    y = rows.y if terms.values else np.searchsorted(terms.targets.classes, rows.y)
    codes, values = terms.targets.arrange(y, terms.dtype)
    made = Rows(X, codes, w.astype(terms.dtype), label, label, None, terms.mass, task, values)
    return replace(made, count=observation_counts(rows.w), by_observation=True)


def share_of(piece: Piece, own: Own, terms: Terms, point: Point) -> Share | None:
    """The tasks of a part; None where it has none."""
    rows = clean(piece, terms.rules)
    if rows is None:
        return None
    return Share.of(training_rows(rows, own.tasks.codes(rows.names)[rows.index], terms), own.penalty, terms, point)


def part_sums(piece: Piece, own: Own, told: tuple[Terms, Point]) -> Sums:
    """The sums of a part."""
    terms, point = told
    share, none = share_of(piece, own, *told), Sums.zeros(point.width(terms), terms.n_outputs + 1, terms.dtype)
    return none if share is None else arrow_sums(share.source, point.rho, none)


def part_triangle(piece: Piece, own: Own, told: tuple[Terms, Point]) -> Triangle:
    """What takes the place of the sums where products lose the digits."""
    (terms, point), share = told, share_of(piece, own, *told)
    width = point.width(terms) + point.bias + terms.n_outputs
    source = (lambda: iter(())) if share is None else share.source
    return arrow_triangle(source, point.sharing, point.rho, point.bias, width)


def part_coef(piece: Piece, own: Own, told: tuple[Terms, Point, Arrow]) -> tuple[Array, Array | None]:
    """Coefficients of the tasks of a part, and what each adds to the intercept."""
    terms, point, arrow = told
    share = share_of(piece, own, terms, point)
    if share is None:
        return empty_coef(0, arrow, point.penalty), None
    found = [chunk_coef(chunk, arrow, point.penalty, point.spread) for chunk in share.source()]
    added = None if share.centring is None else np.concatenate([own for _, own in found if own is not None])
    return np.concatenate([coef for coef, _ in found]), added


def part_heldout(piece: Piece, own: Own, told: tuple[Terms, Point, System]) -> tuple[Array, Array]:
    """Held-out scores, and their rounding, of the rows of a part that are in the sample."""
    terms, point, system = told
    none = np.empty((0, terms.n_outputs), terms.dtype), np.empty(0)
    rows = clean(piece, terms.rules) if len(own.chosen) else None
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
    """All parts, and what they are told: who asks need not know where they are."""

    parts: Parts
    own: list[Own]
    terms: Terms

    def system(self, point: Point) -> System:
        """The shared part of the model: one reduction, two where the ridge is so small that products lose digits."""
        sums = self.parts.total(part_sums, self.own, (self.terms, point))
        if sums.keep_digits(point.sharing):
            return sums.system(point.sharing, point.bias)
        triangle = self.parts.total(part_triangle, self.own, (self.terms, point))
        return triangle.system(point.width(self.terms), point.sharing, point.bias, np.dtype(self.terms.dtype))

    def solution(self, point: Point, system: System) -> TaskSolution:
        """The model: coefficients of all tasks, as the parts have them."""
        arrow, T = Arrow.of(system, point.rho), sum(len(own.tasks) for own in self.own)
        coef = empty_coef(T + 1, arrow, point.penalty)
        own = None if point.spread == 0 else np.zeros((T, coef.shape[2]), dtype=coef.dtype)
        size = max(len(own.tasks) for own in self.own) * coef[0].nbytes
        found = self.parts.map(part_coef, self.own, (self.terms, point, arrow), max(1, ROOM // max(size, 1)))
        for told, (part, added) in zip(self.own, found, strict=True):
            coef[told.codes] = part
            if own is not None and added is not None:
                own[told.codes] = added
        coef[-1:] = unwhitened(arrow.shared[None], point.penalty)
        jitter = max(arrow.jitter, 0.0 if point.penalty is None else point.penalty.jitter)
        intercept, own = common_intercept(arrow.intercept, own, point.bias)
        return TaskSolution(PrimalForm(coef), intercept, jitter, own=own)

    def heldout(self, point: Point, system: System, order: Array) -> Held:
        """Held-out scores of the sample, whose rows come in this order."""
        found = list(self.parts.map(part_heldout, self.own, (self.terms, point, system)))
        F, noise = (np.concatenate([part[k] for part in found])[order] for k in (0, 1))
        return Held(F, noise)
