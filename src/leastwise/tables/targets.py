"""What is to be predicted: classes, numbers or labels, by rules that are stated in ``docs/tables.md``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.tables.cells import boolean_or_digit, number, text_cells, values_of
from leastwise.tables.kinds import find_kind
from leastwise.tables.table import Array, Table, TableError

#: Whole numbers are classes if there are at most so many of them,
FEW_CLASSES = 20
#: each in so many rows on average.
ROWS_OF_A_CLASS = 5


@dataclass(frozen=True)
class Target:
    """What is known of the target.

    Attributes
    ----------
    kind : {"classes", "numbers", "labels"}
    y : ndarray of shape (n,) or (n, T)
        Of the rows where it is known. Classes are text, whole numbers or booleans, as they were; labels 0, 1 or NaN.
    known : ndarray of bool
        Which rows of the table these are.
    """

    kind: str
    y: Array
    known: Array


def read_target(table: Table, name: str, kind: str | None) -> Target:
    """The target of training rows, as classes or as numbers."""
    kind = kind or find_target_kind(table, name)
    if kind == "numbers":
        values = values_of(table, name, "number")
        known = ~np.isnan(values)
        return Target("numbers", _some(values[known], name), known)
    texts = text_cells(table[name])
    known = np.array([text is not None for text in texts], dtype=bool)
    numbers = [number(text) for text in texts if text is not None]
    whole = all(v is not None and v.is_integer() and abs(v) < 2**53 for v in numbers)
    if table[name].dtype.kind == "b":
        y = table[name][known]
    elif whole:
        y = np.array(numbers, dtype=float).astype(np.int64)
    else:
        y = np.array([text for text in texts if text is not None])
    return Target("classes", _some(y, name), known)


def _some(y: Array, name: str) -> Array:
    if not len(y):
        raise TableError(f'column "{name}", the target, holds no values.')
    return y


def find_target_kind(table: Table, name: str) -> str:
    """Classes for text, booleans and few whole numbers; numbers for others."""
    found = find_kind(table, name)
    if found.kind in ("boolean", "category"):
        return "classes"
    if found.kind == "number":
        values = values_of(table, name, "number")
        values = values[~np.isnan(values)]
        different = len(np.unique(values))
        few = different <= FEW_CLASSES and len(values) >= ROWS_OF_A_CLASS * different
        return "classes" if few and (values == np.round(values)).all() else "numbers"
    if found.note == "no values":
        raise TableError(f'column "{name}", the target, holds no values.')
    why = "it holds dates" if found.kind == "date" else found.note
    raise TableError(
        f'column "{name}" cannot be the target as it is ({why}). Say kind="classes" or kind="numbers" if it is meant.'
    )


def read_labels(table: Table, names: list[str]) -> Target:
    """0, 1 or NaN for every label of every row; rows where none is known do not count."""
    Y = np.column_stack([values_of(table, name, "boolean") for name in names])
    known = ~np.isnan(Y).all(axis=1)
    if not known.any():
        raise TableError(f"the label columns {names[:10]} hold no values.")
    return Target("labels", Y[known], known)


def known_classes(table: Table, name: str, classes: Array) -> Target:
    """The target of new rows, among classes that are known; letters may be of another case."""
    texts = text_cells(table[name])
    place = _places(classes)
    codes = np.full(len(texts), -1)
    for i, text in enumerate(texts):
        if text is None:
            continue
        code = place.get(_key(text, classes), place.get(text.casefold()))
        if code is None:
            shown = [class_text(c) for c in classes[:10]]
            raise table.error(i, name, f'"{text:.60}" is none of the classes of training, which are {shown}.')
        codes[i] = code
    return Target("classes", codes[codes >= 0], codes >= 0)


def _places(classes: Array) -> dict[Any, int]:
    """Places of the classes by their text, and by their text in small letters where that is clear."""
    exact = {_key(class_text(c), classes): k for k, c in enumerate(classes)}
    folded = [class_text(c).casefold() for c in classes]
    return {f: k for k, f in enumerate(folded) if folded.count(f) == 1} | exact


def _key(text: str, classes: Array) -> Any:
    if classes.dtype.kind in "iu":
        return number(text)
    return boolean_or_digit(text) if classes.dtype.kind == "b" else text


def class_text(value: Any) -> str:
    """A class as it is written in a file."""
    return str(value).lower() if isinstance(value, bool | np.bool_) else str(value)
