"""The table of all solvers, and the choice among them, used by both ``plan`` and ``fit``.

``SOLVERS`` is the only list of the names that ``solver=`` accepts. The built-in ones are registered by
``leastwise.fitting.fit``, since the fitting functions belong to the estimators. To add one::

    register_solver(Solver("name", ("single",), fit, stages))

It is used when it is named; ``candidates`` lists the solvers that ``solver="auto"`` considers. All of them solve the
same equations; they differ in their held-out scores. The cheapest of those with exact leave-one-out scores is taken,
by the operations of each and the speed of this machine. A solver that gives them up is taken only where the exact one
does not fit in memory, or takes more than ``PATIENCE`` seconds and more than ``COMPLETE`` times as long.

The last part estimates the memory of a fit to a stream, which holds sums and the design matrix of the kept rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from leastwise.problem.kernels import Kernel
from leastwise.solvers.costs import Facts, Stage, complete_stages, moments
from leastwise.solvers.moments import SAMPLE_ROWS
from leastwise.solvers.plan import Alternative, Plan, Step
from leastwise.solvers.work import DOUBLE_ROWS, TYPICAL, Speed, Work, kernel, speed
from leastwise.utils.resources import available_memory, human

#: How many times as long as another solver one with exact leave-one-out scores may take. Where they are given up,
#: the time of a fit falls by no more than this factor,
COMPLETE = 1.5
#: unless the fit took no more than this many seconds. If only some rows lose their exact scores, that share of it.
PATIENCE = 3.0
#: This machine is measured if the choice would be another one with costs that differ by this factor from those of a
#: typical machine,
UNCERTAIN = 2.0
#: and the two differ by more seconds than this. The measurement takes about a tenth of a second.
WORTH_MEASURING = 0.5
#: Iterations on more rows than this take so long that fewer centres are advised.
MANY_CENTERS = 10_000
#: Bytes that solvers working by blocks may use, whatever the limit.
SMALL = 2**22


@dataclass(frozen=True)
class Solver:
    """A solver: the estimators it serves, its fitting function and its costs.

    Attributes
    ----------
    name : str
    families : tuple of str
        Families of estimators whose ``solver=`` accepts the name: "single" (LSPC), "machine" (LS-SVMs), "tasks",
        "task machine", "labels", "logistic", "task logistic".
    fit : callable
        ``fit(spec, data, settings)`` returns a ``leastwise.fitting.direct.Fitted``.
    stages : callable
        Maps :class:`Facts` to the steps of the fit, with their operations and their memory.
    needs : callable
        ``needs(spec, kernel)`` returns the reason why the other parameters rule it out, or None.
    by_blocks : bool
        Whether it works by blocks, so that small problems fit whatever the memory limit.
    iterative : bool
        Whether it uses all rows as centres and never factors their kernel; fewer centres need another solver.
    device_rows : bool
        Whether it computes with rows of another array library on their own device.
    cross_fits : bool
        Whether its held-out scores are those of feature weights that were learned without the row.
    gives_up : callable
        ``gives_up(facts)`` says what a model lacks that a factorisation of all rows would give; "" for nothing.
    inexact : callable
        ``inexact(facts)`` is the share of the held-out scores that are not exact leave-one-out scores.
    """

    name: str
    families: tuple[str, ...]
    fit: Callable[[Any, Any, Any], Any]
    stages: Callable[[Facts], list[Stage]]
    needs: Callable[[Any, Kernel], str | None] = lambda spec, kernel: None
    by_blocks: bool = False
    iterative: bool = False
    device_rows: bool = False
    cross_fits: bool = False
    gives_up: Callable[[Facts], str] = lambda facts: ""
    inexact: Callable[[Facts], float] = lambda facts: 0.0


#: All solvers by name, in the order in which messages list them.
SOLVERS: dict[str, Solver] = {}


def register_solver(solver: Solver) -> None:
    """Register a solver by its name; an existing solver with that name is replaced."""
    SOLVERS[solver.name] = solver


def solver_names(family: str) -> tuple[str, ...]:
    """Values of ``solver=`` for a family of estimators."""
    return ("auto", *(name for name, solver in SOLVERS.items() if family in solver.families))


def candidates(f: Facts) -> tuple[str, ...]:
    """Solvers that are possible for these data and parameters; those that give up nothing come first."""
    if f.asked != "auto":
        return (f.asked,)
    if "logistic" in f.family:
        return ("newton",)
    if "task" in f.family:
        way = task_solver(f.asked, f.few, f.b, f.n)
        return (way,) if way == "arrow" or not f.iterates else (way, "krylov")
    direct, iterative = ("sylvester", "cg") if f.family == "labels" else ("cholesky", "krylov")
    if f.sums and f.blocks == 1 and f.b < f.n and (f.exact or f.family != "labels"):
        return direct, "moments"
    return (direct, iterative) if f.iterates else (direct,)


def task_solver(asked: str, few: bool, b: int, n: int) -> str:
    """The solver of multi-task models: the block-arrow system where that is cheaper."""
    return "arrow" if asked != "dual" and few and (asked == "arrow" or b < n) else "dual"


@dataclass(frozen=True)
class Draft:
    """A solver, its steps and its memory, without times."""

    facts: Facts
    solver: str
    stages: tuple[Stage, ...]
    limit: int

    @cached_property
    def work(self) -> Work:
        """Operations of all steps."""
        return sum((stage.work for stage in self.stages), Work())

    @cached_property
    def complete(self) -> tuple[Stage, ...]:
        """All steps of a fit, with those that do not depend on the solver."""
        return complete_stages(self.facts, self.solver, self.stages)

    @property
    def gives_up(self) -> str:
        """What the model would lack; "" for nothing."""
        return SOLVERS[self.solver].gives_up(self.facts)

    @property
    def inexact(self) -> float:
        """Share of the held-out scores that are not exact leave-one-out scores."""
        return SOLVERS[self.solver].inexact(self.facts)

    @property
    def peak_bytes(self) -> int:
        """Peak memory over all steps."""
        return int(max(stage.peak_bytes for stage in self.stages))

    @property
    def fits(self) -> bool:
        """True if it fits in memory."""
        return self.peak_bytes <= (max(self.limit, SMALL) if SOLVERS[self.solver].by_blocks else self.limit)

    def refuse(self) -> None:
        """Raise MemoryError if it does not fit, with the required and available memory and advice."""
        if not self.fits:
            f = self.facts
            raise MemoryError(
                f"{f.n} rows with {f.b} basis functions need about {human(self.peak_bytes)} with "
                f"solver={self.solver!r}; {human(self.limit)} are available. {advice(self)}"
            )


def drafts(f: Facts, limit: int) -> list[Draft]:
    """One for each possible solver."""
    return [Draft(f, solver, tuple(SOLVERS[solver].stages(f)), limit) for solver in candidates(f)]


def draft(f: Facts, limit: int | None = None) -> Draft:
    """The cheapest solver of those that fit in memory; if none does, the one that needs the least."""
    made = drafts(f, available_memory() if limit is None else limit)
    possible = [d for d in made if d.fits]
    return cheapest(possible) if possible else min(made, key=lambda d: d.peak_bytes)


def cheapest(made: list[Draft]) -> Draft:
    """The draft to take of those that fit; where it is a matter of seconds, by the speed of this machine."""
    if len(made) == 1:
        return made[0]
    dtype = np.dtype(np.float32 if made[0].facts.itemsize == 4 else np.float64)
    rates = TYPICAL[dtype.name]
    low, high = (exact_or_cheapest(made, rates, factor) for factor in (1 / UNCERTAIN, UNCERTAIN))
    if low is not high and abs(rates.seconds(low.work) - rates.seconds(high.work)) > WORTH_MEASURING:
        rates = speed(dtype)
    return exact_or_cheapest(made, rates)


def exact_or_cheapest(made: list[Draft], rates: Speed, leniency: float = 1.0) -> Draft:
    """The cheapest draft of those with the most exact scores, unless another one saves much time.

    Parameters
    ----------
    rates : Speed
        Speed of the machine.
    leniency : float
        Factor of the time that exact scores may take.
    """

    def seconds(d: Draft) -> float:
        return rates.seconds(d.work)

    exact = min(made, key=lambda d: (d.inexact, seconds(d)))
    others = [d for d in made if d.inexact > exact.inexact]
    if not others:
        return exact
    other = min(others, key=seconds)
    allowed = max(COMPLETE * seconds(other), PATIENCE * (other.inexact - exact.inexact))
    return exact if seconds(exact) <= leniency * allowed else other


def largest_n_centers(f: Facts, limit: int) -> int | None:
    """The largest number of centres that fits in memory; None if it cannot be chosen, or if none fits."""
    if not f.cuttable:
        return None
    low, high = 0, f.n // f.blocks + 1
    while high - low > 1:
        middle = (low + high) // 2
        fits = any(d.fits for d in drafts(_narrowed(f, middle), limit))
        low, high = (middle, high) if fits else (low, middle)
    return low or None


def _narrowed(f: Facts, count: int) -> Facts:
    """The same facts with ``count`` centres, and a solver that supports centres."""
    iterative = f.asked in SOLVERS and SOLVERS[f.asked].iterative
    return replace(f.with_centers(count), asked="auto" if iterative else f.asked)


def advice(made: Draft) -> str:
    """A sentence that says whether the fit fits in memory and, if not, what to do."""
    f, most = made.facts, largest_n_centers(made.facts, made.limit)
    if made.fits:
        if SOLVERS[made.solver].iterative and f.cuttable and f.n > MANY_CENTERS:
            return "Fits in memory. A limited number of centres, such as n_centers=1000, is much faster."
        more = most is not None and not f.square and most * f.blocks > f.b
        return f"Fits in memory (n_centers up to {most} would fit)." if more else "Fits in memory."
    ways = [] if most is None else [f"n_centers={most} would fit."]
    if made.solver == "dual" and most is None and f.cuttable:
        ways.append("With similarity='shared', solver='auto' and n_centers=200 memory grows linearly with the rows.")
    if f.cuttable and f.blocks == 1 and (f.alike or "task" not in f.family):
        name = "fit_stream with n_centers" if "task" in f.family else "fit_stream"
        ways.append(f"{name} reads rows block by block and does not hold them.")
    if f.itemsize == 8 and f.n > DOUBLE_ROWS:
        ways.append("float32 rows need half of the memory.")
    ways.append("(leastwise.set_memory_limit or the environment variable LEASTWISE_MEMORY changes the limit.)")
    return " ".join(ways)


def timed(made: Draft) -> Plan:
    """The plan, with times from a short benchmark of this machine."""
    f, rates = made.facts, speed(np.float32 if made.facts.itemsize == 4 else np.float64)
    stages = made.complete
    steps = [Step(s.what, s.rows, s.times, s.work.flops, int(s.peak_bytes), rates.seconds(s.work)) for s in stages]
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
        max(step.peak_bytes for step in steps),
        sum(step.seconds for step in steps),
        made.limit,
        made.fits,
        largest_n_centers(f, made.limit),
        advice(made),
        made.gives_up,
        tuple(
            Alternative(
                other.solver,
                rates.seconds(sum((stage.work for stage in other.complete), Work())),
                int(max(stage.peak_bytes for stage in other.complete)),
                other.fits,
                other.gives_up,
            )
            for other in drafts(replace(f, asked="auto"), made.limit)
            if other.solver != made.solver
        ),
    )


#: The advice is never to keep fewer rows than this.
FEW = 1000


def stream_bytes(f: Facts, centers: int, kept: int) -> int:
    """Memory of a stream with ``centers`` centres that keeps ``kept`` rows."""
    many = replace(f, n=max(kept, centers), cuttable=True, blocks=1, folds=0, largest=1).with_centers(centers)
    beyond = 24 * centers * max(kept - SAMPLE_ROWS, 0) * f.chooses  # plans in memory keep at most SAMPLE_ROWS
    return int(max(stage.peak_bytes for stage in moments(many)) + beyond)


def refuse_stream(f: Facts, centers: int, kept: int) -> None:
    """Raise MemoryError if the stream does not fit, with the required and available memory and advice.

    Parameters
    ----------
    f : Facts
        Facts of the kept rows. If there are fewer rows than centres, the number of centres is reduced.
    centers, kept : int
        Requested number of centres, and number of rows that the model keeps.
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
        + " ".join([*ways, "(leastwise.set_memory_limit or LEASTWISE_MEMORY changes the limit.)"])
    )


def largest(fits: Callable[[int], bool], top: int) -> int:
    """The largest number below ``top`` that fits; 0 for none."""
    low, high = 0, top
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
