"""Weights of rows and labels: the parameters ``class_weight`` and ``sample_weight``.

``class_weight`` may be None, ``"balanced"`` or a mapping from classes to finite weights of 0 or more. A class that
the mapping does not name has weight 1, as in scikit-learn. A name that is not a class is an error: it is usually a
spelling mistake, and its weight would be ignored silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array

from leastwise.problem.labels import Labels

Array = np.ndarray

ALLOWED = "None, 'balanced' or a dict from classes to weights"
#: Number of names shown in an error.
SHOWN = 10


def refusal(given: Any, problem: str, allowed: str = ALLOWED) -> ValueError:
    """Error that states the given value, the allowed values and the problem."""
    return ValueError(f"class_weight={given!r:.200} must be {allowed}. {problem}")


def is_balanced(weight: Any) -> bool:
    """True if the weight is "balanced"."""
    return isinstance(weight, str) and weight == "balanced"


def check_class_weight(
    weight: Any,
    classes: Iterable | None = None,
    *,
    given: Any = None,
    what: str = "the classes",
    allowed: str = ALLOWED,
    every: bool = True,
) -> None:
    """Raise an error for an invalid ``class_weight``.

    Parameters
    ----------
    weight : object
        Weights of the classes.
    classes : iterable, optional
        All classes; None if they are not known yet.
    given : object, optional
        The parameter, if ``weight`` is the part of it for one label.
    what : str
        Description of the classes, for the error.
    allowed : str
        The allowed values, for the error.
    every : bool, default=True
        True if at least one of ``classes`` must have a positive weight.
    """
    given = weight if given is None else given
    if weight is None or is_balanced(weight):
        return
    if not isinstance(weight, Mapping):
        kind = f"{weight!r:.40} is not supported" if isinstance(weight, str) else f"It is a {type(weight).__name__}"
        raise refusal(given, f"{kind}: give one of these.", allowed)
    names = None if classes is None else list(classes)
    if names is not None:
        known = set(names)
        unseen = [name for name in weight if name not in known]
        if unseen:
            more = ", ..." if len(names) > SHOWN else ""
            shown = f"[{', '.join(map(repr, names[:SHOWN]))}{more}]"
            raise refusal(given, f"It names {unseen[:SHOWN]}; {what} are {shown}. Remove or correct them.", allowed)
    for name, value in weight.items():
        if not isinstance(value, Real) or not 0 <= float(value) < np.inf:
            raise refusal(
                given, f"The weight of {name!r:.40} is {value!r:.40}: give a finite number of 0 or more.", allowed
            )
    if every and names and not any(weight.get(name, 1.0) for name in names):
        raise refusal(
            given, f"It gives all of {what} weight 0, so that no row counts: give one a weight above 0.", allowed
        )


def mapped_factors(weight: Mapping, names: Iterable) -> Array:
    """Weights of these classes from a mapping; 1 for classes that it does not name."""
    return np.array([float(weight.get(name, 1.0)) for name in names])


def balanced_factors(mass: Array) -> Array:
    """Factors that give all classes the same total weight, from the total weight of each; 0 for empty classes."""
    mass = np.asarray(mass, dtype=float)
    return np.divide(mass.sum(), mass, out=np.zeros(len(mass)), where=mass > 0)


def class_factors(weight: Any, classes: Array, mass: Array) -> Array | None:
    """Validated weight factor of each class; None for no weights.

    Parameters
    ----------
    weight : None, "balanced" or mapping
    classes : ndarray of shape (c,)
    mass : ndarray of shape (c,)
        Total weight of each class.
    """
    names = classes.tolist()
    check_class_weight(weight, names)
    if weight is None:
        return None
    return balanced_factors(mass) if is_balanced(weight) else mapped_factors(weight, names)


def check_weights(sample_weight: Any, class_weight: Any, y: Array) -> Array:
    """Validated row weights: not negative, and not all zero."""
    n = len(y)
    if sample_weight is None:
        w = np.ones(n)
    elif isinstance(sample_weight, Real):
        w = np.full(n, float(sample_weight))
    else:
        w = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
        if w.shape != (n,):
            raise ValueError(f"sample_weight has shape {w.shape}; it must hold one weight for each of the {n} rows.")
    if (w < 0).any():
        raise ValueError(f"sample_weight has {int((w < 0).sum())} negative values; weights must be 0 or more.")
    if class_weight is not None:
        classes, codes = np.unique(y, return_inverse=True)
        factor = class_factors(class_weight, classes, np.bincount(codes, weights=w, minlength=len(classes)))
        assert factor is not None
        with np.errstate(over="ignore"):
            w = w * factor[codes]
    with np.errstate(over="ignore"):
        total = w.sum()
    if not total > 0:
        raise ValueError(
            "Sample weights must contain at least one non-zero number: sample_weight sums to 0 (including "
            "class_weight)."
        )
    if not np.isfinite(total):
        raise ValueError(
            f"Weights up to {w.max():.2g} (including class_weight) overflow when they are summed: divide them "
            "by a constant, which changes nothing."
        )
    return w


def block_weights(sample_weight: Any, n: int) -> Array:
    """Validated row weights of a block, which may all be 0."""
    if sample_weight is None:
        return np.ones(n)
    w = np.asarray(sample_weight, dtype=np.float64)
    w = np.full(n, w) if w.ndim == 0 else w
    if w.shape != (n,):
        raise ValueError(f"sample_weight has shape {w.shape}; it must hold one weight for each of the {n} rows.")
    if not np.isfinite(w).all():
        raise ValueError("sample_weight contains NaN or inf; every weight must be finite.")
    if (w < 0).any():
        raise ValueError(f"sample_weight has {int((w < 0).sum())} negative values; weights must be 0 or more.")
    return w


def label_weights(sample_weight: Any, class_weight: Any, codes: Array, labels: Labels) -> Array:
    """Validated weights of every label of every row.

    Parameters
    ----------
    sample_weight : None, number, or array or DataFrame of shape (n,) or (n, T)
        0 or more. NaN is allowed for unknown labels.
    class_weight : None, "balanced", mapping, or list of T of these
        ``"balanced"`` gives all classes of a label the same total weight and keeps the total weight of the label. A
        mapping goes from classes to weights, for all labels with these classes, or from names of labels to such
        mappings. The default weight is 1.
    codes : ndarray of int of shape (n, T)
        -1 for unknown labels.

    Returns
    -------
    ndarray of float of shape (n, T)
        0 for unknown labels.
    """
    W = entry_weights(sample_weight, codes, labels)
    each = _by_label(class_weight, labels)
    for t, (weight, classes) in enumerate(zip(each, labels.classes, strict=True)):
        factor = _class_factors(weight, W[:, t], codes[:, t], classes)
        W[:, t] *= np.append(factor, 0.0)[codes[:, t]]
    _check_mass(W, labels)
    return W


def entry_weights(sample_weight: Any, codes: Array, labels: Labels) -> Array:
    """Weights of every label of every row without ``class_weight``; 0 for unknown labels."""
    return np.where(codes >= 0, _row_weights(sample_weight, codes, labels), 0.0)


def _row_weights(sample_weight: Any, codes: Array, labels: Labels) -> Array:
    """Validated ``sample_weight`` of shape (n, 1) or (n, T)."""
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
    """``sample_weight`` as floats, with NaN for missing or masked entries."""
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
    elif isinstance(class_weight, Mapping) and any(_is_label_weight(value) for value in class_weight.values()):
        unseen = [name for name in class_weight if name not in labels.names]
        if unseen:
            shown = f"which are not labels; the labels are {list(labels.names[:SHOWN])}"
            raise refusal(class_weight, f"It names {unseen[:SHOWN]}, {shown}.", allowed)
        each = [class_weight.get(name) for name in labels.names]
    else:  # one for all labels: each uses the entries of its classes
        every = dict.fromkeys(name for classes in labels.classes for name in classes.tolist())
        check_class_weight(class_weight, every, what="the classes of all labels", allowed=allowed)
        return [class_weight] * labels.n_labels
    for name, weight, classes in zip(labels.names, each, labels.classes, strict=True):
        what = f"the classes of label {name!r}"
        check_class_weight(weight, classes.tolist(), given=class_weight, what=what, allowed=allowed)
    return each


def _is_label_weight(value: Any) -> bool:
    """True if a value of a mapping is the ``class_weight`` of a label, not a number."""
    return value is None or is_balanced(value) or isinstance(value, Mapping)


def _class_factors(weight: Any, w: Array, codes: Array, classes: Array) -> Array:
    """Weight factor of each class."""
    if weight is None:
        return np.ones(len(classes))
    if isinstance(weight, Mapping):
        return mapped_factors(weight, classes.tolist())
    mass = np.bincount(codes[codes >= 0], weights=w[codes >= 0], minlength=len(classes))
    return balanced_factors(mass) / max(int(np.sum(mass > 0)), 1)


def _check_mass(W: Array, labels: Labels) -> None:
    """Raise an error if a label has no positive weight."""
    mass = W.sum(axis=0)
    if not mass.sum() > 0:
        raise ValueError(
            "sample_weight sums to zero over all known labels (including class_weight): at least one row must "
            "have a weight above 0."
        )
    empty = [name for name, some in zip(labels.names, mass, strict=True) if not some > 0]
    if empty:
        raise ValueError(
            f"All known values of the labels {empty[:10]} have weight 0 (including class_weight): give some of them "
            "a weight above 0, or leave these labels out."
        )
