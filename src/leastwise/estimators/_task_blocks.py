"""Blocks of rows of many tasks, from what users give."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from leastwise.distributed import local_parts
from leastwise.streaming.blocks import Block
from leastwise.streaming.opening import open_blocks


class TooManyWaitError(MemoryError):
    """Rows of tasks that lie in many blocks would take too much memory while they wait for the last of these."""


def as_blocks(source: Any, y: Any, names: dict[str, Any], block_rows: int | None) -> Any:
    """Blocks of rows: a list of them as it is, all else as ``open_blocks`` has it."""
    listed = isinstance(source, Sequence) and not isinstance(source, str | bytes) and len(source)
    if listed and not isinstance(source[0], str | PathLike) and not _pair_of_paths(source[0]):
        return source
    return open_blocks(source, y, **names, block_rows=block_rows)


def _pair_of_paths(item: Any) -> bool:
    return isinstance(item, tuple) and all(isinstance(part, str | PathLike) for part in item)


def as_stream(blocks: Any) -> Any:
    """Blocks that a spool can take."""
    if not isinstance(blocks, Sequence):
        return blocks
    pieces = local_parts(blocks).open
    return open_blocks(lambda: (Block(p.X, p.y, p.sample_weight, p.tasks) for p in pieces()))
