r"""From scores to probabilities: the calibrators of classes, and the table of all calibrations by name.

LSPC fits scores F_y(x) to the class posterior by least squares. Three kinds of calibrators turn them into
probabilities. Their parameters are fitted to held-out scores, without a refit of the model:

``ClipNormalise``, eq. (3) and (10)
    negative scores become zero, and each row is divided by its sum. Where every class is clipped to zero the result
    is the class shares of the training rows.
``Blend``
    a log-linear family between clip-and-normalise and a softmax::

        p(y|x)  ~  share_y * g_y(F_y)^power * exp(sharpness * F_y),
        g_y(F)  =  max(F, 0) / share_y + doubt

    power = 1, sharpness = 0 is clip-and-normalise with a small constant; power = 0 is the softmax with a temperature.
    Away from the data the domain weight falls to zero, and the result is the class shares.
``Isotonic``
    one monotone step function per class, then divided by the sum.

Fitted parameters are shrunk towards the class shares where the held-out scores are hardly better than these: by the
credibility of :mod:`leastwise.calibration.label_blend`.

``CALIBRATIONS`` is the only list of the names that ``calibration=`` takes. A new calibrator is one entry there::

    CALIBRATIONS["name"] = Calibration(fit, fit_labels)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

import numpy as np
from sklearn.isotonic import IsotonicRegression

from leastwise.calibration.label_blend import RTOL, LabelSample, credibility, mean_share
from leastwise.calibration.label_calibrators import (
    LabelCalibrator,
    fit_label_blend,
    fit_label_clip,
    fit_label_isotonic,
)
from leastwise.calibration.newton import minimise, nonnegative_step
from leastwise.utils.arrays import get_namespace, scalar, softmax, to_namespace, to_numpy

Array = np.ndarray


class Calibrator(Protocol):
    """From scores of shape (n, c) to probabilities or decision values of the same shape.

    ``in_domain``, of shape (n,), is 1 for rows near the training data and falls to 0 far away, where the result is
    the class shares; see :mod:`leastwise.calibration.extrapolation`. None means 1 everywhere.
    """

    def proba(self, F: Array, in_domain: Array | None = None) -> Array:
        """Probabilities; rows sum to one."""
        ...

    def decision(self, F: Array, in_domain: Array | None = None) -> Array:
        """Values that order the classes as the probabilities do."""
        ...


@dataclass(frozen=True)
class Sample:
    """Held-out scores of n rows, with their classes and weights.

    Attributes
    ----------
    F : ndarray of shape (n, c)
    y : ndarray of int of shape (n,)
        Codes of the classes.
    w : ndarray of shape (n,)
        Weights of mean 1.
    size : int
        Number of independent observations, which smoothing and floors depend on: a repeated row is one observation,
        and so are the rows of one group.
    prior : ndarray of shape (c,), optional
        Class shares that are known from more rows than these.
    task : ndarray of int of shape (n,), optional
        Codes of the tasks.
    """

    F: Array
    y: Array
    w: Array
    size: int
    prior: Array | None = None
    task: Array | None = None

    @property
    def shares(self) -> Array:
        """The prior, or the weighted class shares of these rows."""
        if self.prior is not None:
            return self.prior
        return class_shares(self.y, self.w, self.F.shape[1]).astype(self.F.dtype)


def class_shares(y: Array, w: Array, n_classes: int) -> Array:
    """Weighted class shares."""
    counts = np.bincount(y, weights=w, minlength=n_classes)
    return counts / counts.sum()


# ----------------------------------------------------------------- calibrators


@dataclass(frozen=True)
class ClipNormalise:
    """Eq. (3) and (10). Ignores the domain weight, as in the paper."""

    shares: Array

    def proba(self, F: Array, in_domain: Array | None = None) -> Array:
        xp = get_namespace(F)
        P = xp.clip(F, 0, None)
        total = xp.sum(P, axis=1, keepdims=True)
        return xp.where(total > 0, P / xp.where(total > 0, total, 1), to_namespace(self.shares, F))

    def decision(self, F: Array, in_domain: Array | None = None) -> Array:
        return self.proba(F)


@dataclass(frozen=True)
class Blend:
    """The log-linear family described above. ``floor`` is the weight of the class shares in every result."""

    shares: Array
    doubt: float
    floor: float
    sharpness: float
    power: float

    def decision(self, F: Array, in_domain: Array | None = None) -> Array:
        score, log_score = _features(F, to_namespace(self.shares, F), self.doubt)
        evidence = self.sharpness * score + self.power * log_score
        return to_namespace(np.log(self.shares), F) + (
            evidence if in_domain is None else in_domain[:, None] * evidence
        )

    def proba(self, F: Array, in_domain: Array | None = None) -> Array:
        shares = to_namespace(self.shares, F)
        floor = scalar(self.floor, shares)
        return (1 - floor) * softmax(self.decision(F, in_domain)) + floor * shares

    @property
    def slope(self) -> float:
        """Slope of the log-probabilities where the scores are the class shares, relative to posterior probabilities.

        Posterior probabilities have the slope diag(1 / shares) there, the blend power times that plus sharpness.
        Their ratio is averaged over all directions in which probabilities sum to one, in the Fisher metric: the trace
        of ``diag(shares) - shares shares'`` divided by the number of classes minus one.
        """
        return self.sharpness * float(mean_share(self.shares, np.array([0, len(self.shares)]))[0]) + self.power


@dataclass(frozen=True)
class Isotonic:
    """One step function per class; ``knots[y]`` and ``steps[y]`` are its corners.

    They are evaluated by numpy: scores of another array library are converted and the values converted back.
    """

    shares: Array
    floor: float
    knots: tuple[Array, ...]
    steps: tuple[Array, ...]

    def proba(self, F: Array, in_domain: Array | None = None) -> Array:
        known, shares = to_numpy(F), to_namespace(self.shares, F)
        columns = zip(known.T, self.knots, self.steps, strict=True)
        P = np.column_stack([np.interp(f, x, p) for f, x, p in columns]).astype(known.dtype, copy=False)
        P = ClipNormalise(self.shares).proba(to_namespace(P, F))
        believed = scalar(1 - self.floor, shares) * (1 if in_domain is None else in_domain[:, None])
        return believed * P + (1 - believed) * shares

    def decision(self, F: Array, in_domain: Array | None = None) -> Array:
        return self.proba(F, in_domain)


@dataclass(frozen=True)
class Signed:
    """A calibrator for scores fitted to -1 and 1: ``inner`` is applied to (F + 1) / 2."""

    inner: Calibrator

    def proba(self, F: Array, in_domain: Array | None = None) -> Array:
        return self.inner.proba((F + 1) / 2, in_domain)

    def decision(self, F: Array, in_domain: Array | None = None) -> Array:
        return self.inner.decision((F + 1) / 2, in_domain)


# ------------------------------------------------------------------------ fits


def fit_blend(
    sample: Sample, start: Calibrator | None = None, believed: float | None = None, use_power: bool = True
) -> Blend:
    """The blend, shrunk towards the class shares; ``use_power=False`` is a softmax with a temperature."""
    blend = _maximum_likelihood_blend(sample, start, use_power)
    if believed is None:
        believed = _credibility(sample, blend)
    return replace(blend, sharpness=believed * blend.sharpness, power=believed * blend.power)


def fit_isotonic(sample: Sample, start: Calibrator | None = None, believed: float | None = None) -> Isotonic:
    """Step functions, shrunk towards the class shares.

    The gain of step functions on the rows they were fitted to says little, so the credibility is that of a blend.
    """
    if believed is None:
        believed = _credibility(sample, _maximum_likelihood_blend(sample, start))
    knots, steps = [], []
    for k, scores in enumerate(sample.F.T):
        fit = IsotonicRegression(y_min=0, y_max=1).fit(scores, sample.y == k, sample_weight=sample.w)
        knots.append(fit.X_thresholds_)
        steps.append(fit.y_thresholds_)
    floor = 1 / (sample.size + 2)
    return Isotonic(sample.shares, floor + (1 - believed) * (1 - floor), tuple(knots), tuple(steps))


def _features(F: Array, shares: Array, doubt: float) -> tuple[Array, Array]:
    xp = get_namespace(F)
    return F, xp.log(xp.clip(F, 0, None) / shares + scalar(doubt, F))


def _credibility(sample: Sample, blend: Blend) -> float:
    """The credibility of a blend, from its gain on the held-out rows over the class shares."""
    rows = np.arange(len(sample.y)), sample.y
    log_p, log_share = np.log(blend.proba(sample.F)[rows].astype(float)), np.log(blend.shares.astype(float))
    gain = sample.size * np.average(log_p - log_share[sample.y], weights=sample.w)
    return credibility(float(gain), blend.slope)


def _maximum_likelihood_blend(sample: Sample, start: Calibrator | None, use_power: bool = True) -> Blend:
    """Maximum likelihood for (sharpness, power), both zero or above, on smoothed targets.

    The targets are one-hot except for a share of 1 / (size + 2) that goes to the class shares (Platt 2000, for many
    classes), so that perfect held-out scores have a finite best sharpness. With ``L = log shares + sum_j theta_j
    A_j`` the objective ``sum_i w_i [logsumexp(L_i) - T_i'L_i]`` is convex.
    """
    shares, size = sample.shares, sample.size
    doubt, floor = size ** (-1 / 3), 1 / (size + 2)
    A = np.stack(_features(sample.F, shares, doubt)[: 1 + use_power])
    T = floor * np.repeat(shares[None], len(sample.y), axis=0)
    T[np.arange(len(T)), sample.y] += T.dtype.type(1 - floor)
    objective = _Likelihood(A, np.log(shares), T, sample.w)
    theta = np.array([[0.0, 1.0] if use_power else [1.0, 0.0]])
    if isinstance(start, Blend):
        theta = np.array([[start.sharpness, start.power * use_power]])
    rounding = 1e-13 if A.dtype == np.float64 else 1e-6
    theta, _ = minimise(objective.value_at, objective.step_at, theta, rtol=RTOL, rounding=rounding, max_steps=50)
    return Blend(shares, doubt, floor, float(theta[0, 0]), float(theta[0, 1]))


@dataclass(frozen=True)
class _Likelihood:
    """Negative log-likelihood of a blend for ``minimise``; A has shape (parameters, n, c).

    Plain sums, no BLAS: see ``leastwise.linalg.spectrum`` for the reason.
    """

    A: Array
    offset: Array
    T: Array
    w: Array

    def value_at(self, theta: Array) -> tuple[Array, Array]:
        """The value, and the probabilities."""
        L = self.offset + theta[0, 0] * self.A[0]
        for t, a in zip(theta[0, 1:], self.A[1:], strict=False):  # without a power there is one feature
            L += t * a
        L -= L.max(axis=1, keepdims=True)
        P = np.exp(L)
        total = P.sum(axis=1, keepdims=True)
        P /= total
        fit = np.einsum("ij,ij->i", self.T, L)
        return np.array([np.sum(self.w * (np.log(total[:, 0]) - fit))], dtype=float), P

    def step_at(self, theta: Array, P: Array) -> tuple[Array, Array]:
        """Gradient and Newton step."""
        wP, wD = self.w[:, None] * P, self.w[:, None] * (P - self.T)
        gradient, H, m = np.zeros((1, 2)), np.zeros((1, 2, 2)), len(self.A)
        gradient[0, :m] = [np.einsum("ij,ij", wD, a) for a in self.A]
        means = [np.einsum("ij,ij->i", P, a) for a in self.A]
        for j in range(m):
            weighted = wP * self.A[j]
            for k in range(j + 1):
                H[0, j, k] = H[0, k, j] = np.einsum("ij,ij", weighted, self.A[k]) - np.sum(
                    self.w * means[j] * means[k]
                )
        return gradient, nonnegative_step(gradient, H, theta, m == 2)


# ------------------------------------------------------------ the calibrations


@dataclass(frozen=True)
class Calibration:
    """How one value of ``calibration=`` is fitted.

    Attributes
    ----------
    fit : callable
        ``fit(sample, start, believed)`` returns a Calibrator; parameters as in :func:`fit_calibrator`.
    fit_labels : callable
        ``fit_labels(sample, start, pooled, pull, shrink)`` returns a LabelCalibrator; parameters as in
        :func:`fit_label_calibrator`.
    search_with : str, optional
        The calibration that replaces this one during the search, where calibrators are evaluated on the rows that
        they were fitted to. For calibrations flexible enough to overfit these rows.
    """

    fit: Callable[[Sample, Calibrator | None, float | None], Calibrator]
    fit_labels: Callable[[LabelSample, LabelCalibrator | None, bool, float | None, bool], LabelCalibrator]
    search_with: str | None = None


#: Every allowed value of ``calibration=``. Parameter checks and error messages read the names from here.
CALIBRATIONS: dict[str | None, Calibration] = {
    "blend": Calibration(fit_blend, fit_label_blend),
    "temperature": Calibration(partial(fit_blend, use_power=False), partial(fit_label_blend, use_power=False)),
    "isotonic": Calibration(fit_isotonic, fit_label_isotonic, search_with="blend"),
    None: Calibration(
        lambda sample, start, believed: ClipNormalise(sample.shares),
        lambda sample, start, pooled, pull, shrink: fit_label_clip(sample),
    ),
}


def search_calibration(kind: str | None) -> str | None:
    """The calibration to use during the search if ``kind`` is that of the final model."""
    return CALIBRATIONS[kind].search_with or kind


def fit_calibrator(
    kind: str | None,
    sample: Sample,
    start: Calibrator | None = None,
    signed: bool = False,
    believed: float | None = None,
) -> Calibrator:
    """A calibrator fitted to held-out scores.

    Parameters
    ----------
    kind : {"blend", "temperature", "isotonic", None} or another key of ``CALIBRATIONS``
    sample : Sample
    start : Calibrator, optional
        Where the search for the parameters of a blend starts, if it is one.
    signed : bool
        True if the targets were -1 and 1.
    believed : float, optional
        The credibility, from 0 for the class shares to 1 for maximum likelihood; by default estimated from the
        held-out scores.
    """
    if signed:
        inner = start.inner if isinstance(start, Signed) else None
        return Signed(fit_calibrator(kind, replace(sample, F=(sample.F + 1) / 2), inner, believed=believed))
    return CALIBRATIONS[kind].fit(sample, start, believed)


def fit_label_calibrator(
    kind: str | None,
    sample: LabelSample,
    start: LabelCalibrator | None = None,
    pooled: bool = False,
    pull: float | None = None,
    shrink: bool = True,
) -> LabelCalibrator:
    """A calibrator of many labels fitted to held-out scores.

    Parameters
    ----------
    kind : {"blend", "temperature", "isotonic", None} or another key of ``CALIBRATIONS``
    sample : LabelSample
    start : LabelCalibrator, optional
        Where the search for the parameters of a blend starts, if it is one.
    pooled : bool
        True if sharpness and power are the same for all labels, before they are shrunk.
    pull : float, optional
        Number of rows that the pooled parameters count for in the fit of each label, 0 or more; by default estimated
        from the held-out scores.
    shrink : bool
        False leaves out the credibility.
    """
    return CALIBRATIONS[kind].fit_labels(sample, start, pooled, pull, shrink)


def sample_credibility(kind: str | None, sample: Sample, signed: bool = False) -> float:
    """The credibility that ``fit_calibrator`` gives these held-out scores."""
    if signed:
        sample = replace(sample, F=(sample.F + 1) / 2)
    return _credibility(sample, _maximum_likelihood_blend(sample, None, use_power=kind != "temperature"))
