"""Parameters checked with words that help, and the kernels."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np

from leastwise.problem.kernels import RBF, Kernel, Linear
from leastwise.utils.memory import available_memory, human

Array = np.ndarray
KERNELS: dict[str, Kernel] = {"linear": Linear(), "rbf": RBF()}


def number(name: str, value: Any, *, zero: bool = False) -> float:
    """A finite number above 0, or from 0 on."""
    real = isinstance(value, Real) and not isinstance(value, bool) and np.isfinite(float(value))
    if not real or float(value) < 0 or (float(value) == 0 and not zero):
        raise ValueError(f"{name}={value!r} must be a finite number {'of 0 or more' if zero else 'above 0'}.")
    return float(value)


def count(name: str, value: Any) -> int:
    """A whole number of 1 or more."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r} must be a whole number of 1 or more.")
    return int(value)


def kernel_matrix(kernel: str, sigma: float, X: Array, Y: Array) -> Array:
    """k(x, y) for all rows x of X and y of Y."""
    return KERNELS[kernel](X, Y, sigma)


def check_gram(n: int, arrays: int, what: str = "kernel matrix") -> None:
    """Refuse a table of all pairs of n rows that would not fit in memory, before it is made."""
    need, have = 8 * arrays * n * n, available_memory()
    if need > have:
        raise MemoryError(
            f"{n} rows need about {human(need)} for their {what}; {human(have)} are available. Give about "
            f"{int(np.sqrt(have / (8 * arrays)))} rows at most. (Set LEASTWISE_MEMORY to change the limit.)"
        )
