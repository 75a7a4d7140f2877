"""What streams have to know of their targets beforehand: the classes, the unit of quantities, or the labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from leastwise.calibration.calibrators import class_shares
from leastwise.estimators._checks import check_classes
from leastwise.estimators._model import Training
from leastwise.linalg.moments import Moments
from leastwise.problem.weights import check_class_weight, class_factors, is_balanced
from leastwise.solvers.evaluator import Rows, Settings

Array = np.ndarray

#: What is left of the share of a class, by rounding, when all of its rows are taken away.
ROUNDING = 1e-12


class StreamTargets:
    """What a stream asks of its targets; ``known`` is what has to be known of them before sums can be made."""

    def _learn(self: Any, y: Any) -> Any:
        """What is known from some rows."""
        raise NotImplementedError

    def _learn_classes(self: Any, classes: Any) -> Any:
        """What is known where the user names all classes."""
        raise ValueError("classes= is for classifiers: this model predicts quantities.")

    def _grown(self: Any, known: Any, y: Any) -> Any:
        """What is known with some more rows; the same object where they add nothing."""
        return known

    def _combined(self: Any, one: Any, other: Any) -> Any:
        """What two models know together."""
        return one

    def _completed(self: Any, known: Any, n: int, names: Any = None) -> Any:
        """What is known after a first look, at n rows or more; ``names`` are those of the columns of targets."""
        return known

    def _seen(self: Any, known: Any, moments: Moments) -> Any:
        """What is known with what the sums tell."""
        return known

    def _check_known(self: Any, known: Any) -> None:
        """Refuse what nothing can be learned from."""

    def _known(self: Any) -> Any:
        """What a fitted model knows."""
        raise NotImplementedError

    def _encode(self: Any, y: Any, known: Any) -> Array:
        """Codes of the classes of a block, or its quantities."""
        raise NotImplementedError

    def _recode(self: Any, codes: Array, old: Any, new: Any) -> Array:
        """The same targets under other codes."""
        return codes

    def _aligned(self: Any, moments: Moments, old: Any, new: Any) -> Moments:
        """The same sums under other codes."""
        return moments

    def _check_weight(self: Any, sample_weight: Any) -> None:
        """Refuse weights that sums cannot have."""

    def _check_class_weight(self: Any) -> None:
        """Refuse a wrong ``class_weight`` before any row is read."""

    def _class_factors(self: Any, known: Any, counts: dict | None) -> Array | None:
        """What classes are weighted by; ``counts`` are their weights, where all rows have been seen."""
        return None

    def _shares(self: Any, moments: Moments, unit: float) -> Array | None:
        """Class shares of all rows; ``unit`` is what a weight of 1 is."""
        return None

    def _shares_of(self: Any, rows: Rows, n_outputs: int) -> Array | None:
        """The same of rows that are in memory."""
        return None

    def _first_shares(self: Any, codes: Array, w: Array, known: Any) -> Array | None:
        """Class shares of the first rows, where these lack a class that is known."""
        return None

    def _row_weights(self: Any, w: Array, known: Any) -> Array:
        """Weights in the form in which rows are arranged."""
        return w

    def _blank(self: Any, n: int, known: Any) -> Array:
        """Targets of rows that nothing is learned from."""
        return np.zeros(n, dtype=int)


class ClassStream(StreamTargets):
    """Targets that are classes."""

    def _learn(self: Any, y: Any) -> Array:
        y = column_or_1d(y)
        check_classification_targets(y)
        return np.unique(y)

    def _learn_classes(self: Any, classes: Any) -> Array:
        return self._learn(classes)

    def _grown(self: Any, known: Array, y: Any) -> Array:
        return self._combined(known, self._learn(y))

    def _combined(self: Any, one: Array, other: Array) -> Array:
        return united(one, other)

    def _check_known(self: Any, known: Array) -> None:
        check_classes(np.arange(2 * len(known)), known)

    def _known(self: Any) -> Array:
        return self.classes_

    def _encode(self: Any, y: Any, known: Array) -> Array:
        y = column_or_1d(y)
        seen, place = np.unique(y, return_inverse=True)
        names = set(known.tolist())
        strange = [v for v in seen.tolist() if v not in names]
        if strange:
            raise ValueError(
                f"y holds {strange[:10]}, which the model does not know: its classes are {known.tolist()[:20]}. Give "
                "all of them at the beginning: classes=[...]."
            )
        return np.searchsorted(known, seen)[place]

    def _recode(self: Any, codes: Array, old: Array, new: Array) -> Array:
        return np.searchsorted(new, old)[codes]

    def _aligned(self: Any, moments: Moments, old: Array, new: Array) -> Moments:
        nothing = -1.0 if self.SIGNED else 0.0  # the target of a class that no row has
        C, z = nothing * np.repeat(moments.p[:, None], len(new), axis=1), np.full(len(new), nothing * moments.mass)
        place = np.searchsorted(new, old)
        C[:, place], z[place] = moments.C, moments.z
        return replace(moments, C=C, z=z)

    def _check_class_weight(self: Any) -> None:
        check_class_weight(self.class_weight)

    def _class_factors(self: Any, known: Array, counts: dict | None) -> Array | None:
        if is_balanced(self.class_weight) and counts is None:
            raise ValueError(
                "class_weight='balanced' needs to know how frequent the classes are before the first row is learned "
                "from: give fit_stream() rows that can be gone through twice (a file, an array, a callable that "
                "returns an iterator). Where rows are added or taken away later, give a dict of weights."
            )
        mass = np.array([(counts or {}).get(name, 0.0) for name in known.tolist()])
        return class_factors(self.class_weight, known, mass)

    def _stream_settings(self: Any, data: Training) -> Settings:
        norm = getattr(self, "norm", "function")
        return self._settings(data.kernel, self._judge(data.classes, self.calibration), norm)

    def _shares(self: Any, moments: Moments, unit: float) -> Array:
        shares = moments.z / moments.mass
        return above_zero((shares + 1) / 2 if self.SIGNED else shares, moments.n)

    def _shares_of(self: Any, rows: Rows, n_outputs: int) -> Array:
        return rows.class_shares(n_outputs)

    def _first_shares(self: Any, codes: Array, w: Array, known: Array) -> Array | None:
        shares = class_shares(codes, w, len(known))
        return None if (shares > 0).all() else above_zero(shares, len(codes))


class ValueStream(StreamTargets):
    """Targets that are quantities."""

    def _learn(self: Any, y: Any) -> tuple[Array, Array, bool]:
        Z = self._encode(y, None)
        return *self._units(Z.reshape(len(Z), -1), np.float64), Z.ndim == 1

    def _combined(self: Any, one: tuple, other: tuple) -> tuple[Array, Array, bool]:
        if len(one[0]) != len(other[0]) or one[2] != other[2]:
            forms = ["(n,)" if known[2] else f"(n, {len(known[0])})" for known in (one, other)]
            raise ValueError(f"y has the shape {forms[0]} in some rows and {forms[1]} in others: give one form.")
        return one

    def _known(self: Any) -> tuple[Array, Array, bool]:
        return self.unit_, self.offset_, self.flat_

    def _encode(self: Any, y: Any, known: tuple[Array, Array, bool] | None) -> Array:
        Z = _numbers(np.asarray(y))
        if Z is None:
            raise ValueError(f"y holds what is no number: {type(self).__name__} predicts quantities.")
        if not np.isfinite(Z).all():
            raise ValueError("y contains NaN or inf; every value must be finite.")
        if known is not None and (Z.ndim == 1, Z.size) != (known[2], len(Z) * len(known[0])):
            first = "(n,)" if known[2] else f"(n, {len(known[0])})"
            raise ValueError(f"y has shape {Z.shape}; that of the first rows was {first}: give y in the same form.")
        return Z

    def _blank(self: Any, n: int, known: tuple[Array, Array, bool]) -> Array:
        return np.zeros(n if known[2] else (n, len(known[0])))

    def _aligned(self: Any, moments: Moments, old: tuple, new: tuple) -> Moments:
        scale, move = old[0] / new[0], (old[1] - new[1]) / new[0]
        C, z = moments.C * scale + np.outer(moments.p, move), moments.z * scale + moments.mass * move
        return replace(moments, C=C, z=z)

    def _stream_settings(self: Any, data: Training) -> Settings:
        return self._settings(data.kernel, self._judge(data))


def _numbers(y: Array) -> Array | None:
    """Quantities; None for text, also such as "1.5", and dates."""
    if y.dtype.kind not in "biufO" or (y.dtype.kind == "O" and any(isinstance(v, str) for v in y.ravel())):
        return None
    try:
        return np.asarray(y, dtype=float)
    except (TypeError, ValueError):
        return None


def united(one: Array, other: Array) -> Array:
    """The classes of two parts of the rows; ``one`` itself where the other adds nothing."""
    if (one.dtype.kind in "biuf") != (other.dtype.kind in "biuf") and len(one) and len(other):
        raise ValueError(
            f"Classes are {one.tolist()[:5]} in some rows and {other.tolist()[:5]} in others: give numbers "
            "everywhere, or text."
        )
    fresh = np.setdiff1d(other, one)
    return np.unique(np.concatenate([one, fresh])) if len(fresh) else one


def above_zero(shares: Array, n: int) -> Array:
    """Half a row for a class that was not seen yet: its probability is low, but not zero."""
    shares = np.where(shares <= ROUNDING, 0.5 / (n + 1), shares)
    return shares / shares.sum()
