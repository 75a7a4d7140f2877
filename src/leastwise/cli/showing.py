"""What a person sees, and what a program reads.

Results go to stdout; with ``--json`` as one JSON object. Everything else, progress and notes, goes to stderr, so that
a pipe gets results only; ``--quiet`` leaves it out.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Number, Real
from typing import Any

from leastwise.cli.failing import in_options

#: A pipe is no narrow screen: nothing is folded there.
WIDE = 10_000


@dataclass
class Shown:
    """Where a command speaks to.

    Attributes
    ----------
    quiet, json : bool
    answer : dict
        What ``--json`` prints in the end.
    warnings : list of str
        What the library warned of.
    """

    quiet: bool = False
    json: bool = False
    answer: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        from rich.console import Console

        self.side = Console(stderr=True, quiet=self.quiet, highlight=False, width=_width(sys.stderr))
        self.alarm = Console(stderr=True, highlight=False, width=_width(sys.stderr))  # quiet or not
        self.front = Console(quiet=self.json, highlight=False, width=_width(sys.stdout))

    def note(self, text: str) -> None:
        """Something to know by the way."""
        self.side.print(in_options(text), markup=False)

    def warn(self, text: str) -> None:
        """A warning of the library, once."""
        text = " ".join(in_options(text).split())
        if text not in self.warnings:
            self.warnings.append(text)
            self.alarm.print(f"warning: {text}", markup=False)

    def say(self, text: str) -> None:
        """A result in words."""
        self.front.print(text, markup=False)

    def table(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], side: bool = False) -> None:
        """A table of results, or beside them."""
        from rich.table import Table as Grid
        from rich.text import Text

        grid = Grid(header_style="bold", box=None, pad_edge=False, show_header=any(columns))
        for k, name in enumerate(columns):
            right = any(isinstance(row[k], Number) for row in rows)
            grid.add_column(name, justify="right" if right else "left", overflow="fold")
        for row in rows:
            grid.add_row(*(Text(shown(cell)) for cell in row))
        console = self.side if side else self.front
        if title:
            console.print(Text(title, style="bold"))
        with console.capture() as drawn:
            console.print(grid)
        lines = "\n".join(line.rstrip() for line in drawn.get().splitlines())
        console.print(Text.from_ansi(lines) if console.is_terminal else lines, markup=False, soft_wrap=True)

    def end(self) -> None:
        """Print what was gathered for programs."""
        if self.json:
            told = {**self.answer, "warnings": self.warnings}
            print(json.dumps(plain(told), indent=2, ensure_ascii=False, allow_nan=False))

    @contextmanager
    def working(self, text: str) -> Iterator[Any]:
        """A spinner, a line of text and the time that has passed, on a terminal; ``update`` changes the line."""
        if self.quiet or not self.side.is_terminal:
            yield Silent()
            return
        from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.table import Column

        rest = Column(no_wrap=True, overflow="ellipsis", ratio=1)  # of the line; spinner and time are always seen
        line = TextColumn("{task.description}", markup=False, table_column=rest)
        time = TimeElapsedColumn(table_column=Column(no_wrap=True))
        with Progress(SpinnerColumn(), time, line, console=self.side, transient=True, expand=True) as progress:
            yield Spinning(progress, progress.add_task(text, total=None))


class Silent:
    """Shows nothing."""

    def update(self, text: str) -> None:
        """Nobody looks."""


@dataclass(frozen=True)
class Spinning:
    """A line of progress on a terminal."""

    progress: Any
    task: Any

    def update(self, text: str) -> None:
        """Change the line."""
        self.progress.update(self.task, description=text)


def _width(stream: Any) -> int | None:
    return None if stream is not None and stream.isatty() else WIDE


def shown(value: Any) -> str:
    """Numbers with as many digits as mean something, everything else as it is."""
    if isinstance(value, Real) and not isinstance(value, int):
        return f"{float(value):.4g}" if abs(float(value)) < 1e5 else f"{float(value):.4e}"
    return "" if value is None else str(value)


def plain(value: Any) -> Any:
    """What JSON can say; numbers that are none become null."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    value = value.tolist() if hasattr(value, "tolist") else value  # numpy's
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | type(None)) else str(value)
