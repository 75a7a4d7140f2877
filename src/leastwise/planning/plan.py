"""The plan of a fit, as users see it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from leastwise.memory import human

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
        Rows that it looks at.
    times : float
        How often it is done; an expectation where a search goes its own way.
    flops : float
        Operations, all times together.
    peak_bytes : int
        Memory beside the data.
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
    """What a fit would do and cost; see ``plan`` of the estimators.

    Attributes
    ----------
    solver : str
        What would run.
    n_rows, n_centers, n_outputs : int
        Rows that count, basis functions, and columns of the targets.
    steps : tuple of Step
        The last one, prediction, is no part of the fit and not in the sums below.
    flops : float
        Operations of the fit, about.
    peak_bytes : int
        Memory that it takes at most, beside the data and some megabytes of the libraries' own.
    seconds : float
        Expected time, from a short probe of this machine. Searches go their own way, and so this is an estimate.
    limit_bytes : int
        Memory that there is, see :func:`leastwise.set_memory_limit`.
    fits : bool
        Whether ``fit`` would start; otherwise it raises ``MemoryError``.
    largest_n_centers : int or None
        The largest ``n_centers`` that fits; None where centres do not help.
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
        """Numbers and words only, for JSON."""
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
