"""Operations by kind, since a product, a decomposition and a pass through memory differ in speed."""

from __future__ import annotations

from dataclasses import dataclass

#: Small operations that judging one point of the grid takes, and passes over the scores of all rows.
POINT_CALLS, POINT_PASSES = 700.0, 600.0
#: A decomposition of so many rows has the speed that the probe measures; smaller ones are slower.
PROBE_ROWS, SLOW_ROWS = 400, 500.0


@dataclass(frozen=True)
class Work:
    """How much there is to do.

    Attributes
    ----------
    products : float
        Operations in matrix products.
    factors : float
        Operations in Cholesky factors and triangular solves.
    spectra : float
        Operations in decompositions, as so many cubes of ``PROBE_ROWS`` rows.
    kernels : float
        Kernel values.
    numbers : float
        Numbers that are passed over in memory.
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
    """Held-out scores of n rows from a decomposition with b vectors, judged at so many alphas."""
    passes = 6 if b >= n else 20  # where vectors do not span all rows there is more to do
    return Work(products=2 * n * b * c, numbers=passes * n * b) * count + judged(count, n, c)


def judged(count: float, n: float, c: float) -> Work:
    """Scores of n rows calibrated and judged so often."""
    return Work(numbers=POINT_PASSES * n * c, calls=POINT_CALLS) * count
