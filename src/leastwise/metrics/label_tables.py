"""Inputs of label metrics: tables of any kind as arrays with masks of known entries, checked and aligned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leastwise.problem.label_tables import check_unique_names, read_table

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Table:
    """One value for each row and label.

    Attributes
    ----------
    name : str
        What error messages call it.
    values : ndarray of shape (n, T)
        Numbers, or objects if there are strings.
    known : ndarray of bool of shape (n, T)
    labels : tuple of str, optional
        Names of the columns of a data frame.
    index : pandas Index, optional
        Names of the rows.
    """

    name: str
    values: Array
    known: Array
    labels: tuple[str, ...] | None = None
    index: Any = None

    @property
    def number(self) -> bool:
        """True if all values are numbers."""
        return self.values.dtype.kind in "biuf"

    def where(self, t: int) -> str:
        """What error messages call a column."""
        return f"Column {self.labels[t] if self.labels else t!r} of {self.name}"

    def beside(self, truth: Table) -> Table:
        """The table with its columns in the order of the truth; an error if the two do not match."""
        order = _order(self, truth) if self.labels and truth.labels else slice(None)
        if self.values.shape != truth.values.shape:
            raise ValueError(
                f"{self.name} has shape {self.values.shape} but {truth.name} {truth.values.shape}: give a value for "
                "each of its entries."
            )
        _check_rows(self, truth)
        return replace(self, values=self.values[:, order], known=self.known[:, order], labels=truth.labels)


def read(Y: Any, name: str, missing: Any = None) -> Table:
    """A table of any kind; ``missing`` is a value for unknown labels, in addition to NaN, None, NA and masks."""
    values, known = read_table(Y, None, missing, name).dense()
    names = list(getattr(Y, "columns", ()))
    labels = None if names == list(range(len(names))) else tuple(map(str, names))  # polars has strings only
    return Table(name, values, known, labels, getattr(Y, "index", None) if hasattr(Y, "iloc") else None)


# ------------------------------------------------------------------- alignment


def _order(given: Table, truth: Table) -> list[int]:
    """Places of the columns of the truth in the other table."""
    for table in (given, truth):
        check_unique_names(table.labels or (), table.name)
    theirs, ours = given.labels or (), truth.labels or ()
    lost, more = [x for x in ours if x not in {*theirs}], [x for x in theirs if x not in {*ours}]
    if lost or more:
        raise ValueError(
            f"{given.name} and {truth.name} have columns of different names: {truth.name} alone has {lost[:10]}, "
            f"{given.name} alone {more[:10]}. Give both the same names, or arrays with columns in the same order."
        )
    place = {name: t for t, name in enumerate(theirs)}
    return [place[name] for name in ours]


def _check_rows(given: Table, truth: Table) -> None:
    """Rows are compared by position: an error if their names are the same in another order."""
    if given.index is None or truth.index is None or given.index.equals(truth.index):
        return
    if {*given.index.tolist()} == {*truth.index.tolist()}:
        raise ValueError(
            f"The rows of {given.name} and {truth.name} have the same names (index) in another order, but rows are "
            f"compared by position: give {given.name}.loc[{truth.name}.index], or arrays to ignore the names."
        )


def check_average(average: Any, known: tuple) -> None:
    """An error for an average that the metric does not have."""
    if average not in known:
        raise ValueError(f"average={average!r} is not known: use one of {known}.")


def indicators(Y_true: Any, sample_weight: Any, missing: Any) -> tuple[Table, Array, Array]:
    """Labels that are 0 or 1: the table, which known ones are 1, and the weights of the entries, 0 if unknown."""
    truth = read(Y_true, "Y_true", missing)
    unseen = _beyond(truth, (0, 1))
    if unseen is not None:
        allowed = "its values must be 0 or 1, or NaN if a label is unknown."
        raise ValueError(f"Y_true holds {unseen!r}: {allowed} {_hint(unseen)}")
    return truth, (truth.values == 1) & truth.known, entry_weights(sample_weight, truth)


def _hint(unseen: Any) -> str:
    if unseen == -1:
        return "Give missing=-1 if -1 means that a label is unknown, Y_true == 1 if it is the other class."
    return "Only hamming and subset_accuracy take other classes."


def classes(Y_true: Any, sample_weight: Any, missing: Any) -> tuple[Table, Array]:
    """Labels of any classes, and the weights of the entries."""
    truth = read(Y_true, "Y_true", missing)
    _check_whole(truth, truth.known, "classes must be whole numbers or strings, or NaN if a label is unknown.")
    return truth, entry_weights(sample_weight, truth)


def entry_weights(sample_weight: Any, truth: Table) -> Array:
    """A weight for every entry, 0 if it is unknown; at least one must be positive."""
    shape = truth.values.shape
    if not truth.known.any():
        raise ValueError(f"{truth.name} of shape {shape} has no known value.")
    if sample_weight is None:
        return truth.known.astype(float)
    named = hasattr(sample_weight, "columns")
    w = np.asarray(read(sample_weight, "sample_weight").beside(truth).values if named else sample_weight, dtype=float)
    if w.shape not in (shape, shape[:1]) or not np.isfinite(w).all() or (w < 0).any():
        raise ValueError(
            f"sample_weight of shape {w.shape} must be finite and not negative: one for each of the "
            f"{shape[0]} rows, or a table of shape {shape}."
        )
    W = np.where(truth.known, w.reshape(len(w), -1), 0)
    if not W.any():
        raise ValueError("sample_weight is 0 for all known labels, so there is nothing to measure.")
    return W


# ----------------------------------------------------------------- predictions


def decided(Y_pred: Any, truth: Table) -> Array:
    """Decisions that are 0 or 1, as bool."""
    given = _complete(read(Y_pred, "Y_pred").beside(truth), truth)
    unseen = _beyond(given, (0, 1))
    if unseen is not None:
        raise ValueError(f"Y_pred holds {unseen!r}: decisions must be 0 or 1; for probabilities give P >= 0.5.")
    return given.values == 1


def right(Y_pred: Any, truth: Table, missing: Any) -> Array:
    """True where decisions for any classes are correct; arbitrary where the true class is unknown."""
    given = _complete(read(Y_pred, "Y_pred", missing).beside(truth), truth)
    _check_whole(given, given.known, "decisions must be classes; for probabilities give P >= 0.5.")
    _check_signs(truth, given)
    if truth.number and given.number:
        return truth.values == given.values
    _check_kinds(truth, given)
    return truth.values.astype(object) == given.values.astype(object)


def scores(P: Any, truth: Table) -> Array:
    """Scores, 0 where the true label is unknown."""
    given = _complete(read(P, "P").beside(truth), truth)
    if not given.number:
        raise ValueError("P holds strings: give the probabilities that the labels are 1, one column per label.")
    return np.where(truth.known, given.values, 0).astype(float)


def probabilities(P: Any, truth: Table) -> Array:
    """Probabilities, checked to be from 0 to 1."""
    table = scores(P, truth)
    if not ((table >= 0) & (table <= 1)).all():
        raise ValueError("P has values that are not from 0 to 1: give the probabilities that the labels are 1.")
    return table


def _complete(given: Table, truth: Table) -> Table:
    """The table; an error if a prediction is missing where the true label is known."""
    gone = truth.known & ~given.known
    if gone.any():
        rows = int(gone.any(axis=1).sum())
        raise ValueError(
            f"{given.name} has missing values in {rows} rows with labels in {truth.name}: only {truth.name} may have "
            "unknown labels. Leave out rows that were never predicted."
        )
    return given


def _beyond(table: Table, allowed: tuple) -> Any:
    """The first known value that is not allowed; None if there is none."""
    unseen = table.known & ~np.logical_or.reduce([table.values == value for value in allowed])
    return table.values[unseen].tolist()[0] if unseen.any() else None


def _check_whole(table: Table, known: Array, advice: str) -> None:
    values = table.values[known]
    if values.dtype.kind == "O":
        values = np.array([v for v in values.tolist() if not isinstance(v, str)], dtype=float)
    broken = values[(values != np.floor(values)) | np.isinf(values)] if values.dtype.kind == "f" else []
    if len(broken):
        raise ValueError(f"{table.name} holds {broken[0]:.6g}: {advice}")


def _check_signs(truth: Table, given: Table) -> None:
    """Raise an error for -1 next to 0 and 1, which usually means unknown, especially if never predicted."""
    minus = _holds(truth, -1)
    if not minus.any():
        return
    zero, one = (_holds(truth, value) | _holds(given, value) for value in (0, 1))
    nothing_else = one.any() and all(_beyond(table, (-1, 0, 1)) is None for table in (truth, given))
    suspects = minus & ((zero & one) | (zero.any() and (nothing_else or not _holds(given, -1).any())))
    if suspects.any():
        raise ValueError(
            f"{truth.where(int(suspects.argmax()))} holds -1 beside 0 and 1: give missing=-1 if -1 means that a "
            "label is unknown. If these are three classes rename them, for example to strings."
        )


def _holds(table: Table, value: int) -> Array:
    """True for labels that have this value."""
    return ((table.values == value) & table.known).any(axis=0)


def _check_kinds(truth: Table, given: Table) -> None:
    """An error for strings compared with numbers, which are never equal."""
    (text, numbers), (their_text, their_numbers) = _kinds(truth), _kinds(given)
    clash = (text & their_numbers) | (numbers & their_text)
    if clash.any():
        t = int(clash.argmax())
        first = [table.values[table.known[:, t], t].tolist()[0] for table in (truth, given)]
        raise ValueError(
            f"{truth.where(t)} holds {first[0]!r} where Y_pred has {first[1]!r}, but strings are never equal to "
            "numbers: give both the same classes."
        )


def _kinds(table: Table) -> tuple[Array, Array]:
    """Labels with strings, and labels with numbers."""
    if table.values.dtype.kind == "O":
        each = [isinstance(v, str) for v in table.values.ravel().tolist()]
        text = np.array(each).reshape(table.values.shape)
    else:
        text = np.full(table.values.shape, not table.number)
    return (text & table.known).any(axis=0), (~text & table.known).any(axis=0)


def as_truth(Y_true: Any, P: Any) -> tuple[Array, Array]:
    """True labels, NaN if unknown, and the probabilities that they are 1, both checked."""
    truth, true, _ = indicators(Y_true, None, np.nan)
    return np.where(truth.known, true, np.nan).astype(float), probabilities(P, truth)
