"""What all tasks share: the sums over tasks, the system of the basis functions, and its solution."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt

import numpy as np
from scipy.linalg import solve_triangular

from leastwise.linalg.arrow.batches import Batch, turn
from leastwise.linalg.cholesky import Cholesky, cholesky

Array = np.ndarray


@dataclass
class Sums:
    """``S = Phi' Q^-1 Phi``, ``R = Phi' Q^-1 B`` and ``C = B' Q^-1 B``, with B = [Z, v], of the tasks so far."""

    S: Array
    R: Array
    C: Array
    dtype: np.dtype
    #: Whether products kept the digits of all tasks so far.
    regular: bool = True

    @classmethod
    def zeros(cls, b: int, c: int, dtype: np.dtype) -> Sums:
        """Of no task; in double precision whatever that of the tasks, as there may be many to come."""
        return cls(np.zeros((b, b)), np.zeros((b, c)), np.zeros((c, c)), dtype)

    def __sizeof__(self) -> int:  # what engines that move it go by
        return self.S.nbytes + self.R.nbytes + self.C.nbytes

    def __add__(self, other: Sums) -> Sums:
        """Of the tasks of both."""
        regular = self.regular and other.regular
        return Sums(self.S + other.S, self.R + other.R, self.C + other.C, self.dtype, regular)

    def add(self, S: Array, R: Array, C: Array) -> None:
        """Some more tasks."""
        self.S += S
        self.R += R
        self.C += C

    def add_rows(self, W: Array, Y: Array) -> None:
        """Some more tasks, from ``W = Q^-1/2 Phi`` and ``Y = Q^-1/2 B``."""
        W, Y = (A.reshape(-1, A.shape[-1]).astype(float, copy=False) for A in (W, Y))
        self.add(W.T @ W, W.T @ Y, Y.T @ Y)  # BLAS uses the symmetry of the first

    def keep_digits(self, sharing: float) -> bool:
        """Whether products suffice for the shared part."""
        return self.regular and keeps_digits(sharing * float(np.trace(self.S)), 1.0, self.S.dtype)

    def system(self, sharing: float, bias: bool) -> System:
        """The shared part."""
        b, q = len(self.S), sqrt(sharing)
        N = np.block([[sharing * self.S + np.eye(b), q * self.R[:, -1:]], [q * self.R[:, -1:].T, self.C[-1:, -1:]]])
        right = np.vstack([q * self.R[:, :-1], self.C[-1:, :-1]])
        p = b + bias
        try:  # numpy's, as all that goes before and after
            factor, theta = Cholesky(np.linalg.cholesky(N[:p, :p]), 0.0), np.linalg.solve(N[:p, :p], right[:p])
        except np.linalg.LinAlgError:
            factor = cholesky(N[:p, :p].copy())
            theta = factor.solve(right[:p])
        return System(factor, theta, sharing, bias, True, self.dtype)


@dataclass(frozen=True)
class System:
    """The shared system ``A = L L'`` and its solution.

    Attributes
    ----------
    factor : Cholesky
    theta : ndarray of shape (b, c), or (b + 1, c) with an intercept
    sharing : float
    bias : bool
    regular : bool
        Whether products kept enough digits; otherwise singular values and QR took their place.
    dtype : dtype
        That of the tasks.
    """

    factor: Cholesky
    theta: Array
    sharing: float
    bias: bool
    regular: bool
    dtype: np.dtype

    @property
    def shared(self) -> Array:
        """``beta_0`` (b x c)."""
        return (sqrt(self.sharing) * (self.theta[:-1] if self.bias else self.theta)).astype(self.dtype)

    @property
    def intercept(self) -> Array:
        """One for each column of Z; zeros without."""
        return (self.theta[-1] if self.bias else np.zeros(self.theta.shape[1])).astype(self.dtype)


def keeps_digits(size: float, rho: float, dtype: np.dtype) -> bool:
    """Whether a third of the digits survive where a matrix of this trace meets the ridge rho."""
    eps = float(np.finfo(dtype).eps)
    return eps * size <= eps ** (1 / 3) * rho


@dataclass(frozen=True)
class Factors:
    """Decomposed tasks of like sizes: ``Phi_t = U diag(s) Vt``.

    Attributes
    ----------
    tasks : ndarray of int of shape (k,)
        Their numbers.
    rows : ndarray of int of shape (k, m)
        Their rows, -1 in the fill.
    U, s, Vt : ndarrays of shapes (k, m, r), (k, r), (k, r, b)
        With r = min(m, b).
    UB : ndarray of shape (k, r, c + 1)
        U'B, with B = [Z, v].
    outside : ndarray of shape (k, m, c + 1), or None where r = m
        B - U U'B.
    dtype : dtype
        That of the tasks; the factors are in double precision.
    """

    tasks: Array
    rows: Array
    U: Array
    s: Array
    Vt: Array
    UB: Array
    outside: Array | None
    dtype: np.dtype

    @classmethod
    def of(cls, batch: Batch, tasks: Array, rows: Array) -> Factors:
        """Of a batch; its tasks and rows may have other numbers elsewhere."""
        Phi, B = batch.double
        U, s, Vt = svd(Phi)
        UB = turn(U) @ B
        return cls(tasks, rows, U, s, Vt, UB, None if U.shape[1] == U.shape[2] else B - U @ UB, batch.Phi.dtype)

    def inverse(self, own: Array, rho: float) -> Array:
        """``1 / (own_t s^2 + rho)``, the eigenvalues of Q_t^-1, with own of all tasks."""
        return 1 / (own[self.tasks, None].astype(self.s.dtype) * self.s**2 + rho)


def svd(Phi: Array) -> tuple[Array, Array, Array]:
    """Thin singular value decompositions, by way of QR where there are many rows."""
    if Phi.shape[1] <= 2 * Phi.shape[2]:
        return np.linalg.svd(Phi, full_matrices=False)
    Q, R = np.linalg.qr(Phi)
    U, s, Vt = np.linalg.svd(R, full_matrices=False)
    return Q @ U, s, Vt


def by_qr(factors: Iterable[tuple[Factors, Array]], sharing: float, rho: float, bias: bool) -> System:
    """The shared part from the triangle of the rows ``Q^-1/2 [J, Z]`` below those of the ridge."""
    T = np.empty((0, 0))
    for f, own in factors:
        b, rows = f.Vt.shape[2], _reduced_rows(f, own, sharing, rho, bias)
        T = T if T.size else np.eye(b, rows.shape[1], dtype=rows.dtype)
        T = np.asarray(np.linalg.qr(np.vstack([T, rows]), mode="r"))
    return _from_triangle(T, b, sharing, bias, f.dtype)


def _from_triangle(T: Array, b: int, sharing: float, bias: bool, dtype: np.dtype) -> System:
    p = b + bias
    theta = solve_triangular(T[:p, :p], T[:p, p:])
    return System(Cholesky(T[:p, :p].T, 0.0), theta, sharing, bias, False, dtype)


@dataclass(frozen=True)
class Triangle:
    """The triangle of the rows ``Q^-1/2 [J, Z]`` of some tasks; triangles of parts of the tasks add."""

    T: Array

    @classmethod
    def of(
        cls, factors: Iterable[tuple[Factors, Array]], sharing: float, rho: float, bias: bool, width: int
    ) -> Triangle:
        """Of some tasks, none of them if need be; ``width`` is the number of columns of [J, Z]."""
        found = cls(np.empty((0, width)))
        for f, own in factors:
            found = found + cls(_reduced_rows(f, own, sharing, rho, bias))
        return found

    def __sizeof__(self) -> int:
        return self.T.nbytes

    def __add__(self, other: Triangle) -> Triangle:
        return Triangle(np.asarray(np.linalg.qr(np.vstack([self.T, other.T]), mode="r")))

    def system(self, b: int, sharing: float, bias: bool, dtype: np.dtype) -> System:
        """The shared part, with the ridge."""
        ridge = Triangle(np.eye(b, self.T.shape[1]))
        return _from_triangle((ridge + self).T, b, sharing, bias, dtype)


def _reduced_rows(f: Factors, own: Array, sharing: float, rho: float, bias: bool) -> Array:
    """``Q^-1/2 [J, Z]`` in the coordinates U, and what is outside of U below."""
    root, (k, r, b), c = np.sqrt(f.inverse(own, rho))[..., None], f.Vt.shape, f.UB.shape[2] - 1
    W, Y = (sqrt(sharing) * f.s[..., None] * root * f.Vt).reshape(k * r, b), (root * f.UB).reshape(k * r, c + 1)
    if f.outside is not None:  # nothing of Phi there
        X = f.outside.reshape(-1, c + 1) / sqrt(rho)
        W, Y = np.vstack([W, np.zeros((len(X), b), X.dtype)]), np.vstack([Y, X])
    return np.hstack([W, Y[:, c:], Y[:, :c]] if bias else [W, Y[:, :c]])
