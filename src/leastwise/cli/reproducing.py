"""``leastwise reproduce``: the papers' tables and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leastwise.cli.showing import Shown


def run(
    shown: Shown, *, paper: Any, data: Path | None, output: Path | None, quick: bool, part: list[str] | None
) -> None:
    """All of a paper, or some of its parts."""
    from leastwise.reproduction import reproduce

    folder = None if data is None else str(data)
    shown.answer |= reproduce(
        paper.value, data=folder, output=output, quick=quick, parts=part or None, report=shown.say
    )
