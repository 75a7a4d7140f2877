"""The first sheet of an Excel workbook (.xlsx) as columns of text; the first row has the names."""

from __future__ import annotations

import io
import re
import zipfile
from datetime import datetime, timedelta
from typing import Any
from xml.etree import ElementTree

import numpy as np

from leastwise.sources.blocks import TableError
from leastwise.sources.formats.cells import TextColumns, object_column
from leastwise.utils.resources import available_memory, human

_MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_RELATION = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
#: Built-in number formats of dates and times.
_DATE_FORMATS = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
#: Quoted text, colours and escaped characters, which say nothing about dates.
_LITERAL = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.|_.')


def read_xlsx(data: bytes, source: str) -> TextColumns:
    """The rows of the first sheet; an error names the file and the row."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as book:
            size, limit = sum(part.file_size for part in book.infolist()), available_memory() // 8
            if size > limit:
                raise TableError(f"{source}: the unpacked workbook exceeds {human(limit)}: save the sheet as CSV.")
            rows = _rows(book)
    except (zipfile.BadZipFile, KeyError, ElementTree.ParseError, IndexError, ValueError) as error:
        if isinstance(error, TableError):
            raise
        raise TableError(f"{source}: not a readable Excel workbook ({error}).") from None
    rows = {number: cells for number, cells in rows.items() if any(cell != "" for cell in cells.values())}
    if len(rows) < 2:
        raise TableError(f"{source}: the first sheet has no rows below its names.")
    (head, names), *body = rows.items()
    width = max(names) + 1
    titles = [names.get(j, "") or f"unnamed_{j + 1}" for j in range(width)]
    double = next((title for title in titles if titles.count(title) > 1), None)
    if double is not None:
        raise TableError(f'{source}, row {head}: two columns are called "{double}": rename one of them.')
    beyond = next((number for number, cells in body if max(cells) >= width), None)
    if beyond is not None:
        raise TableError(f"{source}, row {beyond}: a cell stands to the right of the {width} named columns.")
    columns = {title: object_column([cells.get(j, "") for _, cells in body]) for j, title in enumerate(titles)}
    return TextColumns(columns, np.array([number for number, _ in body]))


def _rows(book: zipfile.ZipFile) -> dict[int, dict[int, str]]:
    """The cells of the first sheet, by row from 1 and column from 0."""
    workbook = ElementTree.fromstring(book.read("xl/workbook.xml"))
    sheet = workbook.find(f"{_MAIN}sheets/{_MAIN}sheet")
    relations = ElementTree.fromstring(book.read("xl/_rels/workbook.xml.rels"))
    targets = {relation.get("Id"): relation.get("Target", "") for relation in relations}
    target = targets[None if sheet is None else sheet.get(_RELATION)]
    path = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
    texts, dates = _shared_texts(book), _date_styles(book)
    properties = workbook.find(f"{_MAIN}workbookPr")
    late = properties is not None and properties.get("date1904") in ("1", "true")
    start = datetime(1904, 1, 1) if late else datetime(1899, 12, 30)
    rows: dict[int, dict[int, str]] = {}
    for row in ElementTree.fromstring(book.read(path)).iter(f"{_MAIN}row"):
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
        return texts[int(value)]
    if kind == "b":
        return "true" if value == "1" else "false"
    if kind == "n" and int(cell.get("s", 0)) in dates:
        moment = start + timedelta(seconds=round(float(value) * 86400))
        return moment.date().isoformat() if moment.time() == datetime.min.time() else moment.isoformat(" ")
    return value


def _shared_texts(book: zipfile.ZipFile) -> list[str]:
    if "xl/sharedStrings.xml" not in book.namelist():
        return []
    entries = ElementTree.fromstring(book.read("xl/sharedStrings.xml")).iter(f"{_MAIN}si")
    # Phonetic hints (rPh) are not part of the text.
    parts = ([part for part in entry if part.tag != f"{_MAIN}rPh"] for entry in entries)
    return ["".join(t.text or "" for part in each for t in part.iter(f"{_MAIN}t")) for each in parts]


def _date_styles(book: zipfile.ZipFile) -> frozenset[int]:
    """Numbers of the cell styles that show dates."""
    if "xl/styles.xml" not in book.namelist():
        return frozenset()
    styles = ElementTree.fromstring(book.read("xl/styles.xml"))
    own = {int(f.get("numFmtId", 0)): f.get("formatCode", "") for f in styles.iter(f"{_MAIN}numFmt")}
    shown = {number for number, code in own.items() if re.search("[ymdhs]", _LITERAL.sub("", code.lower()))}
    formats = styles.findall(f"{_MAIN}cellXfs/{_MAIN}xf")
    numbers = [int(style.get("numFmtId", 0)) for style in formats]
    return frozenset(k for k, n in enumerate(numbers) if n in shown or (n in _DATE_FORMATS and n not in own))


def _column(reference: str) -> int:
    """The column of a reference such as AB12, from 0."""
    letters = re.match("[A-Z]+", reference)
    if letters is None:
        raise ValueError(f"the cell {reference!r} has no column")
    place = 0
    for letter in letters[0]:
        place = 26 * place + ord(letter) - ord("A") + 1
    return place - 1
