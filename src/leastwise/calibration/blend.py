r"""The blend: a log-linear family of calibrators, its fit by Newton's method, and its credibility.

    p(y|x)  ~  share_y * g_y(F_y)^power * exp(sharpness * F_y),
    g_y(F)  =  max(F, 0) / share_y + doubt

power = 1, sharpness = 0 is clip-and-normalise with a small constant; power = 0 is the softmax with a temperature.
Away from the data the domain weight falls to zero, and the result is the class shares.

``minimise`` is the only Newton loop of calibration: the blends of classes and labels and the recalibration maps are
all fitted with it.

**Credibility.** A search tries many hyperparameters and fits a calibrator at each. The best held-out log-likelihood
is therefore optimistic: on labels that are pure noise it still exceeds that of the class shares. So ``sharpness`` and
``power`` are multiplied by a credibility s between 0 and 1:

    logit s  =  gain / 2  -  1  -  log(slope)^2

gain
    the log-likelihood of the held-out rows (in nats, over all independent observations) minus that of the class
    shares. On noise the best point of a search exceeds a gain of G with a probability of about exp(-G / 2), whatever
    the number of rows, features and classes: hence gain / 2.
slope
    the factor by which the calibrator scales differences between scores, where 1 takes them as posterior
    probabilities, which is what least squares estimates. A search on noise ends at points where the slope is far from
    1: with models that interpolate, whose scores are then scaled down, or with scores close to zero, scaled up. The
    last term is a normal prior on the logarithm of the slope.
1
    the prior log-odds of noise.

The credibility is smooth in all of its arguments and tends to 1 exponentially in the gain: with a gain of 20 nats
1 - s is 1e-4, so data with a clear signal are not changed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy.special import expit

from leastwise.utils.arrays import get_namespace, scalar, softmax, to_namespace

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


# ------------------------------------------------------------------- the family


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


def _features(F: Array, shares: Array, doubt: float) -> tuple[Array, Array]:
    xp = get_namespace(F)
    return F, xp.log(xp.clip(F, 0, None) / shares + scalar(doubt, F))


# -------------------------------------------------------------------------- fit


def fit_blend(
    sample: Sample, start: Calibrator | None = None, credibility: float | None = None, use_power: bool = True
) -> Blend:
    """The blend, shrunk towards the class shares; ``use_power=False`` is a softmax with a temperature."""
    blend = maximum_likelihood_blend(sample, start, use_power)
    if credibility is None:
        credibility = credibility_of(sample, blend)
    return replace(blend, sharpness=credibility * blend.sharpness, power=credibility * blend.power)


def credibility_of(sample: Sample, blend: Blend) -> float:
    """The credibility of a blend, from its gain on the held-out rows over the class shares."""
    rows = np.arange(len(sample.y)), sample.y
    log_p, log_share = np.log(blend.proba(sample.F)[rows].astype(float)), np.log(blend.shares.astype(float))
    gain = sample.size * np.average(log_p - log_share[sample.y], weights=sample.w)
    return credibility(float(gain), blend.slope)


def maximum_likelihood_blend(sample: Sample, start: Calibrator | None, use_power: bool = True) -> Blend:
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

    Plain sums, no BLAS: see ``leastwise.linalg.decompositions`` for the reason.
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


def credibility(gain: float, slope: float) -> float:
    """Factor of sharpness and power, between 0 and 1.

    Parameters
    ----------
    gain : float
        Log-likelihood of the held-out rows minus that of the class shares, in nats.
    slope : float
        Zero or above; 1 takes scores as posterior probabilities.
    """
    with np.errstate(divide="ignore"):
        return float(expit(gain / 2 - 1 - np.log(slope) ** 2))


def mean_share(shares: Array, starts: Array) -> Array:
    """``(1 - sum of the squared shares) / (classes - 1)`` for each label; the share itself if all are equal."""
    squares = np.add.reduceat(shares.astype(float) ** 2, starts[:-1])
    return (1 - squares) / np.maximum(np.diff(starts) - 1, 1)


# -------------------------------------------------------------- Newton's method


#: Relative Newton decrement at which the fit of a blend stops.
RTOL = 1e-11
#: Armijo constant of the line search, and the largest number of halvings of a step.
ARMIJO, HALVINGS = 1e-4, 40


def minimise(
    value_at: Callable[[Array], tuple[Array, Any]],
    step_at: Callable[[Array, Any], tuple[Array, Array]],
    theta: Array,
    *,
    atol: float = 0.0,
    rtol: float = 0.0,
    rounding: float = 1e-13,
    max_steps: int = 100,
) -> tuple[Array, Any]:
    """Minimise G convex functions of p parameters each by damped Newton steps, all functions at once.

    Each function has its own line search: its step s is halved until the Armijo condition
    ``f(theta + t s) <= f(theta) - 1e-4 t d`` holds, with the Newton decrement ``d = -gradient's``. A function whose
    step cannot be shortened enough keeps its parameters.

    Parameters
    ----------
    value_at : callable
        From theta of shape (G, p) to the G values, and anything that ``step_at`` can use.
    step_at : callable
        From theta and the second result of ``value_at`` to gradients and Newton steps, both of shape (G, p).
    theta : ndarray of shape (G, p)
        Where to start.
    atol, rtol : float
        Stop after a step with all decrements ``d <= atol + rtol * |value|``.
    rounding : float
        Relative rounding error of the values, by which the line search allows them to rise.
    max_steps : int

    Returns
    -------
    theta : ndarray of shape (G, p)
    state
        The second result of ``value_at`` there.
    """
    value, state = value_at(theta)
    for _ in range(max_steps):
        gradient, step = step_at(theta, state)
        decrement = -np.sum(gradient * step, axis=1)
        length = np.ones(len(theta))
        for _ in range(HALVINGS):
            new, new_state = value_at(theta + length[:, None] * step)
            allowed = value - ARMIJO * length * decrement + rounding * np.abs(value)
            worse = ~(new <= allowed)
            if not worse.any():
                break
            length[worse] /= 2
        else:
            length[worse] = 0
            if not length.any():
                return theta, state
            new, new_state = value_at(theta + length[:, None] * step)
        theta, value, state = theta + length[:, None] * step, new, new_state
        if np.all(decrement <= atol + rtol * np.abs(value)):
            break
    return theta, state


def nonnegative_step(gradient: Array, H: Array, theta: Array, use_second: bool = True) -> Array:
    """Newton steps of two parameters that stay at zero or above.

    The exact minimum of each quadratic model over ``theta >= 0``: the best of its interior minimum, the minima on the
    two sides, and the corner.

    Parameters
    ----------
    gradient, theta : ndarray of shape (G, 2)
    H : ndarray of shape (G, 2, 2)
    use_second : bool
        False keeps the second parameter at zero.
    """
    H = regularised(H)
    (a, b), (x, y) = gradient.T, -theta.T
    aa, ab, bb = H[:, 0, 0], H[:, 0, 1], H[:, 1, 1]
    steps = [(x, y), (-(a + ab * y) / aa, y)]
    if use_second:
        det = aa * bb - ab**2
        det = np.where(det > 0, det, np.inf)
        steps += [(x, -(b + ab * x) / bb), ((ab * b - bb * a) / det, (ab * a - aa * b) / det)]
    S = np.array(steps)
    u, v = S[:, 0], S[:, 1]
    value = a * u + b * v + (aa * u**2 + bb * v**2) / 2 + ab * u * v
    value[(u < x) | (v < y)] = np.inf
    return S[value.argmin(axis=0), :, np.arange(len(theta))]


def regularised(H: Array) -> Array:
    """Matrices of shape (G, p, p) with a diagonal at rounding level added, so that each has an inverse."""
    p = H.shape[-1]
    return H + (1e-12 * np.trace(H, axis1=1, axis2=2) + 1e-100)[:, None, None] * np.eye(p)
