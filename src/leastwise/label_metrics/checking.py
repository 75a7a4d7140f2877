"""What metrics of many labels may be given, and what is wrong with the rest."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.label_metrics.tables import Table, read

Array = np.ndarray


def check_average(average: Any, known: tuple) -> None:
    """One of those that a metric has."""
    if average not in known:
        raise ValueError(f"average={average!r} is not known: use one of {known}.")


def indicators(Y_true: Any, sample_weight: Any, missing: Any) -> tuple[Table, Array, Array]:
    """Labels that are 0 or 1: the table, what is there, and the weights of the entries, 0 where not known."""
    truth = read(Y_true, "Y_true", missing)
    strange = _beyond(truth, (0, 1))
    if strange is not None:
        allowed = "its values must be 0 or 1, or NaN where a label is not known."
        raise ValueError(f"Y_true holds {strange!r}: {allowed} {_hint(strange)}")
    return truth, (truth.values == 1) & truth.known, entry_weights(sample_weight, truth)


def _hint(strange: Any) -> str:
    if strange == -1:
        return "Give missing=-1 if -1 means that a label is not known, Y_true == 1 if it is the other class."
    return "Only hamming and subset_accuracy take other classes."


def classes(Y_true: Any, sample_weight: Any, missing: Any) -> tuple[Table, Array]:
    """Labels of any classes, and the weights of the entries."""
    truth = read(Y_true, "Y_true", missing)
    _check_whole(truth, truth.known, "classes must be whole numbers or strings, or NaN where a label is not known.")
    return truth, entry_weights(sample_weight, truth)


def entry_weights(sample_weight: Any, truth: Table) -> Array:
    """A weight for every entry, 0 where it is not known; some have to be above that."""
    shape = truth.values.shape
    if not truth.known.any():
        raise ValueError(f"{truth.name} of shape {shape} has no value that is known.")
    if sample_weight is None:
        return truth.known.astype(float)
    named = hasattr(sample_weight, "columns")
    w = np.asarray(read(sample_weight, "sample_weight").beside(truth).values if named else sample_weight, dtype=float)
    if w.shape not in (shape, shape[:1]) or not np.isfinite(w).all() or (w < 0).any():
        raise ValueError(
            f"sample_weight of shape {w.shape} must hold finite numbers, none of them negative: one for each of the "
            f"{shape[0]} rows, or a table of shape {shape}."
        )
    W = np.where(truth.known, w.reshape(len(w), -1), 0)
    if not W.any():
        raise ValueError("sample_weight is 0 wherever a label is known, which leaves nothing to measure.")
    return W


# ------------------------------------------------------------ what is judged


def decided(Y_pred: Any, truth: Table) -> Array:
    """Decisions that are 0 or 1, of bool."""
    given = _complete(read(Y_pred, "Y_pred").beside(truth), truth)
    strange = _beyond(given, (0, 1))
    if strange is not None:
        raise ValueError(f"Y_pred holds {strange!r}: decisions must be 0 or 1; for probabilities give P >= 0.5.")
    return given.values == 1


def right(Y_pred: Any, truth: Table, missing: Any) -> Array:
    """Where decisions for any classes are what is true, of bool; whatever where that is not known."""
    given = _complete(read(Y_pred, "Y_pred", missing).beside(truth), truth)
    _check_whole(given, given.known, "decisions must be classes; for probabilities give P >= 0.5.")
    _check_signs(truth, given)
    if truth.number and given.number:
        return truth.values == given.values
    _check_kinds(truth, given)
    return truth.values.astype(object) == given.values.astype(object)


def scores(P: Any, truth: Table) -> Array:
    """Any numbers, 0 where the truth is not known."""
    given = _complete(read(P, "P").beside(truth), truth)
    if not given.number:
        raise ValueError("P holds strings: give the probabilities that the labels are 1, one column a label.")
    return np.where(truth.known, given.values, 0).astype(float)


def probabilities(P: Any, truth: Table) -> Array:
    """Numbers from 0 to 1."""
    table = scores(P, truth)
    if not ((table >= 0) & (table <= 1)).all():
        raise ValueError("P has values that are not from 0 to 1: give the probabilities that the labels are 1.")
    return table


def _complete(given: Table, truth: Table) -> Table:
    """Nothing may be missing where there is something to compare with."""
    gone = truth.known & ~given.known
    if gone.any():
        rows = int(gone.any(axis=1).sum())
        raise ValueError(
            f"{given.name} has missing values in {rows} rows in which {truth.name} has labels: only {truth.name} may "
            "have labels that are not known. Leave out rows that were never predicted."
        )
    return given


def _beyond(table: Table, allowed: tuple) -> Any:
    """The first known value that is none of these; None if there is none."""
    strange = table.known & ~np.logical_or.reduce([table.values == value for value in allowed])
    return table.values[strange].tolist()[0] if strange.any() else None


def _check_whole(table: Table, known: Array, advice: str) -> None:
    told = table.values[known]
    if told.dtype.kind == "O":
        told = np.array([v for v in told.tolist() if not isinstance(v, str)], dtype=float)
    broken = told[(told != np.floor(told)) | np.isinf(told)] if told.dtype.kind == "f" else []
    if len(broken):
        raise ValueError(f"{table.name} holds {broken[0]:.6g}: {advice}")


def _check_signs(truth: Table, given: Table) -> None:
    """-1 beside 0 and 1 is most often a label that is not known, the more so where nobody decided for it."""
    minus = _holds(truth, -1)
    if not minus.any():
        return
    zero, one = (_holds(truth, value) | _holds(given, value) for value in (0, 1))
    nothing_else = one.any() and all(_beyond(table, (-1, 0, 1)) is None for table in (truth, given))
    suspects = minus & ((zero & one) | (zero.any() and (nothing_else or not _holds(given, -1).any())))
    if suspects.any():
        raise ValueError(
            f"{truth.where(int(suspects.argmax()))} holds -1 beside 0 and 1: give missing=-1 if -1 means that a "
            "label is not known. If these are three classes name them otherwise, with strings for instance."
        )


def _holds(table: Table, value: int) -> Array:
    """Which labels have a value."""
    return ((table.values == value) & table.known).any(axis=0)


def _check_kinds(truth: Table, given: Table) -> None:
    """A string is never equal to a number, which would look like many mistakes."""
    (words, numbers), (their_words, their_numbers) = _kinds(truth), _kinds(given)
    clash = (words & their_numbers) | (numbers & their_words)
    if clash.any():
        t = int(clash.argmax())
        first = [table.values[table.known[:, t], t].tolist()[0] for table in (truth, given)]
        raise ValueError(
            f"{truth.where(t)} holds {first[0]!r} where Y_pred has {first[1]!r}, and strings are never equal to "
            "numbers: give both the same classes."
        )


def _kinds(table: Table) -> tuple[Array, Array]:
    """Which labels have strings, and which have numbers."""
    if table.values.dtype.kind == "O":
        each = [isinstance(v, str) for v in table.values.ravel().tolist()]
        text = np.array(each).reshape(table.values.shape)
    else:
        text = np.full(table.values.shape, not table.number)
    return (text & table.known).any(axis=0), (~text & table.known).any(axis=0)


def as_truth(Y_true: Any, P: Any) -> tuple[Array, Array]:
    """True labels, NaN where one is not known, and the probabilities that they are 1, both checked."""
    truth, true, _ = indicators(Y_true, None, np.nan)
    return np.where(truth.known, true, np.nan).astype(float), probabilities(P, truth)
