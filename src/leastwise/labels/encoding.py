"""Labels as codes of their classes, and predictions in the form in which the labels were given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from leastwise.extras import frames
from leastwise.labels.classes import check_seen, classify, complete
from leastwise.labels.reading import Table, read_table

Array = np.ndarray


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
    strange = [name for name in seen.tolist() if name not in code]
    if strange:
        hint = " Give missing=-1 if -1 means that a label is not known." if -1 in strange else ""
        raise ValueError(
            f"{where} holds {strange[:10]}; the classes that the model knows are {list(code)[:10]}. Leave other "
            f"values out: NaN is a label that is not known.{hint}"
        )
    return np.array([code[name] for name in seen.tolist()], dtype=np.intp)
