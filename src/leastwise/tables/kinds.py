"""What a column is: numbers, dates, booleans or categories; or nothing to learn from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.tables.cells import boolean, date, number, stripped, text_cells, values_of
from leastwise.tables.table import Array, Table

KINDS = ("number", "boolean", "date", "category", "ignore")
#: Text of more different values than this, and than half of the rows, is no category: names, ids, free text.
FEW_TEXTS = 10
#: Numbers of more different values than this are no codes of categories: text among them is a mistake.
FEW_CODES = 20
#: Where at least this share of the cells of such a column are numbers.
MOSTLY = 0.9
#: A column 0, 1, 2, ... of at least so many rows is a row number.
COUNTED = 10


@dataclass(frozen=True)
class Found:
    """The kind of a column, and why."""

    kind: str
    note: str = ""


def find_kind(table: Table, name: str) -> Found:
    """The kind of a column by what is in it, and by what its file says of it."""
    column = table[name]
    if table.declared.get(name) == "category":
        return Found("category") if any(t is not None for t in text_cells(column)) else _nothing()
    if column.dtype.kind == "b":
        return Found("boolean")
    if column.dtype.kind == "M":
        return Found("date", "read as days since 1970-01-01") if not np.isnat(column).all() else _nothing()
    if column.dtype.kind == "O":
        return _of_text(table, name)
    values = column[~np.isnan(column)] if column.dtype.kind == "f" else column
    return _of_numbers(values.astype(float), len(column)) if len(values) else _nothing()


def _nothing() -> Found:
    return Found("ignore", "no values")


def _of_text(table: Table, name: str) -> Found:
    cells = table[name].tolist()
    texts = {cell: text for cell in set(cells) if (text := stripped(cell)) is not None}
    if not texts:
        return _nothing()
    numbers = {cell: value for cell, text in texts.items() if (value := number(text)) is not None}
    if len(numbers) == len(texts):
        return _of_numbers(np.array([numbers[cell] for cell in cells if cell in numbers]), len(cells))
    for read, found in ((boolean, Found("boolean")), (date, Found("date", "read as days since 1970-01-01"))):
        if all(read(text) is not None for text in texts.values()):
            return found
    known = [cell for cell in cells if cell in texts]
    _refuse_mistakes(table, name, numbers, known)
    values = len(set(texts.values()))
    if values > max(FEW_TEXTS, len(known) / 2):
        return Found("ignore", f"{values} different texts in {len(known)} rows: names, ids or free text")
    return Found("category")


def _of_numbers(values: Array, n: int) -> Found:
    if n >= COUNTED and len(values) == n and (np.diff(values) == 1).all():
        return Found("ignore", "rises by one from row to row: a row number")
    return Found("number")


def _refuse_mistakes(table: Table, name: str, numbers: dict[Any, float], known: list) -> None:
    """A few words among many different numbers are mistakes, or a way to say missing that is not known here."""
    words = [cell for cell in known if cell not in numbers]
    if len(set(numbers.values())) > FEW_CODES and len(known) - len(words) >= MOSTLY * len(known):
        row = table[name].tolist().index(words[0])
        raise table.error(
            row,
            name,
            f'"{words[0]:.60}" is not a number, and {len(known) - len(words)} of {len(known)} cells of this column '
            "are: correct it or leave it empty; or say that the column is of the kind 'category'.",
        )


# -------------------------------------------------------------------- columns


@dataclass(frozen=True)
class Column:
    """What was found in a column, and how it becomes features.

    Attributes
    ----------
    name, kind : str
        The kind is one of "number", "date", "boolean", "category" and "ignore".
    n_missing : int
        Missing cells in training. With some, there is a feature that says where.
    n_values : int
        Different values in training.
    fill : float
        What missing numbers and dates become, the median; of booleans the share of true ones.
    mean, scale : float
        Numbers and dates become ``(value - mean) / scale``. A scale of 0 leaves the column out: it is constant.
    categories : tuple of str
        Those with a feature of their own.
    pooled : tuple of str
        Rare ones, which share a feature.
    note : str
        What is worth saying about it.
    """

    name: str
    kind: str
    n_missing: int = 0
    n_values: int = 0
    fill: float = 0.0
    mean: float = 0.0
    scale: float = 1.0
    categories: tuple[str, ...] = ()
    pooled: tuple[str, ...] = ()
    note: str = ""

    @property
    def features(self) -> list[str]:
        """Names of what it becomes."""
        if self.kind == "ignore":
            return []
        if self.kind == "category":
            own = [f"{self.name}={c}" for c in self.categories] + ([f"{self.name}=(other)"] if self.pooled else [])
        else:
            own = [self.name] if self.scale > 0 else []
        return own + ([f"{self.name}=(missing)"] if self.n_missing else [])


def fit_column(table: Table, name: str, found: Found, max_categories: int, min_share: float) -> Column:
    """A column as it is in training."""
    if found.kind == "ignore":
        return Column(name, "ignore", note=found.note)
    if found.kind == "category":
        return _fit_category(table, name, max_categories, min_share)
    values = values_of(table, name, found.kind)
    known = values[~np.isnan(values)]
    counts: dict[str, Any] = {"n_missing": len(values) - len(known), "n_values": len(np.unique(known))}
    if counts["n_values"] < 2:
        kind = found.kind if len(known) and counts["n_missing"] else "ignore"
        return Column(name, kind, **counts, scale=0.0, note="constant" if len(known) else "no values")
    if found.kind == "boolean":
        return Column(name, "boolean", **counts, fill=float(known.mean()))
    fill = float(np.median(known / 2) * 2)  # the mean of two halves cannot overflow
    size = np.abs(known).max()
    parts = np.where(np.isnan(values), fill, values) / size
    return Column(
        name,
        found.kind,
        **counts,
        fill=fill,
        mean=float(parts.mean() * size),
        scale=float(parts.std() * size),
        note=found.note,
    )


def _fit_category(table: Table, name: str, max_categories: int, min_share: float) -> Column:
    texts = [text for text in text_cells(table[name]) if text is not None]
    counts = Counter(texts)
    enough = max(2, min_share * len(texts))
    frequent = sorted(counts, key=lambda value: (-counts[value], value))[:max_categories]
    kept = tuple(sorted(value for value in frequent if counts[value] >= enough))
    pooled, missing = tuple(sorted(set(counts) - set(kept))), len(table) - len(texts)
    if len(counts) > 1 and kept:
        note = f"{len(pooled)} rare values pooled as (other)" if pooled else ""
        return Column(name, "category", missing, len(counts), categories=kept, pooled=pooled, note=note)
    note = "constant" if len(counts) == 1 else f"{len(counts)} values, all of them rare" if texts else "no values"
    return Column(name, "category" if missing and texts else "ignore", missing, len(counts), note=note)
