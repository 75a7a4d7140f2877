"""``leastwise reproduce``: the papers' tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leastwise.cli.failing import UsageError
from leastwise.cli.showing import Shown


def run(
    shown: Shown, *, paper: Any, data: Path | None, output: Path | None, quick: bool, part: list[str] | None
) -> None:
    """All of a paper, or some of its parts."""
    from leastwise.reproduction import PAPERS, reproduce

    known = [experiment.name for experiment in PAPERS[paper.value].experiments]
    for name in part or []:
        if name not in known:
            raise UsageError(f"--part {name}: {paper.value} has the parts {', '.join(known)}.")
    folder = None if data is None else str(data)
    shown.answer |= reproduce(
        paper.value, data=folder, output=output, quick=quick, parts=part or None, report=shown.say
    )
