r"""The blend: a log-linear family of calibrators, its fit by Newton's method, and its credibility.

    p(y|x)  ~  share_y * g_y(F_y)^power * exp(sharpness * F_y),
    g_y(F)  =  max(F, 0) / share_y + delta

power = 1, sharpness = 0 is clip-and-normalise with a small constant; power = 0 is the softmax with a temperature.
Away from the data the domain weight falls to zero, and the result is the class shares.

``minimise`` is the Newton loop of calibration: the blends of labels and the recalibration maps are fitted with it.
The blend of classes, which is fitted at every point of a search, has the same loop in plain numbers.

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

import math
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
    delta: float
    floor: float
    sharpness: float
    power: float

    def decision(self, F: Array, in_domain: Array | None = None) -> Array:
        score, log_score = _features(F, to_namespace(self.shares, F), self.delta)
        logits = self.sharpness * score + self.power * log_score
        return to_namespace(np.log(self.shares), F) + (logits if in_domain is None else in_domain[:, None] * logits)

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
        squares = sum(share**2 for share in self.shares.tolist())
        return self.sharpness * (1 - squares) / max(len(self.shares) - 1, 1) + self.power


def _features(F: Array, shares: Array, delta: float) -> tuple[Array, Array]:
    xp = get_namespace(F)
    positive = np.maximum(F, 0) if xp is np else xp.clip(F, 0, None)
    return F, xp.log(positive / shares + scalar(delta, F))


# -------------------------------------------------------------------------- fit


def fit_blend(
    sample: Sample, start: Calibrator | None = None, credibility: float | None = None, use_power: bool = True
) -> Blend:
    """The blend, shrunk towards the class shares; ``use_power=False`` is a softmax with a temperature."""
    blend, P = _fit(sample, start, use_power)
    if credibility is None:
        credibility = _credibility(sample, blend, P)
    return replace(blend, sharpness=credibility * blend.sharpness, power=credibility * blend.power)


def blend_credibility(sample: Sample, start: Calibrator | None = None, use_power: bool = True) -> float:
    """The credibility of the blend of maximum likelihood, by its gain on the held-out rows over the class shares."""
    return _credibility(sample, *_fit(sample, start, use_power))


def _credibility(sample: Sample, blend: Blend, P: Array) -> float:
    """``P`` are the softmax probabilities of the blend, of shape (c, n)."""
    share = blend.shares.astype(float)[sample.y]
    ratio = P[sample.y, np.arange(len(share))] / share
    ratio *= 1 - blend.floor
    ratio += blend.floor
    gain = float(np.einsum("n,n->", sample.w, np.log(ratio))) / float(sample.w.sum())
    return credibility(sample.size * gain, blend.slope)


def _fit(sample: Sample, start: Calibrator | None, use_power: bool = True) -> tuple[Blend, Array]:
    """Maximum likelihood for (sharpness, power), both zero or above, on smoothed targets.

    The targets are one-hot except for a share of 1 / (size + 2) that goes to the class shares (Platt 2000, for many
    classes), so that perfect held-out scores have a finite best sharpness. With ``L = log shares + sum_j theta_j
    A_j`` the objective ``sum_i w_i [logsumexp(L_i) - T_i'L_i]`` is convex.

    Returns
    -------
    blend : Blend
    P : ndarray of shape (c, n)
        Its softmax probabilities.
    """
    shares, size = sample.shares, sample.size
    delta, floor = size ** (-1 / 3), 1 / (size + 2)
    A = np.stack([feature.T for feature in _features(sample.F, shares, delta)[: 1 + use_power]])
    theta = (0.0, 1.0) if use_power else (1.0, 0.0)
    if isinstance(start, Blend):
        theta = (start.sharpness, start.power * use_power)
    rounding = 1e-13 if A.dtype == np.float64 else 1e-6
    kind = BinaryLikelihood if len(shares) == 2 else _Likelihood
    theta, P = kind.of(A, shares, floor, sample.y, sample.w).minimise(theta, rounding)
    return Blend(shares, delta, floor, *theta), P


@dataclass(frozen=True)
class _Likelihood:
    """Negative log-likelihood of a blend, ``sum_i w_i log sum_c exp(L_ic)`` with ``L = offset + sum_j theta_j A_j``.

    The targets T are subtracted from features and offset in advance: the mean of each under T is zero for every row.
    A has shape (parameters, c, n), with the long axis last. A search fits hundreds of blends to a few hundred rows,
    where the time is that of calls: few, on whole arrays, and numbers instead of arrays of one or two entries. Plain
    sums, no BLAS: see ``leastwise.linalg.decompositions`` for the reason.
    """

    A: Array
    offset: Array
    w: Array

    @classmethod
    def of(cls, A: Array, shares: Array, floor: float, y: Array, w: Array) -> _Likelihood:
        """Targets are ``floor`` times the shares plus ``1 - floor`` times the one-hot classes y."""
        rows, small = np.arange(len(y)), A.dtype.type(floor)
        log_shares, targets = np.log(shares), small * shares
        mean = np.einsum("jcn,c->jn", A, targets) + (1 - small) * A[:, y, rows]
        level = targets @ log_shares + (1 - small) * log_shares[y]
        return cls(A - mean[:, None], log_shares[:, None] - level, w)

    def value_at(self, sharpness: float, power: float) -> tuple[float, Array]:
        """The value, and the probabilities."""
        L = sharpness * self.A[0]
        L += self.offset
        if len(self.A) == 2:
            L += power * self.A[1]
        top = L.max(axis=0)
        L -= top
        P = np.exp(L, out=L)
        total = P.sum(axis=0)
        P /= total
        return float((self.w * (np.log(total) + top)).sum(dtype=float)), P

    def minimise(self, theta: tuple[float, float], rounding: float) -> tuple[tuple[float, float], Array]:
        """The best sharpness and power, and the probabilities there; the method is that of :func:`minimise`."""
        x, y = theta
        value, P = self.value_at(x, y)
        for _ in range(MAX_STEPS):
            step_x, step_y, decrement = self._step(x, y, P)
            length = 1.0
            for _ in range(HALVINGS):
                new, new_P = self.value_at(x + length * step_x, y + length * step_y)
                if new <= value - ARMIJO * length * decrement + rounding * abs(value):
                    break
                length /= 2
            else:
                return (x, y), P
            x, y, value, P = x + length * step_x, y + length * step_y, new, new_P
            if decrement <= RTOL * abs(value):
                break
        return (x, y), P

    def _step(self, x: float, y: float, P: Array) -> tuple[float, float, float]:
        """Newton step that stays at zero or above, and its decrement."""
        wP = self.w * P
        means = np.einsum("jcn,cn->jn", self.A, P)
        centred = self.A - means[:, None]
        weighted = centred * wP
        m = len(centred)
        gradient = np.einsum("jn,n->j", means, self.w).tolist()
        H = np.einsum("jx,kx->jk", weighted.reshape(m, -1), centred.reshape(m, -1)).tolist()
        return _step_of(gradient, H, x, y)


@dataclass(frozen=True)
class BinaryLikelihood(_Likelihood):
    """The same for two classes: ``sum_i w_i [log(1 + exp(-u_i)) + r_i u_i]`` of the margins u of the true classes.

    ``A``, of shape (parameters, n), and ``offset`` are differences between the true class and the other one; r is
    the target of the other one. Half of the numbers, and a third of the operations.
    """

    y: Array
    r: Array

    @classmethod
    def of(cls, A: Array, shares: Array, floor: float, y: Array, w: Array) -> BinaryLikelihood:
        sign = np.where(y == 1, A.dtype.type(1), A.dtype.type(-1))
        other = shares[1 - y]
        return cls(sign * (A[:, 1] - A[:, 0]), np.log(shares[y] / other), w, y, A.dtype.type(floor) * other)

    def value_at(self, sharpness: float, power: float) -> tuple[float, Array]:
        """The value, and the probabilities of the other class."""
        u = sharpness * self.A[0]
        u += self.offset
        if len(self.A) == 2:
            u += power * self.A[1]
        e = np.exp(-np.abs(u))
        loss = np.log1p(e)
        loss -= np.minimum(u, 0)
        loss += self.r * u
        q = np.where(u >= 0, e, 1)
        q /= 1 + e
        return float(np.einsum("n,n->", self.w, loss, dtype=float)), q

    def minimise(self, theta: tuple[float, float], rounding: float) -> tuple[tuple[float, float], Array]:
        """The best sharpness and power, and the probabilities there, of shape (2, n)."""
        theta, q = super().minimise(theta, rounding)
        second = np.where(self.y == 1, 1 - q, q)
        return theta, np.stack([1 - second, second])

    def _step(self, x: float, y: float, P: Array) -> tuple[float, float, float]:
        wq = self.w * P
        gradient = np.einsum("jn,n->j", self.A, self.w * self.r - wq).tolist()
        wq -= wq * P
        return _step_of(gradient, np.einsum("jn,kn->jk", self.A * wq, self.A).tolist(), x, y)


def _step_of(gradient: list[float], H: list[list[float]], x: float, y: float) -> tuple[float, float, float]:
    """Newton step of one or two parameters that stay at zero or above, and its decrement."""
    if len(gradient) == 1:
        step = max(-gradient[0] / (H[0][0] * (1 + 1e-12) + 1e-100), -x)
        return step, 0.0, -gradient[0] * step
    (a, b), ((aa, ab), (_, bb)) = gradient, H
    step_x, step_y = _nonnegative_step(a, b, aa, ab, bb, x, y)
    return step_x, step_y, -(a * step_x + b * step_y)


def _nonnegative_step(a: float, b: float, aa: float, ab: float, bb: float, x: float, y: float) -> tuple[float, float]:
    """:func:`nonnegative_step` of one function, in numbers: gradient (a, b), Hessian (aa, ab, bb), at (x, y)."""
    jitter = 1e-12 * (aa + bb) + 1e-100
    aa, bb = aa + jitter, bb + jitter
    det = aa * bb - ab**2
    if det > 0:
        u, v = (ab * b - bb * a) / det, (ab * a - aa * b) / det
        if u >= -x and v >= -y:
            return u, v
    # On the border: the sides x = 0 and y = 0, or the corner.
    steps = [(-x, max(-(b - ab * x) / bb, -y)), (max(-(a - ab * y) / aa, -x), -y)]
    return min(steps, key=lambda s: a * s[0] + b * s[1] + (aa * s[0] ** 2 + bb * s[1] ** 2) / 2 + ab * s[0] * s[1])


def credibility(gain: float, slope: float) -> float:
    """Factor of sharpness and power, between 0 and 1.

    Parameters
    ----------
    gain : float
        Log-likelihood of the held-out rows minus that of the class shares, in nats.
    slope : float
        Zero or above; 1 takes scores as posterior probabilities.
    """
    return float(expit(gain / 2 - 1 - math.log(slope) ** 2)) if slope > 0 else 0.0


def mean_share(shares: Array, starts: Array) -> Array:
    """``(1 - sum of the squared shares) / (classes - 1)`` for each label; the share itself if all are equal."""
    squares = np.add.reduceat(shares.astype(float) ** 2, starts[:-1])
    return (1 - squares) / np.maximum(np.diff(starts) - 1, 1)


# -------------------------------------------------------------- Newton's method


#: Relative Newton decrement at which the fit of a blend stops.
RTOL = 1e-11
#: Largest number of its steps.
MAX_STEPS = 50
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
