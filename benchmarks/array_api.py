"""Predictions and a fit with torch tensors and with numpy arrays, in one run with the same number of threads.

Rows are of ten classes, each a cloud around one point; sigma and alpha are given. "predict" are
probabilities of all rows, "fit" the sums over all rows and the solution (``solver="moments"``, nothing held out).
"difference" is the largest difference of probabilities from those of numpy in double precision. Torch uses the CPU
by default; ``--device cuda`` selects another device.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from sklearn import config_context

from benchmarks._common import capped, parse, parser, print_table, write_json
from leastwise import LSPC
from leastwise.utils.arrays import to_numpy
from papers._common.timing import timed_median

Array = np.ndarray

ROWS, D, B, C = 200_000, 20, 1000, 10
SIGMA, ALPHA = 4.0, 1e-4


def sample(n: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    places, y = 1.2 * rng.standard_normal((C, D)), rng.integers(C, size=n)
    return places[y] + rng.standard_normal((n, D)), y


def kinds(X: Array, device: str) -> Iterator[tuple[str, str, Any]]:
    """Libraries, types and rows."""
    for dtype in ("float64", "float32"):
        rows = X.astype(dtype)
        yield "numpy", dtype, rows
        if dtype == "float32" or device != "mps":
            yield "torch", dtype, torch.from_numpy(rows).to(device)


def finished(value: Any, device: str) -> Any:
    """The value, after the device has finished computing it."""
    if device != "cpu":
        getattr(torch, device).synchronize()
    return value


def measure(n: int, b: int, repeats: int, device: str) -> list[dict]:
    X, y = sample(n)
    reference, found = None, []
    given = {"sigma": SIGMA, "alpha": ALPHA, "solver": "moments", "cv": None, "calibration": None}
    for get_namespace, dtype, rows in kinds(X, device):
        model = LSPC(centers=X[:b].astype(dtype), **given)
        fit = timed_median(lambda m=model, r=rows: finished(m.fit(r, y), device), repeats, budget=60)
        predict = timed_median(lambda m=model, r=rows: finished(m.predict_proba(r), device), repeats, budget=60)
        P = to_numpy(predict.value)
        reference = P if reference is None else reference
        found.append(
            {
                "library": get_namespace,
                "dtype": dtype,
                "predict_seconds": predict.wall,
                "predict_processor": predict.cpu,
                "rows_per_second": n / predict.wall,
                "fit_seconds": fit.wall,
                "fit_processor": fit.cpu,
                "difference": float(np.abs(P - reference).max()),
            }
        )
    return found


def run(args: argparse.Namespace) -> dict:
    n, b, repeats = (5000, 100, 2) if args.quick else (args.rows, B, args.repeats)
    torch.set_num_threads(args.threads)
    os.environ.setdefault("SCIPY_ARRAY_API", "1")
    with config_context(array_api_dispatch=True):
        figures = measure(n, b, repeats, args.device)
    sizes = {"rows": n, "features": D, "centers": b, "classes": C}
    return {**sizes, "device": args.device, "torch": torch.__version__, "figures": figures}


def report(figures: dict) -> None:
    columns = ["library", "dtype", "predict_seconds", "predict_processor", "rows_per_second", "fit_seconds"]
    columns += ["fit_processor", "difference"]
    header = ["library", "dtype", "predict s", "processor s", "rows/s", "fit s", "processor s", "difference"]
    title = f"{figures['rows']} rows x {D}, {figures['centers']} centres, {C} classes, torch on {figures['device']}"
    print_table(title, header, [[f[k] for k in columns] for f in figures["figures"]])


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.array_api", __doc__)
    p.add_argument("--rows", type=int, default=ROWS)
    p.add_argument("--repeats", type=int, default=5)
    p.add_argument("--device", default="cpu", help="of the tensors (default cpu)")
    args = parse(p, argv)
    with capped(args):
        figures = run(args)
    report(figures)
    write_json(args, figures)


if __name__ == "__main__":
    main()
