"""Streams on disk: for further passes over an iterator, and to bring the rows of each task together."""

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
from leastwise.sources.spill_records import RecordFormat, SpillWriter, append, records

#: Default size of a part in bytes, and the number of files that rows are sorted into at each level.
PART = 2**28
BUCKETS = 64
#: How often a file that is too large is split again.
MAX_LEVEL = 8


def stable_hash(value: Any) -> int:
    """A 64-bit hash that is the same in every process, and the same for equal numbers."""
    if isinstance(value, Number):
        text = f"n{hash(value)}"  # Python salts the hashes of text only
    elif isinstance(value, tuple):
        text = "t" + ",".join(str(stable_hash(v)) for v in value)
    else:
        text = f"s{value}" if isinstance(value, str) else f"r{value!r}"
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), "little")


def check_parts(n_parts: int | None, part_rows: int | None) -> None:
    """At most one of the two, a positive integer."""
    if n_parts is not None and part_rows is not None:
        raise ValueError("Give n_parts or part_rows, not both.")
    for name, value in (("n_parts", n_parts), ("part_rows", part_rows)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1):
            raise ValueError(f"{name}={value!r} must be a positive integer.")


@dataclass
class Bucket:
    """Files with the rows of some tasks."""

    paths: list[str] = field(default_factory=list)
    rows: int = 0
    tasks: set[int] = field(default_factory=set)

    def ids(self, format: RecordFormat) -> list:
        """The ids of the tasks, in order of appearance."""
        return [format.codes["tasks"].ids[code] for code in sorted(self.tasks)]


class Sorter:
    """Sorts blocks into files by task, and files into parts."""

    format: RecordFormat

    def __init__(
        self, new: Callable[[], str], writer: SpillWriter, n_parts: int | None, part_rows: int | None
    ) -> None:
        self._new, self._writer = new, writer
        self._n_parts, self._most = n_parts, part_rows or 0  # 0: by the width of the first block
        self._buckets: dict[int, Bucket] = {}
        self._hashes = np.empty(0, dtype=np.uint64)
        self._first = True

    def add(self, block: Block) -> None:
        """Sort the rows of one block."""
        if block.tasks is None:
            raise StreamError(
                f"{block.where}: the blocks have no tasks: name the column with task=.", where=block.where
            )
        if self._first:
            self.format = RecordFormat.of(block, coded=("tasks",))
            self._most = self._most or max(1, PART // max(1, 8 * width_of(block.X)))
            self._first = False
        codes = self._codes(block.tasks)
        block = self.format.encode(replace(block, tasks=codes), done=("tasks",))
        self._writer.check_space(_arrays(block), len(block))
        self._sort(block, codes, self._n_parts or BUCKETS, 0, self._buckets)

    def parts(self) -> list[Bucket]:
        """The parts: large files are split again, small ones are merged."""
        if self._n_parts is not None:
            return [self._buckets.get(k, Bucket()) for k in range(self._n_parts)]
        found: list[Bucket] = []
        for bucket in (self._buckets[k] for k in sorted(self._buckets)):
            for piece in self._split(bucket, 1):
                if found and found[-1].rows + piece.rows <= self._most:
                    last = found.pop()
                    piece = Bucket(last.paths + piece.paths, last.rows + piece.rows, last.tasks | piece.tasks)
                found.append(piece)
        return found

    def _codes(self, tasks: Array) -> Array:
        names, index = factor_tasks(tasks, len(tasks))
        known = self.format.codes["tasks"]
        codes = known.encode(names)
        new = known.ids[len(self._hashes) :]
        self._hashes = np.append(self._hashes, np.array([stable_hash(v) for v in new], dtype=np.uint64))
        return codes[index]

    def _sort(self, block: Block, codes: Array, n: int, level: int, buckets: dict[int, Bucket]) -> None:
        # Each level uses other bits of the hash, so that a file that is split again does come apart.
        place = ((self._hashes[codes] >> np.uint64(6 * level)) % np.uint64(n)).astype(np.intp)
        order = np.argsort(place, kind="stable")
        found, starts = np.unique(place[order], return_index=True)
        for k, rows in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
            bucket = buckets.setdefault(k, Bucket([self._new()]))
            self._write(bucket, block, codes, rows, len(rows) if level == 0 else 0)

    def _write(self, bucket: Bucket, block: Block, codes: Array, rows: Array, new: int) -> None:
        beside: dict[str, Any] = {n: None if (v := getattr(block, n)) is None else v[rows] for n in BESIDE}
        with self._writer.to(bucket.paths[0], new):
            self._writer.bytes += append(bucket.paths[0], self.format.pack(Block(block.X[rows], **beside)))
        bucket.rows += len(rows)
        bucket.tasks.update(np.unique(codes[rows]).tolist())

    def _split(self, bucket: Bucket, level: int) -> list[Bucket]:
        if bucket.rows <= self._most or len(bucket.tasks) == 1 or level > MAX_LEVEL:
            return [bucket]
        buckets: dict[int, Bucket] = {}
        for record in records(bucket.paths[0], self.format.n_arrays):
            block = self.format.unpack(record, "", encoded=True)
            self._sort(block, block.tasks, BUCKETS, level, buckets)
        os.unlink(bucket.paths[0])
        return [piece for k in sorted(buckets) for piece in self._split(buckets[k], level + 1)]


def _arrays(block: Block) -> list[Any]:
    X = block.X.data if hasattr(block.X, "indptr") else block.X
    return [X, *(v for n in BESIDE if (v := getattr(block, n)) is not None)]


class Spool:
    """A temporary folder for rows on disk; it is deleted when the spool is closed.

    Use it in a ``with`` statement: the folder is then deleted also after an error or Ctrl-C. Only a process that is
    killed leaves it behind, under a name such as ``leastwise-spool-1a2b3c4d``.

    Parameters
    ----------
    folder : path, optional
        The parent folder; by default that of temporary files (environment variable TMPDIR).

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
            raise SpillError(error.errno, f"No temporary folder can be created ({error.strerror})", place) from error
        self._count = 0
        self._gone = weakref.finalize(self, _remove, self.path, os.getpid())

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Delete the folder."""
        self._gone()

    @property
    def closed(self) -> bool:
        """True if the folder is deleted."""
        return not self._gone.alive

    def keep(self, blocks: Any) -> Blocks:
        """Blocks for several passes; blocks that are repeatable already are returned as they are.

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
            If the disk is full. What was written is deleted.
        """
        blocks = open_blocks(blocks)
        if blocks.repeatable:
            return blocks
        path, format, places = self._new("kept"), None, list[str]()
        with SpillWriter(self.path, blocks) as writer:
            for block in blocks:
                format = format or RecordFormat.of(block)
                with writer.to(path, len(block)):
                    arrays = format.pack(format.encode(block))
                    writer.check_space(arrays, len(block))
                    writer.bytes += append(path, arrays)
                places.append(block.where)
        assert format is not None  # a stream without rows is an error
        return SpilledBlocks(self, self.path, [path], format, getattr(blocks, "names", None), writer.rows, places)

    def by_task(self, blocks: Any, n_parts: int | None = None, part_rows: int | None = None) -> Parts:
        """Sort rows into parts so that all rows of a task are in one part, in their original order.

        Parameters
        ----------
        blocks : Blocks with tasks
        n_parts : int, optional
            Number of parts; a task's part is a hash of its id, the same in every run.
        part_rows : int, optional
            Instead: the maximum number of rows of a part, exceeded only by a single task with more rows. By default a
            part has about 256 MB of numbers.

        Returns
        -------
        Parts
        """
        check_parts(n_parts, part_rows)
        blocks = open_blocks(blocks)
        with SpillWriter(self.path, blocks) as writer:
            sorter = Sorter(lambda: self._new("part"), writer, n_parts, part_rows)
            for block in blocks:
                sorter.add(block)
            buckets = sorter.parts()
        format, names = sorter.format, getattr(blocks, "names", None)
        return Parts(
            [SpilledBlocks(self, self.path, b.paths, format, names, b.rows, None, b.ids(format)) for b in buckets]
        )

    def _new(self, name: str) -> str:
        if self.closed:
            raise StreamError("The spool is closed: keep rows inside its with block.")
        self._count += 1
        return os.path.join(self.path, f"{name}-{self._count:05d}.npys")


def _remove(path: str, owner: int) -> None:
    """Delete the folder, but not from a forked process, which ends before its parent."""
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)


@dataclass
class SpilledBlocks:
    """Blocks on disk. They can be pickled to other processes, which read them while the spool is open."""

    spool: Spool | None
    folder: str
    paths: list[str]
    format: RecordFormat
    names: list[str] | None
    n_rows: int | None
    places: list[str] | None = None
    task_ids: list | None = None
    repeatable: bool = True

    def __getstate__(self) -> dict:
        return vars(self) | {"spool": None}

    def __iter__(self) -> Iterator[Block]:
        found = (record for path in self.paths for record in records(path, self.format.n_arrays))
        k = -1
        while True:
            if not os.path.isdir(self.folder):
                raise StreamError("The spool is closed and its rows are deleted: use them inside its with block.")
            record = next(found, None)
            if record is None:
                return
            k += 1
            yield self.format.unpack(record, self.places[k] if self.places else f"kept block {k}")


class Parts(Sequence):
    """The parts of a stream, each a :class:`Blocks` with whole tasks, whose ids are in ``task_ids``."""

    def __init__(self, parts: list[SpilledBlocks]) -> None:
        self._parts = parts

    @property
    def n_rows(self) -> int:
        """Number of rows of all parts."""
        return sum(part.n_rows or 0 for part in self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    @overload
    def __getitem__(self, k: int) -> SpilledBlocks: ...
    @overload
    def __getitem__(self, k: slice) -> Sequence[SpilledBlocks]: ...
    def __getitem__(self, k: int | slice) -> SpilledBlocks | Sequence[SpilledBlocks]:
        return self._parts[k]
