"""Steps of a search: grids, line searches, the evaluation of one step, and steps in parallel.

A grid is fixed, or extended while the best value lies on the border. A step evaluates all alphas at one sigma and
sharing. ``Prefetch`` computes steps in parallel ahead of their turn, with the same results as a sequential search.
Jobs share the BLAS threads and the memory limit of the process.
"""

from __future__ import annotations

import math
import sys
import time
from collections import deque
from collections.abc import Callable, Container, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any, Protocol, TypeVar

from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from leastwise.solvers.evaluator import Candidate, Evaluator
from leastwise.utils.resources import (
    BLAS_LIMIT,
    available_memory,
    blas_threads,
    configured_memory,
    memory_limit,
    threads_for,
)

#: Maximal number of steps by which a grid is extended beyond each border.
GROWTH = 8


class Comparable(Protocol):
    """A result that can be compared with others."""

    def better_than(self, other) -> bool:  # type: ignore[no-untyped-def]
        """True if this one is preferred."""
        ...

    def clearly_better(self, other) -> bool:  # type: ignore[no-untyped-def]
        """True if this one has a better score, not just a smoother model."""
        ...


T = TypeVar("T", bound=Comparable)


@dataclass(frozen=True)
class Grid:
    """Values in increasing order; ``ratio`` is the step by which the grid may be extended, None if it is fixed."""

    values: tuple[float, ...]
    ratio: float | None = None

    @property
    def single(self) -> bool:
        """True if there is only one value."""
        return len(self.values) == 1 and self.ratio is None

    def around(self, start: float) -> Callable[[int], float | None]:
        """A function from a number of steps to the value that many steps from ``start``; None beyond the grid."""
        if self.ratio:
            ratio, far = self.ratio, self.ratio ** (GROWTH + 0.5)
            low, high = self.values[0] / far, self.values[-1] * far
            start = min(max(start, low), high)
            return lambda steps: v if low <= (v := start * ratio**steps) <= high else None
        place = min(range(len(self.values)), key=lambda i: abs(math.log(self.values[i] / start)))
        return lambda steps: dict(enumerate(self.values)).get(place + steps)


def best_of(found: list[T]) -> T:
    """The best of some results."""
    first, *others = found
    for outcome in others:
        first = outcome if outcome.better_than(first) else first
    return first


def _leads(found: list[T], end: int) -> bool:
    """True if the result at this end is the best, and clearly better than its neighbour."""
    inner = found[1 if end == 0 else -2] if len(found) > 1 else None
    return best_of(found) is found[end] and (inner is None or found[end].clearly_better(inner))


def explore(grid: Grid, visit: Callable[[float, T | None], T], grow: bool = True) -> T:
    """Visit all values, then, if the grid may be extended, continue beyond a border while the best value lies on it.

    The border must be clearly better than its neighbour, so that a plateau ends the search. ``visit(value, last)`` is
    passed the result of the neighbouring value for a warm start.
    """
    found: list[T] = []
    for value in grid.values:
        found.append(visit(value, found[-1] if found else None))
    for end, step in ((0, -1), (-1, 1)):
        beyond = grid.around(grid.values[end])
        steps = step
        while grow and grid.ratio and _leads(found, end) and (further := beyond(steps)) is not None:
            found.insert(0 if step < 0 else len(found), visit(further, found[end]))
            steps += step
    return best_of(found)


@dataclass(frozen=True)
class SharingGrid:
    """Values from 0 to 1 in increasing order; ``every`` is True if all of them must be tried."""

    values: tuple[float, ...]
    every: bool = True

    def around(self, start: float) -> Callable[[int], float | None]:
        """As in ``Grid``, from the value closest to ``start``."""
        place = min(range(len(self.values)), key=lambda i: abs(self.values[i] - start))
        return lambda steps: dict(enumerate(self.values)).get(place + steps)


@dataclass(frozen=True)
class OptionGrid:
    """Any values in increasing order, including infinity."""

    values: tuple[float, ...]

    def around(self, start: float) -> Callable[[int], float | None]:
        """As in ``Grid``; ``start`` must be one of the values."""
        place = self.values.index(start)
        return lambda steps: dict(enumerate(self.values)).get(place + steps)


def walk(
    grid: Grid | SharingGrid | OptionGrid, start: float, visit: Callable[[float, T | None], T], known: T | None = None
) -> T:
    """Line search from the value closest to ``start``: downwards while it improves; if it never does, upwards.

    ``known`` is the result at the start, if available.
    """
    value = grid.around(start)
    first = value(0)
    assert first is not None
    here = visit(first, None) if known is None else known
    for way in (-1, 1):
        steps = way
        while (there := value(steps)) is not None:
            outcome = visit(there, here)
            if not outcome.clearly_better(here):
                break
            here, steps = outcome, steps + way
        if steps != way:
            break
    return here


# ---------------------------------------------------------------- parallel jobs


def check_n_jobs(value: Any) -> int | None:
    """Check that ``n_jobs`` is None or an integer other than 0."""
    if value is None:
        return None
    if not isinstance(value, Integral) or isinstance(value, bool) or value == 0:
        raise ValueError(
            f"n_jobs={value!r} must be None or a whole number other than 0: -1 means all processors, -2 all but one."
        )
    return int(value)


def jobs_allowed(n_jobs: int | None, tasks: int, need: int) -> int:
    """Number of parallel jobs.

    Parameters
    ----------
    n_jobs : int or None
        As in scikit-learn: None means 1 unless in a joblib context, -1 means all processors.
    tasks : int
        Number of tasks, an upper bound of the number of jobs.
    need : int
        Bytes per job. As many jobs run as fit into memory, and at least one.
    """
    if tasks < 2 or n_jobs == 1 or _inside_another():
        return 1
    backend, usual = get_active_backend(prefer="threads")
    requested = backend.effective_n_jobs(usual if n_jobs is None else n_jobs)
    if requested < 2:  # to ask for the free memory takes longer than a small step
        return 1
    return max(1, min(requested, tasks, available_memory() // max(need, 1)))


def _inside_another() -> bool:
    """True if this code already runs in a parallel job; nested parallelism would oversubscribe the processors."""
    if (get_active_backend()[0].nesting_level or 0) > 0:
        return True
    worker = sys.modules.get("distributed.worker")  # Dask does not set nesting levels
    if worker is None:
        return False
    try:
        worker.get_worker()
    except ValueError:
        return False
    return True


class Stopped(Exception):
    """Thrown into :func:`in_order` to stop its jobs; closing the generator would make joblib warn."""


def in_order(function: Callable, tasks: Sequence[tuple], jobs: int) -> Generator[Any]:
    """Yield ``function(*task)`` of every task in order, each as soon as it is available.

    Jobs run in joblib's active backend, in threads by default. They share the BLAS threads of this process, whose
    limit is restored afterwards, and inherit its memory limit.
    """
    backend, _ = get_active_backend(prefer="threads")
    lazy = getattr(backend, "supports_return_generator", False)
    how = {"return_as": "generator"} if lazy else {}
    share, memory = max(1, blas_threads() // jobs), configured_memory()
    with BLAS_LIMIT.at(share):
        run = Parallel(n_jobs=jobs, prefer="threads", **how)
        yield from run(delayed(_limited)(share, memory, function, task) for task in tasks)


def _limited(share: int, memory: int | None, function: Callable, task: tuple) -> Any:
    """Run a task with the limits of the caller, which neither threads nor processes inherit."""
    with BLAS_LIMIT.at(share), memory_limit(memory):
        return function(*task)


#: Recorded attributes of a point of a search.
NAMES = ("sigma", "alpha", "sharing", "intercept_ratio", "weight", "score")
#: Up to this many rows the predictions of all points are stored, for ``leastwise.model_selection.objective``.
FEW_ROWS = 1000
#: Default start of the line search over sharings.
MIDDLE = 0.5


@dataclass(frozen=True)
class StepResult:
    """Result of a step: best point, all evaluated points, seconds, and state for warm starts."""

    outcome: Candidate
    seen: list[dict]
    seconds: float
    warm_start: Any = None


def make_step(evaluator: Evaluator, sigma: float, strategy: Callable, count: int) -> StepResult:
    """Evaluate about ``count`` alphas, in the order given by ``strategy``."""
    began, seen = time.perf_counter(), list[dict]()

    def point(alpha: float, last: Candidate | None) -> Candidate:
        held = heldout(alpha)
        outcome = evaluator.objective(sigma, alpha, held, last)
        record = {**{name: getattr(outcome, name) for name in NAMES}, "rows": len(evaluator.rows)}
        if not evaluator.settings.objective.of_classes and len(evaluator.rows) <= FEW_ROWS:
            record |= {"F": outcome.F, "dof": held.dof}
        seen.append(record)
        return outcome

    with threads_for(evaluator.matrix_rows):
        heldout = evaluator.heldout(sigma, count)
        found = strategy(point)
    return StepResult(found, seen, time.perf_counter() - began, evaluator.warm_start(sigma))


def full_grid(alphas: Grid) -> Callable:
    """The strategy that evaluates all alphas."""
    return partial(explore, alphas, grow=False)


@dataclass(frozen=True)
class GridJob:
    """Work of one parallel job: one sigma with all sharings, with a line search over them, or without sharing."""

    sigma: float
    sharings: SharingGrid | None = None

    def covers(self, sigma: float, sharing: float | None) -> bool:
        """True if this job may compute the step."""
        among = sharing is None if self.sharings is None else sharing in self.sharings.values
        return self.sigma == sigma and among

    def known(self, made: Container[tuple[float, float | None]]) -> bool:
        """True if every step that this job may compute is in ``made``."""
        sharings = (None,) if self.sharings is None else self.sharings.values
        return all((self.sigma, sharing) in made for sharing in sharings)

    def make(self, evaluator: Evaluator, alphas: Grid) -> dict[float | None, StepResult]:
        """Compute the steps; returns them by sharing."""
        made: dict[float | None, StepResult] = {}
        evaluator = evaluator.for_worker()

        def at(sharing: float | None, last: Candidate | None = None) -> Candidate:
            made[sharing] = make_step(
                evaluator.with_sharing(sharing), self.sigma, full_grid(alphas), len(alphas.values)
            )
            return made[sharing].outcome

        if self.sharings is None:
            at(None)
        elif self.sharings.every:
            for sharing in self.sharings.values:
                at(sharing)
        else:
            walk(self.sharings, MIDDLE, at)
        return made


def grid_jobs(evaluator: Evaluator, sigmas: Sequence[float], sharings: SharingGrid | None) -> list[GridJob]:
    """Jobs of a grid: one per sigma, or per sigma and sharing if every sharing takes its own decomposition."""
    if sharings is not None and sharings.every and evaluator.sharing_costs:
        return [GridJob(sigma, SharingGrid((sharing,))) for sigma in sigmas for sharing in sharings.values]
    return [GridJob(sigma, sharings) for sigma in sigmas]


class Prefetch:
    """Computes steps of a search in parallel before they are requested.

    The result of a step does not depend on earlier steps, unless every alpha takes a pass over the rows. Only the
    choice of steps does, in line searches over sharings. So a search that asks here first gets the same steps in the
    same order, with the same results, as a sequential one; some of the steps computed here may never be requested.
    """

    def __init__(self, evaluator: Evaluator, alphas: Grid) -> None:
        self._evaluator, self._alphas = evaluator, alphas
        self._announced: list[GridJob] = []
        self._made: dict[tuple[float, float | None], StepResult] = {}
        self._running: deque[GridJob] = deque()
        self._results: Generator[dict[float | None, StepResult]] | None = None

    def expect(self, wanted: list[GridJob]) -> None:
        """Announce the jobs. They start with the first ``find``, since a checkpoint may supply earlier steps."""
        self._announced = [] if self._evaluator.streams else [job for job in wanted if not job.known(self._made)]

    def find(self, sigma: float, sharing: float | None) -> StepResult | None:
        """The step if it was, or is being, computed; otherwise None."""
        if self._announced:
            self._begin(sigma, sharing)
        while (sigma, sharing) not in self._made and any(k.covers(sigma, sharing) for k in self._running):
            assert self._results is not None
            job, made = self._running.popleft(), next(self._results)
            self._made.update({(job.sigma, level): step for level, step in made.items()})
        if not self._running and self._results is not None:
            next(self._results, None)  # exhaust the generator, so that workers are reused by the next search
            self._results = None
        return self._made.pop((sigma, sharing), None)

    def _begin(self, sigma: float, sharing: float | None) -> None:
        """Start the announced jobs from this step on."""
        first = next((k for k, job in enumerate(self._announced) if job.covers(sigma, sharing)), len(self._announced))
        rest, self._announced = self._announced[first:], []
        evaluator = self._evaluator.for_worker()
        jobs = jobs_allowed(evaluator.settings.n_jobs, len(rest), evaluator.room)
        if jobs > 1:
            self._running = deque(rest)
            self._results = in_order(GridJob.make, [(job, evaluator, self._alphas) for job in rest], jobs)

    def close(self) -> None:
        """Stop running jobs."""
        self._running.clear()
        results, self._results = self._results, None
        if results is not None:
            with suppress(Stopped):
                results.throw(Stopped())
