"""The parameter ``class_weight``: one check and one message, wherever rows come from.

Allowed are None, ``"balanced"`` and a mapping from classes to finite weights of 0 or more. A class that the mapping
does not name has weight 1, as in scikit-learn. A name that is no class is an error: it is usually a spelling mistake,
and its weight would be ignored silently.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np

Array = np.ndarray

ALLOWED = "None, 'balanced' or a dict from classes to weights"
#: So many names are shown in an error.
SHOWN = 10


def refusal(given: Any, problem: str, allowed: str = ALLOWED) -> ValueError:
    """The error: what was given, what is allowed, and what is wrong."""
    return ValueError(f"class_weight={given!r:.200} must be {allowed}. {problem}")


def is_balanced(weight: Any) -> bool:
    """Whether it is the word "balanced"."""
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
    """Refuse what is no ``class_weight``.

    Parameters
    ----------
    weight : object
        What the classes are to be weighted by.
    classes : iterable, optional
        All classes; None where they are not known yet.
    given : object, optional
        The parameter, where ``weight`` is the part of it that belongs to one label.
    what : str
        Whose classes they are, for the error.
    allowed : str
        The forms that the parameter may have, for the error.
    every : bool, default=True
        Whether ``classes`` are all of one problem, so that not all of them may have weight 0.
    """
    given = weight if given is None else given
    if weight is None or is_balanced(weight):
        return
    if not isinstance(weight, Mapping):
        kind = f"{weight!r:.40} is another word" if isinstance(weight, str) else f"It is a {type(weight).__name__}"
        raise refusal(given, f"{kind}: give one of these.", allowed)
    names = None if classes is None else list(classes)
    if names is not None:
        known = set(names)
        strange = [name for name in weight if name not in known]
        if strange:
            more = ", ..." if len(names) > SHOWN else ""
            shown = f"[{', '.join(map(repr, names[:SHOWN]))}{more}]"
            raise refusal(given, f"It names {strange[:SHOWN]}; {what} are {shown}. Remove or correct them.", allowed)
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
    """The weights of these classes by a mapping; 1 for those that it does not name."""
    return np.array([float(weight.get(name, 1.0)) for name in names])


def balanced_factors(mass: Array) -> Array:
    """Factors that give all classes the same total weight, from the total weight of each; 0 for empty classes."""
    mass = np.asarray(mass, dtype=float)
    return np.divide(mass.sum(), mass, out=np.zeros(len(mass)), where=mass > 0)


def class_factors(weight: Any, classes: Array, mass: Array) -> Array | None:
    """What the rows of each class are weighted by, checked; None for no weights.

    Parameters
    ----------
    weight : None, "balanced" or mapping
    classes : ndarray of shape (c,)
    mass : ndarray of shape (c,)
        The total weight of the rows of each class.
    """
    names = classes.tolist()
    check_class_weight(weight, names)
    if weight is None:
        return None
    return balanced_factors(mass) if is_balanced(weight) else mapped_factors(weight, names)
