r"""Choice of the centres: random, stratified, k-means, k-means++ or by ridge leverage scores.

Rows that serve as centres are chosen by their inputs, weights, and classes or tasks; the functions return sorted row
indices. Equal rows count as one row with their total weight: none is chosen twice, and a weight of 2 is equivalent to
repeating the row.

*Ridge leverage scores.* With weights p that sum to 1, a kernel matrix K and a ridge :math:`\lambda`, they are the
diagonal of :math:`A (A + \lambda I)^{-1}`, :math:`A = P^{1/2} K P^{1/2}`; their sum is the effective dimension. That
costs n^3. Here a pilot sample of random rows represents all rows (Rudi, Calandriello, Carratino and Rosasco 2018 use
a sequence of samples). The residual of row i with respect to the pilot is

.. math:: r_i = k_{ii} - k_{iS} (K_{SS} + \lambda Q^{-1})^{-1} k_{Si},

with the weights q of the pilot's rows, scaled to sum 1, and the score is :math:`p_i r_i / (\lambda + p_i r_i)`. A row
of the pilot is compared with the other rows of the pilot, so that its score is not smaller for being in it. If the
pilot is all rows, the scores are exact. The cost is n m^2 for m rows in the pilot, and memory is bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.optimize import brentq

from leastwise.problem.kernels import Kernel, Precomputed
from leastwise.utils.arrays import bring

Array = np.ndarray
#: ``block(rows, columns)`` is the kernel between rows with these indices.
Block = Callable[[Array, Array], Array]

#: Bounds of the number of rows of the pilot, which is the number of centres within these.
PILOT = (300, 1000)
#: Bytes of kernel values in memory at a time.
CHUNK = 2**25
#: Minimal ridge relative to the mean of k(x, x).
LEAST = 1e-10


def draw_leverage(block: Block, diagonal: Array, w: Array, count: int, rng: np.random.Generator) -> Array:
    """Approximate leverage scores, at the ridge whose effective dimension is half of ``count``.

    Parameters
    ----------
    block : callable
        The kernel between rows with given indices.
    diagonal : ndarray of shape (n,)
        ``k(x, x)`` of all rows.
    w : ndarray of shape (n,)
        Weights of the rows; the scores of copies of a row add up to that of a row of their weights.
    count : int
        Number of centres to draw.

    Returns
    -------
    scores : ndarray of shape (n,), between 0 and 1
    """
    n = len(w)
    m = min(n, int(np.clip(count, *PILOT)))
    pilot = np.sort(rng.choice(n, size=m, replace=False))
    return leverage_scores(block, diagonal, w, pilot, min(count, m) / 2)


def leverage_scores(block: Block, diagonal: Array, w: Array, pilot: Array, size: float) -> Array:
    """Leverage scores from a pilot, at the ridge whose effective dimension on the pilot is ``size``."""
    p, q = w.astype(float) / w.sum(dtype=float), w[pilot].astype(float) / w[pilot].sum(dtype=float)
    S = _finite(block(pilot, pilot))
    root = np.sqrt(q)
    mu, U = eigh(root[:, None] * S * root)
    mu = np.maximum(mu, 0)
    ridge = ridge_of_size(mu, size)
    left, V = np.empty(len(p)), root[:, None] * U / np.sqrt(mu + ridge)
    step = max(1, CHUNK // (8 * len(pilot)))
    for start in range(0, len(p), step):
        part = np.arange(start, min(start + step, len(p)))
        left[part] = diagonal[part] - np.sum((_finite(block(part, pilot)) @ V) ** 2, axis=1)
    own = np.minimum((U**2) @ (mu / (mu + ridge)), 1 - 1e-12)
    left[pilot] = ridge / q * own / (1 - own)  # residual with respect to the other rows of the pilot
    gain = p * np.maximum(left, 0)
    return gain / (ridge + gain)


def ridge_of_size(mu: Array, size: float) -> float:
    """The ridge with ``sum(mu / (mu + ridge)) = size``; the minimal ridge if ``size`` cannot be reached."""
    total = float(mu.sum())
    if not total > 0:
        return 1.0

    def excess(log_ridge: float) -> float:
        return float(np.sum(mu / (mu + np.exp(log_ridge)))) - size

    low, high = np.log(total * LEAST), np.log(total / size) + 1
    return float(np.exp(low if excess(low) <= 0 else brentq(excess, low, high)))


def _finite(K: Array) -> Array:
    if not np.isfinite(K).all():
        raise ValueError("Kernel values are not finite: scale the features.")
    return K.astype(float)


#: Maximal number of (random) rows for k-means++.
SEED_ROWS = 20_000
#: Above this number of rows, k-means uses mini-batches.
BATCH_ROWS = 10_000


def random_rows(rows: Array, count: int | None, rng: np.random.Generator) -> Array:
    """``count`` of the given rows, drawn without replacement, sorted; all if there are fewer or ``count`` is None."""
    if count is None or count >= len(rows):
        return rows
    return np.sort(rng.choice(rows, size=count, replace=False))


def even_rows(rows: Array, kind: Array, count: int, rng: np.random.Generator) -> Array:
    """Equal numbers of random rows of each kind, as far as possible; ``kind[i]`` is that of row i.

    If ``count`` is not divisible by the number of kinds, the kinds with one more row are random.
    """
    order = rng.permutation(rows)
    order = order[np.argsort(kind[order], kind="stable")]
    sizes = np.unique(kind[order], return_counts=True)[1]
    rank = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # within the kind
    return np.sort(order[np.lexsort((rng.random(len(order)), rank))[:count]])


def drawn_rows(rows: Array, score: Array, count: int, rng: np.random.Generator) -> Array:
    """``count`` of the rows, drawn without replacement with probabilities proportional to their scores.

    Exponential waiting times with the scores as rates draw all rows at once. Rows of score 0 come last.
    """
    if count >= len(rows):
        return rows
    wait, luck = np.full(len(rows), np.inf), rng.exponential(size=len(rows))
    np.divide(luck, score, out=wait, where=score > 0)
    return np.sort(rows[np.lexsort((luck, wait))[:count]])


def spread_rows(X: Any, w: Array, rows: Array, count: int, rng: np.random.Generator) -> Array:
    """``count`` of the rows by k-means++: each is drawn by its squared distance to the rows chosen before.

    ``w`` are the weights of ``rows``, which are distinct.
    """
    from sklearn.cluster import kmeans_plusplus  # takes a tenth of a second to import

    if count >= len(rows):
        return rows
    some = random_rows(np.arange(len(rows)), max(SEED_ROWS, 2 * count), rng)
    seed = int(rng.integers(2**31 - 1))
    _, found = kmeans_plusplus(X[rows[some]], count, sample_weight=w[some], random_state=seed)
    found = np.unique(some[found])
    if len(found) < count:  # distances of zero by rounding: fill up with random rows
        rest = np.setdiff1d(np.arange(len(rows)), found)
        found = np.concatenate([found, rng.choice(rest, size=count - len(found), replace=False)])
    return np.sort(rows[found])


def cluster_centers(X: Any, w: Array, count: int, rng: np.random.Generator) -> Array:
    """Cluster centres of weighted rows by k-means."""
    from sklearn.cluster import KMeans, MiniBatchKMeans  # takes a tenth of a second to import

    maker = KMeans if X.shape[0] <= BATCH_ROWS else MiniBatchKMeans
    seed = int(rng.integers(2**31 - 1))
    fit = maker(n_clusters=count, n_init=1, random_state=seed).fit(X, sample_weight=w)
    return fit.cluster_centers_.astype(X.dtype, copy=False)


def given_centers(centers: Any, n_features: int, dtype: Any) -> Array:
    """Validated user-supplied centres."""
    if sparse.issparse(centers):
        centers = centers.toarray()
    C = np.asarray(bring(centers), dtype=dtype)
    if C.ndim != 2 or C.shape[1] != n_features or not len(C):
        raise ValueError(
            f"centers is an array of shape {C.shape}; it must hold one centre per row, with the {n_features} "
            "features of X."
        )
    if not np.isfinite(C).all():
        raise ValueError("centers contains NaN or inf; every centre must be finite.")
    return C


#: Rows of the blocks from which the diagonal of the kernel is taken.
DIAGONAL = 64


@dataclass(frozen=True)
class Recipe:
    """Specification of a basis.

    Attributes
    ----------
    kind : {"full", "class"}
        Model (5) or (7).
    n_centers : int or None
        Number of centres, per class with ``kind="class"``; None for all rows.
    centers : {"random", "kmeans", "kmeans++", "leverage", "class", "task"} or array
        How the centres are chosen.
    norm : {"function", "coefficients"}
    kernel : Kernel, optional
        Kernel of the leverage scores, for ``centers="leverage"``.
    sigma : float
        The width of that kernel.
    """

    kind: str = "full"
    n_centers: int | None = None
    centers: Any = "random"
    norm: str = "function"
    kernel: Kernel | None = None
    sigma: float = 1.0


def center_rows(recipe: Recipe, X: Any, kind: Array | None, w: Array, rows: Array, rng: np.random.Generator) -> Array:
    """Choose the centres among distinct rows.

    Parameters
    ----------
    kind : ndarray of int or None
        Class or task of every row of X, for stratified choices.
    w : ndarray
        Weights of ``rows``, including those of their copies.
    rows : ndarray of int
        Sorted row indices.
    """
    method, count = recipe.centers, recipe.n_centers
    if method == "random" or count is None or count >= len(rows):
        return random_rows(rows, count, rng)
    if method == "kmeans++":
        return spread_rows(X, w, rows, count, rng)
    if method == "leverage":
        return drawn_rows(rows, _row_leverage(recipe, X, w, rows, count, rng), count, rng)
    assert kind is not None
    return even_rows(rows, kind, count, rng)


def _row_leverage(recipe: Recipe, X: Any, w: Array, rows: Array, count: int, rng: np.random.Generator) -> Array:
    """Leverage scores of rows with the kernel of the recipe."""
    kernel, sigma = recipe.kernel, recipe.sigma
    assert kernel is not None
    if isinstance(kernel, Precomputed):
        return draw_leverage(lambda a, b: X[np.ix_(rows[a], rows[b])], X[rows, rows].astype(float), w, count, rng)
    diagonal = _kernel_diagonal(kernel, X, rows, sigma)
    return draw_leverage(lambda a, b: kernel(X[rows[a]], X[rows[b]], sigma), diagonal, w, count, rng)


def _kernel_diagonal(kernel: Kernel, X: Any, rows: Array, sigma: float) -> Array:
    """``k(x, x)`` of the rows."""
    if kernel.distance:
        return np.ones(len(rows))
    parts = (X[rows[start : start + DIAGONAL]] for start in range(0, len(rows), DIAGONAL))
    return np.concatenate([np.diagonal(kernel(part, part, sigma)) for part in parts]).astype(float)
