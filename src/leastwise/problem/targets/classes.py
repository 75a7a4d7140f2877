"""The interface of all targets, and classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from leastwise.linalg.moments import Moments
from leastwise.utils.arrays import text_objects

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
        y = column_or_1d(text_objects(y))
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
        y = column_or_1d(text_objects(y))
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


# ------------------------------------------------- weights of rows and classes


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
    """Validated row weights: not negative, and not all zero; 0 and 1 if all others are equal."""
    n = len(y)
    if sample_weight is None:
        w = np.ones(n)
    elif isinstance(sample_weight, Real):
        w = np.full(n, float(sample_weight))
    else:
        try:
            w = check_array(sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
        except (TypeError, ValueError) as error:
            if "sample_weight" in str(error):
                raise
            raise ValueError(f"sample_weight must hold a number of 0 or more for each row: {error}") from None
        if w.shape != (n,):
            raise ValueError(f"sample_weight has shape {w.shape}; it must hold one weight for each of the {n} rows.")
    if (w < 0).any():
        raise ValueError(f"sample_weight has {int((w < 0).sum())} negative values; weights must be 0 or more.")
    w = without_unit(w)
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


def without_unit(w: Array) -> Array:
    """Weights of 0 and 1 if all that are above 0 are equal: their size says nothing."""
    above = w > 0
    return above.astype(float) if above.any() and np.ptp(w[above]) == 0 else w


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


# ------------------------------------------------------------------- classes
