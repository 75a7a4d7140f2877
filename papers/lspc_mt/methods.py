"""LSPC and KLR with tasks tied, alone and pooled, at the best point of the paper's grid; this library's default.

LSPC-MT       eq. (6), a part that all tasks share and a part of each task's own; penalty on the coefficients
KLR-MT        kernel logistic regression with the same task matrix by Newton's method, from fit to fit
..-STI, -STC  the same with every task alone (one sigma and lambda for all), and with all tasks pooled
default ..    this library's MultiTaskLSPC on its own grid by leave-one-out
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.linalg.lapack import dposv

from leastwise import MultiTaskKernelLogisticRegression, MultiTaskLSPC
from leastwise.model_selection.grid import Grid
from leastwise.problem.kernels import RBF
from papers._common.data import Array
from papers.lspc_mt.draws import Draw
from papers.lspc_mt.grid import TINY, Point, best_point

DEFAULTS: dict[str, dict[str, Any]] = {
    "default": {},
    "default auc": {"scoring": "auc"},
    "default learned": {"similarity": "learned"},
    "default coefficients": {"norm": "coefficients"},
}
#: The point that was chosen, and test scores there.
Fitted = tuple[Point, Callable[[], Array]]


def odds(F: Array, by: str) -> Array:
    """Eq. (7) without the clipping; its sign, where only that counts, is that of the difference."""
    return F[:, 1] / np.maximum(F.sum(axis=1), TINY) if by == "auc" else difference(F)


def difference(F: Array) -> Array:
    """Of the scores of the two classes."""
    return F[:, 1] - F[:, 0]


def lspc_heldout(draw: Draw, sigma: float, pairs: Sequence[tuple[float, float]]) -> Iterator[tuple[Point, Array]]:
    """Eq. (6), a Cholesky factor for every point and fold."""
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
    trial: Any, score: Callable[[Array], Array], draw: Draw, sigma: float, pairs: Sequence[tuple[float, float]]
) -> Iterator[tuple[Point, Array]]:
    """The same by the library's search: for every sharing and fold one spectrum, or for KLR one path of refits."""
    for sharing, alphas in itertools.groupby(pairs, key=lambda p: p[0]):
        wanted = [a for _, a in alphas]
        at = trial.tied(sharing).heldout(sigma, len(wanted))
        for alpha in wanted:
            yield Point(sigma, alpha, sharing), score(at(alpha).F)


def lspc_trial(draw: Draw) -> Any:
    """The library's held-out scores of LSPC-MT on this draw."""
    model = MultiTaskLSPC(1.0, 1.0, 1.0, norm="coefficients", cv=draw.splits, calibration="temperature")
    kernel, _ = model._checked()
    data = model._training(draw.X, draw.y, None, None, kernel, draw.task)
    settings = model._settings(data.kernel, model._judge(data.classes, model.calibration), model.norm)
    return model._trial(data, data.rows, settings, model._coupling(data))


def klr_trial(draw: Draw) -> Any:
    """The library's refits of KLR-MT on this draw."""
    model = MultiTaskKernelLogisticRegression(1.0, 1.0, 1.0, bias=None, cv=draw.splits)
    kernel, _ = model._checked_all()
    data = model._training(draw.X, draw.y, None, None, kernel, draw.task)
    trial = model._refits(data, model._settings(data.kernel, model._judge(data.classes)), model._shared())
    trial.effort = type(trial.effort)(Grid(()), trial.effort.solver, trial.effort.stop)
    return trial


def lspc(draw: Draw, kind: str) -> Fitted:
    """The point that was chosen, and test scores there."""
    point = best_point(draw, lspc_heldout, kind)
    model = MultiTaskLSPC(**point.values, norm="coefficients", cv=None, calibration=None)
    model.fit(draw.X, draw.y, tasks=draw.task)
    return point, lambda: odds(np.asarray(model.scores(draw.X_test, tasks=draw.task_test)), draw.by)


def klr(draw: Draw, kind: str, scale: str) -> Fitted:
    """The same with lambda and gamma beside the mean or the sum of the losses."""
    unit = 1 / len(draw.y) if scale == "sum" else 1.0
    point = best_point(draw, partial(parts_heldout, klr_trial(draw), difference), kind, unit)
    model = MultiTaskKernelLogisticRegression(**point.values, bias=None, cv=None)
    model.fit(draw.X, draw.y, tasks=draw.task)
    return point, lambda: np.asarray(model.decision_function(draw.X_test, tasks=draw.task_test))


def default(draw: Draw, options: dict[str, Any]) -> Fitted:
    """The library's search on its own grid."""
    model = MultiTaskLSPC(**options, random_state=0).fit(draw.X, draw.y, tasks=draw.task)
    point = Point(model.sigma_, model.alpha_, model.sharing_, float(model.cv_results_["mean_test_score"].max()))
    return point, lambda: np.asarray(model.decision_function(draw.X_test, tasks=draw.task_test))
