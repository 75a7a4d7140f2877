"""Commands and their options. What they do is imported when they run, so that ``--help`` is there at once."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer

from leastwise import __version__
from leastwise.cli.failing import MEANING
from leastwise.cli.options import (
    DECIDING,
    LEARNING,
    Data,
    Decimal,
    Delimiter,
    Encoding,
    Format,
    Json,
    Kind,
    Model,
    NoHeader,
    Paper,
    Quiet,
    flag,
    option,
)
from leastwise.cli.running import Ended, ended, worked

EPILOG = "Exit codes: " + ", ".join(f"{code} {text}" for code, text in MEANING.items()) + "."

app = typer.Typer(
    name="leastwise",
    help="Calibrated probabilities from a table, and decisions where they are sure.",
    epilog=EPILOG,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(on: bool) -> None:
    if on:
        print(f"leastwise {__version__}")
        raise typer.Exit


Version = typer.Option("--version", callback=_version, is_eager=True, help="Show the version.", metavar="")


@app.callback()
def everything(version: Annotated[bool, Version] = False) -> None:
    """Calibrated probabilities from a table, and decisions where they are sure."""


@app.command()
def fit(
    data: Data,
    target: Annotated[str | None, option("--target", "-t", help="The column to predict.", metavar="COLUMN")] = None,
    labels: Annotated[
        str | None,
        option(help="Instead: columns of yes/no labels; empty cells are not known.", metavar="A,B,..."),
    ] = None,
    task: Annotated[
        str | None, option(help="A column of sites, machines, persons: learned together.", metavar="COLUMN")
    ] = None,
    output: Annotated[
        Path | None, option("--output", "-o", help="The model file; else DATA.lw.", metavar="FILE")
    ] = None,
    report: Annotated[Path | None, option(help="Also write a report, one HTML page.", metavar="FILE")] = None,
    resume: Annotated[bool, flag("--resume", help="Take up a search that was broken off.")] = False,
    ignore: Annotated[str | None, option(help="Columns to leave out.", metavar="A,B,...", panel=LEARNING)] = None,
    column: Annotated[
        list[str] | None,
        option(
            help="Say what a column is: zip=category; or number, boolean, date.", metavar="A=KIND", panel=LEARNING
        ),
    ] = None,
    kind: Annotated[
        Kind | None, option(help="What the target has: classes or numbers.", metavar="KIND", panel=LEARNING)
    ] = None,
    group: Annotated[
        str | None, option(help="A column whose rows are held out together.", metavar="COLUMN", panel=LEARNING)
    ] = None,
    weight: Annotated[str | None, option(help="A column of weights.", metavar="COLUMN", panel=LEARNING)] = None,
    centers: Annotated[
        int | None, option(help="Number of centres; else by the number of rows.", metavar="N", panel=LEARNING)
    ] = None,
    seed: Annotated[int, option(help="For all that is drawn at random.", metavar="N", panel=LEARNING)] = 0,
    recalibrate: Annotated[
        bool, flag("--recalibrate", help="Calibrate once more, by the family that suits.", panel=LEARNING)
    ] = False,
    max_error: Annotated[
        float | None,
        option(help="Decide only where at most this share is wrong: 0.01.", metavar="SHARE", panel=DECIDING),
    ] = None,
    min_confidence: Annotated[
        float | None, option(help="Decide from this probability on.", metavar="SHARE", panel=DECIDING)
    ] = None,
    coverage: Annotated[
        float, option(help="Of sets of classes, and of intervals.", metavar="SHARE", panel=DECIDING)
    ] = 0.9,
    format: Format = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Learn from a table with a target column; choose, calibrate, and write a model file.

    Categories are made one-hot, numbers standardised, missing cells filled in and marked, by rules that are kept.

    Example: leastwise fit cases.csv --target finding --task site --max-error 0.01 -o cases.lw
    """
    _run("fitting", quiet, json, locals())


@app.command()
def predict(
    model: Model,
    data: Data,
    output: Annotated[str, option("--output", "-o", help="Where to; - is stdout.", metavar="FILE")] = "-",
    keep: Annotated[
        str | None, option(help="Columns of the table to keep beside: id,site; or all.", metavar="A,B,...")
    ] = None,
    coverage: Annotated[
        float | None, option(help="Of sets and intervals; else that of the fit.", metavar="SHARE")
    ] = None,
    output_format: Annotated[
        str | None, option(help="Format of the output; else by its ending.", metavar="NAME")
    ] = None,
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
    output: Annotated[Path, option("--output", "-o", help="The page to write.", metavar="FILE")] = Path(
        "report.html"
    ),
    title: Annotated[str | None, option(help="Its heading.", metavar="TEXT")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write a report on a model: one HTML page that needs nothing else."""
    _run("reporting", quiet, json, locals())


@app.command()
def export(
    model: Model,
    output: Annotated[Path, option("--output", "-o", help="The ONNX file to write.", metavar="FILE")],
    double: Annotated[bool, flag("--double", help="Double precision, which models of tables have anyway.")] = False,
    coverage: Annotated[
        float | None,
        option(help="Add sets of classes, or intervals of numbers, that are right so often.", metavar="SHARE"),
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write a model as ONNX, for other languages and servers."""
    _run("exporting", quiet, json, locals())


@app.command()
def demo(
    folder: Annotated[Path | None, option(help="Keep the files of the demonstration here.", metavar="FOLDER")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """From a made-up table of eight sites to decisions, with every command shown."""
    _run("demonstrating", quiet, json, locals())


@app.command()
def reproduce(
    paper: Annotated[Paper, typer.Argument(help="lspc, lspc-mt, ml-lspc or mtls-svm.", metavar="PAPER")],
    data: Annotated[
        Path | None, option(help="Folder of the papers' data; else LEASTWISE_DATA.", metavar="FOLDER")
    ] = None,
    output: Annotated[
        Path | None, option("--output", "-o", help="Folder for tables and figures.", metavar="FOLDER")
    ] = None,
    quick: Annotated[bool, flag("--quick", help="Fewer draws, about a minute.")] = False,
    part: Annotated[
        list[str] | None, option(help="Only this table or figure; may be given again.", metavar="NAME")
    ] = None,
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
        raise Ended(code)


def run(arguments: list[str]) -> int:
    """Run a command and return its exit code."""
    return ended(lambda: _made()(arguments or ["--help"], prog_name="leastwise", standalone_mode=False), arguments)


@cache
def _made() -> Any:
    """The commands, ready to be called; made once."""
    return typer.main.get_command(app)
