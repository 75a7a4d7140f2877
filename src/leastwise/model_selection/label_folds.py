"""Stratified folds of rows with many labels (iterative stratification, then swaps)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import sparse

from leastwise.utils.hashing import pair_hashes, row_hashes, sample_hashes, unit_hashes

Array = np.ndarray

#: A class with up to this many rows per fold takes precedence over the other classes of a row.
RARE = 30
#: Rows of either fold considered for a swap.
CANDIDATES = 64
#: Limits on the work: pairs of folds tried for a swap, and entries of the table read.
TRIALS, ENTRIES = 2000, 400_000_000


def label_fold_ids(k: int, codes: Array, seed: int | None) -> Array:
    """Folds 0 ... k-1 of the rows, stratified by all labels.

    Rows are assigned one by one, those with the rarest classes first, each to the fold that lacks its rarest class
    most, as in iterative stratification (Sechidis et al. 2011). In addition the row's other classes break ties, and
    no fold gets more than its share of rows, so that sizes differ by at most one. Then rows of two folds are swapped
    while that reduces the sum of squares of ``rows of a class in a fold - rows of the class / k``, up to a limit on
    the work. All sums are integers, so the order of the labels and of their classes makes no difference.

    Parameters
    ----------
    k : int
        Number of folds.
    codes : ndarray of int of shape (n, T)
        Class codes; -1 for unknown labels, which count for no class.
    seed : int or None
        Seed for shuffling rows and folds. None takes equally rare rows in order.
    """
    n = len(codes)
    if k < 2 or k > n:
        raise ValueError(f"{k} folds: with {n} rows use a number from 2 to {n}.")
    rng = None if seed is None else np.random.default_rng(seed)
    rows = np.arange(n) if rng is None else rng.permutation(n)
    names = np.arange(k) if rng is None else rng.permutation(k)
    table = class_table(codes[rows])
    fold = _swapped(_dealt(table, k), table, k)
    labels = np.empty(n, dtype=int)
    labels[rows] = names[fold]
    return labels


def class_table(codes: Array) -> sparse.csr_array:
    """Indicator matrix with one column per class of each label.

    The most frequent class of a label without unknown values is left out: it is balanced if the others are.
    """
    columns = []
    for label in codes.T:
        classes, count = np.unique(label[label >= 0], return_counts=True)
        kept = np.arange(len(classes)) != (count.argmax() if count.sum() == len(label) else -1)
        columns += [np.flatnonzero(label == c) for c in classes[kept]]
    sizes = [len(c) for c in columns]
    i = np.concatenate([*columns, np.zeros(0, dtype=int)])
    j = np.repeat(np.arange(len(columns)), sizes)
    return sparse.csr_array((np.ones(len(i), dtype=np.int64), (i, j)), shape=(len(codes), len(columns)))


def _dealt(table: sparse.csr_array, k: int) -> Array:
    """Each row to the fold that lacks its rarest class most; of equal ones to that which lacks all its classes most.

    Where no class of the row is rare the first rule is left out: with many common classes it would spoil the others.
    """
    n, count, rarest = table.shape[0], np.asarray(table.sum(axis=0)), _rarest(table)
    lack = np.repeat(count[:, None], k, axis=1)  # k times what is missing, which is a whole number
    room = (n + np.arange(k)[::-1]) // k
    fold = np.empty(n, dtype=int)
    for i in np.argsort(rarest, kind="stable"):
        own = table.indices[table.indptr[i] : table.indptr[i + 1]]
        first = own[count[own] == rarest[i]] if rarest[i] <= RARE * k else own
        best = np.flatnonzero(room > 0)
        for need in (lack[first], lack[own], room[None]):
            total = need[:, best].sum(axis=0)
            best = best[total == total.max()]
        fold[i] = best[0]
        lack[own, best[0]] -= k
        room[best[0]] -= 1
    return fold


def _rarest(table: sparse.csr_array) -> Array:
    """Size of the rarest class of each row; n + 1 if it has none."""
    n = table.shape[0]
    count = np.asarray(table.sum(axis=0))
    rarest = np.full(n, n + 1)
    np.minimum.at(rarest, np.repeat(np.arange(n), np.diff(table.indptr)), count[table.indices])
    return rarest


def _swapped(fold: Array, table: sparse.csr_array, k: int) -> Array:
    """Folds after swapping rows between pairs of folds while a candidate swap improves the balance."""
    swaps = _Swaps(table, np.asarray(table.sum(axis=1)), fold.copy(), k)
    pairs = list(combinations(range(k), 2))
    attempts = min(TRIALS, int(ENTRIES // (2 * table.nnz / k + 1)))
    idle = 0
    for attempt in range(attempts):
        idle = 0 if swaps.improve(*pairs[attempt % len(pairs)]) else idle + 1
        if idle == len(pairs):
            break
    return swaps.fold


@dataclass(frozen=True)
class _Swaps:
    """Indicator matrix (n, classes), number of classes of each row, and folds, which are modified."""

    table: sparse.csr_array
    size: Array
    fold: Array
    k: int

    def improve(self, a: int, b: int) -> bool:
        """Make the best swap between folds a and b, if any improves the balance.

        With ``g = counts of a - counts of b``, rows x of a and z of b, the sum of squares changes by
        ``2 (z - x)'g + 2 |z - x|^2``.
        """
        A, B = (np.flatnonzero(self.fold == f) for f in (a, b))
        XA, XB = self.table[A], self.table[B]
        gap = np.asarray(XA.sum(axis=0) - XB.sum(axis=0))
        loss_a, loss_b = self.size[A] - XA @ gap, self.size[B] + XB @ gap
        i, j = (np.argsort(loss, kind="stable")[:CANDIDATES] for loss in (loss_a, loss_b))
        change = loss_a[i][:, None] + loss_b[j] - 2 * (XA[i] @ XB[j].T).toarray()
        p, q = np.unravel_index(change.argmin(), change.shape)
        if change[p, q] >= 0:
            return False
        self.fold[A[i[p]]], self.fold[B[j[q]]] = b, a
        return True


def grouped_folds(k: int, codes: Array, group: Array | None, x: Array) -> Array:
    """Folds stratified by all labels that keep groups of rows, if there are any, together.

    A group has a label if one of its rows has it. Groups are assigned in an order that depends only on the hashes
    ``x`` of their rows, so that the order of the rows makes no difference.
    """
    if group is None:
        member, most = np.arange(len(codes)), codes
        keys = sample_hashes(pair_hashes(x, row_hashes(codes)), [], [], "folds")
    else:
        member = np.unique(group, return_inverse=True)[1]
        order = np.argsort(member, kind="stable")
        starts = np.searchsorted(member[order], np.arange(member.max() + 1))
        most, keys = np.maximum.reduceat(codes[order], starts, axis=0), unit_hashes(x, member, "folds")
    dealt = np.argsort(keys, kind="stable")
    fold = np.empty(len(most), dtype=int)
    fold[dealt] = label_fold_ids(min(k, len(most)), most[dealt], None)
    return fold[member]
