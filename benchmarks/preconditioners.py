"""Which columns of the kernel matrix make the best preconditioner of conjugate gradients?

Block conjugate gradients on ``K + n alpha I`` with all rows as centres: rows of 20 features in 10 classes of 10
clouds each, a Gaussian kernel. The preconditioner is a partial Cholesky factor of the library's rank. Pivots are
drawn in proportion to the residual diagonal (RPCholesky, in blocks, as in the library), taken greedily where that is
largest, or drawn uniformly. "none" iterates without one. The kernel matrix is stored, in double precision, so that
iterations can be compared for any tolerance. Seconds are processor time of one thread, of factor and iterations.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks._common import capped, parse, parser, print_table, write_json
from benchmarks.large_n import make_clouds
from leastwise.linalg.decompositions import BLOCK, pivoted_cholesky, ridge_inverse
from leastwise.linalg.krylov import Krylov, block_cg
from leastwise.problem.kernels import RBF
from leastwise.solvers.work import preconditioner_rank
from papers._common.timing import timed

Array = np.ndarray

ROWS, SIGMA = 5000, 2.9
ALPHAS, TOLERANCES = (1e-4, 1e-6), (1e-3, 1e-6)


class Greedy:
    """In the place of a generator: the rows with the largest residual diagonal."""

    def choice(self, n: int, size: int, replace: bool, p: Array) -> Array:
        """The first of them."""
        return np.argsort(-p, kind="stable")[:size]


class Uniform:
    """In the place of a generator: rows drawn with equal probabilities."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def choice(self, n: int, size: int, replace: bool, p: Array) -> Array:
        """Some rows that have not been drawn."""
        return self.rng.choice(np.flatnonzero(p > 0), size=size, replace=False)


#: Generator and number of pivots drawn at a time.
WAYS: dict[str, tuple[Any, int]] = {
    "RPCholesky": (np.random.default_rng(0), BLOCK),
    "greedy": (Greedy(), 1),
    "uniform": (Uniform(), BLOCK),
}


def solve(K: Array, Z: Array, L: Array, rho: float, tol: float) -> Krylov:
    """Solve ``(K + rho) X = Z``, with the preconditioner ``L L' + rho`` if L has columns."""
    inverse = ridge_inverse(L, rho) if L.shape[1] else None
    return block_cg(lambda V: K @ V + rho * V, Z, inverse, tol, 500)


def compare(n: int) -> list[dict]:
    """Iterations and seconds of every way, for every alpha and tolerance."""
    X, y = make_clouds(n)
    K, Z, rank, found = RBF()(X, X, SIGMA), np.eye(int(y.max()) + 1)[y], preconditioner_rank(n, 8), []
    for way in (*WAYS, "none"):
        L, factored = np.empty((n, 0)), 0.0
        if way != "none":
            generator, block = WAYS[way]
            diagonal = np.diagonal(K).copy()
            run = timed(partial(pivoted_cholesky, diagonal, partial(np.take, K, axis=1), rank, generator, 0.0, block))
            L, factored = run.value[0], run.cpu
        for alpha in ALPHAS:
            for tol in TOLERANCES:
                run = timed(partial(solve, K, Z, L, alpha * n, tol))
                point = {"way": way, "rank": L.shape[1], "alpha": alpha, "tol": tol, "seconds": factored + run.cpu}
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
