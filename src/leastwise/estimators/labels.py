"""Base of classifiers of many labels: predictions in the form in which the labels were given."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.label_thresholds import decide
from leastwise.calibration.prior import Shift, read_label_prior
from leastwise.estimators.base import Classifier, logarithm
from leastwise.estimators.predicting import container_of
from leastwise.estimators.sets import SetOptions, held_rows, label_tables
from leastwise.estimators.validation import row_index
from leastwise.metrics.labels import subset_of
from leastwise.problem.labels import Labels, encode_known
from leastwise.problem.targets import as_column, is_flat
from leastwise.problem.weights import entry_weights
from leastwise.sources.dask import by_partition
from leastwise.utils.arrays import back_like, bring, is_numpy, to_numpy

Array = np.ndarray


class LabelClassifier(MultiOutputMixin, Classifier):
    """Base of classifiers of many labels."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    @by_partition
    def scores(self, X: Any) -> Array:
        """Raw scores, before any calibration: one column for each class of the first label, then of the second, ...

        Returns
        -------
        ndarray of shape (n, classes of all labels)
        """
        return self._answer(X).F

    def _shift(self, class_prior: Any) -> Shift | None:
        if class_prior is None:
            return None
        check_is_fitted(self)
        trained = self.calibrator_.shares.astype(float)
        return Shift(read_label_prior(class_prior, self.label_index_, trained), trained, self.label_index_.starts)

    @by_partition
    def predict_proba(self, X: Any, *, class_prior: Any = None) -> Any:
        """Probability of every label.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)
        class_prior : mapping, Series, array-like of shape (T,), sequence of length T or "uniform", optional
            Shares where the model is used, if they differ from those that it was trained on (``class_prior_``): of
            the second class of each label, in the order of the labels or by name; of all classes for a label that
            has more. Labels that a mapping leaves out stay as they are. See :meth:`leastwise.LSPC.predict_proba`.

        Returns
        -------
        ndarray or frame of shape (n, T)
            That of the second class, where every label has two; otherwise a list of T arrays, of shape (n, classes
            of the label) each.
        """
        return self._shown(self._by_label(self._shifted(self._shift(class_prior), X).proba()), X)

    @by_partition
    def predict_log_proba(self, X: Any, *, class_prior: Any = None) -> Any:
        """Logarithm of ``predict_proba``."""
        P = self._by_label(self._shifted(self._shift(class_prior), X).proba())
        return self._shown([logarithm(p) for p in P] if isinstance(P, list) else logarithm(P), X)

    @by_partition
    def decision_function(self, X: Any, *, class_prior: Any = None) -> Any:
        """Values that order rows, and classes, as the probabilities do: log-odds, where the calibration is smooth.

        Returns
        -------
        ndarray or frame of shape (n, T)
            Second class minus first, where every label has two; otherwise a list of T arrays, of shape (n,) or (n,
            classes of the label) each.
        """
        return self._shown(self._by_label(self._shifted(self._shift(class_prior), X).table(), difference=True), X)

    @by_partition
    def predict(self, X: Any, *, class_prior: Any = None) -> Any:
        """The labels, in the form in which they were given to ``fit``: array, sparse matrix or frame.

        A label of two classes is given (its second class) where its probability is above ``threshold_``; of more
        classes the most probable one is. ``class_prior`` as in ``predict_proba``; thresholds stay as they are.
        """
        P = self._shifted(self._shift(class_prior), X).proba()
        codes = decide(to_numpy(P), self.label_index_.starts, self.threshold_)
        return back_like(self.label_index_.decode(codes, row_index(X)), P)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows all of whose known labels are right; rows without a known label do not count."""
        P, y, sample_weight = to_numpy(self._answer(X).proba()), bring(y), bring(sample_weight)
        y = as_column(y) if is_flat(y) else y
        codes = encode_known(y, self.label_index_, len(P), self.missing)
        W = entry_weights(sample_weight, codes, self.label_index_)
        if not W.any():
            raise ValueError("y has no known label (of a weight above 0): there is nothing to score.")
        right = (decide(P, self.label_index_.starts, self.threshold_) == codes) | (codes < 0)
        return subset_of(right, W)

    def _by_label(self, A: Array, difference: bool = False) -> Any:
        """One column for every label where all have two classes; otherwise a list of arrays."""
        starts = self.label_index_.starts
        if self.label_index_.form == "flat":
            return A[:, 1] - A[:, 0] if difference and A.shape[1] == 2 else A
        if self.label_index_.binary:
            if difference:
                return A[:, 1::2] - A[:, 0::2]
            return np.ascontiguousarray(A[:, 1::2]) if is_numpy(A) else A[:, 1::2]
        parts = [A[:, a:b] for a, b in pairwise(starts.tolist())]
        return [D[:, 1] - D[:, 0] if difference and D.shape[1] == 2 else D for D in parts]

    def _shown(self, values: Any, X: Any) -> Any:
        """In the container that ``set_output`` asked for."""
        container = container_of(self)
        if isinstance(values, list):
            return [v if v.ndim == 1 else self._framed(v, X, self.classes_[t]) for t, v in enumerate(values)]
        if values.ndim == 1:
            return values
        if self.label_index_.form == "flat":
            return self._framed(values, X)
        return self.label_index_.frame(
            values if container == "default" else to_numpy(values), container, row_index(X)
        )

    @by_partition
    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        method: str = "lac",
        by_class: bool = False,
        allow_empty: bool = False,
        random_state: Any = None,
    ) -> Any:
        """Sets of classes for every label, each of which holds the true one with about this probability.

        A label whose set holds both classes is left open. Parameters as in :meth:`leastwise.LSPC.predict_set`; the
        coverage is that of each label, on the rows whose label was known.

        Returns
        -------
        ndarray of bool of shape (n, T, 2)
            Where every label has two classes; otherwise a list of T arrays, of shape (n, classes of the label) each.
            Of shape (n, n_classes) for one label that was given as one class a row.
        """
        flags = {"by_class": by_class, "by_task": False, "allow_empty": allow_empty}
        wanted = SetOptions.checked(coverage, method, random_state, **flags)
        held = held_rows(self)
        P, labels = to_numpy(self._answer(X).proba()), self.label_index_
        return wanted.of_labels(P, label_tables(self.heldout_proba_, labels.form), held, labels)

    threshold: Any
    missing: Any
    threshold_: Any
    label_index_: Labels
