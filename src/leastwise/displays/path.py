"""The regularisation path: held-out score against alpha."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.displays._drawing import color, ink, log_scale, pyplot
from leastwise.displays._searched import SearchDisplay, Searched, is_log, same

Array = np.ndarray

#: So many curves are named; of more only the one that was chosen.
NAMED = 8


class RegularisationPathDisplay(SearchDisplay):
    """Held-out score against alpha, at the chosen sigma and, thinner, at the others.

    All other parameters are as they were chosen. Where a search began on some rows and ended on all, the scores on
    all rows are a curve of their own.

    Parameters
    ----------
    searched : Searched
        The points, see :meth:`from_estimator` and :meth:`from_results`.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    lines_ : dict of float to matplotlib Line2D
        The curves, by the value of the other parameter; 0 where there is none.
    settled_ : matplotlib Line2D or None
        The scores on all rows, where the search was on some of them.
    mark_ : matplotlib Line2D
        The point that was chosen.

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
            Where; a new figure by default.
        x : str, default="alpha"
            The parameter on the axis.
        by : str or None, default="sigma"
            A curve for each value of this parameter; None draws the curve at the chosen values alone.
        cmap : str, default="viridis"
            Colour map of the other curves.
        """
        self.searched.check(x, *([] if by in (None, "sigma") else [by]))
        by = by if by in self.searched.values else None
        ours = ax is None
        ax = pyplot().subplots(layout="constrained")[1] if ours else ax
        points = self.searched.at_chosen(x, *([] if by is None else [by]))
        first = points.only(points.rows == self.searched.largest_stage().rows[0])
        self.lines_ = self._curves(ax, first, x, by, cmap)
        self.settled_ = self._settled(ax, points, first, x, by)
        self.mark_ = self._mark(ax, points, x, by)
        self._finish(ax, first, x, by, ours)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _curves(self, ax: Any, points: Searched, x: str, by: str | None, cmap: str) -> dict[float, Any]:
        values = np.zeros(len(points.score)) if by is None else points.values[by]
        levels = np.unique(values)
        # The ends of the map are hard to see on white and on black.
        tones = pyplot().get_cmap(cmap)(np.linspace(0.15, 0.85, len(levels)))
        lines = {}
        for tone, level in zip(tones, levels, strict=True):
            chosen = by is None or bool(same(np.array([level]), self.searched.chosen[by])[0])
            style = {"lw": 2.2, "color": color(0), "ms": 6} if chosen else {"lw": 1, "color": tone, "ms": 3}
            name = f"{level:.3g}" + " (chosen)" * chosen
            label = name if by is not None and (chosen or len(levels) <= NAMED) else None
            here = np.flatnonzero(values == level)
            here = here[np.argsort(points.values[x][here])]
            path = points.values[x][here], points.score[here]
            lines[float(level)] = ax.plot(*path, marker=".", zorder=3 if chosen else 2, label=label, **style)[0]
        return lines

    def _settled(self, ax: Any, points: Searched, first: Searched, x: str, by: str | None) -> Any:
        """The last stage of a search, on more rows than the first."""
        most = points.rows.max()
        if most == first.rows[0]:
            return None
        last = points.only((points.rows == most) & self._here(points, by))
        order = np.argsort(last.values[x])
        style = {"color": color(3), "marker": "D", "ms": 4, "ls": "--", "zorder": 4}
        label = f"on all {most} rows"
        return ax.plot(last.values[x][order], last.score[order], label=label, **style)[0]

    def _mark(self, ax: Any, points: Searched, x: str, by: str | None) -> Any:
        chosen = self.searched.chosen
        here = same(points.values[x], chosen[x]) & self._here(points, by)
        here &= points.rows == points.rows[here].max(initial=0)
        style = {"ms": 12, "color": color(1), "mec": ink(), "mew": 0.8, "ls": "", "zorder": 5}
        value = points.score[here]
        return ax.plot(np.full(len(value), chosen[x]), value, "*", label="chosen", **style)[0]

    def _here(self, points: Searched, by: str | None) -> Array:
        """The points on the chosen curve."""
        return (
            np.ones(len(points.score), dtype=bool)
            if by is None
            else same(points.values[by], self.searched.chosen[by])
        )

    def _finish(self, ax: Any, points: Searched, x: str, by: str | None, ours: bool) -> None:
        score = points.score
        if is_log(x, points.values[x]):
            log_scale(ax, "x", points.values[x])
        # A loss that explodes on one side would hide the valley.
        if points.loss and (score > 0).all() and score.max() > 5 * score.min():
            log_scale(ax, "y", score)
        some = int(points.rows[0])
        remark = f"\n(curves on {some} of {self.searched.rows.max()} rows)" if self.settled_ is not None else ""
        ax.set(xlabel=x + remark, ylabel=points.label)
        # Beside the curves, which leave no room for it; axes that were given may have nothing beside them.
        place = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "frameon": False} if ours else {"loc": "best"}
        ax.legend(title=by, fontsize="small", borderaxespad=0.0 if ours else None, **place)
