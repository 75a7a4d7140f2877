"""Curves of a table: one panel, or one row of panels for each data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


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
