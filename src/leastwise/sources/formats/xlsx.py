"""The first sheet of an Excel workbook (.xlsx) as columns of text; the first row has the names."""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections import Counter
from datetime import datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import numpy as np

from leastwise.sources.blocks import TableError
from leastwise.sources.formats.cells import SNIFFED, TextColumns, count_titles, object_column
from leastwise.utils.resources import available_memory, human

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
#: Built-in number formats of dates and times.
_DATE_FORMATS = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
#: Quoted text, colours and escaped characters, which say nothing about dates.
_LITERAL = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.|_.')
#: What the modules of Python raise for broken archives and documents; NotImplementedError is a RuntimeError.
_BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, RuntimeError, ElementTree.ParseError)
#: The last column of a sheet is XFD.
MAX_COLUMNS = 2**14
#: Bytes in memory of an element or attribute, and bytes that are decompressed at a time.
NODE_BYTES, CHUNK = 200, 2**16


def read_xlsx(data: bytes, source: str) -> TextColumns:
    """The rows of the first sheet; an error names the file and the row."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as book:
            _check_parts(book, source)
            rows = _rows(book)
    except TableError as error:
        raise error if str(error).startswith(source) else TableError(f"{source}: {error}") from None
    except (*_BROKEN, LookupError, ValueError) as error:
        raise TableError(f"{source}: not a readable Excel workbook ({error}).") from None
    rows = {number: cells for number, cells in rows.items() if any(cell != "" for cell in cells.values())}
    if len(rows) < 2:
        raise TableError(f"{source}: the first sheet has no rows below its names.")
    numbers = list(rows)
    titles_above = count_titles([list(rows[number].values()) for number in numbers[:SNIFFED]])
    (head, names), *body = ((number, rows[number]) for number in numbers[titles_above:])
    width = max(names) + 1
    if 8 * len(body) * width > available_memory() // 4:  # a few cells may stand for a wide sheet
        size = human(8 * len(body) * width)
        raise TableError(f"{source}: {len(body)} rows and {width} columns take {size}, too much for the free memory.")
    titles = [names.get(j, "") or f"unnamed_{j + 1}" for j in range(width)]
    double = next((title for title, count in Counter(titles).items() if count > 1), None)
    if double is not None:
        raise TableError(f'{source}, row {head}: two columns are called "{double}": rename one of them.')
    beyond = next((number for number, cells in body if max(cells) >= width), None)
    if beyond is not None:
        raise TableError(f"{source}, row {beyond}: a cell stands to the right of the {width} named columns.")
    columns = {title: object_column([cells.get(j, "") for _, cells in body]) for j, title in enumerate(titles)}
    note = f"Column names are taken from row {head}; the rows above are a title."
    return TextColumns(columns, np.array([number for number, _ in body]), notes=(note,) if titles_above else ())


def _check_parts(book: zipfile.ZipFile, source: str) -> None:
    """The unpacked parts fit in memory, and are packed as Excel does it: other methods unpack without a limit."""
    size, limit = sum(part.file_size for part in book.infolist()), available_memory() // 8
    if size > limit:
        raise TableError(f"{source}: the unpacked workbook exceeds {human(limit)}: save the sheet as CSV.")
    for part in book.infolist():
        if part.flag_bits & 1:
            raise TableError(f"{source}: the workbook is encrypted: save it without a password.")
        if part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise TableError(f"{source}: {ascii(part.filename)[:80]} is compressed in a way that Excel does not use.")


class _Tree(ElementTree.TreeBuilder):
    """A tree that takes a limited amount of memory, without declarations of entities."""

    def __init__(self) -> None:
        super().__init__()
        self.left = available_memory() // 4 // NODE_BYTES

    def start(self, tag: Any, attrs: Any) -> Any:
        self.left -= 1 + len(attrs)
        if self.left < 0:
            raise TableError("the workbook has too many cells for the free memory: save the sheet as CSV.")
        return super().start(tag, attrs)

    def doctype(self, *declared: Any) -> None:
        raise ValueError("it declares a document type")


def _tree(book: zipfile.ZipFile, name: str) -> Any:
    """A part of the workbook. It is unpacked in chunks, since the size in the directory may be wrong."""
    parser = ElementTree.XMLParser(target=_Tree())
    with book.open(name) as part:
        while chunk := part.read(CHUNK):
            parser.feed(chunk)
    return parser.close()


def _rows(book: zipfile.ZipFile) -> dict[int, dict[int, str]]:
    """The cells of the first sheet, by row from 1 and column from 0."""
    workbook = _tree(book, "xl/workbook.xml")
    sheet = workbook.find(f"{_MAIN}sheets/{_MAIN}sheet")
    relations = _tree(book, "xl/_rels/workbook.xml.rels")
    targets = {relation.get("Id"): relation.get("Target", "") for relation in relations}
    target = targets[None if sheet is None else sheet.get(_RELATION)]
    path = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
    texts, dates = _shared_texts(book), _date_styles(book)
    properties = workbook.find(f"{_MAIN}workbookPr")
    late = properties is not None and properties.get("date1904") in ("1", "true")
    start = datetime(1904, 1, 1) if late else datetime(1899, 12, 30)
    rows: dict[int, dict[int, str]] = {}
    for row in _tree(book, path).iter(f"{_MAIN}row"):
        number = int(row.get("r", len(rows) + 1))
        cells: dict[int, str] = {}
        for cell in row.iter(f"{_MAIN}c"):
            place = _column(cell.get("r", "")) if cell.get("r") else max(cells, default=-1) + 1
            cells[place] = _cell(cell, texts, dates, start)
        if cells:
            rows[number] = cells
    return rows


def _cell(cell: Any, texts: list[str], dates: frozenset[int], start: datetime) -> str:
    """A cell as text: numbers as they are stored, dates as ISO dates, booleans as true and false."""
    kind, value = cell.get("t", "n"), cell.findtext(f"{_MAIN}v") or ""
    if kind == "inlineStr":
        return "".join(part.text or "" for part in cell.iter(f"{_MAIN}t"))
    if not value or kind == "e":  # an error such as #N/A is no value
        return ""
    if kind == "s":
        if int(value) < 0:
            raise ValueError(f"there is no text {value[:20]}")
        return texts[int(value)]
    if kind == "b":
        return "true" if value == "1" else "false"
    if kind == "n" and int(cell.get("s", 0)) in dates:
        try:
            moment = start + timedelta(seconds=round(float(value) * 86400))
        except OverflowError:  # Excel shows no date either
            return value
        if 0 <= float(value) < 1:  # a time of the day
            return moment.time().isoformat()
        return moment.date().isoformat() if moment.time() == datetime.min.time() else moment.isoformat(" ")
    return value


def _shared_texts(book: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in book.namelist():
        return []
    entries = _tree(book, "xl/sharedStrings.xml").iter(f"{_MAIN}si")
    # Phonetic hints (rPh) are not part of the text.
    parts = ([part for part in entry if part.tag != f"{_MAIN}rPh"] for entry in entries)
    return ["".join(t.text or "" for part in each for t in part.iter(f"{_MAIN}t")) for each in parts]


def _date_styles(book: zipfile.ZipFile) -> frozenset[int]:
    """Numbers of the cell styles that show dates."""
    if "xl/styles.xml" not in book.namelist():
        return frozenset()
    styles = _tree(book, "xl/styles.xml")
    own = {int(f.get("numFmtId", 0)): f.get("formatCode", "") for f in styles.iter(f"{_MAIN}numFmt")}
    shown = {number for number, code in own.items() if re.search("[ymdhs]", _LITERAL.sub("", code.lower()))}
    formats = styles.findall(f"{_MAIN}cellXfs/{_MAIN}xf")
    numbers = [int(style.get("numFmtId", 0)) for style in formats]
    return frozenset(k for k, n in enumerate(numbers) if n in shown or (n in _DATE_FORMATS and n not in own))


def _column(reference: str) -> int:
    """The column of a reference such as AB12, from 0."""
    letters = re.match("[A-Z]{1,4}", reference)
    if letters is None:
        raise ValueError(f"the cell {reference[:20]!r} has no column")
    place = 0
    for letter in letters[0]:
        place = 26 * place + ord(letter) - ord("A") + 1
    if place > MAX_COLUMNS:
        raise ValueError(f"the cell {reference[:20]!r} is beyond the last column of a sheet")
    return place - 1
