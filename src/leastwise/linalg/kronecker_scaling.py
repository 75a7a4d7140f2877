"""Problems of tied labels in units in which their weights are about 1."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.csgraph import connected_components

from leastwise.linalg.modes import Modes, modes, untied

Array = np.ndarray

#: The mean weight of a label counts as no less than this share of the largest.
LEAST = 1e-2
#: Mean weights of labels within this factor are taken for equal.
EVEN = 1.5
#: Weights that differ by no more than this many units of rounding are equal.
ROUNDING = 100


@dataclass(frozen=True)
class Scaled:
    """The same problem with the weights ``W / c``.

    With ``root = c^1/2`` the targets are ``Z root``, the label matrix is ``root B root``, the scores ``F root``.

    Attributes
    ----------
    ties : Modes
        Of ``root B root``.
    Z : ndarray of shape (c, n, T)
    W : ndarray of shape (n, T)
    share : ndarray of shape (n, T)
        ``W`` by the sums of its columns; 0 where a label is known nowhere.
    root : ndarray of shape (T,)
    flat : bool
        Whether ``W`` has one column, repeated.
    """

    ties: Modes
    Z: Array
    W: Array
    share: Array
    root: Array
    flat: bool

    def centred(self, V: Array) -> Array:
        """V without the labels' weighted means."""
        return V - self.means(V)

    def means(self, V: Array) -> Array:
        """The labels' weighted means, of shape (c, 1, T)."""
        return weighted_means(self.share, V)


def weighted_means(share: Array, V: Array) -> Array:
    """Sums over the rows of ``share o V``, of shape (c, 1, T); ``share`` may have one column for all."""
    return np.sum(share * V, axis=1, keepdims=True)


def scaled(ties: Modes, Z: Array, W: Array) -> Scaled:
    """Divide by the labels' mean weights c or, where these are about equal, by the mean of all."""
    c = W.mean(axis=0, dtype=float)
    c = np.maximum(c, LEAST * c.max()) if c.any() else np.ones_like(c)
    rounding, each = ROUNDING * float(np.finfo(W.dtype).eps), W / c
    flat = bool(np.allclose(each, each.mean(axis=1, keepdims=True), rtol=rounding, atol=0))
    if c.max() <= c.min() * (1 + rounding if flat else EVEN):
        c = np.full_like(c, c.mean())
        ties = replace(ties, values=ties.values * c[0])
    else:
        ties = _weighed(ties, c)
    total = W.sum(axis=0, dtype=float)
    share = (W / np.where(total > 0, total, 1)).astype(Z.dtype)
    root = np.sqrt(c).astype(Z.dtype)
    return Scaled(ties.astype(Z.dtype), Z * root, (W / c).astype(Z.dtype), share, root, flat)


def _weighed(ties: Modes, c: Array) -> Modes:
    """The modes of ``c^1/2 B c^1/2``."""
    if ties.V is None:
        return untied(ties.eigenvalues * c)
    B = ties.back(ties.eigenvalues * ties.rotate(np.eye(len(c))))
    parts = connected_components(B != 0, directed=False)[1] if issparse(ties.V) else None
    root = np.sqrt(c)
    return modes(root[:, None] * (B + B.T) / 2 * root, parts)
