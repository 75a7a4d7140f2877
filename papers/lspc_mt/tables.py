"""Tables and pictures: ours beside the paper's, and paired tests."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

from papers._common.data import Array
from papers._common.experiments import Job, Report
from papers._common.pictures import Panel, draw_panels, pictured
from papers._common.text import table
from papers.lspc_mt.methods import DEFAULTS
from papers.lspc_mt.printed import SIX, Table


def of(found: list[dict], n: int, method: str, key: str) -> Array:
    """One column of one method, run by run."""
    return np.array([f[key] for f in found if f["n"] == n and f["method"] == method])


def methods(found: list[dict]) -> list[str]:
    """Those that were run, in the order of the paper's columns."""
    order = [*SIX, *DEFAULTS]
    return sorted({f["method"] for f in found}, key=order.index)


def columns(found: list[dict]) -> list[dict]:
    """One record for every n and method, with lists over the runs, to five digits."""
    keys = ("score", "cpu", "sigma_in_medians", "alpha", "sharing")
    out = []
    for n, method in dict.fromkeys((f["n"], f["method"]) for f in found):
        lists = {key: [float(f"{v:.5g}") for v in of(found, n, method, key)] for key in keys}
        out.append({"n": n, "method": method, **lists, "unsettled": of(found, n, method, "unsettled").sum()})
    return out


def paired(found: list[dict], n: int, one: str, other: str) -> dict[str, Any] | None:
    """Mean difference and p-value over the runs that both have."""
    a, b = of(found, n, one, "score"), of(found, n, other, "score")
    count = min(len(a), len(b))
    if count < 3:
        return None
    a, b = a[:count], b[:count]
    p = float(ttest_rel(a, b).pvalue) if np.any(a != b) else 1.0
    return {"n": n, "one": one, "other": other, "runs": count, "difference": float(np.mean(a - b)), "p": p}


def comparisons(found: list[dict], sizes: Sequence[int]) -> list[dict]:
    """LSPC-MT with every other method, at every size."""
    others = [m for m in methods(found) if m != "LSPC-MT"]
    made = [paired(found, n, "LSPC-MT", other) for n in sizes for other in others]
    return [m for m in made if m is not None]


def ratios(results: dict[str, list[dict]], sizes: Sequence[int]) -> list[dict]:
    """Processor seconds of whole searches, and KLR's over LSPC's."""
    out = []
    for n in sizes:
        lspc_mt, klr_mt = (of(results["runs"], n, m, "cpu") for m in ("LSPC-MT", "KLR-MT"))
        record: dict[str, Any] = {"n": n, "LSPC-MT": np.median(lspc_mt)}
        if len(klr_mt):
            record["KLR-MT here"] = np.median(klr_mt)
            record["here / LSPC"] = record["KLR-MT here"] / record["LSPC-MT"]
        for book in (b for b in results["textbook"] if b["n"] == n):
            record.update({"KLR-MT paper": book["search"], "+-": book["search_error"], "a fit": book["fit"]})
            record["paper / LSPC"] = book["search"] / record["LSPC-MT"]
        for loop in (b for b in results["loops"] if b["n"] == n):
            record.update({"by spectra": loop["spectra"], "by fits": loop["fits"]})
        out.append(record)
    return out


def tell(results: dict[str, Any], name: str, quality: str, printed: tuple[Table, Table], report: Report) -> None:
    """Quality and time beside the paper's, the paired tests, and what a search takes in other ways."""
    found = results["runs"]
    shown, sizes = methods(found), list(dict.fromkeys(f["n"] for f in found))
    lines = [score_line(found, n, m, printed[0]) for n in sizes for m in shown]
    report(table(f"{name}: {quality}", ["n", "method", "runs", "mean", "min", "max", "paper's min", "max"], lines))
    lines = [time_line(found, n, m, printed[1]) for n in sizes for m in shown]
    header = ["n", "method", "median", "min", "max", "paper's min", "max"]
    report(table(f"{name}: processor seconds of a search and a last fit", header, lines))
    lines = [
        [c["n"], c["other"], c["runs"], f"{c['difference']:+.4f}", f"{c['p']:.2g}", "yes" if c["p"] < 0.01 else "no"]
        for c in results["tests"]
    ]
    if lines:
        report(
            table("LSPC-MT less others, paired t-test", ["n", "other", "runs", "difference", "p", "at 1 %"], lines)
        )
    header = list(dict.fromkeys(key for r in results["ratios"] for key in r))
    report(table("Seconds of a whole search", header, [[r.get(k) for k in header] for r in results["ratios"]]))


def score_line(found: list[dict], n: int, method: str, printed: Table) -> list:
    """Ours and the paper's least and greatest."""
    v = of(found, n, method, "score")
    return [n, method, len(v), *(f"{x:.3f}" if len(v) else None for x in three(v)), *limits(printed, n, method)]


def time_line(found: list[dict], n: int, method: str, printed: Table) -> list:
    """The same for seconds."""
    v = of(found, n, method, "cpu")
    return [n, method, float(np.median(v)) if len(v) else None, *three(v)[1:], *limits(printed, n, method)]


def limits(printed: Table, n: int, method: str) -> tuple[float | None, float | None]:
    """What the paper has for a method and a size, if anything."""
    return printed[n][SIX.index(method)] if method in SIX and n in printed else (None, None)


def three(v: Array) -> tuple[float, float, float]:
    """Mean, least and greatest."""
    return (float(v.mean()), float(v.min()), float(v.max())) if len(v) else (np.nan, np.nan, np.nan)


def draw(results: dict[str, Any], quality: str, job: Job) -> None:
    """Figures 2 and 3: means of quality and of time as the rows of a task grow."""
    found = results["runs"]
    shown, sizes = [m for m in methods(found) if m in SIX], list(dict.fromkeys(f["n"] for f in found))
    values = {m: [of(found, n, m, "score") for n in sizes] for m in shown}
    times = {m: [of(found, n, m, "cpu") for n in sizes] for m in shown}
    mean = partial(map, lambda v: float(np.mean(v)) if len(v) else np.nan)
    left = {m: (sizes, list(mean(v)), None) for m, v in values.items()}
    right = {m: (sizes, list(mean(v)), None) for m, v in times.items()}
    panels = [Panel("", "rows of a task", quality, left)]
    panels += [Panel("", "rows of a task", "processor seconds", right, log=("y",))]
    pictured(job.picture("curves"), job.report, partial(draw_panels, rows=[panels]))
