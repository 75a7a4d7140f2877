"""``leastwise report``: a page about a model."""

from __future__ import annotations

from pathlib import Path

from leastwise.cli.reading import check_place
from leastwise.cli.showing import Shown
from leastwise.persistence.model_files import load


def run(shown: Shown, *, model: Path, output: Path, title: str | None) -> None:
    """Load and write."""
    from leastwise.report import write_report

    check_place(output, model)
    write_report(load(model), output, title=title or f"{model.name}")
    shown.answer |= {"report": str(output)}
    shown.say(f"Report: {output}")
