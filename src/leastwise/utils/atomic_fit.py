"""Fits that leave a model with its old state or its new state, and nothing in between."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from leastwise.utils.resources import explained_memory


def all_or_nothing(fit: Callable) -> Callable:
    """Decorate a fit: the model has all of its old state until the fit is complete, and then all of its new state.

    The fit works on a draft, which has the parameters of the model and no fitted attributes. One assignment replaces
    the old state by that of the draft: an error or a signal comes either before it or after it.
    """

    @wraps(fit)
    def wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
        draft = object.__new__(type(self))
        fitted = [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]
        vars(draft).update({name: value for name, value in vars(self).items() if name not in fitted})
        with explained_memory():
            result = fit(draft, *args, **kwargs)
        self.__dict__ = vars(draft)
        return self if result is draft else result

    return wrapped
