"""What the numbers mean, and when they do not hold.

The parts of the page, as HTML.
"""

from __future__ import annotations

from html import escape
from typing import Any

from leastwise.report import charts as drawing
from leastwise.report import charts as drawing_maps
from leastwise.report.markup import figures, interval, name, number, percent, simple_table, sortable_table
from leastwise.report.tables import column, table

HELDOUT = (
    "Every row was predicted by a model that had not seen it: leastwise computes what the fit would say of a "
    "training row without that row (or its fold). The width of the kernel, the ridge, the sharing and the "
    "calibration were chosen by these same predictions, which flatters a little. For a figure to publish, write "
    "the report with rows of its own: write_report(model, path, X=X_test, y=y_test)."
)
GIVEN = "The figures are of rows that were given for this report. They are fair only if the model has not seen them."
CLASSES = [
    ("Errors", "Share of rows whose most probable class is not the true one."),
    (
        "Log-loss",
        "Mean of minus the logarithm of the probability of what was true. 0 is perfect; a model that only knows the "
        "class shares has their entropy.",
    ),
    ("Brier score", "Mean squared distance between the probabilities and the truth, from 0 to 2."),
    (
        "ECE",
        "Expected calibration error: how far, on average, what is said lies from how often it is true. What chance "
        "alone would make of it is taken off, so 0 means: no more than chance.",
    ),
    (
        "Intervals",
        "95% intervals. They take rows as independent, or groups of rows where the model was told groups, and know "
        "nothing of data that change.",
    ),
    (
        "At most",
        "An upper bound of the errors among what is decided, true with the confidence beside it for a threshold "
        "that was fixed before. Moving the slider until a bound looks good uses the same rows twice; "
        "Abstaining(max_error=...) chooses a threshold with a guarantee.",
    ),
    (
        "When none of this holds",
        "If new rows come from elsewhere, from another time, or with other class shares, all of these figures may "
        "be wrong. leastwise.estimate_class_prior estimates new class shares; the trust of a row says how far from "
        "the training rows it is.",
    ),
]
VALUES = [
    ("RMSE and MAE", "Root of the mean squared error, and mean of the absolute error, in the unit of the target."),
    ("R²", "Share of the variance that is explained: 1 is perfect, 0 is no better than the mean."),
    (
        "Coverage",
        "How often intervals hold the true value. For held-out rows the width comes from the other half of the "
        "rows; for rows that were given, from predict_interval. The coverage is that of all rows together: it may "
        "be lower in one task, or for large values.",
    ),
    CLASSES[4],
    (
        "When none of this holds",
        "If new rows come from elsewhere, or from another time, all of these figures may be wrong.",
    ),
]


def notes(data: dict[str, Any]) -> list[tuple[str, str]]:
    """Words and what they mean."""
    first = ("Where the figures come from", HELDOUT if data["source"] == "heldout" else GIVEN)
    told = VALUES if data["kind"] == "values" else CLASSES
    if data["kind"] == "labels":
        told = [("Errors", "Share of known labels, over all rows, that are decided wrongly."), *told[1:]]
        several = (
            "Labels of a row",
            "A row is one witness: intervals and bounds of all labels together count rows, not labels.",
        )
        told = [*told[:-1], several, told[-1]]
    return [first, *told]


Section = tuple[str, str, str]


def section(key: str, title: str, *inside: str) -> Section:
    """Key, title and HTML of a part of the page."""
    head = f'<h2 id="{key}-heading">{escape(title)}</h2>'
    return key, title, f'<section id="{key}" aria-labelledby="{key}-heading">{head}{"".join(inside)}</section>'


def figure(svg: str, caption: str, more: str = "") -> str:
    """A picture with what it shows."""
    return f"<figure>{svg}{more}<figcaption>{caption}</figcaption></figure>"


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of words that are not the user's."""
    return f"<p{f' class={chr(34)}{kind}{chr(34)}' if kind else ''}>{text}</p>"


def trained(data: dict[str, Any]) -> Section:
    """What was trained."""
    made = "".join(f"<div><dt>{escape(a)}</dt><dd>{name(b)}</dd></div>" for a, b in data["facts"])
    return section("trained", "What was trained", f'<dl class="facts">{made}</dl>')


def nothing(data: dict[str, Any]) -> Section:
    """Where nothing was held out."""
    told = (
        "This model was fitted with <code>cv=None</code>: no rows were held out, so nothing is known of how good "
        "it is. "
        'Fit it with <code>cv="loo"</code> or a number of folds, or write the report with rows that it has not seen: '
        "<code>write_report(model, path, X=X_test, y=y_test)</code>."
    )
    return section("nothing", "Nothing was held out", paragraph(told))


# ------------------------------------------------------------------------------- selection


def selection(data: dict[str, Any]) -> Section | None:
    """How the parameters were chosen."""
    chosen = data["selection"]
    if chosen is None or not chosen["searched"]:
        return None
    some = f", on {chosen['rows']:,} of {chosen['all_rows']:,} rows" if chosen["rows"] < chosen["all_rows"] else ""
    told = ", ".join(f"{key} {figures(value)}" for key, value in chosen["chosen"].items() if value is not None)
    lead = (
        f"{chosen['points']} points were compared by {escape(chosen['label'].lower())}{some}. Chosen: {escape(told)}."
    )
    made = []
    if chosen["surface"]:
        s = chosen["surface"]
        ends = ("worse", "better")
        scale = drawing.scale_picture(*ends, "h", drawing.LEVELS)
        others = " Each cell is the best over the other parameters." if len(chosen["searched"]) > 2 else ""
        caption = f"{escape(chosen['label'])} over {s['x']} and {s['y']}. The ring is what was chosen.{others}"
        made.append(figure(drawing.surface_picture(chosen, "surface"), caption, scale))
    for k, way in enumerate(chosen["paths"]):
        caption = f"{escape(chosen['label'])} against {escape(way['x'])}, the best over all other parameters."
        made.append(figure(drawing.path_picture(chosen, way, f"path{k}"), caption))
    return section("selection", "How it was chosen", paragraph(lead), f'<div class="figures">{"".join(made)}</div>')


# ----------------------------------------------------------------------------- reliability


def summary(data: dict[str, Any]) -> Section:
    """The four numbers that come first."""
    m = data["measures"]
    labels = data["kind"] == "labels"
    count = f"{m['rows']:,} rows" + (f", {m['entries']:,} known labels" if labels else "")
    where = "that were held out in training" if data["source"] == "heldout" else "that were given for this report"
    cards = [("Errors", "error", percent), ("Log-loss", "log_loss", number), ("Brier score", "brier", number)]
    cards.append(("Calibration error (ECE)", "ece", number))
    made = "".join(f"<div><dt>{title}</dt><dd>{interval(m[key], show)}</dd></div>" for title, key, show in cards)
    lead = paragraph(f"Measured on {count} {where}, with 95% intervals.")
    return section("summary", "In short", lead, f'<dl class="cards">{made}</dl>', _beside(data, cards))


def _beside(data: dict[str, Any], cards: list) -> str:
    """The same figures of held-out rows, where others were given."""
    before = data["heldout_measures"]
    if before is None:
        return ""
    shown = [column("Rows", "text"), *(column(title.split(" (")[0], "text") for title, _, _ in cards)]
    lines = [
        [where, *(show(m[key]["value"]) for _, key, show in cards)]
        for where, m in (("given", data["measures"]), ("held out", before))
    ]
    return simple_table(table("Beside the rows that were held out in training", shown, lines, "lines"), "beside")


def reliability(data: dict[str, Any]) -> Section:
    """Diagrams."""
    known, labels, title = data["reliability"], data["kind"] == "labels", "Can the probabilities be believed?"
    axes = ("Probability that was said", "How often it was so") if labels else ("Confidence", "Accuracy")
    lead = (
        "Of all that is said with a probability of 80%, four in five should be true. On the dashed line what is said "
        "and what is true agree; upright lines are 95% intervals, and the bars below show where the rows lie."
    )
    main = drawing.reliability_picture(known["all"], "reliable", *axes, "Reliability of all rows")
    caption = f"All rows. Calibration error {number(known['all']['ece'])}."
    one = figure(main, caption)
    if len(known["panels"]) == 1 and not labels:
        return section(
            "reliability", title, paragraph(lead), f'<div class="figures">{one}{_second(known["panels"][0])}</div>'
        )
    small = "".join(
        f'<figure class="panel">{drawing.panel(curve, f"panel{k}")}'
        f"<figcaption>{name(curve['name'])} <small>ECE {number(curve['ece'])}</small></figcaption></figure>"
        for k, curve in enumerate(known["panels"])
    )
    more = (
        f" The {len(known['panels'])} with the largest errors; {known['left_out']} more are in the table."
        if known["left_out"]
        else ""
    )
    what = (
        "Label by label: its probability and how often it is there"
        if labels
        else "Class by class: its probability and how often it is the true one"
    )
    note = f'<h3>By {known["by"]}</h3><p class="note">{what}.{more}</p>'
    by = f'<div class="by">{note}<div class="panels">{small}</div></div>'
    return section("reliability", title, paragraph(lead), f'<div class="reliable">{one}{by}</div>')


def _second(curve: dict[str, Any]) -> str:
    """The diagram of the second of two classes."""
    told = f"{name(curve['name'])} against the other class. Calibration error {number(curve['ece'])}."
    axes = ("Probability of the class", "How often it is the true one")
    return figure(drawing.reliability_picture(curve, "second", *axes, f"Reliability of {curve['name']}"), told)


# ------------------------------------------------------------------------- tables and rows


def tables(data: dict[str, Any]) -> list[Section]:
    """Tasks or labels, and classes."""
    made = []
    for known in data["tables"]:
        what = known["what"]
        told = (
            ""
            if what == "classes"
            else "Those with the most errors come first. ECE stands where there are 20 rows or more."
        )
        lead = f'<p>{told} <span class="needs-js">Click a column to sort by it.</span></p>'
        made.append(section(what, what.capitalize(), lead, sortable_table(known, f"{what}-table")))
    return made


def similarity(data: dict[str, Any]) -> Section | None:
    """Which go together."""
    known = data["similarity"]
    if known is None:
        return None
    title, by = f"Which {known['by']}s go together", known["by"]
    if known["note"] is not None:
        sharing = (
            ""
            if known["sharing"] is None
            else f" They share with strength {figures(known['sharing'])} (0 is each alone, 1 is all pooled)."
        )
        told = (
            f"All {known['count']:,} {by}s are tied alike: the model does not tell closer pairs from others.{sharing}"
            if known["note"] == "alike"
            else f"{known['count']:,} {by}s are too many for a map.{sharing}"
        )
        return section("similarity", title, paragraph(told))
    low, high = drawing_maps.range_of(known)
    kind, levels = ("d", drawing_maps.SIGNED) if known["signed"] else ("h", drawing.LEVELS)
    blocks = (
        f" Each cell is the mean of {known['members']} × {known['members']} {by}s." if known["members"] > 1 else ""
    )
    caption = f"{known['count']:,} {by}s in the order of a clustering; rows and columns alike.{blocks}"
    svg = drawing_maps.similarity_picture(known, "similar")
    pairs = simple_table(known["pairs"], "pairs")
    scale = drawing.scale_picture(low, high, kind, levels)
    body = f'<div class="figures">{figure(svg, caption, scale)}<div>{pairs}</div></div>'
    return section("similarity", title, body)


def unsure(data: dict[str, Any]) -> Section:
    """Rows to look at."""
    lead = (
        "Rows are counted from 0, in the order in which they were given. Errors of which the model was sure are "
        "often errors of the labels."
    )
    made = "".join(sortable_table(known, f"unsure{k}") for k, known in enumerate(data["unsure"]))
    wide = len(data["unsure"][0]["columns"]) > 6
    return section(
        "unsure", "Rows to look at", paragraph(lead), f'<div class="{"stack" if wide else "figures"}">{made}</div>'
    )


def familiarity(data: dict[str, Any]) -> Section:
    """How far rows are from the training rows."""
    known, title = data["familiarity"], "How familiar the data are"
    if known is None:
        told = (
            "This model measures no distance to its training rows: it has none with this kernel, without a "
            "calibration, or with <code>extrapolate=True</code>."
        )
        return section("familiarity", title, paragraph(told))
    lead = (
        f"A row counts as familiar where its distance to the nearest centre is at most {figures(known['radius'])}, "
        "what is usual among the training rows. Beyond that the trust falls, and probabilities go to the class "
        "shares."
    )
    names = ("among the training rows", "beyond")
    columns = [column("Rows that lie", "text"), column("Rows", "whole"), column("Errors", "percent", 1)]
    columns += [column("Errors, low", "percent", 1), column("Errors, high", "percent", 1)]
    lines = [
        [where, e["rows"], e["value"], e["low"], e["high"]]
        for where, e in zip(names, known["errors"], strict=True)
        if e
    ]
    shown = simple_table(table("Errors by how familiar rows are", columns, lines, "lines"), "familiar")
    caption = f"{percent(known['among'])} of {known['rows']:,} rows lie among the training rows."
    body = f'<div class="figures">{figure(drawing.trust_picture(known, "trust"), caption)}<div>{shown}</div></div>'
    return section("familiarity", title, paragraph(lead), body)


def meaning(data: dict[str, Any]) -> Section:
    """What the numbers mean."""
    made = "".join(f"<div><dt>{escape(a)}</dt><dd>{escape(b)}</dd></div>" for a, b in notes(data))
    return section("notes", "What the numbers mean", f'<dl class="notes">{made}</dl>')
