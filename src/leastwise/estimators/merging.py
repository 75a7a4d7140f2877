"""Merge models that were trained separately."""

from __future__ import annotations

import copy
import operator
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from leastwise.estimators.streaming import begun_before, check_sums, known_targets, renew
from leastwise.linalg.moments import Moments
from leastwise.problem.basis import double_kernel
from leastwise.sources.bottom_k import joined_kept
from leastwise.utils.resources import explained_memory

#: Parameters that models must have in common; the others only affect choices that were already made.
SAME = ("norm", "bias", "similarity", "label_penalty", "calibration", "scoring", "cv", "missing", "class_weight")


@explained_memory()
def merge(models: Sequence[Any]) -> Any:
    """The model of all rows of several models with the same centres and sigma, from their sums.

    Sites that may not share rows can share sums instead: each fits a model to its own rows, with the same ``centers``
    and ``sigma``, by ``fit_stream`` or ``partial_fit``. The merged model equals one model of all rows: alpha and the
    calibration are chosen again on the rows that the models have kept. Models that keep no rows (``keep_rows=0``
    with ``cv=None``) share only sums and centres; see :class:`leastwise.Moments` for what these reveal.

    Parameters
    ----------
    models : sequence of models of one kind
        At least one. They are not changed.

    Returns
    -------
    model
        A new model of the same type and with the parameters of the first, for all classes of all models.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from leastwise import LSPC, merge
    >>> X, y = load_iris(return_X_y=True)
    >>> plan = {"centers": X[::10], "sigma": 1.0, "random_state": 0}
    >>> parts = [LSPC(**plan).fit_stream(X[k::3], y[k::3]) for k in range(3)]
    >>> merge(parts).moments_.n
    150
    """
    models = list(models)
    _check_models(models)
    first = models[0]
    known = [known_targets(model) for model in models]
    targets = reduce(operator.add, known)
    moments = [
        targets.recode_moments(_in_coordinates(model, first), old) for model, old in zip(models, known, strict=True)
    ]
    kept = None
    if all(model.kept_ is not None for model in models):
        kept = joined_kept([model.kept_.recoded(targets, old) for model, old in zip(models, known, strict=True)])
    if not sum(m.n for m in moments):
        raise ValueError("The models have not been trained on any rows yet: call their partial_fit() first.")
    merged = copy.copy(first)
    begun = begun_before(first).widened(moments[0].C.shape[1])
    return renew(merged, begun, sum(moments[1:], moments[0]), kept, targets)


def _in_coordinates(model: Any, first: Any) -> Moments:
    """The sums of a model in the coordinates of the first model.

    The coordinates are computed from centres, kernel and sigma, which are the same. Rounding may still differ between
    machines, and with it the order of pivots that are almost equal.
    """
    own, wanted = model.moments_, first.moments_.whitening
    if wanted is None or own.whitening is None or own.whitening.same(wanted):
        return own
    return own.moved(double_kernel(first.kernel_, first.centers_, first.centers_, first.sigma_), wanted)


def _check_models(models: list[Any]) -> None:
    """Raise an error for models whose sums cannot be added."""
    if not models:
        raise ValueError("merge() needs one model or more; the list is empty.")
    first = models[0]
    for place, model in enumerate(models):
        if not hasattr(type(model), "unfit") or type(model) is not type(first):
            raise TypeError(
                f"Model {place} is a {type(model).__name__}, the first a {type(first).__name__}: merge() needs "
                "models of the same type, LSPC, LSSVC, LSSVR or MultiLabelLSPC. (Load files with leastwise.load.)"
            )
        check_is_fitted(model)
        check_sums(model, "merge")
        _check_same(place, model, first)
    if len(models) > 1 and isinstance(getattr(first, "class_weight", None), str):
        raise ValueError(
            "class_weight='balanced' weights the classes by the rows of each model separately, and sums with "
            "different weights cannot be added: give a dict of weights."
        )


def _check_same(place: int, model: Any, first: Any) -> None:
    """The same basis functions, and the same problem."""
    different = [name for name in SAME if not _equal(getattr(model, name, None), getattr(first, name, None))]
    if model.sigma_ != first.sigma_:
        different.append(f"sigma_ ({model.sigma_:.6g} and {first.sigma_:.6g})")
    if not _equal(model.centers_, first.centers_):
        different.append("centers_")
    if not model.inputs_.same_as(first.inputs_):
        different.append("inputs_")
    if model.categories_ != first.categories_:
        different.append("categories_")
    if not _equal(model.kernel_, first.kernel_):
        different.append("kernel_")
    names = [vars(one)["feature_names_in_"] for one in (model, first) if "feature_names_in_" in vars(one)]
    if not _equal(names[0] if names else None, names[-1] if names else None):
        different.append("feature_names_in_")
    if (model.kept_ is None) != (first.kept_ is None):
        different.append("kept_ (only one of them keeps rows)")
    if different:
        raise ValueError(
            f"Model {place} differs from the first in {', '.join(different)}: merge() needs the same "
            "centres, sigma and kernel. Start all models from model.without_rows() of one model."
        )


def _equal(a: Any, b: Any) -> bool:
    if sparse.issparse(a) or sparse.issparse(b):
        return sparse.issparse(a) and sparse.issparse(b) and a.shape == b.shape and (a != b).nnz == 0
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    return a is b or bool(a == b) or (a != a and b != b)
