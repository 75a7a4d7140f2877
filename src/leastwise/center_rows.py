"""Which rows are centres, by the way that a recipe names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.centers import drawn_rows, even_rows, random_rows, spread_rows
from leastwise.kernels import Kernel, Precomputed
from leastwise.leverage import draw_leverage

Array = np.ndarray

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
