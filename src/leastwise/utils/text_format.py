"""Names that fit into a line."""

from __future__ import annotations

from collections.abc import Sequence
from re import finditer
from typing import Any

import numpy as np

Array = np.ndarray

#: So many letters of a name are printed in tables, and so many in a line.
NAME, LINE = 18, 118


def shortened(names: Sequence[Any] | Array, width: int) -> list[str]:
    """Names on one line, of at most so many letters.

    Where some are too long and all begin alike, they lose whole words at the front, as few as will do. What is still
    too long loses its middle.
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
    first, last = min(texts), max(texts)  # all others are between the two
    differ = (i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    return first[: next(differ, len(first))]


def one_line(name: Any) -> str:
    """A name without breaks of the line."""
    return " ".join(str(name).split())


def short(name: Any, width: int) -> str:
    """A name on one line. Long ones lose their middle: names that begin alike often end differently."""
    text = one_line(name)
    half = width // 2
    return text if len(text) <= width else f"{text[: width - half - 1]}…{text[-half:]}"
