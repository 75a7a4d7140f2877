"""The peer methods of :mod:`leastwise.baselines`. They have decision values, probabilities, or neither."""

from __future__ import annotations

from itertools import combinations
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
from leastwise.onnx.encoders import split_tasks
from leastwise.onnx.graph import Graph, Value
from leastwise.onnx.models import (
    Coefficients,
    CoupledCoefficients,
    SharedCoefficients,
    TaskCoefficients,
    kernel_scores,
    squared_distances,
)
from leastwise.onnx.outputs import class_array, class_names, output_classes
from leastwise.onnx.registry import ExportOptions, estimators
from leastwise.onnx.transformers import Columns
from leastwise.problem.coupling import CouplingMatrix

Array = np.ndarray


def _output_decision(g: Graph, classes: Array, codes: Value, F: Value, shape: tuple) -> None:
    output_classes(g, "label", class_names(g, codes, classes), classes)
    g.output("decision", F, g.io_dtype, shape)


# -------------------------------------------------------------------------- RMTL


@estimators.register(RMTLRegressor)
def _rmtl_regressor(g: Graph, model: RMTLRegressor, columns: Columns, options: ExportOptions) -> None:
    F = _svm_scores(g, model, columns, model.machine_.dual_coef_.T)
    g.output("variable", F.squeeze(1), g.io_dtype)


@estimators.register(RMTLClassifier)
def _rmtl_classifier(g: Graph, model: RMTLClassifier, columns: Columns, options: ExportOptions) -> None:
    classes, machine = class_array(model.classes_), model.machine_
    c = len(classes)
    if c == 2:
        F = _svm_scores(g, model, columns, machine.dual_coef_.T).squeeze(1)
        _output_decision(g, classes, (F > 0.0).cast(np.int64), F, ())
    else:
        codes, D = _pair_decisions(g, _svm_scores(g, model, columns, _pair_coefficients(machine)), c)
        _output_decision(g, classes, codes, D, (c,))


def _svm_scores(g: Graph, model: Any, columns: Columns, coef: Array) -> Value:
    """Sums over support vectors with the kernel ``(1/mu + [s = t]) k``, of shape (n, columns of coef)."""
    rest, task = split_tasks(g, columns, model, model.task_index_)
    X = rest.numbers()
    used, center_task = model.used_, model.task_fit_[model.support_]
    coupling = CouplingMatrix(1 / used["mu"], np.ones(len(model.task_index_)))
    A = CoupledCoefficients(coef, center_task, coupling, task)
    F, _ = kernel_scores(g, KERNELS[used["kernel"]], float(used["sigma"]), X, model.X_fit_[model.support_], A)
    if used["intercept"] == "task":  # the kernel is k + 1: add the sum of the coefficients of each task
        code = np.append(np.arange(len(model.task_index_)), -1)
        F = F + g.value(coupling.between(code, center_task) @ coef).take(task, axis=0)
    return F + model.machine_.intercept_


def _pair_coefficients(machine: Any) -> Array:
    """Coefficients of the support vectors for every pair of classes (vectors x pairs), from libsvm's form.

    A vector of class i has its coefficient against class j in row j - 1 of ``dual_coef_`` if j > i, else in row j.
    """
    own = np.repeat(np.arange(len(machine.n_support_)), machine.n_support_)
    pairs = list(combinations(range(len(machine.n_support_)), 2))
    coef = np.zeros((len(own), len(pairs)))
    for p, (i, j) in enumerate(pairs):
        coef[own == i, p] = machine.dual_coef_[j - 1, own == i]
        coef[own == j, p] = machine.dual_coef_[i, own == j]
    return coef


def _pair_decisions(g: Graph, F: Value, c: int) -> tuple[Value, Value]:
    """Codes of the classes with most votes, and decision values (n x c), from those of all pairs.

    As in scikit-learn, decision values are votes plus the sums over pairs, squeezed to less than half a vote.
    """
    pairs = np.array(list(combinations(range(c), 2)))
    first, second = (np.eye(c)[pairs[:, side]] for side in (0, 1))
    lost = (F < 0.0).cast(g.dtype)
    won = (F > 0.0).cast(g.dtype)
    vote = won @ first + (1.0 - won) @ second
    votes = (1.0 - lost) @ first + lost @ second
    total = F @ (first - second)
    return vote.argmax(), votes + total / (g.node("Abs", total) * 3.0 + 3.0)


# ------------------------------------------------------------- MTL-FEAT and BMTL


@estimators.register(MTLFeatRegressor)
def _mtl_feat_regressor(g: Graph, model: MTLFeatRegressor, columns: Columns, options: ExportOptions) -> None:
    g.output("variable", _feature_scores(g, model, columns).squeeze(1), g.io_dtype)


@estimators.register(MTLFeatClassifier)
def _mtl_feat_classifier(g: Graph, model: MTLFeatClassifier, columns: Columns, options: ExportOptions) -> None:
    classes, F = class_array(model.classes_), _feature_scores(g, model, columns)
    if len(classes) > 2:
        _output_decision(g, classes, F.argmax(), F, (len(classes),))
    else:
        F = F.squeeze(1)
        _output_decision(g, classes, (F > 0.0).cast(np.int64), F, ())


def _feature_scores(g: Graph, model: Any, columns: Columns) -> Value:
    """Scores of MTL-FEAT; without tasks there is one function for all rows."""
    coef, intercept = np.swapaxes(model.scores_.coef, 1, 2), model.scores_.intercept
    A: Coefficients
    if model.task_index_ is None:
        X, A, offset = columns.numbers(), SharedCoefficients(coef[0]), g.value(intercept[0])
    else:
        rest, task = split_tasks(g, columns, model, model.task_index_)
        X = rest.numbers()
        A, offset = TaskCoefficients(coef, task), g.value(intercept).take(task, axis=0)
    if model.used_["kernel"] == "linear":
        return A.apply(g, X) + offset
    return kernel_scores(g, KERNELS["rbf"], float(model.used_["sigma"]), X, model.X_fit_, A)[0] + offset


@estimators.register(BMTLRegressor)
def _bmtl(g: Graph, model: BMTLRegressor, columns: Columns, options: ExportOptions) -> None:
    """A network with one hidden layer, and output weights of each task."""
    assert model.task_index_ is not None
    rest, task = split_tasks(g, columns, model, model.task_index_)
    X = rest.numbers()
    H = X @ model.hidden_coef_ + model.hidden_intercept_
    H = g.node("Tanh", H) if model.used_["hidden"] == "tanh" else H
    A = g.value(np.vstack([model.coef_, model.prior_mean_])).take(task, axis=0)
    h = model.hidden_coef_.shape[1]
    mean = (H * A.take(np.arange(h))).sum(keep=False) + A.take(np.array(h))
    g.output("variable", mean, g.io_dtype)


# ------------------------------------------------------------------------ labels


@estimators.register(MLkNN)
def _ml_knn(g: Graph, model: MLkNN, columns: Columns, options: ExportOptions) -> None:
    """Probabilities by the number of neighbours with each label; of rows at equal distance the first are taken."""
    rows, Y = model.neighbors_._fit_X, model.labels_fit_.astype(float)
    rows = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=float)
    D = squared_distances(columns.numbers(), rows)
    k, T = len(model.counts_given_label_) - 1, model.n_labels_
    _, near = g.node_outputs("TopK", D, np.array([k]), count=2, axis=1, largest=0)
    count = g.value(Y).take(near, axis=0).sum(1, keep=False).cast(np.int64)
    yes, no = model.prior_ * model.counts_given_label_, (1 - model.prior_) * model.counts_given_none_
    P = g.node("Gather", (yes / (yes + no)).ravel(), count * np.array(T) + np.arange(T))
    g.output("label", (P > 0.5).cast(np.int64), np.int64, [T])
    g.output("probabilities", P, g.io_dtype, [T])


@estimators.register(InsDif)
def _insdif(g: Graph, model: InsDif, columns: Columns, options: ExportOptions) -> None:
    """Linear in the distances to the medoids; a row without a positive label gets the one with the largest value."""
    F = _hausdorff(g, columns.numbers(), model.medoid_rows_, model.prototypes_) @ model.coef_
    best = F.argmax().unsqueeze(1).equal(np.arange(model.n_labels_))
    none = g.node("Not", F.max() > 0.0)
    label = g.node("Or", F > 0.0, g.node("And", none, best))
    g.output("label", label.cast(np.int64), np.int64, [model.n_labels_])
    g.output("decision", F, g.io_dtype, [model.n_labels_])


def _hausdorff(g: Graph, X: Value, Z: Array, V: Array) -> Value:
    """Hausdorff distances of bags, of shape (n, len(Z)), as in :func:`leastwise.baselines._bags.hausdorff`."""
    mean = V.mean(axis=0)
    D = squared_distances(X, Z)
    X, Z, V = X - mean, Z - mean, V - mean
    G = ((V[:, None] - V) ** 2).sum(axis=2)
    U = (X @ (2 * V.T)).unsqueeze(1) - 2 * Z @ V.T  # rows, medoids, prototypes
    largest = None
    for l, between in enumerate(G):
        own = U.take(np.array(l), axis=2)
        both = ((U + between).min(2, keep=False) - own).maximum((between - U).min(2, keep=False) + own)
        largest = both if largest is None else largest.maximum(both)
    assert largest is not None
    return g.node("Sqrt", (D + largest).maximum(0.0))
