"""Pre-processing of scikit-learn's that may stand in front of a model, step by step as nodes.

Written by hand, for two reasons: numbers stay in the precision of the graph, and nothing but ``onnx`` is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
)

from leastwise.onnx._categories import impute, one_hot, ordinal
from leastwise.onnx._columns import Block, Columns
from leastwise.onnx._graph import Graph, Value
from leastwise.onnx._tables import encoded
from leastwise.tables import TableEncoder

Array = np.ndarray


def transformed(g: Graph, step: Any, columns: Columns) -> Columns:
    """What comes out of a fitted transformer."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return columns
    if isinstance(step, str) and step == "drop":
        return columns.pick([])
    for kind, convert in CONVERTERS.items():
        if isinstance(step, kind):
            return convert(g, step, columns)
    known = ", ".join(sorted(kind.__name__ for kind in CONVERTERS))
    raise TypeError(
        f"{type(step).__name__} in front of the model has no converter to ONNX; known are {known}. Transform the "
        "rows before, and convert the model alone."
    )


def _numeric(formula: Callable[[Graph, Any, Value], Value], width: Callable | None = None) -> Callable:
    """A converter of a step from numbers to numbers; ``width`` is that of its output, if it differs."""

    def convert(g: Graph, step: Any, columns: Columns) -> Columns:
        return Columns.of(Block(formula(g, step, columns.numbers()), width(step) if width else len(columns)))

    return convert


def _standardised(g: Graph, step: StandardScaler, X: Value) -> Value:
    X = X if step.mean_ is None or not step.with_mean else X - step.mean_
    return X if step.scale_ is None else X / np.asarray(step.scale_)


def _min_max(g: Graph, step: MinMaxScaler, X: Value) -> Value:
    X = X * step.scale_ + step.min_
    low, high = step.feature_range
    return X.at_least(float(low)).at_most(float(high)) if step.clip else X


def _robust(g: Graph, step: RobustScaler, X: Value) -> Value:
    X = X - step.center_ if step.with_centering else X
    return X / np.asarray(step.scale_) if step.with_scaling else X


def _normalised(g: Graph, step: Normalizer, X: Value) -> Value:
    size = g.node("Abs", X)
    lengths = {"l1": lambda: size.sum(), "max": lambda: size.max(), "l2": lambda: g.node("Sqrt", (X * X).sum())}
    length = lengths[step.norm]()
    return X / g.where(length > 0.0, length, 1.0)


def _binary(g: Graph, step: Binarizer, X: Value) -> Value:
    above = float(step.threshold) < X
    return above.cast(g.real)


def _principal(g: Graph, step: PCA, X: Value) -> Value:
    scale = np.sqrt(step.explained_variance_) if step.whiten else 1.0
    return (X - step.mean_) @ (step.components_.T / scale)


def _identity(g: Graph, step: FunctionTransformer, columns: Columns) -> Columns:
    if step.func is not None:
        raise TypeError(
            f"FunctionTransformer(func={step.func!r}) has no form in ONNX: a function of yours cannot be written "
            "down. Transform the rows before."
        )
    return columns


def _selected(g: Graph, step: SelectorMixin, columns: Columns) -> Columns:
    return columns.pick(np.flatnonzero(step.get_support()).tolist())


def _piped(g: Graph, step: Pipeline, columns: Columns) -> Columns:
    for _, part in step.steps:
        columns = transformed(g, part, columns)
    return columns


def _united(g: Graph, step: FeatureUnion, columns: Columns) -> Columns:
    if step.transformer_weights:
        raise TypeError("FeatureUnion with transformer_weights has no converter to ONNX: scale the parts themselves.")
    return Columns.joined(g, [transformed(g, part, columns) for _, part in step.transformer_list])


def _by_columns(g: Graph, step: ColumnTransformer, columns: Columns) -> Columns:
    if step.transformer_weights:
        raise TypeError("ColumnTransformer with transformer_weights has no converter to ONNX: scale the parts.")
    names = list(getattr(step, "feature_names_in_", []))
    parts = [
        transformed(g, part, columns.pick(_places(which, names, len(columns))))
        for _, part, which in step.transformers_
    ]
    return Columns.joined(g, parts)


def _places(which: Any, names: list, width: int) -> list[int]:
    """Positions of the columns that a part of a ColumnTransformer is fitted on."""
    if isinstance(which, slice):
        first, last = which.start, which.stop
        first = names.index(first) if isinstance(first, str) else first
        last = names.index(last) + 1 if isinstance(last, str) else last  # by names, the last one counts
        return list(range(width))[slice(first, last, which.step)]
    listed = [which] if isinstance(which, str | int) else np.asarray(which).tolist()
    if listed and all(isinstance(j, bool) for j in listed):
        return np.flatnonzero(listed).tolist()
    return [names.index(j) if isinstance(j, str) else int(j) % width for j in listed]


CONVERTERS: dict[type, Callable[[Graph, Any, Columns], Columns]] = {
    Pipeline: _piped,
    FeatureUnion: _united,
    ColumnTransformer: _by_columns,
    FrozenEstimator: lambda g, step, columns: transformed(g, step.estimator, columns),
    FunctionTransformer: _identity,
    SimpleImputer: impute,
    OneHotEncoder: one_hot,
    OrdinalEncoder: ordinal,
    TableEncoder: encoded,
    StandardScaler: _numeric(_standardised),
    MinMaxScaler: _numeric(_min_max),
    MaxAbsScaler: _numeric(lambda g, step, X: X / np.asarray(step.scale_)),
    RobustScaler: _numeric(_robust),
    Normalizer: _numeric(_normalised),
    Binarizer: _numeric(_binary),
    PCA: _numeric(_principal, lambda step: len(step.components_)),
    TruncatedSVD: _numeric(lambda g, step, X: X @ step.components_.T, lambda step: len(step.components_)),
    SelectorMixin: _selected,
}
