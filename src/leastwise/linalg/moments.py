r"""Moments: sums over rows that determine a ridge problem of b basis functions, in whitened coordinates.

With a design Phi (n x b), targets Z (n x c) and weights w the solution

    theta = (Phi'W Phi + rho R)^-1 Phi'W (Z - 1 beta')

depends on the rows through sums only. Sums can be added, so that rows may come in blocks, from several files or
machines, and rows that were added can be subtracted again. Memory is b x b, whatever the number of rows.

Sums of kernel values would lose too many digits: the system is solved in coordinates in which R, the kernel between
the centers, is the identity, and the transformation of the sums multiplies their rounding errors by the condition
number of R. Rows are therefore summed in the coordinates of a ``Whitening`` of R. With a rounding error of eps in a
row and a ridge of alpha, scores have an error of about eps / alpha. With the penalty on the coefficients R is the
identity, and kernel values are summed directly.

Leave-one-out needs the held-out row and the sums only, if the basis does not change:

    f_i(without i) = (f_i - h_i z_i) / (1 - h_i),     h_i = w_i phi_i' (Phi'W Phi + rho R)^-1 phi_i   (+ bias)

**Whitening.** The penalty :math:`\theta' R \theta`, with the kernel R between the centers, is often close to
singular: neighbouring centers are almost the same function. Sums of products of kernel values then lose all digits,
since :math:`R^{-1}` multiplies their rounding errors by the condition number of R. Sums in whitened coordinates do
not.

A Cholesky factor with complete pivoting selects centers P with ``R[P, P] = L L'`` such that every other center is a
combination of these up to rounding. With ``T = L^-1``,

    psi(x) = T k(x, P),     theta[P] = T' a,     theta' R theta = a' a,     |psi(x)|^2 <= k(x, x).

The rank depends on R only, so that these coordinates can be used for every ridge. An error of eps in a kernel value
becomes one of about ``eps / sqrt(d_j)`` in coordinate j, whose size is about ``sqrt(d_j)``, with d_j its pivot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

from leastwise.linalg.decompositions import cholesky
from leastwise.utils.arrays import get_namespace, is_numpy, numbers_like, to_namespace, to_numpy, widest

Array = np.ndarray

# --------------------------------------------------------- whitened coordinates


#: Smallest pivot in units of the number of centers times rounding. At 1 the last pivots are half rounding
#: themselves, and scores of rows far from all centers changed by up to 1e-4 with the last digit of the kernel; at 10
#: by 1e-6, with about the same error compared with fifty digits.
PIVOT = 10
#: A matrix is indefinite if the residual exceeds this multiple of the tolerance when no pivot is positive.
INDEFINITE = 1e3
#: Jitter, in units of rounding.
JITTER = 1e3


@dataclass(frozen=True)
class Whitening:
    """Coordinates of b basis functions with ``psi = T phi[pivots]``.

    Attributes
    ----------
    T : ndarray of shape (r, r)
        The inverse of the Cholesky factor, lower triangular, in double precision.
    pivots : ndarray of int of shape (r,)
        Basis functions that span all others, whose coefficients are zero.
    size : int
        Number of basis functions, b.
    jitter : float
        Added to the diagonal; 0 unless the matrix has negative eigenvalues.
    """

    T: Array
    pivots: Array
    size: int
    jitter: float = 0.0

    @property
    def rank(self) -> int:
        """Number of coordinates."""
        return len(self.pivots)

    def whiten(self, Phi: Any) -> Any:
        """Whitened rows (n x r) from the values of the pivots, ``Phi[:, pivots]``, which may be overwritten.

        Arrays of another library stay in that library.
        """
        if not is_numpy(Phi):
            return Phi @ to_namespace(self.T, Phi).T
        (trmm,) = get_blas_funcs(("trmm",), (self.T,))
        # BLAS works in column order: transposes of C-contiguous arrays are passed without a copy.
        rows = np.ascontiguousarray(Phi, dtype=float).T
        return trmm(1.0, np.ascontiguousarray(self.T).T, rows, lower=0, trans_a=1, overwrite_b=1).T

    def columns(self, Phi: Any) -> Any:
        """A copy of ``Phi[:, pivots]``."""
        if not is_numpy(Phi):
            return get_namespace(Phi).take(Phi, numbers_like(self.pivots, Phi), axis=1)
        return np.take(Phi, self.pivots, axis=1)

    def unwhiten(self, V: Array) -> Array:
        """Coefficients (b x c) of the basis functions from those in whitened coordinates (r x c)."""
        theta = np.zeros((self.size, V.shape[1]))
        theta[self.pivots] = self.T.T @ V
        return theta

    def same(self, other: Whitening) -> bool:
        """True if both are the same coordinates up to rounding."""
        if self is other:
            return True
        return (
            self.size == other.size
            and np.array_equal(self.pivots, other.pivots)
            and bool(np.allclose(self.T, other.T, rtol=1e-4, atol=1e-6 * np.abs(self.T).max()))
        )


def whitening(R: Array) -> Whitening:
    """Coordinates for the penalty R, which is positive semi-definite up to the rounding of its type.

    If R has negative eigenvalues, a multiple of the identity is added and reported as jitter.
    """
    eps, R = float(np.finfo(R.dtype).eps), R.astype(float, copy=False)
    tol = PIVOT * len(R) * eps * float(np.abs(np.diagonal(R)).max())
    (pstrf, trtri) = get_lapack_funcs(("pstrf", "trtri"), (R,))
    F, order, rank, _ = pstrf(R, tol=tol, lower=1)
    if rank:
        pivots = order[:rank] - 1
        T = np.tril(trtri(np.asfortranarray(np.tril(F[:rank, :rank])), lower=1)[0])
        seen = R[:, pivots] @ T.T
        if np.abs(R - seen @ seen.T).max() <= INDEFINITE * tol:
            return Whitening(np.ascontiguousarray(T), pivots.astype(int), len(R))
    return _jittered(R, eps)


def full_whitening(R: Array) -> Whitening:
    """Coordinates in which every basis function has a coefficient, for the penalty R plus jitter.

    Leave-one-out deletes the basis functions of rows and therefore needs all of them, including those that are almost
    combinations of others.
    """
    return _jittered(R.astype(float, copy=False), float(np.finfo(R.dtype).eps))


def _jittered(R: Array, eps: float) -> Whitening:
    height = float(np.abs(np.diagonal(R)).mean()) or float(np.finfo(float).tiny)
    factor = cholesky(R, jitter=JITTER * eps * height)
    return Whitening(np.ascontiguousarray(factor.inverse_factor()), np.arange(len(R)), len(R), factor.jitter)


# --------------------------------------------------------------- sums over rows


@dataclass(frozen=True)
class Moments:
    """Moments of rows.

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
        Coordinates in which the penalty on the function is the identity; None for kernel values, with the penalty on
        the coefficients. Only moments with the same coordinates can be added.

    Notes
    -----
    Moments are not anonymous: those of one row reveal the row, and so does the difference of two moments that differ
    by it. Moments of fewer rows than basis functions reveal the kernel values of all rows up to a rotation.
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
        """Moments of no rows, for b basis functions."""
        r = b if whitening is None else whitening.rank
        return Moments(np.zeros((r, r)), np.zeros((r, c)), np.zeros(r), np.zeros(c), 0.0, 0, whitening)

    def cleared(self) -> Moments:
        """Moments of no rows, in the same coordinates."""
        r, c = self.C.shape
        return Moments.zero(r, c, self.whitening)

    @staticmethod
    def of(Phi: Array, Z: Array, w: Array | None = None, whitening: Whitening | None = None) -> Moments:
        """Moments of some rows, in double precision.

        Phi contains the values of the pivots of ``whitening``, or of all basis functions without it; with
        ``whitening`` it may be overwritten. A design of another array library is summed there, in double precision
        if its device supports it; the moments are numpy arrays.
        """
        if not is_numpy(Phi):
            return Moments._of_there(Phi, Z, w, whitening)
        Phi, Z = Phi.astype(float, copy=False), Z.astype(float, copy=False)
        Phi = Phi if whitening is None else whitening.whiten(Phi)
        if w is None:
            return Moments(Phi.T @ Phi, Phi.T @ Z, Phi.sum(axis=0), Z.sum(axis=0), float(len(Z)), len(Z), whitening)
        w = w.astype(float, copy=False)
        root = np.sqrt(w)[:, None]
        scaled = root * Phi  # BLAS computes a product with its own transpose at half the cost
        sums = scaled.T @ scaled, scaled.T @ (root * Z), Phi.T @ w, Z.T @ w
        return Moments(*sums, float(w.sum()), len(Z), whitening)

    @staticmethod
    def _of_there(Phi: Any, Z: Any, w: Array | None, whitening: Whitening | None) -> Moments:
        xp, Phi = get_namespace(Phi), widest(Phi)
        Phi = Phi if whitening is None else whitening.whiten(Phi)
        w = np.ones(Phi.shape[0]) if w is None else w
        mass, weight, Z = float(np.sum(w, dtype=float)), to_namespace(w, Phi), widest(to_namespace(Z, Phi))
        scaled = Phi if np.all(w == 1) else xp.sqrt(weight)[:, None] * Phi
        sums = scaled.T @ scaled, Phi.T @ (weight[:, None] * Z), Phi.T @ weight, Z.T @ weight
        A, C, p, z = (to_numpy(part).astype(float) for part in sums)
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
        """Moments of the same rows with weights multiplied by a number."""
        *sums, n = self._parts
        return self._with([*(factor * a for a in sums), n])

    def least_eigenvalue(self, unit: float, classes: bool) -> float:
        """Smallest eigenvalue of the products of all columns, which is 0 or more for any rows with weights above 0.

        The columns are those of Phi and a constant, or, with ``classes``, the indicators of the classes in Z, which
        add up to the constant. These columns are multiplied by ``unit``.
        """
        B, z = (self.C, self.z) if classes else (self.p[:, None], np.array([self.mass]))
        G = np.block([[self.A, unit * B], [unit * B.T, unit**2 * np.diag(z)]])
        return float(np.linalg.eigvalsh((G + G.T) / 2)[0])

    def moved(self, R: Array, whitening: Whitening) -> Moments:
        """The same moments in other coordinates; R is the kernel between the centers.

        Both are orthonormal bases of almost the same space, so that the change is a rotation.
        """
        own = self.whitening
        if own is None:
            raise ValueError(
                "These moments are sums of kernel values, which cannot be transformed to other coordinates."
            )
        M = own.T @ R[np.ix_(own.pivots, whitening.pivots)] @ whitening.T.T
        return replace(self, A=M.T @ self.A @ M, C=M.T @ self.C, p=M.T @ self.p, whitening=whitening)

    def _with(self, parts: list) -> Moments:
        """Other moments in the same coordinates."""
        A, C, p, z, mass, n = parts
        return Moments(A, C, p, z, mass, n, self.whitening)

    def _check_coordinates(self, other: Moments) -> None:
        one, two = self.whitening, other.whitening
        same = one is two if one is None or two is None else one.same(two)
        if not same:
            said = ["kernel values" if w is None else f"{w.rank} whitened coordinates" for w in (one, two)]
            raise ValueError(
                f"The moments have different coordinates ({said[0]} and {said[1]}) and cannot be added or "
                "subtracted. leastwise.merge() transforms those of models with the same centers, kernel, sigma and "
                "norm to common coordinates."
            )

    __rmul__ = __mul__

    @property
    def _parts(self) -> tuple:
        return self.A, self.C, self.p, self.z, self.mass, self.n


@dataclass(frozen=True)
class MomentSpectrum:
    """The ridge problem of some moments, decomposed: each ridge then costs one product.

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
        """Added to the diagonal of the penalty."""
        return 0.0 if self.moments.whitening is None else self.moments.whitening.jitter

    @cached_property
    def right(self) -> Array:
        """The right-hand side in the eigenbasis."""
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
        """Rows in the eigenbasis, minus the mean row if there is a bias.

        Phi contains the values of the pivots, or of all basis functions, as for the moments.
        """
        m = self.moments
        V = self.V if m.whitening is None else m.whitening.T.T @ self.V
        return Phi @ V - (m.p / m.mass @ self.V if self.bias else 0.0)

    def of_targets(self, C: Array, z: Array) -> MomentSpectrum:
        """The same rows with other targets, given by their moments."""
        return replace(self, moments=replace(self.moments, C=C, z=z))


def moment_spectrum(moments: Moments, bias: bool) -> MomentSpectrum:
    """Eigendecomposition of the moments."""
    m = moments
    A = m.A - np.outer(m.p, m.p / m.mass) if bias else m.A
    g, V = np.linalg.eigh((A + A.T) / 2)
    return MomentSpectrum(m, np.maximum(g, 0), V, bias)
