"""One overview of speed: time against rows, tasks and labels, switches of solvers, and fits on a busy machine.

rows       default fits of every estimator, and of some with a limited number of centres, from 100 rows to a million,
           beside SVC and SVR in a 3 x 3 grid search, CatBoost with 500 rounds and HistGradientBoosting. 20 features,
           3 classes, 5 labels, 50 rows in a task. A line ends before a fit that would take longer than ``--budget``.
tasks      50 rows in each of 10 to 10,000 tasks, 200 centres; a million tasks of 20 rows by ``fit_stream``
labels     2,000 rows with 1 to 100 labels
switches   the rows at which ``solver="auto"`` changes the solver: planned and measured time right below and above
load       wall time with the default threads relative to the best fixed number of BLAS threads, 1 or 2: on the
           machine as it is, with one and with two processes that spin, and on one processor of the affinity mask

Times of the first four parts are processor seconds of one thread, each fit in its own process. "of GEMM" divides the
operations of ``plan()`` by those of a matrix product in the same time, timed in the same process. "peak MB" is that
of the process minus the memory before the fit.

Results are written after each fit, and a second run continues where the first ended: ``--minutes`` limits one run.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

import leastwise
from benchmarks._common import parse, parser, write_json
from benchmarks.plan import sample
from benchmarks.task_scale import forget_peak, memory
from leastwise.utils import resources
from papers._common.timing import timed

Array = np.ndarray

PARTS = ("rows", "tasks", "labels", "switches", "load")
SIZES = (100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
TASKS, LABELS, LABEL_ROWS = (10, 100, 1000, 10_000), (1, 5, 20, 100), 2000
D, CLASSES, N_LABELS, ROWS_A_TASK = 20, 3, 5, 50
ROWS_A_STREAMED_TASK, BLOCK = 20, 5000
STREAMED = "MultiTaskLSPC(n_centers=100).fit_stream, 20 rows a task"
#: Name, parameters.
OURS: dict[str, tuple[str, dict[str, Any]]] = {
    **{f"{name}()": (name, {}) for name in ("LSPC", "LSSVC", "LSSVR", "KernelLogisticRegression")},
    **{f"MultiTask{name}()": (f"MultiTask{name}", {}) for name in ("LSPC", "LSSVC", "LSSVR")},
    "MultiTaskKernelLogisticRegression()": ("MultiTaskKernelLogisticRegression", {}),
    "MultiLabelLSPC()": ("MultiLabelLSPC", {}),
    "LSPC(n_centers=500)": ("LSPC", {"n_centers": 500}),
    "LSSVR(n_centers=500)": ("LSSVR", {"n_centers": 500}),
    "MultiTaskLSPC(n_centers=200)": ("MultiTaskLSPC", {"n_centers": 200}),
    "MultiLabelLSPC(n_centers=500)": ("MultiLabelLSPC", {"n_centers": 500}),
}
PEERS = ("SVC, grid search", "SVR, grid search", "CatBoost, 500 rounds", "HistGradientBoosting")
#: Estimators with a choice of solvers, and the number of outputs that a plan from a shape needs.
SWITCHED = (
    "LSPC()",
    "LSSVC()",
    "LSSVR()",
    "MultiTaskLSSVC()",
    "MultiTaskLSSVR()",
    "MultiLabelLSPC()",
    "LSPC(n_centers=500)",
    "LSSVR(n_centers=500)",
    "MultiTaskLSPC(n_centers=200)",
    "MultiLabelLSPC(n_centers=500)",
)
MOST_SWITCHED = 100_000
#: Fits whose threads are compared: one that BLAS threads help, and batched or iterative ones.
LOADED: dict[str, tuple[str, int, int, dict[str, Any]]] = {
    "LSPC(), 1,000 rows": ("LSPC", 1000, 1, {}),
    "LSPC(n_centers=500), 20,000 rows": ("LSPC", 20_000, 1, {"n_centers": 500}),
    "LSPC(solver='krylov'), 6,000 rows": ("LSPC", 6000, 1, {"solver": "krylov"}),
    "MultiTaskLSPC(n_centers=200), 400 tasks": ("MultiTaskLSPC", 20_000, 400, {"n_centers": 200}),
}
SITUATIONS = {"as it is": (0, False), "one spinning": (1, False), "two spinning": (2, False), "taskset": (0, True)}

# ------------------------------------------------------------------------ cases


def data_of(name: str, n: int, tasks: int = 0, labels: int = N_LABELS) -> tuple[Array, Array, dict[str, Array]]:
    """Rows, targets and tasks for an estimator of this name."""
    c = labels if "Label" in name else CLASSES
    return sample(n, D, c, tasks or max(2, n // ROWS_A_TASK), name)


def peer(name: str) -> Any:
    """A model of another library."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC, SVR

    if name.startswith("CatBoost"):
        from catboost import CatBoostClassifier

        return CatBoostClassifier(iterations=500, thread_count=1, verbose=False, allow_writing_files=False)
    if name.startswith("Hist"):
        return HistGradientBoostingClassifier(random_state=0)
    key, model = ("svc", SVC()) if name.startswith("SVC") else ("svr", SVR())
    grid = {f"{key}__C": [0.1, 1.0, 10.0], f"{key}__gamma": [0.1 / D, 1.0 / D, 10.0 / D]}
    return GridSearchCV(make_pipeline(StandardScaler(), model), grid, cv=3)


def estimator(name: str) -> tuple[str, Any]:
    """The class, whose name says what data it needs, and an unfitted model."""
    if name in PEERS:
        return "LSSVR" if name.startswith("SVR") else name, peer(name)
    kind, parameters = OURS[name]
    return kind, getattr(leastwise, kind)(random_state=0, **parameters)


def made_block(first: int, tasks: int) -> tuple[Array, Array, None, Array]:
    """Rows of some consecutive tasks."""
    rng, task = np.random.default_rng(first), np.repeat(np.arange(first, first + tasks), ROWS_A_STREAMED_TASK)
    X = rng.standard_normal((len(task), D))
    return X, (np.sin(X[:, :3] + np.sin(task)[:, None]).sum(axis=1) > 0).astype(int), None, task


def streamed(tasks: int) -> Callable[[], Any]:
    """``fit_stream`` of many tasks, whose rows are made anew in every pass."""
    model = leastwise.MultiTaskLSPC(n_centers=100, random_state=0)
    blocks = [partial(made_block, first, min(BLOCK, tasks - first)) for first in range(0, tasks, BLOCK)]
    return lambda: model.fit_stream(blocks)


def gemm_speed(n: int) -> float:
    """Operations per processor second of a matrix product on one thread."""
    A, B = np.random.default_rng(0).standard_normal((2, n, n))
    return 2.0 * n**3 / min(timed(lambda: A @ B).cpu for _ in range(4))


def measure(name: str, n: int, tasks: int = 0, labels: int = N_LABELS, gemm: int = 1500) -> dict[str, Any]:
    """One fit in this process, on one thread."""
    warnings.simplefilter("ignore")
    with threadpool_limits(limits=1):
        plan, speed = None, gemm_speed(gemm)
        if name == STREAMED:
            call = streamed(tasks)
        else:
            kind, model = estimator(name)
            X, y, given = data_of(kind, 100, 2, labels)
            model.fit(X, y, **given)  # warm-up
            X, y, given = data_of(kind, n, tasks, labels)

            def call() -> Any:
                return model.fit(X, y, **given)

        before = memory("VmRSS")
        forget_peak()
        run = timed(call)
        peak = memory("VmHWM") - before
        if name != STREAMED and hasattr(model, "plan"):
            plan = model.plan(X, y, **given)
    found = {"seconds": run.cpu, "wall": run.wall, "peak_mb": peak, "gemm_gflops": speed / 1e9}
    if plan is not None:
        found |= {"solver": plan.solver, "planned": plan.seconds, "fraction": plan.flops / speed / run.cpu}
    return found


def in_process(call: Callable[..., dict], *args: Any) -> dict:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(call, *args).result()


def measured_at(name: str, n: int) -> dict:
    """``measure`` in a process, with the number of rows."""
    return {"rows": n, **in_process(measure, name, n)}


# --------------------------------------------------------------------- switches


def planned(name: str, n: int) -> Any:
    """The plan of a fit of n rows, from the shape alone."""
    kind, model = estimator(name)
    given: dict[str, Any] = {"n_tasks": max(2, n // ROWS_A_TASK)} if "Task" in kind else {}
    outputs = 1 if kind.endswith("R") else 2 * N_LABELS if "Label" in kind else CLASSES
    return model.plan((n, D), n_outputs=outputs, **given)


def switches(name: str) -> list[tuple[int, str, str]]:
    """Rows from which another solver is chosen, with both names."""
    grid = np.unique(np.geomspace(200, MOST_SWITCHED, 40).astype(int)).tolist()
    solvers = [planned(name, n).solver for n in grid]
    found = []
    for (low, before), (high, after) in zip(
        zip(grid, solvers, strict=True), zip(grid[1:], solvers[1:], strict=True), strict=False
    ):
        if before == after:
            continue
        while high - low > max(1, low // 200):
            middle = (low + high) // 2
            low, high = (middle, high) if planned(name, middle).solver == before else (low, middle)
        found.append((high, before, after))
    return found


def steepest(name: str) -> dict[str, float]:
    """Of planned times of rows that grow by a tenth: the smallest and the largest ratio of neighbours."""
    grid = np.unique(np.geomspace(200, MOST_SWITCHED, 66).astype(int)).tolist()
    seconds = np.array([planned(name, n).seconds for n in grid])
    ratio = seconds[1:] / seconds[:-1]
    return {"least_step": float(ratio.min()), "largest_step": float(ratio.max())}


# ------------------------------------------------------------------------- load


@contextmanager
def spinning(count: int) -> Iterator[None]:
    """Other processes that use a processor each."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


@contextmanager
def fixed(count: int | None) -> Iterator[None]:
    """A fixed number of threads for everything; None for the library's own choice."""
    if count is None:
        yield
        return
    with patch.multiple(resources, SMALL_ROWS=0, idle_processors=lambda: count):
        yield


def threads_compared(name: str, repeats: int) -> dict[str, Any]:
    """Wall seconds with the default, one and two threads, in turns."""
    warnings.simplefilter("ignore")
    kind, n, tasks, parameters = LOADED[name]
    X, y, given = data_of(kind, n, tasks)
    model = getattr(leastwise, kind)(random_state=0, **parameters)
    seconds: dict[str, list[float]] = {"default": [], "1": [], "2": []}
    with spinning(0):
        for _ in range(repeats):
            for choice, walls in seconds.items():
                with fixed(None if choice == "default" else int(choice)):
                    walls.append(timed(lambda: model.fit(X, y, **given)).wall)
    found = {choice: median(walls) for choice, walls in seconds.items()}
    return {"wall": found, "ratio": found["default"] / min(found["1"], found["2"])}


def under_load(name: str, situation: str, repeats: int) -> dict[str, Any]:
    """``threads_compared`` in a process with the threads that BLAS chooses, beside others or on one processor."""
    spinners, bound = SITUATIONS[situation]
    limits = {k: os.environ.pop(k) for k in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS") if k in os.environ}
    mask = os.sched_getaffinity(0)
    try:
        if bound:
            os.sched_setaffinity(0, {min(mask)})
        with spinning(spinners):
            return in_process(threads_compared, name, repeats)
    finally:
        os.sched_setaffinity(0, mask)
        os.environ |= limits


# ------------------------------------------------------------------------- runs


class Records:
    """Measured records, written after each; a record that exists is not measured again."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.args, self.began = args, time.monotonic()
        self.all: list[dict] = []
        if args.output.exists():
            self.all = json.loads(args.output.read_text())["figures"]

    def get(self, key: dict[str, Any], call: Callable[..., dict], *args: Any) -> dict:
        """The record with this key; plans, which are numbers, are no part of it."""
        for record in self.all:
            if all(record.get(k) == v for k, v in key.items() if not isinstance(v, float)):
                return record
        if time.monotonic() - self.began > 60 * self.args.minutes:
            write_json(self.args, {"figures": self.all})
            raise SystemExit("Time is up: run it again to continue.")
        record = {**key, **call(*args)}
        print(" ".join(f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in record.items()), flush=True)
        self.all.append(record)
        write_json(self.args, {"figures": self.all}, say=False)
        return record


def run(args: argparse.Namespace, records: Records) -> None:
    names = [name for name in (*OURS, *PEERS) if not args.names or name in args.names]
    if "rows" in args.parts:
        for name in names:
            seconds = 0.0
            for n in (100, 200) if args.quick else [n for n in SIZES if n <= args.max_rows]:
                if seconds * 2 > args.budget:
                    break
                key = {"part": "rows", "name": name, "rows": n}
                seconds = records.get(key, in_process, measure, name, n)["seconds"]
    if "tasks" in args.parts:
        name = "MultiTaskLSPC(n_centers=200)"
        for count in (10,) if args.quick else TASKS:
            key = {"part": "tasks", "name": name, "rows": 50 * count, "tasks": count}
            records.get(key, in_process, measure, name, 50 * count, count)
        for count in (50,) if args.quick else (10_000, 100_000, 1_000_000):
            key = {"part": "tasks", "name": STREAMED, "rows": 20 * count, "tasks": count}
            records.get(key, in_process, measure, STREAMED, 20 * count, count)
    if "labels" in args.parts:
        for name in ("MultiLabelLSPC()", "MultiLabelLSPC(n_centers=500)"):
            for count in (2,) if args.quick else LABELS:
                n = 100 if args.quick else LABEL_ROWS
                key = {"part": "labels", "name": name, "rows": n, "labels": count}
                records.get(key, in_process, measure, name, n, 0, count)
    if "switches" in args.parts:
        for name in ("LSPC(n_centers=500)",) if args.quick else SWITCHED:
            records.get({"part": "steps", "name": name}, steepest, name)
            for n, before, after in switches(name):
                for side, rows in (("below", int(0.99 * n)), ("above", int(1.01 * n))):
                    key = {"part": "switches", "name": name, "from": before, "to": after, "side": side}
                    plan = planned(name, rows)
                    key |= {"shape_planned": plan.seconds}
                    if args.quick or plan.seconds > args.budget:
                        records.get(key, dict, {"rows": rows})
                    else:
                        records.get(key, measured_at, name, rows)
    if "load" in args.parts:
        for name in list(LOADED)[: 1 if args.quick else None]:
            for situation in SITUATIONS:
                key = {"part": "load", "name": name, "situation": situation}
                records.get(key, under_load, name, situation, 1 if args.quick else args.repeats)


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.speed", __doc__, threads=1)
    p.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    p.add_argument("--names", nargs="+", help="only these lines of the part rows")
    p.add_argument("--max-rows", type=int, default=SIZES[-1])
    p.add_argument("--budget", type=float, default=30.0, help="seconds of the longest fit (default 30)")
    p.add_argument("--minutes", type=float, default=1e6, help="stop after about this many minutes")
    p.add_argument("--repeats", type=int, default=3, help="of the part load")
    args = parse(p, argv)
    records = Records(args)
    run(args, records)
    write_json(args, {"figures": records.all})


if __name__ == "__main__":
    main()
