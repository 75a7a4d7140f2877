"""The one error of files that cannot be written or read.

JSON as headers have it: no key twice, no number that is none, no number of a thousand digits.

The file as bytes: a preamble, a header in JSON, and arrays, each at a multiple of 64 bytes.

::

    0   8 bytes   magic
    8   uint32    version of the format
    12  uint32    0
    16  uint64    length of the header
    24  uint64    length of the file
    32  32 bytes  SHA-256 of the first 32 bytes and the header
    64            the header, then zeros up to the next multiple of 64
                  the arrays in their order, each followed by such zeros, but for the last

All numbers are little endian. There is one place for everything: what a header says of places must be what the
lengths of the arrays come to. So nothing can overlap, be left out, or lie outside the file.

A model file, opened.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO


class FileError(ValueError):
    """A model that no file can hold, or a file that holds no model: broken, foreign, hostile or too new."""


#: Digits of a whole number, with its sign: 128 bits, as states of random generators have them.
DIGITS = 40


#: Bytes of a header, and lists and objects in it: parsed, each takes a few bytes of text to fifty of memory.
MAX_BYTES = 16 * 2**20
MAX_GROUPS = 10**6


def compose(header: dict[str, Any]) -> bytes:
    """The text of a header: plain ASCII, without blanks."""
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode("ascii")
    if len(text) > MAX_BYTES or _groups(text) > MAX_GROUPS:
        raise FileError(
            f"The header would have {len(text)} bytes and {_groups(text)} brackets, of {MAX_BYTES} and {MAX_GROUPS} "
            "allowed: the model holds too many things that are no arrays, such as names of categories or tasks."
        )
    return text


def _groups(text: bytes) -> int:
    return text.count(b"[") + text.count(b"{")


def parse(text: bytes) -> dict[str, Any]:
    """The header behind a text."""
    if len(text) > MAX_BYTES or _groups(text) > MAX_GROUPS:
        raise FileError(f"its header has more than {MAX_BYTES} bytes or {MAX_GROUPS} brackets")
    try:
        header = json.loads(
            text.decode("ascii"),
            object_pairs_hook=_unique,
            parse_int=_whole,
            parse_float=_finite,
            parse_constant=_no_number,
        )
    except RecursionError:
        raise FileError("its header is nested too deeply") from None
    except FileError:
        raise
    except ValueError as error:
        raise FileError(f"its header is no valid JSON ({error})") from None
    if not isinstance(header, dict):
        raise FileError("its header is no JSON object")
    return header


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise FileError("its header has a key twice")
    return made


def _whole(digits: str) -> int:
    if len(digits) > DIGITS:
        raise FileError(f"its header has a number of {len(digits)} digits")
    return int(digits)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise FileError(f"its header has a number that is not finite, {digits[:20]}")
    return number


def _no_number(name: str) -> float:
    raise FileError(f"its header has {name}, which JSON does not know")


MAGIC = b"\x93LEASTW\n"
FORMAT = 1
ALIGN = 64
PREAMBLE = 64
#: Bytes that are read at a time.
STEP = 2**20


@dataclass(frozen=True)
class Head:
    """What stands before the arrays."""

    version: int
    header: dict[str, Any]
    start: int
    size: int


def aligned(offset: int) -> int:
    """The next multiple of 64."""
    return -(-offset // ALIGN) * ALIGN


def digest(data: Any) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def end_of(start: int, sizes: Iterable[int]) -> int:
    """Where the last array ends, or the header where there is none."""
    end = start
    for size in sizes:
        end = aligned(end) + size
    return end


def write_parts(text: bytes, arrays: list[Any]) -> Iterator[Any]:
    """The bytes of a file, part by part; ``arrays`` are one-dimensional arrays of bytes."""
    end = PREAMBLE + len(text)
    start = MAGIC + struct.pack("<IIQQ", FORMAT, 0, len(text), end_of(end, map(len, arrays)))
    yield start
    yield hashlib.sha256(start + text).digest()
    yield text
    for array in arrays:
        yield bytes(aligned(end) - end)
        yield memoryview(array)
        end = aligned(end) + len(array)


def read_head(file: BinaryIO) -> Head:
    """The header, with its checksum and length checked, of a file that is opened."""
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        raise FileError("it is no regular file")
    size = status.st_size
    start = file.read(PREAMBLE)
    if len(start) < PREAMBLE or start[:8] != MAGIC:
        raise FileError("it is no leastwise model: it does not begin as one does")
    version, zero, length, whole = struct.unpack("<IIQQ", start[8:32])
    if version > FORMAT:
        raise FileError(
            f"it is of format {version}, and this leastwise reads formats up to {FORMAT}: it was written by a newer "
            "one (or is damaged). Upgrade leastwise to read it"
        )
    if version < 1 or zero:
        raise FileError("its first bytes are damaged")
    if whole != size:
        raise FileError(f"it has {size} bytes and should have {whole}: it was cut off, or something was added")
    if length > min(size - PREAMBLE, MAX_BYTES):
        raise FileError(f"its header of {length} bytes is longer than the file, or than {MAX_BYTES} bytes")
    text = file.read(length)
    if hashlib.sha256(start[:32] + text).digest() != start[32:]:
        raise FileError("the checksum of its header is wrong: it is damaged")
    return Head(version, parse(text), PREAMBLE + length, size)


def check_gap(file: BinaryIO, start: int, stop: int) -> None:
    """Between arrays there are zeros, and nothing else."""
    file.seek(start)
    if file.read(stop - start) != bytes(stop - start):
        raise FileError(f"there is something between its arrays, at byte {start}: it is damaged")


def hash_range(file: BinaryIO, start: int, size: int) -> str:
    """SHA-256 of a part of the file, in bounded memory."""
    file.seek(start)
    total = hashlib.sha256()
    while size > 0:
        data = file.read(min(size, STEP))
        if not data:
            raise FileError("it was cut off while it was read")
        total.update(data)
        size -= len(data)
    return total.hexdigest()


Path = str | os.PathLike[str]


@contextmanager
def opened(path: Path) -> Iterator[tuple[BinaryIO, Head]]:
    """The file with its header; errors then say which file it is."""
    name = os.fspath(path)
    if os.path.isdir(name):
        raise IsADirectoryError(f"{name!r} is a folder: give the name of a model file in it.")
    if os.path.exists(name) and not os.path.isfile(name):  # to open a pipe would wait for ever
        raise FileError(f"{name!r} cannot be read: it is no regular file.")
    with open(name, "rb") as file:
        try:
            yield file, read_head(file)
        except FileError as error:
            raise FileError(f"{name!r} cannot be read: {error}.") from error.__cause__
