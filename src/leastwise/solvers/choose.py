"""Which solver: the table of all solvers, and the choice among them that both a plan and a fit ask.

``SOLVERS`` is the only list of the names that ``solver=`` takes. Those of leastwise are entered by
``leastwise.estimators.solver_table``, since what fits by them belongs to the estimators. A new one is one entry::

    register_solver(Solver("name", ("single",), fit, stages))

It is taken where it is asked for; ``candidates`` says which ones ``solver="auto"`` takes.

The last part is the memory of a fit to a stream: rows are not held, but sums, and the design of the kept rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leastwise.problem.kernels import Kernel
from leastwise.solvers.costs import Facts, Stage, moments
from leastwise.solvers.moments import SAMPLE_ROWS
from leastwise.solvers.plan import Plan, Step, Work, kernel
from leastwise.solvers.probe import speed
from leastwise.utils.memory import available_memory, human

#: Rows times centres from where on the design is not held.
MANY_NUMBERS = 20_000_000
#: Up to so many rows factors are cheaper than iterations; and where labels are known in part, so that all folds are
#: decomposed.
DIRECT_ROWS, PARTLY_ROWS = 4000, 2000
#: The same for LSPC, whose exact leave-one-out and influences iterations do without.
CLASS_ROWS = 10_000
#: Bytes that solvers that work by blocks may take whatever the limit.
SMALL = 2**22


@dataclass(frozen=True)
class Solver:
    """A solver: what it serves, how it fits, and what it costs.

    Attributes
    ----------
    name : str
    families : tuple of str
        Families of estimators whose ``solver=`` takes the name: "single" (LSPC), "machine" (LS-SVMs), "tasks", "task
        machine", "labels".
    fit : callable
        ``fit(spec, data, settings)`` returns a ``leastwise.estimators.solving.Fitted``.
    stages : callable
        From :class:`Facts` to the steps of the fit, with their operations and their memory.
    needs : callable
        ``needs(spec, kernel)`` returns the reason why it cannot do what else was asked for, or None.
    by_blocks : bool
        It works by blocks, so that small problems fit whatever the limit of memory.
    iterative : bool
        It takes all rows as centres and never factors their kernel; with fewer centres another one is needed.
    device_rows : bool
        It takes rows of another array library where they are.
    """

    name: str
    families: tuple[str, ...]
    fit: Callable[[Any, Any, Any], Any]
    stages: Callable[[Facts], list[Stage]]
    needs: Callable[[Any, Kernel], str | None] = lambda spec, kernel: None
    by_blocks: bool = False
    iterative: bool = False
    device_rows: bool = False


#: All solvers by name, in the order in which messages list them.
SOLVERS: dict[str, Solver] = {}


def register_solver(solver: Solver) -> None:
    """Make a solver known by its name, instead of any that had it."""
    SOLVERS[solver.name] = solver


def solver_names(family: str) -> tuple[str, ...]:
    """Values of ``solver=`` for a family of estimators."""
    return ("auto", *(name for name, solver in SOLVERS.items() if family in solver.families))


def candidates(f: Facts) -> tuple[str, ...]:
    """Solvers in the order in which they are taken; the second where the first does not fit in memory."""
    if f.asked != "auto":
        return (f.asked,)
    direct = "sylvester" if f.family == "labels" else "cholesky"
    if "task" not in f.family and f.sums and f.blocks == 1 and f.b < f.n and (f.exact or f.family != "labels"):
        return ("moments",) if f.b * f.n > MANY_NUMBERS else (direct, "moments")
    if f.family == "single":
        if not f.iterates:
            return ("cholesky",)
        return ("krylov",) if f.n > CLASS_ROWS else ("cholesky", "krylov")
    if f.family == "labels":
        if not f.iterates:
            return ("sylvester",)
        return ("cg",) if f.n > (DIRECT_ROWS if f.exact else PARTLY_ROWS) else ("sylvester", "cg")
    way = task_solver(f.asked, f.few, f.b, f.n) if "task" in f.family else "cholesky"
    if way == "arrow" or not f.iterates:
        return (way,)
    return ("krylov",) if f.n > DIRECT_ROWS else (way, "krylov")


def task_solver(asked: str, few: bool, b: int, n: int) -> str:
    """How tasks are searched and solved: by the block-arrow system where that is cheaper."""
    return "arrow" if asked != "dual" and few and (asked == "arrow" or b < n) else "dual"


@dataclass(frozen=True)
class Draft:
    """A solver, its steps and its memory; how long it takes is another question."""

    facts: Facts
    solver: str
    stages: tuple[Stage, ...]
    limit: int

    @property
    def peak_bytes(self) -> int:
        """Of all steps."""
        return int(max(stage.peak_bytes for stage in self.stages))

    @property
    def fits(self) -> bool:
        """Whether it is to be started."""
        return self.peak_bytes <= (max(self.limit, SMALL) if SOLVERS[self.solver].by_blocks else self.limit)

    def refuse(self) -> None:
        """Say what would be needed, what there is, and what to do."""
        if not self.fits:
            f = self.facts
            raise MemoryError(
                f"{f.n} rows with {f.b} basis functions need about {human(self.peak_bytes)} by "
                f"solver={self.solver!r}; {human(self.limit)} are available. {advice(self)}"
            )


def draft(f: Facts, limit: int | None = None) -> Draft:
    """The first solver that fits; if none does, the one that needs least."""
    limit = available_memory() if limit is None else limit
    made = [Draft(f, solver, tuple(SOLVERS[solver].stages(f)), limit) for solver in candidates(f)]
    return next((d for d in made if d.fits), min(made, key=lambda d: d.peak_bytes))


def largest_n_centers(f: Facts, limit: int) -> int | None:
    """The largest number of centres that fits; None where there are none to choose, or none would."""
    if not f.cuttable:
        return None
    low, high = 0, f.n // f.blocks + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if draft(_narrowed(f, middle), limit).fits else (low, middle)
    return low or None


def _narrowed(f: Facts, count: int) -> Facts:
    """With so many centres, and a solver that takes centres."""
    iterative = f.asked in SOLVERS and SOLVERS[f.asked].iterative
    return replace(f.with_centers(count), asked="auto" if iterative else f.asked)


def advice(made: Draft) -> str:
    """What to do about memory."""
    f, most = made.facts, largest_n_centers(made.facts, made.limit)
    if made.fits:
        if SOLVERS[made.solver].iterative and f.cuttable and f.n > CLASS_ROWS:
            return "It fits. With few centres (n_centers=1000, say) it takes less time by far."
        more = most is not None and not f.square and most * f.blocks > f.b
        return f"It fits; n_centers up to {most} would." if more else "It fits."
    ways = [] if most is None else [f"n_centers={most} would fit."]
    if made.solver == "dual" and most is None and f.cuttable:
        ways.append("With similarity='shared', solver='auto' and n_centers=200, say, memory is linear in the rows.")
    if f.cuttable and f.blocks == 1 and (f.alike or "task" not in f.family):
        name = "fit_stream with n_centers" if "task" in f.family else "fit_stream"
        ways.append(f"{name} takes rows block by block and holds the centres only.")
    if f.itemsize == 8:
        ways.append("float32 rows take half.")
    ways.append("(leastwise.set_memory_limit or the environment variable LEASTWISE_MEMORY changes the limit.)")
    return " ".join(ways)


def timed(made: Draft) -> Plan:
    """The plan, with seconds from a probe of this machine."""
    f, rates = made.facts, speed(np.float32 if made.facts.itemsize == 4 else np.float64)
    steps = [
        Step(s.what, s.rows, s.times, s.work.flops, int(s.peak_bytes), rates.seconds(s.work)) for s in made.stages
    ]
    asked = kernel(1000, f.b, f.width) + Work(products=2000.0 * f.b * f.c, calls=100.0)
    room = int(min(8 * 1000 * f.b, 2**22)) * 2
    predict = Step("predict 1,000 rows", 1000, 1, asked.flops, room, rates.seconds(asked))
    return Plan(
        made.solver,
        f.n,
        f.b,
        f.c,
        (*steps, predict),
        sum(step.flops for step in steps),
        made.peak_bytes,
        sum(step.seconds for step in steps),
        made.limit,
        made.fits,
        largest_n_centers(f, made.limit),
        advice(made),
    )


#: To keep fewer rows than this is no advice.
FEW = 1000


def stream_bytes(f: Facts, centers: int, kept: int) -> int:
    """Memory of a stream with so many centres that keeps so many rows."""
    many = replace(f, n=max(kept, centers), cuttable=True, blocks=1, folds=0, largest=1).with_centers(centers)
    beyond = 24 * centers * max(kept - SAMPLE_ROWS, 0) * f.chooses  # of which plans in memory have none
    return int(max(stage.peak_bytes for stage in moments(many)) + beyond)


def refuse_stream(f: Facts, centers: int, kept: int) -> None:
    """Say what would be needed, what there is, and what to do, before any of it is taken.

    Parameters
    ----------
    f : Facts
        Of the rows that were kept; where these are fewer than the centres, so are the centres.
    centers, kept : int
        Centres as they were asked for, and rows that the model is to keep.
    """
    b = min(centers, f.n) if f.cuttable else f.b
    need, have = stream_bytes(f, b, kept), available_memory()
    room = max(have, SMALL)
    if need <= room:
        return
    ways = []
    if f.cuttable:
        most = largest(lambda count: stream_bytes(f, count, kept) <= room, b)
        ways += [f"n_centers={most} would fit."] if most else []
    fewer = largest(lambda rows: stream_bytes(f, b, rows) <= room, kept) if f.chooses else 0
    ways += [f"keep_rows={fewer} would fit."] if fewer >= FEW else []
    raise MemoryError(
        f"A stream with {b} centres that keeps {kept} rows needs about {human(need)}; {human(have)} are available. "
        + " ".join([*ways, "(leastwise.set_memory_limit or LEASTWISE_MEMORY change the limit.)"])
    )


def largest(fits: Callable[[int], bool], top: int) -> int:
    """The largest number below ``top`` that fits; 0 for none."""
    low, high = 0, top
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
