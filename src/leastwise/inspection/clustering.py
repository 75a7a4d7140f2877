"""An order of tasks or labels in which those that go together stand together."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

Array = np.ndarray


def dense(matrix: Any) -> Array:
    """A copy as an array; what a sparse matrix does not store is 0."""
    return np.array(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=float)


def off_diagonal(matrix: Array) -> Array:
    """All entries but those of the diagonal."""
    return matrix[~np.eye(len(matrix), dtype=bool)]


def all_alike(matrix: Array) -> bool:
    """Whether there is no difference between pairs of tasks."""
    off = off_diagonal(np.nan_to_num(matrix))
    return bool(np.ptp(off) <= 1e-12 * np.abs(off).max()) if len(off) else True


def clustered(matrix: Array, signed: bool) -> Array:
    """The order of the leaves where tasks are merged by mean similarity; as given where all are equally similar."""
    S = np.nan_to_num((matrix + matrix.T) / 2)
    if all_alike(S):
        return np.arange(len(S))
    if signed:
        # A few pairs help each other far more than the rest; the roots let the rest count too.
        S = np.sign(S) * np.sqrt(np.abs(S))
    distance = off_diagonal(S).max() - S
    np.fill_diagonal(distance, 0)
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=True)
    return leaves_list(tree).astype(int)
