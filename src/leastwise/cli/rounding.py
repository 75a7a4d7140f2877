"""Predictions with as many digits as mean something, for files of text."""

from __future__ import annotations

from typing import Any

import numpy as np

from leastwise.tables import Table, TableModel
from leastwise.tables.prepare import Roles

#: Of probabilities, confidence and trust.
DECIMALS = 6
#: Significant digits of numbers.
DIGITS = 7


def rounded(said: Table, model: TableModel) -> Table:
    """The table of predictions with shares of six decimals, or numbers of seven digits."""
    ids = Roles.of(model).ids
    if model.kind_ == "numbers":
        change = dict.fromkeys(("prediction", "lower", "upper"), _number)
    else:
        change = {name: _share for name in said.names if said[name].dtype.kind == "f" and name not in ids}
    columns = {name: _changed(c, change[name]) if name in change else c for name, c in said.columns.items()}
    return Table(columns, said.source, notes=said.notes)


def _changed(column: Any, change: Any) -> Any:
    out = np.empty(len(column), dtype=object)
    out[:] = [None if value != value else change(value) for value in column.tolist()]
    return out


def _share(value: float) -> str:
    """Without the zeros at the end, but one."""
    text = f"{value:.{DECIMALS}f}".rstrip("0")
    return text + "0" if text.endswith(".") else text


def _number(value: float) -> str:
    return str(float(f"{value:.{DIGITS}g}"))
