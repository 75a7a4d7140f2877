r"""Many tasks over the same b basis functions: a block-arrowhead system, eliminated task by task.

The scores of task t are ``Phi (beta_0 + beta_t)`` plus an intercept times v. With ``own_t >= 0`` the Gram matrix is

    H = sharing Phi Phi' + blockdiag(Q_t),     Q_t = rho I + own_t Phi_t Phi_t'.

Let ``J = [sqrt(sharing) Phi, v]`` be the columns that all tasks share (v, the square roots of the weights, only with
an intercept). The shared part is a ridge problem of b + 1 unknowns without penalty on the intercept:

    A theta = J' Q^-1 Z,     A = J' Q^-1 J + diag(I, 0),     beta_0 = sqrt(sharing) theta,  b = theta's last row,
    beta_t = own_t Phi_t' Q_t^-1 (Z_t - Phi_t beta_0 - v_t b).

A and its right-hand side are sums over the tasks, which ``solve_arrow`` accumulates. Small tasks are processed in
batches of similar sizes, padded with rows of zeros, which change nothing. With ``Q_t = L L'`` and ``W = L^-1 Phi_t``
the sum of W'W over a batch is one product. ``decompose`` computes ``Phi_t = U diag(s) V'`` instead, for any sharing,
own and rho.

Normal equations lose digits: errors are at most about ``eps own_t |Phi_t|^2 / rho`` and ``eps sharing tr(S)``. If
less than a third of the digits would remain, the tasks are reduced by singular value decompositions and the shared
part by QR, in six times the time. ``decompose`` always uses singular values: at rho = 1e-8 of the largest
eigenvalue, leave-one-out had an error of 6e-13, and of 1e-9 from the eigenvalues of ``Phi_t Phi_t'``, which take a
third of the time.

Products and factorisations use numpy's BLAS only (see ``spectrum``), which does not keep Python's lock: chunks of
tasks are factored by several threads at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import sqrt

import numpy as np
from scipy.linalg import solve_triangular

from leastwise.linalg.arrow_batches import Batch, Chunk, Source, batches, take, turn
from leastwise.linalg.decompositions import Cholesky, cholesky

Array = np.ndarray


@dataclass
class Sums:
    """``S = Phi' Q^-1 Phi``, ``R = Phi' Q^-1 B`` and ``C = B' Q^-1 B``, with B = [Z, v], summed over tasks."""

    S: Array
    R: Array
    C: Array
    dtype: np.dtype
    #: True if the normal equations of all tasks so far kept enough digits.
    regular: bool = True

    @classmethod
    def zeros(cls, b: int, c: int, dtype: np.dtype) -> Sums:
        """Empty sums, in double precision whatever the dtype of the tasks."""
        return cls(np.zeros((b, b)), np.zeros((b, c)), np.zeros((c, c)), dtype)

    def __sizeof__(self) -> int:  # used by schedulers that move it between workers
        return self.S.nbytes + self.R.nbytes + self.C.nbytes

    def __add__(self, other: Sums) -> Sums:
        """Sums over the tasks of both."""
        regular = self.regular and other.regular
        return Sums(self.S + other.S, self.R + other.R, self.C + other.C, self.dtype, regular)

    def add(self, S: Array, R: Array, C: Array) -> None:
        """Add tasks."""
        self.S += S
        self.R += R
        self.C += C

    def add_rows(self, W: Array, Y: Array) -> None:
        """Add tasks given by ``W = Q^-1/2 Phi`` and ``Y = Q^-1/2 B``."""
        W, Y = (A.reshape(-1, A.shape[-1]).astype(float, copy=False) for A in (W, Y))
        self.add(W.T @ W, W.T @ Y, Y.T @ Y)  # BLAS exploits the symmetry of the first

    def keep_digits(self, sharing: float) -> bool:
        """True if the normal equations of the shared part keep enough digits."""
        return self.regular and keeps_digits(sharing * float(np.trace(self.S)), 1.0, self.S.dtype)

    def system(self, sharing: float, bias: bool) -> System:
        """Factor and solve the shared system."""
        b, q = len(self.S), sqrt(sharing)
        N = np.block([[sharing * self.S + np.eye(b), q * self.R[:, -1:]], [q * self.R[:, -1:].T, self.C[-1:, -1:]]])
        right = np.vstack([q * self.R[:, :-1], self.C[-1:, :-1]])
        p = b + bias
        try:  # numpy's BLAS, as before and after
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
        True if the normal equations kept enough digits; otherwise singular values and QR were used.
    dtype : dtype
        Of the tasks.
    """

    factor: Cholesky
    theta: Array
    sharing: float
    bias: bool
    regular: bool
    dtype: np.dtype

    @cached_property
    def inverse(self) -> Array:
        """``L^-1``, by numpy like all other calls here."""
        return np.linalg.inv(self.factor.L)

    @property
    def shared(self) -> Array:
        """``beta_0`` (b x c)."""
        return (sqrt(self.sharing) * (self.theta[:-1] if self.bias else self.theta)).astype(self.dtype)

    @property
    def intercept(self) -> Array:
        """One for each column of Z; zeros without intercepts."""
        return (self.theta[-1] if self.bias else np.zeros(self.theta.shape[1])).astype(self.dtype)


def keeps_digits(size: float, rho: float, dtype: np.dtype) -> bool:
    """True if a third of the digits survive in a matrix of trace ``size`` with the ridge rho."""
    eps = float(np.finfo(dtype).eps)
    return eps * size <= eps ** (1 / 3) * rho


@dataclass(frozen=True)
class Factors:
    """Decomposed tasks of similar sizes: ``Phi_t = U diag(s) Vt``.

    Attributes
    ----------
    tasks : ndarray of int of shape (k,)
        Their indices.
    rows : ndarray of int of shape (k, m)
        Their rows, -1 for padding.
    U, s, Vt : ndarrays of shapes (k, m, r), (k, r), (k, r, b)
        With r = min(m, b).
    UB : ndarray of shape (k, r, c + 1)
        U'B, with B = [Z, v].
    outside : ndarray of shape (k, m, c + 1), or None where r = m
        B - U U'B.
    dtype : dtype
        Of the tasks; the factors are in double precision.
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
        """Decompose a batch; ``tasks`` and ``rows`` are its indices in the whole problem."""
        Phi, B = batch.double
        U, s, Vt = svd(Phi)
        UB = turn(U) @ B
        return cls(tasks, rows, U, s, Vt, UB, None if U.shape[1] == U.shape[2] else B - U @ UB, batch.B.dtype)

    def inverse(self, own: Array, rho: float) -> Array:
        """``1 / (own_t s^2 + rho)``, the eigenvalues of Q_t^-1, with own of all tasks."""
        return 1 / (own[self.tasks, None].astype(self.s.dtype) * self.s**2 + rho)


def svd(Phi: Array) -> tuple[Array, Array, Array]:
    """Thin singular value decompositions, after QR if there are many rows."""
    if Phi.shape[1] <= 2 * Phi.shape[2]:
        return np.linalg.svd(Phi, full_matrices=False)
    Q, R = np.linalg.qr(Phi)
    U, s, Vt = np.linalg.svd(R, full_matrices=False)
    return Q @ U, s, Vt


def by_qr(factors: Iterable[tuple[Factors, Array]], sharing: float, rho: float, bias: bool) -> System:
    """Solve the shared system by QR of the rows ``Q^-1/2 [J, Z]`` below those of the ridge."""
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
    """Triangular factor R of the rows ``Q^-1/2 [J, Z]`` of some tasks; factors of parts of the tasks can be added."""

    T: Array

    @classmethod
    def of(
        cls, factors: Iterable[tuple[Factors, Array]], sharing: float, rho: float, bias: bool, width: int
    ) -> Triangle:
        """Compute the factor of some tasks, possibly none; ``width`` is the number of columns of [J, Z]."""
        found = cls(np.empty((0, width)))
        for f, own in factors:
            found = found + cls(_reduced_rows(f, own, sharing, rho, bias))
        return found

    def __sizeof__(self) -> int:
        return self.T.nbytes

    def __add__(self, other: Triangle) -> Triangle:
        return Triangle(np.asarray(np.linalg.qr(np.vstack([self.T, other.T]), mode="r")))

    def system(self, b: int, sharing: float, bias: bool, dtype: np.dtype) -> System:
        """Solve the shared system, with the ridge."""
        ridge = Triangle(np.eye(b, self.T.shape[1]))
        return _from_triangle((ridge + self).T, b, sharing, bias, dtype)


def _reduced_rows(f: Factors, own: Array, sharing: float, rho: float, bias: bool) -> Array:
    """``Q^-1/2 [J, Z]`` in the coordinates U, followed by the part outside of the span of U."""
    root, (k, r, b), c = np.sqrt(f.inverse(own, rho))[..., None], f.Vt.shape, f.UB.shape[2] - 1
    W, Y = (sqrt(sharing) * f.s[..., None] * root * f.Vt).reshape(k * r, b), (root * f.UB).reshape(k * r, c + 1)
    if f.outside is not None:  # Phi is zero there
        X = f.outside.reshape(-1, c + 1) / sqrt(rho)
        W, Y = np.vstack([W, np.zeros((len(X), b), X.dtype)]), np.vstack([Y, X])
    return np.hstack([W, Y[:, c:], Y[:, :c]] if bias else [W, Y[:, :c]])


@dataclass(frozen=True)
class Decomposed:
    """All tasks of a problem, decomposed: any sharing, own and rho then needs scaling and products only."""

    factors: list[Factors]

    def system(self, sharing: float, own: Array, rho: float, bias: bool = True) -> System:
        """Solve the shared system at these parameters; ``own`` has one entry for each task."""
        c = self.factors[0].UB.shape[2]
        sums = Sums.zeros(self.factors[0].Vt.shape[2], c, self.factors[0].dtype)
        for f in self.factors:
            root = np.sqrt(f.inverse(own, rho))[..., None]
            sums.add_rows((f.s[..., None] * root) * f.Vt, root * f.UB)
            if f.outside is not None:
                X = f.outside.reshape(-1, c)
                sums.C += X.T @ X / rho
        if sums.keep_digits(sharing):
            return sums.system(sharing, bias)
        return by_qr(((f, own) for f in self.factors), sharing, rho, bias)


def decompose(chunks: Iterable[Chunk]) -> Decomposed:
    """Decompose the tasks of some chunks; ``own`` of the chunks is ignored."""
    factors, n, k = [], 0, 0
    for chunk in chunks:
        for batch in batches(chunk):
            factors.append(Factors.of(batch, batch.tasks + k, np.where(batch.rows < 0, -1, batch.rows + n)))
        n, k = n + len(chunk.design), k + len(chunk.own)
    return Decomposed(factors)


@dataclass(frozen=True)
class Arrow:
    """A solution: the shared part, from which the parts of the tasks are computed.

    Attributes
    ----------
    shared : ndarray of shape (b, c)
    intercept : ndarray of shape (c,)
    rho : float
    regular : bool
        See ``System``.
    jitter : float
        Added to the diagonal of the shared system.
    """

    shared: Array
    intercept: Array
    rho: float
    regular: bool
    jitter: float

    @classmethod
    def of(cls, system: System, rho: float) -> Arrow:
        """From the solved shared system."""
        return cls(system.shared, system.intercept, float(rho), system.regular, system.factor.jitter)

    def parts(self, chunk: Chunk, factors: list[TaskFactors] | None = None) -> Array:
        """``beta_t`` of the tasks of a chunk (k x b x c), from their factors by ``factor_chunk`` at the same ridge.

        ``beta_t = own_t T D_t' Q_t^-1 X_t`` with a design D and ``Phi = D T'``: rows are not whitened.
        """
        if not self.regular:
            return self._singular_parts(chunk)
        factors, whitening, found = factors or factor_chunk(chunk, self.rho), chunk.whitening, self._zeros(chunk)
        shared = self.shared.astype(float) if whitening is None else whitening.T.T @ self.shared
        left = chunk.Z - chunk.root[:, None] * self.intercept - chunk.design @ shared
        assert factors is not None
        for f in factors:
            D, X = take(chunk.design, f.rows), take(left, f.rows)
            found[f.tasks] = turn(D) @ (f.solve(X) if f.wide else X)
        k, b, c = found.shape
        if whitening is not None:
            found = (whitening.T @ found.transpose(1, 0, 2).reshape(b, -1)).reshape(b, k, c).transpose(1, 0, 2)
        for f in factors:
            if not f.wide:  # Phi' Q^-1 = P^-1 Phi'
                found[f.tasks] = f.solve(found[f.tasks])
        return (chunk.own[:, None, None] * found).astype(self.shared.dtype)

    def _zeros(self, chunk: Chunk) -> Array:
        return np.zeros((len(chunk.own), *self.shared.shape))

    def _singular_parts(self, chunk: Chunk) -> Array:
        """The same by singular values."""
        found = self._zeros(chunk)
        for batch in batches(chunk):
            (Phi, B), own = batch.double, chunk.own[batch.tasks, None, None].astype(float)
            X = B[..., :-1] - B[..., -1:] * self.intercept - Phi @ self.shared
            U, s, Vt = svd(Phi)
            e = 1 / (own * s[..., None] ** 2 + self.rho)
            found[batch.tasks] = own * (turn(Vt) @ (s[..., None] * e * (turn(U) @ X)))
        return found.astype(self.shared.dtype)


def solve_arrow(source: Source, sharing: float, rho: float, bias: bool = True) -> Arrow:
    """Solve in one pass over the tasks; two if the ridge is too small for normal equations."""
    return Arrow.of(arrow_system(source, sharing, rho, bias), rho)


def arrow_system(source: Source, sharing: float, rho: float, bias: bool = True) -> System:
    """Solve the shared system, and keep its factor."""
    rho = float(rho)  # a numpy float64 would promote float32
    sums = arrow_sums(source, rho)
    return sums.system(sharing, bias) if sums.keep_digits(sharing) else arrow_qr(source, sharing, rho, bias)


def arrow_qr(source: Source, sharing: float, rho: float, bias: bool = True) -> System:
    """The same by singular values and QR, where normal equations lose the digits."""
    return by_qr(_factors(source), sharing, rho, bias)


def arrow_sums(source: Source, rho: float, sums: Sums | None = None) -> Sums:
    """Sums over all tasks by normal equations; not ``regular`` if those of a task would lose the digits.

    They are added to ``sums``, which must be given if there may be no task.
    """
    for chunk in source():
        sums = sums or empty_sums(chunk)
        if factor_chunk(chunk, rho, sums) is None:
            break
    assert sums is not None
    return sums


def arrow_triangle(source: Source, sharing: float, rho: float, bias: bool, width: int) -> Triangle:
    """Replaces the sums where normal equations lose the digits."""
    return Triangle.of(_factors(source), sharing, rho, bias, width)


@dataclass(frozen=True)
class TaskFactors:
    """Cholesky factors of tasks of similar sizes at one ridge.

    Attributes
    ----------
    tasks : ndarray of int of shape (k,)
    rows : ndarray of int of shape (k, m)
        Their rows, -1 for padding.
    inverse : ndarray of shape (k, s, s)
        ``L^-1``, with ``L L' = Q_t`` and s = m, or ``L L' = P_t = rho I + own Phi'Phi`` and s = b for tasks of more
        than b rows.
    wide : bool
        True in the first case.
    """

    tasks: Array
    rows: Array
    inverse: Array
    wide: bool

    def solve(self, X: Array) -> Array:
        """``Q_t^-1 X_t`` or ``P_t^-1 X_t``."""
        return turn(self.inverse) @ (self.inverse @ X)

    def packed(self) -> TaskFactors:
        """The same in half the memory; ``unpacked`` restores it."""
        k, s, _ = self.inverse.shape
        return replace(self, inverse=self.inverse.reshape(k, s * s).take(_lower(s), axis=1))

    def unpacked(self) -> TaskFactors:
        """Undo ``packed``."""
        k, count = self.inverse.shape
        s = int(sqrt(2 * count))
        inverse = np.zeros((k, s * s))
        inverse[:, _lower(s)] = self.inverse
        return replace(self, inverse=inverse.reshape(k, s, s))


@cache
def _lower(s: int) -> Array:
    """Positions of the lower triangle in an s x s matrix; their computation takes as long as a small task."""
    return np.flatnonzero(np.tri(s, dtype=bool))


def empty_sums(chunk: Chunk) -> Sums:
    """Sums of no task, of the size of those of a chunk."""
    return Sums.zeros(chunk.design.shape[1], chunk.Z.shape[1] + 1, chunk.Z.dtype)


def factor_chunk(chunk: Chunk, rho: float, sums: Sums | None = None) -> list[TaskFactors] | None:
    """Factor the tasks of a chunk, and add them to ``sums``; None if normal equations would lose the digits.

    For tasks of more than b rows, ``Phi' Q^-1 = P^-1 Phi'`` and ``Q^-1 = (I - own Phi P^-1 Phi') / rho``.
    """
    factors = []
    for batch in batches(chunk):
        (Phi, B), own = batch.double, chunk.own[batch.tasks, None, None]
        wide = Phi.shape[1] <= Phi.shape[2]
        gram = Phi @ turn(Phi) if wide else turn(Phi) @ Phi
        Q = _ridged(gram, own, rho)
        if not keeps_digits(float(Q.trace(axis1=1, axis2=2).max()), rho, Q.dtype):
            if sums is not None:
                sums.regular = False
            return None
        factors.append(f := TaskFactors(batch.tasks, batch.rows, _lower_inverse(np.linalg.cholesky(Q)), wide))
        if sums is not None and wide:
            sums.add_rows(f.inverse @ Phi, f.inverse @ B)
        elif sums is not None:
            right = turn(Phi) @ B
            solved = f.solve(right)
            C = (turn(B) @ B - own * (turn(right) @ solved)) / rho
            sums.add(f.solve(gram).sum(axis=0), solved.sum(axis=0), C.sum(axis=0))
    return factors


def _ridged(gram: Array, own: Array, rho: float) -> Array:
    """``rho I + own_t gram_t`` for all tasks."""
    Q = own * gram
    i = np.arange(Q.shape[1])
    Q[:, i, i] += rho
    return Q


def _lower_inverse(L: Array) -> Array:
    """Inverses of lower triangular matrices by recursion: numpy has no triangular solver, and inv is slower."""
    h = L.shape[1] // 2
    if h < 8:
        return np.linalg.inv(L)
    inverse = np.zeros_like(L)
    inverse[:, :h, :h] = A = _lower_inverse(L[:, :h, :h])
    inverse[:, h:, h:] = C = _lower_inverse(L[:, h:, h:])
    inverse[:, h:, :h] = -C @ (L[:, h:, :h] @ A)
    return inverse


def _factors(source: Source) -> Iterator[tuple[Factors, Array]]:
    """Decomposed batches of tasks, one at a time, with ``own`` of their chunk."""
    for chunk in source():
        yield from ((Factors.of(batch, batch.tasks, batch.rows), chunk.own) for batch in batches(chunk))
