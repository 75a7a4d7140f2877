r"""Logits that are linear in the evidence: their likelihood, and its maximum.

With the evidence e = log p - log shares of a held-out row,

    log p(y|x)  ~  log shares + trust * b + W e ,        W = tau I + D,

``temperature`` has tau alone, ``vector`` a diagonal D and b too, ``dirichlet`` all of D. Where nothing is known both
parts vanish, and the answer is the class shares. D and b are drawn to zero by

    pull / 2 * sum_j h_j theta_j^2,      h_j the mean curvature of one row in theta_j,

so that ``pull`` is a number of rows, whatever the scale of the evidence is; a pull without bounds leaves the
temperature. With two classes vector is beta calibration: a log p - b log (1 - p) + c (Kull et al. 2017).

Newton's method for :class:`leastwise.calibration.newton.Logits`, and the fits that are made with it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Logits:
    """Negative log-likelihood of theta = (tau, D, b), with its derivatives.

    Of a full matrix theta has the rows of D one after another, each with its entry of b at the end.

    Attributes
    ----------
    kind : {"temperature", "vector", "dirichlet"}
    E, base, T : ndarray of shape (n, c)
        Evidence, logarithms of class shares, and targets.
    w, trust : ndarray of shape (n,)
        Weights, and how much of b counts.
    """

    kind: str
    E: Array
    base: Array
    T: Array
    w: Array
    trust: Array

    def take(self, rows: Array) -> Logits:
        """Some of the rows; columns lie together, which makes sums over few classes faster."""
        parts = (a.T[..., rows].T for a in (self.E, self.base, self.T, self.w, self.trust))
        return Logits(self.kind, *parts)

    @property
    def start(self) -> Array:
        """Probabilities as they are."""
        c = self.E.shape[1]
        return np.eye(1, {"temperature": 1, "vector": 1 + 2 * c, "dirichlet": 1 + c + c * c}[self.kind])[0]

    @cached_property
    def Z(self) -> Array:
        """Evidence and trust."""
        return np.column_stack([self.E, self.trust])

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

    def curved(self, P: Array) -> Callable[[Array], Array]:
        """From v to second derivatives times v."""
        wP = self.w[:, None] * P

        def times(v: Array) -> Array:
            step = self.moved(v)
            step -= np.einsum("ij,ij->i", P, step)[:, None]
            step *= wP
            return self._back(step)

        return times

    def hessian(self, P: Array) -> Array:
        """Second derivatives of a temperature or vector, whole."""
        c, PE = self.E.shape[1], P * self.E
        if self.kind == "temperature":
            return np.array([[self.w @ (np.sum(PE * self.E, axis=1) - PE.sum(axis=1) ** 2)]])
        t, J = self.w * self.trust, np.hstack([PE, P * self.trust[:, None]])
        H, k = np.empty((1 + 2 * c, 1 + 2 * c)), np.arange(1, 1 + c)
        H[1:, 1:] = -(J.T * self.w) @ J
        H[k, k] += self.w @ (PE * self.E)
        H[k + c, k + c] += (t * self.trust) @ P
        H[k, k + c] += t @ PE
        H[k + c, k] += t @ PE
        H[0, 1:] = H[1:, 0] = H[1:, k].sum(axis=1)  # tau moves all slopes
        H[0, 0] = H[0, k].sum()
        return H

    def blocks(self, P: Array) -> Array:
        """Second derivatives of a full matrix in the row of each class, of shape (c, c + 1, c + 1)."""
        return np.stack([(self.Z.T * v) @ self.Z for v in (self.w[:, None] * P * (1 - P)).T])

    def curvature(self, P: Array) -> Array:
        """Mean over rows of the second derivative in each parameter."""
        V = self.w[:, None] * P * (1 - P)
        tau = self.w @ (np.sum(P * self.E**2, axis=1) - np.sum(P * self.E, axis=1) ** 2)
        if self.kind == "temperature":
            own = np.empty(0)
        elif self.kind == "vector":
            own = np.concatenate([np.sum(V * self.E**2, axis=0), self.trust**2 @ V])
        else:
            own = (V.T @ self.Z**2).ravel()
        h = np.concatenate([[tau], own]) / self.w.sum()
        return h + 1e-6 * h.max() + np.finfo(float).tiny

    def moved(self, theta: Array) -> Array:
        """What theta adds to the logits."""
        c = self.E.shape[1]
        if self.kind == "temperature":
            return theta[0] * self.E
        if self.kind == "vector":
            return (theta[0] + theta[1 : 1 + c]) * self.E + self.trust[:, None] * theta[1 + c :]
        M = theta[1:].reshape(c, c + 1).copy()
        M[np.arange(c), np.arange(c)] += theta[0]
        return self.Z @ M.T

    def _back(self, R: Array) -> Array:
        """The transpose of ``moved``."""
        if self.kind == "dirichlet":
            M = R.T @ self.Z
            return np.concatenate([[np.trace(M)], M.ravel()])
        d = np.einsum("ij,ij->j", R, self.E)
        return np.concatenate([[d.sum()], d, self.trust @ R]) if self.kind == "vector" else np.array([d.sum()])


def matrices(kind: str, theta: Array, c: int) -> tuple[Array, Array]:
    """W and b."""
    W = theta[0] * np.eye(c)
    if kind == "temperature":
        return W, np.zeros(c)
    if kind == "vector":
        return W + np.diag(theta[1 : 1 + c]), theta[1 + c :]
    M = theta[1:].reshape(c, c + 1)
    return W + M[:, :c], M[:, c]


def slopes(kind: str, W: Array, b: Array) -> Array:
    """A theta that has these W and b."""
    tau = np.trace(W) / len(W)
    D = W - tau * np.eye(len(W))
    parts = {"temperature": [], "vector": [np.diagonal(D), b], "dirichlet": [np.column_stack([D, b]).ravel()]}[kind]
    return np.concatenate([[tau], *parts])


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
