"""Options and arguments: how they are declared, how their values are checked, and the files that they name."""

from __future__ import annotations

import errno
import math
import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from leastwise.cli.output import UsageError

if TYPE_CHECKING:
    from leastwise.cli.output import Output
    from leastwise.tables import Table, TableModel


class Kind(StrEnum):
    """Kinds of targets."""

    classes = "classes"
    numbers = "numbers"


class Paper(StrEnum):
    """Papers whose experiments can be reproduced."""

    lspc = "lspc"
    lspc_mt = "lspc-mt"
    ml_lspc = "ml-lspc"
    mtls_svm = "mtls-svm"


# ------------------------------------------------------------------- declarations

#: Groups of options in the help.
READING, LEARNING, DECIDING = "Reading the table", "Training", "Decisions, sets and intervals"


#: Seconds of the units of time.
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def option(*names: str, help: str, metavar: str | None = None, panel: str | None = None) -> Any:
    """Declare an option with a value."""
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=panel)


def flag(*names: str, help: str, panel: str | None = None) -> Any:
    """Declare an option without a value."""
    return typer.Option(*names, help=help, metavar="", rich_help_panel=panel)


Quiet = Annotated[bool, flag("--quiet", "-q", help="No progress and no notes; results, warnings and errors only.")]
Json = Annotated[bool, flag("--json", help="Print the results as one JSON object.")]
Strict = Annotated[bool, flag("--strict", help="Refuse rows of tasks that did not occur in training.")]
Format = Annotated[
    str | None,
    option(
        help="csv, tsv, parquet, arrow, arff, libsvm or xlsx; default: by the file's suffix.",
        metavar="NAME",
        panel=READING,
    ),
]
Delimiter = Annotated[
    str | None, option(help="CSV delimiter; default: detect , ; tab or |.", metavar="X", panel=READING)
]
Decimal = Annotated[
    str | None, option(help="Decimal mark of CSV and TSV, . or ,; default: detect.", metavar="X", panel=READING)
]
Encoding = Annotated[
    str | None,
    option(help="Text encoding; default: detect UTF-8, UTF-16, cp1252 or latin-1.", metavar="NAME", panel=READING),
]
ClassPrior = Annotated[
    list[str] | None,
    option(
        help="Class shares of the new rows, if not those of training: a=0.1,b=0.9; uniform; or estimate.",
        metavar="SHARES",
    ),
]
NoHeader = Annotated[
    bool, flag("--no-header", help="The first line is data; columns are named column_1, ...", panel=READING)
]
Model = Annotated[Path, typer.Argument(help="A model file written by `leastwise fit`.", metavar="MODEL")]
Data = Annotated[
    str, typer.Argument(help="A table: CSV, TSV, Parquet, Arrow, ARFF, libsvm or Excel; - is stdin.", metavar="DATA")
]


# ------------------------------------------------------------------------- checks


def column_names(values: Sequence[str] | None, table: Table) -> list[str]:
    """The columns that the values of a repeated option name, each once.

    A value is the name of a column, which may contain commas. If there is no such column, it is split at the commas.
    """
    names: list[str] = []
    for value in values or []:
        parts = [part.strip() for part in value.split(",") if part.strip()]
        split = value not in table.columns and any(part in table.columns for part in parts)
        names += parts if split else [value]
    return list(dict.fromkeys(names))


def named_numbers(option: str, values: Sequence[str] | None, words: Sequence[str]) -> Any:
    """The value of an option: one of some words, or a dict of numbers by name, A=0.1,B=0.9; it can be repeated."""
    if not values:
        return None
    if len(values) == 1 and values[0] in words:
        return values[0]
    found: dict[str, float] = {}
    for value in values:
        parts = value.split(",")
        for part in parts if all("=" in part for part in parts) else [value]:  # names may contain commas
            name, equals, number = part.rpartition("=")
            try:
                found[name.strip()] = float(number)
            except ValueError:
                equals = ""
            if not equals:
                expected = f"{', '.join(words)} or NAME=NUMBER" if words else "NAME=NUMBER"
                raise UsageError(f"{option} {value}: expected {expected}, such as a=0.1,b=0.9.")
    return found


def check_fraction(option: str, value: float | None) -> float | None:
    """Return the value of an option, which must be None or between 0 and 1."""
    if value is not None and not 0 < value < 1:
        raise UsageError(f"{option} {value:g}: must be between 0 and 1, such as 0.9.")
    return value


def check_time(text: str | None) -> float | None:
    """Seconds of a time such as 90, 90s, 10m or 1.5h."""
    if text is None:
        return None
    given = text.strip().lower()
    unit = UNITS.get(given[-1:], 0)
    try:
        seconds = float(given[:-1] if unit else given) * (unit or 1)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise UsageError(f"--time-limit {text}: expected a time, such as 90 (seconds), 10m or 2h.")
    return seconds


def check_memory(text: str | None) -> int | None:
    """Bytes of a size such as 4GB."""
    from leastwise.utils.resources import parse_size

    if text is None:
        return None
    try:
        size = parse_size(text)
    except ValueError:
        size = 0
    if size <= 0:
        raise UsageError(f"--memory-limit {text}: expected a size, such as 500MB or 4GB.")
    return size


def check_input(data: str) -> None:
    """Refuse a directory as the table."""
    if Path(data).is_dir():
        raise UsageError(f"{data} is a directory; give the name of a file.")


def same_file(path: Path, other: str | Path) -> bool:
    """True if two names, of which "-" is stdin, mean one file, by way of links or ".." or by the same name."""
    try:
        if str(other) == "-":
            return sys.stdin is not None and path.is_file() and os.path.samestat(path.stat(), os.fstat(0))
        return os.path.realpath(path) == os.path.realpath(other) or path.samefile(other)
    except OSError:  # one of them does not exist
        return False


def check_output(path: Path | None, *inputs: str | Path) -> None:
    """Check, before any work is done, that a file can be written and is not one of the inputs."""
    if path is None:
        return
    if any(same_file(path, name) for name in inputs):
        raise UsageError(f"{path} is an input of this command: write to another file.")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{path}: the directory {path.absolute().parent} does not exist.")
    if path.is_dir():
        raise UsageError(f"{path} is a directory; give the name of a file.")
    if not os.access(path.absolute().parent, os.W_OK):
        raise PermissionError(errno.EACCES, "the directory is not writable", str(path))


# -------------------------------------------------------------------------- files


def open_table(output: Output, data: str, format: str | None, **options: Any) -> Table:
    """Read the table from a file or stdin, and print the reader's notes."""
    from leastwise.tables import read_table

    check_input(data)
    if data == "-" and sys.stdin is None:
        raise OSError(errno.EBADF, "stdin is closed; there is no table to read", "<stdin>")
    if data == "-" and sys.stdin.isatty():
        output.note("Reading the table from the terminal; end it with Ctrl-D.")
    if options.pop("no_header", False):
        options["header"] = False
    with output.spinner(f"reading {data}"):
        table = read_table(data, format=format, **options)
    for note in table.notes:
        output.note(note)
    return table


def open_model(path: Path) -> TableModel:
    """Load a model file, which must hold a TableModel."""
    from leastwise.persistence import FileError, load
    from leastwise.tables import TableModel

    model: Any = load(path)
    if not isinstance(model, TableModel):
        raise FileError(
            f"{path} holds a {type(model).__name__}, which has no column names: this command needs a model written "
            "by `leastwise fit`, or a leastwise.TableModel. Open the file in Python with leastwise.load."
        )
    return model


def shown_rows(used: Table, model: TableModel, show: bool) -> dict[str, Any]:
    """Line numbers of rows, for lists of rows in a report; on request the columns that are inputs."""
    columns = {column.name: used[column.name] for column in model.columns_ if show and column.used}
    return {f"{used.unit} of {Path(used.source).name or 'the table'}": used.line_numbers(), **columns}
