"""Multi-label sets in the files of Mulan and MEKA: rows that have any number of labels."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy import sparse

from leastwise.datasets.arff import Table, read_table
from leastwise.datasets.files import Array, blaming, opened

#: MEKA's option for the number of labels, in the name of the relation.
_COUNT = re.compile(r"(?:^|[\s:])-C\s+(-?\d+)\b")
_ADVICE = "Give labels= the XML file that names them, their names, or how many of the first attributes are labels."


@dataclass(frozen=True, eq=False)
class MultiLabelData:
    """Rows and their labels.

    Attributes
    ----------
    X : ndarray or csr_array of float of shape (n, d)
        Sparse where a row of the file is; NaN where a value is missing.
    Y : ndarray of int of shape (n, T)
        1 where a row has a label, and 0 elsewhere.
    feature_names : tuple of str
        Of the columns of X, in the order of the file.
    label_names : tuple of str
        Of the columns of Y, in the order of the file.
    relation : str
        The name that the file gives itself.
    """

    X: Array | sparse.csr_array
    Y: Array
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    relation: str


def load_arff(
    path: str | os.PathLike, labels: str | os.PathLike | int | Sequence[str] | None = None
) -> MultiLabelData:
    r"""Read a multi-label set from an ARFF file, as Mulan and MEKA write them.

    Parameters
    ----------
    path : path
        The file, plain or with the ending ``.gz``, ``.bz2`` or ``.xz``.
    labels : path, int or sequence of str, optional
        Which attributes are labels: an XML file of Mulan, ``<labels><label name="..."/></labels>``; a number, of the
        first attributes or, if negative, of the last; or their names. By default what the file says itself, as MEKA's
        do by ``@relation 'name: -C 6'``.

    Returns
    -------
    MultiLabelData

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a file cannot be read, with its name and the line; if an attribute that should be a label is not there or
        is not 0 or 1 in every row.

    Notes
    -----
    Rows may be dense or sparse, ``{3 1, 17 0.5}`` with attributes counted from 0. Attributes are numbers, or lists of
    values: values that are numbers stand for themselves, and of two words the first is 0 and the second 1. What a
    sparse row leaves out is 0 or, as in Weka, the first value of a list. ``?`` is a missing value, not allowed in
    labels.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from leastwise.datasets import load_arff
    >>> text = "@relation 'toy: -C 1'\n@attribute red {0,1}\n@attribute size numeric\n@data\n1,0.5\n{1 2}\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "toy.arff"
    ...     _ = path.write_text(text)
    ...     data = load_arff(path)
    >>> data.label_names, data.Y.ravel(), data.X.toarray().ravel()
    (('red',), array([1, 0]), array([0.5, 2. ]))
    """
    path = _existing(path)
    table = read_table(path)
    is_label = _is_label(table, labels, path)
    with blaming(path):
        Y = _indicator(table, is_label)
    X = table.values[:, np.flatnonzero(~is_label)]
    names = np.array(table.names, dtype=object)
    return MultiLabelData(
        X=X if table.any_sparse else X.toarray(),
        Y=Y,
        feature_names=tuple(names[~is_label]),
        label_names=tuple(names[is_label]),
        relation=table.relation,
    )


def _existing(path: str | os.PathLike) -> Path:
    file = Path(path).expanduser()
    if not file.is_file():
        raise FileNotFoundError(f"There is no file {str(file)!r}: give the path of one, with its ending.")
    return file


def read_label_names(path: Path) -> list[str]:
    """The labels of an XML file of Mulan, also those of a hierarchy, from top to bottom."""
    with opened(path) as stream:
        try:
            root = ElementTree.parse(stream).getroot()
        except ElementTree.ParseError as error:
            raise ValueError(f"not XML: {error}") from error
        names = [element.get("name") for element in root.iter() if element.tag.rpartition("}")[2] == "label"]
        if not names or None in names:
            raise ValueError('no labels, or one without a name: <labels><label name="..."/></labels> is needed')
        return [str(name) for name in names]


# ---------------------------------------------------------------- which columns


def _is_label(table: Table, labels: Any, path: Path) -> Array:
    """Which attributes are labels."""
    if labels is None:
        labels = _count_of_relation(table, path)
    if isinstance(labels, Integral) and not isinstance(labels, bool):
        return _counted(int(labels), table, path)
    if isinstance(labels, str | os.PathLike):
        file = _existing(labels)
        return _named(read_label_names(file), table, f"{file} names", path)
    return _named(_checked_names(labels), table, "labels= names", path)


def _count_of_relation(table: Table, path: Path) -> int:
    found = _COUNT.search(table.relation)
    if not found:
        raise ValueError(f"{path} does not say which attributes are labels: no -C in @relation. {_ADVICE}")
    return int(found[1])


def _counted(count: int, table: Table, path: Path) -> Array:
    m = len(table.names)
    if not 0 < abs(count) <= m:
        raise ValueError(f"{count} labels cannot be counted off in {path}: it has {m} attributes. {_ADVICE}")
    position = np.arange(m)
    return position < count if count > 0 else position >= m + count


def _checked_names(labels: Any) -> list[str]:
    names = list(labels) if isinstance(labels, Sequence | np.ndarray) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"labels={labels!r} does not say which attributes are labels. {_ADVICE}")
    return names


def _named(names: Sequence[str], table: Table, who: str, path: Path) -> Array:
    unknown = [name for name in names if name not in table.names]
    if unknown:
        raise ValueError(f"{who} {unknown[0]!r}, which is no attribute of {path}: use names that are.")
    return np.isin(np.array(table.names, dtype=object), np.array(names, dtype=object))


def _indicator(table: Table, is_label: Array) -> Array:
    Y = table.values[:, np.flatnonzero(is_label)].toarray()
    row, column = np.nonzero(~np.isin(Y, (0, 1)))
    if len(row):
        name = np.array(table.names, dtype=object)[is_label][column[0]]
        value = "missing" if np.isnan(Y[row[0], column[0]]) else f"{Y[row[0], column[0]]:g}"
        raise ValueError(f"line {table.lines[row[0]]}: label {name!r} is {value}; labels have to be 0 or 1")
    return Y.astype(np.intp)
