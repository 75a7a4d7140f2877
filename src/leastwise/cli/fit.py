"""``leastwise fit``: train a model on a table and write a model file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from leastwise.cli.checkpoint import ProgressListener, SearchCheckpoint, fingerprint
from leastwise.cli.options import (
    check_fraction,
    check_input,
    check_memory,
    check_output,
    check_time,
    column_names,
    named_numbers,
    open_table,
    same_file,
    shown_rows,
)
from leastwise.cli.output import Output, UsageError, show_data, show_model
from leastwise.fitting.checks import choose
from leastwise.model_selection.checkpoint import checkpointing
from leastwise.persistence import save
from leastwise.problem.kernels import KERNELS, resolve_kernel
from leastwise.problem.label_coupling import LABEL_SIMILARITIES
from leastwise.problem.similarity import TASK_SIMILARITIES
from leastwise.tables import TableError, TableModel
from leastwise.tables.columns import KINDS, ColumnKind
from leastwise.tables.linear import baseline_note
from leastwise.tables.prepare import Prepared, Roles, check_parameters
from leastwise.utils.resources import memory_limit as limited_memory

#: Options of the table's reader.
READER_OPTIONS = ("format", "delimiter", "decimal", "encoding", "no_header")


def run(
    output: Output,
    *,
    data: str,
    model_file: Path | None,
    report: Path | None,
    show_rows: bool,
    resume: bool,
    memory_limit: str | None,
    **options: Any,
) -> None:
    """Read the table, train, write the model file and the report, and print the results."""
    limit = check_memory(memory_limit)
    check_input(data)
    path = _model_path(data, model_file)
    for file in (path, report):
        check_output(file, data)
    if report is not None and same_file(report, path):
        raise UsageError(f"{path} is both the model file and the report: choose another name for one of them.")
    if show_rows and report is None:
        raise UsageError("--show-rows shows columns in the report: add --report FILE.")
    reader_options = {name: options.pop(name) for name in READER_OPTIONS}
    model, started = _make_model(**options), time.monotonic()
    table = open_table(output, data, **reader_options)
    model.set_params(labels=column_names(model.labels, table) or None, ignore=column_names(model.ignore, table))
    with limited_memory(limit):
        prepared = model.prepare(table)
        found = model.look(prepared)
        show_data(output, found)
        checkpoint = _train(output, model, prepared, path, resume, found["plan"])
    save(model, path)
    checkpoint.remove()
    if report is not None:
        from leastwise.report import write_report

        title = model.target if model.target is not None else ", ".join(list(model.labels or [])[:3])
        rows = shown_rows(table.take(model.rows_used_), model, show_rows)
        write_report(model, report, title=f"{title}, from {data}", rows=rows)
    seconds = time.monotonic() - started
    output.result |= {"model_file": str(path), "report": report and str(report), "seconds": seconds}
    output.result |= {"steps_resumed": checkpoint.n_read, "plan": found["plan"], **model.summary()}
    # the other notes, on columns and rows that are not used, were printed before the search
    show_model(output, model, lambda note: note.startswith("The search "))
    no_better = None if model.baselines_ is None else baseline_note(model.kind_, model.baselines_, model.seconds_)
    if no_better is not None:
        output.note(no_better)
    output.print(f"Written to {path} ({path.stat().st_size / 1e6:.2f} MB) after {seconds:.1f} s.")
    if report is not None:
        output.print(f"Report: {report}")


def _train(
    output: Output, model: TableModel, prepared: Prepared, path: Path, resume: bool, plan: dict[str, Any] | None
) -> SearchCheckpoint:
    """Fit the model with a checkpoint beside the model file."""
    table = prepared.table
    checkpoint = SearchCheckpoint(path.with_name(path.name + ".checkpoint"), fingerprint(model, table))
    note = checkpoint.open(resume)
    if resume:
        output.note(note)
    with (
        output.spinner(f"training on {len(table):,} rows", None if plan is None else plan["seconds"]) as spinner,
        checkpointing(ProgressListener(spinner, checkpoint)),
    ):
        try:
            model.fit(prepared)
        except KeyboardInterrupt:
            checkpoint.write()
            if checkpoint.n_written:
                where = checkpoint.directory
                output.note(
                    f"{checkpoint.n_written} steps of the search are saved in {where}; continue with --resume."
                )
            raise
    if resume and checkpoint.n_read:
        output.note(f"{checkpoint.n_read} steps of the search were read from {checkpoint.directory}.")
    return checkpoint


def _make_model(
    *,
    target: str | None,
    labels: list[str] | None,
    ignore: list[str] | None,
    column: list[str] | None,
    missing: list[str] | None,
    kind: Any,
    centers: int | None,
    threshold: list[str] | None,
    seed: int,
    time_limit: str | None,
    max_miss: list[str] | None,
    **parameters: Any,
) -> TableModel:
    """Create the model from the options; labels and ignored columns are as given, not yet split at commas."""
    labels = [text for text in labels or [] if text.strip(" ,")]
    if (target is None) == (not labels):
        raise UsageError("give either --target COLUMN, to predict one column, or --labels A,B,C, to predict labels.")
    for name in ("coverage", "max_error", "min_confidence", "cost", "confidence"):
        check_fraction(f"--{name.replace('_', '-')}", parameters[name])
    bounds = parameters["bounds"]
    if bounds is not None and not bounds[0] < bounds[1]:
        raise UsageError(f"--bounds {bounds[0]:g} {bounds[1]:g}: the first must be below the second, such as 0 10.")
    if centers is not None and centers < 1:
        raise UsageError(f"--centers {centers}: must be at least 1.")
    model = TableModel(
        target,
        labels=labels or None,
        ignore=ignore or [],
        missing=missing or [],
        kinds=dict(_column_kind(text) for text in column or []),
        kind=None if kind is None else kind.value,
        n_centers="auto" if centers is None else centers,
        random_state=seed,
        time_limit=check_time(time_limit),
        threshold=_threshold(threshold),
        max_miss=_miss_limits(max_miss),
        **parameters,
    )
    try:
        check_parameters(model, Roles.of(model))
        _check_kernel(parameters["kernel"])
        if parameters["similarity"] is not None:
            known = LABEL_SIMILARITIES if labels else ("shared", *TASK_SIMILARITIES)
            choose("similarity", parameters["similarity"], known)
    except ValueError as error:
        raise UsageError(str(error)) from None
    return model


def _check_kernel(name: str | None) -> None:
    """Refuse the name of a kernel that is unknown, or that a table has no use for."""
    if name in (None, "auto"):
        return
    known = [kernel for kernel in sorted(KERNELS) if kernel != "precomputed"]
    if "+" not in name and name not in known:
        raise UsageError(f"--kernel {name}: use one of {', '.join(known)}, a sum such as rbf+linear, or auto.")
    resolve_kernel(name)


def _threshold(values: list[str] | None) -> Any:
    """A number, "auto", or numbers by label."""
    try:
        return check_fraction("--threshold", float((values or [""])[0]))
    except ValueError:
        return named_numbers("--threshold", values, ("auto",))


def _miss_limits(values: list[str] | None) -> dict[str, float] | None:
    """Limits by the name of the class or label."""
    limits = named_numbers("--max-miss", values, ())
    for name, limit in (limits or {}).items():
        check_fraction(f"--max-miss {name}", limit)
    return limits


def _column_kind(text: str) -> tuple[str, str]:
    """Parse NAME=KIND."""
    name, equals, kind = text.rpartition("=")
    if not equals or not name:
        raise UsageError(f"--column {text}: expected NAME=KIND, such as zip=category.")
    try:
        ColumnKind.given(name, kind)
    except TableError:
        kinds = ", ".join(KINDS)
        raise UsageError(f"--column {text}: the kind must be one of {kinds}, or date:%d/%m/%Y.") from None
    return name, kind


def _model_path(data: str, model_file: Path | None) -> Path:
    if model_file is not None:
        return model_file
    if data == "-":
        raise UsageError("a table from stdin has no file name: give the model file with -o MODEL.lw.")
    return Path(data.removesuffix(".gz")).with_suffix(".lw")
