"""Tables 1 to 4 of the multi-task LSPC paper: quality and time of LSPC and KLR with tasks tied, alone and pooled.

landmine      tables 3 and 4: 15 minefields and 2 more with their labels reversed, n = 20 .. 35 rows of each, drawn
              per class; the rest are for testing; mean over tasks of the area under the ROC curve
umist         tables 1 and 2: 4 tasks, each a woman against a man drawn at random, n = 3 .. 8 pictures of each; as
              many of both as are left for testing; accuracy

sigma, lambda and gamma come from the paper's grid (252 points) by 5-fold cross-validation, the same folds for all:
by the area of all tasks pooled (landmine) or the accuracy (umist). The time is that of the search and a last fit.

LSPC-MT       eq. (6), a part that all tasks share and a part of each task's own; penalty on the coefficients
KLR-MT        kernel logistic regression with the same task matrix by Newton's method, from fit to fit
..-STI, -STC  the same with every task alone (one sigma and lambda for all), and with all tasks pooled
KLR, paper    KLR-MT by L-BFGS on all coefficients from zero, as the paper had it: some points are timed, each in one
              fold, and extrapolated
default ..    this library's MultiTaskLSPC on its own grid by leave-one-out
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg.lapack import dposv
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import rankdata, ttest_rel

from benchmarks._common import (
    capped,
    load_set,
    median_distance,
    parse,
    parser,
    print_table,
    settled,
    timed,
    write_json,
)
from leastwise import MultiTaskKernelLogisticRegression, MultiTaskLSPC
from leastwise.coupling import from_lambda_gamma
from leastwise.folds import distinct_rows, task_fold_labels
from leastwise.kernels import RBF
from leastwise.metrics import task_auc
from leastwise.selection.grid import Grid

Array = np.ndarray

LAMBDAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
GAMMAS = (0.0, *LAMBDAS)
#: In medians of the distance, for the paper's kernel exp(-d^2 / sigma^2); ours has a 2 in it.
SIGMAS = (1 / 2, 2 / 3, 5 / 6, 1, 4 / 3, 5 / 3)
#: What stands for gamma = 0, where the tasks' own parts have no ridge at all.
TINY = 1e-9
N_FOLDS = 5
N_POINTS = len(SIGMAS) * len(LAMBDAS) * len(GAMMAS)
SIZES = {"landmine": (20, 25, 30, 35), "umist": (3, 4, 5, 6, 7, 8)}
REVERSED = (15, 16)
DEFAULTS = {
    "default": {},
    "default auc": {"scoring": "auc"},
    "default learned": {"similarity": "learned"},
    "default coefficients": {"norm": "coefficients"},
}
SIX = ("LSPC-MT", "KLR-MT", "LSPC-STI", "KLR-STI", "LSPC-STC", "KLR-STC")
#: Tables 3 and 1, least and greatest, in the order of SIX.
PAPER: dict[str, dict[int, tuple]] = {
    "landmine": {
        20: ((0.714, 0.830), (0.642, 0.832), (0.543, 0.645), (0.642, 0.706), (0.442, 0.759), (0.532, 0.773)),
        25: ((0.762, 0.839), (0.800, 0.842), (0.587, 0.694), (0.658, 0.750), (0.602, 0.788), (0.598, 0.800)),
        30: ((0.790, 0.837), (0.811, 0.850), (0.646, 0.756), (0.687, 0.789), (0.661, 0.783), (0.713, 0.805)),
        35: ((0.795, 0.838), (0.806, 0.849), (0.627, 0.734), (0.684, 0.771), (0.428, 0.742), (0.663, 0.797)),
    },
    "umist": {
        3: ((0.763, 1.0), (0.812, 1.0), (0.830, 1.0), (0.867, 1.0), (0.754, 1.0), (0.796, 1.0)),
        4: ((0.915, 1.0), (0.921, 1.0), (0.896, 1.0), (0.901, 1.0), (0.837, 1.0), (0.908, 1.0)),
        5: ((0.893, 1.0), (0.925, 1.0), (0.903, 1.0), (0.915, 1.0), (0.909, 1.0), (0.930, 1.0)),
        6: ((0.918, 1.0), (0.907, 1.0), (0.909, 1.0), (0.911, 1.0), (0.912, 1.0), (0.912, 1.0)),
        7: ((0.899, 1.0), (0.915, 1.0), (0.897, 1.0), (0.905, 1.0), (0.897, 1.0), (0.903, 1.0)),
        8: ((0.967, 1.0), (0.962, 1.0), (0.938, 1.0), (0.942, 1.0), (0.979, 1.0), (0.979, 1.0)),
    },
}
#: Tables 4 and 2: seconds of LSPC-MT and of KLR-MT, least and greatest.
PAPER_SECONDS = {
    "landmine": {
        20: ((12.0, 36.7), (2840, 8220)),
        25: ((17.8, 26.9), (3900, 4910)),
        30: ((23.6, 78.6), (4770, 12600)),
        35: ((37.2, 98.9), (5960, 18200)),
    },
    "umist": {
        3: ((2.52, 2.67), (8.04, 9.11)),
        4: ((3.09, 14.5), (12.6, 52.9)),
        5: ((3.09, 11.8), (12.5, 51.1)),
        6: ((7.53, 37.6), (26.5, 114)),
        7: ((7.58, 39.1), (26.9, 151)),
        8: ((8.47, 48.4), (34.1, 148)),
    },
}

# ------------------------------------------------------------------------ draws


@dataclass(frozen=True)
class Draw:
    """Training rows, task by task, with their folds; and test rows."""

    X: Array
    y: Array
    task: Array
    fold: Array
    X_test: Array
    y_test: Array
    task_test: Array
    by: str

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return int(self.task.max()) + 1

    def judge(self, score: Array) -> float:
        """What cross-validation goes by: area of all tasks pooled, or accuracy; above 0 is the second class."""
        return pooled_auc(self.y, score) if self.by == "auc" else float(np.mean((score > 0) == self.y))

    def test(self, score: Array) -> float:
        """The figure of the paper: mean area over tasks, or accuracy."""
        if self.by == "auc":
            return float(task_auc(self.y_test, score, self.task_test))  # type: ignore[arg-type]
        return float(np.mean((score > 0) == self.y_test))


def pooled_auc(y: Array, score: Array) -> float:
    ranks, ones = rankdata(score), y == 1
    a = int(ones.sum())
    return float((ranks[ones].sum() - a * (a + 1) / 2) / (a * (len(y) - a)))


def drawn(X: Array, parts: Sequence[tuple[Array, Array, Array, Array]], seed: int, by: str) -> Draw:
    """From training rows, test rows, and labels of both, for every task."""
    train, y, test, y_test = ([part[k] for part in parts] for k in range(4))
    task, task_test = (np.repeat(np.arange(len(parts)), [len(r) for r in rows]) for rows in (train, test))
    labels, labels_test = np.concatenate(y).astype(int), np.concatenate(y_test).astype(int)
    fold = task_fold_labels(N_FOLDS, labels, task, seed)
    A, B = (np.asarray(X[np.concatenate(rows)], dtype=float) for rows in (train, test))
    return Draw(A, labels, task, fold, B, labels_test, task_test, by)


def landmine(folder: str | None) -> Callable[[int, int, str], Draw]:
    """A function from n, seed and way of drawing to a draw."""
    data = load_set("landmine", folder)
    X, task = np.asarray(data.X), np.asarray(data.task)
    y = np.where(np.isin(task, REVERSED), 1 - np.asarray(data.y), data.y)

    def draw(n: int, seed: int, way: str) -> Draw:
        rng = np.random.default_rng([2011, seed, n])
        parts = []
        for t in range(max(REVERSED) + 1):
            rows = rng.permutation(np.flatnonzero(task == t))
            train = mine_rows(rows, y[rows], n, way)
            test = np.setdiff1d(rows, train)
            parts.append((train, y[train], test, y[test]))
        return drawn(X, parts, seed, "auc")

    return draw


def mine_rows(rows: Array, y: Array, n: int, way: str) -> Array:
    """So many of some rows that are in random order.

    The classes in proportion, with the share of the rarer one rounded "up" or to the "nearest" number but to 1 at
    least; "equal" numbers of both; or the rows as they "come".
    """
    if way == "come":
        return rows[:n]
    rare = y == (np.mean(y) < 1 / 2)
    share = n / 2 if way == "equal" else n * np.mean(rare)
    count = int(np.ceil(share)) if way == "up" else max(round(share), 1)
    return np.concatenate([rows[rare][:count], rows[~rare][: n - count]])


def umist(folder: str | None) -> Callable[[int, int, str], Draw]:
    """A function from n and seed to a draw; of pictures that are copies of one another one is kept."""
    data = load_set("umist", folder)
    first = np.sort(np.unique(distinct_rows(data.X), return_index=True)[1])
    X, person, female = (np.asarray(v)[first] for v in (data.X, data.y, data.female))
    women, men = np.unique(person[female]), np.unique(person[~female])

    def draw(n: int, seed: int, way: str) -> Draw:
        rng = np.random.default_rng([2011, seed, n])
        pairs = zip(women, rng.choice(men, len(women), replace=False), strict=True)
        parts = [face_rows(*(rng.permutation(np.flatnonzero(person == p)) for p in pair), n) for pair in pairs]
        return drawn(X, parts, seed, "accuracy")

    return draw


def face_rows(woman: Array, man: Array, n: int) -> tuple[Array, Array, Array, Array]:
    """So many pictures of both, and as many of both as are left; men are the second class."""
    left = min(len(woman), len(man)) - n
    train, test = (np.concatenate([woman[a:b], man[a:b]]) for a, b in ((0, n), (n, n + left)))
    return train, np.repeat([0, 1], n), test, np.repeat([0, 1], left)


# ------------------------------------------------------------------------- grid


@dataclass(frozen=True)
class Point:
    """A point of the grid, and how well it did in cross-validation."""

    sigma: float
    alpha: float
    sharing: float
    score: float = np.nan

    def rank(self) -> tuple:
        """The best score; of equals, to six digits, the first on a rising grid."""
        return round(self.score, 6), -self.alpha, -self.sigma, -self.sharing

    @property
    def values(self) -> dict[str, float]:
        """As parameters of an estimator."""
        return {"sigma": self.sigma, "alpha": self.alpha, "sharing": self.sharing}


def ties(kind: str, n_tasks: int) -> list[tuple[float, float]]:
    """Sharing and alpha of the paper's lambdas and gammas, those of one sharing together, from large alphas down.

    At gamma = 0 the tasks are alone whatever lambda is: these six points are one.
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
    length = median_distance(draw.X)
    return [s * length / np.sqrt(2) for s in SIGMAS]


def best_point(draw: Draw, held: Callable[..., Iterator[tuple[Point, Array]]], kind: str, unit: float = 1.0) -> Point:
    """The best of all points by cross-validation; alphas are in a unit."""
    pairs = [(sharing, alpha * unit) for sharing, alpha in ties(kind, draw.n_tasks)]
    found = [
        Point(**point.values, score=draw.judge(score))
        for sigma in sigmas(draw)
        for point, score in held(draw, sigma, pairs)
    ]
    return max(found, key=Point.rank)


# ------------------------------------------------------------------ LSPC and KLR


def odds(F: Array, by: str) -> Array:
    """Eq. (7) without the clipping; its sign, where only that counts, is that of the difference."""
    return F[:, 1] / np.maximum(F.sum(axis=1), TINY) if by == "auc" else difference(F)


def difference(F: Array) -> Array:
    return F[:, 1] - F[:, 0]


def lspc_heldout(draw: Draw, sigma: float, pairs: Sequence[tuple[float, float]]) -> Iterator[tuple[Point, Array]]:
    """Eq. (6), a Cholesky factor for every point and fold."""
    K, Z = RBF()(draw.X, draw.X, sigma), np.eye(2)[draw.y]
    F = np.empty((len(pairs), len(K), 2))
    for f in range(N_FOLDS):
        stay, out = np.flatnonzero(draw.fold != f), np.flatnonzero(draw.fold == f)
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
    trial: Any, score: Callable[[Array], Array], draw: Draw, sigma: float, pairs: Sequence[tuple[float, float]]
) -> Iterator[tuple[Point, Array]]:
    """The same by the library's search: for every sharing and fold one spectrum, or for KLR one path of refits."""
    for sharing, alphas in itertools.groupby(pairs, key=lambda p: p[0]):
        wanted = [a for _, a in alphas]
        at = trial.tied(sharing).heldout(sigma, len(wanted))
        for alpha in wanted:
            yield Point(sigma, alpha, sharing), score(at(alpha).F)


def splits(draw: Draw) -> list[tuple[Array, Array]]:
    return [(np.flatnonzero(draw.fold != f), np.flatnonzero(draw.fold == f)) for f in range(N_FOLDS)]


def lspc_trial(draw: Draw) -> Any:
    """The library's held-out scores of LSPC-MT on this draw."""
    model = MultiTaskLSPC(1.0, 1.0, 1.0, norm="coefficients", cv=splits(draw), calibration="temperature")
    kernel, _ = model._checked()
    data = model._training(draw.X, draw.y, None, None, kernel, draw.task)
    settings = model._settings(kernel, data.classes, model.norm, model.calibration)
    return model._trial(data, data.rows, settings, model._coupling(data))


def klr_trial(draw: Draw) -> Any:
    """The library's refits of KLR-MT on this draw."""
    model = MultiTaskKernelLogisticRegression(1.0, 1.0, 1.0, bias=None, cv=splits(draw))
    kernel, _ = model._checked_all()
    data = model._training(draw.X, draw.y, None, None, kernel, draw.task)
    trial = model._refits(data, model._settings(kernel, data.classes), model._shared())
    trial.effort = type(trial.effort)(Grid(()), trial.effort.solver, trial.effort.stop)
    return trial


def lspc(draw: Draw, kind: str) -> tuple[Point, Callable[[], Array]]:
    """The point that was chosen, and test scores there."""
    point = best_point(draw, lspc_heldout, kind)
    model = MultiTaskLSPC(**point.values, norm="coefficients", cv=None, calibration=None)
    model.fit(draw.X, draw.y, tasks=draw.task)
    return point, lambda: odds(np.asarray(model.scores(draw.X_test, tasks=draw.task_test)), draw.by)


def klr(draw: Draw, kind: str, scale: str) -> tuple[Point, Callable[[], Array]]:
    """The same with lambda and gamma beside the mean or the sum of the losses."""
    unit = 1 / len(draw.y) if scale == "sum" else 1.0
    point = best_point(draw, partial(parts_heldout, klr_trial(draw), difference), kind, unit)
    model = MultiTaskKernelLogisticRegression(**point.values, bias=None, cv=None)
    model.fit(draw.X, draw.y, tasks=draw.task)
    return point, lambda: np.asarray(model.decision_function(draw.X_test, tasks=draw.task_test))


def default(draw: Draw, options: dict) -> tuple[Point, Callable[[], Array]]:
    model = MultiTaskLSPC(**options, random_state=0).fit(draw.X, draw.y, tasks=draw.task)
    point = Point(model.sigma_, model.alpha_, model.sharing_, float(model.cv_results_["mean_test_score"].max()))
    return point, lambda: np.asarray(model.decision_function(draw.X_test, tasks=draw.task_test))


# ------------------------------------------------------- the paper's KLR, and loops


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
    stay, out = splits(draw)[0]

    def fits() -> None:
        for sharing, alpha in pairs:
            model = MultiTaskLSPC(sigmas(draw)[3], alpha, sharing, norm="coefficients", cv=None, calibration=None)
            model.fit(draw.X[stay], draw.y[stay], tasks=draw.task[stay])
            model.scores(draw.X[out], tasks=draw.task[out])

    loop = timed(fits).cpu / len(pairs) * N_POINTS * N_FOLDS
    return {"spectra": parts.cpu, "fits": loop, **{f"spectra_{k}": v for k, v in parts.value.values.items()}}


# ------------------------------------------------------------------ measurement


def measured(draw: Draw, call: Callable[[], tuple[Point, Callable[[], Array]]]) -> dict[str, Any]:
    run, unsettled = settled(lambda: timed(call))
    point, scores = run.value
    return {
        "score": draw.test(scores()),
        "cpu": run.cpu,
        "wall": run.wall,
        "cv_score": point.score,
        "sigma_in_medians": point.sigma * np.sqrt(2) / median_distance(draw.X),
        "alpha": point.alpha,
        "sharing": point.sharing,
        "unsettled": unsettled,
    }


def on_one_draw(draw: Draw, seed: int, args: argparse.Namespace) -> Iterator[dict]:
    """All methods that are wanted on this run."""
    for kind in ("MT", "STI", "STC"):
        yield {"method": f"LSPC-{kind}", **measured(draw, partial(lspc, draw, kind))}
        if seed < args.klr_runs:
            yield {"method": f"KLR-{kind}", **measured(draw, partial(klr, draw, kind, args.klr_scale))}
    for label, options in DEFAULTS.items():
        if seed < (args.slow_runs if "norm" in options else args.default_runs):
            yield {"method": label, **measured(draw, partial(default, draw, options))}


def run(args: argparse.Namespace) -> Iterator[tuple[str, dict]]:
    source = {"landmine": landmine, "umist": umist}[args.set](args.data)
    for n in args.sizes:
        for seed in range(args.runs):
            draw = source(n, seed, args.draw)
            for found in on_one_draw(draw, seed, args):
                yield "runs", {"n": n, "run": seed, **found}
            if seed == 0 and args.klr_points:
                yield "textbook", {"n": n, **textbook_seconds(draw, args.klr_points, seed, args.klr_scale)}
                yield "loops", {"n": n, **other_loops(draw, 8)}
        print(f"{args.set}, n = {n}: done", flush=True)


# ----------------------------------------------------------------------- report


def of(found: list[dict], n: int, method: str, key: str) -> Array:
    return np.array([f[key] for f in found if f["n"] == n and f["method"] == method])


def methods(found: list[dict]) -> list[str]:
    order = [*SIX, *DEFAULTS]
    return sorted({f["method"] for f in found}, key=order.index)


def columns(found: list[dict]) -> list[dict]:
    """One record for every n and method, with lists over the runs, to five digits."""
    keys = ("score", "cpu", "sigma_in_medians", "alpha", "sharing")
    out = []
    for n, method in dict.fromkeys((f["n"], f["method"]) for f in found):
        lists = {key: [float(f"{v:.5g}") for v in of(found, n, method, key)] for key in keys}
        out.append({"n": n, "method": method, **lists, "unsettled": of(found, n, method, "unsettled").sum()})
    return out


def paired(found: list[dict], n: int, one: str, other: str) -> dict[str, Any] | None:
    """Mean difference and p-value over the runs that both have."""
    a, b = of(found, n, one, "score"), of(found, n, other, "score")
    count = min(len(a), len(b))
    if count < 3:
        return None
    a, b = a[:count], b[:count]
    p = float(ttest_rel(a, b).pvalue) if np.any(a != b) else 1.0
    return {"n": n, "one": one, "other": other, "runs": count, "difference": float(np.mean(a - b)), "p": p}


def comparisons(found: list[dict], sizes: Sequence[int]) -> list[dict]:
    others = [m for m in methods(found) if m != "LSPC-MT"]
    made = [paired(found, n, "LSPC-MT", other) for n in sizes for other in others]
    return [m for m in made if m is not None]


def ratios(results: dict[str, list[dict]], sizes: Sequence[int]) -> list[dict]:
    """Processor seconds of whole searches, and KLR's over LSPC's."""
    out = []
    for n in sizes:
        lspc_mt, klr_mt = (of(results["runs"], n, m, "cpu") for m in ("LSPC-MT", "KLR-MT"))
        record: dict[str, Any] = {"n": n, "LSPC-MT": np.median(lspc_mt)}
        if len(klr_mt):
            record["KLR-MT here"] = np.median(klr_mt)
            record["here / LSPC"] = record["KLR-MT here"] / record["LSPC-MT"]
        for book in (b for b in results["textbook"] if b["n"] == n):
            record.update({"KLR-MT paper": book["search"], "+-": book["search_error"], "a fit": book["fit"]})
            record["paper / LSPC"] = book["search"] / record["LSPC-MT"]
        for loop in (b for b in results["loops"] if b["n"] == n):
            record.update({"by spectra": loop["spectra"], "by fits": loop["fits"]})
        out.append(record)
    return out


def report(results: dict[str, list[dict]], args: argparse.Namespace) -> None:
    found, name = results["runs"], args.set
    quality = "mean area under the curve" if name == "landmine" else "accuracy"
    shown, sizes = methods(found), [n for n in args.sizes if any(f["n"] == n for f in found)]
    lines = [score_line(found, n, m, name) for n in sizes for m in shown]
    print_table(f"{name}: {quality}", ["n", "method", "runs", "mean", "min", "max", "paper's min", "max"], lines)
    lines = [time_line(found, n, m, name) for n in sizes for m in shown]
    print_table(f"{name}: processor seconds", ["n", "method", "median", "min", "max", "paper's min", "max"], lines)
    lines = [
        [c["n"], c["other"], c["runs"], f"{c['difference']:+.4f}", f"{c['p']:.2g}", "yes" if c["p"] < 0.01 else "no"]
        for c in results["tests"]
    ]
    print_table("LSPC-MT less others, paired t-test", ["n", "other", "runs", "difference", "p", "at 1 %"], lines)
    header = list(dict.fromkeys(key for r in results["ratios"] for key in r))
    print_table("Seconds of a whole search", header, [[r.get(k) for k in header] for r in results["ratios"]])


def score_line(found: list[dict], n: int, method: str, name: str) -> list:
    v = of(found, n, method, "score")
    limits = PAPER[name][n][SIX.index(method)] if method in SIX and n in PAPER[name] else (None, None)
    return [n, method, len(v), *(f"{x:.3f}" if len(v) else None for x in three(v)), *limits]


def time_line(found: list[dict], n: int, method: str, name: str) -> list:
    v = of(found, n, method, "cpu")
    known = {"LSPC-MT": 0, "KLR-MT": 1}
    limits = PAPER_SECONDS[name][n][known[method]] if method in known and n in PAPER_SECONDS[name] else (None, None)
    middle = float(np.median(v)) if len(v) else None
    return [n, method, middle, *three(v)[1:], *limits]


def three(v: Array) -> tuple[float, float, float]:
    return (float(v.mean()), float(v.min()), float(v.max())) if len(v) else (np.nan, np.nan, np.nan)


def completed(args: argparse.Namespace) -> argparse.Namespace:
    """Fill in what was not given: sizes and numbers of runs, and a file for every set and way of drawing."""
    usual = {"runs": {"landmine": 10, "umist": 200}[args.set], "klr_runs": 10, "default_runs": 20, "slow_runs": 5}
    for name, value in usual.items():
        if getattr(args, name) is None:
            setattr(args, name, 1 if args.quick else value)
    args.sizes = args.sizes or (SIZES[args.set][:1] if args.quick else SIZES[args.set])
    args.klr_points = min(args.klr_points, 3) if args.quick else args.klr_points
    if args.output.stem.removesuffix("-quick") == "multi_task_tables":
        ways = [w for w in (args.draw, args.klr_scale) if w not in ("up", "mean")]
        args.output = args.output.with_name(args.output.name.replace("tables", "_".join(["tables", args.set, *ways])))
    return args


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.multi_task_tables", __doc__, threads=1)
    p.add_argument("set", nargs="?", choices=list(SIZES), default="landmine")
    p.add_argument("--runs", type=int, help="random draws (default 10 of landmine, 200 of umist)")
    p.add_argument("--sizes", type=int, nargs="+", help="rows of a task, or pictures of a person (default: all)")
    p.add_argument("--draw", choices=["up", "nearest", "equal", "come"], default="up", help="see mine_rows")
    p.add_argument("--klr-runs", type=int, help="how many of them with KLR (default: 10)")
    p.add_argument("--klr-scale", choices=["mean", "sum"], default="mean", help="of the losses beside KLR's lambda")
    p.add_argument("--default-runs", type=int, help="how many with the library's defaults (default: 20 at most)")
    p.add_argument("--slow-runs", type=int, help="how many with norm='coefficients' (default: 5)")
    p.add_argument("--klr-points", type=int, default=42, help="timed points of the paper's KLR (default 42)")
    args = completed(parse(p, argv))
    results: dict[str, list[dict]] = {"runs": [], "textbook": [], "loops": []}
    with capped(args):
        for kind, record in run(args):
            results[kind].append(record)
    results["tests"] = comparisons(results["runs"], args.sizes)
    results["ratios"] = ratios(results, args.sizes)
    report(results, args)
    write_json(args, {**results, "runs": columns(results["runs"])})


if __name__ == "__main__":
    main()
