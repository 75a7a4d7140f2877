r"""Calibration errors and the decomposition of the Brier score.

All of them put rows into bins of about the same mass by one column of probabilities. Equal values share a bin; with
no more distinct values than bins every value has its own. In bin b with the share m_b of the mass, mean probability
p_b and frequency o_b of the predicted event,

    reliability = sum_b m_b (p_b - o_b)^2,     resolution = sum_b m_b (o_b - o)^2,     uncertainty = o (1 - o),

and Brier score = reliability - resolution + uncertainty + within, where ``within`` comes from probabilities that
differ inside a bin (Stephenson, Coelho and Jolliffe 2008): zero if every value has its own bin.

The expected calibration error (ECE) ``sum_b m_b |p_b - o_b|`` is above zero by chance alone. Its debiased form has

    |gap| - a exp(-gap^2 / 2v)        instead of        |gap|,        gap = p_b - o_b,

where v is the variance of the gap for calibrated probabilities, and a is such that the mean is then zero:
2 sqrt(v / pi) for a normal gap, and from the binomial distribution if the rarer outcome is expected only a few times.
A gap far beyond chance is unchanged. In between too much is subtracted: about half of a gap of sqrt(v), a seventh of
one of 2 sqrt(v), and a fortieth of 3 sqrt(v).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from leastwise.metrics.probabilities import checked_probabilities

Array = np.ndarray

#: The binomial distribution is used if the rarer outcome is expected less often than ``FEW`` times; more than
#: ``SEVERAL`` occurrences are then negligible.
FEW, SEVERAL = 20, 60


def ece_debias(count: Array, p: Array, gap: Array) -> Array:
    """The bias a exp(-gap^2 / 2v) of |gap|, for bins of ``count`` rows with mean probability p."""
    q, n = np.clip(np.minimum(p, 1 - p), 0, 0.5), np.maximum(np.round(count), 1)
    v = q * (1 - q) / n
    v = np.where(v > 1e-300, v, 0)  # smaller values have no reciprocal
    v_safe = np.where(v > 0, v, 1)
    a = 2 * np.sqrt(v / np.pi)
    few = (n * q < FEW) & (v > 0)
    if few.any():
        k = np.arange(SEVERAL)
        P = _binomial(k, n[few, None], q[few, None])
        away = np.abs(k / n[few, None] - q[few, None])
        a[few] = np.sum(P * away, axis=1) / np.sum(P * np.exp(-(away**2) / (2 * v[few, None])), axis=1)
    return np.where(v > 0, a * np.exp(-(gap**2) / (2 * v_safe)), 0)


def _binomial(k: Array, n: Array, q: Array) -> Array:
    """Binomial probabilities of k of n; many times faster than scipy.stats on small tables."""
    left = np.maximum(n - k, 0)
    log = gammaln(n + 1) - gammaln(k + 1) - gammaln(left + 1) + k * np.log(q) + left * np.log1p(-q)
    return np.where(k <= n, np.exp(log), 0)


@dataclass(frozen=True)
class BrierParts:
    """``brier = reliability - resolution + uncertainty + within``, summed over classes.

    Attributes
    ----------
    brier : float
        Mean squared distance between probabilities and one-hot labels, from 0 to 2.
    reliability : float
        Loss from miscalibration; 0 is perfect.
    resolution : float
        Gain from differences between bins; large is good.
    uncertainty : float
        Brier score of the class shares.
    within : float
        Loss from differences inside bins, or gain if negative.
    """

    brier: float
    reliability: float
    resolution: float
    uncertainty: float
    within: float


@dataclass(frozen=True)
class Binned:
    """Rows in bins, by the confidence in the most probable class (column 0) and by the probability of each class.

    Attributes
    ----------
    p, hit : ndarray of shape (n, 1 + c)
        Probabilities, and True where the predicted event occurred.
    bins : ndarray of int of shape (n, 1 + c)
    n_bins : int
    """

    p: Array
    hit: Array
    bins: Array
    n_bins: int

    @staticmethod
    def of(y: Array, P: Array, w: Array, n_bins: int) -> Binned:
        """From codes of the classes, probabilities and weights."""
        hot = y[:, None] == np.arange(P.shape[1])
        best = P.argmax(axis=1)
        p = np.column_stack([P.max(axis=1), P])
        bins = np.column_stack([equal_mass_bins(column, n_bins, w) for column in p.T])
        return Binned(p, np.column_stack([best == y, hot]), bins, n_bins)

    def error(self, column: int, w: Array, debiased: bool) -> float:
        """Calibration error of a column; the weights may differ from those of the bins."""
        p = self.p[:, column]
        mass, squares, p_sum, gap = (
            np.bincount(self.bins[:, column], weights=x, minlength=self.n_bins)
            for x in (w, w**2, w * p, w * (p - self.hit[:, column]))
        )
        used = mass > 0
        mass, squares, p_sum, gap = mass[used], squares[used], p_sum[used], gap[used]
        size = np.abs(gap)
        if debiased:
            size = size - mass * ece_debias(mass**2 / squares, p_sum / mass, gap / mass)
        return float(size.sum() / mass.sum())

    def classwise(self, w: Array, debiased: bool) -> float:
        """Mean over classes of the calibration error."""
        return float(np.mean([self.error(k, w, debiased) for k in range(1, self.p.shape[1])]))

    def brier(self, w: Array) -> BrierParts:
        """Decomposition of the Brier score."""
        parts = np.sum([self._parts(k, w) for k in range(1, self.p.shape[1])], axis=0)
        return BrierParts(*map(float, parts))

    def _parts(self, column: int, w: Array) -> tuple[float, ...]:
        p, hit = self.p[:, column], self.hit[:, column]
        mass, p_sum, o_sum = (
            np.bincount(self.bins[:, column], weights=x, minlength=self.n_bins) for x in (w, w * p, w * hit)
        )
        p_mean, o_mean = (x / np.where(mass > 0, mass, 1) for x in (p_sum, o_sum))
        total = w.sum()
        share = w @ hit / total
        brier = w @ (p - hit) ** 2 / total
        reliability = mass @ (p_mean - o_mean) ** 2 / total
        resolution = mass @ (o_mean - share) ** 2 / total
        uncertainty = share * (1 - share)
        return brier, reliability, resolution, uncertainty, brier - (reliability - resolution + uncertainty)


def equal_mass_bins(values: Array, n_bins: int, w: Array | None = None) -> Array:
    """A bin 0 ... n_bins - 1 of about equal mass for every value; equal values share a bin."""
    _, place = np.unique(values, return_inverse=True)
    mass = np.bincount(place, weights=w).astype(float)
    if len(mass) <= n_bins:
        return place
    middle = np.cumsum(mass) - mass / 2
    return np.minimum((middle * n_bins / mass.sum()).astype(int), n_bins - 1)[place]


def equal_width_bins(values: Array, n_bins: int) -> Array:
    """A bin 0 ... n_bins - 1 of equal width for every value from 0 to 1."""
    return np.minimum((values * n_bins).astype(int), n_bins - 1)


def brier_decomposition(
    y_true: Any, proba: Any, *, classes: Any = None, n_bins: int = 15, sample_weight: Any = None
) -> BrierParts:
    """Decomposition of the Brier score, summed over classes.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    proba : array-like of shape (n, c)
        Probabilities, one column per class.
    classes : array-like of shape (c,), optional
        Labels of the columns; by default the sorted labels of ``y_true``.
    n_bins : int
        Number of bins of equal mass for each class.
    sample_weight : array-like of shape (n,), optional

    Examples
    --------
    >>> from leastwise.metrics.calibration import brier_decomposition
    >>> parts = brier_decomposition([0, 1, 1, 1], [[0.5, 0.5], [0.5, 0.5], [0.1, 0.9], [0.1, 0.9]])
    >>> round(parts.reliability, 3), round(parts.within, 3)
    (0.01, 0.0)
    """
    binned, w = _binned(y_true, proba, classes, n_bins, sample_weight)
    return binned.brier(w)


def calibration_error(
    y_true: Any,
    proba: Any,
    *,
    classes: Any = None,
    n_bins: int = 15,
    debiased: bool = True,
    sample_weight: Any = None,
) -> float:
    """Expected calibration error without its upward bias: about zero on average for calibrated probabilities.

    The distance between the confidence in the most probable class and its accuracy, see the formula above. It may be
    slightly negative. ``debiased=False`` is the plain error of :func:`expected_calibration_error`. The other
    parameters are those of :func:`brier_decomposition`.
    """
    binned, w = _binned(y_true, proba, classes, n_bins, sample_weight)
    return binned.error(0, w, debiased)


def expected_calibration_error(
    y_true: Any, proba: Any, *, classes: Any = None, n_bins: int = 15, strategy: str = "mass"
) -> float:
    """Mean distance between confidence and accuracy over bins of the confidence.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        True labels.
    proba : array-like of shape (n, c)
        Probabilities, one column per class.
    classes : array-like of shape (c,), optional
        Labels of the columns; by default the sorted labels of ``y_true``.
    n_bins : int
        Number of bins.
    strategy : {"mass", "width"}
        Bins of about the same number of rows, where rows of equal confidence share a bin, or of the same width in
        confidence.

    Returns
    -------
    float
        ``sum over bins of (rows in bin / n) * |mean confidence - accuracy|``; 0 is perfect.

    See Also
    --------
    calibration_error : The same error without its upward bias, and with weights.
    """
    y_true, P, classes = checked_probabilities(y_true, proba, classes)
    if strategy not in ("mass", "width"):
        raise ValueError(f"strategy={strategy!r} is not known: use 'mass' or 'width'.")
    check_whole("n_bins", n_bins, 1)
    confidence, w = P.max(axis=1), np.ones(len(P))
    correct = classes[P.argmax(axis=1)] == y_true
    bins = (equal_mass_bins if strategy == "mass" else equal_width_bins)(confidence, n_bins)
    return Binned(confidence[:, None], correct[:, None], bins[:, None], n_bins).error(0, w, debiased=False)


def classwise_calibration_error(
    y_true: Any,
    proba: Any,
    *,
    classes: Any = None,
    n_bins: int = 15,
    debiased: bool = True,
    sample_weight: Any = None,
) -> float:
    """Mean over classes of the calibration error of the probability of each class.

    Parameters are those of :func:`calibration_error`. It also covers classes that are never the most probable one,
    such as rare ones.
    """
    binned, w = _binned(y_true, proba, classes, n_bins, sample_weight)
    return binned.classwise(w, debiased)


def coded(y_true: Any, proba: Any, classes: Any) -> tuple[Array, Array, Array]:
    """Codes of the classes, probabilities and classes, checked."""
    y_true, P, classes = checked_probabilities(y_true, proba, classes)
    if not len(y_true):
        raise ValueError("y_true has no rows: there is nothing to measure.")
    if not ((P >= 0) & (P <= 1)).all() or np.abs(P.sum(axis=1) - 1).max(initial=0) > 1e-4:
        raise ValueError("proba must have values from 0 to 1 and rows that sum to 1, like those of predict_proba.")
    hot = y_true[:, None] == classes
    if not (hot.sum(axis=1) == 1).all():
        row = int(np.flatnonzero(hot.sum(axis=1) != 1)[0])
        raise ValueError(f"y_true holds {y_true[row]!r} in row {row}, which is not one of {classes.tolist()[:20]}.")
    return hot.argmax(axis=1), P, classes


def check_whole(name: str, value: Any, least: int) -> None:
    """An error for anything but an integer of ``least`` or more."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name}={value!r} must be a whole number of {least} or more.")


def checked_mass(sample_weight: Any, n: int) -> Array:
    """Weights of n rows, not all of them zero."""
    w = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if w.shape != (n,) or not np.isfinite(w).all() or (w < 0).any() or not w.sum() > 0:
        raise ValueError(
            f"sample_weight of shape {w.shape} must be {n} finite numbers, not negative and not all zero."
        )
    return w


def _binned(y_true: Any, proba: Any, classes: Any, n_bins: int, sample_weight: Any) -> tuple[Binned, Array]:
    y, P, _ = coded(y_true, proba, classes)
    check_whole("n_bins", n_bins, 1)
    w = checked_mass(sample_weight, len(y))
    return Binned.of(y, P, w, n_bins), w
