"""Tables 2 and 3 of the multi-task LS-SVM paper: exam scores of 139 schools, and six skin diseases.

school        table 2: the ten published splits, 11,472 training rows, 27 inputs; explained variance in percent
similar       the same for every fifth school, with similarities of the schools learned
dermatology   table 3: ten random splits of 200 and 166 rows, 33 attributes, six tasks "this disease or not" over the
              same rows; error in percent

gamma, lambda and p (the kernel exp(-p d^2)) come from the paper's grid by leave-one-out, one row at a time, on all
training rows; where the best value lies at the border of the grid, the grid grows by a factor of 4. Held-out
residuals come in closed form, the models that are tested are the library's.

School, all with raw inputs (two columns are percentages, the others 0 or 1) and with standardised ones:

LS-SVM        one machine with an RBF kernel for every school, each with a gamma and p of its own, or with the same
              ones for all; one machine for the rows of all schools, on 1,000 of them
MTLS-SVM      linear kernel, an intercept for every school
RMTL          support vector regression with a part in common; C, mu and epsilon one after the other by a quarter of
              the rows of every third school
BMTL          empirical Bayes for a network with two hidden units
MTL-FEAT      linear; its ridge by a quarter of the rows
ridge         RidgeCV by leave-one-out: for every school, and for all with a column for every school
mean          the mean score of the school, which is an LS-SVM that learns nothing but its intercept
MultiTask..   this library's MultiTaskLSSVR with its own search; it holds out rows that are equal in inputs, school
              and score together, with "rows" one at a time. --slow adds those that take minutes: 200 centres, and as
              it comes, which is "rbf+linear" with a coefficient for every row

Explained variance has several definitions: "total" is the paper's, 1 - squared error / variance of all test scores;
"within" sets the error beside the variance within schools; "schools" is the mean over schools of the explained
variance of each, weighted by rows, and "plain" is that without weights.

Dermatology, with the 33 attributes without age, raw and standardised, and with the other reading of "33 attributes",
those that UCI calls linear valued: age instead of the family history, raw:

LS-SVM        six machines, with a gamma and p for each, or the same for all
MTLS-SVM      the rows of the six tasks stacked and tied. Where all tasks have the same rows, each an intercept, and
              the targets of a row have the same sum in all rows, tying the tasks is no more than another gamma: the
              choice of gamma and lambda is that of gamma alone as long as a row is held out in all tasks at once.
              "single" holds out a row in one task at a time; then lambda matters for the choice
MTL-FEAT      RBF; its ridge and width by 5 folds

"binary" is the mean error of the six tasks, "class" that of the class with the greatest score, "any" counts a row
where one of the six signs is wrong, "sum" adds the errors of the six tasks.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from scipy.stats import ttest_rel
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold

from benchmarks._common import (
    capped,
    load_set,
    parse,
    parser,
    print_table,
    scale_of,
    spread,
    standardise,
    timed,
    write_json,
)
from leastwise import LSSVC, LSSVR, MultiTaskLSSVC, MultiTaskLSSVR
from leastwise.baselines import BMTLRegressor, MTLFeatClassifier, MTLFeatRegressor, RMTLRegressor
from leastwise.coupling import from_gamma_lambda

Array = np.ndarray

#: Exponents of 2.
GAMMAS, LAMBDAS, WIDTHS = range(-5, 16, 2), range(-10, 11, 2), range(-15, 4, 2)
#: Steps by which an axis of the grid may grow on either side.
GROWTH = 8
N_SPLITS = 10
PAPER = {
    "school": {"LS-SVM": (9.8, 0.6), "MTLS-SVM": (38.16, 0.3), "RMTL": (34.32, 0.4), "BMTL": (34.37, 0.4)},
    "dermatology": {"LS-SVM": (7.9, 3.2), "MTLS-SVM": (8.2, 2.7), "MTL-FEAT": (9.5, 3.0)},
}

# ------------------------------------------------------------------ the paper's grid


@dataclass(frozen=True)
class Choice:
    """The best exponents, their score, and how many points were tried."""

    at: tuple[int, ...]
    score: float
    points: int


def grid_search(line: Callable[[tuple[int, ...], Sequence[int]], Array], *axes: range) -> Choice:
    """The best point of a grid that grows where its border is better than all points within.

    Of equals the first on a rising grid is taken. ``line`` gives the scores of several values on the first axis,
    gamma, at one point of all others.
    """
    spans, found = [(a[0], a[-1]) for a in axes], {}
    limits = [(a[0] - 2 * GROWTH, a[-1] + 2 * GROWTH) for a in axes]
    while True:
        first, *others = (range(low, high + 1, 2) for low, high in spans)
        for rest in itertools.product(*others):
            missing = [g for g in first if (g, *rest) not in found]
            if missing:
                found |= {(g, *rest): s for g, s in zip(missing, line(rest, missing), strict=True)}
        best = max(sorted(found), key=lambda point: (round(float(found[point]), 9), -borders(point, spans)))
        grown = [wider(*case) for case in zip(best, spans, limits, strict=True)]
        if grown == spans:
            return Choice(best, float(found[best]), len(found))
        spans = grown


def borders(point: tuple[int, ...], spans: Sequence[tuple[int, int]]) -> int:
    """On how many borders of the grid a point is."""
    return sum(at in span for at, span in zip(point, spans, strict=True))


def wider(at: int, span: tuple[int, int], limit: tuple[int, int]) -> tuple[int, int]:
    """One step more on the side where the best value is."""
    if span[0] == span[1]:
        return span
    low, high = span
    return max(low - 2, limit[0]) if at == low else low, min(high + 2, limit[1]) if at == high else high


def rbf(A: Array, B: Array, p: int) -> Array:
    return np.exp(-(2.0**p) * cdist(A, B, "sqeuclidean"))


def width(p: int) -> float:
    """The library's sigma, exp(-d^2 / (2 sigma^2))."""
    return float(np.sqrt(1 / (2 * 2.0**p)))


class Machine:
    """An LS-SVM with an intercept: held-out residuals of all rows for any gamma, from one decomposition."""

    def __init__(self, K: Array, Y: Array) -> None:
        centred = K - K.mean(axis=0)
        centred -= centred.mean(axis=1)[:, None]
        centred += 2 * np.trace(K) / len(K)  # the constant comes last, and is left out
        e, V = eigh(centred, driver="evd")
        self.e, self.V = np.maximum(e[:-1], 0), V[:, :-1]
        self.squares, self.A = self.V**2, self.V.T @ (Y - Y.mean(axis=0))

    def parts(self, gamma: float) -> tuple[Array, Array]:
        """Coefficients, and the diagonal of what makes them of the targets."""
        w = 1 / (self.e + 1 / gamma)
        return self.V @ (w[:, None] * self.A), self.squares @ w

    def residuals(self, gamma: float) -> Array:
        """Target minus held-out prediction."""
        coef, diagonal = self.parts(gamma)
        return coef / diagonal[:, None]


# ---------------------------------------------------------------------- school


@dataclass(frozen=True)
class Split:
    """Pupils for training and for testing."""

    X: Array
    y: Array
    task: Array
    X_test: Array
    y_test: Array
    task_test: Array
    seed: int

    @property
    def tasks(self) -> Array:
        """The schools."""
        return np.unique(self.task)

    def of(self, t: int) -> tuple[Array, Array]:
        """Training and test rows of a school."""
        return np.flatnonzero(self.task == t), np.flatnonzero(self.task_test == t)

    def quarter(self, step: int = 1) -> tuple[Array, Array]:
        """Some training rows, and a quarter to judge them by, of every so many-th school."""
        rng = np.random.default_rng(self.seed)
        rows = rng.permutation(np.flatnonzero(np.isin(self.task, self.tasks[::step])))
        order = rows[np.argsort(self.task[rows], kind="stable")]
        held = np.arange(len(order)) % 4 == 0
        return order[~held], order[held]


def school_splits(folder: str | None, last: int | None = None, step: int = 1) -> Callable[[int, bool], Split]:
    """A function from the number of the split, and whether to standardise, to a split; of some schools."""
    data = load_set("school", folder)
    few = np.isin(data.task, np.unique(data.task)[:last:step])
    X, y, task = data.X[few].astype(float), data.y[few].astype(float), data.task[few].astype(int)

    def split(k: int, standard: bool) -> Split:
        train = data.splits[k][few]
        scale = scale_of(X[train])
        Z = standardise(X, scale) if standard else X[:, scale[2]]
        return Split(Z[train], y[train], task[train], Z[~train], y[~train], task[~train], k)

    return split


def explained(y: Array, f: Array, task: Array) -> dict[str, float]:
    """Explained variance in percent, by four definitions."""
    parts = [(y[task == t], f[task == t]) for t in np.unique(task)]
    each = np.array([[len(a), np.sum((a - b) ** 2), len(a) * np.var(a)] for a, b in parts])
    count, error, variance = each.T
    own = 1 - error / np.maximum(variance, 1e-12)
    return {
        "total": 100 * float(1 - error.sum() / len(y) / np.var(y)),
        "within": 100 * float(1 - error.sum() / variance.sum()),
        "schools": 100 * float(np.average(own, weights=count)),
        "plain": 100 * float(own.mean()),
    }


def squares(machine: Machine, gammas: Sequence[int]) -> Array:
    """Minus the sum of squared held-out residuals for several gammas."""
    return np.array([-np.sum(machine.residuals(2.0**g) ** 2) for g in gammas])


def ls_svm_each(data: Split) -> tuple[Array, dict]:
    """A machine for every school, each with a gamma and p of its own."""
    f, points = np.empty(len(data.y_test)), 0
    for t in data.tasks:
        a, b = data.of(t)
        X, y = data.X[a], data.y[a, None]
        choice = grid_search(lambda rest, g, X=X, y=y: squares(Machine(rbf(X, X, rest[0]), y), g), GAMMAS, WIDTHS)
        f[b] = rbf_fit(data, a, choice.at).predict(data.X_test[b])
        points += choice.points
    return f, {"points": points}


def ls_svm_same(data: Split) -> tuple[Array, dict]:
    """A machine for every school, all with the same gamma and p."""
    parts = [(data.X[a], data.y[a, None]) for a, _ in map(data.of, data.tasks)]

    def line(rest: tuple[int, ...], gammas: Sequence[int]) -> Array:
        return np.sum([squares(Machine(rbf(X, X, rest[0]), y), gammas) for X, y in parts], axis=0)

    choice, f = grid_search(line, GAMMAS, WIDTHS), np.empty(len(data.y_test))
    for t in data.tasks:
        a, b = data.of(t)
        f[b] = rbf_fit(data, a, choice.at).predict(data.X_test[b])
    return f, {"chosen": choice.at, "points": choice.points}


def ls_svm_pooled(data: Split) -> tuple[Array, dict]:
    """One machine that does not know the school, on some of the rows."""
    rows = np.random.default_rng(data.seed).permutation(len(data.y))[:1000]
    X, y = data.X[rows], data.y[rows, None]
    choice = grid_search(lambda rest, g: squares(Machine(rbf(X, X, rest[0]), y), g), GAMMAS, WIDTHS)
    return rbf_fit(data, rows, choice.at).predict(data.X_test), {"chosen": choice.at, "points": choice.points}


def means(data: Split) -> tuple[Array, dict]:
    """The mean score of every school: what a machine says that knows nothing but its intercept."""
    each = {t: data.y[data.of(t)[0]].mean() for t in data.tasks}
    return np.array([each[t] for t in data.task_test]), {}


def rbf_fit(data: Split, rows: Array, at: tuple[int, ...]) -> LSSVR:
    g, p = at
    model = LSSVR(width(p), 1 / (len(rows) * 2.0**g), kernel="rbf", cv=None)
    return model.fit(data.X[rows], data.y[rows])


def linear_trial(data: Split) -> tuple[Any, float]:
    """The library's held-out predictions with a linear kernel and free intercepts, and the unit that they are in."""
    model = MultiTaskLSSVR(1.0, 1.0, 1.0, kernel="linear", bias="task")
    kernel, _ = model._checked(calibrated=False)
    rows = model._training(data.X, data.y, None, np.arange(len(data.y)), kernel, data.task)
    settings = model._settings(rows.kernel, model._judge(rows))
    return model._trial(rows, rows.rows, settings, model._coupling(rows)), rows.targets.unit


def mtls_svm(data: Split) -> tuple[Array, dict]:
    """The paper's model, with its grid."""
    trial, unit = linear_trial(data)
    n, m = len(data.y), len(data.tasks)

    def line(rest: tuple[int, ...], gammas: Sequence[int]) -> Array:
        points = [from_gamma_lambda(2.0**g, 2.0 ** rest[0], n, m) for g in gammas]
        at = trial.tied(points[0]["sharing"]).heldout(1.0, len(points))
        more = n / (n - 1)  # gamma stays as it is when a row is held out; alpha, of the mean loss, does not
        return np.array([-np.sum((data.y - unit * at(more * point["alpha"]).F[:, 0]) ** 2) for point in points])

    searched = timed(lambda: grid_search(line, GAMMAS, LAMBDAS))
    choice = searched.value
    point = from_gamma_lambda(2.0 ** choice.at[0], 2.0 ** choice.at[1], n, m)
    model = MultiTaskLSSVR(1.0, **point, kernel="linear", bias="task", cv=None)
    model.fit(data.X, data.y, tasks=data.task)
    held = 100 * (1 + choice.score / n / float(np.var(data.y)))
    found = {"chosen": choice.at, "points": choice.points, "search_seconds": searched.wall, "heldout": held}
    return model.predict(data.X_test, tasks=data.task_test), found


def multi_task(data: Split, rows: bool = False, **options: Any) -> tuple[Array, dict]:
    """A model with the search of its own; with ``rows``, rows are held out one at a time."""
    model = MultiTaskLSSVR(random_state=data.seed, **options)
    model.fit(data.X, data.y, groups=np.arange(len(data.y)) if rows else None, tasks=data.task)
    names = ("sigma_", "alpha_", "sharing_", "spread_", "linear_weight_")
    return model.predict(data.X_test, tasks=data.task_test), {"chosen": [getattr(model, k) for k in names]}


def rmtl(data: Split) -> tuple[Array, dict]:
    """C, mu and epsilon one after the other, on some of the schools."""
    train, held = data.quarter(3)
    options = {"C": 0.1, "mu": 0.1, "epsilon": 1.0}

    def loss(changed: dict) -> float:
        model = RMTLRegressor(**{**options, **changed}, intercept="task")
        model.fit(data.X[train], data.y[train], tasks=data.task[train])
        return float(np.mean((data.y[held] - model.predict(data.X[held], tasks=data.task[held])) ** 2))

    for name, values in (("C", (0.01, 0.03, 0.1, 0.3)), ("mu", (0.01, 0.1, 1.0)), ("epsilon", (1.0, 4.0))):
        options[name] = min(values, key=lambda v, name=name: loss({name: v}))
    model = RMTLRegressor(**options, intercept="task").fit(data.X, data.y, tasks=data.task)
    return model.predict(data.X_test, tasks=data.task_test), {"chosen": options}


def bmtl(data: Split) -> tuple[Array, dict]:
    model = BMTLRegressor(random_state=data.seed).fit(data.X, data.y, tasks=data.task)
    return model.predict(data.X_test, tasks=data.task_test), {}


def mtl_feat(data: Split) -> tuple[Array, dict]:
    train, held = data.quarter()

    def fitted(alpha: float, rows: Array) -> MTLFeatRegressor:
        return MTLFeatRegressor(alpha, tol=1e-4).fit(data.X[rows], data.y[rows], tasks=data.task[rows])

    def loss(alpha: float) -> float:
        f = fitted(alpha, train).predict(data.X[held], tasks=data.task[held])
        return float(np.mean((data.y[held] - f) ** 2))

    alpha = min(10.0 ** np.arange(-2, 3), key=loss)
    f = fitted(alpha, np.arange(len(data.y))).predict(data.X_test, tasks=data.task_test)
    return f, {"chosen": alpha}


RIDGES = np.logspace(-3, 5, 17)


def ridge_each(data: Split) -> tuple[Array, dict]:
    f = np.empty(len(data.y_test))
    for t in data.tasks:
        a, b = data.of(t)
        f[b] = RidgeCV(RIDGES).fit(data.X[a], data.y[a]).predict(data.X_test[b])
    return f, {}


def ridge_one_hot(data: Split) -> tuple[Array, dict]:
    one = np.eye(int(data.task.max()) + 1)
    A, B = np.hstack([data.X, one[data.task]]), np.hstack([data.X_test, one[data.task_test]])
    return RidgeCV(RIDGES).fit(A, data.y).predict(B), {}


Fit = Callable[[Split], tuple[Array, dict]]
MAIN = "MTLS-SVM"
SCHOOL: dict[str, Fit] = {
    "mean of the school": means,
    "LS-SVM, own gamma and p": ls_svm_each,
    "LS-SVM, same gamma and p": ls_svm_same,
    "LS-SVM pooled, 1,000 rows": ls_svm_pooled,
    MAIN: mtls_svm,
    "RMTL": rmtl,
    "BMTL": bmtl,
    "MTL-FEAT": mtl_feat,
    "ridge per school": ridge_each,
    "ridge + schools": ridge_one_hot,
    "MultiTaskLSSVR linear": partial(multi_task, kernel="linear"),
    "MultiTaskLSSVR linear, rows": partial(multi_task, kernel="linear", rows=True),
    "MultiTaskLSSVR linear, bias=task, rows": partial(multi_task, kernel="linear", bias="task", rows=True),
}
#: Those that take up to minutes, on standardised inputs, and on how many splits.
SLOW: dict[str, tuple[Fit, int]] = {
    "MultiTaskLSSVR 200 centres, rows": (partial(multi_task, n_centers=200, rows=True), 10),
    "MultiTaskLSSVR, rows": (partial(multi_task, rows=True), 10),
}
#: On every fifth school. A task matrix that is not that of one common part wants the dual, an array of n x n numbers
#: and its decomposition for every sharing, which is too much for 11,472 rows.
SIMILAR: dict[str, Fit] = {
    MAIN: mtls_svm,
    "ridge + schools": ridge_one_hot,
    "MultiTaskLSSVR linear, rows": partial(multi_task, kernel="linear", rows=True),
    "MultiTaskLSSVR linear learned, rows": partial(multi_task, kernel="linear", similarity="learned", rows=True),
    "MultiTaskLSSVR linear correlation, rows": partial(
        multi_task, kernel="linear", similarity="correlation", rows=True
    ),
    "MultiTaskLSSVR, rows": partial(multi_task, rows=True),
    "MultiTaskLSSVR": multi_task,
}


def wanted(args: argparse.Namespace, k: int, standard: bool) -> dict[str, Fit]:
    """The methods to run on a split."""
    slow = {name: fit for name, (fit, splits) in SLOW.items() if standard and args.slow and k < splits}
    methods = {"school": {**SCHOOL, **slow}, "similar": SIMILAR if standard else {}}[args.set]
    return {name: fit for name, fit in methods.items() if not args.only or any(word in name for word in args.only)}


def school(args: argparse.Namespace) -> Iterator[dict]:
    split = school_splits(args.data, 12 if args.quick else None, 5 if args.set == "similar" else 1)
    for k, standard in itertools.product(range(args.runs), (False, True)):
        data = split(k, standard)
        for name, fit in wanted(args, k, standard).items():
            done = timed(partial(fit, data))
            f, more = done.value
            found = explained(data.y_test, f, data.task_test)
            inputs = "standardised" if standard else "raw"
            print(f"split {k}, {name}, {inputs}: {found['total']:.2f}, {done.wall:.1f} s", flush=True)
            yield {"method": name, "inputs": inputs, "run": k, **found, "seconds": done.wall, **more}


# ----------------------------------------------------------------- dermatology


@dataclass(frozen=True)
class Patients:
    """Rows for training and for testing; targets of 1 and -1, one column for each disease."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array
    seed: int
    n_classes: int = 6

    @property
    def Y(self) -> Array:
        """Targets of the training rows."""
        return 2.0 * np.eye(self.n_classes)[self.y] - 1


def patient_draws(folder: str | None) -> Callable[[int, str], Patients]:
    """A function from the number of the draw, and the inputs, to random rows, whatever their classes."""
    data = load_set("dermatology", folder)
    y, age = np.unique(data.y, return_inverse=True)[1], data.X[:, -1].astype(float)
    plain, family = data.X[:, :-1].astype(float), list(data.feature_names).index("family_history")
    age = np.where(np.isnan(age), np.nanmean(age), age)
    linear = np.column_stack([np.delete(plain, family, axis=1), age])

    def draw(k: int, inputs: str) -> Patients:
        order = np.random.default_rng([2013, k]).permutation(len(y))
        train, test = order[:200], order[200:]
        X = linear if inputs == "with age" else plain
        Z = standardise(X, scale_of(X[train])) if inputs == "standardised" else X
        return Patients(Z[train], y[train], Z[test], y[test], k)

    return draw


def errors(y: Array, F: Array) -> dict[str, float]:
    """In percent, by four definitions."""
    wrong = (F > 0) != np.eye(F.shape[1], dtype=bool)[y]
    return {
        "binary": 100 * float(wrong.mean()),
        "class": 100 * float(np.mean(F.argmax(axis=1) != y)),
        "any": 100 * float(wrong.any(axis=1).mean()),
        "sum": 100 * float(wrong.sum(axis=1).mean()),
    }


def right(Y: Array, residual: Array) -> Array:
    """Share of the signs of held-out predictions that are right, for each task."""
    return np.mean((Y - residual) * Y > 0, axis=0)


def skin_each(data: Patients) -> tuple[Array, dict]:
    """Six machines, each with a gamma and p of its own."""
    Y, kept = data.Y, {}

    def line(k: int, rest: tuple[int, ...], gammas: Sequence[int]) -> Array:
        if rest not in kept:
            kept[rest] = Machine(rbf(data.X, data.X, rest[0]), Y)
        return np.array([right(Y, kept[rest].residuals(2.0**g))[k] for g in gammas])

    F, chosen = np.empty((len(data.y_test), Y.shape[1])), []
    for k in range(Y.shape[1]):
        choice = grid_search(partial(line, k), GAMMAS, WIDTHS)
        F[:, k] = skin_fit(data, choice.at, data.y == k).scores(data.X_test)[:, 1]
        chosen.append(choice.at)
    return F, {"chosen": chosen}


def skin_same(data: Patients) -> tuple[Array, dict]:
    """Six machines with the same gamma and p: one machine with six outputs."""
    Y = data.Y

    def line(rest: tuple[int, ...], gammas: Sequence[int]) -> Array:
        machine = Machine(rbf(data.X, data.X, rest[0]), Y)
        return np.array([right(Y, machine.residuals(2.0**g)).mean() for g in gammas])

    choice = grid_search(line, GAMMAS, WIDTHS)
    F = skin_fit(data, choice.at, data.y).scores(data.X_test)
    return F, {"chosen": choice.at, "points": choice.points}


def skin_fit(data: Patients, at: tuple[int, ...], y: Array) -> LSSVC:
    g, p = at
    return LSSVC(width(p), 1 / (len(y) * 2.0**g), cv=None, calibration=None).fit(data.X, y)


def skin_tied(data: Patients, single: bool = False) -> tuple[Array, dict]:
    """Tasks tied. The task matrix 1/lambda' + [s = t] has the mean of the tasks and what is left as eigenspaces."""
    Y, m = data.Y, data.n_classes
    kept: dict[int, Machine] = {}

    def line(rest: tuple[int, ...], gammas: Sequence[int]) -> Array:
        lam, p = rest
        if p not in kept:
            kept[p] = Machine(rbf(data.X, data.X, p), Y)
        own = m / 2.0**lam  # beside a common part of 1
        return np.array([right(Y, tied_residuals(kept[p], 2.0**g, own, m, single)).mean() for g in gammas])

    choice = grid_search(line, GAMMAS, LAMBDAS, WIDTHS)
    g, lam, p = choice.at
    model = tied_fit(data, g, lam, p)
    tasks = np.repeat(np.arange(m), len(data.y_test))
    F = np.asarray(model.scores(np.tile(data.X_test, (m, 1)), tasks=tasks))[:, 1]
    return F.reshape(m, -1).T, {"chosen": choice.at, "points": choice.points}


def tied_residuals(machine: Machine, gamma: float, own: float, m: int, single: bool) -> Array:
    """Held-out residuals of m tasks over the same rows; ``single`` holds out a row in one task only."""
    (mean, top), (rest, low) = machine.parts(gamma * (m + own)), machine.parts(gamma * own)
    shared = (mean.mean(axis=1, keepdims=True), rest - rest.mean(axis=1, keepdims=True))
    # In units of gamma: a part with the eigenvalue b has b K + 1 / gamma = b (K + 1 / (b gamma)).
    weights = (1 / (m + own), 1 / own)
    if single:
        both = (weights[0] * top + (m - 1) * weights[1] * low) / m
        return (weights[0] * shared[0] + weights[1] * shared[1]) / both[:, None]
    return shared[0] / top[:, None] + shared[1] / low[:, None]


def tied_fit(data: Patients, g: int, lam: int, p: int) -> MultiTaskLSSVC:
    m, n = data.n_classes, len(data.y)
    point = from_gamma_lambda(2.0**g, 2.0**lam, m * n, m)
    model = MultiTaskLSSVC(width(p), **point, kernel="rbf", bias="task", cv=None, calibration=None)
    y, tasks = (data.y == np.arange(m)[:, None]).astype(int).ravel(), np.repeat(np.arange(m), n)
    return model.fit(np.tile(data.X, (m, 1)), y, tasks=tasks)


def skin_feat(data: Patients) -> tuple[Array, dict]:
    """Ridge and width by folds, by the mean error of the six tasks."""
    folds = list(KFold(5, shuffle=True, random_state=data.seed).split(data.X))

    def scores(alpha: float, p: int, rows: Array, new: Array) -> Array:
        model = MTLFeatClassifier(alpha, kernel="rbf", sigma=width(p), tol=1e-4)
        return model.fit(data.X[rows], data.y[rows]).decision_function(new)

    def loss(point: tuple[float, int]) -> float:
        found = [errors(data.y[b], scores(*point, a, data.X[b]))["binary"] for a, b in folds]
        return float(np.mean(found))

    best = min(itertools.product((1.0, 0.1, 0.01, 0.001), (-9, -7, -5)), key=loss)
    return scores(*best, np.arange(len(data.y)), data.X_test), {"chosen": best}


def skin_default(data: Patients) -> tuple[Array, dict]:
    """One classifier of six classes, as it comes."""
    model = LSSVC(random_state=data.seed).fit(data.X, data.y)
    return model.scores(data.X_test), {"chosen": [model.sigma_, model.alpha_]}


DERMATOLOGY: dict[str, Callable[[Patients], tuple[Array, dict]]] = {
    "LS-SVM, own gamma and p": skin_each,
    "LS-SVM, same gamma and p": skin_same,
    "MTLS-SVM": skin_tied,
    "MTLS-SVM, single": partial(skin_tied, single=True),
    "MTL-FEAT": skin_feat,
    "LSSVC()": skin_default,
}


def dermatology(args: argparse.Namespace) -> Iterator[dict]:
    draw = patient_draws(args.data)
    for k, inputs in itertools.product(range(args.runs), ("raw", "standardised", "with age")):
        data = draw(k, inputs)
        for name, fit in DERMATOLOGY.items():
            done = timed(partial(fit, data))
            F, more = done.value
            found = errors(data.y_test, F)
            print(f"split {k}, {name}, {inputs}: {found['any']:.2f}, {done.wall:.1f} s", flush=True)
            yield {"method": name, "inputs": inputs, "run": k, **found, "seconds": done.wall, **more}


# --------------------------------------------------------------------- figures

EXPLAINED = ("total", "within", "schools", "plain")
MEASURES = {"school": EXPLAINED, "similar": EXPLAINED, "dermatology": ("binary", "class", "any", "sum")}


def report(part: str, found: list[dict]) -> None:
    measures, rows = MEASURES[part], []
    for name, inputs in dict.fromkeys((f["method"], f["inputs"]) for f in found):
        runs = [f for f in found if (f["method"], f["inputs"]) == (name, inputs)]
        paper = PAPER.get(part, {}).get(name.partition(",")[0])
        figures = [spread([f[k] for f in runs], 2) for k in measures]
        said = "-" if paper is None else f"{paper[0]}±{paper[1]}"
        rows.append([name, inputs, len(runs), *figures, said, float(np.mean([f["seconds"] for f in runs]))])
    print_table(part, ["method", "inputs", "splits", *measures, "paper", "seconds"], rows)


def differences(part: str, found: list[dict]) -> list[dict]:
    """The first measure (errors: the mean of the tasks) against that of MTLS-SVM on the same inputs and splits."""
    measure, tests = MEASURES[part][0], []
    for name, inputs in dict.fromkeys((f["method"], f["inputs"]) for f in found):
        mine, main = (
            {f["run"]: f[measure] for f in found if (f["method"], f["inputs"]) == (wanted, inputs)}
            for wanted in (name, MAIN)
        )
        both = sorted(set(mine) & set(main))
        gap = np.array([mine[k] - main[k] for k in both])
        if name == MAIN or len(gap) < 2:
            continue
        p = float(ttest_rel([mine[k] for k in both], [main[k] for k in both]).pvalue) if np.ptp(gap) > 0 else np.nan
        error = float(gap.std(ddof=1) / np.sqrt(len(gap)))
        tests.append(
            {"method": name, "inputs": inputs, "mean": float(gap.mean()), "standard_error": error, "p": p}
            | {"above": int(np.sum(gap > 0)), "splits": len(gap)}
        )
    header = ["method", "inputs", "difference", "standard error", "p", "above", "splits"]
    rows = [list(t.values()) for t in tests]
    if rows:
        print_table(f"{measure}: less {MAIN} on the same splits", header, rows)
    return tests


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.lssvm_tables", __doc__, threads=1)
    p.add_argument("set", nargs="?", choices=list(MEASURES), default="school")
    p.add_argument("--runs", type=int, help="splits (default 10, of similar 3)")
    p.add_argument("--only", nargs="+", metavar="WORD", help="school: methods with one of these words in their names")
    p.add_argument("--slow", action="store_true", help="school: with what takes minutes for one split")
    args = parse(p, argv)
    args.runs = args.runs or (2 if args.quick else 3 if args.set == "similar" else N_SPLITS)
    if args.output.stem.removesuffix("-quick") == "lssvm_tables":
        args.output = args.output.with_name(args.output.name.replace("tables", f"tables_{args.set}"))
    found: list[dict] = []
    with capped(args), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for record in {"school": school, "similar": school, "dermatology": dermatology}[args.set](args):
            found.append(record)
            write_json(args, {"figures": found}, say=False)
    report(args.set, found)
    tests = differences(args.set, found)
    write_json(args, {"paper": PAPER.get(args.set), "tests": tests, "figures": found})


if __name__ == "__main__":
    main()
