"""The reliability diagram: what is said with 90 %, does it turn out true in 90 % of the cases?"""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.displays._drawing import ROWS, axes_below, ink, is_new, new_axes_below, next_style, pyplot
from leastwise.displays._models import FromModels
from leastwise.inspection.outcomes import (
    Said,
    binned,
    by_label,
    choose,
    interval_of,
    is_table,
    said,
    together,
    words_for,
)

Array = np.ndarray

#: What the axes are called.
PROBABILITY = ("Probability", "Share that was true")
DIAGONAL = "perfect calibration"


class ReliabilityDisplay(FromModels):
    """Confidence against accuracy: does what is said with 90 % turn out true in 90 % of the cases?

    The confidence of a row is the probability of its most probable class; with ``pos_label`` the probability of one
    class takes its place, and the share of that class that of the accuracy. Rows are put into bins of the same size
    by confidence; a point of the diagram is a bin, and its bar an interval for what the accuracy would be with very
    many rows. Where every row has several labels, every known label of a row counts as a row.

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
    low, high : ndarray of shape (bins,), optional
        Ends of the intervals for the accuracy.
    axis_labels : (str, str), default=("Confidence", "Accuracy")

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_ : matplotlib Line2D
        The curve.
    bars_ : matplotlib LineCollection or None
        The intervals.
    histogram_ : matplotlib Axes or None
        The axes below, with the histogram.

    See Also
    --------
    GroupedReliabilityDisplay : task by task, label by label or class by class.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from leastwise import LSPC
    >>> from leastwise.displays import ReliabilityDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LSPC(random_state=0).fit(X[::2], y[::2])
    >>> display = ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2], n_bins=5)
    >>> display = ReliabilityDisplay.from_heldout(model, y[::2], n_bins=5)  # without other rows
    """

    def __init__(
        self,
        confidence: Array,
        accuracy: Array,
        counts: Array,
        error: float,
        top: Array,
        name: str | None = None,
        low: Array | None = None,
        high: Array | None = None,
        axis_labels: tuple[str, str] = ("Confidence", "Accuracy"),
    ) -> None:
        self.confidence = confidence
        self.accuracy = accuracy
        self.counts = counts
        self.error = error
        self.top = top
        self.name = name
        self.low = low
        self.high = high
        self.axis_labels = axis_labels

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        proba: Any,
        *,
        classes: Any = None,
        pos_label: Any = None,
        n_bins: int = 15,
        interval: str | None = "exact",
        level: float = 0.95,
        groups: Any = None,
        name: str | None = None,
        model: Any = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Draw the diagram of probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,) or (n, T)
            True classes, or tables of labels, of which some may be unknown (NaN).
        proba : array-like of shape (n, c), (n,) or (n, T), or list
            Probabilities, one column per class; or those of the second class; or of labels, as
            :class:`leastwise.MultiLabelLSPC` gives them. Rows with NaN do not count.
        classes : array-like of shape (c,), optional
            Labels of the columns; by default the sorted labels of ``y_true``.
        pos_label : optional
            Look at this class alone. By default at the most probable class, and of labels at the probability that
            they are there.
        n_bins : int, default=15
            Number of bins; fewer where there are fewer rows.
        interval : {"exact", "bootstrap"} or None, default="exact"
            Clopper and Pearson's binomial interval for every bin, which covers with at least ``level`` where rows are
            independent; or quantiles over 1,000 draws of rows with replacement.
        level : float, default=0.95
        groups : array-like of shape (n,), optional
            With ``interval="bootstrap"``: rows of one group, a person for instance, are drawn together.
        name : str, optional
            For the legend.
        model : MultiLabelLSPC, optional
            Says which classes the labels have.
        **kwargs
            For :meth:`plot`.
        """
        pyplot()
        if is_table(y_true):
            what = together(by_label(y_true, proba, top=False, model=model))
            return cls._computed(what, n_bins, interval, level, groups, name, PROBABILITY).plot(**kwargs)
        what = said(y_true, proba, classes, pos_label)
        if groups is not None:
            P, groups = np.asarray(proba, dtype=float), np.asarray(groups)
            if len(groups) != len(P):
                raise ValueError(f"groups has {len(groups)} entries but there are {len(P)} rows: give one for each.")
            groups = groups[~np.isnan(P.reshape(len(P), -1)).any(axis=1)]
        words = words_for(pos_label)
        return cls._computed(what, n_bins, interval, level, groups, name, words).plot(**kwargs)

    @classmethod
    def _computed(
        cls,
        what: Said,
        n_bins: int,
        interval: str | None,
        level: float,
        groups: Any,
        name: str | None,
        words: tuple[str, str],
    ) -> ReliabilityDisplay:
        """The numbers, not drawn."""
        bins = binned(what, n_bins)
        low, high = interval_of(bins, what.true, interval, level, groups)
        return cls(bins.p, bins.share, bins.counts, bins.error, what.p, name, low, high, words)

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        ref_line: bool = True,
        histogram: bool | str = True,
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
        histogram : bool, "below" or "behind", default=True
            How the rows spread over the confidences: below the diagram, or behind the curve. True is below in a new
            figure, or where there is one below already, and behind on axes that were given.
        **kwargs
            For ``ax.plot`` of the curve.
        """
        choose("histogram", histogram, (True, False, "below", "behind"))
        if ax is None:
            ax = pyplot().subplots(layout="constrained")[1]
            histogram = "below" if histogram is True else histogram
        if histogram is True:
            histogram = "behind" if axes_below(ax) is None else "below"
        name = self.name if name is None else name
        label = f"ECE {self.error:.4f}" if name is None else f"{name} (ECE {self.error:.4f})"
        if ref_line and is_new(ax, DIAGONAL):
            ax.plot([0, 1], [0, 1], "--", color=ink(), alpha=0.6, lw=1, zorder=1, label=DIAGONAL)
        self.draw_curve(ax, label=label, **kwargs)
        ax.set(xlabel=self.axis_labels[0], ylabel=self.axis_labels[1], xlim=(0, 1.02), ylim=(0, 1.03))
        self.histogram_ = self._draw_histogram(ax, histogram)
        ax.legend(loc="best", framealpha=0.9)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def draw_curve(self, ax: Any, *, bars: bool = True, **kwargs: Any) -> None:
        """Draw the curve and its intervals on axes, and nothing else."""
        (self.line_,) = ax.plot(self.confidence, self.accuracy, **{**next_style(ax), "ms": 4, "zorder": 3, **kwargs})
        self.bars_ = None
        if bars and self.low is not None:
            style = {"color": self.line_.get_color(), "lw": 1, "alpha": 0.7, "zorder": 2}
            self.bars_ = ax.vlines(self.confidence, self.low, self.high, **style)

    def draw_histogram_behind(self, ax: Any, height: float | None = None, **kwargs: Any) -> None:
        """Draw bars at the foot of the axes: shares of the rows, or the highest with a height that is given."""
        share, edges = self._histogram()
        share = share if height is None else height * share / share.max()
        # Heights are shares of the axes, so that the bars stay whole where the user zooms in on the curve.
        style = {"align": "edge", "color": ink(), "alpha": 0.15, "zorder": 0, "transform": ax.get_xaxis_transform()}
        ax.bar(edges[:-1], share, width=np.diff(edges), **{**style, **kwargs})

    def _draw_histogram(self, ax: Any, where: bool | str) -> Any:
        if where == "behind":
            self.draw_histogram_behind(ax, label=ROWS if is_new(ax, ROWS) else None)
        if where != "below":
            return None
        below = axes_below(ax) or new_axes_below(ax)
        below.set_xlabel(ax.get_xlabel())
        ax.set_xlabel("")
        share, edges = self._histogram()
        color = self.line_.get_color()
        below.stairs(share, edges, fill=True, color=color, alpha=0.25)
        below.stairs(share, edges, color=color)
        return below

    def _histogram(self) -> tuple[Array, Array]:
        counts, edges = np.histogram(self.top, bins=np.linspace(0, 1, 21))
        return counts / len(self.top), edges
