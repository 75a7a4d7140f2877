"""Text and numbers of a report: names on one line, rounded numbers, numbers for JSON, and tables as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

import numpy as np

#: Names are cut after this many characters.
MAX_NAME = 120
KINDS = ("classes", "tasks", "labels")
#: Stands for a missing value.
MISSING = "–"


# --------------------------------------------------------------------------------- names


def clean(value: Any, longest: int = MAX_NAME) -> str:
    """Text on one line without control characters and lone surrogates; long text is cut."""
    text = str(value).encode("utf-8", "replace").decode()
    kept = "".join(c if c.isprintable() or c in " \t\n" or ord(c) > 0xFFFF else _replacement(c) for c in text)
    text = " ".join(kept.split()) or "(empty)"
    return text if len(text) <= longest else text[: longest - 1] + "…"


def _replacement(c: str) -> str:
    """Joiners and direction marks, which some languages need, are kept."""
    return c if c in "\u200c\u200d\u200e\u200f\u00ad" else ("\ufffd" if ord(c) < 0xA0 else " ")


class Names:
    """Display names of classes, tasks and labels.

    Parameters
    ----------
    given : mapping, optional
        From values to names, or ``{"classes": ..., "tasks": ..., "labels": ...}`` with such mappings.
    first : {"classes", "tasks", "labels"}
        What a mapping that is not nested refers to.
    """

    def __init__(self, given: Any = None, first: str = "classes") -> None:
        self.given: dict[str, Mapping] = {}
        if given is None:
            return
        if not isinstance(given, Mapping):
            raise TypeError(
                f"names is of type {type(given).__name__} and must be a mapping from classes, tasks or labels to "
                "display names, such as {0: 'healthy', 1: 'ill'} or {'tasks': {7: 'Bergen'}}."
            )
        nested = set(given) <= set(KINDS) and all(isinstance(v, Mapping) for v in given.values())
        self.given = dict(given) if nested else {first: given}

    def all(self, kind: str, values: Any) -> list[str]:
        """The names of values; numbered where two would be the same."""
        names = [self._one(kind, value) for value in values]
        return names if len(set(names)) == len(names) else [f"{name} ({i})" for i, name in enumerate(names)]

    def _one(self, kind: str, value: Any) -> str:
        plain_value = value.item() if isinstance(value, np.generic) else value
        try:
            return clean(self.given.get(kind, {}).get(plain_value, plain_value))
        except TypeError:  # not hashable
            return clean(plain_value)


# ------------------------------------------------------------------------------- numbers


def plain(value: Any) -> Any:
    """A number for JSON: None if it is not finite, otherwise five significant digits."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    return float(f"{float(value):.5g}") if np.isfinite(value) else None


def plain_list(values: Any) -> list:
    """Numbers for JSON."""
    return [plain(v) for v in np.asarray(values).tolist()]


# The functions below round as the script of the page does, so that both show the same text.


def percent(value: float | None, digits: int = 1) -> str:
    """A share as a percentage."""
    return MISSING if value is None else f"{_fixed(100 * value, digits)}%"


def number(value: float | None, digits: int = 3) -> str:
    """A number with a fixed number of decimals."""
    return MISSING if value is None else _fixed(value, digits)


def figures(value: float | None, digits: int = 4) -> str:
    """A number with a fixed number of significant digits."""
    if value is None:
        return MISSING
    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal(Decimal(value))
    return repr(float(rounded)).removesuffix(".0")


def whole(value: int) -> str:
    """A whole number with commas between thousands."""
    return f"{value:,}"


def _fixed(value: float, digits: int) -> str:
    """Exactly rounded, halves away from zero."""
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):f}"


# -------------------------------------------------------------------------------- tables


def column(name: str, kind: str = "number", digits: int = 3, about: str = "") -> dict[str, Any]:
    """A column of a table; kinds are text, whole, number (decimals), figures (significant digits) and percent."""
    return {"name": name, "kind": kind, "digits": digits, "about": about}


def table(caption: str, columns: list[dict[str, Any]], lines: list[list], what: str) -> dict[str, Any]:
    """A table; ``what`` names its lines, in the plural."""
    return {"caption": caption, "columns": columns, "lines": lines, "what": what}


def cell_text(value: Any, column: dict[str, Any]) -> str:
    """The text of a cell."""
    if value is None:
        return MISSING
    kind, digits = column["kind"], column["digits"]
    if kind == "whole":
        return whole(value)
    shown = {"percent": percent, "number": number, "figures": figures}.get(kind)
    return str(value) if shown is None else shown(value, digits)
