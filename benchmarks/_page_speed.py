"""Tables of the time of a fit."""

from __future__ import annotations

from typing import Any

from benchmarks._common import RESULTS
from benchmarks._page_format import NONE, names_of, origin, results, short, table


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


def code(name: str) -> str:
    """The call as code; what follows it is text, and so are names of other libraries."""
    call, comma, rest = name.partition("), ")
    call = f"{call})" if comma else call
    return f"`{call}`{', ' if comma else ''}{rest}" if "(" in call else name


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
}
