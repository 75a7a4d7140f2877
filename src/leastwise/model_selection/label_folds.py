"""Folds of rows with many labels: every class of every label spread as evenly as sizes allow."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import sparse

from leastwise.utils.hashing import pair_hashes, row_hashes, sample_hashes, unit_hashes

Array = np.ndarray

#: A class with up to so many rows for each fold comes before the other classes of a row.
RARE = 30
#: Rows of either fold of a pair that are considered for a swap.
CANDIDATES = 64
#: Pairs of folds that are tried for a swap, at most, and entries of the table that are read meanwhile.
TRIALS, ENTRIES = 2000, 400_000_000


def label_fold_ids(k: int, codes: Array, seed: int | None) -> Array:
    """A fold 0 ... k-1 for every row, such that all folds look alike in every label.

    Rows are dealt out one by one, those with the rarest classes first, each to the fold that lacks its rarest class
    most, as in iterative stratification (Sechidis et al. 2011); but the row's other classes break ties, and no fold
    gets more than its share of rows, so that sizes differ by at most one. Then rows of two folds are swapped for as
    long as that lessens the sum of squares of ``rows of a class in a fold - rows of the class / k``, up to a limit on
    the work. All sums are of whole numbers: the order of the labels, and of their classes, makes no difference.

    Parameters
    ----------
    k : int
        Number of folds.
    codes : ndarray of int of shape (n, T)
        Codes of the classes; -1 where a label is not known, which counts for no class.
    seed : int or None
        Shuffles rows, and which folds have a row more. None takes equally rare rows in their order.
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
    """One column for each class of each label, 1 where a row has it.

    The commonest class of a label that is known everywhere is left out: it is spread evenly where the others are.
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
    """Rows of the rarest class that each row has; the number of rows, and one, where it has none."""
    n = table.shape[0]
    count = np.asarray(table.sum(axis=0))
    rarest = np.full(n, n + 1)
    np.minimum.at(rarest, np.repeat(np.arange(n), np.diff(table.indptr)), count[table.indices])
    return rarest


def _swapped(fold: Array, table: sparse.csr_array, k: int) -> Array:
    """Folds with rows swapped between two of them, for as long as some swap of the likely ones helps."""
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
    """Rows of shape (n, classes), how many classes each has, and their folds, which change."""

    table: sparse.csr_array
    size: Array
    fold: Array
    k: int

    def improve(self, a: int, b: int) -> bool:
        """Swap the rows of folds a and b that gain most, if any two gain.

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
    """Folds that spread the classes of all labels evenly and keep groups of rows, if there are any, together.

    A group has a label if one of its rows has it. Groups are dealt out in an order that depends on the keys ``x`` of
    their rows alone, so that the order of the rows makes no difference.
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
