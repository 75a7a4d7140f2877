"""Kernels, and scores from them, as nodes of a graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from leastwise.calibration.extrapolation import Reach
from leastwise.onnx._graph import Graph, Value
from leastwise.onnx._weights import Weights
from leastwise.problem.kernels import RBF, Kernel, Laplace, Linear, Poly, Scaled, Sigmoid, Sum

Array = np.ndarray


def scores(
    g: Graph, kernel: Kernel, sigma: float, X: Value, centers: Any, weights: Weights, reach: Reach | None = None
) -> tuple[Value, Value | None]:
    """Scores of rows without an intercept, of shape (n, c), and their trust, of shape (n, 1); None is 1."""
    C = np.asarray(centers.toarray() if sparse.issparse(centers) else centers, dtype=float)
    if isinstance(kernel, Sum):
        return _summed(g, kernel, sigma, X, C, weights), None
    if isinstance(kernel, Linear):
        return _linear(kernel, X, C, weights), None
    pairs = _pairs(g, kernel, X, C, sigma)
    F = weights.apply(g, _values(g, kernel, pairs, sigma))
    return F, None if reach is None else _trust(g, kernel, pairs, reach)


def _summed(g: Graph, kernel: Sum, sigma: float, X: Value, C: Array, weights: Weights) -> Value:
    """The sum of the scores of the parts; those that are not linear have their coefficients once."""
    parts = [(part, w) for part, w in zip(kernel.parts, kernel.weights, strict=True) if w]
    assert all(w == 1 for p, w in parts if not isinstance(p, Linear))
    curved = [_values(g, p, _pairs(g, p, X, C, sigma), sigma) for p, _ in parts if not isinstance(p, Linear)]
    total = [weights.apply(g, _total(curved))] if curved else []
    total += [_linear(p, X, C, weights, w) for p, w in parts if isinstance(p, Linear)]
    return _total(total)


def _total(values: list[Value]) -> Value:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _linear(kernel: Linear, X: Value, C: Array, weights: Weights, weight: float = 1.0) -> Value:
    """A linear function has one coefficient for each feature: the centres are multiplied out."""
    if isinstance(kernel, Scaled):
        origin = 0.0 if kernel.origin is None else np.asarray(kernel.origin, dtype=float)
        X = X if kernel.origin is None else X - origin
        C, weight = C - origin, weight / kernel.height
    return weights.folded(weight * C).apply(X.graph, X)


def _pairs(g: Graph, kernel: Kernel, X: Value, C: Array, sigma: float) -> Value:
    """Distances, or inner products over sigma^2, of shape (n, b)."""
    if isinstance(kernel, RBF):
        return squared_distances(g, X, C)
    if isinstance(kernel, Laplace):
        return city_distances(g, X, C)
    if isinstance(kernel, Poly | Sigmoid):
        return X @ (C.T / sigma**2)
    raise ValueError(
        f"kernel={type(kernel).__name__.lower()!r} has no form in ONNX: a function of yours cannot be written down, "
        "and a precomputed kernel needs the training rows. Use 'rbf', 'laplace', 'linear', 'poly', 'sigmoid' or a "
        "sum."
    )


def squared_distances(g: Graph, X: Value, C: Array) -> Value:
    """Squared Euclidean distances, about the mean of the centres, so that far from the origin no digits are lost."""
    middle = C.mean(axis=0)
    C, X = C - middle, X - middle
    D = X @ (-2 * C.T) + (X * X).sum() + (C**2).sum(axis=1)
    return D.at_least(0.0)


def city_distances(g: Graph, X: Value, C: Array) -> Value:
    """City-block distances, feature by feature: a table of rows, centres and features at once would be too large."""
    helper, real = g.onnx.helper, g.element(g.real)
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Unsqueeze", ["x", "last"], ["column"]),
            helper.make_node("Sub", ["column", "c"], ["difference"]),
            helper.make_node("Abs", ["difference"], ["length"]),
            helper.make_node("Add", ["before", "length"], ["after"]),
        ],
        "one_feature",
        [info("before", real, None), info("x", real, None), info("c", real, None)],
        [info("after", real, None)],
        [g.onnx.numpy_helper.from_array(np.array([1]), "last")],
    )
    start = (X.take(np.array([0])) * 0.0) + np.zeros(len(C))
    return g.node("Scan", start, g.node("Transpose", X, perm=[1, 0]), C.T, body=body, num_scan_inputs=2)


def _values(g: Graph, kernel: Kernel, pairs: Value, sigma: float) -> Value:
    """The kernel from ``pairs``."""
    if isinstance(kernel, RBF):
        return g.exp(pairs * (-0.5 / sigma**2))
    if isinstance(kernel, Laplace):
        return g.exp(pairs * (-1.0 / sigma))
    assert isinstance(kernel, Poly | Sigmoid)
    inner = pairs + float(kernel.coef0)
    return g.node("Tanh", inner) if isinstance(kernel, Sigmoid) else g.node("Pow", inner, float(kernel.degree))


def _trust(g: Graph, kernel: Kernel, pairs: Value, reach: Reach) -> Value:
    """How far the scores of rows are to be believed, by the distance to the nearest centre."""
    nearest = pairs.min()
    distance = g.node("Sqrt", nearest) if isinstance(kernel, RBF) else nearest
    beyond = (distance * (1 / float(reach.radius)) - 1.0).at_least(0.0)
    return g.exp(beyond * beyond * -0.5)
