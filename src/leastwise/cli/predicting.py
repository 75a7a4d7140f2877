"""``leastwise predict``: what a model says of the rows of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from leastwise.cli.failing import UsageError
from leastwise.cli.fitting import listed
from leastwise.cli.opening import opened
from leastwise.cli.showing import Shown
from leastwise.tables import Table, TableError, read_table, write_table


def run(
    shown: Shown,
    *,
    model: Path,
    data: str,
    output: str,
    keep: str | None,
    coverage: float | None,
    format: str | None,
    output_format: str | None,
) -> None:
    """Read, predict, write; say how much is decided."""
    if shown.json and output == "-":
        raise UsageError("--json takes stdout for itself: write the predictions to a file by -o.")
    loaded = opened(model)
    if coverage is not None:
        loaded.coverage = _share(coverage)
    table = read_table(data, format=format)
    said = _beside(table, keep, loaded.predict_table(table))
    for note in (*table.notes, *said.notes):
        shown.note(note)
    write_table(said, output, output_format)
    shown.answer |= {"rows": len(said), "output": output, **_counted(said), "notes": [*table.notes, *said.notes]}
    shown.note(_told(shown.answer, output))


def _share(coverage: float) -> float:
    if not 0 < coverage < 1:
        raise UsageError(f"--coverage {coverage:g}: give a share between 0 and 1, such as 0.9.")
    return coverage


def _beside(table: Table, keep: str | None, said: Table) -> Table:
    """Columns of the table in front of the predictions."""
    if keep is None:
        return said
    names = [name for name in (table.names if keep == "all" else listed(keep)) if name not in ("row",)]
    kept = {name: table[name] for name in names}
    double = sorted(set(kept) & set(said.names) - set(_ids(said)))
    if double:
        raise TableError(f"{table.source}: the columns {double} are in the predictions, too: rename them.")
    return Table({**kept, **{n: c for n, c in said.columns.items() if n not in kept}}, notes=said.notes)


def _ids(said: Table) -> list[str]:
    """The columns that stand before the prediction."""
    names = said.names
    return names[: next((k for k, name in enumerate(names) if name == "prediction"), 0)]


def _counted(said: Table) -> dict[str, Any]:
    """How many rows, or labels of rows, are decided."""
    columns = [c for name, c in said.columns.items() if name == "decision" or name.startswith("decision_")]
    if not columns:
        return {}
    return {"decided": float(np.mean([[cell is not None for cell in column] for column in columns]))}


def _told(answer: dict[str, Any], output: str) -> str:
    decided = f", {answer['decided']:.1%} decided, the rest is for a person" if "decided" in answer else ""
    return f"{answer['rows']:,} rows{decided}" + ("." if output == "-" else f"; written to {output}.")
