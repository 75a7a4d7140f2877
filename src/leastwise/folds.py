"""Which rows are held out together: leave-one-out, k folds, groups, or a splitter of the user's."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

Array = np.ndarray


def distinct_rows(X: Any) -> Array:
    """A label for every row; rows that are equal in every entry have the same one."""
    if sparse.issparse(X):
        X = X.tocsr().copy()
        X.sum_duplicates()
        X.eliminate_zeros()
        ends = X.indptr
        keys = [hash((X.indices[a:b].tobytes(), X.data[a:b].tobytes())) for a, b in pairwise(ends)]
    else:
        keys = [hash(row.tobytes()) for row in np.ascontiguousarray(X) + 0.0]  # + 0.0 makes -0.0 and 0.0 equal
    _, first, label = np.unique(keys, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[label]  # numbered as they come, since hashes differ from run to run


def fold_labels(cv: Any, y: Array, groups: Array | None, copies: Array, seed: int) -> Array:
    """A label for every row; rows with the same label are held out together.

    Parameters
    ----------
    cv : "loo", int, splitter or iterable of (train, test)
        ``"loo"`` leaves out one row, together with its exact copies, or one group where groups are given. Copies
        have to go together: otherwise repeating all rows would make every held-out score look perfect.
        A number makes that many stratified folds. Splits have to hold out every row exactly once.
    copies : ndarray of shape (n,)
        Labels of ``distinct_rows``.
    """
    if isinstance(cv, str):
        if cv != "loo":
            raise ValueError(f"cv={cv!r} is not known: use 'loo', a number of folds, or a splitter.")
        return copies if groups is None else np.unique(groups, return_inverse=True)[1]
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        return _k_folds(int(cv), y, groups, seed)
    if hasattr(cv, "split"):
        return _from_splits(cv.split(np.zeros((len(y), 1)), y, groups), len(y))
    if isinstance(cv, Iterable):
        return _from_splits(cv, len(y))
    raise ValueError(f"cv={cv!r} is not known: use 'loo', a number of folds, or a splitter.")


def _k_folds(k: int, y: Array, groups: Array | None, seed: int) -> Array:
    if k < 2 or k > len(y):
        raise ValueError(f"cv={k} folds: with {len(y)} rows use a number from 2 to {len(y)}, or 'loo'.")
    maker = StratifiedKFold if groups is None else StratifiedGroupKFold
    splits = maker(k, shuffle=True, random_state=seed).split(np.zeros((len(y), 1)), y, groups)
    return _from_splits(splits, len(y))


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
