"""Kernels in single precision, of rows in double: half the room, and twice the speed.

Rows are moved to their mean and measured in widths of the kernel first, so that single precision has all its digits
for what the kernel looks at. Values are right to about 1e-6 then; where more is wanted, residuals are computed in
double precision (``leastwise.linalg.krylov``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from leastwise.kernels import Kernel, Scaled, Sum

Array = np.ndarray

#: Rows that are further away than this many widths have squares that single precision does not hold.
FAR = 1e18


def in_single(kernel: Kernel, sigma: float, X: Any) -> tuple[Kernel, float, Any] | None:
    """The same kernel, its width and rows, in single precision.

    None where there is no such thing: for kernels that are not of a distance, or a sum with one that is; and for rows
    that are sparse, or in single precision already.
    """
    if not (kernel.distance or isinstance(kernel, Sum)) or sparse.issparse(X) or X.dtype != np.float64:
        return None
    middle = X.mean(axis=0)
    single = np.empty(X.shape, dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for a in range(0, len(X), 4096):  # no copy of all rows in double precision
            single[a : a + 4096] = (X[a : a + 4096] - middle) / sigma
    if not np.abs(single).max(initial=0) < FAR:
        return None
    return _measured(kernel, middle, sigma), 1.0, single


def _measured(kernel: Kernel, middle: Array, unit: float) -> Kernel:
    """The kernel of rows that were moved, and are measured in other units."""
    if isinstance(kernel, Sum):
        return replace(kernel, parts=tuple(_measured(part, middle, unit) for part in kernel.parts))
    if isinstance(kernel, Scaled):
        origin = None if kernel.origin is None else ((kernel.origin - middle) / unit).astype(np.float32)
        return Scaled(origin, kernel.height / unit**2)
    return kernel
