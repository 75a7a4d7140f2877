"""Is it faster to evaluate sigmas in parallel, or one at a time with all threads?

A decomposition gains little from a second thread, while two decompositions run fully in parallel. The whole fit of
LSPC is timed: one job with all threads, one job with one thread, and as many jobs as threads with one thread each, as
threads (the default) and as processes that are already running. CPU seconds are those of the first process.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import joblib
import numpy as np

from benchmarks._common import capped, parse, parser, print_table, write_json
from leastwise import LSPC
from papers._common import timing
from papers._common.timing import timed_median

SIZES = (500, 1000, 2000, 4000)
#: Up to this number of rows the search uses all rows, beyond that a subsample, as by default.
ALL_ROWS = 2000
D, C = 20, 5


def sample(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Overlapping classes."""
    rng = np.random.default_rng(n)
    y = rng.integers(C, size=n)
    return rng.standard_normal((C, D))[y] + rng.standard_normal((n, D)), y


def plans(threads: int) -> list[tuple[int, int, str]]:
    """Jobs, threads of the process, backend."""
    return [
        (1, threads, "threading"),
        (1, 1, "threading"),
        (threads, threads, "threading"),
        (threads, threads, "loky"),
    ]


def one(n: int, jobs: int, threads: int, backend: str, repeats: int) -> dict:
    X, y = sample(n)
    rows = None if n <= ALL_ROWS else "auto"
    model = LSPC(search_rows=rows, random_state=0, n_jobs=jobs)
    with timing.capped(threads), joblib.parallel_config(backend):
        if backend == "loky":
            LSPC(n_jobs=jobs).fit(X[:100], y[:100])  # start the processes
        done = timed_median(lambda: model.fit(X, y), repeats, budget=120)
    chosen = {"sigma": model.sigma_, "alpha": model.alpha_}
    plan = {"n": n, "jobs": jobs, "threads": max(1, threads // jobs), "backend": backend}
    return {**plan, "seconds": done.wall, "processor_seconds": done.cpu, **chosen}


def run(args: argparse.Namespace) -> dict:
    sizes, repeats = ((200, 400), 1) if args.quick else (SIZES, args.repeats)
    return {"fits": [one(n, *plan, repeats) for n in sizes for plan in plans(args.threads)]}


def main(argv: Sequence[str] | None = None) -> None:
    """Run and write."""
    p = parser("benchmarks.jobs", __doc__)
    p.add_argument("--repeats", type=int, default=3)
    args = parse(p, argv)
    with capped(args):
        figures = run(args)
    header = ("n", "jobs", "threads", "backend", "seconds", "processor_seconds")
    rows = [[fit[name] for name in header] for fit in figures["fits"]]
    print_table("Whole fit of LSPC", header, [[*r[:4], f"{r[4]:.2f}", f"{r[5]:.2f}"] for r in rows])
    write_json(args, figures)


if __name__ == "__main__":
    main()
