"""Tables as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Rows = Sequence[Sequence[Any]]


def table(title: str, header: Sequence[str], rows: Rows) -> str:
    """Columns aligned: words to the left, figures to the right."""
    cells = [[cell(value) for value in row] for row in rows]
    lines = [list(header), *cells]
    widths = [max(len(line[j]) for line in lines) for j in range(len(header))]
    left = [all(isinstance(row[j], str) and not row[j][:1].isdigit() for row in rows) for j in range(len(header))]
    padded = ([t.ljust(w) if l else t.rjust(w) for t, w, l in zip(line, widths, left, strict=True)] for line in lines)
    return "\n".join(["", title, *("  ".join(line).rstrip() for line in padded)])


def markdown(title: str, header: Sequence[str], rows: Rows) -> str:
    """A table as it goes into the documentation."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(["", title, "", *("| " + " | ".join(cell(value) for value in line) + " |" for line in lines)])


def cell(value: Any) -> str:
    """Three digits for numbers."""
    if value is None:
        return "-"
    if isinstance(value, str | int | np.integer):
        return str(value)
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def spread(values: Sequence[float], digits: int = 4) -> str:
    """Mean and standard deviation; of one value, that value."""
    if len(values) < 2:
        return f"{np.mean(values):.{digits}f}"
    return f"{np.mean(values):.{digits}f}±{np.std(values, ddof=1):.{digits}f}"


def mean_and_error(values: Sequence[float], digits: int = 4) -> str:
    """Mean and standard error; of one value, that value."""
    if len(values) < 2:
        return f"{np.mean(values):.{digits}f}"
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.{digits}f} ± {error:.{digits}f}"
