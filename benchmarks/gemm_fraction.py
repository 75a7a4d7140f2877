"""How much of the machine's matrix-product speed does one fit at given sigma and alpha reach?

A matrix product (GEMM, float64) is timed in the same run, with the same threads, right before each fit.
Operations are counted in two ways. "fraction" counts what is carried out:

    kernel            2 n^2 d      (a plain product; a symmetric one was measured to be slower)
    square            n^3          (norm="coefficients" only; K K' is symmetric)
    factor            n^3 / 3      (Cholesky)
    solve             2 n^2 c      (and 2 n^2 c for the last product, norm="coefficients" only)

"least" counts n^2 d for the first, the fewest operations that dense linear algebra needs.
The steps are also timed separately, including scikit-learn's input validation and the search for equal rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np
from sklearn.utils import check_X_y

from benchmarks._common import capped, gemm_speed, parse, parser, print_table, timed_fresh, write_json
from leastwise import LSPC
from leastwise.linalg.decompositions import cholesky
from leastwise.model_selection.folds import distinct_rows
from leastwise.problem.kernels import RBF
from papers._common.data import median_distance
from papers._common.timing import timed_median

SIZES = (1000, 2000, 4000, 8000)
D, C, ALPHA = 256, 10, 1e-3
#: A larger product does not run at a higher rate.
GEMM_CAP = 4000


def operations(n: int, norm: str, least: bool = False) -> float:
    square = n**3 + 2 * n**2 * C if norm == "coefficients" else 0
    return (1 if least else 2) * n**2 * D + square + n**3 / 3 + 2 * n**2 * C


def sample(n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    return rng.standard_normal((n, D)), rng.integers(C, size=n)


def whole_fit(n: int, norm: str, repeats: int) -> dict:
    X, y = sample(n)
    speed = gemm_speed(min(n, GEMM_CAP), repeats)
    model = LSPC(median_distance(X, 1000), ALPHA, norm=norm, cv=None, calibration=None)
    seconds = timed_median(lambda: model.fit(X, y), repeats, budget=60).wall
    peak = speed * seconds
    return {
        "n": n,
        "norm": norm,
        "seconds": seconds,
        "gemm_gflops": speed / 1e9,
        "gflops": operations(n, norm) / seconds / 1e9,
        "fraction": operations(n, norm) / peak,
        "fraction_least": operations(n, norm, least=True) / peak,
        "jitter": model.jitter_,
    }


def pieces(n: int, repeats: int) -> dict:
    """Seconds of each step, by the functions of the library."""
    X, y = sample(n)
    kernel, sigma, Z = RBF(), median_distance(X, 1000), np.eye(C)[y]
    D2 = kernel.pairs(X, X)
    K = kernel.values(D2, sigma)
    factor = cholesky(K, ridge=n * ALPHA)

    def median(call: object) -> float:
        return timed_median(call, repeats).wall  # type: ignore[arg-type]

    return {
        "n": n,
        "pairs": median(lambda: kernel.pairs(X, X)),
        "exp": timed_fresh(D2.copy, lambda A: kernel.values(A, sigma, out=A), repeats),
        "square": median(lambda: K @ K.T),
        "factor": timed_fresh(K.copy, lambda A: cholesky(A, ridge=n * ALPHA, overwrite=True), repeats),
        "solve": median(lambda: factor.solve(Z)),
        "checks": median(lambda: check_X_y(X, y)),
        "equal_rows": median(lambda: distinct_rows(X)),
    }


def run(args: argparse.Namespace) -> dict:
    sizes, repeats = ((200, 400), 2) if args.quick else (SIZES, args.repeats)
    fits = [whole_fit(n, norm, repeats) for n in sizes for norm in ("function", "coefficients")]
    return {"d": D, "classes": C, "fits": fits, "pieces": [pieces(n, repeats) for n in sizes]}


def report(figures: dict) -> None:
    columns = ["n", "norm", "seconds", "gemm_gflops", "gflops", "fraction", "fraction_least"]
    header = ["n", "norm", "seconds", "GEMM GF/s", "fit GF/s", "fraction", "least"]
    print_table(f"Bare fit, d = {D}, {C} classes", header, [[f[k] for k in columns] for f in figures["fits"]])
    columns = ["n", "pairs", "exp", "square", "factor", "solve", "checks", "equal_rows"]
    rows = [[p[k] for k in columns] for p in figures["pieces"]]
    print_table("Seconds by step (square: norm='coefficients' only)", columns, rows)


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.gemm_fraction", __doc__)
    p.add_argument("--repeats", type=int, default=5)
    args = parse(p, argv)
    with capped(args):
        figures = run(args)
    report(figures)
    write_json(args, figures)


if __name__ == "__main__":
    main()
