"""Spill files: records of arrays in .npy format, appended and read one at a time; errors if the disk is full."""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.sources.blocks import BESIDE, Array, Block, Blocks, CodedRows, SpillError, StreamError, reason_of
from leastwise.sources.frames import translated
from leastwise.utils.resources import human


class Codes:
    """Integer codes for hashable objects, so that files contain numbers only."""

    def __init__(self) -> None:
        self.ids: list = []
        self._place: dict = {}
        self._array: Array | None = None

    def encode(self, values: Any) -> Array:
        """The code of each value; equal values have the same code."""
        place, ids = self._place, self.ids
        codes = np.empty(len(values), dtype=np.int64)
        for k, value in enumerate(values):
            code = place.get(value)
            if code is None:
                code = place[value] = len(ids)
                ids.append(value)
            codes[k] = code
        return codes

    def decode(self, codes: Array) -> Array:
        """The values of codes."""
        if self._array is None or len(self._array) != len(self.ids):
            self._array = _array(self.ids)
        return self._array[codes]


def _array(ids: list) -> Array:
    """An array of integers or floats if all ids are, else of objects."""
    if all(type(v) is int and -(2**63) <= v < 2**63 for v in ids):
        return np.array(ids, dtype=np.int64)
    if all(type(v) is float for v in ids):
        return np.array(ids)
    array = np.empty(len(ids), dtype=object)
    array[:] = ids
    return array


@dataclass
class RecordFormat:
    """The arrays of each record of a stream; fixed by its first block.

    ``codes`` are those of the fields that hold objects, ``categories`` those of the columns of X that are categories.
    """

    sparse: bool
    fields: tuple[str, ...]
    codes: dict[str, Codes] = field(default_factory=dict)
    categories: dict[int, Codes] = field(default_factory=dict)

    @staticmethod
    def of(block: Block, coded: tuple[str, ...] = ()) -> RecordFormat:
        """The format of a block; fields in ``coded`` are encoded whatever their type."""
        fields = tuple(name for name in BESIDE if getattr(block, name) is not None)
        objects = [name for name in fields if name in coded or getattr(block, name).dtype.kind == "O"]
        places = block.X.places if isinstance(block.X, CodedRows) else []
        codes = {name: Codes() for name in objects}
        return RecordFormat(sparse.issparse(block.X), fields, codes, {j: Codes() for j in places})

    def encode(self, block: Block, done: tuple[str, ...] = ()) -> Block:
        """The block with codes for objects, except in fields that are encoded already."""
        fields = [name for name in self.fields if name not in done]
        codes: dict[str, Any] = {name: self._encoded(name, getattr(block, name)) for name in fields}
        return replace(block, X=self._shared_codes(block.X), **codes)

    def _shared_codes(self, X: Any) -> Any:
        """A matrix with the same codes in all blocks."""
        if not isinstance(X, CodedRows):
            return X
        matrix = X.matrix.copy()
        for j, known in self.categories.items():
            values = X.values[j] or []
            known.encode(values)
            matrix[:, j] = translated(matrix[:, j], values, known.ids)
        return matrix

    def pack(self, block: Block) -> list[Array]:
        """The arrays of a record, from an encoded block."""
        X = block.X
        arrays = [X.data, X.indices, X.indptr, np.array(X.shape)] if self.sparse else [np.ascontiguousarray(X)]
        return arrays + [np.ascontiguousarray(getattr(block, name)) for name in self.fields]

    def unpack(self, arrays: list[Array], where: str, encoded: bool = False) -> Block:
        """The block of a record, decoded unless ``encoded``."""
        n = 4 if self.sparse else 1
        X = sparse.csr_matrix(tuple(arrays[:3]), shape=tuple(arrays[3])) if self.sparse else arrays[0]
        if self.categories and not encoded:
            X = CodedRows(X, [self.categories[j].ids if j in self.categories else None for j in range(X.shape[1])])
        beside = {
            name: self.codes[name].decode(a) if name in self.codes and not encoded else a
            for name, a in zip(self.fields, arrays[n:], strict=True)
        }
        return Block(X, **({"y": None} | beside), where=where)

    @property
    def n_arrays(self) -> int:
        """Number of arrays of a record."""
        return (4 if self.sparse else 1) + len(self.fields)

    def _encoded(self, name: str, values: Array) -> Array:
        if name not in self.codes:
            if values.dtype.kind == "O":
                raise StreamError(f"{name} contains objects in one block, but not in the first: use the same type.")
            return values
        try:
            return self.codes[name].encode(values.ravel().tolist()).reshape(values.shape)
        except TypeError as error:
            raise StreamError(f"{name} has values that are not hashable ({reason_of(error)}).") from error


def append(path: str, arrays: list[Array]) -> int:
    """Append a record to a file; returns the number of bytes."""
    written = 0
    with open(path, "ab", buffering=0) as file:
        for array in arrays:
            for part in (_header(array), array.reshape(-1).view(np.uint8).data if array.size else b""):
                written += _write(file, part)
    return written


def _header(array: Array) -> bytes:
    out, form = io.BytesIO(), np.lib.format
    form.write_array_header_1_0(out, form.header_data_from_array_1_0(array))
    return out.getvalue()


def _write(file: Any, data: Any) -> int:
    """Write everything: an unbuffered file may accept a part, and raises an error at the next call."""
    view, done = memoryview(data), 0
    while done < len(view):
        done += file.write(view[done:])
    return done


def records(path: str, n_arrays: int) -> Iterator[list[Array]]:
    """The records of a file, one at a time."""
    if not os.path.exists(path):
        return
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        while file.tell() < size:
            try:
                yield [np.lib.format.read_array(file, allow_pickle=False) for _ in range(n_arrays)]
            except (OSError, ValueError, EOFError) as error:
                raise StreamError(f"{path}: the spilled rows are broken ({reason_of(error)}).", where=path) from error


#: The disk is full, the quota is exceeded, or the file is too large.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@dataclass
class SpillWriter:
    """Counts what is written; deletes the files if writing fails."""

    folder: str
    blocks: Blocks
    bytes: int = 0
    rows: int = 0
    files: set[str] = field(default_factory=set)

    def __enter__(self) -> SpillWriter:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None:
            for path in self.files:
                with suppress(OSError):
                    os.unlink(path)

    @contextmanager
    def to(self, path: str, rows: int) -> Iterator[None]:
        """Write rows to this file; OSErrors for lack of space become SpillErrors."""
        self.files.add(path)
        try:
            yield
        except OSError as error:
            if error.errno not in FULL or isinstance(error, SpillError):
                raise
            raise self._full(error.errno, self._needed(self.bytes, self.rows)) from error
        self.rows += rows

    def check_space(self, arrays: list, rows: int) -> None:
        """Before the first block, an error if all rows do not fit on the disk, as far as their number is known."""
        size = sum(array.nbytes for array in arrays)
        needed = self._needed(size, rows) if not self.rows else None
        if needed is not None and needed > shutil.disk_usage(self.folder).free:
            raise self._full(errno.ENOSPC, needed)

    def _needed(self, size: int, rows: int) -> float | None:
        n = self.blocks.n_rows
        return None if n is None or not rows else size / rows * n

    def _full(self, number: int, needed: float | None) -> SpillError:
        free = shutil.disk_usage(self.folder).free
        about = "more is needed" if needed is None else f"about {human(needed)} are needed"
        return SpillError(
            number,
            f"The disk is full: {human(self.bytes)} ({self.rows} rows) were written, {about}, {human(free)} are free "
            "now. What was written is deleted. Choose another folder with Spool(folder=...) or the environment "
            "variable TMPDIR",
            self.folder,
        )
