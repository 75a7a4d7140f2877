"""Tables of every kind as arrays, with what is known in them, and two tables side by side.

What metrics of many labels may be given, and what is wrong with the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

Array = np.ndarray

#: What values may be. The frequent ones come first, and unions are made once, since every entry may be looked at.
PLAIN = (str, int, float, np.bool_, Real)
FLOATS = (float, np.floating)


@dataclass(frozen=True, eq=False)
class Table:
    """One value for each row and label.

    Attributes
    ----------
    name : str
        What errors call it.
    values : ndarray of shape (n, T)
        Numbers, strings, or objects where columns differ in that.
    known : ndarray of bool of shape (n, T)
    labels : tuple of str, optional
        Names of the columns of a frame.
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
        """Whether there are numbers only."""
        return self.values.dtype.kind in "biuf"

    def where(self, t: int) -> str:
        """How errors speak of a column."""
        return f"Column {self.labels[t] if self.labels else t!r} of {self.name}"

    def beside(self, truth: Table) -> Table:
        """With columns in the order of the truth; an error where the two do not belong together."""
        order = _order(self, truth) if self.labels and truth.labels else slice(None)
        if self.values.shape != truth.values.shape:
            raise ValueError(
                f"{self.name} has shape {self.values.shape} but {truth.name} {truth.values.shape}: give a value for "
                "each of its entries."
            )
        _check_rows(self, truth)
        return replace(self, values=self.values[:, order], known=self.known[:, order], labels=truth.labels)


def read(Y: Any, name: str, missing: Any = None) -> Table:
    """A table of any kind; ``missing`` is a value that stands for unknown beside NaN, None, NA and masks."""
    if hasattr(Y, "collect"):
        raise ValueError(f"{name} is a {type(Y).__name__}, which holds no rows yet: give {name}.collect().")
    values = _values_of(Y, name)
    if values.ndim != 2 or 0 in values.shape:
        raise ValueError(f"{name} has shape {values.shape}: give a table of rows, with one column for each label.")
    unknown = _unknown(values, _checked_missing(missing))
    if isinstance(Y, np.ma.MaskedArray):
        unknown = unknown | np.ma.getmaskarray(Y)
    if values.dtype.kind == "O":
        values = _typed(values, ~unknown, name)
    if values.dtype.kind not in "biufUO":
        raise ValueError(f"{name} is of type {values.dtype}: give numbers or strings.")
    return Table(name, values, ~unknown, _labels(Y), getattr(Y, "index", None) if hasattr(Y, "iloc") else None)


# ------------------------------------------------------------------- reading


def _values_of(Y: Any, name: str) -> Array:
    """An array; of objects where there are strings beside other things."""
    if sparse.issparse(Y):
        return Y.toarray()
    if hasattr(Y, "iloc"):
        if Y.ndim == 2 and all(dtype.kind in "biuf" for dtype in Y.dtypes):
            return Y.to_numpy(dtype=float, na_value=np.nan)
        return Y.to_numpy(dtype=object)
    if hasattr(Y, "get_columns"):
        return Y.to_numpy()
    try:
        values = np.asarray(Y)
    except ValueError as error:
        raise ValueError(f"{name} is no table of numbers or strings with one column a label: {error}") from None
    if values.dtype.kind == "T" or (values.dtype.kind in "US" and not hasattr(Y, "dtype")):
        return np.asarray(Y, dtype=object)  # in a list, a string makes strings of None and of numbers
    return values


def _labels(Y: Any) -> tuple[str, ...] | None:
    """Names of the columns, as strings since polars has no others; 0 ... T-1 in pandas are none."""
    if not hasattr(Y, "columns"):
        return None
    names = list(Y.columns)
    return None if names == list(range(len(names))) else tuple(map(str, names))


def _checked_missing(missing: Any) -> Any:
    """None where there is no value beside those that are always unknown."""
    if absent(missing):
        return None
    if not isinstance(missing, PLAIN):
        raise ValueError(f"missing={missing!r} must be NaN, or a number or string that stands for an unknown label.")
    return missing


def absent(value: Any) -> bool:
    """Whether a value always stands for unknown."""
    if isinstance(value, str):
        return False
    if isinstance(value, FLOATS):
        return bool(value != value)
    return value is None or value is np.ma.masked or type(value).__name__ in ("NAType", "NaTType")


def _unknown(values: Array, missing: Any) -> Array:
    if values.dtype.kind == "O":
        each = [absent(v) or _is(v, missing) for v in values.ravel().tolist()]
        return np.array(each, dtype=bool).reshape(values.shape)
    gone = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=bool)
    alike = missing is not None and isinstance(missing, str) == (values.dtype.kind == "U")
    return gone | (values == missing) if alike else gone


def _is(value: Any, missing: Any) -> bool:
    return missing is not None and isinstance(value, PLAIN) and bool(value == missing)


def _typed(values: Array, known: Array, name: str) -> Array:
    """Objects as numbers where they are; None where one is not known."""
    told = values[known].tolist()
    strange = next((v for v in told if not isinstance(v, PLAIN)), None)
    if strange is not None:
        raise ValueError(
            f"{name} is no table of numbers or strings with one column a label: it holds {strange!r:.40} of type "
            f"{type(strange).__name__}."
        )
    if any(isinstance(v, str) for v in told):
        values = values.copy()
        values[~known] = None
        return values
    numbers = np.full(values.shape, np.nan)
    numbers[known] = told
    return numbers


# ----------------------------------------------------------------- two tables


def _order(given: Table, truth: Table) -> list[int]:
    """Where the columns of the truth stand in the other table."""
    for table in (given, truth):
        names = table.labels or ()
        twice = next((name for name in names if names.count(name) > 1), None) if len({*names}) < len(names) else None
        if twice is not None:
            raise ValueError(f"{table.name} has several columns named {twice!r}: give every label a name of its own.")
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
    """Rows are never put in order here; where their names are in another order someone has to look."""
    if given.index is None or truth.index is None or given.index.equals(truth.index):
        return
    if {*given.index.tolist()} == {*truth.index.tolist()}:
        raise ValueError(
            f"The rows of {given.name} and {truth.name} have the same names (index) in another order, and rows are "
            f"compared as they stand: give {given.name}.loc[{truth.name}.index], or arrays if the names mean nothing."
        )


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
