"""Bayesian multi-task learning: a network whose output weights have a prior that is learned from all tasks.

Task t has outputs y = H a_t + noise, with hidden units H = [g([X, 1] V), 1] that all tasks share and weights
a_t = m + L u_t, where u_t is standard normal. Integrated over u_t,

    y_t ~ N(H_t m, H_t L L' H_t' + s^2 I).

The gradient of this marginal likelihood is that of the expected log-likelihood of y given u under the posterior of u
(Fisher's identity). It needs no inverse of the covariance L L', which may become singular.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from leastwise.baselines._base import TaskRegressor, count, number
from leastwise.fitting.checks import choose
from leastwise.utils.atomic_fit import all_or_nothing

Array = np.ndarray


@dataclass(frozen=True)
class Network:
    """Parameters that all tasks share: weights V (d + 1 x h), mean m (q), factor L (q x q), log of s; q = h + 1."""

    V: Array
    mean: Array
    L: Array
    log_noise: float
    kind: str

    def hidden(self, X: Array) -> Array:
        """Hidden units and the constant, for rows that end with a one."""
        inputs = X @ self.V
        return np.column_stack([np.tanh(inputs) if self.kind == "tanh" else inputs, np.ones(len(inputs))])

    def slope(self, H: Array) -> Array:
        """Derivative of the hidden units with respect to their inputs."""
        return 1 - H[:, :-1] ** 2 if self.kind == "tanh" else np.ones_like(H[:, :-1])

    def pack(self) -> Array:
        """All parameters as one vector."""
        lower = self.L[np.tril_indices(len(self.L))]
        return np.concatenate([self.V.ravel(), self.mean, lower, [self.log_noise]])

    def unpack(self, theta: Array) -> Network:
        """A network of this shape with other parameters."""
        q = len(self.mean)
        V, mean, lower, noise = np.split(theta, [self.V.size, self.V.size + q, len(theta) - 1])
        L = np.zeros((q, q))
        L[np.tril_indices(q)] = lower
        return Network(V.reshape(self.V.shape), mean, L, float(noise[0]), self.kind)


@dataclass(frozen=True)
class Rows:
    """Rows of all tasks, sorted by task: inputs with a column of ones, targets, codes, first rows of tasks."""

    X: Array
    y: Array
    task: Array
    starts: Array

    @classmethod
    def of(cls, X: Array, y: Array, task: Array) -> Rows:
        """Sort rows by task; every task has at least one row."""
        order = np.argsort(task, kind="stable")
        starts = np.searchsorted(task[order], np.arange(task.max() + 1))
        return cls(np.column_stack([X, np.ones(len(X))])[order], y[order], task[order], starts)

    def by_task(self, values: Array) -> Array:
        """Sums over the rows of every task."""
        return np.add.reduceat(values, self.starts, axis=0)


@dataclass(frozen=True)
class Posterior:
    """Posterior of the u_t: means u (T x q) and covariances cov (T x q x q); residuals and log evidence."""

    u: Array
    cov: Array
    gram: Array
    residual: Array
    evidence: float


def posterior(net: Network, rows: Rows, H: Array) -> Posterior:
    """Posterior of the weights of every task: the precision of u is I + L'H'HL / s^2."""
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


#: The least noise, in units of the standard deviation of y: exact targets would have infinite evidence.
LEAST_NOISE = 1e-4


class BMTLRegressor(TaskRegressor):
    r"""Empirical Bayes for a network of many tasks (Bakker and Heskes 2003, with one cluster of tasks).

    All tasks share the hidden units h(x) of a network, every task t has weights a_t from there to its output::

        y = a_t' h(x) + noise,   noise ~ N(0, s^2),   a_t ~ N(m, S),   h(x) = (g(V'x + v), 1)

    The a_t are integrated out, which gives a Gaussian marginal likelihood. V, v, m, S and s maximise it, by L-BFGS
    with the exact gradient. Predictions use the posterior mean of a_t. The maximum found depends on the start.

    Parameters
    ----------
    n_hidden : int, default=2
        Number of hidden units, besides a constant one.
    hidden : {"tanh", "linear"}, default="tanh"
        The function g.
    n_init : int, default=1
        Number of random starts; the one with the highest evidence is kept.
    max_iter, tol : int and float, default=1000 and 1e-8
        Maximum number of iterations, and relative increase of the evidence at which to stop.
    task_column : str or int, optional
        The column of X that holds the task; without it, every method needs ``tasks=``.
    unknown_task : {"shared", "error"}, default="shared"
        Prediction for a task that is not in the training data: by the prior of its weights, or an error.
    random_state : int, RandomState or None, default=None
        Seed of the initial weights V.

    Attributes
    ----------
    tasks_ : ndarray of shape (T,)
        Ids of the tasks.
    hidden_coef_, hidden_intercept_ : ndarray of shape (d, n_hidden) and (n_hidden,)
        V and v.
    prior_mean_, prior_covariance_ : ndarray of shape (q,) and (q, q), q = n_hidden + 1
        m and S; the constant unit comes last.
    noise_ : float
        Standard deviation s of the noise.
    coef_, coef_covariance_ : ndarray of shape (T, q) and (T, q, q)
        Mean and covariance of the weights of every task given its rows.
    evidence_ : ndarray
        Log marginal likelihood at the start and after every iteration; it cannot fall.
    n_iter_ : int

    Examples
    --------
    >>> from leastwise.baselines import BMTLRegressor
    >>> from leastwise.datasets import make_related_tasks
    >>> data = make_related_tasks(5, 20, kind="regression", random_state=0)
    >>> model = BMTLRegressor(random_state=0).fit(data.X, data.y, tasks=data.task)
    >>> mean, std = model.predict(data.X[:3], tasks=data.task[:3], return_std=True)
    """

    def __init__(
        self,
        n_hidden: int = 2,
        hidden: str = "tanh",
        *,
        n_init: int = 1,
        max_iter: int = 1000,
        tol: float = 1e-8,
        task_column: Any = None,
        unknown_task: str = "shared",
        random_state: Any = None,
    ) -> None:
        self.n_hidden = n_hidden
        self.hidden = hidden
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.task_column = task_column
        self.unknown_task = unknown_task
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any, tasks: Any = None) -> BMTLRegressor:
        """Maximise the marginal likelihood of all tasks, then compute the posterior of each task."""
        for name in ("n_hidden", "n_init", "max_iter"):
            count(name, getattr(self, name))
        number("tol", self.tol, zero=True)
        choose("hidden", self.hidden, ["tanh", "linear"])
        choose("unknown_task", self.unknown_task, ["shared", "error"])
        X, y, task = self._training_numbers(X, y, tasks)
        # Only for the optimiser: V, v, m and S can undo any shift and scale.
        (x0, xs), (y0, ys) = _location(X), _location(y)
        rows = Rows.of((X - x0) / xs, (y - y0) / ys, task)
        rng = check_random_state(self.random_state)
        runs = [self._climb(rows, rng) for _ in range(self.n_init)]
        net, history, settled = max(runs, key=lambda run: run[1][-1])
        if not settled:
            warnings.warn(
                f"The evidence did not converge in {self.max_iter} iterations: raise max_iter, or tol={self.tol}.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.evidence_, self.n_iter_ = np.array(history) - len(y) * np.log(ys), len(history) - 1
        self.hidden_coef_ = net.V[:-1] / xs[:, None]
        self.hidden_intercept_ = net.V[-1] - x0 @ self.hidden_coef_
        self._store(net, rows, float(y0), float(ys))
        return self

    def _climb(self, rows: Rows, rng: np.random.RandomState) -> tuple[Network, list[float], bool]:
        """Maximise from random hidden units; return the network, the evidence of all iterations, and convergence."""
        width, q = rows.X.shape[1], self.n_hidden + 1
        V = rng.standard_normal((width, self.n_hidden)) / np.sqrt(width)
        start = Network(V, np.zeros(q), 0.5 * np.eye(q), np.log(0.5), self.hidden)

        def loss(theta: Array) -> tuple[float, Array]:
            value, gradient = evidence(start.unpack(theta), rows)
            return -value, -gradient

        history = [-loss(start.pack())[0]]

        def follow(intermediate_result: Any) -> None:
            history.append(-float(intermediate_result.fun))

        bounds = [(None, None)] * (len(start.pack()) - 1) + [(np.log(LEAST_NOISE), None)]
        stop = {"maxiter": self.max_iter, "maxfun": 10 * self.max_iter, "ftol": self.tol, "gtol": 1e-6, "maxcor": 20}
        end = minimize(loss, start.pack(), jac=True, method="L-BFGS-B", bounds=bounds, callback=follow, options=stop)
        return start.unpack(end.x), history, end.status != 1

    def _store(self, net: Network, rows: Rows, y0: float, ys: float) -> None:
        """Store prior and posteriors in the units of y."""
        A, C = output_weights(net, posterior(net, rows, net.hidden(rows.X)))
        constant = np.eye(len(net.mean))[-1] * y0
        self.prior_mean_, self.prior_covariance_ = ys * net.mean + constant, ys**2 * net.L @ net.L.T
        self.coef_, self.coef_covariance_ = ys * A + constant, ys**2 * C
        self.noise_ = float(ys * np.exp(net.log_noise))

    def predict(self, X: Any, tasks: Any = None, return_std: bool = False) -> Any:
        """Targets of the rows in their tasks, of shape (n,).

        With ``return_std`` also the standard deviation of a new target, from function and noise.
        """
        X, task = self._new_rows(X, tasks)
        net = Network(
            np.vstack([self.hidden_coef_, self.hidden_intercept_]),
            self.prior_mean_,
            np.empty(0),
            0.0,
            self.used_["hidden"],
        )
        H = net.hidden(np.column_stack([X, np.ones(len(X))]))
        A = np.vstack([self.coef_, self.prior_mean_])[task]  # an unseen task, -1, has the last row
        mean = np.einsum("ij,ij->i", H, A)
        if not return_std:
            return mean
        C = np.concatenate([self.coef_covariance_, self.prior_covariance_[None]])[task]
        return mean, np.sqrt(np.einsum("ij,ijk,ik->i", H, C, H) + self.noise_**2)


def _location(values: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of columns; 1 for constant columns."""
    std = values.std(axis=0)
    return values.mean(axis=0), np.where(std > 0, std, 1.0)
