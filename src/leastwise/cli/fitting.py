"""``leastwise fit``: from a table to a model file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from leastwise.cli.failing import UsageError
from leastwise.cli.progress import Watched
from leastwise.cli.reading import check_place, check_source, listed, share, table_of
from leastwise.cli.resuming import Kept, fingerprint
from leastwise.cli.showing import Shown
from leastwise.cli.telling import tell_found, tell_model
from leastwise.model_selection.checkpoint import diary
from leastwise.persistence.model_files import save
from leastwise.tables import Table, TableError, TableModel
from leastwise.tables.columns import KINDS
from leastwise.tables.prepare import Roles

#: Options of how a table is read.
READING = ("format", "delimiter", "decimal", "encoding", "no_header")


def run(shown: Shown, *, data: str, output: Path | None, report: Path | None, resume: bool, **options: Any) -> None:
    """Read, learn, write; say what was found."""
    check_source(data)
    path = _model_path(data, output)
    for file in (path, report):
        check_place(file, data)
    if report is not None and report.absolute() == path.absolute():
        raise UsageError(f"{path} cannot be the model file and the report: give another name to one of them.")
    reading = {name: options.pop(name) for name in READING}
    model, began = _model(**options), time.monotonic()
    table = table_of(shown, data, **reading)
    tell_found(shown, model.look(table))
    kept = _learn(shown, model, table, path, resume)
    save(model, path)
    kept.clear()
    if report is not None:
        from leastwise.report import write_report

        write_report(model, report, title=f"{_what(model)}, from {data}", rows=_shown_rows(table, model))
    shown.answer |= {"model_file": str(path), "report": report and str(report), "seconds": time.monotonic() - began}
    shown.answer |= {"steps_recalled": kept.recalled, **model.summary()}
    # columns and rows that are not used were shown before the search
    tell_model(shown, model, lambda note: note.startswith("Of "))
    shown.say(f"Written to {path} ({path.stat().st_size / 1e6:.2f} MB) after {time.monotonic() - began:.1f} s.")
    if report is not None:
        shown.say(f"Report: {report}")


def _learn(shown: Shown, model: TableModel, table: Table, path: Path, resume: bool) -> Kept:
    """Fit, step by step; steps of a long search are kept beside the model file."""
    kept = Kept(path.with_name(path.name + ".steps"), fingerprint(model, table))
    known = kept.open(resume)
    if resume:
        shown.note(known)
    with shown.working(f"looking at {len(table):,} rows") as status, diary(Watched(status, kept)):
        try:
            model.fit(table)
        except KeyboardInterrupt:
            kept.keep()
            if kept.written:
                shown.note(f"{kept.written} steps of the search are kept in {kept.folder}; --resume goes on.")
            raise
    if kept.recalled:
        shown.note(f"{kept.recalled} steps of the search were taken from {kept.folder}.")
    return kept


def _model(
    *,
    target: str | None,
    labels: str | None,
    ignore: str | None,
    column: list[str] | None,
    kind: Any,
    centers: int | None,
    seed: int,
    **rest: Any,
) -> TableModel:
    """The model that the options describe."""
    if (target is None) == (labels is None):
        raise UsageError("say what to predict: --target COLUMN for one column, or --labels a,b,c for several labels.")
    for name in ("coverage", "max_error", "min_confidence"):
        share(f"--{name.replace('_', '-')}", rest[name])
    if centers is not None and centers < 1:
        raise UsageError(f"--centers {centers}: give a number of 1 or more.")
    model = TableModel(
        target,
        labels=listed(labels) or None,
        ignore=listed(ignore),
        kinds=dict(_kind(text) for text in column or []),
        kind=None if kind is None else kind.value,
        n_centers="auto" if centers is None else centers,
        random_state=seed,
        **rest,
    )
    try:
        Roles.of(model)
    except TableError as error:
        raise UsageError(str(error)) from None
    return model


def _kind(text: str) -> tuple[str, str]:
    name, mark, kind = text.rpartition("=")
    if not mark or not name:
        raise UsageError(f"--column {text}: write it as NAME=KIND, such as zip=category.")
    if kind not in KINDS:
        raise UsageError(f"--column {text}: the kind is one of {', '.join(KINDS)}.")
    return name, kind


def _model_path(data: str, output: Path | None) -> Path:
    if output is not None:
        return output
    if data == "-":
        raise UsageError("a table from stdin has no name: say where the model goes by -o MODEL.lw.")
    return Path(data.removesuffix(".gz")).with_suffix(".lw")


def _shown_rows(table: Table, model: TableModel) -> dict[str, Any]:
    """The rows that were learned from, for the list of those that the model is least sure of."""
    used = table.take(model.rows_used_)
    return {f"{used.unit} of {Path(table.source).name or 'the table'}": used.line_numbers(), **used.columns}


def _what(model: TableModel) -> str:
    return model.target if model.target is not None else ", ".join(list(model.labels or [])[:3])
