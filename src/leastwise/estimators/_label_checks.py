"""What models of many labels ask of their parameters, with errors that say what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leastwise.problem.labels import Labels
from leastwise.utils.memory import available_memory, human

Array = np.ndarray


def check_threshold(value: Any, labels: Labels) -> Any:
    """A number from 0 to 1, one for each label, or "auto"."""
    if isinstance(value, str):
        if value != "auto":
            raise ValueError(f"threshold={value!r} is not known: use 'auto', a number from 0 to 1, or one a label.")
        if not labels.binary:
            raise ValueError(
                "threshold='auto' is for labels of two classes each, and some here have more or fewer: leave it at "
                "0.5, which takes the most probable class."
            )
        return value
    numbers = _for_labels("threshold", value, labels, 0.5)
    if not ((numbers >= 0) & (numbers <= 1)).all():
        raise ValueError(f"threshold holds {numbers.ravel().tolist()[:10]}: every value must lie between 0 and 1.")
    return float(numbers) if numbers.ndim == 0 else numbers


def label_penalties(value: Any, labels: Labels) -> Array:
    """A positive number for every label, from None, a number, a mapping by name, or an array in their order."""
    numbers = _for_labels("label_penalty", 1.0 if value is None else value, labels, 1.0)
    if not (np.isfinite(numbers) & (numbers > 0)).all():
        raise ValueError(
            f"label_penalty holds {numbers.ravel().tolist()[:10]}: every value must be a finite number above 0."
        )
    return np.broadcast_to(numbers, (labels.n_labels,)).astype(float)


def _for_labels(name: str, value: Any, labels: Labels, otherwise: float) -> Array:
    """A number, or one for each label; a mapping by names may leave some out."""
    if hasattr(value, "to_dict"):  # a pandas Series
        value = value.to_dict()
    if isinstance(value, Mapping):
        strange = [key for key in value if key not in labels.names]
        if strange:
            raise ValueError(
                f"{name} has values for {strange[:10]}, which are no labels; the labels are "
                f"{list(labels.names[:10])}. Labels that are not named have {otherwise:g}."
            )
        value = [value.get(key, otherwise) for key in labels.names]
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "iuf":
        raise ValueError(f"{name}={value!r:.80} must be a number, or one for each label.")
    numbers = numbers.astype(float)
    if numbers.shape not in ((), (labels.n_labels,)):
        raise ValueError(
            f"{name} has shape {numbers.shape}; it must be a number, a mapping from names of labels to numbers, or "
            f"hold one number for each of the {labels.n_labels} labels."
        )
    return numbers


def check_label_memory(n: int, n_outputs: int, n_labels: int, itemsize: int, pairs: bool) -> None:
    """Refuse, before any work, so many labels that what is kept of them would not fit in memory.

    ``pairs`` says that all pairs of labels are looked at.
    """
    # Targets, projections, rotated ones, held-out scores and probabilities; S, its eigenvectors and what finds them.
    scores, matrices = 10 * n * n_outputs * itemsize, 5 * n_labels**2 * 8 if pairs else 0
    have = available_memory()
    if scores + matrices <= have:
        return
    hint = (
        " similarity='shared', sharing=0 or a sparse matrix of similarities needs no table of all pairs of labels."
        if matrices > have / 2
        else " Fit some of the labels at a time, or fewer rows; float32 rows take half."
    )
    raise MemoryError(
        f"{n_labels} labels of {n} rows need about {human(scores)} for their scores"
        + (f" and {human(matrices)} for all pairs of labels" if matrices else "")
        + f"; {human(have)} are available.{hint} (Set LEASTWISE_MEMORY to change the limit.)"
    )
