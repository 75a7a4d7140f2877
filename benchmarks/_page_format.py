"""Parts of the tables of the documentation: result files, numbers, Markdown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from benchmarks._common import RESULTS

NONE = "–"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown without a title."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


#: Scripts of older result files, and what runs the same today.
MOVED = {
    "benchmarks.lspc_figures": "papers lspc --parts figures",
    "benchmarks.multi_task_tables": "papers lspc-mt --parts",
    "benchmarks.label_tables": "papers ml-lspc --parts",
    "benchmarks.lssvm_tables": "papers mtls-svm --parts",
}


@cache
def results(name: str) -> dict[str, Any]:
    """One result file."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def origin(*names: str) -> str:
    """The command, the days and the versions of result files; files of the same command and versions share a line."""
    lines: dict[tuple[str, str], list[str]] = {}
    for name in names:
        m = results(name)["machine"]
        pieces = m.get("pieces", ())
        threads = "one thread" if m["threads"] == 1 else f"{m['threads']} threads"
        parts = f", in {len(pieces)} parts" if pieces else ""
        versions = f"Python {m['python']}, NumPy {m['numpy']}, SciPy {m['scipy']}, scikit-learn {m['scikit-learn']}"
        about = f"`{command_today(m['command'])}`", f"{parts}, {m['cpu']}, {threads}; {versions}"
        lines.setdefault(about, []).extend([m["date"][:10], *(piece["date"][:10] for piece in pieces)])
    return "\n".join(f"{command} ({days(dates)}{rest})" for (command, rest), dates in lines.items())


def command_today(command: str) -> str:
    """The command without the file that it wrote, with scripts under their present names.

    >>> command_today("python -m benchmarks.label_tables toy --runs 1 --output toy.json")
    'python -m papers ml-lspc --parts toy --runs 1'
    """
    command = re.sub(r" --output(=| )\S+", "", command)
    for old, new in MOVED.items():
        command = command.replace(old, new)
    return command


def days(dates: Sequence[str]) -> str:
    """One day, or the first and the last.

    >>> days(["2026-11-18", "2026-11-16", "2026-11-17"])
    '2026-11-16 to 2026-11-18'
    """
    return " to ".join(sorted({min(dates), max(dates)}))


def best(values: Sequence[float], lower: bool, digits: int, ranked: Sequence[bool] | None = None) -> list[str]:
    """Rounded numbers; the best of those that are ranked are bold. NaN is a dash."""
    ranked = [True] * len(values) if ranked is None else ranked
    rounded = [round(value, digits) for value in values]
    target = (np.nanmin if lower else np.nanmax)([v for v, r in zip(rounded, ranked, strict=True) if r])
    shown = [NONE if np.isnan(v) else f"{v:.{digits}f}" for v in rounded]
    marks = ["**" if v == target and r else "" for v, r in zip(rounded, ranked, strict=True)]
    return [f"{mark}{text}{mark}" for text, mark in zip(shown, marks, strict=True)]


def mean_of(found: Sequence[Mapping[str, Any]], key: str, **fields: Any) -> float:
    """Mean over the records with these fields; NaN without any."""
    values = [f[key] for f in found if key in f and all(f[k] == v for k, v in fields.items())]
    return float(np.mean(values)) if values else float("nan")


#: Keys of measures, whether lower is better, and digits.
Measures = Mapping[str, tuple[bool, int]]


def by_set(
    found: Sequence[Mapping[str, Any]],
    measures: Measures,
    methods: Mapping[str, str],
    sets: Mapping[str, str],
    unranked: Sequence[str] = (),
    corner: str = "",
) -> str:
    """Methods down, sets across, means over draws; several measures in a cell."""
    ranked = [name not in unranked for name in methods]
    columns = []
    for data in sets:
        cells = []
        for key, (lower, digits) in measures.items():
            values = [mean_of(found, key, data=data, method=m) for m in methods]
            cells.append(best(values, lower, digits, ranked))
        columns.append([" / ".join(row) if set(row) != {NONE} else NONE for row in zip(*cells, strict=True)])
    rows = zip(methods.values(), zip(*columns, strict=True), strict=True)
    return table([corner, *sets.values()], [[name, *cells] for name, cells in rows])


def flat(
    found: Sequence[Mapping[str, Any]], measures: Measures, methods: Mapping[str, str], sets: Mapping[str, str]
) -> str:
    """The same with a column for each measure, named with the set in the first of them and by ``WORDS``."""
    columns, header = [], []
    for data, title in sets.items():
        for k, (key, (lower, digits)) in enumerate(measures.items()):
            columns.append(best([mean_of(found, key, data=data, method=m) for m in methods], lower, digits))
            header.append(f"{title}: {WORDS[key]}" if k == 0 else WORDS[key])
    rows = zip(methods.values(), zip(*columns, strict=True), strict=True)
    return table(["", *header], [[name, *cells] for name, cells in rows])


WORDS = {"log_loss": "log-loss", "auc": "AUC", "f1_micro": "micro F1", "seconds": "seconds"}


def names_of(found: Sequence[Mapping[str, Any]], key: str) -> list[str]:
    """Values of a field in the order in which they occur."""
    return list(dict.fromkeys(f[key] for f in found))


def sized(found: Sequence[Mapping[str, Any]], sets: Sequence[str], words: Callable[[Mapping], str]) -> dict[str, str]:
    """Titles of sets from the first record of each."""
    return {name: words(next(f for f in found if f["data"] == name)) for name in sets}


def spread(values: Sequence[float], digits: int) -> str:
    """Mean and standard deviation; a single value by itself."""
    mean = f"{np.mean(values):.{digits}f}"
    return mean if len(values) < 2 else f"{mean} ± {np.std(values, ddof=1):.{digits}f}"


def short(value: float, digits: int = 3) -> str:
    """A number of significant digits, with separators of thousands and without exponents."""
    if value is None or np.isnan(value):
        return NONE
    places = max(0, digits - 1 - int(np.floor(np.log10(abs(value))))) if value else 0
    return f"{value:,.{places}f}"
