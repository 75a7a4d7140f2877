"""What all displays share: matplotlib, colours, panels, names that fit, and predictions of models.

Displays have scikit-learn's form: ``from_estimator``, ``from_predictions`` and the like compute and draw, ``plot``
draws again.
"""

from __future__ import annotations

from collections.abc import Sequence
from re import finditer
from typing import Any, ClassVar, Self

import numpy as np

from leastwise.inspection.outcomes import (
    heldout_proba,
    is_table,
    legend_name,
    outermost_with,
    predicted_proba,
)
from leastwise.utils.optional import needed
from leastwise.utils.text_format import one_line, shortened

Array = np.ndarray

#: Colours for white and for black pages that colour-blind people can distinguish (Okabe and Ito); markers differ too.
ON_WHITE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
ON_BLACK = ("#56B4E9", "#E69F00", "#009E73", "#CC79A7", "#F0E442", "#D55E00")
MARKERS = ("o", "s", "D", "^", "v", "P")
#: The gid of curves drawn by displays: the next curve on the same axes takes the next colour.
CURVE = "leastwise-curve"
#: Label of histograms, and position of the axes below a diagram as fractions of its size.
ROWS, BELOW = "share of rows", (0.0, -0.27, 1.0, 0.22)
#: Names of classes on axes are cut after this many characters.
MAX_CLASS_NAME = 26


def pyplot() -> Any:
    """The module ``matplotlib.pyplot``, or an error that names the extra."""
    return needed("matplotlib.pyplot", "plot")


def check_option(name: str, value: Any, allowed: Sequence[Any]) -> None:
    """Raise an error if a value is not one of those allowed."""
    if value not in allowed:
        listed = ", ".join(repr(item) for item in allowed[:-1])
        raise ValueError(f"{name}={value!r} is not known: use {listed} or {allowed[-1]!r}.")


# ------------------------------------------------------------------------ colours and axes


def text_color() -> str:
    """The colour of text: dark on a white page, light on a black one."""
    return str(pyplot().rcParams["text.color"])


def color(k: int) -> str:
    """The k-th colour for the page."""
    from matplotlib.colors import to_rgb

    colors = ON_BLACK if sum(to_rgb(text_color())) > 1.5 else ON_WHITE
    return colors[k % len(colors)]


def next_style(ax: Any) -> dict[str, Any]:
    """Colour and marker of the next curve on the axes."""
    k = sum(line.get_gid() == CURVE for line in ax.lines)
    return {"color": color(k), "marker": MARKERS[k % len(MARKERS)], "gid": CURVE}


def draw_diagonal(ax: Any, lw: float = 1, label: str | None = None) -> None:
    """The line of perfect calibration; with a label, only if the legend does not have it yet."""
    if label is None or not in_legend(ax, label):
        ax.plot([0, 1], [0, 1], "--", color=text_color(), alpha=0.6, lw=lw, zorder=1, label=label)


def in_legend(ax: Any, label: str) -> bool:
    """True if the legend has an entry of this name."""
    return label in ax.get_legend_handles_labels()[1]


def histogram_axes(ax: Any) -> Any:
    """The axes of the histogram below a diagram, or None."""
    return next((child for child in ax.child_axes if child.get_label() == ROWS), None)


def add_histogram_axes(ax: Any) -> Any:
    """Add axes for a histogram below a diagram, which take over its tick labels."""
    below = ax.inset_axes(BELOW, sharex=ax, label=ROWS)
    below.set(ylabel="Rows", yticks=[])
    below.spines[["top", "right", "left"]].set_visible(False)
    ax.tick_params(labelbottom=False)
    return below


def panels(count: int, side: float, columns: int | None = None, ratio: float = 1.0) -> tuple[Any, Array]:
    """A figure with ``count`` panels in rows, and the panels; ``ratio`` is their height divided by their width."""
    columns = min(count, columns or max(int(np.ceil(np.sqrt(1.2 * count))), 3))
    rows = -(-count // columns)
    size = (side * columns + 0.9, side * ratio * rows + 0.7)
    share = {"sharex": True, "sharey": True, "squeeze": False}
    figure, axes = pyplot().subplots(rows, columns, figsize=size, layout="constrained", **share)
    for ax in axes.flat[count:]:
        ax.set_visible(False)
    for ax in axes.flat[max(count - columns, 0) : count]:  # the lowest of every column
        ax.tick_params(labelbottom=True)
    return figure, axes.ravel()[:count]


def given_axes(axes: Any, count: int, what: str) -> Array:
    """Axes of the caller's, checked."""
    axes = np.ravel(np.asarray(axes, dtype=object))
    if len(axes) != count:
        raise ValueError(f"There are {count} {what} but {len(axes)} axes: give one for each.")
    return axes


def log_scale(ax: Any, which: str, values: Array) -> None:
    """A logarithmic axis, with plain numbers as labels where it spans less than two powers of ten."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    ax.set(**{f"{which}scale": "log"})
    axis = getattr(ax, f"{which}axis")
    if values.max() < 100 * values.min():
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_locator(NullLocator())


# ----------------------------------------------------------------------------------- names


def fit_names(names: Sequence[Any], width: int) -> list[str]:
    """Names of at most ``width`` characters, without words that all share at the front and, if needed, at the end."""
    short = shortened(names, width)
    if any("…" in name[1:] for name in short):
        texts = [one_line(name) for name in names]
        end = _common_end(texts)
        short = shortened([text[: len(text) - end] + "…" for text in texts] if end else names, width)
    return [literal(name) for name in short]


def literal(name: Any) -> str:
    """A name in which matplotlib draws $ as it is, instead of reading a formula."""
    return str(name).replace("$", r"\$")


def _common_end(texts: list[str]) -> int:
    """The number of characters that all share at the end, in whole words, with something left before them."""
    first, *others = texts
    words = (match.start() for match in finditer(r"\b\W+\b", first))
    ends = (first[start:] for start in words if 0 < start <= len(first) - 4)
    shared = (e for e in ends if others and all(t.endswith(e) and len(t) > len(e) for t in others))
    return len(next(shared, ""))


def reliability_labels(pos_label: Any) -> tuple[str, str]:
    """Axis labels of a reliability diagram, of one class or of the most probable one."""
    if pos_label is None:
        return "Confidence", "Accuracy"
    (name,) = fit_names([pos_label], MAX_CLASS_NAME)
    return f"Probability of {name}", f"Share of {name}"


def thinned(T: int, most: int) -> Array:
    """Positions that are named: all, or every second, third, ..., such that at most ``most`` are."""
    return np.arange(0, T, -(-T // most))


def thinning_note(T: int, most: int, what: str = "task") -> list[str]:
    """A note where only some are named."""
    step = -(-T // most)
    end = "th" if step % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(step % 10, "th")
    return [f"(every {step}{end} {what} is named)"] if step > 1 else []


# ------------------------------------------------------------------- predictions of a model


class PredictionDisplay:
    """Base of the displays of probabilities: ``from_estimator`` and ``from_heldout`` call ``from_predictions``."""

    #: Whether ``from_predictions`` takes a name, and tasks.
    _has_name: ClassVar[bool] = True
    _has_tasks: ClassVar[bool] = False

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, tasks: Any = None, **kwargs: Any) -> Self:
        """Draw the predictions of a fitted classifier for rows with known classes.

        Parameters
        ----------
        estimator : classifier with ``predict_proba``
            Pipelines, and wrappers such as :class:`leastwise.Abstaining`, too.
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,) or (n, T)
            True classes, or a table of labels.
        tasks : array-like of shape (n,), optional
            The task of every row, for multi-task models.
        **kwargs
            For ``from_predictions``; ``name`` is by default the name of the classifier, inside a pipeline too.
        """
        pyplot()
        return cls._from_model(estimator, y, predicted_proba(estimator, X, tasks), tasks, "", **kwargs)

    @classmethod
    def from_heldout(cls, model: Any, y: Any, *, tasks: Any = None, **kwargs: Any) -> Self:
        """Draw the held-out predictions of the training rows.

        No other rows are needed, and nothing is fitted. Sigma, alpha and the calibration were chosen on these
        predictions, which makes them slightly optimistic.

        Parameters
        ----------
        model : fitted classifier of leastwise
            Or a pipeline that ends in one, or a wrapper or search around one.
        y : array-like of shape (n,) or (n, T)
            The y of the fit.
        tasks : array-like of shape (n,), optional
            The task of every row, for displays by task.
        **kwargs
            For ``from_predictions``; ``name`` is by default the name of the classifier, inside a pipeline too.
        """
        pyplot()
        return cls._from_model(model, y, heldout_proba(model, y), tasks, ", held out", **kwargs)

    @classmethod
    def _from_model(cls, model: Any, y: Any, proba: Any, tasks: Any, suffix: str, **kwargs: Any) -> Self:
        if cls._has_name:
            kwargs = {"name": legend_name(model) + suffix, **kwargs}
        if cls._has_tasks:
            kwargs["tasks"] = tasks
        if is_table(y):
            inner = outermost_with(model, "label_index_")
            kwargs["model"] = inner if hasattr(inner, "label_index_") else None
        else:
            kwargs["classes"] = model.classes_
        return cls.from_predictions(y, proba, **kwargs)

    @classmethod
    def from_predictions(cls, y_true: Any, proba: Any, **kwargs: Any) -> Self:
        """Draw probabilities; subclasses implement it."""
        raise NotImplementedError
