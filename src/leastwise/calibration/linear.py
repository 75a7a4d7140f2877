r"""Logits that are linear in the evidence, fitted by Newton's method.

With the evidence e = log p - log shares of a held-out row,

    log p(y|x)  ~  log shares + trust * b + W e ,        W = tau I + D,

``temperature`` has tau alone, ``vector`` a diagonal D and b too, ``dirichlet`` all of D. Where nothing is known both
parts vanish, and the answer is the class shares. D and b are drawn to zero by

    pull / 2 * sum_j h_j theta_j^2,      h_j the mean curvature of one row in theta_j,

so that ``pull`` is a number of rows, whatever the scale of the evidence is; a pull without bounds leaves the
temperature. With two classes vector is beta calibration: a log p - b log (1 - p) + c (Kull et al. 2017).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray

KINDS = ("temperature", "vector", "dirichlet")


@dataclass(frozen=True)
class Logits:
    """Negative log-likelihood of theta = (tau, D, b), with its derivatives.

    Attributes
    ----------
    kind : {"temperature", "vector", "dirichlet"}
    E, base, T : ndarray of shape (n, c)
        Evidence, logarithms of class shares, and targets.
    w : ndarray of shape (n,)
    """

    kind: str
    E: Array
    base: Array
    T: Array
    w: Array

    @property
    def start(self) -> Array:
        """Probabilities as they are."""
        c = self.E.shape[1]
        return np.eye(1, {"temperature": 1, "vector": 1 + 2 * c, "dirichlet": 1 + c + c * c}[self.kind])[0]

    def at(self, theta: Array) -> tuple[float, Array]:
        """The value, and the probabilities there."""
        L = self.base + self.moved(theta)
        L -= L.max(axis=1, keepdims=True)
        P = np.exp(L)
        total = P.sum(axis=1)
        return float(self.w @ (np.log(total) - np.einsum("ij,ij->i", self.T, L))), P / total[:, None]

    def gradient(self, P: Array) -> Array:
        """First derivatives, where the probabilities are P."""
        return self._back(self.w[:, None] * (P - self.T))

    def curved(self, P: Array, v: Array) -> Array:
        """Second derivatives times v."""
        step = self.moved(v)
        step -= np.einsum("ij,ij->i", P, step)[:, None]
        return self._back(self.w[:, None] * P * step)

    def hessian(self, P: Array) -> Array:
        """Second derivatives of a temperature or vector, whole."""
        c, PE = self.E.shape[1], P * self.E
        if self.kind == "temperature":
            return np.array([[self.w @ (np.sum(PE * self.E, axis=1) - PE.sum(axis=1) ** 2)]])
        J = np.hstack([PE, P])
        H, k = np.empty((1 + 2 * c, 1 + 2 * c)), np.arange(1, 1 + c)
        H[1:, 1:] = -(J.T * self.w) @ J
        H[k, k] += self.w @ (PE * self.E)
        H[k + c, k + c] += self.w @ P
        H[k, k + c] += self.w @ PE
        H[k + c, k] += self.w @ PE
        H[0, 1:] = H[1:, 0] = H[1:, k].sum(axis=1)  # tau moves all slopes
        H[0, 0] = H[0, k].sum()
        return H

    def curvature(self, P: Array) -> Array:
        """Mean over rows of the second derivative in each parameter."""
        V, E2 = self.w[:, None] * P * (1 - P), self.E**2
        tau = self.w @ (np.sum(P * E2, axis=1) - np.sum(P * self.E, axis=1) ** 2)
        parts = {"temperature": [], "vector": [np.sum(V * E2, axis=0)], "dirichlet": [(V.T @ E2).ravel()]}[self.kind]
        h = np.concatenate([[tau], *parts, *([V.sum(axis=0)] if parts else [])]) / self.w.sum()
        return h + 1e-6 * h.max() + np.finfo(float).tiny

    def moved(self, theta: Array) -> Array:
        """What theta adds to the logits."""
        W, b = matrices(self.kind, theta, self.E.shape[1])
        return (self.E @ W.T if self.kind == "dirichlet" else self.E * np.diagonal(W)) + b

    def _back(self, R: Array) -> Array:
        """The transpose of ``moved``."""
        if self.kind == "dirichlet":
            M = R.T @ self.E
            return np.concatenate([[np.trace(M)], M.ravel(), R.sum(axis=0)])
        d = np.sum(R * self.E, axis=0)
        return np.concatenate([[d.sum()], d, R.sum(axis=0)]) if self.kind == "vector" else np.array([d.sum()])


def matrices(kind: str, theta: Array, c: int) -> tuple[Array, Array]:
    """W and b."""
    W = theta[0] * np.eye(c)
    if kind == "temperature":
        return W, np.zeros(c)
    D = np.diag(theta[1 : 1 + c]) if kind == "vector" else theta[1 : 1 + c * c].reshape(c, c)
    return W + D, theta[-c:]


def minimise(logits: Logits, centre: Array, stiff: Array) -> Array:
    """The minimum of the negative log-likelihood and ``1/2 sum stiff (theta - centre)^2``; the problem is convex."""
    theta = centre

    def at(theta: Array) -> tuple[float, Array]:
        value, P = logits.at(theta)
        return value + 0.5 * float(stiff @ (theta - centre) ** 2), P

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
        if gain <= 1e-15 * logits.w.sum():
            break
    return theta


def _newton_step(logits: Logits, P: Array, gradient: Array, stiff: Array) -> Array:
    """To the minimum of the quadratic model; a full matrix has too many parameters to write its Hessian down."""
    if logits.kind == "dirichlet":
        scale = logits.curvature(P) * logits.w.sum() + stiff
        return _conjugate_gradients(lambda v: logits.curved(P, v) + stiff * v, -gradient, scale)
    H = logits.hessian(P) + np.diag(stiff)
    return -np.linalg.solve(H + (1e-12 * np.trace(H) + 1e-100) * np.eye(len(H)), gradient)


def _conjugate_gradients(product: Any, right: Array, scale: Array) -> Array:
    """Solve ``product(x) = right`` to four digits, preconditioned by a diagonal."""
    x, r = np.zeros_like(right), right
    z = r / scale
    p, rz = z, float(r @ z)
    first = rz
    for _ in range(2 * len(right) + 10):
        if not rz > 1e-8 * first:
            break
        Hp = product(p)
        bend = float(p @ Hp)
        if bend <= 0:
            break
        x, r = x + rz / bend * p, r - rz / bend * Hp
        z = r / scale
        new = float(r @ z)
        p, rz = z + new / rz * p, new
    return x


def fit_slopes(logits: Logits, pull: float) -> Array:
    """Theta of the rows of ``logits``; tau and the diagonal of W are 0 or more."""
    flat = Logits("temperature", logits.E, logits.base, logits.T, logits.w)
    tau = max(float(minimise(flat, flat.start, np.zeros(1))[0]), 0.0)
    if logits.kind == "temperature":
        return np.array([tau])
    centre = tau * logits.start
    h = logits.curvature(logits.at(centre)[1])
    h[0] = 0  # the temperature is free
    return _rising(logits, centre, h, pull)


def fit_near(logits: Logits, centre: Array, h: Array, pull: float) -> Array:
    """Theta of some rows, drawn to that of all, ``centre``, as if by ``pull`` rows of curvature h."""
    return _rising(logits, centre, h, pull)


def _rising(logits: Logits, centre: Array, h: Array, pull: float) -> Array:
    """Theta at this pull, or at one ten times as strong and so on until more evidence is never less probability."""
    c = logits.E.shape[1]
    for strength in pull * 10.0 ** np.arange(8):
        theta = minimise(logits, centre, strength * h)
        if np.diagonal(matrices(logits.kind, theta, c)[0]).min() >= 0:
            return theta
    return centre
