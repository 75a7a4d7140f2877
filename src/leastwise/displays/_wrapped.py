"""Models within pipelines, searches and wrappers: where they keep what is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from leastwise.abstention import Abstaining


def layers(model: Any) -> Iterator[Any]:
    """The model, then what is inside, as far as it goes."""
    while model is not None:
        yield model
        if isinstance(model, Pipeline):
            model = model.steps[-1][1]
        elif isinstance(model, FrozenEstimator):
            model = model.estimator
        else:
            inside = (getattr(model, name, None) for name in ("estimator_", "best_estimator_"))
            model = next((found for found in inside if found is not None), None)


def holder(model: Any, attribute: str) -> Any:
    """The outermost layer that has an attribute; the model itself where there is none."""
    return next((layer for layer in layers(model) if hasattr(layer, attribute)), model)


def having(model: Any, attribute: str, instead: str) -> Any:
    """The outermost layer that has an attribute, or an error that says what to do."""
    found = holder(model, attribute)
    if not hasattr(found, attribute):
        raise ValueError(f"{type(model).__name__} has no {attribute}: {instead}.")
    return found


def rule_of(model: Any) -> Abstaining | None:
    """The layer that decides or leaves to a person, where there is one."""
    return next((layer for layer in layers(model) if isinstance(layer, Abstaining)), None)


def called(model: Any) -> str:
    """The name in a legend: that of the first layer which makes probabilities, and does not only hand them on."""
    hands_on = (Pipeline, FrozenEstimator, Abstaining)
    own = (x for x in layers(model) if not isinstance(x, hands_on) and not hasattr(x, "best_estimator_"))
    return type(next(own, model)).__name__


def predicted(estimator: Any, X: Any, tasks: Any) -> Any:
    """Probabilities of rows; the tasks go along where the model asks for them and has no column for them."""
    *_, inner = layers(estimator)
    asks = "tasks" in signature(inner.predict_proba).parameters and getattr(inner, "task_column", None) is None
    return estimator.predict_proba(X, tasks=tasks) if asks and tasks is not None else estimator.predict_proba(X)


def heldout(model: Any, y: Any) -> Any:
    """Probabilities of the training rows when these were held out."""
    rule = rule_of(model)
    if rule is not None and isinstance(getattr(rule, "estimator_", None), FrozenEstimator):
        raise ValueError(
            "The model is frozen: its held-out rows are not those that the threshold was set on. Use from_estimator "
            "with the latter."
        )
    instead = (
        "fit a classifier of leastwise with cv= other than None, or use from_estimator with rows that it was not "
        "trained on"
    )
    P = having(model, "heldout_proba_", instead).heldout_proba_
    given, known = (_rows(table) for table in (y, P[0] if isinstance(P, list) else P))
    if given != known:
        raise ValueError(
            f"y has {given} rows, and the model was fitted to {known}: give the latter, or use from_estimator."
        )
    return P


def _rows(table: Any) -> int:
    return int(table.shape[0]) if hasattr(table, "shape") else len(table)
