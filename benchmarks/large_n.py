"""LSPC with all rows as centres, up to 50,000 rows: time, memory and accuracy without storing the kernel matrix.

LSPC(solver="krylov") from raw rows to calibrated probabilities: search on some rows, alpha on more, a solve without a
tenth of the rows, a solve for all. Two sets: rows of 20 features in 10 classes of 10 clouds each, and MNIST (784
pixels as they are; skipped if it is not available). Each point runs in its own process. "s" is wall time, "CPU s"
that of all threads; "peak MB" is the peak memory of the whole process, including data and libraries. ``--memory`` is
the memory limit of the fit (LEASTWISE_MEMORY), up to half for kernel values and an eighth for the preconditioner.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._common import parse, parser, print_table, quality, write_json
from leastwise import LSPC
from papers import DataAbsent
from papers._common.data import load_set

Array = np.ndarray

SIZES = (10_000, 20_000, 50_000)
SETS = ("clouds", "mnist")
D, CLASSES, CLOUDS, NEW = 20, 10, 10, 5000


def make_clouds(n: int, seed: int = 0) -> tuple[Array, Array]:
    """Rows around 100 points, ten for each class, close enough to overlap; the points are always the same."""
    rng = np.random.default_rng(0)
    places = 1.2 * rng.standard_normal((CLASSES * CLOUDS, D))
    rng = rng if seed == 0 else np.random.default_rng(seed)
    cloud = rng.integers(len(places), size=n)
    return places[cloud] + rng.standard_normal((n, D)), cloud % CLASSES


def rows_of(name: str, n: int, folder: str | None) -> tuple[Array, Array, Array, Array]:
    """Training and test rows."""
    if name == "clouds":
        X, y = make_clouds(n + NEW)
        return X[:n], y[:n], X[n:], y[n:]
    data = load_set(name, folder)
    train, rng = np.asarray(data.is_train, dtype=bool), np.random.default_rng(0)
    some = rng.permutation(np.flatnonzero(train))[:n]
    return data.X[some].astype(float), data.y[some], data.X[~train].astype(float), data.y[~train]


def one(name: str, n: int, folder: str | None, memory: str, verbose: int, threads: int) -> dict:
    """One point in this process."""
    os.environ["LEASTWISE_MEMORY"] = memory
    with threadpool_limits(limits=threads):
        X, y, new, truth = rows_of(name, n, folder)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        began, ran = time.perf_counter(), time.process_time()
        model = LSPC(solver="krylov", random_state=0, verbose=verbose).fit(X, y)
        seconds, processor = time.perf_counter() - began, time.process_time() - ran
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        found = quality(model, new, truth)
    parameters = {"sigma": model.sigma_, "alpha": model.alpha_}
    figures = {"seconds": seconds, "processor": processor, "peak_mb": peak, "before_mb": before, **parameters}
    return {**figures, "iterations": model.n_iter_, "residual": model.residual_, **found}


def run(args: argparse.Namespace) -> Iterator[dict]:
    sizes = (600, 1200) if args.quick else args.sizes
    for name in args.sets:
        for n in sizes:
            case = (name, n, args.data, args.memory, args.verbose, args.threads)
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
                try:
                    found = pool.submit(one, *case).result()
                except DataAbsent as error:
                    print(f"skipped {name}: {error}")
                    break
            print(f"{name}, {n} rows: {found['seconds']:.3g} s, {found['processor']:.3g} s CPU", flush=True)
            yield {"set": name, "rows": n, **found}


def report(found: list[dict]) -> None:
    header = ["set", "rows", "s", "CPU s", "peak MB", "iterations", "residual", "alpha", "error %", "log-loss"]
    rows = []
    for f in found:
        how = [
            f["seconds"],
            f["processor"],
            f"{f['peak_mb']:,.0f}",
            f["iterations"],
            f"{f['residual']:.0e}",
            f"{f['alpha']:.1e}",
        ]
        rows.append([f["set"], f"{f['rows']:,}", *how, f"{100 * (1 - f['accuracy']):.2f}", f["log_loss"]])
    print_table("LSPC with all rows as centres", header, rows)


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.large_n", __doc__)
    p.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of rows")
    p.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    p.add_argument("--memory", default="3GB", help="memory limit of the fit (default 3GB)")
    p.add_argument("--verbose", type=int, default=0, help="1 prints every iteration")
    args = parse(p, argv)
    found: list[dict] = []
    for record in run(args):
        found.append(record)
        write_json(args, {"memory": args.memory, "figures": found}, say=False)
    report(found)
    write_json(args, {"memory": args.memory, "figures": found})


if __name__ == "__main__":
    main()
