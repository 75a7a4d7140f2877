"""Operations of a fit, the speed of this machine, and what is affordable: rows of a search, and memory.

Operations are counted by kind, since a product, a decomposition and a pass through memory differ in speed. ``speed``
measures each kind, once per precision and number of threads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from leastwise.linalg.decompositions import cholesky
from leastwise.problem.basis import Basis
from leastwise.problem.kernels import RBF
from leastwise.solvers.heldout import Folds
from leastwise.utils.resources import BLAS_LIMIT, available_memory, threads_for

#: Rank of the preconditioner for 2,500 rows; it grows like the square root of the number of rows.
RANK = 500
#: Up to this many float32 rows are computed with in double precision: a small ridge needs the digits, and arrays of
#: all pairs of rows are small.
DOUBLE_ROWS = 2500
#: Small operations to score one point of the grid, and passes over the scores of all rows.
POINT_CALLS, POINT_PASSES = 700.0, 600.0
#: The probe measures the speed of a decomposition of this many rows; smaller ones are slower.
PROBE_ROWS, SLOW_ROWS = 400, 500.0


@dataclass(frozen=True)
class Work:
    """Amounts of work.

    Attributes
    ----------
    products : float
        Operations in matrix products.
    factors : float
        Operations in Cholesky factors and triangular solves.
    spectra : float
        Operations in decompositions, in units of the cube of ``PROBE_ROWS``.
    kernels : float
        Kernel values.
    numbers : float
        Numbers read or written in memory.
    calls : float
        Small operations.
    """

    products: float = 0.0
    factors: float = 0.0
    spectra: float = 0.0
    kernels: float = 0.0
    numbers: float = 0.0
    calls: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(*(a + b for a, b in zip(self.parts, other.parts, strict=True)))

    def __mul__(self, times: float) -> Work:
        return Work(*(times * a for a in self.parts))

    @property
    def parts(self) -> tuple[float, ...]:
        """The amounts in order."""
        return self.products, self.factors, self.spectra, self.kernels, self.numbers, self.calls

    @property
    def flops(self) -> float:
        """Operations on numbers, an eigendecomposition counted as 9 n^3 and a kernel value as 20."""
        return self.products + self.factors + 9 * self.spectra + 20 * self.kernels + self.numbers


def eigen(n: float) -> Work:
    """An eigendecomposition of n rows."""
    slow = (1 + SLOW_ROWS / max(n, 1)) / (1 + SLOW_ROWS / PROBE_ROWS)
    return Work(spectra=n**3 * slow)


def singular(n: float, b: float) -> Work:
    """Singular values and vectors of an n x b design."""
    n, b = max(n, b), min(n, b)
    slow = (1 + SLOW_ROWS / max(b, 1)) / (1 + SLOW_ROWS / PROBE_ROWS)
    return Work(spectra=0.6 * b**3 * slow, products=2 * n * b**2, factors=6 * n * b**2 * max(1.0, slow))


def factor(n: float) -> Work:
    """A Cholesky factor of n rows."""
    return Work(factors=n**3 / 3)


def inverse(n: float) -> Work:
    """The inverse of a Cholesky factor."""
    return Work(factors=n**3 / 3)


def kernel(n: float, b: float, d: float) -> Work:
    """Kernel values between n rows and b centres of d features."""
    return Work(kernels=n * b, products=2 * n * b * d)


def points(count: float, n: float, b: float, c: float) -> Work:
    """Held-out scores of n rows from a decomposition with b vectors, scored at this many alphas."""
    passes = 6 if b >= n else 20  # more work if the vectors do not span all rows
    return Work(products=2 * n * b * c, numbers=passes * n * b) * count + judged(count, n, c)


def judged(count: float, n: float, c: float) -> Work:
    """Scores of n rows, calibrated and scored this many times."""
    return Work(numbers=POINT_PASSES * n * c, calls=POINT_CALLS) * count


def kernel_budget() -> int:
    """Bytes of kernel values to cache: three eighths of the available memory, about as much as a preconditioner."""
    return max(3 * available_memory() // 8, 2**24)


def preconditioner_rank(n: int, itemsize: int) -> int:
    """Rank of the preconditioner: proportional to the square root of n, in an eighth of the available memory."""
    room = max(available_memory() // 8, 2**24) // (n * itemsize)
    return max(1, min(n, room, int(RANK * (n / 2500) ** 0.5)))


# ------------------------------------------------------------- rows of a search


#: If every row is a centre, alpha is refined on this many rows at most;
REFINE_ROWS = 2000
#: not at all if it was chosen on this share of the rows.
MOST_ROWS = 0.5
#: One search step should cost no more than the eigendecomposition of this many rows.
SEARCH_ROWS = 1000
#: Rows times (basis functions + 100) of a search step whose cost is linear in the rows; 100 is the overhead per row.
ARROW_NUMBERS = 3_000_000
#: Rows times basis functions up to which alpha and sharing are refined on all rows after a search on a subsample.
SETTLE_NUMBERS = 20_000_000
#: Alpha of iterative solvers is refined on this many rows, or on a quarter of all rows if that is more.
SETTLE_ROWS = 8000
#: Squared rows times outputs up to which all rows of a multi-label model are held out in turn,
IN_TURN = 2_000_000_000
#: in this many folds, which also replace leave-one-out if some labels are unknown.
STAND_IN = 5
#: Up to this many Cholesky factors, with inverses, are cheaper than one eigendecomposition.
FEW_ALPHAS = 5
#: Peak memory of a fit in arrays of the size of the kernel matrix, by norm.
ARRAYS = {"function": 7, "coefficients": 10}


def decomposition_cost(n: int, widths: list[int], square: bool) -> float:
    """Operations for one sigma: an eigendecomposition, or a singular value decomposition per block."""
    if square:
        return 12.0 * n**3
    return sum(10.0 * n * min(b, n) ** 2 for b in widths)


def rows_to_refine(searched: int, n: int, square: bool) -> int:
    """Number of rows on which alpha is refined after a search on ``searched`` of n rows; ``searched`` for none.

    What suits a model is a ridge on the sum of the losses, which hardly changes from half of the rows to all. If
    every row is a centre, a factorization of all rows costs most of a fit: then there is only one, for the held-out
    scores.
    """
    if searched >= MOST_ROWS * n:
        return searched
    return REFINE_ROWS if square and n > REFINE_ROWS > searched else n


def rows_to_search(basis: Basis, n: int, requested: int | str | None) -> int:
    """Number of rows for the search; see ``count_rows_to_search``."""
    widths = [block.columns.stop - block.columns.start for block in basis.blocks]
    return count_rows_to_search(widths, basis.square, n, requested)


def count_rows_to_search(widths: list[int], square: bool, n: int, requested: int | str | None) -> int:
    """Number of rows for the search.

    Parameters
    ----------
    widths : list of int
        Number of basis functions in each block.
    square : bool
        True if every row is a centre.
    requested : "auto", int or None
        A number is used as it is, None means all rows. "auto" means all rows if one decomposition costs no more than
        that of ``SEARCH_ROWS`` rows with as many basis functions, otherwise as many rows as stay within that cost.
    """
    if requested is None:
        return n
    if requested != "auto":
        return min(n, int(requested))
    budget = decomposition_cost(SEARCH_ROWS, [], square=True)
    candidates = np.unique(np.geomspace(min(n, SEARCH_ROWS), n, 50).astype(int))[::-1]
    for m in candidates:
        narrow = [int(np.ceil(b * m / n)) for b in widths] if sum(widths) >= n else widths
        if decomposition_cost(int(m), narrow, square) <= budget:
            return int(m)
    return min(n, SEARCH_ROWS)


def task_rows_to_search(b: int, n: int, requested: int | str | None, by_arrow: bool) -> int:
    """Number of rows for the search of a multi-task model with b basis functions; see ``rows_to_search``."""
    if requested is None:
        return n
    if requested != "auto":
        return min(n, int(requested))
    return min(n, max(SEARCH_ROWS, ARROW_NUMBERS // (b + 100))) if by_arrow else min(n, SEARCH_ROWS)


def folds_to_hold_out(n: int, c: int) -> int:
    """Number of folds of ``STAND_IN`` that iterations for many labels hold out; 1 stands for a tenth of the rows.

    With more than ``IN_TURN`` allows there are fewer, in proportion, so that the work does not fall at the limit.
    """
    return max(1, min(STAND_IN, int(STAND_IN * IN_TURN / (float(n) ** 2 * c))))


def search_bytes(numbers: int) -> int:
    """Bytes that the decompositions need for a search on a design with this many entries."""
    return 6 * 8 * numbers


def cheaper_to_refit(n: int, b: int, folds: Folds, square: bool, owned: bool, alphas: int) -> bool:
    """True if decomposing every fold's training part is cheaper than one decomposition and a block system per fold.

    The block system of a fold of m rows, twice as large if its rows own basis functions, has to be formed and solved
    for every alpha. For a few large folds that costs more than one decomposition per fold.
    """
    if len(folds.singles):
        return False
    sizes = np.array([len(block) for block in folds.blocks], dtype=float)
    size = sizes * (2 if owned else 1)
    blocks = decomposition_cost(n, [b], square) + alphas * float(np.sum(2 * size**2 * min(n, b) + size**3))
    left = [max(1.0, b - m) if square or owned else b for m in sizes]
    refits = sum(decomposition_cost(int(n - m), [int(c)], square) for m, c in zip(sizes, left, strict=True))
    return refits < blocks


# -------------------------------------------------------- speed of this machine


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


#: Speed of one thread of a typical machine, by precision.
TYPICAL = {
    "float64": Speed(2.2e-11, 3.5e-11, 2.2e-10, 2.2e-9, 4.7e-10, 1.4e-6),
    "float32": Speed(1.1e-11, 1.8e-11, 1.3e-10, 1.2e-9, 2.4e-10, 1.4e-6),
}


def speed(dtype: Any) -> Speed:
    """Speed in this precision; measured once, in about a tenth of a second.

    The threads that a fit limits itself to do not matter: ``plan`` and ``fit`` make the same choice.
    """
    return _measured(np.dtype(dtype).name, BLAS_LIMIT.usable())


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
    with threads_for(FACTOR_ROWS):  # as a fit: threads that wait for a busy processor would make all of this slow
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
