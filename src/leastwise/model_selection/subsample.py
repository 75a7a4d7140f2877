"""Which rows a search, a calibration or a scale is measured on, where all rows are too many.

All samples are functions of the data: rows with the lowest hashes of their content, see
:mod:`leastwise.utils.hashing`. ``random_state`` and the order of the rows make no difference.
"""

from __future__ import annotations

import numpy as np

from leastwise.solvers.evaluator import Rows
from leastwise.utils.hashing import multiset_keys, pair_hashes, row_hashes, sample_hashes, unit_hashes

Array = np.ndarray

#: A search is made on so many tasks at least,
LEAST_TASKS = 5
#: and on so many groups.
LEAST_GROUPS = 30
#: Copies are held out together where rows have fewer copies than this on average.
DISTINCT = 5
#: Up to so many classes, each has two rows in a sample of rows, however small that was to be.
MANY_CLASSES = 100


def content_hashes(rows: Rows, purpose: str, precomputed: bool = False) -> Array:
    """Keys to draw a sample of rows by; see :func:`leastwise.utils.hashing.sample_keys`.

    Copies of a row within its task and class are numbered by their values and weights, the heaviest first.
    """
    y = rows.y.astype(np.uint64) if rows.y.ndim == 1 else row_hashes(rows.y)
    x = pair_hashes(input_hashes(rows, precomputed), y)
    # Rows that are equal in single precision only are in the order of their exact keys.
    exact = [] if precomputed or rows.X.dtype == np.float32 else [row_hashes(rows.X)]
    group = [] if rows.group is None else [rows.group]
    return sample_hashes(
        x, [] if rows.task is None else [rows.task], [*_values(rows), -rows.w, *exact, *group], purpose
    )


def input_hashes(rows: Rows, precomputed: bool = False) -> Array:
    """Keys of the inputs alone, in single precision: float32 and float64 rows give the same samples."""
    return multiset_keys(rows.X) if precomputed else row_hashes(rows.X, single=True)


def _values(rows: Rows) -> list[Array]:
    """Columns of quantities; of classes none."""
    quantities = rows.values is not None and rows.y.ndim == 1 and not rows.y.any()
    return [*rows.values.T] if quantities and rows.values is not None else []


def distinct_sample(rows: Rows, count: int, purpose: str, precomputed: bool = False) -> Array:
    """Numbers of ``count`` rows, no two of which are equal; all distinct rows if there are no more."""
    first = np.sort(np.unique(rows.copy, return_index=True)[1])
    if len(first) <= count:
        return first
    return np.sort(first[np.argsort(content_hashes(rows.part(first), purpose, precomputed), kind="stable")[:count]])


def search_sample(rows: Rows, count: int, precomputed: bool = False) -> Array:
    """About ``count`` row numbers, in order, with the classes in proportion; whole groups, if there are many."""
    key = content_hashes(rows, "sample", precomputed)
    if rows.group is None:
        return stratified_rows(rows.y, count, key)
    group = np.unique(rows.group, return_inverse=True)[1]
    names = unit_hashes(input_hashes(rows, precomputed), group, "sample")
    return some_units(group, names, rows.y, rows.w, count, key, LEAST_GROUPS)


def stratified_rows(y: Array, count: int, key: Array) -> Array:
    """About ``count`` row numbers, in order, with the classes in proportion; two rows of each, if there is room."""
    return lowest_of_cells(y, count / len(y), least_of_cells(int(y.max()) + 1, count), key)


def least_of_cells(n_cells: int, count: int) -> int:
    """Rows that a sample of ``count`` rows has of every class (or class of a task) at least."""
    return next(k for k in (2, 1, 0) if k * n_cells <= max(count, 2 * MANY_CLASSES))


def lowest_of_cells(cell: Array, share: float, least: int, key: Array) -> Array:
    """Numbers of the rows with the lowest keys of every cell, in order: a share of its rows, ``least`` at least."""
    sizes = np.bincount(cell)
    quota = np.maximum(np.round(sizes * share).astype(int), least)
    order = np.lexsort((key, cell))
    rank = np.arange(len(cell)) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # among the rows of the cell
    return np.sort(order[rank < quota[cell[order]]])


def choose_units(
    cells: tuple[Array, Array, Array, Array], keys: Array, count: int, least: int
) -> tuple[Array, float, int]:
    """Some of the units (tasks or groups of rows), with about ``count`` rows together, by the keys of the units.

    Units of heavier rows come first. A class that would be lost brings units that have it.

    Parameters
    ----------
    cells : (unit, class, rows, weight)
        Of every class of every unit the number of its rows, and their weight.
    keys : ndarray of uint64 of shape (number of units,)
    count : int
        Rows that are wanted.
    least : int
        Units that are taken at least.

    Returns
    -------
    chosen : ndarray of int
    share : float
        Which share of their rows is to be taken: 1, unless a few units are too large already.
    fewest : int
        Rows of each cell that are to be taken then at least.
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
    """About ``count`` row numbers, in order: whole units; of few large units rows of every class.

    Parameters
    ----------
    unit, y : ndarray of int of shape (n,)
        Codes of the units (tasks or groups) and of the classes.
    keys : ndarray of uint64
        Of the units.
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
    """About a tenth of the rows, whole groups of them, that leaves every class at least half of its rows."""
    each = np.ones(len(rows)) if rows.count is None else rows.count
    left = np.bincount(rows.y, weights=each)
    least, most = (left + 1) // 2, max(each.sum() // 10, 2 * len(left))
    held: list[Array] = []
    count = 0.0
    together = rows.group
    if together is None and DISTINCT * len(np.unique(rows.copy)) >= len(rows):
        together = rows.copy  # of mostly distinct rows copies stay together, as a row of their weight would
    if together is None:
        keys = content_hashes(rows, "held out")
        parts = list(np.arange(len(rows))[:, None])
    else:
        first, unit = np.unique(together, return_index=True, return_inverse=True)[1:]
        ties = [rows.y[first], *(column[first] for column in _values(rows))]  # units of equal inputs
        order = np.lexsort((*reversed(ties), unit_hashes(input_hashes(rows), unit, "held out")))
        keys = np.argsort(order)
        rank = np.argsort(unit, kind="stable")
        parts = np.split(rank, np.searchsorted(unit[rank], np.arange(1, len(keys))))
    for part in (parts[k] for k in np.argsort(keys, kind="stable")):
        lost = np.bincount(rows.y[part], weights=each[part], minlength=len(left))
        if count + lost.sum() <= most and (left - lost >= least).all():
            held.append(part)
            left, count = left - lost, count + lost.sum()
    if not held:  # groups are larger than that: one of them, then
        spare = [
            p for p in parts if (left - np.bincount(rows.y[p], weights=each[p], minlength=len(left)) >= least).all()
        ]
        held = sorted(spare, key=len)[:1]
    if not held:
        raise ValueError(
            f"solver={solver!r} holds out a tenth of the rows to learn from them what held-out rows are like, which "
            f"{len(rows)} rows in {len(parts)} groups do not allow: use another solver, or cv=None."
        )
    return np.sort(np.concatenate(held))
