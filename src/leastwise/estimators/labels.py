"""Base of multi-label classifiers: predictions in the form in which the labels were given."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import MultiOutputMixin
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.label_thresholds import decide
from leastwise.calibration.prior import Shift, read_label_prior
from leastwise.estimators.base import Classifier, logarithm
from leastwise.estimators.docs import documented
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


@documented
class LabelClassifier(MultiOutputMixin, Classifier):
    """Base of multi-label classifiers."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    @by_partition
    def scores(self, X: Any) -> Array:
        """Raw scores, before any calibration.

        Parameters
        ----------
        %(X.new)s

        Returns
        -------
        ndarray of shape (n, n_outputs)
            One column for each class of the first label, then of the second, and so on.
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
        """Probability of each label.

        Parameters
        ----------
        %(X.new)s
        %(class_prior.labels)s

        Returns
        -------
        ndarray or frame of shape (n, T), or list of T arrays
            Probability of the second class if every label has two classes; otherwise a list of arrays of shape (n,
            classes of the label).
        """
        return self._shown(self._by_label(self._shifted(self._shift(class_prior), X).proba()), X)

    @by_partition
    def predict_log_proba(self, X: Any, *, class_prior: Any = None) -> Any:
        """Logarithm of ``predict_proba``, with the same arguments."""
        P = self._by_label(self._shifted(self._shift(class_prior), X).proba())
        return self._shown([logarithm(p) for p in P] if isinstance(P, list) else logarithm(P), X)

    @by_partition
    def decision_function(self, X: Any, *, class_prior: Any = None) -> Any:
        """Values that order rows and classes as the probabilities do: log-odds if the calibration is smooth.

        Parameters
        ----------
        %(X.new)s
        %(class_prior.labels)s

        Returns
        -------
        ndarray or frame of shape (n, T), or list of T arrays
            Second class minus first if every label has two classes; otherwise a list of arrays of shape (n,) or (n,
            classes of the label).
        """
        return self._shown(self._by_label(self._shifted(self._shift(class_prior), X).table(), difference=True), X)

    @by_partition
    def predict(self, X: Any, *, class_prior: Any = None) -> Any:
        """Labels, in the form in which they were given to ``fit``: array, sparse matrix or frame.

        A label of two classes is assigned its second class if the probability of that is above ``threshold_``, a
        label of more classes the most probable one.

        Parameters
        ----------
        %(X.new)s
        %(class_prior.labels)s
            Thresholds do not change with it.

        Returns
        -------
        array, sparse matrix or frame of shape (n, T)
        """
        P = self._shifted(self._shift(class_prior), X).proba()
        codes = decide(to_numpy(P), self.label_index_.starts, self.threshold_)
        return back_like(self.label_index_.decode(codes, row_index(X)), P)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of rows with all known labels right (subset accuracy); rows without known labels do not count."""
        P, y, sample_weight = to_numpy(self._answer(X).proba()), bring(y), bring(sample_weight)
        y = as_column(y) if is_flat(y) else y
        codes = encode_known(y, self.label_index_, len(P), self.missing)
        W = entry_weights(sample_weight, codes, self.label_index_)
        if not W.any():
            raise ValueError("y has no known label (of a weight above 0): there is nothing to score.")
        right = (decide(P, self.label_index_.starts, self.threshold_) == codes) | (codes < 0)
        return subset_of(right, W)

    def _by_label(self, A: Array, difference: bool = False) -> Any:
        """One column for each label if all have two classes; otherwise a list of arrays."""
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
        """Values in the container that ``set_output`` asked for."""
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
        """Sets of classes for each label that hold the true class with about this probability.

        A set with both classes leaves the label undecided. See :mod:`leastwise.calibration.conformal`.

        Parameters
        ----------
        %(X.new)s
        %(coverage)s
            It holds for each label by itself, on the rows whose label is known.
        %(method.set)s
        %(by_class)s
        %(allow_empty)s
        %(random_state.set)s

        Returns
        -------
        ndarray of bool of shape (n, T, 2), or list of T arrays
            If every label has two classes; otherwise a list of arrays of shape (n, classes of the label). Of shape
            (n, n_classes) if a single label was given as an array of shape (n,).
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
