"""Operations by kind, since a product, a decomposition and a pass through memory differ in speed.

The plan of a fit, as users see it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from leastwise.utils.memory import human

#: Small operations that judging one point of the grid takes, and passes over the scores of all rows.
POINT_CALLS, POINT_PASSES = 700.0, 600.0
#: A decomposition of so many rows has the speed that the probe measures; smaller ones are slower.
PROBE_ROWS, SLOW_ROWS = 400, 500.0


@dataclass(frozen=True)
class Work:
    """How much there is to do.

    Attributes
    ----------
    products : float
        Operations in matrix products.
    factors : float
        Operations in Cholesky factors and triangular solves.
    spectra : float
        Operations in decompositions, as so many cubes of ``PROBE_ROWS`` rows.
    kernels : float
        Kernel values.
    numbers : float
        Numbers that are passed over in memory.
    calls : float
        Small operations.
    """

    products: float = 0.0
    factors: float = 0.0
    spectra: float = 0.0
    kernels: float = 0.0
    numbers: float = 0.0
    calls: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(*(a + b for a, b in zip(self.parts, other.parts, strict=True)))

    def __mul__(self, times: float) -> Work:
        return Work(*(times * a for a in self.parts))

    @property
    def parts(self) -> tuple[float, ...]:
        """The amounts in order."""
        return self.products, self.factors, self.spectra, self.kernels, self.numbers, self.calls

    @property
    def flops(self) -> float:
        """Operations on numbers, an eigendecomposition counted as 9 n^3 and a kernel value as 20."""
        return self.products + self.factors + 9 * self.spectra + 20 * self.kernels + self.numbers


def eigen(n: float) -> Work:
    """An eigendecomposition of n rows."""
    slow = (1 + SLOW_ROWS / max(n, 1)) / (1 + SLOW_ROWS / PROBE_ROWS)
    return Work(spectra=n**3 * slow)


def singular(n: float, b: float) -> Work:
    """Singular values and vectors of an n x b design."""
    n, b = max(n, b), min(n, b)
    slow = (1 + SLOW_ROWS / max(b, 1)) / (1 + SLOW_ROWS / PROBE_ROWS)
    return Work(spectra=0.6 * b**3 * slow, products=2 * n * b**2, factors=6 * n * b**2 * max(1.0, slow))


def factor(n: float) -> Work:
    """A Cholesky factor of n rows."""
    return Work(factors=n**3 / 3)


def inverse(n: float) -> Work:
    """The inverse of a Cholesky factor."""
    return Work(factors=n**3 / 3)


def kernel(n: float, b: float, d: float) -> Work:
    """Kernel values between n rows and b centres of d features."""
    return Work(kernels=n * b, products=2 * n * b * d)


def points(count: float, n: float, b: float, c: float) -> Work:
    """Held-out scores of n rows from a decomposition with b vectors, judged at so many alphas."""
    passes = 6 if b >= n else 20  # where vectors do not span all rows there is more to do
    return Work(products=2 * n * b * c, numbers=passes * n * b) * count + judged(count, n, c)


def judged(count: float, n: float, c: float) -> Work:
    """Scores of n rows calibrated and judged so often."""
    return Work(numbers=POINT_PASSES * n * c, calls=POINT_CALLS) * count


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
