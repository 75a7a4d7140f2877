"""Table 3: six skin diseases, ten random splits of 200 and 166 rows, six tasks "this disease or not"; errors.

Inputs are the 33 attributes without age, raw and standardised, and the other reading of "33 attributes", those that
UCI calls linear valued: age instead of the family history, raw. "binary" is the mean error of the six tasks, "class"
the error of the class with the largest score, "any" counts a row if one of the six signs is wrong, "sum" adds the
errors of the six tasks. All methods have an RBF kernel:

LS-SVM        six machines with separate or common gamma and p
MTLS-SVM      the rows of the six tasks stacked and coupled. Where all tasks have the same rows, each has an
              intercept, and the targets of every row have the same sum, the coupling only changes gamma: choosing
              gamma and lambda amounts to choosing gamma, as long as a row is held out in all tasks at once. "single"
              holds out a row in one task at a time; then lambda affects the choice
MTL-FEAT      its ridge and width by 5-fold cross-validation
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold

from leastwise import LSSVC, MultiTaskLSSVC
from leastwise.baselines import MTLFeatClassifier
from leastwise.problem.coupling import from_gamma_lambda
from papers._common import PLAIN
from papers._common.data import Array, load_set, scale_of, standardise
from papers._common.experiments import Job, Settings, option
from papers._common.timing import timed
from papers.mtls_svm.grid import GAMMAS, LAMBDAS, WIDTHS, Machine, grid_search, rbf, width
from papers.mtls_svm.tables import MAIN, TABLE_3, differences, tell

#: Definitions of the error.
ERRORS = ("binary", "class", "any", "sum")


@dataclass(frozen=True)
class Patients:
    """Training and test rows; targets of 1 and -1, one column for each disease."""

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
    """A function of the number of the draw and the inputs; rows are drawn regardless of their class."""
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
    """Held-out accuracy of each task."""
    return np.mean((Y - residual) * Y > 0, axis=0)


def skin_each(data: Patients) -> tuple[Array, dict]:
    """Six machines with separate gamma and p."""
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
    """LSSVC at the chosen exponents."""
    g, p = at
    return LSSVC(width(p), 1 / (len(y) * 2.0**g), **PLAIN, cv=None, calibration=None).fit(data.X, y)


def skin_tied(data: Patients, single: bool = False) -> tuple[Array, dict]:
    """MTLS-SVM. Eigenspaces of the task matrix 1/lambda' + [s = t]: the mean of the tasks, and its complement."""
    Y, m = data.Y, data.n_classes
    kept: dict[int, Machine] = {}

    def line(rest: tuple[int, ...], gammas: Sequence[int]) -> Array:
        lam, p = rest
        if p not in kept:
            kept[p] = Machine(rbf(data.X, data.X, p), Y)
        own = m / 2.0**lam  # relative to a common part of 1
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
    """MultiTaskLSSVC at the chosen exponents."""
    m, n = data.n_classes, len(data.y)
    point: dict[str, Any] = from_gamma_lambda(2.0**g, 2.0**lam, m * n, m)
    model = MultiTaskLSSVC(width(p), **point, **PLAIN, bias="task", cv=None, calibration=None)
    y, tasks = (data.y == np.arange(m)[:, None]).astype(int).ravel(), np.repeat(np.arange(m), n)
    return model.fit(np.tile(data.X, (m, 1)), y, tasks=tasks)


def skin_feat(data: Patients) -> tuple[Array, dict]:
    """MTL-FEAT; ridge and width by cross-validation of the mean error of the six tasks."""
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
    """LSSVC with its own search, one classifier of six classes."""
    model = LSSVC(**PLAIN, random_state=data.seed).fit(data.X, data.y)
    return model.scores(data.X_test), {"chosen": [model.sigma_, model.alpha_]}


INPUTS = ("raw", "standardised", "with age")
METHODS: dict[str, Callable[[Patients], tuple[Array, dict]]] = {
    "LS-SVM, own gamma and p": skin_each,
    "LS-SVM, same gamma and p": skin_same,
    MAIN: skin_tied,
    "MTLS-SVM, single": partial(skin_tied, single=True),
    "MTL-FEAT": skin_feat,
    "LSSVC()": skin_default,
}


@dataclass(frozen=True)
class SkinSettings(Settings):
    """Settings."""

    runs: int = option(10, "splits", least=1)
    inputs: tuple[str, ...] = option(INPUTS, "which attributes, and how they are scaled", kind=str, choices=INPUTS)
    only: tuple[str, ...] = option((), "methods whose names contain one of these words", kind=str)


def run(settings: SkinSettings, job: Job) -> dict[str, Any]:
    """Run the experiment."""
    found = job.gathered(_records(settings, job))
    tell("Table 3: dermatology, error in percent by four definitions", found, ERRORS, TABLE_3, job.report)
    return {"paper": TABLE_3, "tests": differences(found, "binary", job.report), "figures": found}


def _records(settings: SkinSettings, job: Job) -> Iterator[dict]:
    draw = patient_draws(job.data)
    methods = {k: m for k, m in METHODS.items() if not settings.only or any(word in k for word in settings.only)}
    for k, inputs in itertools.product(range(settings.runs), settings.inputs):
        data = draw(k, inputs)
        for name, fit in methods.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                done = timed(partial(fit, data))
            F, more = done.value
            found = errors(data.y_test, F)
            job.report(f"split {k}, {name}, {inputs}: {found['any']:.2f}, {done.wall:.1f} s")
            yield {"method": name, "inputs": inputs, "run": k, **found, "seconds": done.wall, **more}
