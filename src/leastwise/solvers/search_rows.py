"""How many rows the hyperparameter search uses, from the cost of one decomposition."""

from __future__ import annotations

import numpy as np

from leastwise.problem.basis import Basis
from leastwise.solvers.heldout import Folds

#: One search step should cost no more than the eigendecomposition of this many rows.
SEARCH_ROWS = 1000
#: Rows times (basis functions + 100) of a search step whose cost is linear in the rows; 100 is the overhead per row.
ARROW_NUMBERS = 3_000_000
#: Rows times basis functions up to which alpha and sharing are refined on all rows after a search on a subsample.
SETTLE_NUMBERS = 20_000_000
#: Up to this many alphas, one Cholesky factor per alpha is cheaper than one eigendecomposition.
FEW_ALPHAS = 5
#: Peak memory of a fit in arrays of the size of the kernel matrix, by norm.
ARRAYS = {"function": 7, "coefficients": 10}


def decomposition_cost(n: int, widths: list[int], square: bool) -> float:
    """Operations for one sigma: an eigendecomposition, or a singular value decomposition per block."""
    if square:
        return 12.0 * n**3
    return sum(10.0 * n * min(b, n) ** 2 for b in widths)


def rows_to_search(basis: Basis, n: int, requested: int | str | None) -> int:
    """Number of rows for the search; see ``count_rows_to_search``."""
    widths = [block.columns.stop - block.columns.start for block in basis.blocks]
    return count_rows_to_search(widths, basis.square, n, requested)


def count_rows_to_search(widths: list[int], square: bool, n: int, requested: int | str | None) -> int:
    """Number of rows for the search.

    Parameters
    ----------
    widths : list of int
        Number of basis functions in each block.
    square : bool
        True if every row is a centre.
    requested : "auto", int or None
        A number is used as it is, None means all rows. "auto" means all rows if one decomposition costs no more than
        that of ``SEARCH_ROWS`` rows with as many basis functions, otherwise as many rows as stay within that cost.
    """
    if requested is None:
        return n
    if requested != "auto":
        return min(n, int(requested))
    budget = decomposition_cost(SEARCH_ROWS, [], square=True)
    candidates = np.unique(np.geomspace(min(n, SEARCH_ROWS), n, 50).astype(int))[::-1]
    for m in candidates:
        narrow = [int(np.ceil(b * m / n)) for b in widths] if sum(widths) >= n else widths
        if decomposition_cost(int(m), narrow, square) <= budget:
            return int(m)
    return min(n, SEARCH_ROWS)


def task_rows_to_search(b: int, n: int, requested: int | str | None, by_arrow: bool) -> int:
    """Number of rows for the search of a multi-task model with b basis functions; see ``rows_to_search``."""
    if requested is None:
        return n
    if requested != "auto":
        return min(n, int(requested))
    return min(n, max(SEARCH_ROWS, ARROW_NUMBERS // (b + 100))) if by_arrow else min(n, SEARCH_ROWS)


def search_bytes(numbers: int) -> int:
    """Bytes that the decompositions take for a search on a design with so many entries."""
    return 6 * 8 * numbers


def cheaper_to_refit(n: int, b: int, folds: Folds, square: bool, owned: bool, alphas: int) -> bool:
    """True if decomposing every fold's training part is cheaper than one decomposition and a block system per fold.

    The block system of a fold of m rows, twice as large if its rows own basis functions, has to be formed and solved
    for every alpha. For a few large folds that costs more than one decomposition per fold.
    """
    if len(folds.singles):
        return False
    sizes = np.array([len(block) for block in folds.blocks], dtype=float)
    size = sizes * (2 if owned else 1)
    blocks = decomposition_cost(n, [b], square) + alphas * float(np.sum(2 * size**2 * min(n, b) + size**3))
    left = [max(1.0, b - m) if square or owned else b for m in sizes]
    refits = sum(decomposition_cost(int(n - m), [int(c)], square) for m, c in zip(sizes, left, strict=True))
    return refits < blocks
