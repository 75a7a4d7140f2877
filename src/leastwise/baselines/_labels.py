"""What the multi-label methods have in common: labels as a table of 0 and 1, one column a label."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin
from sklearn.utils.validation import check_is_fitted, validate_data

Array = np.ndarray


def check_labels(y: Any, n: int) -> Array:
    """The labels of n rows as a table of bool, of shape (n, T)."""
    if y is None:
        raise ValueError(
            "requires y to be passed, but the target y is None: give a table of 0 and 1, one column a label."
        )
    table = y.toarray() if sparse.issparse(y) else _as_array(y)
    if table.ndim != 2 or table.shape[1] == 0:
        raise ValueError(
            f"y has shape {table.shape}; it must be a table of shape (rows, labels) with one column or more. For one "
            "label give y.reshape(-1, 1); for lists of labels use sklearn.preprocessing.MultiLabelBinarizer first."
        )
    if len(table) != n:
        raise ValueError(f"X has {n} rows and y has {len(table)}: give the labels of every row of X.")
    return _as_bool(table)


def _as_array(y: Any) -> Array:
    try:
        return np.asarray(y)
    except ValueError:
        raise ValueError(
            "y has rows of different lengths; it must be a table of 0 and 1, one column a label. "
            "sklearn.preprocessing.MultiLabelBinarizer makes one of lists of labels."
        ) from None


def _as_bool(table: Array) -> Array:
    if table.dtype.kind not in "biuf":
        strange = [value for value in table.ravel().tolist() if not isinstance(value, Real)]
        if strange:
            raise ValueError(f"y holds {strange[0]!r}; its values must be 0 or 1 (or False and True).")
    values = table.astype(np.float64)
    missing = int(np.isnan(values).sum())
    if missing:
        raise ValueError(f"y holds {missing} values that are NaN: leave such rows out, or say 0 or 1.")
    strange = np.unique(values[(values != 0) & (values != 1)]).tolist()
    if strange:
        hint = " For -1 and 1 give y > 0." if strange == [-1.0] else ""
        raise ValueError(f"y holds {strange[:5]}; its values must be 0 or 1 (or False and True).{hint}")
    return values == 1


class LabelClassifier(ClassifierMixin, MultiOutputMixin, BaseEstimator):
    """Every row may have any number of the labels, none to all."""

    #: Whether X may be a sparse matrix.
    sparse_rows: ClassVar[bool] = False

    classes_: list[Array]
    n_labels_: int

    def _training_rows(self, X: Any, y: Any) -> tuple[Any, Array]:
        """X as floats, and the labels as a table of bool."""
        X = validate_data(self, X, dtype=np.float64, accept_sparse="csr" if self.sparse_rows else False)
        Y = check_labels(y, X.shape[0])
        self.n_labels_ = Y.shape[1]
        self.classes_ = [np.array([0, 1])] * self.n_labels_
        return X, Y

    def _new_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        accept = "csr" if self.sparse_rows else False
        return validate_data(self, X, reset=False, dtype=np.float64, accept_sparse=accept)

    def predict(self, X: Any) -> Array:
        """Labels of the rows, 0 or 1, of shape (n, T)."""
        raise NotImplementedError

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows all of whose labels are right."""
        predicted = self.predict(X)
        truth = check_labels(y, len(predicted))
        if truth.shape[1] != self.n_labels_:
            raise ValueError(f"y has {truth.shape[1]} labels; this {type(self).__name__} knows {self.n_labels_}.")
        return float(np.average((predicted == truth).all(axis=1), weights=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.sparse_rows
        tags.target_tags.single_output = False
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        return tags
