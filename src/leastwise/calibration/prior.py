r"""Prior shift: class shares of new rows that differ from those of the training rows.

If the distribution of the rows within each class is unchanged, Bayes' rule gives::

    p_new(y|x)  ~  p(y|x) * share_new_y / share_y

``share`` are the (weighted) class shares of the training rows, over all tasks. Far from the data p(y|x) equals these,
and the result equals the new shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from leastwise.utils.arrays import get_namespace, is_numpy, spread_over, to_namespace

Array = np.ndarray
ALLOWED = "Give a mapping of classes to their shares, an array in the order of classes_, or 'uniform'."


@dataclass(frozen=True)
class Shift:
    """The change from probabilities under the training shares to those under new shares.

    Attributes
    ----------
    new, trained : ndarray of shape (O,)
        Class shares; those of each label sum to one.
    starts : ndarray of int of shape (T + 1,)
        First column of each label, and the end; (0, c) for a single label.
    """

    new: Array
    trained: Array
    starts: Array

    def proba(self, P: Array) -> Array:
        """P, of shape (n, O), under the new shares; the new shares if all classes with a share above 0 had P = 0."""
        if not is_numpy(P):
            return self._proba_there(P)
        P = P * (self.new / self.trained).astype(P.dtype)
        sums = np.add.reduceat(P, self.starts[:-1], axis=1)
        total = np.repeat(sums, np.diff(self.starts), axis=1)
        return np.where(total > 0, P / np.where(total > 0, total, 1), self.new.astype(P.dtype))

    def _proba_there(self, P: Any) -> Any:
        xp, P = get_namespace(P), P * to_namespace(self.new / self.trained, P)
        total = spread_over("sum", P, self.starts)
        return xp.where(total > 0, P / xp.where(total > 0, total, 1.0), to_namespace(self.new, P))

    def decision(self, P: Array) -> Array:
        """Logarithms of these probabilities."""
        with np.errstate(divide="ignore"):
            return get_namespace(P).log(self.proba(P))


def read_prior(class_prior: Any, classes: Array, name: str = "class_prior") -> Array:
    """Class shares in the order of ``classes``, with sum one.

    Parameters
    ----------
    class_prior : mapping, Series, array-like of shape (c,) or "uniform"
        Shares or counts, with any sum above 0.
    classes : ndarray of shape (c,)
    name : str
        Its name in error messages.
    """
    known = np.asarray(classes).tolist()
    if isinstance(class_prior, str):
        if class_prior != "uniform":
            raise ValueError(f"{name}={class_prior!r} is not known. {ALLOWED}")
        return np.full(len(known), 1 / len(known))
    values = _in_order(class_prior, known, name) if _named(class_prior) else class_prior
    try:
        shares = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={class_prior!r} is not numeric. {ALLOWED}") from None
    if shares.shape != (len(known),):
        raise ValueError(
            f"{name} has shape {shares.shape}, but there are {len(known)} classes: {known[:20]}. {ALLOWED}"
        )
    if not np.isfinite(shares).all() or (shares < 0).any():
        raise ValueError(f"{name}={shares.tolist()[:20]} must be finite and not negative.")
    if shares.sum() == 0:
        raise ValueError(f"{name} sums to 0: at least one class must have a share above 0.")
    return shares / shares.sum()


def read_label_prior(class_prior: Any, labels: Any, trained: Array) -> Array:
    """Shares of the classes of all labels, (O,), from those of each label.

    Labels missing from a mapping keep the training shares.

    Parameters
    ----------
    class_prior : mapping, Series, array-like of shape (T,), sequence of length T or "uniform"
        For a label of two classes the share of the second; for any label all values that ``read_prior`` takes.
    labels : leastwise.problem.labels.Labels
    trained : ndarray of shape (O,)
    """
    if labels.form == "flat":
        return read_prior(class_prior, labels.classes[0])
    if isinstance(class_prior, str):
        return np.concatenate([read_prior(class_prior, classes) for classes in labels.classes])
    given = dict(class_prior.items()) if _named(class_prior) else _by_place(class_prior, labels)
    unknown = [name for name in given if name not in labels.names]
    if unknown:
        raise ValueError(
            f"class_prior has shares of unknown labels: {unknown[:10]}. The labels are {list(labels.names)[:20]}."
        )
    new = trained.astype(float)
    for t, (name, classes) in enumerate(zip(labels.names, labels.classes, strict=True)):
        if name in given:
            shares = _label_shares(given[name], classes, f"class_prior of label {name!r}")
            new[labels.starts[t] : labels.starts[t + 1]] = shares
    return new


def _label_shares(value: Any, classes: Array, name: str) -> Array:
    if isinstance(value, str) or _named(value) or np.ndim(value):
        return read_prior(value, classes, name)
    if len(classes) != 2:
        raise ValueError(
            f"{name}={value!r} must be the shares of its {len(classes)} classes: {classes.tolist()[:20]}."
        )
    if not isinstance(value, int | float | np.number) or not 0 <= value <= 1:
        raise ValueError(f"{name}={value!r} must be the share of its second class, from 0 to 1.")
    return np.array([1 - float(value), float(value)])


def _by_place(class_prior: Any, labels: Any) -> dict:
    values = list(class_prior) if np.iterable(class_prior) else [class_prior]
    if len(values) != labels.n_labels:
        raise ValueError(
            f"class_prior has {len(values)} values, but there are {labels.n_labels} labels: give one for each, or a "
            "mapping of labels to the share of their second class."
        )
    return dict(zip(labels.names, values, strict=True))


def _named(values: Any) -> bool:
    """True for a mapping or a Series."""
    return isinstance(values, Mapping) or (hasattr(values, "items") and hasattr(values, "index"))


def _in_order(class_prior: Any, known: list, name: str) -> list:
    given = dict(class_prior.items())
    unknown = [label for label in given if label not in known]
    lacking = [label for label in known if label not in given]
    if unknown or lacking:
        what = f"has unknown classes: {unknown[:10]}" if unknown else f"lacks the classes {lacking[:10]}"
        raise ValueError(
            f"{name} {what}. The classes are {known[:20]}; give share 0 to a class that no longer occurs."
        )
    return [given[label] for label in known]
