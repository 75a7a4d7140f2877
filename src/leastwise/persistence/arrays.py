"""Arrays: what a file says of them, and how they are read."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np

from leastwise.persistence.container import FileError, aligned, check_gap, digest, end_of, hash_range

Array = np.ndarray

#: From so many bytes on arrays are mapped, not read; all of these are read only.
MAPPED = 2**16
MAX_DIMENSIONS = 8
#: Bound of the axes of an array without entries, which no length of a file bounds.
MAX_EMPTY = 10**6
#: One byte; two to eight; text of up to 9,999 letters; times.
DTYPES = re.compile(r"\|[biu]1|<[iuf][248]|<U[1-9][0-9]{0,3}|<[Mm]8\[(Y|M|W|D|h|m|s|ms|us|ns)\]")


@dataclass(frozen=True)
class Stored:
    """An array in a file; ``before`` is where what stands before it ends."""

    dtype: np.dtype
    shape: tuple[int, ...]
    order: str
    offset: int
    size: int
    sha256: str
    before: int = 0


def storable(array: Array) -> Array | None:
    """The array as it is stored: little endian, in one piece; None where its type is none of those allowed."""
    dtype = array.dtype.newbyteorder("<")
    if dtype.str == "<U0":
        dtype = np.dtype("<U1")
    if not DTYPES.fullmatch(dtype.str):
        return None
    array = np.asarray(array, dtype=dtype)
    one_piece = array.flags.c_contiguous or array.flags.f_contiguous
    return array if one_piece else np.ascontiguousarray(array)


def order_of(array: Array) -> str:
    """In which order the entries are stored: "C", the last index moves first, or "F", the first one does."""
    return "C" if array.flags.c_contiguous else "F"


def as_bytes(array: Array) -> Array:
    """The entries of a stored array, byte by byte in their order."""
    flat = array.ravel(order="K") if array.ndim else array.reshape(1)
    return flat.view(np.uint8) if flat.size else np.empty(0, dtype=np.uint8)


def described(array: Array, sha256: str) -> dict[str, Any]:
    """The entry of an array in the header, but for its place."""
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "order": order_of(array),
        "size": array.nbytes,
        "sha256": sha256,
    }


def place(entries: list[dict[str, Any]]) -> None:
    """Add the offsets of all arrays, from the end of the header on (rounded up to 64)."""
    end = 0
    for entry in entries:
        entry["offset"] = aligned(end)
        end = entry["offset"] + entry["size"]


def read_entries(entries: Any, start: int, size: int) -> list[Stored]:
    """The arrays that a header speaks of, each within the file and in its place."""
    if not isinstance(entries, list):
        raise FileError("its header has no list of arrays")
    base, end = aligned(start), 0
    stored: list[Stored] = []
    for number, entry in enumerate(entries):
        here = _read_entry(entry, number)
        if here.offset != aligned(end) or here.size > size - base - here.offset:
            raise FileError(f"array {number} is not where it should be: at {here.offset}, with {here.size} bytes")
        before = base + end if stored else start
        stored.append(replace(here, offset=base + here.offset, before=before))
        end = here.offset + here.size
    if end_of(start, [entry.size for entry in stored]) != size:
        raise FileError("its arrays do not fill it: bytes are left over, or missing")
    return stored


def _read_entry(entry: Any, number: int) -> Stored:
    names = {"dtype", "shape", "order", "offset", "size", "sha256"}
    if not isinstance(entry, dict) or set(entry) != names:
        raise FileError(f"array {number} is not described by {sorted(names)}")
    dtype, shape, size = _dtype(entry["dtype"]), entry["shape"], entry["size"]
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or not all(map(_is_length, shape)):
        raise FileError(f"array {number} has no valid shape, {str(shape)[:80]}")
    if not _is_length(size) or not _is_length(entry["offset"]) or entry["order"] not in ("C", "F"):
        raise FileError(f"array {number} has no valid size, offset or order")
    count = 1
    for length in shape:
        count *= length
    if count * dtype.itemsize != size or (count == 0 and max(shape) > MAX_EMPTY):
        raise FileError(f"array {number} of shape {shape} and type {dtype} cannot have {size} bytes")
    return Stored(dtype, tuple(shape), entry["order"], entry["offset"], size, entry["sha256"])


def _dtype(name: Any) -> np.dtype:
    if not isinstance(name, str) or not DTYPES.fullmatch(name):
        raise FileError(f"it has an array of the type {str(name)[:40]!r}, which is none of those allowed")
    return np.dtype(name)


def _is_length(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**62


def read_array(file: BinaryIO, stored: Stored, whole: Array | None, verify: bool) -> Array:
    """One array; a view of ``whole``, the mapped file, where that is given and the array is large."""
    if verify:
        check_gap(file, stored.before, stored.offset)
    if whole is not None and stored.size >= MAPPED:
        if verify and hash_range(file, stored.offset, stored.size) != stored.sha256:
            raise _damaged(stored)
        array = np.ndarray(stored.shape, stored.dtype, whole, stored.offset, order=_order(stored))
    else:
        array = np.empty(stored.shape, stored.dtype, order=_order(stored))
        flat = as_bytes(array)
        file.seek(stored.offset)
        if file.readinto(flat) != stored.size:  # type: ignore[attr-defined]
            raise FileError("it was cut off while it was read")
        if verify and digest(flat) != stored.sha256:
            raise _damaged(stored)
        array.flags.writeable = stored.size < MAPPED
    _check_values(array)
    return array


def _order(stored: Stored) -> Any:
    return stored.order


def _damaged(stored: Stored) -> FileError:
    return FileError(f"the checksum of the array at byte {stored.offset} is wrong: it is damaged")


def _check_values(array: Array) -> None:
    """Bytes that are no truth value, or no letter, would confuse all that comes after."""
    if array.dtype.kind == "b" and as_bytes(array).max(initial=0) > 1:
        raise FileError("it has an array of truth values with others than 0 and 1")
    if array.dtype.kind == "U" and array.size and as_bytes(array).view("<u4").max() > 0x10FFFF:
        raise FileError("it has an array of text with letters that do not exist")
