"""The part of the page with the slider: what a threshold would do."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from leastwise.report import charts as drawing
from leastwise.report.markup import NOTHING, figures, name, percent, simple_table
from leastwise.report.sections import Section, figure, paragraph, section
from leastwise.report.tables import column, table

#: Shares of decided rows that the table has a line for.
SHARES = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.3)


def thresholds(data: dict[str, Any]) -> Section:
    """The slider, the curve, a table of some thresholds, and the confusions."""
    known = data["thresholds"]
    unit, place = known["unit"], known["groups"][0]["start"]
    start = "It starts at the threshold of the model." if known["chosen"] else ""
    if known["chosen"] and len({g["start"] for g in known["groups"]}) > 1:
        start = f"Each {known['by']} has a threshold of its own: choose one to start there."
    lead = (
        f"Where the model is sure enough it decides; the other {unit} go to a person. Move the threshold to see how "
        f"many these are, and how many errors are left. {start}"
    )
    picture = drawing.risk_picture(known, "risk", place)
    caption = (
        f"Errors among decided {unit} (line) and their upper bound (dashed, true with "
        f"{percent(known['confidence'], 0)} at each threshold)."
    )
    body = f'<div class="figures">{figure(picture, caption)}<div>{_slider(known)}{_numbers(known, place)}</div></div>'
    below = f'<div class="figures">{some_thresholds(known)}{_confusion(known, place)}</div>'
    return section("thresholds", "When to decide, and when to ask", paragraph(lead), body, below)


def _slider(known: dict[str, Any]) -> str:
    groups = known["groups"]
    names = [f"all {known['by']}s", *(g["name"] for g in groups[1:])]
    options = "".join(f'<option value="{k}">{escape(text)}</option>' for k, text in enumerate(names))
    more = f' <span class="note">(the first {len(groups) - 1})</span>' if known["left_out"] else ""
    choice = (
        f'<p class="field"><label for="part">Show</label>{more} <select id="part">{options}</select></p>'
        if len(groups) > 1
        else ""
    )
    last, place = len(known["stops"]) - 1, groups[0]["start"]
    label = '<label for="threshold">Decide where the model is at least this sure</label>'
    slider = f'<input type="range" id="threshold" min="0" max="{last}" step="1" value="{place}">'
    return f'<div class="slider needs-js">{choice}<p class="field">{label}{slider}</p></div>'


def _numbers(known: dict[str, Any], place: int) -> str:
    """What the threshold does; the script changes the numbers, and a screen reader is told."""
    shown = outcome(known, 0, place)
    titles = {
        "sure": "Threshold",
        "decided": "Decided by the model",
        "person": "Left to a person",
        "error": "Errors among decided",
        "bound": f"At most, with {percent(known['confidence'], 0)}",
    }
    made = "".join(
        f'<div><dt>{title}</dt><dd id="now-{key}">{shown[key]}</dd></div>' for key, title in titles.items()
    )
    return f'<dl class="cards now">{made}</dl><p class="spoken" id="now-spoken" role="status" aria-live="polite"></p>'


def outcome(known: dict[str, Any], group: int, place: int) -> dict[str, str]:
    """The numbers at a stop, as text; the script has the same rules."""
    g = known["groups"][group]
    decided, rows = g["decided"][place], g["rows"]
    return {
        "sure": figures(known["stops"][place]),
        "decided": f"{decided:,} of {rows:,} ({percent(g['coverage'][place])})",
        "person": f"{rows - decided:,}",
        "error": f"{g['wrong'][place]:,} ({percent(g['error'][place])})" if decided else NOTHING,
        "bound": percent(g["bound"][place]),
    }


def some_thresholds(known: dict[str, Any]) -> str:
    """A table of thresholds at which about these shares are decided, and of the one that the model has."""
    g = known["groups"][0]
    coverage = np.array(g["coverage"], dtype=float)
    reached = [np.flatnonzero(coverage >= share - 1e-9) for share in SHARES]
    own = {g["start"]} if known["chosen"] else set()
    places = sorted({int(stops[-1]) for stops in reached if len(stops)} | own)
    columns = [column("Sure at least", "figures", 4), column("Decided", "percent", 1), column("To a person", "whole")]
    columns += [column("Errors", "percent", 1), column("At most", "percent", 1)]
    lines = [
        [known["stops"][k], g["coverage"][k], g["rows"] - g["decided"][k], g["error"][k], g["bound"][k]]
        for k in places
    ]
    return f"<div>{simple_table(table('Some thresholds', columns, lines, 'lines'), 'stops')}</div>"


def _confusion(known: dict[str, Any], place: int) -> str:
    found = known["confusions"]
    if found is None or not found["counts"][0]:
        return ""
    whole = " of all tasks" if known["by"] == "task" and len(known["groups"]) > 1 else ""
    if found["pairs"] is None:
        caption, table = f"Decided {known['unit']}{whole}: truth down, decision across", _square(found, place)
    else:
        caption, table = f"Decided {known['unit']}{whole}: the most frequent errors", _listed(found, place)
    return (
        '<div class="scroll" role="group" tabindex="0" aria-labelledby="confusion-caption">'
        f'<table id="confusion"><caption id="confusion-caption">{caption}</caption>{table}</table></div>'
    )


def _square(found: dict[str, Any], place: int) -> str:
    classes, c = found["classes"], len(found["classes"])
    counts = np.array(found["counts"][place]).reshape(c, c)
    head = "".join(f'<th scope="col" class="n">{name(k)}</th>' for k in classes)
    body = "".join(
        f'<tr><th scope="row">{name(classes[i])}</th>'
        + "".join(f'<td class="{"n right" if i == j else "n"}">{counts[i, j]:,}</td>' for j in range(c))
        + "</tr>"
        for i in range(c)
    )
    return f"<thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody>"


def _listed(found: dict[str, Any], place: int) -> str:
    classes = found["classes"]
    head = '<th scope="col">True</th><th scope="col">Said</th><th scope="col" class="n">Rows</th>'
    body = "".join(
        f'<tr><th scope="row">{name(classes[i])}</th><td>{name(classes[j])}</td><td class="n">{count:,}</td></tr>'
        for (i, j), count in zip(found["pairs"], found["counts"][place], strict=True)
    )
    return f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
