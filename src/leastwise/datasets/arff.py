"""Weka's attribute-relation files (ARFF) with dense or sparse rows, as one table of numbers."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from scipy import sparse

from leastwise.datasets.files import Array, opened

NUMERIC = ("numeric", "real", "integer")
#: A quoted text, a comment, a brace, a word, or a quote that is not closed.
_TOKEN = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|%.*|[{}]|[^\s,%{}'"][^\s,%{}]*|['"]""")
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True, eq=False)
class Attribute:
    """A column: its name, and the numbers that its values stand for, or None where they are numbers already."""

    name: str
    codes: dict[str, float] | None

    @property
    def default(self) -> float:
        """What a sparse row means by leaving it out: zero, or the first of the values that are listed."""
        return 0.0 if self.codes is None else next(iter(self.codes.values()))

    def number(self, text: str) -> float:
        """The value that is written as ``text``; NaN where it is missing."""
        if text == "?":
            return np.nan
        if self.codes is None:
            return _as_number(text, f"attribute {self.name!r} is {text!r}, which is no number")
        if text not in self.codes:
            raise ValueError(f"attribute {self.name!r} is {text!r}, which is none of {list(self.codes)}")
        return self.codes[text]


@dataclass(frozen=True, eq=False)
class Table:
    """What a file holds.

    Attributes
    ----------
    relation : str
        Its name, with the options that MEKA puts there.
    names : list of str
        Of the attributes.
    values : csr_array of shape (n, m)
        Zeros are not stored.
    any_sparse : bool
        Whether a row of the file is sparse.
    lines : ndarray of int of shape (n,)
        Where the rows are in the file, counted from 1.
    """

    relation: str
    names: list[str]
    values: sparse.csr_array
    any_sparse: bool
    lines: Array


def read_table(path: Path) -> Table:
    """Read a file; whatever is wrong is a ValueError that names it and the line."""
    with opened(path) as stream:
        lines = tokenized(stream)
        relation, attributes = _read_header(lines)
        return _read_rows(lines, relation, attributes)


# ---------------------------------------------------------------------- words


class Line(list):
    """The words of a line, and its number."""

    def __init__(self, words: list[str], number: int) -> None:
        super().__init__(words)
        self.number = number

    def error(self, message: object) -> ValueError:
        """An error that names the line."""
        return ValueError(f"line {self.number}: {message}")


def tokenized(stream: IO[bytes]) -> Iterator[Line]:
    """The lines that are neither empty nor a comment."""
    for number, line in enumerate(stream, start=1):
        words = Line([], number)
        try:
            words.extend(_words(line.decode(errors="backslashreplace").removeprefix("\ufeff")))
        except ValueError as error:
            raise words.error(error) from error
        if words:
            yield words


def _words(line: str) -> list[str]:
    """Split at commas and white space; braces are words of their own."""
    if not any(mark in line for mark in "'\"%"):
        return line.replace("{", " { ").replace("}", " } ").replace(",", " ").split()
    found = [word for word in _TOKEN.findall(line) if not word.startswith("%")]
    return [_unquoted(word) for word in found]


def _unquoted(word: str) -> str:
    if word[0] not in "'\"":
        return word
    if len(word) == 1:
        raise ValueError(f"a quote {word} that is not closed")
    return re.sub(r"\\(.)", lambda match: _ESCAPED.get(match[1], match[1]), word[1:-1])


def _as_number(text: str, message: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(message) from None


# --------------------------------------------------------------------- header


def _read_header(lines: Iterator[Line]) -> tuple[str, list[Attribute]]:
    """The name of the relation and the attributes; the lines after @data are left."""
    relation, attributes = "", dict[str, Attribute]()
    for line in lines:
        keyword = line[0].lower()
        if keyword == "@relation":
            relation = " ".join(line[1:])
        elif keyword == "@attribute":
            attribute = _attribute(line)
            if attribute.name in attributes:
                raise line.error(f"a second attribute of the name {attribute.name!r}")
            attributes[attribute.name] = attribute
        elif keyword == "@data":
            if not attributes:
                raise line.error("@data before any @attribute")
            return relation, list(attributes.values())
        else:
            raise line.error(f"{line[0]!r} where @relation, @attribute or @data should be")
    raise ValueError("there is no line @data")


def _attribute(line: Line) -> Attribute:
    if len(line) < 3:
        raise line.error("an attribute needs a name and a type")
    _, name, kind, *values = line
    if kind.lower() in NUMERIC:
        return Attribute(name, None)
    if kind == "{" and len(values) > 1 and values[-1] == "}":
        return Attribute(name, _codes(values[:-1], name, line))
    raise line.error(
        f"attribute {name!r} is of type {' '.join([kind, *values])!r}; numeric, real, integer and lists of values "
        "such as {0,1} can be read: leave it out of the file, or recode it"
    )


def _codes(values: list[str], name: str, line: Line) -> dict[str, float]:
    """Numbers stand for themselves; of two words, the first is 0 and the second 1."""
    try:
        return {value: float(value) for value in values}
    except ValueError:
        if len(values) == 2:
            return {values[0]: 0.0, values[1]: 1.0}
    raise line.error(
        f"attribute {name!r} has {len(values)} values that are not all numbers: recode it, by one attribute {{0,1}} "
        "for each value"
    )


# ----------------------------------------------------------------------- rows


def _read_rows(lines: Iterator[Line], relation: str, attributes: list[Attribute]) -> Table:
    defaults = {j: a.default for j, a in enumerate(attributes) if a.default != 0}
    data, columns, ends, numbers = array("d"), array("q"), array("q", [0]), array("q")
    any_sparse = False
    for line in lines:
        is_sparse = line[0] == "{"
        any_sparse |= is_sparse
        try:
            row = {**defaults, **_sparse_row(line, attributes)} if is_sparse else _dense_row(line, attributes)
        except ValueError as error:
            raise line.error(error) from error
        columns.extend(row.keys())
        data.extend(row.values())
        ends.append(len(data))
        numbers.append(line.number)
    shape = (len(numbers), len(attributes))
    values = sparse.csr_array((np.array(data), np.array(columns), np.array(ends)), shape=shape)
    values.sort_indices()
    values.eliminate_zeros()
    return Table(relation, [a.name for a in attributes], values, any_sparse, np.array(numbers))


def _dense_row(words: list[str], attributes: list[Attribute]) -> dict[int, float]:
    """The values by their attribute's number, without zeros."""
    if len(words) != len(attributes):
        raise ValueError(f"{len(words)} values, but there are {len(attributes)} attributes")
    numbers = (attribute.number(word) for attribute, word in zip(attributes, words, strict=True))
    return {j: number for j, number in enumerate(numbers) if number != 0}


def _sparse_row(words: list[str], attributes: list[Attribute]) -> dict[int, float]:
    """The values that are given by their attribute's number."""
    if words[-1] != "}":
        raise ValueError("a sparse row that does not end with }")
    if len(words) % 2:
        raise ValueError("a sparse row that is not made of pairs of an attribute's number and a value")
    row: dict[int, float] = {}
    for index, value in zip(words[1:-1:2], words[2:-1:2], strict=True):
        j = _checked_index(index, len(attributes))
        if j in row:
            raise ValueError(f"attribute number {j} is given twice")
        row[j] = attributes[j].number(value)
    return row


def _checked_index(index: str, n_attributes: int) -> int:
    j = int(index) if index.isdecimal() else -1
    if not 0 <= j < n_attributes:
        raise ValueError(f"attribute number {index!r}; the numbers are 0 to {n_attributes - 1}")
    return j
