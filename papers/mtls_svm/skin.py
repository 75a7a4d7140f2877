"""Methods on dermatology, RBF kernel.

LS-SVM        six machines, with a gamma and p for each, or the same for all
MTLS-SVM      the rows of the six tasks stacked and tied. Where all tasks have the same rows, each an intercept, and
              the targets of a row have the same sum in all rows, tying the tasks is no more than another gamma: the
              choice of gamma and lambda is that of gamma alone as long as a row is held out in all tasks at once.
              "single" holds out a row in one task at a time; then lambda matters for the choice
MTL-FEAT      RBF; its ridge and width by 5 folds
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from leastwise import LSSVC, MultiTaskLSSVC
from leastwise.baselines import MTLFeatClassifier
from leastwise.problem.coupling import from_gamma_lambda
from papers._common.data import Array
from papers.mtls_svm.grid import GAMMAS, LAMBDAS, WIDTHS, Machine, grid_search, rbf, width
from papers.mtls_svm.patients import Patients, errors


def right(Y: Array, residual: Array) -> Array:
    """Share of the signs of held-out predictions that are right, for each task."""
    return np.mean((Y - residual) * Y > 0, axis=0)


def skin_each(data: Patients) -> tuple[Array, dict]:
    """Six machines, each with a gamma and p of its own."""
    Y, kept = data.Y, dict[tuple[int, ...], Machine]()

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
    """The library's machine at the exponents that were chosen."""
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
    """The library's tied machines at the exponents that were chosen."""
    m, n = data.n_classes, len(data.y)
    point: dict[str, Any] = from_gamma_lambda(2.0**g, 2.0**lam, m * n, m)
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
