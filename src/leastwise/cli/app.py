"""The commands and their options, and how a command runs.

A command imports its work when it runs, so that ``--help`` is fast. Errors become one line on stderr and an exit
code; warnings of the library become notes.
"""

from __future__ import annotations

import errno
import json as json_text
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from leastwise import __version__
from leastwise.cli.options import (
    DECIDING,
    LEARNING,
    ClassPrior,
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
    Strict,
    flag,
    option,
)
from leastwise.cli.output import BUG, DONE, INTERRUPTED, MEANING, USAGE, Output, explain, visible

app = typer.Typer(
    name="leastwise",
    help="Calibrated probabilities from a table, and decisions where the model is confident.",
    epilog="Exit codes: " + ", ".join(f"{code} {text}" for code, text in MEANING.items()) + ".",
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
def leastwise(version: Annotated[bool, Version] = False) -> None:
    """Calibrated probabilities from a table, and decisions where the model is confident."""


@app.command()
def fit(
    data: Data,
    target: Annotated[str | None, option("--target", "-t", help="The column to predict.", metavar="COLUMN")] = None,
    labels: Annotated[
        list[str] | None,
        option(help="Instead of --target: columns of yes/no labels; empty cells are unknown.", metavar="A,B,..."),
    ] = None,
    task: Annotated[
        str | None, option(help="A column of tasks (sites, machines, persons), learned jointly.", metavar="COLUMN")
    ] = None,
    model_file: Annotated[
        Path | None, option("--output", "-o", help="The model file; default: DATA.lw.", metavar="FILE")
    ] = None,
    report: Annotated[Path | None, option(help="Also write a report, one HTML page.", metavar="FILE")] = None,
    show_rows: Annotated[
        bool, flag("--show-rows", help="Show input columns of single training rows in the report.")
    ] = False,
    resume: Annotated[bool, flag("--resume", help="Continue an interrupted search.")] = False,
    ignore: Annotated[
        list[str] | None, option(help="Columns to leave out; can be repeated.", metavar="A,B,...", panel=LEARNING)
    ] = None,
    column: Annotated[
        list[str] | None,
        option(
            help="The kind of a column: zip=category; number, boolean, date, when=date:%d/%m/%Y. Can be repeated.",
            metavar="A=KIND",
            panel=LEARNING,
        ),
    ] = None,
    missing: Annotated[
        list[str] | None,
        option(
            help="A word that marks a missing cell, such as unknown or -999; can be repeated.",
            metavar="WORD",
            panel=LEARNING,
        ),
    ] = None,
    kind: Annotated[
        Kind | None, option(help="The kind of target: classes or numbers.", metavar="KIND", panel=LEARNING)
    ] = None,
    group: Annotated[
        str | None,
        option(help="A column of groups; a group is held out as a whole.", metavar="COLUMN", panel=LEARNING),
    ] = None,
    weight: Annotated[
        str | None, option(help="A column of sample weights.", metavar="COLUMN", panel=LEARNING)
    ] = None,
    centers: Annotated[
        int | None,
        option(help="Number of kernel centres; default: by the rows.", metavar="N", panel=LEARNING),
    ] = None,
    time_limit: Annotated[
        str | None,
        option(
            help="Limit of the training time, about: 90, 10m or 2h; default: none.",
            metavar="TIME",
            panel=LEARNING,
        ),
    ] = None,
    memory_limit: Annotated[
        str | None,
        option(help="Limit of the memory for training: 4GB; default: what is free.", metavar="SIZE", panel=LEARNING),
    ] = None,
    seed: Annotated[int, option(help="Seed of the random numbers.", metavar="N", panel=LEARNING)] = 0,
    kernel: Annotated[
        str | None,
        option(
            help="The kernel: rbf, laplace, linear, rbf+linear, ...; default: chosen.", metavar="NAME", panel=LEARNING
        ),
    ] = None,
    similarity: Annotated[
        str | None,
        option(
            help="How tasks are related: shared, learned, correlation, inputs; or labels: correlation, ...",
            metavar="NAME",
            panel=LEARNING,
        ),
    ] = None,
    recalibrate: Annotated[
        bool, flag("--recalibrate", help="Calibrate once more, with the best-fitting method.", panel=LEARNING)
    ] = False,
    max_error: Annotated[
        float | None,
        option(help="Bound on the error rate of the decisions: 0.01.", metavar="SHARE", panel=DECIDING),
    ] = None,
    max_miss: Annotated[
        list[str] | None,
        option(
            help="Bound on the share of a class that is decided as another class: fault=0.01; can be repeated.",
            metavar="CLASS=SHARE",
            panel=DECIDING,
        ),
    ] = None,
    min_confidence: Annotated[
        float | None, option(help="Smallest probability of a decision.", metavar="SHARE", panel=DECIDING)
    ] = None,
    cost: Annotated[
        float | None,
        option(help="Cost of a row left for review, in units of the cost of an error.", metavar="X", panel=DECIDING),
    ] = None,
    confidence: Annotated[
        float,
        option(help="Probability that --max-error and --max-miss are kept.", metavar="SHARE", panel=DECIDING),
    ] = 0.95,
    by_task: Annotated[
        bool, flag("--by-task", help="A threshold, and a calibration, for every task.", panel=DECIDING)
    ] = False,
    threshold: Annotated[
        list[str] | None,
        option(
            help="A label is predicted where its probability is above this: 0.3; auto; or a=0.3,b=0.6.",
            metavar="X",
            panel=DECIDING,
        ),
    ] = None,
    coverage: Annotated[
        float, option(help="Coverage of sets of classes, or of intervals.", metavar="SHARE", panel=DECIDING)
    ] = 0.9,
    bounds: Annotated[
        tuple[float, float] | None,
        option(
            help="Smallest and largest possible number: 0 10; inf is no bound.", metavar="LOW HIGH", panel=DECIDING
        ),
    ] = None,
    format: Format = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train on a table with a target column, tune and calibrate, and write a model file.

    Categories, dates and missing values need no preparation. The model file stores how the columns are read.

    Example: leastwise fit cases.csv --target finding --task site --max-error 0.01 -o cases.lw
    """
    _run("fit:run", quiet, json, locals())


@app.command()
def predict(
    model: Model,
    data: Data,
    predictions: Annotated[
        str, option("--output", "-o", help="The file of predictions; - is stdout.", metavar="FILE")
    ] = "-",
    keep: Annotated[
        list[str] | None,
        option(
            help="Columns of the table to copy to the output: id,site; or all. Can be repeated.", metavar="A,B,..."
        ),
    ] = None,
    coverage: Annotated[
        float | None, option(help="Coverage of sets or intervals; default: that of the fit.", metavar="SHARE")
    ] = None,
    output_format: Annotated[
        str | None, option(help="Format of the output; default: by its suffix.", metavar="NAME")
    ] = None,
    formulas: Annotated[
        bool, flag("--formulas", help="Write text as it is, also where a spreadsheet would run it as a formula.")
    ] = False,
    class_prior: ClassPrior = None,
    strict: Strict = False,
    format: Format = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Predict every row: probabilities, confidence, sets or intervals, and a decision where accepted."""
    _run("models:predict", quiet, json, locals())


@app.command()
def evaluate(
    model: Model,
    data: Data,
    class_prior: ClassPrior = None,
    strict: Strict = False,
    format: Format = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Score a model on new rows with known targets: overall, and for every task or label."""
    _run("models:evaluate", quiet, json, locals())


@app.command()
def compare(
    model: Model,
    other: Annotated[Path, typer.Argument(help="A second model file, of the same target.", metavar="OTHER")],
    data: Data,
    strict: Strict = False,
    format: Format = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Compare two models on the same new rows with known targets: paired differences with intervals."""
    _run("new_tables:compare", quiet, json, locals())


@app.command()
def check(
    model: Model,
    data: Data,
    tolerance: Annotated[
        float, option(help="Share of rows that may differ in a column, without being drift.", metavar="SHARE")
    ] = 0.1,
    format: Format = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Check a new table for drift: columns, categories, ranges, tasks, novelty and predicted class shares.

    The table needs no target. The exit code is 7 if there is drift.
    """
    _run("new_tables:check", quiet, json, locals())


@app.command()
def inspect(model: Model, quiet: Quiet = False, json: Json = False) -> None:
    """Show what a model file contains: columns, hyperparameters, held-out scores, versions."""
    _run("models:inspect", quiet, json, locals())


@app.command()
def report(
    model: Model,
    data: Annotated[
        str | None,
        typer.Argument(help="New rows with known targets; default: held-out training rows.", metavar="[DATA]"),
    ] = None,
    page: Annotated[Path, option("--output", "-o", help="The page to write.", metavar="FILE")] = Path("report.html"),
    title: Annotated[str | None, option(help="The heading.", metavar="TEXT")] = None,
    show_rows: Annotated[bool, flag("--show-rows", help="Show input columns of single rows of DATA.")] = False,
    strict: Strict = False,
    format: Format = None,
    delimiter: Delimiter = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    no_header: NoHeader = False,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Write a report on a model, on held-out training rows or on new rows: one self-contained HTML page."""
    _run("models:report", quiet, json, locals())


@app.command()
def export(
    model: Model,
    onnx_file: Annotated[Path, option("--output", "-o", help="The ONNX file to write.", metavar="FILE")],
    double: Annotated[bool, flag("--double", help="Double precision; models of tables always use it.")] = False,
    coverage: Annotated[
        float | None,
        option(help="Add sets of classes, or intervals, of this coverage.", metavar="SHARE"),
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Convert a model to ONNX, for other languages and servers."""
    _run("models:export", quiet, json, locals())


@app.command()
def demo(
    folder: Annotated[Path | None, option(help="Keep the files of the demonstration here.", metavar="FOLDER")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Run the commands on a synthetic table of eight sites, from training to decisions."""
    _run("demo:run", quiet, json, locals())


@app.command()
def reproduce(
    paper: Annotated[Paper, typer.Argument(help="lspc, lspc-mt, ml-lspc or mtls-svm.", metavar="PAPER")],
    data: Annotated[
        Path | None, option(help="Folder of the papers' data; default: LEASTWISE_DATA.", metavar="FOLDER")
    ] = None,
    directory: Annotated[
        Path | None, option("--output", "-o", help="Folder for tables and figures.", metavar="FOLDER")
    ] = None,
    quick: Annotated[bool, flag("--quick", help="Fewer repetitions, about a minute.")] = False,
    part: Annotated[
        list[str] | None, option(help="Only this table or figure; can be repeated.", metavar="NAME")
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Reproduce the tables and figures of a paper, next to the published numbers (from a checkout only)."""
    _run("reproduce:run", quiet, json, locals())


# -------------------------------------------------------------- running a command


class CommandFailed(Exception):
    """A command failed and has printed its error; the argument is the exit code."""


def run(arguments: list[str]) -> int:
    """Parse the arguments, run the command and return its exit code."""
    try:
        code = _command()(arguments or ["--help"], prog_name="leastwise", standalone_mode=False)
    except SystemExit as exit:
        code = exit.code
    except CommandFailed as failed:
        return int(failed.args[0])
    except Exception as error:
        if type(error).__name__ == "Abort":  # Ctrl-C in older versions of typer
            raise KeyboardInterrupt from None
        if not hasattr(error, "format_message"):  # not an error of typer's parser
            _print_error(explain(error)[1], BUG, False)
            return BUG
        command = next((word for word in arguments[:1] if word in _command().commands), "")
        help = f"leastwise {command} --help".replace("  ", " ")
        message = " ".join(error.format_message().replace("Value error, ", "").split()).removesuffix(".")
        _print_error(f"leastwise: {message}. See {help}", USAGE, "--json" in arguments)
        return USAGE
    if code == INTERRUPTED:  # Ctrl-C while the arguments were parsed
        raise KeyboardInterrupt
    return code if isinstance(code, int) else DONE


@cache
def _command() -> Any:
    return typer.main.get_command(app)


def _run(work: str, quiet: bool, json: bool, options: dict[str, Any]) -> None:
    """Call ``module:function`` with the options; raise CommandFailed after printing an error."""
    module, _, function = work.partition(":")
    options = {name: value for name, value in options.items() if name not in ("quiet", "json")}
    source = str(options.get("data") or "").replace("-", "<stdin>", options.get("data") == "-")
    try:
        _check_streams()
        output = Output(quiet, json)
        with _sigterm_interrupts(), _warnings_to(output):
            getattr(import_module(f"leastwise.cli.{module}"), function)(output, **options)
            output.print_result()
            sys.stdout.flush()
        if output.code != DONE:
            raise CommandFailed(output.code)
    except BrokenPipeError:  # the reader of stdout has closed it, as `head` does
        _discard_stdout()
    except CommandFailed:
        raise
    except (KeyboardInterrupt, Exception) as error:
        code, message = explain(error, source)
        _print_error(message if code == BUG else f"leastwise: {message}", code, json)
        raise CommandFailed(code) from None


def _check_streams() -> None:
    """Refuse a closed stdout before any work is done; without stderr, messages are lost."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    if sys.stdout is None:
        raise OSError(errno.EBADF, "stdout is closed; results cannot be written", "<stdout>")


def _discard_stdout() -> None:
    """Send what is still to be written to stdout nowhere, so that Python does not fail at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_error(line: str, code: int, json: bool) -> None:
    """Print an error on stderr, and with ``--json`` as an object on stdout too."""
    if sys.stderr is not None:
        print(visible(line), file=sys.stderr)
    if sys.stdout is None:
        return
    try:
        if json:
            error = {"error": line.removeprefix("leastwise: "), "exit_code": code}
            print(json_text.dumps(error, indent=2, ensure_ascii=False))
        sys.stdout.flush()
    except OSError:  # stdout is full or closed: stderr has the error
        _discard_stdout()


@contextmanager
def _sigterm_interrupts() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, so that temporary files are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _warnings_to(output: Output) -> Iterator[None]:
    """Print warnings for users, without the line of code; suppress those for developers."""
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: output.warn(str(message))
        yield
