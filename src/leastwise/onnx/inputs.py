"""Scaled numbers, missing values and categories of inputs as ONNX nodes.

ONNX has no missing text: a missing value of a text column is an empty string.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.onnx.encoders import encode_categories
from leastwise.onnx.graph import Graph, Value
from leastwise.onnx.registry import scales
from leastwise.onnx.transformers import Columns
from leastwise.problem.inputs import Inputs, Quantile, Robust, Standard


def convert_inputs(g: Graph, model: Any, columns: Columns) -> tuple[Value, list[Value]]:
    """Rows as the kernel of a model sees them, and tables of zeros with NaN where a value is not allowed."""
    inputs, known = model.inputs_, model.categories_
    numeric = [j for j in range(len(columns)) if known[j] is None]
    parts, invalid = [], list[Value]()
    if numeric:
        X = columns.pick(numeric).numbers()
        parts = _numbers(g, inputs, X, numeric)
        wrong = X * 0.0 if inputs.fill is None else g.where(g.node("IsInf", X), np.nan, 0.0)
        invalid.append(wrong.sum())
    for category in inputs.categories:
        values = list(known[category.column])
        # Rows for all values, for a missing one, and for those that are not known.
        table = category.transform(np.r_[np.arange(len(values)), np.nan, -1])
        parts.append(encode_categories(g, columns, category.column, [*values, None], table))
    Z = g.concat(parts)
    return Z if inputs.weights is None else Z * np.asarray(inputs.weights, dtype=float), invalid


def _numbers(g: Graph, inputs: Inputs, X: Value, numeric: list[int]) -> list[Value]:
    """Scaled numbers, and columns that tell which are missing; X has the columns ``numeric`` of the rows."""
    place = {j: k for k, j in enumerate(numeric)}
    Z, parts = X, list[Value]()
    if inputs.columns is not None:
        Z = X.take(np.array([place[j] for j in inputs.columns.tolist()], dtype=int))
    if inputs.fill is not None and len(inputs.fill):
        filled = g.where(g.node("IsNaN", Z), np.asarray(inputs.fill, dtype=float), Z)
        Z = g.where(g.node("IsInf", Z), np.nan, filled)
    if inputs.columns is None or len(inputs.columns) or (inputs.missing is None and not inputs.categories):
        parts.append(Z if inputs.rule is None else scales.find(inputs.rule).convert(g, inputs.rule, Z))
    if inputs.missing is not None and inputs.missing_factors is not None:
        absent = g.node("IsNaN", X.take(np.array([place[j] for j in inputs.missing.tolist()], dtype=int)))
        parts.append(absent.cast(g.dtype) * np.asarray(inputs.missing_factors, dtype=float))
    return parts


@scales.register(Standard)
def _standard(g: Graph, rule: Standard, X: Value) -> Value:
    return (X - rule.shift) * (1 / np.where(rule.unit > 0, rule.unit, 1.0))


@scales.register(Robust)
def _robust(g: Graph, rule: Robust, X: Value) -> Value:
    """``asinh(z) = sign(z) log(|z| + sqrt(z^2 + 1))``; onnxruntime has Asinh in single precision only."""
    z = (X - rule.center) * (1 / rule.spread)
    size = g.node("Abs", z)
    bent = g.node("Sign", z) * g.log(size + g.node("Sqrt", z * z + 1.0))
    return _standard(g, rule.standard, bent)


@scales.register(Quantile)
def _quantile(g: Graph, rule: Quantile, X: Value) -> Value:
    """A sum over the pieces between knots: slope times how far x is into the piece."""
    low, high = rule.knots[:, 0], rule.knots[:, -1]
    width, rise = np.diff(rule.knots, axis=1), np.diff(rule.scores, axis=1)
    slope = rise / np.where(width > 0, width, 1)
    into = (X.unsqueeze(2) - rule.knots[None, :, :-1]).maximum(0.0).minimum(width[None])
    inside = (into * slope[None]).sum(axis=2, keep=False) + rule.scores[:, 0]
    tail = (rule.scores[:, -1] - rule.scores[:, 0]) / np.where(high > low, high - low, 1)
    return inside + ((X - high).maximum(0.0) - (low - X).maximum(0.0)) * tail
