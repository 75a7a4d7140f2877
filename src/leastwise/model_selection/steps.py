"""Steps of a search: the evaluation of one step, and steps in parallel.

A step evaluates all alphas at one sigma and sharing. ``Prefetch`` computes steps in parallel ahead of their turn,
with the same results as a sequential search. Jobs share the BLAS threads and the memory limit of the process.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Container, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed

from leastwise.model_selection.grids import MIDDLE, Grid, SharingGrid, full_grid, walk
from leastwise.solvers.evaluator import Candidate, Evaluator
from leastwise.utils.resources import (
    BLAS_LIMIT,
    available_memory,
    blas_threads,
    configured_memory,
    memory_limit,
    threads_for,
)


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
