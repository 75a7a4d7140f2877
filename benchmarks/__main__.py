"""Run every benchmark in turn, then the papers' experiments; those whose data or packages are missing are skipped.

``python -m benchmarks all`` does the same, and then writes the tables of the pages from the results.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import pages, raw_tables
from benchmarks._common import RESULTS
from papers import PAPERS, DataAbsent, reproduce

SCRIPTS = (
    "gemm_fraction",
    "search_plans",
    "jobs",
    "raw_tables",
    "kernel_families",
    "calibrated_peers",
    "recalibration",
    "noise",
    "abstention",
    "few_rows",
    "conformal",
    "discrete",
    "intervals",
    "task_peers",
    "task_study",
    "input_choices",
    "task_scale",
    "dask_tasks",
    "lssvm_peers",
    "krylov_scale",
    "preconditioners",
    "large_n",
    "stream_scale",
    "mnist_whole",
    "moment_digits",
    "pruning",
    "centers",
    "label_lambdas",
    "label_peers",
    "label_scale",
    "label_study",
    "missing_labels",
    "prediction",
    "speed",
    "onnx_graphs",
    "array_api",
    "plan",
)
#: Experiments of the papers that are timed on two threads; the others on one.
TWO_THREADS = ("solve",)


def main() -> None:
    p = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    p.add_argument("what", nargs="?", choices=["all"], help="write the tables of the pages too")
    p.add_argument("--quick", action="store_true", help="tiny sizes, to see that they run")
    p.add_argument("--data", metavar="DIR", help="folder of the data sets; else the variable LEASTWISE_DATA")
    p.add_argument("--output", metavar="DIR", type=Path, help="folder for the results")
    args = p.parse_args()
    if args.what and (args.quick or args.output):
        p.error("all writes the pages from benchmarks/results: --quick and --output are not for it")
    for name in SCRIPTS:
        argv = ["--quick"] * args.quick + (["--data", args.data] if args.data else [])
        argv += ["--output", str(args.output / f"{name}.json")] if args.output else []
        unless_absent(name, partial(run, name, argv))
    unless_absent("raw_tables, regression", partial(raw_tables.main, regression_options(args)))
    for paper, about in PAPERS.items():
        for part in (e.name for e in about.experiments if e.role != "stand-in"):
            threads = 2 if part in TWO_THREADS else 1
            options = {"data": args.data, "output": args.output or RESULTS, "quick": args.quick, "threads": threads}
            unless_absent(f"{paper}, {part}", partial(reproduce, paper, parts=[part], **options))
    if args.what:
        pages.main([])


def regression_options(args: argparse.Namespace) -> list[str]:
    """Options of the raw tables with numeric targets, whose records have a file of their own."""
    folder = args.output or RESULTS
    name = f"raw_tables_regression{'-quick' * args.quick}.jsonl"
    options = ["--regression", "--sizes", "300", "--draws", "1", "--output", str(folder / name)]
    return options + ["--quick"] * args.quick + (["--data", args.data] if args.data else [])


def run(name: str, argv: list[str]) -> None:
    """Run one script; some need extras that are not installed."""
    import_module(f"benchmarks.{name}").main(argv)


def unless_absent(name: str, call: Callable[[], Any]) -> None:
    print(f"\n=== {name} ===", flush=True)
    try:
        call()
    except (DataAbsent, ModuleNotFoundError) as error:
        print(f"skipped {name}: {error}")


if __name__ == "__main__":
    main()
