"""What the model inside ``Recalibrated`` says, after the maps; and sets of classes from that."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from leastwise.calibration.reading import Layout
from leastwise.estimators._base import Answer
from leastwise.estimators._sets import ClassSets, TaskSets, Wanted, label_tables
from leastwise.estimators._tasks import TaskClassifier
from leastwise.estimators.multi_label import MultiLabelLSPC
from leastwise.evidence import Evidence
from leastwise.inside import Wrapping, arrive, inner_model

Array = np.ndarray


class Answering(ClassSets, Wrapping):
    """Mixin for ``Recalibrated``, whose held-out probabilities are by maps that were fitted without the row."""

    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        tasks: Any = None,
        method: str = "lac",
        by_class: bool = False,
        by_task: bool = False,
        allow_empty: bool = False,
        random_state: Any = None,
    ) -> Any:
        """Sets of classes that hold the true one with about this probability, from the calibrated probabilities.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n, n_features)
        coverage : float, default=0.9
        tasks : array-like of shape (n,) or a single id, optional
            The tasks of the rows, where X does not hold them.
        method, by_class, by_task, allow_empty, random_state
            As in :meth:`leastwise.LSPC.predict_set` and :meth:`leastwise.MultiTaskLSPC.predict_set`.

        Returns
        -------
        ndarray of bool, or list of them
            In the form in which ``predict_set`` of the model has them.
        """
        check_is_fitted(self)
        model = self._model
        if by_task and not isinstance(model, TaskClassifier):
            raise ValueError(f"by_task=True needs a model of tasks, and {type(model).__name__} is none.")
        flags = {"by_class": by_class, "by_task": by_task, "allow_empty": allow_empty}
        wanted = Wanted.checked(coverage, method, random_state, **flags)
        answer = self._answer(X, tasks)
        P = self._mapped(answer)
        if isinstance(model, MultiLabelLSPC):
            labels = model.label_index_
            return wanted.of_labels(P, label_tables(self.heldout_proba_, labels.form), self._held_rows(), labels)
        if answer.task is None:
            return wanted.of(P, self._evidence())
        return wanted.of_tasks(P, answer.task, self._evidence(), self._stranger_evidence())

    def _stranger_evidence(self) -> Evidence | None:
        """That of the model: tasks that are not known keep its probabilities."""
        return self._model._stranger_evidence() if isinstance(self._model, TaskSets) else None

    def _answer(self, X: Any, tasks: Any = None) -> Answer:
        """What the model says, before the maps."""
        model, rows = arrive(self.estimator_, X)
        if isinstance(model, TaskClassifier):
            return model._answer(rows, tasks).here()
        if tasks is not None:
            raise ValueError(f"tasks= was given, and {type(model).__name__} knows no tasks: leave it out.")
        return model._answer(rows).here()

    def _mapped(self, answer: Answer) -> Array:
        """Probabilities after the maps; tasks that are not known keep those of the model, if it has some for them."""
        P = answer.proba()
        new = self.layout_.applied(self.calibrators_, P, answer.task if self.by_task else None, answer.trust)
        if answer.stranger is not None and answer.strange is not None:
            new[answer.strange] = P[answer.strange]
        return new

    @property
    def _model(self) -> Any:
        """The model itself, at the end of a pipeline."""
        return inner_model(self.estimator_)

    def _by_label(self, A: Array, difference: bool = False) -> Any:
        if isinstance(self._model, MultiLabelLSPC):
            return self._model._by_label(A, difference)
        return A[:, 1] - A[:, 0] if difference and A.shape[1] == 2 else A

    def _shown(self, values: Any, X: Any) -> Any:
        """In the container that ``set_output`` of the model asked for."""
        if isinstance(values, list) or values.ndim == 1:
            return values
        return (
            self._model._shown(values, X)
            if isinstance(self._model, MultiLabelLSPC)
            else self._model._framed(values, X)
        )

    by_task: bool
    layout_: Layout
    calibrators_: Any
