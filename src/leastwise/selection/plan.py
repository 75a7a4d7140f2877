"""What a fit costs, and on how many rows the search is made."""

from __future__ import annotations

import numpy as np

from leastwise.basis import Basis

#: A step of the search should cost no more than the eigendecomposition of this many rows.
SEARCH_ROWS = 1000
#: Arrays of the size of the kernel matrix that a fit holds at its peak.
ARRAYS = 5


def decomposition_cost(n: int, widths: list[int], square: bool) -> float:
    """Operations for one sigma: an eigendecomposition, or a singular value decomposition for each block."""
    if square:
        return 12.0 * n**3
    return sum(10.0 * n * min(b, n) ** 2 for b in widths)


def rows_to_search(basis: Basis, n: int, wish: int | str | None) -> int:
    """How many rows serve the search.

    Parameters
    ----------
    wish : "auto", int or None
        A number is taken as it is, None means all rows. "auto" takes all rows where one decomposition costs no
        more than that of ``SEARCH_ROWS`` rows with as many basis functions, else as many rows as keep to that.
    """
    if wish is None:
        return n
    if wish != "auto":
        return min(n, int(wish))
    widths = [block.columns.stop - block.columns.start for block in basis.blocks]
    budget = decomposition_cost(SEARCH_ROWS, [], square=True)
    candidates = np.unique(np.geomspace(min(n, SEARCH_ROWS), n, 50).astype(int))[::-1]
    for m in candidates:
        narrow = [int(np.ceil(b * m / n)) for b in widths] if sum(widths) >= n else widths
        if decomposition_cost(int(m), narrow, basis.square) <= budget:
            return int(m)
    return min(n, SEARCH_ROWS)
