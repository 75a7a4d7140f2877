"""What things are called on the page: text that cannot break it.

Pieces of HTML: text that is escaped, numbers as people read them, tables that a script can sort.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from html import escape
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


#: Lines of a table that are there without a script, and that a script shows at a time.
LINES = 50
#: What stands for a value that is not known.
NOTHING = "–"


def name(text: str) -> str:
    """A name of the user's, whose direction of writing does not spill over."""
    return f"<bdi>{escape(text)}</bdi>"


def percent(value: float | None, digits: int = 1) -> str:
    """A share as people read it."""
    return NOTHING if value is None else f"{_fixed(100 * value, digits)}%"


def figures(value: float | None, digits: int = 4) -> str:
    """A number with so many digits that count."""
    if value is None:
        return NOTHING
    rounded = Context(prec=digits, rounding=ROUND_HALF_UP).create_decimal(Decimal(value))
    return repr(float(rounded)).removesuffix(".0")


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many digits after the point."""
    return NOTHING if value is None else _fixed(value, digits)


def _fixed(value: float, digits: int) -> str:
    """Rounded as a script does: exactly, and halves away from zero."""
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP):f}"


def cell_text(value: Any, column: dict[str, Any]) -> str:
    """What a cell says, as text; the script has the same rules."""
    if value is None:
        return NOTHING
    kind, digits = column["kind"], column["digits"]
    if kind == "whole":
        return f"{value:,}"
    shown = {"percent": percent, "number": number, "figures": figures}.get(kind)
    return str(value) if shown is None else shown(value, digits)


def interval(found: dict[str, Any], show: Any) -> str:
    """A value with the ends of its interval, as HTML."""
    ends = "" if found["low"] is None else f"<small>{show(found['low'])} to {show(found['high'])}</small>"
    return f"<b>{show(found['value'])}</b>{ends}"


def simple_table(made: dict[str, Any], key: str) -> str:
    """A table without controls."""
    return _scrolling(_table(made, key, made["lines"], ""), made["caption"], key)


def sortable_table(made: dict[str, Any], key: str) -> str:
    """A table that a script makes sortable: the first lines are there without it, and say how many there are."""
    lines, what = made["lines"], made["what"]
    more = len(lines) - LINES
    note = (
        f'<p class="note no-js">The first {LINES} of {len(lines):,} {what}; the script shows all.</p>'
        if more > 0
        else ""
    )
    controls = (
        f'<div class="controls needs-js"><label for="{key}-filter">Filter {what}'
        f'<span class="spoken">: {escape(made["caption"])}</span></label>'
        f'<input type="search" id="{key}-filter" autocomplete="off" spellcheck="false">'
        f'<p class="status" id="{key}-status" role="status"></p></div>'
        if len(lines) > 5
        else ""
    )
    pager = (
        f'<nav class="pager needs-js" aria-label="Pages of the table: {escape(made["caption"])}">'
        f'<button type="button" data-page="-1">Back</button><span></span>'
        f'<button type="button" data-page="1">Next</button></nav>'
        if more > 0
        else ""
    )
    shown = _table(made, key, lines[:LINES], f' data-table="{key}"')
    return f'<div class="sortable">{controls}{_scrolling(shown, made["caption"], key)}{pager}{note}</div>'


def _scrolling(table: str, caption: str, key: str) -> str:
    """Wide tables scroll by themselves, with keys too; the page does not."""
    return f'<div class="scroll" role="group" tabindex="0" aria-labelledby="{key}-caption">{table}</div>'


def _table(made: dict[str, Any], key: str, lines: list[list], more: str) -> str:
    head = "".join(_header(column) for column in made["columns"])
    body = "".join(f"<tr>{''.join(_cells(line, made['columns']))}</tr>" for line in lines)
    caption = f'<caption id="{key}-caption">{escape(made["caption"])}</caption>'
    return f"<table{more}>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _header(column: dict[str, Any]) -> str:
    about = f' title="{escape(column["about"])}"' if column["about"] else ""
    kind = "" if column["kind"] == "text" else ' class="n"'
    return f'<th scope="col"{kind}{about}>{name(column["name"])}</th>'


def _cells(line: list, columns: list[dict[str, Any]]) -> list[str]:
    made = []
    for j, (value, column) in enumerate(zip(line, columns, strict=True)):
        text = cell_text(value, column)
        shown = name(text) if column["kind"] == "text" else escape(text)
        kind = "" if column["kind"] == "text" else ' class="n"'
        made.append(f'<th scope="row"{kind}>{shown}</th>' if j == 0 else f"<td{kind}>{shown}</td>")
    return made
