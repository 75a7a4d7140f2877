r"""How far calibrated probabilities are moved away from the class shares, given what noise alone could have gained.

A search tries many hyperparameters and fits a calibrator at each. The best held-out log-likelihood is therefore too
good: on labels that are pure noise it still exceeds that of the class shares. So the evidence of a calibrator (its
``sharpness`` and ``power``) is multiplied by a credibility s between 0 and 1:

    logit s  =  gain / 2  -  1  -  log(slope)^2

gain
    the log-likelihood of the held-out rows (in nats, over all independent observations) minus that of the class
    shares. On noise the best point of a search exceeds a gain of G with a probability of about exp(-G / 2), whatever
    the number of rows, features and classes: hence gain / 2.
slope
    how many times larger or smaller the calibrator makes the differences between scores, where 1 takes them as
    posterior probabilities, which is what least squares estimates. A search on noise ends at points where the slope
    is far from 1: with models that interpolate, whose scores are then scaled down, or with scores of next to nothing,
    scaled up. The last term is a normal prior on the logarithm of the slope.
1
    the prior log-odds of noise.

The credibility is smooth in all of its arguments and tends to 1 exponentially in the gain: with a gain of 20 nats
1 - s is 1e-4, so data with a clear signal are left alone.

Labels of one model share its hyperparameters, so they are believed together. The gain is then that of all labels with
pooled parameters, divided by how many labels say the same: the variance of a row's gain over that of independent
labels.

From scores to probabilities.

LSPC fits scores F_y(x) to the class posterior by least squares. Three ways lead from there to probabilities, all
of them fitted, where there is something to fit, on held-out scores, never by a refit:

``ClipNormalise``, eq. (3) and (10)
    negative scores become zero, the rest is divided by its sum. Where every class is clipped to zero the class
    shares of the training rows are the answer.
``Blend``
    a log-linear family between clip-and-normalise and a softmax::

        p(y|x)  ~  share_y * g_y(F_y)^power * exp(sharpness * F_y),
        g_y(F)  =  max(F, 0) / share_y + doubt

    power = 1, sharpness = 0 is clip-and-normalise with a little doubt; power = 0 is the softmax with a temperature.
    Away from the data the trust in the scores falls to zero, and the answer is the class shares.
``Isotonic``
    one monotone step function per class, then divided by the sum.

What is fitted is shrunk towards the class shares where the held-out scores are hardly better than these; see
:mod:`leastwise.calibration.calibrators`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from leastwise.utils.arrays import here, library, like, scalar, softmax


def credibility(gain: float, slope: float) -> float:
    """How far a calibrator is believed, between 0 and 1.

    Parameters
    ----------
    gain : float
        Log-likelihood of the held-out rows minus that of the class shares, in nats.
    slope : float
        Zero or above; 1 takes scores as posterior probabilities.
    """
    with np.errstate(divide="ignore"):
        return float(expit(gain / 2 - 1 - np.log(slope) ** 2))


Array = np.ndarray

CALIBRATIONS = ("blend", "temperature", "isotonic", None)


class Calibrator(Protocol):
    """Scores of shape (n, c) in, probabilities or decision values of the same shape out.

    ``trust``, of shape (n,), is 1 where the scores are to be believed and 0 where nothing is known; see
    :mod:`leastwise.calibration.extrapolation`. None is 1 throughout.
    """

    def proba(self, F: Array, trust: Array | None = None) -> Array:
        """Probabilities; rows sum to one."""
        ...

    def decision(self, F: Array, trust: Array | None = None) -> Array:
        """Values that order the classes as the probabilities do."""
        ...


@dataclass(frozen=True)
class Sample:
    """Held-out scores with what is known of their rows.

    Attributes
    ----------
    F : ndarray of shape (n, c)
    y : ndarray of int of shape (n,)
        Codes of the classes.
    w : ndarray of shape (n,)
        Weights of mean 1.
    size : int
        Number of independent witnesses: what smoothing and floors are measured by, so that a repeated row is one
        row, and the rows of one group are one witness.
    prior : ndarray of shape (c,), optional
        Class shares that are known better than from these rows.
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
        """Weighted class shares, of these rows if not given."""
        if self.prior is not None:
            return self.prior
        return class_shares(self.y, self.w, self.F.shape[1]).astype(self.F.dtype)


def class_shares(y: Array, w: Array, n_classes: int) -> Array:
    """Weighted class shares."""
    counts = np.bincount(y, weights=w, minlength=n_classes)
    return counts / counts.sum()


@dataclass(frozen=True)
class ClipNormalise:
    """Eq. (3) and (10): whatever the trust, as in the paper."""

    shares: Array

    def proba(self, F: Array, trust: Array | None = None) -> Array:
        xp = library(F)
        P = xp.clip(F, 0, None)
        total = xp.sum(P, axis=1, keepdims=True)
        return xp.where(total > 0, P / xp.where(total > 0, total, 1), like(self.shares, F))

    def decision(self, F: Array, trust: Array | None = None) -> Array:
        return self.proba(F)


@dataclass(frozen=True)
class Blend:
    """See the module's text. ``floor`` is the share of the answer that is always the class shares."""

    shares: Array
    doubt: float
    floor: float
    sharpness: float
    power: float

    def decision(self, F: Array, trust: Array | None = None) -> Array:
        score, log_score = _features(F, like(self.shares, F), self.doubt)
        evidence = self.sharpness * score + self.power * log_score
        return like(np.log(self.shares), F) + (evidence if trust is None else trust[:, None] * evidence)

    def proba(self, F: Array, trust: Array | None = None) -> Array:
        shares = like(self.shares, F)
        floor = scalar(self.floor, shares)
        return (1 - floor) * softmax(self.decision(F, trust)) + floor * shares

    @property
    def slope(self) -> float:
        """Of the log-probabilities in the scores where these are the class shares; 1 for posterior probabilities.

        There posterior probabilities have a slope of diag(1 / shares), the blend one of power times that plus
        sharpness. Their ratio is averaged over all directions in which probabilities sum to one, in the Fisher
        metric: the trace of ``diag(shares) - shares shares'`` divided by the number of classes but one.
        """
        return self.sharpness * float(mean_share(self.shares, np.array([0, len(self.shares)]))[0]) + self.power


def mean_share(shares: Array, starts: Array) -> Array:
    """``(1 - sum of the squared shares) / (classes - 1)`` for each label; with equal shares that is the share."""
    squares = np.add.reduceat(shares.astype(float) ** 2, starts[:-1])
    return (1 - squares) / np.maximum(np.diff(starts) - 1, 1)


@dataclass(frozen=True)
class Isotonic:
    """One step function per class; ``knots[y]`` and ``steps[y]`` are its corners.

    They are read off by numpy: scores of another library come over for that, and the values go back.
    """

    shares: Array
    floor: float
    knots: tuple[Array, ...]
    steps: tuple[Array, ...]

    def proba(self, F: Array, trust: Array | None = None) -> Array:
        known, shares = here(F), like(self.shares, F)
        columns = zip(known.T, self.knots, self.steps, strict=True)
        P = np.column_stack([np.interp(f, x, p) for f, x, p in columns]).astype(known.dtype, copy=False)
        P = ClipNormalise(self.shares).proba(like(P, F))
        believed = scalar(1 - self.floor, shares) * (1 if trust is None else trust[:, None])
        return believed * P + (1 - believed) * shares

    def decision(self, F: Array, trust: Array | None = None) -> Array:
        return self.proba(F, trust)


@dataclass(frozen=True)
class Signed:
    """A calibrator for scores that were fitted to -1 and 1: ``inner`` is shown (F + 1) / 2."""

    inner: Calibrator

    def proba(self, F: Array, trust: Array | None = None) -> Array:
        return self.inner.proba(halved(F), trust)

    def decision(self, F: Array, trust: Array | None = None) -> Array:
        return self.inner.decision(halved(F), trust)


def halved(F: Array) -> Array:
    """Scores between 0 and 1 from those between -1 and 1."""
    return (F + 1) / 2


def fit_calibrator(
    kind: str | None,
    sample: Sample,
    start: Calibrator | None = None,
    signed: bool = False,
    believed: float | None = None,
) -> Calibrator:
    """The calibrator of this kind, fitted to held-out scores.

    Parameters
    ----------
    kind : {"blend", "temperature", "isotonic", None}
    start : Calibrator, optional
        Where the search for the parameters of a blend begins, if it is one.
    signed : bool
        Whether the targets were -1 and 1.
    believed : float, optional
        How far the evidence is believed, from 0 for the class shares to 1 for maximum likelihood; by default what the
        held-out scores say, see :mod:`leastwise.calibration.calibrators`.
    """
    if signed:
        inner = start.inner if isinstance(start, Signed) else None
        return Signed(fit_calibrator(kind, replace(sample, F=halved(sample.F)), inner, believed=believed))
    if kind is None:
        return ClipNormalise(sample.shares)
    first = start if isinstance(start, Blend) else None
    blend = _fit_blend(sample, use_power=kind != "temperature", start=first)
    if believed is None:
        believed = _credibility(sample, blend)
    if kind == "isotonic":
        return _fit_isotonic(sample, believed)
    return replace(blend, sharpness=believed * blend.sharpness, power=believed * blend.power)


def sample_credibility(kind: str | None, sample: Sample, signed: bool = False) -> float:
    """How far ``fit_calibrator`` believes these held-out scores."""
    if signed:
        return sample_credibility(kind, replace(sample, F=halved(sample.F)))
    return _credibility(sample, _fit_blend(sample, use_power=kind != "temperature", start=None))


def _credibility(sample: Sample, blend: Blend) -> float:
    """How far the evidence of a blend is believed, from its gain on the held-out rows over the class shares."""
    rows = np.arange(len(sample.y)), sample.y
    log_p, log_share = np.log(blend.proba(sample.F)[rows].astype(float)), np.log(blend.shares.astype(float))
    gain = sample.size * np.average(log_p - log_share[sample.y], weights=sample.w)
    return credibility(float(gain), blend.slope)


def _features(F: Array, shares: Array, doubt: float) -> tuple[Array, Array]:
    xp = library(F)
    return F, xp.log(xp.clip(F, 0, None) / shares + scalar(doubt, F))


def _fit_blend(sample: Sample, use_power: bool, start: Blend | None) -> Blend:
    """Maximum likelihood for (sharpness, power), both kept at zero or above, on smoothed targets.

    The targets are one-hot but for a share of 1 / (size + 2) that goes to the class shares (Platt 2000, for many
    classes): a perfect held-out score then has a finite best sharpness. The problem is convex.
    """
    shares, size = sample.shares, sample.size
    doubt, floor = size ** (-1 / 3), 1 / (size + 2)
    features = _features(sample.F, shares, doubt)[: 1 + use_power]
    T = floor * np.repeat(shares[None], len(sample.y), axis=0)
    T[np.arange(len(T)), sample.y] += T.dtype.type(1 - floor)
    first = np.array([start.sharpness, start.power] if start else [0.0 if use_power else 1.0, 1.0])
    theta = _nonnegative_newton(np.stack(features), np.log(shares), T, sample.w, first[: 1 + use_power])
    return Blend(shares, doubt, floor, float(theta[0]), float(theta[1]) if use_power else 0.0)


def _nonnegative_newton(A: Array, offset: Array, T: Array, w: Array, theta: Array) -> Array:
    """Minimise ``sum_i w_i [logsumexp(L_i) - T_i'L_i]``, ``L = offset + sum_j theta_j A_j``, over theta >= 0."""
    point = _Likelihood(A, offset, T, w)
    value, P = point.at(theta)
    slack = 1e-14 * float(np.sum(w)) * (1 + np.log(T.shape[1]))  # near the optimum values differ by rounding only
    for _ in range(50):
        gradient, H = point.slopes(P)
        free = (theta > 0) | (gradient < 0)
        step = np.zeros_like(theta)
        Hf = H[np.ix_(free, free)]
        step[free] = -np.linalg.lstsq(Hf + 1e-12 * np.trace(Hf) * np.eye(len(Hf)), gradient[free], rcond=None)[0]
        for shrink in 0.5 ** np.arange(25):
            trial = np.maximum(theta + shrink * step, 0)
            new_value, new_P = point.at(trial)
            if new_value <= value + slack:
                break
        else:
            return theta
        moved = np.abs(trial - theta).max()
        theta, value, P = trial, new_value, new_P
        if moved <= 1e-11 * (1 + theta.max()):
            return theta
    return theta


@dataclass(frozen=True)
class _Likelihood:
    """The objective of ``_nonnegative_newton`` with its derivatives; A has shape (parameters, n, c).

    Plain sums, no BLAS: see ``leastwise.linalg.spectrum`` for the reason.
    """

    A: Array
    offset: Array
    T: Array
    w: Array

    def at(self, theta: Array) -> tuple[float, Array]:
        """The value, and the probabilities there."""
        L = self.offset + theta[0] * self.A[0]
        for t, a in zip(theta[1:], self.A[1:], strict=True):
            L += t * a
        L -= L.max(axis=1, keepdims=True)
        P = np.exp(L)
        total = P.sum(axis=1, keepdims=True)
        P /= total
        fit = np.einsum("ij,ij->i", self.T, L)
        return float(np.sum(self.w * (np.log(total[:, 0]) - fit))), P

    def slopes(self, P: Array) -> tuple[Array, Array]:
        """Gradient and Hessian."""
        wP, wD = self.w[:, None] * P, self.w[:, None] * (P - self.T)
        gradient = np.array([np.einsum("ij,ij", wD, a) for a in self.A])
        means = [np.einsum("ij,ij->i", P, a) for a in self.A]
        m = len(self.A)
        H = np.empty((m, m))
        for j in range(m):
            weighted = wP * self.A[j]
            for k in range(j + 1):
                H[j, k] = H[k, j] = np.einsum("ij,ij", weighted, self.A[k]) - np.sum(self.w * means[j] * means[k])
        return gradient, H


def _fit_isotonic(sample: Sample, believed: float) -> Isotonic:
    """Step functions; what is not believed goes to the class shares.

    The gain of step functions on the rows that made them says little, so ``believed`` is that of a blend.
    """
    knots, steps = [], []
    for k, scores in enumerate(sample.F.T):
        fit = IsotonicRegression(y_min=0, y_max=1).fit(scores, sample.y == k, sample_weight=sample.w)
        knots.append(fit.X_thresholds_)
        steps.append(fit.y_thresholds_)
    floor = 1 / (sample.size + 2)
    return Isotonic(sample.shares, floor + (1 - believed) * (1 - floor), tuple(knots), tuple(steps))
