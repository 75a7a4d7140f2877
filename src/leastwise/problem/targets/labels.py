"""Many labels per row, some of them possibly unknown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from leastwise.linalg.moments import Moments
from leastwise.problem.labels import Labels, encode_known, encode_labels, some_labels, whole_labels
from leastwise.problem.targets.classes import ROUNDING, Targets, united
from leastwise.problem.weights import label_weights
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
        return np.asarray(y).ndim == 1
    except ValueError:  # rows of different lengths
        return False


def as_column(y: Any) -> Any:
    """One class per row as a table of one column, unknown values included."""
    if hasattr(y, "to_frame"):
        return y.to_frame()
    if isinstance(y, np.ma.MaskedArray):
        return y.reshape(-1, 1)
    table = np.asarray(y)
    if table.dtype.kind in "US" and isinstance(y, list | tuple):  # NaN among strings would become a string
        table = np.asarray(y, dtype=object)
    return table.reshape(-1, 1)


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
