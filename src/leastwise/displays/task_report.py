"""Held-out metrics of independent, pooled and multi-task models, by task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.displays._base import ON_WHITE, check_option, fit_names, pyplot, text_color, thinned, thinning_note
from leastwise.inspection.task_report import TaskReport, task_report
from leastwise.inspection.task_text import ALL, METRICS

Array = np.ndarray

BLUE, ORANGE = ON_WHITE[0], ON_WHITE[1]
#: Label and style of each version. Shapes differ too, for colour-blind readers, and sizes, so that coinciding dots
#: can be seen. Those without a colour have the colour of text.
STYLES: dict[str, tuple[str, dict[str, Any]]] = {
    "independent": ("independent", {"marker": "o", "mec": BLUE, "mfc": "none", "ms": 7.5}),
    "pooled": ("pooled", {"marker": "s", "mec": ORANGE, "mfc": "none", "ms": 6.5}),
    "multi_task": ("multi-task", {"marker": "D", "ms": 4}),
}
#: Names are cut after this many characters; of more tasks than ``MAX_NAMED`` only some are named.
MAX_NAME, MAX_NAMED = 28, 70
#: Error bars are drawn for at most this many tasks.
MAX_BARS = 40


@dataclass(eq=False, repr=False)
class TaskReportDisplay:
    """A line for every task, with its held-out log-loss in independent, pooled and multi-task models.

    Tasks are sorted by the gain of the multi-task model over the independent one, the largest at the top. Tasks
    without a value, such as the AUC of a task with one class, are left out.

    Parameters
    ----------
    names : sequence of str
        Names of the tasks.
    values : mapping of str to ndarray of shape (T,)
        The metric of each task for "independent", "pooled" and "multi_task"; NaN is not drawn.
    overall : mapping of str to float
        The metric of all rows together.
    metric : {"log_loss", "auc", "calibration"}, default="log_loss"
    errors : ndarray of shape (T + 1,), optional
        Standard errors of the gain over independent models, the last one for all rows together. They are drawn as
        thin bars at the dots of the multi-task model, for at most 40 tasks. Reports have them for the log-loss.

    Attributes
    ----------
    order_ : ndarray of int
        The drawn tasks, from top to bottom.
    ax_, figure_ : matplotlib Axes and Figure
    dots_ : dict of str to matplotlib Line2D
        The dots of each version; y is the position of the task, 0 at the top, with all tasks together at the bottom.
    lines_ : dict of str to matplotlib Line2D
        The reference lines of all tasks together.
    bars_ : matplotlib LineCollection or None
        The error bars.

    Examples
    --------
    >>> from leastwise.datasets import make_related_tasks
    >>> from leastwise.displays import TaskReportDisplay
    >>> from leastwise import task_report
    >>> data = make_related_tasks(4, 20, random_state=0)
    >>> report = task_report(data.X, data.y, data.task)
    >>> display = TaskReportDisplay.from_report(report)
    """

    names: Sequence[str]
    values: Mapping[str, Array]
    overall: Mapping[str, float]
    metric: str = "log_loss"
    errors: Array | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, tasks: Any = None, *, metric: str = "log_loss", **kwargs: Any
    ) -> TaskReportDisplay:
        """Fit the three versions of a model and draw their held-out predictions.

        Parameters
        ----------
        estimator : MultiTaskLSPC
            The settings; it need not be fitted and is not changed.
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,)
        tasks : array-like of shape (n,), optional
            The task of every row, if X has no column of tasks.
        metric : {"log_loss", "auc", "calibration"}, default="log_loss"
        **kwargs
            For :meth:`plot`.
        """
        pyplot()
        check_option("metric", metric, list(METRICS))
        return cls.from_report(task_report(X, y, tasks, model=estimator), metric=metric, **kwargs)

    @classmethod
    def from_report(cls, report: TaskReport, *, metric: str = "log_loss", **kwargs: Any) -> TaskReportDisplay:
        """Draw a report.

        Parameters
        ----------
        report : TaskReport
            See :func:`leastwise.task_report`.
        metric : {"log_loss", "auc", "calibration"}, default="log_loss"
        **kwargs
            For :meth:`plot`.
        """
        pyplot()
        check_option("metric", metric, list(METRICS))
        columns = {version: report.table[f"{metric}_{version}"] for version in STYLES}
        values = {version: column[:-1] for version, column in columns.items()}
        overall = {version: float(column[-1]) for version, column in columns.items()}
        errors = report.table["gain_over_independent_se"] if metric == "log_loss" else None
        return cls([str(name) for name in report.tasks], values, overall, metric, errors).plot(**kwargs)

    def plot(self, ax: Any = None, *, ref_line: bool = True) -> TaskReportDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure, higher for more tasks.
        ref_line : bool, default=True
            Draw a line for each version at its metric of all rows together.
        """
        self.order_ = self._order()
        columns = {v: self._column(v, ref_line) for v in STYLES}
        T, place = len(self.order_), np.arange(len(self.order_) + ref_line)
        if ax is None:
            size = (7.5, float(np.clip(1.3 + 0.24 * len(place), 2.4, 18)))
            ax = pyplot().subplots(figsize=size, layout="constrained")[1]
        # A thin line connects the dots of a task.
        stacked = np.array(list(columns.values()))
        ax.hlines(place, stacked.min(axis=0), stacked.max(axis=0), color=text_color(), alpha=0.2, lw=1.5, zorder=1)
        self.dots_ = {v: self._draw_dots(ax, v, column, place) for v, column in columns.items()}
        self.bars_ = self._draw_bars(ax, columns["multi_task"], place)
        self.lines_ = {v: self._draw_line(ax, v) for v in STYLES} if ref_line else {}
        some, short = thinned(T, MAX_NAMED), fit_names(self.names, MAX_NAME)
        names = [short[i] for i in self.order_[some]]
        ax.set_yticks(np.append(some, place[T:]), names + [ALL] * ref_line)
        self._finish(ax, T, ref_line)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _order(self) -> Array:
        gain = self.values["independent"] - self.values["multi_task"]
        gain = -gain if self.metric == "auc" else gain
        order = np.argsort(-np.round(gain, 12), kind="stable")
        return order[~np.isnan([column[order] for column in self.values.values()]).any(axis=0)]

    def _column(self, version: str, ref_line: bool) -> Array:
        """Values in the order of the lines."""
        column = self.values[version][self.order_]
        return np.append(column, self.overall[version]) if ref_line else column

    def _draw_dots(self, ax: Any, version: str, column: Array, place: Array) -> Any:
        name, style = STYLES[version]
        return ax.plot(column, place, ls="", zorder=3, label=name, **{"color": text_color(), **style})[0]

    def _draw_bars(self, ax: Any, column: Array, place: Array) -> Any:
        if self.errors is None or len(self.order_) > MAX_BARS:
            return None
        error = self.errors[np.append(self.order_, -1)][: len(place)]
        some = ~np.isnan(error)
        low, high = (column - error)[some], (column + error)[some]
        return ax.hlines(place[some], low, high, color=text_color(), lw=0.8, zorder=2)

    def _draw_line(self, ax: Any, version: str) -> Any:
        style = STYLES[version][1]
        return ax.axvline(
            self.overall[version], color=style.get("mec", text_color()), ls="--", lw=1, alpha=0.6, zorder=0
        )

    def _finish(self, ax: Any, T: int, ref_line: bool) -> None:
        ax.tick_params(axis="y", labelsize="small" if T > 12 else "medium", length=0)
        if ref_line:
            ax.get_yticklabels()[-1].set_fontweight("bold")
            ax.axhline(T - 0.5, color=text_color(), alpha=0.5, lw=0.8)
        missing = len(self.names) - T
        notes = [f"(not shown: {missing} without a value)"] if missing else []
        if self.bars_ is not None:
            notes.append("(bars: ± one standard error of the gain over independent)")
        label = "\n".join([f"Held-out {METRICS[self.metric]}", *notes, *thinning_note(T, MAX_NAMED)])
        ax.set(xlabel=label, ylim=(T + ref_line - 0.4, -0.6))
        ax.grid(axis="y", color=text_color(), alpha=0.07, lw=0.8)
        ax.set_axisbelow(True)
        ax.spines[["top", "right", "left"]].set_visible(False)
        # Above the axes, where it hides no task.
        ax.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, borderaxespad=0.2, handletextpad=0.2
        )
