"""Rows of a part, looked at: arrays of numbers, weights, and which task each row is of.

What there is in a part: one look at it, before any is learned from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, check_X_y

from leastwise.model_selection.folds import observation_counts
from leastwise.model_selection.subsample import lowest_of_cells
from leastwise.problem.kernels import squared_norms
from leastwise.problem.tasks import factor_tasks, split_tasks
from leastwise.sources.parts import Piece, size_of, some_rows
from leastwise.utils.hashing import pair_keys, row_keys, sample_keys

Array = np.ndarray


@dataclass(frozen=True)
class Rules:
    """How rows are to be read.

    Attributes
    ----------
    model : estimator
        Without anything learned, for messages.
    targets : Targets
        Before any rows were seen.
    task_column : str, int or None
    class_weight : mapping, "balanced" or None
    check : callable, optional
        Looks at the rows, and raises an error where they will not do.
    distinct : bool
        Whether it matters how many observations a task has.
    """

    model: Any
    targets: Any
    task_column: Any = None
    class_weight: Any = None
    check: Callable[[Any], None] | None = None
    distinct: bool = False

    def without_weight(self, y: Array) -> Array:
        """Rows that do not count, as their class has a weight of zero."""
        if not isinstance(self.class_weight, Mapping):
            return np.zeros(len(y), dtype=bool)
        nothing = {label for label, weight in self.class_weight.items() if weight == 0}
        names, code = np.unique(y, return_inverse=True)
        return np.array([name in nothing for name in names.tolist()])[code]


@dataclass(frozen=True)
class Clean:
    """Rows that count.

    Attributes
    ----------
    X : ndarray or sparse matrix of shape (n, d)
    y : ndarray of shape (n,) or (n, outputs)
        As it was given.
    w : ndarray of shape (n,)
        Weights as they were given, those of classes not counted in.
    names : list
        Ids of the tasks that there are.
    index : ndarray of int of shape (n,)
        Which of them each row has.
    number : ndarray of int of shape (n,)
        The place of each row among all rows.
    lost : list
        Ids of tasks that have no row that counts.
    met : list
        All classes among the rows, those that do not count too; empty for quantities.
    """

    X: Any
    y: Array
    w: Array
    names: list
    index: Array
    number: Array
    lost: Sequence = ()
    met: Sequence = ()

    def __sizeof__(self) -> int:
        return size_of(self.X) + self.y.nbytes + self.w.nbytes + self.index.nbytes + self.number.nbytes

    def part(self, rows: Array) -> Clean:
        """Some of the rows."""
        return Clean(self.X[rows], self.y[rows], self.w[rows], self.names, self.index[rows], self.number[rows])

    def counting(self, rows: Array) -> Clean:
        """Some of the rows, with the tasks that they have."""
        some = self.part(rows)
        present, index = np.unique(some.index, return_inverse=True)
        lost = [name for k, name in enumerate(self.names) if k not in set(present.tolist())]
        return replace(some, names=[self.names[k] for k in present], index=index, lost=lost, met=self.met)


def clean(piece: Piece, rules: Rules) -> Clean | None:
    """The rows of a piece that count; None where there are none."""
    rows = looked_at(piece, rules)
    return rows if rows is not None and len(rows.y) else None


def looked_at(piece: Piece, rules: Rules) -> Clean | None:
    """The rows of a piece that count, if any; None where there are no rows at all."""
    if not len(piece):
        return None
    X, ids = divided(piece, rules.task_column)
    X, y = check_X_y(
        X,
        piece.y,
        dtype=[np.float64, np.float32],
        accept_sparse="csr",
        accept_large_sparse=False,
        estimator=rules.model,
        **rules.targets.sklearn_checks,
    )
    rules.targets.check(y)
    if rules.check is not None:
        rules.check(X)
    w = checked_weights(piece.sample_weight, len(y))
    names, index = factor_tasks(ids, len(y))
    number = piece.numbered(0).number
    assert number is not None
    met = [] if rules.targets.kind == "values" else np.unique(y).tolist()
    rows = Clean(X, y, w, names, index, number, met=met)
    used = np.flatnonzero((w > 0) & ~rules.without_weight(y))
    return rows if len(used) == len(y) else rows.counting(used)


def checked_weights(given: Any, n: int) -> Array:
    """Weights of n rows; those of a part may all be zero."""
    if given is None:
        return np.ones(n)
    w = check_array(given, dtype=np.float64, ensure_2d=False, input_name="sample_weight")
    if w.shape != (n,):
        raise ValueError(f"sample_weight has shape {w.shape}; it must hold one weight for each of the {n} rows.")
    if (w < 0).any():
        raise ValueError(f"sample_weight has {int((w < 0).sum())} negative values; weights must be 0 or more.")
    return w


def divided(piece: Piece, column: Any) -> tuple[Any, Any]:
    """X without the column of the task, and the ids."""
    if column is None and piece.tasks is None:
        raise ValueError(
            "there is nothing to tell which task each row belongs to: give tasks= with an id for every row, or say "
            "with task_column= which column of X holds it."
        )
    if column is None:
        return piece.X, piece.tasks
    if piece.tasks is not None:
        raise ValueError(f"tasks= was given, and task_column={column!r} too: give one of the two.")
    return split_tasks(piece.X, column)


def kept_rows(rows: Clean, code: Array, share: float, fewest: int, classes: Array | None) -> Array:
    """Numbers of about this share of the rows of each task and class, ``fewest`` at least, in order.

    They are those that a fit in memory takes (``selection.subsample``): which these are depends on what is in the
    rows, not on where they lie. ``classes`` are None for quantities.
    """
    n = len(code)
    if share >= 1:
        return np.arange(n)
    label = np.zeros(n, dtype=int) if classes is None else np.searchsorted(classes, rows.y)
    cell = np.unique(code * (int(label.max(initial=0)) + 1) + label, return_inverse=True)[1]
    ties = [*rows.y.reshape(n, -1).T, -rows.w] if classes is None else [-rows.w]
    x = pair_keys(row_keys(rows.X, single=True), label.astype(np.uint64))
    return lowest_of_cells(cell, share, fewest, sample_keys(x, [code], ties, "sample"))


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
    values = rules.targets.kind == "values"
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
