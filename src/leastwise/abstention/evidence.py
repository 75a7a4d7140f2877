"""Where ``Abstaining`` has its evidence from: a model's held-out rows, or rows that a frozen model has not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from leastwise.estimators._labels import LabelClassifier
from leastwise.estimators._sets import label_tables
from leastwise.estimators._tasks import TaskClassifier
from leastwise.evidence import Evidence, HeldRows, gather
from leastwise.labels.encoding import encode_known
from leastwise.risk import Decisions

Array = np.ndarray


@dataclass(frozen=True)
class Heard:
    """Decisions on held-out rows: one set of them, or one for every label.

    Attributes
    ----------
    decisions : list of Decisions
    labels : bool
        Whether there are many labels.
    task : ndarray of int, optional
        Tasks of the rows.
    stranger : Decisions, optional
        Decisions on tasks that were held out whole.
    """

    decisions: list[Decisions]
    labels: bool = False
    task: Array | None = None
    stranger: Decisions | None = None


def inner_model(model: Any) -> Any:
    """The classifier itself, within a pipeline or frozen."""
    while isinstance(model, FrozenEstimator | Pipeline):
        model = model.estimator if isinstance(model, FrozenEstimator) else model.steps[-1][1]
    return model


def is_labels(model: Any) -> bool:
    """Whether this is a model of many labels, calibrated once more or not."""
    return isinstance(model, LabelClassifier) or isinstance(getattr(model, "estimator_", None), LabelClassifier)


def is_tasks(model: Any) -> bool:
    """Whether this is a model of many tasks, calibrated once more or not."""
    return isinstance(model, TaskClassifier) or isinstance(getattr(model, "estimator_", None), TaskClassifier)


def hear(model: Any, X: Any, y: Any, params: dict[str, Any]) -> Heard:
    """The decisions of a fitted model on rows that were held out."""
    inner = inner_model(model)
    if isinstance(model, FrozenEstimator):
        return _heard_frozen(model, inner, X, y, params)
    if not hasattr(inner, "_held_rows"):
        raise ValueError(
            f"{type(inner).__name__} keeps no held-out predictions to set a threshold on: use a classifier of this "
            "library, or fit it on other rows and give sklearn.frozen.FrozenEstimator(model)."
        )
    held = inner._held_rows()
    if is_labels(inner):
        return _heard_labels(inner, inner.heldout_proba_, held)
    evidence = inner._evidence()
    if not is_tasks(inner):
        return Heard([_decisions(evidence)])
    stranger = inner._stranger_evidence()
    return Heard(
        [_decisions(evidence)], task=evidence.task, stranger=None if stranger is None else _decisions(stranger)
    )


def _heard_frozen(model: Any, inner: Any, X: Any, y: Any, params: dict[str, Any]) -> Heard:
    """Those on the rows given, which the model has not seen; rows of tasks that it does not know do not count."""
    more = {"tasks": params["tasks"]} if params.get("tasks") is not None else {}
    P = model.predict_proba(X, **more)
    n = P[0].shape[0] if isinstance(P, list) else P.shape[0]
    w = np.ones(n) if params.get("sample_weight") is None else np.asarray(params["sample_weight"], dtype=float)
    groups = params.get("groups")
    group = None if groups is None else np.unique(np.asarray(groups), return_inverse=True)[1]
    if is_labels(inner):
        flat = inner.label_index_.form == "flat"
        codes = encode_known(np.asarray(y).reshape(-1, 1) if flat else y, inner.label_index_, n, inner.missing)
        W = np.where(codes >= 0, w if w.ndim == 2 else w[:, None], 0)
        return _heard_labels(inner, P, HeldRows(codes, W, np.ones(n), group))
    task = task_codes(model, X, more)
    w = w if task is None else np.where(task < 0, 0, w)
    evidence = gather(np.asarray(P), HeldRows(class_codes(inner.classes_, y), w, np.ones(n), group, task))
    return Heard([_decisions(evidence)], task=evidence.task)


def class_codes(classes: Array, y: Any) -> Array:
    """Places of the classes of rows."""
    place = {name: k for k, name in enumerate(classes.tolist())}
    try:
        return np.array([place[name] for name in np.asarray(y).tolist()])
    except KeyError as error:
        raise ValueError(
            f"y holds {error.args[0]!r}; the classes that the model knows are {list(place)[:10]}."
        ) from None


def _heard_labels(inner: Any, P: Any, held: HeldRows) -> Heard:
    tables = label_tables(P, inner.label_index_.form)
    limits = np.broadcast_to(inner.threshold_, len(tables))
    parts = [gather(table, held, t) for t, table in enumerate(tables)]
    return Heard([_decisions(part, limit) for part, limit in zip(parts, limits, strict=True)], labels=True)


def _decisions(evidence: Evidence, threshold: float = 0.5) -> Decisions:
    codes = decided(evidence.P, threshold)
    sure = evidence.P[np.arange(len(codes)), codes]
    return Decisions(sure, codes != evidence.codes, evidence.w, evidence.group)


def decided(P: Array, threshold: float) -> Array:
    """The second of two classes where it has a probability above the threshold; the most probable of more."""
    return (P[:, 1] > threshold).astype(int) if P.shape[1] == 2 else P.argmax(axis=1)


def judged(model: Any, P: Any) -> tuple[Array, Array]:
    """Codes of the classes decided for, and their probabilities; of shape (n,), or (n, T) for many labels."""
    inner = inner_model(model)
    if not is_labels(inner):
        P = np.asarray(P, dtype=float)
        codes = decided(P, 0.5)
        return codes, P[np.arange(len(P)), codes]
    tables = label_tables(P, inner.label_index_.form)
    limits = np.broadcast_to(inner.threshold_, len(tables))
    codes = np.column_stack([decided(table, limit) for table, limit in zip(tables, limits, strict=True)])
    sure = [table[np.arange(len(table)), code] for table, code in zip(tables, codes.T, strict=True)]
    return codes, np.column_stack(sure)


def task_codes(model: Any, X: Any, params: dict[str, Any]) -> Array | None:
    """Places of the tasks of rows among those that are known, -1 where not; None for a model without tasks."""
    if not is_tasks(inner_model(model)):
        return None
    while isinstance(model, FrozenEstimator | Pipeline):
        X = model[:-1].transform(X) if isinstance(model, Pipeline) and len(model) > 1 else X
        model = model.estimator if isinstance(model, FrozenEstimator) else model.steps[-1][1]
    return model._validated_rows(X, params.get("tasks"))[1]
