"""Shortening of names for tables and lines."""

from __future__ import annotations

from collections.abc import Sequence
from re import finditer
from typing import Any

import numpy as np

Array = np.ndarray

#: Maximum length of a name in tables, and of a line.
NAME, LINE = 18, 118


def shortened(names: Sequence[Any] | Array, width: int) -> list[str]:
    """Names on one line, of at most ``width`` characters.

    If some are too long and all have a common prefix, as few words of it as necessary are removed from all. Names
    that are still too long are cut in the middle.
    """
    texts = [one_line(name) for name in names]
    longest = max(map(len, texts), default=0)
    if longest > width and len(texts) > 1:
        starts = [match.end() for match in finditer(r"[\W_]+", _common_start(texts))]
        starts = [start for start in starts if 4 <= start < min(map(len, texts))]
        if starts:
            start = next((s for s in starts if longest - s < width), starts[-1])
            texts = ["…" + text[start:] for text in texts]
    return [short(text, width) for text in texts]


def _common_start(texts: list[str]) -> str:
    first, last = min(texts), max(texts)  # all others are sorted between the two
    differ = (i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    return first[: next(differ, len(first))]


def one_line(name: Any) -> str:
    """A name without line breaks."""
    return " ".join(str(name).split())


def short(name: Any, width: int) -> str:
    """A name on one line, cut in the middle if too long: names with equal starts often differ at the end."""
    text = one_line(name)
    half = width // 2
    return text if len(text) <= width else f"{text[: width - half - 1]}…{text[-half:]}"
