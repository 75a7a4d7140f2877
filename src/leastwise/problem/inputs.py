"""Inputs: from the columns of X as they come to the numbers that kernels compare.

A kernel of a distance depends on the units of the columns, and on their tails. ``scale=`` names a rule that is
learned from the weighted training rows; ``Inputs`` applies it to any rows, and multiplies each column by its feature
weight. Columns that do not vary in training are dropped.

X is a matrix of numbers. Missing values are NaN; categories are codes 0, 1, ..., and -1 for a value that the training
rows do not have. Only ``Inputs`` turns these into columns that can be compared. A missing number becomes the median
of its column, and one more column tells which are missing. A category becomes one column for each value
(:class:`OneHot`). Both are scaled such that the expected squared distance of two random rows is 2, that of a
standardised column.

``SCALES`` is the only list of the names that ``scale=`` takes. A new rule is a class with ``fit`` and ``transform``
under a name. Estimators, error messages and model files learn of it from there; export to ONNX needs a converter
(:mod:`leastwise.onnx.registry`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from scipy import sparse
from scipy.special import ndtri

from leastwise.utils.arrays import DeviceRows, get_namespace, is_numpy, to_namespace, to_numpy

Array = np.ndarray

#: Quantile scaling interpolates between one of so many distinct values of a column: ranks of few rows are noise.
VALUES_PER_KNOT = 30
#: Fewest and most values that it interpolates between.
FEWEST_KNOTS, MOST_KNOTS = 10, 200
#: Fewest columns that may share a unit.
UNIT_COLUMNS = 5
#: Values of a category with a column of their own: the most frequent ones; all others share one.
OWN_COLUMNS = 50


@dataclass(frozen=True, eq=False)
class Scale:
    """A rule for numeric columns.

    ``fit`` learns from rows X (n x d, dense or sparse) with weights w of any sum, one for each row, or one for each
    entry, which is 0 where a value is missing; ``transform`` has the same number of columns. Neither sees NaN. Sparse
    rows stay sparse: zeros stay zeros.
    """

    for_sparse: ClassVar[bool] = True
    file_fields: ClassVar[Mapping[str, Any]] = {}

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


def register_scale(name: str, fields: Mapping[str, Any] | None = None) -> Callable[[ScaleClass], ScaleClass]:
    """Decorator that makes a class of rules known by a name, instead of any that had it.

    ``fields`` declares the values that its fields take in model files (:mod:`leastwise.persistence.fields`).
    """

    def add(cls: ScaleClass) -> ScaleClass:
        SCALES[name] = cls
        cls.file_fields = dict(fields or {})
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
        share = w / w.sum(axis=0)
        if sparse.issparse(X):
            size = _largest(X)
            mean_square = np.asarray(X.multiply(1 / size).power(2).T @ share).ravel()
            return cls(np.zeros(X.shape[1]), size * np.sqrt(mean_square))
        size = _largest(X)  # squares of 1e300 would overflow
        Z = X / size
        mean = _means(Z, share)
        return cls(mean * size, size * np.sqrt(_means((Z - mean) ** 2, share)))

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
        share = w / w.sum(axis=0)
        if sparse.issparse(X):
            present = np.asarray((X != 0).T @ share).ravel()
            total = np.asarray(abs(X).T @ share).ravel()
            center, spread = np.zeros(X.shape[1]), _nonzero(total / _nonzero(present))
        else:
            center = weighted_median(X, share)
            deviation = np.abs(X - center)
            spread, mean = weighted_median(deviation, share), _means(deviation, share)
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
        share = w / w.sum(axis=0)
        columns = [_normal_scores(X[:, j], share if w.ndim == 1 else share[:, j]) for j in range(X.shape[1])]
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
            with np.errstate(over="ignore", invalid="ignore"):  # knots that differ by less than 1e-308
                curve = np.interp(X[:, j], knots, scores)
            # Rounding may leave the scores of the knots around a value, or the finite numbers.
            place = np.clip(np.searchsorted(knots, X[:, j], side="right") - 1, 0, len(knots) - 1)
            above = np.where(X[:, j] > knots[0], scores[np.minimum(place + 1, len(knots) - 1)], scores[0])
            scaled[:, j] = np.clip(np.where(np.isfinite(curve), curve, scores[place]), scores[place], above)
        low, high = self.knots[:, 0], self.knots[:, -1]
        with np.errstate(over="ignore"):  # values that differ by less than 1e-308, or by more than the largest number
            slope = (self.scores[:, -1] - self.scores[:, 0]) / _nonzero(high - low)
            slope = np.where(np.isfinite(slope), slope, 0.0)
            return scaled + slope * (np.maximum(X - high, 0) - np.maximum(low - X, 0))


def _normal_scores(x: Array, share: Array) -> tuple[Array, Array]:
    """Distinct values of a column, or some of many, and normal scores of their mid-ranks.

    Those chosen are evenly spaced in scores: a curve through all values would be as rough as their sample.
    """
    x, share = x[share > 0], share[share > 0]
    values, place = np.unique(x, return_inverse=True)
    mass = np.bincount(place.reshape(-1), weights=share)
    rank = np.cumsum(mass) - mass / 2
    # A tenth of a millionth keeps scores finite where one value has all the weight.
    scores = ndtri(np.clip(rank, 1e-7, 1 - 1e-7))
    count = min(max(len(values) // VALUES_PER_KNOT, FEWEST_KNOTS), MOST_KNOTS)
    if len(values) > count:
        wanted = np.interp(np.linspace(scores[0], scores[-1], count), scores, np.arange(len(values)))
        some = np.unique(np.round(wanted).astype(int))
        values, scores = values[some], scores[some]
    return values.astype(float), scores


def weighted_median(X: Array, share: Array) -> Array:
    """Medians of the columns; ``share`` are weights of rows, or of entries, that sum to 1."""
    order = np.argsort(X, axis=0, kind="stable")
    mass = np.cumsum(share[order] if share.ndim == 1 else np.take_along_axis(share, order, axis=0), axis=0)
    last = X.shape[0] - 1
    low = np.minimum(np.sum(mass < 0.5 - 1e-12, axis=0), last)
    high = np.minimum(np.sum(mass <= 0.5 + 1e-12, axis=0), last)
    column = np.arange(X.shape[1])
    return (X[order[low, column], column] / 2 + X[order[high, column], column] / 2).astype(float)


def _means(X: Array, share: Array) -> Array:
    """Means of the columns, for weights of rows or of entries."""
    return share @ X if share.ndim == 1 else np.einsum("ij,ij->j", share, X)


def _largest(X: Any) -> Array:
    """Largest absolute value of each column; 1 for columns of zeros."""
    size = abs(X).max(axis=0)
    size = size.toarray().ravel() if sparse.issparse(size) else np.asarray(size, dtype=float)
    return _nonzero(size)


def _nonzero(a: Array) -> Array:
    """``a`` with ones in place of zeros, and of numbers so small that their reciprocals overflow."""
    return np.where(a > np.finfo(float).tiny, a, 1.0)


@dataclass(frozen=True, eq=False)
class OneHot:
    """A category as one column for each value, times a factor.

    The last column is for values that were not there in training. They are as far from all known values as these are
    from each other.

    Attributes
    ----------
    column : int
        The column of X that holds the codes.
    slots : ndarray of int
        For code k, ``slots[k]`` is the new column that is not zero; the last entry is that of NaN.
    width : int
        Number of new columns.
    factor : float
        ``1 / sqrt(1 - sum_k p_k^2)`` for shares p_k of the new columns.
    """

    column: int
    slots: Array
    width: int
    factor: float

    @classmethod
    def fit(cls, column: int, codes: Array, w: Array) -> OneHot | None:
        """Learned from the codes of weighted rows; None if they do not vary."""
        absent = np.isnan(codes)
        mass = np.bincount(codes[~absent].astype(int), weights=w[~absent], minlength=1)
        # Ties go to the lower code, whatever the order of the rows.
        frequent = np.sort(np.argsort(-mass, kind="stable")[: min(OWN_COLUMNS, int(np.sum(mass > 0)))])
        slots = np.full(len(mass) + 1, -1)
        slots[frequent] = np.arange(len(frequent))
        others = np.flatnonzero((mass > 0) & (slots[:-1] < 0))
        slots[others] = len(frequent)
        n_known = len(frequent) + (len(others) > 0) + bool(absent.any())
        if absent.any():
            slots[-1] = n_known - 1
        slots[slots < 0] = n_known
        share = np.bincount(slots, weights=np.r_[mass, w[absent].sum()]) / w.sum()
        if n_known < 2:
            return None
        return cls(int(column), slots, n_known + 1, float(1 / np.sqrt(1 - np.sum(share**2))))

    def transform(self, codes: Array) -> Array:
        """The columns of some codes."""
        absent, n_codes = np.isnan(codes), len(self.slots) - 1
        unseen = ~absent & ((codes < 0) | (codes >= n_codes))
        place = np.where(absent, n_codes, np.where(unseen, 0, codes)).astype(int)
        slot = np.where(unseen, self.width - 1, self.slots[place])
        return np.where(slot[:, None] == np.arange(self.width), self.factor, 0.0)


@dataclass(frozen=True, eq=False)
class Inputs:
    """What happens to rows before a kernel sees them.

    The columns that a kernel sees are the scaled numbers, then one for each column with missing numbers, then those
    of the categories.

    Attributes
    ----------
    scale : str or None
        Name of the rule.
    rule : Scale or None
        The fitted rule; None leaves numbers as they are.
    columns : ndarray of int or None
        Columns of numbers that vary; None for all columns.
    weights : ndarray or None
        Feature weights of the columns that a kernel sees; None for 1.
    fill : ndarray or None
        Medians of ``columns``, for missing values; None for kernels that are not computed from rows, and sparse rows.
    missing : ndarray of int or None
        Columns of numbers of which some were missing in training,
    missing_factors : ndarray or None
        and what stands for a missing one: ``1 / sqrt(p (1 - p))`` for a share p.
    categories : tuple of OneHot
    """

    scale: str | None = None
    rule: Scale | None = None
    columns: Array | None = None
    weights: Array | None = None
    fill: Array | None = None
    missing: Array | None = None
    missing_factors: Array | None = None
    categories: tuple[OneHot, ...] = ()

    @classmethod
    def fit(cls, scale: str | None, X: Any, w: Array, categories: Sequence[int] = ()) -> Inputs:
        """Inputs by a named rule, learned from rows with weights w.

        ``scale=None`` leaves numbers as they are. ``categories`` are the columns that hold codes.
        """
        rows, w = to_numpy(X), np.asarray(w, dtype=float)
        if sparse.issparse(rows):
            return cls() if scale is None else cls._fit_numbers(scale, rows.astype(float), w)
        one_hot = (OneHot.fit(j, rows[:, j], w) for j in categories)
        found = tuple(one for one in one_hot if one is not None)
        numeric = np.setdiff1d(np.arange(rows.shape[1]), np.asarray(categories, dtype=int))
        part = np.asarray(rows[:, numeric] if len(categories) else rows, dtype=float)
        absent = np.isnan(part)
        if not absent.any():
            fitted = cls._fit_numbers(scale, part, w, medians(part, w))
        else:
            known = ~absent.all(axis=0)
            part, absent, numeric = part[:, known], absent[:, known], numeric[known]
            entries = np.where(absent, 0.0, w[:, None])
            fill = medians(np.where(absent, 0.0, part), entries)
            fitted = cls._fit_numbers(scale, np.where(absent, fill, part), entries, fill)
            some = np.flatnonzero(absent.any(axis=0))
            share = _means(absent[:, some].astype(float), w / w.sum())
            if len(some):
                fitted = replace(fitted, missing=numeric[some], missing_factors=1 / np.sqrt(share * (1 - share)))
        columns = numeric if fitted.columns is None else numeric[fitted.columns]
        whole = len(columns) == rows.shape[1]
        return replace(fitted, columns=None if whole else columns, categories=found)

    @classmethod
    def _fit_numbers(cls, scale: str | None, X: Any, w: Array, fill: Array | None = None) -> Inputs:
        """Inputs for numbers, none of which is NaN, with weights of rows or of entries."""
        if scale is None:
            return cls(fill=fill)
        varies = np.flatnonzero(column_ranges(X) > 0)
        if len(varies) == X.shape[1]:
            return cls(scale, SCALES[scale].fit(X, w), fill=fill)
        rule = SCALES[scale].fit(X[:, varies], w if w.ndim == 1 else w[:, varies])
        return cls(scale, rule, varies, fill=None if fill is None else fill[varies])

    @property
    def identity(self) -> bool:
        """True if rows without missing values stay as they are."""
        plain = self.rule is None and self.columns is None and self.weights is None
        return plain and self.missing is None and not self.categories

    def with_weights(self, weights: Array | None) -> Inputs:
        """The same with other feature weights."""
        return replace(self, weights=weights)

    def feature_weights(self, n_features: int) -> Array | None:
        """Weights of the columns of X; 0 for columns that are not used. None if there are no weights."""
        if self.weights is None:
            return None
        source = [np.arange(n_features) if self.columns is None else self.columns]
        source += [] if self.missing is None else [self.missing]
        source += [np.full(category.width, category.column) for category in self.categories]
        return np.sqrt(np.bincount(np.concatenate(source), weights=self.weights**2, minlength=n_features))

    def same_as(self, other: Inputs) -> bool:
        """True if the same is done to all rows; where nothing is done, missing values may have other medians."""
        return (self.identity and other.identity) or _same(self, other)

    def __call__(self, X: Any) -> Any:
        """Rows as kernels see them, in the precision of X.

        What was learned from dense rows, such as a centre of each column, makes sparse rows dense.
        """
        if isinstance(X, DeviceRows):
            done = self(X.there)
            return X if done is X.there else DeviceRows(done)
        if sparse.issparse(X) and self.fill is not None and not self.identity:
            X = X.toarray()
        fills = self.fill is not None and has_missing(X)
        if self.identity and not fills:
            return X
        expands = self.missing is not None or len(self.categories) > 0
        if not is_numpy(X) and (fills or expands):
            return to_namespace(self(to_numpy(X)), X)
        Z = X if self.columns is None else _take_columns(X, self.columns)
        if fills:
            Z = np.where(np.isnan(Z), self.fill, Z)
        if self.rule is not None:
            Z = self.rule.transform(Z)
        if expands:
            Z = np.concatenate([Z, *self._indicators(X)], axis=1)
        if self.weights is not None:
            if sparse.issparse(Z):
                Z = Z.multiply(self.weights).tocsr()
            else:
                Z = Z * (self.weights if is_numpy(Z) else to_namespace(self.weights, Z))
        return Z.astype(X.dtype, copy=False) if is_numpy(X) else Z

    def _indicators(self, X: Array) -> list[Array]:
        """Columns that tell what is missing, and those of the categories."""
        one_hot = [category.transform(X[:, category.column]) for category in self.categories]
        if self.missing is None:
            return one_hot
        return [np.isnan(X[:, self.missing]) * self.missing_factors, *one_hot]


def has_missing(X: Any) -> bool:
    """True if a dense array of any library has NaN."""
    xp = get_namespace(X)
    return not sparse.issparse(X) and bool(xp.any(xp.isnan(X)))


def check_sparse_missing(X: Any) -> None:
    """Raise an error if sparse X has missing values, which would make it dense."""
    if sparse.issparse(X) and np.isnan(X.data).any():
        raise ValueError(
            "Input X contains NaN, and is sparse: missing values are possible in dense X only. Fill them first, for "
            "example with sklearn.impute.SimpleImputer, or give X.toarray()."
        )


#: From this many rows on, medians are computed column by column.
MANY_ROWS = 10_000


def medians(X: Array, w: Array) -> Array:
    """Medians of the columns, for weights of rows or of entries."""
    if w.ndim == 1 and np.all(w == w[0]):  # the sum of two halves cannot overflow
        if len(X) < MANY_ROWS:
            return 2 * np.median(X / 2, axis=0)
        return np.array([2 * np.median(column / 2) for column in X.T])  # a column at a time stays in the cache
    return weighted_median(X, w / w.sum(axis=0))


def _same(a: Any, b: Any) -> bool:
    """True if two rules, or their fields, are equal."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    if type(a) is not type(b) or not is_dataclass(a):
        return np.array_equal(a, b)
    return all(_same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))


def have_one_unit(X: Array, categories: Sequence[int] = ()) -> bool:
    """True if the columns of a dense X look like measurements in the same unit, such as pixels or words.

    That is, if there are at least ``UNIT_COLUMNS`` columns of numbers that vary, and at least half of them have a
    range of at least half of the largest one. Then a column that varies little may well matter little.
    """
    numbers = np.delete(np.asarray(X), np.asarray(categories, dtype=int), axis=1)
    known = ~np.isnan(numbers)
    low, high = (f(numbers, axis=0, initial=start, where=known) for f, start in ((np.min, np.inf), (np.max, -np.inf)))
    ranges = (high / 2 - low / 2)[high > low]
    if len(ranges) < UNIT_COLUMNS:
        return False
    return bool(np.median(ranges) >= ranges.max() / 2)


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
