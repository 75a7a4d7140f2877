"""Gain of a second calibration on held-out predictions, compared with calibration by refits.

as it comes        the model with its own calibration only
auto               Recalibrated(model): the family chosen on held-out predictions; of tasks also with by_task=True
by folds, ...      CalibratedClassifierCV(model, method=..., ensemble=False, cv=5): five more fits

All have the sigma and alpha (and sharing) that a search of the model on all training rows had chosen. Seconds are CPU
time in addition to one fit with these: the cost of the calibration. "fit" is that fit, "search" the one before.

usps, satimage, letter, digits,
mnist                              about 1,000 training rows; the test parts, 4,000 rows at most
landmine, related                  MultiTaskLSPC: 35 rows of 29 minefields; 40 rows of 10 tasks of make_related_tasks
wine, breast_cancer, iris,
dermatology                        half of the rows
three-class, imbalanced            make_three_class, 300 rows; make_classification with shares of .7, .2, .1, 500 rows
enron                              MultiLabelLSPC, 1,000 rows, 53 labels. CalibratedClassifierCV does not support it:
                                   on the five most frequent labels an LSPC for each is calibrated by folds
school                             MultiTaskLSSVR, 1,500 rows of 139 schools: regression, where nothing is
                                   recalibrated; intervals of 90 % compared with those of a refit that reserves a
                                   fifth of the training rows

mnist, dermatology, three-class, imbalanced and related were not used to develop the rules of "auto": that of one
standard error was developed on usps, satimage, letter and digits; the list of families on these with wine,
breast_cancer and iris. Differences are paired by draw, with 95 % intervals (Student's t over draws). ``--markdown``
prints tables from an existing file.

``--families`` compares the families of maps instead, on the sets with classes: the log-loss of each on test rows
minus that of a temperature, and that of "auto" with a further family minus that of "auto".
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student

from benchmarks._common import RESULTS, capped, parse, parser, print_table, write_json
from benchmarks._recalibration import (
    AUTO,
    FRESH,
    MEASURES,
    PAPER,
    PLAIN,
    SMALL,
    TASKS,
    draw,
    models,
    of_classes,
    of_families,
    of_labels,
    of_values,
)
from papers._common.data import DataAbsent, available

SETS = (*PAPER, "landmine", *SMALL, *FRESH, "enron", "school")
#: Sets in groups: those on which the rules were set, and those that were not used for them.
GROUPS = {
    "usps, satimage, letter, digits": PAPER,
    "wine, iris, breast cancer": tuple(SMALL),
    "mnist, dermatology, two synthetic sets": FRESH,
}
BOOT = 50
WIDTHS = (
    "coverage",
    "width",
    "interval_score",
    "worst_school",
    "schools_below",
    "schools_above",
    "schools",
    "seconds",
)


def run(args: argparse.Namespace) -> Iterator[dict]:
    boot = 10 if args.quick else BOOT
    for seed in range(args.runs):
        classes = [name for name in args.sets if name not in ("enron", "school")]
        for data, split in available(classes, lambda name, s=seed: draw(name, args.data, s, args.quick)):
            for title, model in models(data).items():
                for method, family, figures in of_classes(split, model.set_params(random_state=seed), boot):
                    yield line(data, title, method, seed, figures, family, len(split.y))
            print(f"{split}, run {seed}", flush=True)
        if "enron" in args.sets:
            for data, title, method, family, figures in there(
                lambda s=seed: of_labels(args.data, s, args.quick, boot)
            ):
                yield line(data, title, method, seed, figures, family)
            print(f"enron, run {seed}", flush=True)
        if "school" in args.sets:
            for method, figures in there(lambda s=seed: of_values(args.data, s, args.quick)):
                yield line("school", "MultiTaskLSSVR()", method, seed, figures)
            print(f"school, run {seed}", flush=True)


def run_families(args: argparse.Namespace) -> Iterator[dict]:
    for seed in range(args.runs):
        classes = [name for name in args.sets if name not in (*TASKS, "enron", "school")]
        for data, split in available(classes, lambda name, s=seed: draw(name, args.data, s, args.quick)):
            for title, model in models(data).items():
                for method, family, figures in of_families(split, model.set_params(random_state=seed)):
                    yield line(data, title, method, seed, figures, family, len(split.y))
            print(f"{split}, run {seed}", flush=True)


def line(
    data: str, model: str, method: str, run: int, figures: dict, family: str = "", rows: int | None = None
) -> dict:
    return {"data": data, "model": model, "method": method, "run": run, "family": family, "rows": rows, **figures}


def there(make: Callable[[], Any]) -> list:
    """All items, or none if the data are not available."""
    try:
        return list(make())
    except DataAbsent as error:
        print(f"skipped: {error}", flush=True)
        return []


# ---------------------------------------------------------------------- report


def parts(found: list[dict]) -> Iterator[tuple[str, str, dict[str, list[dict]]]]:
    """Data, model, and the runs of each method in their order."""
    for data, model in dict.fromkeys((f["data"], f["model"]) for f in found):
        here = [f for f in found if (f["data"], f["model"]) == (data, model)]
        methods = dict.fromkeys(f["method"] for f in here)
        yield data, model, {m: sorted((f for f in here if f["method"] == m), key=lambda f: f["run"]) for m in methods}


def difference(runs: list[dict], others: list[dict], key: str) -> tuple[float, float]:
    """Mean difference over draws, and half the width of its 95 % interval."""
    gap = np.array([a[key] - b[key] for a, b in zip(runs, others, strict=True)])
    n = len(gap)
    half = student.ppf(0.975, n - 1) * gap.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
    return float(gap.mean()), float(half)


def mean(runs: list[dict], key: str) -> float:
    return float(np.mean([f[key] for f in runs]))


def chosen(runs: list[dict]) -> str:
    """Families with the number of draws that chose them."""
    names = [f["family"] for f in runs if f["family"]]
    return ", ".join(f"{name} {names.count(name)}" for name in dict.fromkeys(names))


def report(found: list[dict]) -> None:
    for data, model, methods in parts([f for f in found if f["data"] != "school"]):
        lines = []
        for method, runs in methods.items():
            gap, half = difference(runs, methods[PLAIN], "log_loss")
            worst = max(a["log_loss"] - b["log_loss"] for a, b in zip(runs, methods[PLAIN], strict=True))
            figures = [mean(runs, key) for key in (*MEASURES, "seconds", "fit")]
            lines.append([method, chosen(runs), *figures[:3], f"{gap:+.4f} ± {half:.4f}", worst, *figures[3:]])
        header = ["method", "chosen", *MEASURES, "log-loss minus as it comes", "worst draw", "seconds", "fit"]
        print_table(f"{data}, {model}", header, lines)
    for data, model, methods in parts([f for f in found if f["data"] == "school"]):
        print_table(
            f"{data}, {model}", ["method", *WIDTHS], [[m, *(mean(r, k) for k in WIDTHS)] for m, r in methods.items()]
        )


def markdown(found: list[dict], key: str = "log_loss") -> None:
    """A table for the documentation: the value of auto, and the differences of the others from it."""
    classes = [f for f in found if f["data"] != "school"]
    names = [m for m in dict.fromkeys(f["method"] for f in classes) if m != AUTO]
    print(f"\n| {key} | model | auto | chosen | {' | '.join(names)} |")
    print("|" + "---|" * (4 + len(names)))
    for data, model, methods in parts(classes):
        cells = []
        for name in names:
            gap, half = difference(methods[name], methods[AUTO], key) if name in methods else (np.nan, np.nan)
            cells.append(f"{gap:+.3f} ± {half:.3f}" if name in methods else "")
        row = [data, f"`{model}`", f"{mean(methods[AUTO], key):.3f}", chosen(methods[AUTO]), *cells]
        print(f"| {' | '.join(row)} |")


def markdown_times(found: list[dict]) -> None:
    """CPU seconds: a search, a fit, and each calibration in addition to it."""
    classes = [f for f in found if f["data"] != "school"]
    names = [m for m in dict.fromkeys(f["method"] for f in classes) if m != PLAIN]
    print(f"\n| seconds | model | search | fit | {' | '.join(names)} |")
    print("|" + "---|" * (4 + len(names)))
    for data, model, methods in parts(classes):
        cells = [f"{mean(methods[m], 'seconds'):.2f}" if m in methods else "" for m in names]
        print(f"| {data} | `{model}` | {mean(methods[PLAIN], 'search'):.2f} | {mean(methods[PLAIN], 'fit'):.2f} | "
              f"{' | '.join(cells)} |")  # fmt: skip


def markdown_values(found: list[dict]) -> None:
    print(f"\n| school | {' | '.join(key.replace('_', ' ') for key in WIDTHS)} |")
    print("|" + "---|" * (1 + len(WIDTHS)))
    for _, _, methods in parts([f for f in found if f["data"] == "school"]):
        for method, runs in methods.items():
            print(f"| {method} | {' | '.join(f'{mean(runs, key):.3g}' for key in WIDTHS)} |")


def markdown_families(found: list[dict]) -> None:
    """Mean and worst draw of every group of sets: each family minus temperature, each "auto and ..." minus auto."""
    names = [m for m in dict.fromkeys(f["method"] for f in found) if m != "temperature"]
    print(f"\n| log-loss | runs | {' | '.join(names)} |")
    print("|" + "---|" * (2 + len(names)))
    here = list(parts(found))
    for title, sets in {**GROUPS, "all": SETS}.items():
        cells, runs = [], 0
        for name in names:
            pairs = [
                (m[name], m[AUTO if name.startswith(f"{AUTO} and") else "temperature"])
                for d, _, m in here
                if d in sets
            ]
            gaps = [a["log_loss"] - b["log_loss"] for one, other in pairs for a, b in zip(one, other, strict=True)]
            runs = len(gaps)
            half = student.ppf(0.975, runs - 1) * np.std(gaps, ddof=1) / np.sqrt(runs) if runs > 1 else np.nan
            cells.append(f"{np.mean(gaps):+.4f} ± {half:.4f}, worst {max(gaps):+.3f}" if runs else "")
        print(f"| {title} | {runs} | {' | '.join(cells)} |")
    for data, model, methods in here:
        gaps = [f"{difference(methods[m], methods['temperature'], 'log_loss')[0]:+.4f}" for m in names]
        print(f"| {data} | `{model}` | {' | '.join(gaps)} |")


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.recalibration", __doc__, threads=1, runs=5)
    p.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    p.add_argument(
        "--markdown", action="store_true", help="print tables from an existing result file, without running anything"
    )
    p.add_argument("--families", action="store_true", help="compare the families of maps by themselves")
    args = parse(p, argv)
    if args.families and args.output.parent == RESULTS:
        args.output = args.output.with_stem(f"{args.output.stem}-families")
    if args.markdown:
        found = json.loads(args.output.read_text())["runs"]
        if args.families:
            markdown_families(found)
            return
        for key in MEASURES:
            markdown(found, key)
        markdown_times(found)
        markdown_values(found)
        return
    if args.quick:
        args.runs = min(args.runs, 2)
    found = []
    with capped(args):
        for record in run_families(args) if args.families else run(args):
            found.append(record)
            write_json(args, {"runs": found}, say=False)
    if args.families:
        markdown_families(found)
    else:
        report(found)
    write_json(args, {"runs": found})


if __name__ == "__main__":
    main()
