"""Sets of classes: :meth:`leastwise.LSPC.predict_set` as nodes, for the method "lac"."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from leastwise.calibration.conformal import ROUNDING, levels
from leastwise.calibration.heldout_rows import Evidence, gather
from leastwise.calibration.label_blend import by_width
from leastwise.estimators.labels import LabelClassifier
from leastwise.estimators.sets import label_tables
from leastwise.onnx._calibrators import reassembled
from leastwise.onnx._graph import Graph, Value
from leastwise.onnx._models import Said
from leastwise.problem.labels import Labels

Array = np.ndarray


def put_sets(g: Graph, model: Any, said: Said, coverage: float) -> None:
    """``set``, of the shape of ``predict_set``: which classes cannot be excluded."""
    scores = 1.0 - (said.P + said.gap)
    if isinstance(getattr(model, "estimator_", model), LabelClassifier):
        return _put_label_sets(g, model, scores, coverage)
    level: Any = _level(model._evidence(), coverage)
    stranger = model._stranger_evidence() if said.task is not None else None
    if said.task is not None and stranger is not None:
        level = g.where(said.task < np.array(0), _level(stranger, coverage), level).widened(1)
    g.output("set", _inside(g, scores, level, len(model.classes_)), np.bool_, [len(model.classes_)])
    return None


def _level(evidence: Evidence, coverage: float) -> float:
    common, _ = levels(evidence, coverage, "lac", False, False, np.random.default_rng(0))
    return float(common[0]) + ROUNDING


def _inside(g: Graph, scores: Value, level: Any, c: int) -> Value:
    """What is not above the level, or else the first of the best; all classes of rows without probabilities."""
    inside = g.node("Not", scores > level)
    some = inside.cast(np.int64).max(-1).equals(np.array(1))
    best = g.node("ArgMin", scores, axis=-1, keepdims=1)
    return g.node("Or", inside, g.node("And", g.node("Not", some), best.equals(np.arange(c))))


def _put_label_sets(g: Graph, model: Any, scores: Value, coverage: float) -> None:
    labels: Labels = (model if hasattr(model, "label_index_") else model.estimator_).label_index_
    held, known = model._held_rows(), label_tables(model.heldout_proba_, labels.form)
    level = np.array([_level(gather(P, held, t), coverage) for t, P in enumerate(known)])
    blocks, parts = [], []
    for which, columns in by_width(labels.starts):
        blocks.append(columns)
        parts.append(_inside(g, scores.take(columns), level[which, None], columns.shape[1]))
    table = reassembled(g, blocks, parts)
    if labels.form == "flat":
        g.output("set", table, np.bool_, [labels.n_outputs])
    elif labels.binary:
        g.output("set", table.reshape(0, labels.n_labels, 2), np.bool_, [labels.n_labels, 2])
    else:
        for t, (a, b) in enumerate(pairwise(labels.starts.tolist())):
            g.output(f"set_{t}", table.take(np.arange(a, b)), np.bool_, [b - a])
