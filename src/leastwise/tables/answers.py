"""What a model says of new rows, as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.tables.table import Array
from leastwise.tables.targets import class_text
from leastwise.utils.unwrap import arrive


@dataclass(frozen=True)
class Answer:
    """Predictions of all rows.

    Attributes
    ----------
    prediction : ndarray of shape (n,) or (n, T)
        Numbers, or codes of classes, or 0 and 1 for labels.
    proba : ndarray of shape (n, c) or (n, T), optional
        Probabilities of the classes, or of each label.
    decided : ndarray of bool of the shape of ``prediction``, optional
    inside : ndarray of bool of shape (n, c) or (n, T, 2), optional
        Sets of classes.
    ends : ndarray of shape (n, 2), optional
        Intervals of numbers.
    trust : ndarray of shape (n,), optional
    tasks : ndarray of shape (n,), optional
    notes : tuple of str
    """

    prediction: Array
    proba: Array | None = None
    decided: Array | None = None
    inside: Array | None = None
    ends: Array | None = None
    trust: Array | None = None
    tasks: Array | None = None
    notes: tuple[str, ...] = ()

    def columns(self, model: Any) -> dict[str, Array]:
        """Columns of a table."""
        if model.kind_ == "numbers":
            ends = {} if self.ends is None else {"lower": self.ends[:, 0], "upper": self.ends[:, 1]}
            return {"prediction": self.prediction, **ends}
        said = (
            self._label_columns(list(model.labels))
            if model.kind_ == "labels"
            else self._class_columns(model.classes_)
        )
        return said if self.trust is None else {**said, "trust": self.trust}

    def _class_columns(self, classes: Array) -> dict[str, Array]:
        assert self.proba is not None
        names = np.array([class_text(c) for c in classes], dtype=object)
        given = classes if classes.dtype.kind in "iub" else names
        said = {"prediction": given[self.prediction]}
        said |= {f"p_{name}": self.proba[:, k] for k, name in enumerate(names)}
        said["confidence"] = self.proba[np.arange(len(self.proba)), self.prediction]
        if self.decided is not None:
            said["decision"] = _where(self.decided, names[self.prediction])
        if self.inside is not None:
            said["set"] = _joined(self.inside, names)
        return said

    def _label_columns(self, labels: list[str]) -> dict[str, Array]:
        assert self.proba is not None
        said: dict[str, Array] = {}
        digits = np.array(["0", "1"], dtype=object)
        for t, name in enumerate(labels):
            said |= {name: self.prediction[:, t], f"p_{name}": self.proba[:, t]}
            if self.decided is not None:
                said[f"decision_{name}"] = _where(self.decided[:, t], digits[self.prediction[:, t]])
            if self.inside is not None:
                said[f"set_{name}"] = _joined(self.inside[:, t], digits)
        return said


def _where(decided: Array, names: Array) -> Array:
    """Names, and nothing where nothing is decided."""
    out = names.copy()
    out[~decided] = None
    return out


def _joined(inside: Array, names: Array) -> Array:
    """Sets as text, with a bar between."""
    out = np.empty(len(inside), dtype=object)
    out[:] = ["|".join(names[row].tolist()) for row in inside]
    return out


def answer_classes(model: Any, X: Array, params: dict[str, Any]) -> Answer:
    """Probabilities, decisions, sets and trust of rows."""
    P = np.asarray(model.model_.predict_proba(X, **params), dtype=float)
    decided = None if model.decider_ is None else model.decider_.accepts(X, **params)
    return Answer(P.argmax(axis=1), P, decided, _sets(model, X, params), trust=_trust(model, X, params))


def answer_labels(model: Any, X: Array, params: dict[str, Any]) -> Answer:
    """Probabilities, decisions, sets and trust of rows with many labels."""
    P = np.asarray(model.model_.predict_proba(X), dtype=float)
    decided = None if model.decider_ is None else model.decider_.accepts(X)
    codes = (np.broadcast_to(model._spoken.threshold_, P.shape) < P).astype(int)
    return Answer(codes, P, decided, _sets(model, X, params), trust=_trust(model, X, params))


def answer_numbers(model: Any, X: Array, params: dict[str, Any]) -> Answer:
    """Numbers with intervals."""
    values = np.asarray(model.model_.predict(X, **params), dtype=float)
    inner, rows = arrive(model.model_, X)
    if not hasattr(inner, "predict_interval"):
        return Answer(values)
    return Answer(values, ends=inner.predict_interval(rows, coverage=model.coverage, **params).astype(float))


def _sets(model: Any, X: Array, params: dict[str, Any]) -> Array | None:
    """Sets of classes, where the model has them."""
    inner, rows = arrive(model.model_, X)
    if not hasattr(inner, "predict_set") or not hasattr(inner, "heldout_rows_"):
        return None
    return inner.predict_set(rows, coverage=model.coverage, **params)


def _trust(model: Any, X: Array, params: dict[str, Any]) -> Array | None:
    """How near the training rows the rows are, where the model knows."""
    inner, rows = arrive(model.model_, X, through=True)
    return np.asarray(inner.trust(rows, **params), dtype=float) if hasattr(inner, "trust") else None
