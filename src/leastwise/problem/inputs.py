"""Inputs: from the columns of X as they come to the numbers that kernels compare.

A kernel of a distance depends on the units of the columns, and on their tails. ``scale=`` names a rule that is
learned from the weighted training rows; ``Inputs`` applies it to any rows, and multiplies each column by its feature
weight. Columns that do not vary in training are dropped.

``SCALES`` is the only list of the names that ``scale=`` takes. A new rule is a class with ``fit`` and ``transform``
under a name. Estimators, error messages and model files learn of it from there; export to ONNX needs a converter
(:mod:`leastwise.onnx.registry`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from leastwise.utils.arrays import DeviceRows, get_namespace, is_numpy, to_namespace, to_numpy

Array = np.ndarray

#: Quantile scaling interpolates between at most this many values of a column.
KNOTS = 200


@dataclass(frozen=True, eq=False)
class Scale:
    """A rule for numeric columns.

    ``fit`` learns from rows X (n x d, dense or sparse) with weights w of any sum; ``transform`` has the same number
    of columns. Sparse rows stay sparse: zeros stay zeros.
    """

    for_sparse: ClassVar[bool] = True

    @classmethod
    def fit(cls, X: Any, w: Array) -> Self:
        """The rule, learned from weighted rows."""
        raise NotImplementedError

    def transform(self, X: Any) -> Any:
        """Scaled rows, in double precision where X is a numpy array."""
        raise NotImplementedError


ScaleClass = TypeVar("ScaleClass", bound=type[Scale])

#: The rules by name.
SCALES: dict[str, type[Scale]] = {}


def register_scale(name: str) -> Callable[[ScaleClass], ScaleClass]:
    """Decorator that makes a class of rules known by a name, instead of any that had it."""

    def add(cls: ScaleClass) -> ScaleClass:
        SCALES[name] = cls
        return cls

    return add


@register_scale("standard")
@dataclass(frozen=True, eq=False)
class Standard(Scale):
    """``(x - mean) / standard deviation``; for sparse rows ``x / root mean square``."""

    shift: Array
    unit: Array

    @classmethod
    def fit(cls, X: Any, w: Array) -> Self:
        """The rule, learned from weighted rows."""
        share = w / w.sum()
        if sparse.issparse(X):
            size = _largest(X)
            mean_square = np.asarray(X.multiply(1 / size).power(2).T @ share).ravel()
            return cls(np.zeros(X.shape[1]), size * np.sqrt(mean_square))
        size = _largest(X)  # squares of 1e300 would overflow
        Z = X / size
        mean = share @ Z
        return cls(mean * size, size * np.sqrt(share @ (Z - mean) ** 2))

    def transform(self, X: Any) -> Any:
        """Scaled rows."""
        factor = 1 / _nonzero(self.unit)
        if sparse.issparse(X):
            return X.multiply(factor).tocsr()
        if is_numpy(X):
            return (X - self.shift) * factor
        return (X - to_namespace(self.shift, X)) * to_namespace(factor, X)


@register_scale("robust")
@dataclass(frozen=True, eq=False)
class Robust(Scale):
    """``asinh((x - median) / MAD)``, standardised: linear near the median, logarithmic in the tails.

    MAD is the median absolute deviation, or the mean one where more than half of the values are equal. Sparse rows
    have ``asinh(x / mean absolute value)`` of the entries that are not zero, divided by its root mean square.
    """

    center: Array
    spread: Array
    standard: Standard

    @classmethod
    def fit(cls, X: Any, w: Array) -> Self:
        """The rule, learned from weighted rows."""
        share = w / w.sum()
        if sparse.issparse(X):
            present = np.asarray((X != 0).T @ share).ravel()
            total = np.asarray(abs(X).T @ share).ravel()
            center, spread = np.zeros(X.shape[1]), _nonzero(total / _nonzero(present))
        else:
            center = weighted_median(X, share)
            deviation = np.abs(X - center)
            spread, mean = weighted_median(deviation, share), share @ deviation
            spread = _nonzero(np.where(spread > 1e-9 * mean, spread, mean))
        bent = cls(center, spread, Standard(np.zeros(X.shape[1]), np.ones(X.shape[1])))
        return replace(bent, standard=Standard.fit(bent.transform(X), w))

    def transform(self, X: Any) -> Any:
        """Scaled rows."""
        if sparse.issparse(X):
            return self.standard.transform(X.multiply(1 / self.spread).tocsr().arcsinh())
        if is_numpy(X):
            return self.standard.transform(np.arcsinh((X - self.center) / self.spread))
        bent = get_namespace(X).asinh((X - to_namespace(self.center, X)) / to_namespace(self.spread, X))
        return self.standard.transform(bent)


@register_scale("quantile")
@dataclass(frozen=True, eq=False)
class Quantile(Scale):
    """Normal scores of the weighted ranks, interpolated between training values; beyond these, a straight line.

    ``knots`` and ``scores`` have one row per column of X, padded with their last value.
    """

    for_sparse: ClassVar[bool] = False

    knots: Array
    scores: Array

    @classmethod
    def fit(cls, X: Any, w: Array) -> Self:
        """The rule, learned from weighted rows."""
        share = w / w.sum()
        columns = [_normal_scores(X[:, j], share) for j in range(X.shape[1])]
        width = max((len(knots) for knots, _ in columns), default=1)
        pad = [[np.pad(a, (0, width - len(a)), mode="edge") for a in pair] for pair in columns]
        knots, scores = np.array(pad, dtype=float).reshape(-1, 2, width).transpose(1, 0, 2)
        return cls(np.ascontiguousarray(knots), np.ascontiguousarray(scores))

    def transform(self, X: Any) -> Any:
        """Scaled rows."""
        if not is_numpy(X):
            return to_namespace(self.transform(to_numpy(X)), X)
        scaled = np.empty(X.shape)
        for j, (knots, scores) in enumerate(zip(self.knots, self.scores, strict=True)):
            scaled[:, j] = np.interp(X[:, j], knots, scores)
        low, high = self.knots[:, 0], self.knots[:, -1]
        slope = (self.scores[:, -1] - self.scores[:, 0]) / _nonzero(high - low)
        return scaled + slope * (np.maximum(X - high, 0) - np.maximum(low - X, 0))


def _normal_scores(x: Array, share: Array) -> tuple[Array, Array]:
    """Distinct values of a column, or some of very many, and the normal scores of their mid-ranks."""
    values, place = np.unique(x, return_inverse=True)
    mass = np.bincount(place.reshape(-1), weights=share)
    rank = np.cumsum(mass) - mass / 2
    # A tenth of a millionth keeps scores finite where one value has all the weight.
    scores = ndtri(np.clip(rank, 1e-7, 1 - 1e-7))
    if len(values) > KNOTS:
        wanted = np.interp(np.linspace(scores[0], scores[-1], KNOTS), scores, np.arange(len(values)))
        some = np.unique(np.round(wanted).astype(int))
        values, scores = values[some], scores[some]
    return values.astype(float), scores


def weighted_median(X: Array, share: Array) -> Array:
    """Medians of the columns; ``share`` are weights that sum to 1."""
    order = np.argsort(X, axis=0, kind="stable")
    mass = np.cumsum(share[order], axis=0)
    last = X.shape[0] - 1
    low = np.minimum(np.sum(mass < 0.5 - 1e-12, axis=0), last)
    high = np.minimum(np.sum(mass <= 0.5 + 1e-12, axis=0), last)
    column = np.arange(X.shape[1])
    return (X[order[low, column], column] / 2 + X[order[high, column], column] / 2).astype(float)


def _largest(X: Any) -> Array:
    """Largest absolute value of each column; 1 for columns of zeros."""
    size = abs(X).max(axis=0)
    size = size.toarray().ravel() if sparse.issparse(size) else np.asarray(size, dtype=float)
    return _nonzero(size)


def _nonzero(a: Array) -> Array:
    """``a`` with ones in place of zeros."""
    return np.where(a > 0, a, 1.0)


@dataclass(frozen=True, eq=False)
class Inputs:
    """What happens to rows before a kernel sees them.

    Attributes
    ----------
    scale : str or None
        Name of the rule.
    rule : Scale or None
        The fitted rule; None leaves columns as they are.
    columns : ndarray of int or None
        Columns that vary; None for all.
    weights : ndarray or None
        Feature weights of these columns; None for 1.
    """

    scale: str | None = None
    rule: Scale | None = None
    columns: Array | None = None
    weights: Array | None = None

    @classmethod
    def fit(cls, scale: str | None, X: Any, w: Array) -> Inputs:
        """Inputs by a named rule, learned from rows with weights w; ``scale=None`` leaves them as they are."""
        if scale is None:
            return cls()
        rows = to_numpy(X.there) if isinstance(X, DeviceRows) else X
        varies = np.flatnonzero(column_ranges(rows) > 0)
        columns = None if len(varies) == rows.shape[1] else varies
        part = rows if columns is None else rows[:, columns]
        part = part.astype(float) if sparse.issparse(part) else np.asarray(part, dtype=float)
        return cls(scale, SCALES[scale].fit(part, np.asarray(w, dtype=float)), columns)

    @property
    def identity(self) -> bool:
        """True if rows stay as they are."""
        return self.rule is None and self.columns is None and self.weights is None

    def with_weights(self, weights: Array | None) -> Inputs:
        """The same with other feature weights."""
        return replace(self, weights=weights)

    def same_as(self, other: Inputs) -> bool:
        """True if the same is done to all rows."""
        return _same(self, other)

    def __call__(self, X: Any) -> Any:
        """Rows as kernels see them, in the precision of X."""
        if self.identity:
            return X
        if isinstance(X, DeviceRows):
            return DeviceRows(self(X.there))
        Z = X if self.columns is None else _take_columns(X, self.columns)
        if self.rule is not None:
            Z = self.rule.transform(Z)
        if self.weights is not None:
            if sparse.issparse(Z):
                Z = Z.multiply(self.weights).tocsr()
            else:
                Z = Z * (self.weights if is_numpy(Z) else to_namespace(self.weights, Z))
        return Z.astype(X.dtype, copy=False) if is_numpy(X) else Z


def _same(a: Any, b: Any) -> bool:
    """True if two rules, or their fields, are equal."""
    if type(a) is not type(b) or not is_dataclass(a):
        return np.array_equal(a, b)
    return all(_same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))


def column_ranges(X: Any) -> Array:
    """Largest minus smallest value of each column; 0 for columns that do not vary."""
    if not sparse.issparse(X):
        return np.ptp(np.asarray(X, dtype=float) / _largest(X), axis=0)
    high, low = X.max(axis=0).toarray().ravel(), X.min(axis=0).toarray().ravel()
    return np.asarray(high - low, dtype=float)


def _take_columns(X: Any, columns: Array) -> Any:
    if is_numpy(X) or sparse.issparse(X):
        return X[:, columns]
    xp = get_namespace(X)
    return xp.take(X, xp.asarray(columns), axis=1)
