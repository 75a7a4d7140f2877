"""Section 4: quality and time of LSPC and KLR, multi-task, independent and pooled, next to the published tables.

sigma, lambda and gamma are chosen on the paper's grid (252 points) by 5-fold cross-validation with the same folds
for all methods: by the pooled area under the ROC curve (landmine) or the accuracy (umist). The time is that of the
search and a final fit. The published tables have minimum and maximum over the runs, by rows of a task and in the
order of ``SIX``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

from papers._common.data import Array, median_distance
from papers._common.experiments import Job, Report, Settings, option
from papers._common.output import Panel, draw_panels, pictured, table
from papers._common.timing import settled, timed
from papers.lspc_mt.draws import WAYS, Draw, Source, landmine, made, umist
from papers.lspc_mt.methods import DEFAULTS, Fitted, default, klr, lspc, other_loops, textbook_seconds

SIX = ("LSPC-MT", "KLR-MT", "LSPC-STI", "KLR-STI", "LSPC-STC", "KLR-STC")
Table = dict[int, tuple[tuple[float, float], ...]]

#: UMIST, accuracy over 200 runs.
TABLE_1: Table = {
    3: ((0.763, 1.0), (0.812, 1.0), (0.830, 1.0), (0.867, 1.0), (0.754, 1.0), (0.796, 1.0)),
    4: ((0.915, 1.0), (0.921, 1.0), (0.896, 1.0), (0.901, 1.0), (0.837, 1.0), (0.908, 1.0)),
    5: ((0.893, 1.0), (0.925, 1.0), (0.903, 1.0), (0.915, 1.0), (0.909, 1.0), (0.930, 1.0)),
    6: ((0.918, 1.0), (0.907, 1.0), (0.909, 1.0), (0.911, 1.0), (0.912, 1.0), (0.912, 1.0)),
    7: ((0.899, 1.0), (0.915, 1.0), (0.897, 1.0), (0.905, 1.0), (0.897, 1.0), (0.903, 1.0)),
    8: ((0.967, 1.0), (0.962, 1.0), (0.938, 1.0), (0.942, 1.0), (0.979, 1.0), (0.979, 1.0)),
}
#: UMIST, seconds over 200 runs.
TABLE_2: Table = {
    3: ((2.52, 2.67), (8.04, 9.11), (0.322, 0.369), (0.888, 1.20), (0.297, 0.330), (1.26, 1.53)),
    4: ((3.09, 14.5), (12.6, 52.9), (0.411, 1.87), (1.68, 7.86), (0.388, 1.93), (1.86, 8.64)),
    5: ((3.09, 11.8), (12.5, 51.1), (0.409, 1.67), (1.63, 6.88), (0.388, 1.60), (1.91, 7.81)),
    6: ((7.53, 37.6), (26.5, 114), (1.02, 5.42), (3.61, 16.8), (1.01, 5.17), (3.87, 19.2)),
    7: ((7.58, 39.1), (26.9, 151), (1.02, 6.57), (3.58, 22.0), (0.990, 6.65), (3.86, 23.9)),
    8: ((8.47, 48.4), (34.1, 148), (1.17, 7.89), (4.63, 26.3), (1.13, 6.02), (4.82, 22.0)),
}
#: Landmine, mean area under the curve over 10 runs.
TABLE_3: Table = {
    20: ((0.714, 0.830), (0.642, 0.832), (0.543, 0.645), (0.642, 0.706), (0.442, 0.759), (0.532, 0.773)),
    25: ((0.762, 0.839), (0.800, 0.842), (0.587, 0.694), (0.658, 0.750), (0.602, 0.788), (0.598, 0.800)),
    30: ((0.790, 0.837), (0.811, 0.850), (0.646, 0.756), (0.687, 0.789), (0.661, 0.783), (0.713, 0.805)),
    35: ((0.795, 0.838), (0.806, 0.849), (0.627, 0.734), (0.684, 0.771), (0.428, 0.742), (0.663, 0.797)),
}
#: Landmine, seconds over 10 runs.
TABLE_4: Table = {
    20: ((12.0, 36.7), (2840, 8220), (1.86, 6.41), (372, 1110), (1.59, 6.08), (79.9, 260)),
    25: ((17.8, 26.9), (3900, 4910), (3.15, 4.28), (528, 699), (2.49, 4.18), (93.6, 149)),
    30: ((23.6, 78.6), (4770, 12600), (3.50, 9.29), (657, 1800), (3.29, 7.67), (137, 361)),
    35: ((37.2, 98.9), (5960, 18200), (5.03, 14.4), (848, 2490), (4.45, 10.9), (176, 591)),
}

AREA = "mean area under the curve"


@dataclass(frozen=True)
class TaskSettings(Settings):
    """Settings."""

    runs: int = option(10, "random draws", least=1)
    sizes: tuple[int, ...] = option((20, 25, 30, 35), "rows of a task, or images of a person", least=1)
    klr_runs: int = option(10, "draws with KLR")
    klr_scale: str = option("mean", "scale of the losses for KLR's lambda", kind=str, choices=("mean", "sum"))
    klr_points: int = option(42, "timed points of the paper's KLR")
    default_runs: int = option(20, "draws with the library's defaults, at most")
    slow_runs: int = option(5, "draws with norm='coefficients'")

    def ways(self) -> list[str]:
        """The scale, if it is not the default."""
        return [] if self.klr_scale == "mean" else [self.klr_scale]


@dataclass(frozen=True)
class MineSettings(TaskSettings):
    """Settings of the minefields."""

    draw: str = option("up", "how the rows of the rare class are drawn", kind=str, choices=WAYS)

    def ways(self) -> list[str]:
        """The way of drawing and the scale, if they are not the defaults."""
        return ([] if self.draw == "up" else [self.draw]) + super().ways()


def run_landmine(settings: MineSettings, job: Job) -> dict[str, Any]:
    """Tables 3 and 4: 15 minefields and 2 with reversed labels; the remaining rows are for testing."""
    results = compared(landmine(job.data), settings, job, settings.draw)
    return told(results, "Landmine", AREA, (TABLE_3, TABLE_4), job)


def run_umist(settings: TaskSettings, job: Job) -> dict[str, Any]:
    """Tables 1 and 2: 4 tasks, each a woman against a random man; equal numbers of both are left for testing."""
    return told(compared(umist(job.data), settings, job), "UMIST", "accuracy", (TABLE_1, TABLE_2), job)


def run_made(settings: TaskSettings, job: Job) -> dict[str, Any]:
    """Synthetic tasks, as many as there are minefields, and as many reversed."""
    return told(compared(made(17, 2), settings, job), "synthetic tasks", AREA, ({}, {}), job)


def told(results: dict[str, Any], name: str, quality: str, printed: Any, job: Job) -> dict[str, Any]:
    """Report tables, draw figures, and return the results for the file."""
    tell(results, name, quality, printed, job.report)
    draw_curves(results, quality, job)
    return {**results, "runs": columns(results["runs"])}


def compared(source: Source, settings: TaskSettings, job: Job, way: str = "up") -> dict[str, Any]:
    """Run all draws; add paired tests and ratios of times."""
    results: dict[str, Any] = {"runs": [], "textbook": [], "loops": []}
    for kind, record in _records(source, settings, job, way):
        results[kind].append(record)
        job.save(results)
    results["tests"] = comparisons(results["runs"], settings.sizes)
    results["ratios"] = ratios(results, settings.sizes)
    return results


def _records(source: Source, settings: TaskSettings, job: Job, way: str) -> Iterator[tuple[str, dict]]:
    for n in settings.sizes:
        for seed in range(settings.runs):
            draw = source(n, seed, way)
            for found in on_one_draw(draw, seed, settings):
                yield "runs", {"n": n, "run": seed, **found}
            if seed == 0 and settings.klr_points:
                yield "textbook", {"n": n, **textbook_seconds(draw, settings.klr_points, seed, settings.klr_scale)}
                yield "loops", {"n": n, **other_loops(draw, 8)}
        job.report(f"n = {n}: done")


def on_one_draw(draw: Draw, seed: int, settings: TaskSettings) -> Iterator[dict]:
    """Run the methods that are due in this draw."""
    for kind in ("MT", "STI", "STC"):
        yield {"method": f"LSPC-{kind}", **measured(draw, partial(lspc, draw, kind))}
        if seed < settings.klr_runs:
            yield {"method": f"KLR-{kind}", **measured(draw, partial(klr, draw, kind, settings.klr_scale))}
    for label, options in DEFAULTS.items():
        if seed < (settings.slow_runs if "norm" in options else settings.default_runs):
            yield {"method": label, **measured(draw, partial(default, draw, options))}


def measured(draw: Draw, call: Callable[[], Fitted]) -> dict[str, Any]:
    """Quality on the test rows, time, and chosen hyperparameters."""
    run, unsettled = settled(lambda: timed(call))
    point, scores = run.value
    return {
        "score": draw.test(scores()),
        "cpu": run.cpu,
        "wall": run.wall,
        "cv_score": point.score,
        "sigma_in_medians": point.sigma * np.sqrt(2) / median_distance(draw.X),
        "alpha": point.alpha,
        "sharing": point.sharing,
        "unsettled": unsettled,
    }


def of(found: list[dict], n: int, method: str, key: str) -> Array:
    """One measure of one method, by run."""
    return np.array([f[key] for f in found if f["n"] == n and f["method"] == method])


def methods(found: list[dict]) -> list[str]:
    """The methods that were run, in the order of the paper's columns."""
    order = [*SIX, *DEFAULTS]
    return sorted({f["method"] for f in found}, key=order.index)


def columns(found: list[dict]) -> list[dict]:
    """One record for every n and method, with lists over the runs, rounded to five digits."""
    keys = ("score", "cpu", "sigma_in_medians", "alpha", "sharing")
    out = []
    for n, method in dict.fromkeys((f["n"], f["method"]) for f in found):
        lists = {key: [float(f"{v:.5g}") for v in of(found, n, method, key)] for key in keys}
        out.append({"n": n, "method": method, **lists, "unsettled": of(found, n, method, "unsettled").sum()})
    return out


def paired(found: list[dict], n: int, one: str, other: str) -> dict[str, Any] | None:
    """Mean difference and p-value over the common runs."""
    a, b = of(found, n, one, "score"), of(found, n, other, "score")
    count = min(len(a), len(b))
    if count < 3:
        return None
    a, b = a[:count], b[:count]
    p = float(ttest_rel(a, b).pvalue) if np.any(a != b) else 1.0
    return {"n": n, "one": one, "other": other, "runs": count, "difference": float(np.mean(a - b)), "p": p}


def comparisons(found: list[dict], sizes: Sequence[int]) -> list[dict]:
    """LSPC-MT against every other method, at every size."""
    others = [m for m in methods(found) if m != "LSPC-MT"]
    made = [paired(found, n, "LSPC-MT", other) for n in sizes for other in others]
    return [m for m in made if m is not None]


def ratios(results: dict[str, list[dict]], sizes: Sequence[int]) -> list[dict]:
    """Processor seconds of whole searches, and the ratio of KLR to LSPC."""
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
    """Report quality and time next to the published ones, paired tests, and times of other implementations."""
    found = results["runs"]
    shown, sizes = methods(found), list(dict.fromkeys(f["n"] for f in found))
    lines = [score_line(found, n, m, printed[0]) for n in sizes for m in shown]
    report(table(f"{name}: {quality}", ["n", "method", "runs", "mean", "min", "max", "paper's min", "max"], lines))
    lines = [time_line(found, n, m, printed[1]) for n in sizes for m in shown]
    header = ["n", "method", "median", "min", "max", "paper's min", "max"]
    report(table(f"{name}: processor seconds of a search and a final fit", header, lines))
    lines = [
        [c["n"], c["other"], c["runs"], f"{c['difference']:+.4f}", f"{c['p']:.2g}", "yes" if c["p"] < 0.01 else "no"]
        for c in results["tests"]
    ]
    if lines:
        report(
            table("LSPC-MT minus others, paired t-test", ["n", "other", "runs", "difference", "p", "at 1 %"], lines)
        )
    header = list(dict.fromkeys(key for r in results["ratios"] for key in r))
    report(table("Seconds of a whole search", header, [[r.get(k) for k in header] for r in results["ratios"]]))


def score_line(found: list[dict], n: int, method: str, printed: Table) -> list:
    """Our scores, and the published minimum and maximum."""
    v = of(found, n, method, "score")
    return [n, method, len(v), *(f"{x:.3f}" if len(v) else None for x in three(v)), *limits(printed, n, method)]


def time_line(found: list[dict], n: int, method: str, printed: Table) -> list:
    """Our seconds, and the published minimum and maximum."""
    v = of(found, n, method, "cpu")
    return [n, method, float(np.median(v)) if len(v) else None, *three(v)[1:], *limits(printed, n, method)]


def limits(printed: Table, n: int, method: str) -> tuple[float | None, float | None]:
    """The published minimum and maximum of a method at a size, if any."""
    return printed[n][SIX.index(method)] if method in SIX and n in printed else (None, None)


def three(v: Array) -> tuple[float, float, float]:
    """Mean, minimum and maximum."""
    return (float(v.mean()), float(v.min()), float(v.max())) if len(v) else (np.nan, np.nan, np.nan)


def draw_curves(results: dict[str, Any], quality: str, job: Job) -> None:
    """Figures 2 and 3: mean quality and time against the rows of a task."""
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
