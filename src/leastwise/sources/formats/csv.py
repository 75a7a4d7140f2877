"""Delimited text (CSV, TSV): one parser of records for tables in memory and for streams.

``read_csv`` gives a whole file as columns of text, with the core dependencies alone. ``CsvReader`` streams typed
record batches through pyarrow. Where pyarrow stops, it goes on with the same parser and the rules of ``cells``: at a
cell written in a way that pyarrow does not know, or at a broken line, which the error then names.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import IO, Any

import numpy as np

from leastwise.sources.blocks import StreamError, error_at, reason_of
from leastwise.sources.formats.cells import (
    FALSE,
    MISSING,
    SNIFFED,
    TRUE,
    Array,
    TextColumns,
    boolean_or_digit,
    count_titles,
    decimal_point,
    guess_decimal,
    integer,
    looks_numeric,
    number,
    object_column,
    quoted,
    spellings,
    strip_cell,
)
from leastwise.sources.frames import Kind, Schema
from leastwise.sources.layout import Layout
from leastwise.utils.optional import frames

#: Spreadsheets run text that begins with one of these.
FORMULA = ("=", "+", "-", "@", "\t", "\r")
SIGNED = re.compile(r"[+-][\d.,]+([eE][+-]?\d+)?")
#: Delimiters that are tried, the likeliest first.
DELIMITERS = (",", ";", "\t", "|")
#: Records from which the decimal mark is guessed.
GUESSED_FROM = 1000
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


# ------------------------------------------------------------------ characters


#: Bytes that are characters in cp1252, such as the euro sign, and control codes in latin-1; and those in neither.
_WINDOWS, _UNDEFINED = re.compile(rb"[\x80-\x9f]"), re.compile(rb"[\x81\x8d\x8f\x90\x9d]")


def decode(data: bytes, encoding: str | None, source: str) -> str:
    """The text of a file: by its byte order mark, else UTF-8 or UTF-16, else cp1252 or latin-1 with a warning."""
    mark = next(((m, name) for m, name in _MARKS if data.startswith(m)), None)
    if mark is not None and encoding is None:
        data, encoding = data[len(mark[0]) :], mark[1]
    encoding = encoding or _guess_encoding(data)
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except LookupError:
        raise StreamError(f"{source}: encoding={encoding!r} is unknown: use 'utf-8', 'latin-1' or another.") from None
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{data[error.start]:02x}"
        if encoding != "utf-8" or mark is not None:
            raise error_at(f"{byte} is not {encoding}: give the encoding of the file.", source, line=line) from None
        single = "cp1252" if _WINDOWS.search(data) and not _UNDEFINED.search(data) else "latin-1"
        warnings.warn(
            f"{source}, line {line}: {byte} is not UTF-8; the file is read as {single}. Give encoding= if characters "
            "look wrong.",
            UserWarning,
            stacklevel=4,
        )
        return data.decode(single)


def _guess_encoding(data: bytes) -> str:
    """UTF-16 if every second byte of a mostly ASCII text is zero, else UTF-8."""
    head = data[:4096]
    if len(head) >= 4:
        for first, name in ((1, "utf-16-le"), (0, "utf-16-be")):
            if head[first::2].count(0) > 0.4 * len(head[first::2]) and head[1 - first :: 2].count(0) == 0:
                return name
    return "utf-8"


def _open_text(path: str) -> IO[str]:
    """UTF-8 text, also gzipped; other bytes are passed on as surrogates, as unused columns may contain them."""
    opener: Any = gzip.open if path.lower().endswith(".gz") else open
    return opener(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="")


# --------------------------------------------------------------------- records


@dataclass(frozen=True)
class Record:
    """The cells of a row, and the first and last line of the file that it takes."""

    line: int
    cells: list[str]
    last: int = 0


def records(lines: str | Iterable[str], delimiter: str, source: str) -> Iterator[Record]:
    """All records that are not blank."""
    reader = csv.reader(
        io.StringIO(lines, newline="") if isinstance(lines, str) else lines, delimiter=delimiter, strict=True
    )
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise error_at(_csv_problem(str(error)), source, line=line) from error
        except (OSError, EOFError, zlib.error) as error:
            raise error_at(
                f"the file cannot be read from here on ({reason_of(error)}).", source, line=line
            ) from error
        if cells is None:
            return
        if cells:
            yield Record(line, cells, reader.line_num)


def _csv_problem(error: str) -> str:
    if "unexpected end of data" in error:
        return 'a quote " is not closed before the end of the file.'
    if "field larger than" in error:
        return f'a cell has more than {csv.field_size_limit():,} characters: is a quote " not closed?'
    return f'there are characters after a closing quote ({error}); write a quote inside a cell as "".'


def sniff(text: str, source: str) -> str:
    """The delimiter that splits the first records into equally many cells, more than one.

    If none does, the delimiter that splits the header into the most cells.
    """
    best, best_score = DELIMITERS[0], (False, True, 1)
    for delimiter in DELIMITERS:
        counts, intact = [], True
        try:
            for record in islice(records(text, delimiter, source), SNIFFED):
                counts.append(len(record.cells))
        except StreamError:
            intact = False
        n_records = len(counts)
        while len(counts) > 2 and counts[0] == 1 < max(counts):  # a title
            counts.pop(0)
        if counts:
            equal = intact and len(set(counts)) == 1 and counts[0] > 1
            score = (equal, len(counts) == n_records, counts[0])
            best, best_score = (delimiter, score) if score > best_score else (best, best_score)
    return best


def header_names(first: Record, source: str) -> list[str]:
    """The column names of a header, stripped; those that are not empty must be unique."""
    names = [cell.strip() for cell in first.cells]
    double = next((name for name, count in Counter(names).items() if name and count > 1), None)
    if double is not None:
        j, k = [i + 1 for i, name in enumerate(names) if name == double][:2]
        raise error_at(f'columns {j} and {k} are both named "{double}": rename one.', source, line=first.line)
    return names


def _check_width(record: Record, width: int, what: str, source: str, row: int | None = None) -> None:
    if len(record.cells) != width:
        cells = "cell" if len(record.cells) == 1 else "cells"
        rows = None if row is None else (row, row)
        raise error_at(f"{len(record.cells)} {cells}, but {what} has {width}.", source, rows, line=record.line)


# ------------------------------------------------------------------ whole files


def read_csv(text: str, source: str, delimiter: str | None, decimal: str | None, header: bool) -> TextColumns:
    """A file as columns of text."""
    at = text.find("\0")
    if at >= 0:
        line = text.count("\n", 0, at) + 1
        raise error_at("NUL character: this is not a text file, or not in this encoding.", source, line=line)
    delimiter = delimiter or sniff(text, source)
    rows = records(text, delimiter, source)
    head = list(islice(rows, SNIFFED))
    titles = count_titles([record.cells for record in head]) if header else 0
    rows = chain(head[titles:], rows)
    first = next(rows, None)
    if first is None:
        raise StreamError(f"{source}: the file is empty: a line of column names and rows are needed.")
    names, notes = _table_names(first, source) if header else _numbered_names(first)
    if titles:
        notes.insert(0, f"Column names are taken from line {first.line}; the lines above are a title.")
    rows = rows if header else chain([first], rows)
    what = "the header" if header else "the first line"
    lines, asked = list[int](), decimal
    columns: list[list[str]] = [[] for _ in names]
    distinct: list[dict[str, str]] = [{} for _ in names]  # equal cells share one text, which takes less memory
    while some := list(islice(rows, GUESSED_FROM)):
        for record in some:
            _check_width(record, len(names), what, source)
        if decimal is None:
            decimal = guess_decimal([cell for record in some for cell in record.cells], delimiter)
            if decimal == ",":
                notes.append("The decimal mark is a comma: 1,5 is read as 1.5, and 1.234 as 1234.")
        lines += [record.line for record in some]
        for cells, known, column in zip(zip(*(r.cells for r in some), strict=True), distinct, columns, strict=True):
            column += [known.setdefault(cell, cell) for cell in cells]
    if not lines:
        raise StreamError(f"{source}: there is a line of column names, but there are no rows.")
    if decimal == ",":
        columns = [[decimal_point(cell) for cell in column] for column in columns]
    elif asked is None:
        for j, column in enumerate(columns):
            if _has_commas(column, delimiter):
                columns[j] = [decimal_point(cell) for cell in column]
                notes.append(f'Column "{names[j]}" has decimal commas: 1,5 is read as 1.5.')
    named = {name: object_column(column) for name, column in zip(names, columns, strict=True)}
    return TextColumns(named, np.array(lines), notes=tuple(notes))


def _has_commas(column: list[str], delimiter: str) -> bool:
    """True if a column of a file with decimal points has decimal commas: its cells are numbers only with these."""
    known = [text for cell in dict.fromkeys(column) if (text := strip_cell(cell)) is not None]
    if guess_decimal(known[:GUESSED_FROM], delimiter) != ",":
        return False
    wrong = [text for text in known if number(text) is None]
    return bool(wrong) and all(number(decimal_point(text)) is not None for text in wrong)


def _numbered_names(first: Record) -> tuple[list[str], list[str]]:
    return [f"column_{j}" for j in range(1, len(first.cells) + 1)], []


def _table_names(first: Record, source: str) -> tuple[list[str], list[str]]:
    """Names of all columns, and notes on those that had none or look like data."""
    given, notes = header_names(first, source), []
    names = [name or f"unnamed_{j}" for j, name in enumerate(given, start=1)]
    if len(set(names)) < len(names):
        header_names(Record(first.line, names), source)  # a column is called unnamed_1 beside one without a name
    if not all(given):
        places = [j for j, name in enumerate(given, start=1) if not name]
        name, count = f"unnamed_{places[0]}", len(places)
        notes.append(
            f"A column without a name is called {name}."
            if count == 1
            else f"{count} columns without a name are called {name} and so on, by their position."
        )
    if all(map(looks_numeric, given)):
        notes.append(
            f"Line {first.line} contains numbers, which are used as column names; if it is data, set header=False."
        )
    return names, notes


def write_csv(columns: dict[str, Array], delimiter: str, header: bool = True, formulas: bool = False) -> str:
    """Columns as delimited text; a cell is quoted where it could be misread.

    Text that a spreadsheet would run as a formula gets an apostrophe in front, unless ``formulas`` is True.
    """
    names = list(columns) if formulas else [_inert(name) for name in columns]
    cells = [_written(column) for column in columns.values()]
    if not formulas:
        cells = [
            column if source.dtype.kind in "biufM" else [_inert(cell) for cell in column]
            for column, source in zip(cells, columns.values(), strict=True)
        ]
    rows: list[Sequence[str]] = [*([names] if header else []), *zip(*cells, strict=True)]
    alone = len(columns) == 1  # a blank line would not be a row
    return "".join(delimiter.join(_escaped(cell, alone) for cell in row) + "\n" for row in rows)


def _written(column: Array) -> list[str]:
    if column.dtype.kind == "M":
        return ["" if np.isnat(v) else str(v) for v in column]
    values = column.tolist()
    return ["" if v is None or v != v else str(v).lower() if isinstance(v, bool) else str(v) for v in values]


def _inert(cell: str) -> str:
    """Text that is not a number and begins as a formula does, with an apostrophe in front."""
    return f"'{cell}" if cell.startswith(FORMULA) and not SIGNED.fullmatch(cell) else cell


def _escaped(cell: str, alone: bool) -> str:
    plain = (cell or not alone) and not any(mark in cell for mark in ',;\t|"\r\n\ufeff')
    return cell if plain else '"' + cell.replace('"', '""') + '"'


# --------------------------------------------------------------------- streams

#: Characters of the file from which delimiter, decimal mark and column types are found.
SAMPLED = 2**20
#: Bytes of text that pyarrow parses at a time, and rows of a batch that is parsed without it.
PARSED = 2**22
BATCH_ROWS = 10_000
#: A column with at most this share of other text is a numeric column with wrong cells.
_WRONG_SHARE = 0.1
#: What a cell of a column type should be.
_EXPECTED = {
    "double": "a number",
    "int64": "an integer, unlike the rows before",
    "bool": "true or false",
    "string": "UTF-8 text",
}


class CsvReader:
    """Record batches of one CSV or TSV file with a header, also gzipped.

    Attributes
    ----------
    kinds : dict of str to Kind
        Column kinds, found from the first megabyte.
    n_rows : None
    """

    n_rows = None

    def __init__(self, path: str) -> None:
        self.path = path
        text = _first_lines(path)
        tabs = path.lower().removesuffix(".gz").endswith((".tsv", ".tab"))
        self.delimiter = "\t" if tabs else sniff(text, path)
        first = next(records(text, self.delimiter, path), None)
        if first is None:
            raise error_at("the file is empty: the first line must have the column names.", path, line=1)
        self.names, self.header_lines = header_names(first, path), first.last
        self.decimal = "."
        sample = self._sample(text)
        self.decimal = guess_decimal([c for r in sample[:GUESSED_FROM] for c in r.cells], self.delimiter)
        columns = zip(*(r.cells for r in sample if len(r.cells) == len(self.names)), strict=True)
        found = dict(zip(self.names, map(self._column_type, columns), strict=False))
        self._types = {name: found.get(name, (Kind("number", "double"), "string")) for name in self.names}
        self.kinds: Schema = {name: kind for name, (kind, _) in self._types.items()}

    def _sample(self, text: str) -> list[Record]:
        sample: list[Record] = []
        with suppress(StreamError):  # it is raised when its row is read
            sample.extend(islice(records(text, self.delimiter, self.path), 1, None))
        return sample

    def _column_type(self, cells: Iterable[str]) -> tuple[Kind, str]:
        """The kind of a column, and the type of its values as they are."""
        known = [text for cell in cells if (text := self._text(cell)) is not None]
        wrong = sum(number(text) is None for text in known)
        if wrong and all(boolean_or_digit(text) is not None for text in known):
            exact = all(text.lower() in ("true", "false", "0", "1") for text in known)
            return Kind("boolean", "bool"), "bool" if exact else "string"
        if wrong > _WRONG_SHARE * len(known):
            return Kind("text", "text"), "string"
        exact_type = "string" if wrong or not known else "double"
        if exact_type == "double" and all(integer(text) is not None for text in known):
            exact_type = "int64"
        return Kind("number", "double"), exact_type

    def _text(self, cell: str) -> str | None:
        return strip_cell(decimal_point(cell) if self.decimal == "," else cell)

    def types(self, layout: Layout) -> dict[str, str]:
        """The type that each column is read as: floats for numbers and weights, their own type for others."""
        types = {name: "bool" if self.kinds[name].name == "boolean" else "double" for name in layout.features}
        types |= {name: self._types[name][1] for name in layout.nominal}
        beside = {name: self._types[name][1] for name in layout.roles.beside}
        weight = {} if layout.roles.weight is None else {layout.roles.weight: "double"}
        return types | beside | weight

    def batches(self, types: dict[str, str]) -> Iterator[Any]:
        """Record batches of the columns in ``types``; all rows before a broken line are delivered first."""
        pa, done = frames("pyarrow"), 0
        try:
            for batch in self._arrow_batches(types):
                yield batch
                done += batch.num_rows
            return
        except (pa.ArrowException, OSError) as error:
            cause = error
        yield from self._parsed_batches(types, done, cause)

    def line(self, row: int) -> int | None:
        """The line of the file in which a row begins, counted from 1."""
        try:
            with _open_text(self.path) as file:
                found = next(islice(records(file, self.delimiter, self.path), row + 1, None), None)
        except StreamError:
            return None
        return None if found is None else found.line

    def _arrow_batches(self, types: dict[str, str]) -> Iterator[Any]:
        arrow_csv = frames("pyarrow.csv")
        fields = [f"f{j}" for j in range(len(self.names))]  # names of a file may not be text
        wanted = {fields[self.names.index(name)]: type for name, type in types.items()}
        options = {
            "read_options": arrow_csv.ReadOptions(
                use_threads=False, block_size=PARSED, column_names=fields, skip_rows=self.header_lines
            ),
            "parse_options": arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
            "convert_options": arrow_csv.ConvertOptions(
                include_columns=list(wanted),
                column_types={field: _arrow_type(type) for field, type in wanted.items()},
                null_values=spellings(MISSING),
                true_values=["1", *spellings(TRUE)],
                false_values=["0", *spellings(FALSE)],
                decimal_point=self.decimal,
            ),
        }
        for batch in arrow_csv.open_csv(self.path, **options):
            arrays = [_trimmed(a) if t == "string" else a for a, t in zip(batch.columns, types.values(), strict=True)]
            yield frames("pyarrow").RecordBatch.from_arrays(arrays, names=list(types))

    def _parsed_batches(self, types: dict[str, str], start: int, cause: Exception) -> Iterator[Any]:
        """Rows from ``start`` on by the rules of ``cells``, up to the first that breaks them."""
        wanted = [(self.names.index(name), name, type) for name, type in types.items()]
        rows: list[list[Any]] = []
        read, problem = 0, None
        try:
            with _open_text(self.path) as file:
                for record in islice(records(file, self.delimiter, self.path), 1, None):
                    if read >= start:
                        rows.append(self._values(record, read, wanted))
                    read += 1
                    if len(rows) == BATCH_ROWS:
                        yield self._batch(rows, types)
                        rows = []
        except StreamError as error:
            problem = error
        if rows:
            yield self._batch(rows, types)
        if problem is not None:
            problem.rows = problem.rows or (read, read)  # the parser of records counts lines only
            raise problem from cause

    def _values(self, record: Record, row: int, wanted: list[tuple[int, str, str]]) -> list[Any]:
        _check_width(record, len(self.names), "the header", self.path, row)
        values = []
        for place, name, type in wanted:
            cell = record.cells[place]
            value, known = self._converted(cell, type)
            if not known:
                reason = f"{quoted(cell)} is not {_EXPECTED[type]}."
                raise error_at(reason, self.path, (row, row), name, record.line)
            values.append(value)
        return values

    def _converted(self, cell: str, type: str) -> tuple[Any, bool]:
        """The value of a cell, and False if the cell is not of the type."""
        if type == "string":
            return strip_cell(cell), not any("\udc80" <= c <= "\udcff" for c in cell)
        text = self._text(cell)
        if text is None:
            return None, True
        if type == "bool":
            truth = boolean_or_digit(text)
            return None if truth is None else bool(truth), truth is not None
        value = integer(text) if type == "int64" else number(text)
        return value, value is not None

    def _batch(self, rows: list[list[Any]], types: dict[str, str]) -> Any:
        pa = frames("pyarrow")
        columns = zip(zip(*rows, strict=True), types.values(), strict=True)
        arrays = [pa.array(column, _arrow_type(type)) for column, type in columns]
        return pa.RecordBatch.from_arrays(arrays, names=list(types))


def _first_lines(path: str) -> str:
    """Whole lines from the beginning of a file, up to the size of the sample or to where it cannot be read."""
    lines, size = [], 0
    try:
        with _open_text(path) as file:
            while size < SAMPLED and (line := file.readline(SAMPLED)):
                lines.append(line)
                size += len(line)
    except (OSError, EOFError, zlib.error) as error:
        if not lines:
            raise error_at(f"the file cannot be read ({reason_of(error)}).", path) from error
    return "".join(lines)


def _arrow_type(type: str) -> Any:
    pa = frames("pyarrow")
    return {"double": pa.float64(), "int64": pa.int64(), "bool": pa.bool_(), "string": pa.string()}[type]


def _trimmed(column: Any) -> Any:
    """Text without surrounding spaces, null where it marks a missing value."""
    pa, pc = frames("pyarrow"), frames("pyarrow.compute")
    text = pc.utf8_trim_whitespace(column)
    return pc.if_else(pc.is_in(pc.utf8_lower(text), pa.array(sorted(MISSING))), pa.scalar(None, pa.string()), text)
