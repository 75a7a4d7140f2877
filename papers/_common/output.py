"""Tables as text.

Curves of a table: one panel, or one row of panels for each data set.

Records on disk: whole at any time, the old one or the new one.
"""

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


@dataclass(frozen=True)
class Panel:
    """Curves over one axis: for each method places, values and, where there are any, deviations."""

    title: str
    xlabel: str
    ylabel: str
    curves: Mapping[str, tuple[Sequence[float], Sequence[float], Sequence[float] | None]]
    log: tuple[str, ...] = field(default=())
    from_zero: bool = False


def new_figure(width: float, height: float) -> Any:
    """A figure that no window and no other figure knows of, or an error that names the extra."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("Pictures need matplotlib: install it with  pip install 'leastwise[plot]'") from None
    return Figure(figsize=(width, height), layout="constrained")


def draw_panels(path: Path, rows: Sequence[Sequence[Panel]]) -> None:
    """Write a picture of panels, row by row."""
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
    """Draw where there is a place for it; a line where that cannot be."""
    if path is None:
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        draw(path)
    except ImportError as error:
        report(f"no picture {path.name}: {error}")
        return
    report(f"drawn: {path.name}")


def write_json(path: Path, record: Any) -> None:
    """Write beside the place and move there, so that nobody ever reads half a record."""
    text = json.dumps(record, indent=1, default=_plain) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(str(path), [text.encode()])


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} does not go into JSON")
