"""Targets: classes, regression targets, or many labels.

A ``Targets`` object is immutable. Before it has seen any rows it holds the parameters that concern y. ``learn``
returns one that also knows the names of the classes, or the units of the values. Those of two parts of the rows are
added, so that blocks of a stream, partitions and merged models are handled alike. ``encode`` turns y into codes (or
values), and ``matrix`` turns codes into Z, the columns that the ridge problem fits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from leastwise.linalg.moments import Moments
from leastwise.problem.labels import Labels, encode_known, encode_labels, some_labels, whole_labels
from leastwise.problem.weights import (
    check_class_weight,
    check_weights,
    class_factors,
    is_balanced,
    label_weights,
)
from leastwise.utils.arrays import get_namespace, is_numpy, to_namespace, widest
from leastwise.utils.warn import warn_user

Array = np.ndarray

#: A class share below this is what rounding leaves after all rows of the class were removed.
ROUNDING = 1e-12


class Targets:
    """Interface of all kinds of targets; the defaults are for targets without classes.

    Attributes
    ----------
    kind : {"classes", "values", "labels"}
    sklearn_checks : dict
        Arguments of scikit-learn's validation of y.
    classes, labels, unit, offset, flat, signed
        Set once rows were seen, for the kinds that have them.
    """

    kind: ClassVar[str]
    sklearn_checks: ClassVar[dict[str, Any]] = {}
    classes: Any = None
    labels: Any = None
    unit: Any = None
    offset: Any = None
    flat: bool = True
    signed: bool = False
    class_weight: Any = None

    @property
    def n_outputs(self) -> int:
        """Number of columns of Z."""
        raise NotImplementedError

    def with_known(self, **known: Any) -> Self:
        """With these classes, units or labels."""
        return replace(self, **known)  # type: ignore[type-var]

    def check(self, y: Any) -> None:
        """Raise an error if y, validated, does not hold such targets."""

    def weights(self, sample_weight: Any, y: Any) -> Array:
        """Weights of rows, or of all labels of rows, with ``class_weight`` multiplied in."""
        raise NotImplementedError

    def learn(self, y: Any) -> Self:
        """With the classes, units or labels of these rows."""
        raise NotImplementedError

    def fitted_to(self, y: Any, dtype: Any) -> Self:
        """With the classes or units of all rows, checked."""
        raise NotImplementedError

    def named(self, classes: Any) -> Self:
        """With the classes that the user lists."""
        raise NotImplementedError

    def __add__(self, other: Any) -> Self:
        """Combine the knowledge from two parts of the rows; returns self if the other adds nothing."""
        raise NotImplementedError

    def completed(self, n: int, names: Any = None) -> Self:
        """After a first pass over n rows or more; ``names`` are those of the target columns."""
        return self

    def with_sums(self, moments: Moments) -> Self:
        """With what the moments of all rows add."""
        return self

    def check_learnable(self) -> None:
        """Raise an error if nothing can be learned."""

    def encode(self, y: Any) -> Array:
        """Codes of the classes, or values as floats."""
        raise NotImplementedError

    def arrange(self, codes: Array, dtype: Any) -> tuple[Array, Array | None]:
        """Codes, and Z; Z is None for one-hot class indicators."""
        raise NotImplementedError

    def recode(self, codes: Array, old: Any) -> Array:
        """Codes of the same rows, which ``old`` encoded."""
        return codes

    def recode_moments(self, moments: Moments, old: Any) -> Moments:
        """Moments of the same rows, whose columns ``old`` arranged."""
        raise NotImplementedError

    def blank(self, n: int) -> Array:
        """Placeholder codes of n rows."""
        raise NotImplementedError

    def check_parameters(self) -> None:
        """Raise an error for a bad ``class_weight`` before any row is read."""

    def check_block_weight(self, sample_weight: Any) -> None:
        """Raise an error for weights that moments do not support."""

    def counts(self, codes: Array, w: Array) -> dict:
        """Weight of each class by name."""
        return {}

    def class_factors(self, counts: dict | None) -> Array | None:
        """Weights of the classes; ``counts`` are given if all rows have been seen."""
        return None

    def row_weights(self, w: Array) -> Array:
        """Row weights in the shape that these targets use."""
        return w

    def shares(self, moments: Moments, unit: float) -> Array | None:
        """Class shares of all rows; ``unit`` is the weight of 1."""
        return None

    def shares_of(self, rows: Any) -> Array | None:
        """Class shares of rows in memory."""
        return None

    def first_shares(self, codes: Array, w: Array) -> Array | None:
        """Class shares of the first rows, if these lack a known class."""
        return None


@dataclass(frozen=True)
class ClassTargets(Targets):
    """Classes. Z has one column per class: 1 for the row's class and 0 for the others, or -1 if ``signed``."""

    classes: Any = None
    signed: bool = False
    class_weight: Any = None

    kind: ClassVar[str] = "classes"

    @property
    def n_outputs(self) -> int:
        """Number of columns of Z."""
        return len(self.classes)

    # ---------------------------------------------------------------- learn

    def check(self, y: Any) -> None:
        """Raise an error if y does not hold classes."""
        check_classification_targets(y)

    def weights(self, sample_weight: Any, y: Any) -> Array:
        """Row weights, with ``class_weight`` multiplied in."""
        return check_weights(sample_weight, self.class_weight, y)

    def learn(self, y: Any) -> Self:
        """The classes of these rows."""
        y = column_or_1d(y)
        check_classification_targets(y)
        return replace(self, classes=np.unique(y))

    def fitted_to(self, y: Any, dtype: Any) -> Self:
        """The classes of all rows, checked."""
        known = self.learn(y)
        check_classes(len(y), known.classes)
        return known

    def named(self, classes: Any) -> Self:
        """With the classes that the user lists."""
        return self.learn(classes)

    def __add__(self, other: Self) -> Self:
        classes = united(self.classes, other.classes)
        return self if classes is self.classes else replace(self, classes=classes)

    def check_learnable(self) -> None:
        """Raise an error if nothing can be learned from these classes."""
        check_classes(2 * len(self.classes), self.classes)

    # --------------------------------------------------------------- encode

    def encode(self, y: Any) -> Array:
        """Codes of the classes."""
        y = column_or_1d(y)
        seen, place = np.unique(y, return_inverse=True)
        names = set(self.classes.tolist())
        unknown = [v for v in seen.tolist() if v not in names]
        if unknown:
            raise ValueError(
                f"y holds {unknown[:10]}, which the model does not know: its classes are "
                f"{self.classes.tolist()[:20]}. Give all of them at the beginning: classes=[...]."
            )
        return np.searchsorted(self.classes, seen)[place]

    def arrange(self, codes: Array, dtype: Any) -> tuple[Array, Array | None]:
        """Codes, and Z; Z is None for one-hot class indicators."""
        if not self.signed:
            return codes, None
        return codes, (2 * np.eye(len(self.classes)) - 1).astype(dtype)[codes]

    def recode(self, codes: Array, old: Self) -> Array:
        """Codes of the same rows, which ``old`` encoded."""
        return np.searchsorted(self.classes, old.classes)[codes]

    def recode_moments(self, moments: Moments, old: Self) -> Moments:
        """Moments of the same rows, whose columns ``old`` arranged."""
        absent = -1.0 if self.signed else 0.0  # target of a class that does not occur
        c = len(self.classes)
        C, z = absent * np.repeat(moments.p[:, None], c, axis=1), np.full(c, absent * moments.mass)
        place = np.searchsorted(self.classes, old.classes)
        C[:, place], z[place] = moments.C, moments.z
        return replace(moments, C=C, z=z)

    def blank(self, n: int) -> Array:
        """Placeholder codes of n rows."""
        return np.zeros(n, dtype=int)

    # -------------------------------------------------------------- weights

    def check_parameters(self) -> None:
        """Raise an error for a bad ``class_weight`` before any row is read."""
        check_class_weight(self.class_weight)

    def counts(self, codes: Array, w: Array) -> dict:
        """Weight of each class by name."""
        mass = np.bincount(codes, weights=w, minlength=len(self.classes))
        return dict(zip(self.classes.tolist(), mass.tolist(), strict=True))

    def class_factors(self, counts: dict | None) -> Array | None:
        """Weights of the classes; ``counts`` are given if all rows have been seen."""
        if is_balanced(self.class_weight) and counts is None:
            raise ValueError(
                "class_weight='balanced' needs the class frequencies before the first row is used: give fit_stream() "
                "rows that can be read twice (a file, an array, a callable that returns an iterator). If rows are "
                "added or removed later, give a dict of weights."
            )
        mass = np.array([(counts or {}).get(name, 0.0) for name in self.classes.tolist()])
        return class_factors(self.class_weight, self.classes, mass)

    # --------------------------------------------------------------- shares

    def shares(self, moments: Moments, unit: float) -> Array:
        """Class shares of all rows; ``unit`` is the weight of 1."""
        shares = moments.z / moments.mass
        return above_zero((shares + 1) / 2 if self.signed else shares, moments.n)

    def shares_of(self, rows: Any) -> Array:
        """Class shares of rows in memory."""
        return rows.class_shares(self.n_outputs)

    def first_shares(self, codes: Array, w: Array) -> Array | None:
        """Class shares of the first rows, if these lack a known class."""
        counts = np.bincount(codes, weights=w, minlength=len(self.classes))
        shares = counts / counts.sum()
        return None if (shares > 0).all() else above_zero(shares, len(codes))


@dataclass(frozen=True)
class ValueTargets(Targets):
    """Regression targets, in units that are powers of two so that nothing is rounded and nothing overflows.

    Attributes
    ----------
    unit, offset : ndarray of shape (outputs,)
        ``Z = (y - offset) / unit``.
    flat : bool
        y has shape (n,).
    bias : bool
        True if the model has an intercept. In single precision the mean is then subtracted, since a mean that is
        large compared with the differences would cost digits.
    owner : str
        Name of the estimator, for messages.
    """

    unit: Any = None
    offset: Any = None
    flat: bool = True
    bias: bool = True
    owner: str = "LSSVR"

    kind: ClassVar[str] = "values"
    sklearn_checks: ClassVar[dict[str, Any]] = {"multi_output": True, "y_numeric": True}

    @property
    def n_outputs(self) -> int:
        """Number of columns of Z."""
        return len(self.unit)

    def check_raw(self, y: Any) -> None:
        """Raise an error for dates and text before scikit-learn looks at y."""
        kind = np.asarray(y).dtype.kind
        if kind in "mM":
            raise ValueError(
                f"y holds {'dates' if kind == 'M' else 'durations'}: give numbers, such as days since some day."
            )
        text = next((v for v in np.asarray(y, dtype=object).ravel() if isinstance(v, str)), None)
        if text is not None:
            raise ValueError(
                f"y holds text, such as {str(text)!r}: {self.owner} is a regressor and needs numbers. "
                f"For classes use {self.owner[:-1]}C."
            )

    def weights(self, sample_weight: Any, y: Any) -> Array:
        """Row weights."""
        return check_weights(sample_weight, None, y)

    def learn(self, y: Any) -> Self:
        """Units of these rows."""
        Z = self.encode(y)
        return self._with_units(Z.reshape(len(Z), -1), np.float64, Z.ndim == 1)

    def fitted_to(self, y: Any, dtype: Any) -> Self:
        """Units of all rows; warns if y is constant."""
        Z = np.asarray(y, dtype=float).reshape(len(y), -1)
        known = self._with_units(Z, dtype, np.ndim(y) == 1)
        if len(Z) > 1 and (np.ptp(Z, axis=0) == 0).all():
            warn_user(
                f"y is constant, {Z[0].tolist() if Z.shape[1] > 1 else float(Z[0, 0])}: there is nothing else to "
                "learn.",
            )
        return known

    def _with_units(self, Z: Array, dtype: Any, flat: bool) -> Self:
        if Z.shape[1] == 0:
            raise ValueError(f"y has shape {Z.shape}: there are no columns; give one column or more.")
        offset = Z.mean(axis=0) if np.dtype(dtype) == np.float32 and self.bias else np.zeros(Z.shape[1])
        largest = np.abs(Z - offset).max(axis=0)
        unit = 2.0 ** np.floor(np.log2(np.where(largest > 0, largest, 1.0)))
        return replace(self, unit=unit, offset=offset, flat=flat)

    def named(self, classes: Any) -> Self:
        """There are no classes to list."""
        raise ValueError("classes= is for classifiers: this model is a regressor.")

    def __add__(self, other: Self) -> Self:
        if len(self.unit) != len(other.unit) or self.flat != other.flat:
            forms = ["(n,)" if known.flat else f"(n, {len(known.unit)})" for known in (self, other)]
            raise ValueError(f"y has the shape {forms[0]} in some rows and {forms[1]} in others: give one form.")
        return self

    def encode(self, y: Any) -> Array:
        """Values as floats."""
        Z = _numeric(np.asarray(y))
        if Z is None:
            raise ValueError(f"y must be numeric: {self.owner} is a regressor.")
        if not np.isfinite(Z).all():
            raise ValueError("y contains NaN or inf; every value must be finite.")
        if self.unit is not None and (Z.ndim == 1, Z.size) != (self.flat, len(Z) * len(self.unit)):
            first = "(n,)" if self.flat else f"(n, {len(self.unit)})"
            raise ValueError(f"y has shape {Z.shape}; that of the first rows was {first}: give y in the same form.")
        return Z

    def arrange(self, values: Array, dtype: Any) -> tuple[Array, Array]:
        """Zeros for codes, and Z."""
        Z = (values.reshape(len(values), -1).astype(float) - self.offset) / self.unit
        return np.zeros(len(Z), dtype=int), Z.astype(dtype)

    def recode_moments(self, moments: Moments, old: Self) -> Moments:
        """Sums of the same rows in these units."""
        scale, move = old.unit / self.unit, (old.offset - self.offset) / self.unit
        C, z = moments.C * scale + np.outer(moments.p, move), moments.z * scale + moments.mass * move
        return replace(moments, C=C, z=z)

    def blank(self, n: int) -> Array:
        """Placeholder values of n rows."""
        return np.zeros(n if self.flat else (n, len(self.unit)))


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
        """Codes of rows all of whose labels are known."""
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


def in_units(F: Any, unit: Any, offset: Any, flat: bool) -> Any:
    """Predictions in the unit and shape of y; single precision stays unless it would overflow."""
    if not is_numpy(F):
        wide = widest(F)
        values = get_namespace(F).astype(wide * to_namespace(unit, wide) + to_namespace(offset, wide), F.dtype)
        return values[:, 0] if flat else values
    values = np.asarray(F, dtype=float) * unit + offset
    if F.dtype == np.float32 and np.abs(values[np.isfinite(values)]).max(initial=0) < np.finfo(np.float32).max:
        values = values.astype(np.float32)
    return values[:, 0] if flat else values


def check_classes(n: int, classes: Array) -> None:
    """Raise an error for fewer than two classes, or as many classes as rows."""
    if len(classes) < 2:
        raise ValueError(
            f"y holds one class only, {str(classes[0])!r} (rows of weight 0 do not count): a classifier needs two "
            "classes or more."
        )
    if len(classes) == n and n > 2:
        raise ValueError(
            f"y holds {len(classes)} classes in {n} rows, a class for every row: at least one class needs two "
            "rows or more. (If y is continuous, this is a regression problem.)"
        )


def united(one: Array, other: Array) -> Array:
    """The classes of two parts of the rows; ``one`` itself if the other adds nothing."""
    if (one.dtype.kind in "biuf") != (other.dtype.kind in "biuf") and len(one) and len(other):
        raise ValueError(
            f"Classes are {one.tolist()[:5]} in some rows and {other.tolist()[:5]} in others: give numbers "
            "everywhere, or text."
        )
    fresh = np.setdiff1d(other, one)
    return np.unique(np.concatenate([one, fresh])) if len(fresh) else one


def above_zero(shares: Array, n: int) -> Array:
    """Class shares with half a row for a class that did not occur, so that its probability is not zero."""
    shares = np.where(shares <= ROUNDING, 0.5 / (n + 1), shares)
    return shares / shares.sum()


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


def _numeric(y: Array) -> Array | None:
    """Values as floats; None for text, also such as "1.5", and dates."""
    if y.dtype.kind not in "biufO" or (y.dtype.kind == "O" and any(isinstance(v, str) for v in y.ravel())):
        return None
    try:
        return np.asarray(y, dtype=float)
    except (TypeError, ValueError):
        return None


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
