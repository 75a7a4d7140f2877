"""The first rows of a table, as text."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Rows shown, letters of a cell, and letters of a line.
ROWS, CELL, LINE = 5, 32, 100


def preview(columns: dict[str, np.ndarray], n_rows: int, source: str = "") -> str:
    """Number of rows and columns, and the first rows of as many columns as a line takes."""
    head = f"{_counted(n_rows, 'row')}, {_counted(len(columns), 'column')}" + (f", from {source}" if source else "")
    shown = [[_cell(name), *map(_cell, column[:ROWS])] for name, column in list(columns.items())[:LINE]]
    widths = [max(map(len, column)) for column in shown]
    fits = int(np.searchsorted(np.cumsum([w + 2 for w in widths]), LINE + 2, side="right"))
    lines = [
        "  ".join(f"{column[i]:<{width}}" for column, width in zip(shown[:fits], widths, strict=False)).rstrip()
        for i in range(min(ROWS, n_rows) + 1)
    ]
    left = {"more row": n_rows - ROWS, "more column": len(columns) - fits}
    more = " and ".join(_counted(count, what) for what, count in left.items() if count > 0)
    return "\n".join([head, *lines] + ([f"... {more}"] if more else []))


def _cell(value: Any) -> str:
    """A value on one line, cut where it is long; nothing where it is missing."""
    if value is None or value != value:
        return ""
    text = f"{value:.6g}" if isinstance(value, float | np.floating) else " ".join(str(value).split())
    return text if len(text) <= CELL else text[: CELL - 3] + "..."


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")
