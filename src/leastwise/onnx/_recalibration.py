"""Probabilities calibrated once more: the maps of :mod:`leastwise.calibration.families` as nodes.

Entries are tensors of shape (n, labels, classes), as in :mod:`leastwise.onnx._calibrators`; a model without labels
has one of them. What belongs to a task or label is looked up for each row or stands there for each label.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leastwise.calibration.families import Linear, OneVersusRest, Steps, Unchanged
from leastwise.estimators._recalibrated_rows import Layout
from leastwise.onnx._calibrators import believed, climb, clip, reassembled, segments
from leastwise.onnx._graph import Graph, Value
from leastwise.onnx._models import Said

Array = np.ndarray


@dataclass(frozen=True)
class Entries:
    """Probabilities (n x L x c) with class shares (L x c), trust (n x 1 x 1), and the tasks that have own maps."""

    P: Value
    shares: Array
    trust: Value | None
    task: Value | None

    @property
    def n_labels(self) -> int:
        """L."""
        return len(self.shares)


def recalibrate(g: Graph, model: Any, said: Said) -> Said:
    """The probabilities of a model after the maps of ``Recalibrated``."""
    layout: Layout = model.layout_
    task = said.task if layout.n_tasks else None
    trust = None if said.trust is None else said.trust.widened(2)
    blocks, parts = [], []
    for columns, found in zip(layout.columns, model.calibrators_, strict=True):
        blocks.append(columns)
        parts.append(_mapped(g, found, Entries(said.P.take(columns), layout.shares[columns], trust, task)))
    seen = np.concatenate([columns.ravel() for columns in blocks])
    rest = np.setdiff1d(np.arange(len(layout.shares)), seen)
    if len(rest):  # labels of a single class stay as they are
        blocks.append(rest[:, None])
        parts.append(said.P.take(rest[:, None]))
    P = reassembled(g, blocks, parts)
    return replace(said, P=P if said.strange is None else g.where(said.strange, said.P, P))


def _mapped(g: Graph, found: Any, given: Entries) -> Value:
    if isinstance(found, Unchanged):
        return given.P
    if isinstance(found, Linear):
        return _linear(g, found, given)
    if isinstance(found, Steps):
        return _stepped(g, found, given)
    if isinstance(found, OneVersusRest):
        parts = [_mapped(g, part, _one_class(g, given, k)).take([1], axis=2) for k, part in enumerate(found.parts)]
        Q = g.beside(parts, axis=2)
        return Q / Q.sum(2)
    raise TypeError(f"A map of type {type(found).__name__} has no form in ONNX.")


def _one_class(g: Graph, given: Entries, k: int) -> Entries:
    p, s = given.P.take([k], axis=2), given.shares[:, [k]]
    return replace(given, P=g.beside([1.0 - p, p], axis=2), shares=np.hstack([1 - s, s]))


def _linear(g: Graph, found: Linear, given: Entries) -> Value:
    base, floor = np.log(given.shares), float(found.floor)
    E = g.log(given.P * (1 - floor) + floor * given.shares) - base
    W, b = np.swapaxes(found.W, 1, 2), found.b
    if len(W) == 1:
        moved, shift = E @ W[-1], g.value(b[-1])
    elif given.task is not None:
        moved = E @ g.value(W).take(given.task, axis=0)
        shift = g.value(b).take(given.task, axis=0).widened(1)
    else:
        moved = (E.widened(2) @ W[: given.n_labels]).squeezed(2)
        shift = g.value(b[: given.n_labels])
    shift = shift if given.trust is None else shift * given.trust
    P = g.node("Softmax", moved + base + shift, axis=-1)
    return P * (1 - floor) + floor * given.shares


def _stepped(g: Graph, found: Steps, given: Entries) -> Value:
    L, c = given.shares.shape
    flat = given.P.reshape(0, L * c)
    common = climb(g, flat, list(found.corners[-1]) * L).reshape(0, L, c)
    P = common
    if len(found.own) > 1 and given.task is not None:
        own = g.value(np.append(found.own[:-1], 0.0)[:, None, None]).take(given.task, axis=0)
        P = common + (_climb_by_task(g, given, found.corners) - common) * own
    elif len(found.own) > 1:
        each = climb(g, flat, [xy for corners in found.corners[:L] for xy in corners]).reshape(0, L, c)
        P = common + (each - common) * found.own[:L, None]
    return believed(g, clip(g, P, given.shares), given.trust, given.shares, found.floor)


def _climb_by_task(g: Graph, given: Entries, corners: Any) -> Value:
    """Each row on the stairs of its task: the segments of all tasks in one table, filled up with flat ones."""
    stairs = [[segments(*xy) for xy in each] for each in corners]
    width = max([1] + [len(s[3]) for each in stairs for s in each])
    first, table = np.zeros((len(stairs), len(stairs[0]))), np.zeros((3, len(stairs), len(stairs[0]), width))
    for t, each in enumerate(stairs):
        for k, (low, *parts) in enumerate(each):
            first[t, k], table[:, t, k, : len(parts[0])] = low, parts
    start, scale, rise = (g.value(part).take(given.task, axis=0) for part in table)
    p = given.P.reshape(0, given.shares.shape[1], 1)
    climbed = (((p - start) * scale).at_least(0.0).at_most(1.0) * rise).sum(2, keep=False)
    return (climbed + g.value(first).take(given.task, axis=0)).widened(1)
