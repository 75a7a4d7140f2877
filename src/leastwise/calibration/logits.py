r"""The likelihood of the smooth recalibration maps, and their fits by Newton's method.

With e = log p - log(class shares) of a held-out row, and s = e - mean of e over the classes,

    log p(y|x)  =  const + log shares + domain weight * b + W e + u s^2,        W = tau I + D,

``temperature`` has tau alone, ``vector`` a diagonal D and b too, ``dirichlet`` all of D. ``quadratic`` has u, b and
a diagonal D that multiplies s instead of e: with two classes the logit is a + b s + c s^2. Where nothing is known
both e and domain weight are zero, and the result is the class shares. D, u and b are shrunk towards zero by the
penalty

    pull / 2 * sum_j f_j h_j theta_j^2,      h_j the mean second derivative of one row in theta_j,

so ``pull`` is a number of rows, independent of the scale of e. With an infinite pull, or few rows, the result is the
temperature.
All f_j are 1 but those of :func:`off_diagonal`. With two classes ``vector`` is beta calibration:
a log p - b log (1 - p) + c (Kull et al. 2017).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from leastwise.calibration.blend import minimise, regularised

Array = np.ndarray

#: A fit stops at a Newton decrement below this per row. What is left is about its square.
ROW_DECREMENT = 1e-7


@dataclass(frozen=True)
class Logits:
    """Negative log-likelihood of theta = (tau, D, u, b), with its derivatives.

    Of D and u theta holds what the kind has. For a full matrix it holds the rows of D one after another, each
    followed by its entry of b.

    Attributes
    ----------
    kind : {"temperature", "vector", "quadratic", "dirichlet"}
    E, base, T : ndarray of shape (n, c)
        Log-likelihood ratios, logarithms of class shares, and targets.
    w, in_domain : ndarray of shape (n,)
        Weights, and the factor of b in each row.
    max_logit : float
        The squares of ``quadratic`` are constant where s is beyond this.
    """

    kind: str
    E: Array
    base: Array
    T: Array
    w: Array
    in_domain: Array
    max_logit: float = np.inf

    def take(self, rows: Array) -> Logits:
        """Some of the rows, in column order, which makes sums over few classes faster."""
        E, base, T, w, in_domain = (a.T[..., rows].T for a in (self.E, self.base, self.T, self.w, self.in_domain))
        return replace(self, E=E, base=base, T=T, w=w, in_domain=in_domain)

    @property
    def start(self) -> Array:
        """The theta that leaves probabilities unchanged."""
        c = self.E.shape[1]
        more = {"temperature": 0, "vector": 2 * c, "quadratic": 3 * c, "dirichlet": c * c + c}[self.kind]
        return np.eye(1, 1 + more)[0]

    @cached_property
    def Z(self) -> Array:
        """E and domain weight side by side."""
        return np.column_stack([self.E, self.in_domain])

    @cached_property
    def terms(self) -> tuple[Array, ...]:
        """What is multiplied by a parameter of each class, for all kinds but a full matrix."""
        if self.kind == "temperature":
            return ()
        if self.kind == "vector":
            return self.E, self.in_domain[:, None]
        S = centred(self.E, self.max_logit)
        return S, S**2, self.in_domain[:, None]

    def at(self, theta: Array) -> tuple[float, Array]:
        """The value, and the probabilities."""
        L = self.base + self.moved(theta)
        L -= L.max(axis=1, keepdims=True)
        P = np.exp(L)
        total = P.sum(axis=1)
        return float(self.w @ (np.log(total) - np.einsum("ij,ij->i", self.T, L))), P / total[:, None]

    def gradient(self, P: Array) -> Array:
        """First derivatives where the probabilities are P."""
        return self._back(self.w[:, None] * (P - self.T))

    def curved(self, P: Array) -> Callable[[Array], Array]:
        """The product of the Hessian with a vector, as a function of the vector."""
        wP = self.w[:, None] * P

        def times(v: Array) -> Array:
            step = self.moved(v)
            step -= np.einsum("ij,ij->i", P, step)[:, None]
            step *= wP
            return self._back(step)

        return times

    def hessian(self, P: Array) -> Array:
        """The Hessian of all kinds but a full matrix."""
        c, PE = self.E.shape[1], P * self.E
        H, mean = np.empty((len(self.start), len(self.start))), PE.sum(axis=1)
        H[0, 0] = self.w @ (np.sum(PE * self.E, axis=1) - mean**2)
        if self.kind == "temperature":
            return H
        J = np.hstack([P * F for F in self.terms])
        H[1:, 1:] = -(J.T * self.w) @ J
        H[0, 1:] = -(self.w * mean) @ J
        for j, F in enumerate(self.terms):
            own = 1 + c * j + np.arange(c)
            H[0, own] += self.w @ (PE * F)
            for i, G in enumerate(self.terms):
                H[own, 1 + c * i + np.arange(c)] += self.w @ (P * F * G)
        H[1:, 0] = H[0, 1:]
        return H

    def blocks(self, P: Array) -> Array:
        """Diagonal blocks of the Hessian of a full matrix, one for each class, of shape (c, c + 1, c + 1)."""
        return np.stack([(self.Z.T * v) @ self.Z for v in (self.w[:, None] * P * (1 - P)).T])

    def curvature(self, P: Array) -> Array:
        """Mean over rows of the second derivative in each parameter."""
        V = self.w[:, None] * P * (1 - P)
        tau = self.w @ (np.sum(P * self.E**2, axis=1) - np.sum(P * self.E, axis=1) ** 2)
        if self.kind == "dirichlet":
            own = [(V.T @ self.Z**2).ravel()]
        else:
            own = [np.sum(V * F**2, axis=0) for F in self.terms]
        h = np.concatenate([[tau], *own]) / self.w.sum()
        return h + 1e-6 * h.max() + np.finfo(float).tiny

    def moved(self, theta: Array) -> Array:
        """What theta adds to the logits."""
        c = self.E.shape[1]
        if self.kind == "dirichlet":
            M = theta[1:].reshape(c, c + 1).copy()
            M[np.arange(c), np.arange(c)] += theta[0]
            return self.Z @ M.T
        L = theta[0] * self.E
        for F, own in zip(self.terms, theta[1:].reshape(-1, c), strict=True):
            L += F * own
        return L

    def _back(self, R: Array) -> Array:
        """The transpose of ``moved``."""
        if self.kind == "dirichlet":
            M = R.T @ self.Z
            return np.concatenate([[np.trace(M)], M.ravel()])
        return np.concatenate([[np.sum(R * self.E)], *(np.sum(R * F, axis=0) for F in self.terms)])

    def increases(self, theta: Array) -> bool:
        """True if a larger p of a class never lowers its own logit."""
        c = self.E.shape[1]
        if self.kind != "quadratic":
            return bool(np.diagonal(matrices(self.kind, theta, c)[0]).min() >= 0)
        D, u, _ = theta[1:].reshape(3, c)
        return bool(theta[0] >= 0 and np.min(theta[0] + D - 2 * self.max_logit * np.abs(u)) >= 0)


def centred(E: Array, max_logit: float = np.inf) -> Array:
    """Log-likelihood ratios minus their mean over the classes, cut off at ``max_logit``."""
    return np.clip(E - E.mean(axis=1, keepdims=True), -max_logit, max_logit)


def off_diagonal(c: int) -> Array:
    """Factors f of the penalty of a full matrix that should be nearly diagonal: c for off-diagonal entries.

    A class has c - 1 of them and one on the diagonal. The factor keeps their joint freedom at that of the diagonal,
    however many classes there are. tau is free, and intercepts count like the diagonal.
    """
    M = np.full((c, c + 1), float(c))
    M[np.arange(c), np.arange(c)] = M[:, c] = 1
    return np.concatenate([[1.0], M.ravel()])


def matrices(kind: str, theta: Array, c: int) -> tuple[Array, Array]:
    """W and b of a theta; for all kinds but ``quadratic``."""
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


def fit_temperature(logits: Logits) -> float:
    """The common slope of all log-likelihood ratios, zero or above."""
    flat = replace(logits, kind="temperature")
    return max(float(_penalised_fit(flat, flat.start, np.zeros(1))[0]), 0.0)


def fit_slopes(
    logits: Logits, tau: float, pull: float, start: Array | None = None, factors: Array | float = 1.0
) -> Array:
    """Theta of these rows, shrunk towards the temperature tau; no logit falls with its own probability."""
    centre = tau * logits.start
    if logits.kind == "temperature":
        return centre
    h = factors * logits.curvature(logits.at(centre)[1])
    h[0] = 0  # the temperature is not penalised
    return fit_near(logits, centre, h, pull, start)


def fit_near(logits: Logits, centre: Array, h: Array, pull: float, start: Array | None = None) -> Array:
    """Theta of some rows, shrunk towards ``centre`` as if by ``pull`` rows of curvature h.

    The pull is multiplied by ten until a larger p of a class never lowers its logit.
    """
    for strength in pull * 10.0 ** np.arange(8):
        theta = _penalised_fit(logits, centre, strength * h, start)
        if logits.increases(theta):
            return theta
    return centre


def _penalised_fit(logits: Logits, centre: Array, ridge: Array, start: Array | None = None) -> Array:
    """The minimum of the negative log-likelihood plus ``1/2 sum ridge (theta - centre)^2``."""

    def value_at(theta: Array) -> tuple[Array, Array]:
        value, P = logits.at(theta[0])
        return np.array([value + 0.5 * float(ridge @ (theta[0] - centre) ** 2)]), P

    def step_at(theta: Array, P: Array) -> tuple[Array, Array]:
        gradient = logits.gradient(P) + ridge * (theta[0] - centre)
        return gradient[None], _newton_step(logits, P, gradient, ridge)[None]

    first = (centre if start is None else start)[None]
    return minimise(value_at, step_at, first, atol=ROW_DECREMENT * float(logits.w.sum()))[0][0]


def _newton_step(logits: Logits, P: Array, gradient: Array, ridge: Array) -> Array:
    """Minimise the quadratic model; by conjugate gradients for a full matrix, whose Hessian is too large to form."""
    if logits.kind == "dirichlet":
        times = logits.curved(P)
        return _conjugate_gradients(lambda v: times(v) + ridge * v, -gradient, _block_solve(logits, P, ridge))
    H = logits.hessian(P) + np.diag(ridge)
    return -np.linalg.solve(regularised(H[None])[0], gradient)


def _block_solve(logits: Logits, P: Array, ridge: Array) -> Callable[[Array], Array]:
    """A preconditioner: solves with the Hessian without the entries between classes, and between tau and the rest."""
    B, c = logits.blocks(P), logits.E.shape[1]
    B[:, np.arange(c + 1), np.arange(c + 1)] += ridge[1:].reshape(c, c + 1) + 1e-9 * B.max() + 1e-100
    B, tau = np.linalg.inv(B), logits.curvature(P)[0] * logits.w.sum() + ridge[0]

    def solve(r: Array) -> Array:
        rows = B @ r[1:].reshape(c, c + 1, 1)
        return np.concatenate([[r[0] / tau], rows.ravel()])

    return solve


def _conjugate_gradients(product: Callable, right: Array, precondition: Callable) -> Array:
    """Solve ``product(x) = right`` to two digits."""
    x, r = np.zeros_like(right), right
    z = precondition(r)
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
        z = precondition(r)
        new = float(r @ z)
        p, rz = z + new / rz * p, new
    return x
