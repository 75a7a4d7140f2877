"""Class probabilities as a function of two features."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.displays._base import check_option, fit_names, given_axes, literal, panels, pyplot
from leastwise.inspection.outcomes import outermost_with
from leastwise.utils.unwrap import layers

Array = np.ndarray
Limits = tuple[tuple[float, float], tuple[float, float]]

#: Names are cut after this many characters.
MAX_NAME = 24
#: Up to this many panels are large; more than ``MAX_PANELS`` tasks must be selected by the caller.
LARGE_PANELS, MAX_PANELS = 3, 30
#: The two features have the same scale unless one side of the panel would be this many times the other.
MAX_RATIO = 2.5


@dataclass(eq=False, repr=False)
class PosteriorDisplay:
    """Class probabilities over a rectangle of two features, with a panel for each class or each task.

    Parameters
    ----------
    x, y : ndarray of shape (resolution,)
        Coordinates of the grid.
    proba : ndarray of shape (resolution, resolution, c)
        Probabilities; the axes are y, x and the panels.
    names : sequence of str
        Names of the panels: classes or tasks.
    label : str, default="probability"
        Label of the colour bar.
    axis_labels : (str, str)
        Names of the two features.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (c,)
    ax_ : matplotlib Axes
        The first panel.
    figure_ : matplotlib Figure
    surfaces_ : list
        The filled contours, or images, of the panels.
    colorbar_ : matplotlib Colorbar or None
    """

    x: Array
    y: Array
    proba: Array
    names: Sequence[str]
    label: str = "probability"
    axis_labels: tuple[str, str] = ("$x_1$", "$x_2$")

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, *, limits: Limits | None = None, names: Any = None, **kwargs: Any
    ) -> PosteriorDisplay:
        """Draw the probabilities of a fitted classifier of two features.

        Parameters
        ----------
        estimator : classifier with ``predict_proba``
        X : array-like of shape (n, 2), optional
            Rows that the rectangle contains, with a margin; not needed with ``limits``. Column names of a frame
            become axis labels.
        limits : ((x low, x high), (y low, y high)), optional
            The rectangle to draw.
        names : sequence of str, optional
            Names of the classes; by default ``classes_``.
        **kwargs
            For :meth:`from_function`.
        """
        pyplot()
        if names is None:
            names = [c if isinstance(c, str) else f"class {c}" for c in estimator.classes_.tolist()]
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
        """Draw the probability of one class in each task, with a panel for each.

        Parameters
        ----------
        estimator : fitted multi-task classifier of two features
            Its ``predict_proba`` takes ``tasks``, or it has a ``task_column``, which X may contain then.
        X : array-like of shape (n, 2), optional
            Rows that the rectangle contains, with a margin; not needed with ``limits``.
        tasks : sequence, optional
            The ids of the tasks to draw, which may be unknown to the model; by default all known ones.
        pos_label : optional
            The class; by default the last one.
        limits : ((x low, x high), (y low, y high)), optional
            The rectangle to draw.
        names : sequence of str, optional
            Titles of the panels; by default the ids.
        **kwargs
            For :meth:`from_function`.
        """
        pyplot()
        *_, inner = layers(estimator)
        known = outermost_with(estimator, "tasks_").tasks_
        if tasks is None and len(known) > MAX_PANELS:
            raise ValueError(f"The model knows {len(known)} tasks: select those to draw with tasks=.")
        tasks = list(known if tasks is None else tasks)
        where = plane(X, limits, task_column=getattr(inner, "task_column", None))
        classes = np.asarray(estimator.classes_)
        place = np.flatnonzero(classes == (classes[-1] if pos_label is None else pos_label))
        if not len(place):
            raise ValueError(f"pos_label={pos_label!r} is not one of the classes {classes.tolist()}.")

        def each(points: Array) -> Array:
            return np.stack([where.proba(estimator, points, t)[:, place[0]] for t in tasks], axis=1)

        names = [t if isinstance(t, str) else f"task {t}" for t in tasks] if names is None else names
        label = f"probability of {fit_names([classes[place[0]]], MAX_NAME)[0]}"
        kwargs = {"names": names, "label": label, "axis_labels": where.sides, **kwargs}
        return cls.from_function(each, where.limits, **kwargs)

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
        """Draw any function of two features.

        Parameters
        ----------
        function : callable
            From an array of shape (n, 2) to one of shape (n, c).
        limits : ((x low, x high), (y low, y high))
            The rectangle to draw.
        resolution : int, default=100
            Number of grid points per side.
        names : sequence of str, optional
            Names of the panels.
        label : str, default="probability"
            Label of the colour bar.
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
            Filled contours in steps of 0.1, or a heat map.
        colorbar : bool, default=True
            Add a colour bar.
        cmap : str, default="viridis"
            Colour map.
        """
        check_option("kind", kind, ("contourf", "pcolormesh"))
        self.axes_, ours = self._axes(ax)
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        self.surfaces_ = [self._draw(panel, k, kind, cmap) for k, panel in enumerate(self.axes_)]
        few = len(self.axes_) <= LARGE_PANELS
        for panel, title in zip(self.axes_, fit_names(self.names, MAX_NAME), strict=True):
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
        """Height of the panels divided by their width; 1 where the units are not comparable."""
        ratio = float(np.ptp(self.y) / np.ptp(self.x))
        return ratio if 1 / MAX_RATIO <= ratio <= MAX_RATIO else 1.0

    def _axes(self, axes: Any) -> tuple[Array, bool]:
        """The panels, and True if they are in a new figure."""
        c = self.proba.shape[2]
        if axes is not None:
            return given_axes(axes, c, "classes"), False
        side = 2.9 if c <= LARGE_PANELS else 1.9
        return panels(c, side, columns=c if c <= LARGE_PANELS else 5, ratio=self._ratio)[1], True

    def _draw(self, ax: Any, k: int, kind: str, cmap: str) -> Any:
        values = self.proba[..., k]
        if kind == "contourf":
            # Contours leave values above 1 blank, which rounding can produce.
            surface = ax.contourf(self.x, self.y, values.clip(0, 1), levels=np.linspace(0, 1, 11), cmap=cmap)
        else:
            surface = ax.pcolormesh(self.x, self.y, values, vmin=0, vmax=1, cmap=cmap, shading="nearest")
        ax.set_box_aspect(self._ratio)
        return surface


def _outer(ax: Any) -> None:
    """Keep labels only on the left and at the foot of every column."""
    place = ax.get_subplotspec()
    if not place.is_first_col():
        ax.set_ylabel("")
    if not any(t.label1.get_visible() for t in ax.xaxis.get_major_ticks()):
        ax.set_xlabel("")


# ----------------------------------------------------------------------- the rectangle


@dataclass(frozen=True)
class Plane:
    """A rectangle, the names of its two features, and the frame class that the model takes, if any."""

    limits: Limits
    features: tuple[Any, ...] | None
    frame: Callable[[dict[Any, Any]], Any] | None

    @property
    def sides(self) -> tuple[str, str]:
        """Labels of the axes."""
        return ("$x_1$", "$x_2$") if self.features is None else (literal(self.features[0]), literal(self.features[1]))

    def rows(self, points: Array, extra: dict[Any, Any] | None = None) -> Any:
        """Points as rows of the model, with extra columns."""
        if self.frame is None or self.features is None:
            return points
        return self.frame({**dict(zip(self.features, points.T, strict=True)), **(extra or {})})

    def proba(self, model: Any, points: Array, task: Any = None) -> Array:
        """Probabilities of points, in a task if one is given."""
        *_, inner = layers(model)
        column = getattr(inner, "task_column", None)
        with warnings.catch_warnings():
            # limits= needs no frame, and then the rows have no names.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            if task is None:
                return np.asarray(model.predict_proba(self.rows(points)))
            repeated = [task] * len(points)
            if column is None:
                return np.asarray(model.predict_proba(self.rows(points), tasks=repeated))
            return np.asarray(model.predict_proba(self._with_task(points, model, column, repeated)))

    def _with_task(self, points: Array, model: Any, column: Any, repeated: list[Any]) -> Any:
        if isinstance(column, str):
            if self.frame is None:
                raise ValueError(
                    f"The model takes tasks in the column {column!r}: give X as a frame with this column; limits= is "
                    "needed only for another rectangle."
                )
            return self.rows(points, {column: repeated})[[str(name) for name in model.feature_names_in_]]
        columns = list(points.T.astype(object))
        columns.insert(column if column >= 0 else 3 + column, np.array(repeated, dtype=object))
        return np.stack(columns, axis=1)


def plane(X: Any, limits: Limits | None, task_column: Any = None) -> Plane:
    """The rectangle of two features; the column of tasks is left out."""
    if limits is None and X is None:
        raise ValueError("Give X or limits: one of them is needed for the rectangle to draw.")
    names = getattr(X, "columns", None)
    if names is not None and not isinstance(task_column, int):
        names = [name for name in names if name != task_column]
        values = np.column_stack([np.asarray(X[name], dtype=float) for name in names]) if len(names) else np.empty(0)
        return Plane(limits or around(values), tuple(names), type(X))
    if X is not None and isinstance(task_column, int):
        X = np.delete(np.asarray(X, dtype=object), task_column, axis=1)
    return Plane(limits or around(X), None, None)


def around(X: Any, margin: float = 0.1) -> Limits:
    """The rectangle around two columns, with a margin."""
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X has shape {X.shape}; it must have two features.")
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    extra = margin * np.where(high > low, high - low, 1)
    (a, c), (b, d) = low - extra, high + extra
    return (float(a), float(b)), (float(c), float(d))
