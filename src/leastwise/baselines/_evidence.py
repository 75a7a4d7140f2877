"""The marginal likelihood of a network with task-specific output weights, and its gradient.

Task t has outputs y = H a_t + noise, with hidden units H = [g([X, 1] V), 1] that all tasks share and weights
a_t = m + L u_t, where u_t is standard normal. Integrated over u_t,

    y_t ~ N(H_t m, H_t L L' H_t' + s^2 I).

The gradient is that of the expected log-likelihood of y given u under the posterior of u (Fisher's identity), which
needs no inverse of the covariance L L': it may become singular.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Array = np.ndarray


def hidden_units(inputs: Array, kind: str) -> Array:
    """What comes out of the hidden units for what goes in, with a constant one at the end."""
    return np.column_stack([np.tanh(inputs) if kind == "tanh" else inputs, np.ones(len(inputs))])


@dataclass(frozen=True)
class Network:
    """What all tasks share: weights V (d + 1 x h), mean m (q), factor L (q x q), log of s; q = h + 1."""

    V: Array
    mean: Array
    L: Array
    log_noise: float
    kind: str

    def hidden(self, X: Array) -> Array:
        """Hidden units and the constant one, for rows that end with a one."""
        return hidden_units(X @ self.V, self.kind)

    def slope(self, H: Array) -> Array:
        """Derivative of the hidden units by what goes into them."""
        return 1 - H[:, :-1] ** 2 if self.kind == "tanh" else np.ones_like(H[:, :-1])

    def pack(self) -> Array:
        """All numbers as one vector."""
        lower = self.L[np.tril_indices(len(self.L))]
        return np.concatenate([self.V.ravel(), self.mean, lower, [self.log_noise]])

    def unpack(self, theta: Array) -> Network:
        """A network of this shape with other numbers."""
        q = len(self.mean)
        V, mean, lower, noise = np.split(theta, [self.V.size, self.V.size + q, len(theta) - 1])
        L = np.zeros((q, q))
        L[np.tril_indices(q)] = lower
        return Network(V.reshape(self.V.shape), mean, L, float(noise[0]), self.kind)


@dataclass(frozen=True)
class Rows:
    """Rows of all tasks, sorted by task: inputs that end with a one, targets, codes, and where each task starts."""

    X: Array
    y: Array
    task: Array
    starts: Array

    @classmethod
    def of(cls, X: Array, y: Array, task: Array) -> Rows:
        """Rows in any order; every task has one."""
        order = np.argsort(task, kind="stable")
        starts = np.searchsorted(task[order], np.arange(task.max() + 1))
        return cls(np.column_stack([X, np.ones(len(X))])[order], y[order], task[order], starts)

    def by_task(self, values: Array) -> Array:
        """Sums over the rows of every task."""
        return np.add.reduceat(values, self.starts, axis=0)


@dataclass(frozen=True)
class Posterior:
    """Of the u_t: means u (T x q) and covariances cov (T x q x q); with the residuals and the log evidence."""

    u: Array
    cov: Array
    gram: Array
    residual: Array
    evidence: float


def posterior(net: Network, rows: Rows, H: Array) -> Posterior:
    """Weights of every task given its rows: the precision of u is I + L'H'HL / s^2."""
    s2 = np.exp(2 * net.log_noise)
    error = rows.y - H @ net.mean
    gram = rows.by_task(H[:, :, None] * H[:, None, :])
    precision = np.eye(len(net.L)) + net.L.T @ gram @ net.L / s2
    cov = np.linalg.inv(precision)
    u = np.einsum("tij,tj->ti", cov, rows.by_task(H * error[:, None]) @ net.L) / s2
    residual = error - np.einsum("ij,ij->i", H @ net.L, u[rows.task])
    square = residual @ residual / s2 + np.sum(u**2)
    logdet = np.linalg.slogdet(precision)[1].sum() + len(rows.y) * (2 * net.log_noise + np.log(2 * np.pi))
    return Posterior(u, cov, gram, residual, -0.5 * float(square + logdet))


def output_weights(net: Network, post: Posterior) -> tuple[Array, Array]:
    """Means (T x q) and covariances (T x q x q) of the a_t."""
    return net.mean + post.u @ net.L.T, net.L @ post.cov @ net.L.T


def evidence(net: Network, rows: Rows) -> tuple[float, Array]:
    """Log marginal likelihood of all tasks, and its gradient in the order of ``Network.pack``."""
    H = net.hidden(rows.X)
    post = posterior(net, rows, H)
    A, C = output_weights(net, post)
    r, s2 = post.residual, np.exp(2 * net.log_noise)
    dH = (r[:, None] * A[rows.task] - np.einsum("ij,ijk->ik", H, C[rows.task])) / s2
    Hr = rows.by_task(H * r[:, None])
    dL = (Hr.T @ post.u - np.sum(post.gram @ net.L @ post.cov, axis=0)) / s2
    dnoise = (r @ r + np.sum(post.gram * C)) / s2 - len(r)
    dV = rows.X.T @ (dH[:, :-1] * net.slope(H))
    return post.evidence, Network(dV, Hr.sum(axis=0) / s2, dL, dnoise, net.kind).pack()
