"""At how many rows does the iterative solver become better than Cholesky, and how accurate is it?

LSSVR at one sigma (the median distance) and alpha, without held-out scores: solver="cholesky" stores and factors the
kernel matrix of all rows, solver="krylov" computes it block by block in every iteration. Rows have 10 features; the
target is a smooth function with noise. Each point runs in its own process; "peak MB" is the peak memory of the fit
minus that before it. "difference" is the largest difference of the predictions on 1,000 new rows, relative to their
standard deviation. Cholesky is left out if three arrays of rows x rows do not fit into the free memory.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks._common import parse, parser, print_table, write_json
from benchmarks.task_scale import forget_peak, memory
from leastwise import LSSVR
from leastwise.utils.resources import available_memory
from papers._common.data import median_distance
from papers._common.timing import timed

Array = np.ndarray

SIZES = (1000, 2000, 4000, 8000, 12_000, 20_000)
ALPHAS = (1e-3, 1e-5)
SOLVERS = ("cholesky", "krylov")
D, NEW, COSINES = 10, 1000, 64
#: Arrays of rows x rows that a factorisation needs.
ARRAYS = 3


def make_rows(n: int) -> tuple[Array, Array]:
    """Standard normal rows, and a sum of waves as long as typical distances between rows, with noise."""
    rng = np.random.default_rng(0)
    frequencies, phases = rng.standard_normal((D, COSINES)) / np.sqrt(D), rng.uniform(0, 2 * np.pi, COSINES)
    weights = rng.standard_normal(COSINES) * np.sqrt(2 / COSINES)
    X = rng.standard_normal((n, D))
    return X, np.cos(X @ frequencies + phases) @ weights + 0.3 * rng.standard_normal(n)


def fits_in_memory(solver: str, n: int) -> bool:
    return solver != "cholesky" or ARRAYS * 8 * n * n < available_memory()


def one(solver: str, n: int, alpha: float, threads: int, repeats: int) -> dict:
    """One point in this process."""
    with threadpool_limits(limits=threads), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        X, y = make_rows(n + NEW)
        model = LSSVR(median_distance(X, 1000), alpha, kernel="rbf", cv=None, solver=solver, random_state=0)
        model.fit(X[:100], y[:100])  # warm-up
        seconds, peaks = [], []
        for _ in range(repeats):
            gc.collect()
            before = memory("VmRSS")
            forget_peak()
            seconds.append(timed(partial(model.fit, X[:n], y[:n])).wall)
            peaks.append(memory("VmHWM") - before)
        return {
            "seconds": min(seconds),
            "peak_mb": peaks[0],
            "iterations": model.n_iter_ if solver == "krylov" else None,
            "residual": model.residual_ if solver == "krylov" else None,
            "predictions": model.predict(X[n:]),
        }


def in_process(*case: Any) -> dict:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(one, *case).result()


def run(args: argparse.Namespace) -> Iterator[dict]:
    sizes = (500, 1000) if args.quick else [n for n in SIZES if n <= args.max_rows]
    for n in sizes:
        for alpha in ALPHAS:
            seen: dict[str, Array] = {}
            for solver in SOLVERS:
                found: dict[str, Any] = {
                    "rows": n,
                    "alpha": alpha,
                    "solver": solver,
                    "fits": fits_in_memory(solver, n),
                }
                if found["fits"]:
                    found |= in_process(solver, n, alpha, args.threads, 3 if n <= 4000 else 1)
                    seen[solver] = found.pop("predictions")
                    print(f"{n} rows, alpha {alpha:g}, {solver}: {found['seconds']:.3g} s", flush=True)
                if len(seen) == len(SOLVERS):
                    a, b = seen.values()
                    found["difference"] = float(np.abs(a - b).max() / a.std())
                yield found


def report(found: list[dict]) -> None:
    rows = []
    for n, alpha in dict.fromkeys((f["rows"], f["alpha"]) for f in found):
        exact, iterated = (
            [f for f in found if (f["rows"], f["alpha"], f["solver"]) == (n, alpha, s)] for s in SOLVERS
        )
        a, b = exact[0], iterated[0]
        times = [f"{a['seconds']:.3g}", f"{a['peak_mb']:.0f}"] if a["fits"] else ["does not fit", "-"]
        ratio = a["seconds"] / b["seconds"] if a["fits"] else None
        last = [b["seconds"], b["peak_mb"], b["iterations"], ratio, b.get("difference")]
        rows.append([f"{n:,}", f"{alpha:g}", *times, *last])
    header = ["rows", "alpha", "cholesky s", "peak MB", "krylov s", "peak MB", "iterations", "cholesky / krylov"]
    print_table("LSSVR at one sigma and alpha", [*header, "difference"], rows)


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.krylov_scale", __doc__)
    p.add_argument("--max-rows", type=int, default=SIZES[-1], help="largest number of rows (default 20,000)")
    args = parse(p, argv)
    found: list[dict] = []
    for record in run(args):
        found.append(record)
        write_json(args, {"features": D, "figures": found}, say=False)
    report(found)
    write_json(args, {"features": D, "figures": found})


if __name__ == "__main__":
    main()
