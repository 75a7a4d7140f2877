"""``leastwise predict``: what a model says of the rows of a table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from leastwise.cli.failing import UsageError
from leastwise.cli.reading import check_place, listed, opened, share, table_of
from leastwise.cli.rounding import rounded
from leastwise.cli.showing import Shown
from leastwise.tables import Table, TableError, write_table
from leastwise.tables.files import WRITTEN, checked_format
from leastwise.tables.prepare import Roles


def run(
    shown: Shown,
    *,
    model: Path,
    data: str,
    output: str,
    keep: str | None,
    coverage: float | None,
    output_format: str | None,
    **reading: Any,
) -> None:
    """Read, predict, write; say how much is decided."""
    if shown.json and output == "-":
        raise UsageError("--json takes stdout for itself: write the predictions to a file by -o.")
    format = _written(output, output_format, data, model)
    loaded = opened(model)
    loaded.coverage = share("--coverage", coverage) or loaded.coverage
    table = table_of(shown, data, **reading)
    with shown.working(f"predicting {len(table):,} rows"):
        predicted = loaded.predict_table(table)
    said = rounded(predicted, loaded) if format in ("csv", "tsv") else predicted
    said = _beside(table, keep, said, Roles.of(loaded).ids or ["row"])
    for note in said.notes:
        shown.note(note)
    write_table(said, output, format)
    shown.answer |= {"rows": len(said), "output": output, **_counted(said), "notes": [*table.notes, *said.notes]}
    shown.note(_told(shown.answer, output))


def _written(output: str, format: str | None, *sources: str | Path) -> str:
    """The format of the output, known to be possible before the work."""
    try:
        format = checked_format(format, "<stdout>" if output == "-" else output, WRITTEN)
    except TableError as error:
        raise UsageError(
            str(error).replace("give format=", "give --output-format").replace("format=", "--output-format ")
        ) from None
    if output != "-":
        check_place(Path(output), *sources)
    elif format in ("parquet", "arrow") and sys.stdout.isatty():
        raise UsageError(f"{format} is not for terminals: write it to a file by -o, or to a pipe.")
    return format


def _beside(table: Table, keep: str | None, said: Table, ids: list[str]) -> Table:
    """Columns of the table in front of the predictions, also of ``ids``, which say what row it is."""
    if keep is None:
        return said
    kept = {name: table[name] for name in (table.names if keep == "all" else listed(keep))}
    double, notes = sorted(set(kept) & set(said.names) - set(ids)), said.notes
    if double and keep != "all":
        raise TableError(f"{table.source}: the columns {double} are in the predictions, too: rename them.")
    if double:  # labels whose truth is known, for instance
        kept = {name: column for name, column in kept.items() if name not in double}
        notes = (*notes, f"Not kept, as predictions have columns of these names: {', '.join(double)}.")
    return Table({**kept, **{n: c for n, c in said.columns.items() if n not in kept}}, notes=notes)


def _counted(said: Table) -> dict[str, Any]:
    """How many rows, or labels of rows, are decided."""
    columns = [c for name, c in said.columns.items() if name == "decision" or name.startswith("decision_")]
    if not columns:
        return {}
    return {"decided": float(np.mean([[cell is not None for cell in column] for column in columns]))}


def _told(answer: dict[str, Any], output: str) -> str:
    share = answer.get("decided")
    rest = ", the rest is for a person" if share is not None and share < 1 else ""
    decided = "" if share is None else f", {share:.1%} decided{rest}"
    return f"{answer['rows']:,} rows{decided}" + ("." if output == "-" else f"; written to {output}.")
