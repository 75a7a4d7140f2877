"""Tables from and to files, by their endings."""

from __future__ import annotations

import gzip
import io
import os
import sys
import zlib
from pathlib import Path
from typing import IO, Any

from leastwise.tables.arff import read_arff
from leastwise.tables.arrow import read_arrow, write_arrow
from leastwise.tables.libsvm import read_libsvm
from leastwise.tables.table import Table, TableError, TableFileError
from leastwise.tables.text import DELIMITERS, decode, read_text, write_text
from leastwise.utils.atomic_files import write_atomically
from leastwise.utils.memory import available_memory, human

#: Formats by the ending of a file.
ENDINGS = {
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
}
FORMATS = ("csv", "tsv", "parquet", "arrow", "arff", "libsvm")
WRITTEN = ("csv", "tsv", "parquet", "arrow")
_GZIP, _PARQUET, _ARROW = b"\x1f\x8b", b"PAR1", b"ARROW1"


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
        "-" is the standard input. Text may be packed by gzip.
    format : {"csv", "tsv", "parquet", "arrow", "arff", "libsvm"}, optional
        By default what the ending of the file says, and CSV for streams. "arrow" is the IPC format, that of Feather
        files too. Parquet and Arrow need the extra ``frames``.
    delimiter : str, optional
        Of CSV; by default found among comma, semicolon, tab and bar.
    decimal : {".", ","}, optional
        The decimal mark of CSV and TSV; by default found.
    encoding : str, optional
        Of text; by default what a byte order mark says, else UTF-8 or UTF-16, else latin-1 with a warning.
    header : bool, default=True
        Whether the first line of CSV and TSV has the names; otherwise these are column_1 and so on.

    Returns
    -------
    Table
        Columns of text for text files, and of their own types for others.

    Raises
    ------
    TableError
        Where the file is not a table; the message names the file, the line and what is wrong.

    Examples
    --------
    >>> import io
    >>> from leastwise.tables import read_table
    >>> table = read_table(io.StringIO("size;line\n1,5;north\n2,25;south\n"))
    >>> table["size"].tolist(), table.notes[0][:31]
    (['1.5', '2.25'], 'The decimal mark is a comma: 1,')
    """
    if decimal not in (None, ".", ","):
        raise TableError(f"decimal={decimal!r} is not known: use '.' or ','.")
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n'):
        raise TableError(f"delimiter={delimiter!r} must be one character, such as {DELIMITERS}.")
    name = _name(source)
    format = checked_format(format, name, FORMATS)
    data = _content(source, name)
    if format in ("parquet", "arrow"):
        return read_arrow(data, format, name)
    text = data if isinstance(data, str) else decode(_unpacked(data, name), encoding, name)
    if format == "arff":
        return read_arff(text, name)
    if format == "libsvm":
        return read_libsvm(text, name)
    return read_text(text, name, "\t" if format == "tsv" else delimiter, decimal, header)


def write_table(table: Any, target: str | os.PathLike | IO, format: str | None = None) -> None:
    """Write a table to a file, "-" (the standard output) or a stream.

    A file is written beside its place and then moved there: after an interruption there is the old one or the new
    one.

    Parameters
    ----------
    table : Table, frame or mapping
    target : path, "-" or stream
        With the ending .gz, text is packed.
    format : {"csv", "tsv", "parquet", "arrow"}, optional
        By default what the ending says, and CSV for streams.
    """
    table, name = Table.of(table), _name(target)
    format = checked_format(format, name, WRITTEN)
    if format in ("parquet", "arrow"):
        data = write_arrow(table, format)
    else:
        data = write_text(table, "\t" if format == "tsv" else ",").encode()
        data = gzip.compress(data, mtime=0) if name.endswith(".gz") else data
    if isinstance(target, str | os.PathLike) and str(target) != "-":
        _write_file(str(target), data)
    else:
        _write_stream(sys.stdout.buffer if isinstance(target, str | os.PathLike) else target, data, format)


def checked_format(format: str | None, name: str, allowed: tuple[str, ...]) -> str:
    """The format that was asked for, or that of the ending."""
    if format is not None:
        format = "arrow" if format in ("feather", "ipc") else format
        if format not in allowed:
            raise TableError(f"format={format!r} is not possible here: use one of {list(allowed)}.")
        return format
    if name.startswith("<"):
        return "csv"
    ending = Path(name.removesuffix(".gz")).suffix.lower()
    found = ENDINGS.get(ending)
    if found not in allowed:
        known = [e for e, f in ENDINGS.items() if f in allowed]
        raise TableError(
            f"{name}: the ending {ending!r} is not one of {known}: give format=, one of {list(allowed)}."
        )
    return found


# ---------------------------------------------------------------------- bytes


def _name(source: Any) -> str:
    if isinstance(source, str | os.PathLike):
        return "<stdin>" if str(source) == "-" else os.fspath(source)
    return "<stream>"


def _content(source: Any, name: str) -> bytes | str:
    """All that there is; a stream may give text."""
    if hasattr(source, "read"):
        return source.read()
    if not isinstance(source, str | os.PathLike):
        raise TableError(f"{type(source).__name__} is no file: give a path, '-' or a stream.")
    if name == "<stdin>":
        return sys.stdin.buffer.read()
    try:
        return Path(source).read_bytes()
    except FileNotFoundError:
        raise TableFileError(f"{name}: there is no such file.") from None
    except OSError as error:
        raise TableFileError(f"{name}: it cannot be read ({error.strerror}).") from None


def _unpacked(data: bytes, name: str) -> bytes:
    """Text out of gzip, bounded by memory; a word where the file is something else."""
    if data.startswith((_PARQUET, _ARROW)):
        format = "parquet" if data.startswith(_PARQUET) else "arrow"
        raise TableError(f"{name}: this is a file of {format}, not of text: give format={format!r}.")
    if not data.startswith(_GZIP):
        return data
    limit = available_memory() // 8  # cells take several times the room of their bytes
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            text = stream.read(limit + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise TableError(f"{name}: the gzip file is broken ({error}).") from None
    if len(text) > limit:
        raise TableError(f"{name}: unpacked it is larger than {human(limit)}, too much for the memory there is.")
    return text


def _write_stream(stream: Any, data: bytes, format: str) -> None:
    if isinstance(stream, io.TextIOBase):
        if format in ("parquet", "arrow"):
            raise TableError(f"format={format!r} needs a stream of bytes; given is one of text.")
        stream.write(data.decode())
    else:
        stream.write(data)
    stream.flush()


def _write_file(path: str, data: bytes) -> None:
    try:
        write_atomically(path, [data])
    except OSError as error:
        raise TableFileError(f"{path}: it cannot be written ({error.strerror or error}).") from None
