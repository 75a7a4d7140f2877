"""``leastwise predict``: write the predictions of a model for the rows of a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from leastwise.cli.errors import UsageError
from leastwise.cli.options import check_fraction, check_output, open_model, open_table, split_names
from leastwise.cli.output import Output
from leastwise.tables import Table, TableError, TableModel, write_table
from leastwise.tables.files import WRITTEN, checked_format
from leastwise.tables.prepare import Roles

#: In text formats: decimals of probabilities, confidence and domain weight, and significant digits of numbers.
DECIMALS, DIGITS = 6, 7


def run(
    output: Output,
    *,
    model: Path,
    data: str,
    predictions: str,
    keep: str | None,
    coverage: float | None,
    output_format: str | None,
    **reader_options: Any,
) -> None:
    """Read the table, predict, and write the predictions."""
    if output.json and predictions == "-":
        raise UsageError("--json prints to stdout: write the predictions to a file with -o FILE.")
    format = _check_format(predictions, output_format, data, model)
    loaded = open_model(model)
    loaded.coverage = check_fraction("--coverage", coverage) or loaded.coverage
    table = open_table(output, data, **reader_options)
    with output.spinner(f"predicting {len(table):,} rows"):
        predicted = loaded.predict_table(table)
    if format in ("csv", "tsv"):
        predicted = _rounded(predicted, loaded)
    predicted = _with_columns(table, keep, predicted, Roles.of(loaded).ids or ["row"])
    for note in predicted.notes:
        output.note(note)
    write_table(predicted, predictions, format)
    accepted = _accepted(predicted)
    output.result |= {"rows": len(predicted), "output": predictions}
    output.result |= {} if accepted is None else {"accepted": accepted}
    output.result |= {"notes": [*table.notes, *predicted.notes]}
    shares = "" if accepted is None else f", {accepted:.1%} accepted, {1 - accepted:.1%} left for review"
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


def _with_columns(table: Table, keep: str | None, predicted: Table, ids: list[str]) -> Table:
    """Put columns of the table before the predictions; a column in ``ids`` identifies the row in both."""
    if keep is None:
        return predicted
    kept = {name: table[name] for name in (table.names if keep == "all" else split_names(keep))}
    clashes, notes = sorted(set(kept) & set(predicted.names) - set(ids)), predicted.notes
    if clashes and keep != "all":
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
    if model.kind_ == "numbers":
        formats = dict.fromkeys(("prediction", "lower", "upper"), _format_number)
    else:
        floats = (name for name in predicted.names if predicted[name].dtype.kind == "f" and name not in ids)
        formats = dict.fromkeys(floats, _format_probability)
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
