"""Regression targets, scaled by powers of two."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from leastwise.linalg.moments import Moments
from leastwise.problem.targets.classes import Targets, check_weights
from leastwise.utils.arrays import get_namespace, is_numpy, to_namespace, widest
from leastwise.utils.warn import warn_user

Array = np.ndarray


@dataclass(frozen=True)
class ValueTargets(Targets):
    """Regression targets, in units that are powers of two so that nothing is rounded and nothing overflows.

    Attributes
    ----------
    unit, offset : ndarray of shape (outputs,)
        ``Z = (y - offset) / unit``.
    flat : bool
        y has shape (n,).
    bias : bool
        True if the model has an intercept. In single precision the mean is then subtracted, since a mean that is
        large compared with the differences would cost digits.
    owner : str
        Name of the estimator, for messages.
    bounds : tuple of float, optional
        The smallest and the largest possible target.
    """

    unit: Any = None
    offset: Any = None
    flat: bool = True
    bias: bool = True
    owner: str = "LSSVR"
    bounds: tuple[float, float] | None = None

    kind: ClassVar[str] = "values"
    sklearn_checks: ClassVar[dict[str, Any]] = {"multi_output": True, "y_numeric": True}

    @property
    def n_outputs(self) -> int:
        """Number of columns of Z."""
        return len(self.unit)

    def check_raw(self, y: Any) -> None:
        """Raise an error for dates and text before scikit-learn validates y."""
        kind = np.asarray(y).dtype.kind
        if kind in "mM":
            raise ValueError(
                f"y holds {'dates' if kind == 'M' else 'durations'}: give numbers, such as days since some day."
            )
        text = next((v for v in np.asarray(y, dtype=object).ravel() if isinstance(v, str)), None)
        if text is not None:
            raise ValueError(
                f"y holds text, such as {str(text)!r}: {self.owner} is a regressor and needs numbers. "
                f"For classes use {self.owner[:-1]}C."
            )

    def weights(self, sample_weight: Any, y: Any) -> Array:
        """Row weights."""
        return check_weights(sample_weight, None, y)

    def learn(self, y: Any) -> Self:
        """Units of these rows."""
        Z = self.encode(y)
        return self._with_units(Z.reshape(len(Z), -1), np.float64, Z.ndim == 1)

    def fitted_to(self, y: Any, dtype: Any) -> Self:
        """Units of all rows; warns if y is constant."""
        Z = np.asarray(y, dtype=float).reshape(len(y), -1)
        self._check_bounds(Z)
        known = self._with_units(Z, dtype, np.ndim(y) == 1)
        if len(Z) > 1 and (np.ptp(Z, axis=0) == 0).all():
            warn_user(
                f"y is constant, {Z[0].tolist() if Z.shape[1] > 1 else float(Z[0, 0])}: there is nothing else to "
                "learn.",
            )
        return known

    def _check_bounds(self, Z: Array) -> None:
        if self.bounds is None or not Z.size:
            return
        low, high = self.bounds
        if Z.min() < low or Z.max() > high:
            raise ValueError(
                f"y has values from {Z.min():g} to {Z.max():g}, but bounds=({low:g}, {high:g}): correct these "
                "values, or give bounds that contain them."
            )

    def _with_units(self, Z: Array, dtype: Any, flat: bool) -> Self:
        if Z.shape[1] == 0:
            raise ValueError(f"y has shape {Z.shape}: there are no columns; give one column or more.")
        offset = Z.mean(axis=0) if np.dtype(dtype) == np.float32 and self.bias else np.zeros(Z.shape[1])
        largest = np.abs(Z - offset).max(axis=0)
        unit = 2.0 ** np.floor(np.log2(np.where(largest > 0, largest, 1.0)))
        return replace(self, unit=unit, offset=offset, flat=flat)

    def named(self, classes: Any) -> Self:
        """There are no classes to list."""
        raise ValueError("classes= is for classifiers: this model is a regressor.")

    def __add__(self, other: Self) -> Self:
        if len(self.unit) != len(other.unit) or self.flat != other.flat:
            forms = ["(n,)" if known.flat else f"(n, {len(known.unit)})" for known in (self, other)]
            raise ValueError(f"y has the shape {forms[0]} in some rows and {forms[1]} in others: give one form.")
        return self

    def encode(self, y: Any) -> Array:
        """Values as floats."""
        Z = _numeric(np.asarray(y))
        if Z is None:
            raise ValueError(f"y must be numeric: {self.owner} is a regressor.")
        if not np.isfinite(Z).all():
            raise ValueError("y contains NaN or inf; every value must be finite.")
        self._check_bounds(Z)
        if self.unit is not None and (Z.ndim == 1, Z.size) != (self.flat, len(Z) * len(self.unit)):
            first = "(n,)" if self.flat else f"(n, {len(self.unit)})"
            raise ValueError(f"y has shape {Z.shape}; that of the first rows was {first}: give y in the same form.")
        return Z

    def arrange(self, values: Array, dtype: Any) -> tuple[Array, Array]:
        """Zeros for codes, and Z."""
        Z = (values.reshape(len(values), -1).astype(float) - self.offset) / self.unit
        return np.zeros(len(Z), dtype=int), Z.astype(dtype)

    def recode_moments(self, moments: Moments, old: Self) -> Moments:
        """Sums of the same rows in these units."""
        scale, move = old.unit / self.unit, (old.offset - self.offset) / self.unit
        C, z = moments.C * scale + np.outer(moments.p, move), moments.z * scale + moments.mass * move
        return replace(moments, C=C, z=z)

    def blank(self, n: int) -> Array:
        """Placeholder values of n rows."""
        return np.zeros(n if self.flat else (n, len(self.unit)))


def _numeric(y: Array) -> Array | None:
    """Values as floats; None for text, also such as "1.5", and dates."""
    if y.dtype.kind not in "biufO" or (y.dtype.kind == "O" and any(isinstance(v, str) for v in y.ravel())):
        return None
    try:
        return np.asarray(y, dtype=float)
    except (TypeError, ValueError):
        return None


def check_bounds(bounds: Any) -> tuple[float, float] | None:
    """The smallest and the largest possible target as numbers; infinite where there is none."""
    if bounds is None:
        return None
    try:
        low, high = bounds
        ends = (-np.inf if low is None else float(low), np.inf if high is None else float(high))
    except (TypeError, ValueError):
        ends = (np.nan, np.nan)
    if not ends[0] < ends[1]:
        raise ValueError(f"bounds={bounds!r} must be two increasing numbers, such as (0, 10), or (0, None).")
    return ends


def in_units(F: Any, unit: Any, offset: Any, flat: bool, bounds: tuple[float, float] | None = None) -> Any:
    """Predictions in the unit and shape of y, within its bounds; single precision stays unless it would overflow."""
    if not is_numpy(F):
        wide, xp = widest(F), get_namespace(F)
        wide = wide * to_namespace(unit, wide) + to_namespace(offset, wide)
        values = xp.astype(wide if bounds is None else xp.clip(wide, *bounds), F.dtype)
        return values[:, 0] if flat else values
    values = np.asarray(F, dtype=float) * unit + offset
    values = values if bounds is None else np.clip(values, *bounds)
    if F.dtype == np.float32 and np.abs(values[np.isfinite(values)]).max(initial=0) < np.finfo(np.float32).max:
        values = values.astype(np.float32)
    return values[:, 0] if flat else values
