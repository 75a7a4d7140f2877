"""Tables of the page on speed."""

from __future__ import annotations

from typing import Any

from benchmarks._common import RESULTS
from benchmarks._page_format import NONE, names_of, origin, results, short, table
from benchmarks.speed import SITUATIONS


def figures(part: str) -> list[dict[str, Any]]:
    """Records of one part of ``benchmarks.speed``."""
    return [f for f in results("speed")["figures"] if f["part"] == part]


def rows() -> str:
    """Processor seconds by rows; speed and memory of the largest fit."""
    found = figures("rows")
    sizes = sorted({f["rows"] for f in found})
    lines = []
    for name in names_of(found, "name"):
        here = {f["rows"]: f for f in found if f["name"] == name}
        last = here[max(here)]
        lines.append([code(name), *(short(here[n]["seconds"], 2) if n in here else "" for n in sizes)])
        lines[-1] += [f"{100 * last['fraction']:.0f} %" if "fraction" in last else NONE, f"{last['peak_mb']:,.0f}"]
    header = ["estimator", *(f"{n:,} rows" for n in sizes), "of GEMM", "peak MB"]
    return f"{origin('speed')}\n\n{table(header, lines)}"


def counts(part: str) -> str:
    """Processor seconds and memory by tasks or labels."""
    lines = []
    for f in figures(part):
        lines.append([code(f["name"]), f"{f[part]:,}", f"{f['rows']:,}", short(f["seconds"], 2)])
        lines[-1] += [short(1e6 * f["seconds"] / f["rows"], 2), f"{f['peak_mb']:,.0f}"]
    return table(["estimator", part, "rows", "s", "µs a row", "peak MB"], lines)


def switches() -> str:
    """Planned and measured seconds one percent below and above each switch."""
    found, lines = figures("switches"), []
    for name, before, after in dict.fromkeys((f["name"], f["from"], f["to"]) for f in found):
        same = [f for f in found if (f["name"], f["from"], f["to"]) == (name, before, after)]
        low, high = (next(f for f in same if f["side"] == side) for side in ("below", "above"))
        lines.append([code(name), f"{before} to {after}", f"{high['rows']:,}"])
        for key in ("shape_planned", "seconds"):
            known = key in low and key in high
            both = f"{short(low[key], 2)} / {short(high[key], 2)}" if known else NONE
            lines[-1] += [both, f"{high[key] / low[key]:.2f}" if known else NONE]
    return table(["estimator", "switch", "rows", "planned, s", "ratio", "measured, s", "ratio"], lines)


def steps() -> str:
    """Ratios of planned seconds where rows grow by a tenth."""
    lines = [[code(f["name"]), *(f"{f[k]:.2f}" for k in ("least_step", "largest_step"))] for f in figures("steps")]
    return table(["estimator", "smallest ratio", "largest ratio"], lines)


def load() -> str:
    """Wall seconds with the default and with fixed numbers of threads."""
    found, lines = figures("load"), []
    for name in names_of(found, "name"):
        here = {f["situation"]: f for f in found if f["name"] == name}
        cells = []
        for f in (here.get(situation) for situation in SITUATIONS):
            walls = [] if f is None else [short(f["wall"][k], 2) for k in ("default", "1", "2")]
            cells.append(NONE if f is None else f"{' / '.join(walls)}: {f['ratio']:.2f}")
        lines.append([code(name), *cells])
    return table(["default / 1 / 2 threads, s: default / best", *SITUATIONS], lines)


def code(name: str) -> str:
    """The call as code; what follows it is text, and so are names of other libraries."""
    call, comma, rest = name.partition("), ")
    call = f"{call})" if comma else call
    return f"`{call}`{', ' if comma else ''}{rest}" if "(" in call else name


def preconditioners() -> str:
    """Iterations by the choice of pivots."""
    found = results("preconditioners")["figures"]
    lines = []
    for way in names_of(found, "way"):
        here = [f for f in found if f["way"] == way]
        cells = [f"{'' if f['converged'] else '> '}{f['iterations']} ({short(f['seconds'], 2)} s)" for f in here]
        lines.append([way, str(here[0]["rank"]), *cells])
    first = [f for f in found if f["way"] == found[0]["way"]]
    header = ["pivots", "rank", *(f"alpha {f['alpha']:g}, tol {f['tol']:g}" for f in first)]
    return f"{origin('preconditioners')}\n\n{table(header, lines)}"


def every_row() -> str:
    """Time, memory and error of fits with all rows as centres."""
    names = [name for name in ("large_n", "large_n_mnist") if (RESULTS / f"{name}.json").is_file()]
    lines = []
    for f in (f for name in names for f in results(name)["figures"]):
        lines.append([f["set"], f"{f['rows']:,}", short(f["processor"], 2), short(f["seconds"], 2)])
        lines[-1] += [f"{f['peak_mb']:,.0f}", f"{4 * f['rows'] ** 2 / 2e6:,.0f}", str(f["iterations"])]
        lines[-1] += [f"{f['residual']:.0e}", f"{100 * (1 - f['accuracy']):.2f}", f"{f['log_loss']:.3f}"]
    header = ["set", "rows", "processor s", "wall s", "peak MB", "half the kernel, MB", "iterations", "residual"]
    return f"{origin(*names)}\n\n{table([*header, 'error, %', 'log-loss'], lines)}"


TABLES = {
    "every-row": every_row,
    "speed-rows": rows,
    "speed-tasks": lambda: counts("tasks"),
    "speed-labels": lambda: counts("labels"),
    "speed-switches": switches,
    "speed-steps": steps,
    "speed-load": load,
    "preconditioners": preconditioners,
}
