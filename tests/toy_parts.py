"""A kernel and a calibrator of another package, which no registry knows: for tests of registration."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from leastwise import LSPC
from leastwise.problem import kernels


@dataclass(frozen=True)
class Cauchy(kernels.Kernel):
    """1 / (1 + ||x - x'||^2 / sigma^2)."""

    distance: ClassVar[bool] = True

    def pairs(self, X, Y):
        return kernels.squared_distances(X, Y)

    def values(self, pairs, sigma, out=None):
        return 1 / (1 + pairs / sigma**2)

    def length(self, pairs, norms):
        return float(np.sqrt(np.median(pairs)))

    def distances(self, pairs):
        return np.sqrt(pairs)


class Sharpened:
    """Clipped scores to a power, divided by their sum; class shares as far as rows are not trusted."""

    def __init__(self, shares, power=2.0):
        self.shares, self.power = shares, power

    def decision(self, F, in_domain=None):
        return self.proba(F, in_domain)

    def proba(self, F, in_domain=None):
        P = (np.maximum(F, 0) + 1e-3) ** self.power
        P = P / P.sum(axis=1, keepdims=True)
        return P if in_domain is None else in_domain[:, None] * P + (1 - in_domain[:, None]) * self.shares


def with_toy_kernel(monkeypatch, X, y, **params):
    """An LSPC with the toy kernel, which the estimators know by name."""
    monkeypatch.setitem(kernels.KERNELS, "cauchy", Cauchy)
    return LSPC(kernel="cauchy", **params).fit(X, y)


def with_toy_calibrator(X, y, **params):
    """An LSPC with the toy calibrator."""
    model = LSPC(**params).fit(X, y)
    model.calibrator_ = Sharpened(np.bincount(y) / len(y))
    return model
