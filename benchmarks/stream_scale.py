"""Few centres and very many rows: time and memory up to a million rows in memory, and five million from files.

``LSPC(n_centers=1000)`` on rows of 20 features in 10 classes, from raw rows to calibrated probabilities. Every point
runs in a separate process. "peak MB" is the peak memory of the whole process, including data and libraries; "bare MB"
is the memory before the fit. "fraction" is the speed of the whole fit relative to that of a matrix product (GEMM,
float64, timed in the same process with the same threads), by the operations that sums over n rows need:

    distances   2 n b d        Phi'Phi   n b^2  (symmetric)        Phi'Z   2 n b c

Choosing sigma and alpha, exponentials, reading and validating the rows count as time but not as operations.
Parquet files are written in parts of 250,000 rows to ``--folder``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks._common import gemm_speed, parse, parser, print_table, quality, write_json
from benchmarks.large_n import CLASSES, D, make_clouds
from leastwise import LSPC

Array = np.ndarray

SIZES = (100_000, 200_000, 500_000, 1_000_000)
STREAMED, PART, NEW = 5_000_000, 250_000, 5000
CENTERS = 1000


def operations(n: int, b: int) -> float:
    """Operations of the sums alone."""
    return 2.0 * n * b * D + float(n) * b**2 + 2.0 * n * b * CLASSES


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def write_parts(folder: Path, n: int) -> None:
    """Rows as Parquet files; each part is generated separately, so that only one is in memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for k, size in enumerate(min(PART, n - a) for a in range(0, n, PART)):
        X, y = make_clouds(size, seed=k + 1)
        columns = {**{f"x{j}": X[:, j] for j in range(D)}, "class": y}
        pq.write_table(pa.table(columns), folder / f"part-{k:03d}.parquet")


def timed(n: int, b: int, threads: int, fit: Callable[[LSPC], LSPC]) -> dict:
    """One fit in this process."""
    with threadpool_limits(limits=threads):
        speed = gemm_speed(2000, 3)
        bare, began, ran = peak(), time.perf_counter(), time.process_time()
        model = fit(LSPC(n_centers=b, random_state=0))
        seconds, processor = time.perf_counter() - began, time.process_time() - ran
        found = quality(model, *make_clouds(NEW, seed=10_000))
    figures = {"seconds": seconds, "processor": processor, "peak_mb": peak(), "bare_mb": bare}
    return {**figures, "gemm_gflops": speed / 1e9, "fraction": operations(n, b) / seconds / speed, **found}


def in_memory(n: int, b: int, threads: int) -> dict:
    X, y = make_clouds(n, seed=1)
    return timed(n, b, threads, lambda model: model.fit(X, y))


def from_files(n: int, b: int, threads: int, folder: str) -> dict:
    return timed(n, b, threads, lambda model: model.fit_stream(folder, target="class"))


def alone(function: Callable, *args: object) -> dict:
    """In a separate process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args).result()


def run(args: argparse.Namespace) -> Iterator[dict]:
    sizes, streamed, b = ((4000, 8000), 10_000, 100) if args.quick else (SIZES, args.streamed, CENTERS)
    for n in sizes:
        yield {"from": "memory", "rows": n, **alone(in_memory, n, b, args.threads)}
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        alone(write_parts, Path(folder), streamed)
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        found = alone(from_files, streamed, b, args.threads, folder)
        yield {"from": "Parquet", "rows": streamed, "file_mb": size / 2**20, **found}


def report(found: list[dict]) -> None:
    header = ["rows", "from", "s", "us a row", "processor s", "peak MB", "bare MB", "fraction", "error %", "log-loss"]
    rows = []
    for f in found:
        cost = [f["seconds"], 1e6 * f["seconds"] / f["rows"], f["processor"]]
        memory = [f"{f['peak_mb']:,.0f}", f"{f['bare_mb']:,.0f}"]
        good = [f"{f['fraction']:.2f}", f"{100 * (1 - f['accuracy']):.2f}", f["log_loss"]]
        rows.append([f"{f['rows']:,}", f["from"], *cost, *memory, *good])
    print_table(f"{CENTERS} centres, {D} features, {CLASSES} classes", header, rows)


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.stream_scale", __doc__)
    p.add_argument("--streamed", type=int, default=STREAMED, help="rows that are streamed from files")
    p.add_argument("--folder", help="where the files are written; about 850 MB for 5,000,000 rows")
    args = parse(p, argv)
    found: list[dict] = []
    for record in run(args):
        found.append(record)
        print(f"{record['rows']:,} rows from {record['from']}: {record['seconds']:.3g} s", flush=True)
        write_json(args, {"threads": args.threads, "figures": found}, say=False)
    report(found)
    write_json(args, {"threads": args.threads, "figures": found})


if __name__ == "__main__":
    main()
