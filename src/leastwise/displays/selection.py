"""The surface of a search: held-out score over sigma, alpha and sharing."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from leastwise.displays._drawing import as_axes, color, log_scale, panels, pyplot
from leastwise.displays._searched import SearchDisplay, Searched, is_log, same
from leastwise.inspection.outcomes import choose

Array = np.ndarray

#: Colours reach so far into the points, from the best on; the rest, often far worse, has the last colour.
REACH = 0.75


class SelectionDisplay(SearchDisplay):
    """Held-out score over two parameters, best over the others or in a panel for each value of a third.

    Every point that was looked at has a cell; the search refines, so cells differ in width. Bright is good. What is
    chosen is marked.

    Parameters
    ----------
    searched : Searched
        The points, see :meth:`from_estimator` and :meth:`from_results`.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
    ax_ : matplotlib Axes
        The first of them.
    figure_ : matplotlib Figure
    surfaces_ : list
        The cells, or filled contours, of the panels.
    marks_ : list of matplotlib Line2D
        The point that was chosen; in one of the panels, where there are several.
    colorbar_ : matplotlib Colorbar or None

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from leastwise import LSPC
    >>> from leastwise.displays import SelectionDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = SelectionDisplay.from_estimator(LSPC(random_state=0).fit(X, y))
    """

    def plot(
        self,
        ax: Any = None,
        *,
        x: str = "alpha",
        y: str | None = None,
        by: str | None = None,
        kind: str = "cells",
        cmap: str | None = None,
        colorbar: bool = True,
    ) -> SelectionDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, or sequence of them, optional
            One for each panel; a new figure by default.
        x, y : str
            The parameters on the axes; y is by default sigma, or another one that was searched where sigma was not.
        by : str, optional
            A panel for each value of this parameter, "sharing" for instance. By default one panel, with the best
            score over all other parameters.
        kind : {"cells", "contours"}, default="cells"
            Cells as they were looked at, or filled contours over a triangulation of the points.
        cmap : str, optional
            Colour map; by default "viridis", turned around for losses.
        colorbar : bool, default=True
            Whether to add a colour bar.
        """
        choose("kind", kind, ("cells", "contours"))
        y = self._second(x) if y is None else y
        self.searched.check(x, y, *([] if by is None else [by]))
        stage = self.searched.largest_stage()
        parts = self._parts(stage, x, y, by)
        self.axes_ = self._axes(ax, len(parts))
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        style = {"cmap": cmap or ("viridis_r" if stage.loss else "viridis"), "norm": _norm(stage)}
        draw = _cells if kind == "cells" else _contours
        self.surfaces_ = [draw(one, p, x, y, stage, style) for one, (_, p) in zip(self.axes_, parts, strict=True)]
        self.marks_: list[Any] = []
        for panel, (value, part) in zip(self.axes_, parts, strict=True):
            self._finish(panel, part, x, y, by, value, len(parts))
        self.colorbar_ = None
        if colorbar:
            ticks = style["norm"].inverse(np.linspace(0, 1, 7))
            bar = {"label": self._label(stage), "ticks": ticks, "format": "%.3g"}
            bar |= {} if kind == "contours" else {"extend": "max" if stage.loss else "min"}
            self.colorbar_ = self.figure_.colorbar(self.surfaces_[-1], ax=list(self.axes_), **bar)
        return self

    def _second(self, x: str) -> str:
        others = [name for name in ("sigma", "sharing", *self.searched.values) if name in self.searched.values]
        others = [name for name in others if name != x]
        if not others:
            raise ValueError(
                f"Searched were {sorted(self.searched.values)}: a surface needs two parameters with several values. "
                "RegularisationPathDisplay draws one."
            )
        return others[0]

    def _parts(self, stage: Searched, x: str, y: str, by: str | None) -> list[tuple[float | None, Searched]]:
        """The points of every panel, and its value."""
        if by is None:
            return [(None, stage.best(x, y))]
        points = stage.best(x, y, by)
        return [(float(v), points.only(points.values[by] == v)) for v in np.unique(points.values[by])]

    def _axes(self, axes: Any, count: int) -> Array:
        if axes is not None:
            return as_axes(axes, count, "panels")
        if count == 1:
            return np.array([pyplot().subplots(layout="constrained")[1]], dtype=object)
        return panels(count, 2.2, columns=min(count, 4))[1]

    def _finish(
        self, ax: Any, part: Searched, x: str, y: str, by: str | None, value: float | None, count: int
    ) -> None:
        chosen = self.searched.chosen
        ax.plot(part.values[x], part.values[y], ".", ms=2, color="white", alpha=0.7, zorder=2)
        if by is None or same(np.array([value]), chosen[by])[0]:
            style = {"ms": 13, "color": color(1), "mec": "white", "mew": 1.2, "zorder": 5, "ls": ""}
            self.marks_ += ax.plot(chosen[x], chosen[y], "*", label="chosen", clip_on=False, **style)
        ax.set(xlabel=x, ylabel=y)
        for which, name in (("x", x), ("y", y)):
            if is_log(name, self.searched.values[name]):
                log_scale(ax, which, self.searched.values[name])
        if by is not None:
            ax.set_title(f"{by} {value:g}", fontsize="medium" if count <= 4 else "small")
        if count > 1:
            ax.label_outer()

    def _label(self, stage: Searched) -> str:
        most = int(self.searched.rows.max())
        return stage.label + (f" (on {stage.rows[0]} of {most} rows)" if stage.rows[0] < most else "")


def _norm(points: Searched) -> Any:
    """Colours from the best score to one that three quarters of the points reach, finer near the best.

    Scores fall off as squares near the best point; so the square root of what is lost has even steps there.
    """
    from matplotlib.colors import FuncNorm

    best = float(points.score.min() if points.loss else points.score.max())
    worst = float(np.quantile(points.score, REACH if points.loss else 1 - REACH))
    worst = worst if worst != best else best + (1e-9 if points.loss else -1e-9)
    sign = 1 if points.loss else -1

    def there(v: Any) -> Any:
        return sign * np.sqrt(np.maximum(sign * (np.asarray(v) - best), 0))

    def back(u: Any) -> Any:
        return best + sign * np.asarray(u) ** 2

    return FuncNorm((there, back), vmin=min(best, worst), vmax=max(best, worst), clip=True)


def _edges(values: Array, log: bool) -> Array:
    """Borders half-way between sorted values; the first and last as far outside as their neighbours are inside."""
    v = np.log10(values) if log else values
    half = np.diff(v) / 2 if len(v) > 1 else np.array([0.5])
    edges = np.concatenate([v[:1] - half[:1], v[: len(v) - 1] + half[: len(v) - 1], v[-1:] + half[-1:]])
    return 10.0**edges if log else edges


def _reaching(bands: list[Array], ends: tuple[Array, Array]) -> list[Array]:
    """Borders of bands; those that go as far as any reach the farthest border, be their neighbours near or far."""
    low, high = (same(end, farthest) for end, farthest in zip(ends, (ends[0].min(), ends[1].max()), strict=True))
    left, right = min(edges[0] for edges in bands), max(edges[-1] for edges in bands)
    return [
        np.concatenate([[left if first else e[0]], e[1:-1], [right if last else e[-1]]])
        for e, first, last in zip(bands, low, high, strict=True)
    ]


def _cells(ax: Any, points: Searched, x: str, y: str, every: Searched, style: dict[str, Any]) -> Any:
    """A band for every value of y, in which every value of x that was looked at there has a cell."""
    from matplotlib.collections import PolyCollection

    X, Y = points.values[x], points.values[y]
    levels, own = np.unique(every.values[y]), np.unique(Y)
    across = list(pairwise(_edges(levels, is_log(y, levels))))
    here = [rows[np.argsort(X[rows])] for rows in (np.flatnonzero(level == Y) for level in own)]
    bands = [_edges(X[rows], is_log(x, X)) for rows in here]
    bands = _reaching(bands, (np.array([X[rows[0]] for rows in here]), np.array([X[rows[-1]] for rows in here])))
    shapes = []
    for level, edges in zip(own, bands, strict=True):
        low, high = across[int(np.searchsorted(levels, level))]
        shapes += [[(a, low), (b, low), (b, high), (a, high)] for a, b in pairwise(edges)]
    scores = points.score[np.concatenate(here)]
    cells = PolyCollection(shapes, array=scores, edgecolors="face", linewidths=0.3, **style)
    ax.add_collection(cells)
    ax.set(ylim=(across[0][0], across[-1][1]))
    ax.autoscale(axis="x", tight=True)
    return cells


def _contours(ax: Any, points: Searched, x: str, y: str, every: Searched, style: dict[str, Any]) -> Any:
    """Filled contours over triangles, which are made on the scales of the axes."""
    from matplotlib.tri import Triangulation

    X, Y = points.values[x], points.values[y]
    u, v = (np.log10(V) if is_log(name, V) else V for name, V in ((x, X), (y, Y)))
    if len(u) < 3 or np.linalg.matrix_rank(np.stack([u - u[0], v - v[0]])) < 2:
        raise ValueError(f"kind='contours' needs three points that are not in line, there are {len(u)}: use 'cells'.")
    mesh = Triangulation(X, Y, Triangulation(u, v).triangles)
    levels = style["norm"].inverse(np.linspace(0, 1, 13))
    surface = ax.tricontourf(mesh, points.score, levels=levels, extend="max" if points.loss else "min", **style)
    ax.set(xlim=(X.min(), X.max()), ylim=(every.values[y].min(), every.values[y].max()))
    return surface
