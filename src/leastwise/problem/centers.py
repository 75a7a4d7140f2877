r"""Ridge leverage scores: how much of each row's own direction the other rows leave to it.

With weights p that sum to 1, a kernel matrix K and a ridge :math:`\lambda`, they are the diagonal of
:math:`A (A + \lambda I)^{-1}`, :math:`A = P^{1/2} K P^{1/2}`; their sum is the effective dimension. That costs n^3.
Here a pilot of some random rows stands for all others (Rudi, Calandriello, Carratino and Rosasco 2018 take several,
one after the other): what the pilot leaves of row i is

.. math:: r_i = k_{ii} - k_{iS} (K_{SS} + \lambda Q^{-1})^{-1} k_{Si},

with the weights q of the pilot's rows, scaled to sum 1, and the score is :math:`p_i r_i / (\lambda + p_i r_i)`. A row
of the pilot is compared with the others of the pilot, so that it has no smaller score for being one of them. Where
the pilot is all rows, these are the exact scores. The cost is n m^2 for m rows in the pilot, and memory is bounded.

Where the basis functions sit.

Rows that serve as centres are chosen by their inputs, their weights, and their classes or tasks; what is here returns
their numbers in order. Rows of equal inputs are one row here, with the weights of all: none is chosen twice, and a
weight of 2 is the same as the row twice. ``leastwise.problem.centers`` calls what is here.

Which rows are centres, by the way that a recipe names.
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
#: ``block(rows, columns)`` is the kernel between rows of these numbers.
Block = Callable[[Array, Array], Array]

#: Rows of a pilot: as many as there are centres, within these bounds.
PILOT = (300, 1000)
#: Bytes of kernel values that are held at a time.
CHUNK = 2**25
#: The ridge is no smaller than this share of the mean of k(x, x).
LEAST = 1e-10


def draw_leverage(block: Block, diagonal: Array, w: Array, count: int, rng: np.random.Generator) -> Array:
    """Approximate scores of rows, at the ridge whose effective dimension is half of ``count``.

    Parameters
    ----------
    block : callable
        The kernel between rows of given numbers.
    diagonal : ndarray of shape (n,)
        ``k(x, x)`` of all rows.
    w : ndarray of shape (n,)
        Weights of the rows; the scores of copies of a row add up to that of a row of their weights.
    count : int
        How many centres are to be drawn.

    Returns
    -------
    scores : ndarray of shape (n,), between 0 and 1
    """
    n = len(w)
    m = min(n, int(np.clip(count, *PILOT)))
    pilot = np.sort(rng.choice(n, size=m, replace=False))
    return leverage_scores(block, diagonal, w, pilot, min(count, m) / 2)


def leverage_scores(block: Block, diagonal: Array, w: Array, pilot: Array, size: float) -> Array:
    """Scores by a pilot of rows, at the ridge whose effective dimension is ``size`` on the pilot."""
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
    left[pilot] = ridge / q * own / (1 - own)  # what the others of the pilot leave
    gain = p * np.maximum(left, 0)
    return gain / (ridge + gain)


def ridge_of_size(mu: Array, size: float) -> float:
    """The ridge with ``sum(mu / (mu + ridge)) = size``; the least there may be where so much is out of reach."""
    total = float(mu.sum())
    if not total > 0:
        return 1.0

    def excess(log_ridge: float) -> float:
        return float(np.sum(mu / (mu + np.exp(log_ridge)))) - size

    low, high = np.log(total * LEAST), np.log(total / size) + 1
    return float(np.exp(low if excess(low) <= 0 else brentq(excess, low, high)))


def _finite(K: Array) -> Array:
    if not np.isfinite(K).all():
        raise ValueError("The kernel has values that are not finite on these rows: scale the features.")
    return K.astype(float)


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


#: Rows whose kernels with themselves are taken out of a square block at a time.
DIAGONAL = 64


@dataclass(frozen=True)
class Recipe:
    """How a basis is chosen.

    Attributes
    ----------
    kind : {"full", "class"}
        Model (5) or (7).
    n_centers : int or None
        Centres, with ``kind="class"`` those of each class; None for all rows.
    centers : {"random", "kmeans", "kmeans++", "leverage", "class", "task"} or array
        How they are chosen.
    norm : {"function", "coefficients"}
    kernel : Kernel, optional
        By which rows are scored for ``centers="leverage"``.
    sigma : float
        The width of that kernel.
    """

    kind: str = "full"
    n_centers: int | None = None
    centers: Any = "random"
    norm: str = "function"
    kernel: Kernel | None = None
    sigma: float = 1.0

    @property
    def precomputed(self) -> bool:
        """Whether rows are rows of a kernel matrix, and have no places."""
        return isinstance(self.kernel, Precomputed)


def center_rows(recipe: Recipe, X: Any, kind: Array | None, w: Array, rows: Array, rng: np.random.Generator) -> Array:
    """Which of some distinct rows are centres.

    Parameters
    ----------
    kind : ndarray of int or None
        The class or the task of every row of X, for ways that go by these.
    w : ndarray
        Weights of ``rows``, with those of their copies.
    rows : ndarray of int
        Row numbers in X, in order.
    """
    way, count = recipe.centers, recipe.n_centers
    if way == "random" or count is None or count >= len(rows):
        return random_rows(rows, count, rng)
    if way == "kmeans++":
        return spread_rows(X, w, rows, count, rng)
    if way == "leverage":
        return drawn_rows(rows, _row_leverage(recipe, X, w, rows, count, rng), count, rng)
    assert kind is not None
    return even_rows(rows, kind, count, rng)


def _row_leverage(recipe: Recipe, X: Any, w: Array, rows: Array, count: int, rng: np.random.Generator) -> Array:
    """Leverage scores of rows by the recipe's kernel."""
    kernel, sigma = recipe.kernel, recipe.sigma
    assert kernel is not None
    if recipe.precomputed:
        return draw_leverage(lambda a, b: X[np.ix_(rows[a], rows[b])], X[rows, rows].astype(float), w, count, rng)
    diagonal = _kernel_diagonal(kernel, X, rows, sigma)
    return draw_leverage(lambda a, b: kernel(X[rows[a]], X[rows[b]], sigma), diagonal, w, count, rng)


def _kernel_diagonal(kernel: Kernel, X: Any, rows: Array, sigma: float) -> Array:
    """``k(x, x)`` of the rows."""
    if kernel.distance:
        return np.ones(len(rows))
    parts = (X[rows[start : start + DIAGONAL]] for start in range(0, len(rows), DIAGONAL))
    return np.concatenate([np.diagonal(kernel(part, part, sigma)) for part in parts]).astype(float)
