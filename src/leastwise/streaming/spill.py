"""Streams on disk: to go through them again, and to have the rows of a task together."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, overload

from leastwise.streaming.blocks import Block, Blocks
from leastwise.streaming.errors import SpillError, StreamError
from leastwise.streaming.opening import open_blocks
from leastwise.streaming.shelves import Form, append, records
from leastwise.streaming.sorting import Sorter, check_parts
from leastwise.streaming.writing import Writing


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
    >>> from leastwise.streaming import Spool, open_blocks
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
