"""JSON as headers have it: no key twice, no number that is none, no number of a thousand digits."""

from __future__ import annotations

import json
import math
from typing import Any

from leastwise.files.errors import FileError

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
