"""Output of the commands, for people and for programs; errors as one line on stderr and an exit code.

Results go to stdout, with ``--json`` as one JSON object. Progress, notes and warnings go to stderr, so that a pipe
gets the results only; ``--quiet`` suppresses progress and notes.
"""

from __future__ import annotations

import errno
import json
import math
import re
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Number, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leastwise.tables import TableModel

# ----------------------------------------------------------------------- errors


#: Exit codes.
DONE, BUG, USAGE, DATA, MODEL, SYSTEM, EXTRA, DRIFT, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 7, 130

MEANING = {
    DONE: "success",
    BUG: "a bug in leastwise",
    USAGE: "invalid options or arguments",
    DATA: "invalid table",
    MODEL: "invalid model file",
    SYSTEM: "a file cannot be read or written",
    EXTRA: "a library is missing",
    DRIFT: "drift found by `check`",
    INTERRUPTED: "interrupted",
}

#: Options by the name of the library's parameter.
OPTIONS = {
    "kinds": "--column",
    "n_centers": "--centers",
    "random_state": "--seed",
    "header": "--no-header",
    "time_limit": "--time-limit",
    **{name: f"--{name}" for name in ("format", "encoding", "delimiter", "decimal", "ignore", "kind", "target")},
    **{name: f"--{name}" for name in ("missing", "labels", "task", "group", "weight", "coverage", "data")},
    **{name: f"--{name}" for name in ("cost", "confidence", "threshold", "similarity", "kernel", "recalibrate")},
    **{name: "--" + name.replace("_", "-") for name in ("max_error", "max_miss", "min_confidence", "by_task")},
    **{name: "--" + name.replace("_", "-") for name in ("class_prior", "bounds")},
}
#: A parameter and its value. Text in double quotes is quoted from the table and stays unchanged.
_PARAMETER = re.compile(r'(?<!=)"[^"]*"|\b(' + "|".join(OPTIONS) + r""")=('[^']*'|"[^"]*"|[-\w.]*\w)?""")


#: A limit of one class.
_MISS_LIMIT = re.compile(r"""max_miss\[(?:'([^']*)'|"([^"]*)"|([\w.]+))\]=""")

#: Advice on memory that cannot be followed on the command line.
_IN_PYTHON = re.compile("fit_stream|float32|LEASTWISE_MEMORY|solver='auto'")


#: Advice on a column of codes, and the name of the column.
_CODES = re.compile(r"""((?<=column ")([^"]*)".* if these are codes, )set the kind of the column to 'category'""")


class UsageError(Exception):
    """Invalid options, or options that exclude each other."""


def explain(error: BaseException, source: str = "") -> tuple[int, str]:
    """Return the exit code and the message of an error; ``source`` is the name of the table."""
    code, message = _classify(error)
    if code == BUG:
        return code, message
    message = " ".join(with_option_names(_CODES.sub(r'\1add --column "\2=category"', message)).split())
    return code, f"{source}: {message}" if code == DATA and source and source not in message else message


def _classify(error: BaseException) -> tuple[int, str]:
    if isinstance(error, KeyboardInterrupt):  # first: it may come in the middle of the imports below
        return INTERRUPTED, "interrupted"
    if isinstance(error, UsageError):
        return USAGE, str(error)
    from leastwise.persistence import FileError
    from leastwise.tables import TableError
    from leastwise.tables.files import TableFileError

    if isinstance(error, TableError):
        return SYSTEM if isinstance(error, TableFileError) else DATA, str(error)
    if isinstance(error, FileError):
        return MODEL, str(error)
    if isinstance(error, ImportError):
        return EXTRA, str(error)
    if isinstance(error, OSError):  # without the number of the error
        # Files are named where they are written: what has no name and no room is stdout.
        name = error.filename if error.filename is not None else "<stdout>" if error.errno == errno.ENOSPC else None
        return SYSTEM, str(error.strerror or error) if name is None else f"{name}: {error.strerror}"
    if isinstance(error, MemoryError):
        return DATA, _memory_text(str(error))
    if isinstance(error, ValueError):  # raised by estimators for data that they cannot use
        return DATA, str(error)
    return BUG, "".join(traceback.format_exception(error)) + "This is a bug in leastwise; please report it."


def _memory_text(text: str) -> str:
    """What is needed and what is available, without advice that is for Python only."""
    if not text:
        return "not enough memory for this table."
    sentences = [s for s in re.split(r"(?<=\.) (?=[(A-Za-z])", text) if not _IN_PYTHON.search(s)]
    return " ".join([*sentences, "--memory-limit allows more, --ignore leaves columns out."])


def with_option_names(text: str) -> str:
    """Replace parameters of the library by options: ``format='parquet'`` becomes ``--format parquet``."""

    def option(match: re.Match) -> str:
        name, value = match.group(1), match.group(2)
        if name is None:
            return match.group(0)
        return OPTIONS[name] + ("" if value in (None, "False", "True") else " " + value.strip("'\""))

    text = _MISS_LIMIT.sub(lambda match: f"--max-miss {match[1] or match[2] or match[3]}=", text)
    return _PARAMETER.sub(option, text)


# ----------------------------------------------------------------------- output


def visible(text: str) -> str:
    r"""Text with control characters and marks of direction as escapes, such as ``\x1b``; line breaks and tabs stay.

    A terminal would obey them: names of columns and classes could recolour it, move its cursor or reorder its text.
    """
    return _CONTROL.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")

#: Width of output that does not go to a terminal: no line is folded.
UNLIMITED = 10_000
#: Terminals of this width have room for a bar beside the line of progress.
WIDE = 110
#: Tables show this many columns of the data.
MAX_COLUMNS = 60
#: The steps of a fit are shown where it takes at least this many seconds.
LONG = 5.0
#: Inputs whose feature weights are shown.
MAX_WEIGHTS = 20
#: Characters of a row of the table of columns, without the name.
BESIDE_NAME = 48

#: What a model accepts whose limit cannot be kept.
NOTHING = "nothing: the limit cannot be guaranteed, and every decision is left for review"

#: Names of scores for people.
LABELS = {
    "log_loss": "log-loss",
    "brier": "Brier score",
    "ece": "calibration error (ECE)",
    "classwise_ece": "classwise ECE",
    "auc": "AUC",
    "f1": "F1",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R2",
    "set_coverage": "coverage of the sets",
    "set_size": "mean size of the sets",
    "decided": "accepted",
    "error_of_decided": "error among accepted",
    "interval_coverage": "coverage of the intervals",
    "interval_width": "mean width of the intervals",
    "left_out": "rows left out",
    "known": "known cells",
    "positives": "positive cells",
    "predicted": "share predicted positive",
    "average_precision": "average precision",
}


@dataclass
class Output:
    """The output streams of a command.

    Attributes
    ----------
    quiet, json : bool
        The options of that name.
    result : dict
        Printed at the end with ``--json``.
    warnings : list of str
        Warnings of the library, each once.
    code : int
        The exit code of a command that has not failed.
    """

    quiet: bool = False
    json: bool = False
    result: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    code: int = DONE

    def __post_init__(self) -> None:
        from rich.console import Console

        self.stderr = Console(stderr=True, quiet=self.quiet, highlight=False, width=_width(sys.stderr))
        self.always = Console(stderr=True, highlight=False, width=_width(sys.stderr))  # also with --quiet
        self.stdout = Console(quiet=self.json, highlight=False, width=_width(sys.stdout))

    def note(self, text: str) -> None:
        """Print a note on stderr."""
        self.stderr.print(visible(with_option_names(text)), markup=False)

    def warn(self, text: str) -> None:
        """Print a warning on stderr, also with ``--quiet``; the same text only once."""
        text = " ".join(with_option_names(text).split())
        if text not in self.warnings:
            self.warnings.append(text)
            self.always.print(f"warning: {visible(text)}", markup=False)

    def print(self, text: str) -> None:
        """Print a line of results on stdout, except with ``--json``."""
        self.stdout.print(visible(text), markup=False)

    def table(self, title: str, header: Sequence[str], rows: Sequence[Sequence[Any]], stderr: bool = False) -> None:
        """Print a table on stdout or stderr, columns of numbers aligned right."""
        from rich.table import Table as Grid
        from rich.text import Text

        grid = Grid(header_style="bold", box=None, pad_edge=False, show_header=any(header))
        for k, name in enumerate(header):
            right = any(isinstance(row[k], Number) for row in rows)
            grid.add_column(Text(visible(name)), justify="right" if right else "left", overflow="fold")
        for row in rows:
            grid.add_row(*(Text(visible(as_text(cell))) for cell in row))
        console = self.stderr if stderr else self.stdout
        if title:
            console.print(Text(visible(title), style="bold"))
        with console.capture() as drawn:
            console.print(grid)
        lines = "\n".join(line.rstrip() for line in drawn.get().splitlines())
        console.print(Text.from_ansi(lines) if console.is_terminal else lines, markup=False, soft_wrap=True)

    def print_result(self) -> None:
        """With ``--json``, print the result."""
        if self.json:
            result = {**self.result, "warnings": self.warnings}
            print(json.dumps(as_json(result), indent=2, ensure_ascii=False, allow_nan=False))

    @contextmanager
    def spinner(self, text: str, expected: float | None = None) -> Iterator[Any]:
        """On a terminal, show a spinner, the elapsed time and a line of text, which ``update`` changes.

        With the expected seconds, also show a bar and the time that is left.
        """
        if self.quiet or not self.stderr.is_terminal:
            yield NoSpinner()
            return
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.table import Column

        rest = Column(no_wrap=True, overflow="ellipsis", ratio=1)  # the text is cut, spinner and time are not
        line = TextColumn("{task.description}", markup=False, table_column=rest)
        time = TimeElapsedColumn(table_column=Column(no_wrap=True))
        left = [] if expected is None else _remaining(expected, bar=self.stderr.width >= WIDE)
        columns = [SpinnerColumn(), time, *left, line]
        with Progress(*columns, console=self.stderr, transient=True, expand=True) as progress:
            yield Spinner(progress, progress.add_task(text, total=None))


def _remaining(expected: float, bar: bool) -> list[Any]:
    """A bar of the elapsed share of the expected seconds, and the time that is left: columns of a progress line."""
    from rich.progress import ProgressColumn
    from rich.progress_bar import ProgressBar
    from rich.table import Column
    from rich.text import Text

    class Bar(ProgressColumn):
        """The elapsed share; never full, as the end is not known."""

        def render(self, task: Any) -> ProgressBar:
            return ProgressBar(total=expected, completed=min(task.elapsed or 0.0, 0.99 * expected), width=20)

    class TimeLeft(ProgressColumn):
        """The expected time less the elapsed time."""

        def render(self, task: Any) -> Text:
            return Text(time_left(expected, task.elapsed or 0.0) + ",")

    whole = Column(no_wrap=True)
    return [*([Bar(table_column=whole)] if bar else []), TimeLeft(table_column=whole)]


def time_left(expected: float, elapsed: float) -> str:
    """How long it still takes, in round numbers."""
    left = expected - elapsed
    if left < 1:
        return "almost done" if elapsed < 1.5 * expected + 2 else "longer than planned"
    if left < 90:
        return f"about {left:.0f} s left"
    return f"about {left / 60:.0f} min left" if left < 5400 else f"about {left / 3600:.1f} h left"


class NoSpinner:
    """Shows nothing."""

    def update(self, text: str) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class Spinner:
    """A line of progress on a terminal."""

    progress: Any
    task: Any

    def update(self, text: str) -> None:
        """Change the text."""
        self.progress.update(self.task, description=text)


def _width(stream: Any) -> int | None:
    return None if stream is not None and stream.isatty() else UNLIMITED


def as_text(value: Any) -> str:
    """Format a cell: floats with four significant digits, integers with commas, NaN as a dash, None as nothing."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, Real) and not isinstance(value, int):
        if math.isnan(value):
            return "-"
        return f"{float(value):.4g}" if abs(float(value)) < 1e5 else f"{float(value):.4e}"
    return "" if value is None else str(value)


def as_json(value: Any) -> Any:
    """Convert to types that JSON has; NaN and infinities become null."""
    if isinstance(value, dict):
        return {str(k): as_json(v) for k, v in value.items()}
    value = value.tolist() if hasattr(value, "tolist") else value  # numpy arrays and scalars
    if isinstance(value, list | tuple):
        return [as_json(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | type(None)) else str(value)


# ------------------------------------------------------------ tables and models


def label(score: str) -> str:
    """The name of a score for people."""
    return LABELS.get(score, score.replace("_", " "))


def score_text(scores: dict[str, Any], name: str) -> str:
    """A score, with its interval where there is one."""
    ends = scores.get(f"{name}_interval")
    return as_text(scores[name]) + (f" (95 % interval {as_text(ends[0])} to {as_text(ends[1])})" if ends else "")


def show_data(output: Output, found: dict[str, Any]) -> None:
    """Print, before training, what the table contains; ``found`` is what ``TableModel.look`` returns."""
    show_columns(output, found["columns"], stderr=True)
    classes = [f"{name} ({count:,})" for name, count in found.get("classes", {}).items()]
    output.note(f"Target: {_target(found)}" + (f": {_first(classes)}" if classes else ""))
    tasks = f" of {found['tasks']:,} tasks" if "tasks" in found else ""
    left_out = "".join(f", {count:,} left out ({why})" for why, count in found["left_out"].items() if count)
    output.note(f"Training data: {found['rows']:,} rows{tasks}{left_out}")
    if found["plan"] is not None:
        output.note(f"Plan: {plan_text(found['plan'])}")
        if found["plan"]["seconds"] >= LONG:
            output.note(f"Steps: {steps_text(found['plan'])}")


def plan_text(plan: dict[str, Any]) -> str:
    """Centres, time and memory of a fit."""
    from leastwise.solvers.plan import duration
    from leastwise.utils.resources import human, used_memory

    every = plan["n_centers"] >= plan["n_rows"]
    centers = "all rows are kernel centres" if every else f"{plan['n_centers']:,} kernel centres"
    used = used_memory()
    whole = "" if used is None else f" ({human(used + plan['peak_bytes'])} with the table and the libraries)"
    return f"{centers}, about {duration(plan['seconds'])} and {human(plan['peak_bytes'])} of memory{whole}"


def steps_text(plan: dict[str, Any]) -> str:
    """The steps that take most of the time of a fit, in their order."""
    from leastwise.solvers.plan import duration

    enough = 0.05 * plan["seconds"]
    steps = [step for step in plan["steps"][:-1] if step["seconds"] >= enough]  # the last one is a prediction
    return ", ".join(f"{step['what']} {duration(step['seconds'])}" for step in steps)


def show_columns(output: Output, columns: list[dict[str, Any]], stderr: bool) -> None:
    """Print the columns of the table; of a wide table the first ones, and the others counted by kind."""
    width = (output.stderr if stderr else output.stdout).width - BESIDE_NAME
    rows = [
        [_shorten(name, width), *rest, with_option_names(note)]
        for name, *rest, note in (column.values() for column in columns[:MAX_COLUMNS])
    ]
    output.table("Columns", list(columns[0]), rows, stderr=stderr)
    others = Counter(column["kind"] for column in columns[MAX_COLUMNS:])
    if others:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in others.items())
        (output.note if stderr else output.print)(f"... and {sum(others.values()):,} more columns: {kinds}")


def show_feature_weights(output: Output, weights: dict[str, float] | None) -> None:
    """Print the inputs with the largest feature weights; nothing if there are no weights."""
    if weights is None:
        return
    largest = list(weights.items())[:MAX_WEIGHTS]
    width = output.stdout.width - BESIDE_NAME
    output.print("")
    output.table("Feature weights", ["", ""], [[_shorten(name, width), f"{weight:.3g}"] for name, weight in largest])
    if len(weights) > len(largest):
        output.print(f"... and {len(weights) - len(largest):,} more columns with smaller weights")


def show_model(output: Output, model: TableModel, notes: Callable[[str], bool] = lambda note: True) -> None:
    """Print the target, the hyperparameters and the held-out scores, and those notes that ``notes`` selects."""
    summary = model.summary()
    chosen = ", ".join(f"{name} {as_text(value)}" for name, value in summary["chosen"].items() if value is not None)
    kernel = f"{summary['kernel']} kernel, " if summary["kernel"] else ""
    rows = [
        ["target", _target(summary)],
        ["training data", f"{summary['rows']:,} rows, {len(summary['features'])} features"],
        ["model", f"{summary['model']}: {kernel}{chosen}"],
    ]
    if summary.get("tasks"):
        rows.append(["tasks", f"{len(summary['tasks']):,} ({summary['task']})"])
    scores = summary["heldout"]
    rows += [[f"held-out {label(name)}", score_text(scores, name)] for name in scores if _is_number(scores[name])]
    rows += _baseline_rows(summary)
    rows += _decision_rows(summary.get("decisions"))
    output.table("Model", ["", ""], rows)
    for note in filter(notes, summary["notes"]):
        output.note(note)


def _baseline_rows(summary: dict[str, Any]) -> list[list[str]]:
    """Rows for the held-out losses of the baselines."""
    from leastwise.tables.linear import baseline_lines

    found = summary["baselines"]
    if found is None:
        return []
    measure = "RMSE" if found["measure"] == "mse" else "log-loss"
    return [[f"held-out {measure}, {name}", as_text(loss)] for name, loss in baseline_lines(summary["kind"], found)]


def _decision_rows(rule: dict[str, Any] | None) -> list[list[str]]:
    """Rows for the rule of acceptance, the held-out rows that it accepts, and the limits of classes."""
    if rule is None:
        return []
    if rule["threshold"] is None:
        return [["accepts", NOTHING]]
    return [*_accepted_rows(rule), *(_miss_row(name, found) for name, found in rule["misses"].items())]


def _miss_row(name: str, found: dict[str, float]) -> list[str]:
    """The limit of missed rows of a class, and the probability at which it is kept."""
    what = f"misses of {name}"
    if found["level"] == 0:
        limit = f"{found['limit']:.3g}"
        return [what, f"none: rows are accepted as {name} only, since a limit of {limit} cannot be guaranteed"]
    if found["level"] is None:
        return [what, f"at most {found['bound']:.2%} of its rows"]
    return [
        what,
        f"at most {found['bound']:.2%} of its rows: another class is accepted only where the probability of {name} "
        f"is below {found['level']:.3g}",
    ]


def _accepted_rows(rule: dict[str, Any]) -> list[list[str]]:
    """Rows for the threshold of acceptance and the held-out rows that it accepts; None is out of reach."""
    if isinstance(rule["threshold"], list):
        open_labels = sum(threshold is None for threshold in rule["threshold"])
        if open_labels == len(rule["threshold"]):
            return [["accepts", NOTHING]]
        some = f"; nothing for {open_labels} of {len(rule['threshold'])} labels" if open_labels else ""
        return [["accepts", f"by a threshold for each label{some}"]]
    if not rule["coverage"]:
        return [["accepts", f"confidence of at least {rule['threshold']:.3f}, which no held-out row has"]]
    bound = f", at most {rule['error_bound']:.2%} of them wrong" if _is_number(rule["error_bound"]) else ""
    least = f"confidence of at least {rule['threshold']:.3f}" if rule["threshold"] else "any confidence"
    return [
        ["accepts", least],
        ["held-out accepted", f"{rule['coverage']:.1%} of the rows{bound}"],
    ]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _target(summary: dict[str, Any]) -> str:
    target = summary["target"]
    return f"{target} ({summary['kind']})" if isinstance(target, str) else f"{len(target)} labels: {_first(target)}"


def _first(names: list[str], count: int = 10) -> str:
    return ", ".join(names[:count]) + (f" and {len(names) - count} more" if len(names) > count else "")


def _shorten(name: str, width: int) -> str:
    """Cut the middle out of a name that is too long for its line."""
    half = max(width, 16) // 2
    return name if len(name) <= 2 * half else f"{name[: half - 1]}…{name[-half:]}"
