"""Which columns of the kernel matrix make the best preconditioner of conjugate gradients?

Block conjugate gradients on ``K + n alpha I`` with all rows as centres: rows of 20 features in 10 classes of 10 clouds
each, a Gaussian kernel. The preconditioner is a partial Cholesky factor of the rank that the library uses. Pivots are
drawn in proportion to the residual diagonal (RPCholesky, in blocks, as in the library), taken greedily where that is
largest, or drawn uniformly. "none" iterates without one. The kernel matrix is stored, in double precision, so that
iterations can be compared for any tolerance; seconds are processor time of one thread, of factor and iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks._common import capped, parse, parser, print_table, write_json
from benchmarks.large_n import make_clouds
from leastwise.linalg.decompositions import BLOCK, pivoted_cholesky, ridge_inverse
from leastwise.linalg.krylov import block_cg
from leastwise.problem.kernels import RBF
from leastwise.solvers.work import preconditioner_rank
from papers._common.timing import timed

Array = np.ndarray

ROWS, SIGMA = 5000, 2.9
ALPHAS, TOLERANCES = (1e-4, 1e-6), (1e-3, 1e-6)


class Greedy:
    """In the place of a generator: the rows with the largest residual diagonal."""

    def choice(self, n: int, size: int, replace: bool, p: Array) -> Array:
        return np.argsort(-p, kind="stable")[:size]


class Uniform:
    """In the place of a generator: rows drawn with equal probabilities."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def choice(self, n: int, size: int, replace: bool, p: Array) -> Array:
        return self.rng.choice(np.flatnonzero(p > 0), size=size, replace=False)


#: Generator and number of pivots drawn at a time.
WAYS: dict[str, tuple[Any, int]] = {
    "RPCholesky": (np.random.default_rng(0), BLOCK),
    "greedy": (Greedy(), 1),
    "uniform": (Uniform(), BLOCK),
}


def compare(n: int) -> list[dict]:
    """Iterations and seconds of every way, for every alpha and tolerance."""
    X, y = make_clouds(n)
    K, Z, rank, found = RBF()(X, X, SIGMA), np.eye(int(y.max()) + 1)[y], preconditioner_rank(n, 8), []
    for way in (*WAYS, "none"):
        L, began = np.empty((n, 0)), 0.0
        if way != "none":
            generator, block = WAYS[way]
            run = timed(
                lambda: pivoted_cholesky(np.diagonal(K).copy(), lambda i: K[:, i], rank, generator, 0.0, block)
            )  # noqa: B023
            L, began = run.value[0], run.cpu
        for alpha in ALPHAS:
            rho = alpha * n
            for tol in TOLERANCES:

                def solve() -> Any:
                    inverse = ridge_inverse(L, rho) if L.shape[1] else None  # noqa: B023
                    return block_cg(lambda V: K @ V + rho * V, Z, inverse, tol, 500)  # noqa: B023

                run = timed(solve)
                point = {"way": way, "rank": L.shape[1], "alpha": alpha, "tol": tol, "seconds": began + run.cpu}
                found.append({**point, "iterations": run.value.n_iter, "converged": run.value.converged})
    return found


def report(found: list[dict], n: int) -> None:
    header = ["pivots", "rank", *(f"alpha {a:g}, tol {t:g}" for a in ALPHAS for t in TOLERANCES)]
    rows = []
    for way in dict.fromkeys(f["way"] for f in found):
        here = [f for f in found if f["way"] == way]
        cells = [f"{'' if f['converged'] else '> '}{f['iterations']} ({f['seconds']:.2g} s)" for f in here]
        rows.append([way, here[0]["rank"], *cells])
    print_table(f"Iterations and seconds, {n:,} rows", header, rows)


def main(argv: Sequence[str] | None = None) -> None:
    p = parser("benchmarks.preconditioners", __doc__, threads=1)
    p.add_argument("--rows", type=int, default=ROWS)
    args = parse(p, argv)
    n = 300 if args.quick else args.rows
    with capped(args):
        found = compare(n)
    report(found, n)
    write_json(args, {"rows": n, "features": 20, "sigma": SIGMA, "figures": found})


if __name__ == "__main__":
    main()
