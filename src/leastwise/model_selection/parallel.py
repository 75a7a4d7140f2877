"""Work side by side: how many jobs there may be, and how many threads each of them has.

One step of a search, all of one sigma and sharing; and steps that are made before their turn.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Container, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from threading import Lock
from typing import Any

from joblib import cpu_count
from joblib.parallel import get_active_backend
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController, threadpool_limits

from leastwise.model_selection.grid import Grid, SharingGrid, explore, walk
from leastwise.solvers.evaluator import Candidate, Evaluator
from leastwise.utils.memory import available_memory, memory_limit, told_memory


def check_n_jobs(value: Any) -> int | None:
    """A whole number other than 0, or None."""
    if value is None:
        return None
    if not isinstance(value, Integral) or isinstance(value, bool) or value == 0:
        raise ValueError(
            f"n_jobs={value!r} must be None or a whole number other than 0: -1 means all processors, -2 all but one."
        )
    return int(value)


def jobs_allowed(n_jobs: int | None, tasks: int, need: int) -> int:
    """How many jobs work side by side.

    Parameters
    ----------
    n_jobs : int or None
        As in scikit-learn: None is 1 unless a joblib context says otherwise, -1 is all processors.
    tasks : int
        How many tasks there are: jobs without a task are of no use.
    need : int
        Bytes that each job takes. There are as many jobs as fit into memory, and always one.
    """
    if tasks < 2 or n_jobs == 1 or _inside_another():
        return 1
    backend, usual = get_active_backend(prefer="threads")
    wish = backend.effective_n_jobs(usual if n_jobs is None else n_jobs)
    return max(1, min(wish, tasks, available_memory() // max(need, 1)))


def _inside_another() -> bool:
    """Whether this is a job already: then whoever made it has dealt out the processors."""
    if (get_active_backend()[0].nesting_level or 0) > 0:
        return True
    worker = sys.modules.get("distributed.worker")  # Dask does not count levels
    if worker is None:
        return False
    try:
        worker.get_worker()
    except ValueError:
        return False
    return True


class Stopped(Exception):
    """What is thrown into :func:`in_order` to stop its jobs. (To close it would make joblib warn of their loss.)"""


def in_order(function: Callable, tasks: Sequence[tuple], jobs: int) -> Generator[Any]:
    """``function(*task)`` of every task, in their order, each as soon as it is there.

    Jobs run where joblib's active backend has them, in threads if there is none. They share the threads of the
    linear algebra that this process has; afterwards all is as it was. They keep to the memory limit that is set here.
    """
    backend, _ = get_active_backend(prefer="threads")
    lazy = getattr(backend, "supports_return_generator", False)
    how = {"return_as": "generator"} if lazy else {}
    share, memory = max(1, blas_threads() // jobs), told_memory()
    with _LIMIT.at(share):
        run = Parallel(n_jobs=jobs, prefer="threads", **how)
        yield from run(delayed(_limited)(share, memory, function, task) for task in tasks)


def blas_threads() -> int:
    """Threads that linear algebra may use in this process now."""
    counts = [pool["num_threads"] for pool in ThreadpoolController().select(user_api="blas").info()]
    return min([cpu_count(), *counts])


def _limited(share: int, memory: int | None, function: Callable, task: tuple) -> Any:
    """What runs in a job, in this process or another: neither threads nor processes know the limits of who asks."""
    with _LIMIT.at(share), memory_limit(memory):
        return function(*task)


class _Limit:
    """A limit of the threads of a process that several of its threads can ask for: the last one takes it off.

    Each on its own would put back what it found, which may be the limit of another.
    """

    def __init__(self) -> None:
        self._lock, self._users, self._limits = Lock(), 0, None

    @contextmanager
    def at(self, threads: int) -> Iterator[None]:
        """Linear algebra has so many threads, or as many as who came first asked for."""
        with self._lock:
            if self._users == 0:
                self._limits = threadpool_limits(threads, user_api="blas")
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0 and self._limits is not None:
                    self._limits.restore_original_limits()
                    self._limits = None


_LIMIT = _Limit()


#: What a point of a search is known by.
NAMES = ("sigma", "alpha", "sharing", "spread", "weight", "score")
#: Up to so many rows the predictions of all points are kept, for ``leastwise.model_selection.optimism``.
FEW_ROWS = 1000
#: Where a walk over sharings begins, if nothing else is known.
MIDDLE = 0.5


@dataclass(frozen=True)
class StepResult:
    """A step that is done: its best point, all points that it saw, how long it took, and what the trial keeps."""

    outcome: Candidate
    seen: list[dict]
    seconds: float
    warm_start: Any = None


def make_step(evaluator: Evaluator, sigma: float, strategy: Callable, count: int) -> StepResult:
    """Look at alphas by ``strategy``, about ``count`` of them."""
    began, seen = time.perf_counter(), []
    heldout = evaluator.heldout(sigma, count)

    def point(alpha: float, last: Candidate | None) -> Candidate:
        held = heldout(alpha)
        outcome = evaluator.objective(sigma, alpha, held, last)
        found = {**{name: getattr(outcome, name) for name in NAMES}, "rows": len(evaluator.rows)}
        if not evaluator.settings.objective.of_classes and len(evaluator.rows) <= FEW_ROWS:
            found |= {"F": outcome.F, "dof": held.dof}
        seen.append(found)
        return outcome

    return StepResult(strategy(point), seen, time.perf_counter() - began, evaluator.warm_start(sigma))


def full_grid(alphas: Grid) -> Callable:
    """The strategy that tries all alphas."""
    return partial(explore, alphas, grow=False)


@dataclass(frozen=True)
class GridJob:
    """What one job does: a sigma with all of these sharings, with those on the way to the best, or with none."""

    sigma: float
    sharings: SharingGrid | None = None

    def covers(self, sigma: float, sharing: float | None) -> bool:
        """Whether this step may be made by it."""
        among = sharing is None if self.sharings is None else sharing in self.sharings.values
        return self.sigma == sigma and among

    def known(self, made: Container[tuple[float, float | None]]) -> bool:
        """Whether every step that it may make is among those that are made."""
        sharings = (None,) if self.sharings is None else self.sharings.values
        return all((self.sigma, sharing) in made for sharing in sharings)

    def make(self, evaluator: Evaluator, alphas: Grid) -> dict[float | None, StepResult]:
        """The steps, by sharing."""
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
    """How a grid is dealt out: by sigma, and by sharing where all are tried and each has its own decomposition."""
    if sharings is not None and sharings.every and evaluator.sharing_costs:
        return [GridJob(sigma, SharingGrid((sharing,))) for sigma in sigmas for sharing in sharings.values]
    return [GridJob(sigma, sharings) for sigma in sigmas]


class Prefetch:
    """Steps that a search will want, made side by side before their turn.

    A step does not depend on those before it, unless a trial goes through the rows for every alpha. Only which
    steps are made does, where sharings are walked. So a search that asks here first makes the same steps in the same
    order, with the same results, as one that makes them itself; some of those made here may not be asked for.
    """

    def __init__(self, evaluator: Evaluator, alphas: Grid) -> None:
        self._evaluator, self._alphas = evaluator, alphas
        self._wanted: list[GridJob] = []
        self._made: dict[tuple[float, float | None], StepResult] = {}
        self._under_way: deque[GridJob] = deque()
        self._coming: Generator[dict[float | None, StepResult]] | None = None

    def expect(self, wanted: list[GridJob]) -> None:
        """What will be asked for. Jobs begin with the first question, for its step may be known from elsewhere."""
        self._wanted = [] if self._evaluator.streams else [look for look in wanted if not look.known(self._made)]

    def find(self, sigma: float, sharing: float | None) -> StepResult | None:
        """The step if it was made, or is being made; None if not."""
        if self._wanted:
            self._begin(sigma, sharing)
        while (sigma, sharing) not in self._made and any(k.covers(sigma, sharing) for k in self._under_way):
            assert self._coming is not None
            look, made = self._under_way.popleft(), next(self._coming)
            self._made.update({(look.sigma, level): step for level, step in made.items()})
        if not self._under_way and self._coming is not None:
            next(self._coming, None)  # so that it comes to its end, and workers stay for the next search
            self._coming = None
        return self._made.pop((sigma, sharing), None)

    def _begin(self, sigma: float, sharing: float | None) -> None:
        """Start jobs for what is wanted from this step on."""
        first = next((k for k, look in enumerate(self._wanted) if look.covers(sigma, sharing)), len(self._wanted))
        rest, self._wanted = self._wanted[first:], []
        evaluator = self._evaluator.for_worker()
        jobs = jobs_allowed(evaluator.settings.n_jobs, len(rest), evaluator.room)
        if jobs > 1:
            self._under_way = deque(rest)
            self._coming = in_order(GridJob.make, [(look, evaluator, self._alphas) for look in rest], jobs)

    def close(self) -> None:
        """Stop what is under way, if anything is."""
        self._under_way.clear()
        coming, self._coming = self._coming, None
        if coming is not None:
            with suppress(Stopped):
                coming.throw(Stopped())
