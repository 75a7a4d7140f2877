"""The weights that a kernel gives to the columns of X, by name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leastwise.utils.unwrap import core


def named_feature_weights(model: Any, names: Sequence[str] | None = None) -> dict[str, float] | None:
    """The feature weights of a fitted model, or of the one inside, from the largest; None if it has none.

    Without ``names``, columns have the names that the model was fitted with, or "column 0", "column 1", ...
    """
    inner = core(model)
    weights = getattr(inner, "feature_weights_", None)
    if weights is None:
        return None
    names = getattr(inner, "feature_names_in_", None) if names is None else names
    if names is None:
        names = [f"column {j}" for j in range(len(weights))]
    return {str(names[j]): float(weights[j]) for j in np.argsort(-weights, kind="stable")}
