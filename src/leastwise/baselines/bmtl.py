"""Bayesian multi-task learning: a network whose output weights have a prior that is learnt from all tasks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from leastwise.baselines._checks import count, number
from leastwise.baselines._common import TaskRegressor
from leastwise.baselines._evidence import Network, Rows, evidence, output_weights, posterior
from leastwise.estimators.checks import choose
from leastwise.estimators.validation import all_or_nothing

Array = np.ndarray

#: The least noise, in units of the standard deviation of y: exact targets would have infinite evidence.
LEAST_NOISE = 1e-4


class BMTLRegressor(TaskRegressor):
    r"""Empirical Bayes for a network of many tasks (Bakker and Heskes 2003, with one cluster of tasks).

    All tasks share the hidden units h(x) of a network, every task t has weights a_t from there to its output::

        y = a_t' h(x) + noise,   noise ~ N(0, s^2),   a_t ~ N(m, S),   h(x) = (g(V'x + v), 1)

    The a_t are integrated out, which gives a Gaussian marginal likelihood. V, v, m, S and s maximise it, by L-BFGS
    with the exact gradient. A prediction has the mean of a_t given the rows of its task. The maximum that is found
    depends on the start.

    Parameters
    ----------
    n_hidden : int, default=2
        Number of hidden units, besides a constant one.
    hidden : {"tanh", "linear"}, default="tanh"
        The function g.
    n_init : int, default=1
        So many random starts, of which the one that comes to the highest evidence is kept.
    max_iter, tol : int and float, default=1000 and 1e-8
        Stop of the optimisation: iterations, and relative rise of the evidence in one of them.
    task_column : str or int, optional
        The column of X that holds the task; without it, ``tasks=`` is to be given to every method.
    unknown_task : {"shared", "error"}, default="shared"
        What a task that was not there in training gets: the prior of its weights, or an error.
    random_state : int, RandomState or None, default=None
        For the weights V at the start.

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
        """Maximise the marginal likelihood of all tasks, then find the weights of each."""
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
                f"The evidence still rose after {self.max_iter} iterations: raise max_iter, or tol={self.tol}.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.evidence_, self.n_iter_ = np.array(history) - len(y) * np.log(ys), len(history) - 1
        self.hidden_coef_ = net.V[:-1] / xs[:, None]
        self.hidden_intercept_ = net.V[-1] - x0 @ self.hidden_coef_
        self._store(net, rows, float(y0), float(ys))
        return self

    def _climb(self, rows: Rows, rng: np.random.RandomState) -> tuple[Network, list[float], bool]:
        """From random hidden units to a maximum: the network, the evidence on the way, whether it came to rest."""
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
        """Keep prior and posteriors in the units of y."""
        A, C = output_weights(net, posterior(net, rows, net.hidden(rows.X)))
        constant = np.eye(len(net.mean))[-1] * y0
        self.prior_mean_, self.prior_covariance_ = ys * net.mean + constant, ys**2 * net.L @ net.L.T
        self.coef_, self.coef_covariance_ = ys * A + constant, ys**2 * C
        self.noise_ = float(ys * np.exp(net.log_noise))

    def predict(self, X: Any, tasks: Any = None, return_std: bool = False) -> Any:
        """Targets of the rows in their tasks, of shape (n,).

        With ``return_std`` also the standard deviation of a new target: of the function and of the noise.
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
        A = np.vstack([self.coef_, self.prior_mean_])[task]  # a task that is not known, -1, has the last
        mean = np.einsum("ij,ij->i", H, A)
        if not return_std:
            return mean
        C = np.concatenate([self.coef_covariance_, self.prior_covariance_[None]])[task]
        return mean, np.sqrt(np.einsum("ij,ijk,ik->i", H, C, H) + self.noise_**2)


def _location(values: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of columns; 1 where they are constant."""
    std = values.std(axis=0)
    return values.mean(axis=0), np.where(std > 0, std, 1.0)
