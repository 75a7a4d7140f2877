"""Methods on the School data.

LS-SVM        one machine with an RBF kernel for every school, with separate or common gamma and p; one machine for
              the rows of all schools, on 1,000 of them
MTLS-SVM      linear kernel, an intercept for every school
mean          the mean score of the school, an LS-SVM that learns its intercept only
MultiTask..   MultiTaskLSSVR of this library with its own search
RMTL, BMTL, MTL-FEAT and two ridge regressions, tuned on a part of the training rows
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV

from leastwise import LSSVR, MultiTaskLSSVR
from leastwise.baselines import BMTLRegressor, MTLFeatRegressor, RMTLRegressor
from leastwise.fitting.direct import make_problem
from leastwise.fitting.fit import prepare
from leastwise.problem.coupling import from_gamma_lambda
from papers._common import PLAIN
from papers._common.data import Array
from papers._common.timing import timed
from papers.mtls_svm.grid import (
    GAMMAS,
    LAMBDAS,
    WIDTHS,
    Choice,
    Machine,
    grid_search,
    rbf,
    squares,
    width,
)
from papers.mtls_svm.school_data import Split

#: A linear kernel of the columns as they are.
LINEAR = {**PLAIN, "kernel": "linear"}
#: Function of a split that returns predictions of the test rows and the chosen hyperparameters.
Fit = Callable[[Split], tuple[Array, dict]]


def ls_svm_each(data: Split) -> tuple[Array, dict]:
    """A machine for every school, with separate gamma and p."""
    f, points = np.empty(len(data.y_test)), 0
    for t in data.tasks:
        a, b = data.of(t)
        choice = rbf_choice(data.X[a], data.y[a, None])
        f[b] = rbf_fit(data, a, choice.at).predict(data.X_test[b])
        points += choice.points
    return f, {"points": points}


def ls_svm_same(data: Split) -> tuple[Array, dict]:
    """A machine for every school, with common gamma and p."""
    parts = [(data.X[a], data.y[a, None]) for a, _ in map(data.of, data.tasks)]

    def line(rest: tuple[int, ...], gammas: Sequence[int]) -> Array:
        return np.sum([squares(Machine(rbf(X, X, rest[0]), y), gammas) for X, y in parts], axis=0)

    choice, f = grid_search(line, GAMMAS, WIDTHS), np.empty(len(data.y_test))
    for t in data.tasks:
        a, b = data.of(t)
        f[b] = rbf_fit(data, a, choice.at).predict(data.X_test[b])
    return f, {"chosen": choice.at, "points": choice.points}


def ls_svm_pooled(data: Split) -> tuple[Array, dict]:
    """One machine for all schools, on a subsample of the rows."""
    rows = np.random.default_rng(data.seed).permutation(len(data.y))[:1000]
    choice = rbf_choice(data.X[rows], data.y[rows, None])
    return rbf_fit(data, rows, choice.at).predict(data.X_test), {"chosen": choice.at, "points": choice.points}


def means(data: Split) -> tuple[Array, dict]:
    """The mean score of every school."""
    each = {t: data.y[data.of(t)[0]].mean() for t in data.tasks}
    return np.array([each[t] for t in data.task_test]), {}


def rbf_choice(X: Array, y: Array) -> Choice:
    """The best gamma and p of one machine."""
    return grid_search(lambda rest, gammas: squares(Machine(rbf(X, X, rest[0]), y), gammas), GAMMAS, WIDTHS)


def rbf_fit(data: Split, rows: Array, at: tuple[int, ...]) -> LSSVR:
    """LSSVR at the chosen exponents."""
    g, p = at
    model = LSSVR(width(p), 1 / (len(rows) * 2.0**g), **PLAIN, cv=None)
    return model.fit(data.X[rows], data.y[rows])


def linear_trial(data: Split) -> tuple[Any, float]:
    """The library's evaluator for a linear kernel and intercepts without penalty, and the unit of its predictions."""
    model = MultiTaskLSSVR(1.0, 1.0, 1.0, **LINEAR, bias="task")
    spec = model._spec()
    train, settings = prepare(model, spec, data.X, data.y, tasks=data.task)
    return make_problem(spec, train, settings).evaluator(), train.targets.unit


def mtls_svm(data: Split) -> tuple[Array, dict]:
    """The paper's model on its grid."""
    evaluator, unit = linear_trial(data)
    n, m = len(data.y), len(data.tasks)

    def line(rest: tuple[int, ...], gammas: Sequence[int]) -> Array:
        points = [from_gamma_lambda(2.0**g, 2.0 ** rest[0], n, m) for g in gammas]
        at = evaluator.with_sharing(points[0]["sharing"]).heldout(1.0, len(points))
        more = n / (n - 1)  # gamma does not change when a row is held out; alpha, relative to the mean loss, does
        return np.array([-np.sum((data.y - unit * at(more * point["alpha"]).F[:, 0]) ** 2) for point in points])

    searched = timed(lambda: grid_search(line, GAMMAS, LAMBDAS))
    choice = searched.value
    point: dict[str, Any] = from_gamma_lambda(2.0 ** choice.at[0], 2.0 ** choice.at[1], n, m)
    model = MultiTaskLSSVR(1.0, **point, **LINEAR, bias="task", cv=None)
    model.fit(data.X, data.y, tasks=data.task)
    held = 100 * (1 + choice.score / n / float(np.var(data.y)))
    found = {"chosen": choice.at, "points": choice.points, "search_seconds": searched.wall, "heldout": held}
    return model.predict(data.X_test, tasks=data.task_test), found


def multi_task(data: Split, **options: Any) -> tuple[Array, dict]:
    """MultiTaskLSSVR with its own search."""
    model = MultiTaskLSSVR(**{**PLAIN, "kernel": "rbf+linear", **options}, random_state=data.seed)
    model.fit(data.X, data.y, tasks=data.task)
    names = ("sigma_", "alpha_", "sharing_", "intercept_ratio_", "linear_weight_")
    return model.predict(data.X_test, tasks=data.task_test), {"chosen": [getattr(model, k) for k in names]}


RIDGES = np.logspace(-3, 5, 17)


def rmtl(data: Split) -> tuple[Array, dict]:
    """RMTL; C, mu and epsilon one after the other, on a part of the schools."""
    train, held = data.quarter(3)
    options: dict[str, Any] = {"C": 0.1, "mu": 0.1, "epsilon": 1.0}

    def loss(changed: dict) -> float:
        model = RMTLRegressor(**{**options, **changed}, intercept="task")
        model.fit(data.X[train], data.y[train], tasks=data.task[train])
        return float(np.mean((data.y[held] - model.predict(data.X[held], tasks=data.task[held])) ** 2))

    for name, values in (("C", (0.01, 0.03, 0.1, 0.3)), ("mu", (0.01, 0.1, 1.0)), ("epsilon", (1.0, 4.0))):
        options[name] = min(values, key=lambda v, name=name: loss({name: v}))
    model = RMTLRegressor(**options, intercept="task").fit(data.X, data.y, tasks=data.task)
    return model.predict(data.X_test, tasks=data.task_test), {"chosen": options}


def bmtl(data: Split) -> tuple[Array, dict]:
    """BMTL with its defaults."""
    model = BMTLRegressor(random_state=data.seed).fit(data.X, data.y, tasks=data.task)
    return model.predict(data.X_test, tasks=data.task_test), {}


def mtl_feat(data: Split) -> tuple[Array, dict]:
    """MTL-FEAT; the ridge by a held-out quarter of the rows."""
    train, held = data.quarter()

    def fitted(alpha: float, rows: Array) -> MTLFeatRegressor:
        return MTLFeatRegressor(alpha, tol=1e-4).fit(data.X[rows], data.y[rows], tasks=data.task[rows])

    def loss(alpha: float) -> float:
        f = fitted(alpha, train).predict(data.X[held], tasks=data.task[held])
        return float(np.mean((data.y[held] - f) ** 2))

    alpha = min(10.0 ** np.arange(-2, 3), key=loss)
    f = fitted(alpha, np.arange(len(data.y))).predict(data.X_test, tasks=data.task_test)
    return f, {"chosen": alpha}


def ridge_each(data: Split) -> tuple[Array, dict]:
    """A ridge regression for every school."""
    f = np.empty(len(data.y_test))
    for t in data.tasks:
        a, b = data.of(t)
        f[b] = RidgeCV(RIDGES).fit(data.X[a], data.y[a]).predict(data.X_test[b])
    return f, {}


def ridge_one_hot(data: Split) -> tuple[Array, dict]:
    """One ridge regression with an indicator column for every school."""
    one = np.eye(int(data.task.max()) + 1)
    A, B = np.hstack([data.X, one[data.task]]), np.hstack([data.X_test, one[data.task_test]])
    return RidgeCV(RIDGES).fit(A, data.y).predict(B), {}
