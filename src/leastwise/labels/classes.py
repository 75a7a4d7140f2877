"""Which classes a label has: those of its known values, and both of an indicator."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from leastwise.labels.reading import Table

Array = np.ndarray

#: Whole numbers up to here are exact as floats.
EXACT = 2.0**53
#: A column with more classes than this, in more than half of its rows, is taken for a quantity or an id.
MANY = 50
ALLOWED = "classes must be whole numbers, strings, or False and True. Turn other things into strings."


def classify(values: Array, where: str) -> tuple[Array, Array]:
    """The sorted classes of a column, and the code of each of its values.

    Whole numbers keep their type; those that are floats are ``int64``, since floats are most often whole numbers
    among which some are not known.
    """
    if values.dtype.kind == "O":
        values = _typed(values.tolist(), where)
    if values.dtype.kind == "f":
        values = _whole(values.astype(np.float64), where)
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {where} is of type {values.dtype}.")
    if values.dtype.kind not in "biuUSO":
        raise ValueError(f"{where} is of type {values.dtype}; {ALLOWED}")
    if values.dtype.kind in "biu" and ((values == 0) | (values == 1)).all():  # no need to sort
        seen = np.array([0, 1]).astype(values.dtype)[[bool((values == 0).any()), bool((values == 1).any())]]
        return seen, values.astype(np.intp) - int(len(seen) == 1 and seen[0] == 1)
    return np.unique(values, return_inverse=True)


def _typed(values: list, where: str) -> Array:
    """Objects as an array of what they are."""
    text = sum(isinstance(v, str) for v in values)
    strange = next((v for v in values if not isinstance(v, str | Real | np.bool_)), None)
    if strange is not None:
        hint = " (sklearn.preprocessing.MultiLabelBinarizer makes a table of lists of labels.)"
        hint = hint if isinstance(strange, list | tuple | set | frozenset | np.ndarray) else ""
        raise ValueError(f"{where} holds {strange!r:.40} of type {type(strange).__name__}; {ALLOWED}{hint}")
    if 0 < text < len(values):
        word = next(v for v in values if isinstance(v, str))
        number = next(v for v in values if not isinstance(v, str))
        raise ValueError(f"{where} holds strings and numbers, {word!r} and {number!r}: give it one of the two.")
    if text:
        return np.array(values, dtype=object)
    if all(isinstance(v, bool | np.bool_) for v in values):
        return np.array(values, dtype=bool)
    try:
        return np.array(values, dtype=np.int64 if all(isinstance(v, Integral) for v in values) else np.float64)
    except OverflowError:
        raise ValueError(f"{where} holds whole numbers of more than 64 bits: turn them into strings.") from None


def _whole(values: Array, where: str) -> Array:
    wrong = (values != np.floor(values)) | (np.abs(values) > EXACT)
    if wrong.any():
        raise ValueError(
            f"{where} holds {values[wrong][0]:.6g}, as continuous values do; {ALLOWED} Probabilities become labels "
            "by Y > 0.5, quantities need a regressor; an unknown label is NaN."
        )
    return values.astype(np.int64)


# ----------------------------------------------------------------- all labels


def check_seen(seen: list[Array], table: Table, missing: Any, known: list[int], n: int) -> None:
    """Refuse classes that are no labels, or from which nothing can be learned; ``known`` are so many of n rows."""
    _check_known(seen, table, missing)
    _check_signs(seen, table)
    _check_blanks(seen, table)
    _check_number(seen, table, known, n)


def _check_known(seen: list[Array], table: Table, missing: Any) -> None:
    """Something is known of every label, and not only what is left beside ``missing``."""
    empty = [table.names[t] for t, classes in enumerate(seen) if len(classes) == 0]
    if empty:
        raise ValueError(
            f"Y has no known value in the columns {empty[:10]} (of {len(seen)}): leave these labels out. "
            f"(NaN, None, NA and missing={missing!r} are not known.)"
        )
    left = set().union(*(classes.tolist() for classes in seen))
    other = 1 - float(missing) if isinstance(missing, Real | np.bool_) else None
    if other in (0, 1) and left == {other}:
        raise ValueError(
            f"missing={missing!r} leaves {other:.0f} as the only class of all labels, and there is nothing to tell "
            "it from. Leave missing=NaN if Y holds 0 and 1, and give NaN or -1 for labels that are not known."
        )


def _check_signs(seen: list[Array], table: Table) -> None:
    """-1 beside 0 and 1 is most often a label that is not known."""
    held = [set() if classes.dtype.kind == "b" else set(classes.tolist()) for classes in seen]
    signs = {-1, 0, 1}
    nothing_else = set().union(*held) == signs
    suspects = [t for t, some in enumerate(held) if some >= signs or (-1 in some and nothing_else)]
    if suspects:
        raise ValueError(
            f"{table.where(suspects[0])} holds -1, and Y holds 0 and 1 too: give missing=-1 if -1 means that a "
            "label is not known (or missing=0 if 0 does). If these are three classes name them otherwise, with "
            "strings for instance."
        )


def _check_blanks(seen: list[Array], table: Table) -> None:
    """An empty cell beside words is most often a label that is not known."""
    blank = [
        t for t, classes in enumerate(seen) if any(isinstance(v, str) and not v.strip() for v in classes.tolist())
    ]
    if blank:
        raise ValueError(
            f"{table.where(blank[0])} holds an empty string beside other classes: give missing='' if that means that "
            "a label is not known. If it is a class, give it a name."
        )


def _check_number(seen: list[Array], table: Table, known: list[int], n: int) -> None:
    """Neither a class for every row, nor very many."""
    for t, (classes, rows) in enumerate(zip(seen, known, strict=True)):
        count = len(classes)
        if not (count == n > 2 or (count > MANY and 2 * count > rows)):
            continue
        raise ValueError(
            f"{table.where(t)} holds {count} classes in {rows} rows, like a quantity or an id: a label needs "
            "classes that come more than once. Leave the column out, or put its values into a few classes."
        )


def complete(seen: list[Array]) -> list[Array]:
    """The classes of every label: of an indicator both of its values, even if one was not seen."""
    held = set().union(*(classes.tolist() for classes in seen if classes.dtype.kind != "b"))
    pair = [0, 1] if held <= {0, 1} else [-1, 1] if held == {-1, 1} else None
    full = []
    for classes in seen:
        if classes.dtype.kind == "b":
            classes = np.array([False, True])
        elif pair is not None and not (classes.dtype.kind == "u" and pair[0] < 0):
            classes = np.array(pair, dtype=classes.dtype)
        full.append(classes)
    return full
