"""What a person sees, and what a program reads.

Results go to stdout; with ``--json`` as one JSON object. Everything else, progress and notes, goes to stderr, so that
a pipe gets results only; ``--quiet`` leaves it out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as Grid


@dataclass
class Shown:
    """Where a command speaks to.

    Attributes
    ----------
    quiet, json : bool
    answer : dict
        What ``--json`` prints in the end.
    """

    quiet: bool = False
    json: bool = False
    answer: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.side = Console(stderr=True, quiet=self.quiet, highlight=False)
        # a pipe is no narrow screen: nothing is folded there
        self.front = Console(quiet=self.json, highlight=False, width=None if sys.stdout.isatty() else 200)

    def note(self, text: str) -> None:
        """Something to know by the way."""
        self.side.print(text, markup=False)

    def say(self, text: str) -> None:
        """A result in words."""
        self.front.print(text, markup=False)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], side: bool = False) -> None:
        """A table of results, or beside them."""
        grid = Grid(title=title or None, title_justify="left", header_style="bold", box=None, pad_edge=False)
        numeric = [all(isinstance(row[k], int | float | np.number) for row in rows) for k in range(len(columns))]
        for name, right in zip(columns, numeric, strict=True):
            grid.add_column(name, justify="right" if right else "left", overflow="fold")
        for row in rows:
            grid.add_row(*(_escaped(cell) for cell in row))
        (self.side if side else self.front).print(grid)

    def end(self) -> None:
        """Print what was gathered for programs."""
        if self.json:
            print(json.dumps(plain(self.answer), indent=2, ensure_ascii=False, allow_nan=False))

    @contextmanager
    def working(self, text: str) -> Iterator[Any]:
        """A spinner with a line of text, on a terminal; ``update`` changes the line."""
        with self.side.status(text) as status:
            yield status


def _escaped(cell: Any) -> str:
    from rich.markup import escape

    return escape(shown(cell))


def shown(value: Any) -> str:
    """Numbers with as many digits as mean something, everything else as it is."""
    if isinstance(value, float | np.floating):
        return f"{value:.4g}" if abs(float(value)) < 1e5 else f"{value:.4e}"
    return "" if value is None else str(value)


def plain(value: Any) -> Any:
    """What JSON can say; numbers that are none become null."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | type(None)) else str(value)
