"""Newton's method for :class:`leastwise.calibration.linear.Logits`, and the fits that are made with it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from leastwise.calibration.linear import Logits, matrices

Array = np.ndarray

#: The last step is one that gains less than this for each row: what is left to gain then is about its square.
CLOSE = 1e-7


def minimise(logits: Logits, centre: Array, stiff: Array, start: Array | None = None) -> Array:
    """The minimum of the negative log-likelihood and ``1/2 sum stiff (theta - centre)^2``; the problem is convex.

    ``start`` is a theta that may be near to it.
    """

    def at(theta: Array) -> tuple[float, Array]:
        value, P = logits.at(theta)
        return value + 0.5 * float(stiff @ (theta - centre) ** 2), P

    theta = centre if start is None else start
    value, P = at(theta)
    for _ in range(100):
        gradient = logits.gradient(P) + stiff * (theta - centre)
        step = _newton_step(logits, P, gradient, stiff)
        gain = -float(gradient @ step)
        for shrink in 0.5 ** np.arange(40):
            trial = theta + shrink * step
            new, new_P = at(trial)
            if new <= value - 1e-4 * shrink * gain + 1e-13 * abs(value):
                break
        else:
            return theta
        theta, value, P = trial, new, new_P
        if gain <= CLOSE * logits.w.sum():
            break
    return theta


def _newton_step(logits: Logits, P: Array, gradient: Array, stiff: Array) -> Array:
    """To the minimum of the quadratic model; a full matrix has too many parameters to write its Hessian down."""
    if logits.kind == "dirichlet":
        times = logits.curved(P)
        return _conjugate_gradients(lambda v: times(v) + stiff * v, -gradient, _class_by_class(logits, P, stiff))
    H = logits.hessian(P) + np.diag(stiff)
    return -np.linalg.solve(H + (1e-12 * np.trace(H) + 1e-100) * np.eye(len(H)), gradient)


def _class_by_class(logits: Logits, P: Array, stiff: Array) -> Callable[[Array], Array]:
    """Solves with the Hessian as if classes were independent, and tau of them."""
    B, c = logits.blocks(P), logits.E.shape[1]
    B[:, np.arange(c + 1), np.arange(c + 1)] += stiff[1:].reshape(c, c + 1) + 1e-9 * B.max() + 1e-100
    B, tau = np.linalg.inv(B), logits.curvature(P)[0] * logits.w.sum() + stiff[0]

    def solve(r: Array) -> Array:
        rows = B @ r[1:].reshape(c, c + 1, 1)
        return np.concatenate([[r[0] / tau], rows.ravel()])

    return solve


def _conjugate_gradients(product: Callable, right: Array, near: Callable) -> Array:
    """Solve ``product(x) = right`` to two digits, preconditioned by ``near``."""
    x, r = np.zeros_like(right), right
    z = near(r)
    p, rz = z, float(r @ z)
    first = rz
    for _ in range(2 * len(right) + 10):
        if not rz > 1e-4 * first:
            break
        Hp = product(p)
        bend = float(p @ Hp)
        if bend <= 0:
            break
        x, r = x + rz / bend * p, r - rz / bend * Hp
        z = near(r)
        new = float(r @ z)
        p, rz = z + new / rz * p, new
    return x


def fit_temperature(logits: Logits) -> float:
    """The slope of all evidence, 0 or more."""
    flat = replace(logits, kind="temperature")
    return max(float(minimise(flat, flat.start, np.zeros(1))[0]), 0.0)


def fit_slopes(logits: Logits, tau: float, pull: float, start: Array | None = None) -> Array:
    """Theta of the rows of ``logits``, drawn to the temperature tau; the diagonal of W is 0 or more."""
    centre = tau * logits.start
    if logits.kind == "temperature":
        return centre
    h = logits.curvature(logits.at(centre)[1])
    h[0] = 0  # the temperature is free
    return fit_near(logits, centre, h, pull, start)


def fit_near(logits: Logits, centre: Array, h: Array, pull: float, start: Array | None = None) -> Array:
    """Theta of some rows, drawn to ``centre`` as if by ``pull`` rows of curvature h.

    The pull is ten times as strong, and so on, until more evidence is never less probability.
    """
    c = logits.E.shape[1]
    for strength in pull * 10.0 ** np.arange(8):
        theta = minimise(logits, centre, strength * h, start)
        if np.diagonal(matrices(logits.kind, theta, c)[0]).min() >= 0:
            return theta
    return centre
