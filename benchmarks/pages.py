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

from benchmarks import _promises, calibrated_peers, few_rows, label_study, task_study
from benchmarks._common import RESULTS
from benchmarks._ranks import summary
from benchmarks._table_methods import ABLATIONS, CLASSIFIERS, REGRESSORS
from benchmarks.raw_tables import SIZES, read_records
from papers.overview import overview

ROOT = Path(__file__).resolve().parent.parent
PLACE = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end of table -->)", flags=re.S)
#: Words for the sizes of the raw tables.
SIZE_WORDS = {"300": "300 training rows", "1500": "1,500 training rows", "all": "All rows (up to 10,000)"}


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown without a title."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


@cache
def results(name: str) -> dict[str, Any]:
    """One result file."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def origin(name: str) -> str:
    """The command, the day and the versions of a result file."""
    m = results(name)["machine"]
    threads = "one thread" if m["threads"] == 1 else f"{m['threads']} threads"
    versions = f"Python {m['python']}, NumPy {m['numpy']}, SciPy {m['scipy']}, scikit-learn {m['scikit-learn']}"
    return f"`{m['command']}` ({m['date'][:10]}, {m['cpu']}, {threads}; {versions})"


def best(values: Sequence[float], lower: bool, digits: int) -> list[str]:
    """Rounded numbers; the best ones are bold."""
    rounded = [round(value, digits) for value in values]
    target = min(rounded) if lower else max(rounded)
    return [f"**{v:.{digits}f}**" if v == target else f"{v:.{digits}f}" for v in rounded]


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


def one_task() -> str:
    """The table of the README: a few methods, two sizes."""
    columns, header = [], []
    for size in ("300", "1500"):
        part = {
            row["method"]: row for row in compared("classification", "LSPC()", list(CLASSIFIERS), size)["methods"]
        }
        header.append(f"{int(size):,} rows, {part['LSPC()']['sets']} tables")
        found = [part[name] for name in README_METHODS]
        ranks = best([row["mean_rank"] for row in found], True, 1)
        losses = best([row.get("ratio", 1.0) for row in found], True, 2)
        errors = best([row["ece"] for row in found], True, 3)
        seconds = best([row["fit"] + row["predict"] for row in found], True, 2)
        columns.append([" / ".join(cells) for cells in zip(ranks, losses, errors, seconds, strict=True)])
    words = "mean rank by log-loss / log-loss relative to LSPC() / calibration error"
    words += " / fit and prediction, seconds a table"
    lines = zip(README_METHODS.values(), *columns, strict=True)
    return table([words, *header], [list(line) for line in lines])


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


# ------------------------------------------------------- calibrated probabilities


def peer_means(keys: Sequence[str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Means over draws, one entry for each set and method, and the names of the sets."""
    found = results("calibrated_peers_svc")["figures"]
    sets = list(dict.fromkeys(f["data"] for f in found))
    out = []
    for name in sets:
        for method in dict.fromkeys(f["method"] for f in found if f["data"] == name):
            runs = [f for f in found if (f["data"], f["method"]) == (name, method)]
            sizes = {k: runs[0][k] for k in ("rows", "test_rows")}
            out.append({"data": name, "method": method, **sizes, **{k: np.mean([f[k] for f in runs]) for k in keys}})
    return out, sets


def svc_ways() -> str:
    """Log-loss, calibration error and seconds of the ways from an SVC to probabilities, by set."""
    found, sets = peer_means(("log_loss", "ece", "seconds"))
    wanted = [calibrated_peers.OURS, *calibrated_peers.CALIBRATIONS, calibrated_peers.LIBSVM]
    methods = [m for m in wanted if any(f["method"] == m for f in found)]
    columns = []
    for name in sets:
        here = {f["method"]: f for f in found if f["data"] == name}
        cells = (
            best([here[m][k] for m in methods], True, d) for k, d in (("log_loss", 3), ("ece", 3), ("seconds", 1))
        )
        columns.append([" / ".join(row) for row in zip(*cells, strict=True)])
    rows = {f["data"]: f["rows"] for f in found}
    header = ["log-loss / calibration error / seconds", *(f"{name}, {rows[name]:,} rows" for name in sets)]
    return table(header, [[m, *cells] for m, cells in zip(methods, zip(*columns, strict=True), strict=True)])


def svc_threads() -> str:
    """Fits in several threads at the same time."""
    lines = [
        [f["method"], f"{f['different']} of {f['fits']}", "0" if f["largest"] <= 1e-9 else f"{f['largest']:.3f}"]
        for f in results("calibrated_peers_svc")["threads"]
    ]
    return table(["method", "fits that differ from a fit alone", "largest difference of a probability"], lines)


# ---------------------------------------------------------------------- labels


def labels() -> str:
    """Every set of the study, with the published values where they are known."""
    found, parts = results("label_study")["figures"], []
    words = ["log-loss", "micro F1", "macro F1", "Hamming loss", "ranking loss", "micro AUC"]
    for name in dict.fromkeys(f["data"] for f in found):
        here = [f for f in found if f["data"] == name]
        columns = [best([f[k] for f in here], k in label_study.LOWER, 3) for k in label_study.FIGURES]
        names = [f"`{f['method']}`" if f["method"] == label_study.OURS else f["method"] for f in here]
        names = [f"the same, `{f['rule']}`" if f["rule"] else words for f, words in zip(here, names, strict=True)]
        cells = zip(names, *columns, (f"{f['seconds']:.0f}" for f in here), strict=True)
        lines = [list(row) for row in cells]
        if name in label_study.PUBLISHED:
            known = label_study.PUBLISHED[name]
            published = [f"{known[k]:.3f}" for k in label_study.FIGURES[1:]]
            lines.append(["*best of the 26 methods of the study, each figure by another*", "", *published, ""])
        title = f"**{name}**, {here[0]['rows']:,} training rows, {here[0]['test_rows']:,} test rows"
        parts.append(f"{title}, {here[0]['labels']} labels\n\n{table(['method', *words, 'seconds'], lines)}")
    return "\n\n".join([origin("label_study"), *parts])


def tasks() -> str:
    """Every set of the study of tasks: known and unseen tasks."""
    found = task_study.tables(results("task_study")["figures"])
    parts = [f"**{title}**\n\n{table(header, lines)}" for title, header, lines in found]
    return "\n\n".join([origin("task_study"), *parts])


# ------------------------------------------------------------------- promises


def few_row_figures() -> str:
    """Broken promises of abstention and coverage of sets with few rows."""
    parts = [origin("few_rows")]
    for kind, first, second in few_rows.KINDS:
        header = ["setting", "rows", "draws", kind, f"{first} / {second}", "without the correction"]
        rows = [
            [f["setting"], str(f["rows"]), str(f["draws"]), str(f["level"]), *few_rows.both(f, first, second)]
            for f in results("few_rows")["figures"]
            if f["kind"] == kind
        ]
        parts.append(table(header, rows))
    return "\n\n".join(parts)


TABLES: dict[str, Callable[[], str]] = {
    "promises": lambda: table(["promise", "tests", "test functions"], _promises.promises()),
    "samples": lambda: table(["sampled", "file", "in a run of the tests"], _promises.samples()),
    "few-rows": few_row_figures,
    **{f"raw-tables-{s}": partial(raw_tables, "classification", "LSPC()", list(CLASSIFIERS), s) for s in SIZES},
    **{
        f"raw-tables-ablations-{s}": partial(raw_tables, "classification", "LSPC()", ["LSPC()", *ABLATIONS], s)
        for s in ("300", "1500")
    },
    "raw-tables-regression": partial(raw_tables, "regression", "LSSVR()", list(REGRESSORS), "300"),
    "readme-one-task": one_task,
    "svc": svc_ways,
    "svc-threads": svc_threads,
    "label-study": labels,
    "task-study": tasks,
    "papers": overview,
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
