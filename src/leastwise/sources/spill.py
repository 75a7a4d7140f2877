"""Rows of many tasks into parts that hold whole tasks.

Streams on disk: to go through them again, and to have the rows of a task together.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from numbers import Number
from types import TracebackType
from typing import Any, overload

import numpy as np

from leastwise.problem.tasks import factor_tasks
from leastwise.sources.blocks import BESIDE, Array, Block, Blocks, SpillError, StreamError, width_of
from leastwise.sources.opening import open_blocks
from leastwise.sources.spill_records import Form, Writing, append, records

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


class Spool:
    """A folder of its own for rows that have to be kept; it goes when the spool is closed.

    Use it by ``with``: the folder is then taken away in any case, after an error and after Ctrl-C too. Only a process
    that is killed on the spot leaves it, under a name such as ``leastwise-spool-1a2b3c4d``.

    Parameters
    ----------
    folder : path, optional
        Where the folder is made; by default where temporary files are, which the variable TMPDIR says.

    Attributes
    ----------
    path : str
        The folder.

    Examples
    --------
    >>> import numpy as np
    >>> from leastwise.sources import Spool, open_blocks
    >>> once = open_blocks((np.full((2, 1), k), [k, k]) for k in range(3))
    >>> with Spool() as spool:
    ...     kept = spool.keep(once)
    ...     print([sum(len(block) for block in kept) for _ in range(2)])
    [6, 6]
    """

    def __init__(self, folder: Any = None) -> None:
        place = tempfile.gettempdir() if folder is None else os.fspath(folder)
        try:
            self.path = tempfile.mkdtemp(prefix="leastwise-spool-", dir=place)
        except OSError as error:
            raise SpillError(error.errno, f"Nothing can be kept there ({error.strerror})", place) from error
        self._count = 0
        self._gone = weakref.finalize(self, _remove, self.path, os.getpid())

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Take the folder away."""
        self._gone()

    @property
    def closed(self) -> bool:
        """Whether the folder is gone."""
        return not self._gone.alive

    def keep(self, blocks: Any) -> Blocks:
        """Blocks that can be gone through again; those that can be already are given back as they are.

        Parameters
        ----------
        blocks : Blocks
            Or what :func:`open_blocks` makes blocks of.

        Returns
        -------
        Blocks

        Raises
        ------
        SpillError
            Where the disk is full. What was written is taken away.
        """
        blocks = open_blocks(blocks)
        if blocks.repeatable:
            return blocks
        kept, form, places = self._new("kept"), None, list[str]()
        with Writing(self.path, blocks) as writing:
            for block in blocks:
                form = form or Form.of(block)
                with writing.to(kept, len(block)):
                    writing.bytes += append(kept, writing.fitting(form.pack(form.numbered(block)), len(block)))
                places.append(block.where)
        assert form is not None  # a stream without rows is an error
        return Kept(self, self.path, [kept], form, getattr(blocks, "names", None), writing.rows, places)

    def by_task(self, blocks: Any, n_parts: int | None = None, part_rows: int | None = None) -> Parts:
        """Rows sorted into parts so that all rows of a task are in one, in the order they came.

        Parameters
        ----------
        blocks : Blocks with tasks
        n_parts : int, optional
            How many parts; a task goes to the one that a hash of its id says, the same in every run.
        part_rows : int, optional
            Instead: the most rows that a part has. Only a task that has more by itself is in a larger one. By default
            so many that a part has about 256 MB of numbers.

        Returns
        -------
        Parts
        """
        check_parts(n_parts, part_rows)
        blocks = open_blocks(blocks)
        with Writing(self.path, blocks) as writing:
            sorter = Sorter(lambda: self._new("part"), writing, n_parts, part_rows)
            for block in blocks:
                sorter.add(block)
            shelves = sorter.settled()
        form = sorter.form
        parts = [
            Kept(self, self.path, s.paths, form, getattr(blocks, "names", None), s.rows, None, s.ids(form))
            for s in shelves
        ]
        return Parts(parts)

    def _new(self, name: str) -> str:
        if self.closed:
            raise StreamError("The spool is closed: keep rows inside of its with block.")
        self._count += 1
        return os.path.join(self.path, f"{name}-{self._count:05d}.npys")


def _remove(path: str, owner: int) -> None:
    """Not by a copy of the process, which ends before the process itself."""
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


@dataclass
class Kept:
    """Blocks on disk. They can be sent to other processes, which read them while the spool is open."""

    spool: Spool | None
    folder: str
    paths: list[str]
    form: Form
    names: list[str] | None
    n_rows: int | None
    places: list[str] | None = None
    task_ids: list | None = None
    repeatable: bool = True

    def __getstate__(self) -> dict:
        return vars(self) | {"spool": None}

    def __iter__(self) -> Iterator[Block]:
        found = (record for path in self.paths for record in records(path, self.form.n_arrays))
        k = -1
        while True:
            if not os.path.isdir(self.folder):
                raise StreamError(
                    "The spool is closed, and the rows kept in it are gone: use them inside of its with."
                )
            record = next(found, None)
            if record is None:
                return
            k += 1
            yield self.form.unpack(record, self.places[k] if self.places else f"kept block {k}")


class Parts(Sequence):
    """Parts of a stream, each of them :class:`Blocks` with whole tasks, the ids of which are in ``task_ids``."""

    def __init__(self, parts: list[Kept]) -> None:
        self._parts = parts

    @property
    def n_rows(self) -> int:
        """Rows of all parts."""
        return sum(part.n_rows or 0 for part in self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    @overload
    def __getitem__(self, k: int) -> Kept: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[Kept]: ...
    def __getitem__(self, k: int | slice) -> Kept | Sequence[Kept]:
        return self._parts[k]
