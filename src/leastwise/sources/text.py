"""Lines of delimited text, one at a time: header, kinds of columns, and the first line that is broken.

Delimited text, by pyarrow; where that stops, the line and the column are looked for.
"""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from leastwise.sources.blocks import fault, reason_of
from leastwise.sources.roles import Kind, Layout, Schema
from leastwise.utils.optional import frames

#: Cells that are gaps.
NULLS = ("", "NA", "N/A", "NaN", "nan", "NULL", "null")
#: Characters of the file that kinds of columns are found from.
SAMPLED = 2**20
_DELIMITERS = (",", ";", "\t", "|")
#: A column is one of numbers, with wrong cells, if not more than this share of its cells are words.
_WRONG = 0.1


@dataclass(frozen=True)
class Cells:
    """A file and what separates its cells."""

    path: str
    delimiter: str

    def records(self) -> Iterator[tuple[int, str, list[str]]]:
        """Line, text and cells of every record that is not blank, the header first."""
        with opened(self.path) as file:
            lines = _Lines(file)
            reader = csv.reader(lines, delimiter=self.delimiter, strict=True)
            while True:
                line = lines.count + 1
                lines.text.clear()
                cells = next(reader, None)
                if cells is None:
                    return
                if cells:
                    yield line, "".join(lines.text), cells


class _Lines:
    """The lines of a file, counted, with the text of those since the last record."""

    def __init__(self, file: IO[str]) -> None:
        self.file, self.count, self.text = file, 0, list[str]()

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = next(self.file)
        self.count += 1
        self.text.append(line)
        return line


#: What goes wrong while text is unpacked and cut into cells.
BROKEN = (OSError, EOFError, zlib.error, csv.Error)


def opened(path: str) -> IO[str]:
    """Text in UTF-8, also packed by gzip; other bytes are passed on, since they may be in columns nobody wants."""
    if path.lower().endswith(".gz"):
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="surrogateescape", newline="")
    return open(path, encoding="utf-8-sig", errors="surrogateescape", newline="")


def header_of(path: str) -> tuple[Cells, list[str]]:
    """The delimiter, found in the first line, and the names in it."""
    try:
        with opened(path) as file:
            first = file.readline(SAMPLED)
    except BROKEN as error:
        raise fault(f"it cannot be read ({reason_of(error)}).", path) from error
    if not first.strip():
        raise fault("the first line, which must have the names of the columns, is empty.", path, line=1)
    tabs = path.lower().removesuffix(".gz").endswith((".tsv", ".tab"))
    cells = Cells(path, "\t" if tabs else max(_DELIMITERS, key=first.count))
    try:
        names = next(cells.records())[2]
    except BROKEN as error:
        raise fault(f"the names of the columns cannot be read ({reason_of(error)}).", path, line=1) from error
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise fault(f"more than one column has the name {double!r}: rename them.", path, line=1)
    return cells, names


# ---------------------------------------------------------------------- kinds


def kinds_of(cells: Cells, names: list[str]) -> dict[str, tuple[Kind, str]]:
    """What every column holds, and the type it has as it is: of its first cells."""
    columns: list[list[str]] = [[] for _ in names]
    read, records = 0, cells.records()
    try:
        next(records)
        for _, text, row in records:
            for column, cell in zip(columns, row, strict=False):
                column.append(cell)
            read += len(text)
            if read > SAMPLED:
                break
    except BROKEN:
        pass  # it is named when its turn comes
    return {name: _kind(column) for name, column in zip(names, columns, strict=True)}


def _kind(values: list[str]) -> tuple[Kind, str]:
    known = [v for v in values if v not in NULLS]
    wrong = sum(not fits(v, "double") for v in known)
    if known and all(fits(v, "bool") for v in known) and wrong:
        return Kind("boolean", "bool"), "bool"
    if wrong > _WRONG * len(known):
        return Kind("text", "text"), "string"
    exact = "string" if wrong else "int64" if all(fits(v, "int64") for v in known) else "double"
    return Kind("number", "double"), exact if known else "string"


def fits(cell: str, type: str) -> bool:
    """Whether a cell can be read as this type."""
    cell = cell.strip(" \t")
    if type == "string":
        return cell.isascii() or not any("\udc80" <= c <= "\udcff" for c in cell)
    if cell in NULLS:
        return True
    if type == "bool":
        return cell.lower() in ("true", "false", "0", "1")
    try:
        value: Any = int(cell) if type == "int64" else float(cell)
    except ValueError:
        return False
    return cell.isascii() and "_" not in cell and (type != "int64" or (-(2**63) <= value < 2**63 and cell[0] != "+"))


# --------------------------------------------------------------------- faults


@dataclass(frozen=True)
class Fault:
    """The first broken record: its row and line, and the text of the rows above that had not been read."""

    row: int
    line: int
    column: str | None
    reason: str
    above: str


_MEANING = {
    "double": "a number",
    "int64": "a whole number, as those before it",
    "bool": "true or false",
    "string": "text in UTF-8",
}


def first_fault(cells: Cells, names: list[str], types: dict[str, str], start: int) -> Fault | None:
    """The first record at ``start`` or later with cells too many, too few, or of the wrong type."""
    above: list[str] = []
    wanted = [(names.index(name), name, type) for name, type in types.items()]
    row, line = -1, 1
    try:
        for row, (line, text, found) in enumerate(cells.records(), start=-1):
            if row < start:
                continue
            column, reason = _wrong(found, len(names), wanted)
            if reason:
                return Fault(row, line, column, reason, "".join(above))
            above.append(text)
    except BROKEN as error:
        return Fault(row + 1, line + 1, None, f"it cannot be read from here on ({reason_of(error)}).", "".join(above))
    return None


def _wrong(found: list[str], n: int, wanted: list[tuple[int, str, str]]) -> tuple[str | None, str]:
    if len(found) != n:
        return None, f"it has {len(found)} cells; the header has {n}."
    for place, name, type in wanted:
        if not fits(found[place], type):
            return name, f"{found[place]!r} is not {_MEANING.get(type, type)}."
    return None, ""


def line_of(cells: Cells, row: int) -> int | None:
    """The line that a row begins in."""
    try:
        for number, (line, _, _) in enumerate(cells.records(), start=-1):
            if number == row:
                return line
    except BROKEN:
        pass
    return None


#: Bytes of text that are parsed at a time.
PARSED = 2**22


class TextReader:
    """One file of CSV or TSV with a header, also packed by gzip."""

    n_rows = None

    def __init__(self, path: str) -> None:
        self.path = path
        self.cells, self.names = header_of(path)
        self._kinds = kinds_of(self.cells, self.names)
        self.kinds: Schema = {name: kind for name, (kind, _) in self._kinds.items()}

    def types(self, layout: Layout) -> dict[str, str]:
        """What columns are read as: inputs and weights as floats, the rest as its first cells are."""
        types = {name: "bool" if self.kinds[name].name == "boolean" else "double" for name in layout.features}
        beside = {name: self._kinds[name][1] for name in layout.roles.beside}
        weight = {} if layout.roles.weight is None else {layout.roles.weight: "double"}
        return types | beside | weight

    def batches(self, types: dict[str, str]) -> Iterator[Any]:
        """Record batches; before a broken line all rows above it."""
        pa, done = frames("pyarrow"), 0
        try:
            for batch in self._open(types):
                yield batch
                done += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            cause = error
        else:
            return
        found = first_fault(self.cells, self.names, types, done)
        if found is None:
            reason = f"the lines from here on cannot be read ({reason_of(cause)})."
            raise fault(reason, self.path, (done, done), line=self.line(done)) from cause
        if found.above:
            yield from self._parsed(found.above, types)
        raise fault(found.reason, self.path, (found.row, found.row), found.column, found.line) from cause

    def line(self, row: int) -> int | None:
        """The line of a row, counted from 1."""
        return line_of(self.cells, row)

    def _open(self, types: dict[str, str]) -> Any:
        csv = frames("pyarrow.csv")
        read = csv.ReadOptions(use_threads=False, block_size=PARSED)
        return csv.open_csv(
            self.path, read_options=read, parse_options=self._parse(), convert_options=self._convert(types)
        )

    def _parsed(self, text: str, types: dict[str, str]) -> list[Any]:
        """Rows that had been read together with a broken one, without it."""
        csv = frames("pyarrow.csv")
        read = csv.ReadOptions(use_threads=False, column_names=self.names)
        source, parse, convert = (
            io.BytesIO(text.encode(errors="surrogateescape")),
            self._parse(),
            self._convert(types),
        )
        return csv.read_csv(source, read_options=read, parse_options=parse, convert_options=convert).to_batches()

    def _parse(self) -> Any:
        return frames("pyarrow.csv").ParseOptions(delimiter=self.cells.delimiter, newlines_in_values=True)

    def _convert(self, types: dict[str, str]) -> Any:
        pa = frames("pyarrow")
        named = {"double": pa.float64(), "int64": pa.int64(), "bool": pa.bool_(), "string": pa.string()}
        return frames("pyarrow.csv").ConvertOptions(
            include_columns=list(types),
            column_types={name: named[type] for name, type in types.items()},
            null_values=list(NULLS),
            strings_can_be_null=True,
        )
