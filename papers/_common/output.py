"""Tables as text, figures, and results as JSON files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from leastwise.utils.atomic_files import write_atomically

Rows = Sequence[Sequence[Any]]


def table(title: str, header: Sequence[str], rows: Rows) -> str:
    """Format a table with aligned columns: text left, numbers right."""
    cells = [[cell(value) for value in row] for row in rows]
    lines = [list(header), *cells]
    widths = [max(len(line[j]) for line in lines) for j in range(len(header))]
    left = [all(isinstance(row[j], str) and not row[j][:1].isdigit() for row in rows) for j in range(len(header))]
    padded = ([t.ljust(w) if l else t.rjust(w) for t, w, l in zip(line, widths, left, strict=True)] for line in lines)
    return "\n".join(["", title, *("  ".join(line).rstrip() for line in padded)])


def markdown(title: str, header: Sequence[str], rows: Rows) -> str:
    """Format a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(["", title, "", *("| " + " | ".join(cell(value) for value in line) + " |" for line in lines)])


def cell(value: Any) -> str:
    """Format a cell: floats with three significant digits, None as a dash."""
    if value is None:
        return "-"
    if isinstance(value, str | int | np.integer):
        return str(value)
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"


def spread(values: Sequence[float], digits: int = 4) -> str:
    """Mean ± standard deviation; a single value by itself."""
    if len(values) < 2:
        return f"{np.mean(values):.{digits}f}"
    return f"{np.mean(values):.{digits}f}±{np.std(values, ddof=1):.{digits}f}"


def mean_and_error(values: Sequence[float], digits: int = 4) -> str:
    """Mean ± standard error; a single value by itself."""
    if len(values) < 2:
        return f"{np.mean(values):.{digits}f}"
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.{digits}f} ± {error:.{digits}f}"


@dataclass(frozen=True)
class Panel:
    """Curves of one panel: for each method x, y and optional error bars."""

    title: str
    xlabel: str
    ylabel: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float], Sequence[float] | None]]
    log: tuple[str, ...] = field(default=())
    from_zero: bool = False


def new_figure(width: float, height: float) -> Any:
    """Create a figure outside of pyplot; raise an error that names the extra if matplotlib is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("Figures need matplotlib: install it with  pip install 'leastwise[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def draw_panels(path: Path, rows: Sequence[Sequence[Panel]]) -> None:
    """Draw rows of panels into a file."""
    figure = new_figure(4.5 * len(rows[0]), 2.8 * len(rows))
    axes = figure.subplots(len(rows), len(rows[0]), squeeze=False)
    for line, panels in zip(axes, rows, strict=True):
        for ax, panel in zip(line, panels, strict=True):
            _draw(ax, panel)
        line[0].legend(fontsize="small")
    figure.savefig(path, dpi=120)


def _draw(ax: Any, panel: Panel) -> None:
    for k, (name, (at, values, deviations)) in enumerate(panel.curves.items()):
        ax.errorbar(at, values, deviations, marker="osD^vPX*"[k % 8], capsize=2, label=name)
    ax.set(title=panel.title, xlabel=panel.xlabel, ylabel=panel.ylabel)
    for axis in panel.log:
        ax.set(**{f"{axis}scale": "log"})
    if panel.from_zero:
        ax.set_ylim(0, 1.08 * ax.dataLim.y1 or 1)


def pictured(path: Path | None, report: Callable[[str], None], draw: Callable[[Path], None]) -> None:
    """Draw a figure if a path is given; report a missing matplotlib."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draw(path)
    except ImportError as error:
        report(f"no figure {path.name}: {error}")
        return
    report(f"drawn: {path.name}")


def write_json(path: Path, record: Any) -> None:
    """Write a JSON file atomically, so that a reader never sees half a file."""
    text = json.dumps(record, indent=1, default=_plain) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(str(path), [text.encode()])


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
