"""The plan of a fit as users see it: the solver, its steps with their costs, and what other solvers would give up."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from leastwise.utils.resources import human

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
        """The fields as text."""
        times = f"{self.times:.3g}"
        return self.what, f"{self.rows:,}", times, f"{self.flops:.1e}", human(self.peak_bytes), duration(self.seconds)


@dataclass(frozen=True)
class Alternative:
    """Another solver that is possible for the same model.

    Attributes
    ----------
    solver : str
    seconds : float
        Expected time of the fit.
    peak_bytes : int
        Memory in addition to the data.
    fits : bool
        Whether that is available.
    gives_up : str
        What the model would lack; "" for nothing.
    """

    solver: str
    seconds: float
    peak_bytes: int
    fits: bool
    gives_up: str

    def __str__(self) -> str:
        memory = human(self.peak_bytes) + ("" if self.fits else ", more than is available")
        loss = f"it gives up {self.gives_up}" if self.gives_up else "it gives up nothing"
        return f"solver={self.solver!r} would take about {duration(self.seconds)} and {memory}; {loss}."


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
    gives_up : str
        What the model will lack that a factorisation of all rows would give; "" for nothing.
    alternatives : tuple of Alternative
        Other solvers for the same model.
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
    gives_up: str = ""
    alternatives: tuple[Alternative, ...] = ()

    @property
    def summary(self) -> str:
        """One line."""
        size = f"{self.n_rows:,} rows, {self.n_centers:,} basis functions, {self.n_outputs} outputs"
        cost = f"about {duration(self.seconds)}, {self.flops:.1e} flops"
        return f"solver {self.solver}: {size}; {cost}, {human(self.peak_bytes)} of {human(self.limit_bytes)}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Advice, what the solver gives up, and what others would."""
        own = (f"solver={self.solver!r} gives up {self.gives_up}.",) if self.gives_up else ()
        return (self.advice, *own, *(str(other) for other in self.alternatives))

    def as_dict(self) -> dict[str, Any]:
        """Numbers and strings only, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        rows = [COLUMNS, *(step.cells for step in self.steps)]
        widths = [max(len(row[k]) for row in rows) for k in range(len(COLUMNS))]
        lines = [
            "  ".join(
                [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
            )
            for row in rows
        ]
        return "\n".join([self.summary, *(line.rstrip() for line in lines), *self.notes])

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in step.cells) + "</tr>" for step in self.steps
        )
        table = f"<table><tr>{head}</tr>{body}</table>"
        head, *feet = (f"<p>{escape(text)}</p>" for text in (self.summary, *self.notes))
        return f'{STYLE}<div class="leastwise-plan">{head}{table}{"".join(feet)}</div>'


def duration(seconds: float) -> str:
    """A time as people write it."""
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 99.5 else f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.3g} min"
    if seconds < 2 * DAY:
        return f"{seconds / 3600:.3g} h"
    return f"{seconds / DAY:,.0f} days" if seconds < 730 * DAY else f"{seconds / 365 / DAY:,.0f} years"
