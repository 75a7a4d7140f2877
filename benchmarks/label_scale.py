"""How does the time of a multi-label fit grow with rows and labels, compared with a lower bound?

fits          one fit at given sigma, alpha and sharing, without held-out scores, with correlations of the labels as
              (dense) similarities: 10 to 2,000 labels for 2,000 rows, 500 to 4,000 rows for 100 labels
searches      the same sizes up to --search-labels, MultiLabelLSPC() with defaults: search, fit and calibration;
              "points" is the number of search points
many          10,000 labels of 1,000 rows: equally similar labels, and a sparse graph of groups of 10 labels; at given
              hyperparameters

Labels come in groups of 10 with similar linear boundaries in 50 features, with noise. Every point runs in its own
process; memory is the peak of the first fit minus that before it. Short fits are repeated three times and the best
counts.

A matrix product (GEMM, float64) is timed right before. With n rows of d features and T labels of two classes, a fit
carries out at least

    kernel            2 n^2 d
    eigenvectors      10/3 (n^3 + T^3)      to a tridiagonal matrix, and back; the steps in between are not counted
    correlations      2 n T^2
    targets           2 n (2 T) T  twice    into the eigenvectors of the labels, and back
    coefficients      2 n^2 (2 T)  twice    into the eigenvectors of the rows, and back

operations. "limit" is the time that GEMM would need for them; half of the first step of an eigendecomposition is
matrix-vector products, which are slower. "LAPACK" is the time of both eigendecompositions alone, by numpy.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks._common import gemm_speed, parse, parser, print_markdown, write_json
from benchmarks.task_scale import forget_peak, memory
from leastwise import MultiLabelLSPC
from papers._common.data import median_distance
from papers._common.timing import timed

Array = np.ndarray

PARTS = ("fits", "searches", "many")
LABELS, ROWS = (10, 100, 500, 2000), (500, 1000, 2000, 4000)
#: Number of rows when the labels vary, and of labels when the rows vary.
FIXED_ROWS, FIXED_LABELS = 2000, 100
MANY_LABELS, MANY_ROWS = 10_000, 1000
D, GROUP, NOISE = 50, 10, 0.3
ALPHA, SHARING = 1e-3, 0.5
#: A larger product does not run at a higher rate.
GEMM_CAP = 2000
#: Fits that take longer than this are not repeated.
LONG = 5.0


def make_labels(n: int, T: int) -> tuple[Array, Array]:
    """Rows, and labels whose boundaries are similar within groups."""
    rng = np.random.default_rng(0)
    groups = rng.standard_normal((-(-T // GROUP), D)).repeat(GROUP, axis=0)[:T]
    coef = (groups + 0.5 * rng.standard_normal((T, D))) / np.sqrt(D)
    X = rng.standard_normal((n, D))
    return X, (X @ coef.T + NOISE * rng.standard_normal((n, T)) > 0).astype(int)


def chains(T: int) -> sparse.csr_array:
    """Each label of a group is similar to the next."""
    near = (np.arange(T - 1) % GROUP != GROUP - 1).astype(float)
    return sparse.csr_array(sparse.diags([near, near], offsets=[-1, 1], shape=(T, T)))


def model_for(kind: str, X: Array, T: int) -> MultiLabelLSPC:
    if kind == "search":
        return MultiLabelLSPC(random_state=0)
    similarity: Any = {"fit": "correlation", "all alike": "shared", "sparse graph": chains(T)}[kind]
    options = {"similarity": similarity, "cv": None, "calibration": None, "solver": "sylvester"}
    return MultiLabelLSPC(median_distance(X, 1000), ALPHA, SHARING, **options, random_state=0)


def operations(n: int, T: int, kind: str) -> float:
    """The minimum number of operations of a fit; see the module docstring."""
    rows = 2 * n**2 * D + 10 / 3 * n**3 + 2 * 2 * n**2 * 2 * T
    return rows + (10 / 3 * T**3 + 2 * n * T**2 + 2 * 2 * n * 2 * T * T if kind == "fit" else 0)


def eigh_seconds(n: int) -> float:
    """Seconds of one eigendecomposition."""
    A = np.random.default_rng(0).standard_normal((n, n))
    G = A @ A.T
    return min(timed(lambda: np.linalg.eigh(G)).wall for _ in range(2))


def one(kind: str, n: int, T: int, threads: int, repeats: int) -> dict:
    """One point in this process."""
    with threadpool_limits(limits=threads):
        X, Y = make_labels(n, T)
        model = model_for(kind, X, T)
        small = make_labels(60, GROUP)
        model_for("search" if kind == "search" else "fit", small[0], GROUP).fit(*small)  # warm-up
        speed = gemm_speed(min(n, GEMM_CAP), 3)
        seconds: list[float] = []
        peak = 0.0
        while not seconds or (len(seconds) < repeats and seconds[0] < LONG):
            gc.collect()
            before = memory("VmRSS")
            forget_peak()
            seconds.append(timed(partial(model.fit, X, Y)).wall)
            peak = peak or memory("VmHWM") - before
        found = {"kind": kind, "rows": n, "labels": T, "seconds": min(seconds), "peak_mb": peak}
        found |= {"gemm_gflops": speed / 1e9, "coef_mb": model.coef_.nbytes / 2**20}
        if kind == "search":
            return found | {"points": len(model.cv_results_["param_sigma"]), "chosen": chosen(model)}
        found["limit"] = operations(n, T, kind) / speed
        found["lapack"] = eigh_seconds(n) + (eigh_seconds(T) if kind == "fit" else 0)
        return found


def chosen(model: MultiLabelLSPC) -> list:
    return [model.sigma_, model.alpha_, model.sharing_]


def in_process(*case: Any) -> dict:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(one, *case).result()


def cases(args: argparse.Namespace) -> Iterator[tuple[str, int, int]]:
    sizes = [(FIXED_ROWS, T) for T in LABELS] + [(n, FIXED_LABELS) for n in ROWS]
    many, rows = MANY_LABELS, MANY_ROWS
    if args.quick:
        sizes, many, rows = [(100, 10), (100, 40), (200, 10)], 500, 100
    sizes = sorted(set(sizes))
    if "fits" in args.parts:
        yield from (("fit", n, T) for n, T in sizes)
    if "searches" in args.parts:
        yield from (("search", n, T) for n, T in sizes if args.search_labels >= T)
    if "many" in args.parts:
        yield from ((kind, rows, many) for kind in ("all alike", "sparse graph"))


def run(args: argparse.Namespace) -> Iterator[dict]:
    for kind, n, T in cases(args):
        found = in_process(kind, n, T, args.threads, 3)
        print(f"{kind}, {n} rows, {T} labels: {found['seconds']:.3g} s", flush=True)
        yield found


def report(found: list[dict]) -> None:
    bare = [f for f in found if f["kind"] != "search"]
    columns = ("kind", "rows", "labels", "seconds", "gemm_gflops", "limit", "times", "lapack", "peak_mb", "coef_mb")
    rows = [[(f | {"times": f["seconds"] / f["limit"]})[k] for k in columns] for f in bare]
    header = ["kind", "rows", "labels", "seconds", "GEMM GF/s", "limit s", "times limit", "LAPACK s", "peak MB"]
    if rows:
        print_markdown("One fit at given parameters", [*header, "coef MB"], rows)
    fits = {(f["rows"], f["labels"]): f["seconds"] for f in bare if f["kind"] == "fit"}
    rows = []
    for f in (f for f in found if f["kind"] == "search"):
        fit = fits.get((f["rows"], f["labels"]))
        ratio = None if fit is None else f["seconds"] / fit
        rows.append([f["rows"], f["labels"], f["seconds"], f["points"], ratio, f["peak_mb"]])
    if rows:
        header = ["rows", "labels", "seconds", "points", "times one fit", "peak MB"]
        print_markdown("MultiLabelLSPC() with defaults", header, rows)


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.label_scale", __doc__)
    p.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    p.add_argument(
        "--search-labels", type=int, default=500, help="largest number of labels with a search (default 500)"
    )
    args = parse(p, argv)
    settings = {"features": D, "group": GROUP, "alpha": ALPHA, "sharing": SHARING}
    found: list[dict] = []
    for record in run(args):
        found.append(record)
        write_json(args, {"settings": settings, "figures": found}, say=False)
    report(found)
    write_json(args, {"settings": settings, "figures": found})


if __name__ == "__main__":
    main()
