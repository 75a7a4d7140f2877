"""``leastwise reproduce``: the papers' tables and figures, from a checkout of the project."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from leastwise.cli.failing import UsageError
from leastwise.cli.showing import Shown


def papers() -> Any:
    """The experiments, which are part of the checkout and not of the installed package."""
    root = Path(__file__).parents[3]
    if not (root / "papers" / "registry.py").is_file():
        raise UsageError(
            "leastwise reproduce runs from a checkout of the project: the papers' experiments are not part of the "
            "installed package. Clone the project, install it with pip install -e ., and run the command again."
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    import papers

    return papers


def run(
    shown: Shown, *, paper: Any, data: Path | None, output: Path | None, quick: bool, part: list[str] | None
) -> None:
    """All of a paper, or some of its parts."""
    experiments = papers()
    known = [experiment.name for experiment in experiments.PAPERS[paper.value].experiments]
    for name in part or []:
        if name not in known:
            raise UsageError(f"--part {name}: {paper.value} has the parts {', '.join(known)}.")
    folder = None if data is None else str(data)
    shown.answer |= experiments.reproduce(
        paper.value, data=folder, output=output, quick=quick, parts=part or None, report=shown.say
    )
