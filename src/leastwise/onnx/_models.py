"""The estimators of one task and of many tasks: what they say of rows, before classes have names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.estimators.base import TaskCoefficients
from leastwise.estimators.labels import LabelClassifier
from leastwise.onnx._calibrators import label_probabilities, probabilities
from leastwise.onnx._columns import Columns
from leastwise.onnx._graph import Graph, Value
from leastwise.onnx._kernels import scores
from leastwise.onnx._tasks import split
from leastwise.onnx._weights import ByTask, Common, Coupled, Weights
from leastwise.solvers.solve_tasks import DualForm

Array = np.ndarray


@dataclass(frozen=True)
class Scored:
    """Scores of rows (n x c), their trust (n x 1, None is 1), and the codes of their tasks (n).

    ``gap`` (n x 1) is 0, and NaN for rows that a model in Python refuses: with values that are not finite, or scores.
    """

    F: Value
    gap: Value
    trust: Value | None = None
    task: Value | None = None


@dataclass(frozen=True)
class Said:
    """Probabilities of all classes, of all labels side by side.

    ``strange`` marks rows (n x 1) whose probabilities come from a calibrator for tasks that are not known.
    """

    P: Value
    gap: Value
    trust: Value | None = None
    task: Value | None = None
    strange: Value | None = None


def score_rows(g: Graph, model: Any, columns: Columns) -> Scored:
    """Scores and trust, as ``KernelEstimator._scores`` has them."""
    if hasattr(model, "center_indices_"):
        raise ValueError(
            "kernel='precomputed' has no form in ONNX: the kernel of new rows and training rows is made elsewhere. "
            "Use 'rbf', 'laplace', 'linear', 'poly', 'sigmoid' or a sum."
        )
    weights: Weights
    task: Value | None = None
    if isinstance(model, TaskCoefficients):
        X, task = split(g, columns, model, model.task_index_)
        weights, intercept = _task_weights(model, task), _task_intercepts(g, model, task)
    else:
        X = columns.numbers()
        weights, intercept = Common(model.coef_), np.asarray(model.intercept_)
    reach = getattr(model, "reach_", None)
    F, trust = scores(g, model.kernel_, float(model.sigma_), X, model.centers_, weights, reach)
    F = F + intercept
    return Scored(F, (X * 0.0).sum() + (F * 0.0).sum(), trust, task)


def _task_weights(model: TaskCoefficients, task: Value) -> Weights:
    form = model.form_
    return Coupled(form.A, form.task, form.tie, task) if isinstance(form, DualForm) else ByTask(form.coef, task)


def _task_intercepts(g: Graph, model: TaskCoefficients, task: Value) -> Any:
    own = getattr(model, "task_intercept_", None)
    if own is None:
        return np.asarray(model.intercept_)
    return g.value(np.vstack([own, model.intercept_])).take(task, axis=0)


def say(g: Graph, model: Any, columns: Columns) -> Said:
    """Probabilities, as ``Answer.proba`` has them."""
    scored = score_rows(g, model, columns)
    if isinstance(model, LabelClassifier):
        return Said(label_probabilities(g, model.calibrator_, scored.F, scored.trust), scored.gap, scored.trust)
    P = probabilities(g, model.calibrator_, scored.F, scored.trust)
    stranger = getattr(model, "stranger_calibrator_", None)
    if stranger is None or scored.task is None or model.unknown_task == "error":
        return Said(P, scored.gap, scored.trust, scored.task)
    strange = (scored.task < np.array(0)).widened(1)
    P = g.where(strange, probabilities(g, stranger, scored.F, scored.trust), P)
    return Said(P, scored.gap, scored.trust, scored.task, strange)
