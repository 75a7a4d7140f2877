"""How much every label of every row counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.class_weights import (
    SHOWN,
    balanced_factors,
    check_class_weight,
    is_balanced,
    mapped_factors,
    refusal,
)
from leastwise.labels.encoding import Labels

Array = np.ndarray


def label_weights(sample_weight: Any, class_weight: Any, codes: Array, labels: Labels) -> Array:
    """Weights of every label of every row.

    Parameters
    ----------
    sample_weight : None, number, or array or DataFrame of shape (n,) or (n, T)
        0 or more. NaN may stand where a label is not known.
    class_weight : None, "balanced", mapping, or list of T of these
        ``"balanced"`` gives all classes of a label the same total weight, and leaves the label's own as it is. A
        mapping goes from classes to weights, for all labels that have these classes, or from names of labels to
        such mappings. What is not named has weight 1.
    codes : ndarray of int of shape (n, T)
        -1 where a label is not known.

    Returns
    -------
    ndarray of float of shape (n, T)
        0 where a label is not known.
    """
    W = entry_weights(sample_weight, codes, labels)
    each = _by_label(class_weight, labels)
    for t, (weight, classes) in enumerate(zip(each, labels.classes, strict=True)):
        factor = _class_factors(weight, W[:, t], codes[:, t], classes)
        W[:, t] *= np.append(factor, 0.0)[codes[:, t]]
    _check_mass(W, labels)
    return W


def entry_weights(sample_weight: Any, codes: Array, labels: Labels) -> Array:
    """Weights of every label of every row, whatever its class; 0 where a label is not known."""
    return np.where(codes >= 0, _row_weights(sample_weight, codes, labels), 0.0)


def _row_weights(sample_weight: Any, codes: Array, labels: Labels) -> Array:
    """Weights as they were given, of shape (n, 1) or (n, T)."""
    if sample_weight is None:
        return np.ones((len(codes), 1))
    w = _numbers(sample_weight)
    w = np.full(len(codes), float(w)) if w.ndim == 0 else w
    if w.shape == codes.shape and w.ndim == 2:
        w = w[:, labels.places(getattr(sample_weight, "columns", None), "sample_weight")]
    elif w.shape == (len(codes),):
        w = w[:, None]
    else:
        raise ValueError(
            f"sample_weight has shape {w.shape}; it must hold one weight for each of the {len(codes)} rows, or one "
            f"for each label of each row, of shape {codes.shape}."
        )
    if (w < 0).any():
        raise ValueError(f"sample_weight has {int((w < 0).sum())} negative values; weights must be 0 or more.")
    if np.isinf(w).any():
        raise ValueError(f"sample_weight has {int(np.isinf(w).sum())} infinite values; weights must be finite.")
    lost = (np.isnan(w) & (codes >= 0)).any(axis=0)
    if lost.any():
        raise ValueError(
            f"sample_weight is NaN for label {labels.names[int(lost.argmax())]!r} in rows in which it is known: "
            "weights must be finite there. Give 0 to leave a label out."
        )
    return w


def _numbers(sample_weight: Any) -> Array:
    """Floats; NaN for what a frame or a masked array leaves out."""
    if sparse.issparse(sample_weight):
        raise ValueError("sample_weight is sparse: give sample_weight.toarray().")
    try:
        if hasattr(sample_weight, "iloc"):
            return sample_weight.to_numpy(dtype=np.float64, na_value=np.nan)
        if isinstance(sample_weight, np.ma.MaskedArray):
            return np.ma.filled(sample_weight.astype(np.float64), np.nan)
        return np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            f"sample_weight must hold numbers, one for each row or for each label of each row; it is "
            f"{sample_weight!r:.80}."
        ) from None


# ------------------------------------------------------------------- classes


def _by_label(class_weight: Any, labels: Labels) -> list:
    """For every label None, "balanced" or a mapping from its classes to weights."""
    allowed = (
        "None, 'balanced', a dict from classes to weights, a dict from names of labels to such dicts, or a list of "
        f"{labels.n_labels} such dicts, one for each label"
    )
    if isinstance(class_weight, Sequence) and not isinstance(class_weight, str):
        if len(class_weight) != labels.n_labels:
            raise refusal(class_weight, f"It has {len(class_weight)} entries: give one for each label.", allowed)
        each = list(class_weight)
    elif isinstance(class_weight, Mapping) and any(_of_a_label(value) for value in class_weight.values()):
        strange = [name for name in class_weight if name not in labels.names]
        if strange:
            shown = f"which are no labels; the labels are {list(labels.names[:SHOWN])}"
            raise refusal(class_weight, f"It names {strange[:SHOWN]}, {shown}.", allowed)
        each = [class_weight.get(name) for name in labels.names]
    else:  # one for all: each label takes from a mapping what it has
        every = dict.fromkeys(name for classes in labels.classes for name in classes.tolist())
        check_class_weight(class_weight, every, what="the classes of all labels", allowed=allowed)
        return [class_weight] * labels.n_labels
    for name, weight, classes in zip(labels.names, each, labels.classes, strict=True):
        what = f"the classes of label {name!r}"
        check_class_weight(weight, classes.tolist(), given=class_weight, what=what, allowed=allowed)
    return each


def _of_a_label(value: Any) -> bool:
    """Whether a value of a mapping is the ``class_weight`` of a whole label, and no number."""
    return value is None or is_balanced(value) or isinstance(value, Mapping)


def _class_factors(weight: Any, w: Array, codes: Array, classes: Array) -> Array:
    """What the weights of each class are multiplied by."""
    if weight is None:
        return np.ones(len(classes))
    if isinstance(weight, Mapping):
        return mapped_factors(weight, classes.tolist())
    mass = np.bincount(codes[codes >= 0], weights=w[codes >= 0], minlength=len(classes))
    return balanced_factors(mass) / max(int(np.sum(mass > 0)), 1)


def _check_mass(W: Array, labels: Labels) -> None:
    """Something counts, and something of every label."""
    mass = W.sum(axis=0)
    if not mass.sum() > 0:
        raise ValueError(
            "sample_weight sums to zero over all known labels (with class_weight counted in): at least one row must "
            "have a weight above 0."
        )
    empty = [name for name, some in zip(labels.names, mass, strict=True) if not some > 0]
    if empty:
        raise ValueError(
            f"All known values of the labels {empty[:10]} have weight 0 (class_weight counted in): give some of them "
            "a weight above 0, or leave these labels out."
        )
