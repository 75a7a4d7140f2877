"""What was said with which probability, and whether it was so: for rows, tasks, classes and labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.displays._names import class_name
from leastwise.labels.encoding import Labels, encode_known, encode_labels
from leastwise.metrics import checked_probabilities
from leastwise.tasks import encode_tasks

Array = np.ndarray


@dataclass(frozen=True)
class Said:
    """Things that were said with probability p (n,), and whether they were true (n,)."""

    p: Array
    true: Array
    name: str | None = None

    def some(self, rows: Array, name: Any) -> Said:
        """Those of some rows."""
        return Said(self.p[rows], self.true[rows], str(name))


def together(parts: list[Said]) -> Said:
    """All that was said."""
    return Said(np.concatenate([s.p for s in parts]), np.concatenate([s.true for s in parts]))


def is_table(y: Any) -> bool:
    """Whether every row has several labels."""
    return len(getattr(y, "shape", None) or np.shape(y)) == 2


# ------------------------------------------------------------------- classes


def said(y: Any, proba: Any, classes: Any = None, pos_label: Any = None) -> Said:
    """Of every row that its most probable class is the true one; with ``pos_label``, that this class is."""
    y, P, classes = known_rows(y, proba, classes)
    if pos_label is None:
        return Said(P.max(axis=1), classes[P.argmax(axis=1)] == y)
    place = np.flatnonzero(classes == pos_label)
    if not len(place):
        raise ValueError(f"pos_label={pos_label!r} is none of the classes {classes.tolist()}.")
    return Said(P[:, place[0]], y == pos_label)


def known_rows(y: Any, proba: Any, classes: Any) -> tuple[Array, Array, Array]:
    """Labels, probabilities and classes, without rows that have no probability (those that were never held out)."""
    P = np.asarray(proba, dtype=float)
    if P.ndim == 1:  # that of the second class
        P = np.stack([1 - P, P], axis=1)
    y, P, classes = checked_probabilities(y, P, classes)
    there = ~np.isnan(P).any(axis=1)
    if not there.any():
        raise ValueError(f"None of the {len(y)} rows has probabilities: all are NaN, or there are no rows.")
    return y[there], P[there], classes


def by_class(y: Any, proba: Any, classes: Any = None) -> list[Said]:
    """Each class against the rest."""
    y, P, classes = known_rows(y, proba, classes)
    return [Said(P[:, k], y == name, class_name(name)) for k, name in enumerate(classes)]


def by_task(y: Any, proba: Any, tasks: Any, classes: Any = None, pos_label: Any = None) -> list[Said]:
    """The rows of each task."""
    codes, known = encode_tasks(tasks, len(y))
    P = np.asarray(proba, dtype=float)
    codes = codes[~np.isnan(P.reshape(len(P), -1)).any(axis=1)]
    everything = said(y, proba, classes, pos_label)
    parts = [everything.some(codes == t, name) for t, name in enumerate(known.ids)]
    return [part for part in parts if len(part.p)]


# -------------------------------------------------------------------- labels


def by_label(Y: Any, proba: Any, *, top: bool, names: Any = None, model: Any = None) -> list[Said]:
    """What was said of each label, where it is known.

    With ``top`` that the most probable class is the true one; otherwise that the second class is, of labels of two.
    """
    codes, labels = _codes(Y, model)
    names = labels.names if names is None else list(names)
    columns = proba if isinstance(proba, list) else list(np.asarray(proba, dtype=float).T)
    if len(columns) != codes.shape[1] or len(names) != codes.shape[1]:
        raise ValueError(
            f"y has {codes.shape[1]} labels, proba {len(columns)}, and there are {len(names)} names: give one of "
            "each for every label."
        )
    parts = [_of_label(p, codes[:, t], top, names[t]) for t, p in enumerate(columns)]
    return [part for part in parts if len(part.p)]


def _codes(Y: Any, model: Any) -> tuple[Array, Labels]:
    n = Y.shape[0] if hasattr(Y, "shape") else len(Y)
    if model is None:
        return encode_labels(Y, n)
    return encode_known(Y, model.label_index_, n, model.missing), model.label_index_


def _of_label(p: Array, code: Array, top: bool, name: Any) -> Said:
    P = np.stack([1 - p, p], axis=1) if p.ndim == 1 else p
    there = (code >= 0) & ~np.isnan(P).any(axis=1)
    P, code = P[there], code[there]
    if top or P.shape[1] > 2:
        return Said(P.max(axis=1), P.argmax(axis=1) == code, str(name))
    return Said(P[:, 1], code == 1, str(name))
