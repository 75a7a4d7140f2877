"""Folds of the rows (leave-one-out, k folds, groups, tasks, or a splitter), and subsamples for the search.

Samples depend only on the data: they are the rows with the lowest hashes of their content, see
:mod:`leastwise.utils.hashing`. ``random_state`` and the order of the rows make no difference.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import maximum_flow
from sklearn.model_selection import LeaveOneOut, StratifiedGroupKFold, StratifiedKFold

from leastwise.solvers.evaluator import Rows
from leastwise.utils.arrays import DeviceRows, to_numpy
from leastwise.utils.hashing import multiset_keys, pair_hashes, row_hashes, sample_hashes, unit_hashes

Array = np.ndarray

#: The warning about copies needs at least this share of repeated observations, at least this many distinct rows,
REPEATED, DISTINCT = 0.1, 20
#: and different targets in at most this share of the repeated rows.
DISAGREE = 0.02
#: Number of distinct rows examined to decide whether a column is continuous.
LOOKED_AT = 2000


class DuplicateRowsWarning(UserWarning):
    """Continuous data contain repeated rows; see ``groups="duplicates"``."""


def distinct_rows(X: Any) -> Array:
    """Labels of the rows; equal rows have the same label."""
    _, first, label = np.unique(row_hashes(X), return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[label]  # numbered by first appearance


def observation_counts(sample_weight: Any) -> Array | None:
    """Number of observations that each row represents: integer weights are counts, other weights are not.

    Other weights express importance. A row is then one observation, and leave-one-out removes all of it; otherwise
    part of a heavy row would remain in training and predict itself. Equal weights are never counts. None if every row
    is one observation.
    """
    if sample_weight is None:
        return None
    w = np.asarray(sample_weight, dtype=float)
    if w.ndim != 1 or not np.all(np.isfinite(w) & (w == np.round(w))) or len(np.unique(w[w > 0])) < 2:
        return None
    return np.maximum(w, 1.0)


def is_leave_one_out(cv: Any) -> bool:
    """True if cv is leave-one-out."""
    return isinstance(cv, LeaveOneOut) or (isinstance(cv, str) and cv == "loo")


def warn_of_copies(X: Any, copy: Array, target: Array, count: Array | None) -> None:
    """Warn if continuous data contain repeated rows with equal targets, as in an upsampled table.

    Every row counts as one observation. With a few discrete features, equal rows are expected. Continuous
    measurements that agree in every digit are more likely one repeated measurement. Its copies then stay in the
    training part when one of them is held out, and held-out scores are too optimistic.

    Parameters
    ----------
    copy : ndarray of int of shape (n,)
        Labels of ``distinct_rows``.
    target : ndarray of shape (n,) or (n, outputs)
    count : ndarray of shape (n,) or None
        Number of observations that each row represents.
    """
    n = len(copy) if count is None else float(count.sum())
    first = np.unique(copy, return_index=True)[1]
    repeated = 1 - len(first) / n
    if repeated < REPEATED or len(first) < DISTINCT or not _continuous(X, np.sort(first)):
        return
    cells = np.unique(np.column_stack([copy, target]), axis=0)
    several = np.sum(np.bincount(copy, weights=count) > 1)
    if len(cells) - len(first) > DISAGREE * several:
        return
    warnings.warn(
        f"{repeated:.0%} of the observations are copies of others: X is continuous, and rows with equal X have equal "
        "targets. Each copy counts as an observation of its own. If rows were repeated (an upsampled or joined "
        "table), or integers in sample_weight are not counts, held-out scores are too optimistic: pass "
        "groups='duplicates' to hold copies out together.",
        DuplicateRowsWarning,
        stacklevel=6,
    )


def _continuous(X: Any, distinct: Array) -> bool:
    """True if some column has fractional values that differ in most of the distinct rows."""
    some = distinct[np.unique(np.linspace(0, len(distinct) - 1, LOOKED_AT).astype(int))]
    part = to_numpy(X.only(some)) if isinstance(X, DeviceRows) else X[some]
    part = part.toarray() if sparse.issparse(part) else np.asarray(part)
    fractional = np.flatnonzero(((part != np.round(part)) & ~np.isnan(part)).any(axis=0))
    return any(len(np.unique(part[:, j])) >= len(some) / 2 for j in fractional)


def fold_ids(cv: Any, y: Array, groups: Array | None, seed: int, task: Array | None = None) -> Array:
    """Fold labels; rows with the same label are held out together.

    Parameters
    ----------
    cv : "loo", int, splitter or iterable of (train, test)
        ``"loo"`` leaves out one row, or one group if groups are given. A number gives that many stratified folds.
        Splits must hold out every row exactly once.
    task : ndarray of shape (n,), optional
        Task codes: a number of folds is then stratified by task and class, and a splitter that uses groups is passed
        the tasks if there are no other groups.
    """
    if isinstance(cv, str):
        if cv != "loo":
            raise ValueError(f"cv={cv!r} is not known: use 'loo', a number of folds, or a splitter.")
        return np.arange(len(y)) if groups is None else np.unique(groups, return_inverse=True)[1]
    if isinstance(cv, LeaveOneOut) and groups is None:
        return np.arange(len(y))
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        return _k_folds(int(cv), y, groups, seed, task)
    if task is not None and hasattr(cv, "task_labels"):
        labels = cv.task_labels(y, task)
    elif hasattr(cv, "split"):
        with warnings.catch_warnings():  # some splitters warn that they ignore groups
            warnings.filterwarnings("ignore", "The groups parameter is ignored", UserWarning)
            splits = cv.split(np.zeros((len(y), 1)), y, task if groups is None else groups)
            labels = _from_splits(splits, len(y))
    if hasattr(cv, "split"):
        _check_together(labels, groups, cv)
        return labels
    if isinstance(cv, Iterable):
        return _from_splits(cv, len(y))
    raise ValueError(f"cv={cv!r} is not known: use 'loo', a number of folds, or a splitter.")


def _check_together(labels: Array, groups: Array | None, cv: Any) -> None:
    """Raise an error if a splitter separates rows of one group."""
    if groups is not None and len(np.unique(np.stack([labels, groups]), axis=1).T) > len(np.unique(groups)):
        raise ValueError(
            f"cv={cv!r} spreads rows of one group over several folds: use cv='loo', a number, or a splitter that "
            "keeps groups together, such as GroupKFold."
        )


def _k_folds(k: int, y: Array, groups: Array | None, seed: int, task: Array | None) -> Array:
    if k < 2 or k > len(y):
        raise ValueError(f"cv={k} folds: with {len(y)} rows use a number from 2 to {len(y)}, or 'loo'.")
    if task is not None and groups is None:
        return task_fold_labels(k, y, task, seed)
    most = int(np.unique(y, return_counts=True)[1].max())
    if groups is None and most < k:
        fewer = f"cv={most} or cv='loo'" if most > 1 else "cv='loo'"
        found = f"no class has more than {most} rows"
        raise ValueError(f"cv={k} folds are stratified by class, and {found}: use {fewer}.")
    maker = StratifiedKFold if groups is None else StratifiedGroupKFold
    splits = maker(k, shuffle=True, random_state=seed).split(np.zeros((len(y), 1)), y, groups)
    return _from_splits(splits, len(y))


def task_fold_labels(k: int, y: Array, task: Array, seed: int | None) -> Array:
    """Stratified folds 0 ... k-1 of the rows.

    The sizes of any two folds differ by at most one: overall, in every task, in every class, and in every cell (rows
    of one task and class). Such folds always exist. Assigning the rows of the cells in turn would balance everything
    but the classes: with 19 rows of one class and 1 of the other in every task, one of five folds would get all rows
    of the rare class.

    Parameters
    ----------
    k : int
        Number of folds.
    y, task : ndarray of int of shape (n,)
        Class and task codes. Their names do not matter.
    seed : int or None
        Seed for shuffling rows and folds. None takes the rows of a cell in order.
    """
    if k < 2 or k > len(y):
        raise ValueError(f"{k} folds: with {len(y)} rows use a number from 2 to {len(y)}.")
    rng = None if seed is None else np.random.default_rng(seed)
    y, task = _by_first_appearance(y), _by_first_appearance(task)
    pairs, cell, left = np.unique((y.max() + 1) * task + y, return_inverse=True, return_counts=True)
    cell_task, cell_class = np.divmod(pairs, y.max() + 1)
    order = np.arange(k) if rng is None else rng.permutation(k)
    dealt = np.empty((len(pairs), k), dtype=int)
    for parts in range(k, 0, -1):
        dealt[:, order[parts - 1]] = share = _even_share(left, cell_task, cell_class, parts)
        left = left - share
    rows = np.arange(len(y)) if rng is None else rng.permutation(len(y))
    labels = np.empty(len(y), dtype=int)
    labels[rows[np.argsort(cell[rows], kind="stable")]] = np.repeat(np.tile(np.arange(k), len(pairs)), dealt.ravel())
    return labels


def _by_first_appearance(codes: Any) -> Array:
    """Codes renumbered by first appearance, so that folds do not depend on the names."""
    _, first, label = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[label]


def _even_share(counts: Array, task: Array, y: Array, k: int) -> Array:
    """One of k even shares of a contingency table, as counts of its cells.

    Every cell, row, column and the total get count / k, rounded up or down. This is an integer flow from tasks
    through cells to classes with bounds on every arc. The flow count / k satisfies the bounds, so an integer flow
    exists too. Lower bounds are handled by the standard reduction to a maximum flow with a second source and sink.

    Parameters
    ----------
    counts, task, y : ndarray of int of shape (number of cells,)
        Size, row and column of every non-empty cell.
    """
    n_tasks, n_classes = task.max() + 1, y.max() + 1
    start, stop, source, sink = n_tasks + n_classes + np.arange(4)
    tails = np.concatenate([task, np.full(n_tasks, start), n_tasks + np.arange(n_classes), [stop]])
    heads = np.concatenate([n_tasks + y, np.arange(n_tasks), np.full(n_classes, stop), [start]])
    carried = np.concatenate([counts, np.bincount(task, counts), np.bincount(y, counts), [counts.sum()]]).astype(int)
    low, room = carried // k, (carried % k > 0).astype(int)
    arcs = [(tails, heads, room), (np.full_like(heads, source), heads, low), (tails, np.full_like(tails, sink), low)]
    i, j, capacity = (np.concatenate(part) for part in zip(*arcs, strict=True))
    graph = sparse.csr_matrix((capacity.astype(np.int32), (i, j)), shape=(sink + 1, sink + 1))
    flow = maximum_flow(graph, source, sink).flow
    return counts // k + np.asarray(flow[task, n_tasks + y]).ravel()


def _from_splits(splits: Iterable, n: int) -> Array:
    labels, times = np.zeros(n, dtype=int), np.zeros(n, dtype=int)
    for k, (train, test) in enumerate(_pairs(splits, n)):
        labels[test] = k
        times[test] += 1
        if not np.array_equal(np.sort(train), np.setdiff1d(np.arange(n), test)):
            raise ValueError(
                f"Split {k} of cv trains on {len(train)} of the {n - len(test)} rows that it does not hold out: "
                "held-out scores in closed form require all of them in the training part."
            )
    if not (times == 1).all():
        raise ValueError(
            f"cv must hold out every row exactly once, as KFold does: of {n} rows {np.sum(times == 0)} are never "
            f"held out and {np.sum(times > 1)} more than once. Use 'loo', a number, or a splitter that partitions."
        )
    if labels.max(initial=0) == 0:
        raise ValueError("cv gives a single fold, which leaves no training rows: use two or more.")
    return labels


def _pairs(splits: Iterable, n: int) -> Iterable[tuple[Array, Array]]:
    """Training and test indices of every split."""
    try:
        return [(np.arange(n)[train], np.arange(n)[test]) for train, test in splits]
    except (TypeError, IndexError) as error:
        raise ValueError(f"cv={splits!r} is not a list of (training rows, test rows) for {n} rows: {error}") from None


# ------------------------------------------------------------------- subsamples


#: Minimal number of tasks in a subsample,
LEAST_TASKS = 5
#: and of groups.
LEAST_GROUPS = 30
#: Copies are held out together if rows have at most this many copies on average.
FEW_COPIES = 5
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


def hashed_folds(rows: Rows, count: int, precomputed: bool = False) -> Array | None:
    """Folds of equal size by the content of the rows; groups, or the copies of a row, stay together.

    None if there are fewer than two groups or distinct rows for each fold.
    """
    unit = np.unique(rows.copy if rows.group is None else rows.group, return_inverse=True)[1].reshape(-1)
    size = int(unit.max()) + 1
    if size < 2 * count:
        return None
    # Names of classes matter only for rows of equal inputs.
    keys = [content_hashes(rows, "folds", precomputed), input_hashes(rows, precomputed)]
    fold = np.empty(size, dtype=int)
    fold[np.lexsort([unit_hashes(key, unit, "folds") for key in keys])] = np.arange(size) % count
    return fold[unit]


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
    if together is None and FEW_COPIES * len(np.unique(rows.copy)) >= len(rows):
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
