"""Blocks of rows of many tasks, from what users give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

from leastwise.sources.blocks import Block, StreamError
from leastwise.sources.opening import has_names, open_blocks
from leastwise.sources.parts import Parts, local_parts
from leastwise.sources.spill import Spool


class TooManyWaitError(MemoryError):
    """Rows of tasks that lie in many blocks would take too much memory while they wait for the last of these."""


def as_blocks(source: Any, y: Any, names: dict[str, Any], block_rows: int | None) -> Any:
    """Blocks of rows: a list of them as it is, all else as ``open_blocks`` has it."""
    listed = isinstance(source, Sequence) and not isinstance(source, str | bytes) and len(source)
    if listed and not isinstance(source[0], str | PathLike) and not _pair_of_paths(source[0]):
        return source
    return open_blocks(source, y, **names, block_rows=block_rows)


def check_named(source: Any, y: Any, names: dict[str, Any], task_column: Any) -> None:
    """Files, tables and arrays have targets and tasks where the user says."""
    if not has_names(source) and not hasattr(source, "__array__"):
        return
    if y is None and names["target"] is None:
        raise StreamError("There are no targets: name their column by target=, or give them as y.")
    if names["task"] is None and task_column is None:
        raise StreamError(
            "Nothing tells which task a row belongs to: name the column by task=, or give an array of ids. (Without "
            "tasks, use LSPC, LSSVC or LSSVR.)"
        )


def _pair_of_paths(item: Any) -> bool:
    return isinstance(item, tuple) and all(isinstance(part, str | PathLike) for part in item)


def by_blocks(fit: Callable[[Parts], Any], blocks: Any, folder: Any) -> None:
    """Blocks as they are, or sorted by task on disk where too many rows would wait for others of their task."""
    if getattr(blocks, "repeatable", True):
        try:
            fit(local_parts(blocks))
            return
        except TooManyWaitError:
            pass
    with Spool(folder) as spool:
        fit(local_parts(spool.by_task(as_stream(blocks))))


def as_stream(blocks: Any) -> Any:
    """Blocks that a spool can take."""
    if not isinstance(blocks, Sequence):
        return blocks
    pieces = local_parts(blocks).open
    return open_blocks(lambda: (Block(p.X, p.y, p.sample_weight, p.tasks) for p in pieces()))
