"""How do time and memory of a multi-task fit grow with the number of tasks, compared with a lower bound?

tasks-at-fixed-rows   2,000 rows of one set, divided into 1, 10, 100 and 1,000 tasks: the dual has one unknown for
                      each row, so the time should not change. "bare" is one fit at given hyperparameters, in both
                      norms; "search" tries 2 sigmas, 8 alphas and 3 sharings by leave-one-out on all rows, and
                      calibrates. Best of several repeats, in turns. With one task there is no calibration for
                      unseen tasks; ratios refer to 10 tasks.
rows-per-task-fixed   50 rows in each of 100 to 100,000 tasks, 20 features, 200 centres, one block-arrow system: time
                      should be linear in the tasks. "bare" is one fit at given hyperparameters, "whole" is
                      MultiTaskLSPC(n_centers=200) with its own search, on 10,000 rows at most, and calibration. Each
                      runs in a separate process; memory is the peak minus that before the fit, mostly the data.
quality               test log-loss of coupled, pooled and independent tasks, and of the true probabilities.
pieces                seconds of each step of a bare fit.

A matrix product (GEMM, of the type of the rows) is timed in the same process right before each fit. For every row of
a task of m rows, with b centres, d features and c classes, a bare fit carries out this many operations:

    kernel values   4 b d                               computed twice, rather than stored
    whitening       b^2                                 to where the penalty is the identity; a triangular product
    tasks           m b + 2/3 m^2 + 2 m b               symmetric Gram; Cholesky, inverse; W = L^-1 Phi in full
    shared part     b^2 + 2 b (c + 1)                   symmetric W'W; right sides
    own parts       4 b c + 4 m c + c b^2 / m           products; factors applied; coefficients on the kernel

"fraction" divides these by the number that GEMM carries out in the same time. "limit" is the time that GEMM needs for
the minimum of operations: kernel values are stored, and triangular products count half. The 2 b exponentials per row
are not counted in either. Both compare processor seconds, so that other processes matter little.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import multiprocessing
import resource
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.utils import check_X_y
from threadpoolctl import threadpool_limits

from benchmarks._common import capped, parse, parser, print_table, timed_fresh, write_json
from leastwise import MultiTaskLSPC
from leastwise.linalg.arrow import arrow_system, solve_arrow
from leastwise.linalg.arrow_batches import Chunk
from leastwise.linalg.moments import whitening
from leastwise.metrics import task_log_loss
from leastwise.model_selection.folds import distinct_rows
from leastwise.problem.basis import double_kernel
from leastwise.problem.kernels import RBF
from leastwise.problem.tasks import encode_tasks
from papers._common.data import median_distance
from papers._common.timing import timed, timed_median

Array = np.ndarray

PARTS = ("tasks-at-fixed-rows", "rows-per-task-fixed", "quality", "pieces")
FIXED_TASKS = (1, 10, 100, 1000)
TASKS = (100, 1000, 10_000, 100_000)
#: Rows of a task, features, hidden features that these are mixtures of, centres, classes.
M, D, HIDDEN, B, C = 50, 20, 5, 200, 2
RELATEDNESS, NOISE = 0.8, 0.3
N_COSINES = 64
#: Tasks that are generated at a time, to limit the memory of the waves.
BLOCK = 2000
#: Fixed hyperparameters; the ridge is on the sum of the losses, so that it does not depend on the number of tasks.
RIDGE, SHARING = 0.1, 0.5

# ------------------------------------------------------------------------ data


@dataclass(frozen=True)
class Made:
    """Rows of tasks of equal size, task by task, with the true probability of the second class."""

    X: Array
    y: Array
    task: Array
    truth: Array

    def take(self, rows: Array) -> Made:
        """Some of the rows."""
        return Made(self.X[rows], self.y[rows], self.task[rows], self.truth[rows])


def make_tasks(n_tasks: int, m: int, dtype: str = "float64", seed: int = 0) -> Made:
    """Smooth random functions of a few hidden features, one shared by all tasks and one for each.

    Like ``make_related_tasks``, but vectorised over many tasks. The features are D noisy mixtures of the hidden
    features.
    """
    rng = np.random.default_rng(seed)
    mixing = np.linalg.qr(rng.standard_normal((D, HIDDEN)))[0].T * np.sqrt(D / HIDDEN)
    frequencies = rng.standard_normal((HIDDEN, N_COSINES)) / np.sqrt(HIDDEN)
    phases, common = rng.uniform(0, 2 * np.pi, N_COSINES), rng.standard_normal(N_COSINES)
    X, truth = np.empty((n_tasks * m, D), dtype), np.empty(n_tasks * m)
    for first in range(0, n_tasks, BLOCK):
        k = min(BLOCK, n_tasks - first)
        rows, hidden = slice(first * m, (first + k) * m), rng.standard_normal((k * m, HIDDEN))
        X[rows] = hidden @ mixing + 0.1 * rng.standard_normal((k * m, D))
        own = rng.standard_normal((k, N_COSINES, 1))
        weights = np.sqrt(RELATEDNESS) * common[:, None] + np.sqrt(1 - RELATEDNESS) * own
        waves = np.cos(hidden @ frequencies + phases).reshape(k, m, N_COSINES)
        truth[rows] = expit(2 * np.sqrt(1 / N_COSINES) / NOISE * (waves @ weights).ravel())
    y = (rng.uniform(size=len(truth)) < truth).astype(int)
    return Made(X, y, np.repeat(np.arange(n_tasks), m), truth)


# ------------------------------------------------------- the same rows, more tasks


def fixed_models(X: Array) -> dict[str, MultiTaskLSPC]:
    sigma, alpha = median_distance(X, 1000), 1e-3
    fixed = partial(MultiTaskLSPC, sigma, alpha, SHARING, cv=None, calibration=None)
    grid = {"sigma": (sigma / 2, sigma), "alpha": tuple(np.logspace(-6, -1, 8)), "sharing": (0.2, 0.5, 0.8)}
    return {
        "bare, function": fixed(norm="function"),
        "bare, coefficients": fixed(norm="coefficients"),
        "search, function": MultiTaskLSPC(**grid, norm="function", cv="loo", search_rows=None, random_state=0),
    }


def fixed_rows(args: argparse.Namespace) -> list[dict]:
    n, counts = (200, (1, 10, 100)) if args.quick else (2000, FIXED_TASKS)
    data = make_tasks(n // M, M)
    models = fixed_models(data.X)
    seconds: dict[tuple[str, int], list[float]] = {(name, T): [] for name in models for T in counts}
    for _ in range(2 if args.quick else args.repeats):
        for name, T in seconds:  # in turns, so that a slow phase of the machine affects all
            task = np.arange(n) % T
            seconds[name, T].append(timed(partial(models[name].fit, data.X, data.y, tasks=task)).wall)
    return [{"fit": name, "rows": n, "tasks": T, "seconds": min(s)} for (name, T), s in seconds.items()]


def report_fixed(found: list[dict]) -> None:
    best = {(f["fit"], f["tasks"]): f["seconds"] for f in found}
    counts = sorted({T for _, T in best})
    rows = []
    for name in dict.fromkeys(f["fit"] for f in found):
        times = [best[name, T] for T in counts]
        rows += [[name, *times], [f"{name}, / 1 task", *(t / times[0] for t in times)]]
        rows.append([f"{name}, / {counts[1]} tasks", *(t / times[1] for t in times)])
    print_table(
        f"Seconds of a fit of {found[0]['rows']} rows by the number of tasks", ["fit", *map(str, counts)], rows
    )


# ---------------------------------------------------- as many rows in every task


def operations(n_tasks: int, least: bool = False) -> float:
    """Operations of a bare fit, ``norm="function"``; see the module docstring."""
    tasks, shared = M * B + 2 / 3 * M**2 + 2 * M * B, B**2 + 2 * B * (C + 1)
    own = 4 * B * C + 4 * M * C + C * B**2 / M
    row = 4 * B * D + B**2 + tasks + shared + own
    return n_tasks * M * (row - 2 * B * D - M * B if least else row)


def product_speed(dtype: str, n: int, repeats: int = 5) -> float:
    """Operations per processor second of an n x n matrix product in this precision."""
    rng = np.random.default_rng(0)
    A, X, out = (rng.standard_normal((n, n)).astype(dtype) for _ in range(3))
    np.matmul(A, X, out=out)
    return 2.0 * n**3 / min(timed(lambda: np.matmul(A, X, out=out)).cpu for _ in range(repeats))


def memory(field: str) -> float:
    """Megabytes of this process: ``VmRSS`` now, or ``VmHWM`` at the peak."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return float(next(line.split()[1] for line in lines if line.startswith(field))) / 1024
    except (OSError, StopIteration):  # other systems report only the peak
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def forget_peak() -> None:
    """Reset the peak memory, if the system supports it; generating the data needs about as much memory anyway."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def bare_model(X: Array) -> MultiTaskLSPC:
    sigma = median_distance(X, 1000)
    return MultiTaskLSPC(sigma, RIDGE / len(X), SHARING, n_centers=B, cv=None, calibration=None, random_state=0)


def whole_model(X: Array) -> MultiTaskLSPC:
    return MultiTaskLSPC(n_centers=B, random_state=0)


MODELS: dict[str, Callable[[Array], MultiTaskLSPC]] = {"bare": bare_model, "whole": whole_model}


def one(fit: str, n_tasks: int, dtype: str, threads: int, gemm: int, repeats: int) -> dict:
    """One size in this process: seconds and memory."""
    with threadpool_limits(limits=threads):
        small = make_tasks(10, M, dtype)
        bare_model(small.X).fit(small.X, small.y, tasks=small.task)  # warm-up
        speed, data = product_speed(dtype, gemm), make_tasks(n_tasks, M, dtype)
        model = MODELS[fit](data.X)
        runs, peaks = [], []
        for _ in range(repeats):
            gc.collect()
            before = memory("VmRSS")
            forget_peak()
            runs.append(timed(partial(model.fit, data.X, data.y, tasks=data.task)))
            peaks.append(memory("VmHWM") - before)
    return {"fit": fit, "tasks": n_tasks, "dtype": dtype, "gemm_gflops": speed / 1e9} | {
        "seconds": min(run.wall for run in runs),
        "processor": (processor := min(run.cpu for run in runs)),
        "peak_mb": peaks[0],  # later fits also hold the previous model
        "data_mb": data.X.nbytes / 2**20,
        "coef_mb": model.coef_.nbytes / 2**20,
        "parameters": [model.sigma_, model.alpha_, model.sharing_],
        "limit": operations(n_tasks, least=True) / speed,
        "fraction": operations(n_tasks) / speed / processor if fit == "bare" else None,
    }


def in_process(*case: Any) -> dict:
    """``one`` in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(one, *case).result()


def rows_per_task(args: argparse.Namespace) -> Iterator[dict]:
    sizes = (20, 100) if args.quick else [count for count in TASKS if count <= args.max_tasks]
    for T in sizes:
        for fit in MODELS:
            for dtype in args.dtypes:
                repeats = 1 if T > 5000 else 3
                found = in_process(fit, T, dtype, args.threads, 400 if args.quick else 2000, repeats)
                print(f"{fit}, {T} tasks, {dtype}: {found['processor']:.3g} s of processors", flush=True)
                yield found


def report_scale(found: list[dict]) -> None:
    header = ["fit", "rows of", "tasks", "wall s", "CPU s", "CPU s / 1,000 tasks", "peak MB", "data MB", "coef MB"]
    header += ["GEMM GF/s", "fraction", "limit s", "times limit"]
    rows = []
    for f in sorted(found, key=lambda f: (f["fit"], f["dtype"], f["tasks"])):
        per, bare = f["processor"] / f["tasks"] * 1000, f["fit"] == "bare"
        sizes = [f[k] for k in ("peak_mb", "data_mb", "coef_mb", "gemm_gflops", "fraction")]
        limit = [f["limit"], f["processor"] / f["limit"]] if bare else [None, None]
        rows.append([f["fit"], f["dtype"], f["tasks"], f["seconds"], f["processor"], per, *sizes, *limit])
    print_table(f"{M} rows per task, {D} features, {B} centres", header, rows)


# --------------------------------------------------------------- are they related?


def quality(args: argparse.Namespace) -> dict:
    """Test log-loss, mean over tasks, with M training rows and 10 test rows per task."""
    T = 20 if args.quick else min(1000, args.max_tasks)
    data = make_tasks(T, M + 10)
    is_test = np.arange(len(data.y)) % (M + 10) >= M
    train, test = data.take(~is_test), data.take(is_test)
    found = {"tasks": T, "truth": task_log_loss(test.y, np.column_stack([1 - test.truth, test.truth]), test.task)}
    for name, sharing in (("tied", "auto"), ("pooled", 1.0), ("alone", 0.0)):
        model = MultiTaskLSPC(sharing=sharing, n_centers=B, random_state=0).fit(train.X, train.y, tasks=train.task)
        found[name] = task_log_loss(test.y, model.predict_proba(test.X, tasks=test.task), test.task)
        found[f"{name}_sharing"] = model.sharing_
    return found


def report_quality(found: dict) -> None:
    names = ["truth", "tied", "pooled", "alone"]
    title = f"Test log-loss of {found['tasks']} tasks (coupled: sharing {found['tied_sharing']:.3g} was chosen)"
    print_table(title, names, [[f"{found[k]:.4f}" for k in names]])


# --------------------------------------------------------------------- pieces


def pieces(args: argparse.Namespace) -> list[dict]:
    T = 20 if args.quick else min(1000, args.max_tasks)
    return [piece_times(T, dtype, 2 if args.quick else args.repeats) for dtype in args.dtypes]


def piece_times(n_tasks: int, dtype: str, repeats: int) -> dict:
    """Seconds of each step of a bare fit, by the functions of the library; kernel values are computed twice."""
    data, kernel = make_tasks(n_tasks, M, dtype), RBF()
    sigma, n = median_distance(data.X, 1000), n_tasks * M
    centers = data.X[np.random.default_rng(0).choice(n, B, replace=False)]
    penalty = whitening(double_kernel(kernel, centers, centers, sigma))
    D2 = kernel.pairs(data.X, centers)
    Phi = kernel.values(D2.copy(), sigma)
    white = np.ascontiguousarray(penalty.whiten(penalty.columns(Phi)), dtype=dtype)
    own = np.full(n_tasks, 1 - SHARING)
    chunk = Chunk(white, np.eye(C, dtype=dtype)[data.y], np.ones(n, dtype), np.arange(0, n + 1, M), own)
    arrow = solve_arrow(lambda: [chunk], SHARING, RIDGE, False)

    def median(call: Callable[[], Any]) -> float:
        return timed_median(call, repeats).wall

    return {
        "tasks": n_tasks,
        "dtype": dtype,
        "pairs": median(lambda: kernel.pairs(data.X, centers)),
        "exp": timed_fresh(D2.copy, lambda A: kernel.values(A, sigma, out=A), repeats),
        "whiten": median(lambda: np.ascontiguousarray(penalty.whiten(penalty.columns(Phi)), dtype=dtype)),
        "shared": median(lambda: arrow_system(lambda: [chunk], SHARING, RIDGE, False)),
        "by_products": arrow.regular,
        "own": median(lambda: arrow.parts(chunk)),
        "checks": median(lambda: check_X_y(data.X, data.y)),
        "task_ids": median(lambda: encode_tasks(data.task, n)),
        "equal_rows": median(lambda: distinct_rows(data.X)),
    }


def report_pieces(found: list[dict]) -> None:
    columns = [k for k in found[0] if k not in ("tasks", "by_products")]
    rows = [[f[k] for k in columns] + ["products" if f["by_products"] else "QR"] for f in found]
    title = f"Seconds by step, {found[0]['tasks']} tasks; pairs and exp are done twice in a fit"
    print_table(title, [*columns, "shared by"], rows)


# ----------------------------------------------------------------------- main


def run(args: argparse.Namespace) -> Iterator[dict]:
    """Yield the results after each part, and print its table."""
    figures: dict[str, Any] = {"rows_a_task": M, "features": D, "centers": B, "classes": C}
    for part, measure, report in (
        ("tasks-at-fixed-rows", fixed_rows, report_fixed),
        ("quality", quality, report_quality),
        ("pieces", pieces, report_pieces),
    ):
        if part in args.parts:
            figures[part.replace("-", "_")] = found = measure(args)
            report(found)  # type: ignore[operator]
            yield figures
    if "rows-per-task-fixed" in args.parts:
        figures["rows_per_task_fixed"] = []
        for record in rows_per_task(args):
            figures["rows_per_task_fixed"].append(record)
            yield figures
        report_scale(figures["rows_per_task_fixed"])


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.task_scale", __doc__)
    p.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    p.add_argument("--max-tasks", type=int, default=TASKS[-1], help="largest number of tasks (default 100,000)")
    p.add_argument("--dtypes", nargs="+", choices=("float64", "float32"), default=("float64", "float32"))
    p.add_argument("--repeats", type=int, default=5)
    args = parse(p, argv)
    figures: dict = {}
    with capped(args):
        for figures in run(args):
            write_json(args, figures, say=False)
    write_json(args, figures)


if __name__ == "__main__":
    main()
