"""Where the basis functions sit.

Rows that serve as centres are chosen by their inputs, their weights, and their classes or tasks; what is here returns
their numbers in order. Rows of equal inputs are one row here, with the weights of all: none is chosen twice, and a
weight of 2 is the same as the row twice. ``leastwise.center_rows`` calls what is here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from leastwise.arrays import bring

Array = np.ndarray

#: Rows that k-means++ looks at: random ones, where there are more.
SEED_ROWS = 20_000
#: k-means takes batches of the rows where there are more.
BATCH_ROWS = 10_000


def random_rows(rows: Array, count: int | None, rng: np.random.Generator) -> Array:
    """``count`` of the given row numbers, drawn without replacement, in order; all if there are fewer or for None."""
    if count is None or count >= len(rows):
        return rows
    return np.sort(rng.choice(rows, size=count, replace=False))


def even_rows(rows: Array, kind: Array, count: int, rng: np.random.Generator) -> Array:
    """As many random rows of each kind as of any other, as far as it has so many; ``kind[i]`` is that of row i.

    Where the kinds do not divide ``count``, those with a row more are random too.
    """
    order = rng.permutation(rows)
    order = order[np.argsort(kind[order], kind="stable")]
    sizes = np.unique(kind[order], return_counts=True)[1]
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # among the rows of the kind
    return np.sort(order[np.lexsort((rng.random(len(order)), rank))[:count]])


def drawn_rows(rows: Array, score: Array, count: int, rng: np.random.Generator) -> Array:
    """``count`` of the rows, drawn one after the other in proportion to their scores, without replacement.

    Waiting times do it at once: whoever has twice the score waits half as long. Rows of score 0 come last.
    """
    if count >= len(rows):
        return rows
    wait, luck = np.full(len(rows), np.inf), rng.exponential(size=len(rows))
    np.divide(luck, score, out=wait, where=score > 0)
    return np.sort(rows[np.lexsort((luck, wait))[:count]])


def spread_rows(X: Any, w: Array, rows: Array, count: int, rng: np.random.Generator) -> Array:
    """``count`` of the rows by k-means++: each next one by its squared distance to those that are chosen already.

    ``w`` has the weights of ``rows``, which are distinct.
    """
    from sklearn.cluster import kmeans_plusplus  # takes a tenth of a second to import

    if count >= len(rows):
        return rows
    some = random_rows(np.arange(len(rows)), max(SEED_ROWS, 2 * count), rng)
    seed = int(rng.integers(2**31 - 1))
    _, found = kmeans_plusplus(X[rows[some]], count, sample_weight=w[some], random_state=seed)
    found = np.unique(some[found])
    if len(found) < count:  # distances that are lost in rounding: others are as good
        rest = np.setdiff1d(np.arange(len(rows)), found)
        found = np.concatenate([found, rng.choice(rest, size=count - len(found), replace=False)])
    return np.sort(rows[found])


def cluster_centers(X: Any, w: Array, count: int, rng: np.random.Generator) -> Array:
    """The centres of ``count`` clusters of weighted rows."""
    from sklearn.cluster import KMeans, MiniBatchKMeans  # takes a tenth of a second to import

    maker = KMeans if X.shape[0] <= BATCH_ROWS else MiniBatchKMeans
    seed = int(rng.integers(2**31 - 1))
    fit = maker(n_clusters=count, n_init=1, random_state=seed).fit(X, sample_weight=w)
    return fit.cluster_centers_.astype(X.dtype, copy=False)


def given_centers(centers: Any, n_features: int, dtype: Any) -> Array:
    """The user's centres, checked."""
    if sparse.issparse(centers):
        centers = centers.toarray()
    C = np.asarray(bring(centers), dtype=dtype)
    if C.ndim != 2 or C.shape[1] != n_features or not len(C):
        raise ValueError(
            f"centers is an array of shape {C.shape}; it must hold one centre a row, with the {n_features} features "
            "of X."
        )
    if not np.isfinite(C).all():
        raise ValueError("centers contains NaN or inf; every centre must be finite.")
    return C
