"""Warnings that point at the line of the user's code that led to them."""

from __future__ import annotations

import contextlib
import sys
import warnings
from pathlib import Path

import sklearn

#: Code in these folders, and decorators made of context managers, are not the user's.
LIBRARIES = (str(Path(__file__).parents[1]), str(Path(sklearn.__file__).parent), contextlib.__file__)


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the first frame outside of this library and scikit-learn.

    A fixed ``stacklevel`` would have to change with every function that is added on the way.
    """
    frame, level = sys._getframe(1), 2
    while frame is not None and frame.f_back is not None and frame.f_code.co_filename.startswith(LIBRARIES):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
