"""Reliability diagram: predicted probabilities against observed frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.displays._base import (
    ROWS,
    PredictionDisplay,
    add_histogram_axes,
    check_option,
    draw_diagonal,
    histogram_axes,
    in_legend,
    literal,
    next_style,
    pyplot,
    reliability_labels,
    text_color,
)
from leastwise.inspection.outcomes import (
    Outcomes,
    class_outcomes,
    concatenated,
    has_proba,
    is_table,
    outcomes_by_label,
)
from leastwise.metrics.calibration import equal_mass_bins
from leastwise.metrics.reliability import reliability_bins

Array = np.ndarray

#: Axis labels where the events are labels or classes.
PROBABILITY = ("Probability", "Share that was true")
DIAGONAL = "perfect calibration"


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(PredictionDisplay):
    """Reliability diagram: confidence against accuracy.

    The confidence of a row is the probability of its most probable class. With ``pos_label`` it is the probability of
    that class, and its frequency takes the place of the accuracy. Rows are put into bins of about equal size by
    confidence; each point of the diagram is a bin, with an interval for its accuracy. With several labels per row,
    every known label counts as a row.

    Parameters
    ----------
    confidence, accuracy : ndarray of shape (bins,)
        Mean confidence and share of correct rows in each bin, in rising order of confidence.
    counts : ndarray of int of shape (bins,)
        Number of rows in each bin.
    error : float
        Expected calibration error of these bins, see
        :func:`leastwise.metrics.expected_calibration_error`.
    top : ndarray of shape (n,)
        Confidence of every row, for the histogram.
    name : str, optional
        Name of the predictions in the legend.
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
    GroupedReliabilityDisplay : by task, by label or by class.

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

    confidence: Array
    accuracy: Array
    counts: Array
    error: float
    top: Array
    name: str | None = None
    low: Array | None = None
    high: Array | None = None
    axis_labels: tuple[str, str] = ("Confidence", "Accuracy")

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
            True classes, or a table of labels with NaN for unknown ones.
        proba : array-like of shape (n, c), (n,) or (n, T), or list
            Probabilities, one column per class; or those of the second class; or of labels, as returned by
            :class:`leastwise.MultiLabelLSPC`. Rows with NaN are left out.
        classes : array-like of shape (c,), optional
            Labels of the columns; by default the sorted labels of ``y_true``.
        pos_label : optional
            Show the probability of this class. By default that of the most probable class, and of labels that of
            their second class.
        n_bins : int, default=15
            Number of bins; fewer where there are fewer rows.
        interval : {"exact", "bootstrap"} or None, default="exact"
            Clopper-Pearson interval of every bin, whose coverage is at least ``level`` for independent rows; or
            quantiles over 1,000 bootstrap draws of rows.
        level : float, default=0.95
        groups : array-like of shape (n,), optional
            With ``interval="bootstrap"``: rows of one group, such as one person, are drawn together.
        name : str, optional
            For the legend.
        model : MultiLabelLSPC, optional
            The model whose labels and classes ``y_true`` has.
        **kwargs
            For :meth:`plot`.
        """
        pyplot()
        if is_table(y_true):
            outcomes, labels = concatenated(outcomes_by_label(y_true, proba, top=False, model=model)), PROBABILITY
        else:
            outcomes, labels = class_outcomes(y_true, proba, classes, pos_label), reliability_labels(pos_label)
            if groups is not None:
                groups, there = np.asarray(groups), has_proba(proba)
                if len(groups) != len(there):
                    raise ValueError(
                        f"groups has {len(groups)} entries but there are {len(there)} rows: give one for each."
                    )
                groups = groups[there]
        return cls._from_outcomes(outcomes, n_bins, interval, level, groups, name, labels).plot(**kwargs)

    @classmethod
    def _from_outcomes(
        cls,
        outcomes: Outcomes,
        n_bins: int,
        interval: str | None,
        level: float,
        groups: Any,
        name: str | None,
        labels: tuple[str, str],
    ) -> ReliabilityDisplay:
        """Compute the bins and their intervals, without drawing."""
        check_option("interval", interval, ("exact", "bootstrap", None))
        if int(n_bins) < 1:
            raise ValueError(f"n_bins={n_bins!r} must be 1 or more.")
        if not 0 < level < 1:
            raise ValueError(f"level={level!r} must be between 0 and 1, such as 0.95.")
        if groups is not None and interval != "bootstrap":
            raise ValueError("groups= needs interval='bootstrap', which draws whole groups.")
        bins = reliability_bins(outcomes.p, outcomes.true, equal_mass_bins(outcomes.p, int(n_bins)))
        low, high = None, None
        if interval == "exact":
            low, high = bins.exact_interval(level)
        elif interval == "bootstrap":
            low, high = bins.bootstrap_interval(outcomes.true, level, groups)
        return cls(bins.p, bins.share, bins.counts, bins.error, outcomes.p, name, low, high, labels)

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
            Axes to draw on; a new figure by default.
        name : str, optional
            Replaces the name of the display.
        ref_line : bool, default=True
            Draw the diagonal of perfect calibration.
        histogram : bool, "below" or "behind", default=True
            Draw the distribution of the confidence below the diagram or behind the curve. True is below in a new
            figure and on axes that have one below already, and behind on other axes.
        **kwargs
            For ``ax.plot`` of the curve.
        """
        check_option("histogram", histogram, (True, False, "below", "behind"))
        if ax is None:
            ax = pyplot().subplots(layout="constrained")[1]
            histogram = "below" if histogram is True else histogram
        if histogram is True:
            histogram = "behind" if histogram_axes(ax) is None else "below"
        name = self.name if name is None else name
        label = f"ECE {self.error:.4f}" if name is None else f"{literal(name)} (ECE {self.error:.4f})"
        if ref_line:
            draw_diagonal(ax, label=DIAGONAL)
        self.draw_curve(ax, label=label, **kwargs)
        ax.set(xlabel=self.axis_labels[0], ylabel=self.axis_labels[1], xlim=(0, 1.02), ylim=(0, 1.03))
        self.histogram_ = self._draw_histogram(ax, histogram)
        ax.legend(loc="best", framealpha=0.9)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def draw_curve(self, ax: Any, *, bars: bool = True, **kwargs: Any) -> None:
        """Draw only the curve and its intervals."""
        (self.line_,) = ax.plot(self.confidence, self.accuracy, **{**next_style(ax), "ms": 4, "zorder": 3, **kwargs})
        self.bars_ = None
        if bars and self.low is not None:
            style = {"color": self.line_.get_color(), "lw": 1, "alpha": 0.7, "zorder": 2}
            self.bars_ = ax.vlines(self.confidence, self.low, self.high, **style)

    def draw_histogram_behind(self, ax: Any, height: float | None = None, **kwargs: Any) -> None:
        """Draw the histogram at the foot of the axes, as shares of the rows or scaled to a maximal height."""
        share, edges = self._histogram()
        share = share if height is None else height * share / share.max()
        # In axes coordinates, so that the bars stay whole if the user zooms in on the curve.
        style = {
            "align": "edge",
            "color": text_color(),
            "alpha": 0.15,
            "zorder": 0,
            "transform": ax.get_xaxis_transform(),
        }
        ax.bar(edges[:-1], share, width=np.diff(edges), **{**style, **kwargs})

    def _draw_histogram(self, ax: Any, where: bool | str) -> Any:
        if where == "behind":
            self.draw_histogram_behind(ax, label=None if in_legend(ax, ROWS) else ROWS)
        if where != "below":
            return None
        below = histogram_axes(ax) or add_histogram_axes(ax)
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
