"""LSPC in the paper's form and in this library's, and kernel logistic regression, on the paper's grid.

LSPC          model (7), for each class the kernels at the rows of that class
LSPC(full)    model (5), all kernels for all classes
KLR           kernel logistic regression by L-BFGS on the kernel's coefficients, with the penalty lambda theta'K theta
              beside the sum of the losses, as the paper's software has it; at what the next one chose
KLR here      this library's KernelLogisticRegression: the same minimum, by Newton's method in better coordinates
LSPC()        this library's default: penalty on the function, sigma and alpha by leave-one-out log-loss on
              its own grid, calibrated (its time is again that of the bare fit)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leastwise import LSPC, KernelLogisticRegression

#: In medians of the distance between rows.
SIGMAS = (1 / 10, 1 / 5, 1 / 2, 2 / 3, 1, 3 / 2, 2, 5, 10)
ALPHAS = tuple(10.0 ** np.array([-2, -1.5, -1, -0.5, 0]))


@dataclass(frozen=True)
class Method:
    """An estimator, how it is tuned, and how it is fitted at what the tuning chose."""

    make: Callable[..., Any]
    search: dict = field(default_factory=dict)
    bare: dict = field(default_factory=dict)
    paper_grid: bool = True

    def tuned(self, length: float, n: int, seed: int) -> Any:
        """To be fitted on a grid in units of ``length``, for n rows."""
        alphas = [2 * a / n for a in ALPHAS] if self.make is KernelLogisticRegression else list(ALPHAS)
        grid = {"sigma": [s * length for s in SIGMAS], "alpha": alphas} if self.paper_grid else {}
        return self.make(**grid, **self.search, random_state=seed)

    def at(self, model: Any, **more: Any) -> Any:
        """To be fitted at the sigma and alpha that ``model`` chose."""
        return self.make(sigma=model.sigma_, alpha=model.alpha_, cv=None, **{**self.bare, **more})


PAPER = {"norm": "coefficients", "calibration": None, "bias": None}
CROSS_VALIDATED = {"cv": 2, "scoring": "accuracy"}
METHODS = {
    "LSPC": Method(
        LSPC, {**PAPER, **CROSS_VALIDATED, "basis": "class", "search_rows": None}, {**PAPER, "basis": "class"}
    ),
    "LSPC(full)": Method(LSPC, {**PAPER, **CROSS_VALIDATED, "search_rows": None}, PAPER),
    "KLR here": Method(KernelLogisticRegression, {**CROSS_VALIDATED, "bias": None}, {"bias": None}),
    "LSPC()": Method(LSPC, bare={"calibration": None}, paper_grid=False),
}
TEXTBOOK = "KLR"
LABELS = ("LSPC", "LSPC(full)", TEXTBOOK, "KLR here", "LSPC()")
