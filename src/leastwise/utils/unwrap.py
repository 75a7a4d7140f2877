"""Unwrapping: models inside pipelines, frozen estimators and wrappers, and the parameters meant for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

Array = np.ndarray


def has(name: str) -> Any:
    """Decorator: the wrapper has the method if the wrapped model has it."""

    def check(wrapper: Any) -> bool:
        return hasattr(inner_model(getattr(wrapper, "estimator_", wrapper.estimator)), name)

    return available_if(check)


class Wrapping:
    """Mixin for classifiers that wrap another one: ``estimator``, fitted ``estimator_``.

    Rows are transformed by the earlier steps of a pipeline, then passed to the method of the wrapped classifier.
    """

    @has("predict_set")
    def predict_set(self, X: Any, coverage: float = 0.9, **params: Any) -> Any:
        """Prediction sets of the wrapped estimator; see :meth:`leastwise.LSPC.predict_set`."""
        return self._ask("predict_set", X, {"coverage": coverage, **params})

    @has("influence")
    def influence(self, X: Any, top: int | None = 10, **params: Any) -> Any:
        """Influence of training rows on the scores, before any calibration; see :meth:`leastwise.LSPC.influence`."""
        return self._ask("influence", X, {"top": top, **params})

    @has("in_domain")
    def in_domain(self, X: Any, **params: Any) -> Array:
        """Domain weight of rows away from the training data; see :meth:`leastwise.LSPC.in_domain`."""
        return self._ask("in_domain", X, params)

    @has("novelty_pvalue")
    def novelty_pvalue(self, X: Any, **params: Any) -> Array:
        """Novelty p-values: how close rows are to the training rows; see :meth:`leastwise.LSPC.novelty_pvalue`."""
        return self._ask("novelty_pvalue", X, params)

    def _ask(self, name: str, X: Any, params: dict[str, Any]) -> Any:
        check_is_fitted(self)
        own = own_params(self.estimator_, params)
        model, X = arrive(self.estimator_, X)
        return getattr(model, name)(X, **own)

    estimator: Any
    estimator_: Any


# ---------------------------------------------------------------------- unwrapping


def within(model: Any) -> Any:
    """The last step of a pipeline, or the estimator inside a frozen estimator or wrapper; None otherwise."""
    if isinstance(model, Pipeline):
        return model.steps[-1][1]
    if isinstance(model, FrozenEstimator):
        return model.estimator
    return getattr(model, "estimator_", model.estimator) if isinstance(model, Wrapping) else None


def layers(model: Any) -> Iterator[Any]:
    """The model, then the model inside it, and so on; searches and other meta-estimators are opened, too."""
    while model is not None:
        yield model
        fitted = (getattr(model, name, None) for name in ("estimator_", "best_estimator_"))
        inner = within(model)
        model = next((found for found in fitted if found is not None), None) if inner is None else inner


def inner_model(model: Any) -> Any:
    """The model inside pipelines and frozen estimators; it may be a wrapper."""
    while isinstance(model, FrozenEstimator | Pipeline):
        model = within(model)
    return model


def core(model: Any) -> Any:
    """The innermost model, inside wrappers too."""
    while (inner := within(model)) is not None:
        model = inner
    return model


def is_frozen(model: Any) -> bool:
    """True if the model, or a pipeline that contains it, is frozen."""
    while model is not None:
        if isinstance(model, FrozenEstimator):
            return True
        model = within(model)
    return False


def arrive(model: Any, X: Any, through: bool = False) -> tuple[Any, Any]:
    """The model inside pipelines and frozen estimators (with ``through``, wrappers), and the rows it receives."""
    while isinstance(model, FrozenEstimator | Pipeline) or (through and isinstance(model, Wrapping)):
        X = model[:-1].transform(X) if isinstance(model, Pipeline) and len(model) > 1 else X
        model = within(model)
    return model, X


# ---------------------------------------------------------------------- parameters


def split_params(model: Any, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split parameters of ``fit`` into those of the model, by its own names, and those of earlier pipeline steps.

    ``groups`` and ``lspc__groups`` are the same if the last step of a pipeline is called ``lspc``.
    """
    own, path = dict(params), ""
    before: dict[str, Any] = {}
    while (inner := within(model)) is not None:
        if isinstance(model, Pipeline):
            own, others = _of_steps(model, own)
            before |= {path + name: value for name, value in others.items()}
            path += model.steps[-1][0] + "__"
        model = inner
    return own, before


def _of_steps(pipeline: Pipeline, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of the last step, without its prefix, and of the others."""
    *others, last = (name for name, _ in pipeline.steps)
    own: dict[str, Any] = {}
    before: dict[str, Any] = {}
    for name, value in params.items():
        step, _, rest = name.partition("__")
        if rest and step in others:
            before[name] = value
            continue
        if rest and step != last:
            raise ValueError(f"{name}= does not match a step of the pipeline: {[*others, last]}.")
        plain = rest or name
        if plain in own:
            raise ValueError(f"{plain}= and {last}__{plain}= are the same parameter: give only one of them.")
        own[plain] = value
    return own, before


def own_params(model: Any, params: dict[str, Any]) -> dict[str, Any]:
    """Parameters of the model for predictions, where earlier steps accept rows only."""
    own, before = split_params(model, params)
    if before:
        raise TypeError(f"{', '.join(before)}: for predictions, steps before the classifier accept rows only.")
    return own


def fit_inside(model: Any, X: Any, y: Any, own: dict[str, Any], before: dict[str, Any]) -> Any:
    """Fit a model with split parameters, adding the prefixes that pipelines expect."""
    path, step = "", model
    while isinstance(step, Pipeline) and not get_config()["enable_metadata_routing"]:
        path, step = f"{path}{step.steps[-1][0]}__", within(step)
    return model.fit(X, y, **{path + name: value for name, value in own.items()}, **before)
