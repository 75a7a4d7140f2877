"""Labels: their classes, encoding as class codes, and decoding of predictions to the input format.

The classes of a label are those of its known values; an indicator has both classes even if only one occurs.
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

#: Integers up to this are exact as floats.
EXACT = 2.0**53
#: A column with more classes than this, and with more classes than half of its rows, is taken for a number or an id.
MANY = 50
ALLOWED = "classes must be integers, strings, or False and True. Convert other values to strings."


def classify(values: Array, where: str) -> tuple[Array, Array]:
    """Sorted classes of a column, and the code of each value.

    Integers keep their type; floats become ``int64``, since floats are most often integers with missing values.
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
    """Array of the common type of some objects."""
    text = sum(isinstance(v, str) for v in values)
    unseen = next((v for v in values if not isinstance(v, str | Real | np.bool_)), None)
    if unseen is not None:
        hint = " (sklearn.preprocessing.MultiLabelBinarizer converts lists of labels to a table.)"
        hint = hint if isinstance(unseen, list | tuple | set | frozenset | np.ndarray) else ""
        raise ValueError(f"{where} holds {unseen!r:.40} of type {type(unseen).__name__}; {ALLOWED}{hint}")
    if 0 < text < len(values):
        word = next(v for v in values if isinstance(v, str))
        number = next(v for v in values if not isinstance(v, str))
        raise ValueError(f"{where} holds strings and numbers, {word!r} and {number!r}: use one type.")
    if text:
        return np.array(values, dtype=object)
    if all(isinstance(v, bool | np.bool_) for v in values):
        return np.array(values, dtype=bool)
    try:
        return np.array(values, dtype=np.int64 if all(isinstance(v, Integral) for v in values) else np.float64)
    except OverflowError:
        raise ValueError(f"{where} holds integers of more than 64 bits: convert them to strings.") from None


def _whole(values: Array, where: str) -> Array:
    wrong = (values != np.floor(values)) | (np.abs(values) > EXACT)
    if wrong.any():
        raise ValueError(
            f"{where} holds {values[wrong][0]:.6g}, a continuous value; {ALLOWED} Convert probabilities to labels by "
            "Y > 0.5, use a regressor for numeric targets, and NaN for an unknown label."
        )
    return values.astype(np.int64)


# ----------------------------------------------------------------- all labels


def check_seen(seen: list[Array], table: Table, missing: Any, known: list[int], n: int) -> None:
    """Raise an error for invalid classes; ``known`` are the numbers of known values among n rows."""
    _check_known(seen, table, missing)
    _check_signs(seen, table)
    _check_blanks(seen, table)
    _check_number(seen, table, known, n)


def _check_known(seen: list[Array], table: Table, missing: Any) -> None:
    """Every label needs a known value, and ``missing`` must not remove one of two classes everywhere."""
    empty = [table.names[t] for t, classes in enumerate(seen) if len(classes) == 0]
    if empty:
        raise ValueError(
            f"Y has no known value in the columns {empty[:10]} (of {len(seen)}): leave these labels out. "
            f"(NaN, None, NA and missing={missing!r} are unknown values.)"
        )
    left = set().union(*(classes.tolist() for classes in seen))
    other = 1 - float(missing) if isinstance(missing, Real | np.bool_) else None
    if other in (0, 1) and left == {other}:
        raise ValueError(
            f"missing={missing!r} leaves {other:.0f} as the only class of all labels, so there is nothing to learn. "
            "Leave missing=NaN if Y holds 0 and 1, and give NaN or -1 for unknown labels."
        )


def _check_signs(seen: list[Array], table: Table) -> None:
    """-1 in addition to 0 and 1 usually marks an unknown label."""
    held = [set() if classes.dtype.kind == "b" else set(classes.tolist()) for classes in seen]
    signs = {-1, 0, 1}
    nothing_else = set().union(*held) == signs
    suspects = [t for t, some in enumerate(held) if some >= signs or (-1 in some and nothing_else)]
    if suspects:
        raise ValueError(
            f"{table.where(suspects[0])} holds -1, and Y holds 0 and 1 too: give missing=-1 if -1 marks an "
            "unknown label (or missing=0 if 0 does). If these are three classes, use other names, such as "
            "strings."
        )


def _check_blanks(seen: list[Array], table: Table) -> None:
    """An empty string among others usually marks an unknown label."""
    blank = [
        t for t, classes in enumerate(seen) if any(isinstance(v, str) and not v.strip() for v in classes.tolist())
    ]
    if blank:
        raise ValueError(
            f"{table.where(blank[0])} holds an empty string among other classes: give missing='' if it marks an "
            "unknown label. If it is a class, give it a name."
        )


def _check_number(seen: list[Array], table: Table, known: list[int], n: int) -> None:
    """Raise an error for one class per row, or very many classes."""
    for t, (classes, rows) in enumerate(zip(seen, known, strict=True)):
        count = len(classes)
        if not (count == n > 2 or (count > MANY and 2 * count > rows)):
            continue
        raise ValueError(
            f"{table.where(t)} holds {count} classes in {rows} rows, like a number or an id: a label needs "
            "classes that occur more than once. Leave the column out, or bin its values into a few classes."
        )


def complete(seen: list[Array]) -> list[Array]:
    """The classes of every label; indicators get both values, even if one did not occur."""
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
    """Names and classes of the labels, and the input format.

    Attributes
    ----------
    names : tuple
        Names of the columns; 0 ... T-1 if they have none.
    classes : tuple of ndarray
        Sorted classes of each label.
    form : {"array", "sparse", "pandas", "polars", "flat"}
        "flat" is one label, given as one class per row.
    constant : tuple of int
        Positions of the labels with only one observed class.
    dtypes : tuple
        Types of the columns of a data frame, or one type of the whole table.
    container : type, optional
        Class of a sparse matrix.
    """

    names: tuple
    classes: tuple[Array, ...]
    form: str = "array"
    constant: tuple[int, ...] = ()
    dtypes: tuple = ()
    container: Any = None

    @property
    def n_labels(self) -> int:
        """Number of labels T."""
        return len(self.classes)

    @property
    def n_outputs(self) -> int:
        """Number of classes of all labels."""
        return int(self.starts[-1])

    @cached_property
    def starts(self) -> Array:
        """Start of the classes of each label among those of all labels, and the end; of shape (T + 1,)."""
        return np.cumsum([0, *map(len, self.classes)])

    @property
    def binary(self) -> bool:
        """True if every label has two classes."""
        return all(len(classes) == 2 for classes in self.classes)

    @property
    def named(self) -> bool:
        """True if the labels have names."""
        return self.form in ("pandas", "polars") or self.names != tuple(range(self.n_labels))

    def places(self, names: Any, what: str) -> list[int]:
        """Position of each label among the columns of ``what``; in the same order if either has no names."""
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
        """Classes in the format of the input.

        Parameters
        ----------
        codes : ndarray of int of shape (n, T)
        index : array-like of shape (n,), optional
            Index of the rows, for pandas.

        Returns
        -------
        ndarray, sparse matrix, pandas or polars DataFrame of shape (n, T)
            With the types of the labels. Floats become ``int64``, since they are most often integers with missing
            values; a sparse matrix keeps its type.
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
        """The names as a one-dimensional array."""
        if not self.named:
            return np.array(self.names)
        array = np.empty(len(self.names), dtype=object)
        array[:] = self.names
        return array

    def stacked(self) -> Any:
        """Classes of all labels: an array (T, 2) if each has two, as scikit-learn expects; otherwise a list."""
        return np.stack(self.classes) if self.binary else list(self.classes)

    def known(self, codes: Array) -> Array:
        """Classes as an array, with NaN (None if classes are not numbers) for unknown labels."""
        table = Labels(self.names, self.classes).decode(np.maximum(codes, 0))
        if (codes >= 0).all():
            return table
        number = table.dtype.kind in "biuf"
        table = table.astype(float if number else object)
        table[codes < 0] = np.nan if number else None
        return table

    def _pandas(self, columns: list[Array], index: Any) -> Any:
        pandas = frames("pandas")
        types = [_column_type(dtype, classes) for dtype, classes in zip(self.dtypes, self.classes, strict=True)]
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
        """Values per row and label as a data frame of ``container``; the array itself with "default"."""
        if container == "pandas":
            pandas = frames("pandas")
            return pandas.DataFrame(values, columns=pandas.Index(list(self.names)), index=index)
        if container == "polars":
            return frames("polars").DataFrame(values, schema=[str(name) for name in self.names])
        return values


def _column_type(dtype: Any, classes: Array) -> Any:
    """The type of a pandas column if it fits these classes; otherwise None, to use the type of the classes."""
    if hasattr(dtype, "categories"):
        return dtype if set(classes.tolist()) <= set(dtype.categories) else None
    objects = dtype == np.dtype(object) and classes.dtype.kind != "O"
    return None if dtype.kind == "f" or objects else dtype


def encode_labels(Y: Any, n: int, missing: Any = np.nan) -> tuple[Array, Labels]:
    """Class codes of the labels of n rows, and the labels.

    Parameters
    ----------
    Y : array, masked array, sparse matrix, pandas or polars DataFrame, or list of rows, of shape (n, T)
        Classes are integers, strings, or False and True. NaN, None, NA and masked entries are unknown; entries that a
        sparse matrix does not store are 0.
    missing : number or str
        An additional value for unknown labels, such as -1.

    Returns
    -------
    codes : ndarray of int of shape (n, T)
        -1 for unknown labels.
    labels : Labels
        If Y holds only 0 and 1, or -1 and 1, these are the classes of every label, even of a constant one; False and
        True are the classes of every boolean column. Any other label has the classes that occur.
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
    """The labels of a block of n rows, with the classes that occur in it; see ``whole_labels``."""
    table = read_table(Y, n, missing)
    seen = tuple(classify(values, table.where(t))[0] for t, (values, _) in enumerate(table.columns))
    return Labels(table.names, seen, table.form, (), table.dtypes, table.container)


def whole_labels(labels: Labels, n: int, missing: Any = np.nan) -> Labels:
    """The labels after all blocks, n rows or more, were read: the same as from ``encode_labels``."""
    table = Table((), labels.names, labels.form, labels.dtypes)
    check_seen(list(labels.classes), table, missing, [n] * labels.n_labels, n)
    return replace(labels, classes=tuple(complete(list(labels.classes))))


def encode_known(Y: Any, labels: Labels, n: int, missing: Any = np.nan) -> Array:
    """Class codes of n rows for given labels, of shape (n, T); -1 for unknown labels.

    Columns of data frames are matched by name.
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
    """Codes of some classes among all."""
    code = {name: k for k, name in enumerate(classes.tolist())}
    unseen = [name for name in seen.tolist() if name not in code]
    if unseen:
        hint = " Give missing=-1 if -1 marks an unknown label." if -1 in unseen else ""
        raise ValueError(
            f"{where} holds {unseen[:10]}; the classes that the model knows are {list(code)[:10]}. Leave other "
            f"values out: NaN is an unknown label.{hint}"
        )
    return np.array([code[name] for name in seen.tolist()], dtype=np.intp)
