"""Options and arguments that commands have in common, and how they look in ``--help``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer


class Kind(StrEnum):
    """What the target column holds."""

    classes = "classes"
    numbers = "numbers"


class Paper(StrEnum):
    """The papers whose figures can be made again."""

    lspc = "lspc"
    lspc_mt = "lspc-mt"
    ml_lspc = "ml-lspc"
    mtls_svm = "mtls-svm"


#: Groups of options in the help.
READING, LEARNING, DECIDING = "How the table is read", "How it learns", "Decisions, sets and intervals"


def option(*names: str, help: str, metavar: str | None = None, panel: str | None = None) -> Any:
    """An option with a value."""
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=panel)


def flag(*names: str, help: str, panel: str | None = None) -> Any:
    """An option that is there or not."""
    return typer.Option(*names, help=help, metavar="", rich_help_panel=panel)


Quiet = Annotated[bool, flag("--quiet", "-q", help="No progress and no notes; results, warnings and errors only.")]
Json = Annotated[bool, flag("--json", help="Results as one JSON object on stdout.")]
Format = Annotated[
    str | None,
    option(
        help="csv, tsv, parquet, arrow, arff or libsvm; else by the ending of the file.",
        metavar="NAME",
        panel=READING,
    ),
]
Delimiter = Annotated[str | None, option(help="Of CSV; else found among , ; tab and |.", metavar="X", panel=READING)]
Decimal = Annotated[
    str | None, option(help="Decimal mark of CSV and TSV, . or ,; else found.", metavar="X", panel=READING)
]
Encoding = Annotated[
    str | None, option(help="Of text; else found: UTF-8, UTF-16, latin-1.", metavar="NAME", panel=READING)
]
NoHeader = Annotated[
    bool, flag("--no-header", help="The first line is data; columns are column_1, ...", panel=READING)
]
Model = Annotated[Path, typer.Argument(help="A model file, made by `leastwise fit`.", metavar="MODEL")]
Data = Annotated[
    str, typer.Argument(help="A table: CSV, TSV, Parquet, Arrow, ARFF, libsvm; - is stdin.", metavar="DATA")
]
