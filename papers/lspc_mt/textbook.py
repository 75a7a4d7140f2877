"""KLR-MT in the paper's form, and LSPC-MT's search in other ways: what the time of a search hangs on.

The paper's form is L-BFGS on all coefficients from zero. Some points are timed, each in one fold, and extrapolated.
"""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from leastwise import MultiTaskLSPC
from leastwise.problem.kernels import RBF
from papers._common.data import Array
from papers._common.timing import timed
from papers.lspc_mt.draws import N_FOLDS, Draw
from papers.lspc_mt.grid import GAMMAS, LAMBDAS, N_POINTS, best_point, sigmas, ties
from papers.lspc_mt.methods import lspc_trial, odds, parts_heldout


def textbook_fit(K: Array, y: Array, task: Array, lambda_: float, gamma_: float, n_tasks: int) -> int:
    """KLR-MT with coefficients beta_0 and beta_t on all kernels, from zero; the number of iterations.

    min  1/n sum_i log(1 + exp(-y_i f_i)) + lambda/2 |beta_0|^2 + gamma/(2T) sum_t |beta_t|^2,
    f_i = phi(x_i)'(beta_0 + beta_t), by SciPy's L-BFGS with its own tolerances and 500 iterations at most.
    """
    n, starts = len(y), np.searchsorted(task, np.arange(n_tasks + 1))
    parts = [(K[a:b], slice(a, b)) for a, b in itertools.pairwise(starts)]
    ridge = np.r_[lambda_, np.full(n_tasks, gamma_ / n_tasks)][:, None]

    def value_and_gradient(theta: Array) -> tuple[float, Array]:
        W = theta.reshape(n_tasks + 1, n)
        f, g = K @ W[0], ridge * W
        for t, (Kt, rows) in enumerate(parts, start=1):
            f[rows] += Kt @ W[t]
        r = (expit(f) - y) / n
        loss = np.mean(np.logaddexp(0, f) - y * f) + np.sum(g * W) / 2
        for t, (Kt, rows) in enumerate(parts, start=1):
            own = r[rows] @ Kt
            g[t] += own
            g[0] += own
        return float(loss), g.ravel()

    options = {"maxiter": 500, "maxfun": 1000}
    zero = np.zeros((n_tasks + 1) * n)
    return int(minimize(value_and_gradient, zero, jac=True, method="L-BFGS-B", options=options).nit)


def textbook_seconds(draw: Draw, count: int, seed: int, scale: str) -> dict[str, Any]:
    """Fits at so many points, each in one fold: processor seconds of one, and of the whole search extrapolated."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(list(itertools.product(LAMBDAS, GAMMAS)))[:count]
    seconds, iterations = [], []
    for lambda_, gamma_ in chosen:
        stay = np.flatnonzero(draw.fold != rng.integers(N_FOLDS))
        K = RBF()(draw.X[stay], draw.X[stay], rng.choice(sigmas(draw)))
        unit = 1 / len(stay) if scale == "sum" else 1.0
        fit = partial(textbook_fit, K, draw.y[stay], draw.task[stay], lambda_ * unit, gamma_ * unit, draw.n_tasks)
        run = timed(fit)
        seconds.append(run.cpu)
        iterations.append(run.value)
    error = np.std(seconds, ddof=1) / np.sqrt(count) if count > 1 else 0.0
    times = N_POINTS * N_FOLDS
    return {
        "points": len(chosen),
        "fit": np.mean(seconds),
        "iterations": np.mean(iterations),
        "search": np.mean(seconds) * times,
        "search_error": error * times,
    }


def other_loops(draw: Draw, count: int) -> dict[str, float]:
    """LSPC-MT's search in other ways: by the library's spectra, and by a public fit for every point and fold."""
    trial, score = lspc_trial(draw), partial(odds, by=draw.by)
    parts = timed(lambda: best_point(draw, partial(parts_heldout, trial, score), "MT"))
    pairs = ties("MT", draw.n_tasks)[:: max(len(ties("MT", draw.n_tasks)) // count, 1)]
    stay, out = draw.splits[0]

    def fits() -> None:
        for sharing, alpha in pairs:
            model = MultiTaskLSPC(sigmas(draw)[3], alpha, sharing, norm="coefficients", cv=None, calibration=None)
            model.fit(draw.X[stay], draw.y[stay], tasks=draw.task[stay])
            model.scores(draw.X[out], tasks=draw.task[out])

    loop = timed(fits).cpu / len(pairs) * N_POINTS * N_FOLDS
    return {"spectra": parts.cpu, "fits": loop, **{f"spectra_{k}": v for k, v in parts.value.values.items()}}
