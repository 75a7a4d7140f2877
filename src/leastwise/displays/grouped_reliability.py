"""Reliability diagrams by task, label or class: a panel for each, or all in one diagram."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.displays._base import (
    MARKERS,
    PredictionDisplay,
    check_option,
    color,
    draw_diagonal,
    fit_names,
    given_axes,
    panels,
    pyplot,
    reliability_labels,
    text_color,
)
from leastwise.displays.reliability import DIAGONAL, PROBABILITY, ReliabilityDisplay
from leastwise.inspection.outcomes import (
    Outcomes,
    concatenated,
    is_table,
    outcomes_by_class,
    outcomes_by_label,
    outcomes_by_task,
)

Array = np.ndarray

#: Titles of panels and names in a legend are cut after this many characters.
MAX_TITLE, MAX_LEGEND = 22, 32
#: A bin of a group has at least this many rows, if the group has.
MIN_BIN_ROWS = 8
#: Panels, and named curves in one diagram, by default.
MAX_PANELS, MAX_NAMED = 30, 3


@dataclass(eq=False, repr=False)
class GroupedReliabilityDisplay(PredictionDisplay):
    """Reliability diagrams by task, label or class: a panel for each, or all in one diagram.

    Parameters
    ----------
    groups : sequence of ReliabilityDisplay
        One for each group, with its name.
    overall : ReliabilityDisplay
        Of all rows together.
    what : {"task", "label", "class"}, default="task"
        What the groups are.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        The panels, or the one diagram.
    ax_ : matplotlib Axes
        The first panel.
    figure_ : matplotlib Figure
    shown_ : ndarray of int
        The groups that have a panel, or a name in the one diagram.

    Examples
    --------
    >>> from leastwise import MultiTaskLSPC
    >>> from leastwise.datasets import make_related_tasks
    >>> from leastwise.displays import GroupedReliabilityDisplay
    >>> data = make_related_tasks(4, 40, random_state=0)
    >>> model = MultiTaskLSPC(random_state=0).fit(data.X, data.y, tasks=data.task)
    >>> display = GroupedReliabilityDisplay.from_heldout(model, data.y, tasks=data.task)
    """

    _has_name = False
    _has_tasks = True

    groups: Sequence[ReliabilityDisplay]
    overall: ReliabilityDisplay
    what: str = "task"

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        proba: Any,
        *,
        tasks: Any = None,
        classes: Any = None,
        pos_label: Any = None,
        names: Any = None,
        n_bins: int = 10,
        interval: str | None = "exact",
        level: float = 0.95,
        model: Any = None,
        **kwargs: Any,
    ) -> GroupedReliabilityDisplay:
        """Draw the diagrams: by task if tasks are given, by label if y is a table, otherwise by class.

        Parameters
        ----------
        y_true : array-like of shape (n,) or (n, T)
            True classes, or a table of labels with NaN for unknown ones.
        proba : array-like of shape (n, c), (n,) or (n, T), or list
            As for :meth:`ReliabilityDisplay.from_predictions`.
        tasks : array-like of shape (n,), optional
            The task of every row.
        classes : array-like of shape (c,), optional
            Labels of the columns; by default the sorted labels of ``y_true``.
        pos_label : optional
            With tasks: show the probability of this class instead of that of the most probable one.
        names : sequence of str, optional
            Names of the labels or classes.
        n_bins : int, default=10
            Number of bins; fewer in groups where a bin would have fewer than 8 rows.
        interval, level
            As for :meth:`ReliabilityDisplay.from_predictions`.
        model : MultiLabelLSPC, optional
            The model whose labels and classes ``y_true`` has.
        **kwargs
            For :meth:`plot`.
        """
        pyplot()
        labels = PROBABILITY
        if is_table(y_true):
            parts, what = outcomes_by_label(y_true, proba, top=False, names=names, model=model), "label"
        elif tasks is not None:
            parts, what = outcomes_by_task(y_true, proba, tasks, classes, pos_label), "task"
            labels = reliability_labels(pos_label)
        else:
            parts, what = outcomes_by_class(y_true, proba, classes), "class"
            if names is not None:
                parts = [Outcomes(part.p, part.true, str(name)) for part, name in zip(parts, names, strict=True)]
        settings = (interval, level, None)
        groups = []
        for part in parts:
            bins = min(n_bins, max(len(part.p) // MIN_BIN_ROWS, 1))
            groups.append(ReliabilityDisplay._from_outcomes(part, bins, *settings, part.name, labels))
        overall = ReliabilityDisplay._from_outcomes(concatenated(parts), n_bins, *settings, None, labels)
        return cls(groups, overall, what).plot(**kwargs)

    def plot(self, ax: Any = None, *, kind: str = "panels", most: int | None = None) -> GroupedReliabilityDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, or sequence of them, optional
            One for each panel, or one for the diagram; a new figure by default.
        kind : {"panels", "overlay"}, default="panels"
            A panel for each group, with intervals, a histogram, and the overall curve behind; or one diagram of all,
            with the overall curve in front, and names and colours for the groups that deviate most from the diagonal
            relative to chance.
        most : int, optional
            Number of panels (30 by default; groups with the most rows are shown), or of names in one diagram (3).
        """
        check_option("kind", kind, ("panels", "overlay"))
        if kind == "panels":
            return self._panels(ax, most or MAX_PANELS)
        return self._overlay(ax, MAX_NAMED if most is None else most)

    # ---------------------------------------------------------------- panels

    def _panels(self, axes: Any, most: int) -> GroupedReliabilityDisplay:
        size = np.array([len(g.top) for g in self.groups])
        self.shown_ = np.sort(np.argsort(-size, kind="stable")[:most])
        if axes is None:
            self.figure_, self.axes_ = panels(len(self.shown_), 1.55)
        else:
            self.axes_ = given_axes(axes, len(self.shown_), self._many)
            self.figure_ = self.axes_[0].figure
        titles = fit_names([self.groups[i].name for i in self.shown_], MAX_TITLE)
        for ax, i, title in zip(self.axes_, self.shown_, titles, strict=True):
            self._panel(ax, self.groups[i], title)
        if axes is None:
            note = f"\n({len(self.shown_)} of {len(size)} {self._many}, those with the most rows)"
            x, y = self.overall.axis_labels
            self.figure_.supxlabel(x + note * (len(self.shown_) < len(size)), fontsize="medium")
            self.figure_.supylabel(y, fontsize="medium")
        return self

    def _panel(self, ax: Any, group: ReliabilityDisplay, title: str) -> None:
        draw_diagonal(ax, lw=0.8)
        ax.plot(self.overall.confidence, self.overall.accuracy, color=text_color(), alpha=0.3, lw=2, zorder=1)
        group.draw_histogram_behind(ax, height=0.3)
        group.draw_curve(ax, color=color(0), marker="o", ms=3, lw=1.2)
        ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1], aspect="equal")
        ax.tick_params(labelsize="x-small")
        ax.set_title(f"{title}\n{len(group.top)} rows, ECE {group.error:.3f}", fontsize="x-small", pad=3)
        group.ax_, group.figure_, group.histogram_ = ax, ax.figure, None

    # --------------------------------------------------------------- overlay

    def _overlay(self, ax: Any, most: int) -> GroupedReliabilityDisplay:
        ax = pyplot().subplots(layout="constrained")[1] if ax is None else given_axes(ax, 1, "diagram")[0]
        distance = np.array([_distance(g) for g in self.groups])
        self.shown_ = np.argsort(-distance, kind="stable")[:most]
        draw_diagonal(ax, label=DIAGONAL)
        label: str | None = f"each {self.what}" if len(self.shown_) == 0 else f"the other {self._many}"
        for i in np.setdiff1d(np.arange(len(self.groups)), self.shown_):
            style = {"color": text_color(), "alpha": 0.25, "lw": 0.8, "marker": None, "zorder": 1, "gid": None}
            self.groups[i].draw_curve(ax, bars=False, label=label, **style)
            label = None
        names = fit_names([g.name for g in self.groups], MAX_LEGEND)
        for k, i in enumerate(self.shown_, start=1):
            style = {"color": color(k), "marker": MARKERS[k % len(MARKERS)], "label": names[i]}
            self.groups[i].draw_curve(ax, bars=False, lw=1.2, **style)
        label = f"all {self._many} (ECE {self.overall.error:.4f})"
        self.overall.draw_curve(ax, color=color(0), marker="o", lw=2.5, label=label)
        x, y = self.overall.axis_labels
        ax.set(xlabel=x, ylabel=y, xlim=(0, 1.02), ylim=(0, 1.03))
        ax.legend(loc="best", framealpha=0.9, fontsize="small")
        self.axes_, self.figure_ = np.array([ax], dtype=object), ax.figure
        return self

    @property
    def ax_(self) -> Any:
        """The first panel."""
        return self.axes_[0]

    @property
    def _many(self) -> str:
        return "classes" if self.what == "class" else f"{self.what}s"


def _distance(group: ReliabilityDisplay) -> float:
    """Mean squared distance from the diagonal over bins, in units of its variance."""
    variance = np.maximum(group.confidence * (1 - group.confidence), 1e-3) / group.counts
    return float(np.mean((group.accuracy - group.confidence) ** 2 / variance))
