"""Scores and probabilities of kernel models, before classes have names.

Scores are ``F = K(X, C) A + intercept``, with the coefficients A of all rows or of each row's task. A kernel that is
an inner product of features is never formed: the centres are multiplied into the coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from leastwise.calibration.extrapolation import Extrapolation
from leastwise.calibration.spread import PRIOR, Spread
from leastwise.onnx.calibrators import label_probabilities, recalibrate, shift_prior
from leastwise.onnx.encoders import convert_inputs, split_tasks
from leastwise.onnx.graph import Graph, Value
from leastwise.onnx.registry import calibrators, kernels
from leastwise.onnx.transformers import Columns, unwrap
from leastwise.problem.coupling import CouplingMatrix
from leastwise.problem.kernels import RBF, Kernel, Laplace, Linear, Poly, Scaled, Sigmoid, Sum
from leastwise.solvers.solve_tasks import DualForm
from leastwise.utils.unwrap import core

Array = np.ndarray

#: Tasks that are processed at a time when centres are multiplied into coefficients.
TASK_BLOCK = 64


# ------------------------------------------------------------------ coefficients


class Coefficients(Protocol):
    """A map from kernel values, of shape (n, b), to scores, of shape (n, c)."""

    def apply(self, g: Graph, K: Value) -> Value:
        """The scores."""
        ...

    def folded(self, C: Array) -> Coefficients:
        """The coefficients of ``X`` in ``(X @ C.T) @ A``."""
        ...


@dataclass(frozen=True)
class SharedCoefficients:
    """The same coefficients for all rows, of shape (b, c)."""

    A: Array

    def apply(self, g: Graph, K: Value) -> Value:
        """The scores."""
        return K @ self.A

    def folded(self, C: Array) -> SharedCoefficients:
        """The coefficients of features."""
        return SharedCoefficients(C.T @ np.asarray(self.A, dtype=float))


@dataclass(frozen=True)
class TaskCoefficients:
    """Coefficients of each task, of shape (T + 1, b, c), the last for unseen tasks; ``task`` are codes of rows."""

    A: Array
    task: Value

    def apply(self, g: Graph, K: Value) -> Value:
        """The scores."""
        return (K.unsqueeze(1) @ g.value(self.A).take(self.task, axis=0)).squeeze(1)

    def folded(self, C: Array) -> TaskCoefficients:
        """The coefficients of features."""
        return TaskCoefficients(np.einsum("bd,tbc->tdc", C, np.asarray(self.A, dtype=float)), self.task)


@dataclass(frozen=True)
class CoupledCoefficients:
    """Coefficients of centres, of shape (b, c), times the coupling of the row's task and the centre's.

    The scores of a row of task t are ``sum_j B[t, t_j] k(x, x_j) A[j]``; ``center_task`` are the t_j.
    """

    A: Array
    center_task: Array
    coupling: CouplingMatrix
    task: Value

    def apply(self, g: Graph, K: Value) -> Value:
        """The scores."""
        return (K if self.coupling.pooled else K * self._between(g)) @ self.A

    def _between(self, g: Graph) -> Value:
        """``B[t_i, t_j]``, of shape (n, b)."""
        if self.coupling.B is not None:
            return g.value(np.asarray(self.coupling.extended)).take(self.task, axis=0).take(self.center_task, axis=1)
        same = self.coupling.sharing + self.coupling.own[self.center_task]
        return g.where(self.task.unsqueeze(1).equal(self.center_task), same, float(self.coupling.sharing))

    def folded(self, C: Array) -> Coefficients:
        """The coefficients of features, for each task."""
        A = np.asarray(self.A, dtype=float)
        if self.coupling.pooled:
            return SharedCoefficients(C.T @ A)
        code = np.append(np.arange(len(self.coupling.own)), -1)
        blocks = [code[i : i + TASK_BLOCK] for i in range(0, len(code), TASK_BLOCK)]
        parts = [np.einsum("bd,tb,bc->tdc", C, self.coupling.between(t, self.center_task), A) for t in blocks]
        return TaskCoefficients(np.concatenate(parts), self.task)


# ----------------------------------------------------------------------- kernels


@dataclass(frozen=True)
class KernelMatrix:
    """The kernel between n rows and b centres; for kernels of a distance also the (squared) distances."""

    K: Value
    distances: Value | None = None
    squared: bool = False


@dataclass(frozen=True)
class InnerProducts:
    """The kernel ``X @ C.T``, which is not formed."""

    X: Value
    C: Array


@kernels.register(RBF)
def _rbf(g: Graph, kernel: RBF, X: Value, C: Array, sigma: float) -> KernelMatrix:
    D = squared_distances(X, C)
    return KernelMatrix(g.exp(D * (-0.5 / sigma**2)), D, squared=True)


@kernels.register(Laplace)
def _laplace(g: Graph, kernel: Laplace, X: Value, C: Array, sigma: float) -> KernelMatrix:
    D = city_distances(X, C)
    return KernelMatrix(g.exp(D * (-1.0 / sigma)), D)


@kernels.register(Poly)
def _poly(g: Graph, kernel: Poly, X: Value, C: Array, sigma: float) -> KernelMatrix:
    inner = X @ (C.T / sigma**2) + float(kernel.coef0)
    return KernelMatrix(g.node("Pow", inner, float(kernel.degree)))


@kernels.register(Sigmoid)
def _sigmoid(g: Graph, kernel: Sigmoid, X: Value, C: Array, sigma: float) -> KernelMatrix:
    return KernelMatrix(g.node("Tanh", X @ (C.T / sigma**2) + float(kernel.coef0)))


@kernels.register(Linear)
def _linear(g: Graph, kernel: Linear, X: Value, C: Array, sigma: float) -> InnerProducts:
    return InnerProducts(X, C)


@kernels.register(Scaled)
def _scaled_linear(g: Graph, kernel: Scaled, X: Value, C: Array, sigma: float) -> InnerProducts:
    if kernel.origin is not None:
        origin = np.asarray(kernel.origin, dtype=float)
        X, C = X - origin, C - origin
    return InnerProducts(X, C * (1 / kernel.height))


@kernels.register(Sum)
def _sum(g: Graph, kernel: Sum, X: Value, C: Array, sigma: float) -> list[KernelMatrix | InnerProducts]:
    terms: list[KernelMatrix | InnerProducts] = []
    for part, weight in zip(kernel.parts, kernel.weights, strict=True):
        if weight:
            term = kernels.find(part).convert(g, part, X, C, sigma)
            assert weight == 1 or isinstance(term, InnerProducts)  # only linear parts have a weight
            terms.append(replace(term, C=weight * term.C) if isinstance(term, InnerProducts) else term)
    return terms


def squared_distances(X: Value, C: Array) -> Value:
    """Squared Euclidean distances, computed about the mean of the centres to avoid cancellation."""
    mean = C.mean(axis=0)
    C, X = C - mean, X - mean
    D = X @ (-2 * C.T) + (X * X).sum() + (C**2).sum(axis=1)
    return D.maximum(0.0)


def city_distances(X: Value, C: Array) -> Value:
    """City-block distances, one feature at a time: a tensor of rows, centres and features would be too large."""
    g = X.graph
    helper, real = g.onnx.helper, g.element_type(g.dtype)
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Unsqueeze", ["x", "last"], ["column"]),
            helper.make_node("Sub", ["column", "c"], ["difference"]),
            helper.make_node("Abs", ["difference"], ["length"]),
            helper.make_node("Add", ["before", "length"], ["after"]),
        ],
        "one_feature",
        [info("before", real, None), info("x", real, None), info("c", real, None)],
        [info("after", real, None)],
        [g.onnx.numpy_helper.from_array(np.array([1]), "last")],
    )
    start = (X.take(np.array([0])) * 0.0) + np.zeros(len(C))
    return g.node("Scan", start, g.node("Transpose", X, perm=[1, 0]), C.T, body=body, num_scan_inputs=2)


def kernel_scores(
    g: Graph,
    kernel: Kernel,
    sigma: float,
    X: Value,
    centers: Any,
    coef: Coefficients,
    extrapolation: Extrapolation | None = None,
) -> tuple[Value, Value | None]:
    """Scores without an intercept, of shape (n, c), and domain weight, of shape (n, 1), or None where it is 1."""
    convert = kernels.find(kernel).convert
    C = np.asarray(centers.toarray() if sparse.issparse(centers) else centers, dtype=float)
    converted = convert(g, kernel, X, C, sigma)
    terms = converted if isinstance(converted, list) else [converted]
    matrices = [term for term in terms if isinstance(term, KernelMatrix)]
    parts = [coef.apply(g, _total([term.K for term in matrices]))] if matrices else []
    parts += [coef.folded(term.C).apply(g, term.X) for term in terms if isinstance(term, InnerProducts)]
    known = terms[0].distances if len(terms) == 1 and matrices else None
    in_domain = (
        None if extrapolation is None or known is None else _in_domain(g, known, matrices[0].squared, extrapolation)
    )
    return _total(parts), in_domain


def _total(values: list[Value]) -> Value:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _in_domain(g: Graph, distances: Value, squared: bool, extrapolation: Extrapolation) -> Value:
    """``exp(-(d / radius - 1)^2 / 2)`` beyond the radius, with the distance d to the nearest centre."""
    nearest = distances.min()
    distance = g.node("Sqrt", nearest) if squared else nearest
    beyond = (distance * (1 / float(extrapolation.radius)) - 1.0).maximum(0.0)
    return g.exp(beyond * beyond * -0.5)


# ------------------------------------------------------- scores and probabilities


@dataclass(frozen=True)
class Scores:
    """Scores of rows.

    Attributes
    ----------
    F : Value of shape (n, c)
    invalid : Value of shape (n, 1)
        NaN for rows that Python rejects because values or scores are not finite, 0 for others: add it to outputs.
    in_domain : Value of shape (n, 1) or None
        None where every row is trusted.
    task : Value of shape (n,) or None
        Task codes, -1 for unseen tasks.
    X : Value of shape (n, d) or None
        The rows as the kernel sees them.
    """

    F: Value
    invalid: Value
    in_domain: Value | None = None
    task: Value | None = None
    X: Value | None = None


@dataclass(frozen=True)
class Predictions:
    """Probabilities of all classes, of all labels side by side; other attributes as in :class:`Scores`.

    ``unseen``, of shape (n, 1), marks rows whose probabilities come from the calibrator of unseen tasks.
    """

    P: Value
    invalid: Value
    in_domain: Value | None = None
    task: Value | None = None
    unseen: Value | None = None


def model_scores(g: Graph, model: Any, columns: Columns) -> Scores:
    """Scores and domain weight of a model of one task or many."""
    coef: Coefficients
    task: Value | None = None
    form = getattr(model, "form_", None)
    if form is not None:
        columns, task = split_tasks(g, columns, model, model.task_index_)
        dual = isinstance(form, DualForm)
        coef = (
            CoupledCoefficients(form.A, form.task, form.coupling_matrix, task)
            if dual
            else TaskCoefficients(form.coef, task)
        )
        intercept: Any = np.asarray(model.intercept_)
        if getattr(model, "task_intercept_", None) is not None:
            intercept = g.value(np.vstack([model.task_intercept_, model.intercept_])).take(task, axis=0)
    else:
        coef, intercept = SharedCoefficients(model.coef_), np.asarray(model.intercept_)
    centers, extrapolation = (
        getattr(model, "centers_", None),
        getattr(model, "extrapolation_", None),
    )  # precomputed: no centres
    Z, invalid = convert_inputs(g, model, columns)
    F, in_domain = kernel_scores(g, model.kernel_, float(model.sigma_), Z, centers, coef, extrapolation)
    F = F + intercept
    return Scores(F, sum(invalid, start=(F * 0.0).sum()), in_domain, task, Z)


def scales(g: Graph, spread: Spread | None, scores: Scores, F: Value) -> Value:
    """Scales of residuals, of the shape of the scores F; 1 where there is no spread."""
    if spread is None:
        return F * 0.0 + 1.0
    scale = F * 0.0 + spread.mean
    if spread.kernel is not None and spread.total is not None and spread.mass is not None:
        at = F if spread.by == "prediction" else scores.X
        assert at is not None
        sums = SharedCoefficients(np.column_stack([spread.mass, spread.total]))
        made, _ = kernel_scores(g, spread.kernel, spread.bandwidth, at, spread.knots, sums)
        outputs = np.arange(1, 1 + spread.total.shape[1])
        scale = (made.take(outputs) + PRIOR * spread.mean) / (made.take(np.array([0])) + PRIOR)
    if spread.factor is not None and scores.task is not None:
        factors = np.vstack([spread.factor, np.ones((1, spread.factor.shape[1]))])  # the last: unseen tasks
        scale = scale * g.value(factors).take(scores.task, axis=0)
    return scale


def model_probabilities(g: Graph, model: Any, columns: Columns, class_prior: Any = None) -> Predictions:
    """Probabilities of a classifier, or of ``Recalibrated`` around one."""
    inner = core(model)
    if inner is model:
        predictions = _calibrated(g, model, columns)
    else:
        predictions = _calibrated(g, *unwrap(g, model.estimator_, columns))
    shift = inner._shift(class_prior)
    if inner is not model:
        P = recalibrate(g, model, predictions.P, predictions.in_domain, predictions.task)
        unseen = predictions.unseen
        predictions = replace(predictions, P=P if unseen is None else g.where(unseen, predictions.P, P))
    return predictions if shift is None else replace(predictions, P=shift_prior(g, shift, predictions.P))


def _calibrated(g: Graph, model: Any, columns: Columns) -> Predictions:
    """Probabilities of a classifier by its own calibrator."""
    scores = model_scores(g, model, columns)
    F, in_domain = scores.F, scores.in_domain
    if hasattr(model, "label_index_"):
        return Predictions(label_probabilities(g, model.calibrator_, F, in_domain), scores.invalid, in_domain)
    P = calibrators.find(model.calibrator_).convert(g, model.calibrator_, F, in_domain)
    for_unseen = getattr(model, "unseen_task_calibrator_", None)
    if for_unseen is None or scores.task is None or model.unknown_task == "error":
        return Predictions(P, scores.invalid, in_domain, scores.task)
    unseen = (scores.task < np.array(0)).unsqueeze(1)
    P = g.where(unseen, calibrators.find(for_unseen).convert(g, for_unseen, F, in_domain), P)
    return Predictions(P, scores.invalid, in_domain, scores.task, unseen)
