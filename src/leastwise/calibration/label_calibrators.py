"""From scores of many labels to probabilities: the calibrators, and their fits to held-out scores.

Every label has its own class shares and, for blends, its own ``sharpness`` and ``power``. They are fitted to held-out
scores, see :mod:`leastwise.calibration.label_blend`, in one of two ways:

pooled
    one pair for all labels: fast, for the many points of a search.
per label
    a pair for each label, shrunk towards the pooled one, more strongly the fewer rows the label has.

In both cases all pairs are then shrunk towards zero, which gives the class shares, by the credibility of the
held-out scores of all labels together.

Only known entries count. A label with one known class still has class shares other than 0 and 1: half a row is added
to each class.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from sklearn.isotonic import IsotonicRegression, isotonic_regression

from leastwise.calibration.blend import credibility, mean_share
from leastwise.calibration.label_blend import BlendFit, LabelSample, class_counts
from leastwise.utils.arrays import get_namespace, is_numpy, mapped, spread_over, to_namespace, to_numpy

Array = np.ndarray


class LabelCalibrator(Protocol):
    """From scores of shape (n, O) to probabilities or decision values of the same shape.

    ``in_domain``, of shape (n,), is 1 for rows near the training data and falls to 0 far away, where the result is
    the class shares; see :mod:`leastwise.calibration.extrapolation`. None means 1 everywhere.
    """

    def proba(self, F: Array, in_domain: Array | None = None) -> Array:
        """Probabilities; in every row those of each label sum to one."""
        ...

    def decision(self, F: Array, in_domain: Array | None = None) -> Array:
        """Values that order the classes of a label as the probabilities do."""
        ...


@dataclass(frozen=True)
class LabelClip:
    """Eq. (3) for each label. Ignores the domain weight, as in the paper.

    Attributes
    ----------
    starts : ndarray of int of shape (T + 1,)
    shares : ndarray of shape (O,)
        Class shares, returned where all scores of a label are clipped.
    """

    starts: Array
    shares: Array

    def proba(self, F: Array, in_domain: Array | None = None) -> Array:
        """Probabilities."""
        xp = get_namespace(F)
        P = xp.clip(F, 0, None)
        total = _over_labels(np.add, P, self.starts)
        return xp.where(total > 0, P / xp.where(total > 0, total, 1), to_namespace(self.shares, F))

    def decision(self, F: Array, in_domain: Array | None = None) -> Array:
        """Probabilities."""
        return self.proba(F)


@dataclass(frozen=True)
class LabelBlend:
    """``leastwise.calibration.calibrators.Blend`` for each label.

    Attributes
    ----------
    starts : ndarray of int of shape (T + 1,)
    shares : ndarray of shape (O,)
        Class shares.
    delta, floor, sharpness, power : ndarray of shape (T,)
    """

    starts: Array
    shares: Array
    delta: Array
    floor: Array
    sharpness: Array
    power: Array

    def decision(self, F: Array, in_domain: Array | None = None) -> Array:
        """Logarithms of probabilities, up to a constant per row and label."""
        xp, shares = get_namespace(F), to_namespace(self.shares, F)
        sharpness, power, delta = (
            to_namespace(self._by_output(x), F) for x in (self.sharpness, self.power, self.delta)
        )
        logits = sharpness * F + power * xp.log(xp.clip(F, 0, None) / shares + delta)
        return to_namespace(np.log(self.shares), F) + (logits if in_domain is None else in_domain[:, None] * logits)

    def proba(self, F: Array, in_domain: Array | None = None) -> Array:
        """Probabilities."""
        L = self.decision(F, in_domain)
        L -= _over_labels(np.maximum, L, self.starts)
        P = mapped("exp", L, L)
        P /= _over_labels(np.add, P, self.starts)
        floor = to_namespace(self._by_output(self.floor), F)
        P *= 1 - floor
        P += floor * to_namespace(self.shares, F)
        return P

    @property
    def slope(self) -> Array:
        """``leastwise.calibration.calibrators.Blend.slope`` of each label."""
        return self.sharpness.astype(float) * mean_share(self.shares, self.starts) + self.power

    def _by_output(self, x: Array) -> Array:
        return np.repeat(x, np.diff(self.starts))


@dataclass(frozen=True)
class LabelIsotonic:
    """One step function per label and class, then divided by the sum.

    Attributes
    ----------
    starts : ndarray of int of shape (T + 1,)
    shares : ndarray of shape (O,)
    floor : ndarray of shape (T,)
    corners : ndarray of int of shape (O + 1,)
        Column k has the corners ``corners[k] ... corners[k + 1] - 1`` of all.
    knots, steps : ndarray of shape (number of corners,)
        Scores at the corners, and the values there.
    """

    starts: Array
    shares: Array
    floor: Array
    corners: Array
    knots: Array
    steps: Array

    def proba(self, F: Array, in_domain: Array | None = None) -> Array:
        """Probabilities."""
        known = to_numpy(F)  # step functions are evaluated by numpy
        parts = [slice(a, b) for a, b in zip(self.corners[:-1], self.corners[1:], strict=True)]
        P = np.column_stack([np.interp(f, self.knots[s], self.steps[s]) for f, s in zip(known.T, parts, strict=True)])
        P = LabelClip(self.starts, self.shares).proba(to_namespace(P.astype(known.dtype, copy=False), F))
        weight = to_namespace(np.repeat(1 - self.floor, np.diff(self.starts)), F)
        weight = weight * (1 if in_domain is None else in_domain[:, None])
        return weight * P + (1 - weight) * to_namespace(self.shares, F)

    def decision(self, F: Array, in_domain: Array | None = None) -> Array:
        """Probabilities."""
        return self.proba(F, in_domain)


# ----------------------------------------------------------------------- fits


def fit_label_clip(sample: LabelSample) -> LabelClip:
    """Clip and normalise: nothing but the class shares is estimated."""
    return LabelClip(sample.starts, _shares(sample, _sizes(sample)))


def fit_label_blend(
    sample: LabelSample,
    start: LabelCalibrator | None = None,
    pooled: bool = False,
    pull: float | None = None,
    shrink: bool = True,
    use_power: bool = True,
) -> LabelBlend:
    """The blend of every label; parameters as in ``leastwise.calibration.calibrators.fit_label_calibrator``.

    ``use_power=False`` keeps the power at zero, which is a softmax with a temperature.
    """
    size = _sizes(sample)
    blend, strength = _unshrunk_blend(sample, _shares(sample, size), size, use_power, start, pooled, pull)
    factor = sample.F.dtype.type(strength if shrink else 1.0)
    return replace(blend, sharpness=factor * blend.sharpness, power=factor * blend.power)


def fit_label_isotonic(
    sample: LabelSample,
    start: LabelCalibrator | None = None,
    pooled: bool = False,
    pull: float | None = None,
    shrink: bool = True,
) -> LabelIsotonic:
    """Step functions of every label, shrunk towards the class shares by the credibility of a blend."""
    size = _sizes(sample)
    shares = _shares(sample, size)
    strength = _unshrunk_blend(sample, shares, size, True, start, True, None)[1] if shrink else 1.0
    knots, steps = [], []
    for t in range(sample.n_labels):
        known = sample.W[:, t] > 0
        w = sample.W[known, t].astype(float)
        w *= size[t] / max(w.sum(), np.finfo(float).tiny)
        for code, k in enumerate(range(sample.starts[t], sample.starts[t + 1])):
            x, p = stairs(sample.F[known, k].astype(float), sample.codes[known, t] == code, w, float(shares[k]))
            knots.append(x)
            steps.append(p)
    floor = (1 / (size + 2) + (1 - strength) * (1 - 1 / (size + 2))).astype(sample.F.dtype)
    corners = np.cumsum([0] + [len(x) for x in knots])
    return LabelIsotonic(sample.starts, shares, floor, corners, np.concatenate(knots), np.concatenate(steps))


def stairs(f: Array, hit: Array, w: Array, share: float) -> tuple[Array, Array]:
    """Corners of an isotonic regression, each level with one additional row of the class share.

    Without that row the outermost levels of a rare label would be 0 and 1, from a few rows only.
    """
    if not len(f):
        return np.zeros(1), np.full(1, share)
    fit = IsotonicRegression(y_min=0, y_max=1).fit(f, hit, sample_weight=w)
    x, level = fit.X_thresholds_, np.unique(fit.y_thresholds_)
    ends = x[np.searchsorted(fit.y_thresholds_, level, side="right") - 1]
    merged = 2 * np.finfo(float).resolution  # scikit-learn takes scores that are closer than that as one
    where = np.minimum(np.searchsorted(ends, f - merged), len(level) - 1)
    mass = np.bincount(where, weights=w, minlength=len(level))
    smoothed = isotonic_regression((mass * level + share) / (mass + 1), sample_weight=mass + 1)
    return x, smoothed[np.searchsorted(level, fit.y_thresholds_)]


def _unshrunk_blend(
    sample: LabelSample,
    shares: Array,
    size: Array,
    use_power: bool,
    start: LabelCalibrator | None,
    pooled: bool,
    pull: float | None,
) -> tuple[LabelBlend, float]:
    """The blend of every label before it is shrunk, and the credibility of all of them."""
    dtype = sample.F.dtype
    delta, floor = (x.astype(dtype) for x in (size ** (-1 / 3), 1 / (size + 2)))
    fit = BlendFit(sample, shares, delta, floor, size, use_power)
    first = [0.0, float(use_power)]
    if isinstance(start, LabelBlend):
        first = [start.sharpness.mean(), start.power.mean() * use_power]
    theta, H = fit.pooled(np.array([first], dtype=float))

    def blend(theta: Array) -> LabelBlend:
        sharpness, power = np.broadcast_to(theta, (sample.n_labels, 2)).T.astype(dtype)
        return LabelBlend(sample.starts, shares, delta, floor, sharpness, power)

    strength = _credibility(sample, blend(theta), size)
    return blend(theta if pooled else fit.each(theta, H, pull)), strength


def _credibility(sample: LabelSample, blend: LabelBlend, size: Array) -> float:
    """The credibility of pooled blends, from their gain on the held-out rows over the class shares."""
    i, t = np.nonzero(sample.W > 0)
    k = sample.starts[t] + sample.codes[i, t]
    gain = np.zeros(sample.W.shape)
    gain[i, t] = np.log(blend.proba(sample.F)[i, k].astype(float)) - np.log(blend.shares.astype(float))[k]
    total = sample.W.sum(axis=0, dtype=float)
    gains = size * np.sum(sample.W * gain, axis=0) / np.where(total > 0, total, 1)
    informed = size * (np.diff(sample.starts) > 1)  # a label of one class carries no information
    if not informed.any() or not total.any():
        return 1.0
    slope = float(np.average(blend.slope, weights=informed))
    return credibility(float(np.sum(gains)) / _agreement(gain, sample.W), slope)


def _agreement(gain: Array, W: Array) -> float:
    """Number of labels that carry the same information, from 1 for independent labels to T for copies of one.

    The variance over rows of the gain summed over labels, divided by the sum of the variances of the labels.
    """
    row = W.sum(axis=1, dtype=float) / np.maximum(np.sum(W > 0, axis=1), 1)
    known = row > 0
    row, each = row[known], (W * gain)[known] / row[known, None]
    together, apart = each.sum(axis=1), each - np.average(each, axis=0, weights=row)
    variance = np.average((together - np.average(together, weights=row)) ** 2, weights=row)
    alone = np.average(np.sum(apart**2, axis=1), weights=row)
    return max(1.0, float(variance / alone)) if alone > 0 else 1.0


def _over_labels(reduce: np.ufunc, A: Array, starts: Array) -> Array:
    """Sums or maxima over the columns of each label, repeated for each of these columns."""
    if not is_numpy(A):
        return spread_over("sum" if reduce is np.add else "max", A, starts)
    if np.all(np.diff(starts) == 2):  # much faster than reduceat
        return np.repeat(reduce(A[:, ::2], A[:, 1::2]), 2, axis=1)
    return np.repeat(reduce.reduceat(A, starts[:-1], axis=1), np.diff(starts), axis=1)


def _sizes(sample: LabelSample) -> Array:
    """Number of independent observations of each label, 1 or more: its share of the weight of the rows."""
    known = sample.W > 0
    row = sample.W.sum(axis=1, dtype=float) / np.maximum(known.sum(axis=1), 1)
    share = np.sum(row[:, None] * known, axis=0) / max(row.sum(), np.finfo(float).tiny)
    return np.maximum(sample.size * share, 1.0)


def _shares(sample: LabelSample, size: Array) -> Array:
    """Weighted class shares side by side, with half a row added to each class."""
    first, widths = sample.starts[:-1], np.diff(sample.starts)
    counts = class_counts(sample.codes, sample.W, sample.starts)
    total = np.add.reduceat(counts, first)
    if sample.counts is not None:  # of all rows; the number of observations grows with the weight
        every = np.add.reduceat(sample.counts, first)
        size = size * np.where(total > 0, every / np.where(total > 0, total, 1), 1)
        counts, total = sample.counts, every
    smoothed = counts * np.repeat(size / np.where(total > 0, total, 1), widths) + 0.5
    return (smoothed / np.repeat(np.add.reduceat(smoothed, first), widths)).astype(sample.F.dtype)
