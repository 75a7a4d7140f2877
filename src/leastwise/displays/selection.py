"""Hyperparameter searches: held-out scores over two hyperparameters, and against one of them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from leastwise.displays._base import check_option, color, given_axes, log_scale, panels, pyplot, text_color
from leastwise.displays._search_results import SearchDisplay, SearchResults, cell_edges, is_log, same

Array = np.ndarray

#: Colours reach from the best score to the score that this share of the points reaches.
COLOUR_REACH = 0.75
#: Up to this many curves are named; of more, only the chosen one.
MAX_NAMED = 8


class SelectionDisplay(SearchDisplay):
    """Held-out score over two hyperparameters, the best over the others or in a panel for each value of a third.

    Every point of the search has a cell; the search refines its grid, so cells differ in width. Bright is good. The
    chosen point is marked.

    Parameters
    ----------
    searched : SearchResults
        The points, see :meth:`from_estimator` and :meth:`from_results`.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
    ax_ : matplotlib Axes
        The first panel.
    figure_ : matplotlib Figure
    surfaces_ : list
        The cells or contours of the panels.
    marks_ : list of matplotlib Line2D
        The chosen point, in the panel that has it.
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
            The hyperparameters on the axes; y is by default sigma, or another searched one if sigma was not searched.
        by : str, optional
            A panel for each value of this hyperparameter, such as "sharing". By default one panel, with the best
            score over all other hyperparameters.
        kind : {"cells", "contours"}, default="cells"
            A cell for each point, or filled contours over a triangulation of the points.
        cmap : str, optional
            Colour map; by default "viridis", reversed for losses.
        colorbar : bool, default=True
            Add a colour bar.
        """
        check_option("kind", kind, ("cells", "contours"))
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
                f"This display needs two hyperparameters with several values; the search has "
                f"{sorted(self.searched.values)}. RegularisationPathDisplay draws one."
            )
        return others[0]

    def _parts(
        self, stage: SearchResults, x: str, y: str, by: str | None
    ) -> list[tuple[float | None, SearchResults]]:
        """The value and the points of every panel."""
        if by is None:
            return [(None, stage.best(x, y))]
        points = stage.best(x, y, by)
        return [(float(v), points.take(points.values[by] == v)) for v in np.unique(points.values[by])]

    def _axes(self, axes: Any, count: int) -> Array:
        if axes is not None:
            return given_axes(axes, count, "panels")
        if count == 1:
            return np.array([pyplot().subplots(layout="constrained")[1]], dtype=object)
        return panels(count, 2.2, columns=min(count, 4))[1]

    def _finish(
        self, ax: Any, part: SearchResults, x: str, y: str, by: str | None, value: float | None, count: int
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

    def _label(self, stage: SearchResults) -> str:
        most = int(self.searched.rows.max())
        return stage.label + (f" (on {stage.rows[0]} of {most} rows)" if stage.rows[0] < most else "")


class RegularisationPathDisplay(SearchDisplay):
    """Held-out score against alpha, at the chosen sigma and, thinner, at the other ones.

    All other hyperparameters have their chosen values. If the search started on a subsample and ended on all rows,
    the scores on all rows are a separate curve.

    Parameters
    ----------
    searched : SearchResults
        The points, see :meth:`from_estimator` and :meth:`from_results`.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : dict of float to matplotlib Line2D
        The curves, by the value of the other hyperparameter; 0 if there is none.
    settled_ : matplotlib Line2D or None
        The scores on all rows, if the search started on a subsample.
    mark_ : matplotlib Line2D
        The chosen point.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from leastwise import LSPC
    >>> from leastwise.displays import RegularisationPathDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> display = RegularisationPathDisplay.from_estimator(LSPC(random_state=0).fit(X, y))
    """

    def plot(
        self, ax: Any = None, *, x: str = "alpha", by: str | None = "sigma", cmap: str = "viridis"
    ) -> RegularisationPathDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default.
        x : str, default="alpha"
            The hyperparameter on the x-axis.
        by : str or None, default="sigma"
            A curve for each value of this hyperparameter; None draws only the curve at the chosen values.
        cmap : str, default="viridis"
            Colour map of the other curves.
        """
        self.searched.check(x, *([] if by in (None, "sigma") else [by]))
        by = by if by in self.searched.values else None
        ours = ax is None
        ax = pyplot().subplots(layout="constrained")[1] if ours else ax
        points = self.searched.at_chosen(x, *([] if by is None else [by]))
        first = points.take(points.rows == self.searched.largest_stage().rows[0])
        self.lines_ = self._curves(ax, first, x, by, cmap)
        self.settled_ = self._settled(ax, points, first, x, by)
        self.mark_ = self._mark(ax, points, x, by)
        self._finish(ax, first, x, by, ours)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _curves(self, ax: Any, points: SearchResults, x: str, by: str | None, cmap: str) -> dict[float, Any]:
        values = np.zeros(len(points.score)) if by is None else points.values[by]
        levels = np.unique(values)
        # The ends of the colour map are hard to see on white and on black.
        tones = pyplot().get_cmap(cmap)(np.linspace(0.15, 0.85, len(levels)))
        lines = {}
        for tone, level in zip(tones, levels, strict=True):
            chosen = by is None or bool(same(np.array([level]), self.searched.chosen[by])[0])
            style = {"lw": 2.2, "color": color(0), "ms": 6} if chosen else {"lw": 1, "color": tone, "ms": 3}
            name = f"{level:.3g}" + " (chosen)" * chosen
            label = name if by is not None and (chosen or len(levels) <= MAX_NAMED) else None
            here = np.flatnonzero(values == level)
            here = here[np.argsort(points.values[x][here])]
            path = points.values[x][here], points.score[here]
            lines[float(level)] = ax.plot(*path, marker=".", zorder=3 if chosen else 2, label=label, **style)[0]
        return lines

    def _settled(self, ax: Any, points: SearchResults, first: SearchResults, x: str, by: str | None) -> Any:
        """The last stage of the search, on more rows than the first."""
        most = points.rows.max()
        if most == first.rows[0]:
            return None
        last = points.take((points.rows == most) & self._here(points, by))
        order = np.argsort(last.values[x])
        style = {"color": color(3), "marker": "D", "ms": 4, "ls": "--", "zorder": 4}
        label = f"on all {most} rows"
        return ax.plot(last.values[x][order], last.score[order], label=label, **style)[0]

    def _mark(self, ax: Any, points: SearchResults, x: str, by: str | None) -> Any:
        chosen = self.searched.chosen
        here = same(points.values[x], chosen[x]) & self._here(points, by)
        here &= points.rows == points.rows[here].max(initial=0)
        style = {"ms": 12, "color": color(1), "mec": text_color(), "mew": 0.8, "ls": "", "zorder": 5}
        value = points.score[here]
        return ax.plot(np.full(len(value), chosen[x]), value, "*", label="chosen", **style)[0]

    def _here(self, points: SearchResults, by: str | None) -> Array:
        """The points on the chosen curve."""
        return (
            np.ones(len(points.score), dtype=bool)
            if by is None
            else same(points.values[by], self.searched.chosen[by])
        )

    def _finish(self, ax: Any, points: SearchResults, x: str, by: str | None, ours: bool) -> None:
        score = points.score
        if is_log(x, points.values[x]):
            log_scale(ax, "x", points.values[x])
        # A loss that grows fast on one side would hide the minimum.
        if points.loss and (score > 0).all() and score.max() > 5 * score.min():
            log_scale(ax, "y", score)
        some = int(points.rows[0])
        note = f"\n(curves on {some} of {self.searched.rows.max()} rows)" if self.settled_ is not None else ""
        ax.set(xlabel=x + note, ylabel=points.label)
        # Beside the curves in a new figure; given axes may have no room there.
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "frameon": False} if ours else {"loc": "best"}
        ax.legend(title=by, fontsize="small", borderaxespad=0.0 if ours else None, **place)


# ------------------------------------------------------------------------------- surfaces


def _norm(points: SearchResults) -> Any:
    """Colours from the best score to the score that 75% of the points reach, finer near the best.

    Scores fall off as squares near the best point: the square root of the loss has even steps there.
    """
    from matplotlib.colors import FuncNorm

    best = float(points.score.min() if points.loss else points.score.max())
    worst = float(np.quantile(points.score, COLOUR_REACH if points.loss else 1 - COLOUR_REACH))
    worst = worst if worst != best else best + (1e-9 if points.loss else -1e-9)
    sign = 1 if points.loss else -1

    def there(v: Any) -> Any:
        return sign * np.sqrt(np.maximum(sign * (np.asarray(v) - best), 0))

    def back(u: Any) -> Any:
        return best + sign * np.asarray(u) ** 2

    return FuncNorm((there, back), vmin=min(best, worst), vmax=max(best, worst), clip=True)


def _aligned(bands: list[Array], ends: tuple[Array, Array]) -> list[Array]:
    """Extend the bands whose first or last point is the farthest of all to the same border."""
    low, high = (same(end, farthest) for end, farthest in zip(ends, (ends[0].min(), ends[1].max()), strict=True))
    left, right = min(edges[0] for edges in bands), max(edges[-1] for edges in bands)
    return [
        np.concatenate([[left if first else e[0]], e[1:-1], [right if last else e[-1]]])
        for e, first, last in zip(bands, low, high, strict=True)
    ]


def _cells(ax: Any, points: SearchResults, x: str, y: str, every: SearchResults, style: dict[str, Any]) -> Any:
    """A band for every value of y, in it a cell for every value of x that was evaluated there."""
    from matplotlib.collections import PolyCollection

    X, Y = points.values[x], points.values[y]
    levels, own = np.unique(every.values[y]), np.unique(Y)
    across = list(pairwise(cell_edges(levels, is_log(y, levels))))
    here = [rows[np.argsort(X[rows])] for rows in (np.flatnonzero(level == Y) for level in own)]
    bands = [cell_edges(X[rows], is_log(x, X)) for rows in here]
    bands = _aligned(bands, (np.array([X[rows[0]] for rows in here]), np.array([X[rows[-1]] for rows in here])))
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


def _contours(ax: Any, points: SearchResults, x: str, y: str, every: SearchResults, style: dict[str, Any]) -> Any:
    """Filled contours over a triangulation on the scales of the axes."""
    from matplotlib.tri import Triangulation

    X, Y = points.values[x], points.values[y]
    u, v = (np.log10(V) if is_log(name, V) else V for name, V in ((x, X), (y, Y)))
    if len(u) < 3 or np.linalg.matrix_rank(np.stack([u - u[0], v - v[0]])) < 2:
        raise ValueError(
            f"kind='contours' needs three points that are not on one line, there are {len(u)}: use 'cells'."
        )
    mesh = Triangulation(X, Y, Triangulation(u, v).triangles)
    levels = style["norm"].inverse(np.linspace(0, 1, 13))
    surface = ax.tricontourf(mesh, points.score, levels=levels, extend="max" if points.loss else "min", **style)
    ax.set(xlim=(X.min(), X.max()), ylim=(every.values[y].min(), every.values[y].max()))
    return surface
