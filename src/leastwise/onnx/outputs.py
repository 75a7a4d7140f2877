"""Outputs of the estimators: labels, probabilities, rejections and prediction sets; values and intervals."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from leastwise.calibration.conformal import ROUNDING, CalibrationSet, levels
from leastwise.calibration.label_blend import by_width
from leastwise.estimators.klr import KernelLogisticRegression
from leastwise.estimators.lspc import LSPC
from leastwise.estimators.lssvm import LSSVC, LSSVR
from leastwise.estimators.multi_label import MultiLabelLSPC
from leastwise.estimators.multi_task import MultiTaskLSPC
from leastwise.estimators.multi_task_klr import MultiTaskKernelLogisticRegression
from leastwise.estimators.multi_task_lssvm import MultiTaskLSSVC, MultiTaskLSSVR
from leastwise.estimators.predicting import label_calibration_sets
from leastwise.estimators.recalibrated import Recalibrated
from leastwise.onnx.calibrators import join_label_blocks
from leastwise.onnx.graph import Graph, Value
from leastwise.onnx.models import Predictions, model_probabilities, model_scores, scales
from leastwise.onnx.registry import ExportOptions, estimators
from leastwise.onnx.transformers import Columns
from leastwise.problem.labels import Labels
from leastwise.problem.targets import check_bounds
from leastwise.utils.unwrap import core

Array = np.ndarray


# ------------------------------------------------------------- names of classes


def class_array(classes: Any) -> Array:
    """Classes as an array of text, int64, float64 or bool; ONNX has no other types for them."""
    array = np.asarray(classes)
    if array.dtype.kind == "O":
        listed = array.ravel().tolist()
        if all(isinstance(c, str) for c in listed):
            return array
        if not all(isinstance(c, bool | int | float | np.number | np.bool_) for c in listed):
            example = next(c for c in listed if not isinstance(c, str))
            raise TypeError(
                f"Classes of type {type(example).__name__}, such as {example!r}, have no type in ONNX: fit with text "
                "or numbers."
            )
        array = np.array(listed).reshape(array.shape)
    dtypes = {"U": object, "i": np.int64, "u": np.int64, "f": np.float64, "b": np.bool_}
    if array.dtype.kind not in dtypes:
        raise TypeError(f"Classes of type {array.dtype} have no type in ONNX: fit with text or numbers.")
    return array.astype(dtypes[array.dtype.kind])


def class_names(g: Graph, codes: Value, classes: Array) -> Value:
    """The classes with these codes; bool remains 0 and 1 until the output."""
    if classes.dtype.kind == "f":
        return g.node("Gather", g.constant(classes, np.float64), codes)
    return g.node("Gather", classes.astype(np.int64) if classes.dtype.kind == "b" else classes, codes)


def output_classes(g: Graph, name: str, value: Value, classes: Array, shape: tuple = ()) -> None:
    """Add an output of classes."""
    if classes.dtype.kind == "b":
        value = value.cast(np.bool_)
    g.output(name, value, classes.dtype, shape)


# --------------------------------------------------------------------- classifiers


@estimators.register(
    LSPC,
    LSSVC,
    KernelLogisticRegression,
    MultiTaskLSPC,
    MultiTaskLSSVC,
    MultiTaskKernelLogisticRegression,
    MultiLabelLSPC,
    Recalibrated,
    options=("class_prior", "coverage", "abstaining"),
)
def _classifier(g: Graph, model: Any, columns: Columns, options: ExportOptions) -> None:
    predictions = model_probabilities(g, model, columns, options.class_prior)
    multi_label = hasattr(core(model), "label_index_")
    (_output_labels if multi_label else _output_classes)(g, model, predictions, options)
    if options.coverage is not None:
        scores = 1.0 - (predictions.P + predictions.invalid)
        (_output_label_sets if multi_label else _output_sets)(g, model, scores, predictions.task, options.coverage)


def _output_classes(g: Graph, model: Any, predictions: Predictions, options: ExportOptions) -> None:
    """``label`` (n,) and ``probabilities`` (n, c); ``accepted`` (n,) of a model that abstains."""
    classes, P = class_array(model.classes_), predictions.P + predictions.invalid
    codes = P.argmax()
    label, accepted = class_names(g, codes, classes), None
    if options.abstaining is not None:
        confidence = _entries(g, P, codes.unsqueeze(1)).squeeze(1)
        accepted = confidence >= _confidence_threshold(g, options.abstaining, predictions)
        if options.abstaining.max_miss:
            accepted = g.node("And", accepted, _keeps_miss_levels(g, options.abstaining, P, codes, predictions.task))
        if options.mark_rejected:
            label, classes = _marked(g, label, accepted, classes, options.abstaining.reject)
    output_classes(g, "label", label, classes)
    g.output("probabilities", P, g.io_dtype, [len(model.classes_)])
    if accepted is not None:
        g.output("accepted", accepted, np.bool_)


def _entries(g: Graph, P: Value, places: Value) -> Value:
    """Entries of each row at its own places."""
    return g.node("GatherElements", P, places, axis=1)


def _confidence_threshold(g: Graph, abstaining: Any, predictions: Predictions) -> Any:
    """The smallest accepted confidence, of all rows or of each row's task."""
    common = float(abstaining.threshold_)
    if predictions.task is None:
        return common
    unseen = float(abstaining.unseen_task_threshold_)
    if hasattr(abstaining, "task_thresholds_"):
        return g.value(np.append(abstaining.task_thresholds_, unseen)).take(predictions.task, axis=0)
    return g.where(predictions.task < np.array(0), unseen, common)


def _keeps_miss_levels(g: Graph, abstaining: Any, P: Value, codes: Value, task: Value | None) -> Value:
    """True for rows whose probability of every class other than the predicted one is below its level."""
    levels: Any = abstaining.miss_levels_
    if task is not None:
        unseen = (task < np.array(0)).unsqueeze(1)
        levels = g.where(unseen, abstaining.unseen_task_miss_levels_, levels)
    own = codes.unsqueeze(1).equal(np.arange(len(abstaining.classes_)))
    return g.node("Or", own, levels > P).cast(np.int64).min(-1, False).equal(np.array(1))


def _marked(g: Graph, label: Value, accepted: Value, classes: Array, reject: Any) -> tuple[Value, Array]:
    """Labels with ``reject`` where they are not accepted, and classes of the resulting dtype.

    As in Python, numbers become NaN, and float64, unless ``reject`` is an integer; text becomes "".
    """
    text = classes.dtype.kind == "O"
    if text and isinstance(reject, str | None):
        return g.where(accepted, label, np.array(reject or "", dtype=object)), classes
    if not text and isinstance(reject, int | float | np.number | None) and not isinstance(reject, bool):
        value = np.asarray(np.nan if reject is None else reject)
        if value.dtype.kind in "iu" and classes.dtype.kind != "f":
            return g.where(accepted, label, value), classes.astype(np.int64)
        mark = g.constant(value.astype(np.float64), np.float64)
        return g.where(accepted, label.cast(np.float64), mark), classes.astype(np.float64)
    raise TypeError(
        f"reject={reject!r} has another type than the classes, and an ONNX output has one type: give "
        f"{'text' if text else 'a number'}, or None."
    )


# -------------------------------------------------------------------- many labels


def _output_labels(g: Graph, model: Any, predictions: Predictions, options: ExportOptions) -> None:
    """``label`` and ``probabilities`` of many labels, both of shape (n, T).

    If a label has more than two classes there are outputs ``probabilities_0`` and so on, since ``predict_proba`` then
    returns a list. If some labels are text and others numbers there are ``label_0`` and so on, too.
    """
    labels: Labels = model.label_index_
    P = predictions.P + predictions.invalid
    place = _decisions(g, P, labels.starts, np.broadcast_to(np.asarray(model.threshold_, float), labels.n_labels))
    accepted = None
    if options.abstaining is not None:
        accepted = _entries(g, P, place) >= np.asarray(options.abstaining.threshold_, dtype=float)
        if options.abstaining.max_miss:
            last = np.asarray(labels.starts[1:]) - 1
            below = P.take(last) < np.asarray(options.abstaining.miss_levels_, dtype=float)
            accepted = g.node("And", accepted, g.node("Or", place.equal(last), below))
    _output_label_classes(g, labels, place, accepted if options.mark_rejected else None, options.abstaining)
    if labels.form == "flat":
        g.output("probabilities", P, g.io_dtype, [labels.n_outputs])
    elif labels.binary:
        g.output("probabilities", P.take(np.arange(1, labels.n_outputs, 2)), g.io_dtype, [labels.n_labels])
    else:
        for t, (a, b) in enumerate(pairwise(labels.starts.tolist())):
            g.output(f"probabilities_{t}", P.take(np.arange(a, b)), g.io_dtype, [b - a])
    if accepted is not None:
        _output_per_label(g, labels, "accepted", accepted.cast(np.int64), np.array([False, True]))


def _decisions(g: Graph, P: Value, starts: Array, threshold: Array) -> Value:
    """Places of the predicted classes among those of all labels, of shape (n, T).

    A label with two classes is decided by its threshold, others by the largest probability.
    """
    order, parts = [], []
    for labels, columns in by_width(starts):
        order.append(labels)
        if columns.shape[1] == 2:
            codes = (P.take(columns[:, 1]) > threshold[labels]).cast(np.int64)
        else:
            codes = P.take(columns).argmax(axis=2)
        parts.append(codes + starts[labels])
    table = g.concat(parts)
    return table if len(parts) == 1 else table.take(np.argsort(np.concatenate(order)))


def _output_label_classes(g: Graph, labels: Labels, place: Value, accepted: Value | None, abstaining: Any) -> None:
    classes = [class_array(c) for c in labels.classes]
    reject = getattr(abstaining, "reject", None)
    if len({c.dtype.kind for c in classes}) == 1:
        every = np.concatenate(classes)
        label = class_names(g, place, every)
        if accepted is not None:
            label, every = _marked(g, label, accepted, every, reject)
        return _output_per_label(g, labels, "label", label, every)
    for t, each in enumerate(classes):
        label = class_names(g, place.take(np.array(t)) - np.array(labels.starts[t]), each)
        if accepted is not None:
            label, each = _marked(g, label, accepted.take(np.array(t)), each, reject)
        output_classes(g, f"label_{t}", label, each)
    return None


def _output_per_label(g: Graph, labels: Labels, name: str, value: Value, classes: Array) -> None:
    """One value for each label, of shape (n, T), or (n,) if a single label was given as a flat y."""
    flat = labels.form == "flat"
    output_classes(g, name, value.squeeze(1) if flat else value, classes, () if flat else (labels.n_labels,))


# ---------------------------------------------------------------- prediction sets


def _output_sets(g: Graph, model: Any, scores: Value, task: Value | None, coverage: float) -> None:
    """``set``, as :meth:`leastwise.LSPC.predict_set` with ``method="lac"``; scores are 1 - P."""
    level: Any = _conformal_level(model._calibration_set(), coverage)
    unseen = model._unseen_task_calibration_set() if task is not None else None
    if task is not None and unseen is not None:
        level = g.where(task < np.array(0), _conformal_level(unseen, coverage), level).unsqueeze(1)
    g.output("set", _within_level(g, scores, level, len(model.classes_)), np.bool_, [len(model.classes_)])


def _conformal_level(heldout: CalibrationSet, coverage: float) -> float:
    common, _ = levels(heldout, coverage, "lac", False, False, np.random.default_rng(0))
    return float(common[0]) + ROUNDING


def _within_level(g: Graph, scores: Value, level: Any, n_classes: int) -> Value:
    """Classes not above the level, or else the best one; all classes of rows without probabilities."""
    within = g.node("Not", scores > level)
    some = within.cast(np.int64).max(-1).equal(np.array(1))
    best = g.node("ArgMin", scores, axis=-1, keepdims=1)
    return g.node("Or", within, g.node("And", g.node("Not", some), best.equal(np.arange(n_classes))))


def _output_label_sets(g: Graph, model: Any, scores: Value, task: Value | None, coverage: float) -> None:
    """``set`` of shape (n, T, 2), or ``set_0`` and so on."""
    labels: Labels = core(model).label_index_
    level = np.array([_conformal_level(heldout, coverage) for heldout in label_calibration_sets(model)])
    blocks, parts = [], []
    for which, columns in by_width(labels.starts):
        blocks.append(columns)
        parts.append(_within_level(g, scores.take(columns), level[which, None], columns.shape[1]))
    table = join_label_blocks(g, blocks, parts)
    if labels.form == "flat":
        g.output("set", table, np.bool_, [labels.n_outputs])
    elif labels.binary:
        g.output("set", table.reshape(0, labels.n_labels, 2), np.bool_, [labels.n_labels, 2])
    else:
        for t, (a, b) in enumerate(pairwise(labels.starts.tolist())):
            g.output(f"set_{t}", table.take(np.arange(a, b)), np.bool_, [b - a])


# --------------------------------------------------------------------- regressors


@estimators.register(LSSVR, MultiTaskLSSVR, options=("interval",))
def _regressor(g: Graph, model: Any, columns: Columns, options: ExportOptions) -> None:
    """``variable``, in the unit and shape of y, with ``lower`` and ``upper``."""
    scores = model_scores(g, model, columns)
    F = scores.F + scores.invalid
    _output_values(g, model, "variable", F)
    if options.interval is not None:
        residuals = model._residuals("jackknife")
        half = scales(g, residuals.spread, scores, F) * residuals.half_widths(options.interval)
        if residuals.unseen_task is not None and scores.task is not None:
            unseen = (scores.task < np.array(0)).unsqueeze(1)
            wide = scales(g, residuals.unseen_spread, scores, F) * residuals.unseen_task_half_widths(options.interval)
            half = g.where(unseen, wide, half)
        _output_values(g, model, "lower", F - half)
        _output_values(g, model, "upper", F + half)


def _output_values(g: Graph, model: Any, name: str, F: Value) -> None:
    unit, offset = np.asarray(model.unit_, dtype=float), np.asarray(model.offset_, dtype=float)
    values = F * unit + offset
    bounds = check_bounds(model.bounds)
    if bounds is not None:
        values = values.maximum(bounds[0]).minimum(bounds[1])
    if model.flat_:
        g.output(name, values.squeeze(1), g.io_dtype)
    else:
        g.output(name, values, g.io_dtype, [len(unit)])
