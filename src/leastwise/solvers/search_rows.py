"""What a fit costs, and on how many rows the search is made."""

from __future__ import annotations

import numpy as np

from leastwise.problem.basis import Basis
from leastwise.solvers.heldout import Folds

#: A step of the search should cost no more than the eigendecomposition of this many rows.
SEARCH_ROWS = 1000
#: Rows times basis functions (and 100, for what each row costs beside) of a step that is linear in the rows.
ARROW_NUMBERS = 3_000_000
#: Rows times basis functions up to which alpha and sharing are settled on all rows, after a search on some.
SETTLE_NUMBERS = 20_000_000
#: Up to this many alphas, a Cholesky factor for each is cheaper than one eigendecomposition.
FEW_ALPHAS = 5
#: Arrays of the size of the kernel matrix that a fit holds at its peak, by norm.
ARRAYS = {"function": 7, "coefficients": 10}


def decomposition_cost(n: int, widths: list[int], square: bool) -> float:
    """Operations for one sigma: an eigendecomposition, or a singular value decomposition for each block."""
    if square:
        return 12.0 * n**3
    return sum(10.0 * n * min(b, n) ** 2 for b in widths)


def rows_to_search(basis: Basis, n: int, wish: int | str | None) -> int:
    """How many rows serve the search; see ``count_rows_to_search``."""
    widths = [block.columns.stop - block.columns.start for block in basis.blocks]
    return count_rows_to_search(widths, basis.square, n, wish)


def count_rows_to_search(widths: list[int], square: bool, n: int, wish: int | str | None) -> int:
    """How many rows serve the search.

    Parameters
    ----------
    widths : list of int
        Basis functions of every block.
    square : bool
        Every row is a centre.
    wish : "auto", int or None
        A number is taken as it is, None means all rows. "auto" takes all rows where one decomposition costs no
        more than that of ``SEARCH_ROWS`` rows with as many basis functions, else as many rows as keep to that.
    """
    if wish is None:
        return n
    if wish != "auto":
        return min(n, int(wish))
    budget = decomposition_cost(SEARCH_ROWS, [], square=True)
    candidates = np.unique(np.geomspace(min(n, SEARCH_ROWS), n, 50).astype(int))[::-1]
    for m in candidates:
        narrow = [int(np.ceil(b * m / n)) for b in widths] if sum(widths) >= n else widths
        if decomposition_cost(int(m), narrow, square) <= budget:
            return int(m)
    return min(n, SEARCH_ROWS)


def task_rows_to_search(b: int, n: int, wish: int | str | None, by_arrow: bool) -> int:
    """How many rows serve the search of a multi-task model with b basis functions; see ``rows_to_search``."""
    if wish is None:
        return n
    if wish != "auto":
        return min(n, int(wish))
    return min(n, max(SEARCH_ROWS, ARROW_NUMBERS // (b + 100))) if by_arrow else min(n, SEARCH_ROWS)


def search_bytes(numbers: int) -> int:
    """What the decompositions take for a search on a design of so many numbers."""
    return 6 * 8 * numbers


def cheaper_to_refit(n: int, b: int, folds: Folds, square: bool, owned: bool, alphas: int) -> bool:
    """Whether to decompose the training part of every fold, rather than all rows once and then each fold's block.

    The block of a fold of m rows, twice as large where its rows own basis functions, has to be made and solved for
    every alpha: for few large folds that is dearer than a decomposition for each fold.
    """
    if len(folds.singles):
        return False
    sizes = np.array([len(block) for block in folds.blocks], dtype=float)
    size = sizes * (2 if owned else 1)
    blocks = decomposition_cost(n, [b], square) + alphas * float(np.sum(2 * size**2 * min(n, b) + size**3))
    left = [max(1.0, b - m) if square or owned else b for m in sizes]
    refits = sum(decomposition_cost(int(n - m), [int(c)], square) for m, c in zip(sizes, left, strict=True))
    return refits < blocks
