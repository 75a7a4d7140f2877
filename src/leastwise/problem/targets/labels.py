"""Many labels per row, some of them possibly unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from leastwise.linalg.moments import Moments
from leastwise.problem.labels import Labels, encode_known, encode_labels, some_labels, whole_labels
from leastwise.problem.targets.classes import (
    ROUNDING,
    SHOWN,
    Targets,
    balanced_factors,
    check_class_weight,
    is_balanced,
    mapped_factors,
    refusal,
    united,
    without_unit,
)
from leastwise.utils.warn import warn_user

Array = np.ndarray


@dataclass(frozen=True)
class LabelTargets(Targets):
    """Many labels. Z has one column per class of each label, zeros where a label is unknown (code -1)."""

    labels: Any = None
    missing: Any = np.nan
    class_weight: Any = None

    kind: ClassVar[str] = "labels"

    @property
    def n_outputs(self) -> int:
        """Number of columns of Z."""
        return int(self.labels.starts[-1])

    def read(self, y: Any, n: int) -> tuple[Array, Self]:
        """Codes of all rows, and the labels; warns of uninformative rows and labels."""
        flat = is_flat(y)
        codes, labels = encode_labels(as_column(y) if flat else y, n, self.missing)
        labels = replace(labels, form="flat") if flat else labels
        _warn_uninformative(codes, labels)
        return codes, replace(self, labels=labels)

    def weights(self, sample_weight: Any, codes: Array) -> Array:
        """Weights of all labels of all rows."""
        return label_weights(sample_weight, self.class_weight, codes, self.labels)

    def learn(self, y: Any) -> Self:
        """Labels and classes of these rows."""
        flat = is_flat(y)
        table = as_column(y) if flat else y
        labels = some_labels(table, np.shape(table)[0], self.missing)
        return replace(self, labels=replace(labels, form="flat") if flat else labels)

    def named(self, classes: Any) -> Self:
        """With the classes that the user lists for one label."""
        if not is_flat(classes):
            raise ValueError("classes= names the classes of one label; those of many are read from the first rows.")
        return self.learn(np.repeat(np.asarray(classes), 2))

    def __add__(self, other: Self) -> Self:
        known, fresh = self.labels, other.labels
        if fresh.n_labels != known.n_labels:
            raise ValueError(f"There are {fresh.n_labels} labels; the first rows had {known.n_labels}.")
        if known.named and fresh.named and fresh.names != known.names:
            raise ValueError(f"Labels are {fresh.names[:10]} in some rows and {known.names[:10]} in others.")
        classes = tuple(united(*pair) for pair in zip(known.classes, fresh.classes, strict=True))
        same = all(a is b for a, b in zip(classes, known.classes, strict=True))
        return self if same else replace(self, labels=replace(known, classes=classes))

    def completed(self, n: int, names: Any = None) -> Self:
        """After a first pass over n rows or more; ``names`` are those of the target columns."""
        given = () if names is None or isinstance(names, str) else tuple(names)
        text = all(isinstance(name, str) for name in given)
        title = given if text and len(given) == self.labels.n_labels and not self.labels.named else self.labels.names
        return replace(self, labels=whole_labels(replace(self.labels, names=title), n, self.missing))

    def with_sums(self, moments: Moments) -> Self:
        """With the labels that are constant over all rows."""
        present = moments.z > ROUNDING * moments.mass
        constant = [t for t, (a, b) in enumerate(pairwise(self.labels.starts)) if present[a:b].sum() == 1]
        return replace(self, labels=replace(self.labels, constant=tuple(constant)))

    def encode(self, y: Any) -> Array:
        """Codes of rows whose labels are all known."""
        table = as_column(y) if is_flat(y) else y
        codes = encode_known(table, self.labels, np.shape(table)[0], self.missing)
        if (codes < 0).any():
            raise ValueError(
                f"{int((codes < 0).any(axis=1).sum())} of {len(codes)} rows have unknown labels: moments need "
                "all labels of a row. Leave these rows out, or fit in memory, where labels may be unknown."
            )
        return codes

    def arrange(self, codes: Array, dtype: Any) -> tuple[Array, Array]:
        """Codes, and Z."""
        starts = self.labels.starts
        Z = np.zeros((len(codes), int(starts[-1])), dtype=dtype)
        i, t = np.nonzero(codes >= 0)
        Z[i, starts[t] + codes[i, t]] = 1
        return codes, Z

    def recode(self, codes: Array, old: Self) -> Array:
        """Codes of the same rows, which ``old`` encoded."""
        pairs = enumerate(zip(old.labels.classes, self.labels.classes, strict=True))
        return np.column_stack([np.searchsorted(after, before)[codes[:, t]] for t, (before, after) in pairs])

    def recode_moments(self, moments: Moments, old: Self) -> Moments:
        """Moments of the same rows, whose columns ``old`` arranged."""
        new = self.labels
        C, z = np.zeros((len(moments.C), new.n_outputs)), np.zeros(new.n_outputs)
        pairs = zip(new.starts[:-1], old.labels.classes, new.classes, strict=True)
        place = np.concatenate([start + np.searchsorted(after, before) for start, before, after in pairs])
        C[:, place], z[place] = moments.C, moments.z
        return replace(moments, C=C, z=z)

    def blank(self, n: int) -> Array:
        """Placeholder codes of n rows."""
        return np.zeros((n, self.labels.n_labels), dtype=int)

    def check_block_weight(self, sample_weight: Any) -> None:
        """Raise an error unless there is one weight per row."""
        if self.class_weight is not None or np.ndim(sample_weight) == 2:
            raise ValueError(
                "A stream of many labels takes one weight per row: no class_weight, no weight per label."
            )

    def row_weights(self, w: Array) -> Array:
        """The weight of a row for each of its labels."""
        return np.repeat(w[:, None], self.labels.n_labels, axis=1)

    def shares(self, moments: Moments, unit: float) -> Array:
        """Weights of all classes of all labels; ``unit`` is the weight of 1."""
        return np.where(moments.z > ROUNDING * moments.mass, moments.z, 0) / unit

    def shares_of(self, rows: Any) -> Array:
        """Weights of all classes of all labels, of rows in memory."""
        return rows.class_counts()


def is_flat(y: Any) -> bool:
    """True if y holds one class per row and is not a table."""
    if hasattr(y, "ndim"):
        return y.ndim == 1
    try:
        rows = y if isinstance(y, list | tuple) else None
        return np.asarray(y).ndim == 1 if rows is None else all(isinstance(v, str) or np.ndim(v) == 0 for v in rows)
    except ValueError:  # rows of different lengths
        return False


def as_column(y: Any) -> Any:
    """One class per row as a table of one column, unknown values included."""
    if hasattr(y, "to_frame"):
        return y.to_frame()
    if isinstance(y, np.ma.MaskedArray):
        return y.reshape(-1, 1)
    listed = isinstance(y, list | tuple) and any(isinstance(v, str) for v in y)
    return np.asarray(y, dtype=object if listed else None).reshape(-1, 1)  # NaN stays NaN among text


def _warn_uninformative(codes: Array, labels: Labels) -> None:
    """Warn of rows without known labels, and of constant labels. Both are allowed."""
    empty = int(np.sum((codes < 0).all(axis=1)))
    if empty:
        warn_user(f"Rows without any known label are left out: {empty} of {len(codes)}.")
    constant = [labels.names[t] for t in labels.constant]
    if constant:
        more = f" and {len(constant) - 5} more" if len(constant) > 5 else ""
        warn_user(
            f"Labels with one class only among their known values: {', '.join(map(str, constant[:5]))}{more}. "
            "They are fitted as constants and listed in constant_labels_.",
        )


# --------------------------------------------------------------------- weights


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
    return without_unit(w)


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
