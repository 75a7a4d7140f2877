"""Errors among accepted rows, at every threshold."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray


def accepted(confidence: Array, wrong: Array) -> tuple[Array, Array, Array]:
    """For every threshold, from the highest: the threshold, and how many rows and errors are at or above it."""
    levels, place = np.unique(-confidence, return_inverse=True)
    return -levels, np.cumsum(np.bincount(place)), np.cumsum(np.bincount(place, weights=wrong))


def area_under(confidence: Array, wrong: Array) -> float:
    """Mean over k of the error among the k most confident rows, ties in random order."""
    _, place, count = np.unique(-confidence, return_inverse=True, return_counts=True)
    expected = (np.bincount(place, weights=wrong) / count)[np.sort(place)]
    return float(np.mean(np.cumsum(expected) / np.arange(1, len(place) + 1)))


def given(confidence: Any, proba: Any) -> Array:
    """Confidences that were given, of the rows that have probabilities."""
    values, P = np.asarray(confidence, dtype=float), np.asarray(proba, dtype=float)
    if values.shape != (len(P),) or np.isnan(values).any():
        raise ValueError(
            f"confidence of shape {values.shape} must hold one number, not NaN, for each of {len(P)} rows."
        )
    return values[~np.isnan(P.reshape(len(P), -1)).any(axis=1)]
