"""What tasks are worth to one another: held-out errors without the rows of a task, from one inverse.

Taking the rows u out of training leaves ``M' = M - M[:, u] (M_uu)^-1 M[u, :]`` on the others, and the held-out scores
of those follow as before, ``Z_f - (M'_ff)^-1 (M'Z)_f``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leastwise.linalg.cholesky import cholesky
from leastwise.problem.intercepts import Centring
from leastwise.solvers.heldout import Folds

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class BorderedInverse:
    """The inverse of ``[H + rho, v; v', 0]``: M (n x n) for the rows, m (n) for the intercept, zeros without one."""

    M: Array
    m: Array


def bordered_inverse(
    H: Array, ridge: float, root: Array, bias: bool, centring: Centring | None = None
) -> BorderedInverse:
    """From one Cholesky factor; H may be destroyed. Tasks with intercepts of their own are centred."""
    H, v = (H, root) if centring is None else (centring.gram(H), centring.rows(root[:, None])[:, 0])
    L = cholesky(H, ridge=ridge, overwrite=True).inverse_factor(overwrite=True)
    M, m = L.T @ L, np.zeros_like(root)
    if bias:
        Mv = M @ v
        m = Mv / (v @ Mv)
        M -= np.outer(Mv, m)
    return (
        BorderedInverse(M, m)
        if centring is None
        else BorderedInverse(centring.gram(M), centring.rows(m[:, None])[:, 0])
    )


@dataclass(frozen=True, eq=False)
class TaskDeletions:
    """Held-out errors where some tasks are not trained on; ``M = (H + rho)^-1`` and ``A = M Z``.

    Attributes
    ----------
    M : ndarray of shape (n, n)
    A : ndarray of shape (n, c)
    task : ndarray of int of shape (n,)
    mass : ndarray of shape (T,)
        The weight of the rows of each task.
    folds : Folds
    ridge : float
        rho.
    count : ndarray of shape (n,) or None
        Observations that each row stands for, of which one is held out at a time; None for one each.
    """

    M: Array
    A: Array
    task: Array
    mass: Array
    folds: Folds
    ridge: float = 1.0
    count: Array | None = None

    def matrix(self) -> Array:
        """By how much the error of each task, in rows, grows without each task, in columns."""
        everyone = range(len(self.mass))
        before = self.errors(np.empty(0, dtype=int))
        return np.column_stack([self.errors(np.flatnonzero(self.task == u)) for u in everyone]) - before[:, None]

    def errors(self, gone: Array) -> Array:
        """Mean squared errors of the tasks where the rows ``gone`` are out of training; roots of weights count."""
        M, A = self.M, self.A
        L = np.linalg.cholesky(M[np.ix_(gone, gone)])
        C, a = np.linalg.solve(L, M[gone]), np.linalg.solve(L, A[gone])  # M' = M - C'C, A' = A - C'a
        R = A - C.T @ a
        one = np.setdiff1d(self.folds.singles, gone)
        left = M[one, one] - np.einsum("ij,ij->j", C, C)[one]
        if self.count is not None:  # see ``deletion.delete_one``
            left = left / self.count[one] + (1 - 1 / self.count[one]) / self.ridge
        R[one] /= left[:, None]
        for f in self._blocks(gone):
            left = M[f[:, :, None], f[:, None, :]] - np.einsum("ikl,ikm->klm", C[:, f], C[:, f])
            R[f] = np.linalg.solve(left, R[f])
        R[gone] = np.linalg.solve(L.T, a)  # they are held out together: (M_uu)^-1 A_u
        return np.bincount(self.task, np.einsum("ij,ij->i", R, R)) / self.mass

    def _blocks(self, gone: Array) -> list[Array]:
        """Rows that are held out together, less those that are gone: arrays (blocks x rows), one for every size."""
        stays = np.ones(len(self.task), dtype=bool)
        stays[gone] = False
        by_size: dict[int, list[Array]] = {}
        for block in self.folds.blocks:
            rest = block[stays[block]]
            by_size.setdefault(len(rest), []).append(rest)
        return [np.array(blocks) for size, blocks in by_size.items() if size]
