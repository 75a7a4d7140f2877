"""Calibrators of classes and of labels as nodes.

Classes are the last axis. Those of many labels are taken in blocks of labels that have as many classes, as tensors of
shape (n, labels, classes), so that one set of formulas serves both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.calibration.calibrators import Blend, ClipNormalise, Isotonic, Signed
from leastwise.calibration.label_blend import by_width
from leastwise.calibration.label_calibrators import LabelBlend, LabelClip, LabelIsotonic
from leastwise.calibration.prior import Shift
from leastwise.onnx._graph import Graph, Value
from leastwise.solvers.newton import Softmax

Array = np.ndarray


def probabilities(g: Graph, calibrator: Any, F: Value, trust: Value | None) -> Value:
    """Probabilities from scores, both of shape (n, c); ``trust`` has shape (n, 1), None is 1."""
    if isinstance(calibrator, Signed):
        return probabilities(g, calibrator.inner, (F + 1.0) * 0.5, trust)
    if isinstance(calibrator, Softmax):
        return _softmax(g, F, trust, calibrator.shares)
    if isinstance(calibrator, ClipNormalise):
        return clip(g, F, _floats(calibrator.shares))
    if isinstance(calibrator, Blend):
        c = calibrator
        return blend(g, F, trust, _floats(c.shares), c.doubt, c.floor, c.sharpness, c.power)
    if isinstance(calibrator, Isotonic):
        corners = list(zip(calibrator.knots, calibrator.steps, strict=True))
        shares = _floats(calibrator.shares)
        return believed(g, clip(g, climb(g, F, corners), shares), trust, shares, calibrator.floor)
    raise TypeError(f"A calibrator of type {type(calibrator).__name__} has no form in ONNX.")


def label_probabilities(g: Graph, calibrator: Any, F: Value, trust: Value | None) -> Value:
    """Probabilities of all classes of all labels side by side, of shape (n, O)."""
    starts, shares = calibrator.starts, _floats(calibrator.shares)
    trust = None if trust is None else trust.widened(2)
    if isinstance(calibrator, LabelIsotonic):
        ends = zip(calibrator.corners[:-1], calibrator.corners[1:], strict=True)
        F = climb(g, F, [(calibrator.knots[a:b], calibrator.steps[a:b]) for a, b in ends])
    blocks, parts = [], []
    for labels, columns in by_width(starts):
        blocks.append(columns)
        parts.append(_label_block(g, calibrator, F.take(columns), trust, shares[columns], labels, columns))
    return reassembled(g, blocks, parts)


def _label_block(
    g: Graph, calibrator: Any, F: Value, trust: Value | None, shares: Array, labels: Array, columns: Array
) -> Value:
    """Labels that have as many classes: scores and probabilities of shape (n, L, c)."""
    if isinstance(calibrator, LabelClip):
        return clip(g, F, shares)
    if isinstance(calibrator, LabelIsotonic):
        return believed(g, clip(g, F, shares), trust, shares, _floats(calibrator.floor)[labels, None])
    if isinstance(calibrator, LabelBlend):
        names = ("doubt", "floor", "sharpness", "power")
        each = [_floats(getattr(calibrator, name))[labels, None] for name in names]
        return blend(g, F, trust, shares, *each)
    raise TypeError(f"A calibrator of type {type(calibrator).__name__} has no form in ONNX.")


def reassembled(g: Graph, blocks: list[Array], parts: list[Value]) -> Value:
    """Blocks of labels, each of shape (n, L, c), as one table whose columns are in their order again."""
    order = np.concatenate([columns.ravel() for columns in blocks])
    table = g.beside([part.reshape(0, columns.size) for columns, part in zip(blocks, parts, strict=True)])
    return table if np.array_equal(order, np.arange(len(order))) else table.take(np.argsort(order))


def shifted(g: Graph, shift: Shift, P: Value) -> Value:
    """Probabilities under other class shares, of all classes of all labels side by side."""
    blocks = [columns for _, columns in by_width(shift.starts)]
    ratio = shift.new / shift.trained
    return reassembled(g, blocks, [clip(g, P.take(c) * ratio[c], shift.new[c]) for c in blocks])


# ------------------------------------------------------------------- formulas


def clip(g: Graph, F: Value, shares: Array) -> Value:
    """Negative scores are zero, the rest is divided by its sum; class shares where nothing is left."""
    P = F.at_least(0.0)
    total = P.sum(-1)
    some = total > 0.0
    return g.where(some, P / g.where(some, total, 1.0), shares)


def _softmax(g: Graph, F: Value, trust: Value | None, shares: Array | None) -> Value:
    """Scores that are log-probabilities, drawn to those of the class shares as far as rows are not believed."""
    if trust is not None and shares is not None:
        F = F * trust + (1.0 - trust) * np.log(_floats(shares))
    return g.node("Softmax", F, axis=-1)


def blend(
    g: Graph,
    F: Value,
    trust: Value | None,
    shares: Array,
    doubt: Any,
    floor: Any,
    sharpness: Any,
    power: Any,
) -> Value:
    """The log-linear family; what does not depend on the scores is computed here and now."""
    evidence = F * np.broadcast_to(_floats(sharpness), shares.shape)
    if np.any(power):
        here = g.log(F.at_least(0.0) * (1 / shares) + _floats(doubt))
        evidence = evidence + here * _floats(power)
    evidence = evidence if trust is None else evidence * trust
    P = g.node("Softmax", evidence + np.log(shares), axis=-1)
    return P * _floats(1 - np.asarray(floor)) + floor * shares


def believed(g: Graph, P: Value, trust: Value | None, shares: Array, floor: Any) -> Value:
    """Class shares as far as the rows are not believed, and a share ``floor`` of them always."""
    if trust is None:
        return P * _floats(1 - np.asarray(floor)) + floor * shares
    part = trust * _floats(1 - np.asarray(floor))
    return part * P + (1.0 - part) * shares


def climb(g: Graph, F: Value, corners: list[tuple[Array, Array]]) -> Value:
    """One piecewise linear function for every column of F (n x m), constant beyond the outermost corners."""
    return g.beside([_climb(F.take(np.array([k])), *xy) for k, xy in enumerate(corners)])


def _climb(f: Value, knots: Array, steps: Array) -> Value:
    first, start, scale, rise = segments(knots, steps)
    if not len(rise):
        return f * 0.0 + first
    return ((f - start) * scale).at_least(0.0).at_most(1.0) @ rise[:, None] + first


def segments(knots: Array, steps: Array) -> tuple[float, Array, Array, Array]:
    """A piecewise linear function as its first value and rises: where each begins, 1 / its length, and its height."""
    x, p = _floats(knots), _floats(steps)
    rise = np.diff(p)
    some = rise != 0
    length = np.maximum(np.diff(x)[some], 1e-30)
    return float(p[0]), x[:-1][some], 1 / length, rise[some]


def _floats(x: Any) -> Array:
    return np.asarray(x, dtype=float)
