"""The text format of libsvm: ``label index:value index:value ...``, as columns y, x1, x2, ..."""

from __future__ import annotations

import numpy as np

from leastwise.tables.cells import number
from leastwise.tables.table import Table, TableError
from leastwise.utils.memory import available_memory, human

#: A table of more columns than this is no table for people.
MAX_COLUMNS = 1_000_000


def read_libsvm(text: str, source: str) -> Table:
    """The label as the column y, and a column of numbers for every index up to the largest, 0 where not given.

    Indices begin at 1; at 0, where a row has that one.
    """
    labels, rows, lines = [], [], []
    for line, row in enumerate(text.splitlines(), start=1):
        words = row.split("#", 1)[0].split()
        if not words:
            continue
        if ":" in words[0]:
            raise TableError(f"{source}: line {line} begins with {words[0]!r}; there should be a label.")
        labels.append(words[0])
        rows.append(_pairs(words[1:], line, source))
        lines.append(line)
    if not rows:
        raise TableError(f"{source}: the file is empty: there must be rows such as '1 3:0.5 7:2'.")
    first = 0 if any(0 in row for row in rows) else 1
    X = _dense(rows, first, source)
    y = np.empty(len(labels), dtype=object)
    y[:] = labels
    columns = {"y": y, **{f"x{j + first}": X[:, j] for j in range(X.shape[1])}}
    return Table(columns, source, np.array(lines), "line", absent=0.0)


def _pairs(words: list[str], line: int, source: str) -> dict[int, float]:
    row: dict[int, float] = {}
    for word in words:
        index, _, value = word.partition(":")
        given = number(value)
        if not (index.isascii() and index.isdecimal()) or len(index) > 9 or given is None:
            raise TableError(
                f"{source}: line {line} holds {word!r}; there should be a whole number of 0 or more, a colon and a "
                "number, such as 3:0.5."
            )
        if int(index) in row:
            raise TableError(f"{source}: line {line} gives index {index} twice.")
        row[int(index)] = given
    return row


def _dense(rows: list[dict[int, float]], first: int, source: str) -> np.ndarray:
    width = 1 - first + max((max(row, default=0) for row in rows), default=0)
    need = 8 * len(rows) * width
    if need > available_memory() // 4 or width > MAX_COLUMNS:
        raise TableError(
            f"{source}: {len(rows)} rows with indices up to {width} take {human(need)} as a table, more than "
            f"there is memory for, or more than {MAX_COLUMNS:,} columns. Read it with "
            "sklearn.datasets.load_svmlight_file, and fit an estimator on that."
        )
    X = np.zeros((len(rows), width))
    for i, row in enumerate(rows):
        X[i, np.fromiter(row.keys(), int, len(row)) - first] = list(row.values())
    return X
