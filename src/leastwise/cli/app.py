"""Commands and their options. What they do is imported when they run, so that ``--help`` is there at once."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from leastwise import __version__
from leastwise.cli.failing import MEANING
from leastwise.cli.running import ended, worked

EPILOG = "Exit codes: " + ", ".join(f"{code} {text}" for code, text in MEANING.items()) + "."

app = typer.Typer(
    name="leastwise",
    help="Calibrated probabilities from a table, and decisions where they are sure.",
    epilog=EPILOG,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


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


Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes; results only.")]
Json = Annotated[bool, typer.Option("--json", help="Results as one JSON object on stdout.")]
Format = Annotated[
    str | None,
    typer.Option(help="csv, tsv, parquet, arrow, arff or libsvm; else by the ending of the file.", metavar="NAME"),
]
Model = Annotated[Path, typer.Argument(help="A model file, made by `leastwise fit`.", metavar="MODEL")]
Data = Annotated[
    str, typer.Argument(help="A table: CSV, TSV, Parquet, Arrow, ARFF, libsvm; - is stdin.", metavar="DATA")
]
Delimiter = Annotated[str | None, typer.Option(help="Of CSV; else found among , ; tab and |.", metavar="CHARACTER")]
Decimal = Annotated[str | None, typer.Option(help="Decimal mark of CSV and TSV, . or ,; else found.", metavar="MARK")]
Encoding = Annotated[str | None, typer.Option(help="Of text; else found: UTF-8, UTF-16, latin-1.", metavar="NAME")]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The first line is data; columns are column_1, ...")]


@app.callback()
def everything(
    version: Annotated[
        bool, typer.Option("--version", callback=lambda on: _version(on), is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Calibrated probabilities from a table, and decisions where they are sure."""


def _version(on: bool) -> None:
    if on:
        print(f"leastwise {__version__}")
        raise typer.Exit


@app.command()
def fit(
    data: Data,
    target: Annotated[str | None, typer.Option("--target", "-t", help="The column to predict.")] = None,
    labels: Annotated[
        str | None, typer.Option(help="Instead: columns of yes/no labels, a,b,c; empty cells are not known.")
    ] = None,
    task: Annotated[str | None, typer.Option(help="A column of sites, machines, persons: learned together.")] = None,
    group: Annotated[str | None, typer.Option(help="A column whose rows are held out together.")] = None,
    weight: Annotated[str | None, typer.Option(help="A column of weights.")] = None,
    ignore: Annotated[str | None, typer.Option(help="Columns to leave out: id,comment.")] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="Say what a column is: zip=category, or number, boolean, date.")
    ] = None,
    kind: Annotated[Kind | None, typer.Option(help="Whether the target has classes or numbers.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="The model file; else DATA.lw.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a report, one HTML page.")] = None,
    max_error: Annotated[
        float | None, typer.Option(help="Decide only where at most this share of decisions is wrong: 0.01.")
    ] = None,
    min_confidence: Annotated[float | None, typer.Option(help="Decide from this probability on.")] = None,
    coverage: Annotated[float, typer.Option(help="Of sets of classes, and of intervals.")] = 0.9,
    recalibrate: Annotated[bool, typer.Option(help="Calibrate once more, by the family that suits.")] = False,
    centers: Annotated[int | None, typer.Option(help="Number of centres; else by the number of rows.")] = None,
    seed: Annotated[int, typer.Option(help="For all that is drawn at random.")] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Take up a search that was broken off.")] = False,
    format: Format = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Learn from a table with a target column; choose, calibrate, and write a model file.

    Categories are made one-hot, numbers are standardised, missing cells are filled in and marked; all of it is kept
    with the model. Example: leastwise fit cases.csv --target finding --task site --max-error 0.01 -o cases.lw
    """
    _run("fitting", quiet, json, locals())


@app.command()
def predict(
    model: Model,
    data: Data,
    output: Annotated[str, typer.Option("--output", "-o", help="Where to; - is stdout.")] = "-",
    keep: Annotated[str | None, typer.Option(help="Columns of the table to keep beside: id,site; or all.")] = None,
    coverage: Annotated[float | None, typer.Option(help="Of sets and intervals; else that of the fit.")] = None,
    output_format: Annotated[str | None, typer.Option(help="Format of the output; else by its ending.")] = None,
    format: Format = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Say of every row what it is, how probable that is, and whether it is sure enough to be decided."""
    _run("predicting", quiet, json, locals())


@app.command()
def evaluate(
    model: Model,
    data: Data,
    format: Format = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """How good a model is on rows with known answers that it has not seen."""
    _run("evaluating", quiet, json, locals())


@app.command()
def inspect(model: Model, quiet: Quiet = False, json: Json = False) -> None:
    """What a model file holds: what was learned, from what, and by which parameters."""
    _run("inspecting", quiet, json, locals())


@app.command()
def report(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    title: Annotated[str | None, typer.Option(help="Its heading.")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write a report on a model: one HTML page that needs nothing else."""
    _run("reporting", quiet, json, locals())


@app.command()
def export(
    model: Model,
    output: Annotated[Path, typer.Option("--output", "-o", help="The ONNX file to write.")],
    double: Annotated[
        bool, typer.Option("--double", help="Double precision, which models of tables have anyway.")
    ] = False,
    coverage: Annotated[
        float | None, typer.Option(help="Add sets of classes, or intervals of numbers, that are right so often.")
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write a model as ONNX, for other languages and servers."""
    _run("exporting", quiet, json, locals())


@app.command()
def demo(
    folder: Annotated[Path | None, typer.Option(help="Keep the files of the demonstration here.")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """From a made-up table of eight sites to decisions, with every command shown."""
    _run("demonstrating", quiet, json, locals())


@app.command()
def reproduce(
    paper: Annotated[Paper, typer.Argument(help="Which paper.")],
    data: Annotated[Path | None, typer.Option(help="Folder of the papers' data; else LEASTWISE_DATA.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Folder for tables and figures.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer draws, about a minute.")] = False,
    part: Annotated[list[str] | None, typer.Option(help="Only this table or figure; may be given again.")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Make a paper's tables and figures again, beside the paper's own figures."""
    _run("reproducing", quiet, json, locals())


# ----------------------------------------------------------------------- running


def _run(module: str, quiet: bool, json: bool, options: dict[str, Any]) -> None:
    """Do the work of a command, in the module of its name."""
    names = {name: value for name, value in options.items() if name not in ("quiet", "json")}
    code = worked(module, quiet, json, names)
    if code:
        raise typer.Exit(code)


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    return ended(lambda: app(arguments or ["--help"], prog_name="leastwise", standalone_mode=False), arguments)
