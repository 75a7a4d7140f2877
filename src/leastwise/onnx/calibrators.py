"""Calibrators of classes and of labels, changes of the class prior, and recalibration.

The classes are the last axis. Labels are processed in blocks of those with the same number of classes, as tensors of
shape (n, labels, classes), so that one set of formulas serves all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leastwise.calibration import maps
from leastwise.calibration.blend import Blend
from leastwise.calibration.calibrators import ClipNormalise, Isotonic, Signed
from leastwise.calibration.label_blend import by_width
from leastwise.calibration.label_calibrators import LabelBlend, LabelClip, LabelIsotonic
from leastwise.calibration.prior import Shift
from leastwise.onnx.graph import Graph, Value
from leastwise.onnx.registry import calibrators, label_calibrators, recalibration_maps
from leastwise.solvers.newton import Softmax

Array = np.ndarray


# ---------------------------------------------------------------------- formulas


def clip(g: Graph, F: Value, shares: Array) -> Value:
    """Set negative scores to zero and divide by the sum; the class shares where all are zero."""
    P = F.maximum(0.0)
    total = P.sum(-1)
    positive = total > 0.0
    return g.where(positive, P / g.where(positive, total, 1.0), shares)


def blend(
    g: Graph,
    F: Value,
    in_domain: Value | None,
    shares: Array,
    delta: Any,
    floor: Any,
    sharpness: Any,
    power: Any,
) -> Value:
    """The log-linear family of :class:`~leastwise.calibration.calibrators.Blend`."""
    logits = F * np.broadcast_to(_floats(sharpness), shares.shape)
    if np.any(power):
        log_scores = g.log(F.maximum(0.0) * (1 / shares) + _floats(delta))
        logits = logits + log_scores * _floats(power)
    logits = logits if in_domain is None else logits * in_domain
    P = g.node("Softmax", logits + np.log(shares), axis=-1)
    return P * _floats(1 - np.asarray(floor)) + floor * shares


def mix_with_shares(g: Graph, P: Value, in_domain: Value | None, shares: Array, floor: Any) -> Value:
    """``w P + (1 - w) shares`` with ``w = in_domain (1 - floor)``."""
    if in_domain is None:
        return P * _floats(1 - np.asarray(floor)) + floor * shares
    weight = in_domain * _floats(1 - np.asarray(floor))
    return weight * P + (1.0 - weight) * shares


def interpolate(g: Graph, F: Value, corners: list[tuple[Array, Array]]) -> Value:
    """A piecewise linear function of each column of F (n x m), constant beyond the outermost corners."""
    return g.concat([_interpolate(F.take(np.array([k])), *xy) for k, xy in enumerate(corners)])


def _interpolate(f: Value, knots: Array, steps: Array) -> Value:
    first, start, scale, rise = segments(knots, steps)
    if not len(rise):
        return f * 0.0 + first
    return ((f - start) * scale).maximum(0.0).minimum(1.0) @ rise[:, None] + first


def segments(knots: Array, steps: Array) -> tuple[float, Array, Array, Array]:
    """A piecewise linear function as its first value, and start, 1 / length and height of each rise."""
    x, p = _floats(knots), _floats(steps)
    rise = np.diff(p)
    some = rise != 0
    length = np.maximum(np.diff(x)[some], 1e-30)
    return float(p[0]), x[:-1][some], 1 / length, rise[some]


def join_label_blocks(g: Graph, blocks: list[Array], parts: list[Value]) -> Value:
    """Blocks of labels, each of shape (n, L, c), as one table with the columns in their original order."""
    order = np.concatenate([columns.ravel() for columns in blocks])
    table = g.concat([part.reshape(0, columns.size) for columns, part in zip(blocks, parts, strict=True)])
    return table if np.array_equal(order, np.arange(len(order))) else table.take(np.argsort(order))


def _floats(x: Any) -> Array:
    return np.asarray(x, dtype=float)


# ------------------------------------------------------------------------ classes


@calibrators.register(ClipNormalise)
def _clip_normalise(g: Graph, calibrator: ClipNormalise, F: Value, in_domain: Value | None) -> Value:
    return clip(g, F, _floats(calibrator.shares))


@calibrators.register(Blend)
def _blend(g: Graph, calibrator: Blend, F: Value, in_domain: Value | None) -> Value:
    c = calibrator
    return blend(g, F, in_domain, _floats(c.shares), c.delta, c.floor, c.sharpness, c.power)


@calibrators.register(Isotonic)
def _isotonic(g: Graph, calibrator: Isotonic, F: Value, in_domain: Value | None) -> Value:
    corners = list(zip(calibrator.knots, calibrator.steps, strict=True))
    shares = _floats(calibrator.shares)
    return mix_with_shares(g, clip(g, interpolate(g, F, corners), shares), in_domain, shares, calibrator.floor)


@calibrators.register(Signed)
def _signed(g: Graph, calibrator: Signed, F: Value, in_domain: Value | None) -> Value:
    inner: Any = calibrator.inner
    return calibrators.find(inner).convert(g, inner, (F + 1.0) * 0.5, in_domain)


@calibrators.register(Softmax)
def _softmax(g: Graph, calibrator: Softmax, F: Value, in_domain: Value | None) -> Value:
    """Scores are log-probabilities; with low domain weight they move to those of the class shares."""
    if in_domain is not None and calibrator.shares is not None:
        F = F * in_domain + (1.0 - in_domain) * np.log(_floats(calibrator.shares))
    return g.node("Softmax", F, axis=-1)


# ------------------------------------------------------------------------- labels


def label_probabilities(g: Graph, calibrator: Any, F: Value, in_domain: Value | None) -> Value:
    """Probabilities of all classes of all labels side by side, of shape (n, O)."""
    convert = label_calibrators.find(calibrator).convert
    in_domain = None if in_domain is None else in_domain.unsqueeze(2)
    blocks = list(by_width(calibrator.starts))
    parts = [convert(g, calibrator, F, in_domain, labels, columns) for labels, columns in blocks]
    return join_label_blocks(g, [columns for _, columns in blocks], parts)


@label_calibrators.register(LabelClip)
def _label_clip(
    g: Graph, calibrator: LabelClip, F: Value, in_domain: Value | None, labels: Array, columns: Array
) -> Value:
    return clip(g, F.take(columns), _floats(calibrator.shares)[columns])


@label_calibrators.register(LabelBlend)
def _label_blend(
    g: Graph, calibrator: LabelBlend, F: Value, in_domain: Value | None, labels: Array, columns: Array
) -> Value:
    names = ("delta", "floor", "sharpness", "power")
    parameters = [_floats(getattr(calibrator, name))[labels, None] for name in names]
    return blend(g, F.take(columns), in_domain, _floats(calibrator.shares)[columns], *parameters)


@label_calibrators.register(LabelIsotonic)
def _label_isotonic(
    g: Graph, calibrator: LabelIsotonic, F: Value, in_domain: Value | None, labels: Array, columns: Array
) -> Value:
    flat = columns.ravel().tolist()
    ends = [(calibrator.corners[k], calibrator.corners[k + 1]) for k in flat]
    corners = [(calibrator.knots[a:b], calibrator.steps[a:b]) for a, b in ends]
    P = interpolate(g, F.take(columns.ravel()), corners).reshape(0, *columns.shape)
    shares = _floats(calibrator.shares)[columns]
    return mix_with_shares(g, clip(g, P, shares), in_domain, shares, _floats(calibrator.floor)[labels, None])


def shift_prior(g: Graph, shift: Shift, P: Value) -> Value:
    """Probabilities of all classes of all labels under another class prior."""
    blocks = [columns for _, columns in by_width(shift.starts)]
    ratio = shift.new / shift.trained
    return join_label_blocks(g, blocks, [clip(g, P.take(c) * ratio[c], shift.new[c]) for c in blocks])


# ------------------------------------------------------------------ recalibration


@dataclass(frozen=True)
class Entries:
    """Input of a recalibration map; a model without labels has L = 1.

    Attributes
    ----------
    P : Value of shape (n, L, c)
    shares : ndarray of shape (L, c)
    in_domain : Value of shape (n, 1, 1) or None
    task : Value of shape (n,) or None
        Task codes, if maps depend on the task.
    """

    P: Value
    shares: Array
    in_domain: Value | None
    task: Value | None


def recalibrate(g: Graph, model: Any, P: Value, in_domain: Value | None, task: Value | None) -> Value:
    """Probabilities of all classes of all labels after the maps of ``Recalibrated``."""
    layout = model.layout_
    task = task if layout.n_tasks else None
    in_domain = None if in_domain is None else in_domain.unsqueeze(2)
    blocks, parts = [], []
    for columns, found in zip(layout.columns, model.calibrators_, strict=True):
        blocks.append(columns)
        parts.append(_mapped(g, found, Entries(P.take(columns), layout.shares[columns], in_domain, task)))
    seen = np.concatenate([columns.ravel() for columns in blocks])
    rest = np.setdiff1d(np.arange(len(layout.shares)), seen)
    if len(rest):  # labels with a single class are not recalibrated
        blocks.append(rest[:, None])
        parts.append(P.take(rest[:, None]))
    return join_label_blocks(g, blocks, parts)


def _mapped(g: Graph, found: Any, entries: Entries) -> Value:
    return recalibration_maps.find(found).convert(g, found, entries)


@recalibration_maps.register(maps.Unchanged)
def _identity(g: Graph, found: maps.Unchanged, entries: Entries) -> Value:
    return entries.P


@recalibration_maps.register(maps.OneVersusRest)
def _one_versus_rest(g: Graph, found: maps.OneVersusRest, entries: Entries) -> Value:
    parts = []
    for k, part in enumerate(found.parts):
        p, s = entries.P.take([k], axis=2), entries.shares[:, [k]]
        binary = replace(entries, P=g.concat([1.0 - p, p], axis=2), shares=np.hstack([1 - s, s]))
        parts.append(_mapped(g, part, binary).take([1], axis=2))
    Q = g.concat(parts, axis=2)
    return Q / Q.sum(2)


@recalibration_maps.register(maps.Linear)
def _linear(g: Graph, found: maps.Linear, entries: Entries) -> Value:
    E = _log_ratios(g, found.floor, entries)
    W = np.swapaxes(found.W, 1, 2)
    if len(W) == 1:
        logits = E @ W[-1]
    elif entries.task is not None:
        logits = E @ g.value(W).take(entries.task, axis=0)
    else:
        logits = (E.unsqueeze(2) @ W[: len(entries.shares)]).squeeze(2)
    return _softmax_with_floor(g, logits, _own(g, found.b, entries), found.floor, entries)


@recalibration_maps.register(maps.Quadratic)
def _quadratic(g: Graph, found: maps.Quadratic, entries: Entries) -> Value:
    E = _log_ratios(g, found.floor, entries)
    S = (E - E.sum(-1) / float(entries.shares.shape[1])).maximum(-found.max_logit).minimum(found.max_logit)
    tau, D, u, b = (_own(g, table, entries) for table in (found.tau, found.D, found.u, found.b))
    return _softmax_with_floor(g, E * tau + (S * u + D) * S, b, found.floor, entries)


def _log_ratios(g: Graph, floor: float, entries: Entries) -> Value:
    return g.log(entries.P * (1 - float(floor)) + float(floor) * entries.shares) - np.log(entries.shares)


def _own(g: Graph, table: Array, entries: Entries) -> Value:
    """Parameters of shape (G + 1, c): the common ones, or those of each row's task, or of each label."""
    if len(table) == 1:
        return g.value(table[-1])
    if entries.task is not None:
        return g.value(table).take(entries.task, axis=0).unsqueeze(1)
    return g.value(table[: len(entries.shares)])


def _softmax_with_floor(g: Graph, logits: Value, shift: Value, floor: float, entries: Entries) -> Value:
    shift = shift if entries.in_domain is None else shift * entries.in_domain
    P = g.node("Softmax", logits + np.log(entries.shares) + shift, axis=-1)
    return P * (1 - float(floor)) + float(floor) * entries.shares


@recalibration_maps.register(maps.Steps)
def _isotonic_map(g: Graph, found: maps.Steps, entries: Entries) -> Value:
    """The common functions, mixed with those of each task or label by the weights ``own``."""
    L, c = entries.shares.shape
    flat = entries.P.reshape(0, L * c)
    common = interpolate(g, flat, list(found.corners[-1]) * L).reshape(0, L, c)
    P = common
    if len(found.own) > 1 and entries.task is not None:
        own = g.value(np.append(found.own[:-1], 0.0)[:, None, None]).take(entries.task, axis=0)
        P = common + (_interpolate_by_task(g, entries, found.corners) - common) * own
    elif len(found.own) > 1:
        each = interpolate(g, flat, [xy for corners in found.corners[:L] for xy in corners]).reshape(0, L, c)
        P = common + (each - common) * found.own[:L, None]
    return mix_with_shares(g, clip(g, P, entries.shares), entries.in_domain, entries.shares, found.floor)


def _interpolate_by_task(g: Graph, entries: Entries, corners: Any) -> Value:
    """Each row by the function of its task: the segments of all tasks in one table, padded with flat ones."""
    functions = [[segments(*xy) for xy in each] for each in corners]
    width = max([1] + [len(s[3]) for each in functions for s in each])
    shape = len(functions), len(functions[0])
    first, table = np.zeros(shape), np.zeros((3, *shape, width))
    for t, each in enumerate(functions):
        for k, (low, *parts) in enumerate(each):
            first[t, k], table[:, t, k, : len(parts[0])] = low, parts
    start, scale, rise = (g.value(part).take(entries.task, axis=0) for part in table)
    p = entries.P.reshape(0, entries.shares.shape[1], 1)
    climbed = (((p - start) * scale).maximum(0.0).minimum(1.0) * rise).sum(2, keep=False)
    return (climbed + g.value(first).take(entries.task, axis=0)).unsqueeze(1)
