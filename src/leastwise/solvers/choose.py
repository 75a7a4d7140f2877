"""The table of all solvers, the choice among them, used by both ``plan`` and ``fit``, and the plan that users see.

``SOLVERS`` is the only list of the names that ``solver=`` accepts. The built-in ones are registered by
``leastwise.estimators.solver_table``, since the fitting functions belong to the estimators. To add one::

    register_solver(Solver("name", ("single",), fit, stages))

It is used when it is named; ``candidates`` lists the solvers that ``solver="auto"`` considers.

The last part estimates the memory of a fit to a stream, which holds sums and the design matrix of the kept rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import Any

import numpy as np

from leastwise.problem.kernels import Kernel
from leastwise.solvers.costs import Facts, Stage, moments
from leastwise.solvers.moments import SAMPLE_ROWS
from leastwise.solvers.work import Work, kernel, speed
from leastwise.utils.memory import available_memory, human

STYLE = (
    "<style>.leastwise-plan{font:13px/1.45 system-ui,sans-serif;margin:.4em 0}.leastwise-plan table{border-spacing:0;"
    "font-variant-numeric:tabular-nums}.leastwise-plan th{opacity:.75;font-weight:normal}.leastwise-plan th,"
    ".leastwise-plan td{text-align:right;padding:0 1.1em 0 0}.leastwise-plan th:first-child,"
    ".leastwise-plan td:first-child{text-align:left}.leastwise-plan p{margin:.3em 0}</style>"
)
#: Seconds.
DAY = 86_400
COLUMNS = ("step", "rows", "times", "flops", "memory", "seconds")


@dataclass(frozen=True)
class Step:
    """One step of a fit.

    Attributes
    ----------
    what : str
    rows : int
        Rows that it processes.
    times : float
        Number of repetitions; an average if it depends on the data.
    flops : float
        Operations, over all repetitions.
    peak_bytes : int
        Memory in addition to the data.
    seconds : float
        All times together.
    """

    what: str
    rows: int
    times: float
    flops: float
    peak_bytes: int
    seconds: float

    @property
    def cells(self) -> tuple[str, ...]:
        """As words."""
        times = f"{self.times:.3g}"
        return self.what, f"{self.rows:,}", times, f"{self.flops:.1e}", human(self.peak_bytes), duration(self.seconds)


@dataclass(frozen=True)
class Plan:
    """Steps and costs of a fit; see ``plan`` of the estimators.

    Attributes
    ----------
    solver : str
        What would run.
    n_rows, n_centers, n_outputs : int
        Rows with a weight above 0, basis functions, and columns of the targets.
    steps : tuple of Step
        The last one, prediction, is not part of the fit and not in the totals below.
    flops : float
        Operations of the fit, about.
    peak_bytes : int
        Peak memory, in addition to the data and some megabytes for libraries.
    seconds : float
        Expected time, from a short benchmark of this machine. The number of search steps depends on the data.
    limit_bytes : int
        Available memory, see :func:`leastwise.set_memory_limit`.
    fits : bool
        Whether ``fit`` would start; otherwise it raises ``MemoryError``.
    largest_n_centers : int or None
        The largest ``n_centers`` that fits in memory; None if fewer centres do not help.
    advice : str
        What to do.
    """

    solver: str
    n_rows: int
    n_centers: int
    n_outputs: int
    steps: tuple[Step, ...]
    flops: float
    peak_bytes: int
    seconds: float
    limit_bytes: int
    fits: bool
    largest_n_centers: int | None
    advice: str

    @property
    def summary(self) -> str:
        """One line."""
        size = f"{self.n_rows:,} rows, {self.n_centers:,} basis functions, {self.n_outputs} outputs"
        cost = f"about {duration(self.seconds)}, {self.flops:.1e} flops"
        return f"solver {self.solver}: {size}; {cost}, {human(self.peak_bytes)} of {human(self.limit_bytes)}"

    def as_dict(self) -> dict[str, Any]:
        """Numbers and strings only, for JSON."""
        return {**asdict(self), "steps": [asdict(step) for step in self.steps]}

    def __str__(self) -> str:
        rows = [COLUMNS, *(step.cells for step in self.steps)]
        widths = [max(len(row[k]) for row in rows) for k in range(len(COLUMNS))]
        lines = [
            "  ".join(
                [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
            )
            for row in rows
        ]
        return "\n".join([self.summary, *(line.rstrip() for line in lines), self.advice])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in step.cells) + "</tr>" for step in self.steps
        )
        table = f"<table><tr>{head}</tr>{body}</table>"
        head, foot = (f"<p>{escape(text)}</p>" for text in (self.summary, self.advice))
        return f'{STYLE}<div class="leastwise-plan">{head}{table}{foot}</div>'


def duration(seconds: float) -> str:
    """A time as people write it."""
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 99.5 else f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.3g} min"
    if seconds < 2 * DAY:
        return f"{seconds / 3600:.3g} h"
    return f"{seconds / DAY:,.0f} days" if seconds < 730 * DAY else f"{seconds / 365 / DAY:,.0f} years"


#: Above this product of rows and centres the design matrix is not held in memory.
MANY_NUMBERS = 20_000_000
#: Up to this number of rows factorisations are cheaper than iterations; the second number is for partly known
#: labels, for which every fold is decomposed.
DIRECT_ROWS, PARTLY_ROWS = 4000, 2000
#: The same for LSPC, which loses exact leave-one-out scores and influences with iterations.
CLASS_ROWS = 10_000
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
        "task machine", "labels".
    fit : callable
        ``fit(spec, data, settings)`` returns a ``leastwise.estimators.solving.Fitted``.
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
    """Register a solver by its name; an existing solver with that name is replaced."""
    SOLVERS[solver.name] = solver


def solver_names(family: str) -> tuple[str, ...]:
    """Values of ``solver=`` for a family of estimators."""
    return ("auto", *(name for name, solver in SOLVERS.items() if family in solver.families))


def candidates(f: Facts) -> tuple[str, ...]:
    """Solvers in order of preference; the second is used if the first does not fit in memory."""
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
    """The solver of multi-task models: the block-arrow system where that is cheaper."""
    return "arrow" if asked != "dual" and few and (asked == "arrow" or b < n) else "dual"


@dataclass(frozen=True)
class Draft:
    """A solver, its steps and its memory, without times."""

    facts: Facts
    solver: str
    stages: tuple[Stage, ...]
    limit: int

    @property
    def peak_bytes(self) -> int:
        """Peak memory over all steps."""
        return int(max(stage.peak_bytes for stage in self.stages))

    @property
    def fits(self) -> bool:
        """Whether it fits in memory."""
        return self.peak_bytes <= (max(self.limit, SMALL) if SOLVERS[self.solver].by_blocks else self.limit)

    def refuse(self) -> None:
        """Raise MemoryError if it does not fit, with the required and available memory and advice."""
        if not self.fits:
            f = self.facts
            raise MemoryError(
                f"{f.n} rows with {f.b} basis functions need about {human(self.peak_bytes)} with "
                f"solver={self.solver!r}; {human(self.limit)} are available. {advice(self)}"
            )


def draft(f: Facts, limit: int | None = None) -> Draft:
    """The first solver that fits in memory; if none does, the one that needs the least."""
    limit = available_memory() if limit is None else limit
    made = [Draft(f, solver, tuple(SOLVERS[solver].stages(f)), limit) for solver in candidates(f)]
    return next((d for d in made if d.fits), min(made, key=lambda d: d.peak_bytes))


def largest_n_centers(f: Facts, limit: int) -> int | None:
    """The largest number of centres that fits in memory; None if it cannot be chosen, or if none fits."""
    if not f.cuttable:
        return None
    low, high = 0, f.n // f.blocks + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if draft(_narrowed(f, middle), limit).fits else (low, middle)
    return low or None


def _narrowed(f: Facts, count: int) -> Facts:
    """The same facts with ``count`` centres, and a solver that supports centres."""
    iterative = f.asked in SOLVERS and SOLVERS[f.asked].iterative
    return replace(f.with_centers(count), asked="auto" if iterative else f.asked)


def advice(made: Draft) -> str:
    """Whether the fit fits in memory and, if not, what to do."""
    f, most = made.facts, largest_n_centers(made.facts, made.limit)
    if made.fits:
        if SOLVERS[made.solver].iterative and f.cuttable and f.n > CLASS_ROWS:
            return "Fits in memory. A limited number of centres, such as n_centers=1000, is much faster."
        more = most is not None and not f.square and most * f.blocks > f.b
        return f"Fits in memory (n_centers up to {most} would fit)." if more else "Fits in memory."
    ways = [] if most is None else [f"n_centers={most} would fit."]
    if made.solver == "dual" and most is None and f.cuttable:
        ways.append("With similarity='shared', solver='auto' and n_centers=200 memory grows linearly with the rows.")
    if f.cuttable and f.blocks == 1 and (f.alike or "task" not in f.family):
        name = "fit_stream with n_centers" if "task" in f.family else "fit_stream"
        ways.append(f"{name} reads rows block by block and does not hold them.")
    if f.itemsize == 8:
        ways.append("float32 rows need half of the memory.")
    ways.append("(leastwise.set_memory_limit or the environment variable LEASTWISE_MEMORY changes the limit.)")
    return " ".join(ways)


def timed(made: Draft) -> Plan:
    """The plan, with times from a short benchmark of this machine."""
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
