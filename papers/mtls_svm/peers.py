"""Peers on School.

RMTL          support vector regression with a part in common; C, mu and epsilon one after the other by a quarter of
              the rows of every third school
BMTL          empirical Bayes for a network with two hidden units
MTL-FEAT      linear; its ridge by a quarter of the rows
ridge         RidgeCV by leave-one-out: for every school, and for all with a column for every school
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV

from leastwise.baselines import BMTLRegressor, MTLFeatRegressor, RMTLRegressor
from papers._common.data import Array
from papers.mtls_svm.pupils import Split

RIDGES = np.logspace(-3, 5, 17)


def rmtl(data: Split) -> tuple[Array, dict]:
    """C, mu and epsilon one after the other, on some of the schools."""
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
    """As it comes."""
    model = BMTLRegressor(random_state=data.seed).fit(data.X, data.y, tasks=data.task)
    return model.predict(data.X_test, tasks=data.task_test), {}


def mtl_feat(data: Split) -> tuple[Array, dict]:
    """The ridge by a quarter of the rows."""
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
    """For every school."""
    f = np.empty(len(data.y_test))
    for t in data.tasks:
        a, b = data.of(t)
        f[b] = RidgeCV(RIDGES).fit(data.X[a], data.y[a]).predict(data.X_test[b])
    return f, {}


def ridge_one_hot(data: Split) -> tuple[Array, dict]:
    """For all, with a column for every school."""
    one = np.eye(int(data.task.max()) + 1)
    A, B = np.hstack([data.X, one[data.task]]), np.hstack([data.X_test, one[data.task_test]])
    return RidgeCV(RIDGES).fit(A, data.y).predict(B), {}
