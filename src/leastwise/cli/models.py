"""Commands on a model file: ``predict``, ``evaluate``, ``inspect``, ``report`` and ``export``."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from leastwise.cli.options import (
    check_fraction,
    check_output,
    column_names,
    named_numbers,
    open_model,
    open_table,
    shown_rows,
)
from leastwise.cli.output import Output, UsageError, label, score_text, show_columns, show_feature_weights, show_model
from leastwise.inspection.feature_weights import named_feature_weights
from leastwise.persistence import FileError, info, load
from leastwise.tables import Table, TableError, TableModel, write_table
from leastwise.tables.files import WRITTEN, checked_format
from leastwise.tables.prepare import Roles
from leastwise.utils.atomic_files import write_atomically
from leastwise.utils.resources import human
from leastwise.utils.unwrap import core

#: In text formats: decimals of probabilities, confidence and domain weight, and significant digits of numbers.
DECIMALS, DIGITS = 6, 7
#: Words for class shares of new rows.
PRIORS = ("uniform", "estimate")
#: Columns of predicted numbers.
NUMBER_COLUMNS = ("prediction", "interval_lower", "interval_upper")


def predict(
    output: Output,
    *,
    model: Path,
    data: str,
    predictions: str,
    keep: list[str] | None,
    coverage: float | None,
    output_format: str | None,
    formulas: bool,
    class_prior: list[str] | None,
    strict: bool,
    **reader_options: Any,
) -> None:
    """Read the table, predict, and write the predictions."""
    if output.json and predictions == "-":
        raise UsageError("--json prints to stdout: write the predictions to a file with -o FILE.")
    format = _check_format(predictions, output_format, data, model)
    prior = named_numbers("--class-prior", class_prior, PRIORS)
    loaded = open_model(model)
    loaded.coverage = check_fraction("--coverage", coverage) or loaded.coverage
    table = open_table(output, data, **reader_options)
    with output.spinner(f"predicting {len(table):,} rows"):
        predicted = loaded.predict_table(table, strict, prior)
    if format in ("csv", "tsv"):
        predicted = _rounded(predicted, loaded)
    predicted = _with_columns(table, keep, predicted, Roles.of(loaded).ids or ["row"])
    for note in predicted.notes:
        output.note(note)
    write_table(predicted, predictions, format, formulas=formulas)
    accepted = _accepted(predicted)
    output.result |= {"rows": len(predicted), "output": predictions}
    output.result |= {} if accepted is None else {"accepted": accepted}
    output.result |= {"notes": [*table.notes, *predicted.notes]}
    shares = "" if accepted is None else f", {accepted:.1%} accepted, {1 - accepted:.1%} left for review"
    shares = ", none of them accepted: all are left for review" if accepted == 0 else shares
    output.note(f"{len(predicted):,} rows{shares}" + ("." if predictions == "-" else f"; written to {predictions}."))


def _check_format(predictions: str, format: str | None, *inputs: str | Path) -> str:
    """Return the format of the output after checking, before the work, that it can be written."""
    try:
        format = checked_format(format, "<stdout>" if predictions == "-" else predictions, WRITTEN)
    except TableError as error:
        raise UsageError(
            str(error).replace("give format=", "give --output-format").replace("format=", "--output-format ")
        ) from None
    if predictions != "-":
        check_output(Path(predictions), *inputs)
    elif format in ("parquet", "arrow") and sys.stdout.isatty():
        raise UsageError(f"{format} is binary, and stdout is a terminal: use -o FILE, or pipe the output.")
    return format


def _with_columns(table: Table, keep: list[str] | None, predicted: Table, ids: list[str]) -> Table:
    """Put columns of the table before the predictions; a column in ``ids`` identifies the row in both."""
    if not keep:
        return predicted
    keep_all = "all" in keep and "all" not in table.columns
    kept = {name: table[name] for name in (table.names if keep_all else column_names(keep, table))}
    clashes, notes = sorted(set(kept) & set(predicted.names) - set(ids)), predicted.notes
    if clashes and not keep_all:
        raise TableError(f"{table.source}: the predictions also have columns named {clashes}: rename them.")
    if clashes:  # true labels, for instance
        kept = {name: column for name, column in kept.items() if name not in clashes}
        names = ", ".join(clashes)
        notes = (*notes, f"Columns not kept, because the predictions have columns of the same name: {names}.")
    return Table({**kept, **{n: c for n, c in predicted.columns.items() if n not in kept}}, notes=notes)


def _accepted(predicted: Table) -> float | None:
    """Fraction of rows, or of labels of rows, with a decision; None where the model decides nothing."""
    columns = [c for name, c in predicted.columns.items() if name == "decision" or name.startswith("decision_")]
    if not columns:
        return None
    return float(np.mean([[cell is not None for cell in column] for column in columns]))


# ----------------------------------------------------------------------- rounding


def _rounded(predicted: Table, model: TableModel) -> Table:
    """Format probabilities with six decimals, or predicted numbers with seven digits; ids stay unchanged."""
    ids = Roles.of(model).ids
    floats = [name for name in predicted.names if predicted[name].dtype.kind == "f" and name not in ids]
    numbers = NUMBER_COLUMNS if model.kind_ == "numbers" else ()
    formats = {name: _format_number if name in numbers else _format_probability for name in floats}
    columns = dict(predicted.columns)
    for name, text_of in formats.items():
        cells = np.empty(len(predicted), dtype=object)
        cells[:] = [None if value != value else text_of(value) for value in columns[name].tolist()]
        columns[name] = cells
    return Table(columns, predicted.source, notes=predicted.notes)


def _format_probability(value: float) -> str:
    """Without trailing zeros, but with at least one decimal."""
    text = f"{value:.{DECIMALS}f}".rstrip("0")
    return text + "0" if text.endswith(".") else text


def _format_number(value: float) -> str:
    return str(float(f"{value:.{DIGITS}g}"))


def evaluate(
    output: Output, *, model: Path, data: str, class_prior: list[str] | None, strict: bool, **reader_options: Any
) -> None:
    """Score a model on rows with known targets."""
    prior = named_numbers("--class-prior", class_prior, PRIORS)
    loaded, table = open_model(model), open_table(output, data, **reader_options)
    with output.spinner(f"predicting {len(table):,} rows"):
        scores = loaded.evaluate(table, strict, prior)
    output.result |= scores
    for note in scores["notes"]:
        output.note(note)
    baseline, single = scores.get("baseline", {}), int | float | None
    shown = [name for name, value in scores.items() if isinstance(value, single)]
    rows = [[label(name), _cell(scores, name), baseline.get(name)] for name in shown]
    constant = "mean" if loaded.kind_ == "numbers" else "class shares"
    output.table(f"{model} on {data}", ["", "model", constant], rows)
    parts = {"tasks": "task", "labels": "label", "misses": "label" if loaded.kind_ == "labels" else "class"}
    for part, what in parts.items():
        by_name = scores.get(part)
        if by_name:
            names = list(next(iter(by_name.values())))
            rows = [[key, *(values.get(name) for name in names)] for key, values in by_name.items()]
            output.print("")
            output.table("", [what, *map(label, names)], rows)


def _cell(scores: dict[str, Any], name: str) -> Any:
    return score_text(scores, name) if f"{name}_interval" in scores else scores[name]


def inspect(output: Output, *, model: Path) -> None:
    """Show the header of a model file, the feature weights, and for a TableModel its columns and scores."""
    header, loaded = info(model), load(model)
    arrays = {"count": len(header.arrays), "bytes": sum(size for _, _, size in header.arrays)}
    output.result |= {"file": {**asdict(header), "arrays": arrays}}
    rows = [
        ["file", f"{header.path}, {human(header.size)}, format {header.format}"],
        ["model", header.model + (f" of {', '.join(header.steps)}" if header.steps else "")],
        ["written with", ", ".join(f"{name} {version}" for name, version in header.versions.items())],
        ["content", header.keep + (f", arrays as {header.dtype}" if header.dtype else "")],
    ]
    if hasattr(loaded, "moments_"):
        n_kept = 0 if loaded.kept_ is None else len(loaded.kept_)
        moments = f"{loaded.moments_.n:,} rows, {len(loaded.moments_.A):,} centers; {n_kept:,} rows stored"
        rows.append(["moments", moments])
    stored, means = _stored_rows(loaded)
    output.result["file"] |= {"training_rows": stored, "means_of_rows": means}
    of_means = f", and {means:,} means of rows (the mean of a single row is that row)" if means else ""
    rows.append(["training rows in the file", f"{stored:,}{of_means}"])
    output.table("", ["", ""], rows)
    if isinstance(loaded, TableModel):
        output.result |= loaded.summary()
        output.print("")
        show_columns(output, output.result["columns"], stderr=False)
        output.print("")
        show_model(output, loaded)
        show_feature_weights(output, loaded.feature_weights_)
    else:
        weights = named_feature_weights(loaded)
        output.result |= {} if weights is None else {"feature_weights": weights}
        show_feature_weights(output, weights)


def _stored_rows(model: Any) -> tuple[int, int]:
    """Numbers of training rows (centres, rows for novelty p-values, samples of streams) and of centres by k-means."""
    inner = core(model.fitted_ if isinstance(model, TableModel) else model)
    fields = vars(inner)
    centers, near, kept = (fields.get(name) for name in ("centers_", "neighbourhood_", "kept_"))
    n_centers = 0 if centers is None else centers.shape[0]
    means = n_centers if fields.get("n_centers") is not None and fields.get("centers") == "kmeans" else 0
    n_near = 0 if near is None or near.rows is None else near.rows.shape[0]
    return n_centers - means + n_near + (0 if kept is None else len(kept)), means


def report(
    output: Output,
    *,
    model: Path,
    data: str | None,
    page: Path,
    title: str | None,
    show_rows: bool,
    strict: bool,
    **reader_options: Any,
) -> None:
    """Write a report on a model, on held-out rows or on those of a table."""
    from leastwise.report import write_report

    check_output(page, model, *([] if data is None else [data]))
    given: dict[str, Any] = {}
    if data is None:
        loaded = load(model)
    else:
        loaded = open_model(model)
        given = loaded.labelled_rows(open_table(output, data, **reader_options), strict)
        given["rows"] = shown_rows(given.pop("used"), loaded, show_rows)
    name = model.name if data is None else f"{model.name} on {data}"
    with output.spinner("writing the report"):
        write_report(loaded, page, title=title or name, **given)
    output.result |= {"report": str(page), "rows": len(given["y"]) if given else None}
    output.print(f"Report: {page}")


def export(output: Output, *, model: Path, onnx_file: Path, double: bool, coverage: float | None = None) -> None:
    """Convert a model to ONNX."""
    from leastwise.onnx import to_onnx

    check_output(onnx_file, model)
    check_fraction("--coverage", coverage)
    fitted = load(model)
    numbers = getattr(fitted, "kind_", "") == "numbers" or is_regressor(fitted)
    options: dict[str, Any] = {} if coverage is None else {"interval" if numbers else "coverage": coverage}
    try:
        proto = to_onnx(fitted, dtype="float64" if double else None, **options)
    except TypeError as error:
        raise FileError(f"{model}: {error}") from error
    except ValueError as error:
        raise UsageError(f"{model}: {error}") from error
    write_atomically(str(onnx_file), [proto.SerializeToString()])
    inputs, outputs = ([part.name for part in parts] for parts in (proto.graph.input, proto.graph.output))
    output.result |= {"onnx": str(onnx_file), "inputs": inputs, "outputs": outputs}
    output.print(f"Written to {onnx_file}: {', '.join(inputs)} -> {', '.join(outputs)}")
