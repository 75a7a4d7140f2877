"""``leastwise evaluate``: how good a model is on rows with known answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leastwise.cli.reading import opened, table_of
from leastwise.cli.showing import Shown
from leastwise.cli.telling import words


def run(shown: Shown, *, model: Path, data: str, **reading: Any) -> None:
    """Read, predict, compare."""
    loaded, table = opened(model), table_of(shown, data, **reading)
    with shown.working(f"predicting {len(table):,} rows"):
        scores = loaded.evaluate(table)
    shown.answer |= scores
    for note in scores["notes"]:
        shown.note(note)
    baseline = scores.get("baseline", {})
    rows = [[words(name), value, baseline.get(name)] for name, value in scores.items() if _single(value)]
    shown.table(f"{model} on {data}", ["", "model", "shares alone" if loaded.kind_ != "numbers" else "mean"], rows)
    for part in ("tasks", "labels"):
        _tell_parts(shown, part, scores.get(part))


def _single(value: Any) -> bool:
    return isinstance(value, int | float) or value is None


def _tell_parts(shown: Shown, part: str, found: Any) -> None:
    """Scores of every task or label."""
    if not found:
        return
    names = list(next(iter(found.values())))
    rows = [[key, *(values.get(name) for name in names)] for key, values in found.items()]
    shown.say("")
    shown.table("", [part.removesuffix("s"), *(words(name) for name in names)], rows)
