"""Values that regressors predict, with intervals of equal width where these are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.estimators.base import Regressor
from leastwise.onnx._columns import Columns
from leastwise.onnx._graph import Graph, Value
from leastwise.onnx._models import Scored, score_rows

Array = np.ndarray


def put_values(g: Graph, model: Regressor, columns: Columns, interval: float | None) -> None:
    """``variable``, in the unit and shape of y, with ``lower`` and ``upper`` beside it."""
    scored = score_rows(g, model, columns)
    F = scored.F + scored.gap
    _put(g, model, "variable", F)
    if interval is not None:
        half = _half_width(g, model, scored, interval)
        _put(g, model, "lower", F - half)
        _put(g, model, "upper", F + half)


def _put(g: Graph, model: Regressor, name: str, F: Value) -> None:
    unit, offset = np.asarray(model.unit_, dtype=float), np.asarray(model.offset_, dtype=float)
    values = F * unit + offset
    if model.flat_:
        g.output(name, values.squeezed(1), g.outer)
    else:
        g.output(name, values, g.outer, [len(unit)])


def _half_width(g: Graph, model: Regressor, scored: Scored, coverage: float) -> Any:
    """Half of the width, that of tasks held out whole for tasks that are not known."""
    if not 0 < coverage < 1:
        raise ValueError(f"interval={coverage!r} must be a number above 0 and below 1, such as 0.9.")
    known = model._residuals("jackknife")
    half = known.half_widths(coverage)
    if known.stranger is None or scored.task is None:
        return half
    strange = (scored.task < np.array(0)).widened(1)
    return g.where(strange, known.stranger_half_widths(coverage), half)
