"""Tables of the architecture page: the package before its parts were composed anew, and now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks._page_format import NONE, origin, results, table

#: Measures of the package and their words.
MEASURES = {
    "top_entries": "entries at the top",
    "files": "files",
    "lines": "lines",
    "code_lines": "lines of code",
    "file_lines_median": "median lines of a file",
    "file_lines_p90": "90th percentile",
    "functions": "functions",
    "function_lines_median": "median lines of a function",
    "function_lines_p90": "90th percentile",
}


def _before_and_now() -> tuple[dict[str, Any], dict[str, Any]]:
    return results("architecture_before"), results("architecture")


def package() -> str:
    """Files, lines and functions."""
    before, now = (figures["package"] for figures in _before_and_now())
    lines = [[words, f"{before[name]:,.0f}", f"{now[name]:,.0f}"] for name, words in MEASURES.items()]
    return f"{origin('architecture_before', 'architecture')}\n\n{table(['measure', 'before', 'now'], lines)}"


def classes() -> str:
    """Classes of the package in the method resolution order, and the depth of the estimators."""
    before, now = ({e["estimator"]: e for e in figures["estimators"]} for figures in _before_and_now())
    lines = [
        [f"`{name}`", *(str(part[name][key]) for key in ("own_classes", "depth") for part in (before, now))]
        for name in now
        if name in before
    ]
    return table(["estimator", "classes before", "now", "depth before", "now"], lines)


def fits() -> str:
    """Files that a fit passes through, and reversals of direction in the class hierarchy."""
    before, now = ({f["fit"]: f for f in figures["fits"]} for figures in _before_and_now())
    lines = [
        [name, *(str(part[name][key]) for key in ("files", "reversals") for part in (before, now))]
        for name in now
        if name in before
    ]
    return table(["fit", "files before", "now", "reversals before", "now"], lines)


def costs() -> str:
    """Processor seconds and memory beside the code before."""
    lines = [
        [
            f["case"],
            f["measure"],
            f"{f['this']:.3g}",
            f"{f['other']:.3g}",
            f"{f['ratio']:.2f}" if f["ratio"] else NONE,
        ]
        for f in results("fit_costs")["figures"]
    ]
    return f"{origin('fit_costs')}\n\n{table(['case', 'measure', 'now', 'before', 'ratio'], lines)}"


TABLES: dict[str, Callable[[], str]] = {
    "architecture-package": package,
    "architecture-classes": classes,
    "architecture-fits": fits,
    "architecture-costs": costs,
}
