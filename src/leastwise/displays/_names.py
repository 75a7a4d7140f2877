"""Names that fit, and tell apart what they name."""

from __future__ import annotations

from collections.abc import Sequence
from re import finditer
from typing import Any

from leastwise.naming import shortened

#: A class is named at the axes with so many letters.
NAME = 26


def words_for(pos_label: Any) -> tuple[str, str]:
    """What the axes of reliability are called where one class is looked at, or the most probable one."""
    if pos_label is None:
        return "Confidence", "Accuracy"
    (name,) = fitting([pos_label], NAME)
    return f"Probability of {name}", f"Share of {name}"


def class_name(label: Any) -> str:
    """A word speaks for itself, a number does not."""
    return label if isinstance(label, str) else f"class {label}"


def fitting(names: Sequence[Any], width: int) -> list[str]:
    """Names of at most so many letters: without words that all have at the front and, if need be, at the end."""
    short = shortened(names, width)
    if not any("…" in name[1:] for name in short):
        return short
    texts = [" ".join(str(name).split()) for name in names]
    end = _common_end(texts)
    return shortened([text[: len(text) - end] + "…" for text in texts] if end else names, width)


def _common_end(texts: list[str]) -> int:
    """How many letters all have in common at the end, in whole words, with something before them."""
    first, *others = texts
    words = (match.start() for match in finditer(r"\b\W+\b", first))
    ends = (first[start:] for start in words if 0 < start <= len(first) - 4)
    shared = (e for e in ends if others and all(t.endswith(e) and len(t) > len(e) for t in others))
    return len(next(shared, ""))
