"""Cross-validation splitters for scikit-learn, stratified by tasks or by many labels."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import type_of_target

from leastwise.model_selection.folds import task_fold_labels
from leastwise.model_selection.label_folds import label_fold_ids
from leastwise.problem.tasks import encode_tasks, split_tasks

__all__ = ["StratifiedLabelKFold", "StratifiedTaskKFold"]

Array = np.ndarray


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
