"""Cross-validation splitters for scikit-learn, stratified by tasks or by many labels.

Folds of many labels come from iterative stratification, then swaps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import type_of_target

from leastwise.model_selection.folds import task_fold_labels
from leastwise.problem.tasks import encode_tasks, split_tasks
from leastwise.utils.hashing import pair_hashes, row_hashes, sample_hashes, unit_hashes

__all__ = ["StratifiedLabelKFold", "StratifiedTaskKFold"]

Array = np.ndarray

# --------------------------------------------------------- folds of many labels


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


# -------------------------------------------------------------------- splitters


class _AssignedKFold(BaseCrossValidator):
    """K-fold splitter from fold labels; ``n_splits``, ``shuffle`` and ``random_state`` are parameters."""

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Number of folds."""
        return self.n_splits

    def _parts(self, labels: Array) -> Iterator[tuple[Array, Array]]:
        rows = np.arange(len(labels))
        return ((rows[labels != k], rows[labels == k]) for k in range(self.n_splits))

    def _seed(self, n: int) -> int | None:
        """Seed for shuffling n rows; None without shuffling."""
        self._check_parameters()
        if self.n_splits > n:
            raise ValueError(f"n_splits={self.n_splits}: with {n} rows use a number from 2 to {n}.")
        return check_random_state(self.random_state).randint(2**31 - 1) if self.shuffle else None

    def _check_parameters(self) -> None:
        whole = isinstance(self.n_splits, Integral) and not isinstance(self.n_splits, bool)
        if not whole or self.n_splits < 2:
            raise ValueError(f"n_splits={self.n_splits!r} must be a whole number, 2 or more.")
        if not self.shuffle and self.random_state is not None:
            raise ValueError(
                f"random_state={self.random_state!r} has no effect with shuffle=False: leave it out, or shuffle."
            )

    n_splits: int
    shuffle: bool
    random_state: Any


class StratifiedTaskKFold(_AssignedKFold):
    """K folds stratified by task and class.

    Sizes of the folds differ by at most one: overall, in every task, in every class, and in every class of every
    task. If a class has fewer rows in a task than there are folds, some folds have none.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    task_column : str or int, optional
        Column of X that holds the tasks: its name if X is a data frame, or its position. By default the tasks are
        passed as ``groups=``. Note that these groups are spread over the folds; scikit-learn's ``GroupKFold`` keeps
        groups together.
    shuffle : bool, default=True
        Whether to shuffle rows before assigning them; otherwise the rows of a cell are assigned in order.
    random_state : int, RandomState or None, default=None
        Source of the shuffling; an int gives the same folds at every call.

    See Also
    --------
    sklearn.model_selection.StratifiedKFold : The same for one task.

    Examples
    --------
    >>> import numpy as np
    >>> from leastwise.model_selection import StratifiedTaskKFold
    >>> X, y = np.zeros((8, 1)), np.array([0, 0, 1, 1, 0, 0, 1, 1])
    >>> field = ["north"] * 4 + ["south"] * 4
    >>> for train, test in StratifiedTaskKFold(2, shuffle=False).split(X, y, groups=field):
    ...     print(test)
    [0 2 4 6]
    [1 3 5 7]
    """

    #: With metadata routing, groups are requested, as in scikit-learn's group splitters.
    __metadata_request__split: ClassVar[dict] = {"groups": True}

    def __init__(
        self, n_splits: int = 5, *, task_column: Any = None, shuffle: bool = True, random_state: Any = None
    ) -> None:
        self.n_splits = n_splits
        self.task_column = task_column
        self.shuffle = shuffle
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Array, Array]]:
        """Row indices of the training and the test part of every fold.

        Parameters
        ----------
        X : array, sparse matrix, pandas or polars frame of shape (n, d)
            Only its number of rows and its task column matter.
        y : array-like of shape (n,)
            Classes. For regression targets, folds are stratified by task alone.
        groups : array-like of shape (n,), optional
            The tasks, any hashable ids; required without ``task_column``.

        Returns
        -------
        iterator of (train, test)
        """
        return self._parts(self._labels(X, y, groups))

    def _labels(self, X: Any, y: Any, groups: Any) -> Array:
        """The fold of every row."""
        self._check_parameters()
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        task, _ = encode_tasks(self._tasks(X, groups, n), n)
        return self.task_labels(np.unique(_checked_classes(y, n), return_inverse=True)[1], task)

    def task_labels(self, classes: Array, task: Array) -> Array:
        """The fold of every row, from class and task codes."""
        seed = self._seed(len(task))
        return task_fold_labels(int(self.n_splits), classes, task, seed)

    def _tasks(self, X: Any, groups: Any, n: int) -> Any:
        """Task ids of the rows, not yet checked."""
        if self.task_column is not None:
            if groups is not None:
                raise ValueError(
                    f"Tasks are given twice, by task_column={self.task_column!r} and by groups=: leave one out."
                )
            return split_tasks(X, self.task_column)[1]
        if groups is None:
            raise ValueError(
                "No tasks are given: name their column of X by StratifiedTaskKFold(task_column=...), or pass them as "
                "groups=. For data of one task use scikit-learn's StratifiedKFold."
            )
        return _one_each(groups, n)


def _one_each(groups: Any, n: int) -> Any:
    """Check that there is one group per row; a single id for all rows is an error here."""
    given = len(groups) if hasattr(groups, "__len__") and not isinstance(groups, str | bytes) else None
    if given != n:
        raise ValueError(
            f"groups has {given if given is not None else 'a single value'} for {n} rows: give one task id per row."
        )
    return list(groups) if isinstance(groups, tuple) else groups


def _checked_classes(y: Any, n: int) -> Array:
    if y is None:
        raise ValueError("y=None: folds are stratified by class, so give the classes as y.")
    kind = type_of_target(y)
    if kind in ("continuous", "continuous-multioutput", "multiclass-multioutput"):
        if len(y) != n:
            raise ValueError(f"y has {len(y)} values for {n} rows: give one per row.")
        return np.zeros(n, dtype=int)
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"y is {kind}, but folds are stratified by class, or by task alone for regression: give one class or "
            "value per row."
        )
    classes = column_or_1d(y)
    if len(classes) != n:
        raise ValueError(f"y has {len(classes)} values for {n} rows: give one class per row.")
    return classes


class StratifiedLabelKFold(_AssignedKFold):
    """K folds stratified by many labels.

    Sizes of the folds differ by at most one, and the rows of every class of every label are spread over them about as
    evenly as possible. If a class has fewer rows than there are folds, some folds have none.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds.
    shuffle : bool, default=True
        Whether to shuffle rows before assigning them.
    random_state : int, RandomState or None, default=None
        Source of the shuffling; an int gives the same folds at every call.

    See Also
    --------
    sklearn.model_selection.StratifiedKFold : The same for one label.

    Notes
    -----
    Rows are assigned as in iterative stratification (Sechidis, Tsoumakas and Vlahavas 2011), then swapped. The order
    of the labels makes no difference.

    Examples
    --------
    >>> import numpy as np
    >>> from leastwise.model_selection import StratifiedLabelKFold
    >>> Y = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [1, 1], [1, 1], [0, 0], [0, np.nan]])
    >>> for train, test in StratifiedLabelKFold(2, shuffle=False).split(np.zeros((8, 1)), Y):
    ...     print(test, np.nansum(Y[test], axis=0))
    [0 3 5 6] [2. 2.]
    [1 2 4 7] [2. 2.]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = True, random_state: Any = None) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Array, Array]]:
        """Row indices of the training and the test part of every fold.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, d)
            Only its number of rows matters.
        y : array-like, sparse matrix or data frame of shape (n, T)
            Classes of the labels; NaN or None for unknown labels.
        groups : None
            Not used; present for compatibility with scikit-learn.

        Returns
        -------
        iterator of (train, test)
        """
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        return self._parts(self.label_labels(_label_codes(y, n)))

    def label_labels(self, codes: Array) -> Array:
        """The fold of every row, from class codes, -1 for unknown labels."""
        return label_fold_ids(int(self.n_splits), codes, self._seed(len(codes)))


def _label_codes(y: Any, n: int) -> Array:
    """Class codes of each label, -1 for unknown labels."""
    if y is None:
        raise ValueError("y=None: folds are stratified by label, so give the table of labels as y.")
    if sparse.issparse(y):
        y = y.toarray()
    table = np.asarray(y)
    if isinstance(y, np.ma.MaskedArray):
        table = table.astype(object)
        table[np.ma.getmaskarray(y)] = None
    if table.ndim != 2 or len(table) != n or table.shape[1] == 0:
        raise ValueError(
            f"y has shape {table.shape} for {n} rows: give a table with one row each, and one column per label. For "
            "one label use scikit-learn's StratifiedKFold."
        )
    return np.column_stack([_class_codes(column, t) for t, column in enumerate(table.T)])


def _class_codes(column: Array, t: int) -> Array:
    """Class codes of label t."""
    if column.dtype.kind in "biuf":
        known = column == column  # NaN is not
    else:  # pandas' NA is neither equal nor unequal to itself
        known = np.array([value is not None and (value != value) is False for value in column.tolist()])
    if column.dtype.kind == "f" and np.any(column[known] % 1):
        raise ValueError(
            f"Column {t} of y holds {column[known][column[known] % 1 != 0][0]}, which is not a class: folds are "
            "stratified by classes. Use scikit-learn's KFold for regression targets."
        )
    codes = np.full(len(column), -1)
    codes[known] = np.unique(column[known], return_inverse=True)[1]
    return codes
