"""``leastwise compare`` and ``leastwise check``: two models on new rows, and new rows beside those of training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leastwise.cli.options import check_fraction, open_model, open_table
from leastwise.cli.output import DRIFT, Output, as_text, label


def compare(output: Output, *, model: Path, other: Path, data: str, strict: bool, **reader_options: Any) -> None:
    """Score two models on the same rows, and print their differences with intervals."""
    first, second = open_model(model), open_model(other)
    table = open_table(output, data, **reader_options)
    with output.spinner(f"predicting {len(table):,} rows"):
        found = first.compare(second, table, strict)
    output.result |= {"first": str(model), "second": str(other), **found}
    for note in found["notes"]:
        output.note(note)
    names = {"first": str(model), "second": str(other), None: "no clear difference"}
    rows = [
        [
            label(name),
            score["first"],
            score["second"],
            f"{score['difference']:+.3g} ({score['interval'][0]:+.3g} to {score['interval'][1]:+.3g})",
            names[score["better"]],
        ]
        for name, score in found["scores"].items()
    ]
    output.table(f"{found['rows']:,} rows of {data}", ["", str(model), str(other), "difference", "better"], rows)
    drawn = f"groups of {found['group']}" if found["group"] else "rows"
    output.print(f"Differences are {other} minus {model}, with 95 % bootstrap intervals over {drawn}.")


def check(output: Output, *, model: Path, data: str, tolerance: float, **reader_options: Any) -> None:
    """Compare a new table with the training table of a model; the exit code tells drift."""
    check_fraction("--tolerance", tolerance)
    loaded, table = open_model(model), open_table(output, data, **reader_options)
    with output.spinner(f"predicting {len(table):,} rows"):
        found = loaded.check_drift(table, tolerance)
    output.result |= found
    for note in found["notes"]:
        output.note(note)
    rows = [
        [line["what"], line["name"], _distance(line), "drift" if line["drift"] else "", line["note"]]
        for line in found["checks"]
    ]
    output.table(
        f"{data} compared with the training rows of {model}", ["check", "name", "distance", "", "note"], rows
    )
    if found["drift"]:
        names = ", ".join(f'"{name}"' if "," in name else name for name in found["drift"])
        output.print(f"Drift in {len(found['drift'])} of {len(rows)} checks: {names}.")
        output.code = DRIFT
    else:
        output.print(f"No drift in {len(rows)} checks.")
    output.print(
        "The distance is the share of rows that would have to change to make both tables the same. Drift is a "
        f"distance above {as_text(float(tolerance))} that is not due to chance."
    )


def _distance(line: dict[str, Any]) -> str:
    return "-" if line["distance"] is None else f"{line['distance']:.3f}"
