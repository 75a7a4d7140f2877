"""Class probabilities over the plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from leastwise.displays._drawing import as_axes, choose, panels, pyplot
from leastwise.task_text import shortened

Array = np.ndarray
Limits = tuple[tuple[float, float], tuple[float, float]]

#: Names are cut after so many letters. So few panels are large; so many are drawn without being asked for.
NAME, FEW, MOST = 24, 3, 30


class PosteriorDisplay:
    """Class probabilities over a rectangle of the plane, a panel for each class, or for each task.

    Parameters
    ----------
    x, y : ndarray of shape (resolution,)
        Coordinates of the grid.
    proba : ndarray of shape (resolution, resolution, c)
        Probabilities; the first axis is y, the second x, the third are the panels.
    names : sequence of str
        Names of the panels: of the classes, or of the tasks.
    label : str, default="probability"
        What the colours mean.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (c,)
    figure_ : matplotlib Figure
    surfaces_ : list
        The filled contours, or images, of the panels.
    colorbar_ : matplotlib Colorbar or None
    """

    def __init__(self, x: Array, y: Array, proba: Array, names: Sequence[str], label: str = "probability") -> None:
        self.x = x
        self.y = y
        self.proba = proba
        self.names = names
        self.label = label

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, limits: Limits | None = None, names: Any = None, **kwargs: Any
    ) -> PosteriorDisplay:
        """Draw the probabilities of a fitted classifier of two features.

        Parameters
        ----------
        estimator : classifier with ``predict_proba``
        X : array-like of shape (n, 2), optional
            Rows that the rectangle is to hold, with a margin; not needed with ``limits``.
        limits : ((x low, x high), (y low, y high)), optional
            The rectangle.
        names : sequence of str, optional
            Names of the classes; by default ``classes_``.
        **kwargs
            For :meth:`from_function`.
        """
        pyplot()
        names = [f"class {k}" for k in estimator.classes_] if names is None else names
        return cls.from_function(estimator.predict_proba, _rectangle(X, limits), names=names, **kwargs)

    @classmethod
    def from_tasks(
        cls,
        estimator: Any,
        X: Any = None,
        *,
        tasks: Any = None,
        pos_label: Any = None,
        limits: Limits | None = None,
        names: Any = None,
        **kwargs: Any,
    ) -> PosteriorDisplay:
        """Draw the probability of one class in each of many tasks, a panel for each.

        Parameters
        ----------
        estimator : fitted classifier of many tasks and two features
            Its ``predict_proba`` takes ``tasks``.
        X : array-like of shape (n, 2), optional
            Rows that the rectangle is to hold, with a margin; not needed with ``limits``.
        tasks : sequence, optional
            The ids of the tasks to draw, unknown ones too; by default all that the model knows.
        pos_label : optional
            The class; by default the last one.
        limits : ((x low, x high), (y low, y high)), optional
            The rectangle.
        names : sequence of str, optional
            Titles of the panels; by default the ids.
        **kwargs
            For :meth:`from_function`.
        """
        pyplot()
        if tasks is None and len(estimator.tasks_) > MOST:
            raise ValueError(f"The model knows {len(estimator.tasks_)} tasks: say with tasks= which are to be drawn.")
        tasks = list(estimator.tasks_ if tasks is None else tasks)
        classes = np.asarray(estimator.classes_)
        place = np.flatnonzero(classes == (classes[-1] if pos_label is None else pos_label))
        if not len(place):
            raise ValueError(f"pos_label={pos_label!r} is none of the classes {classes.tolist()}.")

        def each(points: Array) -> Array:
            answers = (np.asarray(estimator.predict_proba(points, tasks=[t] * len(points))) for t in tasks)
            return np.stack([P[:, place[0]] for P in answers], axis=1)

        names = [t if isinstance(t, str) else f"task {t}" for t in tasks] if names is None else names
        label = f"probability of {classes[place[0]]}"
        return cls.from_function(each, _rectangle(X, limits), names=names, label=label, **kwargs)

    @classmethod
    def from_function(
        cls,
        function: Callable[[Array], Any],
        limits: Limits,
        *,
        resolution: int = 100,
        names: Any = None,
        label: str = "probability",
        **kwargs: Any,
    ) -> PosteriorDisplay:
        """Draw any function from points of the plane to class probabilities.

        Parameters
        ----------
        function : callable
            From an array of shape (n, 2) to one of shape (n, c).
        limits : ((x low, x high), (y low, y high))
            The rectangle.
        resolution : int, default=100
            Number of grid points a side.
        names : sequence of str, optional
            Names of the classes.
        label : str, default="probability"
            What the colours mean.
        **kwargs
            For :meth:`plot`.
        """
        pyplot()
        x, y = (np.linspace(low, high, resolution) for low, high in limits)
        points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        proba = np.asarray(function(points), dtype=float).reshape(resolution, resolution, -1)
        names = [f"class {k}" for k in range(proba.shape[2])] if names is None else names
        if len(names) != proba.shape[2]:
            raise ValueError(f"There are {proba.shape[2]} panels but {len(names)} names: give one for each.")
        return cls(x, y, proba, list(map(str, names)), label).plot(**kwargs)

    def plot(
        self, axes: Any = None, *, kind: str = "contourf", colorbar: bool = True, cmap: str = "viridis"
    ) -> PosteriorDisplay:
        """Draw.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional
            One for each panel; a new figure by default, with at most five in a row.
        kind : {"contourf", "pcolormesh"}, default="contourf"
            Filled contours in steps of a tenth, or a heat map.
        colorbar : bool, default=True
            Whether to add a colour bar, 0 to 1, beside the last panel.
        cmap : str, default="viridis"
            Colour map.
        """
        choose("kind", kind, ("contourf", "pcolormesh"))
        self.axes_, ours = self._axes(axes)
        self.figure_ = self.axes_[0].figure
        self.surfaces_ = [self._draw(ax, k, kind, cmap) for k, ax in enumerate(self.axes_)]
        few = len(self.axes_) <= FEW
        for ax, title in zip(self.axes_, shortened(self.names, NAME), strict=True):
            ax.set_title(title, fontsize="large" if few else "small")
            ax.set(xlabel="$x_1$", ylabel="$x_2$" if ours or ax is self.axes_[0] else ax.get_ylabel())
            if ours:
                _outer(ax)
        self.colorbar_ = None
        if colorbar:
            bar = {"label": self.label, "ticks": np.linspace(0, 1, 6), "aspect": 25}
            self.colorbar_ = self.figure_.colorbar(self.surfaces_[-1], ax=list(self.axes_), **bar)
        return self

    def _axes(self, axes: Any) -> tuple[Array, bool]:
        """The panels, and whether they are in a new figure."""
        c = self.proba.shape[2]
        if axes is not None:
            return as_axes(axes, c, "classes"), False
        return panels(c, 2.9 if c <= FEW else 1.9, columns=c if c <= FEW else 5)[1], True

    def _draw(self, ax: Any, k: int, kind: str, cmap: str) -> Any:
        values = self.proba[..., k]
        if kind == "contourf":
            # Rounding may lift a probability a hair above 1, which contours would leave blank.
            surface = ax.contourf(self.x, self.y, values.clip(0, 1), levels=np.linspace(0, 1, 11), cmap=cmap)
        else:
            surface = ax.pcolormesh(self.x, self.y, values, vmin=0, vmax=1, cmap=cmap, shading="nearest")
        ax.set_aspect("equal")
        return surface


def _outer(ax: Any) -> None:
    """Labels on the left, and at the foot of every column, only."""
    place = ax.get_subplotspec()
    if not place.is_first_col():
        ax.set_ylabel("")
    if not any(t.label1.get_visible() for t in ax.xaxis.get_major_ticks()):
        ax.set_xlabel("")


def _rectangle(X: Any, limits: Limits | None) -> Limits:
    if limits is None and X is None:
        raise ValueError("Give X or limits: without them there is no rectangle to draw.")
    return _around(X) if limits is None else limits


def _around(X: Any, margin: float = 0.1) -> Limits:
    """The rectangle around two columns, with a margin."""
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X has shape {X.shape}; only two features can be drawn in the plane.")
    low, high = X.min(axis=0), X.max(axis=0)
    extra = margin * np.where(high > low, high - low, 1)
    (a, c), (b, d) = low - extra, high + extra
    return (float(a), float(b)), (float(c), float(d))
