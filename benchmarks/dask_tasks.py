"""Many tasks with Dask worker processes, compared with a single process: time, memory and data transfer.

Rows are generated where they are used, in partitions of whole tasks: 50 rows, 10 features, two classes, 200 centres.
Every run has its own processes, with one thread for matrix products in each. Seconds are those of a fit on rows that
are already available: in memory, or persisted on the workers. A stream generates its rows again in every pass.

bare    one fit at given sigma, alpha, sharing and centres: an overview of the partitions, the sums, the coefficients.
whole   MultiTaskLSPC(n_centers=200) with its own search on some tasks, and calibration. In one process all rows have
        held-out scores, with Dask only those of the tasks of the search.

"sent" is what workers sent to one another and to the client, by their own counters; sums are those of one partition.
Peak memory is that of the processes, including rows and libraries. A whole fit with Dask chooses its centres from the
sample, so they differ from those in memory: only the scores of bare fits can be compared.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks._common import parse, parser, print_table, write_json
from leastwise import MultiTaskLSPC
from papers._common.timing import capped, timed

Array = np.ndarray

#: Rows of a task, features, centres, classes.
M, D, B, C = 50, 10, 200, 2
#: Fixed hyperparameters; the ridge is on the sum of the losses, so that it does not depend on the number of tasks.
SIGMA, RIDGE, SHARING = 3.0, 0.1, 0.5

# ------------------------------------------------------------------------ data


def make_part(first: int, count: int) -> tuple[Array, Array, Array]:
    """Rows of some tasks: a function shared by all tasks plus one of each task, sums of random waves."""
    common = np.random.default_rng(0)
    waves, phases, shared = common.standard_normal((D, 16)), common.uniform(0, 6, 16), common.standard_normal(16)
    rng = np.random.default_rng([1, first])
    X, own = rng.standard_normal((count * M, D)), rng.standard_normal((count, 16, 1))
    seen = np.cos(X @ waves / np.sqrt(D) + phases).reshape(count, M, 16) @ (shared[:, None] + 0.5 * own)
    y = (seen.ravel() + 0.5 * rng.standard_normal(count * M) > 0).astype(int)
    return X, y, np.repeat(np.arange(first, first + count), M)


def cuts(n_tasks: int, n_parts: int) -> list[tuple[int, int]]:
    """First task and number of tasks of every partition."""
    ends = np.linspace(0, n_tasks, n_parts + 1).astype(int)
    return [(int(a), int(b - a)) for a, b in pairwise(ends)]


def bare_model(n_tasks: int) -> MultiTaskLSPC:
    centers = np.random.default_rng(2).standard_normal((B, D))
    alpha = RIDGE / (n_tasks * M)
    return MultiTaskLSPC(SIGMA, alpha, SHARING, centers=centers, cv=None, calibration=None, random_state=0)


def whole_model(n_tasks: int) -> MultiTaskLSPC:
    return MultiTaskLSPC(n_centers=B, random_state=0)


MODELS: dict[str, Callable[[int], MultiTaskLSPC]] = {"bare": bare_model, "whole": whole_model}

# ------------------------------------------------------------------------ runs


def peak() -> float:
    """Peak memory of this process in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def in_memory(fit: str, n_tasks: int, n_parts: int, workers: int) -> dict:
    """One process with all rows."""
    with capped(1):
        parts = [make_part(*cut) for cut in cuts(n_tasks, n_parts)]
        X, y, task = (np.concatenate([part[k] for part in parts]) for k in range(3))
        del parts
        model = MODELS[fit](n_tasks)
        took = timed(partial(model.fit, X, y, tasks=task))
        F = model.scores(X[: 20 * M], tasks=task[: 20 * M])
    return {"how": "one process", "seconds": took.wall, "client_mb": peak(), "scores": F.tolist()}


def streamed(fit: str, n_tasks: int, n_parts: int, workers: int) -> dict:
    """One process with the rows of one partition at a time, generated again in every pass."""
    with capped(1):
        blocks = [partial(as_block, *cut) for cut in cuts(n_tasks, n_parts)]
        model = MODELS[fit](n_tasks)
        took = timed(lambda: model.fit_stream(blocks))
        first = as_block(*cuts(n_tasks, n_parts)[0])
        F = model.scores(first["X"][: 20 * M], tasks=first["tasks"][: 20 * M])
    return {"how": "one process, a stream", "seconds": took.wall, "client_mb": peak(), "scores": F.tolist()}


def as_block(first: int, count: int) -> dict:
    return dict(zip(("X", "y", "tasks"), make_part(first, count), strict=True))


def through_dask(fit: str, n_tasks: int, n_parts: int, workers: int) -> dict:
    """Worker processes, each with some of the rows."""
    import dask
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    made = [dask.delayed(make_part, nout=3)(*cut) for cut in cuts(n_tasks, n_parts)]
    sizes = [count * M for _, count in cuts(n_tasks, n_parts)]

    def column(k: int, shape: tuple, dtype: type) -> Any:
        return da.concatenate([da.from_delayed(p[k], (m, *shape), dtype) for p, m in zip(made, sizes, strict=True)])

    options = {"n_workers": workers, "threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    with capped(1), LocalCluster(host="127.0.0.1", **options) as cluster, Client(cluster) as client:
        X, y, task = client.persist([column(0, (D,), float), column(1, (), int), column(2, (), int)])
        wait([X, y, task])
        before = sum(client.run(transferred).values())
        model = MODELS[fit](n_tasks)
        took = timed(partial(model.fit, X, y, tasks=task))
        sent = sum(client.run(transferred).values()) - before
        peaks = list(client.run(peak).values())
        F = model.scores(X[: 20 * M].compute(), tasks=task[: 20 * M].compute())
    b, c = model.coef_.shape[1:]
    travelled = {"sent_mb": sent / 2**20, "coef_mb": model.coef_.nbytes / 2**20}
    travelled["sums_mb"] = 8 * (b * b + b * (c + 1) + (c + 1) ** 2) / 2**20
    found = {"how": f"Dask, {workers} workers", "seconds": took.wall, "client_mb": peak(), "worker_mb": max(peaks)}
    return found | travelled | {"scores": F.tolist()}


def transferred(dask_worker: Any) -> int:
    """Bytes that a worker has sent so far."""
    return int(dask_worker.transfer_outgoing_bytes_total)


def in_process(*case: Any) -> dict:
    """A run in a new process."""
    call, *rest = case
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(call, *rest).result()


def run(args: argparse.Namespace) -> Iterator[dict]:
    for fit in args.fits:
        case = fit, args.tasks, args.parts, args.workers
        whole = None
        for way in (in_memory, streamed, through_dask):
            found = in_process(way, *case)
            F = np.array(found.pop("scores"))
            whole = F if whole is None else whole
            apart = float(np.abs(F - whole).max()) if fit == "bare" else None
            print(f"{fit}, {found['how']}: {found['seconds']:.3g} s", flush=True)
            yield {"fit": fit, "tasks": args.tasks, "parts": args.parts, "difference": apart, **found}


def report(found: list[dict]) -> None:
    columns = ["seconds", "client_mb", "worker_mb", "sent_mb", "sums_mb", "coef_mb", "difference"]
    names = ["seconds", "peak MB", "peak MB of a worker", "MB sent", "MB of sums", "MB of coefficients"]
    rows = [[f["fit"], f["how"], *(f.get(k) for k in columns)] for f in found]
    title = f"{found[0]['tasks']} tasks of {M} rows, {D} features, {B} centres, {found[0]['parts']} partitions"
    print_table(title, ["fit", "how", *names, "largest difference of scores"], rows)


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.dask_tasks", __doc__, threads=1)
    p.add_argument("--tasks", type=int, default=100_000, help="number of tasks (default 100,000)")
    p.add_argument("--parts", type=int, default=40, help="number of partitions (default 40)")
    p.add_argument("--workers", type=int, default=2, help="worker processes (default 2)")
    p.add_argument("--fits", nargs="+", choices=MODELS, default=list(MODELS))
    args = parse(p, argv)
    if args.quick:
        args.tasks, args.parts = 400, 4
    found = []
    for figures in run(args):
        found.append(figures)
        write_json(args, {"rows_a_task": M, "features": D, "centers": B, "runs": found}, say=False)
    report(found)
    print(f"written: {args.output.name}", flush=True)


if __name__ == "__main__":
    main()
