"""Kernels for raw tables: which pay, and what their distances cost.

rbf          exp(-|x - z|_2^2 / (2 sigma^2)): distances by one matrix product (GEMM)
laplace      exp(-|x - z|_1 / sigma): sums of absolute differences, which are no product
laplace-l2   exp(-|x - z|_2 / sigma), by one matrix product
matern       (1 + r) exp(-r) with r = |x - z|_2 / sigma, by one matrix product

Quality: LSPC with each kernel and the usual choice of the scale, without feature weights, on the raw tables with 300
training rows; the choices take the kernel with the lowest held-out log-loss of each draw.
Speed: processor seconds of one kernel matrix of n rows with themselves, in units of the product X X' of these rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks._common import capped, parse, parser, print_table, write_json
from benchmarks._table_methods import raw
from benchmarks._tables import classification_sets
from benchmarks.raw_tables import fitted
from leastwise import LSPC
from leastwise.problem.kernels import RBF, inner_products, register_kernel, resolve_kernel
from papers._common.timing import timed_median

Array = np.ndarray
KERNELS = ("rbf", "laplace", "laplace-l2", "matern")
CHOICES = (("rbf", "laplace"), ("rbf", "laplace-l2"), ("rbf", "laplace", "matern"), KERNELS)
ROWS, COLUMNS, LIMIT = 1500, (5, 20, 100, 250), 600
#: Smaller log-losses count as this.
FLOOR = 0.005


@register_kernel("laplace-l2")
@dataclass(frozen=True)
class EuclideanLaplace(RBF):
    """exp(-|x - z|_2 / sigma)."""

    def values(self, pairs: Array, sigma: float, out: Array | None = None) -> Array:
        """From squared distances."""
        r = np.sqrt(pairs, out=out)
        r *= -1 / sigma
        return np.exp(r, out=r)


@register_kernel("matern")
@dataclass(frozen=True)
class Matern(RBF):
    """(1 + r) exp(-r), r = |x - z|_2 / sigma."""

    def values(self, pairs: Array, sigma: float, out: Array | None = None) -> Array:
        """From squared distances."""
        r = np.sqrt(pairs, out=out)
        r /= sigma
        return np.multiply(1 + r, np.exp(-r), out=r)


def quality(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for table in classification_sets(args.data):
        if args.quick and table.name not in ("iris", "breast_cancer"):
            continue
        for draw in range(args.runs):
            if (data := table.draw("all" if args.quick and table.name == "iris" else "300", draw)) is None:
                continue
            for kernel in KERNELS:
                method = raw(lambda seed, name=kernel: LSPC(kernel=name, metric=None, random_state=seed))
                found = fitted(method, data, draw, LIMIT)
                print(f"{table.name}, {draw}, {kernel}: {found['log_loss']:.4f}", flush=True)
                keys = ("log_loss", "heldout_log_loss", "fit_seconds")
                yield {"data": table.name, "run": draw, "kernel": kernel, **{k: found[k] for k in keys}}


def ratios(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Log-loss of each kernel and choice relative to the Gaussian kernel: geometric mean, tables better and worse."""
    cells: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
    for f in found:
        cells.setdefault((f["data"], f["run"]), {})[f["kernel"]] = f
    rows = []
    for names in (*((kernel,) for kernel in KERNELS[1:]), *CHOICES):
        logs: dict[str, list[float]] = {}
        for (data, _), by_kernel in cells.items():
            best = min(names, key=lambda name, by=by_kernel: by[name]["heldout_log_loss"])
            losses = [max(by_kernel[name]["log_loss"], FLOOR) for name in (best, "rbf")]
            logs.setdefault(data, []).append(float(np.log(losses[0] / losses[1])))
        means = np.array([np.mean(each) for each in logs.values()])
        error = float(means.std(ddof=1) / np.sqrt(len(means)))
        counts = {"better": int(np.sum(means < 0)), "worse": int(np.sum(means > 0))}
        rows.append({"kernels": list(names), "ratio": float(np.exp(means.mean())), "error": error, **counts})
    return rows


def speed(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    n = 200 if args.quick else ROWS
    for d in COLUMNS:
        X = np.random.default_rng(d).standard_normal((n, d))
        product = timed_median(lambda X=X: inner_products(X, X), budget=5).cpu
        record = {"rows": n, "columns": d, "product": product}
        for name in KERNELS:
            kernel = resolve_kernel(name, 3, 1.0)
            record[name] = timed_median(lambda X=X, k=kernel: k(X, X, float(X.shape[1])), budget=5).cpu
        yield record


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.kernel_families", __doc__, threads=1, runs=1)
    args = parse(p, argv)
    with capped(args):
        timings, found = list(speed(args)), list(quality(args))
    compared = ratios(found)
    header = ["kernel, or choice", "log-loss / rbf", "standard error", "better", "worse"]
    rows = [
        [", ".join(r["kernels"]), f"{r['ratio']:.3f}", f"{r['error']:.3f}", r["better"], r["worse"]] for r in compared
    ]
    print_table("Kernels on raw tables", header, rows)
    rows = [[t["rows"], t["columns"], *(f"{t[k] / t['product']:.1f}" for k in KERNELS)] for t in timings]
    print_table("Seconds of a kernel matrix / seconds of X X'", ["rows", "columns", *KERNELS], rows)
    write_json(args, {"speed": timings, "compared": compared, "figures": found})


if __name__ == "__main__":
    main()
