"""The peer methods of :mod:`leastwise.baselines`. They have decision values, or probabilities, or neither."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leastwise.baselines import (
    BMTLRegressor,
    InsDif,
    MLkNN,
    MTLFeatClassifier,
    MTLFeatRegressor,
    RMTLClassifier,
    RMTLRegressor,
)
from leastwise.baselines._base import KERNELS
from leastwise.onnx._classes import named, plain_classes, put_out
from leastwise.onnx._columns import Columns
from leastwise.onnx._graph import Graph, Value
from leastwise.onnx._kernels import scores, squared_distances
from leastwise.onnx._machines import pair_coefficients, pair_decisions
from leastwise.onnx._tasks import split
from leastwise.onnx._weights import ByTask, Common, Coupled, Weights
from leastwise.problem.coupling import Tie

Array = np.ndarray


# ---------------------------------------------------------------------- tasks


def _machine(g: Graph, model: Any, columns: Columns, coef: Array) -> Value:
    """Sums over support vectors with the kernel (1/mu + [s = t]) k, of shape (n, columns of coef)."""
    X, task = split(g, columns, model, model.task_index_)
    used, home = model.used_, model.task_fit_[model.support_]
    tie = Tie(1 / used["mu"], np.ones(len(model.task_index_)))
    weights: Weights = Coupled(coef, home, tie, task)
    F, _ = scores(g, KERNELS[used["kernel"]], float(used["sigma"]), X, model.X_fit_[model.support_], weights)
    if used["intercept"] == "task":  # k + 1: what the coefficients of each task add up to
        code = np.append(np.arange(len(model.task_index_)), -1)
        F = F + g.value(tie.between(code, home) @ coef).take(task, axis=0)
    return F + model.machine_.intercept_


def _put_rmtl_values(g: Graph, model: RMTLRegressor, columns: Columns) -> None:
    F = _machine(g, model, columns, model.machine_.dual_coef_.T)
    g.output("variable", F.squeezed(1), g.outer)


def _put_rmtl_classes(g: Graph, model: RMTLClassifier, columns: Columns) -> None:
    classes, machine = plain_classes(model.classes_), model.machine_
    c = len(classes)
    if c == 2:
        F = _machine(g, model, columns, machine.dual_coef_.T).squeezed(1)
        return _put_decision(g, classes, (F > 0.0).cast(np.int64), F, ())
    codes, D = pair_decisions(g, _machine(g, model, columns, pair_coefficients(machine)), c)
    return _put_decision(g, classes, codes, D, (c,))


def _put_decision(g: Graph, classes: Array, codes: Value, F: Value, shape: tuple) -> None:
    put_out(g, "label", named(g, codes, classes), classes)
    g.output("decision", F, g.outer, shape)


def _feature_scores(g: Graph, model: Any, columns: Columns) -> Value:
    """Scores of MTL-FEAT; without tasks there is one function for all rows."""
    coef, intercept = np.swapaxes(model.scores_.coef, 1, 2), model.scores_.intercept
    weights: Weights
    if model.task_index_ is None:
        X, weights, offset = columns.numbers(), Common(coef[0]), g.value(intercept[0])
    else:
        X, task = split(g, columns, model, model.task_index_)
        weights, offset = ByTask(coef, task), g.value(intercept).take(task, axis=0)
    if model.used_["kernel"] == "linear":
        return weights.apply(g, X) + offset
    return scores(g, KERNELS["rbf"], float(model.used_["sigma"]), X, model.X_fit_, weights)[0] + offset


def _put_feature_values(g: Graph, model: MTLFeatRegressor, columns: Columns) -> None:
    g.output("variable", _feature_scores(g, model, columns).squeezed(1), g.outer)


def _put_feature_classes(g: Graph, model: MTLFeatClassifier, columns: Columns) -> None:
    classes, F = plain_classes(model.classes_), _feature_scores(g, model, columns)
    if len(classes) > 2:
        return _put_decision(g, classes, F.argmax(), F, (len(classes),))
    F = F.squeezed(1)
    return _put_decision(g, classes, (F > 0.0).cast(np.int64), F, ())


def _put_network(g: Graph, model: BMTLRegressor, columns: Columns) -> None:
    assert model.task_index_ is not None
    X, task = split(g, columns, model, model.task_index_)
    H = X @ model.hidden_coef_ + model.hidden_intercept_
    H = g.node("Tanh", H) if model.used_["hidden"] == "tanh" else H
    A = g.value(np.vstack([model.coef_, model.prior_mean_])).take(task, axis=0)
    h = model.hidden_coef_.shape[1]
    mean = (H * A.take(np.arange(h))).sum(keep=False) + A.take(np.array(h))
    g.output("variable", mean, g.outer)


# --------------------------------------------------------------------- labels


def _put_neighbours(g: Graph, model: MLkNN, columns: Columns) -> None:
    """ML-kNN; of training rows at equal distance the first are neighbours."""
    rows, Y = model.neighbors_._fit_X, model.labels_fit_.astype(float)
    rows = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=float)
    D = squared_distances(g, columns.numbers(), rows)
    k, T = len(model.counts_given_label_) - 1, model.n_labels_
    _, near = g.nodes_of("TopK", D, np.array([k]), count=2, axis=1, largest=0)
    count = g.value(Y).take(near, axis=0).sum(1, keep=False).cast(np.int64)
    yes, no = model.prior_ * model.counts_given_label_, (1 - model.prior_) * model.counts_given_none_
    P = g.node("Gather", (yes / (yes + no)).ravel(), count * np.array(T) + np.arange(T))
    g.output("label", (P > 0.5).cast(np.int64), np.int64, [T])
    g.output("probabilities", P, g.outer, [T])


def _put_bags(g: Graph, model: InsDif, columns: Columns) -> None:
    F = _hausdorff(g, columns.numbers(), model.medoid_rows_, model.prototypes_) @ model.coef_
    best = F.argmax().widened(1).equals(np.arange(model.n_labels_))
    none = g.node("Not", F.max() > 0.0)
    label = g.node("Or", F > 0.0, g.node("And", none, best))
    g.output("label", label.cast(np.int64), np.int64, [model.n_labels_])
    g.output("decision", F, g.outer, [model.n_labels_])


def _hausdorff(g: Graph, X: Value, Z: Array, V: Array) -> Value:
    """Distances of bags, of shape (n, len(Z)), as :func:`leastwise.baselines.insdif.hausdorff` has them."""
    middle = V.mean(axis=0)
    D = squared_distances(g, X, Z)
    X, Z, V = X - middle, Z - middle, V - middle
    G = ((V[:, None] - V) ** 2).sum(axis=2)
    U = (X @ (2 * V.T)).widened(1) - 2 * Z @ V.T  # rows, medoids, prototypes
    far = None
    for l, near in enumerate(G):
        own = U.take(np.array(l), axis=2)
        both = ((U + near).min(2, keep=False) - own).at_least((near - U).min(2, keep=False) + own)
        far = both if far is None else far.at_least(both)
    assert far is not None
    return g.node("Sqrt", (D + far).at_least(0.0))


BASELINES: dict[type, Callable[[Graph, Any, Columns], None]] = {
    RMTLRegressor: _put_rmtl_values,
    RMTLClassifier: _put_rmtl_classes,
    MTLFeatRegressor: _put_feature_values,
    MTLFeatClassifier: _put_feature_classes,
    BMTLRegressor: _put_network,
    MLkNN: _put_neighbours,
    InsDif: _put_bags,
}
