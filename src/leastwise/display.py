"""Pictures of probabilities in scikit-learn's form: ``from_...`` computes, ``plot`` draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from leastwise.metrics import checked_probabilities, expected_calibration_error

Array = np.ndarray
Limits = tuple[tuple[float, float], tuple[float, float]]


class ReliabilityDisplay:
    """Confidence against accuracy: does what is said with 90 % turn out true in 90 % of the cases?

    The confidence of a row is the probability of its most probable class. Rows are put into bins of the same
    size by confidence; a point of the diagram is a bin.

    Parameters
    ----------
    confidence, accuracy : ndarray of shape (bins,)
        Mean confidence and share of correct rows in each bin, in rising order of confidence.
    counts : ndarray of int of shape (bins,)
        Number of rows in each bin.
    error : float
        Expected calibration error over these bins, see
        :func:`leastwise.metrics.expected_calibration_error`.
    top : ndarray of shape (n,)
        Confidence of every row, for the histogram.
    name : str, optional
        What to call the predictions in the legend.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_ : matplotlib Line2D
        The curve.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from leastwise import LSPC
    >>> from leastwise.display import ReliabilityDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LSPC(random_state=0).fit(X[::2], y[::2])
    >>> display = ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2], n_bins=5)
    """

    def __init__(
        self,
        confidence: Array,
        accuracy: Array,
        counts: Array,
        error: float,
        top: Array,
        name: str | None = None,
    ) -> None:
        self.confidence = confidence
        self.accuracy = accuracy
        self.counts = counts
        self.error = error
        self.top = top
        self.name = name

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, n_bins: int = 15, name: str | None = None, **kwargs: Any
    ) -> ReliabilityDisplay:
        """Draw the diagram of a fitted classifier on rows with known classes.

        Parameters
        ----------
        estimator : classifier with ``predict_proba``
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,)
        n_bins : int, default=15
            Number of bins.
        name : str, optional
            By default the name of the estimator's class.
        **kwargs
            For :meth:`plot`.
        """
        name = type(estimator).__name__ if name is None else name
        proba, classes = estimator.predict_proba(X), estimator.classes_
        return cls.from_predictions(y, proba, classes=classes, n_bins=n_bins, name=name, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        proba: Any,
        *,
        classes: Any = None,
        n_bins: int = 15,
        name: str | None = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Draw the diagram of probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels.
        proba : array-like of shape (n, c)
            Probabilities, one column per class.
        classes : array-like of shape (c,), optional
            Labels of the columns; by default the sorted labels of ``y_true``.
        n_bins : int, default=15
            Number of bins; fewer where there are fewer rows.
        name : str, optional
            For the legend.
        **kwargs
            For :meth:`plot`.
        """
        _pyplot()
        y_true, proba, classes = checked_probabilities(y_true, proba, classes)
        n_bins = min(n_bins, len(y_true))
        error = expected_calibration_error(y_true, proba, classes=classes, n_bins=n_bins)
        top, correct = proba.max(axis=1), classes[proba.argmax(axis=1)] == y_true
        order = np.argsort(top, kind="stable")
        bins = np.arange(len(top)) * n_bins // len(top)
        counts = np.bincount(bins)
        confidence = np.bincount(bins, weights=top[order]) / counts
        accuracy = np.bincount(bins, weights=correct[order]) / counts
        return cls(confidence, accuracy, counts, error, top, name).plot(**kwargs)

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        ref_line: bool = True,
        histogram: bool = True,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure by default.
        name : str, optional
            In place of the ``name`` given before.
        ref_line : bool, default=True
            Whether to draw the diagonal, perfect calibration.
        histogram : bool, default=True
            Whether to draw, behind the curve, how the rows spread over the confidences.
        **kwargs
            For ``ax.plot`` of the curve.
        """
        ax = _pyplot().subplots()[1] if ax is None else ax
        name = self.name if name is None else name
        label = f"ECE {self.error:.4f}" if name is None else f"{name} (ECE {self.error:.4f})"
        if histogram:
            self._draw_histogram(ax)
        if ref_line:
            # One diagonal is enough where several diagrams share the axes.
            known = "perfect calibration" in ax.get_legend_handles_labels()[1]
            ax.plot([0, 1], [0, 1], "--", color="0.4", lw=1, label=None if known else "perfect calibration")
        (self.line_,) = ax.plot(self.confidence, self.accuracy, **{"marker": "o", "ms": 4, "label": label, **kwargs})
        ax.set(xlabel="Confidence", ylabel="Accuracy", xlim=(0, 1.02), ylim=(0, 1.03))
        ax.legend(loc="upper left", framealpha=0.9)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_histogram(self, ax: Any) -> None:
        share, edges = np.histogram(self.top, bins=np.linspace(0, 1, 21))
        # Heights are shares of the axes, so that the bars stay whole where the user zooms in on the curve.
        bars = {"align": "edge", "color": "0.87", "zorder": 0, "transform": ax.get_xaxis_transform()}
        known = "share of rows" in ax.get_legend_handles_labels()[1]
        bars["label"] = None if known else "share of rows"
        ax.bar(edges[:-1], share / len(self.top), width=np.diff(edges), **bars)


class PosteriorDisplay:
    """Class probabilities over a rectangle of the plane, a panel for each class.

    Parameters
    ----------
    x, y : ndarray of shape (resolution,)
        Coordinates of the grid.
    proba : ndarray of shape (resolution, resolution, c)
        Probabilities; the first axis is y, the second x.
    names : sequence of str
        Names of the classes.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes of shape (c,)
    figure_ : matplotlib Figure
    surfaces_ : list
        The filled contours, or images, of the panels.
    colorbar_ : matplotlib Colorbar or None
    """

    def __init__(self, x: Array, y: Array, proba: Array, names: Sequence[str]) -> None:
        self.x = x
        self.y = y
        self.proba = proba
        self.names = names

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
        if limits is None:
            if X is None:
                raise ValueError("Give X or limits: without them there is no rectangle to draw.")
            limits = _around(X)
        names = [f"class {k}" for k in estimator.classes_] if names is None else names
        return cls.from_function(estimator.predict_proba, limits, names=names, **kwargs)

    @classmethod
    def from_function(
        cls,
        function: Callable[[Array], Any],
        limits: Limits,
        *,
        resolution: int = 100,
        names: Any = None,
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
        **kwargs
            For :meth:`plot`.
        """
        _pyplot()
        x, y = (np.linspace(low, high, resolution) for low, high in limits)
        points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
        proba = np.asarray(function(points), dtype=float).reshape(resolution, resolution, -1)
        names = [f"class {k}" for k in range(proba.shape[2])] if names is None else names
        return cls(x, y, proba, list(names)).plot(**kwargs)

    def plot(
        self, axes: Any = None, *, kind: str = "contourf", colorbar: bool = True, cmap: str = "viridis"
    ) -> PosteriorDisplay:
        """Draw.

        Parameters
        ----------
        axes : sequence of matplotlib Axes, optional
            One for each class; a new figure with a row of them by default.
        kind : {"contourf", "pcolormesh"}, default="contourf"
            Filled contours in steps of a tenth, or a heat map.
        colorbar : bool, default=True
            Whether to add a colour bar, 0 to 1, beside the last panel.
        cmap : str, default="viridis"
            Colour map.
        """
        if kind not in ("contourf", "pcolormesh"):
            raise ValueError(f"kind={kind!r} is not known: use 'contourf' or 'pcolormesh'.")
        self.axes_ = self._axes(axes)
        self.figure_ = self.axes_[0].figure
        self.surfaces_ = [self._draw(ax, k, kind, cmap) for k, ax in enumerate(self.axes_)]
        self.axes_[0].set_ylabel("$x_2$")
        self.colorbar_ = None
        if colorbar:
            bar = {"label": "probability", "ticks": np.linspace(0, 1, 6)}
            self.colorbar_ = self.figure_.colorbar(self.surfaces_[-1], ax=list(self.axes_), **bar)
        return self

    def _axes(self, axes: Any) -> Array:
        c = self.proba.shape[2]
        if axes is None:
            size = {"figsize": (3.2 * c + 0.8, 3.2), "layout": "constrained"}
            axes = _pyplot().subplots(1, c, sharex=True, sharey=True, squeeze=False, **size)[1]
        axes = np.ravel(np.asarray(axes, dtype=object))
        if len(axes) != c:
            raise ValueError(f"There are {c} classes but {len(axes)} axes: give one for each class.")
        return axes

    def _draw(self, ax: Any, k: int, kind: str, cmap: str) -> Any:
        values = self.proba[..., k]
        if kind == "contourf":
            # Rounding may lift a probability a hair above 1, which contours would leave blank.
            surface = ax.contourf(self.x, self.y, values.clip(0, 1), levels=np.linspace(0, 1, 11), cmap=cmap)
        else:
            surface = ax.pcolormesh(self.x, self.y, values, vmin=0, vmax=1, cmap=cmap, shading="nearest")
        ax.set(title=self.names[k], xlabel="$x_1$", aspect="equal")
        return surface


def _around(X: Any, margin: float = 0.1) -> Limits:
    """The rectangle around two columns, with a margin."""
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X has shape {X.shape}; only two features can be drawn in the plane.")
    low, high = X.min(axis=0), X.max(axis=0)
    extra = margin * np.where(high > low, high - low, 1)
    (a, c), (b, d) = low - extra, high + extra
    return (float(a), float(b)), (float(c), float(d))


def _pyplot() -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Pictures need matplotlib: install it with  pip install 'leastwise[plot]'") from None
    return plt
