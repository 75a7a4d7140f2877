"""Delimited text: bytes to characters, characters to cells, with messages that name the line."""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from leastwise.tables.table import Array, Table, TableError

#: Delimiters that are looked for, the likeliest first.
DELIMITERS = (",", ";", "\t", "|")
#: Records that the delimiter and the decimal mark are guessed from.
GUESSED_FROM = 1000
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
#: 1,5 or 1.234,5 or 1.234.567 where the comma is the decimal mark.
_COMMA = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+(?:,\d*)?|\d*,\d+|\d+,)(?:[eE][+-]?\d+)?", re.ASCII)
_GROUPED = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+", re.ASCII)
_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?", re.ASCII)


def decode(data: bytes, encoding: str | None, source: str) -> str:
    """The characters of a file: by its mark, else UTF-8 or UTF-16, else latin-1 with a warning."""
    mark = next(((m, name) for m, name in _MARKS if data.startswith(m)), None)
    if mark is not None and encoding is None:
        data, encoding = data[len(mark[0]) :], mark[1]
    encoding = encoding or _unmarked(data)
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except LookupError:
        raise TableError(
            f"{source}: encoding={encoding!r} is not known: use 'utf-8', 'latin-1' or another."
        ) from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        place = f"byte 0x{data[error.start]:02x} in line {line}"
        if encoding != "utf-8" or mark is not None:
            raise TableError(f"{source}: {place} is not {encoding}: give the encoding of the file.") from None
        warnings.warn(
            f"{source}: {place} is not UTF-8; the file is read as latin-1. Give encoding= if letters look wrong.",
            UserWarning,
            stacklevel=4,
        )
        return data.decode("latin-1")


def _unmarked(data: bytes) -> str:
    """UTF-16 shows in zeros at every second byte of a text that is mostly ASCII."""
    some = data[:4096]
    if len(some) >= 4:
        for first, name in ((1, "utf-16-le"), (0, "utf-16-be")):
            if some[first::2].count(0) > 0.4 * len(some[first::2]) and some[1 - first :: 2].count(0) == 0:
                return name
    return "utf-8"


# -------------------------------------------------------------------- records


@dataclass(frozen=True)
class Record:
    """A line of cells, and the line of the file that it begins in."""

    line: int
    cells: list[str]


def records(text: str, delimiter: str, source: str) -> Iterator[Record]:
    """All records but the empty ones."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise TableError(f"{source}: line {line}{_broken(str(error))}") from None
        if cells is None:
            return
        if cells:
            yield Record(line, cells)


def _broken(error: str) -> str:
    if "unexpected end of data" in error:
        return ' has a quote " that is not closed before the end of the file.'
    if "field larger than" in error:
        return f' has a cell of more than {csv.field_size_limit():,} characters: is a quote " not closed?'
    return f' has characters after a closing quote ({error}); a quote within a cell is written "".'


def sniff(text: str, source: str) -> str:
    """The delimiter that cuts the first records into equally many cells, more than one; the first of the likely ones.

    Where none does, the one that cuts the header into most.
    """
    best, best_score = DELIMITERS[0], (False, 1)
    for delimiter in DELIMITERS:
        try:
            counts = [len(r.cells) for r in islice(records(text, delimiter, source), 20)]
        except TableError:
            continue
        if counts:
            score = (len(set(counts)) == 1 and counts[0] > 1, counts[0])
            best, best_score = (delimiter, score) if score > best_score else (best, best_score)
    return best


# ---------------------------------------------------------------------- table


def read_text(text: str, source: str, delimiter: str | None, decimal: str | None, header: bool) -> Table:
    """A table of text."""
    _check_characters(text, source)
    delimiter = delimiter or sniff(text, source)
    rows = list(records(text, delimiter, source))
    if not rows:
        raise TableError(f"{source}: the file is empty: there must be a line of column names, and rows.")
    names, notes = _names(rows[0], source, header)
    body = rows[1:] if header else rows
    if not body:
        raise TableError(f"{source}: there is a line of column names, but there are no rows.")
    for record in body:
        if len(record.cells) != len(names):
            what = "the header has" if header else "the first line has"
            cells = "cell" if len(record.cells) == 1 else "cells"
            raise TableError(f"{source}: line {record.line} has {len(record.cells)} {cells}, {what} {len(names)}.")
    if decimal is None:
        decimal = guess_decimal(body, delimiter)
        if decimal == ",":
            notes.append("The decimal mark is a comma: 1,5 is read as 1.5, and 1.234 as 1234.")
    columns = {
        name: _column(cells, decimal) for name, cells in zip(names, zip(*_cells(body), strict=True), strict=True)
    }
    return Table(columns, source, np.array([record.line for record in body]), "line", notes=tuple(notes))


def _cells(body: Iterable[Record]) -> Iterator[list[str]]:
    return (record.cells for record in body)


def _check_characters(text: str, source: str) -> None:
    at = text.find("\0")
    if at >= 0:
        raise TableError(
            f"{source}: line {text.count(chr(10), 0, at) + 1} holds a NUL character: this is no text file, or not in "
            "this encoding."
        )


def _names(first: Record, source: str, header: bool) -> tuple[list[str], list[str]]:
    """Names of the columns, and notes about them."""
    if not header:
        return [f"column_{j}" for j in range(1, len(first.cells) + 1)], []
    given = [cell.strip() for cell in first.cells]
    names = [name or f"unnamed_{j}" for j, name in enumerate(given, start=1)]
    double = next((name for name, count in Counter(names).items() if count > 1), None)
    if double is not None:
        j, k = [i + 1 for i, name in enumerate(names) if name == double][:2]
        raise TableError(f'{source}: line {first.line} names the columns {j} and {k} both "{double}": rename one.')
    notes = []
    if not all(given):
        places = [j for j, name in enumerate(given, start=1) if not name]
        notes.append(f"Columns without a name are called unnamed_{places[0]} and so on ({len(places)} of them).")
    if all(_POINT.fullmatch(name) or name.isdecimal() for name in given):
        notes.append(f"Line {first.line} holds numbers, which are taken as names; if it is data, say header=False.")
    return names, notes


def guess_decimal(body: list[Record], delimiter: str) -> str:
    """A comma where cells are not delimited by it and more numbers have it than have a point."""
    if delimiter == ",":
        return "."
    cells = [cell.strip() for record in body[:GUESSED_FROM] for cell in record.cells]
    cells = [cell for cell in cells if not _GROUPED.fullmatch(cell)]
    commas = sum(_COMMA.fullmatch(cell) is not None for cell in cells)
    return "," if commas > sum(_POINT.fullmatch(cell) is not None for cell in cells) else "."


def _column(cells: tuple[str, ...], decimal: str) -> Array:
    column = np.empty(len(cells), dtype=object)
    column[:] = cells if decimal == "." else [_pointed(cell) for cell in cells]
    return column


def _pointed(cell: str) -> str:
    """A number with a decimal comma, written with a point."""
    return cell.replace(".", "").replace(",", ".") if _COMMA.fullmatch(cell.strip()) else cell


# -------------------------------------------------------------------- writing


def write_text(table: Table, delimiter: str) -> str:
    """The table as delimited text; a cell is quoted where it would be taken for something else."""
    columns = [_shown_cells(table[name]) for name in table.names]
    lines = [table.names, *zip(*columns, strict=True)]
    alone = len(table.names) == 1  # an empty line would be no row
    return "".join(delimiter.join(_quoted(cell, alone) for cell in line) + "\n" for line in lines)


def _shown_cells(column: Array) -> list[str]:
    if column.dtype.kind == "M":
        return ["" if np.isnat(v) else str(v) for v in column]
    return [_shown(v) for v in column.tolist()]


def _shown(value: object) -> str:
    if value is None or value != value:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _quoted(cell: str, alone: bool) -> str:
    plain = (cell or not alone) and not any(mark in cell for mark in ',;\t|"\r\n\ufeff')
    return cell if plain else '"' + cell.replace('"', '""') + '"'
