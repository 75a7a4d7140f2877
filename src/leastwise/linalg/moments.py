r"""Sums over rows that are all a ridge problem of b basis functions needs.

With a design Phi (n x b), targets Z (n x c) and weights w the solution

    theta = (Phi'W Phi + rho R)^-1 Phi'W (Z - 1 beta')

depends on the rows by sums only: these add, so that rows may come in blocks, from several files or places, and rows
that were added can be taken away again. What is held is b x b, whatever the number of rows.

Sums of kernel values themselves would lose more digits than the ridge can bear: ``A^-1`` is taken where R, the kernel
between the centres, is the identity, and going there from sums of kernel values multiplies their rounding errors by
the condition number of R. So rows are summed in the coordinates of a ``Whitening`` of R. An error of eps in a row
then meets a ridge of alpha: scores are off by about eps / alpha. With the penalty on the coefficients R is the
identity, kernel values are such coordinates, and there is nothing to do.

Leave-one-out needs no more than the row in question beside the sums, where the basis stays as it is:

    f_i(without i) = (f_i - h_i z_i) / (1 - h_i),     h_i = w_i phi_i' (Phi'W Phi + rho R)^-1 phi_i   (+ bias)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from leastwise.linalg.whitening import Whitening
from leastwise.utils.arrays import at_home, here, library, like, widest

Array = np.ndarray


@dataclass(frozen=True)
class Moments:
    """Sums over rows.

    Attributes
    ----------
    A : ndarray of shape (r, r)
        ``Phi'W Phi``, Phi the rows in the coordinates of ``whitening``.
    C : ndarray of shape (r, c)
        ``Phi'W Z``.
    p : ndarray of shape (r,)
        ``Phi'w``.
    z : ndarray of shape (c,)
        ``Z'w``.
    mass : float
        Sum of the weights.
    n : int
        Number of rows.
    whitening : Whitening or None
        Coordinates in which the penalty on the function is the identity; None for kernel values themselves, where
        the penalty is on the coefficients. Sums add where this is the same.

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
    whitening: Whitening | None = None

    @staticmethod
    def zero(b: int, c: int, whitening: Whitening | None = None) -> Moments:
        """Those of no rows, of b basis functions."""
        r = b if whitening is None else whitening.rank
        return Moments(np.zeros((r, r)), np.zeros((r, c)), np.zeros(r), np.zeros(c), 0.0, 0, whitening)

    def cleared(self) -> Moments:
        """Those of no rows, in the same coordinates."""
        r, c = self.C.shape
        return Moments.zero(r, c, self.whitening)

    @staticmethod
    def of(Phi: Array, Z: Array, w: Array | None = None, whitening: Whitening | None = None) -> Moments:
        """Those of some rows; sums are made in double precision.

        Phi holds the values of the pivots of ``whitening``, or of all basis functions where there is none; with
        ``whitening`` it may be overwritten. A design in another library is summed there, in double precision if its
        device has that; the sums are numpy's.
        """
        if not at_home(Phi):
            return Moments._of_there(Phi, Z, w, whitening)
        Phi, Z = Phi.astype(float, copy=False), Z.astype(float, copy=False)
        Phi = Phi if whitening is None else whitening.whiten(Phi)
        if w is None:
            return Moments(Phi.T @ Phi, Phi.T @ Z, Phi.sum(axis=0), Z.sum(axis=0), float(len(Z)), len(Z), whitening)
        w = w.astype(float, copy=False)
        root = np.sqrt(w)[:, None]
        scaled = root * Phi  # a product with its own transpose is half the work
        sums = scaled.T @ scaled, scaled.T @ (root * Z), Phi.T @ w, Z.T @ w
        return Moments(*sums, float(w.sum()), len(Z), whitening)

    @staticmethod
    def _of_there(Phi: Any, Z: Any, w: Array | None, whitening: Whitening | None) -> Moments:
        xp, Phi = library(Phi), widest(Phi)
        Phi = Phi if whitening is None else whitening.whiten(Phi)
        w = np.ones(Phi.shape[0]) if w is None else w
        mass, weight, Z = float(np.sum(w, dtype=float)), like(w, Phi), widest(like(Z, Phi))
        scaled = Phi if np.all(w == 1) else xp.sqrt(weight)[:, None] * Phi
        sums = scaled.T @ scaled, Phi.T @ (weight[:, None] * Z), Phi.T @ weight, Z.T @ weight
        A, C, p, z = (here(part).astype(float) for part in sums)
        return Moments(A, C, p, z, mass, Phi.shape[0], whitening)

    def __add__(self, other: Moments) -> Moments:
        self._check_coordinates(other)
        sums = [a + b for a, b in zip(self._parts, other._parts, strict=True)]
        return self._with(sums)

    def __sub__(self, other: Moments) -> Moments:
        self._check_coordinates(other)
        sums = [a - b for a, b in zip(self._parts, other._parts, strict=True)]
        return self._with(sums)

    def __mul__(self, factor: float) -> Moments:
        """Those of the same rows with weights multiplied by a number."""
        *sums, n = self._parts
        return self._with([*(factor * a for a in sums), n])

    def moved(self, R: Array, whitening: Whitening) -> Moments:
        """The same sums in other coordinates; R is the kernel between the centres.

        Both coordinates are orthonormal bases of almost the same space, so that the change is a rotation.
        """
        own = self.whitening
        if own is None:
            raise ValueError("These sums are of kernel values, not of whitened coordinates: they cannot be moved.")
        M = own.T @ R[np.ix_(own.pivots, whitening.pivots)] @ whitening.T.T
        return replace(self, A=M.T @ self.A @ M, C=M.T @ self.C, p=M.T @ self.p, whitening=whitening)

    def _with(self, parts: list) -> Moments:
        """Other sums in the same coordinates."""
        A, C, p, z, mass, n = parts
        return Moments(A, C, p, z, mass, n, self.whitening)

    def _check_coordinates(self, other: Moments) -> None:
        one, two = self.whitening, other.whitening
        same = one is two if one is None or two is None else one.same(two)
        if not same:
            said = ["kernel values" if w is None else f"{w.rank} whitened coordinates" for w in (one, two)]
            raise ValueError(
                f"These sums have different coordinates ({said[0]} and {said[1]}), so they cannot be added or "
                "subtracted. Sums of models with the same centres, kernel, sigma and norm can: leastwise.merge() "
                "brings those to the same coordinates."
            )

    __rmul__ = __mul__

    @property
    def _parts(self) -> tuple:
        return self.A, self.C, self.p, self.z, self.mass, self.n


@dataclass(frozen=True)
class MomentSpectrum:
    """The ridge problem of some moments, decomposed: every ridge for the price of a product.

    In the coordinates of the moments the penalty is the identity, and ``A = V diag(g) V'``; with a bias A is centred
    first.

    Attributes
    ----------
    moments : Moments
    g : ndarray of shape (r,)
    V : ndarray of shape (r, r)
        The eigenvectors, in the coordinates of the moments.
    bias : bool
    """

    moments: Moments
    g: Array
    V: Array
    bias: bool

    @property
    def n_functions(self) -> int:
        """Number of basis functions, b."""
        whitening = self.moments.whitening
        return len(self.V) if whitening is None else whitening.size

    @property
    def jitter(self) -> float:
        """What was added to the penalty."""
        return 0.0 if self.moments.whitening is None else self.moments.whitening.jitter

    @cached_property
    def right(self) -> Array:
        """The right-hand side along the eigenvectors."""
        m = self.moments
        C = m.C - np.outer(m.p, m.z / m.mass) if self.bias else m.C
        return self.V.T @ C

    def coefficients(self, rho: float) -> tuple[Array, Array]:
        """Coefficients of the basis functions (b x c) and intercepts (c) at the ridge rho."""
        m = self.moments
        a = self.V @ (self.right / (self.g + rho)[:, None])
        b = (m.z - m.p @ a) / m.mass if self.bias else np.zeros(len(m.z))
        return a if m.whitening is None else m.whitening.unwhiten(a), b

    def coordinates(self, Phi: Array) -> Array:
        """Rows along the eigenvectors, about the mean row where there is a bias.

        Phi holds what the sums were made of: values of the pivots, or of all basis functions.
        """
        m = self.moments
        V = self.V if m.whitening is None else m.whitening.T.T @ self.V
        return Phi @ V - (m.p / m.mass @ self.V if self.bias else 0.0)

    def of_targets(self, C: Array, z: Array) -> MomentSpectrum:
        """The same rows with other targets, given by their sums."""
        return replace(self, moments=replace(self.moments, C=C, z=z))


def moment_spectrum(moments: Moments, bias: bool) -> MomentSpectrum:
    """Decompose."""
    m = moments
    A = m.A - np.outer(m.p, m.p / m.mass) if bias else m.A
    g, V = np.linalg.eigh((A + A.T) / 2)
    return MomentSpectrum(m, np.maximum(g, 0), V, bias)
