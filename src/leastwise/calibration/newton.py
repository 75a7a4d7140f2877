r"""Damped Newton minimisation for all calibrators, and logits that are linear in log-likelihood ratios.

``minimise`` is the only Newton loop of this package: the blends of classes and labels and the recalibration maps
are all fitted with it.

``Logits`` is the likelihood of the smooth recalibration maps. With e = log p - log(class shares) of a held-out row,

    log p(y|x)  =  const + log shares + domain weight * b + W e ,        W = tau I + D,

``temperature`` has tau alone, ``vector`` a diagonal D and b too, ``dirichlet`` all of D. Where nothing is known both
e and domain weight are zero, and the result is the class shares. D and b are shrunk towards zero by the penalty

    pull / 2 * sum_j h_j theta_j^2,      h_j the mean second derivative of one row in theta_j,

so ``pull`` is a number of rows, whatever the scale of e. An infinite pull leaves the temperature. With two classes
``vector`` is beta calibration: a log p - b log (1 - p) + c (Kull et al. 2017).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

Array = np.ndarray

#: Armijo constant of the line search, and the largest number of halvings of a step.
ARMIJO, HALVINGS = 1e-4, 40
#: The fit of linear logits stops at a Newton decrement below this per row. What is left is about its square.
ROW_DECREMENT = 1e-7


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


# ------------------------------------------------------------- linear logits


@dataclass(frozen=True)
class Logits:
    """Negative log-likelihood of theta = (tau, D, b), with its derivatives.

    For a full matrix theta holds the rows of D one after another, each followed by its entry of b.

    Attributes
    ----------
    kind : {"temperature", "vector", "dirichlet"}
    E, base, T : ndarray of shape (n, c)
        Log-likelihood ratios, logarithms of class shares, and targets.
    w, domain weight : ndarray of shape (n,)
        Weights, and the factor of b in each row.
    """

    kind: str
    E: Array
    base: Array
    T: Array
    w: Array
    in_domain: Array

    def take(self, rows: Array) -> Logits:
        """Some of the rows, in column order, which makes sums over few classes faster."""
        parts = (a.T[..., rows].T for a in (self.E, self.base, self.T, self.w, self.in_domain))
        return Logits(self.kind, *parts)

    @property
    def start(self) -> Array:
        """The theta that leaves probabilities unchanged."""
        c = self.E.shape[1]
        return np.eye(1, {"temperature": 1, "vector": 1 + 2 * c, "dirichlet": 1 + c + c * c}[self.kind])[0]

    @cached_property
    def Z(self) -> Array:
        """E and domain weight side by side."""
        return np.column_stack([self.E, self.in_domain])

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
        """The Hessian of a temperature or vector."""
        c, PE = self.E.shape[1], P * self.E
        if self.kind == "temperature":
            return np.array([[self.w @ (np.sum(PE * self.E, axis=1) - PE.sum(axis=1) ** 2)]])
        t, J = self.w * self.in_domain, np.hstack([PE, P * self.in_domain[:, None]])
        H, k = np.empty((1 + 2 * c, 1 + 2 * c)), np.arange(1, 1 + c)
        H[1:, 1:] = -(J.T * self.w) @ J
        H[k, k] += self.w @ (PE * self.E)
        H[k + c, k + c] += (t * self.in_domain) @ P
        H[k, k + c] += t @ PE
        H[k + c, k] += t @ PE
        H[0, 1:] = H[1:, 0] = H[1:, k].sum(axis=1)  # tau changes all slopes
        H[0, 0] = H[0, k].sum()
        return H

    def blocks(self, P: Array) -> Array:
        """Diagonal blocks of the Hessian of a full matrix, one for each class, of shape (c, c + 1, c + 1)."""
        return np.stack([(self.Z.T * v) @ self.Z for v in (self.w[:, None] * P * (1 - P)).T])

    def curvature(self, P: Array) -> Array:
        """Mean over rows of the second derivative in each parameter."""
        V = self.w[:, None] * P * (1 - P)
        tau = self.w @ (np.sum(P * self.E**2, axis=1) - np.sum(P * self.E, axis=1) ** 2)
        if self.kind == "temperature":
            own = np.empty(0)
        elif self.kind == "vector":
            own = np.concatenate([np.sum(V * self.E**2, axis=0), self.in_domain**2 @ V])
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
            return (theta[0] + theta[1 : 1 + c]) * self.E + self.in_domain[:, None] * theta[1 + c :]
        M = theta[1:].reshape(c, c + 1).copy()
        M[np.arange(c), np.arange(c)] += theta[0]
        return self.Z @ M.T

    def _back(self, R: Array) -> Array:
        """The transpose of ``moved``."""
        if self.kind == "dirichlet":
            M = R.T @ self.Z
            return np.concatenate([[np.trace(M)], M.ravel()])
        d = np.einsum("ij,ij->j", R, self.E)
        return np.concatenate([[d.sum()], d, self.in_domain @ R]) if self.kind == "vector" else np.array([d.sum()])


def matrices(kind: str, theta: Array, c: int) -> tuple[Array, Array]:
    """W and b of a theta."""
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


def fit_slopes(logits: Logits, tau: float, pull: float, start: Array | None = None) -> Array:
    """Theta of these rows, shrunk towards the temperature tau; the diagonal of W is zero or above."""
    centre = tau * logits.start
    if logits.kind == "temperature":
        return centre
    h = logits.curvature(logits.at(centre)[1])
    h[0] = 0  # the temperature is not penalised
    return fit_near(logits, centre, h, pull, start)


def fit_near(logits: Logits, centre: Array, h: Array, pull: float, start: Array | None = None) -> Array:
    """Theta of some rows, shrunk towards ``centre`` as if by ``pull`` rows of curvature h.

    The pull is multiplied by ten until the diagonal of W is not negative: a larger p then never lowers the result.
    """
    c = logits.E.shape[1]
    for strength in pull * 10.0 ** np.arange(8):
        theta = _penalised_fit(logits, centre, strength * h, start)
        if np.diagonal(matrices(logits.kind, theta, c)[0]).min() >= 0:
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
