"""Similarities of tasks or labels: clustered orders, block means and the closest pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.spatial.distance import squareform

Array = np.ndarray

#: The leaves of larger trees are not put into the optimal order, which takes time cubic in their number.
OPTIMAL_ORDER = 200


def dense(matrix: Any) -> Array:
    """A copy as a dense array of floats."""
    return np.array(matrix.toarray() if sparse.issparse(matrix) else matrix, dtype=float)


def off_diagonal(matrix: Array) -> Array:
    """All off-diagonal entries."""
    return matrix[~np.eye(len(matrix), dtype=bool)]


def all_equal(matrix: Array, tol: float = 1e-12) -> bool:
    """True if all pairs are equally similar, up to a tolerance relative to the largest similarity."""
    off = off_diagonal(np.nan_to_num(matrix))
    return bool(np.ptp(off) <= tol * np.abs(off).max()) if len(off) else True


def clustered_order(matrix: Array, signed: bool) -> Array:
    """The order of the leaves of an average-linkage tree; unchanged if all pairs are equally similar."""
    S = np.nan_to_num((matrix + matrix.T) / 2)
    if all_equal(S):
        return np.arange(len(S))
    if signed:
        # A few pairs help each other far more than the rest; square roots reduce their dominance.
        S = np.sign(S) * np.sqrt(np.abs(S))
    distance = off_diagonal(S).max() - S
    np.fill_diagonal(distance, 0)
    optimal = len(S) <= OPTIMAL_ORDER
    tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=optimal)
    return leaves_list(tree).astype(int)


def block_means(S: Array, side: int) -> tuple[Array, int]:
    """Means over blocks of neighbours without the diagonal, at most ``side`` blocks per side, and the block size."""
    size = int(np.ceil(len(S) / side))
    if size == 1:
        return S, 1
    S, edges = S.copy(), np.arange(0, len(S), size)
    np.fill_diagonal(S, 0)
    there = 1.0 - np.eye(len(S))
    total, count = (np.add.reduceat(np.add.reduceat(A, edges, axis=0), edges, axis=1) for A in (S, there))
    return np.where(count > 0, total / np.maximum(count, 1), np.nan), size


def extreme_pairs(S: Array, most: int) -> tuple[list[tuple[int, int, float]], list[tuple[int, int, float]]]:
    """The most similar pairs, and up to a third as many others of negative similarity, lowest last."""
    i, j = np.triu_indices(len(S), 1)
    values = (S[i, j] + S[j, i]) / 2
    top = np.argsort(-values, kind="stable")[:most]
    low = np.argsort(values, kind="stable")[: most // 3]
    low = low[(values[low] < 0) & ~np.isin(low, top)][::-1]
    first, last = ([(int(i[k]), int(j[k]), float(values[k])) for k in some] for some in (top, low))
    return first, last
