"""Dense decompositions: Cholesky factors, partial pivoted factors, and spectra of ridge problems.

**Cholesky.** Factors get jitter where needed, and one factor gives the solution of a ridge problem.

``pivoted_cholesky`` evaluates r columns of a positive semi-definite G and returns ``G ~ L L'`` with L of shape (n,
r). ``ridge_inverse(L, rho)`` then approximates ``(G + rho I)^-1``; in the span of L it is exact. It is the
preconditioner of the iterative solvers.

Pivots are drawn at random in proportion to the residual diagonal (Chen, Epperly, Tropp and Webber 2023), one block
at a time; pivots of a block that the others explain are dropped. The older rule takes the largest residual diagonal,
one at a time: for Gaussian kernels of 4,000 rows and r = 500 it took three times as long, and since it prefers
outliers, conjugate gradients then needed up to a quarter more iterations.

``L L'`` is the Nystroem approximation from the columns of the pivots. Uniformly drawn columns cost the same. On
5,000 rows of letters, digits and normal variables (r of 500 and 1,500, alpha of 1e-4 and 1e-6) they needed the same
number of iterations within a tenth where there were more than ten, and up to a quarter more on letters. Three times
the columns halved the iterations at best.

**Spectra.** One decomposition, then each ridge costs one product. Notation (docs/notation.md): a design Phi (n x b),
targets Z (n x c), a ridge rho. The Gram matrix is ``G = Phi Phi' = U diag(g) U'`` and the coefficients are

    theta(rho) = V diag(s / (g + rho)) U' Z,

with ``s = sqrt(g)`` and V the right singular vectors of Phi, or ``s = 1`` and ``V = U`` where the problem is
posed in the Gram matrix itself (a penalty on the function, one coefficient per row).

Spectra and their products use numpy's BLAS only. NumPy and SciPy bring one BLAS each, whose threads spin for a while
after every call: alternating between the two slows both down.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs, solve_triangular

Array = np.ndarray


@cache
def _lapack(name: str, dtype: np.dtype) -> Callable[..., Any]:
    """The LAPACK function for a type; to look it up takes as long as a small factorisation."""
    return get_lapack_funcs((name,), dtype=dtype)[0]


@dataclass(frozen=True)
class Cholesky:
    """``A + jitter I = L L'``.

    Attributes
    ----------
    L : ndarray of shape (n, n)
        The factor, lower triangular.
    jitter : float
        Added to the diagonal; 0 if not needed.
    """

    L: Array
    jitter: float

    def solve(self, B: Array) -> Array:
        """``(A + jitter I)^-1 B``."""
        return _lapack("potrs", np.result_type(self.L, B))(self.L, B, lower=1)[0]

    def inverse_factor(self, overwrite: bool = False) -> Array:
        """``L^-1``, lower triangular; with ``overwrite`` it replaces L, which cannot be used afterwards."""
        if len(self.L) <= SMALL_ROWS:
            return _triangular_inverse(self.L)
        return _lapack("trtri", self.L.dtype)(self.L, lower=1, overwrite_c=overwrite)[0]

    def whiten(self, Phi: Array) -> Array:
        """``Phi L'^-1``: the columns of Phi in coordinates where the penalty is the identity."""
        (trsm,) = get_blas_funcs(("trsm",), (self.L, Phi))
        return trsm(1.0, self.L, np.ascontiguousarray(Phi).T, lower=1).T  # rows in order, in the column order of BLAS

    def unwhiten(self, V: Array) -> Array:
        """``L'^-1 V``: coefficients from these coordinates."""
        return solve_triangular(self.L, V, lower=True, trans=1, check_finite=False)


#: Triangular matrices with up to this many rows are inverted by halves,
SMALL_ROWS = 600
#: of at most this many rows.
HALF_ROWS = 64


def _triangular_inverse(L: Array) -> Array:
    """``L^-1`` from the inverses of the two diagonal blocks: most of the work is products.

    LAPACK has blocks of columns instead. From 100 to 500 rows halves took .6 to .75 of its time, with 1,000 rows 1.3.
    """
    n, half = len(L), len(L) // 2
    if n <= HALF_ROWS:
        return _lapack("trtri", L.dtype)(L, lower=1)[0]
    M = np.zeros((n, n), dtype=L.dtype, order="F")
    M[:half, :half], M[half:, half:] = _triangular_inverse(L[:half, :half]), _triangular_inverse(L[half:, half:])
    np.matmul(M[half:, half:], -(L[half:, :half] @ M[:half, :half]), out=M[half:, :half])
    return M


def cholesky(A: Array, ridge: float = 0.0, jitter: float = 0.0, overwrite: bool = False) -> Cholesky:
    """Factor ``A + (ridge + jitter) I``; while the factorisation fails, jitter is raised tenfold.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        Symmetric, both triangles filled.
    ridge : float
        Part of the problem: added to the diagonal and not reported.
    jitter : float
        Initial jitter; 0 tries without jitter first.
    overwrite : bool
        Overwrite A with the factor if A is C-contiguous. Saves one n x n array.
    """
    potrf = _lapack("potrf", A.dtype)
    work = A if overwrite and A.flags.c_contiguous else np.array(A, order="C")
    diagonal = np.array(np.diagonal(A))
    info = np.finfo(A.dtype)
    unit = float(info.eps) * max(float(np.abs(diagonal).mean()), float(info.tiny))
    for _ in range(20):
        np.fill_diagonal(work, diagonal + A.dtype.type(ridge + jitter))
        # The transpose of a symmetric matrix is the same matrix in the column order that LAPACK needs.
        L, failed = potrf(work.T, lower=1, clean=0, overwrite_a=1)
        if not failed and np.isfinite(jitter + L[-1, -1]):
            return Cholesky(_lower(L), jitter)
        half = np.tril(work, -1)  # the triangle that a failed factorisation leaves unchanged
        np.add(half, half.T, out=work)
        jitter = 10 * jitter if jitter else 10 * unit
    raise np.linalg.LinAlgError("The matrix is not positive definite, even with a large jitter.")


def _lower(L: Array) -> Array:
    """Zeros above the diagonal, in place and by blocks of columns."""
    for j in range(0, L.shape[1], len(_TRIANGLE)):
        L[:j, j : j + len(_TRIANGLE)] = 0
        block = L[j : j + len(_TRIANGLE), j : j + len(_TRIANGLE)]
        block[_TRIANGLE[: len(block), : len(block)]] = 0
    return L


#: Mask of the entries above the diagonal of a block.
_TRIANGLE = ~np.tri(32, dtype=bool)


#: Number of entries that are converted to double precision at a time.
PART = 2**20


def solve_gram(K: Array, Z: Array, rho: float, bias: Array | None) -> tuple[Array, Array, float]:
    """Penalty on the function: A = (K + rho I)^-1 (Z - v b). K is overwritten.

    Returns
    -------
    A : ndarray of shape (n, c)
    b : ndarray of shape (c,)
        Intercepts; zeros without a bias column v.
    jitter : float
    """
    factor = cholesky(K, ridge=rho, overwrite=True)
    A, b = _with_intercept(factor.solve(_beside(Z, bias)), bias)
    return A, b, factor.jitter


def solve_square(K: Array, Z: Array, rho: float, bias: Array | None) -> tuple[Array, Array, float] | None:
    """Penalty on the coefficients, eq. (5): theta = (K^2 + rho I)^-1 K (Z - v b). K is not changed.

    None if the ridge is so small that squaring K would lose the digits of the solution; use the spectrum then.
    """
    G = K @ K.T  # the transpose lets BLAS use the symmetry
    if not _regular(G, rho):
        return None
    factor = cholesky(G, ridge=rho, overwrite=True)
    A, b = _with_intercept(factor.solve(_beside(Z, bias)), bias)
    return K @ A, b, factor.jitter


def _regular(G: Array, rho: float) -> bool:
    """True if a third of the digits survive the condition number of G + rho I."""
    eps = float(np.finfo(G.dtype).eps)
    return bool(eps * np.trace(G) <= eps ** (1 / 3) * rho)


def _beside(Z: Array, bias: Array | None) -> Array:
    return Z if bias is None else np.column_stack([Z, bias])


def _with_intercept(solved: Array, bias: Array | None) -> tuple[Array, Array]:
    """From M Z (and M v) to M (Z - v b), with b such that v' M (Z - v b) = 0."""
    if bias is None:
        return solved, np.zeros(solved.shape[1], dtype=solved.dtype)
    A, u = solved[:, :-1], solved[:, -1]
    b = (bias @ A) / (bias @ u)
    return A - np.outer(u, b), b


def solve_design(Phi: Array, Z: Array, rho: float, bias: Array | None) -> tuple[Array, Array] | None:
    """Any design with fewer columns than rows, eq. (8): theta = (Phi'Phi + rho I)^-1 Phi' (Z - v b).

    The normal equations and theta are in double precision, whatever the precision of Phi.

    None if the ridge is so small that forming Phi'Phi would lose the digits of the solution; use the spectrum then.
    """
    H, right = _products(Phi, _beside(Z, bias))
    if not _regular(H, rho):
        return None
    factor = cholesky(H, ridge=rho, overwrite=True)
    if bias is None:
        return factor.solve(right), np.zeros(Z.shape[1], dtype=Z.dtype)
    solved = factor.solve(right)
    A, u = solved[:, :-1], solved[:, -1]
    # b = v'PZ / v'Pv with P = I - Phi (Phi'Phi + rho I)^-1 Phi'
    Pv = bias - np.concatenate([Phi[part].astype(float, copy=False) @ u for part in _row_blocks(Phi)])
    b = (Pv @ Z) / (Pv @ bias)
    return A - np.outer(u, b), b


def _products(Phi: Array, B: Array) -> tuple[Array, Array]:
    """``Phi'Phi`` and ``Phi'B`` in double precision, without a double precision copy of Phi.

    An error of eps in Phi'Phi matters relative to the ridge alpha; one of eps in Phi relative to sqrt(alpha).
    """
    H, right = np.zeros((Phi.shape[1], Phi.shape[1])), np.zeros((Phi.shape[1], B.shape[1]))
    for part in _row_blocks(Phi):
        some = Phi[part].astype(float, copy=False)
        H += some.T @ some
        right += some.T @ B[part].astype(float, copy=False)
    return H, right


def _row_blocks(A: Array, always: bool = False) -> list[slice]:
    """Blocks of ``PART`` entries of A to convert to double precision; one block if A has it, unless ``always``."""
    whole = A.dtype == np.float64 and not always
    step = max(1, len(A) if whole else PART // max(A.shape[1], 1))
    return [slice(start, start + step) for start in range(0, len(A), step)]


#: Pivots drawn at a time.
BLOCK = 64
#: A pivot of a block is dropped if its residual diagonal is below this fraction of the block's largest diagonal.
WORTH = 1e-3


def pivoted_cholesky(
    diagonal: Array,
    columns: Callable[[Array], Array],
    rank: int,
    rng: np.random.Generator,
    tol: float = 0.0,
    block: int = BLOCK,
) -> tuple[Array, Array]:
    """Partial Cholesky factor ``G ~ L L'`` from some columns of G.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        The diagonal of G.
    columns : callable
        ``columns(index)`` is ``G[:, index]``.
    rank : int
        Maximum number of columns of L; fewer if ``tol`` or the rounding level is reached before.
    tol : float
        Stop when the trace of ``G - L L'`` is this fraction of the trace of G.
    block : int
        Pivots drawn at a time.

    Returns
    -------
    L : ndarray of shape (n, r)
    pivots : ndarray of int of shape (r,)
        ``L[pivots]`` is lower triangular.
    """
    left, n = np.maximum(diagonal, 0), len(diagonal)
    enough = max(tol, n * float(np.finfo(left.dtype).eps)) * float(left.sum())
    L = np.empty((n, min(rank, n)), dtype=left.dtype, order="F")
    pivots, r = np.empty(L.shape[1], dtype=int), 0
    while r < L.shape[1] and left.sum() > enough:
        drawn = _draw(left, min(block, L.shape[1] - r), rng)
        G = columns(drawn) - L[:, :r] @ L[drawn, :r].T
        F, kept = _thin(G[drawn])
        k = len(kept)
        if k == 0:  # the residual is rounding
            break
        new = solve_triangular(F, G[:, kept].T, lower=True, check_finite=False).T
        L[:, r : r + k], pivots[r : r + k] = new, drawn[kept]
        left = np.maximum(left - np.einsum("ij,ij->i", new, new), 0)
        left[drawn[kept]] = 0
        r += k
    return L[:, :r], pivots[:r]


def _draw(left: Array, size: int, rng: np.random.Generator) -> Array:
    """Draw distinct rows with probabilities proportional to the residual diagonal."""
    p = left.astype(float)
    return rng.choice(len(p), size=min(size, int(np.count_nonzero(p))), replace=False, p=p / p.sum())


def _thin(G: Array) -> tuple[Array, Array]:
    """Select pivots of a block by complete pivoting; return their Cholesky factor and indices."""
    (pstrf,) = get_lapack_funcs(("pstrf",), (G,))
    F, order, k, _ = pstrf(G, tol=WORTH * float(np.diagonal(G).max()), lower=1)
    return F[:k, :k], order[:k] - 1


#: Rows of a block whose Gram matrix is computed in single precision.
GRAM_ROWS = 2048


def single_suffices(L: Array, ridge: float) -> bool:
    """True if L is in single precision, and rounding of ``L'L`` is small compared with an added ridge."""
    return bool(L.dtype == np.float32 and 8 * np.finfo(np.float32).eps * float(np.linalg.norm(L)) ** 2 < ridge)


def inner_gram(L: Array, single: bool = False) -> Array:
    """``L'L`` in double precision; products of blocks of rows may be in single precision."""
    inside = np.zeros((L.shape[1], L.shape[1]))
    parts = [slice(a, a + GRAM_ROWS) for a in range(0, len(L), GRAM_ROWS)] if single else _row_blocks(L)
    for rows in parts:
        some = L[rows] if single else L[rows].astype(float, copy=False)
        inside += some.T @ some
    return inside


def ridge_inverse(L: Array, rho: float, gram: Array | None = None) -> Callable[[Array], Array]:
    """``V -> (L L' + rho I)^-1 V``, as ``(V - L (L'L + rho I)^-1 L'V) / rho``.

    One Cholesky factor of the r x r matrix L'L + rho I is computed, with jitter if rounding makes it indefinite; this
    weakens the preconditioner but does not change the solution. L may be in single precision: its rows are converted
    to double precision block by block. ``gram`` is ``inner_gram(L)``, if it is known; it is not changed.
    """
    parts, r = _row_blocks(L, always=True), L.shape[1]
    factor = cholesky(inner_gram(L, single_suffices(L, rho)) if gram is None else gram, ridge=rho) if r else None

    def inverse(V: Array) -> Array:
        if factor is None:
            return V / V.dtype.type(rho)
        # V'L, not L'V: with few columns BLAS takes half the time in that order.
        seen = sum((V[rows].T @ L[rows].astype(float) for rows in parts), np.zeros((V.shape[1], r)))
        coef = factor.solve(seen.T)
        rest = [V[rows] - L[rows].astype(float) @ coef for rows in parts]
        return (np.concatenate(rest) / rho).astype(V.dtype, copy=False)

    return inverse


# ---------------------------------------------------------- eigendecompositions


@dataclass(frozen=True)
class Spectrum:
    """A decomposed ridge problem.

    Attributes
    ----------
    U : ndarray of shape (n, k)
        Orthonormal directions in the space of the rows.
    g : ndarray of shape (k,)
        Eigenvalues of the Gram matrix, non-negative.
    V : ndarray of shape (b, k)
        Directions in the space of the coefficients.
    s : ndarray of shape (k,)
        Numerators of the coefficients.
    jitter : float
        Added to make the Gram matrix positive semi-definite.
    """

    U: Array
    g: Array
    V: Array
    s: Array
    jitter: float = 0.0

    @property
    def complete(self) -> bool:
        """True if U is square, so that it spans all rows."""
        return self.U.shape[0] == self.U.shape[1]

    def coefficients(self, rho: float, Z: Array, bias: Array | None = None) -> tuple[Array, Array]:
        """Coefficients (b x c) and intercepts (c) at the ridge rho; ``bias`` is the column of the intercept."""
        e, UZ = 1 / (self.g + Z.dtype.type(rho)), self.U.T @ Z
        b = np.zeros(Z.shape[1], dtype=Z.dtype)
        if bias is not None:
            # The intercept is the projection of the residual of Z onto that of the bias column:
            # b = v'PZ / v'Pv with P = I - U diag(g e) U' = rho U diag(e) U' + (I - UU'), both parts without
            # cancellation, since v'Pv is tiny with a small ridge.
            Uv = self.U.T @ bias
            out, inside = bias - self.U @ Uv, Z.dtype.type(rho) * e * Uv
            b = (inside @ UZ + out @ Z) / (inside @ Uv + out @ out)
            UZ = UZ - np.outer(Uv, b)
        return self.V @ ((self.s * e)[:, None] * UZ), b


def gram_spectrum(K: Array) -> Spectrum:
    """Penalty on the function: G = K."""
    g, U, jitter = _psd_eigh(K)
    return Spectrum(U, g, U, np.ones_like(g), jitter)


def square_spectrum(K: Array) -> Spectrum:
    """Penalty on the coefficients, as many basis functions as rows: Phi = K, symmetric, so G = K^2."""
    s, U = np.linalg.eigh(K)
    return Spectrum(U, s**2, U, s)


def design_spectrum(Phi: Array) -> Spectrum:
    """Any design, with the ridge on theta' theta.

    The singular values of Phi are used, not the eigenvalues of Phi'Phi: squaring would lose the digits that
    leave-one-out needs with a small ridge. After QR, the small factor is decomposed in double precision.
    """
    if Phi.shape[0] <= 2 * Phi.shape[1]:
        U, s, Vt = np.linalg.svd(Phi, full_matrices=False)
        return Spectrum(U, s**2, Vt.T, s)
    Q, R = np.linalg.qr(Phi)
    U, s, Vt = np.linalg.svd(R.astype(float, copy=False), full_matrices=False)
    U, g, V, s = (A.astype(Phi.dtype, copy=False) for A in (U, s**2, Vt.T, s))
    return Spectrum(Q @ U, g, V, s)


def _psd_eigh(K: Array) -> tuple[Array, Array, float]:
    """Eigenvalues, shifted so that none is negative, eigenvectors, and the shift (0 within rounding)."""
    g, U = np.linalg.eigh(K)
    rounding = len(g) * np.finfo(K.dtype).eps * max(abs(g[-1]), abs(g[0]))
    jitter = float(-g[0]) if g[0] < -rounding else 0.0
    return np.maximum(g + K.dtype.type(jitter), 0), U, jitter
