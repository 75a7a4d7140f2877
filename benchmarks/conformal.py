"""Coverage and size of prediction sets with a nominal coverage of 95 and 99 %.

LSPC() lac, aps           predict_set of a model with its own search, from its own held-out probabilities; columns are
                          as they are, so that MAPIE's refits can use the same sigma
  by class                the same, with a level for every class (a class with too few rows is in all sets)
MAPIE split               SplitConformalClassifier on LSPC: fitted on four fifths of the rows, levels from the rest
MAPIE cross               CrossConformalClassifier on LSPC with the chosen sigma and alpha: five refits, levels from
                          the folds. Both need the extra "bench", and are left out without it

Sets are never empty (MAPIE's may be). Coverage is that of all test rows; "worst class" and "worst task" are the
lowest of any class or task. landmine: MultiTaskLSPC on a quarter of all rows of 29 minefields, with a nominal
coverage of 90 and 95 %, with one level for all tasks and with a level for every task that has enough rows (50 and
100).

All times include the search: for MAPIE cross the search that chose sigma and alpha, for MAPIE split the search on its
four fifths, which is shared by both scores. Figures are means over draws of 800 training rows; the number after
coverage and size is the standard deviation between draws. landmine is used in every fourth run only, because its
search takes longer.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks._common import capped, in_proportion, parse, parser, peer_split, print_markdown, write_json
from leastwise import LSPC, MultiTaskLSPC
from papers._common import PLAIN
from papers._common.data import Split, available, load_set
from papers._common.timing import timed

Array = np.ndarray
SETS = ("digits", "usps", "letter", "satimage")
COVERAGES, TASK_COVERAGES = (0.95, 0.99), (0.9, 0.95)
#: Number of training rows.
ROWS = 800
#: landmine is used once in this many runs.
TASK_RUNS = 4


def measured(made: Array, codes: Array, group: Array, seconds: float) -> dict:
    """Coverage, lowest coverage of a group, mean size, and share of sets with a single class."""
    hit = made[np.arange(len(codes)), codes]
    worst = min(hit[group == g].mean() for g in np.unique(group))
    size = made.sum(axis=1)
    figures = {"coverage": hit.mean(), "worst": worst, "size": size.mean(), "single": np.mean(size == 1)}
    return {**{k: float(v) for k, v in figures.items()}, "empty": float(np.mean(size == 0)), "seconds": seconds}


def ours(split: Split, seed: int) -> Iterator[tuple[str, float, dict]]:
    fitted = timed(lambda: LSPC(**PLAIN, random_state=seed).fit(split.X, split.y))
    codes = np.searchsorted(fitted.value.classes_, split.y_test)
    for name, more in (
        ("LSPC() lac", {}),
        ("LSPC() lac by class", {"by_class": True}),
        ("LSPC() aps", {"method": "aps"}),
        ("LSPC() random-aps", {"method": "random-aps", "random_state": seed}),
    ):
        for coverage in COVERAGES:
            made = timed(lambda c=coverage, m=more: fitted.value.predict_set(split.X_test, c, **m))
            yield name, coverage, measured(made.value, codes, codes, fitted.wall + made.wall)
    yield from mapie(split, seed, fitted.value, fitted.wall)


def mapie(split: Split, seed: int, chosen: Any, seconds: float) -> Iterator[tuple[str, float, dict]]:
    """Sets of MAPIE with the same classifier, if MAPIE is installed."""
    try:
        from mapie.classification import CrossConformalClassifier, SplitConformalClassifier
    except ImportError:
        print("MAPIE is not installed: pip install 'leastwise[bench]'", flush=True)
        return
    codes = np.searchsorted(chosen.classes_, split.y_test)
    A, B, a, b = train_test_split(split.X, split.y, test_size=0.2, stratify=split.y, random_state=seed)
    fixed = LSPC(chosen.sigma_, chosen.alpha_, **PLAIN, random_state=seed)
    searched = timed(lambda: LSPC(**PLAIN, random_state=seed).fit(A, a))
    for score in ("lac", "aps"):
        given = {"confidence_level": COVERAGES, "conformity_score": score, "random_state": seed}

        def by_split(given: dict = given) -> Array:
            model = SplitConformalClassifier(searched.value, prefit=True, **given)
            return model.conformalize(B, b).predict_set(split.X_test)[1]

        def by_folds(given: dict = given) -> Array:
            model = CrossConformalClassifier(fixed, cv=5, **given).fit_conformalize(split.X, split.y)
            return model.predict_set(split.X_test)[1]

        for name, call, before in (("split", by_split, searched.wall), ("cross", by_folds, seconds)):
            done = timed(call)
            for k, coverage in enumerate(COVERAGES):
                made = done.value[:, :, k]
                yield f"MAPIE {name} {score}", coverage, measured(made, codes, codes, before + done.wall)


def of_tasks(folder: str | None, seed: int, quick: bool) -> Iterator[tuple[str, float, dict]]:
    data = load_set("landmine", folder)
    task = np.asarray(data.task)
    rng, parts = np.random.default_rng(seed), []
    for t in np.unique(task)[: 5 if quick else None]:
        rows = np.flatnonzero(task == t)
        parts.append(in_proportion(data.y, rows, 40 if quick else len(rows) // 4, rng))
    train = np.concatenate(parts)
    test = np.setdiff1d(np.flatnonzero(np.isin(task, task[train])), train)
    X, y = np.asarray(data.X, dtype=float), np.asarray(data.y, dtype=int)
    fitted = timed(lambda: MultiTaskLSPC(**PLAIN, random_state=seed).fit(X[train], y[train], tasks=task[train]))
    codes = np.searchsorted(fitted.value.classes_, y[test])
    for name, more in (
        ("MultiTaskLSPC() lac", {}),
        ("MultiTaskLSPC() lac by task", {"by_task": True}),
        ("MultiTaskLSPC() lac by class", {"by_class": True}),
    ):
        for coverage in TASK_COVERAGES:
            made = timed(lambda c=coverage, m=more: fitted.value.predict_set(X[test], c, tasks=task[test], **m))
            yield name, coverage, measured(made.value, codes, task[test], fitted.wall + made.wall)


def run(args: argparse.Namespace) -> Iterator[dict]:
    rows = 600 if args.quick else None  # a fifth of them must be more than 100 rows for MAPIE
    for seed in range(args.runs):
        for name, split in available(SETS, lambda n, s=seed: peer_split(n, args.data, s, rows or ROWS)):
            for method, asked, found in ours(split, seed):
                print(f"{split}, {method}, {asked}, run {seed}: {found['coverage']:.3f}", flush=True)
                yield {"data": name, "asked": asked, "rows": len(split.y), "method": method, "run": seed, **found}
        tasks = ["landmine"] if seed % TASK_RUNS == 0 else []
        for name, rest in available(tasks, lambda _, s=seed: [*of_tasks(args.data, s, args.quick)]):
            for method, asked, found in rest:
                yield {"data": name, "asked": asked, "method": method, "run": seed, **found}


def shown(key: str, values: list[float]) -> str:
    """The mean; for coverage and size also the standard deviation between draws."""
    spread = f" ± {np.std(values):.3f}" if key in ("coverage", "size") and len(values) > 1 else ""
    return f"{np.mean(values):.3g}" + spread


def report(found: list[dict]) -> None:
    keys = ("coverage", "worst", "size", "single", "empty", "seconds")
    for data, asked in dict.fromkeys((f["data"], f["asked"]) for f in found):
        here = [f for f in found if (f["data"], f["asked"]) == (data, asked)]
        methods = dict.fromkeys(f["method"] for f in here)
        lines = [[m, *(shown(k, [f[k] for f in here if f["method"] == m]) for k in keys)] for m in methods]
        worst = "worst task" if data == "landmine" else "worst class"
        header = ["method", "coverage", worst, "mean size", "single", "empty", "seconds"]
        draws = len({f["run"] for f in here})
        print_markdown(f"{data}, nominal coverage {asked}, {draws} draws", header, lines)


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.conformal", __doc__, runs=10)
    args = parse(p, argv)
    if args.quick:
        args.runs = 1
    found: list[dict] = []
    with capped(args):
        for record in run(args):
            found.append(record)
            write_json(args, {"figures": found}, say=False)
    report(found)
    write_json(args, {"figures": found})


if __name__ == "__main__":
    main()
