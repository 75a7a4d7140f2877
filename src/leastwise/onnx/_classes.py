"""Classes out of codes: text, whole numbers, or what else numbers can be."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.onnx._graph import Graph, Value

Array = np.ndarray


def plain_classes(classes: Any) -> Array:
    """Classes as an array of text, int64, float64 or bool; others have no type in ONNX."""
    array = np.asarray(classes)
    if array.dtype.kind == "O":
        listed = array.ravel().tolist()
        if all(isinstance(c, str) for c in listed):
            return array
        if not all(isinstance(c, bool | int | float | np.number | np.bool_) for c in listed):
            strange = next(c for c in listed if not isinstance(c, str))
            raise TypeError(
                f"Classes of type {type(strange).__name__}, such as {strange!r}, have no type in ONNX: fit with text "
                "or numbers."
            )
        array = np.array(listed).reshape(array.shape)
    kinds = {"U": object, "i": np.int64, "u": np.int64, "f": np.float64, "b": np.bool_}
    if array.dtype.kind not in kinds:
        raise TypeError(f"Classes of type {array.dtype} have no type in ONNX: fit with text or numbers.")
    return array.astype(kinds[array.dtype.kind])


def named(g: Graph, codes: Value, classes: Array) -> Value:
    """Classes of codes, in the type of ``output_type``; bool stays 0 and 1 until it goes out."""
    return g.node("Gather", _table(g, classes), codes)


def chosen(g: Graph, condition: Value, yes: Array, no: Array) -> Value:
    """One class or the other."""
    return g.where(condition, _table(g, yes), _table(g, no))


def _table(g: Graph, classes: Array) -> Any:
    if classes.dtype.kind == "f":
        return exact(g, classes)
    return classes.astype(np.int64) if classes.dtype.kind == "b" else classes


def exact(g: Graph, numbers: Array) -> Value:
    """A constant in double precision, whatever the graph has within."""
    real, g.real = g.real, np.dtype(np.float64)
    try:
        return g.constant(np.asarray(numbers, dtype=np.float64))
    finally:
        g.real = real


def put_out(g: Graph, name: str, value: Value, classes: Array, shape: tuple = ()) -> None:
    """An output of classes."""
    if classes.dtype.kind == "b":
        value = value.cast(np.bool_)
    g.output(name, value, classes.dtype, shape)
