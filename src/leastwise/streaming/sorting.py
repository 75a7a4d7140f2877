"""Rows of many tasks into parts that hold whole tasks."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from numbers import Number
from typing import Any

import numpy as np

from leastwise.streaming.blocks import BESIDE, Array, Block, width_of
from leastwise.streaming.errors import StreamError
from leastwise.streaming.shelves import Form, append, records
from leastwise.tasks import factor_tasks

#: Bytes of numbers in a part where nothing is said, and files that rows are sorted into at first.
PART = 2**28
BUCKETS = 64
#: How often a file that is too large is sorted again.
DEEPEST = 8


def stable_hash(value: Any) -> int:
    """64 bits that are the same in every process, and the same for numbers that are equal."""
    if isinstance(value, Number):
        text = f"n{hash(value)}"  # Python's own is salted for text only
    elif isinstance(value, tuple):
        text = "t" + ",".join(str(stable_hash(v)) for v in value)
    else:
        text = f"s{value}" if isinstance(value, str) else f"r{value!r}"
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "little")


def check_parts(n_parts: int | None, part_rows: int | None) -> None:
    """One of the two, and a count."""
    if n_parts is not None and part_rows is not None:
        raise ValueError("Give n_parts or part_rows, not both.")
    for name, value in (("n_parts", n_parts), ("part_rows", part_rows)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1):
            raise ValueError(f"{name}={value!r} must be a whole number, 1 or more.")


@dataclass
class Shelf:
    """Files with the rows of some tasks."""

    paths: list[str] = field(default_factory=list)
    rows: int = 0
    tasks: set[int] = field(default_factory=set)

    def ids(self, form: Form) -> list:
        """The ids of the tasks, in the order they came."""
        return [form.codes["tasks"].ids[code] for code in sorted(self.tasks)]


class Sorter:
    """Sort blocks into files by their tasks, and files into parts."""

    form: Form

    def __init__(self, new: Callable[[], str], writing: Any, n_parts: int | None, part_rows: int | None) -> None:
        self._new, self._writing = new, writing
        self._n_parts, self._most = n_parts, part_rows or 0  # by the width of the first block
        self._buckets: dict[int, Shelf] = {}
        self._hashes = np.empty(0, dtype=np.uint64)
        self._first = True

    def add(self, block: Block) -> None:
        """Sort the rows of one block."""
        if block.tasks is None:
            raise StreamError(
                f"{block.where}: the blocks have no tasks: name their column by task=.", where=block.where
            )
        if self._first:
            self._begin(block)
        codes = self._codes(block.tasks)
        block = self.form.numbered(replace(block, tasks=codes), done=("tasks",))
        self._writing.fitting(_arrays(block), len(block))
        self._sort(block, codes, self._n_parts or BUCKETS, 0, self._buckets)

    def settled(self) -> list[Shelf]:
        """Parts: files put together while they are small, and sorted again while they are large."""
        if self._n_parts is not None:
            return [self._buckets.get(k, Shelf()) for k in range(self._n_parts)]
        small: list[Shelf] = []
        for shelf in (self._buckets[k] for k in sorted(self._buckets)):
            for piece in self._split(shelf, 1):
                if small and small[-1].rows + piece.rows <= self._most:
                    last = small.pop()
                    piece = Shelf(last.paths + piece.paths, last.rows + piece.rows, last.tasks | piece.tasks)
                small.append(piece)
        return small

    def _begin(self, block: Block) -> None:
        self.form = Form.of(block, coded=("tasks",))
        self._most = self._most or max(1, PART // max(1, 8 * width_of(block.X)))
        self._first = False

    def _codes(self, tasks: Array) -> Array:
        names, index = factor_tasks(tasks, len(tasks))
        known = self.form.codes["tasks"]
        codes = known.encode(names)
        new = known.ids[len(self._hashes) :]
        self._hashes = np.append(self._hashes, np.array([stable_hash(v) for v in new], dtype=np.uint64))
        return codes[index]

    def _sort(self, block: Block, codes: Array, n: int, level: int, shelves: dict[int, Shelf]) -> None:
        # Other bits at every level, so that a file that is sorted again does come apart.
        place = ((self._hashes[codes] >> np.uint64(6 * level)) % np.uint64(n)).astype(np.intp)
        order = np.argsort(place, kind="stable")
        found, starts = np.unique(place[order], return_index=True)
        for k, rows in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
            shelf = shelves.setdefault(k, Shelf([self._new()]))
            self._put(shelf, block, codes, rows, len(rows) if level == 0 else 0)

    def _put(self, shelf: Shelf, block: Block, codes: Array, rows: Array, new: int) -> None:
        beside: dict[str, Any] = {n: None if (v := getattr(block, n)) is None else v[rows] for n in BESIDE}
        with self._writing.to(shelf.paths[0], new):
            self._writing.bytes += append(shelf.paths[0], self.form.pack(Block(block.X[rows], **beside)))
        shelf.rows += len(rows)
        shelf.tasks.update(np.unique(codes[rows]).tolist())

    def _split(self, shelf: Shelf, level: int) -> list[Shelf]:
        if shelf.rows <= self._most or len(shelf.tasks) == 1 or level > DEEPEST:
            return [shelf]
        shelves: dict[int, Shelf] = {}
        for record in records(shelf.paths[0], self.form.n_arrays):
            block = self.form.unpack(record, "", numbered=True)
            self._sort(block, block.tasks, BUCKETS, level, shelves)  # type: ignore[arg-type]
        os.unlink(shelf.paths[0])
        return [piece for k in sorted(shelves) for piece in self._split(shelves[k], level + 1)]


def _arrays(block: Block) -> list[Any]:
    X = block.X.data if hasattr(block.X, "indptr") else block.X
    return [X, *(v for n in BESIDE if (v := getattr(block, n)) is not None)]
