"""Support vector machines of several classes, which decide between one pair after the other."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from leastwise.onnx._graph import Graph, Value

Array = np.ndarray


def pair_coefficients(machine: Any) -> Array:
    """Coefficients of the support vectors for every pair of classes (vectors x pairs), from libsvm's own form.

    A vector of class i has its coefficient against class j in row j - 1 of ``dual_coef_`` if j is above i, else in
    row j.
    """
    home = np.repeat(np.arange(len(machine.n_support_)), machine.n_support_)
    pairs = list(combinations(range(len(machine.n_support_)), 2))
    coef = np.zeros((len(home), len(pairs)))
    for p, (i, j) in enumerate(pairs):
        coef[home == i, p] = machine.dual_coef_[j - 1, home == i]
        coef[home == j, p] = machine.dual_coef_[i, home == j]
    return coef


def pair_decisions(g: Graph, F: Value, c: int) -> tuple[Value, Value]:
    """Codes of the classes with most votes, and decision values (n x c), from those of all pairs.

    Decision values are votes, and between them what the pairs add up to, squeezed into less than half a vote.
    """
    pairs = np.array(list(combinations(range(c), 2)))
    first, second = (np.eye(c)[pairs[:, side]] for side in (0, 1))
    lost = (F < 0.0).cast(g.real)
    won = (F > 0.0).cast(g.real)
    vote = won @ first + (1.0 - won) @ second
    votes = (1.0 - lost) @ first + lost @ second
    total = F @ (first - second)
    return vote.argmax(), votes + total / (g.node("Abs", total) * 3.0 + 3.0)
