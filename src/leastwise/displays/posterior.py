"""Class probabilities over the plane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from leastwise.displays._drawing import as_axes, panels, pyplot
from leastwise.displays._plane import Limits, plane
from leastwise.inspection.outcomes import choose, class_name, fitting, holder, layers

Array = np.ndarray

#: Names are cut after so many letters. So few panels are large; so many are drawn without being asked for.
NAME, FEW, MOST = 24, 3, 30
#: Units of the two features have the same length, unless one side would be so many times the other.
LONGER = 2.5


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
    axis_labels : (str, str)
        Names of the two features; x1 and x2 by default.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (c,)
    ax_ : matplotlib Axes
        The first of them.
    figure_ : matplotlib Figure
    surfaces_ : list
        The filled contours, or images, of the panels.
    colorbar_ : matplotlib Colorbar or None
    """

    def __init__(
        self,
        x: Array,
        y: Array,
        proba: Array,
        names: Sequence[str],
        label: str = "probability",
        axis_labels: tuple[str, str] = ("$x_1$", "$x_2$"),
    ) -> None:
        self.x = x
        self.y = y
        self.proba = proba
        self.names = names
        self.label = label
        self.axis_labels = axis_labels

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, limits: Limits | None = None, names: Any = None, **kwargs: Any
    ) -> PosteriorDisplay:
        """Draw the probabilities of a fitted classifier of two features.

        Parameters
        ----------
        estimator : classifier with ``predict_proba``
        X : array-like of shape (n, 2), optional
            Rows that the rectangle is to hold, with a margin; not needed with ``limits``. Columns of a frame give
            the axes their names.
        limits : ((x low, x high), (y low, y high)), optional
            The rectangle.
        names : sequence of str, optional
            Names of the classes; by default ``classes_``.
        **kwargs
            For :meth:`from_function`.
        """
        pyplot()
        names = list(map(class_name, estimator.classes_.tolist())) if names is None else names
        where = plane(X, limits)
        kwargs = {"names": names, "axis_labels": where.sides, **kwargs}
        return cls.from_function(lambda points: where.proba(estimator, points), where.limits, **kwargs)

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
            Its ``predict_proba`` takes ``tasks``, or it has a ``task_column``, which X may hold then.
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
        *_, inner = layers(estimator)
        known = holder(estimator, "tasks_").tasks_
        if tasks is None and len(known) > MOST:
            raise ValueError(f"The model knows {len(known)} tasks: say with tasks= which are to be drawn.")
        tasks = list(known if tasks is None else tasks)
        where = plane(X, limits, without=getattr(inner, "task_column", None))
        classes = np.asarray(estimator.classes_)
        place = np.flatnonzero(classes == (classes[-1] if pos_label is None else pos_label))
        if not len(place):
            raise ValueError(f"pos_label={pos_label!r} is none of the classes {classes.tolist()}.")

        def each(points: Array) -> Array:
            return np.stack([where.proba(estimator, points, t)[:, place[0]] for t in tasks], axis=1)

        names = [t if isinstance(t, str) else f"task {t}" for t in tasks] if names is None else names
        words = {
            "names": names,
            "label": f"probability of {fitting([classes[place[0]]], NAME)[0]}",
            "axis_labels": where.sides,
        }
        return cls.from_function(each, where.limits, **{**words, **kwargs})

    @classmethod
    def from_function(
        cls,
        function: Callable[[Array], Any],
        limits: Limits,
        *,
        resolution: int = 100,
        names: Any = None,
        label: str = "probability",
        axis_labels: tuple[str, str] = ("$x_1$", "$x_2$"),
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
        axis_labels : (str, str)
            Names of the two features.
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
        return cls(x, y, proba, list(map(str, names)), label, axis_labels).plot(**kwargs)

    def plot(
        self, ax: Any = None, *, kind: str = "contourf", colorbar: bool = True, cmap: str = "viridis"
    ) -> PosteriorDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, or sequence of them, optional
            One for each panel; a new figure by default, with at most five in a row.
        kind : {"contourf", "pcolormesh"}, default="contourf"
            Filled contours in steps of a tenth, or a heat map.
        colorbar : bool, default=True
            Whether to add a colour bar, 0 to 1, beside the last panel.
        cmap : str, default="viridis"
            Colour map.
        """
        choose("kind", kind, ("contourf", "pcolormesh"))
        self.axes_, ours = self._axes(ax)
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        self.surfaces_ = [self._draw(panel, k, kind, cmap) for k, panel in enumerate(self.axes_)]
        few = len(self.axes_) <= FEW
        for panel, title in zip(self.axes_, fitting(self.names, NAME), strict=True):
            panel.set_title(title, fontsize="large" if few else "small")
            x, y = self.axis_labels
            panel.set(xlabel=x, ylabel=y if ours or panel is self.ax_ else panel.get_ylabel())
            if ours:
                _outer(panel)
        self.colorbar_ = None
        if colorbar:
            rows = self.ax_.get_subplotspec().get_gridspec().nrows if ours else 1
            bar = {"label": self.label, "ticks": np.linspace(0, 1, 6), "aspect": 25 * max(1, rows / 2)}
            self.colorbar_ = self.figure_.colorbar(self.surfaces_[-1], ax=list(self.axes_), **bar)
        return self

    @property
    def _ratio(self) -> float:
        """Height of the panels in parts of their width; 1 where the units cannot be compared."""
        ratio = float(np.ptp(self.y) / np.ptp(self.x))
        return ratio if 1 / LONGER <= ratio <= LONGER else 1.0

    def _axes(self, axes: Any) -> tuple[Array, bool]:
        """The panels, and whether they are in a new figure."""
        c = self.proba.shape[2]
        if axes is not None:
            return as_axes(axes, c, "classes"), False
        side = 2.9 if c <= FEW else 1.9
        return panels(c, side, columns=c if c <= FEW else 5, ratio=self._ratio)[1], True

    def _draw(self, ax: Any, k: int, kind: str, cmap: str) -> Any:
        values = self.proba[..., k]
        if kind == "contourf":
            # Rounding may lift a probability a hair above 1, which contours would leave blank.
            surface = ax.contourf(self.x, self.y, values.clip(0, 1), levels=np.linspace(0, 1, 11), cmap=cmap)
        else:
            surface = ax.pcolormesh(self.x, self.y, values, vmin=0, vmax=1, cmap=cmap, shading="nearest")
        ax.set_box_aspect(self._ratio)
        return surface


def _outer(ax: Any) -> None:
    """Labels on the left, and at the foot of every column, only."""
    place = ax.get_subplotspec()
    if not place.is_first_col():
        ax.set_ylabel("")
    if not any(t.label1.get_visible() for t in ax.xaxis.get_major_ticks()):
        ax.set_xlabel("")
