"""The methods: LSPC-MT and KLR-MT on the paper's grid of sigma, lambda and gamma, and this library's defaults.

LSPC-MT       eq. (6): a part shared by all tasks and a part of each task; penalty on the coefficients
KLR-MT        kernel logistic regression with the same task matrix, by Newton's method with warm starts
..-STI, -STC  the same with independent tasks (one sigma and lambda for all), and with all tasks pooled
default ..    MultiTaskLSPC of this library on its own grid by leave-one-out

For the comparison of times there are also KLR-MT as in the paper (L-BFGS on all coefficients, starting at zero;
timed at some points of the grid, each in one fold, and extrapolated) and other implementations of the search of
LSPC-MT.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg.lapack import dposv
from scipy.optimize import minimize
from scipy.special import expit

from leastwise import MultiTaskKernelLogisticRegression, MultiTaskLSPC
from leastwise.fitting.direct import make_problem
from leastwise.fitting.fit import prepare
from leastwise.model_selection.grids import Grid
from leastwise.problem.coupling import from_lambda_gamma
from leastwise.problem.kernels import RBF
from papers._common import PLAIN
from papers._common.data import Array, median_distance
from papers._common.timing import timed
from papers.lspc_mt.draws import N_FOLDS, Draw

LAMBDAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
GAMMAS = (0.0, *LAMBDAS)
#: In units of the median distance, for the paper's kernel exp(-d^2 / sigma^2); ours is exp(-d^2 / (2 sigma^2)).
SIGMAS = (1 / 2, 2 / 3, 5 / 6, 1, 4 / 3, 5 / 3)
#: LSPC-MT at given hyperparameters.
GIVEN: dict[str, Any] = {**PLAIN, "norm": "coefficients", "cv": None, "calibration": None}
#: Replaces gamma = 0, at which the parts of the tasks would have no ridge.
TINY = 1e-9
N_POINTS = len(SIGMAS) * len(LAMBDAS) * len(GAMMAS)


@dataclass(frozen=True)
class Point:
    """A point of the grid and its score in cross-validation."""

    sigma: float
    alpha: float
    sharing: float
    score: float = np.nan

    def rank(self) -> tuple:
        """Sort key: the score rounded to six digits; ties go to the smaller hyperparameters."""
        return round(self.score, 6), -self.alpha, -self.sigma, -self.sharing

    @property
    def values(self) -> dict[str, Any]:
        """Parameters of an estimator."""
        return {"sigma": self.sigma, "alpha": self.alpha, "sharing": self.sharing}


def ties(kind: str, n_tasks: int) -> list[tuple[float, float]]:
    """Sharing and alpha of the paper's lambdas and gammas, sorted by sharing and descending alpha.

    At gamma = 0 the tasks are independent for every lambda: these six points are one.
    """
    if kind == "STI":
        pairs = [(np.inf, v) for v in LAMBDAS]
    elif kind == "STC":
        pairs = [(v, np.inf) for v in LAMBDAS]
    else:
        pairs = [(np.inf, TINY), *itertools.product(LAMBDAS, GAMMAS[1:])]
    found = [from_lambda_gamma(*pair, n_tasks) for pair in pairs]
    return sorted({(round(f["sharing"], 12), f["alpha"]) for f in found}, key=lambda p: (p[0], -p[1]))


def sigmas(draw: Draw) -> list[float]:
    """The grid of sigma for these rows."""
    length = median_distance(draw.X)
    return [float(s * length / np.sqrt(2)) for s in SIGMAS]


def best_point(draw: Draw, held: Callable[..., Iterator[tuple[Point, Array]]], kind: str, unit: float = 1.0) -> Point:
    """The best point by cross-validation; alphas are multiplied by ``unit``."""
    pairs = [(sharing, alpha * unit) for sharing, alpha in ties(kind, draw.n_tasks)]
    found = [
        Point(**point.values, score=draw.objective(score))
        for sigma in sigmas(draw)
        for point, score in held(draw, sigma, pairs)
    ]
    return max(found, key=Point.rank)


DEFAULTS: dict[str, dict[str, Any]] = {
    "default": {},
    "default auc": {"scoring": "auc"},
    "default learned": {"similarity": "learned"},
    "default coefficients": {"norm": "coefficients"},
}
#: The chosen point, and a function that computes the test scores.
Fitted = tuple[Point, Callable[[], Array]]


def odds(F: Array, by: str) -> Array:
    """Eq. (7) without clipping; for accuracy, where only the sign matters, the difference of the scores."""
    return F[:, 1] / np.maximum(F.sum(axis=1), TINY) if by == "auc" else difference(F)


def difference(F: Array) -> Array:
    """Difference of the scores of the two classes."""
    return F[:, 1] - F[:, 0]


def lspc_heldout(draw: Draw, sigma: float, pairs: Sequence[tuple[float, float]]) -> Iterator[tuple[Point, Array]]:
    """Held-out scores by eq. (6), one Cholesky factor for every point and fold."""
    K, Z = RBF()(draw.X, draw.X, sigma), np.eye(2)[draw.y]
    F = np.empty((len(pairs), len(K), 2))
    for stay, out in draw.splits:
        Phi = K[np.ix_(stay, stay)]
        G, across = Phi @ Phi, K[np.ix_(out, stay)] @ Phi
        same = draw.task[:, None] == draw.task[stay]
        own, own_across = G * same[stay], across * same[out]
        for k, (sharing, alpha) in enumerate(pairs):
            H = sharing * G
            H += (1 - sharing) * own
            H.flat[:: len(H) + 1] += alpha * len(H)
            A = dposv(H.T, Z[stay], lower=1, overwrite_a=1)[1]
            F[k, out] = sharing * (across @ A) + (1 - sharing) * (own_across @ A)
    for (sharing, alpha), scores in zip(pairs, F, strict=True):
        yield Point(sigma, alpha, sharing), odds(scores, draw.by)


def parts_heldout(
    evaluator: Any, score: Callable[[Array], Array], draw: Draw, sigma: float, pairs: Sequence[tuple[float, float]]
) -> Iterator[tuple[Point, Array]]:
    """Held-out scores by the library: one spectrum for each sharing and fold, or for KLR one path of refits."""
    for sharing, alphas in itertools.groupby(pairs, key=lambda p: p[0]):
        wanted = [a for _, a in alphas]
        at = evaluator.with_sharing(sharing).heldout(sigma, len(wanted))
        for alpha in wanted:
            yield Point(sigma, alpha, sharing), score(at(alpha).F)


def lspc_trial(draw: Draw) -> Any:
    """The library's evaluator of LSPC-MT on this draw."""
    model = MultiTaskLSPC(1.0, 1.0, 1.0, **PLAIN, norm="coefficients", cv=draw.splits, calibration="temperature")
    spec = model._spec()
    return make_problem(spec, *prepare(model, spec, draw.X, draw.y, tasks=draw.task)).evaluator()


def klr_trial(draw: Draw) -> Any:
    """The library's evaluator of KLR-MT on this draw."""
    model = MultiTaskKernelLogisticRegression(1.0, 1.0, 1.0, **PLAIN, bias=None, cv=draw.splits)
    spec = model._spec()
    evaluator = make_problem(spec, *prepare(model, spec, draw.X, draw.y, tasks=draw.task)).evaluator()
    evaluator.solver_options = replace(evaluator.solver_options, alphas=Grid(()))
    return evaluator


def lspc(draw: Draw, kind: str) -> Fitted:
    """LSPC-MT, LSPC-STI or LSPC-STC at the best point of the grid."""
    point = best_point(draw, lspc_heldout, kind)
    model = MultiTaskLSPC(**point.values, **GIVEN)
    model.fit(draw.X, draw.y, tasks=draw.task)
    return point, lambda: odds(np.asarray(model.scores(draw.X_test, tasks=draw.task_test)), draw.by)


def klr(draw: Draw, kind: str, scale: str) -> Fitted:
    """The KLR methods, with lambda and gamma relative to the mean or the sum of the losses."""
    unit = 1 / len(draw.y) if scale == "sum" else 1.0
    point = best_point(draw, partial(parts_heldout, klr_trial(draw), difference), kind, unit)
    model = MultiTaskKernelLogisticRegression(**point.values, **PLAIN, bias=None, cv=None)
    model.fit(draw.X, draw.y, tasks=draw.task)
    return point, lambda: np.asarray(model.decision_function(draw.X_test, tasks=draw.task_test))


def default(draw: Draw, options: dict[str, Any]) -> Fitted:
    """MultiTaskLSPC with its own search."""
    model = MultiTaskLSPC(**PLAIN, **options, random_state=0).fit(draw.X, draw.y, tasks=draw.task)
    point = Point(model.sigma_, model.alpha_, model.sharing_, float(model.cv_results_["mean_test_score"].max()))
    return point, lambda: np.asarray(model.decision_function(draw.X_test, tasks=draw.task_test))


def textbook_fit(K: Array, y: Array, task: Array, lambda_: float, gamma_: float, n_tasks: int) -> int:
    """KLR-MT with coefficients beta_0 and beta_t on all kernels, starting at zero; return the number of iterations.

    min  1/n sum_i log(1 + exp(-y_i f_i)) + lambda/2 |beta_0|^2 + gamma/(2T) sum_t |beta_t|^2,
    f_i = phi(x_i)'(beta_0 + beta_t), by SciPy's L-BFGS with its default tolerances and at most 500 iterations.
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
    """Processor seconds of fits at ``count`` points, each in one fold, extrapolated to the whole search."""
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
    """Processor seconds of LSPC-MT's search by the library's spectra, and by one fit for every point and fold."""
    evaluator, score = lspc_trial(draw), partial(odds, by=draw.by)
    parts = timed(lambda: best_point(draw, partial(parts_heldout, evaluator, score), "MT"))
    pairs = ties("MT", draw.n_tasks)[:: max(len(ties("MT", draw.n_tasks)) // count, 1)]
    stay, out = draw.splits[0]

    def fits() -> None:
        for sharing, alpha in pairs:
            model = MultiTaskLSPC(sigmas(draw)[3], alpha, sharing, **GIVEN)
            model.fit(draw.X[stay], draw.y[stay], tasks=draw.task[stay])
            model.scores(draw.X[out], tasks=draw.task[out])

    loop = timed(fits).cpu / len(pairs) * N_POINTS * N_FOLDS
    return {"spectra": parts.cpu, "fits": loop, **{f"spectra_{k}": v for k, v in parts.value.values.items()}}
