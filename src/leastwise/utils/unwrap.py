"""Models inside pipelines and wrappers: how to reach them, and how to hand them what is theirs."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

Array = np.ndarray


def has(name: str) -> Any:
    """A method that a wrapper has where the model inside has it."""

    def check(wrapper: Any) -> bool:
        return hasattr(inner_model(getattr(wrapper, "estimator_", wrapper.estimator)), name)

    return available_if(check)


class Wrapping:
    """Mixin for classifiers with another one inside: ``estimator``, which is ``estimator_`` when fitted.

    Rows go through the steps of a pipeline that stand before the classifier, then to its own method.
    """

    @has("predict_set")
    def predict_set(self, X: Any, coverage: float = 0.9, **params: Any) -> Any:
        """Sets of classes, those of the estimator; see :meth:`leastwise.LSPC.predict_set`."""
        return self._ask("predict_set", X, {"coverage": coverage, **params})

    @has("influence")
    def influence(self, X: Any, top: int | None = 10, **params: Any) -> Any:
        """The training rows that scores come from, before any calibration; see :meth:`leastwise.LSPC.influence`."""
        return self._ask("influence", X, {"top": top, **params})

    @has("trust")
    def trust(self, X: Any, **params: Any) -> Array:
        """How far scores are to be believed; see :meth:`leastwise.LSPC.trust`."""
        return self._ask("trust", X, params)

    @has("familiarity")
    def familiarity(self, X: Any, **params: Any) -> Array:
        """How near rows are to the training rows; see :meth:`leastwise.LSPC.familiarity`."""
        return self._ask("familiarity", X, params)

    def _ask(self, name: str, X: Any, params: dict[str, Any]) -> Any:
        check_is_fitted(self)
        own = own_params(self.estimator_, params)
        model, X = arrive(self.estimator_, X)
        return getattr(model, name)(X, **own)

    estimator: Any
    estimator_: Any


# ------------------------------------------------------------------ the way in


def within(model: Any) -> Any:
    """What is directly inside of a pipeline (its last step), a frozen estimator or a wrapper; None for all else."""
    if isinstance(model, Pipeline):
        return model.steps[-1][1]
    if isinstance(model, FrozenEstimator):
        return model.estimator
    return getattr(model, "estimator_", model.estimator) if isinstance(model, Wrapping) else None


def inner_model(model: Any) -> Any:
    """The classifier itself, within a pipeline or frozen; it may be a wrapper."""
    while isinstance(model, FrozenEstimator | Pipeline):
        model = within(model)
    return model


def core(model: Any) -> Any:
    """The classifier at the very end, within wrappers too."""
    while (inside := within(model)) is not None:
        model = inside
    return model


def is_frozen(model: Any) -> bool:
    """Whether the classifier, or a pipeline that it is in, is not fitted again."""
    while model is not None:
        if isinstance(model, FrozenEstimator):
            return True
        model = within(model)
    return False


def arrive(model: Any, X: Any, through: bool = False) -> tuple[Any, Any]:
    """The classifier itself, and rows as they come to it; ``through`` wrappers too."""
    while isinstance(model, FrozenEstimator | Pipeline) or (through and isinstance(model, Wrapping)):
        X = model[:-1].transform(X) if isinstance(model, Pipeline) and len(model) > 1 else X
        model = within(model)
    return model, X


# ---------------------------------------------------------------- what is whose


def split_params(model: Any, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What is for the classifier, by its own names, and what is for steps before it, as ``fit`` takes it.

    ``groups`` and ``lspc__groups`` are the same where the last step of a pipeline is called ``lspc``.
    """
    own, path = dict(params), ""
    before: dict[str, Any] = {}
    while (inside := within(model)) is not None:
        if isinstance(model, Pipeline):
            own, others = _of_steps(model, own)
            before |= {path + name: value for name, value in others.items()}
            path += model.steps[-1][0] + "__"
        model = inside
    return own, before


def _of_steps(pipeline: Pipeline, params: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters of the last step, without its name, and of the others."""
    *others, last = (name for name, _ in pipeline.steps)
    own: dict[str, Any] = {}
    before: dict[str, Any] = {}
    for name, value in params.items():
        step, _, rest = name.partition("__")
        if rest and step in others:
            before[name] = value
            continue
        if rest and step != last:
            raise ValueError(f"{name}= names no step of the pipeline, which are {[*others, last]}.")
        plain = rest or name
        if plain in own:
            raise ValueError(f"{plain}= and {last}__{plain}= are the same: give one of the two.")
        own[plain] = value
    return own, before


def own_params(model: Any, params: dict[str, Any]) -> dict[str, Any]:
    """The same for predictions, where steps before the classifier take nothing but rows."""
    own, before = split_params(model, params)
    if before:
        raise TypeError(f"{', '.join(before)}: steps before the classifier take nothing but rows in predictions.")
    return own


def fit_inside(model: Any, X: Any, y: Any, own: dict[str, Any], before: dict[str, Any]) -> Any:
    """Fit a model with parameters that were split, by the names that pipelines want."""
    path, step = "", model
    while isinstance(step, Pipeline) and not get_config()["enable_metadata_routing"]:
        path, step = f"{path}{step.steps[-1][0]}__", within(step)
    return model.fit(X, y, **{path + name: value for name, value in own.items()}, **before)
