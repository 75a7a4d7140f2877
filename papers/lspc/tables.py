"""Tables and pictures of figures 7 and 8."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from papers._common.experiments import Job, Report
from papers._common.pictures import Panel, draw_panels, pictured
from papers._common.text import spread, table
from papers.lspc.methods import LABELS, TEXTBOOK

#: Section 3.2. The paper draws curves, and prints no numbers.
SAYS = "the errors of the three alike; LSPC trains faster than KLR by two orders of magnitude"
KEYS = ("figure", "data", "n", "c")


def summarised(found: list[dict]) -> list[dict]:
    """One record for each point: errors as mean and deviation, times as median over runs, ratios of times."""
    out = []
    for key in dict.fromkeys(tuple(f[k] for k in KEYS) for f in found):
        here = [f for f in found if tuple(f[k] for k in KEYS) == key]
        record: dict[str, Any] = dict(zip(KEYS, key, strict=True))
        for m in dict.fromkeys(f["method"] for f in here):
            runs = [f for f in here if f["method"] == m]
            times = {clock: float(np.median([f[clock] for f in runs])) for clock in ("cpu", "wall")}
            record[m] = {"errors": [f["error"] for f in runs], **times}
        for clock in ("cpu", "wall"):
            lspc = record["LSPC"][clock]
            record[f"ratio_{clock}"] = record[TEXTBOOK][clock] / lspc
            record[f"ratio_here_{clock}"] = record["KLR here"][clock] / lspc
        out.append(record)
    return out


def error_tables(summary: list[dict], clock: str, report: Report) -> None:
    """Error and time by one of the two clocks, and what the paper says of them."""
    kind = "processor seconds" if clock == "cpu" else "seconds by the clock"
    for figure in dict.fromkeys(r["figure"] for r in summary):
        here = [r for r in summary if r["figure"] == figure]
        header = ["data", "n", "c", *(f"% {m}" for m in LABELS), *(f"s {m}" for m in LABELS), "KLR/LSPC", "here/LSPC"]
        title = f"Figure {figure}: test error in percent and {kind} of one fit"
        report(table(title, header, [_line(r, clock) for r in here]))
        ratios = [r[f"ratio_{clock}"] for r in here]
        report(f"paper: {SAYS}. Here KLR / LSPC is {min(ratios):.3g} to {max(ratios):.3g}.")


def _line(r: dict, clock: str) -> list:
    errors = [spread(r[m]["errors"], 1) for m in LABELS]
    times = [r[m][clock] for m in LABELS]
    return [r["data"], r["n"], r["c"], *errors, *times, r[f"ratio_{clock}"], r[f"ratio_here_{clock}"]]


def draw_figures(summary: list[dict], job: Job) -> None:
    """Error on the left, processor time on the right, one data set a row."""
    for figure in dict.fromkeys(r["figure"] for r in summary):
        here = [r for r in summary if r["figure"] == figure]
        rows = [_panels([r for r in here if r["data"] == name]) for name in dict.fromkeys(r["data"] for r in here)]
        pictured(job.picture(f"figure{figure}"), job.report, partial(draw_panels, rows=rows))


def _panels(records: list[dict]) -> list[Panel]:
    name, axis = records[0]["data"], "n" if records[0]["figure"] == 7 else "c"
    at = [r[axis] for r in records]
    errors = {m: [r[m]["errors"] for r in records] for m in LABELS}
    left = {m: (at, [np.mean(e) for e in v], [np.std(e) for e in v]) for m, v in errors.items()}
    right = {m: (at, [r[m]["cpu"] for r in records], None) for m in LABELS}
    return [
        Panel(name, axis, "test error (%)", left, from_zero=True),
        Panel(name, axis, "processor time of a fit (s)", right, log=("y",)),
    ]
