"""What there is in a part: one look at it, before any is learned from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.distributed import Piece
from leastwise.distributed.pieces import some_rows
from leastwise.folds import observation_counts
from leastwise.kernels import squared_norms
from leastwise.task_parts.reading import Clean, Rules, looked_at

Array = np.ndarray


@dataclass(frozen=True)
class Facts:
    """What there is in a part.

    Attributes
    ----------
    rows : int
        Number of rows, those of weight zero too; ``head`` is one of them, as it was given.
    dtype : dtype, or None where no row counts
    ids : list
        Tasks of the rows that count.
    cells : ndarray of shape (4, k)
        For every task and class that occur together: their numbers, how many rows, and their weight.
    alone : dict
        The number of observations of every task.
    classes : ndarray
        Those of y; for quantities their lowest values, highest values and sums, of shape (3, outputs).
    moments : dict
        For every class the weight, the mean of the rows and the sum of their squared distances from it.
    lost : list
        Tasks that have rows here, but none that counts.
    met : list
        All classes that occur, those of weight zero too; empty for quantities.
    """

    rows: int
    head: Any
    dtype: Any
    ids: list
    cells: Array
    alone: dict
    classes: Any
    moments: dict
    lost: Sequence = ()
    met: Sequence = ()
    sparse: bool = False
    flat: bool = True

    @property
    def sizes(self) -> Array:
        """Rows of each task."""
        return np.bincount(self.cells[0].astype(int), weights=self.cells[2], minlength=len(self.ids)).astype(int)


def facts_of(piece: Piece, own: None, rules: Rules) -> Facts:
    """What there is in a part."""
    rows = looked_at(piece, rules)
    if rows is None:
        return Facts(0, None, None, [], np.zeros((4, 0)), {}, None, {})
    head, lost, met = some_rows(piece.X, np.arange(1)), list(rows.lost), list(rows.met)
    if not len(rows.y):
        return Facts(len(piece), head, None, [], np.zeros((4, 0)), {}, None, {}, lost, met)
    values = bool(rules.model.TARGET_CHECKS)
    if values:
        Z = rows.y.reshape(len(rows.y), -1).astype(float)
        labels, codes = np.stack([Z.min(axis=0), Z.max(axis=0), Z.sum(axis=0)]), np.zeros(len(Z), dtype=int)
        names: list = [None]
    else:
        labels, codes = np.unique(rows.y, return_inverse=True)
        names = labels.tolist()
    moments = {name: moments_of(rows.X[codes == k], rows.w[codes == k]) for k, name in enumerate(names)}
    cells, alone = cells_of(rows, codes), observations(rows) if rules.distinct else {}
    kind, sparse_, flat = rows.X.dtype, sparse.issparse(rows.X), rows.y.ndim == 1
    return Facts(len(piece), head, kind, rows.names, cells, alone, labels, moments, lost, met, sparse_, flat)


def cells_of(rows: Clean, codes: Array) -> Array:
    """For every task and class that occur together: their numbers, how many rows, and their weight."""
    c = int(codes.max()) + 1
    pairs, cell, count = np.unique(rows.index * c + codes, return_inverse=True, return_counts=True)
    return np.stack([*np.divmod(pairs, c), count, np.bincount(cell, weights=rows.w)]).astype(float)


def observations(rows: Clean) -> dict:
    """The number of observations of every task."""
    total = np.bincount(rows.index, weights=observation_counts(rows.w), minlength=len(rows.names))
    return dict(zip(rows.names, total.tolist(), strict=True))


def moments_of(X: Any, w: Array) -> tuple[float, Array, float]:
    """Weight, mean, and weighted sum of squared distances from the mean."""
    total, mean = float(w.sum()), np.asarray((w @ X) / w.sum(), dtype=float).ravel()
    norms = squared_norms(X) if sparse.issparse(X) else squared_norms(X - mean)
    spread = float(w @ norms) - (total * float(mean @ mean) if sparse.issparse(X) else 0.0)
    return total, mean, spread


def merged(parts: Sequence[tuple[float, Array, float]]) -> tuple[float, Array, float]:
    """Moments of all rows from those of parts of them."""
    total = sum(part[0] for part in parts)
    mean = sum(part[0] * part[1] for part in parts) / total
    return total, np.asarray(mean), sum(p[2] + p[0] * float(np.sum((p[1] - mean) ** 2)) for p in parts)
