"""The file as bytes: a preamble, a JSON header, and arrays, each at a multiple of 64 bytes.

::

    0   8 bytes   magic
    8   uint32    format version
    12  uint32    0
    16  uint64    length of the header
    24  uint64    length of the file
    32  32 bytes  SHA-256 of the first 32 bytes and the header
    64            the header, then zeros up to the next multiple of 64
                  the arrays in order, each padded with zeros in the same way, except the last

All integers are little endian. The layout is unique: the offsets in a header must equal those that follow from the
sizes of the arrays. So arrays cannot overlap, leave gaps, or lie outside the file.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import stat
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np

Array = np.ndarray
Path = str | os.PathLike[str]

MAGIC = b"\x93LEASTW\n"
FORMAT = 1
ALIGN = 64
PREAMBLE = 64
#: Bytes that are hashed at a time.
CHUNK = 2**20

#: Limits of a header: bytes, and brackets. Parsed, a list or object takes up to fifty times the bytes of its text.
MAX_BYTES = 16 * 2**20
MAX_GROUPS = 10**6
#: Characters of an integer: 128 bits and a sign, as states of random generators need.
MAX_DIGITS = 40

#: Arrays of at least this many bytes are memory-mapped. They are read-only, mapped or not.
MAPPED = 2**16
MAX_DIMENSIONS = 8
#: Longest axis of an array without entries, which the length of the file does not bound.
MAX_EMPTY = 10**6
#: Booleans, integers and floats of up to eight bytes, text of up to 9,999 characters, times.
DTYPES = re.compile(r"\|[biu]1|<[iuf][248]|<U[1-9][0-9]{0,3}|<[Mm]8\[(Y|M|W|D|h|m|s|ms|us|ns)\]")


class FileError(ValueError):
    """The model cannot be stored in a file, or the file cannot be read: damaged, unknown, hostile or too new."""


def aligned(offset: int) -> int:
    """The next multiple of 64."""
    return -(-offset // ALIGN) * ALIGN


def sha256(data: Any) -> str:
    """SHA-256 as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


# -------------------------------------------------------------------- the header


def format_header(header: dict[str, Any]) -> bytes:
    """Serialize a header as ASCII JSON without whitespace."""
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode("ascii")
    if len(text) > MAX_BYTES or _n_groups(text) > MAX_GROUPS:
        raise FileError(
            f"The header would have {len(text)} bytes and {_n_groups(text)} brackets; the limits are {MAX_BYTES} and "
            f"{MAX_GROUPS}. The model has too many values that are not arrays, such as names of categories or tasks."
        )
    return text


def parse_header(text: bytes) -> dict[str, Any]:
    """Parse a header. Duplicate keys, non-finite numbers and very long integers are errors."""
    if len(text) > MAX_BYTES or _n_groups(text) > MAX_GROUPS:
        raise FileError(f"the header has more than {MAX_BYTES} bytes or {MAX_GROUPS} brackets")
    try:
        header = json.loads(
            text.decode("ascii"),
            object_pairs_hook=_unique_keys,
            parse_int=_short_int,
            parse_float=_finite_float,
            parse_constant=_reject_constant,
        )
    except RecursionError:
        raise FileError("the header is nested too deeply") from None
    except FileError:
        raise
    except ValueError as error:
        raise FileError(f"the header is not valid JSON ({error})") from None
    if not isinstance(header, dict):
        raise FileError("the header is not a JSON object")
    return header


def _n_groups(text: bytes) -> int:
    return text.count(b"[") + text.count(b"{")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise FileError("the header has a duplicate key")
    return values


def _short_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise FileError(f"the header has an integer of {len(digits)} digits")
    return int(digits)


def _finite_float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise FileError(f"the header has a number that is not finite, {digits[:20]}")
    return number


def _reject_constant(name: str) -> float:
    raise FileError(f"the header has {name}, which is not valid JSON")


# ---------------------------------------------------------------- writing arrays


def storable(array: Array) -> Array | None:
    """The array as it is stored, little endian and contiguous; None if its dtype is not allowed."""
    dtype = array.dtype.newbyteorder("<")
    if dtype.str == "<U0":
        dtype = np.dtype("<U1")
    if not DTYPES.fullmatch(dtype.str):
        return None
    array = np.asarray(array, dtype=dtype)
    contiguous = array.flags.c_contiguous or array.flags.f_contiguous
    return array if contiguous else np.ascontiguousarray(array)


def memory_order(array: Array) -> str:
    """The order of the entries of a contiguous array: "C", last index fastest, or "F", first index fastest."""
    return "C" if array.flags.c_contiguous else "F"


def as_bytes(array: Array) -> Array:
    """The entries of a contiguous array as bytes, in memory order."""
    flat = array.ravel(order="K") if array.ndim else array.reshape(1)
    return flat.view(np.uint8) if flat.size else np.empty(0, dtype=np.uint8)


def array_entry(array: Array, checksum: str) -> dict[str, Any]:
    """The description of an array in the header, without its offset."""
    return {
        "dtype": array.dtype.str,
        "shape": list(array.shape),
        "order": memory_order(array),
        "size": array.nbytes,
        "sha256": checksum,
    }


def set_offsets(entries: list[dict[str, Any]]) -> None:
    """Set the offsets of all arrays, counted from the end of the header, rounded up to 64."""
    end = 0
    for entry in entries:
        entry["offset"] = aligned(end)
        end = entry["offset"] + entry["size"]


def file_parts(header: bytes, arrays: list[Any]) -> Iterator[Any]:
    """The bytes of a file, part by part; ``arrays`` are one-dimensional arrays of bytes."""
    end = PREAMBLE + len(header)
    start = MAGIC + struct.pack("<IIQQ", FORMAT, 0, len(header), _end(end, map(len, arrays)))
    yield start
    yield hashlib.sha256(start + header).digest()
    yield header
    for array in arrays:
        yield bytes(aligned(end) - end)
        yield memoryview(array)
        end = aligned(end) + len(array)


def _end(start: int, sizes: Iterable[int]) -> int:
    """The end of the last array, or of the header if there are none."""
    end = start
    for size in sizes:
        end = aligned(end) + size
    return end


# ----------------------------------------------------------------------- reading


@dataclass(frozen=True)
class Head:
    """The part of a file before its arrays; ``start`` is where it ends, ``size`` the length of the file."""

    version: int
    header: dict[str, Any]
    start: int
    size: int


@contextmanager
def open_file(path: Path) -> Iterator[tuple[BinaryIO, Head]]:
    """Open a model file and read its header; a FileError raised inside gets the name of the file."""
    name = os.fspath(path)
    if os.path.isdir(name):
        raise IsADirectoryError(f"{name!r} is a folder: give the name of a model file in it.")
    if os.path.exists(name) and not os.path.isfile(name):  # opening a pipe would block
        raise FileError(f"{name!r} cannot be read: it is not a regular file.")
    with open(name, "rb") as file:
        try:
            yield file, _read_head(file)
        except FileError as error:
            raise FileError(f"{name!r} cannot be read: {error}.") from error.__cause__


def _read_head(file: BinaryIO) -> Head:
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise FileError("it is not a regular file")
    size = status.st_size
    start = file.read(PREAMBLE)
    if len(start) < PREAMBLE or start[:8] != MAGIC:
        raise FileError("it is not a leastwise model: its first bytes are not those of a model file")
    version, zero, length, total = struct.unpack("<IIQQ", start[8:32])
    if version > FORMAT:
        raise FileError(
            f"it has format {version}, and this version of leastwise reads formats up to {FORMAT}: it was written by "
            "a newer version, or is damaged. Upgrade leastwise to read it"
        )
    if version < 1 or zero:
        raise FileError("its first bytes are damaged")
    if total != size:
        raise FileError(f"it has {size} bytes and should have {total}: it was truncated, or bytes were added")
    if length > min(size - PREAMBLE, MAX_BYTES):
        raise FileError(f"its header of {length} bytes is longer than the file, or than {MAX_BYTES} bytes")
    text = file.read(length)
    if hashlib.sha256(start[:32] + text).digest() != start[32:]:
        raise FileError("the checksum of its header is wrong: it is damaged")
    return Head(version, parse_header(text), PREAMBLE + length, size)


@dataclass(frozen=True)
class StoredArray:
    """The position and type of an array in a file; the padding before it begins at ``padding``."""

    dtype: np.dtype
    shape: tuple[int, ...]
    order: Any
    offset: int
    size: int
    sha256: str
    padding: int = 0


def read_array_entries(entries: Any, start: int, size: int) -> list[StoredArray]:
    """Check and parse the array descriptions of a header; ``start`` and ``size`` are those of :class:`Head`."""
    if not isinstance(entries, list):
        raise FileError("its header has no list of arrays")
    base, end = aligned(start), 0
    stored: list[StoredArray] = []
    for number, entry in enumerate(entries):
        array = _parse_entry(entry, number)
        if array.offset != aligned(end) or array.size > size - base - array.offset:
            raise FileError(f"array {number} is misplaced: at {array.offset}, with {array.size} bytes")
        padding = base + end if stored else start
        stored.append(replace(array, offset=base + array.offset, padding=padding))
        end = array.offset + array.size
    if _end(start, [array.size for array in stored]) != size:
        raise FileError("its arrays do not fill it: there are extra bytes, or bytes are missing")
    return stored


def _parse_entry(entry: Any, number: int) -> StoredArray:
    keys = {"dtype", "shape", "order", "offset", "size", "sha256"}
    if not isinstance(entry, dict) or set(entry) != keys:
        raise FileError(f"the description of array {number} must have the keys {sorted(keys)}")
    name, shape, size = entry["dtype"], entry["shape"], entry["size"]
    if not isinstance(name, str) or not DTYPES.fullmatch(name):
        raise FileError(f"array {number} has the dtype {str(name)[:40]!r}, which is not allowed")
    dtype = np.dtype(name)
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or not all(map(_is_length, shape)):
        raise FileError(f"array {number} has the invalid shape {str(shape)[:80]}")
    if not _is_length(size) or not _is_length(entry["offset"]) or entry["order"] not in ("C", "F"):
        raise FileError(f"array {number} has an invalid size, offset or order")
    count = math.prod(shape)
    if count * dtype.itemsize != size or (count == 0 and max(shape) > MAX_EMPTY):
        raise FileError(f"array {number} of shape {shape} and dtype {dtype} cannot have {size} bytes")
    return StoredArray(dtype, tuple(shape), entry["order"], entry["offset"], size, entry["sha256"])


def _is_length(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**62


def read_array(file: BinaryIO, stored: StoredArray, mapped: Array | None, verify: bool) -> Array:
    """Read one array; a view of ``mapped``, the mapped file, if that is given and the array is large."""
    if verify:
        file.seek(stored.padding)
        if file.read(stored.offset - stored.padding) != bytes(stored.offset - stored.padding):
            raise FileError(f"the padding at byte {stored.padding} is not zero: it is damaged")
    if mapped is not None and stored.size >= MAPPED:
        if verify and _hash_range(file, stored.offset, stored.size) != stored.sha256:
            raise _damaged(stored)
        array = np.ndarray(stored.shape, stored.dtype, mapped, stored.offset, order=stored.order)
    else:
        array = np.empty(stored.shape, stored.dtype, order=stored.order)
        flat = as_bytes(array)
        file.seek(stored.offset)
        if file.readinto(flat) != stored.size:  # type: ignore[attr-defined]
            raise FileError("it was truncated while it was read")
        if verify and sha256(flat) != stored.sha256:
            raise _damaged(stored)
        array.flags.writeable = stored.size < MAPPED
    if array.dtype.kind == "b" and as_bytes(array).max(initial=0) > 1:
        raise FileError("it has a boolean array with values other than 0 and 1")
    if array.dtype.kind == "U" and array.size and as_bytes(array).view("<u4").max() > 0x10FFFF:
        raise FileError("it has a text array with invalid code points")
    return array


def _hash_range(file: BinaryIO, start: int, size: int) -> str:
    """SHA-256 of a part of the file, in bounded memory."""
    file.seek(start)
    total = hashlib.sha256()
    while size > 0:
        data = file.read(min(size, CHUNK))
        if not data:
            raise FileError("it was truncated while it was read")
        total.update(data)
        size -= len(data)
    return total.hexdigest()


def _damaged(stored: StoredArray) -> FileError:
    return FileError(f"the checksum of the array at byte {stored.offset} is wrong: it is damaged")
