"""What goes out of a classifier: classes, probabilities, and which decisions stand."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from leastwise.calibration.label_blend import by_width
from leastwise.onnx._classes import exact, named, plain_classes, put_out
from leastwise.onnx._graph import Graph, Value
from leastwise.onnx._models import Said
from leastwise.problem.labels import Labels

Array = np.ndarray


def put_classes(g: Graph, model: Any, said: Said, abstaining: Any = None, marks: bool = True) -> None:
    """``label`` (n,) and ``probabilities`` (n, c) of a model without labels; ``accepted`` (n,) where it abstains.

    With ``marks`` a label that is not accepted is none, as ``Abstaining.predict`` has it.
    """
    classes, P = plain_classes(model.classes_), said.P + said.gap
    codes = P.argmax()
    label, accepted = named(g, codes, classes), None
    if abstaining is not None:
        sure = _entries(g, P, codes.widened(1)).squeezed(1)
        accepted = sure >= _level(g, abstaining, said)
        if marks:
            label, classes = marked(g, label, accepted, classes, abstaining.reject)
    put_out(g, "label", label, classes)
    g.output("probabilities", P, g.outer, [len(model.classes_)])
    if accepted is not None:
        g.output("accepted", accepted, np.bool_)


def _entries(g: Graph, P: Value, places: Value) -> Value:
    """Entries of each row at its own places."""
    return g.node("GatherElements", P, places, axis=1)


def _level(g: Graph, abstaining: Any, said: Said) -> Any:
    """The confidence from which on decisions stand, of all rows or of each row's task."""
    common = float(abstaining.threshold_)
    if said.task is None:
        return common
    stranger = float(abstaining.stranger_threshold_)
    if hasattr(abstaining, "task_thresholds_"):
        return g.value(np.append(abstaining.task_thresholds_, stranger)).take(said.task, axis=0)
    return g.where(said.task < np.array(0), stranger, common)


def marked(g: Graph, label: Value, accepted: Value, classes: Array, reject: Any) -> tuple[Value, Array]:
    """Classes with another value in the place of those that are not accepted, and what type they have now.

    As in Python, numbers become NaN, and are float64 then, unless ``reject`` is a whole number; text becomes "".
    """
    text = classes.dtype.kind == "O"
    if text and isinstance(reject, str | None):
        return g.where(accepted, label, np.array(reject or "", dtype=object)), classes
    if not text and isinstance(reject, int | float | np.number | None) and not isinstance(reject, bool):
        value = np.asarray(np.nan if reject is None else reject)
        if value.dtype.kind in "iu" and classes.dtype.kind != "f":
            return g.where(accepted, label, value), classes.astype(np.int64)
        return g.where(accepted, label.cast(np.float64), exact(g, value)), classes.astype(np.float64)
    raise TypeError(
        f"reject={reject!r} is of another kind than the classes, and an output of ONNX has one type: give "
        f"{'text' if text else 'a number'}, or None."
    )


# --------------------------------------------------------------------- labels


def put_labels(g: Graph, model: Any, said: Said, abstaining: Any = None, marks: bool = True) -> None:
    """``label`` and ``probabilities`` of a model of many labels, both of shape (n, T).

    Where a label has more than two classes there is an output for each, ``probabilities_0`` and so on, as
    ``predict_proba`` then returns a list. Where some labels are text and others numbers there is ``label_0`` and so
    on, too.
    """
    labels: Labels = model.label_index_
    P = said.P + said.gap
    place = _decided(g, P, labels.starts, np.broadcast_to(np.asarray(model.threshold_, float), labels.n_labels))
    accepted = None
    if abstaining is not None:
        accepted = _entries(g, P, place) >= np.asarray(abstaining.threshold_, dtype=float)
    _put_label_classes(g, labels, place, accepted if marks else None, getattr(abstaining, "reject", None))
    _put_label_tables(g, labels, P)
    if accepted is not None:
        _put_wide(g, labels, "accepted", accepted.cast(np.int64), np.array([False, True]))


def _decided(g: Graph, P: Value, starts: Array, threshold: Array) -> Value:
    """Where the classes decided for stand among those of all labels, of shape (n, T); see ``thresholds.decide``."""
    order, parts = [], []
    for labels, columns in by_width(starts):
        order.append(labels)
        if columns.shape[1] == 2:
            codes = (P.take(columns[:, 1]) > threshold[labels]).cast(np.int64)
        else:
            codes = P.take(columns).argmax(axis=2)
        parts.append(codes + starts[labels])
    table = g.beside(parts)
    return table if len(parts) == 1 else table.take(np.argsort(np.concatenate(order)))


def _put_label_classes(g: Graph, labels: Labels, place: Value, accepted: Value | None, reject: Any) -> None:
    classes = [plain_classes(c) for c in labels.classes]
    if len({c.dtype.kind for c in classes}) == 1:
        every = np.concatenate(classes)
        label = named(g, place, every)
        if accepted is not None:
            label, every = marked(g, label, accepted, every, reject)
        return _put_wide(g, labels, "label", label, every)
    for t, each in enumerate(classes):
        label = named(g, place.take(np.array(t)) - np.array(labels.starts[t]), each)
        if accepted is not None:
            label, each = marked(g, label, accepted.take(np.array(t)), each, reject)
        put_out(g, f"label_{t}", label, each)
    return None


def _put_wide(g: Graph, labels: Labels, name: str, value: Value, classes: Array) -> None:
    """One value for each label, of shape (n, T), or (n,) where labels were given as one class a row."""
    flat = labels.form == "flat"
    put_out(g, name, value.squeezed(1) if flat else value, classes, () if flat else (labels.n_labels,))


def _put_label_tables(g: Graph, labels: Labels, P: Value) -> None:
    if labels.form == "flat":
        g.output("probabilities", P, g.outer, [labels.n_outputs])
    elif labels.binary:
        g.output("probabilities", P.take(np.arange(1, labels.n_outputs, 2)), g.outer, [labels.n_labels])
    else:
        for t, (a, b) in enumerate(pairwise(labels.starts.tolist())):
            g.output(f"probabilities_{t}", P.take(np.arange(a, b)), g.outer, [b - a])
