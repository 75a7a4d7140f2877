"""Risk-coverage curve: the error among accepted rows against the share of rows that are accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.displays._base import PredictionDisplay, next_style, pyplot, text_color
from leastwise.inspection.outcomes import (
    Outcomes,
    abstaining_layer,
    accepted_rows,
    class_outcomes,
    concatenated,
    has_proba,
    is_table,
    outcomes_by_label,
    risk_coverage_area,
)
from leastwise.metrics.reliability import exact_upper

Array = np.ndarray


@dataclass(eq=False, repr=False)
class RiskCoverageDisplay(PredictionDisplay):
    """Error among accepted rows against their share, the most confident rows first.

    A row is accepted if its confidence, the probability of its most probable class, is at least a threshold. Each
    distinct confidence is a point of the curve: rows of equal confidence are accepted together. With several labels
    per row, every known label counts as a row.

    Parameters
    ----------
    coverage, risk : ndarray of shape (m,)
        Share of rows accepted, rising to 1, and share of errors among them.
    threshold : ndarray of shape (m,)
        The lowest accepted confidence, falling.
    area : float
        Area under the curve: the mean over k of the error among the k most confident rows, ties in random order. 0 is
        perfect.
    upper : ndarray of shape (m,), optional
        Upper bound of the risk at each point.
    name : str, optional
        Name of the predictions in the legend.
    level : float, default=0.95
        Level of the bound.
    what : {"rows", "labels"}, default="rows"
        What is accepted.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
    line_ : matplotlib Line2D
        The curve.
    band_ : matplotlib PolyCollection or None
        The area from the curve to the bound.
    marks_ : list of matplotlib Line2D
        The points for ``max_error`` and ``threshold``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from leastwise import LSPC
    >>> from leastwise.displays import RiskCoverageDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LSPC(random_state=0).fit(X, y)
    >>> display = RiskCoverageDisplay.from_heldout(model, y, bound=True)
    """

    coverage: Array
    risk: Array
    threshold: Array
    area: float
    upper: Array | None = None
    name: str | None = None
    level: float = 0.95
    what: str = "rows"

    @classmethod
    def _from_model(
        cls, model: Any, y: Any, proba: Any, tasks: Any, suffix: str, **kwargs: Any
    ) -> RiskCoverageDisplay:
        """Mark the threshold of a model that abstains, if it has one for all rows."""
        rule = abstaining_layer(model)
        if rule is not None and np.ndim(rule.threshold_) == 0 and not rule.by_task:
            kwargs = {"threshold": rule.threshold_, **kwargs}
        return super()._from_model(model, y, proba, tasks, suffix, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        proba: Any,
        *,
        classes: Any = None,
        confidence: Any = None,
        bound: bool = False,
        level: float = 0.95,
        name: str | None = None,
        model: Any = None,
        **kwargs: Any,
    ) -> RiskCoverageDisplay:
        """Draw the curve of probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,) or (n, T)
            True classes, or a table of labels with NaN for unknown ones.
        proba : array-like of shape (n, c), (n,) or (n, T), or list
            Probabilities, one column per class; or those of the second class; or of labels. Rows with NaN are
            left out.
        classes : array-like of shape (c,), optional
            Labels of the columns; by default the sorted labels of ``y_true``.
        confidence : array-like of shape (n,), optional
            Another score that is high for rows to accept; by default the largest probability.
        bound : bool, default=False
            Draw the exact binomial upper bound of the risk. It holds for independent rows at each point separately,
            for a threshold that was fixed beforehand, not for all points at once.
        level : float, default=0.95
            Probability that the risk is below the bound.
        name : str, optional
            For the legend.
        model : MultiLabelLSPC, optional
            The model whose labels and classes ``y_true`` has.
        **kwargs
            For :meth:`plot`.
        """
        pyplot()
        if not 0 < level < 1:
            raise ValueError(f"level={level!r} must be between 0 and 1, such as 0.95.")
        if is_table(y_true):
            if confidence is not None:
                raise ValueError(
                    "confidence= has one number per row, and y_true several labels per row: leave it out."
                )
            outcomes, unit = concatenated(outcomes_by_label(y_true, proba, top=True, model=model)), "labels"
        else:
            outcomes, unit = class_outcomes(y_true, proba, classes), "rows"
            if confidence is not None:
                outcomes = Outcomes(_checked_confidence(confidence, proba), outcomes.true)
        found = accepted_rows(outcomes.p, ~outcomes.true)
        upper = exact_upper(found.errors, found.rows, level) if bound else None
        coverage, risk = found.rows / found.rows[-1], found.errors / found.rows
        area = risk_coverage_area(outcomes.p, ~outcomes.true)
        return cls(coverage, risk, found.threshold, area, upper, name, level, unit).plot(**kwargs)

    def coverage_at(self, max_error: float, *, bound: bool = False) -> float:
        """The largest share of rows that can be accepted with at most this error among them.

        Parameters
        ----------
        max_error : float
        bound : bool, default=False
            The upper bound must be below ``max_error`` too; it must have been drawn.

        Returns
        -------
        float
            0 where there is none.
        """
        if bound and self.upper is None:
            raise ValueError("There is no bound: make the display with bound=True.")
        risk = self.upper if bound and self.upper is not None else self.risk
        return float(self.coverage[risk <= max_error].max(initial=0.0))

    def plot(
        self,
        ax: Any = None,
        *,
        name: str | None = None,
        max_error: float | None = None,
        threshold: float | None = None,
        **kwargs: Any,
    ) -> RiskCoverageDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; a new figure by default. Curves on the same axes have different colours.
        name : str, optional
            Replaces the name of the display.
        max_error : float, optional
            Mark this error with a line, and the largest coverage that has it with a dot; a hollow dot is the coverage
            by the bound, if there is one.
        threshold : float, optional
            Mark the point of this threshold. For a model that abstains it is by default its threshold, if there is
            one for all rows.
        **kwargs
            For ``ax.plot`` of the curve.
        """
        ax = pyplot().subplots(layout="constrained")[1] if ax is None else ax
        name = self.name if name is None else name
        label = f"area {self.area:.4f}" if name is None else f"{name} (area {self.area:.4f})"
        style = {**next_style(ax), "marker": None, "label": label, **kwargs}
        (self.line_,) = ax.plot(self.coverage, self.risk, **style)
        self.marks_: list[Any] = []
        color, self.band_ = self.line_.get_color(), None
        if self.upper is not None:
            style = {"color": color, "alpha": 0.2, "lw": 0, "label": f"upper bound ({self.level:.0%})"}
            self.band_ = ax.fill_between(self.coverage, self.risk, self.upper, **style)
        if max_error is not None:
            self._draw_target(ax, max_error, color)
        if threshold is not None:
            self._draw_threshold(ax, threshold, color)
        self._finish(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_target(self, ax: Any, max_error: float, color: Any) -> None:
        ax.axhline(max_error, color=text_color(), alpha=0.6, lw=1, ls="--", zorder=1)
        shares = [self.coverage_at(max_error)]
        shares += [] if self.upper is None else [self.coverage_at(max_error, bound=True)]
        for k, share in enumerate(shares):
            label = f"{share:.0%} of {self.what} at {100 * max_error:.3g}% error" + " by the bound" * k
            style = {"ms": 6, "mfc": ax.get_facecolor() if k else color, "mec": color, "color": color, "zorder": 4}
            self.marks_ += ax.plot([share], [max_error], "o", ls="", label=label, clip_on=False, **style)
            ax.vlines(share, 0, max_error, color=color, lw=1, ls=":")

    def _draw_threshold(self, ax: Any, threshold: float, color: Any) -> None:
        count = int((self.threshold >= threshold).sum())
        share, risk = (self.coverage[count - 1], self.risk[count - 1]) if count else (0.0, 0.0)
        label = f"threshold {threshold:.4g}: {share:.0%} of {self.what} accepted"
        style = {"ms": 13, "color": color, "mec": text_color(), "mew": 0.8, "ls": "", "zorder": 5}
        self.marks_ += ax.plot([share], [risk], "*", label=label, clip_on=False, **style)

    def _finish(self, ax: Any) -> None:
        """Limits for this curve and earlier ones; the bound at small coverages, which is near 1, is cut off."""
        bounds = [self.risk] if self.upper is None else [self.risk, self.upper[self.coverage >= 0.2]]
        high = 1.15 * max(float(np.max(b, initial=0.0)) for b in bounds) or 0.01
        old = ax.get_ylim()[1] if ax.get_xlabel() else 0.0
        ax.set(xlabel=f"Share of {self.what} accepted", ylabel=f"Error among the {self.what} accepted")
        ax.set(xlim=(0, 1.02), ylim=(0, min(max(high, old), 1.02)))
        ax.legend(loc="upper left", framealpha=0.9)


def _checked_confidence(confidence: Any, proba: Any) -> Array:
    """Given confidences of the rows that have probabilities."""
    values, there = np.asarray(confidence, dtype=float), has_proba(proba)
    if values.shape != (len(there),) or np.isnan(values).any():
        raise ValueError(
            f"confidence of shape {values.shape} must have one number, not NaN, for each of {len(there)} rows."
        )
    return values[there]
