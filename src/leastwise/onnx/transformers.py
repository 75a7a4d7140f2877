"""Columns on their way from the inputs to the model, and the transformers of scikit-learn between them.

The converters are written by hand for two reasons: numbers keep the precision of the graph, and no package but
``onnx`` is needed. Imputers and encoders are in :mod:`leastwise.onnx.encoders`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

from leastwise.onnx.graph import Graph, Value
from leastwise.onnx.registry import transformers
from leastwise.utils.unwrap import within

Array = np.ndarray


# ----------------------------------------------------------------------- columns


class TextNeeded(ValueError):
    """A numeric column is used as text."""


@dataclass(eq=False)
class Block:
    """A table of numbers, or one column of text, of shape (n, width); ``used`` are the columns that were read."""

    value: Value
    width: int = 1
    text: bool = False
    used: set[int] = field(default_factory=set)


@dataclass(eq=False)
class InputColumn:
    """A column with an input of its own, whose type is determined by its first use."""

    name: str
    block: Block | None = None

    def read(self, g: Graph, text: bool, dtype: Any = None) -> Block:
        """The column as text or numbers (of a dtype), which it remains."""
        if self.block is None:
            dtype = np.dtype(object if text else dtype or g.io_dtype)
            value = g.input(self.name, dtype, [1])
            self.block = Block(value if text or dtype == g.dtype else value.cast(g.dtype), 1, text)
        if self.block.text != text:
            raise ValueError(
                f"Column {self.name!r} is used as text and as numbers, but an ONNX input has one type: give the "
                "model two columns."
            )
        return self.block


@dataclass(frozen=True)
class Columns:
    """Columns in order, each as a block and its place in it."""

    g: Graph
    places: tuple[tuple[Block | InputColumn, int], ...]

    @staticmethod
    def of(value: Value, width: int, text: bool = False) -> Columns:
        """All columns of a tensor of shape (n, width)."""
        block = Block(value, width, text)
        return Columns(value.graph, tuple((block, j) for j in range(width)))

    @staticmethod
    def joined(g: Graph, parts: Sequence[Columns]) -> Columns:
        """The columns of several tables side by side."""
        return Columns(g, tuple(place for part in parts for place in part.places))

    def __len__(self) -> int:
        return len(self.places)

    def pick(self, which: Sequence[int]) -> Columns:
        """Some of the columns."""
        return Columns(self.g, tuple(self.places[j] for j in which))

    def without(self, place: int) -> Columns:
        """All columns but one."""
        return self.pick([j for j in range(len(self)) if j != place])

    def numbers(self) -> Value:
        """All columns as numbers, of shape (n, width)."""
        parts: list[tuple[Block, list[int]]] = []
        for block, j in self.places:
            block = block.read(self.g, text=False) if isinstance(block, InputColumn) else block
            if block.text:
                raise ValueError("A text column is passed to a step that needs numbers: encode it before.")
            block.used.add(j)
            if parts and parts[-1][0] is block:
                parts[-1][1].append(j)
            else:
                parts.append((block, [j]))
        return self.g.concat(
            [b.value if which == list(range(b.width)) else b.value.take(np.array(which)) for b, which in parts]
        )

    def text(self, j: int) -> Value:
        """One column as text, of shape (n, 1)."""
        block = self.places[j][0]
        block = block.read(self.g, text=True) if isinstance(block, InputColumn) else block
        if not block.text:
            raise TextNeeded("A numeric column is passed to a step that was fitted on text: use the same types.")
        return block.value

    def days(self, j: int) -> Value:
        """One column as days since 1970, of shape (n, 1); its input is always in double precision."""
        block = self.places[j][0]
        if not isinstance(block, InputColumn):
            raise TextNeeded("A numeric column is passed to a step that was fitted on dates: use the same types.")
        return block.read(self.g, text=False, dtype=np.float64).value

    def set_kind(self, j: int, kind: str) -> None:
        """Record the kind of a column of a table, if it has an input of its own."""
        block = self.places[j][0]
        if isinstance(block, InputColumn):
            self.g.column_kinds[block.name] = kind


def input_columns(g: Graph, names: Sequence[str], single_input: bool) -> Columns:
    """The columns of the input: one numeric input ``X`` for all, or one input for each, numeric or text."""
    if not single_input:
        return Columns(g, tuple((InputColumn(name), 0) for name in names))
    value = g.input("X", g.io_dtype, [len(names)])
    return Columns.of(value if g.io_dtype == g.dtype else value.cast(g.dtype), len(names))


def column_names(model: Any) -> list[str]:
    """Names of the columns that a model was fitted on; ``column_0`` and so on if they had none."""
    parts = [model, *(part for _, part in getattr(model, "steps", []))]  # the first step may be "passthrough"
    first = next(part for part in parts if hasattr(part, "n_features_in_"))
    names = getattr(first, "feature_names_in_", None)
    return [f"column_{j}" for j in range(first.n_features_in_)] if names is None else [str(name) for name in names]


# ---------------------------------------------------------- pipelines and columns


def transform(g: Graph, step: Any, columns: Columns) -> Columns:
    """The output of a fitted transformer."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return columns
    if isinstance(step, str) and step == "drop":
        return columns.pick([])
    return transformers.find(step).convert(g, step, columns)


def unwrap(g: Graph, model: Any, columns: Columns) -> tuple[Any, Columns]:
    """The estimator at the end of pipelines and frozen estimators, and the columns that it gets."""
    while isinstance(model, Pipeline | FrozenEstimator):
        if isinstance(model, Pipeline):
            for _, step in model.steps[:-1]:
                columns = transform(g, step, columns)
        model = within(model)
    return model, columns


@transformers.register(Pipeline)
def _pipeline(g: Graph, step: Pipeline, columns: Columns) -> Columns:
    for _, part in step.steps:
        columns = transform(g, part, columns)
    return columns


@transformers.register(FrozenEstimator)
def _frozen(g: Graph, step: FrozenEstimator, columns: Columns) -> Columns:
    return transform(g, step.estimator, columns)


@transformers.register(FeatureUnion)
def _feature_union(g: Graph, step: FeatureUnion, columns: Columns) -> Columns:
    if step.transformer_weights:
        raise TypeError("FeatureUnion with transformer_weights has no ONNX converter: scale the parts themselves.")
    return Columns.joined(g, [transform(g, part, columns) for _, part in step.transformer_list])


@transformers.register(ColumnTransformer)
def _column_transformer(g: Graph, step: ColumnTransformer, columns: Columns) -> Columns:
    if step.transformer_weights:
        raise TypeError(
            "ColumnTransformer with transformer_weights has no ONNX converter: scale the parts themselves."
        )
    names = list(getattr(step, "feature_names_in_", []))
    parts = [
        transform(g, part, columns.pick(_positions(which, names, len(columns))))
        for _, part, which in step.transformers_
    ]
    return Columns.joined(g, parts)


def _positions(which: Any, names: list, width: int) -> list[int]:
    """Positions of the columns that a part of a ColumnTransformer is fitted on."""
    if isinstance(which, slice):
        first, last = which.start, which.stop
        first = names.index(first) if isinstance(first, str) else first
        last = names.index(last) + 1 if isinstance(last, str) else last  # a slice of names includes the last one
        return list(range(width))[slice(first, last, which.step)]
    listed = [which] if isinstance(which, str | int) else np.asarray(which).tolist()
    if listed and all(isinstance(j, bool) for j in listed):
        return np.flatnonzero(listed).tolist()
    return [names.index(j) if isinstance(j, str) else int(j) % width for j in listed]


@transformers.register(FunctionTransformer)
def _function(g: Graph, step: FunctionTransformer, columns: Columns) -> Columns:
    if step.func is not None:
        raise TypeError(
            f"FunctionTransformer(func={step.func!r}) has no ONNX converter: a Python function cannot be exported. "
            "Transform the rows before."
        )
    return columns


@transformers.register(SelectorMixin)
def _selector(g: Graph, step: SelectorMixin, columns: Columns) -> Columns:
    return columns.pick(np.flatnonzero(step.get_support()).tolist())


# ------------------------------------------------------------ numbers to numbers


def register_numeric(*classes: type, width: Callable[[Any], int] | None = None) -> Callable:
    """Decorator that registers ``formula(g, step, X)`` for transformers of numbers.

    X is a Value of shape (n, d). ``width(step)`` is the number of output columns, by default d.
    """

    def add(formula: Callable[[Graph, Any, Value], Value]) -> Callable:
        def convert(g: Graph, step: Any, columns: Columns) -> Columns:
            return Columns.of(formula(g, step, columns.numbers()), width(step) if width else len(columns))

        transformers.register(*classes)(convert)
        return formula

    return add


@register_numeric(StandardScaler)
def _standard(g: Graph, step: StandardScaler, X: Value) -> Value:
    X = X if step.mean_ is None or not step.with_mean else X - step.mean_
    return X if step.scale_ is None else X / np.asarray(step.scale_)


@register_numeric(MinMaxScaler)
def _min_max(g: Graph, step: MinMaxScaler, X: Value) -> Value:
    X = X * step.scale_ + step.min_
    low, high = step.feature_range
    return X.maximum(float(low)).minimum(float(high)) if step.clip else X


@register_numeric(MaxAbsScaler)
def _max_abs(g: Graph, step: MaxAbsScaler, X: Value) -> Value:
    return X / np.asarray(step.scale_)


@register_numeric(RobustScaler)
def _robust(g: Graph, step: RobustScaler, X: Value) -> Value:
    X = X - step.center_ if step.with_centering else X
    return X / np.asarray(step.scale_) if step.with_scaling else X


@register_numeric(Normalizer)
def _normalize(g: Graph, step: Normalizer, X: Value) -> Value:
    size = g.node("Abs", X)
    norms = {"l1": lambda: size.sum(), "max": lambda: size.max(), "l2": lambda: g.node("Sqrt", (X * X).sum())}
    norm = norms[step.norm]()
    return X / g.where(norm > 0.0, norm, 1.0)


@register_numeric(Binarizer)
def _binarize(g: Graph, step: Binarizer, X: Value) -> Value:
    above = g.node("Greater", X, float(step.threshold))
    return above.cast(g.dtype)


@register_numeric(PCA, width=lambda step: len(step.components_))
def _pca(g: Graph, step: PCA, X: Value) -> Value:
    scale = np.sqrt(step.explained_variance_) if step.whiten else 1.0
    return (X - step.mean_) @ (step.components_.T / scale)


@register_numeric(TruncatedSVD, width=lambda step: len(step.components_))
def _truncated_svd(g: Graph, step: TruncatedSVD, X: Value) -> Value:
    return X @ step.components_.T
