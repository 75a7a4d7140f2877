"""Weka's attribute-relation files (ARFF) with dense and sparse rows.

:func:`read_header` reads the attributes; :func:`read_rows` then gives the cells of each row as text. What the cells
mean is for the caller: tables keep them as text (:func:`read_arff`), ``leastwise.datasets`` makes numbers of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from leastwise.sources.blocks import StreamError, error_at
from leastwise.sources.formats.cells import TextColumns, object_column
from leastwise.utils.resources import available_memory, human

NUMERIC = ("numeric", "real", "integer")
#: A quoted text, a comment, a brace, a word, or a quote that is not closed.
_TOKEN = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|%.*|[{}]|[^\s,%{}'"][^\s,%{}]*|['"]""")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True)
class Attribute:
    """A column: its name, its type, the values of a nominal attribute, and the line of its declaration."""

    name: str
    type: str
    values: tuple[str, ...] = ()
    line: int = 0

    @property
    def default(self) -> str:
        """The value of the attribute in a sparse row that omits it: zero, or the first nominal value."""
        return self.values[0] if self.values else "0" if self.type in NUMERIC else "?"


@dataclass(frozen=True)
class Row:
    """The cells of a row by attribute number, and its line; a sparse row has only the cells that it gives."""

    line: int
    cells: dict[int, str]
    sparse: bool


class Tokens(list):
    """The tokens of a line, and its position for messages."""

    def __init__(self, tokens: Iterable[str], line: int, source: str) -> None:
        super().__init__(tokens)
        self.line, self.source = line, source

    def error(self, reason: str) -> StreamError:
        """An error about this line."""
        return error_at(reason, self.source, line=self.line)


def tokenize(lines: Iterable[str | bytes], source: str) -> Iterator[Tokens]:
    """The tokens of all lines that are neither empty nor comments."""
    for number, line in enumerate(lines, start=1):
        text = line.decode(errors="backslashreplace") if isinstance(line, bytes) else line
        tokens = Tokens(_split(text.removeprefix("\ufeff")), number, source)
        for k, token in enumerate(tokens):
            if token[0] in "'\"":
                if len(token) == 1:
                    raise tokens.error(f"a quote {token} is not closed.")
                tokens[k] = re.sub(r"\\(.)", lambda match: _ESCAPED.get(match[1], match[1]), token[1:-1])
        if tokens:
            yield tokens


def _split(line: str) -> list[str]:
    """Split at commas and white space; braces are tokens of their own, quoted text keeps its quotes."""
    if not any(mark in line for mark in "'\"%"):
        return line.replace("{", " { ").replace("}", " } ").replace(",", " ").split()
    return [token for token in _TOKEN.findall(line) if not token.startswith("%")]


def read_header(lines: Iterator[Tokens], source: str) -> tuple[str, list[Attribute]]:
    """The name of the relation and the attributes; ``lines`` is left after @data."""
    relation, attributes = "", dict[str, Attribute]()
    for line in lines:
        keyword = line[0].lower()
        if keyword == "@relation":
            relation = " ".join(line[1:])
        elif keyword == "@attribute":
            attribute = _attribute(line)
            if attribute.name in attributes:
                raise line.error(f"a second attribute is named {attribute.name[:60]!r}.")
            attributes[attribute.name] = attribute
        elif keyword == "@data":
            if not attributes:
                raise line.error("@data comes before any @attribute.")
            return relation, list(attributes.values())
        else:
            raise line.error(f"found {line[0][:60]!r}; expected @relation, @attribute or @data.")
    raise StreamError(f"{source}: there is no @data line.")


def _attribute(line: Tokens) -> Attribute:
    if len(line) < 3:
        raise line.error("an attribute needs a name and a type.")
    _, name, type, *values = line
    if type == "{" and len(values) > 1 and values[-1] == "}":
        return Attribute(name, "nominal", tuple(values[:-1]), line.line)
    if type.lower() in (*NUMERIC, "string", "date"):
        return Attribute(name, type.lower(), (), line.line)
    kind = " ".join([type, *values[:20]])[:60]
    raise line.error(
        f"attribute {name[:60]!r} has type {kind!r}; supported are numeric, real, integer, string, "
        "date and lists of values such as {a,b}."
    )


def read_rows(lines: Iterator[Tokens], n_attributes: int) -> Iterator[Row]:
    """All rows after @data."""
    for line in lines:
        if line[0] == "{":
            yield Row(line.line, _sparse_cells(line, n_attributes), sparse=True)
        elif len(line) == n_attributes:
            yield Row(line.line, dict(enumerate(line)), sparse=False)
        else:
            raise line.error(f"{len(line)} values, but there are {n_attributes} attributes.")


def _sparse_cells(line: Tokens, n_attributes: int) -> dict[int, str]:
    """The cells of pairs of an attribute's number and a value, within braces."""
    if line[-1] != "}":
        raise line.error("a sparse row does not end with }.")
    if len(line) % 2:
        raise line.error("a sparse row must consist of pairs of an attribute's number and a value.")
    cells: dict[int, str] = {}
    for index, value in zip(line[1:-1:2], line[2:-1:2], strict=True):
        j = int(index) if index.isdecimal() and len(index) < 10 else -1
        if not 0 <= j < n_attributes:
            raise line.error(f"attribute number {index[:60]!r} is not in the range 0 to {n_attributes - 1}.")
        if j in cells:
            raise line.error(f"attribute number {j} is given twice.")
        cells[j] = value
    return cells


def read_arff(text: str, source: str) -> TextColumns:
    """A file as columns of text; nominal attributes are declared as categories."""
    lines = tokenize(text.split("\n"), source)
    _, attributes = read_header(lines, source)
    rows, limit = [], available_memory() // 4
    for row in read_rows(lines, len(attributes)):
        rows.append(row)
        if 8 * len(rows) * len(attributes) > limit:  # a sparse row of two characters stands for all attributes
            size = f"{len(rows)} rows of {len(attributes)} attributes exceed {human(limit)}"
            raise error_at(f"{size}, too much for the available memory.", source, line=row.line)
    if not rows:
        raise StreamError(f"{source}: there are no rows after @data.")
    columns = {a.name: object_column([row.cells.get(j, a.default) for row in rows]) for j, a in enumerate(attributes)}
    declared = {a.name: "category" for a in attributes if a.values}
    return TextColumns(columns, np.array([row.line for row in rows]), declared)
