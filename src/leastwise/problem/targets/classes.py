"""The interface of all targets, and classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from leastwise.linalg.moments import Moments
from leastwise.problem.weights import check_class_weight, check_weights, class_factors, is_balanced

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
