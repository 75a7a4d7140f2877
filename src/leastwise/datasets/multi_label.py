"""Multi-label data sets in ARFF files, as Mulan and MEKA write them; and the Enron data.

The files are read by ``leastwise.sources.formats.arff``; here, values become numbers and labels are found.
"""

from __future__ import annotations

import os
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from scipy import sparse

from leastwise.datasets.files import Array, Entry, Part, Source, file_errors, opened
from leastwise.sources.blocks import error_at
from leastwise.sources.formats.arff import NUMERIC, Attribute, read_header, read_rows, tokenize
from leastwise.sources.formats.cells import number, strip_cell

#: MEKA's option for the number of labels, in the name of the relation.
_COUNT = re.compile(r"(?:^|[\s:])-C\s+(-?\d+)\b")
_ADVICE = "Give labels= the XML file that names them, their names, or the number of first attributes that are labels."


@dataclass(frozen=True, eq=False)
class MultiLabelData:
    """Rows and their labels.

    Attributes
    ----------
    X : ndarray or csr_array of float of shape (n, d)
        Sparse if any row of the file is; NaN if a value is missing.
    Y : ndarray of int of shape (n, T)
        1 if a row has a label, else 0.
    feature_names : tuple of str
        Names of the columns of X, in the order of the file.
    label_names : tuple of str
        Names of the columns of Y, in the order of the file.
    relation : str
        The name of the relation.
    """

    X: Array | sparse.csr_array
    Y: Array
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]
    relation: str


def load_arff(
    path: str | os.PathLike, labels: str | os.PathLike | int | Sequence[str] | None = None
) -> MultiLabelData:
    r"""Read multi-label data from an ARFF file, as Mulan and MEKA write them.

    Parameters
    ----------
    path : path
        The file, plain or with the extension ``.gz``, ``.bz2`` or ``.xz``.
    labels : path, int or sequence of str, optional
        Which attributes are labels: an XML file of Mulan, ``<labels><label name="..."/></labels>``; the number of
        leading attributes or, if negative, of trailing ones; or their names. By default what the file itself says, as
        MEKA's files do with ``@relation 'name: -C 6'``.

    Returns
    -------
    MultiLabelData

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a file cannot be read, with its name and the line; if a label is not an attribute, or is not 0 or 1 in
        every row.

    Notes
    -----
    Rows may be dense or sparse, ``{3 1, 17 0.5}`` with attributes counted from 0. Attributes are numeric or nominal.
    Nominal values that are numbers are kept; of two other values the first is 0 and the second 1; more values become
    one column each, named ``attribute=value``. Values that a sparse row omits are 0 or, as in Weka, the first nominal
    value. ``?`` is a missing value, not allowed in labels.

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
    table = _read_numbers(path)
    is_label = _is_label(table, labels, path)
    with file_errors(path):
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
        raise FileNotFoundError(f"There is no file {str(file)!r}: give its path, with the extension.")
    return file


def read_label_names(path: Path) -> list[str]:
    """The labels of an XML file of Mulan, also of a hierarchy, from top to bottom."""
    with opened(path) as stream:
        try:
            root = ElementTree.parse(stream).getroot()
        except ElementTree.ParseError as error:
            raise ValueError(f"not XML: {error}") from error
        names = [element.get("name") for element in root.iter() if element.tag.rpartition("}")[2] == "label"]
        if not names or None in names:
            raise ValueError('no labels, or a label without a name; expected <labels><label name="..."/></labels>')
        return [str(name) for name in names]


# -------------------------------------------------------------------- numbers


@dataclass(frozen=True, eq=False)
class NumberTable:
    """An ARFF file as numbers.

    Attributes
    ----------
    relation : str
        The name of the relation, with the options that MEKA puts there.
    names : list of str
        Names of the attributes.
    values : csr_array of shape (n, m)
        Zeros are not stored.
    any_sparse : bool
        True if a row of the file is sparse.
    lines : ndarray of int of shape (n,)
        The line of each row, counted from 1.
    """

    relation: str
    names: list[str]
    values: sparse.csr_array
    any_sparse: bool
    lines: Array


def _read_numbers(path: Path) -> NumberTable:
    """Read a file; errors are ValueErrors with its name and the line."""
    source = path.name
    with opened(path) as stream:
        tokens = tokenize(stream, source)
        relation, attributes = read_header(tokens, source)
        columns = _number_columns(attributes, source)
        defaults = {j: x for column in columns for j, x in column.default().items()}
        data, indices, ends, lines = array("d"), array("q"), array("q", [0]), array("q")
        any_sparse = False
        for row in read_rows(tokens, len(attributes)):
            any_sparse |= row.sparse
            values = dict(defaults) if row.sparse else {}
            for j, cell in row.cells.items():
                values.update(columns[j].numbers(_value(cell, columns[j], source, row.line)))
            indices.extend(values.keys())
            data.extend(values.values())
            ends.append(len(data))
            lines.append(row.line)
    names = [name for column in columns for name in column.names]
    values_ = sparse.csr_array((np.array(data), np.array(indices), np.array(ends)), shape=(len(lines), len(names)))
    values_.sort_indices()
    values_.eliminate_zeros()
    return NumberTable(relation, names, values_, any_sparse, np.array(lines))


@dataclass(frozen=True)
class _NumberColumns:
    """The columns of one attribute: one, or one for each nominal value.

    Attributes
    ----------
    attribute : Attribute
    start : int
        The first column.
    names : list of str
        Names of the columns.
    codes : dict or None
        The number of each nominal value, or with several columns its position; None for numeric attributes.
    """

    attribute: Attribute
    start: int
    names: list[str]
    codes: dict[str, float] | None

    def numbers(self, value: float) -> dict[int, float]:
        """The entries of a row in these columns."""
        if len(self.names) == 1:
            return {self.start: value}
        each = range(len(self.names))
        return {self.start + k: value if np.isnan(value) else float(k == value) for k in each}

    def default(self) -> dict[int, float]:
        """The entries that are not 0 in a sparse row without the attribute."""
        first = next(iter(self.codes.values())) if self.codes else 0.0
        return {j: x for j, x in self.numbers(first).items() if x != 0}


def _number_columns(attributes: Sequence[Attribute], source: str) -> list[_NumberColumns]:
    """The columns of each attribute, in the order of the file."""
    found: list[_NumberColumns] = []
    start = 0
    for attribute in attributes:
        codes = _value_codes(attribute, source)
        several = codes is not None and any(number(value) is None for value in codes) and len(codes) > 2
        names = [f"{attribute.name}={value}" for value in attribute.values] if several else [attribute.name]
        found.append(_NumberColumns(attribute, start, names, codes))
        start += len(names)
    return found


def _value_codes(attribute: Attribute, source: str) -> dict[str, float] | None:
    """The number of each nominal value, its position if not all are numbers; None for numeric attributes."""
    if attribute.type in NUMERIC:
        return None
    if not attribute.values:
        raise error_at(
            f"attribute {attribute.name!r} has type {attribute.type!r}; supported are numeric, real, integer and "
            "lists of values such as {0,1}: remove it from the file, or recode it.",
            source,
            line=attribute.line,
        )
    numbers = {value: number(value) for value in attribute.values}
    known = {value: x for value, x in numbers.items() if x is not None}
    return known if len(known) == len(numbers) else {value: float(k) for k, value in enumerate(attribute.values)}


def _value(cell: str, column: _NumberColumns, source: str, line: int) -> float:
    """The number of a cell; NaN if it is missing."""
    attribute, codes = column.attribute, column.codes
    if codes is not None and cell in codes:
        return codes[cell]
    text = strip_cell(cell)
    if text is None:
        return np.nan
    if codes is not None:
        reason = f"attribute {attribute.name!r} is {cell!r}, which is not one of {list(codes)}."
        raise error_at(reason, source, line=line)
    value = number(text)
    if value is None:
        raise error_at(f"attribute {attribute.name!r} is {cell!r}, which is not a number.", source, line=line)
    return value


# ------------------------------------------------------------- which are labels


def _is_label(table: NumberTable, labels: Any, path: Path) -> Array:
    """A mask of the attributes that are labels."""
    if labels is None:
        found = _COUNT.search(table.relation)
        if not found:
            raise ValueError(
                f"{path} does not say which attributes are labels: there is no -C in @relation. {_ADVICE}"
            )
        labels = int(found[1])
    if isinstance(labels, Integral) and not isinstance(labels, bool):
        return _counted(int(labels), table, path)
    if isinstance(labels, str | os.PathLike):
        file = _existing(labels)
        return _named(read_label_names(file), table, f"{file} names", path)
    return _named(_checked_names(labels), table, "labels= names", path)


def _counted(count: int, table: NumberTable, path: Path) -> Array:
    m = len(table.names)
    if not 0 < abs(count) <= m:
        raise ValueError(f"{path} has {m} attributes, which cannot include {count} labels. {_ADVICE}")
    position = np.arange(m)
    return position < count if count > 0 else position >= m + count


def _checked_names(labels: Any) -> list[str]:
    names = list(labels) if isinstance(labels, Sequence | np.ndarray) else []
    if not names or not all(isinstance(name, str) for name in names):
        raise ValueError(f"labels={labels!r} does not say which attributes are labels. {_ADVICE}")
    return names


def _named(names: Sequence[str], table: NumberTable, who: str, path: Path) -> Array:
    unknown = [name for name in names if name not in table.names]
    if unknown:
        raise ValueError(f"{who} {unknown[0]!r}, which is not an attribute of {path}.")
    return np.isin(np.array(table.names, dtype=object), np.array(names, dtype=object))


def _indicator(table: NumberTable, is_label: Array) -> Array:
    Y = table.values[:, np.flatnonzero(is_label)].toarray()
    row, column = np.nonzero(~np.isin(Y, (0, 1)))
    if len(row):
        name = np.array(table.names, dtype=object)[is_label][column[0]]
        value = "missing" if np.isnan(Y[row[0], column[0]]) else f"{Y[row[0], column[0]]:g}"
        raise ValueError(f"line {table.lines[row[0]]}: label {name!r} is {value}; labels must be 0 or 1")
    return Y.astype(np.intp)


# ---------------------------------------------------------------------- enron

#: Labels of the Enron messages of Mulan, Berkeley's categories: coarse genre, forwarded parts, topics, emotional
#: tone; in the order of Mulan's files. The features are 1001 words, 1 if a message contains them.
_SIZES = {"A": 8, "B": 13, "C": 13, "D": 19}
LABELS = tuple(f"{kind}.{kind}{i}" for kind, size in _SIZES.items() for i in sorted(range(1, size + 1), key=str))
N_WORDS = 1001


def _enron_archive(paths: Sequence[Path]) -> list[Part]:
    with opened(paths[0]) as stream, np.load(stream, allow_pickle=False) as z:
        X, train = z["X"], z["is_train"].astype(bool)
        Y = _in_order(z["Y"], z["label_names"].tolist())
        if not len(X) == len(Y) == len(train):
            raise ValueError(f"{len(X)} rows but {len(Y)} of labels, and {len(train)} in is_train")
        names = tuple(z["feature_names"].tolist())
        return [Part(X[part], Y[part], feature_names=names) for part in (train, ~train)]


def _enron_arff(paths: Sequence[Path]) -> list[Part]:
    """One file for each part, then the one that names the labels."""
    *files, labels = paths
    return [_enron_part(file, labels) for file in files]


def _enron_part(file: Path, labels: Path) -> Part:
    data = load_arff(file, labels)
    X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    with file_errors(f"{file} + {labels}"):
        return Part(X, _in_order(data.Y, data.label_names), feature_names=data.feature_names)


def _in_order(Y: Array, names: Sequence[str]) -> Array:
    """The columns in the order of LABELS."""
    if sorted(names) != sorted(LABELS) or Y.ndim != 2 or Y.shape[1] != len(names):
        raise ValueError(f"{len(names)} labels, {', '.join(names[:3])}, ..., are not the {len(LABELS)} of Enron")
    return Y[:, [list(names).index(label) for label in LABELS]]


ENRON = Entry(
    n_features=N_WORDS,
    target_names=None,
    dtype=np.float64,
    label_names=LABELS,
    sources=(
        Source(("enron.npz",), _enron_archive, (0, 1)),
        Source(("enron-train.arff", "enron-test.arff", "enron.xml"), _enron_arff, (0, 1)),
        Source(("enron.arff", "enron.xml"), _enron_arff, (0, 1)),
    ),
)
