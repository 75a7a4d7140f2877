r"""Sums over rows that are all a ridge problem of b basis functions needs.

With a design Phi (n x b), targets Z (n x c) and weights w the solution

    theta = (Phi'W Phi + rho R)^-1 Phi'W (Z - 1 beta')

depends on the rows by sums only: these add, so that rows may come in blocks, from several files or places, and rows
that were added can be taken away again. What is held is b x b, whatever the number of rows.

Leave-one-out needs no more than the row in question beside the sums, where the basis stays as it is:

    f_i(without i) = (f_i - h_i z_i) / (1 - h_i),     h_i = w_i phi_i' (Phi'W Phi + rho R)^-1 phi_i   (+ bias)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from leastwise.arrays import at_home, here, library, like, widest
from leastwise.linalg.cholesky import Cholesky

Array = np.ndarray


@dataclass(frozen=True)
class Moments:
    """Sums over rows.

    Attributes
    ----------
    A : ndarray of shape (b, b)
        ``Phi'W Phi``.
    C : ndarray of shape (b, c)
        ``Phi'W Z``.
    p : ndarray of shape (b,)
        ``Phi'w``.
    z : ndarray of shape (c,)
        ``Z'w``.
    mass : float
        Sum of the weights.
    n : int
        Number of rows.

    Notes
    -----
    Sums are not anonymous: those of one row give the row, and so does the difference of two sums that differ by it.
    Those of fewer rows than basis functions tell the kernel values of all of them up to a rotation.
    """

    A: Array
    C: Array
    p: Array
    z: Array
    mass: float
    n: int

    @staticmethod
    def zero(b: int, c: int) -> Moments:
        """Those of no rows."""
        return Moments(np.zeros((b, b)), np.zeros((b, c)), np.zeros(b), np.zeros(c), 0.0, 0)

    @staticmethod
    def of(Phi: Array, Z: Array, w: Array | None = None) -> Moments:
        """Those of some rows; sums are made in double precision.

        A design in another library is summed there, in double precision if its device has that; the sums are numpy's.
        """
        if not at_home(Phi):
            return Moments._of_there(Phi, Z, w)
        Phi, Z = Phi.astype(float, copy=False), Z.astype(float, copy=False)
        if w is None:
            return Moments(Phi.T @ Phi, Phi.T @ Z, Phi.sum(axis=0), Z.sum(axis=0), float(len(Z)), len(Z))
        w = w.astype(float, copy=False)
        root = np.sqrt(w)[:, None]
        scaled = root * Phi  # a product with its own transpose is half the work
        return Moments(scaled.T @ scaled, scaled.T @ (root * Z), Phi.T @ w, Z.T @ w, float(w.sum()), len(Z))

    @staticmethod
    def _of_there(Phi: Any, Z: Any, w: Array | None) -> Moments:
        xp, Phi = library(Phi), widest(Phi)
        w = np.ones(Phi.shape[0]) if w is None else w
        mass, weight, Z = float(np.sum(w, dtype=float)), like(w, Phi), widest(like(Z, Phi))
        scaled = Phi if np.all(w == 1) else xp.sqrt(weight)[:, None] * Phi
        sums = scaled.T @ scaled, Phi.T @ (weight[:, None] * Z), Phi.T @ weight, Z.T @ weight
        A, C, p, z = (here(part).astype(float) for part in sums)
        return Moments(A, C, p, z, mass, Phi.shape[0])

    def __add__(self, other: Moments) -> Moments:
        return Moments(*(a + b for a, b in zip(self._parts, other._parts, strict=True)))

    def __sub__(self, other: Moments) -> Moments:
        return Moments(*(a - b for a, b in zip(self._parts, other._parts, strict=True)))

    def __mul__(self, factor: float) -> Moments:
        """Those of the same rows with weights multiplied by a number."""
        A, C, p, z, mass, n = self._parts
        return Moments(factor * A, factor * C, factor * p, factor * z, factor * mass, n)

    __rmul__ = __mul__

    @property
    def _parts(self) -> tuple:
        return self.A, self.C, self.p, self.z, self.mass, self.n


@dataclass(frozen=True)
class MomentSpectrum:
    """The ridge problem of some moments, decomposed: every ridge for the price of a product.

    In coordinates where the penalty R is the identity, ``A = V diag(g) V'``; with a bias A is centred first.

    Attributes
    ----------
    moments : Moments
    g : ndarray of shape (b,)
    V : ndarray of shape (b, b)
        Coefficients of the eigenvectors.
    bias : bool
    jitter : float
    """

    moments: Moments
    g: Array
    V: Array
    bias: bool
    jitter: float

    @cached_property
    def right(self) -> Array:
        """The right-hand side along the eigenvectors."""
        m = self.moments
        C = m.C - np.outer(m.p, m.z / m.mass) if self.bias else m.C
        return self.V.T @ C

    def coefficients(self, rho: float) -> tuple[Array, Array]:
        """Coefficients (b x c) and intercepts (c) at the ridge rho."""
        m = self.moments
        theta = self.V @ (self.right / (self.g + rho)[:, None])
        return theta, (m.z - m.p @ theta) / m.mass if self.bias else np.zeros(len(m.z))

    def coordinates(self, Phi: Array) -> Array:
        """Rows along the eigenvectors, about the mean row where there is a bias."""
        return Phi @ self.V - (self.moments.p / self.moments.mass @ self.V if self.bias else 0.0)

    def of_targets(self, C: Array, z: Array) -> MomentSpectrum:
        """The same rows with other targets, given by their sums."""
        return replace(self, moments=replace(self.moments, C=C, z=z))


def moment_spectrum(moments: Moments, penalty: Cholesky | None, bias: bool) -> MomentSpectrum:
    """Decompose; ``penalty`` is the factor of R, None for the identity."""
    m = moments
    A = m.A - np.outer(m.p, m.p / m.mass) if bias else m.A
    if penalty is not None:
        A = penalty.whiten(penalty.whiten(A).T)
    g, V = np.linalg.eigh((A + A.T) / 2)
    V = V if penalty is None else penalty.unwhiten(V)
    return MomentSpectrum(m, np.maximum(g, 0), V, bias, 0.0 if penalty is None else penalty.jitter)
