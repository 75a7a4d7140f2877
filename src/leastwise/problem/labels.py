"""Which classes a label has: those of its known values, and both of an indicator.

Labels as codes of their classes, and predictions in the form in which the labels were given.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np

from leastwise.problem.label_tables import Table, read_table
from leastwise.utils.optional import frames

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
    unseen = next((v for v in values if not isinstance(v, str | Real | np.bool_)), None)
    if unseen is not None:
        hint = " (sklearn.preprocessing.MultiLabelBinarizer makes a table of lists of labels.)"
        hint = hint if isinstance(unseen, list | tuple | set | frozenset | np.ndarray) else ""
        raise ValueError(f"{where} holds {unseen!r:.40} of type {type(unseen).__name__}; {ALLOWED}{hint}")
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


@dataclass(frozen=True)
class Labels:
    """The labels that are known, and the form in which they were given.

    Attributes
    ----------
    names : tuple
        Names of the columns; 0 ... T-1 where they had none.
    classes : tuple of ndarray
        Sorted classes of each label.
    form : {"array", "sparse", "pandas", "polars", "flat"}
        "flat" is one label, given as one class a row.
    constant : tuple of int
        Positions of the labels of which one class only was seen.
    dtypes : tuple
        Types of the columns of a frame; of the whole table elsewhere.
    container : type, optional
        Kind of sparse matrix.
    """

    names: tuple
    classes: tuple[Array, ...]
    form: str = "array"
    constant: tuple[int, ...] = ()
    dtypes: tuple = ()
    container: Any = None

    @property
    def n_labels(self) -> int:
        """T."""
        return len(self.classes)

    @property
    def n_outputs(self) -> int:
        """Number of classes of all labels."""
        return int(self.starts[-1])

    @cached_property
    def starts(self) -> Array:
        """Where the classes of each label begin among those of all labels, and the end; of shape (T + 1,)."""
        return np.cumsum([0, *map(len, self.classes)])

    @property
    def binary(self) -> bool:
        """Whether every label has two classes."""
        return all(len(classes) == 2 for classes in self.classes)

    @property
    def named(self) -> bool:
        """Whether the labels came with names."""
        return self.form in ("pandas", "polars") or self.names != tuple(range(self.n_labels))

    def places(self, names: Any, what: str) -> list[int]:
        """Where each label stands among the columns of ``what``; without names on both sides, in the same order."""
        if names is None or not self.named:
            return list(range(self.n_labels))
        names = list(names)
        lost = [name for name in self.names if names.count(name) != 1]
        if lost:
            raise ValueError(
                f"{what} has no column, or more than one, for the labels {lost[:10]}; its columns are {names[:10]}. "
                "Give it the names of the labels, or an array in their order."
            )
        return [names.index(name) for name in self.names]

    def decode(self, codes: Array, index: Any = None) -> Any:
        """Classes in the form in which the labels were given.

        Parameters
        ----------
        codes : ndarray of int of shape (n, T)
        index : array-like of shape (n,), optional
            Names of the rows, for pandas.

        Returns
        -------
        ndarray, sparse matrix, pandas or polars DataFrame of shape (n, T)
            Of the types of the labels. Where those were floats they are ``int64``, since floats are most often whole
            numbers among which some were not known; a sparse matrix keeps its type.
        """
        columns = [classes[codes[:, t]] for t, classes in enumerate(self.classes)]
        if self.form == "pandas":
            return self._pandas(columns, index)
        if self.form == "polars":
            return self._polars(columns)
        types = {column.dtype for column in columns}
        table = np.empty(codes.shape, dtype=types.pop() if len(types) == 1 else object)
        for t, column in enumerate(columns):
            table[:, t] = column
        if self.form == "sparse":
            return self.container(table.astype(self.dtypes[0]))
        return table[:, 0] if self.form == "flat" else table

    def named_array(self) -> Array:
        """The names as an array of one dimension, whatever they are."""
        if all(isinstance(name, str) for name in self.names) or not self.named:
            return np.array(self.names)
        array = np.empty(len(self.names), dtype=object)
        array[:] = self.names
        return array

    def stacked(self) -> Any:
        """Classes of all labels: an array of shape (T, 2) where each has two, as scikit-learn's tools want it."""
        return np.stack(self.classes) if self.binary else list(self.classes)

    def known(self, codes: Array) -> Array:
        """Classes as an array whatever the form; NaN (None, if classes are no numbers) where a label is not known."""
        table = Labels(self.names, self.classes).decode(np.maximum(codes, 0))
        if (codes >= 0).all():
            return table
        number = table.dtype.kind in "biuf"
        table = table.astype(float if number else object)
        table[codes < 0] = np.nan if number else None
        return table

    def _pandas(self, columns: list[Array], index: Any) -> Any:
        pandas = frames("pandas")
        types = [_kept(dtype, classes) for dtype, classes in zip(self.dtypes, self.classes, strict=True)]
        series = [pandas.Series(column, dtype=t, index=index) for column, t in zip(columns, types, strict=True)]
        frame = pandas.DataFrame(dict(enumerate(series)), index=index)
        frame.columns = pandas.Index(list(self.names))
        return frame

    def _polars(self, columns: list[Array]) -> Any:
        polars = frames("polars")
        series = []
        for name, column, dtype in zip(self.names, columns, self.dtypes, strict=True):
            values = column.tolist() if column.dtype.kind == "O" else column
            lost = dtype.is_float() or dtype == polars.Object
            series.append(polars.Series(name, values, dtype=None if lost else dtype))
        return polars.DataFrame(series)

    def frame(self, values: Array, container: str, index: Any = None) -> Any:
        """One value for every row and label as a frame of ``container``, the array itself with "default"."""
        if container == "pandas":
            pandas = frames("pandas")
            return pandas.DataFrame(values, columns=pandas.Index(list(self.names)), index=index)
        if container == "polars":
            return frames("polars").DataFrame(values, schema=[str(name) for name in self.names])
        return values


def _kept(dtype: Any, classes: Array) -> Any:
    """The type of a column of pandas if it is one for these classes; None leaves it to the classes."""
    if hasattr(dtype, "categories"):
        return dtype if set(classes.tolist()) <= set(dtype.categories) else None
    objects = dtype == np.dtype(object) and classes.dtype.kind != "O"
    return None if dtype.kind == "f" or objects else dtype


def encode_labels(Y: Any, n: int, missing: Any = np.nan) -> tuple[Array, Labels]:
    """Codes of the labels of n rows, and the labels that there are.

    Parameters
    ----------
    Y : array, masked array, sparse matrix, pandas or polars DataFrame, or list of rows, of shape (n, T)
        Classes are whole numbers, strings, or False and True. NaN, None, NA and masked entries are not known; what a
        sparse matrix does not store is 0.
    missing : number or str
        A value that stands for unknown too, such as -1.

    Returns
    -------
    codes : ndarray of int of shape (n, T)
        -1 where a label is not known.
    labels : Labels
        Where Y holds 0 and 1 only, or -1 and 1, these are the classes of every label, even of one that was always
        the same; False and True are those of every column of that type. Any other label has the classes that it was
        seen with.
    """
    table = read_table(Y, n, missing)
    codes = np.full((n, len(table.names)), -1, dtype=np.intp)
    seen = []
    for t, (values, known) in enumerate(table.columns):
        classes, codes[known, t] = classify(values, table.where(t))
        seen.append(classes)
    check_seen(seen, table, missing, (codes >= 0).sum(axis=0).tolist(), n)
    full = complete(seen)
    for t, (few, every) in enumerate(zip(seen, full, strict=True)):
        if len(few) < len(every):
            codes[:, t] = np.append(np.searchsorted(every, few), -1)[codes[:, t]]
    constant = tuple(t for t, few in enumerate(seen) if len(few) == 1)
    return codes, Labels(table.names, tuple(full), table.form, constant, table.dtypes, table.container)


def some_labels(Y: Any, n: int, missing: Any = np.nan) -> Labels:
    """The labels of n rows of many, with the classes that these show: ``whole_labels`` has the last word."""
    table = read_table(Y, n, missing)
    seen = tuple(classify(values, table.where(t))[0] for t, (values, _) in enumerate(table.columns))
    return Labels(table.names, seen, table.form, (), table.dtypes, table.container)


def whole_labels(labels: Labels, n: int, missing: Any = np.nan) -> Labels:
    """The labels of n rows or more, once all classes were seen: as ``encode_labels`` has them."""
    table = Table((), labels.names, labels.form, labels.dtypes)
    check_seen(list(labels.classes), table, missing, [n] * labels.n_labels, n)
    return replace(labels, classes=tuple(complete(list(labels.classes))))


def encode_known(Y: Any, labels: Labels, n: int, missing: Any = np.nan) -> Array:
    """Codes of the labels of n rows among classes that are known, of shape (n, T); -1 where a label is not known.

    Columns of frames are found by their names.
    """
    table = read_table(Y, n, missing)
    if len(table.names) != labels.n_labels:
        raise ValueError(f"Y has {len(table.names)} labels; the model knows {labels.n_labels}: {labels.names[:10]}.")
    places = labels.places(table.names if table.form in ("pandas", "polars") else None, "Y")
    codes = np.full((n, labels.n_labels), -1, dtype=np.intp)
    columns = list(table.columns)
    for t, place in enumerate(places):
        values, known = columns[place]
        seen, code = classify(values, table.where(place))
        codes[known, t] = _find(seen, labels.classes[t], table.where(place))[code]
    return codes


def _find(seen: Array, classes: Array, where: str) -> Array:
    """The codes of some classes among all."""
    code = {name: k for k, name in enumerate(classes.tolist())}
    unseen = [name for name in seen.tolist() if name not in code]
    if unseen:
        hint = " Give missing=-1 if -1 means that a label is not known." if -1 in unseen else ""
        raise ValueError(
            f"{where} holds {unseen[:10]}; the classes that the model knows are {list(code)[:10]}. Leave other "
            f"values out: NaN is a label that is not known.{hint}"
        )
    return np.array([code[name] for name in seen.tolist()], dtype=np.intp)
