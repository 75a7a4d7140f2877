"""Speed of this machine, from a short benchmark run once per precision and number of threads."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from leastwise.linalg.cholesky import cholesky
from leastwise.problem.kernels import RBF
from leastwise.solvers.plan import PROBE_ROWS, Work

#: Rows of the timed Cholesky factor.
FACTOR_ROWS = 800
#: Rows, centres and features of the timed kernel, and array size of the timed pass through memory.
KERNEL = (2000, 400, 5)
NUMBERS = 1_000_000


@dataclass(frozen=True)
class Speed:
    """Seconds per operation of each kind, in the order of ``Work``."""

    products: float
    factors: float
    spectra: float
    kernels: float
    numbers: float
    calls: float

    def seconds(self, work: Work) -> float:
        """Estimated seconds for some work."""
        rates = (self.products, self.factors, self.spectra, self.kernels, self.numbers, self.calls)
        return float(sum(rate * amount for rate, amount in zip(rates, work.parts, strict=True)))


def speed(dtype: Any) -> Speed:
    """Speed in this precision; measured once, in about a tenth of a second."""
    return _measured(np.dtype(dtype).name, threads())


def threads() -> int:
    """Threads used by matrix products."""
    return max((pool["num_threads"] for pool in threadpool_info()), default=1)


@cache
def _measured(dtype: str, threads: int) -> Speed:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((PROBE_ROWS, PROBE_ROWS)).astype(dtype)
    G = A @ A.T + PROBE_ROWS * np.eye(PROBE_ROWS, dtype=dtype)
    large = FACTOR_ROWS * np.eye(FACTOR_ROWS, dtype=dtype) + 1
    n, b, d = KERNEL
    X, small = rng.standard_normal((n, d)).astype(dtype), np.linspace(0, 1, 50)
    long, out = np.ones(NUMBERS, dtype=dtype), np.empty(NUMBERS, dtype=dtype)
    cube = PROBE_ROWS**3
    product = _fastest(lambda: A @ A, 4) / (2 * cube)
    return Speed(
        product,
        _fastest(lambda: cholesky(large), 3) / (FACTOR_ROWS**3 / 3),
        _fastest(lambda: np.linalg.eigh(G), 3) / cube,
        max(_fastest(lambda: RBF()(X, X[:b], 2.0), 4) / (n * b) - 2 * d * product, product),
        _fastest(lambda: np.multiply(long, 1.5, out=out), 3) / NUMBERS,
        _fastest(lambda: [np.exp(small).sum() for _ in range(100)], 3) / 100,
    )


def _fastest(task: Callable[[], Any], times: int) -> float:
    """Seconds of the fastest of some runs; processor time if that is less than wall time."""
    best = np.inf
    for _ in range(times):
        wall, processor = time.perf_counter(), time.process_time()
        task()
        best = min(best, time.perf_counter() - wall, time.process_time() - processor)
    return max(float(best), 1e-9)
