"""Predictions of a table model, as arrays and as columns of a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.sources.formats.cells import object_column
from leastwise.tables.table import Array, text_of
from leastwise.utils.unwrap import arrive


@dataclass(frozen=True)
class Predictions:
    """Predictions of all rows.

    Attributes
    ----------
    prediction : ndarray of shape (n,) or (n, T)
        Numbers, class codes, or 0 and 1 for labels.
    proba : ndarray of shape (n, c) or (n, T), optional
        Class probabilities, or the probability of each label.
    decided : ndarray of bool of the shape of ``prediction``, optional
        True where the model decides.
    inside : ndarray of bool of shape (n, c) or (n, T, 2), optional
        Prediction sets.
    intervals : ndarray of shape (n, 2), optional
        Prediction intervals.
    in_domain : ndarray of shape (n,), optional
    tasks : ndarray of shape (n,), optional
    notes : tuple of str
    """

    prediction: Array
    proba: Array | None = None
    decided: Array | None = None
    inside: Array | None = None
    intervals: Array | None = None
    in_domain: Array | None = None
    tasks: Array | None = None
    notes: tuple[str, ...] = ()

    def columns(self, model: Any) -> dict[str, Array]:
        """Columns of a table."""
        if model.kind_ == "numbers":
            ends = self.intervals
            limits = {} if ends is None else {"lower": ends[:, 0], "upper": ends[:, 1]}
            return {"prediction": self.prediction, **limits}
        columns = (
            self._label_columns(list(model.labels))
            if model.kind_ == "labels"
            else self._class_columns(model.classes_)
        )
        return columns if self.in_domain is None else {**columns, "in_domain": self.in_domain}

    def _class_columns(self, classes: Array) -> dict[str, Array]:
        assert self.proba is not None
        names = np.array([text_of(c) for c in classes], dtype=object)
        values = classes if classes.dtype.kind in "iub" else names
        columns = {"prediction": values[self.prediction]}
        columns |= {f"p_{name}": self.proba[:, k] for k, name in enumerate(names)}
        columns["confidence"] = self.proba[np.arange(len(self.proba)), self.prediction]
        if self.decided is not None:
            columns["decision"] = _decisions(self.decided, names[self.prediction])
        if self.inside is not None:
            columns["set"] = _set_texts(self.inside, names)
        return columns

    def _label_columns(self, labels: list[str]) -> dict[str, Array]:
        assert self.proba is not None
        columns: dict[str, Array] = {}
        digits = np.array(["0", "1"], dtype=object)
        for t, name in enumerate(labels):
            columns |= {name: self.prediction[:, t], f"p_{name}": self.proba[:, t]}
            if self.decided is not None:
                columns[f"decision_{name}"] = _decisions(self.decided[:, t], digits[self.prediction[:, t]])
            if self.inside is not None:
                columns[f"set_{name}"] = _set_texts(self.inside[:, t], digits)
        return columns


def _decisions(decided: Array, names: Array) -> Array:
    """Names, None where undecided."""
    out = names.copy()
    out[~decided] = None
    return out


def _set_texts(inside: Array, names: Array) -> Array:
    """Sets as text, separated by bars."""
    return object_column(["|".join(names[row].tolist()) for row in inside])


def predict_classes(model: Any, X: Array, params: dict[str, Any]) -> Predictions:
    """Probabilities, decisions, sets and domain weight of rows."""
    P = np.asarray(model.model_.predict_proba(X, **params), dtype=float)
    decided = None if model.decider_ is None else model.decider_.accepts(X, **params)
    return Predictions(P.argmax(axis=1), P, decided, _sets(model, X, params), in_domain=_in_domain(model, X, params))


def predict_labels(model: Any, X: Array, params: dict[str, Any]) -> Predictions:
    """Probabilities, decisions, sets and domain weight of rows with several labels."""
    P = np.asarray(model.model_.predict_proba(X), dtype=float)
    decided = None if model.decider_ is None else model.decider_.accepts(X)
    codes = (np.broadcast_to(model._predictor.threshold_, P.shape) < P).astype(int)
    return Predictions(codes, P, decided, _sets(model, X, params), in_domain=_in_domain(model, X, params))


def predict_numbers(model: Any, X: Array, params: dict[str, Any]) -> Predictions:
    """Numbers with prediction intervals."""
    values = np.asarray(model.model_.predict(X, **params), dtype=float)
    inner, rows = arrive(model.model_, X)
    if not hasattr(inner, "predict_interval"):
        return Predictions(values)
    ends = inner.predict_interval(rows, coverage=model.coverage, **params).astype(float)
    return Predictions(values, intervals=ends)


def _sets(model: Any, X: Array, params: dict[str, Any]) -> Array | None:
    """Prediction sets, if the model has them."""
    inner, rows = arrive(model.model_, X)
    if not hasattr(inner, "predict_set") or not hasattr(inner, "heldout_rows_"):
        return None
    return inner.predict_set(rows, coverage=model.coverage, **params)


def _in_domain(model: Any, X: Array, params: dict[str, Any]) -> Array | None:
    """How close the rows are to the training rows, if the model has it."""
    inner, rows = arrive(model.model_, X, through=True)
    return np.asarray(inner.in_domain(rows, **params), dtype=float) if hasattr(inner, "in_domain") else None
