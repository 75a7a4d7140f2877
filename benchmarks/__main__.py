"""Run benchmarks one after another, most important first, and write the tables of the pages from the results.

    python -m benchmarks all --data DIR
    python -m benchmarks calibrated_peers task_study
    python -m benchmarks --list

Names are those of the result files; ``--list`` shows them with their commands and about how many minutes of one
processor they take. A result is written to ``benchmarks/results/unfinished`` and replaces the published one when it
is complete. An interrupted ``all`` continues: what is complete is not repeated until everything is (``--again``
starts anew). Named results are measured in any case, unless ``--continue`` is given. Benchmarks whose data or
packages are missing are skipped; one that fails does not stop the others.
"""

from __future__ import annotations

import argparse
import json
import shlex
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from benchmarks import pages
from benchmarks._common import RESULTS
from papers import DataAbsent
from papers.__main__ import main as run_paper


@dataclass(frozen=True)
class Run:
    """A result file, the minutes of one processor that it takes, and its command."""

    result: str
    minutes: float
    command: str

    @property
    def script(self) -> str:
        """``papers``, or the name of the module."""
        return self.command.split()[0]


#: Experiments of the papers; their result files have the names that the experiments give them.
PAPERS = (
    Run("label_tables_enron", 25, "papers ml-lspc --parts enron --more-runs 10"),
    Run("lssvm_tables_school", 25, "papers mtls-svm --parts school --slow"),
    Run("lssvm_tables_dermatology", 5, "papers mtls-svm --parts dermatology"),
    Run("lssvm_tables_similar", 5, "papers mtls-svm --parts similar"),
    Run("multi_task_tables_landmine", 15, "papers lspc-mt --parts landmine"),
    Run(
        "multi_task_tables_umist",
        30,
        "papers lspc-mt --parts umist --klr-runs 40 --default-runs 20 --slow-runs 20",
    ),
    Run(
        "multi_task_tables_landmine_sum",
        20,
        "papers lspc-mt --parts landmine --klr-scale sum --default-runs 0 --slow-runs 0",
    ),
    *(
        Run(
            f"multi_task_tables_landmine_{way}",
            1,
            f"papers lspc-mt --parts landmine --draw {way} --sizes 20 35 --klr-runs 0 --default-runs 0 "
            "--slow-runs 0 --klr-points 0",
        )
        for way in ("nearest", "come", "equal")
    ),
    Run("lspc_figures", 50, "papers lspc --parts figures --runs 3 --repeats 3"),
    Run("label_tables_toy", 15, "papers ml-lspc --parts toy --runs 1 --labels 10 20 50 100"),
    Run("label_tables_solve", 5, "papers ml-lspc --parts solve"),
)
#: What the pages show, most important first, and then what they do not show.
RUNS = (
    Run("raw_tables", 150, "raw_tables --sizes 300 1500"),
    Run("raw_tables_all", 60, "raw_tables --sizes all --draws 1"),
    Run("calibrated_peers", 10, "calibrated_peers --threads 1"),
    Run("label_peers", 5, "label_peers --threads 1"),
    Run("task_peers", 10, "task_peers --runs 3 --threads 1"),
    Run("task_study", 5, "task_study --runs 3"),
    Run("lssvm_peers", 8, "lssvm_peers --threads 1 --raw"),
    Run("raw_tables_regression", 15, "raw_tables --regression --sizes 300 1500 --draws 3"),
    Run("label_study", 10, "label_study --threads 1"),
    Run("missing_labels", 8, "missing_labels --threads 1"),
    Run("input_choices", 6, "input_choices"),
    Run("recalibration", 30, "recalibration --threads 1"),
    Run("recalibration-families", 25, "recalibration --families --threads 1"),
    Run("few_rows", 60, "few_rows"),
    Run("abstention", 10, "abstention --threads 1"),
    Run("conformal", 25, "conformal --threads 1"),
    Run(
        "noise",
        15,
        "noise --parts noise weak --models LSPC LSSVC MultiTaskLSPC MultiLabelLSPC --sizes 20 30 100 --runs 4",
    ),
    Run("noise_klr", 5, "noise --parts noise --models KernelLogisticRegression --sizes 20 30 100 --runs 2"),
    Run("intervals", 30, "intervals"),
    Run("adaptive_intervals", 3, "adaptive_intervals"),
    Run("discrete", 2, "discrete"),
    Run("speed", 30, "speed --parts rows tasks labels"),
    Run("plan", 5, "plan"),
    Run("prediction", 5, "prediction"),
    Run("onnx_graphs", 5, "onnx_graphs"),
    Run("large_n", 10, "large_n --threads 1 --sizes 10000 20000"),
    Run("stream_scale", 10, "stream_scale --threads 1"),
    Run("mnist_whole", 25, "mnist_whole --threads 1"),
    Run("task_scale", 5, "task_scale --parts tasks-at-fixed-rows quality pieces --threads 1"),
    Run("task_scale_rows", 10, "task_scale --parts rows-per-task-fixed --dtypes float64 --threads 1"),
    Run("dask_tasks", 10, "dask_tasks"),
    Run("label_scale", 5, "label_scale --threads 1"),
    Run("krylov_scale", 5, "krylov_scale --threads 1"),
    Run("jobs", 5, "jobs"),
    Run("moment_digits", 2, "moment_digits --threads 1"),
    Run("search_plans", 12, "search_plans --threads 1 --runs 1"),
    Run("centers", 15, "centers --sets usps letter satimage mnist digits"),
    Run("centers_made", 10, "centers --sets cover rare friedman skewed school landmine"),
    Run("pruning", 8, "pruning --threads 1"),
    Run("first_report", 2, "first_report"),
    Run("label_lambdas", 10, "label_lambdas"),
    *PAPERS,
    Run("kernel_families", 15, "kernel_families"),
    Run("gemm_fraction", 2, "gemm_fraction"),
    Run("preconditioners", 2, "preconditioners"),
    Run("array_api", 3, "array_api --threads 1 --repeats 1"),
)
#: Files with a line for each fit, in which the fits of earlier runs are kept.
LINES = dict.fromkeys(("raw_tables", "raw_tables_all"), "raw_tables.jsonl")
LINES |= {"raw_tables_regression": "raw_tables_regression.jsonl"}
UNFINISHED = "unfinished"


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    p = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    p.add_argument("names", nargs="*", metavar="NAME", help="results to measure, or all")
    p.add_argument("--list", action="store_true", help="show names, minutes and commands")
    p.add_argument("--quick", action="store_true", help="tiny sizes, to see that they run; needs --output")
    p.add_argument("--data", metavar="DIR", help="folder of the data sets; else the variable LEASTWISE_DATA")
    p.add_argument("--output", metavar="DIR", type=Path, help="another folder for the results; no pages are written")
    p.add_argument("--again", action="store_true", help="all: do not skip what an interrupted run has completed")
    p.add_argument("--continue", action="store_true", dest="skip", help="names: skip what is complete already")
    args = p.parse_args(argv)
    known = {run.result: run for run in RUNS}
    if unknown := [name for name in args.names if name not in (*known, "all")]:
        p.error(f"unknown: {', '.join(unknown)}; known: all, {', '.join(known)}")
    if not args.names and not args.list:
        p.error("give names, or all; --list shows them")
    if args.quick and not args.output:
        p.error("--quick needs --output: its results are not for the pages")
    args.skip = not args.again if "all" in args.names else args.skip
    args.runs = RUNS if "all" in args.names else [known[name] for name in args.names]
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Run; 1 if something failed."""
    args = arguments(argv)
    if args.list:
        for run in RUNS:
            options = run.command.removeprefix(run.script)
            print(f"{run.result:32s} {run.minutes:5g} min  python -m {module(run)}{options}")
        return 0
    folder = args.output or RESULTS
    note = folder / UNFINISHED / "done.json"
    done = set(json.loads(note.read_text())) if args.skip and note.is_file() else set()
    said: dict[str, str] = {}
    for run in args.runs:
        print(f"\n=== {run.result} ===", flush=True)
        said[run.result] = "done before" if run.result in done else complete(run, folder, args)
        if said[run.result] == "done":
            done.add(run.result)
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(json.dumps(sorted(done)))
    failed = [f"{name}: {word}" for name, word in said.items() if not word.startswith("done")]
    if not failed and args.runs is RUNS:
        note.unlink(missing_ok=True)  # the next call starts anew
    if not args.output:
        pages.main([])
    print("\n".join([f"{len(said) - len(failed)} of {len(said)} complete", *failed]))
    return int(any("failed" in line for line in failed))


def complete(run: Run, folder: Path, args: argparse.Namespace) -> str:
    """Run it, and move its files to the folder of the results; what to say of it."""
    try:
        measure(run, folder, args)
    except (DataAbsent, ModuleNotFoundError) as error:
        return f"skipped, {error}"
    except (Exception, SystemExit):
        traceback.print_exc()
        return "failed, see above"
    written = [f"{run.result}{ending}" for ending in (".json", "-quick.json", "_figure*.png")]
    for file in (file for name in written for file in (folder / UNFINISHED).glob(name)):
        file.replace(folder / file.name.replace("-quick", ""))
    return "done"


def measure(run: Run, folder: Path, args: argparse.Namespace) -> None:
    words = shlex.split(run.command)[1:] + ["--quick"] * args.quick + (["--data", args.data] if args.data else [])
    if run.script == "papers":
        if code := run_paper([*words, "--output", str(folder / UNFINISHED)]):
            raise DataAbsent("no data") if code == 2 else RuntimeError(f"{run.command} returned {code}")
        return
    file = LINES.get(run.result, f"{UNFINISHED}/{run.result}.json")
    import_module(module(run)).main([*words, "--output", str(folder / file)])


def module(run: Run) -> str:
    """What ``python -m`` takes."""
    return "papers" if run.script == "papers" else f"benchmarks.{run.script}"


if __name__ == "__main__":
    raise SystemExit(main())
