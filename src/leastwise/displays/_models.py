"""Pictures of probabilities, from a model and rows, from what it kept of held-out rows, or from predictions."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from leastwise.displays._drawing import pyplot
from leastwise.inspection.outcomes import called, heldout, holder, is_table, predicted


class FromModels:
    """Base of displays that have ``from_predictions``."""

    #: Whether there is one curve, with a name; and whether tasks matter beyond the prediction.
    _has_name: ClassVar[bool] = True
    _by_task: ClassVar[bool] = False

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, tasks: Any = None, **kwargs: Any) -> Self:
        """Draw a fitted classifier on rows with known classes.

        Parameters
        ----------
        estimator : classifier with ``predict_proba``
            Pipelines, and wrappers such as :class:`leastwise.Abstaining`, too.
        X : array-like of shape (n, n_features)
        y : array-like of shape (n,) or (n, T)
            True classes, or a table of labels.
        tasks : array-like of shape (n,), optional
            The task of every row, for models of many tasks.
        **kwargs
            For ``from_predictions``; ``name`` is by default the name of the classifier, that inside a pipeline.
        """
        pyplot()
        return cls._of_model(estimator, y, predicted(estimator, X, tasks), tasks, "", **kwargs)

    @classmethod
    def from_heldout(cls, model: Any, y: Any, *, tasks: Any = None, **kwargs: Any) -> Self:
        """Draw the predictions that a model made of its training rows while they were held out.

        No other rows are needed, and nothing is fitted. Sigma, alpha and the calibration were chosen by these
        predictions, which flatters a little.

        Parameters
        ----------
        model : fitted classifier of leastwise
            Or a pipeline that ends in one, or a wrapper or search around one.
        y : array-like of shape (n,) or (n, T)
            What it was fitted to.
        tasks : array-like of shape (n,), optional
            The task of every row, where the picture is of tasks.
        **kwargs
            For ``from_predictions``; ``name`` is by default the name of the classifier, that inside a pipeline.
        """
        pyplot()
        return cls._of_model(model, y, heldout(model, y), tasks, ", held out", **kwargs)

    @classmethod
    def _of_model(cls, model: Any, y: Any, proba: Any, tasks: Any, how: str, **kwargs: Any) -> Self:
        if cls._has_name:
            kwargs = {"name": called(model) + how, **kwargs}
        if cls._by_task:
            kwargs["tasks"] = tasks
        if is_table(y):
            inner = holder(model, "label_index_")
            kwargs["model"] = inner if hasattr(inner, "label_index_") else None
        else:
            kwargs["classes"] = model.classes_
        return cls.from_predictions(y, proba, **kwargs)

    @classmethod
    def from_predictions(cls, y_true: Any, proba: Any, **kwargs: Any) -> Self:
        """Draw probabilities; for a subclass to say."""
        raise NotImplementedError
