"""Sets of classes, and evidence for decisions, from probabilities that are calibrated once more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.estimators._labels import LabelClassifier
from leastwise.estimators._sets import ClassSets, LabelSets, TaskSets
from leastwise.estimators._tasks import TaskClassifier
from leastwise.evidence import Evidence, HeldRows

Array = np.ndarray


@dataclass(frozen=True)
class Calibrated:
    """Probabilities of new rows, and the places of their tasks, -1 where these are not known."""

    P: Array
    task: Array | None

    def proba(self) -> Array:
        """The probabilities."""
        return self.P


class RecalibratedSets:
    """Mixin for ``Recalibrated``: what ``predict_set`` and ``Abstaining`` ask of a model."""

    def predict_set(self, X: Any, coverage: float = 0.9, **options: Any) -> Any:
        """Sets of classes that hold the true one with about this probability, as the model has them.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
        coverage : float, default=0.9
        **options
            Those of the model's own ``predict_set``.
        """
        model = self.estimator_
        kind = (
            LabelSets
            if isinstance(model, LabelClassifier)
            else TaskSets
            if isinstance(model, TaskClassifier)
            else ClassSets
        )
        return kind.predict_set(self, X, coverage, **options)  # type: ignore[arg-type]

    def _answer(self, X: Any, tasks: Any = None) -> Calibrated:
        task = self._validated_rows(X, tasks)[1] if isinstance(self.estimator_, TaskClassifier) else None
        return Calibrated(self._proba(X, tasks, None), task)

    def _held_rows(self) -> HeldRows:
        return self.estimator_._held_rows()

    def _evidence(self) -> Evidence:
        return ClassSets._evidence(self)  # type: ignore[arg-type]

    def _stranger_evidence(self) -> Evidence | None:
        """Rows of tasks that are not known keep the model's own probabilities."""
        return self.estimator_._stranger_evidence()

    def _validated_rows(self, X: Any, tasks: Any) -> Any:
        return self.estimator_._validated_rows(X, tasks)

    @property
    def heldout_rows_(self) -> HeldRows:
        """Those of the model."""
        return self.estimator_.heldout_rows_

    @property
    def missing(self) -> Any:
        """What stands for a label that is not known, in a model of many labels."""
        return self.estimator_.missing

    def _proba(self, X: Any, tasks: Any, class_prior: Any) -> Array:
        raise NotImplementedError

    estimator_: Any
    heldout_proba_: Any
