"""Tables as the pages want them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks._common import cell


def print_markdown(title: str, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table to be copied into a page, with its title above."""
    print(f"\n{title}\n")
    for line in [list(header), ["---"] * len(header), *([cell(value) for value in row] for row in rows)]:
        print(f"| {' | '.join(line)} |")
    print(flush=True)
