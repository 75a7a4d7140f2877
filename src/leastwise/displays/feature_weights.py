"""Feature weights of a model as bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.displays._base import color, fit_names, pyplot
from leastwise.utils.unwrap import core

Array = np.ndarray

#: Names of columns are cut after this many characters.
MAX_NAME = 28


@dataclass(eq=False, repr=False)
class FeatureWeightsDisplay:
    """A bar for the weight of every column, the largest at the top.

    Weights are those of ``metric="diagonal"``, or of ``metric="auto"`` if it kept them; see :doc:`/inputs`. Columns
    without a weight above zero are not used by the model.

    Parameters
    ----------
    names : sequence of str
        Names of the columns.
    weights : ndarray of shape (n_features,)

    Attributes
    ----------
    order_ : ndarray of int
        The drawn columns, from top to bottom.
    ax_, figure_ : matplotlib Axes and Figure
    bars_ : matplotlib BarContainer

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from leastwise import LSPC
    >>> from leastwise.displays import FeatureWeightsDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = LSPC(scale="standard", metric="diagonal", random_state=0).fit(X, y)
    >>> display = FeatureWeightsDisplay.from_estimator(model)
    """

    names: Sequence[str]
    weights: Array

    @classmethod
    def from_estimator(cls, estimator: Any, **kwargs: Any) -> FeatureWeightsDisplay:
        """Draw the weights of a fitted estimator, or of one in a pipeline or wrapper.

        Parameters
        ----------
        estimator : fitted estimator
        **kwargs
            For :meth:`plot`.
        """
        pyplot()
        model = core(estimator)
        weights = getattr(model, "feature_weights_", None)
        if weights is None:
            raise ValueError(
                f"{type(model).__name__} has no feature weights: fit it with metric='diagonal', or with "
                "metric='auto', which keeps weights only if they help."
            )
        names = getattr(model, "feature_names_in_", None)
        if names is None:
            names = [f"column {j}" for j in range(len(weights))]
        return cls([str(name) for name in names], np.asarray(weights)).plot(**kwargs)

    def plot(self, ax: Any = None, *, max_features: int = 30) -> FeatureWeightsDisplay:
        """Draw the bars.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        max_features : int, default=30
            Number of columns to draw, those with the largest weights.
        """
        if isinstance(max_features, bool) or not isinstance(max_features, int | np.integer) or max_features < 1:
            raise ValueError(f"max_features={max_features!r} must be a whole number of 1 or more.")
        self.order_ = np.argsort(-self.weights, kind="stable")[: int(max_features)]
        count = len(self.order_)
        if ax is None:
            _, ax = pyplot().subplots(figsize=(6, 1 + 0.28 * count), layout="constrained")
        self.ax_, self.figure_ = ax, ax.figure
        self.bars_ = ax.barh(np.arange(count), self.weights[self.order_], color=color(0), height=0.7)
        ax.set_yticks(np.arange(count), fit_names([self.names[j] for j in self.order_], MAX_NAME))
        ax.invert_yaxis()
        more = len(self.weights) - count
        ax.set_xlabel("feature weight" + (f" (the largest {count} of {len(self.weights)})" if more else ""))
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        return self
