"""Write the tables of the documentation from the result files.

A page has the place of a table between two comments::

    <!-- table: raw-tables-300 -->
    ...
    <!-- end of table -->

``python -m benchmarks.pages`` replaces what is between them, in all pages. ``--check`` changes nothing and fails if a
page is not up to date; ``tests/benchmarks/test_pages.py`` does the same. ``TABLES`` has the functions by name.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import (
    _page_architecture,
    _page_costs,
    _page_methods,
    _page_papers,
    _page_peers,
    _page_speed,
    _promises,
    input_choices,
)
from benchmarks._common import RESULTS
from benchmarks._page_format import NONE, best, results, table
from benchmarks._ranks import heldout_losses, summary
from benchmarks._table_methods import ABLATIONS, CENTERS, CLASSIFIERS, REGRESSORS
from benchmarks.raw_tables import SIZES, read_records
from papers.overview import overview

ROOT = Path(__file__).resolve().parent.parent
PLACE = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end of table -->)", flags=re.S)
#: Words for the sizes of the raw tables.
SIZE_WORDS = {"300": "300 training rows", "1500": "1,500 training rows", "all": "All rows (up to 10,000)"}


# ---------------------------------------------------------------- raw tables


@cache
def raw_records(task: str) -> list[dict[str, Any]]:
    name = "raw_tables_regression.jsonl" if task == "regression" else "raw_tables.jsonl"
    return [record for record in read_records(RESULTS / name) if record["task"] == task]


def compared(task: str, ours: str, methods: Sequence[str], size: str) -> dict[str, Any]:
    """The comparison of one size, with mean seconds for one table."""
    records = [r for r in raw_records(task) if r["size"] == size]
    (part,) = summary(records, methods, ours, SIZES)
    for row in part["methods"]:
        sets = {r["set"] for r in records if r["method"] == row["method"] and r["status"] == "ok"}
        row["fit"], row["predict"] = (row[f"{k}_seconds"] / max(len(sets), 1) for k in ("fit", "predict"))
    part["methods"] = [row for row in part["methods"] if row["sets"]]
    return part


def raw_tables(task: str, ours: str, methods: Sequence[str], size: str) -> str:
    """Ranks, ratios, tests and other measures of one size."""
    part = compared(task, ours, methods, size)
    measures = {k: w for k, w in MEASURES.items() if k in part["methods"][0]}
    loss = "RMSE" if task == "regression" else "log-loss"
    header = ["method", "tables", "mean rank", f"{loss} / {ours}", f"{ours} better : worse", "p (Wilcoxon)"]
    lines = []
    for row in part["methods"]:
        rank = "–" if np.isnan(row["mean_rank"]) else f"{row['mean_rank']:.2f}"
        duel = ["–"] * 3
        if row["method"] != ours:
            duel = [f"{row['ratio']:.2f}", f"{row['better']} : {row['worse']}", p_value(row["p_value"])]
        lines.append([row["method"], str(row["sets"]), rank, *duel])
        lines[-1] += [f"{row[k]:.3f}" for k in measures] + [f"{row[k]:.2f}" for k in ("fit", "predict")]
    title = (
        f"**{SIZE_WORDS[size]}**; {part['blocks']} tables with all ranked methods, Friedman "
        f"p = {part['p_value']:.0e}, critical difference of mean ranks (Nemenyi) {part['critical_difference']:.1f}"
    )
    return f"{title}\n\n{table([*header, *measures.values(), 'fit, s', 'predict, s'], lines)}"


def one_run() -> str:
    """Log-loss and processor seconds of the methods of the README, all from one run with one draw."""
    name = "raw_tables_one_run.jsonl"
    records = [record for record in read_records(RESULTS / name) if record["status"] == "ok"]
    about = next(json.loads(line)["run"] for line in (RESULTS / name).read_text().splitlines() if '"run"' in line)
    methods, header = list(dict.fromkeys(record["method"] for record in records)), ["method"]
    lines = [[method] for method in methods]
    for size, words in (("300", "300 rows"), ("1500", "1,500 rows")):
        mine = [record for record in records if record["size"] == size]
        measured = [method for method in methods if any(record["method"] == method for record in mine)]
        (part,) = summary(mine, measured, "LSPC()", SIZES)
        rows = {row["method"]: row for row in part["methods"]}
        header += [f"{words}, {part['blocks']} tables: mean rank", "log-loss / LSPC()", "seconds", "seconds / LSPC()"]
        ours = mean_seconds(mine, "LSPC()")
        for line, method in zip(lines, methods, strict=True):
            if method not in measured:
                line += [NONE] * 4
                continue
            ratio = "1" if method == "LSPC()" else f"{rows[method]['ratio']:.2f}"
            seconds = mean_seconds(mine, method)
            line += [f"{rows[method]['mean_rank']:.1f}", ratio, f"{seconds:.2f}", f"{seconds / ours:.1f}"]
    return f"`{about['command']}` ({about['date'][:10]}, {about['cpu']}, one thread)\n\n{table(header, lines)}"


def mean_seconds(records: Sequence[dict[str, Any]], method: str) -> float:
    """Processor seconds of a fit and its predictions, for one table."""
    return float(np.mean([r["fit_seconds"] + r["predict_seconds"] for r in records if r["method"] == method]))


def heldout() -> str:
    """Held-out log-loss of ``LSPC()`` divided by that of new rows, by size."""
    lines = []
    for size in SIZES:
        found = heldout_losses(raw_records("classification"), "LSPC()", size)
        ratios = np.array([f.ratio for f in found.values()])
        far = [
            f"{name} {f.ratio:.2f}" + ("" if np.isnan(f.errors) else f" ({f.errors:+.1f})")
            for name, f in sorted(found.items())
            if f.far
        ]
        least = [f"{q:.2f}" for q in (ratios.mean(), np.median(ratios))]
        lines.append([SIZE_WORDS[size], str(len(found)), *least, ", ".join(far) or NONE])
    header = ["", "tables", "mean ratio", "median", "off by more than 25 %: ratio (difference in standard errors)"]
    return table(header, lines)


def center_numbers() -> str:
    """Log-loss and seconds by the number of centres, on the tables with more than 3,000 training rows."""
    methods = ["LSPC()", *(f"LSPC, {name}" for name in CENTERS), "CatBoost"]
    records = [r for r in raw_records("classification") if r["size"] == "all" and r["draw"] == 0]
    found = {(r["set"], r["method"]): r for r in records}
    sets = sorted({name for name, method in found if method == f"LSPC, {next(iter(CENTERS))}"})
    lines = []
    for name in sets:
        rows = [found.get((name, method)) for method in methods]
        cells = [f"{r['log_loss']:.4f} / {r['fit_seconds'] + r['predict_seconds']:.1f}" if r else NONE for r in rows]
        lines.append([name, f"{found[name, 'LSPC()']['rows']:,}", *cells])
    return table(["log-loss / seconds", "rows", *(method.removeprefix("LSPC, ") for method in methods)], lines)


def choices_of_inputs() -> str:
    """Losses of the defaults and of a Gaussian kernel, for tasks, labels and groups."""
    lines = []
    figures = results("input_choices")["figures"]
    for name, draws, ours, other, ratio, duel, *seconds in input_choices.compared(figures):
        losses = best([ours, other], True, 3)
        lines.append([name, str(draws), *losses, f"{ratio:.3f}", duel, *(f"{s:.2f}" for s in seconds)])
    return table(input_choices.HEADER, lines)


def one_task() -> str:
    """The table of the README: a few methods, two sizes."""
    columns, header = [], []
    for size in ("300", "1500"):
        part = {
            row["method"]: row for row in compared("classification", "LSPC()", list(CLASSIFIERS), size)["methods"]
        }
        found = [part[name] for name in README_METHODS]
        columns += [
            best([row["mean_rank"] for row in found], True, 1),
            best([row.get("ratio", 1.0) for row in found], True, 2),
            best([row["fit"] + row["predict"] for row in found], True, 1),
        ]
        sets = f"{int(size):,} rows, {part['LSPC()']['sets']} tables"
        header += [f"{sets}: mean rank", "log-loss, relative", "seconds"]
    lines = zip(README_METHODS.values(), *columns, strict=True)
    return table(["", *header], [list(line) for line in lines])


def alternatives() -> str:
    """Other methods at all sizes: log-loss and seconds relative to ours, accuracy, and tables on which they win."""
    found = {}
    for size in SIZES:
        part = compared("classification", "LSPC()", list(CLASSIFIERS), size)["methods"]
        found[size] = {row["method"]: row for row in part}
    lines = []
    others = ("logistic", "Nystroem + LR", "SVC + temperature", "CatBoost", "LightGBM", "HistGB", "Gaussian process")
    for name in others:
        cells = []
        for part in found.values():
            row, ours = part.get(name), part["LSPC()"]
            cell = NONE if row is None else f"{row['ratio']:.2f}; {row['worse']} of {row['sets']}"
            if row is not None and row["sets"] == ours["sets"]:  # means of the same tables
                seconds = [r["fit"] + r["predict"] for r in (row, ours)]
                cell += f"; {row['accuracy'] - ours['accuracy']:+.3f}; {seconds[0] / seconds[1]:.2g}"
            cells.append(cell)
        lines.append([name, *cells])
    return table(["method", *SIZE_WORDS.values()], lines)


README_METHODS = {
    "LSPC()": "**LSPC()**",
    "CatBoost": "CatBoost, 500 rounds",
    "extra trees + temperature": "extra trees, temperature scaling",
    "Nystroem + LR": "Nystroem + logistic regression, tuned",
    "SVC + temperature": "SVC, tuned, temperature scaling",
    "HistGB": "HistGradientBoosting",
}
MEASURES = {"brier": "Brier", "ece": "ECE", "accuracy": "accuracy", "r2": "R²"}


def p_value(p: float) -> str:
    return "–" if np.isnan(p) else f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"


TABLES: dict[str, Callable[[], str]] = {
    "promises": lambda: table(["promise", "tests", "test functions"], _promises.promises()),
    "samples": lambda: table(["sampled", "file", "in a run of the tests"], _promises.samples()),
    **{f"raw-tables-{s}": partial(raw_tables, "classification", "LSPC()", list(CLASSIFIERS), s) for s in SIZES},
    **{
        f"raw-tables-ablations-{s}": partial(raw_tables, "classification", "LSPC()", ["LSPC()", *ABLATIONS], s)
        for s in ("300", "1500")
    },
    "raw-tables-one-run": one_run,
    "raw-tables-heldout": heldout,
    "raw-tables-centres": center_numbers,
    "input-choices": choices_of_inputs,
    **{
        f"raw-tables-regression-{s}": partial(raw_tables, "regression", "LSSVR()", list(REGRESSORS), s)
        for s in ("300", "1500")
    },
    "readme-one-task": one_task,
    "alternatives": alternatives,
    "papers": overview,
    **_page_peers.TABLES,
    **_page_methods.TABLES,
    **_page_architecture.TABLES,
    **_page_costs.TABLES,
    **_page_papers.TABLES,
    **_page_speed.TABLES,
}


def render(text: str) -> str:
    """The page with new tables."""
    return PLACE.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}\n{found[3]}", text)


def pages() -> list[Path]:
    """Pages with tables of this kind."""
    every = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in every if "_build" not in page.parts and PLACE.search(page.read_text())]


def main(argv: Sequence[str] | None = None) -> None:
    p = argparse.ArgumentParser(prog="python -m benchmarks.pages", description=__doc__.splitlines()[0])
    p.add_argument("--check", action="store_true", help="change nothing; fail if a page is not up to date")
    args = p.parse_args(argv)
    stale = [page for page in pages() if page.read_text() != render(page.read_text())]
    for page in stale:
        print(f"{'not up to date' if args.check else 'written'}: {page.relative_to(ROOT)}")
        if not args.check:
            page.write_text(render(page.read_text()))
    if args.check and stale:
        raise SystemExit("Run python -m benchmarks.pages.")


if __name__ == "__main__":
    main()
