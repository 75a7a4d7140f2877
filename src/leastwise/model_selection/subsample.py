"""Subsamples of rows for the search, for calibration and for scales.

Samples depend only on the data: they are the rows with the lowest hashes of their content, see
:mod:`leastwise.utils.hashing`. ``random_state`` and the order of the rows make no difference.
"""

from __future__ import annotations

import numpy as np

from leastwise.solvers.evaluator import Rows
from leastwise.utils.hashing import multiset_keys, pair_hashes, row_hashes, sample_hashes, unit_hashes

Array = np.ndarray

#: Minimal number of tasks in a subsample,
LEAST_TASKS = 5
#: and of groups.
LEAST_GROUPS = 30
#: Copies are held out together if rows have at most this many copies on average.
DISTINCT = 5
#: Up to this many classes, each has two rows in a sample, however small.
MANY_CLASSES = 100


def content_hashes(rows: Rows, purpose: str, precomputed: bool = False) -> Array:
    """Hashes by which a sample of rows is drawn; see :func:`leastwise.utils.hashing.sample_hashes`.

    Copies of a row within its task and class are numbered by their values and weights, the heaviest first.
    """
    y = rows.y.astype(np.uint64) if rows.y.ndim == 1 else row_hashes(rows.y)
    x = pair_hashes(input_hashes(rows, precomputed), y)
    # Rows that are equal only in single precision are ordered by the hashes of their exact values.
    exact = [] if precomputed or rows.X.dtype == np.float32 else [row_hashes(rows.X)]
    group = [] if rows.group is None else [rows.group]
    return sample_hashes(
        x, [] if rows.task is None else [rows.task], [*_values(rows), -rows.w, *exact, *group], purpose
    )


def input_hashes(rows: Rows, precomputed: bool = False) -> Array:
    """Hashes of X alone, in single precision, so that float32 and float64 rows give the same samples."""
    return multiset_keys(rows.X) if precomputed else row_hashes(rows.X, single=True)


def _values(rows: Rows) -> list[Array]:
    """Columns of regression targets; none for classes."""
    quantities = rows.values is not None and rows.y.ndim == 1 and not rows.y.any()
    return [*rows.values.T] if quantities and rows.values is not None else []


def distinct_sample(rows: Rows, count: int, purpose: str, precomputed: bool = False) -> Array:
    """Indices of ``count`` distinct rows; all distinct rows if there are no more."""
    first = np.sort(np.unique(rows.copy, return_index=True)[1])
    if len(first) <= count:
        return first
    return np.sort(first[np.argsort(content_hashes(rows.part(first), purpose, precomputed), kind="stable")[:count]])


def search_sample(rows: Rows, count: int, precomputed: bool = False) -> Array:
    """About ``count`` sorted row indices, stratified by class; whole groups if there are many."""
    key = content_hashes(rows, "sample", precomputed)
    if rows.group is None:
        return stratified_rows(rows.y, count, key)
    group = np.unique(rows.group, return_inverse=True)[1]
    names = unit_hashes(input_hashes(rows, precomputed), group, "sample")
    return some_units(group, names, rows.y, rows.w, count, key, LEAST_GROUPS)


def stratified_rows(y: Array, count: int, key: Array) -> Array:
    """About ``count`` sorted row indices, stratified by class; at least two rows per class if possible."""
    return lowest_of_cells(y, count / len(y), least_of_cells(int(y.max()) + 1, count), key)


def least_of_cells(n_cells: int, count: int) -> int:
    """Minimal number of rows per class (or class of a task) in a sample of ``count`` rows."""
    return next(k for k in (2, 1, 0) if k * n_cells <= max(count, 2 * MANY_CLASSES))


def lowest_of_cells(cell: Array, share: float, least: int, key: Array) -> Array:
    """Sorted indices of the rows with the lowest keys in every cell: a share of its rows, at least ``least``."""
    sizes = np.bincount(cell)
    quota = np.maximum(np.round(sizes * share).astype(int), least)
    order = np.lexsort((key, cell))
    rank = np.arange(len(cell)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # among the rows of the cell
    return np.sort(order[rank < quota[cell[order]]])


def choose_units(
    cells: tuple[Array, Array, Array, Array], keys: Array, count: int, least: int
) -> tuple[Array, float, int]:
    """Select units (tasks or groups of rows) with about ``count`` rows in total, by the keys of the units.

    Units of larger weight are preferred. If a class would be lost, units that contain it are added.

    Parameters
    ----------
    cells : (unit, class, rows, weight)
        Number of rows and total weight of every class of every unit.
    keys : ndarray of uint64 of shape (number of units,)
    count : int
        Target number of rows.
    least : int
        Minimal number of units.

    Returns
    -------
    chosen : ndarray of int
    share : float
        Share of their rows to take: 1, unless a few units are too large already.
    fewest : int
        Minimal number of rows per cell in that case.
    """
    unit, label, rows, weight = cells
    m = len(keys)
    sizes = np.bincount(unit, weights=rows, minlength=m)
    # Exponential waiting times: a unit of twice the mean weight waits half as long.
    wait = -np.log((keys.astype(float) + 1) / 2.0**64) * sizes / np.bincount(unit, weights=weight, minlength=m)
    order = np.argsort(wait, kind="stable")
    chosen = np.zeros(m, dtype=bool)
    chosen[order[: max(int(np.searchsorted(np.cumsum(sizes[order]), count)) + 1, least)]] = True
    mine = chosen[unit]
    for k in np.flatnonzero(np.bincount(label[mine], weights=rows[mine], minlength=int(label.max()) + 1) < 2):
        owners = np.bincount(unit[label == k], weights=rows[label == k], minlength=m)
        chosen[np.lexsort((keys, -owners))[:2]] |= owners.max() > 0
    total = float(sizes[chosen].sum())
    share = 1.0 if total <= 2 * count else count / total
    return np.flatnonzero(chosen), share, least_of_cells(int(np.sum(chosen[unit])), count)


def some_units(unit: Array, keys: Array, y: Array, w: Array, count: int, key: Array, least: int) -> Array:
    """About ``count`` sorted row indices: whole units, or a stratified sample of the rows of a few large units.

    Parameters
    ----------
    unit, y : ndarray of int of shape (n,)
        Codes of the units (tasks or groups) and of the classes.
    keys : ndarray of uint64
        Keys of the units.
    w, key : ndarray of shape (n,)
        Weights and keys of the rows.
    """
    width = int(y.max()) + 1
    pair, cell, size = np.unique(unit * width + y, return_inverse=True, return_counts=True)
    cells = pair // width, pair % width, size, np.bincount(cell, weights=w)
    chosen, share, fewest = choose_units(cells, keys, count, least)
    index = np.flatnonzero(np.isin(unit, chosen))
    if share >= 1:
        return index
    return index[lowest_of_cells(np.unique(cell[index], return_inverse=True)[1], share, fewest, key[index])]


def held_out_tenth(rows: Rows, solver: str) -> Array:
    """About a tenth of the rows, in whole groups, such that every class keeps at least half of its rows."""
    each = np.ones(len(rows)) if rows.count is None else rows.count
    left = np.bincount(rows.y, weights=each)
    least, most = (left + 1) // 2, max(each.sum() // 10, 2 * len(left))
    held: list[Array] = []
    count = 0.0
    together = rows.group
    if together is None and DISTINCT * len(np.unique(rows.copy)) >= len(rows):
        together = rows.copy  # if most rows are distinct, keep copies together, like one row of their total weight
    if together is None:
        keys = content_hashes(rows, "held out")
        parts = list(np.arange(len(rows))[:, None])
    else:
        first, unit = np.unique(together, return_index=True, return_inverse=True)[1:]
        ties = [rows.y[first], *(column[first] for column in _values(rows))]  # break ties between units of equal X
        order = np.lexsort((*reversed(ties), unit_hashes(input_hashes(rows), unit, "held out")))
        keys = np.argsort(order)
        rank = np.argsort(unit, kind="stable")
        parts = np.split(rank, np.searchsorted(unit[rank], np.arange(1, len(keys))))
    for part in (parts[k] for k in np.argsort(keys, kind="stable")):
        lost = np.bincount(rows.y[part], weights=each[part], minlength=len(left))
        if count + lost.sum() <= most and (left - lost >= least).all():
            held.append(part)
            left, count = left - lost, count + lost.sum()
    if not held:  # all groups are larger: take one of them
        spare = [
            p for p in parts if (left - np.bincount(rows.y[p], weights=each[p], minlength=len(left)) >= least).all()
        ]
        held = sorted(spare, key=len)[:1]
    if not held:
        raise ValueError(
            f"solver={solver!r} holds out a tenth of the rows for calibration, which is impossible with {len(rows)} "
            f"rows in {len(parts)} groups: use another solver, or cv=None."
        )
    return np.sort(np.concatenate(held))
