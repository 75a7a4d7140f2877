"""What all pictures have in common: matplotlib where it is there, colours, panels, names that fit."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray

#: Colours that people who see no red, or no green, can tell apart too (Okabe and Ito), for white and for black pages;
#: the shapes of the dots differ as well.
ON_WHITE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
ON_BLACK = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#D55E00")
MARKERS = ("o", "s", "D", "^", "v", "P")
#: Marks the curves that were drawn by displays, so that the next one on the same axes takes the next colour.
CURVE = "leastwise-curve"
#: What histograms show, and where the axes below a diagram are, in parts of its size.
ROWS, BELOW = "share of rows", (0.0, -0.27, 1.0, 0.22)


def pyplot() -> Any:
    """The module ``matplotlib.pyplot``, or an error that names the extra."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Pictures need matplotlib: install it with  pip install 'leastwise[plot]'") from None
    return plt


def ink() -> str:
    """The colour of text: black on white, white on black."""
    return str(pyplot().rcParams["text.color"])


def color(k: int) -> str:
    """The k-th colour that can be seen on the page."""
    from matplotlib.colors import to_rgb

    colors = ON_BLACK if sum(to_rgb(ink())) > 1.5 else ON_WHITE
    return colors[k % len(colors)]


def next_style(ax: Any) -> dict[str, Any]:
    """Colour and marker of the next curve on the axes."""
    k = sum(line.get_gid() == CURVE for line in ax.lines)
    return {"color": color(k), "marker": MARKERS[k % len(MARKERS)], "gid": CURVE}


def is_new(ax: Any, label: str) -> bool:
    """Whether no entry of the legend is called so: one diagonal is enough for several diagrams."""
    return label not in ax.get_legend_handles_labels()[1]


def axes_below(ax: Any) -> Any:
    """The axes of a histogram below a diagram, where there are any."""
    return next((child for child in ax.child_axes if child.get_label() == ROWS), None)


def new_axes_below(ax: Any) -> Any:
    """Axes for a histogram below a diagram, which has no numbers at its foot from then on."""
    below = ax.inset_axes(BELOW, sharex=ax, label=ROWS)
    below.set(ylabel="Rows", yticks=[])
    below.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(labelbottom=False)
    return below


def panels(count: int, side: float, columns: int | None = None, ratio: float = 1.0) -> tuple[Any, Array]:
    """A figure with so many panels, in rows, and the panels; ``ratio`` is their height in parts of their width."""
    columns = min(count, columns or max(int(np.ceil(np.sqrt(1.2 * count))), 3))
    rows = -(-count // columns)
    size = (side * columns + 0.9, side * ratio * rows + 0.7)
    share = {"sharex": True, "sharey": True, "squeeze": False}
    figure, axes = pyplot().subplots(rows, columns, figsize=size, layout="constrained", **share)
    for ax in axes.flat[count:]:
        ax.set_visible(False)
    for ax in axes.flat[max(count - columns, 0) : count]:  # the lowest of every column
        ax.tick_params(labelbottom=True)
    return figure, axes.ravel()[:count]


def log_scale(ax: Any, which: str, values: Array) -> None:
    """A logarithmic axis, with numbers on it where it is shorter than two powers of ten."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    ax.set(**{f"{which}scale": "log"})
    axis = getattr(ax, f"{which}axis")
    if values.max() < 100 * values.min():
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_locator(NullLocator())


def as_axes(axes: Any, count: int, what: str) -> Array:
    """Axes that were given, one for each thing."""
    axes = np.ravel(np.asarray(axes, dtype=object))
    if len(axes) != count:
        raise ValueError(f"There are {count} {what} but {len(axes)} axes: give one for each.")
    return axes


def thinned(T: int, most: int) -> Array:
    """Places that are named: all, or every second, third, ..."""
    return np.arange(0, T, -(-T // most))


def named(T: int, most: int, what: str = "task") -> list[str]:
    """A remark where only some are."""
    step = -(-T // most)
    end = "th" if step % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(step % 10, "th")
    return [f"(every {step}{end} {what} is named)"] if step > 1 else []
