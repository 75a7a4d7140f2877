"""The features of tables: :class:`leastwise.tables.TableEncoder` as nodes.

What comes in is what stands in a file: numbers with NaN where they are missing, dates as days since 1970, and text,
which is looked up. Cells that Python refuses become NaN, and so do the probabilities of their rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np

from leastwise.onnx._columns import Block, Columns
from leastwise.onnx._graph import Graph, Value
from leastwise.sources.formats.cells import FALSE, MISSING, TRUE
from leastwise.tables import TableEncoder
from leastwise.tables.columns import Column, text_cells, values_of
from leastwise.tables.encoder import FAR
from leastwise.tables.table import Table

Array = np.ndarray


def encoded(g: Graph, step: TableEncoder, columns: Columns) -> Columns:
    """All features, column by column; columns without any are not read."""
    real = [j for j, c in enumerate(step.columns_) if c.features and c.kind in ("number", "date")]
    parts = _scaled(g, step, columns, real) if real else {}
    for j, column in enumerate(step.columns_):
        if column.features:
            columns.tell(j, column.kind)
            if j not in parts:
                read = _of_booleans if column.kind == "boolean" else _of_categories
                parts[j] = read(g, column, columns.text(j))
    return Columns.joined(g, [parts[j] for j in sorted(parts)])


def _scaled(g: Graph, step: TableEncoder, columns: Columns, which: list[int]) -> dict[int, Columns]:
    """Numbers and dates, filled and standardised all at once, and where they are missing."""
    found = [step.columns_[j] for j in which]
    X = _numbers(g, columns, which, [c.kind == "date" for c in found])
    fill, mean, scale = (np.array([getattr(c, name) for c in found]) for name in ("fill", "mean", "scale"))
    gap, wrong = g.node("IsNaN", X), g.node("IsInf", X)
    Z = ((g.where(gap, fill, X) - mean) / np.where(scale > 0, scale, 1.0)).at_least(-FAR).at_most(FAR)
    values, gaps = (Block(g.where(wrong, np.nan, part), len(found)) for part in (Z, gap.cast(g.real)))
    own = {}
    for k, (j, c) in enumerate(zip(which, found, strict=True)):
        own[j] = Columns(g, (((values, k),) if c.scale > 0 else ()) + (((gaps, k),) if c.n_missing else ()))
    return own


def _numbers(g: Graph, columns: Columns, which: list[int], dates: list[bool]) -> Value:
    if not any(dates):
        return columns.pick(which).numbers()
    return g.beside(
        [columns.days(j) if d else columns.pick([j]).numbers() for j, d in zip(which, dates, strict=True)]
    )


def _of_booleans(g: Graph, column: Column, text: Value) -> Columns:
    """0 and 1, what is missing filled; other text is NaN."""
    words = [[*spellings(FALSE), "0", "0.0"], [*spellings(TRUE), "1", "1.0"], spellings(MISSING)]
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [column.fill, 1.0], [np.nan, np.nan]])
    kept = rows[:, [column.scale > 0, column.n_missing > 0]]
    return _looked_up(g, text, words, kept, 3)


def _of_categories(g: Graph, column: Column, text: Value) -> Columns:
    """1 in the place of the category, of others, or of what is missing; zeros where it has no place."""
    width = len(column.features)
    table = np.vstack([np.eye(width), np.zeros(width)])
    other = len(column.categories) if column.pooled else width
    words: list[list[str]] = [[c] for c in column.categories] + [[]] * (width - len(column.categories) + 1)
    words[width - 1 if column.n_missing else width] = spellings(MISSING)
    return _looked_up(g, text, words, table, other)


def _looked_up(g: Graph, text: Value, words: list[list[str]], table: Array, other: int) -> Columns:
    """For each cell the row of the table whose words it is among; ``other`` is the row of all else."""
    keys = [word for each in words for word in each]
    rows = [row for row, each in enumerate(words) for _ in each]
    place = g.lookup(text.squeezed(1), keys, other, rows)
    return Columns.of(Block(g.node("Gather", table, place), table.shape[1]))


def spellings(words: Iterable[str]) -> list[str]:
    """Words in all cases of letters."""
    return sorted({"".join(w) for word in words for w in product(*((c.lower(), c.upper()) for c in word))})


# ------------------------------------------------------------------- feeding


def cells(table: Table, name: str, kind: str) -> Array:
    """A column of a table as its input wants it: numbers, or text with "" where it is missing."""
    if name not in table.columns and table.absent is not None:
        return np.full(len(table), table.absent)
    if kind in ("number", "date"):
        return values_of(table, name, kind)
    if kind != "boolean":
        return _texts("" if text is None else text for text in text_cells(table[name]))
    return _texts("" if v != v else "true" if v else "false" for v in values_of(table, name, kind).tolist())


def _texts(values: Any) -> Array:
    return np.array(list(values), dtype=object)
