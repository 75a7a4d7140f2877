"""Points of the plane, in the form in which a model knows its two features."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.inspection.outcomes import layers

Array = np.ndarray
Limits = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class Plane:
    """A rectangle, what its sides are called, and the kind of frame that the model was shown, if any."""

    limits: Limits
    features: tuple[Any, ...] | None
    frame: Callable[[dict[Any, Any]], Any] | None

    @property
    def sides(self) -> tuple[str, str]:
        """What the axes are called."""
        return ("$x_1$", "$x_2$") if self.features is None else (str(self.features[0]), str(self.features[1]))

    def rows(self, points: Array, extra: dict[Any, Any] | None = None) -> Any:
        """Points as rows, with more columns where these are given."""
        if self.frame is None or self.features is None:
            return points
        return self.frame({**dict(zip(self.features, points.T, strict=True)), **(extra or {})})

    def proba(self, model: Any, points: Array, task: Any = None) -> Array:
        """Probabilities of points; where a task is given, in that task."""
        *_, inner = layers(model)
        column = getattr(inner, "task_column", None)
        with warnings.catch_warnings():
            # The rectangle may be given without a frame.
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            if task is None:
                return np.asarray(model.predict_proba(self.rows(points)))
            several = [task] * len(points)
            if column is None:
                return np.asarray(model.predict_proba(self.rows(points), tasks=several))
            return np.asarray(model.predict_proba(self._with_task(points, model, column, several)))

    def _with_task(self, points: Array, model: Any, column: Any, several: list[Any]) -> Any:
        if isinstance(column, str):
            if self.frame is None:
                raise ValueError(
                    f"The model finds tasks in the column {column!r}: give X as a frame with it, and limits only if "
                    "the rectangle is to be another one."
                )
            return self.rows(points, {column: several})[[str(name) for name in model.feature_names_in_]]
        columns = list(points.T.astype(object))
        columns.insert(column if column >= 0 else 3 + column, np.array(several, dtype=object))
        return np.stack(columns, axis=1)


def plane(X: Any, limits: Limits | None, without: Any = None) -> Plane:
    """The plane of two features, without the column of tasks."""
    if limits is None and X is None:
        raise ValueError("Give X or limits: without them there is no rectangle to draw.")
    names = getattr(X, "columns", None)
    if names is not None and not isinstance(without, int):
        names = [name for name in names if name != without]
        values = np.column_stack([np.asarray(X[name], dtype=float) for name in names]) if len(names) else np.empty(0)
        return Plane(limits or around(values), tuple(names), type(X))
    if X is not None and isinstance(without, int):
        X = np.delete(np.asarray(X, dtype=object), without, axis=1)
    return Plane(limits or around(X), None, None)


def around(X: Any, margin: float = 0.1) -> Limits:
    """The rectangle around two columns, with a margin."""
    X = np.asarray(X, dtype=float)
    if X.ndim != 2 or X.shape[1] != 2:
        raise ValueError(f"X has shape {X.shape}; only two features can be drawn in the plane.")
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    extra = margin * np.where(high > low, high - low, 1)
    (a, c), (b, d) = low - extra, high + extra
    return (float(a), float(b)), (float(c), float(d))
