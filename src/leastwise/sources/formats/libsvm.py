"""The text format of libsvm: ``label index:value index:value ...``."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from leastwise.sources.blocks import StreamError, error_at
from leastwise.sources.formats.cells import TextColumns, number, object_column
from leastwise.utils.resources import available_memory, human

#: The maximum number of columns of a dense table.
MAX_COLUMNS = 1_000_000
#: Characters of plain numbers, for which float() follows the rules of ``cells.number``.
_PLAIN = str.maketrans("", "", "0123456789+-.eE: \t\r\n")


@dataclass(frozen=True)
class LibsvmRows:
    """The rows of a file.

    Attributes
    ----------
    labels : list of str
    values : csr_array of shape (n, largest index + 1)
        Column j holds the values of index j.
    lines : ndarray of int of shape (n,)
        The line of each row, counted from 1.
    """

    labels: list[str]
    values: sparse.csr_array
    lines: np.ndarray


def read_libsvm(lines: Iterable[str | bytes], source: str) -> LibsvmRows:
    """Read all rows; an error names the line."""
    labels: list[str] = []
    data, indices, ends, numbers = array("d"), array("q"), array("q", [0]), array("q")
    for line, row in enumerate(lines, start=1):
        text = row.decode(errors="backslashreplace") if isinstance(row, bytes) else row
        words = text.split("#", 1)[0].split()
        if not words:
            continue
        if ":" in words[0]:
            raise error_at(f"the line begins with {words[0][:60]!r} instead of a label.", source, line=line)
        read = float if not " ".join(words[1:]).translate(_PLAIN) else number
        cells: dict[int, float] = {}
        for word in words[1:]:
            index, value = _pair(word, read, source, line)
            if index in cells:
                raise error_at(f"index {index} is given twice.", source, line=line)
            cells[index] = value
        labels.append(words[0])
        indices.extend(cells.keys())
        data.extend(cells.values())
        ends.append(len(data))
        numbers.append(line)
    if not labels:
        raise StreamError(f"{source}: the file is empty: rows such as '1 3:0.5 7:2' are needed.")
    shape = (len(labels), max(indices, default=0) + 1)
    values = sparse.csr_array((np.array(data), np.array(indices), np.array(ends)), shape=shape)
    return LibsvmRows(labels, values, np.array(numbers))


def _pair(word: str, read: object, source: str, line: int) -> tuple[int, float]:
    index, _, value = word.partition(":")
    try:
        given = read(value)  # type: ignore[operator]
    except ValueError:
        given = None
    if given is None or not (index.isascii() and index.isdecimal()) or len(index) > 9:
        raise error_at(
            f"found {word[:60]!r}; expected an index of 0 or more, a colon and a number, such as 3:0.5.",
            source,
            line=line,
        )
    return int(index), given


def read_libsvm_columns(text: str, source: str) -> TextColumns:
    """The label as the column y, and a column of numbers for each index up to the largest, 0 where not given.

    Indices begin at 1, or at 0 if a row has that one.
    """
    rows = read_libsvm(text.splitlines(), source)
    first = 0 if (rows.values.indices == 0).any() else 1
    n, width = len(rows.labels), rows.values.shape[1] - first
    if 8 * n * width > available_memory() // 4 or width > MAX_COLUMNS:
        raise StreamError(
            f"{source}: {n} rows with indices up to {width} take {human(8 * n * width)} as a table, which exceeds "
            f"the available memory or {MAX_COLUMNS:,} columns. Read the file with "
            "sklearn.datasets.load_svmlight_file, and fit an estimator on that."
        )
    X = rows.values[:, first:].toarray()
    columns = {"y": object_column(rows.labels), **{f"x{j + first}": X[:, j] for j in range(width)}}
    return TextColumns(columns, rows.lines, absent=0.0)
