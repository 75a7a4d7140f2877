"""The solution by going through the tasks twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from leastwise.linalg.arrow.batches import Chunk, Source, batches, turn
from leastwise.linalg.arrow.shared import Factors, Sums, System, Triangle, by_qr, keeps_digits, svd

Array = np.ndarray


@dataclass(frozen=True)
class Arrow:
    """A solution: what all tasks share, and how to get at the part of each.

    Attributes
    ----------
    shared : ndarray of shape (b, c)
    intercept : ndarray of shape (c,)
    rho : float
    regular : bool
        See ``System``.
    jitter : float
        What had to be added to the diagonal of the shared system.
    """

    shared: Array
    intercept: Array
    rho: float
    regular: bool
    jitter: float

    @classmethod
    def of(cls, system: System, rho: float) -> Arrow:
        """From the shared part."""
        return cls(system.shared, system.intercept, float(rho), system.regular, system.factor.jitter)

    def parts(self, chunk: Chunk) -> Array:
        """``beta_t`` of the tasks of a chunk (k x b x c)."""
        found = np.zeros((len(chunk.own), *self.shared.shape), dtype=self.shared.dtype)
        for batch in batches(chunk):
            Phi, B, own = (
                A.astype(float, copy=False) for A in (batch.Phi, batch.B, chunk.own[batch.tasks, None, None])
            )
            fitted = (Phi.reshape(-1, Phi.shape[2]) @ self.shared).reshape(*Phi.shape[:2], -1)
            residual = B[..., :-1] - B[..., -1:] * self.intercept - fitted
            found[batch.tasks] = own * self._pull(Phi, residual, own)
        return found

    def _pull(self, Phi: Array, X: Array, own: Array) -> Array:
        """``Phi_t' Q_t^-1 X_t``."""
        if not self.regular:
            U, s, Vt = svd(Phi)
            e = 1 / (own * s[..., None] ** 2 + self.rho)
            return turn(Vt) @ (s[..., None] * e * (turn(U) @ X))
        if Phi.shape[1] > Phi.shape[2]:
            return np.linalg.solve(_ridged(turn(Phi) @ Phi, own, self.rho), turn(Phi) @ X)
        return turn(Phi) @ np.linalg.solve(_ridged(Phi @ turn(Phi), own, self.rho), X)


def solve_arrow(source: Source, sharing: float, rho: float, bias: bool = True) -> Arrow:
    """Solve, in one pass through the tasks; two where the ridge is so small that products lose the digits."""
    return Arrow.of(arrow_system(source, sharing, rho, bias), rho)


def arrow_system(source: Source, sharing: float, rho: float, bias: bool = True) -> System:
    """The shared part alone, with its factor."""
    rho = float(rho)  # a float64 of numpy would not leave float32 as it is
    sums = arrow_sums(source, rho)
    if not sums.keep_digits(sharing):
        return by_qr(_factors(source), sharing, rho, bias)
    return sums.system(sharing, bias)


def arrow_sums(source: Source, rho: float, sums: Sums | None = None) -> Sums:
    """Sums over all tasks, by products; not ``regular`` where those of a task would lose the digits.

    They are added to ``sums``, which is needed where there may be no task.
    """
    for chunk in source():
        sums = sums or Sums.zeros(chunk.Phi.shape[1], chunk.Z.shape[1] + 1, chunk.Phi.dtype)
        for batch in batches(chunk):
            add = _add_wide if batch.Phi.shape[1] <= batch.Phi.shape[2] else _add_tall
            if not add(sums, *batch.double, chunk.own[batch.tasks, None, None], rho):
                sums.regular = False
                return sums
    assert sums is not None
    return sums


def arrow_triangle(source: Source, sharing: float, rho: float, bias: bool, width: int) -> Triangle:
    """What takes the place of the sums where products lose the digits."""
    return Triangle.of(_factors(source), sharing, rho, bias, width)


def _add_wide(sums: Sums, Phi: Array, B: Array, own: Array, rho: float) -> bool:
    """Add tasks of at most b rows, unless they lose the digits."""
    Q = _ridged(Phi @ turn(Phi), own, rho)
    regular = keeps_digits(float(Q.trace(axis1=1, axis2=2).max()), rho, Q.dtype)
    if regular:
        L = _lower_inverse(np.linalg.cholesky(Q))
        sums.add_rows(L @ Phi, L @ B)
    return regular


def _add_tall(sums: Sums, Phi: Array, B: Array, own: Array, rho: float) -> bool:
    """Add tasks of more than b rows, unless they lose the digits.

    With ``P = rho I + own Phi'Phi``, Phi' Q^-1 = P^-1 Phi' and Q^-1 = (I - own Phi P^-1 Phi') / rho.
    """
    b, gram = Phi.shape[2], turn(Phi) @ Phi
    P = _ridged(gram, own, rho)
    regular = keeps_digits(float(P.trace(axis1=1, axis2=2).max()), rho, P.dtype)
    if regular:
        right = np.concatenate([gram, turn(Phi) @ B], axis=2)
        solved = np.linalg.solve(P, right)
        C = (turn(B) @ B - own * (turn(right[..., b:]) @ solved[..., b:])) / rho
        sums.add(solved[..., :b].sum(axis=0), solved[..., b:].sum(axis=0), C.sum(axis=0))
    return regular


def _ridged(gram: Array, own: Array, rho: float) -> Array:
    """``rho I + own_t gram_t`` of all tasks."""
    Q = own * gram
    i = np.arange(Q.shape[1])
    Q[:, i, i] += rho
    return Q


def _lower_inverse(L: Array) -> Array:
    """Inverses of lower triangles, by halves: numpy has no triangular solver, and its inverse is slow here."""
    h = L.shape[1] // 2
    if h < 8:
        return np.linalg.inv(L)
    inverse = np.zeros_like(L)
    inverse[:, :h, :h] = A = _lower_inverse(L[:, :h, :h])
    inverse[:, h:, h:] = C = _lower_inverse(L[:, h:, h:])
    inverse[:, h:, :h] = -C @ (L[:, h:, :h] @ A)
    return inverse


def _factors(source: Source) -> Iterator[tuple[Factors, Array]]:
    """Decomposed batches of tasks, one at a time, with the own of their chunk."""
    for chunk in source():
        yield from ((Factors.of(batch, batch.tasks, batch.rows), chunk.own) for batch in batches(chunk))
