"""Rows of several tasks, and their evaluators, that several tests use."""

import numpy as np
from reference import rbf

from leastwise.model_selection.objective import ClassObjective, resolve_scoring
from leastwise.problem.basis import make_basis
from leastwise.problem.centers import Recipe
from leastwise.problem.coupling import Pairwise, Shared
from leastwise.problem.kernels import RBF
from leastwise.solvers.evaluator import Rows, Settings
from leastwise.solvers.task_evaluators import CoupledEvaluator

N, T, C = 40, 4, 3


PENALTY = np.array([1.0, 2.0, 0.5, 1.0])


FOLDS = {"loo": np.arange(N), "five": np.arange(N) % 5, "copies": np.r_[np.arange(N - 2), 0, 0]}


def kernel(A, B):
    return rbf(A, B, 1.0)


def tied_rows(weighted=False, fold="loo", seed=0):
    rng = np.random.default_rng(seed)
    w = rng.uniform(0.5, 2, N) if weighted else np.ones(N)
    task = rng.permutation(np.r_[np.arange(T), rng.integers(0, T, N - T)])
    y = rng.permutation(np.r_[np.arange(C), rng.integers(0, C, N - C)])
    everyone = np.arange(N)
    return Rows(rng.normal(size=(N, 2)), y, w / w.mean(), FOLDS[fold], everyone, everyone, 1.0, task)


def coupling(kind):
    if kind == "shared":
        return Shared(PENALTY)
    S = np.abs(np.random.default_rng(1).normal(size=(T, T)))
    return Pairwise(PENALTY, S + S.T)


def settings(norm="function", bias=False):
    return Settings(RBF(), norm, bias, ClassObjective(np.arange(C), None, resolve_scoring("log_loss")))


def evaluator(rows, kind="shared", norm="function", bias=False, cls=CoupledEvaluator, **recipe):
    rng = np.random.default_rng(0)
    basis = make_basis(Recipe(norm=norm, **recipe), rows.X, rows.y, rows.w, rows.fold, rows.copy, rng)
    return cls(rows, basis, settings(norm, bias), coupling(kind))
