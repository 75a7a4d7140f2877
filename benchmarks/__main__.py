"""Run every benchmark in turn, then the papers' experiments; those whose data are not available are skipped."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import (
    abstention,
    array_api,
    calibrated_peers,
    centers,
    conformal,
    dask_tasks,
    discrete,
    few_rows,
    gemm_fraction,
    intervals,
    jobs,
    krylov_scale,
    label_lambdas,
    label_peers,
    label_scale,
    label_study,
    large_n,
    lssvm_peers,
    missing_labels,
    mnist_whole,
    moment_digits,
    noise,
    onnx_graphs,
    plan,
    prediction,
    pruning,
    recalibration,
    search_plans,
    stream_scale,
    task_peers,
    task_scale,
    task_study,
)
from benchmarks._common import RESULTS
from papers import PAPERS, DataAbsent, reproduce

SCRIPTS = (
    gemm_fraction,
    search_plans,
    jobs,
    calibrated_peers,
    recalibration,
    noise,
    abstention,
    few_rows,
    conformal,
    discrete,
    intervals,
    task_peers,
    task_study,
    task_scale,
    dask_tasks,
    lssvm_peers,
    krylov_scale,
    large_n,
    stream_scale,
    mnist_whole,
    moment_digits,
    pruning,
    centers,
    label_lambdas,
    label_peers,
    label_scale,
    label_study,
    missing_labels,
    prediction,
    onnx_graphs,
    array_api,
    plan,
)
#: Experiments of the papers that are timed on two threads; the others on one.
TWO_THREADS = ("solve",)


def main() -> None:
    p = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    p.add_argument("--quick", action="store_true", help="tiny sizes, to see that they run")
    p.add_argument("--data", metavar="DIR", help="folder of the data sets; else the variable LEASTWISE_DATA")
    p.add_argument("--output", metavar="DIR", type=Path, help="folder for the results")
    args = p.parse_args()
    for script in SCRIPTS:
        name = script.__name__.rpartition(".")[2]
        argv = ["--quick"] * args.quick + (["--data", args.data] if args.data else [])
        argv += ["--output", str(args.output / f"{name}.json")] if args.output else []
        unless_absent(name, partial(script.main, argv))
    for paper, about in PAPERS.items():
        for part in (e.name for e in about.experiments if e.role != "stand-in"):
            threads = 2 if part in TWO_THREADS else 1
            options = {"data": args.data, "output": args.output or RESULTS, "quick": args.quick, "threads": threads}
            unless_absent(f"{paper}, {part}", partial(reproduce, paper, parts=[part], **options))


def unless_absent(name: str, call: Callable[[], Any]) -> None:
    print(f"\n=== {name} ===", flush=True)
    try:
        call()
    except DataAbsent as error:
        print(f"skipped {name}: {error}")


if __name__ == "__main__":
    main()
