"""ARFF files as tables of text, with the categories that they declare."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.tables.table import Table, TableError


@dataclass(frozen=True)
class Declared:
    """An attribute: its name, whether its values are listed, and what a sparse row means by leaving it out."""

    name: str
    listed: bool
    default: str


def read_arff(text: str, source: str) -> Table:
    """A table of text; attributes with listed values are categories, whatever these look like."""
    from leastwise.datasets.arff import tokenized

    try:
        lines = tokenized(io.BytesIO(text.encode()))
        attributes = _header(lines)
        rows, numbers = _rows(lines, attributes)
    except TableError:
        raise
    except ValueError as error:
        raise TableError(f"{source}: {error}.") from None
    if not rows:
        raise TableError(f"{source}: there are no rows after @data.")
    columns = {}
    for j, attribute in enumerate(attributes):
        columns[attribute.name] = np.empty(len(rows), dtype=object)
        columns[attribute.name][:] = [row[j] for row in rows]
    declared = {a.name: "category" for a in attributes if a.listed}
    return Table(columns, source, np.array(numbers), "line", declared=declared)


def _header(lines: Iterator[Any]) -> list[Declared]:
    attributes: dict[str, Declared] = {}
    for line in lines:
        keyword = line[0].lower()
        if keyword == "@data":
            if not attributes:
                raise line.error("@data before any @attribute")
            return list(attributes.values())
        if keyword == "@attribute":
            found = _attribute(line)
            if found.name in attributes:
                raise line.error(f"a second attribute of the name {found.name!r}")
            attributes[found.name] = found
        elif keyword != "@relation":
            raise line.error(f"{line[0]!r} where @relation, @attribute or @data should be")
    raise ValueError("there is no line @data")


def _attribute(line: Any) -> Declared:
    from leastwise.datasets.arff import NUMERIC

    if len(line) < 3:
        raise line.error("an attribute needs a name and a type")
    _, name, kind, *values = line
    if kind == "{" and len(values) > 1 and values[-1] == "}":
        return Declared(name, listed=True, default=values[0])
    if kind.lower() in (*NUMERIC, "string", "date"):
        return Declared(name, listed=False, default="0" if kind.lower() in NUMERIC else "?")
    raise line.error(
        f"attribute {name!r} is of type {' '.join([kind, *values])!r}; numeric, real, integer, string, date and "
        "lists of values such as {a,b} can be read"
    )


def _rows(lines: Iterator[Any], attributes: list[Declared]) -> tuple[list[list[str]], list[int]]:
    rows, numbers = [], []
    for line in lines:
        if line[0] == "{":
            rows.append(_sparse(line, attributes))
        elif len(line) == len(attributes):
            rows.append(list(line))
        else:
            raise line.error(f"{len(line)} values, but there are {len(attributes)} attributes")
        numbers.append(line.number)
    return rows, numbers


def _sparse(line: Any, attributes: list[Declared]) -> list[str]:
    """A row of pairs of an attribute's number and a value."""
    if line[-1] != "}" or len(line) % 2:
        raise line.error("a sparse row that is not made of pairs of an attribute's number and a value within { }")
    row, seen = [a.default for a in attributes], set()
    for index, value in zip(line[1:-1:2], line[2:-1:2], strict=True):
        j = int(index) if index.isdecimal() and len(index) < 10 else -1
        if not 0 <= j < len(attributes) or j in seen:
            raise line.error(f"attribute number {index!r}, which is given twice or not 0 to {len(attributes) - 1}")
        seen.add(j)
        row[j] = value
    return row
