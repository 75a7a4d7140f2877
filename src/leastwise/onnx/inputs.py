"""Scaled inputs as ONNX nodes."""

from __future__ import annotations

import numpy as np

from leastwise.onnx.graph import Graph, Value
from leastwise.onnx.registry import scales
from leastwise.problem.inputs import Inputs, Quantile, Robust, Standard


def convert_inputs(g: Graph, inputs: Inputs, X: Value) -> Value:
    """Rows of shape (n, d) as the kernel of a model sees them."""
    X = X if inputs.columns is None else X.take(np.asarray(inputs.columns))
    X = X if inputs.rule is None else scales.find(inputs.rule).convert(g, inputs.rule, X)
    return X if inputs.weights is None else X * np.asarray(inputs.weights, dtype=float)


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
