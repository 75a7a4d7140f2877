"""Where the basis functions sit."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from leastwise.arrays import bring

Array = np.ndarray


def random_rows(rows: Array, count: int | None, rng: np.random.Generator) -> Array:
    """``count`` of the given row numbers, drawn without replacement, in order; all if there are fewer or for None."""
    if count is None or count >= len(rows):
        return rows
    return np.sort(rng.choice(rows, size=count, replace=False))


def cluster_centers(X: Any, w: Array, count: int, rng: np.random.Generator) -> Array:
    """The centres of ``count`` clusters of weighted rows."""
    from sklearn.cluster import KMeans, MiniBatchKMeans  # takes a tenth of a second to import

    maker = KMeans if X.shape[0] <= 10_000 else MiniBatchKMeans
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
