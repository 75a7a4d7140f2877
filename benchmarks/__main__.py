"""Run every benchmark in turn; those whose data are absent are skipped."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import (
    abstention,
    calibrated_peers,
    conformal,
    gemm_fraction,
    krylov_scale,
    label_lambdas,
    label_peers,
    label_scale,
    label_tables,
    lspc_figures,
    lssvm_peers,
    lssvm_tables,
    missing_labels,
    multi_task_tables,
    onnx_graphs,
    pruning,
    recalibration,
    search_plans,
    task_peers,
    task_scale,
)
from benchmarks._common import DataAbsent

#: Scripts, some with one of the things that they can do.
SCRIPTS = (
    (gemm_fraction, ""),
    (search_plans, ""),
    (calibrated_peers, ""),
    (recalibration, ""),
    (abstention, ""),
    (conformal, ""),
    (lspc_figures, ""),
    (multi_task_tables, "landmine"),
    (multi_task_tables, "umist"),
    (task_peers, ""),
    (task_scale, ""),
    (lssvm_tables, "school"),
    (lssvm_tables, "similar"),
    (lssvm_tables, "dermatology"),
    (lssvm_peers, ""),
    (krylov_scale, ""),
    (pruning, ""),
    (label_tables, "enron"),
    (label_tables, "toy"),
    (label_tables, "solve"),
    (label_lambdas, ""),
    (label_peers, ""),
    (label_scale, ""),
    (missing_labels, ""),
    (onnx_graphs, ""),
)


def main() -> None:
    p = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    p.add_argument("--quick", action="store_true", help="tiny sizes, to see that they run")
    p.add_argument("--data", metavar="DIR", help="folder of the data sets; else the variable LEASTWISE_DATA")
    p.add_argument("--output", metavar="DIR", type=Path, help="folder for the results")
    args = p.parse_args()
    for script, part in SCRIPTS:
        name = script.__name__.rpartition(".")[2] + (f"_{part}" if part else "")
        print(f"\n=== {name} ===", flush=True)
        argv = [part] * bool(part) + ["--quick"] * args.quick + (["--data", args.data] if args.data else [])
        argv += ["--output", str(args.output / f"{name}.json")] if args.output else []
        try:
            script.main(argv)
        except DataAbsent as error:
            print(f"skipped {name}: {error}")


if __name__ == "__main__":
    main()
