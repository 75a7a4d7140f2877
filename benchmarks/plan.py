"""Accuracy of plans: seconds and memory predicted by ``plan``, compared with those of the fit.

Every setting runs in a separate process on one thread: the fit, then the plan. Seconds are CPU time.
Peak memory is that of the process minus the memory before the fit, after a small fit to warm up. The data are sums
of sines with noise.
"""

from __future__ import annotations

import argparse
import multiprocessing
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import leastwise
from benchmarks._common import parse, parser, print_table, write_json
from papers._common.timing import timed

Array = np.ndarray

#: Estimator, rows, features, outputs, tasks, parameters.
SETTINGS: tuple[tuple[str, int, int, int, int, dict[str, Any]], ...] = (
    ("LSPC", 300, 5, 2, 1, {}),
    ("LSPC", 1000, 10, 3, 1, {}),
    ("LSPC", 3000, 50, 10, 1, {}),
    ("LSPC", 3000, 10, 3, 1, {"norm": "coefficients"}),
    ("LSPC", 2000, 10, 3, 1, {"cv": 5}),
    ("LSPC", 10_000, 10, 3, 1, {"n_centers": 500}),
    ("LSPC", 100_000, 20, 10, 1, {"n_centers": 500}),
    ("LSPC", 30_000, 20, 3, 1, {"n_centers": 1500}),
    ("LSPC", 20_000, 10, 2, 1, {"n_centers": 200, "solver": "sgd"}),
    ("LSSVC", 2500, 20, 4, 1, {}),
    ("LSSVR", 3000, 10, 1, 1, {}),
    ("LSSVR", 8000, 10, 1, 1, {"kernel": "rbf"}),
    ("LSSVR", 20_000, 10, 1, 1, {"n_centers": 300}),
    ("MultiTaskLSPC", 2000, 10, 2, 20, {}),
    ("MultiTaskLSPC", 30_000, 10, 2, 500, {"n_centers": 100}),
    ("MultiTaskLSSVR", 1500, 10, 1, 10, {}),
    ("MultiLabelLSPC", 2000, 10, 6, 1, {}),
    ("MultiLabelLSPC", 8000, 10, 10, 1, {"n_centers": 200}),
    ("MultiLabelLSPC", 6000, 10, 5, 1, {}),
    ("LSPC", 1000, 3000, 2, 1, {}),
    ("LSPC", 20_000, 500, 2, 1, {"n_centers": 200}),
    ("LSPC", 2000, 10, 3, 1, {"basis": "class", "norm": "coefficients"}),
    ("LSSVC", 6000, 300, 2, 1, {"kernel": "rbf", "solver": "krylov"}),
    ("LSSVR", 1500, 2000, 1, 1, {"kernel": "rbf"}),
    ("KernelLogisticRegression", 600, 10, 3, 1, {}),
    ("KernelLogisticRegression", 1000, 500, 2, 1, {"kernel": "rbf"}),
    ("MultiTaskLSPC", 1000, 1000, 2, 10, {}),
    ("MultiTaskLSSVC", 1500, 10, 3, 10, {}),
    ("MultiTaskLSSVR", 20_000, 10, 1, 200, {"kernel": "linear"}),
    ("MultiTaskKernelLogisticRegression", 600, 10, 2, 10, {}),
    ("MultiLabelLSPC", 1000, 1500, 5, 1, {}),
)
QUICK = 150


def sample(n: int, d: int, c: int, tasks: int, name: str) -> tuple[Array, Array, dict[str, Array]]:
    """Rows, suitable targets for the estimator, and the tasks of the rows if it needs them."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, d))
    S = np.sin(X) @ rng.standard_normal((d, c)) + 0.5 * rng.standard_normal((n, c))
    given = {"tasks": rng.integers(tasks, size=n)} if "Task" in name else {}
    if "Label" in name:
        return X, (S > 0).astype(int), given
    return X, S[:, 0] if name.endswith("R") else S.argmax(axis=1) if c > 2 else (S[:, 0] > 0).astype(int), given


def status(name: str) -> int:
    """Current and peak bytes of the process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def measure(setting: tuple[str, int, int, int, int, dict[str, Any]]) -> dict[str, Any]:
    """Fit and plan."""
    warnings.simplefilter("ignore")
    name, n, d, c, tasks, params = setting
    make = getattr(leastwise, name)
    small = {**params, **({"n_centers": 20} if "n_centers" in params else {})}
    X, y, given = sample(120, d, c, 3, name)
    make(random_state=0, **small).fit(X, y, **given)
    X, y, given = sample(n, d, c, tasks, name)
    model = make(random_state=0, **params)
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    before = status("VmRSS")
    fit = timed(lambda: model.fit(X, y, **given))
    peak = status("VmHWM") - before
    plan = model.plan(X, y, **given)
    return {
        "estimator": name,
        "rows": n,
        "features": d,
        "outputs": plan.n_outputs,
        "tasks": tasks,
        "parameters": params,
        "solver": plan.solver,
        "planned_seconds": plan.seconds,
        "seconds": fit.cpu,
        "planned_mb": plan.peak_bytes / 2**20,
        "mb": peak / 2**20,
    }


def run(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    context = multiprocessing.get_context("spawn")
    for name, n, d, c, tasks, params in SETTINGS:
        if args.only and name != args.only:
            continue
        size = min(n, QUICK) if args.quick else n
        small = {key: min(value, 30) if args.quick and key == "n_centers" else value for key, value in params.items()}
        with context.Pool(1) as pool:
            yield pool.apply(measure, ((name, size, d, c, tasks, small),))


def report(found: list[dict[str, Any]]) -> None:
    rows = []
    for f in found:
        parameters = ", ".join(f"{key}={value}" for key, value in f["parameters"].items())
        ratios = [f["planned_seconds"] / f["seconds"], f["planned_mb"] / max(f["mb"], 0.1)]
        times = [f"{f['planned_seconds']:.3g}", f"{f['seconds']:.3g}", f"{ratios[0]:.2f}"]
        sizes = [f"{f['planned_mb']:.0f}", f"{f['mb']:.0f}", f"{ratios[1]:.2f}"]
        rows.append(
            [f["estimator"], f"{f['rows']:,}", f["features"], f["outputs"], parameters, f["solver"], *times, *sizes]
        )
    header = ["estimator", "rows", "d", "outputs", "parameters", "solver", "planned s", "s", "ratio"]
    print_table("Planned and measured", [*header, "planned MB", "MB", "ratio"], rows)


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.plan", __doc__, threads=1)
    p.add_argument("--only", metavar="ESTIMATOR", help="one estimator")
    args = parse(p, argv)
    found: list[dict[str, Any]] = []
    for record in run(args):
        found.append(record)
        write_json(args, {"figures": found}, say=False)
    report(found)
    write_json(args, {"figures": found})


if __name__ == "__main__":
    main()
