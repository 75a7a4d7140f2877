"""Pictures of many tasks: what sharing brings to each, and which go together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

from leastwise.display import _pyplot
from leastwise.task_reports import TaskReport, task_report
from leastwise.task_text import ALL, METRICS, shortened

Array = np.ndarray

#: The versions of a report: label, and style of the dots. Shapes differ too, for those who see no colours, and sizes:
#: where dots coincide, all can be seen.
STYLES: dict[str, tuple[str, dict[str, Any]]] = {
    "independent": ("independent", {"marker": "o", "mec": "tab:blue", "mfc": "none", "ms": 7.5}),
    "pooled": ("pooled", {"marker": "s", "mec": "tab:orange", "mfc": "none", "ms": 6.5}),
    "multi_task": ("multi-task", {"marker": "D", "mec": "black", "mfc": "black", "ms": 4}),
}
#: Names are cut after so many letters; of more tasks than this only some are named.
NAME, NAMED_LINES, NAMED_CELLS = 28, 70, 40
#: Error bars can be told apart up to so many tasks.
BARS = 40


class TaskReportDisplay:
    """A line for every task, with its held-out log-loss under independent, pooled and multi-task models.

    Tasks are sorted by what the multi-task model gains over the independent one, the largest gain at the top. Tasks
    that have no value, the AUC of a task with one class for instance, are left out.

    Parameters
    ----------
    names : sequence of str
        Names of the tasks.
    values : mapping of str to ndarray of shape (T,)
        For the versions "independent", "pooled" and "multi_task", the metric of each task; NaN is not drawn.
    overall : mapping of str to float
        The same for all rows together.
    metric : {"log_loss", "auc", "calibration"}, default="log_loss"
    errors : ndarray of shape (T + 1,), optional
        Standard errors of the gain over independent models, the last one for all rows together: thin bars at the
        multi-task model's dots, of 40 tasks at most. Reports have them for the log-loss.

    Attributes
    ----------
    order_ : ndarray of int
        The tasks that are drawn, from the top to the bottom.
    ax_, figure_ : matplotlib Axes and Figure
    dots_ : dict of str to matplotlib Line2D
        The dots of each version; y is the place of the task, 0 at the top, and all tasks together at the bottom.
    lines_ : dict of str to matplotlib Line2D
        The reference lines, all tasks together.
    bars_ : matplotlib LineCollection or None
        The error bars.

    Examples
    --------
    >>> from leastwise.datasets import make_related_tasks
    >>> from leastwise.display_tasks import TaskReportDisplay
    >>> from leastwise import task_report
    >>> data = make_related_tasks(4, 20, random_state=0)
    >>> report = task_report(data.X, data.y, data.task)
    >>> display = TaskReportDisplay.from_report(report)
    """

    def __init__(
        self,
        names: Sequence[str],
        values: Mapping[str, Array],
        overall: Mapping[str, float],
        metric: str = "log_loss",
        errors: Array | None = None,
    ) -> None:
        self.names = names
        self.values = values
        self.overall = overall
        self.metric = metric
        self.errors = errors

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, tasks: Any = None, *, metric: str = "log_loss", **kwargs: Any
    ) -> TaskReportDisplay:
        """Fit the three versions of a model and draw their held-out predictions.

        Parameters
        ----------
        estimator : MultiTaskLSPC
            The settings; it need not be fitted, and is not changed.
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,)
        tasks : array-like of shape (n,), optional
            The task of every row, where X does not hold them.
        metric : {"log_loss", "auc", "calibration"}, default="log_loss"
        **kwargs
            For :meth:`plot`.
        """
        _pyplot()
        _check_metric(metric)
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
        _pyplot()
        _check_metric(metric)
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
            Where; a new figure, higher with more tasks, by default.
        ref_line : bool, default=True
            Whether to draw a line for all rows of all tasks together, one for each version.
        """
        self.order_ = self._order()
        columns = {v: self._column(v, ref_line) for v in STYLES}
        T, place = len(self.order_), np.arange(len(self.order_) + ref_line)
        if ax is None:
            size = (7.5, float(np.clip(1.3 + 0.24 * len(place), 2.4, 18)))
            ax = _pyplot().subplots(figsize=size, layout="constrained")[1]
        # A thin line behind the dots of a task: one sees which of them belong together.
        stacked = np.array(list(columns.values()))
        ax.hlines(place, stacked.min(axis=0), stacked.max(axis=0), color="0.8", lw=1.5, zorder=1)
        self.dots_ = {v: self._draw_dots(ax, v, column, place) for v, column in columns.items()}
        self.bars_ = self._draw_bars(ax, columns["multi_task"], place)
        self.lines_ = {v: self._draw_line(ax, v) for v in STYLES} if ref_line else {}
        some, short = _thinned(T, NAMED_LINES), shortened(self.names, NAME)
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
        return ax.plot(column, place, ls="", zorder=3, label=name, **style)[0]

    def _draw_bars(self, ax: Any, column: Array, place: Array) -> Any:
        if self.errors is None or len(self.order_) > BARS:
            return None
        error = self.errors[np.append(self.order_, -1)][: len(place)]
        some = ~np.isnan(error)
        low, high = (column - error)[some], (column + error)[some]
        return ax.hlines(place[some], low, high, color="black", lw=0.8, zorder=2)

    def _draw_line(self, ax: Any, version: str) -> Any:
        style = STYLES[version][1]
        return ax.axvline(self.overall[version], color=style["mec"], ls="--", lw=1, alpha=0.6, zorder=0)

    def _finish(self, ax: Any, T: int, ref_line: bool) -> None:
        ax.tick_params(axis="y", labelsize="small" if T > 12 else "medium", length=0)
        if ref_line:
            ax.get_yticklabels()[-1].set_fontweight("bold")
            ax.axhline(T - 0.5, color="0.5", lw=0.8)
        missing = len(self.names) - T
        remarks = [f"(tasks without one, not shown: {missing})"] if missing else []
        if self.bars_ is not None:
            remarks.append("(bars: ± one standard error of the gain over independent)")
        label = "\n".join([f"Held-out {METRICS[self.metric]}", *remarks, *_named(T, NAMED_LINES)])
        ax.set(xlabel=label, ylim=(T + ref_line - 0.4, -0.6))
        ax.grid(axis="y", color="0.93", lw=0.8)
        ax.set_axisbelow(True)
        ax.spines[["top", "right", "left"]].set_visible(False)
        # Above the axes, where no task can be hidden behind it.
        ax.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=3, frameon=False, borderaxespad=0.2, handletextpad=0.2
        )


class SimilarityDisplay:
    """A heat map of similarities between tasks, or of which tasks help which.

    Tasks that go together stand together: by default they are ordered as the leaves of a hierarchical clustering.

    Parameters
    ----------
    matrix : ndarray of shape (T, T)
        In the order of ``names``.
    names : sequence of str
        Names of the tasks.
    signed : bool, default=False
        Whether values are above or below zero, and zero is to have the neutral colour. The diagonal, which in
        ``helps`` is far larger than all else, is not drawn then.
    label : str, default="similarity"
        What the colours mean.
    axis_labels : (str, str), default=("", "")
        Of the columns and of the rows.
    order : ndarray of int of shape (T,), optional
        The tasks from the left to the right, and from the top to the bottom; by default from a clustering.
    title : str, default=""
        Above the map.

    Attributes
    ----------
    order_ : ndarray of int of shape (T,)
        The tasks as they are drawn.
    ax_, figure_ : matplotlib Axes and Figure
    image_ : matplotlib AxesImage
    colorbar_ : matplotlib Colorbar or None

    Examples
    --------
    >>> import numpy as np
    >>> from leastwise.display_tasks import SimilarityDisplay
    >>> display = SimilarityDisplay.from_matrix(np.eye(3), ["a", "b", "c"])
    """

    def __init__(
        self,
        matrix: Array,
        names: Sequence[str],
        signed: bool = False,
        label: str = "similarity",
        axis_labels: tuple[str, str] = ("", ""),
        order: Array | None = None,
        title: str = "",
    ) -> None:
        self.matrix = matrix
        self.names = names
        self.signed = signed
        self.label = label
        self.axis_labels = axis_labels
        self.order = order
        self.title = title

    @classmethod
    def from_estimator(cls, estimator: Any, *, coupling: bool = False, **kwargs: Any) -> SimilarityDisplay:
        """Draw the similarities of a fitted model.

        Parameters
        ----------
        estimator : MultiTaskLSPC
        coupling : bool, default=False
            Draw ``coupling_``, how much the tasks have in common at the chosen sharing, instead of ``similarity_``.
        **kwargs
            For :meth:`plot`.
        """
        matrix = estimator.coupling_ if coupling else estimator.similarity_
        label = "coupling" if coupling else "similarity"
        alike = len(matrix) > 1 and _all_alike(estimator.similarity_) and _off_diagonal(estimator.similarity_).any()
        title = f"all tasks share alike (sharing {estimator.sharing_:g})" if alike else ""
        return cls.from_matrix(matrix, estimator.tasks_, label=label, title=title, **kwargs)

    @classmethod
    def from_report(cls, report: TaskReport, **kwargs: Any) -> SimilarityDisplay:
        """Draw which tasks help which, the tasks in the same order as their similarities where these differ.

        Parameters
        ----------
        report : TaskReport
            See :func:`leastwise.task_report`.
        **kwargs
            For :meth:`plot`.
        """
        if report.helps is None:
            raise ValueError(f"The report does not say which tasks help which: {report.helps_note}")
        S = report.similarity
        words: dict[str, Any] = {
            "label": "squared error saved",
            "axis_labels": ("task that helps", "task that is helped"),
        }
        order = None if _all_alike(S) else _clustered(S, signed=False)
        return cls.from_matrix(report.helps, report.tasks, signed=True, order=order, **words, **kwargs)

    @classmethod
    def from_matrix(
        cls,
        matrix: Any,
        names: Any = None,
        *,
        signed: bool | None = None,
        label: str = "similarity",
        axis_labels: tuple[str, str] = ("", ""),
        order: Any = None,
        title: str = "",
        **kwargs: Any,
    ) -> SimilarityDisplay:
        """Draw any square matrix.

        Parameters
        ----------
        matrix : array-like of shape (T, T)
        names : sequence, optional
            Names of the tasks; by default their numbers.
        signed : bool, optional
            See :class:`SimilarityDisplay`; by default whether any value off the diagonal is below zero.
        label, axis_labels, order, title
            See :class:`SimilarityDisplay`.
        **kwargs
            For :meth:`plot`.
        """
        _pyplot()
        matrix = np.array(matrix, dtype=float)
        names = range(len(matrix)) if names is None else list(names)
        if matrix.ndim != 2 or matrix.shape != (len(names), len(names)) or not len(names):
            raise ValueError(
                f"matrix has shape {matrix.shape} and there are {len(names)} names: give one row, one column and one "
                "name for each task."
            )
        if signed is None:
            signed = bool((_off_diagonal(matrix) < 0).any())
        if order is not None and sorted(order) != list(range(len(names))):
            raise ValueError(f"order={order!r} must hold every number from 0 to {len(names) - 1} once.")
        order = None if order is None else np.asarray(order)
        return cls(matrix, [str(name) for name in names], signed, label, axis_labels, order, title).plot(**kwargs)

    def plot(self, ax: Any = None, *, cmap: str | None = None, colorbar: bool = True) -> SimilarityDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where; a new figure, larger with more tasks, by default.
        cmap : str, optional
            Colour map; by default "viridis", or "RdBu" where values are signed.
        colorbar : bool, default=True
            Whether to add a colour bar.
        """
        T = len(self.names)
        if ax is None:
            side = float(np.clip(0.24 * T, 2.8, 7.5)) + 0.07 * min(NAME, max(map(len, self.names)))
            ax = _pyplot().subplots(figsize=(side + 1.4, side + 0.5), layout="compressed")[1]
        self.order_ = _clustered(self.matrix, self.signed) if self.order is None else self.order
        shown = self.matrix[np.ix_(self.order_, self.order_)]
        if self.signed:
            np.fill_diagonal(shown, np.nan)
        cmap = cmap or ("RdBu" if self.signed else "viridis")
        self.image_ = ax.imshow(shown, cmap=cmap, interpolation="nearest", **self._limits())
        ax.set_facecolor("0.85")  # where there is no value
        self._write_names(ax, T)
        self.ax_, self.figure_, self.colorbar_ = ax, ax.figure, None
        if colorbar:
            beside = ax.inset_axes((1.03, 0.0, 0.045, 1.0))  # as high as the map, whatever its aspect
            bar = {"label": self.label, "extend": "both" if self.signed else "neither"}
            self.colorbar_ = self.figure_.colorbar(self.image_, cax=beside, **bar)
        return self

    def _limits(self) -> dict[str, float]:
        """From zero to the largest value; symmetric where they are signed."""
        if not self.signed:
            known = self.matrix[~np.isnan(self.matrix)]
            return {"vmin": min(0.0, float(known.min(initial=0))), "vmax": float(known.max(initial=0)) or 1.0}
        size = np.abs(_off_diagonal(self.matrix))
        size = size[size > 1e-9 * np.nanmax(size, initial=0)]
        # A few pairs are far beyond the rest, which would all look white beside them.
        far = float(np.quantile(size, 0.97)) if len(size) else 1.0
        return {"vmin": -far, "vmax": far}

    def _write_names(self, ax: Any, T: int) -> None:
        some, short = _thinned(T, NAMED_CELLS), shortened(self.names, NAME)
        names = [short[i] for i in self.order_[some]]
        size = "medium" if T <= 12 else "small" if T <= 25 else "x-small"
        upright = {} if max(map(len, names)) <= 2 else {"rotation": 90}
        ax.set_xticks(some, names, fontsize=size, **upright)
        ax.set_yticks(some, names, fontsize=size)
        ax.tick_params(length=0 if len(some) == T else 2)
        below = [line for line in (self.axis_labels[0], *_named(T, NAMED_CELLS)) if line]
        ax.set(xlabel="\n".join(below), ylabel=self.axis_labels[1])
        if self.title:
            ax.set_title(self.title, fontsize="medium")


def _check_metric(metric: str) -> None:
    if metric not in METRICS:
        raise ValueError(f"metric={metric!r} is not known: use one of {list(METRICS)}.")


def _thinned(T: int, most: int) -> Array:
    """Places that are named: all, or every second, third, ..."""
    return np.arange(0, T, -(-T // most))


def _named(T: int, most: int) -> list[str]:
    """A remark where only some are."""
    step = -(-T // most)
    end = "th" if step % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(step % 10, "th")
    return [f"(every {step}{end} task is named)"] if step > 1 else []


def _off_diagonal(matrix: Array) -> Array:
    return matrix[~np.eye(len(matrix), dtype=bool)]


def _all_alike(matrix: Array) -> bool:
    """Whether there is no difference between pairs of tasks."""
    off = _off_diagonal(np.nan_to_num(matrix))
    return bool(np.ptp(off) <= 1e-12 * np.abs(off).max()) if len(off) else True


def _clustered(matrix: Array, signed: bool) -> Array:
    """The order of the leaves where tasks are merged by mean similarity; as given where all are equally similar."""
    S = np.nan_to_num((matrix + matrix.T) / 2)
    if _all_alike(S):
        return np.arange(len(S))
    if signed:
        # A few pairs help each other far more than the rest; the roots let the rest count too.
        S = np.sign(S) * np.sqrt(np.abs(S))
    distance = _off_diagonal(S).max() - S
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    return leaves_list(tree).astype(int)
