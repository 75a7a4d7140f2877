"""Tables from and to files, by extension; the formats themselves are in ``leastwise.sources.formats``."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from pathlib import Path
from typing import IO, Any

from leastwise.sources.blocks import TableError
from leastwise.sources.formats.arff import read_arff
from leastwise.sources.formats.arrow import MAGIC, read_arrow, write_arrow
from leastwise.sources.formats.csv import DELIMITERS, decode, read_csv, write_csv
from leastwise.sources.formats.libsvm import read_libsvm_columns
from leastwise.sources.formats.xlsx import read_xlsx
from leastwise.tables.table import Table
from leastwise.utils.atomic_files import write_atomically
from leastwise.utils.resources import available_memory, human

#: Formats by file extension.
EXTENSIONS = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".arff": "arff",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
    ".xlsx": "xlsx",
}
FORMATS = ("csv", "tsv", "parquet", "arrow", "arff", "libsvm", "xlsx")
WRITTEN = ("csv", "tsv", "parquet", "arrow")
_GZIP = b"\x1f\x8b"


class TableFileError(TableError, OSError):
    """A file that does not exist, or cannot be read or written."""


def read_table(
    source: str | os.PathLike | IO,
    *,
    format: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool = True,
) -> Table:
    r"""Read a table from a file or a stream.

    Parameters
    ----------
    source : path, "-" or stream
        "-" is the standard input. Text may be gzipped.
    format : {"csv", "tsv", "parquet", "arrow", "arff", "libsvm", "xlsx"}, optional
        By default according to the file extension, and CSV for streams. "arrow" is the IPC format, also of Feather
        files. Parquet and Arrow need the extra ``frames``.
    delimiter : str, optional
        The delimiter of CSV; by default detected among comma, semicolon, tab and bar.
    decimal : {".", ","}, optional
        The decimal mark of CSV and TSV; by default detected.
    encoding : str, optional
        The encoding of text; by default according to the byte order mark, else UTF-8 or UTF-16, else cp1252 or
        latin-1 with a warning.
    header : bool, default=True
        True if the first line of CSV and TSV has the column names; otherwise these are column_1 and so on.

    Returns
    -------
    Table
        Columns of text for text files, and of their own types for others.

    Raises
    ------
    TableError
        If the file is not a table; the message names the file, the line and the problem.

    Examples
    --------
    >>> import io
    >>> from leastwise.tables import read_table
    >>> table = read_table(io.StringIO("size;line\n1,5;north\n2,25;south\n"))
    >>> table["size"].tolist(), table.notes[0][:31]
    (['1.5', '2.25'], 'The decimal mark is a comma: 1,')
    """
    if decimal not in (None, ".", ","):
        raise TableError(f"decimal={decimal!r} is unknown: use '.' or ','.")
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise TableError(f"delimiter={delimiter!r} must be one character, such as {DELIMITERS}.")
    name = _source_name(source)
    format = checked_format(format, name, FORMATS)
    data = _content(source, name)
    if format in ("parquet", "arrow"):
        return _read_binary(data, format, name)
    if format == "xlsx":
        if isinstance(data, str):
            raise TableError(f"{name}: format='xlsx' needs a binary stream, but this is a text stream.")
        sheet = read_xlsx(data, name)
        return Table(sheet.columns, name, sheet.lines, "row", notes=sheet.notes)
    text = data if isinstance(data, str) else decode(_uncompressed(data, name), encoding, name)
    if format == "arff":
        found = read_arff(text, name)
    elif format == "libsvm":
        found = read_libsvm_columns(text, name)
    else:
        found = read_csv(text, name, "\t" if format == "tsv" else delimiter, decimal, header)
    return Table(found.columns, name, found.lines, "line", found.declared, found.absent, found.notes)


def _read_binary(data: bytes | str, format: str, name: str) -> Table:
    if isinstance(data, str):
        raise TableError(f"{name}: format={format!r} needs a binary stream, but this is a text stream.")
    try:
        table = Table.of(read_arrow(format, name, data))
    except TableError as error:
        raise error if str(error).startswith(name) else TableError(f"{name}: {error}") from None
    if not table.names or not len(table):
        raise TableError(f"{name}: there are no {'rows' if table.names else 'columns'}.")
    return Table(table.columns, name, declared=table.declared)


def write_table(
    table: Any, target: str | os.PathLike | IO, format: str | None = None, *, formulas: bool = False
) -> None:
    """Write a table to a file, "-" (the standard output) or a stream.

    A file is written under a temporary name and then renamed: after an interruption there is the old file or the new
    one.

    Parameters
    ----------
    table : Table, frame or mapping
    target : path, "-" or stream
        With the extension .gz, text is compressed.
    format : {"csv", "tsv", "parquet", "arrow"}, optional
        By default according to the file extension, and CSV for streams.
    formulas : bool, default=False
        CSV and TSV: False writes an apostrophe in front of text that begins with =, +, -, @, a tab or a carriage
        return and is not a number, since spreadsheets run such cells as formulas. True writes all text as it is.
    """
    table, name = Table.of(table), _source_name(target)
    format = checked_format(format, name, WRITTEN)
    if format in ("parquet", "arrow"):
        data = write_arrow(table.columns, format)
    else:
        data = write_csv(table.columns, "\t" if format == "tsv" else ",", formulas=formulas).encode()
        data = gzip.compress(data, mtime=0) if name.endswith(".gz") else data
    if isinstance(target, str | os.PathLike) and str(target) != "-":
        try:
            write_atomically(str(target), [data])
        except OSError as error:
            raise TableFileError(f"{target}: the file cannot be written ({error.strerror or error}).") from None
        return
    stream: Any = sys.stdout.buffer if isinstance(target, str | os.PathLike) else target
    text = isinstance(stream, io.TextIOBase)
    if text and format in ("parquet", "arrow"):
        raise TableError(f"format={format!r} needs a binary stream, but this is a text stream.")
    stream.write(data.decode() if text else data)
    stream.flush()


def checked_format(format: str | None, name: str, allowed: tuple[str, ...]) -> str:
    """The requested format, or that of the file extension."""
    if format is not None:
        format = "arrow" if format in ("feather", "ipc") else format
        if format not in allowed:
            raise TableError(f"format={format!r} is not supported here: use one of {list(allowed)}.")
        return format
    if name.startswith("<"):
        return "csv"
    extension = Path(name.removesuffix(".gz")).suffix.lower()
    found = EXTENSIONS.get(extension)
    if found not in allowed:
        known = [e for e, f in EXTENSIONS.items() if f in allowed]
        raise TableError(
            f"{name}: the extension {extension!r} is not one of {known}: give format=, one of {list(allowed)}."
        )
    return found


# --------------------------------------------------------------------- content


def _source_name(source: Any) -> str:
    if isinstance(source, str | os.PathLike):
        return "<stdin>" if str(source) == "-" else os.fspath(source)
    return "<stream>"


def _content(source: Any, name: str) -> bytes | str:
    """The whole content; a text stream gives text."""
    if hasattr(source, "read"):
        return source.read()
    if not isinstance(source, str | os.PathLike):
        raise TableError(f"{type(source).__name__} is not a file: give a path, '-' or a stream.")
    if name == "<stdin>":
        return sys.stdin.buffer.read()
    try:
        return Path(source).read_bytes()
    except FileNotFoundError:
        raise TableFileError(f"{name}: there is no such file.") from None
    except OSError as error:
        raise TableFileError(f"{name}: the file cannot be read ({error.strerror}).") from None


def _uncompressed(data: bytes, name: str) -> bytes:
    """Text, decompressed up to a limit of memory; an error if the file has another format."""
    marks = {**MAGIC, b"PK\x03\x04": "xlsx"}
    other = next((format for mark, format in marks.items() if data.startswith(mark)), None)
    if other is not None:
        raise TableError(f"{name}: this is a file in {other} format, not text: give format={other!r}.")
    if not data.startswith(_GZIP):
        return data
    limit = available_memory() // 8  # cells take several times the memory of their bytes
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            text = stream.read(limit + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise TableError(f"{name}: the gzip file is broken ({error}).") from None
    if len(text) > limit:
        raise TableError(f"{name}: the decompressed file exceeds {human(limit)}, too much for the available memory.")
    return text
