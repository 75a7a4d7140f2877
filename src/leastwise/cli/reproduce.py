"""``leastwise reproduce``: the tables and figures of the papers, from a checkout of the project."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from leastwise.cli.output import Output, UsageError


def run(
    output: Output, *, paper: Any, data: Path | None, directory: Path | None, quick: bool, part: list[str] | None
) -> None:
    """Run all experiments of a paper, or some of its parts."""
    papers = _import_papers()
    known = [experiment.name for experiment in papers.PAPERS[paper.value].experiments]
    for name in part or []:
        if name not in known:
            raise UsageError(f"--part {name}: must be one of the parts of {paper.value}: {', '.join(known)}.")
    output.result |= papers.reproduce(
        paper.value,
        data=None if data is None else str(data),
        output=directory,
        quick=quick,
        parts=part or None,
        report=output.print,
    )


def _import_papers() -> Any:
    """Import ``papers``, which is part of the checkout (beside ``src/``) and not of the installed package."""
    root = Path(__file__).parents[3]
    if not (root / "papers" / "running.py").is_file():
        raise UsageError(
            "leastwise reproduce runs from a checkout of the project: the papers' experiments are not part of the "
            "installed package. Clone the project, install it with pip install -e ., and run the command again."
        )
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    import papers

    return papers
