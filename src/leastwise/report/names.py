"""What things are called on the page: text that cannot break it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

#: Names are cut after so many letters.
LONGEST = 120
KINDS = ("classes", "tasks", "labels")


def clean(value: Any, longest: int = LONGEST) -> str:
    """Text of one line that any page can hold: control characters and halves of characters are replaced."""
    text = str(value).encode("utf-8", "replace").decode()
    text = " ".join(
        "".join(c if c.isprintable() or c in " \t\n" or ord(c) > 0xFFFF else _other(c) for c in text).split()
    )
    text = text or "(empty)"
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _other(c: str) -> str:
    """Joiners and marks of direction stay (they are needed to write some languages), the rest has a stand-in."""
    return c if c in "\u200c\u200d\u200e\u200f\u00ad" else ("\ufffd" if ord(c) < 0xA0 else " ")


class Names:
    """Names as they are given, or by mappings of the user's: of classes, of tasks, of labels.

    Parameters
    ----------
    given : mapping, optional
        From values to names, or ``{"classes": ..., "tasks": ..., "labels": ...}`` with such mappings.
    first : {"classes", "tasks", "labels"}
        What a mapping that is not nested speaks of.
    """

    def __init__(self, given: Any = None, first: str = "classes") -> None:
        self.given: dict[str, Mapping] = {}
        if given is None:
            return
        if not isinstance(given, Mapping):
            raise TypeError(
                f"names is of type {type(given).__name__} and must be a mapping, such as {{0: 'healthy', 1: 'ill'}} "
                "or {'tasks': {7: 'Bergen'}}, from classes, tasks or labels to what they are to be called."
            )
        nested = set(given) <= set(KINDS) and all(isinstance(v, Mapping) for v in given.values())
        self.given = dict(given) if nested else {first: given}

    def all(self, kind: str, values: Any) -> list[str]:
        """What they are called, apart from one another where names would be the same."""
        called = [self._one(kind, value) for value in values]
        return called if len(set(called)) == len(called) else [f"{name} ({i})" for i, name in enumerate(called)]

    def _one(self, kind: str, value: Any) -> str:
        plain = value.item() if isinstance(value, np.generic) else value
        try:
            return clean(self.given.get(kind, {}).get(plain, plain))
        except TypeError:  # not hashable
            return clean(plain)
