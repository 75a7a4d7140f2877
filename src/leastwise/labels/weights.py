"""How much every label of every row counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

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
    if class_weight is None or isinstance(class_weight, str):
        return [_check_one(class_weight, class_weight, labels, None)] * labels.n_labels
    if isinstance(class_weight, Mapping):
        one_for_all = all(isinstance(value, Real) for value in class_weight.values())
        return _for_all(class_weight, labels) if one_for_all else _by_name(class_weight, labels)
    if not isinstance(class_weight, Sequence) or len(class_weight) != labels.n_labels:
        raise ValueError(_refusal(class_weight, labels))
    return [_check_one(weight, class_weight, labels, t) for t, weight in enumerate(class_weight)]


def _for_all(class_weight: Mapping, labels: Labels) -> list:
    """One mapping from classes to weights: each label takes from it what it has."""
    every = set().union(*(classes.tolist() for classes in labels.classes))
    _check_values(class_weight, every, class_weight, "the classes of all labels")
    return [class_weight] * labels.n_labels


def _by_name(class_weight: Mapping, labels: Labels) -> list:
    strange = [name for name in class_weight if name not in labels.names]
    if strange:
        raise ValueError(
            f"class_weight names {strange[:10]}, which are no labels; the labels are {list(labels.names[:10])}. "
            "Give a dict from classes to weights for all labels, or one such dict for each label by its name."
        )
    each = [class_weight.get(name) for name in labels.names]
    return [_check_one(weight, class_weight, labels, t) for t, weight in enumerate(each)]


def _check_one(weight: Any, given: Any, labels: Labels, t: int | None) -> Any:
    """What one label is to have; t is None where that has no names of classes."""
    if weight is None or (isinstance(weight, str) and weight == "balanced"):
        return weight
    if t is None or not isinstance(weight, Mapping):
        raise ValueError(_refusal(given, labels))
    what = f"the classes of label {labels.names[t]!r}"
    _check_values(weight, set(labels.classes[t].tolist()), given, what)
    return weight


def _refusal(class_weight: Any, labels: Labels) -> str:
    return (
        f"class_weight={class_weight!r:.100} must be None, 'balanced', a dict from classes to weights, a dict from "
        f"names of labels to such dicts, or a list of {labels.n_labels} such dicts, one for each label."
    )


def _check_values(weight: Mapping, classes: set, given: Any, what: str) -> None:
    strange = [name for name in weight if name not in classes]
    if strange:
        some = sorted(classes, key=lambda name: (isinstance(name, str), name))[:10]
        raise ValueError(f"class_weight={given!r:.100} names {strange[:10]}; {what} are {some}.")
    wrong = [value for value in weight.values() if not (isinstance(value, Real) and 0 <= float(value) < np.inf)]
    if wrong:
        raise ValueError(f"class_weight={given!r:.100} holds {wrong[0]!r}; weights must be finite and 0 or more.")


def _class_factors(weight: Any, w: Array, codes: Array, classes: Array) -> Array:
    """What the weights of each class are multiplied by."""
    if weight is None:
        return np.ones(len(classes))
    if isinstance(weight, Mapping):
        return np.array([float(weight.get(name, 1.0)) for name in classes.tolist()])
    mass = np.bincount(codes[codes >= 0], weights=w[codes >= 0], minlength=len(classes))
    there = mass > 0
    return np.divide(mass.sum(), there.sum() * mass, out=np.zeros(len(classes)), where=there)


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
