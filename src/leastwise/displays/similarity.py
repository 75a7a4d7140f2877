"""Heat map of similarities between tasks or labels, or of which tasks help which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.displays._base import fit_names, pyplot, thinned, thinning_note
from leastwise.inspection.outcomes import require
from leastwise.inspection.similarity import all_equal, clustered_order, dense, off_diagonal
from leastwise.inspection.task_report import TaskReport

Array = np.ndarray

#: Names are cut after this many characters; of more tasks than ``MAX_NAMED`` only some are named.
MAX_NAME, MAX_NAMED = 28, 40
#: Smallest font size, in points.
MIN_FONT = 4.5


@dataclass(eq=False, repr=False)
class SimilarityDisplay:
    """Heat map of similarities between tasks or labels, or of which tasks help which.

    The order is by default that of the leaves of a hierarchical clustering, so that similar tasks are neighbours.

    Parameters
    ----------
    matrix : ndarray of shape (T, T)
        In the order of ``names``.
    names : sequence of str
        Names of the tasks or labels.
    signed : bool, default=False
        Values are positive and negative, and zero has the neutral colour. The diagonal, which is far larger than the
        other values then, is not drawn.
    label : str, default="similarity"
        Label of the colour bar.
    axis_labels : (str, str), default=("", "")
        Labels of the columns and of the rows.
    order : ndarray of int of shape (T,), optional
        Order of the tasks from left to right and from top to bottom; by default from a clustering.
    title : str, default=""
        Title above the map.
    what : {"task", "label"}, default="task"
        What the rows and columns are.

    Attributes
    ----------
    order_ : ndarray of int of shape (T,)
        The order that is drawn.
    ax_, figure_ : matplotlib Axes and Figure
    image_ : matplotlib AxesImage
    colorbar_ : matplotlib Colorbar or None

    Examples
    --------
    >>> import numpy as np
    >>> from leastwise.displays import SimilarityDisplay
    >>> display = SimilarityDisplay.from_matrix(np.eye(3), ["a", "b", "c"])
    """

    matrix: Array
    names: Sequence[str]
    signed: bool = False
    label: str = "similarity"
    axis_labels: tuple[str, str] = ("", "")
    order: Array | None = None
    title: str = ""
    what: str = "task"

    @classmethod
    def from_estimator(cls, estimator: Any, *, coupling: bool = False, **kwargs: Any) -> SimilarityDisplay:
        """Draw the similarities of a fitted model.

        Parameters
        ----------
        estimator : fitted multi-task or multi-label model
            Or a pipeline that ends in one, or a wrapper around one.
        coupling : bool, default=False
            Draw ``coupling_``, the covariance of the tasks at the chosen sharing, instead of ``similarity_``.
        **kwargs
            For :meth:`from_matrix`.
        """
        hint = "fit a multi-task or multi-label model of leastwise, or use from_matrix"
        estimator = require(estimator, "similarity_", hint)
        what = "labels" if hasattr(estimator, "labels_") else "tasks"
        if coupling and not hasattr(estimator, "coupling_"):
            raise ValueError(
                f"{type(estimator).__name__} has no coupling_, which multi-task models have: use coupling=False."
            )
        S = dense(estimator.similarity_)
        equal = len(S) > 1 and all_equal(S) and off_diagonal(S).any()
        defaults: dict[str, Any] = {
            "names": estimator.labels_ if what == "labels" else estimator.tasks_,
            "label": "coupling" if coupling else "similarity",
            "title": f"all {what} share equally (sharing {estimator.sharing_:g})" if equal else "",
            "what": what[:-1],
        }
        return cls.from_matrix(estimator.coupling_ if coupling else S, **{**defaults, **kwargs})

    @classmethod
    def from_report(cls, report: TaskReport, **kwargs: Any) -> SimilarityDisplay:
        """Draw which tasks help which, in the clustered order of their similarities unless these are all equal.

        Parameters
        ----------
        report : TaskReport
            See :func:`leastwise.task_report`.
        **kwargs
            For :meth:`plot`.
        """
        if report.helps is None:
            raise ValueError(f"The report has no helps matrix: {report.helps_note}")
        S = report.similarity
        labels: dict[str, Any] = {
            "label": "squared error saved",
            "axis_labels": ("task that helps", "task that is helped"),
        }
        order = None if all_equal(S) else clustered_order(S, signed=False)
        return cls.from_matrix(report.helps, report.tasks, signed=True, order=order, **labels, **kwargs)

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
        what: str = "task",
        **kwargs: Any,
    ) -> SimilarityDisplay:
        """Draw any square matrix.

        Parameters
        ----------
        matrix : array-like or sparse matrix of shape (T, T)
        names : sequence, optional
            Names of the tasks; by default their numbers.
        signed : bool, optional
            See :class:`SimilarityDisplay`; by default True if any value off the diagonal is negative.
        label, axis_labels, order, title, what
            See :class:`SimilarityDisplay`.
        **kwargs
            For :meth:`plot`.
        """
        pyplot()
        matrix = dense(matrix)
        names = range(len(matrix)) if names is None else list(names)
        if matrix.ndim != 2 or matrix.shape != (len(names), len(names)) or not len(names):
            raise ValueError(
                f"matrix has shape {matrix.shape} and there are {len(names)} names: give one row, one column and one "
                "name for each task."
            )
        if signed is None:
            signed = bool((off_diagonal(matrix) < 0).any())
        if order is not None and sorted(order) != list(range(len(names))):
            raise ValueError(f"order={order!r} must contain every number from 0 to {len(names) - 1} once.")
        order = None if order is None else np.asarray(order)
        return cls(matrix, [str(name) for name in names], signed, label, axis_labels, order, title, what).plot(
            **kwargs
        )

    def plot(self, ax: Any = None, *, cmap: str | None = None, colorbar: bool = True) -> SimilarityDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default a new figure, larger for more tasks.
        cmap : str, optional
            Colour map; by default "viridis", or "RdBu" for signed values.
        colorbar : bool, default=True
            Add a colour bar.
        """
        T = len(self.names)
        given = ax is not None
        if not given:
            side = float(np.clip(0.24 * T, 2.8, 7.5)) + 0.07 * min(MAX_NAME, max(map(len, self.names)))
            ax = pyplot().subplots(figsize=(side + 1.4, side + 0.5), layout="compressed")[1]
        self.order_ = clustered_order(self.matrix, self.signed) if self.order is None else self.order
        shown = self.matrix[np.ix_(self.order_, self.order_)]
        if self.signed:
            np.fill_diagonal(shown, np.nan)
        cmap = cmap or ("RdBu" if self.signed else "viridis")
        self.image_ = ax.imshow(shown, cmap=cmap, interpolation="nearest", **self._limits())
        ax.set_facecolor("0.6")  # missing values
        self._write_names(ax, T)
        self.ax_, self.figure_, self.colorbar_ = ax, ax.figure, None
        if colorbar:
            beside = ax.inset_axes((1.03, 0.0, 0.045, 1.0))  # as high as the map
            bar = {"label": self.label, "extend": "both" if self.signed else "neither"}
            self.colorbar_ = self.figure_.colorbar(self.image_, cax=beside, **bar)
        if given:
            self._fit_names(ax, T)
        return self

    def _limits(self) -> dict[str, float]:
        """From zero to the largest value; symmetric for signed values."""
        if not self.signed:
            known = self.matrix[~np.isnan(self.matrix)]
            return {"vmin": min(0.0, float(known.min(initial=0))), "vmax": float(known.max(initial=0)) or 1.0}
        size = np.abs(off_diagonal(self.matrix))
        size = size[size > 1e-9 * np.nanmax(size, initial=0)]
        # Not the maximum: with a few very large values all others would look white.
        far = float(np.quantile(size, 0.97)) if len(size) else 1.0
        return {"vmin": -far, "vmax": far}

    def _fit_names(self, ax: Any, T: int) -> None:
        """Make names smaller, or show fewer, if given axes have no room for all."""
        figure = ax.figure.figure  # the whole figure if the axes are in a subfigure
        figure.draw_without_rendering()  # the size of the map is known only after the layout
        cell = 72 * ax.get_window_extent().height / figure.dpi / T
        names = [*ax.get_xticklabels(), *ax.get_yticklabels()]
        step = len(names) and 2 * T / len(names)
        size = max(min(names[0].get_fontsize(), 0.8 * cell * step), MIN_FONT)
        for k, name in enumerate(names):
            name.set_fontsize(size)
            name.set_visible(k % max(int(np.ceil(MIN_FONT / (0.8 * cell * step))), 1) == 0)

    def _write_names(self, ax: Any, T: int) -> None:
        some, short = thinned(T, MAX_NAMED), fit_names(self.names, MAX_NAME)
        names = [short[i] for i in self.order_[some]]
        size = "medium" if T <= 12 else "small" if T <= 25 else "x-small"
        upright = {} if max(map(len, names)) <= 2 else {"rotation": 90}
        ax.set_xticks(some, names, fontsize=size, **upright)
        ax.set_yticks(some, names, fontsize=size)
        ax.tick_params(length=0 if len(some) == T else 2)
        below = [line for line in (self.axis_labels[0], *thinning_note(T, MAX_NAMED, self.what)) if line]
        ax.set(xlabel="\n".join(below), ylabel=self.axis_labels[1])
        if self.title:
            ax.set_title(self.title, fontsize="medium")
