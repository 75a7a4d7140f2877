"""The parts of the page about quantities."""

from __future__ import annotations

from typing import Any

from leastwise.report import charts as drawing_maps
from leastwise.report.markup import figures, interval, simple_table, sortable_table
from leastwise.report.sections import Section, figure, paragraph, section
from leastwise.report.tables import column, table


def summary(data: dict[str, Any]) -> Section:
    """The numbers that come first."""
    known = data["values"]
    where = "that were held out in training" if data["source"] == "heldout" else "that were given for this report"
    lead = paragraph(f"Measured on {known['rows']:,} rows {where}, with 95% intervals.")
    made = ""
    for j, output in enumerate(known["outputs"]):
        cards = [("RMSE", "rmse"), ("MAE", "mae"), ("R²", "r2")]
        shown = "".join(
            f"<div><dt>{title}</dt><dd>{interval(output[key], figures)}</dd></div>" for title, key in cards
        )
        head = f"<h3>Output {j}</h3>" if len(known["outputs"]) > 1 else ""
        made += f'{head}<dl class="cards">{shown}</dl>'
    return section("summary", "In short", lead, made)


def predictions(data: dict[str, Any]) -> Section:
    """Predicted against true, and how far off."""
    outputs = data["values"]["outputs"]
    made = ""
    for j, output in enumerate(outputs):
        head = f"<h3>Output {j}</h3>" if len(outputs) > 1 else ""
        one = figure(
            drawing_maps.scatter_picture(output, f"scatter{j}"), "On the dashed line prediction and truth agree."
        )
        two = figure(
            drawing_maps.residual_picture(output, f"residual{j}"), "Differences between truth and prediction."
        )
        made += f'{head}<div class="figures">{one}{two}</div>'
    return section("predictions", "Predicted and true", made)


def intervals(data: dict[str, Any]) -> Section:
    """How often intervals hold the truth."""
    outputs, made = data["values"]["outputs"], ""
    columns = [column("Asked for", "percent", 0), column("Found", "percent", 1), column("Mean width", "figures", 4)]
    for j, output in enumerate(outputs):
        which = f" of output {j}" if len(outputs) > 1 else ""
        made += simple_table(
            table(f"Coverage of intervals{which}", columns, output["coverage"], "lines"), f"coverage{j}"
        )
    lead = "An interval of 90% should hold the true value nine times in ten."
    return section("intervals", "Can the intervals be believed?", paragraph(lead), made)


def tasks(data: dict[str, Any]) -> Section | None:
    """A table of the tasks."""
    known = data["values"]["tasks"]
    if known is None:
        return None
    lead = 'Those with the largest errors come first. <span class="needs-js">Click a column to sort by it.</span>'
    return section("tasks", "Tasks", paragraph(lead), sortable_table(known, "tasks-table"))


def worst(data: dict[str, Any]) -> Section:
    """Rows to look at."""
    lead = "Rows are counted from 0, in the order in which they were given."
    return section("unsure", "Rows to look at", paragraph(lead), sortable_table(data["values"]["worst"], "unsure0"))
