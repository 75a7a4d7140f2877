"""Which rows are held out together: leave-one-out, k folds, groups, tasks, or a splitter of the user's."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import maximum_flow
from sklearn.model_selection import LeaveOneOut, StratifiedGroupKFold, StratifiedKFold

from leastwise.utils.arrays import DeviceRows, to_numpy
from leastwise.utils.hashing import row_hashes

Array = np.ndarray

#: A warning of copies is given from this share of repeated observations on, with this many distinct rows or more,
REPEATED, DISTINCT = 0.1, 20
#: and if in at most this share of the repeated rows the targets differ.
DISAGREE = 0.02
#: Distinct rows that are looked at to tell whether a column is continuous.
LOOKED_AT = 2000


class DuplicateRowsWarning(UserWarning):
    """Rows of continuous data come several times; see ``groups="duplicates"``."""


def distinct_rows(X: Any) -> Array:
    """A label for every row; rows that are equal in every entry have the same one."""
    _, first, label = np.unique(row_hashes(X), return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[label]  # numbered as they come


def observation_counts(sample_weight: Any) -> Array | None:
    """How many observations each row stands for: whole-number weights of rows are counts, all others are not.

    Other weights say how much a row matters. A row is one observation then, and leave-one-out takes all of it away:
    otherwise a heavy row would vouch for itself. Weights that are all equal say nothing, whatever their size. None
    where every row is one observation.
    """
    if sample_weight is None:
        return None
    w = np.asarray(sample_weight, dtype=float)
    if w.ndim != 1 or not np.all(np.isfinite(w) & (w == np.round(w))) or len(np.unique(w[w > 0])) < 2:
        return None
    return np.maximum(w, 1.0)


def is_leave_one_out(cv: Any) -> bool:
    """True if single observations are held out."""
    return isinstance(cv, LeaveOneOut) or (isinstance(cv, str) and cv == "loo")


def warn_of_copies(X: Any, copy: Array, target: Array, count: Array | None) -> None:
    """Warn where rows of continuous data come several times, with the same target, as in an upsampled table.

    Every row is one observation. Of few discrete values, equal rows are to be expected. Continuous measurements that
    agree in every digit are more likely one measurement that was repeated. Its copies then stay in the training part
    when one of them is held out, and held-out scores are too good.

    Parameters
    ----------
    copy : ndarray of int of shape (n,)
        Labels of ``distinct_rows``.
    target : ndarray of shape (n,) or (n, outputs)
    count : ndarray of shape (n,) or None
        Observations that each row stands for.
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
        "table), or whole numbers in sample_weight are not counts, held-out scores are too good: pass "
        "groups='duplicates' to hold copies out together.",
        DuplicateRowsWarning,
        stacklevel=6,
    )


def _continuous(X: Any, distinct: Array) -> bool:
    """True if some column has fractional values that differ in most of the distinct rows."""
    some = distinct[np.unique(np.linspace(0, len(distinct) - 1, LOOKED_AT).astype(int))]
    part = to_numpy(X.only(some)) if isinstance(X, DeviceRows) else X[some]
    part = part.toarray() if sparse.issparse(part) else np.asarray(part)
    fractional = np.flatnonzero((part != np.round(part)).any(axis=0))
    return any(len(np.unique(part[:, j])) >= len(some) / 2 for j in fractional)


def fold_ids(cv: Any, y: Array, groups: Array | None, seed: int, task: Array | None = None) -> Array:
    """A label for every row; rows with the same label are held out together.

    Parameters
    ----------
    cv : "loo", int, splitter or iterable of (train, test)
        ``"loo"`` leaves out one row, or one group where groups are given. A number makes that many stratified folds.
        Splits have to hold out every row exactly once.
    task : ndarray of shape (n,), optional
        Codes of the tasks: a number of folds is then stratified by task and class together, and a splitter that
        asks for groups is given the tasks if there are no other groups.
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
        with warnings.catch_warnings():  # some splitters have no use for tasks, and say so
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
    """A splitter of the user's has to respect the groups that were given."""
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
    maker = StratifiedKFold if groups is None else StratifiedGroupKFold
    splits = maker(k, shuffle=True, random_state=seed).split(np.zeros((len(y), 1)), y, groups)
    return _from_splits(splits, len(y))


def task_fold_labels(k: int, y: Array, task: Array, seed: int | None) -> Array:
    """A fold 0 ... k-1 for every row, such that all folds look alike.

    The sizes of any two folds differ by at most one: overall, in every task, in every class, and in every cell (rows
    of one task and class). Such folds always exist. Dealing out the cells in turn, like cards, would do for all but
    the classes: with 19 rows of one class and 1 of the other in every task, each fifth card is of the rare class, and
    one of five folds gets them all.

    Parameters
    ----------
    k : int
        Number of folds.
    y, task : ndarray of int of shape (n,)
        Codes of class and task. Only which rows share one matters.
    seed : int or None
        Shuffles rows, and which folds have a row more. None takes the rows of a cell in their order.
    """
    if k < 2 or k > len(y):
        raise ValueError(f"{k} folds: with {len(y)} rows use a number from 2 to {len(y)}.")
    rng = None if seed is None else np.random.default_rng(seed)
    y, task = _as_they_come(y), _as_they_come(task)
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


def _as_they_come(codes: Any) -> Array:
    """Codes renumbered by first appearance, so that other names for the same things make the same folds."""
    _, first, label = np.unique(codes, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[label]


def _even_share(counts: Array, task: Array, y: Array, k: int) -> Array:
    """One of k even shares of a table of counts, as counts of its cells.

    Every cell, row, column and the total get count / k, rounded up or down. That is a flow of whole numbers from
    tasks through cells to classes with bounds on every arc. The flow count / k keeps to them but is not whole; then
    one of whole numbers exists too. Bounds from below are met by the usual detour over a second source and sink: what
    an arc has to carry goes from the one to its head and from its tail to the other, and a maximum flow fills that.

    Parameters
    ----------
    counts, task, y : ndarray of int of shape (number of cells,)
        Size, row and column of every cell that is not empty.
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
                "held-out scores in closed form need all of them in the training part."
            )
    if not (times == 1).all():
        raise ValueError(
            f"cv must hold out every row exactly once, as KFold does: of {n} rows {np.sum(times == 0)} are never "
            f"held out and {np.sum(times > 1)} more than once. Use 'loo', a number, or a splitter that partitions."
        )
    if labels.max(initial=0) == 0:
        raise ValueError("cv gives a single fold, which leaves nothing to train on: use two or more.")
    return labels


def _pairs(splits: Iterable, n: int) -> Iterable[tuple[Array, Array]]:
    """Training and test rows of every split, as row numbers."""
    try:
        return [(np.arange(n)[train], np.arange(n)[test]) for train, test in splits]
    except (TypeError, IndexError) as error:
        raise ValueError(f"cv={splits!r} is no list of (training rows, test rows) for {n} rows: {error}") from None
